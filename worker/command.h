/*
 * One command in a sandbox, to its end or to the first limit that it meets, with its output in the log.  Says what
 * happened and never what it means: that is classify's.
 */
#ifndef BISECTD_WORKER_COMMAND_H
#define BISECTD_WORKER_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "sandbox.h"
#include "str.h"

struct command_limits {
	long long wall_ms;
	long long memory_bytes;
	long long processes;
	long long output_bytes;
	long long file_bytes;
};

struct command_user {
	bool drop; /* become this user; false: stay who we are */
	uid_t user;
	gid_t group;
};

struct command_setup {
	const char *title; /* "build", "run 2 of 5": for the log */
	const struct strlist *words;
	const struct strmap *environment;
	const char *folder;
	struct command_limits limits;
	struct command_user user;
};

enum command_end {
	COMMAND_ENDED,       /* by itself: see `status` */
	COMMAND_NOT_STARTED, /* see `trouble` */
	COMMAND_OVER_TIME,   /* killed by us, as the next three */
	COMMAND_OVER_MEMORY,
	COMMAND_OVER_PROCESSES,
	COMMAND_OVER_OUTPUT,
	COMMAND_SYSTEM_MEMORY, /* the system ran out of memory and killed it */
	COMMAND_LOST,          /* the sandbox failed or could not be emptied: see `trouble`; it cannot be used again */
};

struct command_result {
	enum command_end end;
	int status; /* as from waitpid */
	long long ms;
	struct str output; /* kept part of standard output and error together; may hold NUL */
	bool output_cut;
	char *trouble;
};

#define cleanup_command_result __attribute__((cleanup(command_result_clear)))

void command_run(struct sandbox *sandbox, const struct command_setup *setup, struct command_result *result);
/* One sentence: "exit status 1", "it did not end within 60 s and was stopped". */
char *command_end_text(const struct command_setup *setup, const struct command_result *result);
void command_result_clear(struct command_result *result);

/* A line of our own in the log (standard error): "== ...". */
void log_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
