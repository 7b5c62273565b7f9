/*
 * The job "prepare": everything that the cells of one combination of crate values share.  Resolves (with as few changes
 * to the shipped Cargo.lock as cargo can do), has the sources vendored, makes the edited copies, and writes what an
 * offline build needs:
 *
 *   <prepared>/Cargo.lock          for the workspace; complete, so that `--locked --offline` accepts it
 *   <prepared>/cargo-config.toml   source replacement and patches, with absolute paths
 *   <prepared>/prepared.json       the question and the answer, for a repetition
 *
 * Nothing is built here and no code of a crate runs.
 */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cargo.h"
#include "checkout.h"
#include "digest.h"
#include "edited.h"
#include "fs.h"
#include "json_text.h"
#include "lock.h"
#include "log.h"
#include "os.h"
#include "vendor.h"
#include "whole.h"

enum { FILE_LIMIT = 64 << 20 };

struct preparation {
	const struct job *job;
	struct cargo cargo;
	char *reproducer; /* our copy: cargo may write its lock file */
	char *key;
	struct checkout *checkouts; /* one for each entry of job->crates that has a tree */
	size_t checkout_count;
	struct str patches;    /* TOML */
	struct str settings;   /* TOML: which sources are replaced */
	struct strlist asked;  /* crates whose change is the point of it all */
	struct strlist needed; /* folders that a build needs to see */
	struct lock lock;
	char *lock_text;
	char *shipped; /* the lock that the reproducer ships, or NULL */
	json_t *edits; /* see job.h */
	json_t *data;
	enum outcome outcome; /* what a failure means */
};

static void preparation_clear(struct preparation *preparation)
{
	for (size_t i = 0; i < preparation->checkout_count; i++)
		checkout_clear(&preparation->checkouts[i]);
	free(preparation->checkouts);
	cargo_clear(&preparation->cargo);
	free(preparation->reproducer);
	free(preparation->key);
	str_clear(&preparation->patches);
	str_clear(&preparation->settings);
	strlist_clear(&preparation->asked);
	strlist_clear(&preparation->needed);
	lock_clear(&preparation->lock);
	free(preparation->lock_text);
	free(preparation->shipped);
	json_decref(preparation->edits);
	json_decref(preparation->data);
}

/* After a failure of cargo: an answer means that this combination cannot be tried, anything else is trouble of ours. */
static int cargo_failed(struct preparation *preparation, struct error *error)
{
	if (preparation->cargo.trouble == CARGO_REFUSED)
		preparation->outcome = OUTCOME_SKIP;
	else
		error_wrap(error, "the registry or cargo gave no answer");
	return -1;
}

/* ---- the question's identity ---- */

static void add_json(struct digest *digest, const char *name, const json_t *value)
{
	cleanup_free char *text =
		value != NULL ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
	digest_add(digest, name, text);
}

static const char *const left_out[] = {"target", ".git", "rust-toolchain", "rust-toolchain.toml", NULL};

static void list_left_out(struct strlist *skip)
{
	for (size_t i = 0; left_out[i] != NULL; i++)
		strlist_add(skip, left_out[i]);
}

static int question_key(const struct job *job, char **key, struct error *error)
{
	struct digest digest;
	cleanup_strlist struct strlist skip = {0};
	cleanup_free char *tree = NULL;
	list_left_out(&skip);
	if (fs_hash_tree(job->reproducer, &skip, &tree, error) < 0)
		return -1;
	digest_start(&digest);
	digest_add(&digest, "prepare", "1"); /* changes when the folder is made in another way */
	digest_add(&digest, "reproducer", tree);
	digest_add(&digest, "vendor", job->vendor);
	digest_add(&digest, "edited", job->edited);
	add_json(&digest, "crates", job->crates);
	add_json(&digest, "overrides", job->overrides);
	for (size_t i = 0; i < job->checkouts.count; i++)
		digest_add(&digest, job->checkouts.entries[i].key, job->checkouts.entries[i].value);
	*key = digest_finish(&digest);
	return 0;
}

/* ---- crates from checkouts ---- */

static void add_patch(struct preparation *preparation, const char *source, const char *key, const char *name,
		      const char *path)
{
	struct str *patches = &preparation->patches;
	json_t *quoted = json_string(path); /* a JSON string is a TOML basic string */
	cleanup_free char *text = json_dumps(quoted, JSON_ENCODE_ANY);
	json_decref(quoted);
	str_append_format(patches, "[patch.%s.\"%s\"]\npackage = \"%s\"\npath = %s\n\n", source, key, name,
			  text != NULL ? text : "\"\"");
	/* the copy lies in <edited>/<key>/ */
	cleanup_free char *edited = path_absolute(preparation->job->edited);
	size_t length = strlen(edited) + 1;
	cleanup_free char *shown = text_copy_range(path, length + strcspn(path + length, "/"));
	if (!strlist_contains(&preparation->needed, shown))
		strlist_add(&preparation->needed, shown);
}

static int open_checkouts(struct preparation *preparation, struct error *error)
{
	size_t index;
	json_t *entry;
	preparation->checkouts = memory_new(json_array_size(preparation->job->crates), sizeof *preparation->checkouts);
	json_array_foreach (preparation->job->crates, index, entry) {
		const char *name = json_text(entry, "name");
		const char *tree = json_text(entry, "tree");
		if (name == NULL || (tree == NULL) == (json_text(entry, "release") == NULL))
			return error_set(error, "each of \"crates\" needs a name and either a release or a tree");
		strlist_add(&preparation->asked, name);
		if (tree == NULL)
			continue;
		struct checkout *checkout = &preparation->checkouts[preparation->checkout_count++];
		if (checkout_open(checkout, name, json_text(entry, "source"), tree, json_text(entry, "oid"), error) < 0)
			return -1;
		const struct checkout_crate *found = NULL;
		if (checkout_find(checkout, &preparation->cargo, preparation->reproducer, name, &found, error) < 0)
			return cargo_failed(preparation, error);
		if (found == NULL) {
			preparation->outcome = OUTCOME_SKIP;
			return error_set(error, "%s (%s) holds no crate %s", checkout->source, checkout->identity,
					 name);
		}
	}
	return 0;
}

static void plan_edits(struct checkout *checkout, const json_t *override, const struct checkout_crate *crate)
{
	json_array_append_new(checkout->plan,
			      json_pack("{s:s, s:s, s:s?, s:s, s:O}", "override",
					json_text(override, "name") != NULL ? json_text(override, "name") : "", "crate",
					crate != NULL ? crate->name : checkout->name, "version",
					crate != NULL ? crate->version : NULL, "folder",
					crate != NULL ? crate->folder : "", "edits",
					json_object_get(override, "edits")));
}

/* An override of a crate that the checkout holds, or of the checkout itself. */
static int plan_override(struct preparation *preparation, struct checkout *checkout, const json_t *override,
			 struct error *error)
{
	const char *crate = json_text(override, "crate");
	const struct checkout_crate *found = NULL;
	if (crate == NULL && text_equal(json_text(override, "checkout"), checkout->source))
		plan_edits(checkout, override, NULL);
	if (crate == NULL)
		return 0;
	if (checkout_find(checkout, &preparation->cargo, preparation->reproducer, crate, &found, error) < 0)
		return cargo_failed(preparation, error);
	if (found != NULL)
		plan_edits(checkout, override, found);
	return 0;
}

static int patch_checkout(struct preparation *preparation, struct checkout *checkout, struct error *error)
{
	size_t index;
	json_t *override;
	json_array_foreach (preparation->job->overrides, index, override) {
		if (plan_override(preparation, checkout, override, error) < 0)
			return -1;
	}
	struct edited_request request = {.edited = preparation->job->edited,
					 .name = checkout->source,
					 .identity = checkout->identity,
					 .from = checkout->tree,
					 .plan = checkout->plan};
	if (edited_make(&request, &checkout->edited, preparation->edits, error) < 0)
		return -1;
	const struct checkout_crate *crate = NULL;
	if (checkout_find(checkout, &preparation->cargo, preparation->reproducer, checkout->name, &crate, error) < 0)
		return cargo_failed(preparation, error);
	for (size_t i = 0; i < checkout->count; i++)
		if (!strlist_contains(&preparation->asked, checkout->crates[i].name))
			strlist_add(&preparation->asked, checkout->crates[i].name);
	cleanup_free char *path =
		crate->folder[0] != '\0' ? path_join(checkout->edited, crate->folder) : text_copy(checkout->edited);
	add_patch(preparation, "crates-io", checkout->name, checkout->name, path);
	return 0;
}

/* ---- checkouts that are no crates: {checkout:NAME} of the cells ---- */

static bool is_crate_source(const struct preparation *preparation, const char *name)
{
	for (size_t i = 0; i < preparation->checkout_count; i++)
		if (text_equal(preparation->checkouts[i].source, name))
			return true;
	return false;
}

/* Into <prepared>/checkouts/<name>: such a tree belongs to this combination alone. */
static int edit_plain_checkout(struct preparation *preparation, const char *folder, const char *name, const char *tree,
			       struct error *error)
{
	size_t index;
	json_t *override;
	cleanup_free char *checkouts = path_join(folder, "checkouts");
	cleanup_free char *copy = path_join(checkouts, name);
	cleanup_strlist struct strlist skip = {0};
	strlist_add(&skip, ".git");
	if (strchr(name, '/') != NULL || name[0] == '.')
		return error_set(error, "'%s' is no name of a checkout", name);
	if (fs_make_folder(checkouts, error) < 0 || fs_copy_tree(tree, copy, &skip, error) < 0)
		return -1;
	json_array_foreach (preparation->job->overrides, index, override) {
		if (!text_equal(json_text(override, "checkout"), name))
			continue;
		json_t *planned = json_pack("{s:s, s:s, s:n, s:s, s:O}", "override", json_text(override, "name"), "crate",
					    name, "version", "folder", "", "edits", json_object_get(override, "edits"));
		int result = edited_apply(copy, planned, preparation->edits, error);
		json_decref(planned);
		if (result < 0)
			return -1;
	}
	return 0;
}

static int edit_plain_checkouts(struct preparation *preparation, const char *folder, struct error *error)
{
	size_t index;
	json_t *override;
	json_array_foreach (preparation->job->overrides, index, override) {
		const char *name = json_text(override, "checkout");
		if (name == NULL)
			continue;
		const char *tree = strmap_get(&preparation->job->checkouts, name);
		cleanup_free char *copy = text_format("%s/checkouts/%s", folder, name);
		if (tree == NULL && !is_crate_source(preparation, name))
			return error_set(error, "override %s: this combination has no checkout %s",
					 json_text(override, "name"), name);
		if (tree != NULL && !path_exists(copy) &&
		    edit_plain_checkout(preparation, folder, name, tree, error) < 0)
			return -1;
	}
	return 0;
}

/* ---- the lock ---- */

static int read_lock(struct preparation *preparation, struct error *error)
{
	cleanup_free char *path = path_join(preparation->reproducer, "Cargo.lock");
	cleanup_str struct str text = {0};
	if (fs_read_file(path, FILE_LIMIT, &text, error) < 0)
		return -1;
	lock_clear(&preparation->lock);
	free(preparation->lock_text);
	preparation->lock_text = text_copy(str_text(&text));
	return lock_parse(&preparation->lock, preparation->lock_text, error);
}

static int write_lock(struct preparation *preparation, const char *text, struct error *error)
{
	cleanup_free char *path = path_join(preparation->reproducer, "Cargo.lock");
	if (fs_write_file(path, text, strlen(text), error) < 0)
		return -1;
	return read_lock(preparation, error);
}

static const struct checkout *checkout_of(const struct preparation *preparation, const char *crate)
{
	for (size_t i = 0; i < preparation->checkout_count; i++)
		if (text_equal(preparation->checkouts[i].name, crate))
			return &preparation->checkouts[i];
	return NULL;
}

/* The version that an entry of "crates" asks for. */
static const char *asked_version(const struct preparation *preparation, const json_t *entry)
{
	const struct checkout *checkout = checkout_of(preparation, json_text(entry, "name"));
	if (checkout == NULL)
		return json_text(entry, "release");
	for (size_t i = 0; i < checkout->count; i++)
		if (text_equal(checkout->crates[i].name, checkout->name))
			return checkout->crates[i].version;
	return "";
}

/* Is the locked version the asked one, from a folder where it is a checkout's?  "1.0.0" also means 1.0.0+build. */
static bool is_locked_as_asked(const struct preparation *preparation, const json_t *entry)
{
	const char *name = json_text(entry, "name");
	const char *asked = asked_version(preparation, entry);
	const char *locked = lock_direct_version(&preparation->lock, name);
	if (locked == NULL || strncmp(locked, asked, strlen(asked)) != 0)
		return false;
	if (locked[strlen(asked)] != '\0' && locked[strlen(asked)] != '+')
		return false;
	const struct lock_package *package = lock_find(&preparation->lock, name, locked, 0);
	return (package->source == NULL) == (checkout_of(preparation, name) != NULL);
}

static int lock_crate(struct preparation *preparation, const json_t *entry, struct error *error)
{
	const char *name = json_text(entry, "name");
	const char *locked = lock_direct_version(&preparation->lock, name);
	if (locked == NULL)
		return error_set(error, "the reproducer does not depend on %s", name);
	if (is_locked_as_asked(preparation, entry))
		return 0;
	cleanup_free char *package = text_format("%s@%s", name, locked);
	const char *version = asked_version(preparation, entry);
	const char *const words[] = {"update", "-p", package, "--precise", version, NULL};
	log_info("locking %s %s", name, version);
	if (cargo_do(&preparation->cargo, preparation->reproducer, words, error) < 0)
		return cargo_failed(preparation, error);
	return read_lock(preparation, error);
}

static int check_locked(struct preparation *preparation, struct error *error)
{
	size_t index;
	json_t *entry;
	json_array_foreach (preparation->job->crates, index, entry) {
		const char *name = json_text(entry, "name");
		const char *locked = lock_direct_version(&preparation->lock, name);
		if (is_locked_as_asked(preparation, entry))
			continue;
		preparation->outcome = preparation->job->lock != NULL ? OUTCOME_ERROR : OUTCOME_SKIP;
		return error_set(error, "%s %s was asked for, and %s has %s%s", name, asked_version(preparation, entry),
				 preparation->job->lock != NULL ? "the given Cargo.lock" : "what cargo resolved to",
				 locked != NULL ? locked : "none",
				 checkout_of(preparation, name) != NULL ? ", or not from the checkout" : "");
	}
	return 0;
}

static int resolve(struct preparation *preparation, struct error *error)
{
	static const char *const generate[] = {"generate-lockfile", NULL};
	cleanup_free char *path = path_join(preparation->reproducer, "Cargo.lock");
	size_t index;
	json_t *entry;
	if (preparation->job->lock != NULL) {
		if (write_lock(preparation, preparation->job->lock, error) < 0)
			return -1;
		return check_locked(preparation, error);
	}
	if (!path_exists(path) && cargo_do(&preparation->cargo, preparation->reproducer, generate, error) < 0)
		return cargo_failed(preparation, error);
	if (read_lock(preparation, error) < 0)
		return -1;
	json_array_foreach (preparation->job->crates, index, entry) {
		if (lock_crate(preparation, entry, error) < 0)
			return -1;
	}
	cleanup_free char *old = lock_for_old_cargo(preparation->lock_text);
	if (strcmp(old, preparation->lock_text) != 0 && write_lock(preparation, old, error) < 0)
		return -1;
	return check_locked(preparation, error);
}

/* ---- edits of registry crates ---- */

/* What the [patch] table of a package's source is called. */
static char *patch_source(const struct lock_package *package)
{
	if (lock_from_crates_io(package))
		return text_copy("crates-io");
	const char *plus = strchr(package->source, '+');
	const char *address = text_starts_with(package->source, "sparse+") || plus == NULL ? package->source : plus + 1;
	cleanup_free char *plain = text_copy_range(address, strcspn(address, "?#"));
	return text_format("\"%s\"", plain);
}

static int override_package(struct preparation *preparation, const struct lock_package *package, const json_t *override,
			    const char *sources, struct error *error)
{
	/* all overrides of this crate go into one copy, made with the first of them */
	size_t index;
	json_t *other;
	json_t *plan = json_array();
	json_array_foreach (preparation->job->overrides, index, other) {
		if (!text_equal(json_text(other, "crate"), package->name))
			continue;
		if (json_array_size(plan) == 0 && other != override) {
			json_decref(plan);
			return 0;
		}
		json_array_append_new(plan, json_pack("{s:s, s:s, s:s, s:s, s:O}", "override",
						      json_text(other, "name") != NULL ? json_text(other, "name") : "",
						      "crate", package->name, "version", package->version, "folder", "",
						      "edits", json_object_get(other, "edits")));
	}
	cleanup_free char *from = text_format("%s/%s-%s", sources, package->name, package->version);
	cleanup_free char *identity = text_format("%s %s %s", package->source, package->version,
						  package->checksum != NULL ? package->checksum : "");
	cleanup_free char *path = NULL;
	struct edited_request request = {.edited = preparation->job->edited,
					 .name = package->name,
					 .identity = identity,
					 .from = from,
					 .plan = plan};
	int result = edited_make(&request, &path, preparation->edits, error);
	json_decref(plan);
	if (result < 0)
		return -1;
	/* [patch] keys are names of crates: a second version of one needs another key */
	bool first = lock_find(&preparation->lock, package->name, NULL, 0) == package;
	cleanup_free char *key =
		first ? text_copy(package->name) : text_format("%s-%s", package->name, package->version);
	for (char *byte = key; *byte != '\0'; byte++)
		if (*byte == '.' || *byte == '+')
			*byte = '-';
	cleanup_free char *source = patch_source(package);
	add_patch(preparation, source, key, package->name, path);
	return 0;
}

static int apply_override(struct preparation *preparation, const json_t *override, const char *sources,
			  char **lock_text, struct error *error)
{
	const char *crate = json_text(override, "crate");
	bool found = false;
	if (crate == NULL)
		return 0;
	for (size_t i = 0; i < preparation->checkout_count && !found; i++)
		for (size_t j = 0; j < preparation->checkouts[i].count && !found; j++)
			found = text_equal(preparation->checkouts[i].crates[j].name, crate);
	for (size_t i = 0; i < preparation->lock.count; i++) {
		const struct lock_package *package = &preparation->lock.packages[i];
		if (!text_equal(package->name, crate) || package->source == NULL)
			continue;
		found = true;
		if (override_package(preparation, package, override, sources, error) < 0)
			return -1;
		char *patched = lock_without_source(*lock_text, package->name, package->version);
		free(*lock_text);
		*lock_text = patched;
	}
	if (!found)
		return error_set(
			error, "override %s: crate %s is neither in Cargo.lock as a registry's crate nor in a checkout",
			json_text(override, "name"), crate);
	return 0;
}

static int check_override(const json_t *override, struct error *error)
{
	bool crate = json_text(override, "crate") != NULL;
	bool checkout = json_text(override, "checkout") != NULL;
	if (json_text(override, "name") == NULL || crate == checkout || !json_is_array(json_object_get(override, "edits")))
		return error_set(error, "each of \"overrides\" needs a name, edits, and either a crate or a checkout");
	return 0;
}

/* Turns the lock into the one that is built with: what is edited comes from a folder. */
static int apply_overrides(struct preparation *preparation, const char *sources, struct error *error)
{
	size_t index;
	json_t *override;
	cleanup_free char *lock_text = text_copy(preparation->lock_text);
	json_array_foreach (preparation->job->overrides, index, override) {
		if (apply_override(preparation, override, sources, &lock_text, error) < 0)
			return -1;
	}
	if (strcmp(lock_text, preparation->lock_text) == 0)
		return 0;
	return write_lock(preparation, lock_text, error);
}

/* ---- the folder ---- */

static int write_config(struct preparation *preparation, const char *directory, const char *path, struct error *error)
{
	cleanup_str struct str text = {0};
	str_append(&text, "# Made by bisect-worker: the build takes everything from these folders.\n");
	if (directory != NULL) {
		json_t *quoted = json_string(directory);
		cleanup_free char *folder = json_dumps(quoted, JSON_ENCODE_ANY);
		json_decref(quoted);
		str_append(&text, str_text(&preparation->settings));
		str_append_format(&text, "[source.vendored-sources]\ndirectory = %s\n\n",
				  folder != NULL ? folder : "\"\"");
	}
	str_append(&text, str_text(&preparation->patches));
	return fs_write_file(path, str_text(&text), text.length, error);
}

/* Point the next commands of cargo at the patches so far (directory NULL), or at everything that the build will use. */
static int configure(struct preparation *preparation, const char *directory, const char *path, struct error *error)
{
	if (write_config(preparation, directory, path, error) < 0)
		return -1;
	free(preparation->cargo.config);
	preparation->cargo.config = text_copy(path);
	return 0;
}

/* Does the newest cargo accept it all, offline and locked? */
static int verify(struct preparation *preparation, struct error *error)
{
	static const char *const words[] = {"metadata", "--format-version", "1", "--locked", "--offline", NULL};
	if (cargo_do(&preparation->cargo, preparation->reproducer, words, error) == 0)
		return 0;
	return error_wrap(error, "what was prepared is not what cargo wants");
}

static size_t count_vendored(const struct lock *lock)
{
	size_t count = 0;
	for (size_t i = 0; i < lock->count; i++)
		count += lock->packages[i].source != NULL;
	return count;
}

static json_t *list_to_json(const struct strlist *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, json_string(list->items[i]));
	return array;
}

/*
 * What differs from the shipped lock, besides what was asked for and what a checkout brings along.  `resolved` is the
 * lock before overrides: they change no version.
 */
static int list_changes(const struct preparation *preparation, const char *resolved, json_t **changes,
			struct error *error)
{
	cleanup_lock struct lock before = {0};
	cleanup_lock struct lock after = {0};
	cleanup_strlist struct strlist expected = {0};
	if (lock_parse(&before, preparation->shipped, error) < 0 || lock_parse(&after, resolved, error) < 0)
		return -1;
	strlist_add_all(&expected, &preparation->asked);
	for (size_t i = 0; i < after.count; i++)
		if (after.packages[i].source == NULL)
			strlist_add(&expected, after.packages[i].name);
	*changes = lock_changes(&before, &after, &expected);
	return 0;
}

/* `resolved` is NULL where the reproducer is no crate. */
static int answer(struct preparation *preparation, const char *resolved, struct error *error)
{
	json_t *changes = NULL;
	if (preparation->shipped != NULL && resolved != NULL &&
	    list_changes(preparation, resolved, &changes, error) < 0)
		return -1;
	preparation->data =
		json_pack("{s:s?, s:O, s:I, s:o, s:o}", "lock", resolved, "edits", preparation->edits, "vendored",
			  (json_int_t)count_vendored(&preparation->lock), "changed",
			  changes != NULL ? changes : json_array(), "read_only", list_to_json(&preparation->needed));
	return preparation->data != NULL ? 0 : error_set(error, "the answer is no JSON");
}

static int write_answer(struct preparation *preparation, const char *folder, struct error *error)
{
	cleanup_free char *path = path_join(folder, "prepared.json");
	json_t *object = json_pack("{s:s, s:O}", "key", preparation->key, "data", preparation->data);
	cleanup_free char *text = json_dumps(object, JSON_INDENT(1));
	json_decref(object);
	if (text == NULL)
		return error_set(error, "the answer is no JSON");
	return fs_write_file(path, text, strlen(text), error);
}

static int vendor_and_edit(struct preparation *preparation, const char *folder, struct error *error)
{
	const struct job *job = preparation->job;
	cleanup_free char *sources = NULL;
	cleanup_free char *directory = NULL;
	cleanup_free char *config = path_join(folder, "cargo-config.toml");
	cleanup_free char *lock = path_join(folder, "Cargo.lock");
	cleanup_free char *vendor = path_absolute(job->vendor);
	cleanup_free char *resolved = text_copy(preparation->lock_text);
	log_info("fetching and vendoring %zu crates", count_vendored(&preparation->lock));
	if (vendor_fetch(&preparation->cargo, preparation->reproducer, &preparation->lock, resolved, vendor, &sources,
			 &preparation->settings, error) < 0)
		return cargo_failed(preparation, error);
	if (apply_overrides(preparation, sources, error) < 0 ||
	    vendor_link(&preparation->lock, vendor, sources, &directory, error) < 0)
		return -1;
	strlist_add(&preparation->needed, vendor);
	if (configure(preparation, directory, config, error) < 0 || verify(preparation, error) < 0)
		return -1;
	if (fs_write_file(lock, preparation->lock_text, strlen(preparation->lock_text), error) < 0)
		return -1;
	return answer(preparation, resolved, error);
}

static int prepare_crate(struct preparation *preparation, const char *folder, struct error *error)
{
	cleanup_free char *config = path_join(folder, "cargo-config.toml");
	cleanup_free char *shipped = path_join(preparation->reproducer, "Cargo.lock");
	cleanup_str struct str text = {0};
	if (path_exists(shipped)) {
		if (fs_read_file(shipped, FILE_LIMIT, &text, error) < 0)
			return -1;
		preparation->shipped = text_copy(str_text(&text));
	}
	for (size_t i = 0; i < preparation->checkout_count; i++)
		if (patch_checkout(preparation, &preparation->checkouts[i], error) < 0)
			return -1;
	if (configure(preparation, NULL, config, error) < 0 || resolve(preparation, error) < 0)
		return -1;
	return vendor_and_edit(preparation, folder, error);
}

static int check_job(const struct preparation *preparation, bool is_crate, struct error *error)
{
	const struct job *job = preparation->job;
	size_t index;
	json_t *override;
	json_array_foreach (job->overrides, index, override) {
		if (check_override(override, error) < 0)
			return -1;
		if (!is_crate && json_text(override, "crate") != NULL)
			return error_set(error,
					 "override %s: the reproducer has no Cargo.toml, so it has no crate to edit",
					 json_text(override, "name"));
	}
	if (!is_crate && json_array_size(job->crates) > 0)
		return error_set(error, "the reproducer has no Cargo.toml, so no crate can be chosen for it");
	if (is_crate && (job->vendor == NULL || job->edited == NULL))
		return error_set(error, "the job names no folder for vendored or for edited crates");
	return 0;
}

static int fill(const char *folder, void *context, struct error *error)
{
	struct preparation *preparation = context;
	const struct job *job = preparation->job;
	cleanup_strlist struct strlist skip = {0};
	cleanup_free char *work = path_join(folder, "work");
	cleanup_free char *target = path_join(work, "target");
	preparation->reproducer = path_join(work, "reproducer");
	cleanup_free char *manifest = path_join(preparation->reproducer, "Cargo.toml");
	list_left_out(&skip);
	if (fs_make_folder(work, error) < 0 || fs_copy_tree(job->reproducer, preparation->reproducer, &skip, error) < 0)
		return -1;
	bool is_crate = path_exists(manifest);
	cargo_open(&preparation->cargo, job->cargo, target);
	if (check_job(preparation, is_crate, error) < 0 || open_checkouts(preparation, error) < 0 ||
	    edit_plain_checkouts(preparation, folder, error) < 0)
		return -1;
	if ((is_crate ? prepare_crate(preparation, folder, error) : answer(preparation, NULL, error)) < 0)
		return -1;
	if (fs_remove_tree(work, error) < 0)
		return -1;
	return write_answer(preparation, folder, error);
}

/* ---- the job ---- */

static bool all_exist(const json_t *paths)
{
	size_t index;
	json_t *path;
	json_array_foreach (paths, index, path) {
		if (!path_is_folder(json_string_value(path)))
			return false;
	}
	return true;
}

/* The answer of an earlier job to the same question; false where there is none. */
static bool remembered(struct preparation *preparation)
{
	cleanup_free char *path = path_join(preparation->job->prepared, "prepared.json");
	cleanup_str struct str text = {0};
	cleanup_error struct error ignored = {0};
	if (fs_read_file(path, FILE_LIMIT, &text, &ignored) < 0)
		return false;
	json_t *object = json_loads(str_text(&text), 0, NULL);
	json_t *data = json_object_get(object, "data");
	bool same = text_equal(json_text(object, "key"), preparation->key) && data != NULL &&
		    (preparation->job->lock == NULL || text_equal(json_text(data, "lock"), preparation->job->lock)) &&
		    all_exist(json_object_get(data, "read_only"));
	if (same)
		preparation->data = json_incref(data);
	json_decref(object);
	return same;
}

/* What stands there answers another question, or lost its sources. */
static int make_room(const char *prepared, struct error *error)
{
	if (!path_exists(prepared))
		return 0;
	cleanup_free char *away = text_format("%s.tmp-%ld", prepared, (long)getpid());
	if (fs_remove_tree(away, error) < 0)
		return -1;
	if (rename(prepared, away) < 0)
		return error_set_errno(error, "cannot move %s away", prepared);
	return fs_remove_tree(away, error);
}

static int prepare(struct preparation *preparation, struct error *error)
{
	const struct job *job = preparation->job;
	if (job->prepared == NULL || job->reproducer == NULL)
		return error_set(error, "the job names no reproducer or no folder to prepare");
	if (question_key(job, &preparation->key, error) < 0)
		return -1;
	if (remembered(preparation))
		return 0;
	if (make_room(job->prepared, error) < 0 || whole_make(job->prepared, fill, preparation, error) < 0)
		return -1;
	/* another job may have made the folder while this one was about to start */
	return preparation->data != NULL || remembered(preparation)
		       ? 0
		       : error_set(error, "%s has no answer", job->prepared);
}

void prepare_job(const struct job *job, struct result *result)
{
	__attribute__((cleanup(preparation_clear))) struct preparation preparation = {
		.job = job, .outcome = OUTCOME_ERROR, .edits = json_array()};
	cleanup_error struct error error = {0};
	long long start = os_monotonic_ms();
	if (prepare(&preparation, &error) < 0) {
		result->outcome = preparation.outcome;
		result->reason = text_copy(error_text(&error));
		log_error("cannot prepare: %s", error_text(&error));
		return;
	}
	log_info("prepared in %lld ms", os_monotonic_ms() - start);
	result->outcome = OUTCOME_PASS;
	result->data = json_incref(preparation.data);
}
