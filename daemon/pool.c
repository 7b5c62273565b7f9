/* See pool.h. */
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"

enum {
	STOP_GRACE_MS = 5000,
	BABBLE_GRACE_MS = 1000 /* for one that does not keep to the protocol */,
	LOG_LIMIT = 64 << 20 /* bytes; the worker keeps each command's output far below */
};

struct slot {
	struct pool *pool;
	size_t index;
	bool busy;
	bool stopped; /* by pool_stop */
	struct pool_task task;
	struct loop_child *child;
	struct loop_timer *deadline;
	int log;
	size_t logged;
	char *why_ended; /* by us, or NULL */
	struct result result;
	bool has_result;
};

struct pool {
	struct loop *loop;
	struct strlist command;
	struct slot *slots;
	size_t count;
};

int pool_open(struct pool **result, struct loop *loop, const char *worker, const struct strlist *launcher, size_t slots,
	      struct error *error)
{
	if (launcher->count == 0 && access(worker, X_OK) < 0)
		return error_set_errno(error, "cannot run the worker %s", worker);
	struct pool *pool = memory_new(1, sizeof *pool);
	pool->loop = loop;
	pool->slots = memory_new(slots, sizeof *pool->slots);
	pool->count = slots;
	strlist_add_all(&pool->command, launcher);
	strlist_add(&pool->command, worker);
	for (size_t i = 0; i < slots; i++)
		pool->slots[i] = (struct slot){.pool = pool, .index = i, .log = -1};
	*result = pool;
	return 0;
}

void pool_close(struct pool *pool)
{
	if (pool == NULL)
		return;
	strlist_clear(&pool->command);
	free(pool->slots);
	free(pool);
}

size_t pool_slots(const struct pool *pool)
{
	return pool->count;
}

bool pool_is_busy(const struct pool *pool, size_t slot)
{
	return pool->slots[slot].busy;
}

static void kill_late(void *context)
{
	struct slot *slot = context;
	slot->deadline = NULL;
	if (slot->child != NULL)
		loop_child_kill(slot->child);
}

/* Ask, then kill.  The first reason is the one that is told. */
static void end_worker(struct slot *slot, const char *reason, long long grace_ms)
{
	if (slot->why_ended == NULL)
		slot->why_ended = text_copy(reason);
	loop_timer_cancel(&slot->deadline);
	if (slot->child == NULL)
		return;
	loop_child_close_input(slot->child);
	slot->deadline = loop_timer_start(slot->pool->loop, grace_ms, kill_late, slot);
}

static void deadline_passed(void *context)
{
	struct slot *slot = context;
	slot->deadline = NULL;
	cleanup_free char *reason =
		text_format("the worker did not end within %g s", (double)slot->task.deadline_ms / 1000);
	end_worker(slot, reason, STOP_GRACE_MS);
}

static void take_event(struct slot *slot, const json_t *event)
{
	cleanup_error struct error error = {0};
	const char *kind = json_string_value(json_object_get(event, "event"));
	const char *phase = json_string_value(json_object_get(event, "phase"));
	if (kind == NULL) {
		end_worker(slot, "the worker printed JSON that is no event", BABBLE_GRACE_MS);
	} else if (strcmp(kind, "result") == 0) {
		result_clear(&slot->result);
		slot->has_result = result_decode(&slot->result, event, &error) == 0;
		if (!slot->has_result)
			end_worker(slot, error_text(&error), BABBLE_GRACE_MS);
	} else if (strcmp(kind, "phase") == 0 && phase != NULL && slot->task.on_phase != NULL) {
		long long of = json_integer_value(json_object_get(event, "of"));
		cleanup_free char *text = of > 1 ? text_format("%s %lld/%lld", phase,
							       (long long)json_integer_value(json_object_get(event, "number")), of)
						 : text_copy(phase);
		slot->task.on_phase(slot->task.context, slot->index, text);
	}
}

static void on_line(void *context, const char *line, size_t length)
{
	struct slot *slot = context;
	json_error_t trouble;
	if (slot->why_ended != NULL)
		return;
	json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, &trouble);
	if (event == NULL && length >= PROTOCOL_LINE_LIMIT)
		end_worker(slot, "the worker flooded its output", BABBLE_GRACE_MS);
	else if (event == NULL)
		end_worker(slot, "the worker printed something that is no JSON event", BABBLE_GRACE_MS);
	else
		take_event(slot, event);
	json_decref(event);
}

static void on_log(void *context, const char *bytes, size_t length)
{
	struct slot *slot = context;
	if (slot->log < 0 || slot->logged >= LOG_LIMIT)
		return;
	slot->logged += length;
	while (length > 0) {
		ssize_t written = write(slot->log, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			cleanup_error struct error error = {0};
			error_set_errno(&error, "cannot write the log %s", slot->task.log);
			fd_close(&slot->log);
			end_worker(slot, error_text(&error), STOP_GRACE_MS);
			return;
		}
		bytes += written;
		length -= (size_t)written;
	}
}

static void make_error_result(struct slot *slot, char *reason)
{
	result_clear(&slot->result);
	slot->result.outcome = OUTCOME_ERROR;
	slot->result.exit_status = -1;
	slot->result.reason = reason;
}

static void finish(struct slot *slot)
{
	struct pool_task task = slot->task;
	struct result result = slot->result;
	bool stopped = slot->stopped;
	loop_timer_cancel(&slot->deadline);
	fd_close(&slot->log);
	free(slot->why_ended);
	*slot = (struct slot){.pool = slot->pool, .index = slot->index, .log = -1};
	task.on_result(task.context, slot->index, &result, stopped);
	result_clear(&result);
	free(task.log);
}

static void on_end(void *context, long long exit_status, int signal_number)
{
	struct slot *slot = context;
	slot->child = NULL;
	if (slot->why_ended != NULL)
		make_error_result(slot, text_copy(slot->why_ended));
	else if (!slot->has_result && signal_number != 0)
		make_error_result(slot, text_format("the worker was killed by signal %d (%s)", signal_number,
						    strsignal(signal_number)));
	else if (!slot->has_result)
		make_error_result(slot, text_format("the worker ended with status %lld and without a result", exit_status));
	finish(slot);
}

static void finish_later(void *context)
{
	finish(context);
}

static void open_log(struct slot *slot)
{
	if (slot->task.log == NULL)
		return;
	cleanup_error struct error error = {0};
	cleanup_free char *folder = path_parent(slot->task.log);
	if (fs_make_folder(folder, &error) == 0)
		slot->log = open(slot->task.log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (slot->log < 0)
		log_warning("cannot open the log %s: this attempt goes without", slot->task.log);
}

void pool_start(struct pool *pool, size_t index, const struct job *job, const struct pool_task *task)
{
	struct slot *slot = &pool->slots[index];
	cleanup_error struct error error = {0};
	cleanup_free char *line = job_encode(job);
	cleanup_free char *input = text_format("%s\n", line);
	slot->busy = true;
	slot->task = *task;
	slot->task.log = text_copy(task->log);
	open_log(slot);
	struct loop_child_setup setup = {.command = &pool->command,
					 .input = input,
					 .on_line = on_line,
					 .on_log = on_log,
					 .on_end = on_end,
					 .context = slot,
					 .line_limit = PROTOCOL_LINE_LIMIT};
	if (loop_child_start(pool->loop, &setup, &slot->child, &error) < 0) {
		make_error_result(slot, text_copy(error_text(&error)));
		loop_defer(pool->loop, finish_later, slot);
		return;
	}
	slot->deadline = loop_timer_start(pool->loop, task->deadline_ms, deadline_passed, slot);
}

void pool_stop(struct pool *pool, long long grace_ms)
{
	for (size_t i = 0; i < pool->count; i++) {
		if (!pool->slots[i].busy || pool->slots[i].stopped)
			continue;
		pool->slots[i].stopped = true;
		end_worker(&pool->slots[i], "bisectd was asked to stop", grace_ms);
	}
}
