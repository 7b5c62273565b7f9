/* Any file that can be audited: what it is decides who reads it.  The job "audit" and `audit_file` (audit.h). */
#include "evidence/audit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "evidence/assemble.h"
#include "evidence/flow.h"
#include "fs.h"
#include "jobs.h"
#include "log.h"

enum { SIZE_LIMIT = 1 << 30, COMPILE_MS = 300000, MESSAGES_LIMIT = 1 << 20 };

static json_t *audit_ir(const char *path, const struct str *contents, const struct audit_options *options,
			struct error *error)
{
	cleanup_audit struct audit audit = {0};
	if (audit_ir_text(&audit, path, str_text(contents), contents->length, options, error) < 0)
		return NULL;
	return audit_to_json(&audit);
}

/*
 * A binary no longer says what its blocks promised.  What can be told is whether the flags that a probe's block changes
 * are needed behind it: a broken path counts as a violation, one that could not be followed as not judged.
 */
static json_t *audit_binary(const char *path, const struct audit_options *options, struct error *error)
{
	const struct place_setup setup = {.clang = options->clang, .timeout_ms = options->timeout_ms};
	json_t *paths = flow_binary(path, NULL, &setup, error);
	if (paths == NULL)
		return NULL;
	json_int_t broken = json_integer_value(json_object_get(paths, "broken"));
	json_int_t unknown = json_integer_value(json_object_get(paths, "unknown"));
	json_int_t followed = broken + json_integer_value(json_object_get(paths, "sleeping")) +
			      json_integer_value(json_object_get(paths, "clean"));
	json_int_t lost = (json_int_t)json_array_size(json_object_get(paths, "not_placed")) +
			  (json_int_t)json_array_size(json_object_get(paths, "troubles"));
	json_object_set_new(paths, "judged", json_integer(followed));
	json_object_set_new(paths, "not_judged", json_integer(unknown + lost));
	json_object_set_new(paths, "violations", json_integer(broken));
	return paths;
}

json_t *audit_file(const char *path, const struct audit_options *options, struct error *error)
{
	cleanup_str struct str contents = {0};
	if (path_is_folder(path)) {
		error_set(error, "%s: this is a folder; give the IR files in it, or a crate with --cargo", path);
		return NULL;
	}
	if (fs_read_file(path, SIZE_LIMIT, &contents, error) < 0)
		return NULL;
	if (contents.length >= 4 && memcmp(contents.data, "\177ELF", 4) == 0)
		return audit_binary(path, options, error);
	return audit_ir(path, &contents, options, error);
}

/* ---- C and C++: clang makes the IR ---- */

static int run_clang(const struct strlist *command, struct error *error)
{
	cleanup_strmap struct strmap environment = {0};
	cleanup_child_output struct child_output output = {0};
	child_own_environment(&environment);
	if (child_capture(command, &environment, NULL, COMPILE_MS, MESSAGES_LIMIT, &output, error) < 0)
		return -1;
	if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0)
		return 0;
	cleanup_free char *status = child_status_text(output.status);
	const char *said = str_text(&output.errors);
	const char *first = strstr(said, "error: ");
	said = first != NULL ? first : said;
	return error_set(error, "clang ended with %s: %.*s", status, (int)strcspn(said, "\n"), said);
}

/* Compiles `path` into `ir`.  The flags of the user come last, so that they win. */
static int compile(const char *path, const char *ir, const struct job *job, struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_free char *program = NULL;
	if (job->clang != NULL)
		program = text_copy(job->clang);
	else if (assemble_find_program(&program, error) < 0)
		return -1;
	const char *const first[] = {program, "-O2", "-g", "-w"};
	const char *const last[] = {"-S", "-emit-llvm", "-o", ir, path};
	for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
		strlist_add(&command, first[i]);
	strlist_add_all(&command, &job->flags);
	for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
		strlist_add(&command, last[i]);
	return run_clang(&command, error);
}

static json_t *audit_source(const char *path, const struct job *job, const struct audit_options *options,
			    struct error *error)
{
	const char *parent = getenv("TMPDIR");
	cleanup_free char *folder =
		text_format("%s/bisectd-audit-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
	if (mkdtemp(folder) == NULL) {
		error_set_errno(error, "cannot make a temporary folder");
		return NULL;
	}
	cleanup_error struct error ignored = {0};
	cleanup_free char *ir = path_join(folder, "source.ll");
	json_t *audit = NULL;
	if (compile(path, ir, job, error) == 0)
		audit = audit_file(ir, options, error);
	else
		error_wrap(error, "%s", path);
	if (audit != NULL)
		json_object_set_new(audit, "file", json_string(path));
	fs_remove_tree(folder, &ignored);
	return audit;
}

/* ---- the job ---- */

struct totals {
	json_int_t judged;
	json_int_t not_judged;
	json_int_t violations;
	json_int_t unread;
};

static json_t *audit_one(const char *path, const struct job *job, struct totals *totals)
{
	cleanup_error struct error error = {0};
	const struct audit_options options = {.clang = job->clang};
	json_t *audit = job->compile ? audit_source(path, job, &options, &error) : audit_file(path, &options, &error);
	if (audit == NULL) {
		totals->unread++;
		json_t *said = json_string(error_text(&error));
		return json_pack("{s:s?, s:o}", "file", path, "error",
				 said != NULL ? said : json_string("it cannot be read"));
	}
	totals->judged += json_integer_value(json_object_get(audit, "judged"));
	totals->not_judged += json_integer_value(json_object_get(audit, "not_judged"));
	totals->violations += json_integer_value(json_object_get(audit, "violations"));
	totals->unread += json_object_get(audit, "cut_off") != NULL;
	return audit;
}

void audit_job(const struct job *job, struct result *result)
{
	cleanup_error struct error error = {0};
	struct totals totals = {0};
	if (job->files.count == 0 || job->report == NULL) {
		result_set(result, OUTCOME_ERROR, "an audit needs \"files\" and \"report\"");
		return;
	}
	json_t *audits = json_array();
	for (size_t i = 0; i < job->files.count; i++)
		json_array_append_new(audits, audit_one(job->files.items[i], job, &totals));
	cleanup_free char *text = json_dumps(audits, JSON_INDENT(1));
	json_decref(audits);
	if (text == NULL)
		memory_exhausted();
	if (fs_write_file(job->report, text, strlen(text), &error) < 0) {
		result_set(result, OUTCOME_ERROR, "%s", error_text(&error));
		return;
	}
	result->outcome = OUTCOME_PASS;
	result->data = json_pack("{s:I, s:I, s:I, s:I}", "judged", totals.judged, "not_judged", totals.not_judged,
				 "violations", totals.violations, "unread", totals.unread);
}
