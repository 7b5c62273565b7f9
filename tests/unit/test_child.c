/* child: how programs start, what they are given, what is gathered of them, and why they could not be run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "os.h"
#include "place.h"

enum { LIMIT = 1 << 20 };

/* A shell with nothing but a PATH. */
static int run_shell(const char *script, const char *folder, long long timeout_ms, size_t limit,
		     struct child_output *output, struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	strlist_add(&command, "sh");
	strlist_add(&command, "-c");
	strlist_add(&command, script);
	strmap_set(&environment, "PATH", "/usr/bin:/bin");
	return child_capture(&command, &environment, folder, timeout_ms, limit, output, error);
}

static void assert_prints(const char *script, const char *folder, const char *expected)
{
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	assert_done(run_shell(script, folder, 30000, LIMIT, &output, &error), &error);
	assert_int_equal(output.status, 0);
	assert_string_equal(str_text(&output.output), expected);
}

/* Descriptors and folders of the test are as they were, whatever the child did. */
static int open_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* ---- given a program that ran, when it is over, then all it said is there ---- */

static void both_streams_and_the_status_are_gathered(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	int before = open_descriptors();
	assert_done(run_shell("echo out; echo err >&2; exit 3", NULL, 30000, LIMIT, &output, &error), &error);
	assert_string_equal(str_text(&output.output), "out\n");
	assert_string_equal(str_text(&output.errors), "err\n");
	assert_true(WIFEXITED(output.status));
	assert_int_equal(WEXITSTATUS(output.status), 3);
	assert_false(output.timed_out);
	assert_int_equal(open_descriptors(), before);
}

static void each_stream_is_cut_at_the_limit_and_read_to_its_end(void **state)
{
	(void)state;
	static const size_t limits[] = {0, 1, 4095, 4096, 4097, 99999};
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_child_output struct child_output output = {0};
		assert_done(run_shell("head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' y "
				      ">&2; exit 7",
				      NULL, 30000, limits[i], &output, &error),
			    &error);
		assert_int_equal(output.output.length, limits[i]);
		assert_int_equal(output.errors.length, limits[i]);
		assert_int_equal(strspn(str_text(&output.output), "x"), limits[i]);
		assert_int_equal(strspn(str_text(&output.errors), "y"), limits[i]);
		assert_int_equal(WEXITSTATUS(output.status), 7); /* it was never blocked */
	}
}

static void output_may_hold_zero_bytes(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	assert_done(run_shell("printf 'a\\0b'", NULL, 30000, LIMIT, &output, &error), &error);
	assert_int_equal(output.output.length, 3);
	assert_memory_equal(output.output.data, "a\0b", 3);
}

static void a_signal_is_told_from_an_exit_status(void **state)
{
	(void)state;
	static const struct {
		const char *script;
		const char *text;
	} cases[] = {{"exit 0", "exit status 0"},
		     {"exit 139", "exit status 139"},
		     {"kill -SEGV $$", "signal 11 (Segmentation fault)"},
		     {"kill -KILL $$", "signal 9 (Killed)"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_child_output struct child_output output = {0};
		assert_done(run_shell(cases[i].script, NULL, 30000, LIMIT, &output, &error), &error);
		cleanup_free char *text = child_status_text(output.status);
		assert_string_equal(text, cases[i].text);
	}
}

/* ---- given a program that does not end, when its time is up, then it is gone ---- */

static void a_program_that_does_not_end_in_time_is_killed_with_its_group(void **state)
{
	static const char *const scripts[] = {
		"echo $$ > pid; sleep 60",                                         /* waits */
		"echo $$ > pid; exec >&- 2>&-; sleep 60",                          /* closed its streams and goes on */
		"echo $$ > pid; trap '' TERM HUP INT; while :; do sleep 60; done", /* does not listen */
		"sleep 60 & echo $! > pid; wait",                                  /* its child holds the streams */
		"sleep 60 & echo $! > pid; exit 0", /* ended itself, its child holds the streams */
	};
	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_child_output struct child_output output = {0};
		cleanup_str struct str pid = {0};
		cleanup_free char *path = path_join(*state, "pid");
		long long before = os_monotonic_ms();
		assert_int_equal(run_shell(scripts[i], *state, 300, LIMIT, &output, &error), -1);
		assert_true(os_monotonic_ms() - before < 20000);
		assert_true(output.timed_out);
		assert_says(&error, "sh did not end within ");
		assert_done(fs_read_file(path, 0, &pid, &error), &error);
		pid_t id = (pid_t)strtol(str_text(&pid), NULL, 10);
		for (int tries = 0; kill(id, 0) == 0 && tries < 2000; tries++) {
			cleanup_str struct str status = {0};
			cleanup_free char *process = text_format("/proc/%d/stat", id);
			if (fs_read_file(process, 0, &status, &error) == 0 && strstr(str_text(&status), ") Z ") != NULL)
				break; /* dead, and only its new parent has not looked yet */
			usleep(1000);
			assert_true(tries < 1999);
		}
	}
}

static void what_it_said_before_its_time_was_up_is_kept(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	assert_int_equal(run_shell("echo early; sleep 60", NULL, 500, LIMIT, &output, &error), -1);
	assert_string_equal(str_text(&output.output), "early\n");
}

static void a_program_that_runs_late_into_its_time_is_not_cut_short(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	assert_done(run_shell("exec >&- 2>&-; sleep 0.2; exit 5", NULL, 30000, LIMIT, &output, &error), &error);
	assert_int_equal(WEXITSTATUS(output.status), 5);
}

/* ---- given a setup, when the child runs, then it has that and nothing else ---- */

static void the_environment_is_exactly_what_was_given(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	setenv("BISECTD_TEST_LEAK", "1", 1);
	strlist_add(&command, "/usr/bin/env");
	for (int i = 0; i < 2; i++) {
		cleanup_child_output struct child_output output = {0};
		assert_done(child_capture(&command, &environment, NULL, 30000, LIMIT, &output, &error), &error);
		assert_string_equal(str_text(&output.output), i == 0 ? "" : "B=two words\nA==\nEMPTY=\n");
		strmap_set(&environment, "B", "two words");
		strmap_set(&environment, "A", "=");
		strmap_set(&environment, "EMPTY", "");
	}
	unsetenv("BISECTD_TEST_LEAK");
}

static void the_own_environment_is_read_as_it_stands(void **state)
{
	(void)state;
	cleanup_strmap struct strmap environment = {0};
	setenv("BISECTD_TEST_A", "b=c", 1);
	setenv("BISECTD_TEST_EMPTY", "", 1);
	child_own_environment(&environment);
	assert_string_equal(strmap_get(&environment, "BISECTD_TEST_A"), "b=c");
	assert_string_equal(strmap_get(&environment, "BISECTD_TEST_EMPTY"), "");
	unsetenv("BISECTD_TEST_A");
	unsetenv("BISECTD_TEST_EMPTY");
}

static void the_folder_is_where_it_starts(void **state)
{
	cleanup_free char *line = text_format("%s\n", (const char *)*state);
	assert_prints("pwd -P", *state, line);
}

static void the_input_is_empty(void **state)
{
	(void)state;
	assert_prints("cat", NULL, "");
}

static void it_has_a_session_of_its_own_and_default_signals(void **state)
{
	(void)state;
	sigset_t blocked;
	sigset_t before;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	assert_prints("[ $(ps -o sid= -p $$) = $$ ] && echo own", NULL, "own\n");
	/* 1 to 31: the C library keeps 32 and 33 to itself, and who started us may have left them ignored */
	assert_prints("while read n v; do case $n in SigBlk:|SigIgn:) echo $((0x$v & 0x7fffffff));; esac; done "
		      "< /proc/self/status",
		      NULL, "0\n0\n");
	signal(SIGPIPE, old);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void it_has_three_descriptors_and_the_extra_one(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(*state, "out");
	for (int fd = 3; fd < 256; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC); /* what the test itself was started with */
	cleanup_fd int output = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	cleanup_fd int extra = fcntl(output, F_DUPFD_CLOEXEC, 100);
	strmap_set(&environment, "PATH", "/usr/bin:/bin");
	strlist_add(&command, "sh");
	strlist_add(&command, "-c");
	/* the shell lists its own, so that no reader of the folder is among them */
	strlist_add(&command, "set -- /proc/$$/fd/*; for fd; do [ ! -e $fd ] || echo ${fd##*/}; done; echo extra "
			      ">>/proc/self/fd/100");
	struct child_setup setup = {.command = &command,
				    .environment = &environment,
				    .input = -1,
				    .output = output,
				    .errors = -1,
				    .extra = extra};
	pid_t id = child_start(&setup, &error);
	assert_done(id, &error);
	int status;
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_done(fs_read_file(path, 0, &contents, &error), &error);
	assert_string_equal(str_text(&contents), "0\n1\n100\n2\nextra\n");
}

/* In a process of its own, whose standard descriptors are closed. */
static void a_parent_without_standard_descriptors_can_run_programs(void **state)
{
	(void)state;
	pid_t id = fork();
	assert_true(id >= 0);
	if (id == 0) {
		struct error error = {0};
		struct child_output output = {0};
		close(0);
		close(1);
		close(2);
		int result = run_shell("echo out; echo err >&2; cat", NULL, 10000, LIMIT, &output, &error);
		bool whole = result == 0 && output.status == 0 && text_equal(str_text(&output.output), "out\n") &&
			     text_equal(str_text(&output.errors), "err\n");
		child_output_clear(&output);
		error_clear(&error);
		_exit(whole ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_int_equal(status, 0);
}

/* ---- given a program that cannot start, when it is tried, then the step and the reason are told ---- */

static int refuse(void *context)
{
	errno = *(const int *)context;
	return -1;
}

static void what_cannot_start_is_told_with_the_step_and_the_reason(void **state)
{
	put_file(*state, "not-executable", "");
	put_file(*state, "no-interpreter", "#!/no/such/interpreter\n");
	cleanup_free char *not_executable = path_join(*state, "not-executable");
	cleanup_free char *no_interpreter = path_join(*state, "no-interpreter");
	cleanup_free char *no_folder = path_join(*state, "none");
	chmod(no_interpreter, 0755);
	int number = EDQUOT;
	const struct {
		const char *program;
		const char *folder;
		int (*before_exec)(void *context);
		const char *message;
	} cases[] = {
		{"no-such-program", NULL, NULL, "cannot run no-such-program: No such file or directory"},
		{"/no/such/program", NULL, NULL, "cannot run /no/such/program: No such file or directory"},
		{"./no-such-program", NULL, NULL, "cannot run ./no-such-program: No such file or directory"},
		{"", NULL, NULL, "cannot run : "},
		{not_executable, NULL, NULL, "not-executable: Permission denied"},
		{no_interpreter, NULL, NULL, "no-interpreter: No such file or directory"},
		{*state, NULL, NULL, ": Permission denied"},
		{"true", no_folder, NULL, "entering the folder for true in "},
		{"true", no_folder, NULL, "/none: No such file or directory"},
		{"true", not_executable, NULL, "/not-executable: Not a directory"},
		{"true", NULL, refuse, "preparing true: Disk quota exceeded"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_strlist struct strlist command = {0};
		cleanup_strmap struct strmap environment = {0};
		strlist_add(&command, cases[i].program);
		strmap_set(&environment, "PATH", "/no/such/folder:/usr/bin:/bin");
		struct child_setup setup = {.command = &command,
					    .environment = &environment,
					    .folder = cases[i].folder,
					    .input = -1,
					    .output = -1,
					    .errors = -1,
					    .extra = -1,
					    .before_exec = cases[i].before_exec,
					    .context = &number};
		int before = open_descriptors();
		assert_int_equal(child_start(&setup, &error), -1);
		assert_says(&error, cases[i].message);
		assert_int_equal(open_descriptors(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left to wait for */
		assert_int_equal(errno, ECHILD);
	}
}

static void a_descriptor_that_is_not_open_is_told(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	strlist_add(&command, "/bin/true");
	for (int i = 0; i < 2; i++) {
		struct child_setup setup = {.command = &command,
					    .environment = &environment,
					    .input = i == 0 ? 250 : -1,
					    .output = -1,
					    .errors = -1,
					    .extra = i == 1 ? 250 : -1};
		assert_int_equal(child_start(&setup, &error), -1);
		assert_string_equal(error_text(&error), "setting up the descriptors of /bin/true: Bad file descriptor");
	}
}

static void the_program_is_searched_on_the_path_of_the_child(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_free char *path =
		text_format("/no/such:%s/plain:%s/tools:/bin", (const char *)*state, (const char *)*state);
	put_file(*state, "plain/sh", "not executable: passed over");
	put_file(*state, "tools/sh", "#!/bin/sh\necho ours\n");
	cleanup_free char *tool = path_join(*state, "tools/sh");
	chmod(tool, 0755);
	strlist_add(&command, "sh");
	strmap_set(&environment, "PATH", path);
	cleanup_child_output struct child_output output = {0};
	assert_done(child_capture(&command, &environment, NULL, 30000, LIMIT, &output, &error), &error);
	assert_string_equal(str_text(&output.output), "ours\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_streams_and_the_status_are_gathered),
		cmocka_unit_test(each_stream_is_cut_at_the_limit_and_read_to_its_end),
		cmocka_unit_test(output_may_hold_zero_bytes),
		cmocka_unit_test(a_signal_is_told_from_an_exit_status),
		in_place(a_program_that_does_not_end_in_time_is_killed_with_its_group),
		cmocka_unit_test(what_it_said_before_its_time_was_up_is_kept),
		cmocka_unit_test(a_program_that_runs_late_into_its_time_is_not_cut_short),
		cmocka_unit_test(the_environment_is_exactly_what_was_given),
		cmocka_unit_test(the_own_environment_is_read_as_it_stands),
		in_place(the_folder_is_where_it_starts),
		cmocka_unit_test(the_input_is_empty),
		cmocka_unit_test(it_has_a_session_of_its_own_and_default_signals),
		in_place(it_has_three_descriptors_and_the_extra_one),
		cmocka_unit_test(a_parent_without_standard_descriptors_can_run_programs),
		in_place(what_cannot_start_is_told_with_the_step_and_the_reason),
		cmocka_unit_test(a_descriptor_that_is_not_open_is_told),
		in_place(the_program_is_searched_on_the_path_of_the_child),
	};
	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
