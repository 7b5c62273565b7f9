/* str: strings, lists, maps, placeholders; shell words, as a real shell reads them; the distance between two words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "str.h"

/* ---- strings ---- */

static void an_empty_string_is_an_empty_text(void **state)
{
	(void)state;
	struct str str = {0};
	assert_string_equal(str_text(&str), "");
	str_clear(&str);
	char *stolen = str_steal(&str);
	assert_string_equal(stolen, "");
	free(stolen);
}

static void a_string_grows_by_texts_bytes_and_formats(void **state)
{
	(void)state;
	cleanup_str struct str str = {0};
	str_append(&str, "a");
	str_append_bytes(&str, "bcd", 2);
	str_append_bytes(&str, NULL, 0);
	str_append_format(&str, "%d%s", 42, "!");
	assert_string_equal(str_text(&str), "abc42!");
	assert_int_equal(str.length, 6);
}

static void a_string_keeps_zero_bytes_and_always_ends_in_one(void **state)
{
	(void)state;
	cleanup_str struct str str = {0};
	str_append_bytes(&str, "a\0b", 3);
	assert_int_equal(str.length, 3);
	assert_memory_equal(str.data, "a\0b", 4);
}

static void a_string_of_every_length_is_intact(void **state)
{
	(void)state;
	cleanup_str struct str str = {0};
	for (size_t i = 0; i < 5000; i++) {
		str_append_bytes(&str, &"abcdefg"[i % 7], 1);
		assert_int_equal(strlen(str_text(&str)), i + 1);
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(str.data[i], "abcdefg"[i % 7]);
}

static void a_format_may_be_longer_than_any_buffer(void **state)
{
	(void)state;
	cleanup_free char *text = text_format("%0100000d", 7);
	assert_int_equal(strlen(text), 100000);
	assert_int_equal(text[99999], '7');
}

static void a_stolen_string_starts_anew(void **state)
{
	(void)state;
	cleanup_str struct str str = {0};
	str_append(&str, "one");
	cleanup_free char *first = str_steal(&str);
	str_append(&str, "two");
	assert_string_equal(first, "one");
	assert_string_equal(str_text(&str), "two");
}

static void texts_compare_by_content_and_null_equals_only_null(void **state)
{
	(void)state;
	static const struct {
		const char *a;
		const char *b;
		bool equal;
	} cases[] = {{"a", "a", true},   {"a", "b", false}, {"", "", true},    {"a", "", false},
		     {NULL, NULL, true}, {NULL, "", false}, {"", NULL, false}, {"a", "aa", false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(text_equal(cases[i].a, cases[i].b), cases[i].equal);
}

static void starts_and_ends_are_found_and_never_longer_than_the_text(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *part;
		bool starts;
		bool ends;
	} cases[] = {{"abc", "", true, true},    {"abc", "a", true, false},     {"abc", "c", false, true},
		     {"abc", "abc", true, true}, {"abc", "abcd", false, false}, {"abc", "xabc", false, false},
		     {"", "", true, true},       {"", "a", false, false},       {"aba", "aba", true, true}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(text_starts_with(cases[i].text, cases[i].part), cases[i].starts);
		assert_int_equal(text_ends_with(cases[i].text, cases[i].part), cases[i].ends);
	}
}

static void copies_are_new_and_null_copies_to_null(void **state)
{
	(void)state;
	cleanup_free char *copy = text_copy("abc");
	cleanup_free char *range = text_copy_range("abcdef", 2);
	assert_string_equal(copy, "abc");
	assert_string_equal(range, "ab");
	assert_null(text_copy(NULL));
}

/* ---- lists ---- */

static void a_list_ends_in_null_whatever_its_length(void **state)
{
	(void)state;
	cleanup_strlist struct strlist list = {0};
	for (size_t i = 1; i <= 100; i++) {
		strlist_add_owned(&list, text_format("%zu", i));
		assert_int_equal(list.count, i);
		assert_null(list.items[i]);
	}
	assert_string_equal(list.items[99], "100");
}

static void a_list_is_sorted_by_bytes(void **state)
{
	(void)state;
	static const char *const words[] = {"b", "a10", "a2", "", "\xc3\xa4", "B", "a"};
	static const char *const sorted[] = {"", "B", "a", "a10", "a2", "b", "\xc3\xa4"};
	cleanup_strlist struct strlist list = {0};
	strlist_sort(&list);
	for (size_t i = 0; i < 7; i++)
		strlist_add(&list, words[i]);
	strlist_sort(&list);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(list.items[i], sorted[i]);
}

static void a_list_joins_searches_and_takes_in_another(void **state)
{
	(void)state;
	cleanup_strlist struct strlist list = {0};
	cleanup_strlist struct strlist other = {0};
	cleanup_free char *none = strlist_join(&list, ", ");
	strlist_add(&list, "a");
	cleanup_free char *one = strlist_join(&list, ", ");
	strlist_add(&other, "b");
	strlist_add(&other, "");
	strlist_add_all(&list, &other);
	cleanup_free char *three = strlist_join(&list, ", ");
	assert_string_equal(none, "");
	assert_string_equal(one, "a");
	assert_string_equal(three, "a, b, ");
	assert_true(strlist_contains(&list, ""));
	assert_true(strlist_contains(&list, "b"));
	assert_false(strlist_contains(&list, "c"));
	assert_int_equal(other.count, 2);
}

/* ---- maps ---- */

static void a_map_keeps_the_order_of_the_first_setting_and_the_last_value(void **state)
{
	(void)state;
	cleanup_strmap struct strmap map = {0};
	strmap_set(&map, "z", "1");
	strmap_set(&map, "a", "2");
	strmap_set(&map, "z", "3");
	assert_int_equal(map.count, 2);
	assert_string_equal(map.entries[0].key, "z");
	assert_string_equal(map.entries[0].value, "3");
	assert_string_equal(map.entries[1].key, "a");
	assert_null(strmap_get(&map, "b"));
}

static void a_map_takes_a_value_that_it_holds_itself(void **state)
{
	(void)state;
	cleanup_strmap struct strmap map = {0};
	strmap_set(&map, "a", "same");
	strmap_set(&map, "a", strmap_get(&map, "a"));
	assert_string_equal(strmap_get(&map, "a"), "same");
}

static void a_map_takes_in_another_which_wins(void **state)
{
	(void)state;
	cleanup_strmap struct strmap map = {0};
	cleanup_strmap struct strmap other = {0};
	for (int i = 0; i < 50; i++) {
		cleanup_free char *key = text_format("k%d", i);
		strmap_set(&map, key, "old");
		if (i % 2 == 0)
			strmap_set(&other, key, "new");
	}
	strmap_set(&other, "more", "");
	strmap_set_all(&map, &other);
	assert_int_equal(map.count, 51);
	assert_string_equal(strmap_get(&map, "k48"), "new");
	assert_string_equal(strmap_get(&map, "k49"), "old");
	assert_string_equal(strmap_get(&map, "more"), "");
}

/* ---- placeholders ---- */

static void placeholders_are_replaced_and_everything_else_in_braces_stays(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *result;
	} cases[] = {
		{"", ""},
		{"plain", "plain"},
		{"{a}", "1"},
		{"x{a}y{b}z", "x1y{a}z"}, /* a value is not searched again */
		{"{a}{a}", "11"},
		{"{empty}", ""},
		{"{unknown}", "{unknown}"},
		{"{", "{"},
		{"}", "}"},
		{"{}", "{}"},
		{"{a", "{a"},
		{"{{a}}", "{1}"},
		{"{ a }", "{ a }"},
		{"${a}", "$1"},
		{"${HOME} {a}", "${HOME} 1"},
		{"{\"a\": {\"b\": \"{a}\"}}", "{\"a\": {\"b\": \"1\"}}"},
		{"{x{a}", "{x1"},
		{"a() { echo {checkout:src}; }", "a() { echo /w/src; }"},
		{"{A}", "{A}"},
	};
	cleanup_strmap struct strmap map = {0};
	strmap_set(&map, "a", "1");
	strmap_set(&map, "b", "{a}");
	strmap_set(&map, "empty", "");
	strmap_set(&map, "checkout:src", "/w/src");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_free char *result = text_substitute(cases[i].text, &map);
		assert_string_equal(result, cases[i].result);
	}
}

static void without_placeholders_every_text_stays(void **state)
{
	(void)state;
	static const struct strmap none;
	cleanup_free char *result = text_substitute("{a} {b", &none);
	assert_string_equal(result, "{a} {b");
}

/* ---- shell words ---- */

/* What `printf %s WORD` prints in a shell, followed by a dot that keeps a newline at the end. */
static char *through_shell(const char *word)
{
	cleanup_str struct str command = {0};
	struct str output = {0};
	char block[512];
	str_append(&command, "printf %s ");
	str_append_shell_word(&command, word);
	FILE *shell = popen(str_text(&command), "r");
	assert_non_null(shell);
	for (size_t got; (got = fread(block, 1, sizeof block, shell)) > 0;)
		str_append_bytes(&output, block, got);
	assert_int_equal(pclose(shell), 0);
	return str_steal(&output);
}

static void a_shell_reads_a_quoted_word_back_as_it_was(void **state)
{
	(void)state;
	static const char *const words[] = {
		"",           "plain",        "two words", "it's", "'",
		"''",         "\"",           "$HOME",     "`id`", "$(id)",
		"a\\",        "\\'",          "a;b",       "a&b",  "a|b",
		"*",          "?[a]",         "~",         "!",    "#x",
		"line\nline", "end\n",        "\ttab",     "-n",   "a=b",
		"{a,b}",      "<>",           "%s",        "a%b",  "\xff\xfe",
		"\xc3\xa4",   "'; exit 3; '", "~root/x",   "a~",   "/a-b_c.d=e:f,g+h@i%j",
	};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		cleanup_free char *back = through_shell(words[i]);
		assert_string_equal(back, words[i]);
	}
}

static void a_shell_reads_every_byte_back_as_it_was(void **state)
{
	(void)state;
	char all[256];
	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = '\0';
	cleanup_free char *back = through_shell(all);
	assert_string_equal(back, all);
}

static void a_word_that_needs_no_quotes_has_none(void **state)
{
	(void)state;
	cleanup_str struct str str = {0};
	str_append_shell_word(&str, "--target-dir=/w/a_b.c:d,e+f@g%h");
	assert_string_equal(str_text(&str), "--target-dir=/w/a_b.c:d,e+f@g%h");
}

/* ---- distance ---- */

static void the_distance_counts_insertions_deletions_and_substitutions(void **state)
{
	(void)state;
	static const struct {
		const char *a;
		const char *b;
		size_t distance;
	} cases[] = {{"", "", 0},
		     {"a", "", 1},
		     {"", "abc", 3},
		     {"abc", "abc", 0},
		     {"kitten", "sitting", 3},
		     {"flaw", "lawn", 2},
		     {"ab", "ba", 2},
		     {"toolchain", "toolchian", 2},
		     {"run", "runs", 1},
		     {"axis", "axes", 1},
		     {"abc", "xyz", 3}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(text_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(text_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_string_is_an_empty_text),
		cmocka_unit_test(a_string_grows_by_texts_bytes_and_formats),
		cmocka_unit_test(a_string_keeps_zero_bytes_and_always_ends_in_one),
		cmocka_unit_test(a_string_of_every_length_is_intact),
		cmocka_unit_test(a_format_may_be_longer_than_any_buffer),
		cmocka_unit_test(a_stolen_string_starts_anew),
		cmocka_unit_test(texts_compare_by_content_and_null_equals_only_null),
		cmocka_unit_test(starts_and_ends_are_found_and_never_longer_than_the_text),
		cmocka_unit_test(copies_are_new_and_null_copies_to_null),
		cmocka_unit_test(a_list_ends_in_null_whatever_its_length),
		cmocka_unit_test(a_list_is_sorted_by_bytes),
		cmocka_unit_test(a_list_joins_searches_and_takes_in_another),
		cmocka_unit_test(a_map_keeps_the_order_of_the_first_setting_and_the_last_value),
		cmocka_unit_test(a_map_takes_a_value_that_it_holds_itself),
		cmocka_unit_test(a_map_takes_in_another_which_wins),
		cmocka_unit_test(placeholders_are_replaced_and_everything_else_in_braces_stays),
		cmocka_unit_test(without_placeholders_every_text_stays),
		cmocka_unit_test(a_shell_reads_a_quoted_word_back_as_it_was),
		cmocka_unit_test(a_shell_reads_every_byte_back_as_it_was),
		cmocka_unit_test(a_word_that_needs_no_quotes_has_none),
		cmocka_unit_test(the_distance_counts_insertions_deletions_and_substitutions),
	};
	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
