/*
 * report and finding: what a person reads at the end of a walk, and what is posted.  The report of a small matrix
 * stands in tests/unit/data/report/, so it is started from the root of the repository; REPORT_WRITE=1 writes it anew.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "finding.h"
#include "place.h"
#include "report.h"
#include "report_artifact.h"
#include "report_format.h"
#include "store.h"
#include "verdict.h"

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

static void save_axis(struct store *store, long long id, size_t position, const char *name, const char *type, size_t stride,
		      const char *const *labels, size_t count)
{
	cleanup_error struct error error = {0};
	long long axis;
	assert_done(store_save_axis(store, id, position, name, type, position < 2, count, stride, &axis, &error), &error);
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
		assert_done(store_save_skipped_place(store, id, index, combination, "no such toolchain", &error), &error);
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
	const struct store_investigation investigation = {.name = "usdt-86",
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
	json_t *verdict = finding_verdict(&views.about, &views.first_bad, &views.boundaries, NULL);
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

static char *make_report(struct store *store, const char *name, const char *state_folder, enum report_format format)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist names = {0};
	struct str report = {0};
	const struct report_options options = {.format = format, .state_folder = state_folder};
	strlist_add(&names, name);
	assert_done(report_make(store_connection(store), &names, &options, &report, &error), &error);
	return str_steal(&report);
}

/* ---- evidence, as the store keeps it ---- */

enum { FIRST_BAD_CELL = 4 }; /* of `small`: walk index 3 */

static json_t *read_evidence(void)
{
	json_error_t trouble;
	json_t *evidence = json_load_file("tests/unit/data/report/evidence.json", 0, &trouble);
	if (evidence == NULL)
		fail_msg("evidence.json:%d: %s", trouble.line, trouble.text);
	return evidence;
}

static void save_evidence(struct store *store, const char *kind, long long other, const json_t *row, const json_t *data)
{
	cleanup_error struct error error = {0};
	enum outcome outcome = OUTCOME_PASS;
	const char *word = json_string_value(json_object_get(row, "outcome"));
	cleanup_free char *dump = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
	if (word != NULL)
		assert_true(outcome_parse(word, &outcome));
	const struct store_evidence evidence = {.cell_id = FIRST_BAD_CELL,
						.kind = kind,
						.other_id = other,
						.outcome = outcome,
						.reason = json_string_value(json_object_get(row, "reason")),
						.data = dump};
	assert_done(store_save_evidence(store, &evidence, &error), &error);
}

static void save_twin(struct store *store, const json_t *twin, const char *key)
{
	cleanup_error struct error error = {0};
	cleanup_free char *edit = json_dumps(json_object_get(twin, "edit"), JSON_COMPACT);
	cleanup_free char *log = NULL;
	struct store_cell cell;
	long long attempt;
	const struct store_twin row = {.of_cell_id = FIRST_BAD_CELL,
				       .name = json_string_value(json_object_get(twin, "name")),
				       .origin = json_string_value(json_object_get(twin, "origin")),
				       .edit = edit,
				       .cell_key = key};
	assert_done(store_save_twin(store, &row, &cell, &error), &error);
	cleanup_result struct result result = {.outcome = OUTCOME_PASS, .commands = text_copy("cargo run --twin")};
	const struct store_decision decision = {.outcome = OUTCOME_PASS, .keeps = true};
	assert_done(store_start_attempt(store, cell.id, "walk", &attempt, &log, &error), &error);
	assert_done(store_finish_attempt(store, attempt, &result, &decision, &error), &error);
}

static void save_all_evidence(struct store *store, const json_t *evidence)
{
	size_t index;
	json_t *row;
	save_evidence(store, "build", FIRST_BAD_CELL, NULL, json_object_get(evidence, "build"));
	save_evidence(store, "passes", FIRST_BAD_CELL, NULL, json_object_get(evidence, "passes"));
	json_array_foreach (json_object_get(evidence, "neighbours"), index, row)
		save_evidence(store, "neighbour", json_integer_value(json_object_get(row, "other")), row,
			      json_object_get(row, "data"));
	json_array_foreach (json_object_get(evidence, "twins"), index, row) {
		cleanup_free char *key = text_format("twin%zu", index);
		save_twin(store, row, key);
	}
}

/* ---- the report ---- */

/* The sentences of the verdict have tests of their own (test_verdict.c). */
static void cut_verdict(char *report)
{
	char *verdict = strstr(report, "\nVerdict\n");
	const char *after = strstr(report, "\nWebhook deliveries\n");
	assert_true(verdict != NULL && after > verdict);
	memmove(verdict, after, strlen(after) + 1);
}

static void the_report_of_a_small_matrix_reads_as_it_should(void **state)
{
	static const struct {
		const char *letters;
		const char *file;
	} cases[] = {{small, "tests/unit/data/report/small.txt"}, {all_good, "tests/unit/data/report/good.txt"}};
	for (size_t i = 0; i < 2; i++) {
		cleanup_error struct error error = {0};
		cleanup_str struct str expected = {0};
		cleanup_free char *name = text_format("%zu", i);
		cleanup_free char *folder = path_join(*state, name);
		struct store *store = open_matrix(folder, cases[i].letters);
		add_verdict(store);
		cleanup_free char *text = make_report(store, "usdt-86", "/state", REPORT_TEXT);
		cut_verdict(text);
		if (getenv("REPORT_WRITE") != NULL)
			assert_done(fs_write_file(cases[i].file, text, strlen(text), &error), &error);
		assert_done(fs_read_file(cases[i].file, 0, &expected, &error), &error);
		assert_string_equal(text, str_text(&expected));
		store_close(store);
	}
}

static void an_investigation_that_is_not_there_is_named(void **state)
{
	for (int format = REPORT_TEXT; format <= REPORT_HTML; format++) {
		cleanup_error struct error error = {0};
		cleanup_str struct str text = {0};
		cleanup_strlist struct strlist names = {0};
		struct store *store = NULL;
		const struct report_options options = {.format = (enum report_format)format, .state_folder = "/state"};
		strlist_add(&names, "none");
		assert_done(store_open(&store, *state, &error), &error);
		assert_int_equal(report_make(store_connection(store), &names, &options, &text, &error), -1);
		assert_string_equal(error_text(&error), "there is no investigation \"none\" in /state");
		assert_int_equal(text.length, 0);
		store_close(store);
	}
}

static void one_axis_makes_one_row_and_no_axis_no_matrix(void **state)
{
	(void)state;
	cleanup_str struct str text = {0};
	struct view_value values[] = {{.label = text_copy("a")}, {.label = text_copy("b")}};
	unsigned char outcomes[] = {OUTCOME_PASS, OUTCOME_FAIL};
	struct view_axis axis = {.name = text_copy("tool"), .stride = 1, .values = values, .count = 2};
	const struct view_matrix one = {.axes = &axis, .axis_count = 1, .cell_count = 2, .outcomes = outcomes};
	report_matrix_rows(&(struct view_matrix){0}, "  ", 10, &text);
	report_matrix_legend(&(struct view_matrix){0}, "  ", &text);
	assert_string_equal(str_text(&text), "");
	report_matrix_rows(&one, "  ", 10, &text);
	report_matrix_legend(&one, "  ", &text);
	assert_string_equal(str_text(&text), "   1  2\n   .  F\n  tool: 1 a, 2 b\n  . pass: every run met the expectation\n"
					     "  F fail: every run missed the expectation\n");
	str_clear(&text);
	report_matrix_rows(&one, "", 0, &text);
	assert_string_equal(str_text(&text), " 1  2\n... and 1 rows more\n");
	free(axis.name);
	free(values[0].label);
	free(values[1].label);
}

static void formats_have_names(void **state)
{
	(void)state;
	static const char *const names[] = {"text", "markdown", "json", "html"};
	enum report_format format;
	for (int i = 0; i < 4; i++) {
		assert_true(report_format_parse(names[i], &format));
		assert_int_equal(format, i);
	}
	assert_false(report_format_parse("HTML", &format));
	assert_false(report_format_parse("", &format));
}

/* What an expert looks for is in every format that people read, and nothing that was not gathered gets a heading. */
static void the_evidence_is_in_every_format(void **state)
{
	static const char *const everywhere[] = {"src/no-linker.rs:94:13",
						 "usdt-impl",
						 "serial:read",
						 "preserves_flags",
						 "sub rdi, rsi",
						 "xor rax, rax",
						 "jne 0x401260",
						 "definition",
						 "destroyer",
						 "reader",
						 "jne never jumps: ZF is always 1 here",
						 "task::poll",
						 "has no listing as MIR",
						 "panic=abort",
						 "opt-level=0",
						 "2 blocks|>2<|2 |",
						 "no IR came out of the build",
						 "What is missing|Missing|1712",
						 "verdict|Verdict"};
	static const enum report_format formats[] = {REPORT_TEXT, REPORT_HTML};
	struct store *store = open_matrix(*state, small);
	json_t *evidence = read_evidence();
	save_all_evidence(store, evidence);
	json_decref(evidence);
	put_file(*state, "evidence/4/build-4/poll.asm", "0x401236 xor rax, rax <here>\n");
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *report = make_report(store, "usdt-86", *state, formats[i]);
		for (size_t j = 0; j < sizeof everywhere / sizeof everywhere[0]; j++) {
			cleanup_free char *choices = text_copy(everywhere[j]);
			bool found = false;
			for (char *rest = choices, *choice; (choice = strsep(&rest, "|")) != NULL;)
				found = found || strstr(report, choice) != NULL;
			if (!found)
				fail_msg("%s is not in:\n%s", everywhere[j], report);
		}
	}
	cleanup_free char *html = make_report(store, "usdt-86", *state, REPORT_HTML);
	assert_holds(html, "0x401236 xor rax, rax &lt;here&gt;");
	assert_holds(html, "href=\"evidence/4/build-4/program.ll\"");
	assert_null(strstr(html, "SQLite format"));
	assert_holds(html, "<th role=\"rowheader\" scope=\"row\">stray</th>");
	cleanup_free char *markdown = make_report(store, "usdt-86", *state, REPORT_MARKDOWN);
	assert_holds(markdown, "```asm\n0x401230      sub rdi, rsi                     ; definition\n"
			       "0x401236      xor rax, rax                     ; destroyer\n"
			       "0x401239      jne 0x401260                     ; reader\n```\n");
	assert_holds(markdown,
		     "```diff\n push rbx\n mov rcx, rsi\n sub rdi, rsi    ; <- definition\n mov qword ptr [rdx], rdi\n"
		     "-xor rax, rax    ; <- destroyer\n jne 0x401260    ; <- reader\n+xor rax, rax\n-ret\n+jmp 0x501240\n```\n");
	assert_holds(markdown, "```diff\n-options(nomem, nostack, preserves_flags)\n+options(nomem, nostack)\n```\n");
	store_close(store);
}

static void what_is_not_known_gets_no_heading(void **state)
{
	static const char *const headings[] = {"Promises of inline", "Paths through", "Assembly, beside", "with which it shows",
					       "Twins"};
	static const char *const broken[] = {"null",
					     "7",
					     "[]",
					     "\"text\"",
					     "{\"build\": 7, \"audit\": [], \"paths\": {}, \"artifacts\": 1}",
					     "{\"audit\": {\"blocks\": 1}, \"paths\": [1, null, \"a\"], \"artifacts\": {}}"};
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		cleanup_free char *name = text_format("%zu", i);
		cleanup_free char *folder = path_join(*state, name);
		struct store *store = open_matrix(folder, small);
		json_t *data = json_loads(broken[i], JSON_DECODE_ANY, NULL);
		assert_non_null(data);
		save_evidence(store, "build", FIRST_BAD_CELL, NULL, data);
		for (int format = REPORT_TEXT; format <= REPORT_HTML; format++) {
			cleanup_free char *report = make_report(store, "usdt-86", folder, (enum report_format)format);
			for (size_t j = 0; j < sizeof headings / sizeof headings[0]; j++)
				if (strstr(report, headings[j]) != NULL)
					fail_msg("%s with %s:\n%s", headings[j], broken[i], report);
		}
		json_decref(data);
		store_close(store);
	}
}

/* A model without a database: one bad cell and what was gathered of it.  Takes over the reference. */
static void write_reports_of(json_t *evidence)
{
	struct report_model model = {.state_folder = text_copy("/nowhere"), .same_text = -1};
	cleanup_str struct str reports = {0};
	model.about.name = text_copy("a");
	model.about.state = text_copy("finished");
	model.about.notes = text_copy("");
	model.about.file = text_copy("f");
	model.first_bad.combination = text_copy("x=y");
	model.first_bad.outcome = text_copy("fail");
	model.first_bad.cell_key = text_copy("k");
	report_model_take(&model, evidence, verdict_judge(evidence, "f"));
	report_text(&model, 1, "", &reports);
	report_markdown(&model, 1, "", &reports);
	report_json(&model, 1, "", &reports);
	report_html(&model, 1, "", &reports);
	assert_true(reports.length > 1000);
	report_model_clear(&model);
}

/* Replaces the value that is number *number of a tree, counted from the root, and says whether there is one. */
static bool replace_value(json_t *tree, size_t *number, const json_t *with)
{
	size_t index;
	const char *key;
	json_t *value;
	json_object_foreach (tree, key, value) {
		if ((*number)-- == 0)
			return json_object_set_new(tree, key, json_deep_copy(with)) == 0;
		if (replace_value(value, number, with))
			return true;
	}
	json_array_foreach (tree, index, value) {
		if ((*number)-- == 0)
			return json_array_set_new(tree, index, json_deep_copy(with)) == 0;
		if (replace_value(value, number, with))
			return true;
	}
	return false;
}

/* Each member in turn is of each type that it should not be. */
static void evidence_of_any_shape_makes_a_report(void **state)
{
	(void)state;
	json_t *others = json_loads("[null, true, 7, -1.5, \"\", [], {}, [\"\", null, 3], {\"text\": [1]}, [[]]]", 0, NULL);
	json_t *evidence = read_evidence();
	assert_non_null(others);
	json_t *first = json_array_get(json_object_get(evidence, "neighbours"), 0);
	json_t *build = json_pack("{s:s, s:O}", "outcome", "pass", "data", json_object_get(evidence, "build"));
	json_object_set_new(evidence, "build", build);
	json_t *passes = json_pack("{s:s, s:O}", "outcome", "pass", "data", json_object_get(evidence, "passes"));
	json_object_set_new(evidence, "passes", passes);
	json_object_set_new(first, "outcome", json_string("pass"));
	for (size_t i = 0;; i++) {
		bool there = true;
		for (size_t j = 0; there && j < json_array_size(others); j++) {
			size_t number = i;
			json_t *changed = json_deep_copy(evidence);
			there = replace_value(changed, &number, json_array_get(others, j));
			write_reports_of(changed);
		}
		if (!there) {
			assert_true(i > 200); /* it did go through the tree */
			break;
		}
	}
	json_decref(evidence);
	json_decref(others);
}

/* ---- hostile text ---- */

#define HOSTILE                                                                                                                    \
	"\x1B[31m\n</td><script>alert(1)</script>\"' onload=x @octocat #123 GH-7 https://evil.example/ ```` `` [a](b) | "          \
	"\xE2\x80\xAE\x7F "                                                                                                        \
	"<!-- </details> &amp; \\"

/* Every text in it gets a hostile beginning; where `all` is false, but for the words that the report goes by. */
static json_t *poison(const json_t *json, bool all)
{
	static const char *const words[] = {"state", "role", "kind", "outcome", "mark", "difference", "origin", "path"};
	size_t index;
	const char *key;
	json_t *value;
	if (json_is_string(json)) {
		cleanup_free char *text = text_format("%s%s", HOSTILE, json_string_value(json));
		return json_string(text);
	}
	if (json_is_array(json)) {
		json_t *array = json_array();
		json_array_foreach (json, index, value)
			json_array_append_new(array, poison(value, all));
		return array;
	}
	if (!json_is_object(json))
		return json_deep_copy(json);
	json_t *object = json_object();
	json_object_foreach ((json_t *)(uintptr_t)json, key, value) {
		bool kept = false;
		for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
			kept = kept || strcmp(words[i], key) == 0;
		json_object_set_new(object, key, kept && !all ? json_deep_copy(value) : poison(value, all));
	}
	return object;
}

static struct store *open_hostile(const char *folder, bool all)
{
	cleanup_error struct error error = {0};
	struct store *store = open_matrix(folder, small);
	struct sql *sql = store_connection(store);
	json_t *evidence = read_evidence();
	json_t *poisoned = poison(evidence, all);
	json_t *rows = json_object_get(poisoned, "neighbours");
	for (size_t i = 0; i < json_array_size(rows); i++)
		json_object_del(json_array_get(rows, i), "outcome");
	for (size_t i = 0; i < json_array_size(json_object_get(poisoned, "twins")); i++)
		json_object_set_new(json_array_get(json_object_get(poisoned, "twins"), i), "origin", json_string("audit"));
	save_all_evidence(store, poisoned);
	json_decref(poisoned);
	json_decref(evidence);
	assert_done(sql_run(sql, &error, "UPDATE investigation SET name = ?1, question = ?1, notes = ?1, file = ?1", "t", HOSTILE),
		    &error);
	assert_done(sql_run(sql, &error, "UPDATE axis SET name = name || ?1", "t", HOSTILE), &error);
	assert_done(sql_run(sql, &error, "UPDATE value SET label = label || ?1, identity = ?1, detail = ?1, skip_reason = ?1", "t",
			    HOSTILE),
		    &error);
	assert_done(sql_run(sql, &error, "UPDATE place SET combination = combination || ?1", "t", HOSTILE), &error);
	assert_done(sql_run(sql, &error, "UPDATE cell SET reason = ?1, signature = ?1, commands = ?1", "t", HOSTILE), &error);
	assert_done(sql_run(sql, &error, "UPDATE attempt SET log = 'logs/' || ?1", "t", HOSTILE), &error);
	return store;
}

static void assert_no_control_characters(const char *report, const char *allowed)
{
	for (const char *at = report; *at != '\0'; at++)
		if (((unsigned char)*at < 0x20 && strchr(allowed, *at) == NULL) || *at == 0x7F)
			fail_msg("a control character before: %.60s", at);
	assert_null(strstr(report, "\xE2\x80\xAE"));
}

static void hostile_text_does_not_reach_a_terminal(void **state)
{
	for (int all = 0; all < 2; all++) {
		cleanup_free char *folder = path_join(*state, all ? "all" : "some");
		struct store *store = open_hostile(folder, all);
		cleanup_free char *report = make_report(store, HOSTILE, folder, REPORT_TEXT);
		assert_no_control_characters(report, "\n");
		assert_null(strstr(report, " \n"));
		assert_holds(report, "\\x1b[31m </td><script>");
		for (const char *at = report; (at = strstr(at, "</td>")) != NULL; at++)
			assert_false(at > report && at[-1] == '\n'); /* the line that hostile text would begin */
		store_close(store);
	}
}

static size_t run_of(const char *text, char letter)
{
	size_t length = 0;
	while (text[length] == letter)
		length++;
	return length;
}

/* One line without its spans of code (CommonMark 6.1), as a reader of Markdown sees it. */
static char *without_code(const char *line)
{
	struct str rest = {0};
	while (*line != '\0') {
		if (*line == '\\' && line[1] != '\0') {
			str_append_bytes(&rest, line, 2);
			line += 2;
			continue;
		}
		size_t run = run_of(line, '`');
		const char *end = line + run;
		while (run > 0 && *end != '\0' && run_of(end, '`') != run)
			end += run_of(end, '`') > 0 ? run_of(end, '`') : 1;
		if (run > 0 && *end != '\0') {
			line = end + run;
			continue;
		}
		size_t bytes = run > 0 ? run : 1;
		str_append_bytes(&rest, line, bytes);
		line += bytes;
	}
	return str_steal(&rest);
}

static void assert_harmless_prose(const char *line)
{
	static const char *const harmful[] = {"<", "@o", "#1", "GH-7", "://", "\x1B"};
	cleanup_free char *prose = without_code(line);
	for (size_t i = 0; i < sizeof harmful / sizeof harmful[0]; i++)
		if (strstr(prose, harmful[i]) != NULL)
			fail_msg("%s in the prose of: %s", harmful[i], line);
	for (const char *at = prose; (at = strchr(at, '[')) != NULL; at++)
		if (at == prose || at[-1] != '\\')
			fail_msg("a link in the prose of: %s", line);
}

static void assert_harmless_markdown(const char *report)
{
	size_t fence = 0;
	cleanup_free char *copy = text_copy(report);
	for (char *rest = copy, *line; (line = strsep(&rest, "\n")) != NULL;) {
		size_t run = run_of(line, '`');
		if (fence > 0) {
			if (run >= fence && line[run] == '\0')
				fence = 0;
		} else if (run >= 3 && strchr(line + run, '`') == NULL) {
			fence = run;
		} else {
			assert_harmless_prose(line);
		}
	}
	assert_int_equal(fence, 0);
}

static void hostile_text_makes_no_markdown(void **state)
{
	for (int all = 0; all < 2; all++) {
		cleanup_free char *folder = path_join(*state, all ? "all" : "some");
		struct store *store = open_hostile(folder, all);
		cleanup_free char *report = make_report(store, HOSTILE, folder, REPORT_MARKDOWN);
		assert_no_control_characters(report, "\n\t");
		assert_harmless_markdown(report);
		assert_holds(report, "`````sh\n");
		store_close(store);
	}
}

static void hostile_text_makes_no_html(void **state)
{
	for (int all = 0; all < 2; all++) {
		cleanup_free char *folder = path_join(*state, all ? "all" : "some");
		struct store *store = open_hostile(folder, all);
		cleanup_free char *report = make_report(store, HOSTILE, folder, REPORT_HTML);
		assert_no_control_characters(report, "\n\t");
		for (const char *at = strstr(report, "<body>"); (at = strchr(at, '<')) != NULL;) {
			cleanup_free char *tag = text_copy_range(at, strcspn(at, ">"));
			if (strncmp(tag, "<script", 7) == 0 || strncmp(tag, "<!", 2) == 0 || strchr(tag + 1, '<') != NULL)
				fail_msg("markup of others: %s", tag);
			/* in a quoted value, where it is harmless, its quotes are written &quot; */
			const char *value = strstr(tag, "onload=x");
			if (value != NULL && strstr(tag, "&quot;&#39; onload=x") == NULL)
				fail_msg("an attribute of others: %s", tag);
			at += strlen(tag);
		}
		store_close(store);
	}
}

static void json_holds_hostile_text_as_it_is(void **state)
{
	for (int all = 0; all < 2; all++) {
		cleanup_error struct error error = {0};
		cleanup_free char *folder = path_join(*state, all ? "all" : "some");
		struct store *store = open_hostile(folder, all);
		cleanup_free char *report = make_report(store, HOSTILE, folder, REPORT_JSON);
		json_t *evidence = NULL;
		json_t *document = json_loads(report, 0, NULL);
		assert_non_null(document);
		for (const char *at = report; *at != '\0'; at++)
			assert_true(*at == '\n' || (*at >= 0x20 && *at < 0x7F));
		const json_t *one = json_array_get(json_object_get(document, "investigations"), 0);
		assert_string_equal(json_string_value(json_object_get(one, "name")), HOSTILE);
		assert_string_equal(json_string_value(json_object_get(json_object_get(one, "first_bad"), "signature")), HOSTILE);
		assert_done(view_evidence(store_connection(store), HOSTILE, &evidence, &error), &error);
		assert_true(json_equal(json_object_get(one, "evidence"), evidence));
		json_decref(evidence);
		json_decref(document);
		store_close(store);
	}
}

static void text_that_is_no_utf8_is_shown_and_not_lost(void **state)
{
	cleanup_error struct error error = {0};
	struct store *store = open_matrix(*state, small);
	assert_done(sql_run(store_connection(store), &error, "UPDATE cell SET signature = CAST(x'61FF62' AS TEXT)", ""), &error);
	cleanup_free char *text = make_report(store, "usdt-86", *state, REPORT_TEXT);
	cleanup_free char *html = make_report(store, "usdt-86", *state, REPORT_HTML);
	cleanup_free char *json = make_report(store, "usdt-86", *state, REPORT_JSON);
	assert_holds(text, "it printed: a\\xffb\n");
	assert_holds(html, "a\\xffb");
	assert_holds(json, "\"signature\": \"a\\uFFFDb\"");
	store_close(store);
}

/* ---- artifacts ---- */

static void artifacts_are_read_only_where_they_belong(void **state)
{
	static const char *const outside[] = {"evidence/4/link", "evidence/4/pipe", "evidence/4/folder", "evidence/4/none",
					      "evidence/4/up/x"};
	cleanup_free char *evidence = path_join(*state, "evidence/4");
	cleanup_free char *link = path_join(evidence, "link");
	cleanup_free char *up = path_join(evidence, "up");
	cleanup_free char *pipe = path_join(evidence, "pipe");
	put_file(*state, "x", "secret");
	put_file(evidence, "folder/file", "inside\n");
	assert_int_equal(symlink("../../x", link), 0);
	assert_int_equal(symlink("../..", up), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_str struct str text = {0};
		bool cut = false;
		assert_int_equal(report_artifact_read(*state, outside[i], &text, &cut, &error), -1);
		assert_says(&error, outside[i]);
		assert_int_equal(text.length, 0);
	}
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	bool cut = true;
	assert_done(report_artifact_read(*state, "evidence/4/folder/file", &text, &cut, &error), &error);
	assert_string_equal(str_text(&text), "inside\n");
	assert_false(cut);
}

static void long_artifacts_are_cut_at_the_end_of_a_line(void **state)
{
	static const size_t lengths[] = {ARTIFACT_LIMIT, ARTIFACT_LIMIT + 1, ARTIFACT_LIMIT * 2};
	for (size_t i = 0; i < 3; i++) {
		cleanup_error struct error error = {0};
		cleanup_str struct str made = {0};
		cleanup_str struct str text = {0};
		bool cut;
		while (made.length < lengths[i])
			str_append(&made, made.length % 100 == 99 ? "\n" : "x");
		put_file(*state, "evidence/4/long", str_text(&made));
		assert_done(report_artifact_read(*state, "evidence/4/long", &text, &cut, &error), &error);
		assert_int_equal(cut, i > 0);
		assert_true(i > 0 ? text.length > ARTIFACT_LIMIT - 100 && text.data[text.length - 1] == '\n'
				  : text.length == lengths[0]);
		assert_int_equal(strlen(text.data), text.length);
	}
}

static void links_lead_from_where_the_report_lies(void **state)
{
	static const struct {
		const char *folder;
		const char *href;
	} cases[] = {{NULL, "href=\"logs/4/4.log\""},
		     {"/a/state", "href=\"logs/4/4.log\""},
		     {"/a", "href=\"state/logs/4/4.log\""},
		     {"/a/state/reports", "href=\"../logs/4/4.log\""},
		     {"/a/stat", "href=\"../state/logs/4/4.log\""},
		     {"/a/states", "href=\"../state/logs/4/4.log\""},
		     {"/b/c", "href=\"../../a/state/logs/4/4.log\""},
		     {"/", "href=\"a/state/logs/4/4.log\""}};
	struct store *store = open_matrix(*state, small);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_strlist struct strlist names = {0};
		cleanup_str struct str report = {0};
		const struct report_options options = {
			.format = REPORT_HTML, .state_folder = "/a/state", .folder = cases[i].folder};
		strlist_add(&names, "usdt-86");
		assert_done(report_make(store_connection(store), &names, &options, &report, &error), &error);
		if (strstr(str_text(&report), cases[i].href) == NULL)
			fail_msg("from %s there is no %s", cases[i].folder, cases[i].href);
	}
	store_close(store);
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
		"crash, the program was killed by a signal",
		"It printed: ",
		"error: it broke",
		"Confirmed by a clean build and further runs; every earlier combination in walk order is decided.",
		"To repeat it by hand:",
		"cargo run"};
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
		{{.axis = crate, .change = fixed, .from_value = from, .to_value = to, .to_detail = detail, .pairs = 2, .gap = 1},
		 "crate: fixed by 0.6.0 (2023 Use sym), 0.5.0 is still bad, 1 value between them not tried or without evidence; 2 "
		 "pairs of cells, not "
		 "confirmed"},
		{{.axis = crate, .change = introduced, .from_value = from, .to_value = to, .pairs = 9, .gap = 2, .confirmed = true},
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
		json_t *finding = finding_verdict(&views.about, &views.first_bad, &views.boundaries, NULL);
		assert_member(finding, "verdict", "\"inconclusive\"");
		assert_holds(json_string_value(json_object_get(finding, "text")), cases[i].part);
		json_decref(finding);
		close_views(&views);
		store_close(store);
	}
}

static void a_verdict_is_posted_with_its_reasons_and_commands(void **state)
{
	cleanup_error struct error error = {0};
	struct views views;
	struct store *store = open_matrix(*state, small);
	json_t *saved = read_evidence();
	json_t *evidence = NULL;
	save_all_evidence(store, saved);
	open_views(store, &views);
	assert_done(view_evidence(store_connection(store), "usdt-86", &evidence, &error), &error);
	json_t *judged = verdict_judge(evidence, "f");
	json_t *finding = finding_verdict(&views.about, &views.first_bad, &views.boundaries, judged);
	const char *text = json_string_value(json_object_get(finding, "text"));
	const char *markdown = json_string_value(json_object_get(finding, "markdown"));
	assert_member(finding, "verdict", "\"crate\"");
	assert_member(finding, "blames", "\"usdt-impl 0.5.0\"");
	assert_member(finding, "combination", "\"tool=1.62.0 crate=0.5.0 profile=release\"");
	assert_holds(json_string_value(json_object_get(finding, "title")), "usdt-86: verdict: crate: usdt-impl 0.5.0");
	assert_holds(text, "preserves_flags");
	assert_holds(text, "To repeat the first bad combination by hand:\ncd /w\ncargo run\n");
	assert_holds(markdown, "### Verdict for `usdt-86`: crate: usdt-impl 0.5.0");
	assert_holds(markdown, "```sh\ncd /w\ncargo run\n```\n");
	assert_harmless_markdown(markdown);
	assert_true(json_equal(json_object_get(finding, "reasons"), json_object_get(judged, "reasons")));
	json_decref(finding);
	json_decref(judged);
	json_decref(evidence);
	json_decref(saved);
	close_views(&views);
	store_close(store);
}

static void what_is_posted_of_hostile_text_is_harmless(void **state)
{
	cleanup_error struct error error = {0};
	struct store *store = open_hostile(*state, false);
	struct view_investigation about = {0};
	struct view_first_bad first_bad = {0};
	struct view_boundaries boundaries = {0};
	struct view_matrix matrix = {0};
	json_t *evidence = NULL;
	struct sql *sql = store_connection(store);
	assert_done(view_investigation(sql, HOSTILE, &about, &error), &error);
	assert_done(view_first_bad(sql, HOSTILE, &first_bad, &error), &error);
	assert_done(view_boundaries(sql, HOSTILE, &boundaries, &error), &error);
	assert_done(view_matrix(sql, HOSTILE, &matrix, &error), &error);
	assert_done(view_evidence(sql, HOSTILE, &evidence, &error), &error);
	json_t *judged = verdict_judge(evidence, HOSTILE);
	json_t *findings[] = {finding_first_bad(&about, &first_bad, &matrix), finding_boundary(&about, &boundaries.items[0]),
			      finding_verdict(&about, &first_bad, &boundaries, judged),
			      finding_verdict(&about, &first_bad, &boundaries, NULL)};
	for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
		assert_no_control_characters(json_string_value(json_object_get(findings[i], "title")), "");
		assert_no_control_characters(json_string_value(json_object_get(findings[i], "text")), "\n");
		assert_no_control_characters(json_string_value(json_object_get(findings[i], "markdown")), "\n\t");
		assert_harmless_markdown(json_string_value(json_object_get(findings[i], "markdown")));
		json_decref(findings[i]);
	}
	json_decref(judged);
	json_decref(evidence);
	view_matrix_clear(&matrix);
	view_boundaries_clear(&boundaries);
	view_first_bad_clear(&first_bad);
	view_investigation_clear(&about);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_quick_place(the_report_of_a_small_matrix_reads_as_it_should),
		in_quick_place(an_investigation_that_is_not_there_is_named),
		cmocka_unit_test(one_axis_makes_one_row_and_no_axis_no_matrix),
		cmocka_unit_test(formats_have_names),
		in_quick_place(the_evidence_is_in_every_format),
		in_quick_place(what_is_not_known_gets_no_heading),
		cmocka_unit_test(evidence_of_any_shape_makes_a_report),
		in_quick_place(hostile_text_does_not_reach_a_terminal),
		in_quick_place(hostile_text_makes_no_markdown),
		in_quick_place(hostile_text_makes_no_html),
		in_quick_place(json_holds_hostile_text_as_it_is),
		in_quick_place(text_that_is_no_utf8_is_shown_and_not_lost),
		in_place(artifacts_are_read_only_where_they_belong),
		in_quick_place(long_artifacts_are_cut_at_the_end_of_a_line),
		in_quick_place(links_lead_from_where_the_report_lies),
		in_quick_place(the_first_bad_combination_is_posted_with_all_that_names_it),
		cmocka_unit_test(what_is_not_confirmed_or_not_final_says_so),
		cmocka_unit_test(a_boundary_is_one_line_that_says_which_way_it_goes),
		in_quick_place(a_boundary_is_posted_with_both_of_its_ends),
		in_quick_place(a_verdict_blames_nobody_and_says_what_is_missing),
		in_quick_place(a_verdict_is_posted_with_its_reasons_and_commands),
		in_quick_place(what_is_posted_of_hostile_text_is_harmless),
	};
	return cmocka_run_group_tests_name("report, finding", tests, NULL, NULL);
}
