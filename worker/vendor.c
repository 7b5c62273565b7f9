/* See vendor.h. */
#include "vendor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"
#include "fs.h"
#include "log.h"
#include "whole.h"

enum { MANIFEST_LIMIT = 4 << 20 };

static const char vendored_name[] =
	"vendored-sources"; /* what `cargo vendor` calls it in the settings that it prints */

/* Anything but crates.io: its crates may have the same names and versions, so they get a folder of their own. */
static bool has_other_sources(const struct lock *lock)
{
	for (size_t i = 0; i < lock->count; i++)
		if (lock->packages[i].source != NULL && !lock_from_crates_io(&lock->packages[i]))
			return true;
	return false;
}

static char *crate_folder(const char *sources, const struct lock_package *package)
{
	return text_format("%s/%s-%s", sources, package->name, package->version);
}

/* `cargo vendor` writes the checksum file last: what has it is whole. */
static bool has_all(const struct lock *lock, const char *sources)
{
	for (size_t i = 0; i < lock->count; i++) {
		if (lock->packages[i].source == NULL)
			continue;
		cleanup_free char *folder = crate_folder(sources, &lock->packages[i]);
		cleanup_free char *mark = path_join(folder, ".cargo-checksum.json");
		if (!path_exists(mark))
			return false;
	}
	return true;
}

static int run_vendor(struct cargo *cargo, const char *folder, const char *sources, struct str *settings,
		      struct error *error)
{
	static const char *const words[] = {"vendor", "--locked", "--versioned-dirs", "--no-delete"};
	cleanup_strlist struct strlist arguments = {0};
	cleanup_child_output struct child_output output = {0};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		strlist_add(&arguments, words[i]);
	strlist_add(&arguments, sources);
	if (cargo_run(cargo, folder, &arguments, &output, error) < 0)
		return -1;
	str_append(settings, str_text(&output.output));
	return 0;
}

/* Preparations run at once: one at a time puts crates into the shared folder.  The lock goes with the descriptor. */
static int take_lock(const char *vendor, int *fd, struct error *error)
{
	cleanup_free char *path = path_join(vendor, ".lock");
	struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (*fd < 0)
		return error_set_errno(error, "cannot open %s", path);
	while (fcntl(*fd, F_SETLKW, &whole_file) < 0)
		if (errno != EINTR)
			return error_set_errno(error, "cannot lock %s", path);
	return 0;
}

struct private_fetch {
	struct cargo *cargo;
	const char *folder;
	struct str *settings;
};

static int fill_private(const char *folder, void *context, struct error *error)
{
	struct private_fetch *fetch = context;
	cleanup_free char *sources = path_join(folder, "crates");
	cleanup_free char *settings_file = path_join(folder, "settings.toml");
	if (run_vendor(fetch->cargo, fetch->folder, sources, fetch->settings, error) < 0 ||
	    fs_make_folder(sources, error) < 0)
		return -1;
	return fs_write_file(settings_file, str_text(fetch->settings), fetch->settings->length, error);
}

/*
 * What `cargo vendor` printed about the sources that it replaces, without the folder: everything up to the table of the
 * directory source, which prepare writes with the final path.
 */
static int keep_settings(struct str *settings, struct error *error)
{
	cleanup_free char *table = text_format("[source.%s]", vendored_name);
	const char *found = strstr(str_text(settings), table);
	if (found == NULL)
		return error_set(error, "cargo vendor printed no [source.%s]", vendored_name);
	cleanup_free char *kept = text_copy_range(settings->data, (size_t)(found - settings->data));
	str_clear(settings);
	str_append(settings, kept);
	return 0;
}

static int fetch_private(struct cargo *cargo, const char *folder, const char *lock_text, const char *vendor,
			 char **sources, struct str *settings, struct error *error)
{
	struct digest digest;
	digest_start(&digest);
	digest_add(&digest, "lock", lock_text);
	cleanup_free char *hash = digest_finish(&digest);
	cleanup_free char *path = text_format("%s/lock-%.16s", vendor, hash);
	cleanup_free char *settings_file = path_join(path, "settings.toml");
	cleanup_str struct str printed = {0};
	struct private_fetch fetch = {.cargo = cargo, .folder = folder, .settings = &printed};
	if (whole_make(path, fill_private, &fetch, error) < 0 ||
	    fs_read_file(settings_file, MANIFEST_LIMIT, settings, error) < 0 || keep_settings(settings, error) < 0)
		return -1;
	*sources = path_join(path, "crates");
	return 0;
}

int vendor_fetch(struct cargo *cargo, const char *folder, const struct lock *lock, const char *lock_text,
		 const char *vendor, char **sources, struct str *settings, struct error *error)
{
	cargo->trouble = CARGO_BROKEN;
	if (fs_make_folder(vendor, error) < 0)
		return -1;
	cleanup_fd int taken = -1;
	if (take_lock(vendor, &taken, error) < 0)
		return -1;
	if (has_other_sources(lock))
		return fetch_private(cargo, folder, lock_text, vendor, sources, settings, error);
	cleanup_free char *shared = path_join(vendor, "crates");
	cleanup_str struct str printed = {0};
	if (fs_make_folder(shared, error) < 0)
		return -1;
	if (!has_all(lock, shared) && run_vendor(cargo, folder, shared, &printed, error) < 0)
		return -1;
	str_append_format(settings, "[source.crates-io]\nreplace-with = \"%s\"\n\n", vendored_name);
	*sources = path_absolute(shared);
	return 0;
}

/* A line `key = "value"` anywhere: published manifests are written by cargo in one layout, so that is what it looks
 * like. */
static bool has_line(const char *manifest, const char *line)
{
	const char *found = strstr(manifest, line);
	return found != NULL && (found == manifest || found[-1] == '\n');
}

int vendor_oldest_cargo(const char *manifest)
{
	static const struct {
		const char *line;
		int minor;
	} lines[] = {{"edition = \"2024\"", 85},
		     {"resolver = \"3\"", 84},
		     {"edition = \"2021\"", 56},
		     {"edition = \"2018\"", 31}};
	int oldest = 0;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (has_line(manifest, lines[i].line) && lines[i].minor > oldest)
			oldest = lines[i].minor;
	/* features that name dependencies ("dep:serde", "serde?/std") came with 1.60 */
	if (oldest < 60 && (strstr(manifest, "\"dep:") != NULL || strstr(manifest, "?/") != NULL))
		oldest = 60;
	/* a compiler's age below this costs a folder more and tells nothing: no such toolchain knows [patch] in
	 * settings */
	return oldest < 56 ? 56 : oldest;
}

static int oldest_for_lock(const struct lock *lock, const char *sources, int *oldest, struct error *error)
{
	*oldest = 56;
	for (size_t i = 0; i < lock->count; i++) {
		if (lock->packages[i].source == NULL)
			continue;
		cleanup_free char *folder = crate_folder(sources, &lock->packages[i]);
		cleanup_free char *path = path_join(folder, "Cargo.toml");
		cleanup_str struct str manifest = {0};
		if (fs_read_file(path, MANIFEST_LIMIT, &manifest, error) < 0)
			return -1;
		int minor = vendor_oldest_cargo(str_text(&manifest));
		*oldest = minor > *oldest ? minor : *oldest;
	}
	return 0;
}

static int make_links(const struct lock *lock, const char *directory, const char *sources, struct error *error)
{
	for (size_t i = 0; i < lock->count; i++) {
		if (lock->packages[i].source == NULL)
			continue;
		cleanup_free char *target = crate_folder(sources, &lock->packages[i]);
		cleanup_free char *link = crate_folder(directory, &lock->packages[i]);
		if (symlink(target, link) < 0 && errno != EEXIST)
			return error_set_errno(error, "cannot make link %s", link);
	}
	return 0;
}

int vendor_link(const struct lock *lock, const char *vendor, const char *sources, char **directory, struct error *error)
{
	cleanup_free char *shared = path_join(vendor, "crates");
	cleanup_free char *shared_absolute = path_absolute(shared);
	if (!text_equal(shared_absolute, sources)) {
		*directory = text_copy(sources);
		return 0;
	}
	int oldest;
	if (oldest_for_lock(lock, sources, &oldest, error) < 0)
		return -1;
	cleanup_free char *vendor_absolute = path_absolute(vendor);
	cleanup_free char *path = text_format("%s/cargo-1.%d", vendor_absolute, oldest);
	if (fs_make_folder(path, error) < 0 || make_links(lock, path, sources, error) < 0)
		return -1;
	*directory = text_copy(path);
	return 0;
}
