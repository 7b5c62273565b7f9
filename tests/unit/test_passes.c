/*
 * The pass: the search for a limit, whatever the answers; LLVM's lines, whoever wrote them; which switch would change
 * anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence/flips.h"
#include "evidence/limit.h"
#include "evidence/pass_lines.h"
#include "evidence/passes.h"
#include "fs.h"

/* The search. */

enum { MOST = 64 };

/* What each limit answers: 'g', 'b', '?' or 'x' (no time left). */
struct world {
	char answers[MOST + 2];
	size_t asked[MOST + 1];
	size_t questions;
};

static enum sight look(void *context, long long limit)
{
	struct world *world = context;
	assert_in_range(limit, 0, MOST);
	world->questions++;
	assert_int_equal(world->asked[limit]++, 0);
	switch (world->answers[limit]) {
	case 'g':
		return SIGHT_GOOD;
	case 'b':
		return SIGHT_BAD;
	case 'x':
		return SIGHT_END;
	default:
		return SIGHT_UNKNOWN;
	}
}

static struct limit_search search_with(struct world *world, size_t patience, const long long *likely, size_t count)
{
	struct limit_search search = {.bound = (long long)strlen(world->answers) - 1,
				      .patience = patience,
				      .observe = look,
				      .context = world,
				      .likely = likely,
				      .likely_count = count};
	world->questions = 0;
	memset(world->asked, 0, sizeof world->asked);
	limit_search(&search);
	return search;
}

static struct limit_search search(struct world *world, size_t patience)
{
	return search_with(world, patience, NULL, 0);
}

static size_t logarithm(long long number)
{
	size_t result = 0;
	for (long long power = 1; power < number; power *= 2)
		result++;
	return result;
}

static void every_turn_is_found_in_logarithmic_time(void **state)
{
	(void)state;
	for (long long bound = 1; bound <= 40; bound++) {
		for (long long bad = 1; bad <= bound; bad++) {
			struct world world = {0};
			for (long long i = 0; i <= bound; i++)
				world.answers[i] = i < bad ? 'g' : 'b';
			struct limit_search found = search(&world, MOST);
			assert_int_equal(found.end, LIMIT_FOUND);
			assert_int_equal(found.good, bad - 1);
			assert_int_equal(found.bad, bad);
			assert_true(world.questions <= 2 + logarithm(bound));
		}
	}
}

/* Every place and width of a stretch that says nothing: with patience, all but it is settled, and never more is
 * claimed. */
static void unknown_stretches_are_left_out_and_told(void **state)
{
	(void)state;
	for (long long bound = 1; bound <= 40; bound++) {
		for (long long bad = 1; bad <= bound; bad++) {
			for (long long first = 0; first < bound; first++) {
				for (long long last = first; last < bound; last += 3) {
					struct world world = {0};
					for (long long i = 0; i <= bound; i++)
						world.answers[i] = i >= first && i <= last ? '?' : i < bad ? 'g' : 'b';
					struct limit_search found = search(&world, MOST);
					bool hidden = first <= bad && last >= bad - 1;
					bool none = first == 0 && last >= bad - 1;
					if (none) {
						assert_int_equal(found.end, LIMIT_NO_GOOD);
						assert_int_equal(found.good, -1);
					} else {
						assert_int_equal(found.end, hidden ? LIMIT_RANGE : LIMIT_FOUND);
						assert_int_equal(found.good,
								 hidden && first < bad ? first - 1 : bad - 1);
					}
					assert_int_equal(found.bad, hidden && last >= bad ? last + 1 : bad);
				}
			}
		}
	}
}

static void patience_ends(void **state)
{
	(void)state;
	struct world world = {0};
	for (int i = 0; i <= MOST; i++)
		world.answers[i] = i == 0 ? 'g' : i == MOST ? 'b' : '?';
	struct limit_search found = search(&world, 5);
	assert_int_equal(found.end, LIMIT_RANGE);
	assert_int_equal(found.good, 0);
	assert_int_equal(found.bad, MOST);
	assert_int_equal(world.questions, 2 + 5);
}

/* Good and bad in any order: all of 2^11 worlds.  What is found is a turn. */
static void a_turn_is_found_where_good_and_bad_alternate(void **state)
{
	(void)state;
	enum { BOUND = 12 };
	for (unsigned bits = 0; bits < 1U << (BOUND - 1); bits++) {
		struct world world = {.answers = {[0] = 'g', [BOUND] = 'b'}};
		for (int i = 1; i < BOUND; i++)
			world.answers[i] = (bits >> (i - 1) & 1) != 0 ? 'b' : 'g';
		struct limit_search found = search(&world, MOST);
		assert_int_equal(found.end, LIMIT_FOUND);
		assert_int_equal(found.good + 1, found.bad);
		assert_int_equal(world.answers[found.good], 'g');
		assert_int_equal(world.answers[found.bad], 'b');
	}
}

/* Likely limits make it quicker where they are right, and never wrong where they are not. */
static void likely_limits_come_first(void **state)
{
	(void)state;
	enum { BOUND = 60 };
	for (long long bad = 1; bad <= BOUND; bad++) {
		for (unsigned first = 1; first <= BOUND; first += 3) {
			for (size_t count = 1; count <= 8; count++) {
				for (int unknown = 0; unknown <= 1; unknown++) {
					long long likely[8];
					bool right = false;
					struct world world = {0};
					for (int i = 0; i <= BOUND; i++)
						world.answers[i] = i < bad ? 'g' : 'b';
					for (size_t i = 0; i < count; i++) {
						likely[i] = (long long)first + 5LL * (long long)i;
						right = right || likely[i] == bad;
						if (unknown == 1 && likely[i] < BOUND)
							world.answers[likely[i]] = '?';
					}
					struct limit_search found = search_with(&world, MOST, likely, count);
					bool hidden = world.answers[bad] == '?' || world.answers[bad - 1] == '?';
					assert_int_equal(found.end, hidden ? LIMIT_RANGE : LIMIT_FOUND);
					if (!hidden)
						assert_int_equal(found.bad, bad);
					assert_true(found.good < bad && found.bad >= bad);
					if (right && unknown == 0)
						assert_true(world.questions <= 3 + logarithm((long long)count + 1));
				}
			}
		}
	}
}

static void wrong_ends_are_told(void **state)
{
	(void)state;
	static const struct {
		const char *answers;
		enum limit_end end;
		long long good;
		long long bad;
	} rows[] = {
		{"ggggg", LIMIT_NOT_BAD, -1, -1},    {"gggg?", LIMIT_NOT_BAD, -1, -1},
		{"bgggg", LIMIT_NOT_BAD, -1, -1},    {"bbbbb", LIMIT_BAD_AT_ZERO, -1, 0},
		{"bgggb", LIMIT_BAD_AT_ZERO, -1, 0}, {"b", LIMIT_BAD_AT_ZERO, -1, 0},
		{"g", LIMIT_NOT_BAD, -1, -1},        {"????b", LIMIT_NO_GOOD, -1, 4},
		{"??bbb", LIMIT_NO_GOOD, -1, 2},     {"?bbbb", LIMIT_NO_GOOD, -1, 1},
		{"?gbbb", LIMIT_FOUND, 1, 2},        {"?b", LIMIT_NO_GOOD, -1, 1},
		{"gb", LIMIT_FOUND, 0, 1},           {"g?b", LIMIT_RANGE, 0, 2},
		{"ggggx", LIMIT_STOPPED, -1, -1},    {"xgggb", LIMIT_STOPPED, -1, 4},
		{"ggxbb", LIMIT_STOPPED, 0, 4},      {"gxbbb", LIMIT_STOPPED, 0, 2},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world world = {0};
		print_message("row %zu\n", i);
		snprintf(world.answers, sizeof world.answers, "%s", rows[i].answers);
		struct limit_search found = search(&world, MOST);
		assert_int_equal(found.end, rows[i].end);
		assert_int_equal(found.good, rows[i].good);
		assert_int_equal(found.bad, rows[i].bad);
	}
}

/* LLVM's lines. */

static const struct {
	const char *text;
	long long number; /* 0: no such line */
	bool running;
	const char *pass;
	const char *unit;
	const char *function; /* NULL: none */
} lines[] = {
	{"BISECT: running pass (5513) X86 DAG->DAG Instruction Selection on function (main)", 5513, true,
	 "X86 DAG->DAG Instruction Selection", "function (main)", "main"},
	{"BISECT: NOT running pass (2) SimplifyCFGPass on _ZN4main4main17hE", 2, false, "SimplifyCFGPass",
	 "_ZN4main4main17hE", "_ZN4main4main17hE"},
	{"BISECT: running pass (1) annotation2metadata on [module]", 1, true, "annotation2metadata", "[module]", NULL},
	{"BISECT: running pass (7) InlinerPass on (_ZN1aE)", 7, true, "InlinerPass", "(_ZN1aE)", "_ZN1aE"},
	{"BISECT: running pass (7) InlinerPass on (_ZN1aE, _ZN1bE)", 7, true, "InlinerPass", "(_ZN1aE, _ZN1bE)", NULL},
	{"BISECT: running pass (9) licm on Loop at depth 1 containing: %3<header>", 9, true, "licm",
	 "Loop at depth 1 containing: %3<header>", NULL},
	{"BISECT: running pass (9) x on ", 9, true, "x", "", NULL},
	{"BISECT: running pass (9) x on function ()", 9, true, "x", "function ()", NULL},
	{"BISECT: running pass (9) x on ()", 9, true, "x", "()", NULL},
	{"BISECT: running pass (9) x on (", 9, true, "x", "(", "("},
	{"BISECT: running pass (2147483647) x on y", 2147483647, true, "x", "y", "y"},
	{"BISECT: running pass (9) x on y\r", 9, true, "x", "y", "y"},
	{"BISECT: running pass (9) \033[31m on \xff", 9, true, "?[31m", "?", "?"},
	{"BISECT: running pass (2147483648) x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (99999999999999999999999999999999) x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (0) x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (-1) x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass () x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (9 x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass 9 x on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (9) x", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (9) on y", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (9)", 0, false, NULL, NULL, NULL},
	{"BISECT: running pass (", 0, false, NULL, NULL, NULL},
	{"BISECT: running", 0, false, NULL, NULL, NULL},
	{"BISECT: NOT", 0, false, NULL, NULL, NULL},
	{"BISECT: ", 0, false, NULL, NULL, NULL},
	{"", 0, false, NULL, NULL, NULL},
	{"\r", 0, false, NULL, NULL, NULL},
	{" BISECT: running pass (9) x on y", 0, false, NULL, NULL, NULL},
	{"{\"message\":\"BISECT: running pass (9) x on y\"}", 0, false, NULL, NULL, NULL},
};

static void lines_are_parsed_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		cleanup_pass_line struct pass_line line = {0};
		size_t length = strlen(lines[i].text);
		cleanup_free char *exact = memory_new(length + 1, 1); /* for the sanitizer: nothing is read beyond */
		memcpy(exact, lines[i].text, length);
		print_message("row %zu\n", i);
		assert_int_equal(pass_line_parse(exact, length, &line), lines[i].number > 0);
		if (lines[i].number == 0) {
			assert_null(line.text);
			continue;
		}
		cleanup_free char *function = pass_line_function(&line);
		assert_int_equal(line.number, lines[i].number);
		assert_int_equal(line.running, lines[i].running);
		assert_string_equal(line.pass, lines[i].pass);
		assert_string_equal(line.unit, lines[i].unit);
		assert_int_equal(function == NULL, lines[i].function == NULL);
		if (function != NULL)
			assert_string_equal(function, lines[i].function);
	}
}

static int open_text(const void *bytes, size_t length)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fflush(file), 0);
	int fd = dup(fileno(file));
	fclose(file);
	assert_true(fd >= 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static int read_text(const void *bytes, size_t length, long long wanted, long long *passes, struct pass_line *line,
		     struct error *error)
{
	cleanup_fd int fd = open_text(bytes, length);
	return pass_lines_read(fd, wanted, NULL, passes, line, error);
}

static void a_file_is_counted(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		long long passes; /* -1: an error */
		const char *second;
	} rows[] = {
		{"", 0, NULL},
		{"\n\n", 0, NULL},
		{"error: x\n", 0, NULL},
		{"BISECT: running pass (1) a on b\n", 1, NULL},
		{"BISECT: running pass (1) a on b", 1, NULL},
		{"BISECT: running pass (1) a on b\n{\"artifact\":\"x\"}\nBISECT: NOT running pass (2) c on d", 2, "c"},
		{"BISECT: running pass (1) a on b\nBISECT: running pass (2\nBISECT: running pass (2) c on d\n", 2, "c"},
		{"BISECT: running pass (2) a on b\n", -1, NULL},
		{"BISECT: running pass (1) a on b\nBISECT: running pass (1) a on b\n", -1, NULL},
		{"BISECT: running pass (1) a on b\nBISECT: running pass (2) c on d\nBISECT: running pass (2147483647) "
		 "a on b\n",
		 -1, NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_pass_line struct pass_line line = {0};
		cleanup_error struct error error = {0};
		long long passes;
		print_message("row %zu\n", i);
		int got = read_text(rows[i].text, strlen(rows[i].text), 2, &passes, &line, &error);
		assert_int_equal(got, rows[i].passes < 0 ? -1 : 0);
		assert_int_equal(error.text != NULL, got < 0);
		if (got == 0)
			assert_int_equal(passes, rows[i].passes);
		assert_int_equal(line.pass == NULL, rows[i].second == NULL);
		if (line.pass != NULL)
			assert_string_equal(line.pass, rows[i].second);
	}
}

static void a_function_is_printable(void **state)
{
	(void)state;
	cleanup_free char *function = pass_unit_function("\0a\xff", 3);
	assert_string_equal(function, "?a?");
}

/* Many lines, long ones, and pieces of every size: the reader's blocks end anywhere in a line. */
static void a_large_file_is_counted(void **state)
{
	(void)state;
	enum { LINES = 20000, LONG = 9000 };
	cleanup_str struct str text = {0};
	cleanup_free char *name = memory_new(LONG + 1, 1);
	memset(name, 'x', LONG);
	for (int i = 1; i <= LINES; i++)
		str_append_format(&text, "BISECT: running pass (%d) p%d on function (%s)\n", i, i,
				  i % 1000 == 0 ? name : "f");
	cleanup_pass_line struct pass_line line = {0};
	cleanup_pass_line struct pass_line cut = {0};
	cleanup_error struct error error = {0};
	long long passes;
	assert_int_equal(read_text(text.data, text.length, 12345, &passes, &line, &error), 0);
	assert_int_equal(passes, LINES);
	assert_string_equal(line.pass, "p12345");
	assert_int_equal(read_text(text.data, text.length, 3000, &passes, &cut, &error), 0);
	assert_string_equal(cut.pass, "p3000");
	assert_in_range(strlen(cut.text), 1000, LONG);
}

static void anything_else_counts_nothing(void **state)
{
	(void)state;
	enum { LENGTH = 300000 };
	cleanup_free char *bytes = memory_new(LENGTH, 1);
	cleanup_error struct error error = {0};
	cleanup_pass_line struct pass_line line = {0};
	long long passes = -1;
	uint32_t random = 1;
	for (size_t i = 0; i < LENGTH; i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (char)(random >> 24);
	}
	assert_int_equal(read_text(bytes, LENGTH, 1, &passes, &line, &error), 0);
	assert_int_equal(passes, 0);
	memset(bytes, 0, LENGTH); /* one line without an end */
	assert_int_equal(read_text(bytes, LENGTH, 1, &passes, &line, &error), 0);
	assert_int_equal(passes, 0);
	assert_null(line.text);
}

static void a_folder_cannot_be_read(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_pass_line struct pass_line line = {0};
	long long passes;
	FILE *folder = fopen("/", "r");
	assert_non_null(folder);
	assert_int_equal(pass_lines_read(fileno(folder), 1, NULL, &passes, &line, &error), -1);
	assert_non_null(error.text);
	fclose(folder);
}

/* Switches. */

static void settings_are_read_as_rustc_reads_them(void **state)
{
	(void)state;
	static const struct {
		const char *words; /* separated by blanks */
		const char *key;
		const char *value; /* NULL: not set */
	} rows[] = {
		{"rustc main.rs", "opt-level", "0"},
		{"rustc main.rs", "codegen-units", "16"},
		{"rustc main.rs", "lto", NULL},
		{"rustc main.rs", "overflow-checks", "on"},
		{"rustc -O main.rs", "opt-level", "O"},
		{"rustc -O main.rs", "overflow-checks", "off"},
		{"rustc -O -C opt-level=1 main.rs", "opt-level", "1"},
		{"rustc -C opt-level=1 -O main.rs", "opt-level", "O"},
		{"rustc -Copt-level=s", "opt-level", "s"},
		{"rustc --codegen opt-level=s", "opt-level", "s"},
		{"rustc --codegen=opt_level=s", "opt-level", "s"},
		{"rustc -C opt-level=1 -C opt-level=3", "opt-level", "3"},
		{"rustc -C opt-level=3 -C debug-assertions=on", "overflow-checks", "on"},
		{"rustc -C opt-level=3 -C debug-assertions", "overflow-checks", "on"},
		{"rustc -C debug-assertions=no", "overflow-checks", "off"},
		{"rustc -C debug-assertions=no -C overflow-checks=yes", "overflow-checks", "on"},
		{"rustc -C lto", "lto", "fat"},
		{"rustc -C lto=thin", "lto", "thin"},
		{"rustc -C lto=n", "lto", "off"},
		{"rustc -g", "debuginfo", "2"},
		{"rustc -g -C debuginfo=limited", "debuginfo", "1"},
		{"rustc -Z mir-opt-level=0", "-Z mir-opt-level", "0"},
		{"rustc -Zmir-opt-level=0", "-Z mir-opt-level", "0"},
		{"rustc -C", "opt-level", "0"},
		{"rustc -Z", "opt-level", "0"},
		{"rustc -C =", "", ""},
		{"rustc --cfg -C", "opt-level", "0"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_strlist struct strlist words = {0};
		cleanup_strmap struct strmap settings = {0};
		cleanup_free char *text = text_copy(rows[i].words);
		char *rest = NULL;
		print_message("row %zu\n", i);
		for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
			strlist_add(&words, word);
		settings_read(&words, &settings);
		const char *value = strmap_get(&settings, rows[i].key);
		assert_int_equal(value == NULL, rows[i].value == NULL);
		if (value != NULL)
			assert_string_equal(value, rows[i].value);
	}
}

/* A flip's flags set what its row says: after them it makes no difference any more. */
static void each_flip_does_what_its_row_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < flip_count; i++) {
		cleanup_strlist struct strlist words = {0};
		cleanup_strmap struct strmap settings = {0};
		const char *machine = flips[i].machine != NULL ? flips[i].machine : "any";
		print_message("%s\n", flips[i].name);
		for (const char *const *flag = flips[i].flags; *flag != NULL; flag++)
			strlist_add(&words, *flag);
		settings_read(&words, &settings);
		assert_false(flip_differs(&flips[i], &settings, machine));
		strmap_set(&settings, flips[i].key, "something else");
		assert_true(flip_differs(&flips[i], &settings, machine));
		if (flips[i].machine != NULL)
			assert_false(flip_differs(&flips[i], &settings, "aarch64"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_turn_is_found_in_logarithmic_time),
		cmocka_unit_test(unknown_stretches_are_left_out_and_told),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(a_turn_is_found_where_good_and_bad_alternate),
		cmocka_unit_test(likely_limits_come_first),
		cmocka_unit_test(wrong_ends_are_told),
		cmocka_unit_test(lines_are_parsed_or_refused),
		cmocka_unit_test(a_file_is_counted),
		cmocka_unit_test(a_function_is_printable),
		cmocka_unit_test(a_large_file_is_counted),
		cmocka_unit_test(anything_else_counts_nothing),
		cmocka_unit_test(a_folder_cannot_be_read),
		cmocka_unit_test(settings_are_read_as_rustc_reads_them),
		cmocka_unit_test(each_flip_does_what_its_row_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
