/*
 * The event loop: timers, signals, blocking work on other threads, and children that speak in lines.
 *
 * libuv behind one file (uv.h is included by loop.c alone), so that a plain poll loop could replace it.  Everything but the
 * `work` function of loop_work is called on the loop's thread.
 */
#ifndef BISECTD_DAEMON_LOOP_H
#define BISECTD_DAEMON_LOOP_H

#include <stddef.h>

#include "error.h"
#include "str.h"

struct loop;
struct loop_timer;
struct loop_child;

typedef void loop_callback(void *context);

int loop_open(struct loop **loop, struct error *error);
/* Runs until loop_stop, or until nothing is left to wait for. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Waits for background work and closes everything that is left.  NULL is fine. */
void loop_close(struct loop *loop);

/* Once, after `ms`.  The timer frees itself after the callback; loop_timer_cancel before it does so too. */
struct loop_timer *loop_timer_start(struct loop *loop, long long ms, loop_callback *callback, void *context);
/* Sets the caller's pointer to NULL; a NULL pointer in it is fine. */
void loop_timer_cancel(struct loop_timer **timer);

/* Watch a signal until the loop is closed; does not keep the loop running. */
int loop_on_signal(struct loop *loop, int number, loop_callback *callback, void *context, struct error *error);

/* `work` runs on another thread, then `done` on the loop's. */
void loop_work(struct loop *loop, loop_callback *work, loop_callback *done, void *context);

/* Call `callback` on the loop's thread soon, from any place of it: what must not happen inside the current call. */
void loop_defer(struct loop *loop, loop_callback *callback, void *context);

struct loop_child_setup {
	const struct strlist *command;
	const char *input; /* written to its standard input, which then stays open */
	/* Standard output, a line at a time without its newline.  A line longer than `line_limit` arrives cut, once. */
	void (*on_line)(void *context, const char *line, size_t length);
	/* Standard error, as it comes. */
	void (*on_log)(void *context, const char *bytes, size_t length);
	/* The process has ended and both streams are read to their end.  Called once; the child is gone afterwards. */
	void (*on_end)(void *context, long long exit_status, int signal);
	void *context;
	size_t line_limit;
};

int loop_child_start(struct loop *loop, const struct loop_child_setup *setup, struct loop_child **child,
		     struct error *error);
/* Closes its standard input, which asks a worker to stop. */
void loop_child_close_input(struct loop_child *child);
void loop_child_kill(struct loop_child *child); /* SIGKILL to the process */
long loop_child_id(const struct loop_child *child);

#endif
