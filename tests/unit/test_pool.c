/*
 * loop and pool: timers, background work, children that speak in lines; and whatever a worker does becomes exactly one
 * result. The workers are shell scripts.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop.h"
#include "os.h"
#include "place.h"
#include "pool.h"

static struct loop *open_loop(void)
{
	cleanup_error struct error error = {0};
	struct loop *loop = NULL;
	assert_done(loop_open(&loop, &error), &error);
	return loop;
}

/* ---- timers, work, signals ---- */

struct trace {
	struct loop *loop;
	struct str text;
	struct loop_timer *victim;
	pthread_t thread;
};

/* Each callback leaves its letter. */
#define LETTER(letter)                                                                                                 \
	static void letter(void *context)                                                                              \
	{                                                                                                              \
		struct trace *trace = context;                                                                         \
		str_append(&trace->text, #letter);                                                                     \
	}
LETTER(a)
LETTER(b)
LETTER(c)

static void cancel_victim(void *context)
{
	struct trace *trace = context;
	str_append(&trace->text, "x");
	loop_timer_cancel(&trace->victim);
}

static void stop(void *context)
{
	struct trace *trace = context;
	str_append(&trace->text, "s");
	loop_stop(trace->loop);
}

static void timers_fire_once_in_the_order_of_their_time(void **state)
{
	(void)state;
	struct trace trace = {.loop = open_loop()};
	long long before = os_monotonic_ms();
	loop_timer_start(trace.loop, 40, c, &trace);
	loop_timer_start(trace.loop, 20, b, &trace);
	loop_timer_start(trace.loop, -5, a, &trace);
	loop_run(trace.loop);
	assert_true(os_monotonic_ms() - before >= 39);
	assert_string_equal(str_text(&trace.text), "abc");
	loop_run(trace.loop); /* nothing is left to wait for */
	assert_string_equal(str_text(&trace.text), "abc");
	loop_close(trace.loop);
	str_clear(&trace.text);
}

static void a_cancelled_timer_never_fires(void **state)
{
	(void)state;
	struct trace trace = {.loop = open_loop()};
	struct loop_timer *early = loop_timer_start(trace.loop, 10, a, &trace);
	trace.victim = loop_timer_start(trace.loop, 20, b, &trace);
	loop_timer_start(trace.loop, 5, cancel_victim, &trace);
	loop_timer_start(trace.loop, 30, c, &trace);
	loop_timer_cancel(&early);
	assert_null(early);
	loop_timer_cancel(&early);
	loop_run(trace.loop);
	assert_null(trace.victim);
	assert_string_equal(str_text(&trace.text), "xc");
	loop_close(trace.loop);
	str_clear(&trace.text);
}

static void what_is_left_when_the_loop_stops_is_freed_unheard(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	struct trace trace = {.loop = open_loop()};
	loop_defer(trace.loop, a, &trace);
	loop_timer_start(trace.loop, 5, stop, &trace);
	loop_timer_start(trace.loop, 100000, b, &trace);
	assert_done(loop_on_signal(trace.loop, SIGUSR1, c, &trace, &error), &error);
	loop_run(trace.loop);
	loop_close(trace.loop);
	loop_close(NULL);
	assert_string_equal(str_text(&trace.text), "as");
	str_clear(&trace.text);
}

static void note_thread(void *context)
{
	((struct trace *)context)->thread = pthread_self();
}

static void compare_thread(void *context)
{
	struct trace *trace = context;
	str_append(&trace->text, pthread_equal(trace->thread, pthread_self()) ? "same" : "other");
}

static void work_is_done_on_another_thread_and_ends_on_the_loops(void **state)
{
	(void)state;
	struct trace trace = {.loop = open_loop()};
	loop_work(trace.loop, note_thread, compare_thread, &trace);
	loop_run(trace.loop);
	assert_string_equal(str_text(&trace.text), "other");
	loop_work(trace.loop, note_thread, compare_thread, &trace);
	loop_close(trace.loop); /* waits for it */
	assert_string_equal(str_text(&trace.text), "otherother");
	str_clear(&trace.text);
}

static void send_signal(void *context)
{
	(void)context;
	kill(getpid(), SIGUSR1);
}

static void a_signal_reaches_its_callback_and_keeps_nothing_running(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	struct trace trace = {.loop = open_loop()};
	assert_done(loop_on_signal(trace.loop, SIGUSR1, stop, &trace, &error), &error);
	loop_run(trace.loop);
	assert_string_equal(str_text(&trace.text), "");
	loop_timer_start(trace.loop, 1, send_signal, NULL);
	loop_timer_start(trace.loop, 30000, a, &trace);
	loop_run(trace.loop);
	assert_string_equal(str_text(&trace.text), "s");
	loop_close(trace.loop);
	assert_int_equal(loop_on_signal(trace.loop = open_loop(), 4711, stop, &trace, &error), -1);
	assert_says(&error, "cannot watch signal 4711");
	loop_close(trace.loop);
	str_clear(&trace.text);
}

/* ---- children ---- */

struct heard {
	struct str lines; /* each in brackets */
	struct str log;
	long long exit_status;
	int signal;
	int ends;
};

static void hear_line(void *context, const char *line, size_t length)
{
	struct heard *heard = context;
	assert_int_equal(strlen(line), length);
	str_append_format(&heard->lines, "[%s]", line);
}

static void hear_log(void *context, const char *bytes, size_t length)
{
	str_append_bytes(&((struct heard *)context)->log, bytes, length);
}

static void hear_end(void *context, long long exit_status, int signal_number)
{
	struct heard *heard = context;
	heard->exit_status = exit_status;
	heard->signal = signal_number;
	heard->ends++;
}

static void listen_to(const char *script, const char *input, size_t line_limit, struct heard *heard)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	struct loop *loop = open_loop();
	struct loop_child *child;
	strlist_add(&command, "/bin/sh");
	strlist_add(&command, "-c");
	strlist_add(&command, script);
	*heard = (struct heard){0};
	const struct loop_child_setup setup = {.command = &command,
					       .input = input,
					       .on_line = hear_line,
					       .on_log = hear_log,
					       .on_end = hear_end,
					       .context = heard,
					       .line_limit = line_limit};
	assert_done(loop_child_start(loop, &setup, &child, &error), &error);
	assert_true(loop_child_id(child) > 0);
	loop_run(loop);
	assert_int_equal(heard->ends, 1);
	loop_close(loop);
}

static void forget(struct heard *heard)
{
	str_clear(&heard->lines);
	str_clear(&heard->log);
}

static void lines_arrive_whole_however_they_were_written(void **state)
{
	(void)state;
	static const struct {
		const char *script;
		const char *lines;
		long long exit_status;
		int signal;
	} cases[] = {
		{"", "", 0, 0},
		{"echo one; echo two", "[one][two]", 0, 0},
		{"printf 'one\\n\\ntwo\\n'", "[one][][two]", 0, 0},
		{"printf on; sleep 0.05; printf 'e\\ntw'; sleep 0.05; printf 'o\\n'; exit 4", "[one][two]", 4, 0},
		{"printf 'one\\ncut off'", "[one]", 0, 0}, /* a line ends in a newline */
		{"printf '1234567890\\n'", "[1234567890]", 0, 0},
		{"printf '12345678901\\nnext\\n'", "[1234567890][next]", 0, 0},
		{"printf 12345; sleep 0.05; printf 67890abc; sleep 0.05; printf 'def\\nnext\\n'", "[1234567890][next]",
		 0, 0},
		{"printf '12345678901'; sleep 0.05; printf '\\n\\nnext\\n'", "[1234567890][][next]", 0, 0},
		{"read a b; echo \"$b\"; echo err >&2; kill -KILL $$", "[put]", 0, SIGKILL},
		{"read a; exec >&- 2>&-; sleep 0.05; exit 5", "", 5, 0}, /* ended its streams first */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct heard heard;
		listen_to(cases[i].script, "in put\n", 10, &heard);
		assert_string_equal(str_text(&heard.lines), cases[i].lines);
		assert_string_equal(str_text(&heard.log), cases[i].signal != 0 ? "err\n" : "");
		assert_int_equal(heard.exit_status, cases[i].exit_status);
		assert_int_equal(heard.signal, cases[i].signal);
		forget(&heard);
	}
}

static void more_than_a_pipe_holds_goes_in_and_comes_out(void **state)
{
	(void)state;
	enum { LENGTH = 1000000 };
	struct heard heard;
	cleanup_free char *input = memory_new(LENGTH + 2, 1);
	memset(input, 'x', LENGTH);
	input[LENGTH] = '\n';
	listen_to("line=$(head -n 1); echo $line; echo $line >&2", input, 2 * LENGTH, &heard);
	assert_int_equal(heard.lines.length, LENGTH + 2);
	assert_int_equal(heard.log.length, LENGTH + 1);
	forget(&heard);
	listen_to("exit 3", input, 100, &heard); /* does not read it */
	assert_int_equal(heard.exit_status, 3);
	forget(&heard);
}

static void a_program_that_is_not_there_is_named_and_leaves_nothing(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist command = {0};
	struct heard heard = {0};
	struct loop *loop = open_loop();
	struct loop_child *child;
	strlist_add(&command, "/no/such/program");
	const struct loop_child_setup setup = {.command = &command, .input = "", .on_end = hear_end, .context = &heard};
	assert_int_equal(loop_child_start(loop, &setup, &child, &error), -1);
	assert_string_equal(error_text(&error), "cannot run /no/such/program: no such file or directory");
	assert_null(child);
	loop_run(loop);
	loop_close(loop);
	assert_int_equal(heard.ends, 0);
}

/* ---- workers ---- */

struct told {
	struct pool *pool;
	struct str phases;
	enum outcome outcome;
	char *reason;
	bool stopped;
	int results;
};

static void take_phase(void *context, size_t slot, const char *phase)
{
	str_append_format(&((struct told *)context)->phases, "%zu:%s ", slot, phase);
}

static void take_result(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct told *told = context;
	assert_false(pool_is_busy(told->pool, slot));
	told->results++;
	told->outcome = result->outcome;
	free(told->reason);
	told->reason = text_copy(result->reason);
	told->stopped = stopped;
}

static void stop_pool(void *context)
{
	pool_stop(((struct told *)context)->pool, 100);
	pool_stop(((struct told *)context)->pool, 100);
}

struct work {
	const char *script;
	const char *log;
	long long deadline_ms;
	long long stop_after_ms; /* 0: not at all */
	size_t slots;
};

static void run_workers(const char *folder, const struct work *work, struct told *told)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist launcher = {0};
	cleanup_free char *path = path_join(folder, "worker");
	cleanup_free char *script = text_format("#!/bin/sh\n%s\n", work->script);
	struct loop *loop = open_loop();
	struct job job = {.kind = text_copy("cell"), .id = text_copy("the job")};
	*told = (struct told){0};
	put_file(folder, "worker", script);
	assert_int_equal(chmod(path, 0755), 0);
	assert_done(pool_open(&told->pool, loop, path, &launcher, work->slots, &error), &error);
	assert_int_equal(pool_slots(told->pool), work->slots);
	for (size_t i = 0; i < work->slots; i++) {
		cleanup_free char *log = work->log != NULL ? path_join(folder, work->log) : NULL;
		const struct pool_task task = {.log = log,
					       .deadline_ms = work->deadline_ms,
					       .on_phase = take_phase,
					       .on_result = take_result,
					       .context = told};
		pool_start(told->pool, i, &job, &task);
		assert_true(pool_is_busy(told->pool, i));
	}
	if (work->stop_after_ms > 0)
		loop_timer_start(loop, work->stop_after_ms, stop_pool, told);
	loop_run(loop);
	assert_int_equal(told->results, work->slots);
	loop_close(loop);
	pool_close(told->pool);
	job_clear(&job);
}

static void forget_told(struct told *told)
{
	str_clear(&told->phases);
	free(told->reason);
}

#define RESULT(outcome) "{\"event\":\"result\",\"outcome\":\"" outcome "\",\"reason\":\"why\"}"

static void whatever_a_worker_does_is_one_result(void **state)
{
	static const struct {
		const char *script;
		enum outcome outcome;
		const char *reason;
		const char *phases;
	} cases[] = {
		{"read job; echo '" RESULT("fail") "'", OUTCOME_FAIL, "why", ""},
		{"read job; echo '{\"event\":\"phase\",\"phase\":\"build\"}'; echo "
		 "'{\"event\":\"phase\",\"phase\":\"run 1/3\"}'; echo '" RESULT("pass") "'",
		 OUTCOME_PASS, "why", "0:build 0:run 1/3 "},
		{"read job; printf '{\"event\":\"res'; sleep 0.05; printf 'ult\",\"outcome\":\"ice\"}'; sleep 0.05; "
		 "echo",
		 OUTCOME_ICE, NULL, ""},
		{"read job; case $job in *'\"id\":\"the job\"'*) echo '" RESULT("crash") "';; esac", OUTCOME_CRASH,
		 "why", ""},
		{"echo '{\"event\":\"later\"}'; echo '{\"event\":\"phase\"}'; echo '" RESULT("skip") "'; exit 9",
		 OUTCOME_SKIP, "why", ""},
		{"echo '" RESULT("flaky") "'; kill -SEGV $$", OUTCOME_FLAKY, "why", ""},
		{"exit 0", OUTCOME_ERROR, "the worker ended with status 0 and without a result", ""},
		{"exit 3", OUTCOME_ERROR, "the worker ended with status 3 and without a result", ""},
		{"kill -KILL $$", OUTCOME_ERROR, "the worker was killed by signal 9 (Killed)", ""},
		{"printf '" RESULT("pass") "'", OUTCOME_ERROR, "the worker ended with status 0 and without a result",
		 ""},
		{"echo warning: hello; cat >/dev/null", OUTCOME_ERROR,
		 "the worker printed something that is no JSON event", ""},
		{"echo hello; echo '" RESULT("pass") "'", OUTCOME_ERROR,
		 "the worker printed something that is no JSON event", ""},
		{"echo; cat >/dev/null", OUTCOME_ERROR, "the worker printed something that is no JSON event", ""},
		{"echo '[]'; cat >/dev/null", OUTCOME_ERROR, "the worker printed JSON that is no event", ""},
		{"echo '{\"event\":1}'", OUTCOME_ERROR, "the worker printed JSON that is no event", ""},
		{"echo '{\"event\":\"a\",\"event\":\"b\"}'", OUTCOME_ERROR,
		 "the worker printed something that is no JSON event", ""},
		{"echo '{\"event\":\"result\"}'", OUTCOME_ERROR, "the result has no \"outcome\"", ""},
		{"echo '{\"event\":\"result\",\"outcome\":\"won\"}'", OUTCOME_ERROR,
		 "the result: \"outcome\" has a value of the wrong type", ""},
		{"echo '" RESULT("pass") "'; echo '{\"event\":\"result\",\"outcome\":7}'", OUTCOME_ERROR,
		 "the result: \"outcome\" has a value of the wrong type", ""},
		{"head -c 5000000 /dev/zero | tr '\\0' '\"'", OUTCOME_ERROR, "the worker flooded its output", ""},
		{"cat >/dev/null", OUTCOME_ERROR, "the worker did not end within 0.1 s", ""}, /* ends when it is asked */
		{"echo hello; trap '' TERM; while :; do sleep 1; done", OUTCOME_ERROR,
		 "the worker printed something that is no JSON event", ""}, /* does not end when it is asked */
		{"echo '" RESULT("fail") "'; sleep 60 & exit 0", OUTCOME_FAIL, "why",
		 ""}, /* a stray one holds the streams */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct told told;
		bool waits = strcmp(cases[i].script, "cat >/dev/null") == 0;
		const struct work work = {.script = cases[i].script, .deadline_ms = waits ? 100 : 60000, .slots = 1};
		long long before = os_monotonic_ms();
		run_workers(*state, &work, &told);
		if (told.outcome != cases[i].outcome || !text_equal(told.reason, cases[i].reason))
			fail_msg("%s: %s, %s", cases[i].script, outcome_name(told.outcome), told.reason);
		assert_string_equal(str_text(&told.phases), cases[i].phases);
		assert_false(told.stopped);
		assert_true(os_monotonic_ms() - before < 20000);
		forget_told(&told);
	}
}

static void workers_that_are_stopped_end_at_once_or_are_killed(void **state)
{
	static const char *const scripts[] = {"cat >/dev/null", "trap '' TERM; while :; do sleep 1; done",
					      "echo '" RESULT("pass") "'; cat >/dev/null"};
	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		struct told told;
		const struct work work = {.script = scripts[i], .deadline_ms = 60000, .stop_after_ms = 100, .slots = 3};
		long long before = os_monotonic_ms();
		run_workers(*state, &work, &told);
		assert_true(told.stopped);
		assert_string_equal(told.reason, "bisectd was asked to stop");
		assert_true(os_monotonic_ms() - before < 20000);
		forget_told(&told);
	}
}

static void the_log_is_what_the_worker_says_on_standard_error_made_anew(void **state)
{
	static const char *const words[] = {"first and longer", "second"};
	for (size_t i = 0; i < 2; i++) {
		struct told told;
		cleanup_free char *script =
			text_format("echo %s >&2; echo '" RESULT("pass") "'; echo more >&2", words[i]);
		cleanup_free char *expected = text_format("%s\nmore\n", words[i]);
		const struct work work = {.script = script, .log = "logs/1/2.log", .deadline_ms = 60000, .slots = 1};
		run_workers(*state, &work, &told);
		assert_int_equal(told.outcome, OUTCOME_PASS);
		assert_file(*state, "logs/1/2.log", expected);
		forget_told(&told);
	}
}

static void a_log_that_cannot_be_opened_costs_no_result(void **state)
{
	struct told told;
	put_file(*state, "logs", "a file, no folder");
	const struct work work = {
		.script = "echo err >&2; echo '" RESULT("pass") "'", .log = "logs/1", .deadline_ms = 60000, .slots = 1};
	run_workers(*state, &work, &told);
	assert_int_equal(told.outcome, OUTCOME_PASS);
	forget_told(&told);
}

static void a_log_that_cannot_be_written_is_trouble_and_no_evidence(void **state)
{
	struct told told;
	if (access("/dev/full", W_OK) < 0)
		skip();
	cleanup_free char *log = path_join(*state, "log");
	assert_int_equal(symlink("/dev/full", log), 0);
	const struct work work = {.script = "echo err >&2; sleep 0.1; echo '" RESULT("fail") "'; cat >/dev/null",
				  .log = "log",
				  .deadline_ms = 60000,
				  .slots = 1};
	run_workers(*state, &work, &told);
	assert_int_equal(told.outcome, OUTCOME_ERROR);
	cleanup_free char *expected = text_format("cannot write the log %s: No space left on device", log);
	assert_string_equal(told.reason, expected);
	forget_told(&told);
}

static void a_worker_that_cannot_start_is_refused_or_becomes_a_result(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist launcher = {0};
	struct told told = {0};
	struct loop *loop = open_loop();
	struct job job = {.kind = text_copy("cell")};
	const struct pool_task task = {.deadline_ms = 60000, .on_result = take_result, .context = &told};
	(void)state;
	assert_int_equal(pool_open(&told.pool, loop, "/no/such/worker", &launcher, 1, &error), -1);
	assert_string_equal(error_text(&error), "cannot run the worker /no/such/worker: No such file or directory");
	strlist_add(&launcher, "/no/such/launcher");
	assert_done(pool_open(&told.pool, loop, "/no/such/worker", &launcher, 1, &error), &error);
	for (int i = 1; i <= 2; i++) {
		pool_start(told.pool, 0, &job, &task);
		assert_int_equal(told.results, i - 1); /* later, never at once */
		if (i == 2)
			stop_pool(&told);
		loop_run(loop);
		assert_int_equal(told.results, i);
		assert_int_equal(told.outcome, OUTCOME_ERROR);
		assert_string_equal(told.reason, "cannot run /no/such/launcher: no such file or directory");
		assert_int_equal(told.stopped, i == 2);
	}
	loop_close(loop);
	pool_close(told.pool);
	pool_close(NULL);
	job_clear(&job);
	forget_told(&told);
}

/* A worker may end before it has read its job: writing to it is no reason to die. */
static int ignore_broken_pipes(void **state)
{
	(void)state;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_once_in_the_order_of_their_time),
		cmocka_unit_test(a_cancelled_timer_never_fires),
		cmocka_unit_test(what_is_left_when_the_loop_stops_is_freed_unheard),
		cmocka_unit_test(work_is_done_on_another_thread_and_ends_on_the_loops),
		cmocka_unit_test(a_signal_reaches_its_callback_and_keeps_nothing_running),
		cmocka_unit_test(lines_arrive_whole_however_they_were_written),
		cmocka_unit_test(more_than_a_pipe_holds_goes_in_and_comes_out),
		cmocka_unit_test(a_program_that_is_not_there_is_named_and_leaves_nothing),
		in_place(whatever_a_worker_does_is_one_result),
		in_place(workers_that_are_stopped_end_at_once_or_are_killed),
		in_place(the_log_is_what_the_worker_says_on_standard_error_made_anew),
		in_place(a_log_that_cannot_be_opened_costs_no_result),
		in_place(a_log_that_cannot_be_written_is_trouble_and_no_evidence),
		cmocka_unit_test(a_worker_that_cannot_start_is_refused_or_becomes_a_result),
	};
	return cmocka_run_group_tests_name("loop, pool", tests, ignore_broken_pipes, NULL);
}
