/*
 * A job of kind "cell": workspace, build, runs, outcome.  This file is the order of things; what an end means stands in
 * the tables of classify.h, what holds a command in sandbox.h, what it may use in command.h.
 */
#include "cell.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "digest.h"
#include "fs.h"
#include "jobs.h"

/* Build. */

static void run_command(struct cell *cell, const struct command_setup *setup, struct command_result *command,
			bool *full)
{
	command_run(&cell->sandbox, setup, command);
	bool clean = command->end == COMMAND_ENDED && WIFEXITED(command->status) && WEXITSTATUS(command->status) == 0;
	*full = !clean && workspace_disk_full(&cell->workspace);
}

struct command_setup cell_command(const struct cell *cell, const char *title, const struct strlist *words, long long wall_ms)
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
	const struct command_setup setup = cell_command(cell, title, words, left > 1 ? left : 1);
	run_command(cell, &setup, &command, &full);
	judge_build(&setup, &command, full, &judgement);
	cell->result->build_ms += command.ms;
	if (judgement.outcome == OUTCOME_PASS)
		return true;
	if (command.end == COMMAND_OVER_TIME)
		result_set(cell->result, judgement.outcome, "the build did not end within %g s",
			   (double)cell->build_ms / 1000);
	else
		result_set(cell->result, judgement.outcome, "%s", judgement.reason);
	cell->result->signature = text_copy(judgement.signature);
	return false;
}

bool cell_build(struct cell *cell)
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

int cell_open_program(const struct cell *cell)
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
	*identity = (struct identity){.fd = cell_open_program(cell)};
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
	const struct command_setup setup = cell_command(cell, title, &cell->run, cell->run_ms);
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

void cell_run(struct cell *cell)
{
	struct identity identity;
	identity_start(&identity, cell);
	do_runs(cell);
	cell->result->binary = identity_finish(&identity);
}

static int do_cell(struct cell *cell, const struct job *job, struct result *result, struct error *error)
{
	if (cell_open(cell, job, result, error) < 0)
		return -1;
	if (!cell_build(cell))
		return 0;
	if (cell_leave_network(cell, error) < 0)
		return -1;
	cell_run(cell);
	return 0;
}

void cell_job(const struct job *job, struct result *result)
{
	struct cell cell = CELL_NONE;
	cleanup_error struct error error = {0};
	result->exit_status = -1;
	if (do_cell(&cell, job, result, &error) < 0)
		result_set(result, OUTCOME_ERROR, "%s", error_text(&error));
	cell_close(&cell);
}
