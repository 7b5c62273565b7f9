/* markup: text of others made harmless for a terminal, Markdown, HTML and JSON. */
#include <jansson.h>

#include "markup.h"
#include "place.h"

#define ZERO "\xE2\x80\x8B"

typedef void quote(struct str *to, const char *text);

struct example {
	const char *text;
	const char *shown;
};

static void assert_shown(quote *function, const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cleanup_str struct str shown = {0};
		function(&shown, examples[i].text);
		assert_string_equal(str_text(&shown), examples[i].shown);
	}
}

static void what_cannot_be_seen_is_made_visible(void **state)
{
	(void)state;
	static const struct example examples[] = {
		{NULL, ""},
		{"", ""},
		{"plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\xA6\x80", "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\xA6\x80"},
		{"\x1B[31mred\x1B[0m", "\\x1b[31mred\\x1b[0m"},
		{"bell\x07 back\x08 delete\x7F", "bell\\x07 back\\x08 delete\\x7f"},
		{"two\nlines\tand\r\na tab", "two lines and a tab"},
		{"over\rwritten", "over\\x0dwritten"},
		{"\xC2\x9B"
		 "31m",
		 "\\x9b31m"},
		{"\xE2\x80\xAE"
		 "drow",
		 "\\u{202e}drow"},
		{"a\xE2\x80\x8B"
		 "b\xEF\xBB\xBF",
		 "a\\u{200b}b\\u{feff}"},
		{"\xF3\xA0\x81\x81", "\\u{e0041}"},
		{"\xFF\xC0\xAF\xED\xA0\x80\xF4\x90\x80\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
		{"cut \xE2\x82", "cut \\xe2\\x82"},
	};
	assert_shown(markup_line, examples, sizeof examples / sizeof examples[0]);
}

static void a_block_keeps_its_lines_and_loses_their_blanks(void **state)
{
	(void)state;
	cleanup_str struct str text = {0};
	markup_block(&text, "  ", "one  \r\n\n\ttwo\x1B\nthree");
	assert_string_equal(str_text(&text), "  one\n\n  \ttwo\\x1b\n  three\n");
}

static void a_formatted_line_is_one_line_whatever_is_in_it(void **state)
{
	(void)state;
	cleanup_str struct str text = {0};
	markup_format(&text, "  %s: %d %s", "a\nVerdict\n  crate", 7, "\x1B]0;title\x07  ");
	assert_string_equal(str_text(&text), "  a Verdict   crate: 7 \\x1b]0;title\\x07\n");
}

static void prose_in_markdown_is_only_prose(void **state)
{
	(void)state;
	static const struct example examples[] = {
		{"<img src=x onerror=alert(1)> & co", "&lt;img src=x onerror=alert(1)> &amp; co"},
		{"@torvalds see #123, GH-7, a/b#4 and me@here",
		 "@" ZERO "torvalds see #" ZERO "123, GH-" ZERO "7, a/b#" ZERO "4 and me@" ZERO "here"},
		{"https://github.com/a/b/issues/1 www.a.b", "https:" ZERO "//github.com/a/b/issues/1 www." ZERO "a.b"},
		{"[a](javascript:b) ![c](d) *e* _f_ `g` ~~h~~ $i$",
		 "\\[a\\](javascript:b) !\\[c\\](d) \\*e\\* \\_f\\_ \\`g\\` \\~\\~h\\~\\~ \\$i\\$"},
		{"# no heading", "\\# no heading"},
		{"- no list", "\\- no list"},
		{"12. no list", "12\\. no list"},
		{"> no quotation", "\\> no quotation"},
		{"   indented is no code", "indented is no code"},
		{"a | b", "a &vert; b"},
		{"back\\slash", "back\\\\slash"},
		{"one\n\n<script>", "one  &lt;script>"},
	};
	assert_shown(markup_markdown, examples, sizeof examples / sizeof examples[0]);
}

static void code_in_markdown_ends_where_it_should(void **state)
{
	(void)state;
	static const struct example examples[] = {
		{"plain @a #1 <b>", "`plain @a #1 <b>`"},
		{"one ` and two `` inside", "```one ` and two `` inside```"},
		{"`edge`", "`` `edge` ``"},
		{" blank ", "`  blank  `"},
		{"a|b", "a&vert;b"},
		{"", "(nothing)"},
		{"two\nlines", "`two lines`"},
	};
	assert_shown(markup_markdown_code, examples, sizeof examples / sizeof examples[0]);
}

static void a_fence_is_longer_than_what_it_holds(void **state)
{
	(void)state;
	cleanup_str struct str text = {0};
	markup_markdown_fence(&text, "sh", "echo 1\n````\n<b>@a\n");
	assert_string_equal(str_text(&text), "`````sh\necho 1\n````\n<b>@a\n`````\n");
	str_clear(&text);
	markup_markdown_fence(&text, "", "");
	assert_string_equal(str_text(&text), "```\n```\n");
}

static void nothing_of_a_text_is_html(void **state)
{
	(void)state;
	static const struct example examples[] = {
		{"</td><script>alert('x' & \"y\")</script>",
		 "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;"},
		{"lines\n\tstay", "lines\n\tstay"},
		{"\x1B\xFF", "\\x1b\\xff"},
	};
	assert_shown(markup_html, examples, sizeof examples / sizeof examples[0]);
}

static void json_takes_every_text(void **state)
{
	(void)state;
	static const struct example examples[] = {{NULL, ""},
						  {"\x1B \xC3\xA9", "\x1B \xC3\xA9"},
						  {"\xFF"
						   "a\xED\xA0\x80",
						   "\xEF\xBF\xBD"
						   "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}};
	for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
		cleanup_free char *valid = markup_utf8(examples[i].text);
		assert_string_equal(valid, examples[i].shown);
		json_t *json = json_string(valid);
		assert_non_null(json);
		json_decref(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_seen_is_made_visible),
		cmocka_unit_test(a_block_keeps_its_lines_and_loses_their_blanks),
		cmocka_unit_test(a_formatted_line_is_one_line_whatever_is_in_it),
		cmocka_unit_test(prose_in_markdown_is_only_prose),
		cmocka_unit_test(code_in_markdown_ends_where_it_should),
		cmocka_unit_test(a_fence_is_longer_than_what_it_holds),
		cmocka_unit_test(nothing_of_a_text_is_html),
		cmocka_unit_test(json_takes_every_text),
	};
	return cmocka_run_group_tests_name("markup", tests, NULL, NULL);
}
