/*
 * Git repositories made on the spot, for tests: no network, no git program.  A call that fails ends the test.
 */
#ifndef BISECTD_TESTS_MAKE_REPOSITORY_H
#define BISECTD_TESTS_MAKE_REPOSITORY_H

#include <git2.h>
#include <stddef.h>

/* A new folder below $TMPDIR, owned by the caller; remove_folder takes it away and frees the name. */
char *make_folder(void);
void remove_folder(char *folder);

/* A bare repository whose HEAD is refs/heads/main. */
git_repository *make_repository(const char *folder);

struct made_file {
	const char *path;
	const char *contents;
	unsigned mode; /* 0: an ordinary file */
};

struct made_commit {
	const char *branch; /* "refs/heads/main", set to the commit; NULL: no reference */
	const char *message;
	const char *author;            /* NULL: "A U Thor" */
	git_time_t time;               /* 0: counts up from call to call */
	int offset;                    /* minutes east of UTC */
	git_oid parents[4];            /* up to the first zero oid */
	git_oid tree;                  /* zero: the files below */
	const struct made_file *files; /* up to the first without a path */
};

git_oid make_blob(git_repository *repository, const void *bytes, size_t length);
git_oid make_tree(git_repository *repository, const struct made_file *files);
git_oid make_commit(git_repository *repository, const struct made_commit *commit);
void make_reference(git_repository *repository, const char *name, const git_oid *oid);
void drop_reference(git_repository *repository, const char *name);
/* An annotated tag object, without a reference. */
git_oid make_tag(git_repository *repository, const char *name, const git_oid *target);

/* A tree object as an attacker would write it: nothing is checked or sorted. */
struct raw_entry {
	const char *mode; /* as in the object: "100644", "40000" */
	const char *name;
	git_oid oid;
};

git_oid make_raw_tree(git_repository *repository, const struct raw_entry *entries, size_t count);
git_oid make_raw_object(git_repository *repository, git_object_t type, const void *bytes, size_t length);

/* 40 digits, owned by the caller. */
char *oid_string(const git_oid *oid);

#endif
