/*
 * config: what is written becomes what the structs say, and each mistake becomes one line with its place.
 *
 * Reads tests/unit/data and docs/config.md, so it is started from the root of the repository.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "config_schema.h"
#include "error.h"
#include "fs.h"

#define DATA "tests/unit/data/"
/* Right by itself, in three lines: what a test adds starts in line 4. */
#define TOP                                                                                                            \
	"name: a\n"                                                                                                    \
	"axes: [{name: profile, type: profile, values: [dev, release]}]\n"                                             \
	"reproducer: {path: r, run: [x]}\n"
/* For one value of a choice axis, one axis, or the inside of a reproducer: the text starts in line 1 after `axes: [`.
 */
#define WITH_AXIS(axis)                                                                                                \
	"axes: [" axis "]\nname: a\nreproducer: {path: r, run: [x]}\nsources: {src: {url: /srv/s.git}}\n"
#define WITH_VALUE(value) WITH_AXIS("{name: c, type: choice, values: [" value "]}")
#define WITH_REPRODUCER(inside)                                                                                        \
	"reproducer: {path: r, " inside "}\n"                                                                          \
	"name: a\naxes: [{name: profile, type: profile, values: [dev]}]\nsources: {src: {url: /srv/s.git}}\n"
#define WITH_LIMITS(inside) WITH_REPRODUCER("run: [x], limits: {" inside "}")
#define WITH_OVERRIDE(inside) TOP "sources: {src: {url: /srv/s.git}}\noverrides: [{" inside "}]\n"
#define WITH_EDIT(inside) WITH_OVERRIDE("name: o, crate: k, edits: [{" inside "}]")
#define WITH_TWIN(inside) TOP "sources: {src: {url: /srv/s.git}}\ntwins: [{" inside "}]\n"
#define TWIN_EDITS "edits: [{file: f, find: x, replace: y}]"
#define WITH_WEBHOOK(inside) TOP "webhooks: [{" inside "}]\n"
#define WITH_TEAM(inside) WITH_WEBHOOK("name: team, url: \"http://h/\", " inside)

static int parse(struct config *config, const char *text, struct strlist *problems)
{
	return config_parse(config, "/inv/a.yaml", text, strlen(text), problems);
}

static void assert_no_problem(const struct strlist *problems)
{
	if (problems->count > 0)
		fail_msg("%s", problems->items[0]);
}

/* ---- given a key, when it is read, then it is in its member ---- */

struct key_case {
	const char *path; /* of the key, as in the tables */
	const char *yaml;
	bool (*holds)(const struct config *config);
};

#define AXIS(i) config->axes[i]
#define VALUE config->axes[0].values[0]
#define ITEM(list, i) list.items[i]
#define IS(text, other) text_equal(text, other)

/* X(number, key, yaml, what then holds) */
#define KEY_CASES(X)                                                                                                   \
	X(1, "name", TOP, IS(config->name, "a"))                                                                       \
	X(2, "question", TOP "question: >\n  Who\n  did it?\n", IS(config->question, "Who did it?"))                   \
	X(3, "workers", TOP "workers: 256\n", config->workers == 256)                                                  \
	X(4, "confirm", TOP "confirm: 0\n", config->confirm == 0)                                                      \
	X(5, "retries", TOP "retries: 10\n", config->retries == 10)                                                    \
	X(6, "bad", TOP "bad: timeout\n",                                                                              \
	  config->bad[OUTCOME_TIMEOUT] && !config->bad[OUTCOME_FAIL] && !config->bad[OUTCOME_CRASH])                   \
	X(7, "sources", TOP "sources: {s.1: {url: /s}}\n",                                                             \
	  config->source_count == 1 && IS(config->sources[0].name, "s.1") && config->sources[0].line == 4)             \
	X(8, "sources.url", TOP "sources: {s: {url: ../s.git}}\n", IS(config->sources[0].url, "/inv/../s.git"))        \
	X(9, "sources.alternates", TOP "sources: {s: {url: git@h:p, alternates: \"https://h/p\"}}\n",                  \
	  config->sources[0].alternates.count == 1 && IS(ITEM(config->sources[0].alternates, 0), "https://h/p"))       \
	X(10, "axes", TOP, config->axis_count == 1 && AXIS(0).value_count == 2 && AXIS(0).line == 2)                   \
	X(11, "axes.name", WITH_AXIS("{name: A_b-1, type: profile, values: dev}"), IS(AXIS(0).name, "A_b-1"))          \
	X(12, "axes.type", WITH_AXIS("{name: t, type: toolchain, values: auto}"), AXIS(0).type == AXIS_TOOLCHAIN)      \
	X(13, "axes.ordered", WITH_AXIS("{name: t, type: toolchain, values: auto, ordered: false}"), !AXIS(0).ordered) \
	X(14, "axes.source", WITH_AXIS("{name: t, type: commit, source: src, values: [v1]}"),                          \
	  IS(AXIS(0).source, "src"))                                                                                   \
	X(15, "axes.crate", WITH_AXIS("{name: t, type: crate, crate: usdt, values: [1.63]}"),                          \
	  IS(AXIS(0).crate, "usdt") && IS(VALUE.name, "1.63"))                                                         \
	X(16, "axes.search", WITH_AXIS("{name: t, type: toolchain, values: auto, search: [./tc, /opt]}"),              \
	  IS(ITEM(AXIS(0).search, 0), "/inv/tc") && IS(ITEM(AXIS(0).search, 1), "/opt"))                               \
	X(17, "axes.values", WITH_VALUE("x, y"), AXIS(0).value_count == 2 && VALUE.line == 1 && VALUE.column == 41)    \
	X(18, "axes.values.name", WITH_VALUE("{name: 1.0}"), IS(VALUE.name, "1.0"))                                    \
	X(19, "axes.values.commits", WITH_AXIS("{name: t, type: commit, source: src, values: [{commits: a..b}]}"),     \
	  IS(VALUE.commits, "a..b") && VALUE.name == NULL)                                                             \
	X(20, "axes.values.source", WITH_AXIS("{name: t, type: crate, values: [{commits: a..b, source: src}]}"),       \
	  IS(VALUE.source, "src"))                                                                                     \
	X(21, "axes.values.paths",                                                                                     \
	  WITH_AXIS("{name: t, type: commit, source: src, values: [{commits: a..b, paths: x/y}]}"),                    \
	  VALUE.paths.count == 1 && IS(ITEM(VALUE.paths, 0), "x/y"))                                                   \
	X(22, "axes.values.first_parent",                                                                              \
	  WITH_AXIS("{name: t, type: commit, source: src, values: [{commits: a..b, first_parent: true}]}"),            \
	  VALUE.first_parent)                                                                                          \
	X(23, "axes.values.command", WITH_AXIS("{name: t, type: toolchain, values: [{name: g, command: ./cc}]}"),      \
	  IS(VALUE.command, "/inv/cc"))                                                                                \
	X(24, "axes.values.features", WITH_VALUE("{name: x, features: [a, b/c]}"), IS(ITEM(VALUE.features, 1), "b/c")) \
	X(25, "axes.values.environment", WITH_VALUE("{name: x, environment: {A: 1, B: \"\"}}"),                        \
	  IS(strmap_get(&VALUE.environment, "A"), "1") && IS(strmap_get(&VALUE.environment, "B"), ""))                 \
	X(26, "axes.values.rustflags", WITH_VALUE("{name: x, rustflags: -Copt-level=1}"),                              \
	  IS(ITEM(VALUE.rustflags, 0), "-Copt-level=1"))                                                               \
	X(27, "axes.values.placeholders", WITH_VALUE("{name: x, placeholders: {level: 3}}"),                           \
	  IS(strmap_get(&VALUE.placeholders, "level"), "3"))                                                           \
	X(28, "axes.values.note", WITH_VALUE("{name: x, note: a b}"), IS(VALUE.note, "a b"))                           \
	X(29, "axes.values.stands_for", WITH_VALUE("{name: x, stands_for: {source: src, commit: v1^}}"),               \
	  VALUE.stands_for_file == NULL && VALUE.stands_for_contains.count == 0)                                       \
	X(30, "axes.values.stands_for.source", WITH_VALUE("{name: x, stands_for: {source: src, commit: v1^}}"),        \
	  IS(VALUE.stands_for_source, "src"))                                                                          \
	X(31, "axes.values.stands_for.commit", WITH_VALUE("{name: x, stands_for: {source: src, commit: v1^}}"),        \
	  IS(VALUE.stands_for_commit, "v1^"))                                                                          \
	X(32, "axes.values.stands_for.file",                                                                           \
	  WITH_VALUE("{name: x, stands_for: {source: src, commit: v1, file: a/..b.rs}}"),                              \
	  IS(VALUE.stands_for_file, "a/..b.rs"))                                                                       \
	X(33, "axes.values.stands_for.contains",                                                                       \
	  WITH_VALUE("{name: x, stands_for: {source: src, commit: v1, file: a, contains: [\" x \", y]}}"),             \
	  IS(ITEM(VALUE.stands_for_contains, 0), " x ") && VALUE.stands_for_contains.count == 2)                       \
	X(34, "overrides", WITH_EDIT("file: f, find: x, replace: y"),                                                  \
	  config->override_count == 1 && config->overrides[0].line == 5)                                               \
	X(35, "overrides.name", WITH_EDIT("file: f, find: x, replace: y"), IS(config->overrides[0].name, "o"))         \
	X(36, "overrides.crate", WITH_EDIT("file: f, find: x, replace: y"), IS(config->overrides[0].crate, "k"))       \
	X(37, "overrides.source", WITH_OVERRIDE("name: o, source: src, edits: [{file: f, find: x, replace: y}]"),      \
	  IS(config->overrides[0].source, "src") && config->overrides[0].crate == NULL)                                \
	X(38, "overrides.os",                                                                                          \
	  WITH_OVERRIDE("name: o, crate: k, os: illumos, edits: [{file: f, find: x, replace: y}]"),                    \
	  IS(ITEM(config->overrides[0].os, 0), "illumos"))                                                             \
	X(39, "overrides.reason",                                                                                      \
	  WITH_OVERRIDE("name: o, crate: k, reason: why, edits: [{file: f, find: x, replace: y}]"),                    \
	  IS(config->overrides[0].reason, "why"))                                                                      \
	X(40, "overrides.edits", WITH_EDIT("file: f, find: x, replace: y"), config->overrides[0].edit_count == 1)      \
	X(41, "overrides.edits.file", WITH_EDIT("file: s/f, find: x, replace: y"),                                     \
	  IS(config->overrides[0].edits[0].file, "s/f"))                                                               \
	X(42, "overrides.edits.find", WITH_EDIT("file: f, find: \"x\\n\", replace: y"),                                \
	  IS(config->overrides[0].edits[0].find, "x\n"))                                                               \
	X(43, "overrides.edits.replace", WITH_EDIT("file: f, find: x, replace: \"\""),                                 \
	  IS(config->overrides[0].edits[0].replace, ""))                                                               \
	X(44, "overrides.edits.matches", WITH_EDIT("file: f, find: x, replace: y, matches: 2..3"),                     \
	  config->overrides[0].edits[0].min == 2 && config->overrides[0].edits[0].max == 3)                            \
	X(45, "exclude", TOP "exclude:\n  - {profile: \"!@last\"}\n",                                                  \
	  config->exclude.count == 1 && config->exclude.items[0].line == 5 &&                                          \
		  IS(config->exclude.items[0].matches[0].axis, "profile") &&                                           \
		  IS(ITEM(config->exclude.items[0].matches[0].patterns, 0), "!@last"))                                 \
	X(46, "include", TOP "include: [{profile: [dev, \"rel*\"]}]\n",                                                \
	  config->include.items[0].matches[0].patterns.count == 2)                                                     \
	X(47, "reproducer", TOP, config->reproducer.build_count == 0)                                                  \
	X(48, "reproducer.path", TOP, IS(config->reproducer.path, "/inv/r"))                                           \
	X(49, "reproducer.build", WITH_REPRODUCER("run: [x], build: [[a, b], [c]]"),                                   \
	  config->reproducer.build_count == 2 && IS(ITEM(config->reproducer.build[0], 1), "b"))                        \
	X(50, "reproducer.run", WITH_REPRODUCER("run: [x, \"\"]"),                                                     \
	  config->reproducer.run.count == 2 && IS(ITEM(config->reproducer.run, 1), ""))                                \
	X(51, "reproducer.environment", WITH_REPRODUCER("run: x, environment: {P: \"{target}\"}"),                     \
	  IS(strmap_get(&config->reproducer.environment, "P"), "{target}"))                                            \
	X(52, "reproducer.runs", WITH_REPRODUCER("run: x, runs: 1000"), config->reproducer.runs == 1000)               \
	X(53, "reproducer.expect", WITH_REPRODUCER("run: x, expect: {}"),                                              \
	  config->reproducer.expect_exit == 0 && config->reproducer.expect_output == NULL)                             \
	X(54, "reproducer.expect.exit", WITH_REPRODUCER("run: x, expect: {exit: 255}"),                                \
	  config->reproducer.expect_exit == 255)                                                                       \
	X(55, "reproducer.expect.output", WITH_REPRODUCER("run: x, expect: {output: \"^[a-f0-9]{40} (x|y)$\"}"),       \
	  IS(config->reproducer.expect_output, "^[a-f0-9]{40} (x|y)$"))                                                \
	X(56, "reproducer.limits", WITH_LIMITS(""), config->reproducer.build_ms == 0)                                  \
	X(57, "reproducer.limits.build", WITH_LIMITS("build: 90"), config->reproducer.build_ms == 90000)               \
	X(58, "reproducer.limits.run", WITH_LIMITS("run: 500ms"), config->reproducer.run_ms == 500)                    \
	X(59, "reproducer.limits.memory", WITH_LIMITS("memory: 4GiB"), config->reproducer.memory_bytes == 4LL << 30)   \
	X(60, "reproducer.limits.processes", WITH_LIMITS("processes: 1"), config->reproducer.processes == 1)           \
	X(61, "reproducer.limits.output", WITH_LIMITS("output: 1MB"), config->reproducer.output_bytes == 1000000)      \
	X(62, "reproducer.limits.file", WITH_LIMITS("file: 512"), config->reproducer.file_bytes == 512)                \
	X(63, "reproducer.sandbox", WITH_REPRODUCER("run: x, sandbox: none"), IS(config->reproducer.sandbox, "none"))  \
	X(64, "reproducer.network", WITH_REPRODUCER("run: x, network: build"), config->reproducer.network_for_build)   \
	X(65, "webhooks", WITH_TEAM(""), config->webhook_count == 1 && config->webhooks[0].line == 4)                  \
	X(66, "webhooks.name", WITH_TEAM(""), IS(config->webhooks[0].name, "team"))                                    \
	X(67, "webhooks.url", WITH_TEAM(""), IS(config->webhooks[0].url, "http://h/"))                                 \
	X(68, "webhooks.format", WITH_TEAM("format: slack"), config->webhooks[0].format == WEBHOOK_SLACK)              \
	X(69, "webhooks.secret_file", WITH_TEAM("secret_file: s"), IS(config->webhooks[0].secret_file, "/inv/s"))      \
	X(70, "webhooks.secret_env", WITH_TEAM("secret_env: S"), IS(config->webhooks[0].secret_env, "S"))              \
	X(71, "webhooks.token_file", WITH_TEAM("token_file: /t"), IS(config->webhooks[0].token_file, "/t"))            \
	X(72, "webhooks.token_env", WITH_TEAM("token_env: T"), IS(config->webhooks[0].token_env, "T"))                 \
	X(73, "webhooks.events", WITH_TEAM("events: [verdict, verdict]"),                                              \
	  config->webhooks[0].events.count == 1 && IS(ITEM(config->webhooks[0].events, 0), "verdict"))                 \
	X(74, "webhooks.give_up_after", WITH_TEAM("give_up_after: 2h"), config->webhooks[0].give_up_after_ms == 7200000) \
	X(75, "report_url", TOP "report_url: \"https://r/{name}\"\n", IS(config->report_url, "https://r/{name}"))                \
	X(76, "twins", WITH_TWIN("name: t, " TWIN_EDITS), config->twin_count == 1 && config->twins[0].crate == NULL)               \
	X(77, "twins.name", WITH_TWIN("name: t, " TWIN_EDITS), IS(config->twins[0].name, "t"))                                     \
	X(78, "twins.crate", WITH_TWIN("name: t, crate: k, " TWIN_EDITS), IS(config->twins[0].crate, "k"))                         \
	X(79, "twins.source", WITH_TWIN("name: t, source: src, " TWIN_EDITS), IS(config->twins[0].source, "src"))                  \
	X(80, "twins.os", WITH_TWIN("name: t, os: linux, " TWIN_EDITS), IS(ITEM(config->twins[0].os, 0), "linux"))                 \
	X(81, "twins.reason", WITH_TWIN("name: t, reason: why, " TWIN_EDITS), IS(config->twins[0].reason, "why"))                  \
	X(82, "twins.edits", WITH_TWIN("name: t, " TWIN_EDITS), config->twins[0].edit_count == 1)                                  \
	X(83, "twins.edits.file", WITH_TWIN("name: t, " TWIN_EDITS), IS(config->twins[0].edits[0].file, "f"))                      \
	X(84, "twins.edits.find", WITH_TWIN("name: t, " TWIN_EDITS), IS(config->twins[0].edits[0].find, "x"))                      \
	X(85, "twins.edits.replace", WITH_TWIN("name: t, " TWIN_EDITS), IS(config->twins[0].edits[0].replace, "y"))                \
	X(86, "twins.edits.matches", WITH_TWIN("name: t, edits: [{file: f, find: x, replace: y, matches: 2..3}]"),                 \
	  config->twins[0].edits[0].min == 2 && config->twins[0].edits[0].max == 3)                                                \
	X(87, "evidence", TOP "evidence: {}\n", IS(config->evidence.gather, "auto") && config->evidence.function == NULL)         \
	X(88, "evidence.gather", TOP "evidence: {gather: never}\n", IS(config->evidence.gather, "never"))                         \
	X(89, "evidence.function", TOP "evidence: {function: \"^a::b$\"}\n", IS(config->evidence.function, "^a::b$"))

#define HOLDS(number, path, yaml, condition)                                                                           \
	static bool holds_##number(const struct config *config)                                                        \
	{                                                                                                              \
		return condition;                                                                                      \
	}
KEY_CASES(HOLDS)

#define KEY_CASE(number, path, yaml, condition) {path, yaml, holds_##number},
static const struct key_case key_cases[] = {KEY_CASES(KEY_CASE)};

static void test_key(void **state)
{
	const struct key_case *c = *state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	int result = parse(&config, c->yaml, &problems);
	assert_no_problem(&problems);
	assert_int_equal(result, 0);
	assert_true(c->holds(&config));
}

/* ---- given one mistake, then one line with its place ---- */

struct bad_case {
	const char *name;
	const char *yaml;
	const char
		*expected; /* without the file; NULL-terminated list by newlines when the mistake has several places */
};

#include "test_config_bad.h"

static void test_bad(void **state)
{
	const struct bad_case *c = *state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(parse(&config, c->yaml, &problems), -1);
	cleanup_str struct str found = {0};
	for (size_t i = 0; i < problems.count; i++) {
		assert_true(text_starts_with(problems.items[i], "/inv/a.yaml:"));
		str_append_format(&found, "%s%s", i > 0 ? "\n" : "", problems.items[i] + strlen("/inv/a.yaml:"));
	}
	assert_string_equal(str_text(&found), c->expected);
}

/* ---- hostile files ---- */

static void test_hostile(void **state)
{
	const struct bad_case *c = *state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	cleanup_free char *file = text_format(DATA "hostile/%s", c->yaml);
	assert_int_equal(config_load(&config, file, &problems), -1);
	assert_int_equal(problems.count, 1);
	cleanup_free char *expected = text_format("%s:%s", file, c->expected);
	assert_string_equal(problems.items[0], expected);
}

/* ---- single tests ---- */

static void test_example_means_what_it_says(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	int result = config_load(&config, DATA "config/usdt-86.yaml", &problems);
	assert_no_problem(&problems);
	assert_int_equal(result, 0);
	cleanup_free char *folder = path_absolute(DATA "config");
	cleanup_free char *search = text_format("%s/../../var/toolchains", folder);
	cleanup_free char *path = text_format("%s/reproducer", folder);
	assert_string_equal(config.file, DATA "config/usdt-86.yaml");
	assert_true(text_starts_with(config.text, "name: usdt-86\n"));
	assert_int_equal(config.workers, 2);
	assert_true(config.bad[OUTCOME_FAIL] && config.bad[OUTCOME_CRASH] && !config.bad[OUTCOME_TIMEOUT]);
	assert_string_equal(config_find_source(&config, "usdt")->url, "https://example.invalid/usdt.git");
	assert_null(config_find_source(&config, "tokio"));
	assert_int_equal(config.axis_count, 4);
	assert_string_equal(config.axes[0].search.items[0], search);
	assert_string_equal(config.axes[1].crate, "usdt");
	assert_int_equal(config.axes[1].value_count, 4);
	assert_string_equal(config.axes[1].values[2].commits, "v0.5.0..v0.6.0");
	assert_string_equal(config.axes[3].values[0].stands_for_contains.items[0], "x");
	assert_string_equal(config.axes[3].values[1].note, "no probe at all");
	assert_int_equal(config.overrides[0].edits[0].min, 1);
	assert_int_equal(config.overrides[0].edits[0].max, -1);
	assert_string_equal(config.reproducer.path, path);
	assert_int_equal(config.reproducer.build_count, 1);
	assert_int_equal(config.reproducer.build[0].count, 6);
	assert_int_equal(config.reproducer.build_ms, 600000);
	assert_int_equal(config.reproducer.file_bytes, 1LL << 30);
	assert_int_equal(config.exclude.items[0].match_count, 2);
	assert_string_equal(config.include.items[0].matches[1].patterns.items[1], "no*");
	assert_string_equal(config.webhooks[0].secret_env, "HOOK_SECRET");
}

static void test_defaults(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text =
		"name: a\nreproducer: {path: ., run: x}\nsources: {s: {url: /s}}\n"
		"webhooks: [{name: w, url: \"https://h/\"}]\n"
		"overrides: [{name: o, crate: k, edits: [{file: f, find: x, replace: y}]}]\n"
		"axes:\n"
		"- {name: t, type: toolchain, values: [auto]}\n- {name: u, type: commit, source: s, values: [v]}\n"
		"- {name: k, type: crate, values: [1.0]}\n- {name: p, type: profile, values: [dev]}\n"
		"- {name: c, type: choice, values: [x]}\n";
	int result = parse(&config, text, &problems);
	assert_no_problem(&problems);
	assert_int_equal(result, 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(config.axes[i].ordered, i < 3);
	assert_int_equal(config.workers, 0);
	assert_int_equal(config.confirm, 3);
	assert_int_equal(config.retries, 2);
	assert_true(config.bad[OUTCOME_FAIL] && config.bad[OUTCOME_CRASH]);
	assert_string_equal(config.reproducer.path, "/inv");
	assert_string_equal(config.reproducer.sandbox, "auto");
	assert_int_equal(config.reproducer.runs, 1);
	assert_false(config.reproducer.network_for_build);
	assert_int_equal(config.overrides[0].edits[0].min, 1);
	assert_int_equal(config.overrides[0].edits[0].max, 1);
	assert_int_equal(config.webhooks[0].format, WEBHOOK_GENERIC);
	assert_int_equal(config.webhooks[0].events.count, 3);
	assert_int_equal(config.webhooks[0].give_up_after_ms, 86400000);
}

static void test_other_braces_are_left_alone(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = WITH_REPRODUCER(
		"run: [sh, -c, \"awk '{print $1}' ${HOME} ${HOME}/{a,b} {} {1} { x; }\", '{\"json\": 1}', "
		"\"{checkout:src}\", \"{target}{profile_dir}{features}{rustflags}{workspace}{rustc}\", "
		"\"{cargo} {compiler} {profile}\"]");
	int result = parse(&config, text, &problems);
	assert_no_problem(&problems);
	assert_int_equal(result, 0);
}

static void test_placeholder_of_a_choice_is_known(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = "reproducer: {path: r, run: [\"{level}\", \"{c}\"]}\nname: a\n"
			   "axes: [{name: c, type: choice, values: [{name: x, placeholders: {level: 1}}]}]\n";
	int result = parse(&config, text, &problems);
	assert_no_problem(&problems);
	assert_int_equal(result, 0);
}

static void test_aliases_are_followed(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = "name: a\nreproducer: {path: r, run: &cmd [x, y], build: *cmd}\n"
			   "axes: [{name: p, type: profile, values: &v [dev]}, {name: q, type: choice, values: *v}]\n";
	assert_int_equal(parse(&config, text, &problems), 0);
	assert_string_equal(config.reproducer.build[0].items[1], "y");
	assert_string_equal(config.axes[1].values[0].name, "dev");
}

static void test_problem_in_an_alias_is_said_once(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = TOP "sources: {s: &s {url: nonsense, x: 1}, t: *s}\n";
	assert_int_equal(parse(&config, text, &problems), -1);
	assert_int_equal(problems.count, 2);
}

static void test_all_problems_come_in_order(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = "workers: x\nexclude: [{nope: a}]\nretries: 99\naxes: []\nbad: [passed]\n";
	assert_int_equal(parse(&config, text, &problems), -1);
	static const char *const places[] = {"1:1:", "1:1:", "1:10:", "2:12:", "3:10:", "4:7:", "5:7:"};
	assert_int_equal(problems.count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_true(text_starts_with(problems.items[i] + strlen("/inv/a.yaml:"), places[i]));
}

static void test_byte_order_mark_and_line_ends_do_not_matter(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	const char *text = "\xef\xbb\xbfname: a\r\nreproducer: {path: r, run: [x]}\r\n"
			   "axes: [{name: p, type: profile, values: [dev]}]\r\nworkers: z\r\n";
	assert_int_equal(parse(&config, text, &problems), -1);
	assert_int_equal(problems.count, 1);
	assert_true(text_starts_with(problems.items[0], "/inv/a.yaml:4:10: "));
}

static void test_columns_count_characters(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(parse(&config, TOP "sources: {s: {alternates: \"/é\", ürl: x, url: /s}}\n", &problems), -1);
	assert_string_equal(
		problems.items[0],
		"/inv/a.yaml:4:33: unknown key \"ürl\" in a source: remove it; known keys are url, alternates");
}

static void test_many_problems_are_counted(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(config_load(&config, DATA "hostile/many-problems.yaml", &problems), -1);
	assert_int_equal(problems.count, CONFIG_PROBLEM_LIMIT + 1);
	assert_non_null(strstr(problems.items[CONFIG_PROBLEM_LIMIT], "more problems are not shown: mend these first"));
}

static void test_too_many_nodes(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	cleanup_str struct str text = {0};
	str_append(&text, "bad: [");
	for (size_t i = 0; i <= CONFIG_NODE_LIMIT; i++)
		str_append(&text, "a,");
	str_append(&text, "]\n");
	assert_int_equal(parse(&config, text.data, &problems), -1);
	assert_int_equal(problems.count, 1);
	assert_non_null(strstr(problems.items[0], "grows beyond 50000 entries or 4 MiB here: make it smaller"));
}

static void fill(const char *file, size_t size)
{
	cleanup_str struct str text = {0};
	while (text.length < size)
		str_append(&text, "#");
	cleanup_error struct error error = {0};
	assert_int_equal(fs_write_file(file, text.data, size, &error), 0);
}

/* 24,000 patterns on 24,000 values would be half a milliard comparisons: four million are made. */
static void test_search_for_patterns_that_match_nothing_is_bounded(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	cleanup_str struct str text = {0};
	str_append(&text, "name: a\nreproducer: {path: r, run: [x]}\naxes: [{name: p, type: profile, values: [");
	for (unsigned i = 0; i < 24000; i++)
		str_append_format(&text, "v%u,", i);
	str_append(&text, "]}]\nexclude: [{p: [");
	for (unsigned i = 0; i < 24000; i++)
		str_append(&text, "none,");
	str_append(&text, "]}]\n");
	assert_int_equal(parse(&config, text.data, &problems), -1);
	assert_int_equal(problems.count, 4000000 / 24000);
}

static void test_files_that_cannot_be_read(void **state)
{
	(void)state;
	char folder[] = "/tmp/test_config.XXXXXX";
	assert_non_null(mkdtemp(folder));
	cleanup_free char *file = path_join(folder, "a.yaml");
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(config_load(&config, folder, &problems), -1);
	assert_int_equal(config_load(&config, file, &problems), -1);
	fill(file, (1 << 20) + 1);
	assert_int_equal(config_load(&config, file, &problems), -1);
	fill(file, 1 << 20);
	assert_int_equal(config_load(&config, file, &problems), -1);
	config_clear(&config);
	assert_int_equal(problems.count, 4);
	assert_non_null(strstr(problems.items[0], ":1:1: this is a folder: name the investigation's YAML file in it"));
	assert_non_null(strstr(problems.items[1], "No such file or directory"));
	assert_non_null(strstr(problems.items[2], ":1:1: the file is larger than 1 MiB"));
	assert_non_null(strstr(problems.items[3], ":1:1: the file is empty"));
	bool root = geteuid() == 0;
	if (!root) {
		assert_int_equal(chmod(file, 0), 0);
		assert_int_equal(config_load(&config, file, &problems), -1);
		assert_non_null(strstr(problems.items[4], "Permission denied"));
	}
	unlink(file);
	rmdir(folder);
	if (root)
		print_message("[  SKIPPED ] a file without permission: root reads everything\n");
}

/* A member that was set twice or half must still be freed; ASan and valgrind look on. */
static void test_clear_after_every_cut(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	assert_int_equal(fs_read_file(DATA "config/usdt-86.yaml", 0, &text, &error), 0);
	for (size_t length = 0; length < text.length; length += 7) {
		cleanup_config struct config config = {0};
		cleanup_strlist struct strlist problems = {0};
		int result = config_parse(&config, "a.yaml", text.data, length, &problems);
		assert_true((result == 0) == (problems.count == 0));
	}
}

/* The C library says why, in its own words. */
static void test_expression_that_does_not_compile(void **state)
{
	(void)state;
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(parse(&config, WITH_REPRODUCER("run: x, expect: {output: \"(a\"}"), &problems), -1);
	assert_int_equal(problems.count, 1);
	assert_true(text_starts_with(problems.items[0], "/inv/a.yaml:1:48: \"output\" must be a POSIX extended regular "
							"expression, not \"(a\": "));
}

static void test_clear_twice(void **state)
{
	(void)state;
	struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	assert_int_equal(parse(&config, TOP, &problems), 0);
	config_clear(&config);
	config_clear(&config);
	assert_null(config.axes);
}

/* ---- the tables themselves ---- */

typedef void visit_key(const char *path, const char *key, void *context);

static void walk_table(const struct config_table *table, const char *prefix, visit_key *visit, void *context)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct config_field *field = &table->fields[i];
		cleanup_free char *path = text_format("%s%s", prefix, field->key);
		cleanup_free char *below = text_format("%s.", path);
		visit(path, field->key, context);
		if (field->table != NULL)
			walk_table(field->table, below, visit, context);
		if (field->records != NULL && field->records->table != NULL)
			walk_table(field->records->table, below, visit, context);
	}
}

static void visit_for_test(const char *path, const char *key, void *context)
{
	(void)key;
	(void)context;
	for (size_t i = 0; i < sizeof key_cases / sizeof *key_cases; i++)
		if (strcmp(key_cases[i].path, path) == 0)
			return;
	fail_msg("no test reads %s: add a row to KEY_CASES", path);
}

static void test_every_key_has_a_test(void **state)
{
	(void)state;
	walk_table(&config_schema, "", visit_for_test, NULL);
}

static void visit_for_docs(const char *path, const char *key, void *context)
{
	cleanup_free char *quoted = text_format("`%s`", key);
	if (strstr(context, quoted) == NULL)
		fail_msg("docs/config.md does not name %s (key %s)", path, quoted);
}

static void test_every_key_is_documented(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	if (fs_read_file("docs/config.md", 0, &text, &error) < 0)
		fail_msg("%s", error_text(&error));
	walk_table(&config_schema, "", visit_for_docs, text.data);
}

static void test_names_of_enums(void **state)
{
	(void)state;
	assert_string_equal(axis_type_name(AXIS_TOOLCHAIN), "toolchain");
	assert_string_equal(axis_type_name(AXIS_CHOICE), "choice");
	assert_string_equal(webhook_format_name(WEBHOOK_GITHUB_ISSUE_COMMENT), "github-issue-comment");
}

/* ---- all together ---- */

enum {
	KEY_COUNT = sizeof key_cases / sizeof *key_cases,
	BAD_COUNT = sizeof bad_cases / sizeof *bad_cases,
	HOSTILE_COUNT = sizeof hostile_cases / sizeof *hostile_cases,
	TABLE_COUNT = KEY_COUNT + BAD_COUNT + HOSTILE_COUNT,
};

static const struct CMUnitTest single_tests[] = {
	cmocka_unit_test(test_example_means_what_it_says),
	cmocka_unit_test(test_defaults),
	cmocka_unit_test(test_other_braces_are_left_alone),
	cmocka_unit_test(test_placeholder_of_a_choice_is_known),
	cmocka_unit_test(test_aliases_are_followed),
	cmocka_unit_test(test_problem_in_an_alias_is_said_once),
	cmocka_unit_test(test_all_problems_come_in_order),
	cmocka_unit_test(test_byte_order_mark_and_line_ends_do_not_matter),
	cmocka_unit_test(test_columns_count_characters),
	cmocka_unit_test(test_many_problems_are_counted),
	cmocka_unit_test(test_too_many_nodes),
	cmocka_unit_test(test_search_for_patterns_that_match_nothing_is_bounded),
	cmocka_unit_test(test_files_that_cannot_be_read),
	cmocka_unit_test(test_clear_after_every_cut),
	cmocka_unit_test(test_expression_that_does_not_compile),
	cmocka_unit_test(test_clear_twice),
	cmocka_unit_test(test_every_key_has_a_test),
	cmocka_unit_test(test_every_key_is_documented),
	cmocka_unit_test(test_names_of_enums),
};

/* cmocka hands the row on as `void *`; the tests only read it. */
static struct CMUnitTest row_test(const char *name, CMUnitTestFunction function, const void *row)
{
	return (struct CMUnitTest){.name = name, .test_func = function, .initial_state = (void *)(uintptr_t)row};
}

int main(void)
{
	struct CMUnitTest tests[TABLE_COUNT] = {{0}};
	size_t count = 0;
	for (size_t i = 0; i < KEY_COUNT; i++)
		tests[count++] = row_test(key_cases[i].path, test_key, &key_cases[i]);
	for (size_t i = 0; i < BAD_COUNT; i++)
		tests[count++] = row_test(bad_cases[i].name, test_bad, &bad_cases[i]);
	for (size_t i = 0; i < HOSTILE_COUNT; i++)
		tests[count++] = row_test(hostile_cases[i].yaml, test_hostile, &hostile_cases[i]);
	int failed = cmocka_run_group_tests_name("config: rows", tests, NULL, NULL);
	return failed + cmocka_run_group_tests_name("config", single_tests, NULL, NULL);
}
