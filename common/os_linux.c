/* Linux: see os.h. */
#include "os.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"

const char *os_name(void)
{
	return "linux";
}

void os_adopt_orphans(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void os_die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

int os_leave_network(void)
{
	return unshare(CLONE_NEWNET);
}

const char *os_own_program(void)
{
	return "/proc/self/exe";
}

char *os_program_folder(void)
{
	cleanup_free char *path = realpath(os_own_program(), NULL);
	return path_parent(path != NULL ? path : "./");
}

void os_hide_process(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int os_forbid_new_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* close_range(2): Linux 5.11; before that one by one, as many as a shell hands out. */
void os_keep_descriptors(void)
{
	if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* proc(5): /proc/vmstat, the line "oom_kill N" (Linux 4.13). */
long long os_memory_kills(void)
{
	cleanup_str struct str text = {0};
	cleanup_error struct error ignored = {0};
	if (fs_read_file("/proc/vmstat", 1 << 20, &text, &ignored) < 0)
		return -1;
	const char *line = strstr(str_text(&text), "\noom_kill ");
	return line != NULL ? strtoll(line + strlen("\noom_kill "), NULL, 10) : -1;
}

struct process {
	pid_t id;
	pid_t parent;
	size_t tasks;
	size_t resident_bytes;
	bool descends;
};

/* /proc/PID/stat, proc(5): the name in parentheses may hold anything, so fields are counted from the last ')'. */
static int read_process(pid_t id, struct process *process)
{
	char path[64];
	char text[1024]; /* 52 numbers of at most 20 digits, and a name of at most 64 bytes, cut behind the 24 we read
			  */
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)id);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (length <= 0)
		return -1;
	text[length] = '\0';
	const char *fields = strrchr(text, ')');
	if (fields == NULL)
		return -1;
	char state;
	long parent;
	long tasks;
	long resident_pages;
	int got = sscanf(fields + 1,
			 " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %*u %*u %ld",
			 &state, &parent, &tasks, &resident_pages);
	if (got < 4 || state == 'Z')
		return -1;
	*process = (struct process){
		.id = id,
		.parent = (pid_t)parent,
		.tasks = tasks > 0 ? (size_t)tasks : 1,
		.resident_bytes = resident_pages > 0 ? (size_t)resident_pages * (size_t)sysconf(_SC_PAGESIZE) : 0,
	};
	return 0;
}

struct process_list {
	struct process *items;
	size_t count;
	size_t capacity;
};

static void process_list_clear(struct process_list *list)
{
	free(list->items);
}

static void read_processes(struct process_list *list)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error ignored = {0};
	fs_list_folder("/proc", &names, &ignored);
	for (size_t i = 0; i < names.count; i++) {
		struct process process;
		if (!isdigit((unsigned char)names.items[i][0]))
			continue;
		if (read_process((pid_t)strtol(names.items[i], NULL, 10), &process) < 0)
			continue;
		list->items = memory_grow(list->items, list->count, &list->capacity, sizeof *list->items);
		list->items[list->count++] = process;
	}
}

static int compare_processes(const void *a, const void *b)
{
	const struct process *left = a;
	const struct process *right = b;
	return (left->id > right->id) - (left->id < right->id);
}

static bool parent_descends(const struct process_list *list, pid_t parent)
{
	if (parent == getpid())
		return true;
	const struct process wanted = {.id = parent};
	const struct process *found =
		list->count > 0 ? bsearch(&wanted, list->items, list->count, sizeof wanted, compare_processes) : NULL;
	return found != NULL && found->descends;
}

/* By id, so that a fork bomb's thousands are looked up quickly, and mostly behind their parents. */
static void mark_descendants(struct process_list *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof *list->items, compare_processes);
	for (bool found = true; found;) {
		found = false;
		for (size_t i = 0; i < list->count; i++) {
			struct process *process = &list->items[i];
			if (process->descends || !parent_descends(list, process->parent))
				continue;
			process->descends = true;
			found = true;
		}
	}
}

size_t os_user_tasks(uid_t user)
{
	__attribute__((cleanup(process_list_clear))) struct process_list list = {0};
	size_t tasks = 0;
	read_processes(&list);
	for (size_t i = 0; i < list.count; i++) {
		cleanup_free char *path = text_format("/proc/%ld", (long)list.items[i].id);
		struct stat status;
		if (stat(path, &status) == 0 && status.st_uid == user)
			tasks += list.items[i].tasks;
	}
	return tasks;
}

struct os_usage os_descendants_usage(void)
{
	__attribute__((cleanup(process_list_clear))) struct process_list list = {0};
	struct os_usage usage = {0};
	read_processes(&list);
	mark_descendants(&list);
	for (size_t i = 0; i < list.count; i++) {
		if (!list.items[i].descends)
			continue;
		usage.processes++;
		usage.resident_bytes += list.items[i].resident_bytes;
	}
	return usage;
}

/* Reaps all that ended; false while children are left. */
static bool reap(void)
{
	pid_t id;
	do
		id = waitpid(-1, NULL, WNOHANG);
	while (id > 0);
	return id < 0 && errno == ECHILD;
}

static bool adopts_orphans(void)
{
	int subreaper = 0;
	return prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) == 0 && subreaper != 0;
}

/* How many there were. */
static size_t kill_known_descendants(void)
{
	__attribute__((cleanup(process_list_clear))) struct process_list list = {0};
	size_t killed = 0;
	read_processes(&list);
	mark_descendants(&list);
	for (size_t i = 0; i < list.count; i++) {
		if (!list.items[i].descends)
			continue;
		kill(list.items[i].id, SIGKILL);
		killed++;
	}
	return killed;
}

/*
 * A list of processes is no snapshot: one whose parent died while it was read belongs to nobody in it.  A subreaper knows better:
 * without children it has no descendants, since nobody else could have adopted them, and with children it has to look again.
 */
size_t os_kill_descendants(unsigned tries)
{
	bool certain = adopts_orphans();
	size_t left = 0;
	for (unsigned round = 0; round < tries; round++) {
		if (reap() && certain)
			return 0;
		left = kill_known_descendants();
		if (left == 0 && !certain)
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return !certain || left > 0 ? left : !reap();
}

long long os_monotonic_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
