/*
 * illumos: see os.h.  Written after proc(5) and the contract file system's manual; not yet built on a real system
 * (docs/design.md, "Portability").
 */
#include "os.h"

#include <ctype.h>
#include <fcntl.h>
#include <procfs.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"

const char *os_name(void)
{
	return "illumos";
}

/* There is no subreaper: descendants are found by session instead (every job starts one, see child.h). */
void os_adopt_orphans(void)
{
}

/* There is no PR_SET_PDEATHSIG: the worker watches for the end of its standard input instead. */
void os_die_with_parent(void)
{
}

int os_leave_network(void)
{
	return -1;
}

const char *os_own_program(void)
{
	return "/proc/self/path/a.out";
}

char *os_program_folder(void)
{
	cleanup_free char *path = realpath(os_own_program(), NULL);
	return path_parent(path != NULL ? path : "./");
}

/* proc(5): a process that changed its user is hidden from it by the system itself. */
void os_hide_process(void)
{
}

/* privileges(7): without PRIV_PROC_SETID in the limit set, set-user-id programs would need a new implementation here. */
int os_forbid_new_privileges(void)
{
	return 0;
}

static int keep_descriptor(void *unused, int fd)
{
	(void)unused;
	if (fd > STDERR_FILENO)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* fdwalk(3C) */
void os_keep_descriptors(void)
{
	fdwalk(keep_descriptor, NULL);
}

/* There is no killer for want of memory: allocations fail instead. */
long long os_memory_kills(void)
{
	return -1;
}

size_t os_user_tasks(uid_t user)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error ignored = {0};
	size_t tasks = 0;
	fs_list_folder("/proc", &names, &ignored);
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *path = text_format("/proc/%s/psinfo", names.items[i]);
		cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		psinfo_t info;
		if (fd >= 0 && read(fd, &info, sizeof info) == (ssize_t)sizeof info && info.pr_uid == user)
			tasks += (size_t)info.pr_nlwp;
	}
	return tasks;
}

static size_t each_descendant(int signal_number, size_t *resident_bytes)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error ignored = {0};
	size_t found = 0;
	fs_list_folder("/proc", &names, &ignored);
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *path = text_format("/proc/%s/psinfo", names.items[i]);
		cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		psinfo_t info;
		if (fd < 0 || read(fd, &info, sizeof info) != (ssize_t)sizeof info)
			continue;
		if (info.pr_pid == getpid() || (info.pr_ppid != getpid() && info.pr_sid != getsid(0)))
			continue;
		found++;
		*resident_bytes += info.pr_rssize * 1024;
		if (signal_number != 0)
			kill(info.pr_pid, signal_number);
	}
	return found;
}

struct os_usage os_descendants_usage(void)
{
	struct os_usage usage = {0};
	usage.processes = each_descendant(0, &usage.resident_bytes);
	return usage;
}

size_t os_kill_descendants(unsigned tries)
{
	size_t left = 0;
	size_t ignored = 0;
	for (unsigned round = 0; round < tries; round++) {
		left = each_descendant(SIGKILL, &ignored);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (left == 0)
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	return left;
}

long long os_monotonic_ms(void)
{
	return (long long)(gethrtime() / 1000000);
}
