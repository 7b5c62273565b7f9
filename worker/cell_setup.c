/* See cell.h: from a job to a workspace with a sandbox around it, and commands that can be started. */
#include "cell.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "jobs.h"
#include "recipe.h"

enum {
	DEFAULT_PROCESSES = 512,
	DEFAULT_OUTPUT_BYTES = 1 << 20,
	MOST_RUNS = 1000,
};

#define DEFAULT_MEMORY_BYTES (4LL << 30)
#define DEFAULT_FILE_BYTES (4LL << 30)
#define LARGEST_LIMIT (1LL << 50)
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define STATE_MARK "bisectd.db" /* the folder that holds it is the daemon's own */

/* What the job says: checked and made whole with defaults. */

static int check_folder(const char *name, const char *path, struct error *error)
{
	if (path == NULL)
		return error_set(error, "the job has no \"%s\"", name);
	if (path[0] != '/' || path[1] == '\0')
		return error_set(error, "the job's \"%s\" is no absolute path: %s", name, path);
	return 0;
}

static int take_limit(const char *name, long long given, long long otherwise, long long *limit, struct error *error)
{
	if (given < 0 || given > LARGEST_LIMIT)
		return error_set(error, "the job's \"%s\" is out of range: %lld", name, given);
	*limit = given > 0 ? given : otherwise;
	return 0;
}

static int take_limits(struct cell *cell, struct error *error)
{
	const struct job *job = cell->job;
	struct command_limits *limits = &cell->limits;
	if (take_limit("build_ms", job->build_ms, JOB_DEFAULT_BUILD_MS, &cell->build_ms, error) < 0 ||
	    take_limit("run_ms", job->run_ms, JOB_DEFAULT_RUN_MS, &cell->run_ms, error) < 0 ||
	    take_limit("runs", job->runs, 1, &cell->runs, error) < 0 ||
	    take_limit("memory_bytes", job->memory_bytes, DEFAULT_MEMORY_BYTES, &limits->memory_bytes, error) < 0 ||
	    take_limit("processes", job->processes, DEFAULT_PROCESSES, &limits->processes, error) < 0 ||
	    take_limit("output_bytes", job->output_bytes, DEFAULT_OUTPUT_BYTES, &limits->output_bytes, error) < 0 ||
	    take_limit("file_bytes", job->file_bytes, DEFAULT_FILE_BYTES, &limits->file_bytes, error) < 0)
		return -1;
	if (cell->runs > MOST_RUNS)
		return error_set(error, "the job's \"runs\" is more than %d", MOST_RUNS);
	return 0;
}

static int take_expectation(struct cell *cell, struct error *error)
{
	cell->expected.exit_status = (int)cell->job->expect_exit;
	if (cell->job->expect_exit < 0 || cell->job->expect_exit > 255)
		return error_set(error, "the job's \"expect_exit\" is no exit status: %lld", cell->job->expect_exit);
	if (cell->job->expect_output == NULL)
		return 0;
	int number = regcomp(&cell->pattern, cell->job->expect_output, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
	if (number != 0) {
		char text[256];
		regerror(number, &cell->pattern, text, sizeof text);
		return error_set(error, "the job's \"expect_output\": %s", text);
	}
	cell->expected.output = &cell->pattern;
	return 0;
}

static int check_job(struct cell *cell, struct error *error)
{
	const struct job *job = cell->job;
	if (check_folder("reproducer", job->reproducer, error) < 0 ||
	    check_folder("workspace", job->workspace, error) < 0 || check_folder("target", job->target, error) < 0)
		return -1;
	if (job->run.count == 0)
		return error_set(error, "the job has no command to \"run\"");
	const char *sandbox = job->sandbox != NULL ? job->sandbox : "auto";
	if (!text_equal(sandbox, "auto") && !text_equal(sandbox, "bubblewrap") && !text_equal(sandbox, "none"))
		return error_set(error, "the job's \"sandbox\" is none of auto, bubblewrap, none: %s", sandbox);
	cell->bubblewrap = !text_equal(sandbox, "none");
	if (take_limits(cell, error) < 0)
		return -1;
	return take_expectation(cell, error);
}

/* Commands and environment, with the placeholders replaced. */

static void list_placeholders(const struct job *job, struct strmap *placeholders)
{
	strmap_set_all(placeholders, &job->placeholders);
	strmap_set(placeholders, "workspace", job->workspace);
	strmap_set(placeholders, "target", job->target);
	for (size_t i = 0; i < job->checkouts.count; i++) {
		cleanup_free char *name = text_format("checkout:%s", job->checkouts.entries[i].key);
		cleanup_free char *folder =
			text_format("%s/checkouts/%s", job->workspace, job->checkouts.entries[i].key);
		strmap_set(placeholders, name, folder);
	}
}

static int take_build(struct cell *cell, const struct strmap *placeholders, struct error *error)
{
	struct command_list *list = &cell->build;
	size_t index;
	json_t *command;
	if (cell->job->build != NULL && !json_is_array(cell->job->build))
		return error_set(error, "the job's \"build\" is no list of commands");
	json_array_foreach (cell->job->build, index, command) {
		size_t place;
		json_t *word;
		list->items = memory_grow(list->items, list->count, &list->capacity, sizeof *list->items);
		struct strlist *words = &list->items[list->count++];
		*words = (struct strlist){0};
		json_array_foreach (command, place, word) {
			if (!json_is_string(word))
				return error_set(error, "the job's \"build\" holds a word that is no text");
			strlist_add_owned(words, text_substitute(json_string_value(word), placeholders));
		}
		if (words->count == 0)
			return error_set(error, "the job's \"build\" holds a command without words");
	}
	return 0;
}

static void take_environment(struct cell *cell, const struct strmap *placeholders)
{
	const struct job *job = cell->job;
	struct strmap *environment = &cell->environment;
	cleanup_strlist struct strlist path = {0};
	strlist_add_all(&path, &job->path);
	strlist_add(&path, SYSTEM_PATH);
	cleanup_free char *joined = strlist_join(&path, ":");
	strmap_set(environment, "PATH", joined);
	strmap_set(environment, "HOME", cell->workspace.home);
	strmap_set(environment, "TMPDIR", cell->workspace.temporary);
	strmap_set(environment, "LANG", "C.UTF-8");
	strmap_set(environment, "RUST_BACKTRACE", "1");
	strmap_set(environment, "CARGO_HOME", cell->workspace.cargo_home);
	strmap_set(environment, "CARGO_TARGET_DIR", cell->workspace.target);
	strmap_set(environment, "CARGO_INCREMENTAL", "0");
	strmap_set(environment, "CARGO_TERM_COLOR", "never");
	if (job->prepared != NULL)
		strmap_set(environment, "CARGO_NET_OFFLINE", "true");
	for (size_t i = 0; i < job->environment.count; i++) {
		cleanup_free char *value = text_substitute(job->environment.entries[i].value, placeholders);
		strmap_set(environment, job->environment.entries[i].key, value);
	}
}

static int take_commands(struct cell *cell, struct error *error)
{
	cleanup_strmap struct strmap placeholders = {0};
	list_placeholders(cell->job, &placeholders);
	for (size_t i = 0; i < cell->job->run.count; i++)
		strlist_add_owned(&cell->run, text_substitute(cell->job->run.items[i], &placeholders));
	take_environment(cell, &placeholders);
	return take_build(cell, &placeholders, error);
}

static void write_recipe(struct cell *cell)
{
	cleanup_str struct str recipe = {0};
	recipe_start(&recipe, cell->workspace.reproducer);
	for (size_t i = 0; i < cell->build.count; i++)
		recipe_add(&recipe, &cell->environment, &cell->build.items[i]);
	recipe_add(&recipe, &cell->environment, &cell->run);
	recipe_finish(&recipe);
	cell->result->commands = str_steal(&recipe);
}

/* The sandbox. */

/* Every folder around the workspace that the target shares or that is the daemon's own (all but the root). */
static void hide_state(struct cell *cell)
{
	struct strlist *hidden = &cell->view.hidden;
	cleanup_free char *folder = path_parent(cell->workspace.folder);
	while (strcmp(folder, "/") != 0) {
		cleanup_free char *mark = path_join(folder, STATE_MARK);
		size_t length = strlen(folder);
		bool shared =
			strncmp(cell->workspace.target, folder, length) == 0 && cell->workspace.target[length] == '/';
		if ((shared && hidden->count == 0) || path_exists(mark))
			strlist_add(hidden, folder);
		char *parent = path_parent(folder);
		free(folder);
		folder = parent;
	}
}

static void compose_view(struct cell *cell)
{
	const struct job *job = cell->job;
	const char *const shared[] = {job->prepared, job->vendor, job->edited, job->tools, job->compare};
	cell->view.workspace = cell->workspace.folder;
	strlist_add(&cell->view.read_write, cell->workspace.folder);
	strlist_add(&cell->view.read_write, cell->workspace.target);
	strlist_add(&cell->view.read_write, cell->workspace.cargo_home);
	strlist_add_all(&cell->view.read_only, &job->read_only);
	strlist_add_all(&cell->view.read_only, &job->path);
	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
		if (shared[i] != NULL && path_exists(shared[i]))
			strlist_add(&cell->view.read_only, shared[i]);
	hide_state(cell);
}

static int start_sandbox(struct cell *cell, bool network, struct error *error)
{
	cell->view.network = network;
	return sandbox_start(&cell->sandbox, &cell->view, cell->bubblewrap, cell->workspace.lock, error);
}

/* Without a sandbox that makes the folders reachable, the other user may not get to them: then commands stay root's. */
static int prepare_bare(struct cell *cell, struct error *error)
{
	struct workspace *workspace = &cell->workspace;
	const struct strlist *lists[] = {&cell->view.read_write, &cell->view.read_only};
	for (size_t i = 0; i < 2 && workspace->drop; i++) {
		for (size_t j = 0; j < lists[i]->count && workspace->drop; j++) {
			if (workspace_user_reaches(workspace, lists[i]->items[j]))
				continue;
			log_heading("commands stay root's: no other user can reach %s", lists[i]->items[j]);
			workspace->drop = false;
		}
	}
	return workspace_give(workspace, error);
}

static int start_bare(struct cell *cell, bool network, struct error *error)
{
	cell->bubblewrap = false;
	if (prepare_bare(cell, error) < 0 || start_sandbox(cell, network, error) < 0)
		return -1;
	return sandbox_await(&cell->sandbox, error);
}

/* Started by start_sandbox, which may have failed (`trouble` says why): have one that works, or an error. */
static int settle_sandbox(struct cell *cell, bool network, struct error *trouble, struct error *error)
{
	bool started = trouble->text == NULL && sandbox_await(&cell->sandbox, trouble) == 0;
	if (!started) {
		sandbox_stop(&cell->sandbox);
		if (!cell->bubblewrap || text_equal(cell->job->sandbox, "bubblewrap"))
			return error_set(error, "the sandbox cannot be started: %s", error_text(trouble));
		log_heading("sandbox: bubblewrap does not work here, going on without: %s", error_text(trouble));
		if (start_bare(cell, network, error) < 0)
			return error_wrap(error, "starting commands without bubblewrap");
	}
	free(cell->result->sandbox);
	cell->result->sandbox = text_copy(cell->bubblewrap ? "bubblewrap" : "none");
	cleanup_free char *user = cell->workspace.drop ? text_format("user %ld", (long)cell->workspace.user)
						       : text_format("user %ld (the worker's own)", (long)geteuid());
	log_heading("sandbox: %s, %s, %s", cell->result->sandbox, user,
		    network                      ? "with the network"
		    : cell->sandbox.network_left ? "no network"
						 : "the network cannot be taken away here");
	return 0;
}

int cell_leave_network(struct cell *cell, struct error *error)
{
	if (!cell->view.network)
		return 0;
	cleanup_error struct error trouble = {0};
	size_t left = sandbox_stop(&cell->sandbox);
	if (left > 0)
		return error_set(error, "%zu processes of the build could not be killed", left);
	start_sandbox(cell, false, &trouble);
	return settle_sandbox(cell, false, &trouble, error);
}

/* The workspace is filled while the sandbox starts: each takes about as long as the other. */
static int open_workspace(struct cell *cell, struct error *error)
{
	const struct job *job = cell->job;
	bool network = job->network_for_build && cell->build.count > 0;
	cleanup_error struct error trouble = {0};
	compose_view(cell);
	if (cell->bubblewrap)
		start_sandbox(cell, network, &trouble);
	if (workspace_fill(&cell->workspace, job, error) < 0)
		return -1;
	if (cell->bubblewrap) {
		if (workspace_give(&cell->workspace, error) < 0)
			return -1;
	} else if (prepare_bare(cell, error) < 0 || start_sandbox(cell, network, error) < 0) {
		return -1;
	}
	return settle_sandbox(cell, network, &trouble, error);
}

int cell_open(struct cell *cell, const struct job *job, struct result *result, struct error *error)
{
	cell->job = job;
	cell->result = result;
	if (check_job(cell, error) < 0)
		return -1;
	event_phase("workspace", 0, 0);
	if (workspace_open(&cell->workspace, job, error) < 0 || take_commands(cell, error) < 0 ||
	    open_workspace(cell, error) < 0)
		return -1;
	write_recipe(cell);
	return 0;
}

void cell_close(struct cell *cell)
{
	size_t left = sandbox_stop(&cell->sandbox);
	if (left > 0)
		result_set(cell->result, OUTCOME_ERROR, "%zu processes of the job could not be killed", left);
	workspace_clear(&cell->workspace);
	strlist_clear(&cell->view.read_write);
	strlist_clear(&cell->view.read_only);
	strlist_clear(&cell->view.hidden);
	strmap_clear(&cell->environment);
	for (size_t i = 0; i < cell->build.count; i++)
		strlist_clear(&cell->build.items[i]);
	free(cell->build.items);
	strlist_clear(&cell->run);
	if (cell->expected.output != NULL)
		regfree(&cell->pattern);
	*cell = CELL_NONE;
}
