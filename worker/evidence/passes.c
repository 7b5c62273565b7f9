/*
 * See passes.h.  This file is the job: its steps (a build with something added, and its runs), the control, the flips.
 */
#include "evidence/passes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "evidence/flips.h"
#include "fs.h"
#include "jobs.h"
#include "os.h"
#include "recipe.h"

enum { MOST_LINES_BYTES = 1 << 20 };

#define FOLDER "passes"

json_t *json_line(const char *text)
{
	json_t *value = json_string(text);
	if (value != NULL)
		return value;
	cleanup_free char *clean = text_copy(text); /* not UTF-8 */
	for (char *at = clean; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return json_string(clean);
}

/* Files of the trace. */

int passes_open(const struct passes *passes, const char *name, struct error *error)
{
	struct stat status;
	cleanup_free char *path = path_join(passes->folder, name);
	cleanup_free char *folder = realpath(passes->folder, NULL);
	cleanup_free char *workspace = realpath(passes->cell.workspace.folder, NULL);
	if (folder == NULL || workspace == NULL || !text_starts_with(folder, workspace) ||
	    folder[strlen(workspace)] != '/')
		return error_set(error, "the compiler left no trace in %s", passes->folder);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return error_set_errno(error, "cannot read %s", path);
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		fd_close(&fd);
		return error_set(error, "%s is no file", path);
	}
	return fd;
}

int passes_read_lines(const struct passes *passes, const char *name, struct strlist *lines, struct error *error)
{
	cleanup_free char *text = memory_new(MOST_LINES_BYTES + 1, 1);
	cleanup_fd int fd = passes_open(passes, name, error);
	size_t length = 0;
	ssize_t got = 1;
	while (fd >= 0 && length < MOST_LINES_BYTES && got > 0) {
		got = read(fd, text + length, MOST_LINES_BYTES - length);
		length += got > 0 ? (size_t)got : 0;
	}
	if (fd < 0)
		return -1;
	if (got < 0)
		return error_set_errno(error, "cannot read %s", name);
	for (char *at = text; at < text + length;) {
		char *newline = memchr(at, '\n', (size_t)(text + length - at));
		char *end = newline != NULL ? newline : text + length;
		strlist_add_owned(lines, text_copy_range(at, (size_t)(end - at)));
		at = end + 1;
	}
	return 0;
}

static bool has_trace(const struct passes *passes)
{
	cleanup_error struct error error = {0};
	cleanup_fd int fd = passes_open(passes, "order", &error);
	return fd >= 0;
}

/* Steps. */

static void list_flags(const struct step *step, struct strlist *flags)
{
	for (const char *const *flag = step->flags; flag != NULL && *flag != NULL; flag++)
		strlist_add(flags, *flag);
}

static int build_and_run(struct passes *passes, long long left, struct step *step, struct error *error)
{
	struct cell *cell = &passes->cell;
	cleanup_result struct result part = {.exit_status = -1};
	long long build_ms = cell->build_ms;
	int result = 0;
	cell->result = &part;
	cell->build_ms = build_ms < left ? build_ms : left;
	bool built = cell_build(cell);
	if (built && cell_leave_network(cell, error) < 0)
		result = -1;
	else if (built)
		cell_run(cell);
	cell->build_ms = build_ms;
	cell->result = passes->result;
	passes->result->build_ms += part.build_ms;
	passes->result->run_ms += part.run_ms;
	step->done = built || os_monotonic_ms() < passes->deadline; /* else the budget cut it short */
	step->compiled = has_trace(passes);
	step->outcome = part.outcome;
	if (part.outcome != OUTCOME_PASS)
		step->reason = text_copy(part.reason != NULL ? part.reason : outcome_meaning(part.outcome));
	step->binary = text_copy(part.binary);
	if (result == 0 && step->done && !passes->bad_seen && part.outcome != OUTCOME_PASS &&
	    part.outcome == passes->bad) {
		passes->bad_seen = true;
		passes->bad_exit = part.exit_status;
		passes->bad_signal = part.signal;
	}
	step->same_end = part.exit_status == passes->bad_exit && part.signal == passes->bad_signal;
	return result;
}

int step_do(struct passes *passes, struct step *step, struct error *error)
{
	long long begin = os_monotonic_ms();
	long long left = passes->deadline - begin;
	cleanup_strlist struct strlist flags = {0};
	const struct shim_trace trace = {passes->folder, step->final_only, step->quiet, step->limits};
	list_flags(step, &flags);
	if (left <= 0 || left < passes->longest_ms)
		return 0;
	if (fs_remove_tree(passes->folder, error) < 0 ||
	    shim_write_traced(&passes->shim, &passes->cell, &flags, &trace, error) < 0 ||
	    build_and_run(passes, left, step, error) < 0)
		return -1;
	passes->builds++;
	long long took = os_monotonic_ms() - begin;
	/* the first one may compile the dependencies too */
	if (passes->builds > 1 && took > passes->longest_ms)
		passes->longest_ms = took;
	return 0;
}

enum sight step_sight(const struct passes *passes, const struct step *step)
{
	if (!step->done)
		return SIGHT_END;
	if (!step->compiled)
		return SIGHT_UNKNOWN;
	if (step->outcome == OUTCOME_PASS)
		return SIGHT_GOOD;
	return step->outcome == passes->bad && step->same_end ? SIGHT_BAD : SIGHT_UNKNOWN;
}

char *step_commands(const struct passes *passes, const struct step *step)
{
	const struct cell *cell = &passes->cell;
	const struct shim_trace trace = {passes->folder, step->final_only, false, step->limits};
	cleanup_strlist struct strlist flags = {0};
	struct str recipe = {0};
	list_flags(step, &flags);
	recipe_start(&recipe, cell->workspace.reproducer);
	shim_recipe(&passes->shim, &flags, &trace, &recipe);
	for (size_t i = 0; i < cell->build.count; i++)
		recipe_add(&recipe, &cell->environment, &cell->build.items[i]);
	recipe_add(&recipe, &cell->environment, &cell->run);
	recipe_finish(&recipe);
	return str_steal(&recipe);
}

void step_clear(struct step *step)
{
	free(step->reason);
	free(step->binary);
	*step = (struct step){0};
}

/* Flips. */

static const struct known_flip *find_known(const struct known_flips *known, const char *name)
{
	for (size_t i = 0; i < known->count; i++)
		if (strcmp(known->items[i].name, name) == 0)
			return &known->items[i];
	return NULL;
}

static void tell_outcome(json_t *object, const struct flip *flip, const struct step *step, const char *control)
{
	enum outcome outcome = step->outcome;
	if (flip->refusable && (outcome == OUTCOME_BUILD_FAIL || outcome == OUTCOME_ICE))
		outcome = OUTCOME_SKIP;
	json_object_set_new(object, "outcome", json_string(outcome_name(outcome)));
	if (step->reason != NULL)
		json_object_set_new(object, "reason", json_line(step->reason));
	if (step->binary != NULL && text_equal(step->binary, control))
		json_object_set_new(object, "same_binary", json_true());
}

static int do_flip(struct passes *passes, const struct flip *flip, const struct known_flip *known, const char *control,
		   json_t *list, struct error *error)
{
	cleanup_step struct step step = {.flags = flip->flags, .final_only = flip->final_only};
	json_t *object = json_object();
	json_t *words = json_array();
	int result = 0;
	json_array_append_new(list, object);
	json_object_set_new(object, "name", json_string(flip->name));
	for (const char *const *flag = flip->flags; *flag != NULL; flag++)
		json_array_append_new(words, json_string(*flag));
	json_object_set_new(object, "flags", words);
	if (known == NULL)
		result = step_do(passes, &step, error);
	const struct step *seen = known != NULL ? &known->step : &step;
	if (!seen->done) {
		json_object_set_new(object, "outcome", json_string(outcome_name(OUTCOME_SKIP)));
		json_object_set_new(object, "reason", json_string("not tried: no time left"));
	} else {
		tell_outcome(object, flip, seen, control);
		event_progress("%s: %s", flip->name, json_string_value(json_object_get(object, "outcome")));
	}
	cleanup_free char *commands = step_commands(passes, &step);
	json_object_set_new(object, "commands", json_line(commands));
	return result;
}

static int do_flips(struct passes *passes, const struct strmap *settings, const struct known_flips *known,
		    const char *control, json_t *list, struct error *error)
{
	struct utsname system;
	const char *machine = uname(&system) >= 0 ? system.machine : "";
	for (size_t i = 0; i < flip_count; i++) {
		const struct flip *flip = &flips[i];
		bool asked = passes->job->names.count == 0 || strlist_contains(&passes->job->names, flip->name);
		if (asked && flip_differs(flip, settings, machine) &&
		    do_flip(passes, flip, find_known(known, flip->name), control, list, error) < 0)
			return -1;
	}
	return 0;
}

/* The job. */

/* The flags of the last compile: a program's, where there are also libraries. */
static int read_settings(const struct passes *passes, struct strmap *settings, struct error *error)
{
	cleanup_strlist struct strlist order = {0};
	cleanup_strlist struct strlist words = {0};
	if (passes_read_lines(passes, "order", &order, error) < 0)
		return -1;
	const char *last = order.count > 0 ? order.items[order.count - 1] : "";
	if (strchr(last, '/') != NULL)
		return error_set(error, "the compiler's trace names a file elsewhere: %s", last);
	cleanup_free char *name = text_format("%s.words", last);
	if (passes_read_lines(passes, name, &words, error) < 0)
		return -1;
	settings_read(&words, settings);
	return 0;
}

static int take_bad_outcome(struct passes *passes, struct error *error)
{
	const char *word = passes->job->bad_outcome;
	if (word != NULL && (!outcome_parse(word, &passes->bad) || passes->bad == OUTCOME_PASS))
		return error_set(error, "the job's \"bad_outcome\" is none: %s", word);
	if (passes->job->budget_ms < 0)
		return error_set(error, "the job's \"budget_ms\" is out of range: %lld", passes->job->budget_ms);
	return 0;
}

static int take_function(struct passes *passes, struct error *error)
{
	char text[256];
	if (passes->job->function == NULL)
		return 0;
	int number = regcomp(&passes->function, passes->job->function, REG_EXTENDED | REG_NOSUB);
	if (number != 0) {
		regerror(number, &passes->function, text, sizeof text);
		return error_set(error, "the job's \"function\": %s", text);
	}
	passes->has_function = true;
	return 0;
}

static int open_passes(struct passes *passes, const struct job *job, struct error *error)
{
	long long budget = job->budget_ms > 0 ? job->budget_ms : LLONG_MAX;
	passes->job = job;
	if (take_bad_outcome(passes, error) < 0 || take_function(passes, error) < 0 ||
	    cell_open(&passes->cell, job, passes->result, error) < 0)
		return -1;
	passes->folder = path_join(passes->cell.workspace.temporary, FOLDER);
	long long now = os_monotonic_ms();
	passes->deadline = budget > LLONG_MAX - now ? LLONG_MAX : now + budget;
	return 0;
}

/* The cell as it is.  Returns whether there is anything to look into; else the result says why not. */
static bool look_at_control(struct passes *passes, struct step *control, json_t *data, struct error *error)
{
	struct result *result = passes->result;
	if (step_do(passes, control, error) < 0)
		return false;
	if (passes->bad == OUTCOME_UNDECIDED && control->done)
		passes->bad = control->outcome;
	if (!control->done)
		result_set(result, OUTCOME_SKIP, "the budget of %lld ms is too short for one build",
			   passes->job->budget_ms);
	else if (control->outcome == OUTCOME_ERROR || control->outcome == OUTCOME_SKIP)
		result_set(result, control->outcome, "%s", control->reason);
	else if (!control->compiled)
		result_set(result, OUTCOME_SKIP,
			   "the build compiles nothing through cargo's workspace wrapper (cargo 1.55) or {rustc}: "
			   "passes cannot "
			   "be counted");
	else if (passes->bad == OUTCOME_PASS)
		result_set(result, OUTCOME_SKIP, "the cell passes: there is nothing to look for");
	else {
		json_t *object = json_object();
		json_object_set_new(object, "outcome", json_string(outcome_name(control->outcome)));
		if (control->reason != NULL)
			json_object_set_new(object, "reason", json_line(control->reason));
		json_object_set_new(data, "control", object);
		event_progress("the cell as it is: %s", outcome_name(control->outcome));
		return true;
	}
	return false;
}

static int look(struct passes *passes, struct error *error)
{
	cleanup_step struct step control = {0};
	cleanup_strmap struct strmap settings = {0};
	struct known_flips known = {0};
	json_t *data = passes->result->data = json_object();
	if (!look_at_control(passes, &control, data, error))
		return error->text != NULL ? -1 : 0;
	if (read_settings(passes, &settings, error) < 0)
		return -1;
	json_t *list = json_array();
	json_t *limit = passes_bisect(passes, &known, error);
	int result = limit != NULL ? do_flips(passes, &settings, &known, control.binary, list, error) : -1;
	json_object_set_new(data, "limit", limit != NULL ? limit : json_null());
	json_object_set_new(data, "flips", list);
	json_object_set_new(data, "commands", passes->commands != NULL ? json_line(passes->commands) : json_null());
	for (size_t i = 0; i < known.count; i++)
		step_clear(&known.items[i].step);
	if (result == 0)
		passes->result->outcome = OUTCOME_PASS;
	return result;
}

static int copy_job(const struct job *job, struct job *copy, struct error *error)
{
	cleanup_free char *line = job_encode(job);
	return job_decode(copy, line, strlen(line), error);
}

void passes_job(const struct job *job, struct result *result)
{
	struct passes passes = {.result = result, .cell = CELL_NONE};
	cleanup_error struct error error = {0};
	cleanup_job struct job copy = {0}; /* shim_name puts the script in place of {rustc} */
	result->exit_status = -1;
	int done = job->workspace != NULL ? copy_job(job, &copy, &error)
					  : error_set(&error, "the job has no \"workspace\"");
	if (done == 0)
		shim_name(&passes.shim, &copy);
	if (done == 0 && open_passes(&passes, &copy, &error) == 0)
		look(&passes, &error);
	if (error.text != NULL)
		result_set(result, OUTCOME_ERROR, "%s", error_text(&error));
	cell_close(&passes.cell);
	shim_clear(&passes.shim);
	if (passes.has_function)
		regfree(&passes.function);
	free(passes.folder);
	free(passes.commands);
}
