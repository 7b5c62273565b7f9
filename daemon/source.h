/*
 * Sources: bare mirrors of git repositories in the state folder, and what can be read from them.
 *
 * The only room that knows libgit2 (git2.h is included by source_internal.h alone); the git program is never run.  Every
 * function may block, so the service calls them from libuv's pool.  A `struct source` is used by one thread at a time.
 * Nothing of a repository is ever executed: no hooks, no filters, no submodules are followed.
 */
#ifndef BISECTD_DAEMON_SOURCE_H
#define BISECTD_DAEMON_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

struct source;

/* Called now and then while a fetch goes on, on the fetching thread.  `total` is 0 while it is unknown. */
typedef void source_progress(void *context, const char *phase, size_t done, size_t total);

/* Once per process, before and after everything else here. */
int source_library_start(struct error *error);
void source_library_stop(void);

/*
 * Clone `url` (or, when it does not answer, one of `alternates`, in order) as a bare mirror to `folder`, or fetch what is new
 * when the mirror exists.  All branches and tags are mirrored (force-updated, deleted ones pruned).  An interrupted clone
 * leaves a folder that the next call completes; the mirror's content never depends on which URL served it.  Credentials: an SSH
 * agent for ssh, BISECTD_GIT_USERNAME / BISECTD_GIT_PASSWORD of the environment for https.  Certificates and host keys are
 * checked by libgit2's defaults (known_hosts).  On failure of every URL: -1, and the error names each with its reason; a mirror
 * that existed before stays usable.
 */
int source_fetch(const char *folder, const char *url, const struct strlist *alternates, source_progress *progress,
		 void *context, struct error *error);

/* Open an existing mirror. */
int source_open(struct source **source, const char *folder, struct error *error);
void source_free(struct source *source); /* NULL is fine */

struct source_commit {
	char *oid;     /* 40 hexadecimal digits */
	char *subject; /* first line of the message */
	char *author;  /* name only */
	char *date;    /* author date, UTC, "2025-02-04T17:03:11Z" */
};

void source_commit_clear(struct source_commit *commit);

struct source_commits {
	struct source_commit *items;
	size_t count;
	size_t capacity;
};

#define cleanup_source_commits __attribute__((cleanup(source_commits_clear)))
#define cleanup_source_commit __attribute__((cleanup(source_commit_clear)))
#define cleanup_source __attribute__((cleanup(source_free_pointer)))

void source_commits_clear(struct source_commits *commits);
void source_free_pointer(struct source **source);

/* One revision: oid (full or short, unambiguous), tag (annotated ones are peeled), branch, HEAD, `REV^`, `REV~3`. */
int source_resolve(struct source *source, const char *revision, struct source_commit *commit, struct error *error);

/*
 * The commits of `A..B` (reachable from B, not from A), oldest first (topological, parents before children).  With
 * `first_parent` only B's first-parent chain is walked.  With `paths` (not empty) only commits whose diff against their first
 * parent (the root commit: against nothing) touches one of the paths (a file or a folder) are kept.
 */
int source_list(struct source *source, const char *range, bool first_parent, const struct strlist *paths,
		struct source_commits *commits, struct error *error);

/*
 * Write the tree of a commit to `folder`, which is made whole (in a folder beside it, then renamed) or not at all; one that
 * exists already is left as it is.  Symbolic links are written as links only where they point inside the tree; others as
 * small files holding the target.  Submodules become empty folders.  No line-ending conversion.
 */
int source_export(struct source *source, const char *oid, const char *folder, struct error *error);

/* One file at a commit; more than `limit` bytes is an error. */
int source_read_file(struct source *source, const char *oid, const char *path, size_t limit, struct str *contents,
		     struct error *error);

#endif
