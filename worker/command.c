/* See command.h. */
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "inside.h"
#include "keep.h"
#include "os.h"

enum {
	LOG_PATIENCE_MS = 5000,
	GRACE_MS = 500,     /* between SIGTERM and SIGKILL */
	GIVE_UP_MS = 10000, /* after SIGKILL, before the sandbox counts as lost */
	WATCH_MS = 100,
	OUTPUT_FACTOR = 64,       /* times the kept output ends a command */
	ADDRESS_SPACE_FACTOR = 8, /* programs map far more than they use */
	TASK_FACTOR = 4,          /* RLIMIT_NPROC counts threads too: the exact limit is the watchdog's */
	TASK_BASE = 64,
	ANSWER_LIMIT = 1 << 20,
	SANDBOX_PROCESSES = 2, /* bwrap and the keeper */
};

/*
 * A reader of the log that stalls may not keep us from the clock: after LOG_PATIENCE_MS bytes are dropped, until it
 * reads again. A pipe that polls as writable takes a block of PIPE_BUF bytes at once.
 */
static void write_log(const char *bytes, size_t length)
{
	static bool stalled;
	struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};
	while (length > 0) {
		int ready = poll(&log, 1, stalled ? 0 : LOG_PATIENCE_MS);
		if (ready < 0 && errno == EINTR)
			continue;
		stalled = ready == 0;
		if (ready <= 0)
			return;
		ssize_t written = write(STDERR_FILENO, bytes, length < PIPE_BUF ? length : PIPE_BUF);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; /* a log that nobody keeps is no reason to stop */
		bytes += written;
		length -= (size_t)written;
	}
}

void log_heading(const char *format, ...)
{
	cleanup_str struct str line = {0};
	va_list arguments;
	str_append(&line, "== ");
	va_start(arguments, format);
	str_append_format_list(&line, format, arguments);
	va_end(arguments);
	str_append(&line, "\n");
	write_log(line.data, line.length);
}

static int send_bytes(const struct sandbox *sandbox, const void *bytes, size_t length)
{
	for (const char *at = bytes; length > 0;) {
		ssize_t written = write(sandbox->control, at, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		at += written;
		length -= (size_t)written;
	}
	return 0;
}

static int receive_bytes(const struct sandbox *sandbox, void *bytes, size_t length)
{
	for (char *at = bytes; length > 0;) {
		ssize_t got = read(sandbox->control, at, length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		at += got;
		length -= (size_t)got;
	}
	return 0;
}

static void append_text(struct str *message, const char *text)
{
	str_append_bytes(message, text, strlen(text) + 1);
}

/* RLIMIT_NPROC is a user's, not a job's: for a user of its own the limit is the job's, else the others' tasks come on
 * top. */
static uint64_t task_limit(const struct sandbox *sandbox, const struct command_setup *setup)
{
	uint64_t tasks = (uint64_t)setup->limits.processes * TASK_FACTOR + TASK_BASE;
	if (setup->user.drop || sandbox->bubblewrap)
		return tasks;
	return tasks + os_user_tasks(getuid());
}

static int send_request(const struct sandbox *sandbox, const struct command_setup *setup)
{
	cleanup_str struct str text = {0};
	append_text(&text, setup->folder);
	for (size_t i = 0; i < setup->words->count; i++)
		append_text(&text, setup->words->items[i]);
	for (size_t i = 0; i < setup->environment->count; i++) {
		cleanup_free char *pair =
			text_format("%s=%s", setup->environment->entries[i].key, setup->environment->entries[i].value);
		append_text(&text, pair);
	}
	const struct inside_request request = {
		.address_space = (uint64_t)setup->limits.memory_bytes * ADDRESS_SPACE_FACTOR,
		.tasks = task_limit(sandbox, setup),
		.file_bytes = (uint64_t)setup->limits.file_bytes,
		.text_bytes = text.length,
		.words = (uint32_t)setup->words->count,
		.variables = (uint32_t)setup->environment->count,
		.drop = setup->user.drop,
		.user = setup->user.user,
		.group = setup->user.group,
	};
	const char start = INSIDE_START;
	if (send_bytes(sandbox, &start, 1) < 0 || send_bytes(sandbox, &request, sizeof request) < 0)
		return -1;
	return send_bytes(sandbox, text.data, text.length);
}

/* A command on its way. */
struct watch {
	struct sandbox *sandbox;
	const struct command_setup *setup;
	struct command_result *result;
	struct keep keep;
	long long deadline; /* for the next step: SIGTERM, SIGKILL, giving up */
	char order;         /* the last one sent, or 0 */
	long long next_look;
	long long memory_kills; /* before it started */
	bool answered;
};

static void give_order(struct watch *watch, enum inside_order order, long long more_ms)
{
	const char byte = (char)order;
	watch->order = byte;
	watch->deadline = os_monotonic_ms() + more_ms;
	send_bytes(watch->sandbox, &byte, 1); /* a keeper that is gone shows as the socket's end */
}

static void stop_now(struct watch *watch, enum command_end reason)
{
	if (watch->result->end == COMMAND_ENDED)
		watch->result->end = reason;
	if (watch->order != INSIDE_KILL)
		give_order(watch, INSIDE_KILL, GIVE_UP_MS);
}

static void lose(struct watch *watch, const char *trouble)
{
	watch->result->end = COMMAND_LOST;
	watch->result->trouble = text_copy(trouble);
	watch->answered = true;
}

static void check_time(struct watch *watch)
{
	if (os_monotonic_ms() < watch->deadline)
		return;
	if (watch->order == INSIDE_KILL) {
		lose(watch, "it could not be killed");
	} else if (watch->order == INSIDE_TERMINATE) {
		give_order(watch, INSIDE_KILL, GIVE_UP_MS);
	} else {
		watch->result->end = COMMAND_OVER_TIME;
		give_order(watch, INSIDE_TERMINATE, GRACE_MS);
	}
}

static void check_usage(struct watch *watch)
{
	const struct command_limits *limits = &watch->setup->limits;
	long long now = os_monotonic_ms();
	if (now < watch->next_look)
		return;
	struct os_usage usage = os_descendants_usage();
	if (usage.resident_bytes > (unsigned long long)limits->memory_bytes)
		stop_now(watch, COMMAND_OVER_MEMORY);
	else if (usage.processes > (unsigned long long)limits->processes + SANDBOX_PROCESSES)
		stop_now(watch, COMMAND_OVER_PROCESSES);
	watch->next_look = os_monotonic_ms() + WATCH_MS;
}

/* What is in the pipe now.  Bounded, so that a flood does not keep us from the clock.  False when it was empty. */
static bool take_output(struct watch *watch)
{
	char block[1 << 16];
	ssize_t got = read(watch->sandbox->output, block, sizeof block);
	if (got <= 0)
		return false;
	write_log(block, keep_add(&watch->keep, block, (size_t)got));
	if (watch->keep.total > (unsigned long long)watch->setup->limits.output_bytes * OUTPUT_FACTOR)
		stop_now(watch, COMMAND_OVER_OUTPUT);
	return true;
}

static void take_answer(struct watch *watch)
{
	struct inside_answer answer;
	struct command_result *result = watch->result;
	if (receive_bytes(watch->sandbox, &answer, sizeof answer) < 0 || answer.text_bytes > ANSWER_LIMIT) {
		lose(watch, "the sandbox ended before the command did");
		return;
	}
	watch->answered = true;
	result->status = answer.status;
	if (answer.text_bytes > 0) {
		result->end = COMMAND_NOT_STARTED;
		result->trouble = memory_new(answer.text_bytes + 1, 1);
		if (receive_bytes(watch->sandbox, result->trouble, answer.text_bytes) < 0)
			result->end = COMMAND_LOST;
	}
	if (answer.survivors > 0) {
		free(result->trouble);
		result->end = COMMAND_LOST;
		result->trouble = text_format("%u processes that it started could not be killed", answer.survivors);
	}
}

static void await_answer(struct watch *watch)
{
	struct pollfd polled[] = {{.fd = watch->sandbox->output, .events = POLLIN},
				  {.fd = watch->sandbox->control, .events = POLLIN}};
	while (!watch->answered) {
		long long now = os_monotonic_ms();
		long long next = watch->deadline < watch->next_look ? watch->deadline : watch->next_look;
		if (poll(polled, 2, next > now ? (int)(next - now) : 0) < 0 && errno != EINTR)
			lose(watch, "poll failed");
		else if (polled[1].revents != 0)
			take_answer(watch);
		else if (polled[0].revents != 0)
			take_output(watch);
		if (watch->answered)
			break;
		check_time(watch);
		check_usage(watch);
		polled[0].revents = polled[1].revents = 0;
	}
	/* all that could write is dead: the pipe holds what there is (but after a loss it may go on for ever) */
	bool more = watch->result->end != COMMAND_LOST;
	while (more)
		more = take_output(watch);
}

/* SIGKILL that we did not send: mostly the system's killer for want of memory, which counts its victims. */
static void tell_memory_kill(struct watch *watch)
{
	struct command_result *result = watch->result;
	bool failed = WIFSIGNALED(result->status) || WEXITSTATUS(result->status) != 0;
	if (result->end == COMMAND_ENDED && failed && watch->memory_kills >= 0 &&
	    os_memory_kills() > watch->memory_kills)
		result->end = COMMAND_SYSTEM_MEMORY;
}

static void log_start(const struct command_setup *setup)
{
	cleanup_str struct str line = {0};
	for (size_t i = 0; i < setup->words->count; i++) {
		if (i > 0)
			str_append(&line, " ");
		str_append_shell_word(&line, setup->words->items[i]);
	}
	log_heading("%s: %s (in %s)", setup->title, str_text(&line), setup->folder);
}

static void log_end(const struct watch *watch)
{
	cleanup_str struct str rest = {0};
	keep_append_rest(&watch->keep, &rest);
	const struct str *last = rest.length > 0 ? &rest : &watch->keep.head;
	if (last->length > 0 && last->data[last->length - 1] != '\n')
		str_append(&rest, "\n");
	write_log(str_text(&rest), rest.length);
	cleanup_free char *end = command_end_text(watch->setup, watch->result);
	log_heading("%s after %lld ms", end, watch->result->ms);
}

void command_run(struct sandbox *sandbox, const struct command_setup *setup, struct command_result *result)
{
	long long start = os_monotonic_ms();
	struct watch watch = {.sandbox = sandbox,
			      .setup = setup,
			      .result = result,
			      .keep = {.limit = (size_t)setup->limits.output_bytes},
			      .deadline = start + setup->limits.wall_ms,
			      .next_look = start + WATCH_MS,
			      .memory_kills = os_memory_kills()};
	*result = (struct command_result){.end = COMMAND_ENDED};
	log_start(setup);
	if (send_request(sandbox, setup) < 0)
		lose(&watch, "the sandbox ended before the command was started");
	await_answer(&watch);
	tell_memory_kill(&watch);
	result->ms = os_monotonic_ms() - start;
	keep_append_all(&watch.keep, &result->output);
	result->output_cut = watch.keep.tail_total > KEEP_TAIL;
	log_end(&watch);
	keep_clear(&watch.keep);
}

char *command_end_text(const struct command_setup *setup, const struct command_result *result)
{
	const struct command_limits *limits = &setup->limits;
	switch (result->end) {
	case COMMAND_ENDED:
		return child_status_text(result->status);
	case COMMAND_OVER_TIME:
		if (limits->wall_ms % 1000 != 0)
			return text_format("it did not end within %lld ms and was stopped", limits->wall_ms);
		return text_format("it did not end within %lld s and was stopped", limits->wall_ms / 1000);
	case COMMAND_OVER_MEMORY:
		return text_format("it used more than %lld MiB of memory and was stopped", limits->memory_bytes >> 20);
	case COMMAND_OVER_PROCESSES:
		return text_format("it had more than %lld processes at once and was stopped", limits->processes);
	case COMMAND_OVER_OUTPUT:
		return text_format("it printed more than %lld bytes and was stopped",
				   limits->output_bytes * OUTPUT_FACTOR);
	case COMMAND_SYSTEM_MEMORY:
		return text_copy("the system ran out of memory and killed a process");
	case COMMAND_NOT_STARTED:
	case COMMAND_LOST:
		break;
	}
	return text_copy(result->trouble != NULL ? result->trouble : "the sandbox failed");
}

void command_result_clear(struct command_result *result)
{
	str_clear(&result->output);
	free(result->trouble);
	*result = (struct command_result){0};
}
