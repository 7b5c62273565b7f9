/* See child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"
#include "os.h"

extern char **environ;

enum step { STEP_SESSION, STEP_FOLDER, STEP_DESCRIPTORS, STEP_PREPARE, STEP_EXEC };

static const char *const step_names[] = {"starting a session for", "entering the folder for",
					 "setting up the descriptors of", "preparing", "cannot run"};

struct trouble {
	enum step step;
	int number;
};

void child_own_environment(struct strmap *environment)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		const char *equals = strchr(*entry, '=');
		if (equals == NULL)
			continue;
		cleanup_free char *key = text_copy_range(*entry, (size_t)(equals - *entry));
		strmap_set(environment, key, equals + 1);
	}
}

char *child_status_text(int status)
{
	if (WIFSIGNALED(status))
		return text_format("signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return text_format("exit status %d", WEXITSTATUS(status));
}

/* execvp would search the PATH of this process; the child's own PATH is what counts. */
static char *find_program(const char *name, const struct strmap *environment)
{
	const char *path = strmap_get(environment, "PATH");
	if (strchr(name, '/') != NULL || path == NULL)
		return text_copy(name);
	while (*path != '\0') {
		size_t length = strcspn(path, ":");
		cleanup_free char *folder = text_copy_range(path, length);
		char *candidate = path_join(length > 0 ? folder : ".", name);
		if (access(candidate, X_OK) == 0)
			return candidate;
		free(candidate);
		path += length + (path[length] == ':');
	}
	return text_copy(name);
}

static _Noreturn void report(int fd, enum step step)
{
	struct trouble trouble = {.step = step, .number = errno};
	ssize_t ignored = write(fd, &trouble, sizeof trouble);
	(void)ignored;
	_exit(127);
}

/* Where our own standard descriptors are closed, what is open may have their numbers: out of the way of what comes there. */
static int above_standard(int fd)
{
	return fd >= 0 && fd <= STDERR_FILENO ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : fd;
}

static int place_descriptor(int from, int to)
{
	if (from < 0)
		from = above_standard(open("/dev/null", (to == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
	if (from < 0)
		return -1;
	return dup2(from, to) < 0 ? -1 : 0;
}

static _Noreturn void become(const struct child_setup *setup, const char *program, char **variables, int trouble_fd)
{
	sigset_t none;
	int given[] = {setup->input, setup->output, setup->errors};
	trouble_fd = above_standard(trouble_fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (setsid() < 0)
		report(trouble_fd, STEP_SESSION);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (given[fd] >= 0 && (given[fd] = above_standard(given[fd])) < 0)
			report(trouble_fd, STEP_DESCRIPTORS);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (place_descriptor(given[fd], fd) < 0)
			report(trouble_fd, STEP_DESCRIPTORS);
	if (setup->extra >= 0 && fcntl(setup->extra, F_SETFD, 0) < 0)
		report(trouble_fd, STEP_DESCRIPTORS);
	if (setup->folder != NULL && chdir(setup->folder) < 0)
		report(trouble_fd, STEP_FOLDER);
	if (setup->before_exec != NULL && setup->before_exec(setup->context) < 0)
		report(trouble_fd, STEP_PREPARE);
	execve(program, setup->command->items, variables);
	report(trouble_fd, STEP_EXEC);
}

static int read_trouble(int fd, struct trouble *trouble)
{
	ssize_t got;
	do
		got = read(fd, trouble, sizeof *trouble);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof *trouble ? -1 : 0;
}

pid_t child_start(const struct child_setup *setup, struct error *error)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "cannot run %s: cannot make a pipe", setup->command->items[0]);
	cleanup_fd int read_end = ends[0];
	cleanup_fd int write_end = ends[1];
	cleanup_free char *program = find_program(setup->command->items[0], setup->environment);
	cleanup_strlist struct strlist variables = {0};
	for (size_t i = 0; i < setup->environment->count; i++)
		strlist_add_owned(&variables, text_format("%s=%s", setup->environment->entries[i].key,
							  setup->environment->entries[i].value));
	char *no_variables[] = {NULL};
	pid_t id = fork();
	if (id < 0)
		return error_set_errno(error, "cannot run %s: cannot start a process", setup->command->items[0]);
	if (id == 0)
		become(setup, program, variables.count > 0 ? variables.items : no_variables, write_end);
	fd_close(&write_end);
	struct trouble trouble;
	if (read_trouble(read_end, &trouble) < 0) {
		waitpid(id, NULL, 0);
		errno = trouble.number;
		return error_set_errno(error, "%s %s%s%s", step_names[trouble.step], setup->command->items[0],
				       setup->folder != NULL && trouble.step == STEP_FOLDER ? " in " : "",
				       setup->folder != NULL && trouble.step == STEP_FOLDER ? setup->folder : "");
	}
	return id;
}

static void keep(struct str *kept, const char *bytes, size_t length, size_t limit)
{
	size_t room = kept->length < limit ? limit - kept->length : 0;
	str_append_bytes(kept, bytes, length < room ? length : room);
}

/* Read both streams until both end.  -1 when the time is up. */
static int gather(int output_fd, int errors_fd, long long deadline, size_t limit, struct child_output *output)
{
	struct pollfd polled[] = {{.fd = output_fd, .events = POLLIN}, {.fd = errors_fd, .events = POLLIN}};
	char block[4096];
	while (polled[0].fd >= 0 || polled[1].fd >= 0) {
		long long left = deadline - os_monotonic_ms();
		if (left <= 0)
			return -1;
		int ready = poll(polled, 2, left < 1000 ? (int)left : 1000);
		if (ready < 0 && errno != EINTR)
			return -1;
		if (ready <= 0)
			continue; /* interrupted: what `revents` says is of the time before, and reading would block */
		for (int i = 0; i < 2; i++) {
			if (polled[i].fd < 0 || polled[i].revents == 0)
				continue;
			ssize_t got = read(polled[i].fd, block, sizeof block);
			if (got > 0)
				keep(i == 0 ? &output->output : &output->errors, block, (size_t)got, limit);
			else if (got == 0 || errno != EINTR)
				polled[i].fd = -1;
		}
	}
	return 0;
}

/* A program may close its streams and go on: -1 when the time is up before it ends; after that, every 2 ms. */
static int wait_until(pid_t id, long long deadline, int *status)
{
	for (;;) {
		pid_t ended = waitpid(id, status, WNOHANG);
		if (ended == id || (ended < 0 && errno != EINTR))
			return 0;
		if (os_monotonic_ms() >= deadline) {
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
			return -1;
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* What answers to this process has nothing to do once it is gone. */
static int die_with_parent(void *unused)
{
	(void)unused;
	os_die_with_parent();
	return 0;
}

int child_capture(const struct strlist *command, const struct strmap *environment, const char *folder,
		  long long timeout_ms, size_t limit, struct child_output *output, struct error *error)
{
	int output_ends[2];
	int errors_ends[2];
	if (pipe2(output_ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "cannot make a pipe for %s", command->items[0]);
	cleanup_fd int output_read = output_ends[0];
	cleanup_fd int output_write = output_ends[1];
	if (pipe2(errors_ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "cannot make a pipe for %s", command->items[0]);
	cleanup_fd int errors_read = errors_ends[0];
	cleanup_fd int errors_write = errors_ends[1];
	struct child_setup setup = {.command = command,
				    .environment = environment,
				    .folder = folder,
				    .input = -1,
				    .output = output_write,
				    .errors = errors_write,
				    .extra = -1,
				    .before_exec = die_with_parent};
	pid_t id = child_start(&setup, error);
	if (id < 0)
		return -1;
	fd_close(&output_write);
	fd_close(&errors_write);
	long long deadline = os_monotonic_ms() + timeout_ms;
	if (gather(output_read, errors_read, deadline, limit, output) < 0) {
		output->timed_out = true;
		kill(-id, SIGKILL);
	}
	while (wait_until(id, deadline, &output->status) < 0) {
		output->timed_out = true;
		kill(-id, SIGKILL);
	}
	if (output->timed_out)
		return error_set(error, "%s did not end within %g s", command->items[0], (double)timeout_ms / 1000);
	return 0;
}

void child_output_clear(struct child_output *output)
{
	str_clear(&output->output);
	str_clear(&output->errors);
}
