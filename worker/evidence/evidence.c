/*
 * A job of kind "evidence": one cell is built again so that the compiler leaves IR, assembly and MIR of the package under question,
 * that build is run, and what it left is looked at (look.h) in the same sandbox.
 *
 * The extra outputs and the debug information are the only difference from the cell's own build: the number of codegen units stays
 * what it was.  Whether this build ends as the cell did is part of the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell.h"
#include "evidence/look.h"
#include "evidence/shim.h"
#include "fs.h"
#include "jobs.h"
#include "os.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED_BY_CLANG
#endif
#endif

enum {
	LOOK_MS = 120000,
	ANSWER_LIMIT = 3 << 20, /* below PROTOCOL_LINE_LIMIT */
	ARTIFACT_LIMIT = 64 << 20,
	MOST_ARTIFACTS = 64,
	DEEPEST = 8,
	MOST_OUTPUTS = 4096,
};

struct gathering {
	struct job job; /* a copy whose {rustc} is the shim */
	struct cell cell;
	struct shim shim;
	char *folder;          /* in the workspace, for the look */
	struct timespec start; /* outputs are younger */
	json_t *outputs;       /* {"ir": [paths], ...} */
	size_t output_count;
};

static void gathering_clear(struct gathering *gathering)
{
	cell_close(&gathering->cell);
	shim_clear(&gathering->shim);
	job_clear(&gathering->job);
	free(gathering->folder);
	json_decref(gathering->outputs);
}

static int copy_job(const struct job *job, struct job *copy, struct error *error)
{
	cleanup_free char *line = job_encode(job);
	return job_decode(copy, line, strlen(line), error);
}

/* The build -------------------------------------------------------------------------------------------------------------- */

static int add_flags(struct gathering *gathering, struct error *error)
{
	static const char *const common[] = {"-C", "debuginfo=2", "-C", "strip=none"};
	struct cell *cell = &gathering->cell;
	cleanup_strlist struct strlist flags = {0};
	strlist_add(&flags, gathering->job.all_packages ? "--emit=llvm-ir,link" : "--emit=llvm-ir,asm,mir,link");
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
		strlist_add(&flags, common[i]);
	if (shim_write(&gathering->shim, cell, &flags, true, error) < 0)
		return -1;
	if (gathering->job.all_packages) {
		strmap_set(&cell->environment, "RUSTC_WRAPPER", gathering->shim.wrapper);
		strmap_remove(&cell->environment, "RUSTC_WORKSPACE_WRAPPER");
	}
	return 0;
}

/* A folder of the user that the commands run as; its time marks the start of the build. */
static int make_folder(struct gathering *gathering, struct error *error)
{
	const struct workspace *workspace = &gathering->cell.workspace;
	struct stat status;
	gathering->folder = path_join(workspace->folder, "look");
	if (fs_make_folder(gathering->folder, error) < 0)
		return -1;
	if (workspace->drop && chown(gathering->folder, workspace->user, workspace->group) < 0)
		return error_set_errno(error, "cannot give %s away", gathering->folder);
	if (stat(gathering->folder, &status) < 0)
		return error_set_errno(error, "cannot look at %s", gathering->folder);
	gathering->start = status.st_mtim;
	return 0;
}

static bool is_younger(const struct stat *status, const struct timespec *start)
{
	return status->st_mtim.tv_sec > start->tv_sec ||
	       (status->st_mtim.tv_sec == start->tv_sec && status->st_mtim.tv_nsec >= start->tv_nsec);
}

static void add_output(struct gathering *gathering, const char *path)
{
	static const struct {
		const char *suffix;
		const char *kind;
	} kinds[] = {{".ll", "ir"}, {".s", "assembly"}, {".mir", "mir"}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (!text_ends_with(path, kinds[i].suffix) || gathering->output_count >= MOST_OUTPUTS)
			continue;
		json_array_append_new(json_object_get(gathering->outputs, kinds[i].kind), json_string(path));
		gathering->output_count++;
	}
}

/* What the build left in its folders; those of build scripts are none of ours. */
static void find_outputs(struct gathering *gathering, const char *folder, int depth)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error error = {0};
	if (depth > DEEPEST || fs_list_folder(folder, &names, &error) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		struct stat status;
		const char *name = names.items[i];
		cleanup_free char *path = path_join(folder, name);
		if (lstat(path, &status) < 0)
			continue;
		if (S_ISREG(status.st_mode) && is_younger(&status, &gathering->start))
			add_output(gathering, path);
		if (S_ISDIR(status.st_mode) && name[0] != '.' && strcmp(name, "build") != 0 && strcmp(name, "incremental") != 0)
			find_outputs(gathering, path, depth + 1);
	}
}

/* The look ---------------------------------------------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text != NULL ? json_string(text) : json_null());
}

static int write_request(struct gathering *gathering, struct error *error)
{
	const struct job *job = &gathering->job;
	cleanup_free char *path = path_join(gathering->folder, LOOK_REQUEST);
	json_t *request = json_deep_copy(gathering->outputs);
	cleanup_free char *program = path_join(gathering->cell.workspace.reproducer, gathering->cell.run.items[0]);
	set_text(request, "program", program);
	set_text(request, "function", job->function);
	set_text(request, "reproducer", gathering->cell.workspace.reproducer);
	set_text(request, "prepared", job->prepared);
	set_text(request, "compare", job->compare);
	set_text(request, "tools", job->tools);
	cleanup_free char *text = json_dumps(request, JSON_INDENT(1));
	json_decref(request);
	return fs_write_file(path, text, strlen(text), error);
}

/* This program itself, where the sandbox shows it. */
static char *bring_program(const struct gathering *gathering, struct error *error)
{
	char *path = path_join(gathering->folder, "bisect-worker");
	cleanup_str struct str bytes = {0};
	if (fs_read_file(os_own_program(), 0, &bytes, error) == 0 && fs_write_file(path, bytes.data, bytes.length, error) == 0) {
		if (chmod(path, 0755) == 0)
			return path;
		error_set_errno(error, "cannot make %s executable", path);
	}
	free(path);
	return NULL;
}

static int look(struct gathering *gathering, struct error *error)
{
	cleanup_command_result struct command_result command = {0};
	cleanup_strlist struct strlist words = {0};
	cleanup_free char *program = bring_program(gathering, error);
	cleanup_free char *request = path_join(gathering->folder, LOOK_REQUEST);
	if (program == NULL || write_request(gathering, error) < 0)
		return -1;
	strlist_add(&words, program);
	strlist_add(&words, "--look");
	strlist_add(&words, request);
	struct command_setup setup = cell_command(&gathering->cell, "look", &words, LOOK_MS);
#if defined(__SANITIZE_ADDRESS__) || defined(SANITIZED_BY_CLANG)
	setup.limits.memory_bytes = 1LL << 50; /* AddressSanitizer reserves terabytes of addresses */
#endif
	event_phase("look", 0, 0);
	command_run(&gathering->cell.sandbox, &setup, &command);
	if (command.end == COMMAND_ENDED && command.status == 0)
		return 0;
	cleanup_free char *end = command_end_text(&setup, &command);
	cleanup_free char *line = first_line(str_text(&command.output), command.output.length);
	return error_set(error, "looking at what the build left: %s%s%s", end, line != NULL ? ": " : "", line != NULL ? line : "");
}

/* What it says ------------------------------------------------------------------------------------------------------------ */

static bool is_plain_name(const char *name)
{
	return name != NULL && name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 200;
}

static int take_artifact(const struct gathering *gathering, const char *name, struct error *error)
{
	struct stat status;
	cleanup_free char *from = path_join(gathering->folder, name);
	cleanup_free char *to = path_join(gathering->job.evidence, name);
	if (lstat(from, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > ARTIFACT_LIMIT)
		return error_set(error, "the artifact %s is missing, no plain file, or larger than %d MiB", name,
				 ARTIFACT_LIMIT >> 20);
	return fs_copy_file(from, to, error);
}

/* Names come from inside the sandbox: only plain ones, of plain files, are taken. */
static int take_artifacts(const struct gathering *gathering, json_t *answer, struct error *error)
{
	size_t index;
	json_t *artifact;
	const json_t *artifacts = json_object_get(answer, "artifacts");
	if (fs_remove_tree(gathering->job.evidence, error) < 0 || fs_make_folder(gathering->job.evidence, error) < 0)
		return -1;
	if (json_array_size(artifacts) > MOST_ARTIFACTS)
		return error_set(error, "the look gave more than %d artifacts", MOST_ARTIFACTS);
	json_array_foreach (artifacts, index, artifact) {
		const char *name = json_string_value(json_object_get(artifact, "path"));
		if (!is_plain_name(name))
			return error_set(error, "the look named an artifact that is no plain file name");
		if (take_artifact(gathering, name, error) < 0)
			return -1;
	}
	return 0;
}

static int take_answer(struct gathering *gathering, struct result *result, struct error *error)
{
	json_error_t trouble;
	struct stat status;
	cleanup_str struct str text = {0};
	cleanup_free char *path = path_join(gathering->folder, LOOK_ANSWER);
	if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return error_set(error, "the look left no answer");
	if (fs_read_file(path, ANSWER_LIMIT, &text, error) < 0)
		return -1;
	json_t *answer = json_loads(str_text(&text), JSON_REJECT_DUPLICATES, &trouble);
	if (!json_is_object(answer)) {
		json_decref(answer);
		return error_set(error, "the look's answer is no JSON object: %s", trouble.text);
	}
	if (take_artifacts(gathering, answer, error) < 0) {
		json_decref(answer);
		return -1;
	}
	cleanup_free char *copy = path_join(gathering->job.evidence, LOOK_ANSWER);
	if (fs_write_file(copy, str_text(&text), text.length, error) < 0) {
		json_decref(answer);
		return -1;
	}
	json_object_set_new(answer, "build",
			    json_pack("{s:s, s:s?, s:I, s:s?}", "outcome", outcome_name(result->outcome), "reason", result->reason,
				      "ms", (json_int_t)result->build_ms, "binary", "binary", result->binary));
	json_decref(result->data);
	result->data = answer;
	return 0;
}

/* From here on the result speaks of the gathering, not of the runs. */
static void succeed(struct result *result)
{
	free(result->reason);
	free(result->signature);
	result->reason = result->signature = NULL;
	result->outcome = OUTCOME_PASS;
}

static int gather(struct gathering *gathering, struct result *result, struct error *error)
{
	struct cell *cell = &gathering->cell;
	shim_name(&gathering->shim, &gathering->job);
	if (cell_open(cell, &gathering->job, result, error) < 0 || make_folder(gathering, error) < 0 ||
	    add_flags(gathering, error) < 0)
		return -1;
	if (!cell_build(cell)) {
		cleanup_free char *reason = text_copy(result->reason);
		result_set(result, result->outcome == OUTCOME_ERROR ? OUTCOME_ERROR : OUTCOME_SKIP,
			   "the build for evidence (the same with --emit=llvm-ir,asm,mir and debug information) failed: %s",
			   reason);
		return 0;
	}
	if (cell_leave_network(cell, error) < 0)
		return -1;
	cell_run(cell);
	if (result->outcome == OUTCOME_ERROR)
		return error_set(error, "%s", result->reason);
	find_outputs(gathering, cell->workspace.target, 0);
	find_outputs(gathering, cell->workspace.reproducer, 0);
	if (json_array_size(json_object_get(gathering->outputs, "ir")) == 0) {
		result_set(result, OUTCOME_SKIP,
			   "the build left no LLVM IR: it calls neither cargo (1.55 or later) nor {rustc}, so no flags could be "
			   "added");
		return 0;
	}
	if (look(gathering, error) < 0 || take_answer(gathering, result, error) < 0)
		return -1;
	succeed(result);
	return 0;
}

void evidence_job(const struct job *job, struct result *result)
{
	__attribute__((cleanup(gathering_clear))) struct gathering gathering = {.cell = CELL_NONE};
	cleanup_error struct error error = {0};
	result->exit_status = -1;
	gathering.cell.result = result;
	gathering.outputs = json_pack("{s:[], s:[], s:[]}", "ir", "assembly", "mir");
	if (job->evidence == NULL || job->evidence[0] != '/')
		result_set(result, OUTCOME_ERROR, "the job's \"evidence\" is no absolute path");
	else if (copy_job(job, &gathering.job, &error) < 0 || gather(&gathering, result, &error) < 0)
		result_set(result, OUTCOME_ERROR, "%s", error_text(&error));
}
