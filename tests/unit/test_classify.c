/* What ends mean: every row of the tables in classify.h; the kept output; the recipe. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify.h"
#include "keep.h"
#include "recipe.h"

enum { EXITED = 256 };

struct row {
	enum command_end end;
	int status; /* as from waitpid: EXITED * n exited with n, n was killed by signal n */
	const char *output;
	bool disk_full;
	enum outcome build;
	enum outcome run; /* where exit status 0 is expected */
};

static const struct row rows[] = {
	{COMMAND_ENDED, 0, "", false, OUTCOME_PASS, OUTCOME_PASS},
	{COMMAND_ENDED, 0, "", true, OUTCOME_PASS, OUTCOME_PASS},
	{COMMAND_ENDED, 0, "No space left on device", false, OUTCOME_PASS, OUTCOME_PASS},
	{COMMAND_ENDED, 0, "internal compiler error: x", false, OUTCOME_PASS, OUTCOME_PASS},
	{COMMAND_ENDED, EXITED * 1, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_ENDED, EXITED * 1, "", true, OUTCOME_ERROR, OUTCOME_ERROR},
	{COMMAND_ENDED, EXITED * 1, "cp: No space left on device", false, OUTCOME_ERROR, OUTCOME_FAIL},
	{COMMAND_ENDED, EXITED * 125, "", false, OUTCOME_SKIP, OUTCOME_SKIP},
	{COMMAND_ENDED, EXITED * 126, "", false, OUTCOME_ERROR, OUTCOME_ERROR},
	{COMMAND_ENDED, EXITED * 127, "", false, OUTCOME_ERROR, OUTCOME_ERROR},
	{COMMAND_ENDED, EXITED * 128, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_ENDED, EXITED * 139, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_ENDED, EXITED * 101, "a\nerror: internal compiler error: x\n", false, OUTCOME_ICE, OUTCOME_FAIL},
	{COMMAND_ENDED, SIGSEGV, "", false, OUTCOME_ICE, OUTCOME_CRASH},
	{COMMAND_ENDED, SIGABRT, "", false, OUTCOME_ICE, OUTCOME_CRASH},
	{COMMAND_ENDED, SIGKILL, "", false, OUTCOME_BUILD_FAIL, OUTCOME_CRASH},
	{COMMAND_ENDED, SIGTERM, "", false, OUTCOME_BUILD_FAIL, OUTCOME_CRASH},
	{COMMAND_ENDED, SIGXFSZ, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_NOT_STARTED, 0, "", false, OUTCOME_ERROR, OUTCOME_ERROR},
	{COMMAND_OVER_TIME, SIGKILL, "", false, OUTCOME_BUILD_FAIL, OUTCOME_TIMEOUT},
	{COMMAND_OVER_TIME, 0, "", false, OUTCOME_BUILD_FAIL, OUTCOME_TIMEOUT},
	{COMMAND_OVER_TIME, EXITED * 125, "", false, OUTCOME_BUILD_FAIL, OUTCOME_TIMEOUT},
	{COMMAND_OVER_MEMORY, SIGKILL, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_OVER_PROCESSES, SIGKILL, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_OVER_OUTPUT, SIGKILL, "", false, OUTCOME_BUILD_FAIL, OUTCOME_FAIL},
	{COMMAND_SYSTEM_MEMORY, SIGKILL, "", false, OUTCOME_ERROR, OUTCOME_ERROR},
	{COMMAND_LOST, 0, "", false, OUTCOME_ERROR, OUTCOME_ERROR},
};

static void each_end_has_its_outcome(void **state)
{
	(void)state;
	const struct command_limits limits = {1000, 1 << 20, 10, 100, 1 << 20};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_command_result struct command_result result = {.end = rows[i].end, .status = rows[i].status};
		const struct command_setup build = {.title = "build", .limits = limits};
		const struct command_setup run = {.title = "run", .limits = limits};
		const struct expectation expected = {0};
		cleanup_judgement struct judgement built = {0};
		cleanup_judgement struct judgement ran = {0};
		str_append(&result.output, rows[i].output);
		judge_build(&build, &result, rows[i].disk_full, &built);
		judge_run(&run, &result, &expected, rows[i].disk_full, &ran);
		print_message("row %zu\n", i);
		assert_string_equal(outcome_name(built.outcome), outcome_name(rows[i].build));
		assert_string_equal(outcome_name(ran.outcome), outcome_name(rows[i].run));
		assert_int_equal(built.reason == NULL, built.outcome == OUTCOME_PASS);
		assert_int_equal(ran.reason == NULL, ran.outcome == OUTCOME_PASS);
	}
}

static void an_expected_status_comes_before_its_meaning(void **state)
{
	(void)state;
	const struct command_setup run = {.title = "run"};
	static const int statuses[] = {1, 125, 126, 127, 139};
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
		const struct command_result result = {.status = statuses[i] * EXITED};
		const struct expectation expected = {.exit_status = statuses[i]};
		cleanup_judgement struct judgement judgement = {0};
		judge_run(&run, &result, &expected, false, &judgement);
		assert_int_equal(judgement.outcome, OUTCOME_PASS);
	}
}

static const struct {
	const char *output;
	const char *line; /* NULL: no crash */
} crashes[] = {
	{"", NULL},
	{"error: expected `;`\n", NULL},
	{"warning: x\nerror: internal compiler error: y\n", "error: internal compiler error: y"},
	{"a.c:3:1: internal compiler error: Segmentation fault",
	 "a.c:3:1: internal compiler error: Segmentation fault"},
	{"gcc: internal compiler error: Killed signal terminated program cc1: out of memory", NULL},
	{"12 | \"internal compiler error\"", NULL},
	{"   7 |   // internal compiler error", NULL},
	{"     | internal compiler error", NULL},
	{"error: rustc interrupted by SIGSEGV, printing backtrace",
	 "error: rustc interrupted by SIGSEGV, printing backtrace"},
	{"rustc-LLVM ERROR: cannot select", "rustc-LLVM ERROR: cannot select"},
	{"LLVM ERROR: out of memory", NULL},
	{"process didn't exit successfully: `rustc -vV` (signal: 11, SIGSEGV: invalid memory reference)",
	 "process didn't exit successfully: `rustc -vV` (signal: 11, SIGSEGV: invalid memory reference)"},
	{"process didn't exit successfully: `sccache /a/rustc --x` (signal: 6, SIGABRT: process abort signal)",
	 "process didn't exit successfully: `sccache /a/rustc --x` (signal: 6, SIGABRT: process abort signal)"},
	{"process didn't exit successfully: `/a/rustc --x` (signal: 9, SIGKILL: kill)", NULL},
	{"process didn't exit successfully: `/a/rustc --x` (exit status: 1)", NULL},
	{"process didn't exit successfully: `/b/build-script-build --rustc` (signal: 11, SIGSEGV)", NULL},
	{"process didn't exit successfully: `", NULL},
	{"(signal: process didn't exit successfully: `(signal: ", NULL},
};

static void compiler_crashes_are_told_from_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
		cleanup_free char *line = find_compiler_crash(crashes[i].output, strlen(crashes[i].output));
		print_message("row %zu\n", i);
		if (crashes[i].line == NULL)
			assert_null(line);
		else
			assert_string_equal(line, crashes[i].line);
	}
}

static void the_first_line_is_the_first_with_anything_in_it(void **state)
{
	(void)state;
	cleanup_free char *none = first_line("\n \t\n\0\n", 6);
	assert_null(none);
	cleanup_free char *plain = first_line("\n  \033[31mred\ttext  \nnext", 24);
	assert_string_equal(plain, "red text");
	cleanup_free char *empty = first_line("", 0);
	assert_null(empty);
}

static void runs_are_judged_together(void **state)
{
	(void)state;
	static const struct {
		size_t counts[OUTCOME_COUNT];
		enum outcome outcome;
	} table[] = {
		{{[OUTCOME_PASS] = 5}, OUTCOME_PASS},
		{{[OUTCOME_FAIL] = 5}, OUTCOME_FAIL},
		{{[OUTCOME_PASS] = 3, [OUTCOME_FAIL] = 2}, OUTCOME_FLAKY},
		{{[OUTCOME_PASS] = 4, [OUTCOME_CRASH] = 1}, OUTCOME_FLAKY},
		{{[OUTCOME_PASS] = 4, [OUTCOME_TIMEOUT] = 1}, OUTCOME_FLAKY},
		{{[OUTCOME_FAIL] = 4, [OUTCOME_CRASH] = 1}, OUTCOME_CRASH},
		{{[OUTCOME_FAIL] = 4, [OUTCOME_TIMEOUT] = 1}, OUTCOME_TIMEOUT},
		{{[OUTCOME_TIMEOUT] = 4, [OUTCOME_CRASH] = 1}, OUTCOME_CRASH},
		{{[OUTCOME_PASS] = 1, [OUTCOME_FAIL] = 1, [OUTCOME_SKIP] = 1}, OUTCOME_SKIP},
		{{[OUTCOME_PASS] = 1, [OUTCOME_FAIL] = 1, [OUTCOME_ERROR] = 1}, OUTCOME_ERROR},
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		assert_string_equal(outcome_name(judge_runs(table[i].counts)), outcome_name(table[i].outcome));
}

/* Whatever the sizes of the pieces, head and tail are those of the whole. */
static void output_is_kept_at_both_ends(void **state)
{
	(void)state;
	enum { LIMIT = 1000, MOST = 60000 };
	cleanup_free char *whole = memory_new(MOST, 1);
	for (size_t i = 0; i < MOST; i++)
		whole[i] = (char)('a' + i * 7 % 26);
	static const size_t totals[] = {0,   1, LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + KEEP_TAIL, LIMIT + KEEP_TAIL + 1,
					MOST};
	static const size_t pieces[] = {1, 7, 999, 4096, KEEP_TAIL, KEEP_TAIL + 1, MOST};
	for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
		for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
			cleanup_keep struct keep keep = {.limit = LIMIT};
			cleanup_str struct str kept = {0};
			for (size_t at = 0; at < totals[i]; at += pieces[j])
				keep_add(&keep, whole + at, totals[i] - at < pieces[j] ? totals[i] - at : pieces[j]);
			keep_append_all(&keep, &kept);
			if (totals[i] <= LIMIT + KEEP_TAIL) {
				assert_int_equal(kept.length, totals[i]);
				assert_memory_equal(str_text(&kept), whole, totals[i]);
				continue;
			}
			cleanup_free char *mark =
				text_format("\n[... %zu bytes left out ...]\n", totals[i] - LIMIT - KEEP_TAIL);
			assert_int_equal(kept.length, LIMIT + strlen(mark) + KEEP_TAIL);
			assert_memory_equal(kept.data, whole, LIMIT);
			assert_memory_equal(kept.data + LIMIT, mark, strlen(mark));
			assert_memory_equal(kept.data + LIMIT + strlen(mark), whole + totals[i] - KEEP_TAIL, KEEP_TAIL);
		}
	}
}

static void a_recipe_is_quoted(void **state)
{
	(void)state;
	cleanup_str struct str recipe = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_strlist struct strlist words = {0};
	strmap_set(&environment, "A", "it's");
	strlist_add(&words, "echo");
	strlist_add(&words, "$A");
	strlist_add(&words, "");
	recipe_start(&recipe, "/a folder");
	recipe_add(&recipe, &environment, &words);
	recipe_finish(&recipe);
	assert_string_equal(str_text(&recipe), "cd '/a folder' &&\nenv -i \\\n  'A=it'\\''s' \\\n  echo '$A' ''\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_outcome),
		cmocka_unit_test(an_expected_status_comes_before_its_meaning),
		cmocka_unit_test(compiler_crashes_are_told_from_errors),
		cmocka_unit_test(the_first_line_is_the_first_with_anything_in_it),
		cmocka_unit_test(runs_are_judged_together),
		cmocka_unit_test(output_is_kept_at_both_ends),
		cmocka_unit_test(a_recipe_is_quoted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
