/*
 * A job of kind "cell": workspace, build, runs, outcome.  This file is the order of things; what an end means stands in
 * the tables of classify.h, what holds a command in sandbox.h, what it may use in command.h.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classify.h"
#include "command.h"
#include "digest.h"
#include "fs.h"
#include "jobs.h"
#include "os.h"
#include "recipe.h"
#include "sandbox.h"
#include "workspace.h"

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

struct command_list {
	struct strlist *items;
	size_t count;
	size_t capacity;
};

struct cell {
	const struct job *job;
	struct result *result;
	struct workspace workspace;
	struct sandbox_view view;
	struct sandbox sandbox;
	bool bubblewrap; /* what to start the next sandbox with */
	struct strmap environment;
	struct command_list build;
	struct strlist run;
	struct command_limits limits; /* without a time */
	long long build_ms;
	long long run_ms;
	long long runs;
	regex_t pattern;
	struct expectation expected;
};

static void cell_clear(struct cell *cell)
{
	sandbox_stop(&cell->sandbox);
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
}

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
	const char *const shared[] = {job->prepared, job->vendor, job->edited};
	cell->view.workspace = cell->workspace.folder;
	strlist_add(&cell->view.read_write, cell->workspace.folder);
	strlist_add(&cell->view.read_write, cell->workspace.target);
	strlist_add(&cell->view.read_write, cell->workspace.cargo_home);
	strlist_add_all(&cell->view.read_only, &job->read_only);
	strlist_add_all(&cell->view.read_only, &job->path);
	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
		if (shared[i] != NULL)
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

static int change_sandbox(struct cell *cell, bool network, struct error *error)
{
	cleanup_error struct error trouble = {0};
	size_t left = sandbox_stop(&cell->sandbox);
	if (left > 0)
		return error_set(error, "%zu processes of the build could not be killed", left);
	start_sandbox(cell, network, &trouble);
	return settle_sandbox(cell, network, &trouble, error);
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

/* Build. */

static void run_command(struct cell *cell, const struct command_setup *setup, struct command_result *command,
			bool *full)
{
	command_run(&cell->sandbox, setup, command);
	bool clean = command->end == COMMAND_ENDED && WIFEXITED(command->status) && WEXITSTATUS(command->status) == 0;
	*full = !clean && workspace_disk_full(&cell->workspace);
}

static struct command_setup set_up(const struct cell *cell, const char *title, const struct strlist *words,
				   long long wall_ms)
{
	struct command_setup setup = {
		.title = title,
		.words = words,
		.environment = &cell->environment,
		.folder = cell->workspace.reproducer,
		.limits = cell->limits,
		.user = {.drop = cell->workspace.drop, .user = cell->workspace.user, .group = cell->workspace.group}};
	setup.limits.wall_ms = wall_ms;
	return setup;
}

/* Returns whether to go on. */
static bool do_build_command(struct cell *cell, const char *title, const struct strlist *words)
{
	cleanup_command_result struct command_result command = {0};
	cleanup_judgement struct judgement judgement = {0};
	bool full;
	long long left = cell->build_ms - cell->result->build_ms;
	const struct command_setup setup = set_up(cell, title, words, left > 1 ? left : 1);
	run_command(cell, &setup, &command, &full);
	judge_build(&setup, &command, full, &judgement);
	cell->result->build_ms += command.ms;
	if (judgement.outcome == OUTCOME_PASS)
		return true;
	if (command.end == COMMAND_OVER_TIME)
		result_set(cell->result, judgement.outcome, "the build did not end within %lld s",
			   cell->build_ms / 1000);
	else
		result_set(cell->result, judgement.outcome, "%s", judgement.reason);
	cell->result->signature = text_copy(judgement.signature);
	return false;
}

static bool do_build(struct cell *cell)
{
	for (size_t i = 0; i < cell->build.count; i++) {
		cleanup_free char *title = cell->build.count > 1
						   ? text_format("build %zu of %zu", i + 1, cell->build.count)
						   : text_copy("build");
		event_phase("build", (long long)i + 1, (long long)cell->build.count);
		if (!do_build_command(cell, title, &cell->build.items[i]))
			return false;
	}
	return true;
}

/*
 * The program's identity: hashed while it runs, because a debug build of 50 MB takes longer to hash than to run.  The
 * file is opened before, while nothing of the job is alive that could change what its name leads to.
 */
struct identity {
	int fd;
	pthread_t thread;
	char *hash;
};

static bool is_within(const char *path, const char *folder)
{
	cleanup_free char *real = realpath(folder, NULL);
	return real != NULL && text_starts_with(path, real) && path[strlen(real)] == '/';
}

static int open_program(const struct cell *cell)
{
	struct stat status;
	if (strchr(cell->run.items[0], '/') == NULL)
		return -1;
	cleanup_free char *path = path_join(cell->workspace.reproducer, cell->run.items[0]);
	cleanup_free char *real = realpath(path, NULL);
	if (real == NULL || !(is_within(real, cell->workspace.target) || is_within(real, cell->workspace.folder)))
		return -1;
	int fd = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)))
		fd_close(&fd);
	return fd;
}

static void *hash_program(void *context)
{
	struct identity *identity = context;
	struct digest digest;
	cleanup_free char *block = memory_new(1 << 16, 1);
	ssize_t got;
	digest_start(&digest);
	while ((got = read(identity->fd, block, 1 << 16)) > 0)
		digest_add_bytes(&digest, block, (size_t)got);
	char *hash = digest_finish(&digest);
	if (got == 0)
		identity->hash = hash;
	else
		free(hash);
	return NULL;
}

static void identity_start(struct identity *identity, const struct cell *cell)
{
	*identity = (struct identity){.fd = open_program(cell)};
	if (identity->fd >= 0 && pthread_create(&identity->thread, NULL, hash_program, identity) != 0)
		fd_close(&identity->fd);
}

static char *identity_finish(struct identity *identity)
{
	if (identity->fd < 0)
		return NULL;
	pthread_join(identity->thread, NULL);
	fd_close(&identity->fd);
	return identity->hash;
}

/* Runs. */

struct run_record {
	enum outcome outcome;
	long long exit_status;
	long long signal;
	char *reason;
	char *signature;
};

static void add_run(struct result *result, const struct run_record *run, long long ms)
{
	if (result->runs == NULL)
		result->runs = json_array();
	json_t *object = json_object();
	json_object_set_new(object, "outcome", json_string(outcome_name(run->outcome)));
	json_object_set_new(object, "exit", json_integer(run->exit_status));
	json_object_set_new(object, "signal", json_integer(run->signal));
	json_object_set_new(object, "ms", json_integer(ms));
	json_array_append_new(result->runs, object);
}

static void do_run(struct cell *cell, long long number, struct run_record *run)
{
	cleanup_command_result struct command_result command = {0};
	cleanup_judgement struct judgement judgement = {0};
	bool full;
	cleanup_free char *title =
		cell->runs > 1 ? text_format("run %lld of %lld", number, cell->runs) : text_copy("run");
	const struct command_setup setup = set_up(cell, title, &cell->run, cell->run_ms);
	event_phase("run", number, cell->runs);
	run_command(cell, &setup, &command, &full);
	judge_run(&setup, &command, &cell->expected, full, &judgement);
	bool ended = command.end == COMMAND_ENDED;
	*run = (struct run_record){
		.outcome = judgement.outcome,
		.exit_status = ended && WIFEXITED(command.status) ? WEXITSTATUS(command.status) : -1,
		.signal = ended && WIFSIGNALED(command.status) ? WTERMSIG(command.status) : 0,
		.reason = text_copy(judgement.reason),
		.signature = text_copy(judgement.signature),
	};
	cell->result->run_ms += command.ms;
	add_run(cell->result, run, command.ms);
}

/* The first run that is not a pass speaks for all, unless a later one has the outcome that is reported. */
static void do_runs(struct cell *cell)
{
	size_t counts[OUTCOME_COUNT] = {0};
	size_t done = 0;
	struct run_record first[OUTCOME_COUNT] = {0};
	enum outcome first_bad = OUTCOME_PASS;
	for (long long i = 1; i <= cell->runs && counts[OUTCOME_ERROR] + counts[OUTCOME_SKIP] == 0; i++) {
		struct run_record run;
		do_run(cell, i, &run);
		done++;
		if (first_bad == OUTCOME_PASS)
			first_bad = run.outcome;
		if (counts[run.outcome]++ == 0) {
			first[run.outcome] = run;
		} else {
			free(run.reason);
			free(run.signature);
		}
	}
	enum outcome outcome = judge_runs(counts);
	struct run_record *speaker = &first[outcome == OUTCOME_FLAKY ? first_bad : outcome];
	cell->result->outcome = outcome;
	cell->result->exit_status = speaker->exit_status;
	cell->result->signal = speaker->signal;
	if (outcome == OUTCOME_FLAKY || (outcome != OUTCOME_PASS && done > 1 && counts[outcome] == done))
		result_set(cell->result, outcome, "failed %zu of %zu runs; %s", done - counts[OUTCOME_PASS], done,
			   speaker->reason);
	else if (outcome != OUTCOME_PASS)
		result_set(cell->result, outcome, "%s", speaker->reason);
	cell->result->signature = text_copy(speaker->signature);
	for (size_t i = 0; i < OUTCOME_COUNT; i++) {
		free(first[i].reason);
		free(first[i].signature);
	}
}

static int do_cell(struct cell *cell, struct error *error)
{
	if (check_job(cell, error) < 0)
		return -1;
	event_phase("workspace", 0, 0);
	if (workspace_open(&cell->workspace, cell->job, error) < 0 || take_commands(cell, error) < 0 ||
	    open_workspace(cell, error) < 0)
		return -1;
	write_recipe(cell);
	if (!do_build(cell))
		return 0;
	if (cell->view.network && change_sandbox(cell, false, error) < 0)
		return -1;
	struct identity identity;
	identity_start(&identity, cell);
	do_runs(cell);
	cell->result->binary = identity_finish(&identity);
	return 0;
}

void cell_job(const struct job *job, struct result *result)
{
	__attribute__((cleanup(cell_clear))) struct cell cell = {
		.job = job, .result = result, .workspace = WORKSPACE_NONE, .sandbox = SANDBOX_NONE};
	cleanup_error struct error error = {0};
	result->exit_status = -1;
	if (do_cell(&cell, &error) < 0)
		result_set(result, OUTCOME_ERROR, "%s", error_text(&error));
	size_t left = sandbox_stop(&cell.sandbox);
	if (left > 0)
		result_set(result, OUTCOME_ERROR, "%zu processes of the job could not be killed", left);
}
