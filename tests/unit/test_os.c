/*
 * os: descendants are found and killed however they detached themselves.  Each script runs in a child of the test,
 * which is a subreaper, as the worker is.
 */
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "os.h"
#include "place.h"

static pid_t start(const char *script)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	strlist_add(&command, "/bin/sh");
	strlist_add(&command, "-c");
	strlist_add(&command, script);
	strmap_set(&environment, "PATH", "/usr/bin:/bin");
	struct child_setup setup = {
		.command = &command, .environment = &environment, .input = -1, .output = -1, .errors = -1, .extra = -1};
	pid_t id = child_start(&setup, &error);
	assert_done(id, &error);
	return id;
}

/* Scripts take their time to start what they start. */
static void await_descendants(size_t count)
{
	for (int tries = 0; os_descendants_usage().processes != count; tries++) {
		if (tries == 10000)
			fail_msg("%zu descendants instead of %zu", os_descendants_usage().processes, count);
		usleep(1000);
	}
}

static int adopt(void **state)
{
	(void)state;
	os_adopt_orphans();
	return 0;
}

static int kill_all(void **state)
{
	(void)state;
	return os_kill_descendants(10000) == 0 ? 0 : -1;
}

#define among_descendants(test) cmocka_unit_test_setup_teardown(test, adopt, kill_all)

static const struct {
	const char *script;
	size_t processes;
} families[] = {
	{"exec sleep 60", 1},
	{"sleep 60 & wait", 2},
	{"setsid sleep 60 & wait", 2},
	{"setsid sleep 60 & exit", 1},                                  /* an orphan in a session of its own */
	{"setsid sh -c 'setsid sleep 60 & sleep 60 & exit' & exit", 2}, /* orphans of orphans */
	{"sh -c 'sh -c \"sh -c \\\"sleep 60 & wait\\\" & wait\" & wait' & wait", 5}, /* deep */
	{"for i in 1 2 3 4 5 6 7 8 9; do setsid sleep 60 & done; wait", 10},         /* wide */
	{"trap '' TERM HUP INT; sleep 60 & wait", 2},                                /* does not listen */
	{"while :; do sleep 60; done", 2},                                           /* starts it again */
	{"sleep 60 & kill -STOP $!; wait", 2},                                       /* stopped */
};

static void every_descendant_is_counted_with_its_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		start(families[i].script);
		await_descendants(families[i].processes);
		size_t tries = 0; /* one that is about to become another program has none */
		while (os_descendants_usage().resident_bytes < families[i].processes * 4096 && tries++ < 10000)
			usleep(1000);
		assert_true(tries < 10000);
		assert_int_equal(os_kill_descendants(10000), 0);
	}
}

static void every_descendant_is_killed_and_reaped(void **state)
{
	(void)state;
	enum { COUNT = sizeof families / sizeof families[0] };
	for (size_t i = 0; i < 2 * COUNT; i++) {
		start(families[i % COUNT].script);
		if (i < COUNT) /* the second time in the middle of their start, when parents end while they are looked
				  for */
			await_descendants(families[i].processes);
		assert_int_equal(os_kill_descendants(10000), 0);
		assert_int_equal(os_descendants_usage().processes, 0);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
}

static void a_name_with_parentheses_confuses_nobody(void **state)
{
	char *const folder = *state;
	cleanup_free char *program = path_join(folder, "a) R 1 1");
	cleanup_free char *script = text_format("cp /bin/sleep '%s' && '%s' 60 & wait", program, program);
	os_adopt_orphans();
	start(script);
	await_descendants(2); /* with the copying subshell's place taken by the program, or beside it */
	assert_int_equal(os_kill_descendants(10000), 0);
	assert_int_equal(os_descendants_usage().processes, 0);
}

static void memory_that_is_used_is_counted(void **state)
{
	(void)state;
	enum { BYTES = 64 << 20 };
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0);
	pid_t id = fork();
	assert_true(id >= 0);
	if (id == 0) {
		volatile char *memory = malloc(BYTES);
		for (size_t i = 0; memory != NULL && i < BYTES; i += 1024)
			memory[i] = 1;
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(os_descendants_usage().resident_bytes >= BYTES);
	close(ends[0]);
	close(ends[1]);
}

static void processes_that_are_no_descendants_are_left_alone(void **state)
{
	(void)state;
	pid_t bystander = start("exec sleep 60");
	pid_t id = fork(); /* from its place in the tree the bystander is a sibling */
	assert_true(id >= 0);
	if (id == 0) {
		os_adopt_orphans();
		pid_t own = fork();
		if (own == 0) {
			pause();
			_exit(0);
		}
		bool one = os_descendants_usage().processes == 1;
		_exit(one && os_kill_descendants(10000) == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(bystander, &status, WNOHANG), 0);
}

static void without_descendants_there_is_nothing_to_kill(void **state)
{
	(void)state;
	assert_int_equal(os_descendants_usage().processes, 0);
	assert_int_equal(os_descendants_usage().resident_bytes, 0);
	assert_int_equal(os_kill_descendants(1), 0);
}

/* In a process of its own, since none of it can be taken back. */
static int status_of(int (*function)(void))
{
	int status;
	pid_t id = fork();
	assert_true(id >= 0);
	if (id == 0)
		_exit(function());
	assert_int_equal(waitpid(id, &status, 0), id);
	return status;
}

static int forbids_new_privileges(void)
{
	return os_forbid_new_privileges() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static int hides(void)
{
	os_hide_process();
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int keeps_descriptors(void)
{
	int inherited = dup(STDERR_FILENO);
	os_keep_descriptors();
	bool standard = fcntl(STDIN_FILENO, F_GETFD) == 0 && fcntl(STDERR_FILENO, F_GETFD) == 0;
	return standard && fcntl(inherited, F_GETFD) == FD_CLOEXEC ? 0 : 1;
}

static int dies_with_its_parent(void)
{
	int ends[2];
	char byte;
	if (pipe(ends) < 0)
		return 1;
	if (fork() == 0) {
		os_die_with_parent();
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	return read(ends[0], &byte, 1) == 1 ? 0 : 1;
}

static void what_cannot_be_taken_back_is_done(void **state)
{
	(void)state;
	int status;
	assert_int_equal(status_of(forbids_new_privileges), 0);
	assert_int_equal(status_of(hides), 0);
	assert_int_equal(status_of(keeps_descriptors), 0);
	assert_int_equal(status_of(dies_with_its_parent), 0);
	assert_true(waitpid(-1, &status, 0) > 0); /* the grandchild, which was adopted */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void the_system_is_described(void **state)
{
	(void)state;
	char own[PATH_MAX] = "";
	cleanup_free char *resolved = realpath(os_own_program(), NULL);
	assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
	assert_string_equal(resolved, own);
	assert_string_equal(os_name(), "linux");
	assert_true(os_user_tasks(getuid()) >= 1);
	assert_int_equal(os_user_tasks(1234567), 0);
	assert_true(os_memory_kills() >= -1);
}

static void the_clock_counts_milliseconds_forwards(void **state)
{
	(void)state;
	long long before = os_monotonic_ms();
	usleep(20000);
	long long passed = os_monotonic_ms() - before;
	assert_true(passed >= 19 && passed < 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		among_descendants(every_descendant_is_counted_with_its_memory),
		among_descendants(every_descendant_is_killed_and_reaped),
		in_place(a_name_with_parentheses_confuses_nobody),
		among_descendants(memory_that_is_used_is_counted),
		among_descendants(processes_that_are_no_descendants_are_left_alone),
		among_descendants(without_descendants_there_is_nothing_to_kill),
		among_descendants(what_cannot_be_taken_back_is_done),
		cmocka_unit_test(the_system_is_described),
		cmocka_unit_test(the_clock_counts_milliseconds_forwards),
	};
	return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	puts("[  SKIPPED ] 9 test(s): the tests of os_linux.c need Linux");
	return 0;
}
#endif
