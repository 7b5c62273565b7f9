/* See loop.h. */
#include "loop.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { READ_BLOCK = 1 << 16, STREAMS_GRACE_MS = 2000 };

struct loop {
	uv_loop_t uv;
};

int loop_open(struct loop **result, struct error *error)
{
	struct loop *loop = memory_new(1, sizeof *loop);
	int code = uv_loop_init(&loop->uv);
	if (code < 0) {
		free(loop);
		return error_set(error, "cannot start the event loop: %s", uv_strerror(code));
	}
	*result = loop;
	return 0;
}

void loop_run(struct loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

static void free_handle(uv_handle_t *handle)
{
	free(handle->data);
}

static void close_leftover(uv_handle_t *handle, void *argument)
{
	(void)argument;
	if (!uv_is_closing(handle))
		uv_close(handle, handle->type == UV_TIMER || handle->type == UV_SIGNAL ? free_handle : NULL);
}

void loop_close(struct loop *loop)
{
	if (loop == NULL)
		return;
	uv_walk(&loop->uv, close_leftover, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	uv_loop_close(&loop->uv);
	free(loop);
}

/* Timers, deferred calls and signals: in each, the handle's data is the structure that holds it. */

struct loop_timer {
	uv_timer_t uv;
	loop_callback *callback;
	void *context;
};

static void timer_fired(uv_timer_t *handle)
{
	struct loop_timer *timer = handle->data;
	loop_callback *callback = timer->callback;
	void *context = timer->context;
	uv_close((uv_handle_t *)handle, free_handle);
	callback(context);
}

struct loop_timer *loop_timer_start(struct loop *loop, long long ms, loop_callback *callback, void *context)
{
	struct loop_timer *timer = memory_new(1, sizeof *timer);
	timer->callback = callback;
	timer->context = context;
	timer->uv.data = timer;
	uv_timer_init(&loop->uv, &timer->uv);
	uv_update_time(&loop->uv);
	uv_timer_start(&timer->uv, timer_fired, ms > 0 ? (uint64_t)ms : 0, 0);
	return timer;
}

void loop_timer_cancel(struct loop_timer **timer)
{
	if (*timer != NULL)
		uv_close((uv_handle_t *)&(*timer)->uv, free_handle);
	*timer = NULL;
}

void loop_defer(struct loop *loop, loop_callback *callback, void *context)
{
	loop_timer_start(loop, 0, callback, context);
}

struct signal_watch {
	uv_signal_t uv;
	loop_callback *callback;
	void *context;
};

static void signal_came(uv_signal_t *handle, int number)
{
	struct signal_watch *watch = handle->data;
	(void)number;
	watch->callback(watch->context);
}

int loop_on_signal(struct loop *loop, int number, loop_callback *callback, void *context, struct error *error)
{
	struct signal_watch *watch = memory_new(1, sizeof *watch);
	watch->callback = callback;
	watch->context = context;
	watch->uv.data = watch;
	uv_signal_init(&loop->uv, &watch->uv);
	int code = uv_signal_start(&watch->uv, signal_came, number);
	uv_unref((uv_handle_t *)&watch->uv);
	if (code < 0)
		return error_set(error, "cannot watch signal %d: %s", number, uv_strerror(code));
	return 0;
}

struct work {
	uv_work_t uv;
	loop_callback *work;
	loop_callback *done;
	void *context;
};

static void work_run(uv_work_t *request)
{
	struct work *work = request->data;
	work->work(work->context);
}

static void work_ended(uv_work_t *request, int status)
{
	struct work *work = request->data;
	loop_callback *done = work->done;
	void *context = work->context;
	(void)status;
	free(work);
	done(context);
}

void loop_work(struct loop *loop, loop_callback *run, loop_callback *done, void *context)
{
	struct work *work = memory_new(1, sizeof *work);
	*work = (struct work){.work = run, .done = done, .context = context};
	work->uv.data = work;
	uv_queue_work(&loop->uv, &work->uv, work_run, work_ended);
}

/* Children */

struct loop_child {
	struct loop_child_setup setup;
	uv_process_t process;
	uv_pipe_t input;
	uv_pipe_t output;
	uv_pipe_t errors;
	uv_timer_t grace; /* after the exit: a stray descendant may hold the streams open */
	uv_write_t write;
	char *text; /* being written */
	struct str line;
	bool line_overflows;
	long long exit_status;
	int signal;
	int open_handles;
	int open_streams;
	bool exited;
	bool ended;
	char block[READ_BLOCK];
};

static void child_handle_closed(uv_handle_t *handle)
{
	struct loop_child *child = handle->data;
	if (--child->open_handles > 0)
		return;
	if (child->setup.on_end != NULL)
		child->setup.on_end(child->setup.context, child->exit_status, child->signal);
	str_clear(&child->line);
	free(child->text);
	free(child);
}

static void close_child_handle(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, child_handle_closed);
}

/* The streams are at their end and the process is gone: close the rest, the last of them calls on_end. */
static void maybe_end_child(struct loop_child *child)
{
	if (!child->exited || child->open_streams > 0 || child->ended)
		return;
	child->ended = true;
	close_child_handle(&child->input);
	close_child_handle(&child->output);
	close_child_handle(&child->errors);
	close_child_handle(&child->grace);
	close_child_handle(&child->process);
}

static void give_line(struct loop_child *child)
{
	child->setup.on_line(child->setup.context, str_text(&child->line), child->line.length);
	str_clear(&child->line);
}

static void take_output(struct loop_child *child, const char *bytes, size_t length)
{
	while (length > 0) {
		const char *newline = memchr(bytes, '\n', length);
		size_t part = newline != NULL ? (size_t)(newline - bytes) : length;
		if (!child->line_overflows && child->line.length + part > child->setup.line_limit) {
			str_append_bytes(&child->line, bytes, child->setup.line_limit - child->line.length);
			child->line_overflows = true;
			give_line(child);
		}
		if (!child->line_overflows)
			str_append_bytes(&child->line, bytes, part);
		if (newline == NULL)
			return;
		if (!child->line_overflows)
			give_line(child);
		child->line_overflows = false;
		bytes += part + 1;
		length -= part + 1;
	}
}

static void allocate_block(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct loop_child *child = handle->data;
	(void)suggested;
	*buffer = uv_buf_init(child->block, sizeof child->block);
}

static void stream_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct loop_child *child = stream->data;
	if (length > 0 && stream == (uv_stream_t *)&child->output) {
		take_output(child, buffer->base, (size_t)length);
	} else if (length > 0) {
		child->setup.on_log(child->setup.context, buffer->base, (size_t)length);
	} else if (length < 0) {
		uv_read_stop(stream);
		child->open_streams--;
		maybe_end_child(child);
	}
}

static void grace_over(uv_timer_t *timer)
{
	struct loop_child *child = timer->data;
	child->open_streams = 0;
	maybe_end_child(child);
}

static void child_exited(uv_process_t *process, int64_t exit_status, int signal_number)
{
	struct loop_child *child = process->data;
	child->exited = true;
	child->exit_status = exit_status;
	child->signal = signal_number;
	if (child->open_streams > 0)
		uv_timer_start(&child->grace, grace_over, STREAMS_GRACE_MS, 0);
	maybe_end_child(child);
}

static void input_written(uv_write_t *request, int status)
{
	(void)request; /* a child that does not read its input shows that by how it ends */
	(void)status;
}

static void init_child_handles(struct loop *loop, struct loop_child *child)
{
	uv_pipe_init(&loop->uv, &child->input, 0);
	uv_pipe_init(&loop->uv, &child->output, 0);
	uv_pipe_init(&loop->uv, &child->errors, 0);
	uv_timer_init(&loop->uv, &child->grace);
	child->input.data = child->output.data = child->errors.data = child->grace.data = child->process.data = child;
	child->open_handles = 5;
}

static int spawn(struct loop *loop, struct loop_child *child)
{
	uv_stdio_container_t streams[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&child->input},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->output},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->errors},
	};
	uv_process_options_t options = {
		.file = child->setup.command->items[0],
		.args = child->setup.command->items,
		.exit_cb = child_exited,
		.stdio = streams,
		.stdio_count = 3,
		.flags = UV_PROCESS_DETACHED, /* Ctrl-C is for us: we then close the workers' inputs */
	};
	return uv_spawn(&loop->uv, &child->process, &options);
}

int loop_child_start(struct loop *loop, const struct loop_child_setup *setup, struct loop_child **result,
		     struct error *error)
{
	struct loop_child *child = memory_new(1, sizeof *child);
	child->setup = *setup;
	init_child_handles(loop, child);
	int code = spawn(loop, child);
	*result = NULL;
	if (code < 0) {
		error_set(error, "cannot run %s: %s", setup->command->items[0], uv_strerror(code));
		child->setup.on_end = NULL; /* belongs to children that started: this one is only taken apart */
		child->exited = true;
		maybe_end_child(child);
		return -1;
	}
	child->open_streams = 2;
	child->text = text_copy(setup->input);
	uv_buf_t buffer = uv_buf_init(child->text, (unsigned)strlen(child->text));
	uv_write(&child->write, (uv_stream_t *)&child->input, &buffer, 1, input_written);
	uv_read_start((uv_stream_t *)&child->output, allocate_block, stream_read);
	uv_read_start((uv_stream_t *)&child->errors, allocate_block, stream_read);
	*result = child;
	return 0;
}

void loop_child_close_input(struct loop_child *child)
{
	close_child_handle(&child->input);
}

void loop_child_kill(struct loop_child *child)
{
	if (!child->exited)
		uv_process_kill(&child->process, SIGKILL);
}

long loop_child_id(const struct loop_child *child)
{
	return (long)child->process.pid;
}
