/*
 * The job "releases": is there such a release, and what identifies it?  Cargo itself answers, by locking a crate of our
 * own that depends on exactly that release, so that mirrors, source replacement and private registries' settings are
 * honoured.
 */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cargo.h"
#include "fs.h"
#include "lock.h"
#include "log.h"

enum { LOCK_LIMIT = 16 << 20 };

static const char *const generate[] = {"generate-lockfile", NULL};

struct question {
	struct cargo cargo;
	const char *crate;
	char *folder; /* our own crate */
};

static void question_clear(struct question *question)
{
	cleanup_error struct error ignored = {0};
	if (question->folder != NULL)
		fs_remove_tree(question->folder, &ignored);
	free(question->folder);
	cargo_clear(&question->cargo);
}

static int write_crate(const struct question *question, const char *requirement, struct error *error)
{
	cleanup_free char *sources = path_join(question->folder, "src");
	cleanup_free char *library = path_join(sources, "lib.rs");
	cleanup_free char *manifest = path_join(question->folder, "Cargo.toml");
	cleanup_free char *lock = path_join(question->folder, "Cargo.lock");
	cleanup_free char *text = text_format(
		"[package]\nname = \"bisectd-asks\"\nversion = \"0.0.0\"\nedition = \"2018\"\n\n[workspace]\n\n"
		"[dependencies]\n%s = \"%s\"\n",
		question->crate, requirement);
	if (fs_remove_tree(lock, error) < 0 || fs_make_folder(sources, error) < 0 ||
	    fs_write_file(library, "", 0, error) < 0)
		return -1;
	return fs_write_file(manifest, text, strlen(text), error);
}

/* Names as crates.io allows them, and versions as semver does: anything else would be TOML of the asker's making. */
static bool is_plain(const char *text, const char *more)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	cleanup_free char *allowed = text_format("%s%s", letters, more);
	return text[0] != '\0' && strspn(text, allowed) == strlen(text);
}

static int read_checksum(const struct question *question, const char *release, char **checksum, struct error *error)
{
	cleanup_free char *path = path_join(question->folder, "Cargo.lock");
	cleanup_str struct str text = {0};
	cleanup_lock struct lock lock = {0};
	if (fs_read_file(path, LOCK_LIMIT, &text, error) < 0 || lock_parse(&lock, str_text(&text), error) < 0)
		return -1;
	const char *version = lock_direct_version(&lock, question->crate);
	const struct lock_package *package = version != NULL ? lock_find(&lock, question->crate, version, 0) : NULL;
	if (package == NULL || package->checksum == NULL)
		return error_set(error, "cargo locked %s without a checksum", question->crate);
	/* "=1.0.0" also takes 1.0.0+build: the build part says nothing about order but is part of the name */
	if (strncmp(version, release, strcspn(release, "+")) != 0)
		return error_set(error, "cargo locked %s %s where %s was asked for", question->crate, version, release);
	*checksum = text_copy(package->checksum);
	return 0;
}

/* A yanked release is no longer chosen, but cargo still locks it when it is named (from 1.77 on). */
static int ask_for_yanked(struct question *question, const char *release, struct error *error)
{
	const char *const update[] = {"update", "-p", question->crate, "--precise", release, NULL};
	if (write_crate(question, "*", error) < 0 || cargo_do(&question->cargo, question->folder, generate, error) < 0)
		return -1;
	return cargo_do(&question->cargo, question->folder, update, error);
}

static int ask(struct question *question, const char *release, char **checksum, bool *yanked, struct error *error)
{
	question->cargo.trouble = CARGO_REFUSED;
	if (!is_plain(release, ".+"))
		return error_set(error, "'%s' is no version", release);
	cleanup_free char *requirement = text_format("=%s", release);
	question->cargo.trouble = CARGO_BROKEN;
	if (write_crate(question, requirement, error) < 0)
		return -1;
	if (cargo_do(&question->cargo, question->folder, generate, error) < 0) {
		*yanked = question->cargo.trouble == CARGO_REFUSED && strstr(error_text(error), "yanked") != NULL;
		if (!*yanked || ask_for_yanked(question, release, error) < 0)
			return -1;
	}
	question->cargo.trouble = CARGO_BROKEN;
	return read_checksum(question, release, checksum, error);
}

static json_t *answer(struct question *question, const char *release)
{
	cleanup_error struct error error = {0};
	cleanup_free char *checksum = NULL;
	bool yanked = false;
	const char *skip = NULL;
	const char *trouble = NULL;
	log_info("asking cargo for %s %s", question->crate, release);
	if (ask(question, release, &checksum, &yanked, &error) < 0) {
		skip = question->cargo.trouble == CARGO_REFUSED ? error_text(&error) : NULL;
		trouble = skip == NULL ? error_text(&error) : NULL;
	}
	return json_pack("{s:s, s:s?, s:b, s:s?, s:s?}", "name", release, "identity", checksum, "yanked", yanked,
			 "skip", skip, "error", trouble);
}

static int open_question(struct question *question, const struct job *job, struct error *error)
{
	if (job->crate == NULL || !is_plain(job->crate, ""))
		return error_set(error, "'%s' is no name of a crate", job->crate != NULL ? job->crate : "");
	const char *parent = getenv("TMPDIR");
	cleanup_free char *template = text_format("%s/bisectd-releases-XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(template) == NULL)
		return error_set_errno(error, "cannot make a temporary folder");
	question->folder = text_copy(template);
	question->crate = job->crate;
	cleanup_free char *target = path_join(question->folder, "target");
	cargo_open(&question->cargo, job->cargo, target);
	return 0;
}

void releases_job(const struct job *job, struct result *result)
{
	__attribute__((cleanup(question_clear))) struct question question = {0};
	cleanup_error struct error error = {0};
	if (open_question(&question, job, &error) < 0) {
		result->outcome = OUTCOME_ERROR;
		result->reason = text_copy(error_text(&error));
		return;
	}
	result->data = json_array();
	for (size_t i = 0; i < job->names.count; i++)
		json_array_append_new(result->data, answer(&question, job->names.items[i]));
	result->outcome = OUTCOME_PASS;
}
