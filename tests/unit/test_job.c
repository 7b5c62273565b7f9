/* job: every member of both structures survives the way to the other program; what is wrong is refused by name. */
#include "job.h"
#include "place.h"

/*
 * The members, once for filling and once for comparing.  A member that is missing here or in job.c's table shows in
 * every_member_of_a_job_is_walked, which looks for bytes that no row covers.
 */
#define TEXTS(X)                                                                                                       \
	X(kind)                                                                                                        \
	X(id) X(reproducer) X(workspace) X(target) X(prepared) X(expect_output) X(sandbox) X(cargo) X(crate) X(vendor) \
		X(edited) X(lock) X(evidence) X(compare) X(function) X(tools) X(bad_outcome) X(clang) X(report)
#define NUMBERS(X)                                                                                                     \
	X(runs) X(expect_exit) X(build_ms) X(run_ms) X(memory_bytes) X(processes) X(output_bytes) X(file_bytes) X(budget_ms)
#define FLAGS(X) X(clean) X(network_for_build) X(compile) X(all_packages)
#define LISTS(X) X(path) X(read_only) X(run) X(names) X(search) X(files) X(flags)
#define MAPS(X) X(checkouts) X(environment) X(placeholders)
#define JSONS(X) X(build) X(crates) X(overrides) X(edits)

#define RESULT_TEXTS(X) X(reason) X(signature) X(binary) X(commands) X(sandbox)
#define RESULT_NUMBERS(X) X(exit_status) X(signal) X(build_ms) X(run_ms)
#define RESULT_JSONS(X) X(runs) X(data)

/* No two members get the same content, so that none can stand in for another. */
static void fill_list(struct strlist *list, const char *name)
{
	strlist_add_owned(list, text_format("%s one", name));
	strlist_add(list, "");
	strlist_add_owned(list, text_format("%s \"two\"\n\t\\ \xc3\xa4", name));
}

static void fill_map(struct strmap *map, const char *name)
{
	strmap_set(map, "z", name);
	strmap_set(map, name, "");
	strmap_set(map, "a", "1");
}

static void fill_job(struct job *job)
{
	long long number = 1;
#define X(member) job->member = text_format("%s \"\n\xe2\x82\xac", #member);
	TEXTS(X)
#undef X
#define X(member) job->member = INT64_MAX - number++;
	NUMBERS(X)
#undef X
#define X(member) job->member = true;
	FLAGS(X)
#undef X
#define X(member) fill_list(&job->member, #member);
	LISTS(X)
#undef X
#define X(member) fill_map(&job->member, #member);
	MAPS(X)
#undef X
#define X(member) job->member = json_pack("[{s:i, s:n}, s]", #member, 1, "null", "x");
	JSONS(X)
#undef X
}

static void assert_same_list(const struct strlist *a, const struct strlist *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		assert_string_equal(a->items[i], b->items[i]);
}

static void assert_same_map(const struct strmap *a, const struct strmap *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->entries[i].key, b->entries[i].key);
		assert_string_equal(a->entries[i].value, b->entries[i].value);
	}
}

static void assert_same_job(const struct job *a, const struct job *b)
{
#define X(member)                                                                                                      \
	if (!text_equal(a->member, b->member))                                                                         \
		fail_msg("%s differs", #member);
	TEXTS(X)
#undef X
#define X(member)                                                                                                      \
	if (a->member != b->member)                                                                                    \
		fail_msg("%s differs", #member);
	NUMBERS(X)
	FLAGS(X)
#undef X
#define X(member) assert_same_list(&a->member, &b->member);
	LISTS(X)
#undef X
#define X(member) assert_same_map(&a->member, &b->member);
	MAPS(X)
#undef X
#define X(member)                                                                                                      \
	if (a->member != b->member && !json_equal(a->member, b->member))                                               \
		fail_msg("%s differs", #member);
	JSONS(X)
#undef X
}

/* ---- given a job, when it is encoded and decoded, then it is the same ---- */

static void a_full_job_comes_back_whole_in_one_line(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {0};
	cleanup_job struct job back = {0};
	fill_job(&job);
	cleanup_free char *line = job_encode(&job);
	assert_null(strchr(line, '\n'));
	assert_done(job_decode(&back, line, strlen(line), &error), &error);
	assert_same_job(&job, &back);
}

static void a_job_with_nothing_but_its_kind_comes_back_empty(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {.kind = text_copy("cell")};
	cleanup_job struct job back = {0};
	cleanup_free char *line = job_encode(&job);
	assert_done(job_decode(&back, line, strlen(line), &error), &error);
	assert_same_job(&job, &back);
	assert_null(back.id);
	assert_null(back.build);
}

static void every_member_of_a_job_is_walked(void **state)
{
	(void)state;
	unsigned char covered[sizeof(struct job)] = {0};
#define X(member) memset(covered + offsetof(struct job, member), 1, sizeof((struct job *)0)->member);
	TEXTS(X)
	NUMBERS(X) FLAGS(X) LISTS(X) MAPS(X) JSONS(X)
#undef X
		for (size_t i = 0, run = 0; i < sizeof covered; i++)
	{
		run = covered[i] ? 0 : run + 1;
		if (run >= sizeof(long long))
			fail_msg("no row for the member at byte %zu of struct job", i);
	}
}

static void every_member_of_a_result_comes_back(void **state)
{
	(void)state;
	for (int outcome = OUTCOME_PASS; outcome < OUTCOME_COUNT; outcome++) {
		cleanup_error struct error error = {0};
		cleanup_result struct result result = {.outcome = (enum outcome)outcome};
		cleanup_result struct result back = {0};
		long long number = 0;
#define X(member) result.member = text_format("%s \"\n\xe2\x82\xac", #member);
		RESULT_TEXTS(X)
#undef X
#define X(member) result.member = INT64_MIN + number++;
		RESULT_NUMBERS(X)
#undef X
#define X(member) result.member = json_pack("[s, n, f]", #member, 0.5);
		RESULT_JSONS(X)
#undef X
		cleanup_free char *line = result_encode(&result);
		json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		assert_string_equal(json_string_value(json_object_get(event, "event")), "result");
		assert_done(result_decode(&back, event, &error), &error);
		json_decref(event);
		assert_int_equal(back.outcome, outcome);
#define X(member) assert_true(text_equal(result.member, back.member));
		RESULT_TEXTS(X)
#undef X
#define X(member) assert_true(result.member == back.member);
		RESULT_NUMBERS(X)
#undef X
#define X(member) assert_true(json_equal(result.member, back.member));
		RESULT_JSONS(X)
#undef X
	}
}

static void text_that_is_no_utf8_is_shown_and_never_lost(void **state)
{
	(void)state;
	static const char *const texts[][2] = {{"a\xff"
						"b",
						"a?b"},
					       {"\xc3", "?"},
					       {"\xed\xa0\x80", "???"},
					       {"\xc3\xa4\xfe", "???"},
					       {"\xc3\xa4", "\xc3\xa4"}};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_job struct job job = {.kind = text_copy("cell"), .id = text_copy(texts[i][0])};
		cleanup_job struct job back = {0};
		strlist_add(&job.run, texts[i][0]);
		strmap_set(&job.environment, "A", texts[i][0]);
		cleanup_free char *line = job_encode(&job);
		assert_done(job_decode(&back, line, strlen(line), &error), &error);
		assert_string_equal(back.id, texts[i][1]);
		assert_string_equal(back.run.items[0], texts[i][1]);
		assert_string_equal(strmap_get(&back.environment, "A"), texts[i][1]);
		cleanup_result struct result result = {.outcome = OUTCOME_FAIL, .signature = text_copy(texts[i][0])};
		cleanup_result struct result result_back = {0};
		cleanup_free char *event_line = result_encode(&result);
		json_t *event = json_loads(event_line, 0, NULL);
		assert_done(result_decode(&result_back, event, &error), &error);
		json_decref(event);
		assert_string_equal(result_back.signature, texts[i][1]);
	}
}

static void a_huge_job_comes_back(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {.kind = text_copy("prepare")};
	cleanup_job struct job back = {0};
	job.lock = memory_new(3000001, 1);
	memset(job.lock, '"', 3000000);
	for (int i = 0; i < 10000; i++)
		strlist_add_owned(&job.names, text_format("name %d", i));
	cleanup_free char *line = job_encode(&job);
	assert_done(job_decode(&back, line, strlen(line), &error), &error);
	assert_same_job(&job, &back);
}

/* ---- given a wrong line, when it is decoded, then it is refused with what is wrong ---- */

static void a_wrong_job_is_refused_with_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *line; /* ' for " */
		const char *message;
	} cases[] = {
		{"", "the job is no JSON: "},
		{"{", "the job is no JSON: "},
		{"{'version':1,'kind':'cell'} x", "the job is no JSON: "},
		{"{'version':1,'kind':'cell','kind':'prepare'}", "the job is no JSON: "},
		{"{'version':1,'kind':'a\\u0000b'}", "the job is no JSON: "},
		{"{'version':1,'kind':'\xff'}", "the job is no JSON: "},
		{"[]", "the job is no JSON object"},
		{"{'kind':'cell'}",
		 "the job speaks protocol version 0, this worker 1: install both programs from one release"},
		{"{'version':2,'kind':'cell'}", "the job speaks protocol version 2, this worker 1"},
		{"{'version':'1','kind':'cell'}", "the job speaks protocol version 0"},
		{"{'version':1}", "the job has no \"kind\""},
		{"{'version':1,'kind':null}", "the job has no \"kind\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_job struct job job = {0};
		cleanup_free char *line = text_copy(cases[i].line);
		for (char *byte = line; *byte != '\0'; byte++)
			*byte = *byte == '\'' ? '"' : *byte;
		assert_int_equal(job_decode(&job, line, strlen(line), &error), -1);
		assert_says(&error, cases[i].message);
	}
}

static void a_job_of_a_later_daemon_may_know_more(void **state)
{
	(void)state;
	static const char line[] = "{\"version\":1,\"kind\":\"cell\",\"later\":{\"a\":[1]},\"id\":null}\n";
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {0};
	assert_done(job_decode(&job, line, strlen(line), &error), &error);
	assert_string_equal(job.kind, "cell");
	assert_null(job.id);
}

static void json_nested_without_end_is_refused(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {0};
	cleanup_str struct str line = {0};
	str_append(&line, "{\"version\":1,\"kind\":\"cell\",\"build\":");
	for (int i = 0; i < 1000000; i++)
		str_append(&line, "[");
	assert_int_equal(job_decode(&job, str_text(&line), line.length, &error), -1);
	assert_says(&error, "the job is no JSON: ");
}

static void assert_job_refused(const char *member, const char *value)
{
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {0};
	cleanup_free char *line = strcmp(member, "kind") == 0
					  ? text_format("{\"version\":1,\"kind\":%s}", value)
					  : text_format("{\"version\":1,\"kind\":\"cell\",\"%s\":%s}", member, value);
	cleanup_free char *message = text_format("the job: \"%s\" has a value of the wrong type", member);
	if (job_decode(&job, line, strlen(line), &error) == 0)
		fail_msg("%s was taken", line);
	assert_string_equal(error_text(&error), message);
}

static void a_member_of_the_wrong_type_is_refused_by_name(void **state)
{
	(void)state;
#define X(member)                                                                                                      \
	assert_job_refused(#member, "1");                                                                              \
	assert_job_refused(#member, "[]");                                                                             \
	assert_job_refused(#member, "false");
	TEXTS(X)
#undef X
#define X(member)                                                                                                      \
	assert_job_refused(#member, "\"1\"");                                                                          \
	assert_job_refused(#member, "1.5");                                                                            \
	assert_job_refused(#member, "true");
	NUMBERS(X)
#undef X
#define X(member)                                                                                                      \
	assert_job_refused(#member, "0");                                                                              \
	assert_job_refused(#member, "\"true\"");
	FLAGS(X)
#undef X
#define X(member)                                                                                                      \
	assert_job_refused(#member, "\"a\"");                                                                          \
	assert_job_refused(#member, "[\"a\", 1]");                                                                     \
	assert_job_refused(#member, "[null]");
	LISTS(X)
#undef X
#define X(member)                                                                                                      \
	assert_job_refused(#member, "[]");                                                                             \
	assert_job_refused(#member, "{\"a\": 1}");                                                                     \
	assert_job_refused(#member, "{\"a\": null}");
	MAPS(X)
#undef X
}

static void a_number_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	static const char line[] = "{\"version\":1,\"kind\":\"cell\",\"runs\":9223372036854775808}";
	cleanup_error struct error error = {0};
	cleanup_job struct job job = {0};
	assert_int_equal(job_decode(&job, line, strlen(line), &error), -1);
}

static void a_wrong_result_is_refused_with_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *event; /* ' for " */
		const char *message;
	} cases[] = {
		{"{'event':'result'}", "the result has no \"outcome\""},
		{"{'event':'result','outcome':null}", "the result has no \"outcome\""},
		{"{'event':'result','outcome':''}", "the result: \"outcome\" has a value of the wrong type"},
		{"{'event':'result','outcome':'won'}", "the result: \"outcome\" has a value of the wrong type"},
		{"{'event':'result','outcome':1}", "the result: \"outcome\" has a value of the wrong type"},
		{"{'event':'result','outcome':'pass','reason':1}",
		 "the result: \"reason\" has a value of the wrong type"},
		{"{'event':'result','outcome':'pass','run_ms':'1'}",
		 "the result: \"run_ms\" has a value of the wrong type"},
		{"[]", "the result has no \"outcome\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_result struct result result = {0};
		cleanup_free char *text = text_copy(cases[i].event);
		for (char *byte = text; *byte != '\0'; byte++)
			*byte = *byte == '\'' ? '"' : *byte;
		json_t *event = json_loads(text, 0, NULL);
		assert_int_equal(result_decode(&result, event, &error), -1);
		assert_string_equal(error_text(&error), cases[i].message);
		json_decref(event);
	}
}

static void a_cleared_job_can_be_cleared_and_filled_again(void **state)
{
	(void)state;
	cleanup_job struct job job = {0};
	for (int i = 0; i < 2; i++) {
		fill_job(&job);
		job_clear(&job);
		job_clear(&job);
		assert_null(job.kind);
		assert_int_equal(job.names.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_job_comes_back_whole_in_one_line),
		cmocka_unit_test(a_job_with_nothing_but_its_kind_comes_back_empty),
		cmocka_unit_test(every_member_of_a_job_is_walked),
		cmocka_unit_test(every_member_of_a_result_comes_back),
		cmocka_unit_test(text_that_is_no_utf8_is_shown_and_never_lost),
		cmocka_unit_test(a_huge_job_comes_back),
		cmocka_unit_test(a_wrong_job_is_refused_with_what_is_wrong),
		cmocka_unit_test(a_job_of_a_later_daemon_may_know_more),
		cmocka_unit_test(json_nested_without_end_is_refused),
		cmocka_unit_test(a_member_of_the_wrong_type_is_refused_by_name),
		cmocka_unit_test(a_number_that_does_not_fit_is_refused),
		cmocka_unit_test(a_wrong_result_is_refused_with_what_is_wrong),
		cmocka_unit_test(a_cleared_job_can_be_cleared_and_filled_again),
	};
	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
