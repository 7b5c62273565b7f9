/*
 * Starting programs: one way for every child of the worker.
 *
 * A child gets its own session (and so its own process group), default signals, exactly the environment and the descriptors
 * that it is given.  When it cannot be started at all, the step and its errno come back over a close-on-exec pipe, so that
 * people read "cannot run cargo: No such file or directory" instead of meeting an exit status of 127.
 */
#ifndef BISECTD_COMMON_CHILD_H
#define BISECTD_COMMON_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "str.h"

struct child_setup {
	const struct strlist *command;	  /* argv; the first word is searched on PATH of `environment` */
	const struct strmap *environment; /* the whole environment */
	const char *folder;		  /* to start in; NULL: where we are */
	int input;			  /* descriptors for 0, 1 and 2; -1: /dev/null */
	int output;
	int errors;
	int extra; /* one more descriptor, kept open under its own number; -1: none */
	/* Called in the child right before exec (only async-signal-safe calls); may be NULL.  A result below 0 is a failure. */
	int (*before_exec)(void *context);
	void *context;
};

/* Returns the process id, or -1 with the error. */
pid_t child_start(const struct child_setup *setup, struct error *error);

struct child_output {
	struct str output; /* standard output, cut at the limit */
	struct str errors; /* standard error, cut at the limit */
	int status;	   /* as from waitpid */
	bool timed_out;
};

#define cleanup_child_output __attribute__((cleanup(child_output_clear)))

/*
 * Run to the end and gather what it says.  After `timeout_ms` its process group is killed.  Returns 0 when the program ran
 * (look at `status`), -1 when it could not be started or did not end in time.
 */
int child_capture(const struct strlist *command, const struct strmap *environment, const char *folder, long long timeout_ms,
		  size_t limit, struct child_output *output, struct error *error);
void child_output_clear(struct child_output *output);

/* This process' own environment as a map. */
void child_own_environment(struct strmap *environment);
/* "exit status 3", "signal 11 (Segmentation fault)"; owned by the caller. */
char *child_status_text(int status);

#endif
