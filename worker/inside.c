/* See inside.h. */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "os.h"

enum { CONTROL_FD = 0, OUTPUT_FD = 1, KILL_TRIES = 400, OPEN_FILES = 4096, TEXT_LIMIT = 16 << 20 };

/* Inside a PID namespace of our own, nothing can hide from kill(-1, ...). */
static bool is_first_process(void)
{
	return getpid() == 1;
}

/* Kill and reap all that is left.  Returns how many could not be killed. */
static uint32_t kill_everything(void)
{
	if (!is_first_process())
		return (uint32_t)os_kill_descendants(KILL_TRIES);
	for (;;) {
		kill(-1, SIGKILL);
		if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
			return 0;
	}
}

static _Noreturn void leave(int status)
{
	kill_everything();
	_exit(status);
}

/* Everything or the end: half a message means that the worker is gone. */
static void read_fully(void *bytes, size_t length)
{
	for (char *at = bytes; length > 0;) {
		ssize_t got = read(CONTROL_FD, at, length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			leave(0);
		at += got;
		length -= (size_t)got;
	}
}

static void write_fully(const void *bytes, size_t length)
{
	for (const char *at = bytes; length > 0;) {
		ssize_t written = write(CONTROL_FD, at, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			leave(0);
		at += written;
		length -= (size_t)written;
	}
}

/* 0 of the limit means none; a hard limit that is lower already stays.  (The resource is unsigned: an enum in glibc.)
 */
static int limit(unsigned resource, uint64_t value)
{
	struct rlimit now;
	if (value == 0)
		return 0;
	if (getrlimit(resource, &now) < 0)
		return -1;
	rlim_t wanted = (rlim_t)value;
	if (now.rlim_max != RLIM_INFINITY && wanted > now.rlim_max)
		wanted = now.rlim_max;
	return setrlimit(resource, &(struct rlimit){.rlim_cur = wanted, .rlim_max = wanted});
}

/* In the child, right before exec. */
static int confine(void *context)
{
	const struct inside_request *request = context;
	/* an earlier command may have made the pipe that both share not block */
	fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) & ~O_NONBLOCK);
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) < 0 || limit(RLIMIT_NOFILE, OPEN_FILES) < 0 ||
	    limit(RLIMIT_AS, request->address_space) < 0 || limit(RLIMIT_FSIZE, request->file_bytes) < 0)
		return -1;
	if (request->drop) {
		gid_t group = (gid_t)request->group;
		uid_t user = (uid_t)request->user;
		if (setgroups(0, NULL) < 0 || setgid(group) < 0 || setuid(user) < 0)
			return -1;
	}
	if (limit(RLIMIT_NPROC, request->tasks) < 0)
		return -1;
	return os_forbid_new_privileges();
}

struct command {
	char *text; /* the bytes of the request */
	const char *folder;
	struct strlist words;
	struct strmap environment;
};

static void command_clear(struct command *command)
{
	free(command->text);
	strlist_clear(&command->words);
	strmap_clear(&command->environment);
}

static const char *next_text(const char **at, const char *end)
{
	const char *text = *at;
	size_t length = strnlen(text, (size_t)(end - text));
	if (text + length >= end)
		leave(1);
	*at = text + length + 1;
	return text;
}

static void read_command(const struct inside_request *request, struct command *command)
{
	if (request->text_bytes == 0 || request->text_bytes > TEXT_LIMIT)
		leave(1);
	command->text = memory_new(request->text_bytes, 1);
	read_fully(command->text, request->text_bytes);
	const char *at = command->text;
	const char *end = at + request->text_bytes;
	command->folder = next_text(&at, end);
	for (uint32_t i = 0; i < request->words; i++)
		strlist_add(&command->words, next_text(&at, end));
	for (uint32_t i = 0; i < request->variables; i++) {
		const char *pair = next_text(&at, end);
		size_t length = strcspn(pair, "=");
		cleanup_free char *name = text_copy_range(pair, length);
		strmap_set(&command->environment, name, pair[length] == '=' ? pair + length + 1 : "");
	}
}

static void obey(pid_t child)
{
	char order;
	read_fully(&order, 1);
	int number = order == INSIDE_TERMINATE ? SIGTERM : SIGKILL;
	if (is_first_process())
		kill(-1, number);
	else
		kill(-child, number);
}

static void on_child(int number)
{
	(void)number; /* only there to interrupt ppoll */
}

/* SIGCHLD is blocked all the time but within ppoll, so that no end of a child is missed. */
static int await_child(pid_t child, const sigset_t *unblocked)
{
	for (;;) {
		int status;
		pid_t id;
		while ((id = waitpid(-1, &status, WNOHANG)) > 0)
			if (id == child)
				return status;
		struct pollfd control = {.fd = CONTROL_FD, .events = POLLIN};
		if (ppoll(&control, 1, NULL, unblocked) > 0)
			obey(child);
	}
}

static void do_command(const struct inside_request *request, const sigset_t *unblocked)
{
	__attribute__((cleanup(command_clear))) struct command command = {0};
	cleanup_error struct error error = {0};
	struct inside_request confinement = *request;
	read_command(request, &command);
	const struct child_setup setup = {.command = &command.words,
					  .environment = &command.environment,
					  .folder = command.folder,
					  .input = -1,
					  .output = OUTPUT_FD,
					  .errors = OUTPUT_FD,
					  .extra = -1,
					  .before_exec = confine,
					  .context = &confinement};
	struct inside_answer answer = {0};
	pid_t child = child_start(&setup, &error);
	if (child >= 0)
		answer.status = await_child(child, unblocked);
	answer.survivors = kill_everything();
	answer.text_bytes = child < 0 ? strlen(error_text(&error)) : 0;
	write_fully(&answer, sizeof answer);
	if (child < 0)
		write_fully(error_text(&error), answer.text_bytes);
}

/* bisect-worker --inside keep|leave [descriptor that the commands may not have]... */
int inside_main(int argc, char **argv)
{
	sigset_t blocked;
	sigset_t unblocked;
	if (argc < 3)
		return 2;
	for (int i = 3; i < argc; i++)
		fcntl((int)strtol(argv[i], NULL, 10), F_SETFD, FD_CLOEXEC);
	os_hide_process();
	if (!is_first_process())
		os_adopt_orphans();
	struct inside_hello hello = {.magic = INSIDE_MAGIC};
	if (strcmp(argv[2], "leave") == 0)
		hello.network_left = os_leave_network() == 0;
	struct sigaction action = {.sa_handler = on_child};
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &unblocked);
	sigdelset(&unblocked, SIGCHLD);
	write_fully(&hello, sizeof hello);
	for (;;) {
		struct inside_request request;
		char order;
		read_fully(&order, 1);
		if (order != INSIDE_START)
			continue;
		read_fully(&request, sizeof request);
		do_command(&request, &unblocked);
	}
}
