/*
 * What the end of a command means.  Pure: no disk, no process, so that every row of the tables below is a unit test.
 *
 * A build command                                          outcome
 *   exit status 0                                          goes on
 *   exit status 125                                        skip
 *   exit status 126 or 127, or it cannot be started        error: a program is missing; says nothing about the cell
 *   killed by SIGSEGV and the like, or says that the       ice
 *     compiler crashed
 *   ran out of disk, or the system out of memory           error
 *   over a limit of the job (time, memory, processes,      build-fail: the same limits would stop it again
 *     output, file size)
 *   anything else                                          build-fail
 *
 * A run                                                    outcome
 *   the expected exit status (whatever it is) and output   pass
 *   exit status 125                                        skip
 *   exit status 126 or 127, or it cannot be started        error
 *   any other exit status, also 128 and above, or output   fail
 *     that does not match
 *   killed by a signal of its own making                   crash
 *   over the time limit                                    timeout
 *   over another limit of the job                          fail: the limits are part of the question
 *   the disk is full, or the system out of memory          error
 *
 * Several runs                                             outcome
 *   one is an error or a skip                              that one, and no further run is made
 *   all pass                                               pass
 *   some pass                                              flaky
 *   none passes                                            crash if any crashed, else timeout if any did, else fail
 */
#ifndef BISECTD_WORKER_CLASSIFY_H
#define BISECTD_WORKER_CLASSIFY_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "command.h"
#include "outcome.h"

struct expectation {
	int exit_status;
	const regex_t *output; /* or NULL */
};

struct judgement {
	enum outcome outcome; /* OUTCOME_PASS for a build that may go on */
	char *reason;         /* NULL for a pass */
	char *signature;      /* the line that says it best, or NULL */
};

#define cleanup_judgement __attribute__((cleanup(judgement_clear)))

/* `disk_full`: what the caller saw of the disk after the command ended. */
void judge_build(const struct command_setup *setup, const struct command_result *result, bool disk_full,
		 struct judgement *judgement);
void judge_run(const struct command_setup *setup, const struct command_result *result,
	       const struct expectation *expected, bool disk_full, struct judgement *judgement);
/* The outcome of all runs together, from how often each outcome occurred. */
enum outcome judge_runs(const size_t counts[OUTCOME_COUNT]);
/* The line of a build's output in which a compiler says that it crashed; NULL where there is none.  Owned by the
 * caller. */
char *find_compiler_crash(const char *output, size_t length);
/* The first line with anything visible in it, without control characters, at most 200 bytes.  Owned; NULL where none.
 */
char *first_line(const char *output, size_t length);
void judgement_clear(struct judgement *judgement);

#endif
