/* axis: answers become values; patterns, rules and combinations say which of them meet. */
#include "axis.h"
#include "place.h"

struct world {
	struct config config;
	struct axes axes;
	struct strlist problems;
};

#define TOP                                                                                                            \
	"name: a\n"                                                                                                    \
	"reproducer: {path: r, run: [x]}\n"                                                                            \
	"sources: {src: {url: /srv/s.git}, other: {url: /srv/o.git}}\n"
/* Written values only, so that an axis has them as soon as it is taken. */
#define THREE_AXES                                                                                                     \
	"axes:\n"                                                                                                      \
	"- {name: tool, type: choice, values: ['1.62.0', '1.63.0', '1.63.0-musl', nightly]}\n"                         \
	"- {name: crate, type: choice, values: ['0.4.0', '0.5.0', '0.6.0']}\n"                                         \
	"- {name: profile, type: profile, values: [dev, release]}\n"

static void start_world(struct world *world, const char *text)
{
	*world = (struct world){0};
	if (config_parse(&world->config, "/inv/a.yaml", text, strlen(text), &world->problems) < 0)
		fail_msg("%s", world->problems.items[0]);
	axes_start(&world->axes, &world->config);
	assert_int_equal(world->axes.count, world->config.axis_count);
}

static void end_world(struct world *world)
{
	axes_clear(&world->axes);
	config_clear(&world->config);
	strlist_clear(&world->problems);
}

static json_t *from_json(const char *text) /* ' for " */
{
	cleanup_free char *copy = text_copy(text);
	for (char *byte = copy; *byte != '\0'; byte++)
		*byte = *byte == '\'' ? '"' : *byte;
	json_t *value = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	return value;
}

/* ---- written values ---- */

static void written_values_keep_their_order_and_their_identity_holds_all_they_say(void **state)
{
	(void)state;
	struct world world;
	start_world(
		&world, TOP
		"axes: [{name: c, type: choice, values: [plain, {name: full, features: [x, y], "
		"environment: {A: '1', B: '2'}, rustflags: ['-C', debuginfo=2], placeholders: {p: q}, note: why}]}]\n");
	axis_take_written(&world.axes.items[0]);
	const struct axis *axis = &world.axes.items[0];
	assert_int_equal(axis->count, 2);
	assert_string_equal(axis->values[0].label, "plain");
	assert_string_equal(axis->values[0].identity, "plain\n");
	assert_null(axis->values[0].detail);
	assert_string_equal(axis->values[1].label, "full");
	assert_string_equal(axis->values[1].identity, "full\nfeatures: x y\nenvironment: A=1\nenvironment: B=2\n"
						      "rustflags: -C debuginfo=2\nplaceholder: p=q\n");
	assert_string_equal(axis->values[1].detail, "why");
	assert_ptr_equal(axis->values[1].config, &world.config.axes[0].values[1]);
	end_world(&world);
}

/* ---- toolchains ---- */

#define TOOLCHAIN_AXIS TOP "axes: [{name: t, type: toolchain, values: [auto]}]\n"

static void a_found_toolchain_becomes_a_value_with_all_its_members(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	struct world world;
	start_world(&world, TOOLCHAIN_AXIS);
	json_t *answer = from_json(
		"[{'name':'auto','label':'1.63.0','identity':'rustc 1.63.0','root':'/t','rustc':'/t/bin/rustc',"
		"'cargo':'/t/bin/cargo','program':'/t/bin/compiler','path':'/t/bin','read_only':['/t','/"
		"u'],'skip':null}]");
	assert_done(axis_take_toolchains(&world.axes.items[0], answer, &error), &error);
	json_decref(answer);
	const struct axis_value *value = &world.axes.items[0].values[0];
	assert_string_equal(value->label, "1.63.0");
	assert_string_equal(value->identity, "rustc 1.63.0");
	assert_string_equal(value->detail, "/t");
	assert_null(value->skip_reason);
	assert_string_equal(value->rustc, "/t/bin/rustc");
	assert_string_equal(value->cargo, "/t/bin/cargo");
	assert_string_equal(value->compiler, "/t/bin/compiler");
	assert_int_equal(value->path.count, 1);
	assert_string_equal(value->path.items[0], "/t/bin");
	assert_int_equal(value->read_only.count, 2);
	assert_null(value->config);
	end_world(&world);
}

static void a_toolchain_with_missing_or_strange_members_is_a_value_that_is_skipped(void **state)
{
	(void)state;
	static const struct {
		const char *answer;
		const char *label;
		const char *skip_reason; /* NULL: it can be tried */
	} cases[] = {
		{"[{'name':'x','label':'x','identity':'i'}]", "x", NULL},
		{"[{'name':'x','identity':'i'}]", "x", NULL},
		{"[{'name':'x','label':null,'identity':'i','skip':null,'cargo':null,'root':null}]", "x", NULL},
		{"[{'name':'x','identity':'i','path':null,'read_only':null}]", "x", NULL},
		{"[{'name':'x','identity':'i','path':7,'read_only':['/a',7,null]}]", "x", NULL},
		{"[{'name':'x','skip':'no such toolchain'}]", "x", "no such toolchain"},
		{"[{'label':'x','identity':null,'skip':'gone'}]", "x", "gone"},
		{"[{'name':'x'}]", "x", "the worker gave no identity for it"},
		{"[{'name':'x','identity':7}]", "x", "the worker gave no identity for it"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		struct world world;
		start_world(&world, TOOLCHAIN_AXIS);
		json_t *answer = from_json(cases[i].answer);
		assert_done(axis_take_toolchains(&world.axes.items[0], answer, &error), &error);
		json_decref(answer);
		assert_int_equal(world.axes.items[0].count, 1);
		const struct axis_value *value = &world.axes.items[0].values[0];
		assert_string_equal(value->label, cases[i].label);
		assert_non_null(value->identity);
		if (!text_equal(value->skip_reason, cases[i].skip_reason))
			fail_msg("%s: %s", cases[i].answer, value->skip_reason);
		assert_int_equal(value->path.count, 0);
		for (size_t j = 0; j < value->read_only.count; j++)
			assert_non_null(value->read_only.items[j]);
		end_world(&world);
	}
}

static void an_answer_that_is_none_is_refused(void **state)
{
	(void)state;
	static const char *const answers[] = {
		"{}", "'x'", "null", "[{}]", "[7]", "[null]", "[{'label':7,'name':null}]"};
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		cleanup_error struct error error = {0};
		struct world world;
		start_world(&world, TOOLCHAIN_AXIS);
		json_t *answer = from_json(answers[i]);
		assert_int_equal(axis_take_toolchains(&world.axes.items[0], answer, &error), -1);
		assert_says(&error, "the worker's answer about toolchains ");
		json_decref(answer);
		end_world(&world);
	}
}

/* ---- releases ---- */

static void a_release_is_a_value_or_the_reason_why_it_is_none(void **state)
{
	(void)state;
	static const struct {
		const char *answer;
		const char *identity;
		const char *skip_reason;
	} cases[] = {
		{"{'name':'0.5.0','identity':'abc','skip':null,'error':null}", "release 0.5.0 sha256 abc", NULL},
		{"{'name':'0.5.0','identity':null,'skip':'no such release','error':null}", "unresolved",
		 "no such release"},
		{"{'name':'0.5.0','error':'registry away'}", "unresolved", "registry away"},
		{"{}", "unresolved", "the worker gave no identity for it"},
		{"null", "unresolved", "the worker gave no identity for it"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world world;
		start_world(&world, TOP "axes: [{name: usdt, type: crate, values: ['0.5.0']}]\n");
		json_t *answer = from_json(cases[i].answer);
		axis_take_release(&world.axes.items[0], &world.config.axes[0].values[0], answer);
		json_decref(answer);
		const struct axis_value *value = &world.axes.items[0].values[0];
		assert_string_equal(value->label, "0.5.0");
		assert_string_equal(value->identity, cases[i].identity);
		assert_true(text_equal(value->skip_reason, cases[i].skip_reason));
		assert_false(value->from_range);
		end_world(&world);
	}
}

/* ---- commits ---- */

static void take_commits(struct axis *axis, size_t entry, const char *const *oid, size_t count)
{
	struct source_commit items[4] = {{0}};
	struct source_commits commits = {.items = items, .count = count};
	const struct config_value *written = &axis->config->values[entry];
	for (size_t i = 0; i < count; i++) {
		items[i].oid = text_copy(oid[i]);
		items[i].subject = text_format("subject %zu", i);
		items[i].date = text_copy("2022-08-11T12:00:00Z");
	}
	axis_take_commits(axis, written, axis_entry_source(axis, written), &commits);
	for (size_t i = 0; i < count; i++) {
		free(items[i].oid);
		free(items[i].subject);
		free(items[i].date);
	}
}

static const char *const oids[] = {
	"1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "2222222222aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"3333333333aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "4444444444aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

static void commits_of_a_range_are_named_by_their_first_digits_and_a_revision_by_itself(void **state)
{
	(void)state;
	struct world world;
	start_world(&world,
		    TOP "axes: [{name: rev, type: commit, source: src, values: [v0.5.0, {commits: v0.5.0..main}]}]\n");
	struct axis *axis = &world.axes.items[0];
	take_commits(axis, 0, oids, 1);
	take_commits(axis, 1, oids + 1, 2);
	assert_int_equal(axis->count, 3);
	assert_string_equal(axis->values[0].label, "v0.5.0");
	assert_false(axis->values[0].from_range);
	assert_string_equal(axis->values[1].label, "2222222222");
	assert_true(axis->values[1].from_range);
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *identity = text_format("commit %s", oids[i]);
		assert_string_equal(axis->values[i].oid, oids[i]);
		assert_string_equal(axis->values[i].identity, identity);
		assert_string_equal(axis->values[i].source, "src");
	}
	assert_string_equal(axis->values[2].detail, "2022-08-11 subject 1");
	end_world(&world);
}

static void an_entry_that_is_not_resolved_keeps_its_name_and_says_why(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, TOP "axes: [{name: rev, type: commit, source: src, values: [v0.5.0, {commits: a..b}]}]\n");
	axis_take_unresolved(&world.axes.items[0], &world.config.axes[0].values[0], "no such tag");
	axis_take_unresolved(&world.axes.items[0], &world.config.axes[0].values[1], "source away");
	static const char *const labels[] = {"v0.5.0", "a..b"};
	static const char *const reasons[] = {"no such tag", "source away"};
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(world.axes.items[0].values[i].label, labels[i]);
		assert_string_equal(world.axes.items[0].values[i].skip_reason, reasons[i]);
		assert_string_equal(world.axes.items[0].values[i].identity, "unresolved");
		assert_int_equal(world.axes.items[0].values[i].from_range, i == 1);
	}
	end_world(&world);
}

static void an_entry_knows_whether_it_is_a_commit_and_of_which_source(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, TOP "axes: [{name: rev, type: commit, source: src, values: [v1, {commits: a..b}]},"
				" {name: usdt, type: crate, values: ['0.5.0', {commits: a..b, source: other}]}]\n");
	static const struct {
		size_t axis;
		size_t entry;
		bool is_commit;
		const char *source;
	} cases[] = {{0, 0, true, "src"}, {0, 1, true, "src"}, {1, 0, false, NULL}, {1, 1, true, "other"}};
	for (size_t i = 0; i < 4; i++) {
		const struct axis *axis = &world.axes.items[cases[i].axis];
		const struct config_value *entry = &axis->config->values[cases[i].entry];
		assert_int_equal(axis_entry_is_commit(axis, entry), cases[i].is_commit);
		assert_true(text_equal(axis_entry_source(axis, entry), cases[i].source));
	}
	end_world(&world);
}

static void values_that_two_entries_share_stand_once_at_their_first_place(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, TOP
		    "axes: [{name: rev, type: commit, source: src, values: [{commits: a..b}, {commits: b..c}, v1]}]\n");
	struct axis *axis = &world.axes.items[0];
	take_commits(axis, 0, oids, 3);
	take_commits(axis, 1, oids + 1, 3);
	take_commits(axis, 0, oids, 3);
	axis_take_unresolved(axis, &world.config.axes[0].values[2], "no such tag");
	axis_drop_duplicates(axis);
	static const char *const labels[] = {"1111111111", "2222222222", "3333333333", "4444444444", "v1"};
	assert_int_equal(axis->count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(axis->values[i].label, labels[i]);
	axis_clear(axis);
	assert_int_equal(axis->count, 0);
	axis_drop_duplicates(axis);
	end_world(&world);
}

/* ---- patterns ---- */

static void a_pattern_matches_labels_places_and_kinds(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, TOP "axes: [{name: usdt, type: crate, values: ['0.4.0', '0.5.0', {commits: a..b, source: "
				"src}, '0.6.0']}]\n");
	struct axis *axis = &world.axes.items[0];
	json_t *answer = from_json("{'identity':'abc'}");
	axis_take_release(axis, &world.config.axes[0].values[0], answer);
	axis_take_release(axis, &world.config.axes[0].values[1], answer);
	take_commits(axis, 2, oids, 2);
	axis_take_release(axis, &world.config.axes[0].values[3], answer);
	json_decref(answer);
	static const struct {
		const char *pattern;
		const char *matches; /* one letter a value: 0.4.0 0.5.0 1111111111 2222222222 0.6.0 */
	} cases[] = {
		{"0.5.0", ".x..."},     {"0.*", "xx..x"},     {"0.?.0", "xx..x"},    {"0.[45].0", "xx..."},
		{"*", "xxxxx"},         {"", "....."},        {"0.5", "....."},      {"1*", "..x.."},
		{"@first", "x...."},    {"@last", "....x"},   {"@commits", "..xx."}, {"@releases", "xx..x"},
		{"!@commits", "xx..x"}, {"!@first", ".xxxx"}, {"!0.5.0", "x.xxx"},   {"!*", "....."},
		{"!!0.5.0", ".x..."},   {"@other", "....."},  {"0\\.5.0", ".x..."},  {"!@last", "xxxx."},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (size_t position = 0; position < 5; position++)
			if (axis_matches(axis, position, cases[i].pattern) != (cases[i].matches[position] == 'x'))
				fail_msg("\"%s\" at %zu", cases[i].pattern, position);
	end_world(&world);
}

/* ---- rules ---- */

/* The matrix of THREE_AXES as text: a letter a cell, in walk order, rows of the last two axes. */
static char *matrix_of(const struct world *world)
{
	struct str text = {0};
	for (size_t i = 0; i < 24; i++) {
		const size_t positions[] = {i / 6, i / 2 % 3, i % 2};
		str_append(&text, axes_include(&world->axes, &world->config, positions) ? "x" : ".");
		if (i % 6 == 5 && i < 23)
			str_append(&text, " ");
	}
	return str_steal(&text);
}

static void exclude_takes_away_and_include_gives_back(void **state)
{
	(void)state;
	static const struct {
		const char *rules;
		const char *matrix; /* tools 1.62.0, 1.63.0, 1.63.0-musl, nightly; within: 0.4.0, 0.5.0, 0.6.0, each dev
				       and release */
	} cases[] = {
		{"", "xxxxxx xxxxxx xxxxxx xxxxxx"},
		{"exclude: [{tool: nightly}]\n", "xxxxxx xxxxxx xxxxxx ......"},
		{"exclude: [{tool: nightly, profile: dev}]\n", "xxxxxx xxxxxx xxxxxx .x.x.x"},
		{"exclude: [{tool: nightly}, {profile: dev}]\n", ".x.x.x .x.x.x .x.x.x ......"},
		{"exclude: [{tool: ['1.62*', nightly]}]\n", "...... xxxxxx xxxxxx ......"},
		{"exclude: [{tool: '1.63.0'}]\n", "xxxxxx ...... xxxxxx xxxxxx"},
		{"exclude: [{tool: '1.63*'}]\n", "xxxxxx ...... ...... xxxxxx"},
		{"exclude: [{tool: '!1.63*'}]\n", "...... xxxxxx xxxxxx ......"},
		{"exclude: [{tool: '!@first', crate: '!@last'}]\n", "xxxxxx ....xx ....xx ....xx"},
		{"exclude: [{tool: '*'}]\n", "...... ...... ...... ......"},
		{"exclude: [{tool: '*'}]\ninclude: [{tool: nightly, crate: 0.5.0}]\n", "...... ...... ...... ..xx.."},
		{"exclude: [{tool: '*'}]\ninclude: [{crate: '@first'}, {tool: '@last', profile: release}]\n",
		 "xx.... xx.... xx.... xx.x.x"},
		{"include: [{tool: nightly}]\n", "xxxxxx xxxxxx xxxxxx xxxxxx"}, /* nothing was taken away */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world world;
		cleanup_free char *text = text_format("%s%s%s", TOP, THREE_AXES, cases[i].rules);
		start_world(&world, text);
		for (size_t j = 0; j < 3; j++)
			axis_take_written(&world.axes.items[j]);
		cleanup_free char *matrix = matrix_of(&world);
		assert_string_equal(matrix, cases[i].matrix);
		end_world(&world);
	}
}

static void a_combination_names_each_axis_and_its_value(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, TOP THREE_AXES);
	for (size_t j = 0; j < 3; j++)
		axis_take_written(&world.axes.items[j]);
	cleanup_free char *combination = axes_combination(&world.axes, (const size_t[]){1, 2, 0});
	assert_string_equal(combination, "tool=1.63.0 crate=0.6.0 profile=dev");
	end_world(&world);
}

static void patterns_that_match_nothing_are_told_with_their_place(void **state)
{
	(void)state;
	struct world world;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist lines = {0};
	start_world(&world,
		    TOP "axes:\n"
			"- {name: tool, type: toolchain, values: [auto]}\n"
			"- {name: usdt, type: crate, values: ['0.5.0', {commits: a..b, source: src}]}\n"
			"exclude:\n- {tool: ['1.62*', '1.64*']}\n- {tool: '@first', usdt: ['@commits', '@releases']}\n"
			"include:\n- {tool: '!*'}\n- {tool: '@first'}\n");
	json_t *toolchains = from_json("[{'name':'1.62.0','identity':'i'},{'name':'1.63.0','identity':'j'}]");
	json_t *release = from_json("{'identity':'abc'}");
	assert_done(axis_take_toolchains(&world.axes.items[0], toolchains, &error), &error);
	axis_take_release(&world.axes.items[1], &world.config.axes[1].values[0], release);
	json_decref(toolchains);
	json_decref(release);
	axes_unmatched_patterns(&world.axes, &world.config, &lines);
	cleanup_free char *joined = strlist_join(&lines, "\n");
	assert_string_equal(joined, "/inv/a.yaml:8: exclude: the pattern \"1.64*\" matches no value of tool\n"
				    "/inv/a.yaml:9: exclude: the pattern \"@commits\" matches no value of usdt\n"
				    "/inv/a.yaml:11: include: the pattern \"!*\" matches no value of tool");
	end_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_values_keep_their_order_and_their_identity_holds_all_they_say),
		cmocka_unit_test(a_found_toolchain_becomes_a_value_with_all_its_members),
		cmocka_unit_test(a_toolchain_with_missing_or_strange_members_is_a_value_that_is_skipped),
		cmocka_unit_test(an_answer_that_is_none_is_refused),
		cmocka_unit_test(a_release_is_a_value_or_the_reason_why_it_is_none),
		cmocka_unit_test(commits_of_a_range_are_named_by_their_first_digits_and_a_revision_by_itself),
		cmocka_unit_test(an_entry_that_is_not_resolved_keeps_its_name_and_says_why),
		cmocka_unit_test(an_entry_knows_whether_it_is_a_commit_and_of_which_source),
		cmocka_unit_test(values_that_two_entries_share_stand_once_at_their_first_place),
		cmocka_unit_test(a_pattern_matches_labels_places_and_kinds),
		cmocka_unit_test(exclude_takes_away_and_include_gives_back),
		cmocka_unit_test(a_combination_names_each_axis_and_its_value),
		cmocka_unit_test(patterns_that_match_nothing_are_told_with_their_place),
	};
	return cmocka_run_group_tests_name("axis", tests, NULL, NULL);
}
