/*
 * `bisectd audit --cargo DIR`: three jobs, one after the other: find the toolchains, prepare the package's dependencies, build it
 * with IR.
 *
 * Nothing is written into DIR: the build has a copy, in a temporary folder, and runs in the sandbox without network.
 */
#include "audit_internal.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "json_text.h"
#include "log.h"

enum { BUILD_MS = 1700000 };

static bool is_usable(const json_t *toolchain)
{
	return json_is_null(json_object_get(toolchain, "skip")) && json_text(toolchain, "cargo") != NULL;
}

static bool is_released(const json_t *toolchain)
{
	const char *label = json_text(toolchain, "label");
	return label != NULL && strstr(label, "nightly") == NULL && strstr(label, "beta") == NULL;
}

/* The last released one (answers are in the order of versions), else the last.  Borrowed; NULL where none can be used. */
static const json_t *newest(const json_t *toolchains)
{
	size_t index;
	json_t *toolchain;
	const json_t *best = NULL;
	json_array_foreach (toolchains, index, toolchain)
		if (is_usable(toolchain) && (best == NULL || is_released(toolchain) || !is_released(best)))
			best = toolchain;
	return best;
}

static int find_toolchain(struct auditing *auditing, json_t **toolchain, struct error *error)
{
	cleanup_job struct job job = {0};
	job.kind = text_copy("toolchains");
	job.id = text_copy("toolchains");
	strlist_add(&job.names, "auto");
	strlist_add_owned(&job.search, path_join(auditing->options->state_folder, "toolchains"));
	if (audit_do_job(auditing, &job, error) < 0)
		return error_wrap(error, "looking for a toolchain");
	const json_t *found = newest(auditing->data);
	if (found == NULL)
		return error_set(error,
				 "no Rust toolchain with cargo was found: install one with rustup, or run `make toolchains`");
	*toolchain = json_deep_copy(found);
	return 0;
}

static int prepare(struct auditing *auditing, const json_t *toolchain, struct error *error)
{
	cleanup_job struct job job = {0};
	job.kind = text_copy("prepare");
	job.id = text_copy("dependencies");
	job.reproducer = text_copy(auditing->options->cargo_folder);
	job.cargo = text_copy(json_text(toolchain, "cargo"));
	job.prepared = path_join(auditing->folder, "prepared");
	job.vendor = path_join(auditing->folder, "vendor");
	job.edited = path_join(auditing->folder, "edited");
	job.crates = json_array();
	job.overrides = json_array();
	return audit_do_job(auditing, &job, error) < 0 ? error_wrap(error, "fetching the dependencies") : 0;
}

static void add_texts(struct strlist *list, const json_t *value)
{
	size_t index;
	json_t *element;
	if (json_is_string(value))
		strlist_add(list, json_string_value(value));
	json_array_foreach (value, index, element)
		strlist_add(list, json_string_value(element));
}

static void fill_build(const struct auditing *auditing, const json_t *toolchain, const struct strlist *flags, struct job *job)
{
	json_t *words = json_pack("[s, s, s]", "cargo", "build", "--locked");
	for (size_t i = 0; i < flags->count; i++)
		json_array_append_new(words, json_string(flags->items[i]));
	job->kind = text_copy("evidence");
	job->id = text_copy("build for the audit");
	job->all_packages = true;
	job->reproducer = text_copy(auditing->options->cargo_folder);
	job->workspace = path_join(auditing->folder, "build/work");
	job->target = path_join(auditing->folder, "build/target");
	job->prepared = path_join(auditing->folder, "prepared");
	job->vendor = path_join(auditing->folder, "vendor");
	job->edited = path_join(auditing->folder, "edited");
	job->evidence = path_join(auditing->folder, "evidence");
	job->build = json_pack("[o]", words);
	job->build_ms = BUILD_MS;
	strlist_add(&job->run, "true"); /* nothing is run: the program itself may want anything */
	add_texts(&job->path, json_object_get(toolchain, "path"));
	add_texts(&job->read_only, json_object_get(toolchain, "read_only"));
}

/* The copy that was built is gone when this is read: its files are named as those of the package. */
static void name_place(json_t *location, const char *copy, const char *package)
{
	const char *file = json_text(location, "file");
	if (file == NULL || !text_starts_with(file, copy))
		return;
	cleanup_free char *named = text_format("%s%s", package, file + strlen(copy));
	json_object_set_new(location, "file", json_string(named));
}

static void name_places(const struct auditing *auditing, const struct job *job, json_t *audit)
{
	size_t index;
	size_t place;
	json_t *block;
	json_t *location;
	cleanup_free char *copy = path_join(job->workspace, "reproducer");
	json_array_foreach (json_object_get(audit, "blocks"), index, block) {
		name_place(json_object_get(block, "location"), copy, auditing->options->cargo_folder);
		json_array_foreach (json_object_get(block, "inlined_at"), place, location)
			name_place(location, copy, auditing->options->cargo_folder);
	}
}

json_t *audit_cargo(struct auditing *auditing, const struct strlist *flags, struct error *error)
{
	cleanup_job struct job job = {0};
	json_t *toolchain = NULL;
	cleanup_free char *manifest = path_join(auditing->options->cargo_folder, "Cargo.toml");
	if (!path_exists(manifest)) {
		error_set(error, "%s does not exist: give the folder of a cargo package", manifest);
		return NULL;
	}
	if (find_toolchain(auditing, &toolchain, error) < 0)
		return NULL;
	fill_build(auditing, toolchain, flags, &job);
	log_info("building %s with %s", auditing->options->cargo_folder, json_text(toolchain, "label"));
	int result = prepare(auditing, toolchain, error);
	json_decref(toolchain);
	if (result < 0 || audit_do_job(auditing, &job, error) < 0)
		return NULL;
	json_t *audit = json_deep_copy(json_object_get(auditing->data, "audit"));
	if (audit == NULL) {
		error_set(error, "the worker's answer holds no audit");
		return NULL;
	}
	name_places(auditing, &job, audit);
	json_object_set_new(audit, "file", json_string(auditing->options->cargo_folder));
	return json_pack("[o]", audit);
}
