/* The crates that an exported tree of a repository holds, as cargo sees them. */
#ifndef BISECTD_WORKER_CHECKOUT_H
#define BISECTD_WORKER_CHECKOUT_H

#include <jansson.h>

#include "cargo.h"

struct checkout_crate {
	char *name;
	char *version;
	char *folder; /* below the tree; "" for the tree itself */
};

struct checkout {
	char *name;     /* the crate that is taken from it */
	char *source;   /* the source that it is a checkout of, for overrides; NULL: the same as `name` */
	char *tree;     /* real path */
	char *identity; /* the commit */
	json_t *plan;   /* edits, see edited.h */
	char *edited;   /* the copy that is built; NULL until it is made */
	struct checkout_crate *crates;
	size_t count;
	size_t capacity;
	struct strlist asked; /* manifests whose workspace is listed already */
};

void checkout_clear(struct checkout *checkout);
/* -1 where the tree does not exist. */
int checkout_open(struct checkout *checkout, const char *name, const char *source, const char *tree, const char *oid,
		  struct error *error);
/*
 * Find a crate: among the members of the workspace at the tree's root, else by the manifests below that name it.
 * `found` is NULL where the tree does not hold it.  -1 when cargo could not be asked or cannot read the manifest.
 */
int checkout_find(struct checkout *checkout, struct cargo *cargo, const char *folder, const char *name,
		  const struct checkout_crate **found, struct error *error);

#endif
