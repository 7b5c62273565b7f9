/* digest, outcome, error: small tables and promises that everything else stands on. */
#include <errno.h>

#include "digest.h"
#include "outcome.h"
#include "place.h"

/* ---- digest ---- */

static void the_digest_of_the_examples_of_fips_180_is_theirs(void **state)
{
	(void)state;
	static const struct {
		const char *message;
		size_t times;
		const char *digest;
	} cases[] = {
		{"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct digest digest;
		digest_start(&digest);
		for (size_t j = 0; j < cases[i].times; j++)
			digest_add_bytes(&digest, cases[i].message, strlen(cases[i].message));
		cleanup_free char *hex = digest_finish(&digest);
		assert_string_equal(hex, cases[i].digest);
	}
}

enum { PARTS = 4 };

static char *digest_of(const char *const parts[PARTS][2])
{
	struct digest digest;
	digest_start(&digest);
	for (size_t i = 0; i < PARTS && parts[i][0] != NULL; i++)
		digest_add(&digest, parts[i][0], parts[i][1]);
	return digest_finish(&digest);
}

static void no_two_ways_to_group_the_same_bytes_have_one_digest(void **state)
{
	(void)state;
	static const char *const cases[][PARTS][2] = {
		{{"a", "bc"}},
		{{"ab", "c"}},
		{{"abc", ""}},
		{{"", "abc"}},
		{{"abc", NULL}},
		{{"a", "b"}, {"", "c"}},
		{{"a", "b"}, {"c", ""}},
		{{"a", "b"}, {"c", NULL}},
		{{"a", ""}, {"b", ""}, {"c", ""}},
		{{"a", NULL}, {"b", NULL}, {"c", NULL}},
		{{"a", "bc"}, {"", ""}},
		{{"", ""}, {"a", "bc"}},
		{{"a", "1:b=1:c"}},
		{{"a", "1"}, {"b", "c"}},
		{{"a", "1:1:b=1:c"}},
		{{"1:a=2:bc", NULL}},
		{{NULL, NULL}},
	};
	enum { COUNT = sizeof cases / sizeof cases[0] };
	char *digests[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		digests[i] = digest_of(cases[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(digests[i], digests[j]);
	}
	for (size_t i = 0; i < COUNT; i++)
		free(digests[i]);
}

static void a_number_counts_as_its_decimal_text(void **state)
{
	(void)state;
	static const struct {
		long long number;
		const char *text;
	} cases[] = {{0, "0"}, {-1, "-1"}, {INT64_MAX, "9223372036854775807"}, {INT64_MIN, "-9223372036854775808"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct digest digest;
		digest_start(&digest);
		digest_add_number(&digest, "n", cases[i].number);
		cleanup_free char *number = digest_finish(&digest);
		cleanup_free char *text = digest_of((const char *const[PARTS][2]){{"n", cases[i].text}});
		assert_string_equal(number, text);
	}
}

static void every_byte_has_its_two_digits(void **state)
{
	(void)state;
	unsigned char bytes[256];
	for (size_t i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	cleanup_free char *hex = hex_encode(bytes, 256);
	cleanup_free char *none = hex_encode(bytes, 0);
	assert_string_equal(none, "");
	assert_int_equal(strlen(hex), 512);
	for (size_t i = 0; i < 256; i++) {
		cleanup_free char *pair = text_format("%02zx", i);
		assert_memory_equal(hex + 2 * i, pair, 2);
	}
}

/* ---- outcome ---- */

static void every_outcome_has_a_name_a_letter_and_a_meaning_of_its_own(void **state)
{
	(void)state;
	for (int i = OUTCOME_UNDECIDED; i < OUTCOME_COUNT; i++) {
		const char *name = outcome_name((enum outcome)i);
		assert_non_null(name);
		assert_non_null(outcome_meaning((enum outcome)i));
		assert_int_not_equal(outcome_meaning((enum outcome)i)[0], '\0');
		assert_int_not_equal(outcome_letter((enum outcome)i), '\0');
		assert_true(i == OUTCOME_UNDECIDED || name[0] != '\0');
		for (int j = OUTCOME_UNDECIDED; j < i; j++) {
			assert_string_not_equal(name, outcome_name((enum outcome)j));
			assert_int_not_equal(outcome_letter((enum outcome)i), outcome_letter((enum outcome)j));
		}
	}
}

static void the_name_of_every_outcome_is_read_back(void **state)
{
	(void)state;
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++) {
		enum outcome outcome = OUTCOME_UNDECIDED;
		assert_true(outcome_parse(outcome_name((enum outcome)i), &outcome));
		assert_int_equal(outcome, i);
	}
}

static void words_that_are_no_outcome_are_refused_and_change_nothing(void **state)
{
	(void)state;
	static const char *const words[] = {"", " ", "Pass", "pass ", "build_fail", "undecided", "passed"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		enum outcome outcome = OUTCOME_ICE;
		assert_false(outcome_parse(words[i], &outcome));
		assert_int_equal(outcome, OUTCOME_ICE);
	}
}

/* ---- error ---- */

static void an_error_gathers_its_context_from_the_outside_in(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	assert_int_equal(error_set(&error, "no such tag"), -1);
	assert_int_equal(error_wrap(&error, "resolving %s", "v0.5.0"), -1);
	assert_int_equal(error_wrap(&error, "walking %s", "usdt"), -1);
	assert_string_equal(error_text(&error), "walking usdt: resolving v0.5.0: no such tag");
}

static void an_error_names_the_errno_of_the_moment(void **state)
{
	(void)state;
	static const int numbers[] = {ENOENT, EACCES, ENOSPC, EIO};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_free char *expected = text_format("cannot open /x%0200d: %s", 0, strerror(numbers[i]));
		errno = numbers[i];
		assert_int_equal(error_set_errno(&error, "cannot open %s%0200d", "/x", 0), -1);
		assert_string_equal(error_text(&error), expected);
	}
}

static void a_second_error_replaces_the_first(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	error_set(&error, "one");
	error_set(&error, "two");
	assert_string_equal(error_text(&error), "two");
	error_set(&error, "again: %s", error_text(&error)); /* its own text may be an argument */
	assert_string_equal(error_text(&error), "again: two");
}

static void where_nothing_was_set_the_error_is_unknown(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	assert_string_equal(error_text(&error), "unknown error");
	error_wrap(&error, "trying");
	assert_string_equal(error_text(&error), "trying: unknown error");
	error_clear(&error);
	assert_string_equal(error_text(&error), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_of_the_examples_of_fips_180_is_theirs),
		cmocka_unit_test(no_two_ways_to_group_the_same_bytes_have_one_digest),
		cmocka_unit_test(a_number_counts_as_its_decimal_text),
		cmocka_unit_test(every_byte_has_its_two_digits),
		cmocka_unit_test(every_outcome_has_a_name_a_letter_and_a_meaning_of_its_own),
		cmocka_unit_test(the_name_of_every_outcome_is_read_back),
		cmocka_unit_test(words_that_are_no_outcome_are_refused_and_change_nothing),
		cmocka_unit_test(an_error_gathers_its_context_from_the_outside_in),
		cmocka_unit_test(an_error_names_the_errno_of_the_moment),
		cmocka_unit_test(a_second_error_replaces_the_first),
		cmocka_unit_test(where_nothing_was_set_the_error_is_unknown),
	};
	return cmocka_run_group_tests_name("digest, outcome, error", tests, NULL, NULL);
}
