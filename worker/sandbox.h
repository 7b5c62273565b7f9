/*
 * The wall around the commands of a job: one keeper (inside.h), within bubblewrap where that works, and in any case
 * under its own session and limits, as another user where the worker is root.
 *
 * One sandbox serves all commands of a job that may see the same network, because starting one costs more than
 * everything else that the worker does.  What lives in it can only see the system's own folders, the job's folders and
 * what the job names; everything else (homes, the state folder with its database, /run, /var) does not exist there.
 */
#ifndef BISECTD_WORKER_SANDBOX_H
#define BISECTD_WORKER_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "str.h"

struct sandbox_view {
	const char *workspace;
	struct strlist read_write; /* workspace among them */
	struct strlist read_only;
	struct strlist hidden; /* folders that must not show even where a folder around them is shown */
	bool network;
};

struct sandbox {
	pid_t id;        /* of bwrap, or of the keeper itself; 0 where none runs */
	int control;     /* the keeper's socket */
	int output;      /* read end of the pipe that all output goes to; does not block */
	bool bubblewrap; /* else: no namespaces */
	bool network_left;
};

#define SANDBOX_NONE ((struct sandbox){.control = -1, .output = -1})
#define cleanup_sandbox __attribute__((cleanup(sandbox_drop)))

/*
 * Start the keeper, within bubblewrap or without, and do not wait for it.  `kept` is a descriptor that stays open for
 * as long as anything of the sandbox lives (the lock), and that no command gets; -1: none.
 */
int sandbox_start(struct sandbox *sandbox, const struct sandbox_view *view, bool bubblewrap, int kept,
		  struct error *error);
/* Wait until commands can be started.  The error says why they cannot, in bubblewrap's words where it has any. */
int sandbox_await(struct sandbox *sandbox, struct error *error);
/* End it.  Returns how many processes could not be killed. */
size_t sandbox_stop(struct sandbox *sandbox);
void sandbox_drop(struct sandbox *sandbox); /* for cleanup_sandbox: as stop */

#endif
