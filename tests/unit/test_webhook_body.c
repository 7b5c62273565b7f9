/* What webhooks carry: signatures (RFC 4231), bodies and their limits, and the files that secrets come from. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs.h"
#include "webhook.h"

static void assert_contains(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not hold \"%s\"", text, part);
}

/* --- signature --- */

static void given_rfc4231_vectors_then_the_macs_are_theirs(void **state)
{
	(void)state;
	/* RFC 4231 4.2 to 4.5, 4.7 and 4.8; 4.6 is about cutting a MAC short, which is not done here. */
	char key_1[21] = {0};
	char key_3[21] = {0};
	char data_3[51] = {0};
	char key_6[132] = {0};
	memset(key_1, 0x0b, 20);
	memset(key_3, 0xaa, 20);
	memset(data_3, 0xdd, 50);
	memset(key_6, 0xaa, 131);
	char key_4[26] = {0};
	char data_4[51] = {0};
	for (int i = 0; i < 25; i++)
		key_4[i] = (char)(i + 1);
	memset(data_4, 0xcd, 50);
	const struct {
		const char *key;
		const char *data;
		const char *mac;
	} vectors[] = {
		{key_1, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", "what do ya want for nothing?",
		 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{key_3, data_3, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{key_4, data_4, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
		{key_6, "Test Using Larger Than Block-Size Key - Hash Key First",
		 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{key_6,
		 "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
		 "to be "
		 "hashed before being used by the HMAC algorithm.",
		 "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	};
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		cleanup_free char *mac = webhook_sign(vectors[i].key, vectors[i].data);
		assert_string_equal(mac, vectors[i].mac);
	}
}

/* --- bodies --- */

static json_t *finding_with(const char *title, const char *text, const char *markdown)
{
	return json_pack("{s:s, s:s, s:n, s:s, s:s, s:s, s:b, s:i}", "event", "first-bad", "investigation", "usdt-86",
			 "question", "title", title, "text", text, "markdown", markdown, "final", 1, "cell", 17);
}

/* The one member of the body for `format`, owned by the caller. */
static char *body_member(enum webhook_format format, const char *name, json_t *finding)
{
	cleanup_free char *body = webhook_body(format, finding);
	json_t *object = json_loads(body, 0, NULL);
	assert_non_null(object);
	assert_int_equal(json_object_size(object), 1);
	char *value = text_copy(json_string_value(json_object_get(object, name)));
	assert_non_null(value);
	json_decref(object);
	json_decref(finding);
	return value;
}

static char *repeat(const char *text, size_t times)
{
	struct str result = {0};
	for (size_t i = 0; i < times; i++)
		str_append(&result, text);
	return str_steal(&result);
}

static size_t characters(const char *text)
{
	size_t count = 0;
	for (; *text != '\0'; text++)
		count += ((unsigned char)*text & 0xC0) != 0x80;
	return count;
}

static void given_a_finding_then_the_generic_body_is_it(void **state)
{
	(void)state;
	json_t *finding = finding_with("a <b> & \"c\"", "line 1\nline 2\t\u2713", "**x**");
	cleanup_free char *body = webhook_body(WEBHOOK_GENERIC, finding);
	cleanup_free char *again = webhook_body(WEBHOOK_GENERIC, finding);
	json_t *read = json_loads(body, 0, NULL);
	assert_true(json_equal(read, finding));
	assert_string_equal(body, again);
	assert_null(strchr(body, '\n'));
	json_decref(read);
	json_decref(finding);
}

static void given_a_finding_then_slack_gets_title_and_text_escaped(void **state)
{
	(void)state;
	cleanup_free char *text = body_member(WEBHOOK_SLACK, "text",
					      finding_with("1 < 2 & <!channel>", "a > b\n<@U1> \u00e9", "ignored"));
	assert_string_equal(text, "*1 &lt; 2 &amp; &lt;!channel&gt;*\na &gt; b\n&lt;@U1&gt; \u00e9");
}

static void given_an_asterisk_in_the_title_then_slack_gets_it_plain(void **state)
{
	(void)state;
	cleanup_free char *text = body_member(WEBHOOK_SLACK, "text", finding_with("*const T", "t", ""));
	assert_string_equal(text, "*const T\nt");
	cleanup_free char *alone = body_member(WEBHOOK_SLACK, "text", finding_with("title", "", ""));
	assert_string_equal(alone, "*title*");
}

static void given_a_link_then_people_get_it_before_what_may_be_cut_off(void **state)
{
	(void)state;
	json_t *finding = finding_with("t", "x", "# m");
	json_object_set_new(finding, "link", json_string("https://a.example/?b&c"));
	cleanup_free char *slack = body_member(WEBHOOK_SLACK, "text", json_incref(finding));
	assert_string_equal(slack, "*t*\nThe whole report: https://a.example/?b&amp;c\nx");
	cleanup_free char *github = body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding);
	assert_string_equal(github, "The whole report: <https://a.example/?b&c>\n\n# m");
}

static void given_a_finding_then_github_gets_its_markdown(void **state)
{
	(void)state;
	cleanup_free char *text =
		body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "x", "# <b> &\n\n- \u00e9\n"));
	assert_string_equal(text, "# <b> &\n\n- \u00e9\n");
	cleanup_free char *title =
		body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", json_pack("{s:s}", "title", "only a title"));
	assert_string_equal(title, "only a title");
}

static void given_exactly_the_limit_then_nothing_is_cut(void **state)
{
	(void)state;
	cleanup_free char *full = repeat("x", 65536);
	cleanup_free char *kept = body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "x", full));
	assert_string_equal(kept, full);
	cleanup_free char *over = repeat("x", 65537);
	cleanup_free char *cut = body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "x", over));
	assert_true(characters(cut) <= 65536 && characters(cut) > 65000);
	assert_contains(cut, "cut here");
}

static void given_long_text_then_it_is_cut_between_characters(void **state)
{
	(void)state;
	static const char *const units[] = {"\u00e9", "\u2713", "\U0001F980", "a\u00e9\u2713\U0001F980",
					    "line of text\n"};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		cleanup_free char *text = repeat(units[i], 70000);
		/* jansson refuses bytes that are no UTF-8, so reading the body back is the check. */
		cleanup_free char *slack = body_member(WEBHOOK_SLACK, "text", finding_with("t", text, ""));
		cleanup_free char *github =
			body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "", text));
		assert_true(characters(slack) <= 40000 && characters(slack) > 19000);
		assert_true(characters(github) <= 65536 && characters(github) > 30000);
		assert_contains(slack, "cut here");
		assert_contains(github, "cut here");
	}
}

static void given_an_escaped_character_at_the_cut_then_it_is_whole_or_gone(void **state)
{
	(void)state;
	for (size_t shift = 0; shift < 6; shift++) {
		cleanup_free char *lead = repeat("x", shift);
		cleanup_free char *many = repeat("&", 30000);
		cleanup_free char *text = text_format("%s%s", lead, many);
		cleanup_free char *slack = body_member(WEBHOOK_SLACK, "text", finding_with("t", text, ""));
		const char *end = strstr(slack, "\n_(cut");
		assert_non_null(end);
		assert_memory_equal(end - 5, "&amp;", 5);
	}
}

static void given_an_open_fence_at_the_cut_then_it_is_closed(void **state)
{
	(void)state;
	cleanup_free char *lines = repeat("0123456789012345678901234567890123456789\n", 3000);
	static const struct {
		const char *opening;
		const char *closing;
	} cases[] = {
		{"```text\n", "\n```\n\n*(cut"},
		{"  ````\n```\n", "\n````\n\n*(cut"},
		{"~~~ a`b\n```\n", "\n~~~\n\n*(cut"},
		{"```a\n```\n", "6789\n\n*(cut"},
		{"```no`fence\n", "6789\n\n*(cut"},
		{"    ```\n", "6789\n\n*(cut"},
		{"<details><summary>x</summary>\n\n```\n", "\n```\n</details>\n\n*(cut"},
		{"<details>\n</details>\n", "6789\n\n*(cut"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cleanup_free char *markdown = text_format("%s%s", cases[i].opening, lines);
		cleanup_free char *body =
			body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "", markdown));
		assert_contains(body, cases[i].closing);
		assert_true(characters(body) <= 65536);
	}
	cleanup_free char *text = text_format("before ``` %s", lines);
	cleanup_free char *slack = body_member(WEBHOOK_SLACK, "text", finding_with("t", text, ""));
	assert_contains(slack, "\n```\n_(cut");
}

static void given_nothing_but_fences_and_details_then_the_body_still_fits(void **state)
{
	(void)state;
	static const char *const units[] = {"`", "<details>", "<details>\n", "```\n", "```\n``\n", "&"};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		cleanup_free char *text = repeat(units[i], 70000);
		cleanup_free char *slack = body_member(WEBHOOK_SLACK, "text", finding_with("t", text, ""));
		cleanup_free char *github =
			body_member(WEBHOOK_GITHUB_ISSUE_COMMENT, "body", finding_with("t", "", text));
		assert_true(characters(slack) <= 40000);
		assert_true(characters(github) <= 65536);
	}
}

/* --- secrets --- */

static char *secret_path(void **state)
{
	return path_join(*state, "secret");
}

static void write_secret(const char *path, const char *contents, size_t length, mode_t mode)
{
	unlink(path);
	cleanup_error struct error error = {0};
	assert_int_equal(fs_write_file(path, contents, length, &error), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void expect_secret(const char *path, const char *secret)
{
	cleanup_error struct error error = {0};
	cleanup_free char *read = NULL;
	if (webhook_read_secret(path, NULL, &read, &error) != 0)
		fail_msg("%s", error_text(&error));
	assert_string_equal(read, secret);
}

static void expect_refusal(const char *path, const char *part)
{
	cleanup_error struct error error = {0};
	char *read = NULL;
	assert_int_equal(webhook_read_secret(path, NULL, &read, &error), -1);
	assert_null(read);
	assert_contains(error_text(&error), part);
	assert_null(strstr(error_text(&error), "hunter2"));
}

static void given_neither_file_nor_variable_then_there_is_no_secret(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	char untouched[] = "x";
	char *secret = untouched;
	assert_int_equal(webhook_read_secret(NULL, NULL, &secret, &error), 0);
	assert_null(secret);
}

static void given_a_private_file_then_it_is_read(void **state)
{
	cleanup_free char *path = secret_path(state);
	write_secret(path, "hunter2", 7, 0600);
	expect_secret(path, "hunter2");
	write_secret(path, "hunter2", 7, 0400);
	expect_secret(path, "hunter2");
}

static void given_a_trailing_newline_then_one_is_dropped(void **state)
{
	cleanup_free char *path = secret_path(state);
	write_secret(path, "hunter2\n", 8, 0600);
	expect_secret(path, "hunter2");
	write_secret(path, " hunter2 \n\n", 11, 0600);
	expect_secret(path, " hunter2 \n");
}

static void given_open_modes_then_the_file_is_refused_with_the_mend(void **state)
{
	static const mode_t modes[] = {0640, 0644, 0604, 0620, 0601, 0660, 0777};
	cleanup_free char *path = secret_path(state);
	cleanup_free char *mend = text_format("run: chmod 600 %s", path);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		write_secret(path, "hunter2", 7, modes[i]);
		expect_refusal(path, mend);
	}
}

static void given_another_owner_then_the_file_is_refused(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: only root can give a file away\n");
		skip();
	}
	cleanup_free char *path = secret_path(state);
	write_secret(path, "hunter2", 7, 0600);
	assert_int_equal(chown(path, 4242, (gid_t)-1), 0);
	expect_refusal(path, "belongs to user 4242");
}

static void given_symbolic_links_then_only_those_to_private_files_are_read(void **state)
{
	cleanup_free char *path = secret_path(state);
	cleanup_free char *link = path_join(*state, "link");
	write_secret(path, "hunter2", 7, 0600);
	assert_int_equal(symlink("secret", link), 0);
	expect_secret(link, "hunter2");
	assert_int_equal(chmod(path, 0644), 0);
	expect_refusal(link, "mode 0644");
	static const char *const targets[] = {"/dev/null", "/dev/zero", "/", "link"};
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		assert_int_equal(unlink(link), 0);
		assert_int_equal(symlink(targets[i], link), 0);
		expect_refusal(link, i < 3 ? "not a regular file" : "link");
	}
}

static void given_a_fifo_then_it_is_refused_at_once(void **state)
{
	cleanup_free char *path = path_join(*state, "fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refusal(path, "not a regular file");
}

static void given_a_folder_or_nothing_then_it_is_refused(void **state)
{
	cleanup_free char *path = secret_path(state);
	expect_refusal(*state, "not a regular file");
	expect_refusal(path, "No such file or directory");
}

static void given_an_empty_or_unfit_file_then_it_is_refused(void **state)
{
	cleanup_free char *path = secret_path(state);
	write_secret(path, "", 0, 0600);
	expect_refusal(path, "empty");
	write_secret(path, "\n", 1, 0600);
	expect_refusal(path, "empty");
	write_secret(path, "hunter2\0hunter2", 15, 0600);
	expect_refusal(path, "zero byte");
	cleanup_free char *most = repeat("s", 65536);
	write_secret(path, most, 65536, 0600);
	expect_secret(path, most);
	cleanup_free char *more = repeat("s", 65537);
	write_secret(path, more, 65537, 0600);
	expect_refusal(path, "longer than 64 KiB");
}

static void given_a_variable_then_it_is_read(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_free char *secret = NULL;
	setenv("BISECTD_TEST_SECRET", "hunter2\n", 1);
	assert_int_equal(webhook_read_secret(NULL, "BISECTD_TEST_SECRET", &secret, &error), 0);
	assert_string_equal(secret, "hunter2\n");
	char *none = NULL;
	setenv("BISECTD_TEST_SECRET", "", 1);
	assert_int_equal(webhook_read_secret(NULL, "BISECTD_TEST_SECRET", &none, &error), -1);
	assert_string_equal(error_text(&error), "environment variable BISECTD_TEST_SECRET: empty");
	unsetenv("BISECTD_TEST_SECRET");
	assert_int_equal(webhook_read_secret(NULL, "BISECTD_TEST_SECRET", &none, &error), -1);
	assert_string_equal(error_text(&error), "environment variable BISECTD_TEST_SECRET: not set");
	assert_null(none);
}

/* --- main --- */

static int make_folder(void **state)
{
	char *folder = text_copy("/tmp/bisectd-test-webhook-XXXXXX");
	*state = mkdtemp(folder);
	return *state != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	cleanup_error struct error error = {0};
	int result = fs_remove_tree(*state, &error);
	free(*state);
	return result;
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_rfc4231_vectors_then_the_macs_are_theirs),
		cmocka_unit_test(given_a_finding_then_the_generic_body_is_it),
		cmocka_unit_test(given_a_finding_then_slack_gets_title_and_text_escaped),
		cmocka_unit_test(given_an_asterisk_in_the_title_then_slack_gets_it_plain),
		cmocka_unit_test(given_a_link_then_people_get_it_before_what_may_be_cut_off),
		cmocka_unit_test(given_a_finding_then_github_gets_its_markdown),
		cmocka_unit_test(given_exactly_the_limit_then_nothing_is_cut),
		cmocka_unit_test(given_long_text_then_it_is_cut_between_characters),
		cmocka_unit_test(given_an_escaped_character_at_the_cut_then_it_is_whole_or_gone),
		cmocka_unit_test(given_an_open_fence_at_the_cut_then_it_is_closed),
		cmocka_unit_test(given_nothing_but_fences_and_details_then_the_body_still_fits),
		cmocka_unit_test(given_neither_file_nor_variable_then_there_is_no_secret),
		in_folder(given_a_private_file_then_it_is_read),
		in_folder(given_a_trailing_newline_then_one_is_dropped),
		in_folder(given_open_modes_then_the_file_is_refused_with_the_mend),
		in_folder(given_another_owner_then_the_file_is_refused),
		in_folder(given_symbolic_links_then_only_those_to_private_files_are_read),
		in_folder(given_a_fifo_then_it_is_refused_at_once),
		in_folder(given_a_folder_or_nothing_then_it_is_refused),
		in_folder(given_an_empty_or_unfit_file_then_it_is_refused),
		cmocka_unit_test(given_a_variable_then_it_is_read),
	};
	return cmocka_run_group_tests_name("webhook body", tests, NULL, NULL);
}
