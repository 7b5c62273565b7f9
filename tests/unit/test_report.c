/*
 * report and finding: what a person reads at the end of a walk, and what is posted.  The report of a small matrix
 * stands in tests/unit/data/report/, so it is started from the root of the repository; REPORT_WRITE=1 writes it anew.
 */
#include "finding.h"
#include "place.h"
#include "report.h"
#include "report_matrix.h"
#include "store.h"

enum { TOOLS = 4, CRATES = 3, PROFILES = 2, CELLS = TOOLS * CRATES * PROFILES };

static const char *const tools[] = {"1.62.0", "1.63.0", "1.64.0", "gone"};
static const char *const crates[] = {"0.4.0", "0.5.0", "0.6.0"};
static const char *const profiles[] = {"dev", "release"};
static const bool bad[OUTCOME_COUNT] = {[OUTCOME_FAIL] = true, [OUTCOME_CRASH] = true};

/* A letter of outcome.c a cell, ' ' for an excluded one: a line a tool, in it dev and release for each crate. */
static const char small[CELLS + 1] = "...CFC"
				     "-bTF.C"
				     "!. C C"
				     "------";
static const char all_good[CELLS + 1] = "........................";

static char *combination_of(size_t index)
{
	return text_format("tool=%s crate=%s profile=%s", tools[index / 6], crates[index / 2 % 3], profiles[index % 2]);
}

static enum outcome outcome_of(char letter)
{
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++)
		if (outcome_letter((enum outcome)i) == letter)
			return (enum outcome)i;
	fail_msg("no outcome '%c'", letter);
	return OUTCOME_UNDECIDED;
}

static void save_axis(struct store *store, long long id, size_t position, const char *name, const char *type,
		      size_t stride, const char *const *labels, size_t count)
{
	cleanup_error struct error error = {0};
	long long axis;
	assert_done(store_save_axis(store, id, position, name, type, position < 2, count, stride, &axis, &error),
		    &error);
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *identity = text_format("%s %s", name, labels[i]);
		assert_done(store_save_value(store, axis, i, labels[i], identity,
					     strcmp(labels[i], "0.5.0") == 0 ? "2023-09-13 Use sym" : NULL,
					     strcmp(labels[i], "gone") == 0 ? "no such toolchain" : NULL, &error),
			    &error);
	}
}

static void save_cell(struct store *store, long long id, size_t index, char letter)
{
	cleanup_error struct error error = {0};
	cleanup_free char *combination = combination_of(index);
	cleanup_free char *key = text_format("key%zu", index);
	cleanup_free char *log = NULL;
	struct store_cell cell;
	long long attempt;
	if (letter == ' ')
		return;
	if (index >= 18 && letter == '-') {
		assert_done(store_save_skipped_place(store, id, index, combination, "no such toolchain", &error),
			    &error);
		return;
	}
	assert_done(store_save_place(store, id, index, combination, key, &cell, &error), &error);
	enum outcome outcome = outcome_of(letter);
	const char *reason = outcome == OUTCOME_PASS ? NULL : outcome_meaning(outcome);
	cleanup_result struct result result = {.outcome = outcome,
					       .reason = text_copy(reason),
					       .signature = text_copy(letter == 'C' ? "error: it broke" : NULL),
					       .commands = text_copy("cd /w\ncargo run"),
					       .sandbox = text_copy("bubblewrap")};
	const struct store_decision decision = {.outcome = outcome, .reason = reason, .confirmed = index <= 3, .keeps = index <= 3};
	assert_done(store_commit(store, &error), &error);
	assert_done(store_start_attempt(store, cell.id, "walk", &attempt, &log, &error), &error);
	assert_done(store_finish_attempt(store, attempt, &result, &decision, &error), &error);
	assert_done(store_begin(store, &error), &error);
}

static struct store *open_matrix(const char *folder, const char *letters)
{
	cleanup_error struct error error = {0};
	struct store *store = NULL;
	long long id;
	const struct store_investigation investigation = {
		.name = "usdt-86",
		.question = "Since when?",
		.file = "f",
		.text = "t",
		.notes = "override \"asm\" is in force\nsandbox: none asked for",
		.bad = bad};
	assert_done(store_open(&store, folder, &error), &error);
	assert_done(sql_run(store_connection(store), &error, "PRAGMA synchronous = OFF", ""), &error);
	assert_done(store_begin(store, &error), &error);
	assert_done(store_save_investigation(store, &investigation, &id, &error), &error);
	save_axis(store, id, 0, "tool", "toolchain", 6, tools, TOOLS);
	save_axis(store, id, 1, "crate", "crate", 2, crates, CRATES);
	save_axis(store, id, 2, "profile", "profile", 1, profiles, PROFILES);
	for (size_t i = 0; i < CELLS; i++)
		save_cell(store, id, i, letters[i]);
	assert_done(store_commit(store, &error), &error);
	assert_done(store_set_state(store, id, "finished", &error), &error);
	return store;
}

struct views {
	struct view_investigation about;
	struct view_first_bad first_bad;
	struct view_boundaries boundaries;
	struct view_matrix matrix;
};

static void open_views(struct store *store, struct views *views)
{
	cleanup_error struct error error = {0};
	struct sql *sql = store_connection(store);
	*views = (struct views){0};
	assert_done(view_investigation(sql, "usdt-86", &views->about, &error), &error);
	assert_done(view_first_bad(sql, "usdt-86", &views->first_bad, &error), &error);
	assert_done(view_boundaries(sql, "usdt-86", &views->boundaries, &error), &error);
	assert_done(view_matrix(sql, "usdt-86", &views->matrix, &error), &error);
}

static void close_views(struct views *views)
{
	view_matrix_clear(&views->matrix);
	view_boundaries_clear(&views->boundaries);
	view_first_bad_clear(&views->first_bad);
	view_investigation_clear(&views->about);
}

static void assert_holds(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void add_verdict(struct store *store)
{
	cleanup_error struct error error = {0};
	static const struct store_webhook webhooks[] = {{"team", 1000}};
	struct views views;
	bool added;
	open_views(store, &views);
	json_t *verdict = finding_verdict(&views.about, &views.first_bad, &views.boundaries);
	cleanup_free char *body = json_dumps(verdict, JSON_COMPACT);
	const struct store_finding finding = {.kind = "verdict",
					      .key = "verdict",
					      .title = json_string_value(json_object_get(verdict, "title")),
					      .text = json_string_value(json_object_get(verdict, "text")),
					      .verdict = json_string_value(json_object_get(verdict, "verdict")),
					      .body = body,
					      .webhooks = webhooks,
					      .webhook_count = 1};
	assert_done(store_add_finding(store, 1, &finding, &added, &error), &error);
	assert_done(store_record_delivery(store, 1, "pending", 503, "HTTP 503", 0, &error), &error);
	json_decref(verdict);
	close_views(&views);
}

/* ---- the report ---- */

static void the_report_of_a_small_matrix_reads_as_it_should(void **state)
{
	static const struct {
		const char *letters;
		const char *file;
	} cases[] = {{small, "tests/unit/data/report/small.txt"}, {all_good, "tests/unit/data/report/good.txt"}};
	for (size_t i = 0; i < 2; i++) {
		cleanup_error struct error error = {0};
		cleanup_str struct str text = {0};
		cleanup_str struct str expected = {0};
		cleanup_free char *name = text_format("%zu", i);
		cleanup_free char *folder = path_join(*state, name);
		struct store *store = open_matrix(folder, cases[i].letters);
		add_verdict(store);
		assert_done(report_text(store_connection(store), "usdt-86", "/state", &text, &error), &error);
		if (getenv("REPORT_WRITE") != NULL)
			assert_done(fs_write_file(cases[i].file, str_text(&text), text.length, &error), &error);
		assert_done(fs_read_file(cases[i].file, 0, &expected, &error), &error);
		assert_string_equal(str_text(&text), str_text(&expected));
		store_close(store);
	}
}

static void an_investigation_that_is_not_there_is_named(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	struct store *store = NULL;
	assert_done(store_open(&store, *state, &error), &error);
	assert_int_equal(report_text(store_connection(store), "none", "/state", &text, &error), -1);
	assert_string_equal(error_text(&error), "there is no investigation \"none\" in /state");
	store_close(store);
}

static void one_axis_makes_one_row_and_no_axis_no_matrix(void **state)
{
	(void)state;
	cleanup_str struct str text = {0};
	struct view_value values[] = {{.label = text_copy("a")}, {.label = text_copy("b")}};
	unsigned char outcomes[] = {OUTCOME_PASS, OUTCOME_FAIL};
	struct view_axis axis = {.name = text_copy("tool"), .stride = 1, .values = values, .count = 2};
	const struct view_matrix one = {.axes = &axis, .axis_count = 1, .cell_count = 2, .outcomes = outcomes};
	report_matrix(&(struct view_matrix){0}, &text);
	assert_string_equal(str_text(&text), "");
	report_matrix(&one, &text);
	assert_string_equal(str_text(&text),
			    "\nMatrix\n   1  2 \n   .  F \n  tool: 1 a, 2 b\n  . pass: every run met the expectation\n"
			    "  F fail: every run missed the expectation\n");
	free(axis.name);
	free(values[0].label);
	free(values[1].label);
}

/* ---- findings ---- */

static void assert_member(const json_t *finding, const char *key, const char *json)
{
	cleanup_free char *found = json_dumps(json_object_get(finding, key), JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text_equal(found, json))
		fail_msg("%s is %s instead of %s", key, found, json);
}

static void the_first_bad_combination_is_posted_with_all_that_names_it(void **state)
{
	struct views views;
	struct store *store = open_matrix(*state, small);
	open_views(store, &views);
	json_t *finding = finding_first_bad(&views.about, &views.first_bad, &views.matrix);
	static const char *const members[][2] = {
		{"event", "\"first-bad\""},
		{"investigation", "\"usdt-86\""},
		{"question", "\"Since when?\""},
		{"title", "\"usdt-86: first bad combination: tool=1.62.0 crate=0.5.0 profile=release\""},
		{"final", "true"},
		{"confirmed", "true"},
		{"combination", "\"tool=1.62.0 crate=0.5.0 profile=release\""},
		{"values", "{\"tool\":{\"label\":\"1.62.0\",\"identity\":\"tool "
			   "1.62.0\"},\"crate\":{\"label\":\"0.5.0\",\"identity\":"
			   "\"crate 0.5.0\"},\"profile\":{\"label\":\"release\",\"identity\":\"profile release\"}}"},
		{"outcome", "\"crash\""},
		{"signature", "\"error: it broke\""},
		{"commands", "\"cd /w\\ncargo run\""},
		{"log", "\"logs/4/4.log\""},
		{"cell", "\"key3\""},
	};
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		assert_member(finding, members[i][0], members[i][1]);
	const char *text = json_string_value(json_object_get(finding, "text"));
	const char *markdown = json_string_value(json_object_get(finding, "markdown"));
	static const char *const parts[] = {
		"crash, the program was killed by a signal", "It printed: error: it broke",
		"Confirmed by a clean build and further runs; every earlier combination in walk order is decided.",
		"To repeat it by hand:", "cargo run"};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		assert_holds(text, parts[i]);
		assert_holds(markdown, parts[i]);
	}
	assert_holds(markdown, "| crate | `0.5.0` |\n");
	json_decref(finding);
	close_views(&views);
	store_close(store);
}

static void what_is_not_confirmed_or_not_final_says_so(void **state)
{
	(void)state;
	static const struct {
		bool confirmed;
		bool final;
		const char *text;
	} cases[] = {
		{true, true,
		 "Outcome: fail\nConfirmed by a clean build and further runs; every earlier combination in walk order "
		 "is decided.\n"},
		{false, true,
		 "Outcome: fail\nNot confirmed by a clean build; every earlier combination in walk order is "
		 "decided.\n"},
		{true, false,
		 "Outcome: fail\nConfirmed by a clean build and further runs; earlier combinations could not be "
		 "decided, so an "
		 "earlier one may be bad too.\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct view_investigation about = {.name = text_copy("a")};
		struct view_first_bad first_bad = {.combination = text_copy("x=y"),
						   .outcome = text_copy("fail"),
						   .confirmed = cases[i].confirmed,
						   .final = cases[i].final,
						   .cell_key = text_copy("k")};
		const struct view_matrix matrix = {0};
		json_t *finding = finding_first_bad(&about, &first_bad, &matrix);
		assert_string_equal(json_string_value(json_object_get(finding, "text")), cases[i].text);
		assert_member(finding, "question", "null");
		assert_member(finding, "commands", "null");
		assert_member(finding, "signature", "null");
		json_decref(finding);
		view_first_bad_clear(&first_bad);
		free(about.name);
	}
}

static void a_boundary_is_one_line_that_says_which_way_it_goes(void **state)
{
	(void)state;
	static char crate[] = "crate";
	static char introduced[] = "introduced";
	static char fixed[] = "fixed";
	static char from[] = "0.5.0";
	static char to[] = "0.6.0";
	static char detail[] = "2023 Use sym";
	const struct {
		struct view_boundary boundary;
		const char *line;
	} cases[] = {
		{{.axis = crate, .change = introduced, .from_value = from, .to_value = to, .pairs = 1},
		 "crate: introduced by 0.6.0, 0.5.0 is still good; 1 pair of cells, not confirmed"},
		{{.axis = crate,
		  .change = fixed,
		  .from_value = from,
		  .to_value = to,
		  .to_detail = detail,
		  .pairs = 2,
		  .gap = 1},
		 "crate: fixed by 0.6.0 (2023 Use sym), 0.5.0 is still bad, 1 value between them not tried or without evidence; 2 "
		 "pairs of cells, not "
		 "confirmed"},
		{{.axis = crate,
		  .change = introduced,
		  .from_value = from,
		  .to_value = to,
		  .pairs = 9,
		  .gap = 2,
		  .confirmed = true},
		 "crate: introduced by 0.6.0, 0.5.0 is still good, 2 values between them not tried or without evidence; 9 pairs of "
		 "cells, confirmed by "
		 "clean builds"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_free char *line = finding_boundary_line(&cases[i].boundary);
		assert_string_equal(line, cases[i].line);
	}
}

static void a_boundary_is_posted_with_both_of_its_ends(void **state)
{
	struct views views;
	struct store *store = open_matrix(*state, small);
	open_views(store, &views);
	assert_true(views.boundaries.count > 0);
	for (size_t i = 0; i < views.boundaries.count; i++) {
		const struct view_boundary *boundary = &views.boundaries.items[i];
		json_t *finding = finding_boundary(&views.about, boundary);
		const char *text = json_string_value(json_object_get(finding, "text"));
		bool fixed = strcmp(boundary->change, "fixed") == 0;
		cleanup_free char *ends =
			text_format("%s: %s\n%s: %s\n", fixed ? "last bad" : "last good", boundary->from_combination,
				    fixed ? "first good" : "first bad", boundary->to_combination);
		assert_holds(text, ends);
		assert_string_equal(json_string_value(json_object_get(finding, "event")), "boundary");
		assert_string_equal(json_string_value(json_object_get(finding, "from")), boundary->from_value);
		assert_string_equal(json_string_value(json_object_get(finding, "to")), boundary->to_value);
		assert_int_equal(json_integer_value(json_object_get(finding, "gap")), boundary->gap);
		assert_int_equal(json_integer_value(json_object_get(finding, "pairs")), boundary->pairs);
		json_decref(finding);
	}
	close_views(&views);
	store_close(store);
}

static void a_verdict_blames_nobody_and_says_what_is_missing(void **state)
{
	static const struct {
		const char *letters;
		const char *part;
	} cases[] = {{small, "a difference between versions, compilers or profiles alone is never grounds for blame."},
		     {small, "Missing: evidence from the bad cell itself"},
		     {all_good, "None of the 24 decided combinations is bad: there is nothing to blame anyone for."}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_free char *name = text_format("%zu", i);
		cleanup_free char *folder = path_join(*state, name);
		struct views views;
		struct store *store = open_matrix(folder, cases[i].letters);
		open_views(store, &views);
		json_t *finding = finding_verdict(&views.about, &views.first_bad, &views.boundaries);
		assert_member(finding, "verdict", "\"inconclusive\"");
		assert_holds(json_string_value(json_object_get(finding, "text")), cases[i].part);
		json_decref(finding);
		close_views(&views);
		store_close(store);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_quick_place(the_report_of_a_small_matrix_reads_as_it_should),
		in_quick_place(an_investigation_that_is_not_there_is_named),
		cmocka_unit_test(one_axis_makes_one_row_and_no_axis_no_matrix),
		in_quick_place(the_first_bad_combination_is_posted_with_all_that_names_it),
		cmocka_unit_test(what_is_not_confirmed_or_not_final_says_so),
		cmocka_unit_test(a_boundary_is_one_line_that_says_which_way_it_goes),
		in_quick_place(a_boundary_is_posted_with_both_of_its_ends),
		in_quick_place(a_verdict_blames_nobody_and_says_what_is_missing),
	};
	return cmocka_run_group_tests_name("report, finding", tests, NULL, NULL);
}
