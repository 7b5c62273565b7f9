/*
 * The planner: what is known in, what to do next out.  Pure functions without I/O, using nothing but the C library.
 *
 * A plan is a matrix in walk order (axes in the order written, the last one fastest) with one state for each cell.  A strategy
 * is one file: walk.c visits every cell in order.
 */
#ifndef BISECTD_DAEMON_PLAN_PLAN_H
#define BISECTD_DAEMON_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

enum plan_state {
	PLAN_EXCLUDED, /* not in the matrix */
	PLAN_OPEN,     /* to be tried */
	PLAN_RUNNING,  /* being tried */
	PLAN_GOOD,
	PLAN_BAD,
	PLAN_NO_EVIDENCE, /* decided, and neither good nor bad: build-fail, skip, ... */
	PLAN_FAILED,	  /* given up because of trouble of our own: not decided */
};

struct plan {
	size_t axis_count;
	size_t *sizes;	 /* values on each axis; the last axis is the fastest */
	size_t *strides; /* cells between neighbours on each axis */
	size_t cell_count;
	unsigned char *states; /* enum plan_state for each cell */
	size_t first_open;     /* no cell before this one is open: kept by the functions below */
};

/* `sizes` is copied.  All cells start as PLAN_OPEN.  False where the product of the sizes does not fit. */
bool plan_start(struct plan *plan, const size_t *sizes, size_t axis_count);
void plan_free(struct plan *plan);

size_t plan_position(const struct plan *plan, size_t cell, size_t axis);
void plan_set(struct plan *plan, size_t cell, enum plan_state state);
enum plan_state plan_get(const struct plan *plan, size_t cell);

enum { PLAN_NONE = -1 };

/*
 * Walk: the next open cell, or PLAN_NONE.  To reuse what is built, a worker stays with one value (`group_position`) of `group_axis`
 * while that has open cells; else it takes the first open cell whose group no other worker is on (`busy_groups`, one flag for each
 * value), else the first open cell at all.  `group_position` PLAN_NONE: the worker has no group yet.  `group_axis` PLAN_NONE: no
 * grouping.
 */
long plan_walk_next(struct plan *plan, int group_axis, long group_position, const bool *busy_groups);

/*
 * The first bad cell in walk order, or PLAN_NONE.  *final: every earlier cell is decided, so that no other can take its place.
 */
long plan_first_bad(const struct plan *plan, bool *final);

/*
 * The nearest good cell along one axis, all else equal, or PLAN_NONE.  Of two at the same distance the later one: what a fix or a
 * newer compiler made good.
 */
long plan_nearest_good(const struct plan *plan, size_t cell, size_t axis);

struct plan_counts {
	size_t cells; /* without the excluded ones */
	size_t open;
	size_t running;
	size_t good;
	size_t bad;
	size_t no_evidence;
	size_t failed;
};

struct plan_counts plan_count(const struct plan *plan);

#endif
