/*
 * An investigation from its file to its end: resolve the axes, walk the matrix, confirm, record findings.
 *
 * The only room that joins axes, plan, pool and store.  Everything happens on the loop; on_end comes exactly once.
 */
#ifndef BISECTD_DAEMON_INVESTIGATION_H
#define BISECTD_DAEMON_INVESTIGATION_H

#include <stdbool.h>

#include "config.h"
#include "loop.h"
#include "pool.h"
#include "store.h"

struct investigation;

enum investigation_end {
	INVESTIGATION_TROUBLE, /* could not finish: cells left undecided by errors, or the database or the like failed */
	INVESTIGATION_FOUND,   /* a first bad combination, final */
	INVESTIGATION_NONE,    /* every cell decided, none bad */
	INVESTIGATION_STOPPED, /* by investigation_stop */
};

struct investigation_setup {
	struct loop *loop;
	struct store *store;
	struct pool *pool;
	const struct config *config;
	const char *state_folder; /* absolute */
	bool resolve_only;	  /* end when the axes are resolved (bisectd check) */
	bool offline;		  /* do not fetch sources whose mirror exists */
	long long delivery_wait_ms; /* how long to wait for webhook deliveries at the end */
	void (*on_end)(void *context);
	void *context;
};

/* All of `setup` is borrowed until investigation_free. */
struct investigation *investigation_start(const struct investigation_setup *setup);
/* End soon: workers are asked to stop, what is finished stays. */
void investigation_stop(struct investigation *investigation);
enum investigation_end investigation_end(const struct investigation *investigation);
/* Did it get as far as a matrix in the database, so that there is something to report? */
bool investigation_has_matrix(const struct investigation *investigation);
/* Why it ended in trouble; never NULL. */
const char *investigation_trouble(const struct investigation *investigation);
/* After on_end: the axes with their values and identities, the number of cells, what is excluded.  Appended to `text`. */
void investigation_print_plan(const struct investigation *investigation, struct str *text);
void investigation_free(struct investigation *investigation); /* after on_end; NULL is fine */

#endif
