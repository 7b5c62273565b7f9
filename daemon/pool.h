/*
 * The pool: runs jobs in worker processes, one a slot, and turns whatever a worker does into exactly one result.
 *
 * A worker that prints garbage, floods its output, ends without a result or never ends gives an "error" result with the reason:
 * trouble of ours is never evidence.  Knows the job protocol and the loop, nothing of cells or the store.
 */
#ifndef BISECTD_DAEMON_POOL_H
#define BISECTD_DAEMON_POOL_H

#include <stdbool.h>

#include "error.h"
#include "job.h"
#include "loop.h"

struct pool;

struct pool_task {
	char *log;	       /* file that takes the worker's standard error, made anew; NULL: it is dropped */
	long long deadline_ms; /* after this the worker is asked to stop, then killed: well above the job's own limits */
	/* A new phase of the job ("build", "run 1/3"). May be NULL. */
	void (*on_phase)(void *context, size_t slot, const char *phase);
	/* Once, when the worker is gone.  `stopped`: because of pool_stop; the result then means nothing.  `result` is borrowed. */
	void (*on_result)(void *context, size_t slot, const struct result *result, bool stopped);
	void *context;
};

/* `launcher`: words before the worker's own path (empty: start it directly). */
int pool_open(struct pool **pool, struct loop *loop, const char *worker, const struct strlist *launcher, size_t slots,
	      struct error *error);
/* All slots must be idle.  NULL is fine. */
void pool_close(struct pool *pool);
size_t pool_slots(const struct pool *pool);
bool pool_is_busy(const struct pool *pool, size_t slot);
/* The job is read at once; `task` is copied, its log path too.  Never fails: what goes wrong comes as a result, later. */
void pool_start(struct pool *pool, size_t slot, const struct job *job, const struct pool_task *task);
/* Ask all workers to stop, kill them after `grace_ms`; their on_result comes with `stopped`. */
void pool_stop(struct pool *pool, long long grace_ms);

#endif
