/*
 * What differs between operating systems.  One implementation is compiled: os_linux.c or os_illumos.c.
 * Everything else in the project is POSIX.
 */
#ifndef BISECTD_COMMON_OS_H
#define BISECTD_COMMON_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "error.h"
#include "str.h"

/* "linux" or "illumos": the word that `os:` in an investigation is compared with. */
const char *os_name(void);

/* Orphaned descendants become children of this process, where the system can do that. */
void os_adopt_orphans(void);
/* Have this process killed when its parent dies, where the system can do that. */
void os_die_with_parent(void);
/* Take the network away from this process and its children.  -1 where that is not possible or not permitted. */
int os_leave_network(void);

/* A path that runs this very program again, even when its file was replaced meanwhile. */
const char *os_own_program(void);
/* The folder that holds this program's file; owned by the caller. */
char *os_program_folder(void);
/* Nobody but root may look into this process' memory and descriptors, where the system can do that. */
void os_hide_process(void);
/* From here on, set-user-id programs gain nothing.  Async-signal-safe; 0 or -1. */
int os_forbid_new_privileges(void);
/* What this process was started with, but for the standard descriptors, goes no further: close-on-exec. */
void os_keep_descriptors(void);
/* How often the system killed a process for want of memory since it started; -1 where that is not known. */
long long os_memory_kills(void);
/* Processes and threads that belong to a user: what RLIMIT_NPROC counts. */
size_t os_user_tasks(uid_t user);

struct os_usage {
	size_t processes;
	size_t resident_bytes; /* sum over the processes; shared pages count in each */
};

/* All descendants of this process, however they detached themselves, so far as the system can tell. */
struct os_usage os_descendants_usage(void);
/* SIGKILL all descendants, again until none is left (at most `tries` rounds).  Returns how many were left. */
size_t os_kill_descendants(unsigned tries);

/* Milliseconds of a clock that never goes backwards. */
long long os_monotonic_ms(void);

#endif
