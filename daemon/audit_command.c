/* See audit_command.h.  The daemon's part is small: one job, one report file, text or JSON from it. */
#include "audit_command.h"
#include "audit_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "json_text.h"
#include "log.h"
#include "loop.h"
#include "pool.h"

enum { DEADLINE_MS = 1800000, REPORT_LIMIT = 1 << 30 };

/* ---- what it says ---- */

/* "src/lib.rs:12:9", or the line of the IR file where the compiler left no place. */
static void add_place(const json_t *audit, const json_t *block, struct str *line)
{
	const json_t *location = json_object_get(block, "location");
	const char *file = json_text(location, "file");
	if (file == NULL || *file == '\0') {
		str_append_format(line, "%s:%lld", json_text(audit, "file"),
				  (long long)json_integer_value(json_object_get(block, "ir_line")));
		return;
	}
	str_append_format(line, "%s:%lld", file, (long long)json_integer_value(json_object_get(location, "line")));
	long long column = json_integer_value(json_object_get(location, "column"));
	if (column > 0)
		str_append_format(line, ":%lld", column);
}

/* " (crate usdt-impl 0.5.0, probe propolis:serial_uart_read, in propolis::serial::task)" */
static void add_circumstances(const json_t *block, struct str *line)
{
	const json_t *location = json_object_get(block, "location");
	const char *crate = json_text(location, "crate");
	const char *version = json_text(location, "version");
	const char *probe = json_text(block, "probe");
	const char *name = json_text(location, "function") != NULL ? json_text(location, "function") : json_text(block, "name");
	str_append(line, " (");
	if (crate != NULL)
		str_append_format(line, "crate %s%s%s, ", crate, version != NULL ? " " : "", version != NULL ? version : "");
	if (probe != NULL)
		str_append_format(line, "probe %s, ", probe);
	str_append_format(line, "in %s)", name != NULL ? name : json_text(block, "function"));
}

static void add_block_lines(const json_t *audit, const json_t *block, struct strlist *lines)
{
	size_t index;
	json_t *violation;
	if (json_text(block, "reason") != NULL) {
		cleanup_str struct str line = {0};
		add_place(audit, block, &line);
		str_append_format(&line, ": not judged: %s", json_text(block, "reason"));
		add_circumstances(block, &line);
		strlist_add(lines, str_text(&line));
	}
	json_array_foreach (json_object_get(block, "violations"), index, violation) {
		cleanup_str struct str line = {0};
		add_place(audit, block, &line);
		str_append_format(&line, ": %s: %s", json_text(violation, "kind"), json_text(violation, "text"));
		add_circumstances(block, &line);
		strlist_add(lines, str_text(&line));
	}
}

/* A probe of a binary: "serial::task: probe serial:uart-read: broken: …", and the same for what could not be placed. */
static void add_binary_lines(const json_t *audit, struct strlist *lines)
{
	size_t index;
	json_t *path;
	json_array_foreach (json_object_get(audit, "paths"), index, path) {
		const json_t *block = json_object_get(path, "block");
		const json_t *location = json_object_get(block, "location");
		const char *file = json_text(location, "file");
		const char *probe = json_text(block, "probe");
		const char *words = json_text(path, "text") != NULL ? json_text(path, "text") : json_text(path, "reason");
		const char *state = json_text(path, "state");
		cleanup_str struct str line = {0};
		if (state == NULL || strcmp(state, "clean") == 0)
			continue;
		if (file != NULL)
			str_append_format(&line, "%s:%lld", file, (long long)json_integer_value(json_object_get(location, "line")));
		else
			str_append_format(&line, "%s:%s", json_text(audit, "file"),
					  json_text(block, "address") != NULL ? json_text(block, "address") : "?");
		str_append_format(&line, ": %s: %s (%s%s%sin %s)", state, words != NULL ? words : "no reason was given",
				  probe != NULL ? "probe " : "", probe != NULL ? probe : "", probe != NULL ? ", " : "",
				  json_text(path, "name") != NULL ? json_text(path, "name") : "?");
		strlist_add(lines, str_text(&line));
	}
	json_array_foreach (json_object_get(audit, "not_placed"), index, path) {
		cleanup_free char *line = text_format("%s: not judged: %s", json_text(audit, "file"), json_text(path, "reason"));
		strlist_add(lines, line);
	}
	json_array_foreach (json_object_get(audit, "troubles"), index, path) {
		cleanup_free char *line = text_format("%s: not judged: %s", json_text(audit, "file"), json_string_value(path));
		strlist_add(lines, line);
	}
	if (json_object_get(audit, "paths") != NULL && json_array_size(json_object_get(audit, "paths")) == 0) {
		cleanup_free char *line =
			text_format("%s: a binary without probe records: it no longer says what its asm blocks promised; "
				    "give the LLVM IR that it was built from",
				    json_text(audit, "file"));
		strlist_add(lines, line);
	}
}

struct line {
	const char *text;
	size_t index;
};

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left;
	const struct line *b = right;
	int order = strcmp(a->text, b->text);
	return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

/* Each line once, in the order in which they first came: a block that was inlined into many places is one finding. */
static void add_lines(const struct strlist *lines, struct str *text)
{
	cleanup_free struct line *sorted = memory_new(lines->count + 1, sizeof *sorted);
	cleanup_free size_t *times = memory_new(lines->count + 1, sizeof *times); /* 0: an earlier line says it */
	for (size_t i = 0; i < lines->count; i++)
		sorted[i] = (struct line){lines->items[i], i};
	if (lines->count > 1)
		qsort(sorted, lines->count, sizeof *sorted, compare_lines);
	for (size_t i = 0, first = 0; i < lines->count; i++) {
		if (strcmp(sorted[i].text, sorted[first].text) != 0)
			first = i;
		times[sorted[first].index]++;
	}
	for (size_t i = 0; i < lines->count; i++) {
		if (times[i] == 1)
			str_append_format(text, "%s\n", lines->items[i]);
		else if (times[i] > 1)
			str_append_format(text, "%s [%zu times]\n", lines->items[i], times[i]);
	}
}

static long long sum(const json_t *audits, const char *key)
{
	size_t index;
	json_t *audit;
	long long total = 0;
	json_array_foreach (audits, index, audit)
		total += json_integer_value(json_object_get(audit, key));
	return total;
}

void audit_text(const json_t *audits, struct str *text)
{
	size_t index;
	json_t *audit;
	size_t unread = 0;
	cleanup_strlist struct strlist lines = {0};
	json_array_foreach (audits, index, audit) {
		size_t number;
		json_t *block;
		if (json_text(audit, "error") != NULL) {
			strlist_add(&lines, json_text(audit, "error"));
			unread++;
		}
		if (json_text(audit, "cut_off") != NULL) {
			cleanup_free char *line =
				text_format("%s: not judged to its end: %s", json_text(audit, "file"), json_text(audit, "cut_off"));
			strlist_add(&lines, line);
		}
		add_binary_lines(audit, &lines);
		json_array_foreach (json_object_get(audit, "blocks"), number, block)
			add_block_lines(audit, block, &lines);
	}
	add_lines(&lines, text);
	long long judged = sum(audits, "judged");
	long long not_judged = sum(audits, "not_judged");
	long long violations = sum(audits, "violations");
	str_append_format(text, "%lld asm block%s judged, %lld violation%s, %lld not judged", judged, judged == 1 ? "" : "s",
			  violations, violations == 1 ? "" : "s", not_judged);
	if (unread > 0)
		str_append_format(text, ", %zu file%s not read", unread, unread == 1 ? "" : "s");
	str_append(text, "\n");
}

/* ---- having it done ---- */

static void on_result(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct auditing *auditing = context;
	(void)slot;
	auditing->stopped = stopped;
	free(auditing->trouble);
	auditing->trouble = result->outcome == OUTCOME_PASS
				    ? NULL
				    : text_copy(result->reason != NULL ? result->reason : "the worker gave no reason");
	json_decref(auditing->data);
	auditing->data = json_incref(result->data);
	loop_stop(auditing->loop);
}

int audit_do_job(struct auditing *auditing, const struct job *job, struct error *error)
{
	const struct pool_task task = {.deadline_ms = DEADLINE_MS, .on_result = on_result, .context = auditing};
	if (auditing->stopped)
		return error_set(error, "stopped before the end");
	pool_start(auditing->pool, 0, job, &task);
	loop_run(auditing->loop);
	if (auditing->stopped || auditing->trouble != NULL)
		return error_set(error, "%s", auditing->stopped ? "stopped before the end" : auditing->trouble);
	return 0;
}

static void asked_to_stop(void *context)
{
	struct auditing *auditing = context;
	pool_stop(auditing->pool, 2000);
}

static void make_job(const struct auditing *auditing, const struct strlist *arguments, struct job *job)
{
	const char *source = auditing->options->clang_source;
	job->kind = text_copy("audit");
	job->id = text_copy("audit");
	job->report = text_copy(auditing->report);
	job->clang = text_copy(getenv("BISECTD_CLANG"));
	if (source != NULL) {
		job->compile = true;
		strlist_add(&job->files, source);
		strlist_add_all(&job->flags, arguments);
	} else {
		strlist_add_all(&job->files, arguments);
	}
}

static int open_auditing(struct auditing *auditing, struct error *error)
{
	const char *parent = getenv("TMPDIR");
	auditing->folder = text_format("%s/bisectd-audit-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
	if (mkdtemp(auditing->folder) == NULL) {
		free(auditing->folder);
		auditing->folder = NULL;
		return error_set_errno(error, "cannot make a temporary folder");
	}
	auditing->report = path_join(auditing->folder, "report.json");
	signal(SIGPIPE, SIG_IGN);
	if (loop_open(&auditing->loop, error) < 0 ||
	    pool_open(&auditing->pool, auditing->loop, auditing->options->worker, &auditing->options->launcher, 1, error) < 0)
		return -1;
	if (loop_on_signal(auditing->loop, SIGTERM, asked_to_stop, auditing, error) < 0)
		return -1;
	return loop_on_signal(auditing->loop, SIGINT, asked_to_stop, auditing, error);
}

static void close_auditing(struct auditing *auditing)
{
	cleanup_error struct error ignored = {0};
	loop_close(auditing->loop);
	pool_close(auditing->pool);
	if (auditing->folder != NULL)
		fs_remove_tree(auditing->folder, &ignored);
	free(auditing->folder);
	free(auditing->report);
	free(auditing->trouble);
	json_decref(auditing->data);
}

static json_t *read_report(const struct auditing *auditing, struct error *error)
{
	json_error_t trouble;
	cleanup_str struct str text = {0};
	if (fs_read_file(auditing->report, REPORT_LIMIT, &text, error) < 0)
		return NULL;
	json_t *audits = json_loadb(str_text(&text), text.length, 0, &trouble);
	if (json_is_array(audits))
		return audits;
	json_decref(audits);
	error_set(error, "the worker's report cannot be read: %s", audits == NULL ? trouble.text : "it is no array");
	return NULL;
}

/* What was found: a new reference, or NULL with the error. */
static json_t *do_audit(struct auditing *auditing, const struct strlist *arguments, struct error *error)
{
	cleanup_job struct job job = {0};
	if (open_auditing(auditing, error) < 0)
		return NULL;
	if (auditing->options->cargo_folder != NULL)
		return audit_cargo(auditing, arguments, error);
	make_job(auditing, arguments, &job);
	return audit_do_job(auditing, &job, error) == 0 ? read_report(auditing, error) : NULL;
}

static int status_of(const json_t *audits)
{
	size_t index;
	json_t *audit;
	bool judged = sum(audits, "not_judged") == 0;
	if (sum(audits, "violations") > 0)
		return AUDIT_VIOLATIONS;
	json_array_foreach (audits, index, audit) {
		const json_t *paths = json_object_get(audit, "paths");
		judged = judged && json_text(audit, "error") == NULL && json_text(audit, "cut_off") == NULL;
		judged = judged && (paths == NULL || json_array_size(paths) > 0);
	}
	return judged ? AUDIT_CLEAN : AUDIT_NOT_JUDGED;
}

static int print(const json_t *audits, bool as_json)
{
	cleanup_str struct str text = {0};
	if (as_json) {
		cleanup_free char *dump = json_dumps(audits, JSON_INDENT(1));
		if (dump == NULL)
			memory_exhausted();
		str_append_format(&text, "%s\n", dump);
	} else {
		audit_text(audits, &text);
	}
	return fputs(str_text(&text), stdout) >= 0 && fflush(stdout) == 0 ? 0 : -1;
}

int audit_command(const struct service_options *options, const struct strlist *arguments)
{
	struct auditing auditing = {.options = options};
	cleanup_error struct error error = {0};
	if (arguments->count == 0 && options->clang_source == NULL && options->cargo_folder == NULL) {
		fputs("bisectd: audit needs files: LLVM IR (rustc --emit=llvm-ir) or programs; or --cargo DIR, or --clang FILE.c "
		      "-- FLAGS\n",
		      stderr);
		return EXIT_USAGE;
	}
	json_t *audits = do_audit(&auditing, arguments, &error);
	int status = AUDIT_NOT_JUDGED;
	if (audits == NULL)
		log_error("the audit could not be done: %s", error_text(&error));
	else if (print(audits, options->json) < 0)
		log_error("the audit cannot be written to standard output");
	else
		status = status_of(audits);
	json_decref(audits);
	close_auditing(&auditing);
	return status;
}
