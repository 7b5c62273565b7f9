/* What the files of the store share. */
#ifndef BISECTD_DAEMON_STORE_INTERNAL_H
#define BISECTD_DAEMON_STORE_INTERNAL_H

#include "sql.h"
#include "store.h"

struct store {
	struct sql *sql;
	int lock; /* descriptor that holds the state folder's lock */
};

/* Inside the caller's transaction: the cell with that key, made where it does not exist yet. */
int store_find_cell(struct store *store, const char *key, struct store_cell *cell, struct error *error);

#endif
