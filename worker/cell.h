/*
 * A cell while it is worked on: its workspace, its sandbox, its commands with everything filled in.  The jobs "cell",
 * "evidence" and "passes" all stand on it.
 */
#ifndef BISECTD_WORKER_CELL_H
#define BISECTD_WORKER_CELL_H

#include <regex.h>
#include <stdbool.h>

#include "classify.h"
#include "command.h"
#include "job.h"
#include "sandbox.h"
#include "workspace.h"

struct command_list {
	struct strlist *items;
	size_t count;
	size_t capacity;
};

struct cell {
	const struct job *job;
	struct result *result; /* of the whole job: what happens here is written into it */
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

#define CELL_NONE ((struct cell){.workspace = WORKSPACE_NONE, .sandbox = SANDBOX_NONE})

/* Check the job, make and fill the workspace, start the sandbox.  `job` and `result` must outlive the cell. */
int cell_open(struct cell *cell, const struct job *job, struct result *result, struct error *error);
/* End the sandbox: an error of the result where processes are left.  Safe on CELL_NONE, and twice. */
void cell_close(struct cell *cell);

/* All build commands, within the time that is left of `build_ms`.  false: the result says why there is no program. */
bool cell_build(struct cell *cell);
/* Take the network away, if the build had it. */
int cell_leave_network(struct cell *cell, struct error *error);
/* All runs: sets the result's outcome. */
void cell_run(struct cell *cell);
/* The program that the run command starts, opened before anything of the job runs; -1 where it is none that was built. */
int cell_open_program(const struct cell *cell);

/* One command, ready for command_run, that may take `wall_ms`.  Borrows everything. */
struct command_setup cell_command(const struct cell *cell, const char *title, const struct strlist *words, long long wall_ms);

#endif
