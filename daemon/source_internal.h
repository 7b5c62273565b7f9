/*
 * What the files of the `source` room share and nobody else may know: libgit2's types, and how its failures become
 * errors.
 *
 *   source.c         the library, opening, resolving, reading one file
 *   source_list.c    walking ranges
 *   source_mirror.c  cloning and fetching; the only file that meets URLs
 *   source_export.c  writing trees to disk
 */
#ifndef BISECTD_DAEMON_SOURCE_INTERNAL_H
#define BISECTD_DAEMON_SOURCE_INTERNAL_H

#include <git2.h>

#include "source.h"

/* Written last when a mirror is made: a folder without it is none of ours. */
#define SOURCE_MARKER_FILE "bisectd-mirror"
/* Written when reading meets damage, with the reason: the next source_fetch makes the mirror anew. */
#define SOURCE_DAMAGE_FILE "bisectd-damaged"

struct source {
	git_repository *repository;
	char *folder;
};

/* One cleanup attribute for each libgit2 type: cleanup_git(commit) git_commit *commit = NULL; */
#define SOURCE_DEFINE_CLEANUP(type)                                                                                    \
	static inline void source_free_git_##type(git_##type **pointer)                                                \
	{                                                                                                              \
		git_##type##_free(*pointer);                                                                           \
	}
SOURCE_DEFINE_CLEANUP(blob)
SOURCE_DEFINE_CLEANUP(commit)
SOURCE_DEFINE_CLEANUP(config)
SOURCE_DEFINE_CLEANUP(object)
SOURCE_DEFINE_CLEANUP(odb)
SOURCE_DEFINE_CLEANUP(reference)
SOURCE_DEFINE_CLEANUP(reference_iterator)
SOURCE_DEFINE_CLEANUP(remote)
SOURCE_DEFINE_CLEANUP(repository)
SOURCE_DEFINE_CLEANUP(tree)
SOURCE_DEFINE_CLEANUP(tree_entry)
#define cleanup_git(type) __attribute__((cleanup(source_free_git_##type)))

/* The text of libgit2's last error on this thread, on one line; owned by the caller. */
char *source_library_text(void);

/* "attempt: libgit2's reason".  Always returns -1. */
int source_error(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * As source_error, for an object that the mirror must hold because its history names it.  Where the reason is the
 * object store itself, the mirror is marked as damaged.
 */
int source_object_error(const struct source *source, struct error *error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The commit of exactly 40 hexadecimal digits. */
int source_find_commit(const struct source *source, const char *oid, git_commit **commit, struct error *error);

/* REVISION as source_resolve takes it, to a commit. */
int source_find_revision(const struct source *source, const char *revision, git_commit **commit, struct error *error);

/* Fill in what source.h promises of a commit: valid UTF-8, no control characters. */
void source_describe(const git_commit *commit, struct source_commit *described);

/*
 * `path` as git keeps it: no "." parts, no slash at either end, none twice; "" is the root.  -1 where it is absolute or
 * holds "..".
 */
int source_clean_path(const char *path, char **clean, struct error *error);

/*
 * The entry at a clean, non-empty path below `tree`: 1 found, 0 there is none, -1 error.  Links are not followed.  (Not
 * git_tree_entry_bypath, which cannot tell a path that is not there from a tree object that is missing.)
 */
int source_find_entry(const struct source *source, const git_tree *tree, const char *path, git_tree_entry **entry,
		      struct error *error);

#endif
