/*
 * The folders of a job: locked, emptied, filled, and given to the user that the commands run as.
 *
 * <workspace> is removed and made anew; what lies there is fresh, with new modification times, because Cargo trusts
 * times. reproducer/   copy of the reproducer; commands start here checkouts/    copies of the exported sources home/
 * tmp/    HOME and TMPDIR .cargo/config.toml   of the preparation: a folder above the reproducer, so that cargo joins
 * it with the reproducer's own <target> and <target>/../cargo-home stay between jobs.
 */
#ifndef BISECTD_WORKER_WORKSPACE_H
#define BISECTD_WORKER_WORKSPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "job.h"

struct workspace {
	char *folder;
	char *reproducer;
	char *home;
	char *temporary;
	char *target;
	char *cargo_home;
	int lock;
	bool drop; /* commands run as `user` */
	uid_t user;
	gid_t group;
};

#define WORKSPACE_NONE ((struct workspace){.lock = -1})
#define cleanup_workspace __attribute__((cleanup(workspace_clear)))

/* Name the folders, take the lock beside the target (waits for a dying worker, 15 s), and make the folders, empty. */
int workspace_open(struct workspace *workspace, const struct job *job, struct error *error);
/* Copy in what the job names. */
int workspace_fill(const struct workspace *workspace, const struct job *job, struct error *error);
/* Hand everything over to the user that commands run as.  Without effect where that is us. */
int workspace_give(const struct workspace *workspace, struct error *error);
/* Can that user reach this path without a sandbox that makes it reachable? */
bool workspace_user_reaches(const struct workspace *workspace, const char *path);
/* Is the disk so full that a failure says nothing? */
bool workspace_disk_full(const struct workspace *workspace);
/* Leaves the folders, for people to look at. */
void workspace_clear(struct workspace *workspace);

#endif
