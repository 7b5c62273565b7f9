/*
 * libFuzzer: whatever a receiver answers, what bisectd makes of it stays within its bounds.
 *
 * The input is a URL's Location, a newline, header lines, an empty line, a body.
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -DBISECTD_VERSION='"fuzz"' -Icommon -Idaemon \
 *       tests/fuzz/fuzz_webhook_response.c daemon/webhook*.c common/{digest,error,fs,os_linux,str}.c \
 *       $(pkg-config --cflags --libs libcurl jansson nettle)
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "webhook_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* One line with its newline, or what is left. */
static size_t line_length(const char *text, size_t length)
{
	const char *newline = length > 0 ? memchr(text, '\n', length) : NULL;
	return newline != NULL ? (size_t)(newline - text) + 1 : length;
}

static void check_redirect(const char *location)
{
	static const char url[] = "https://user:word@Receiver.example:8443/a/b?c";
	cleanup_free char *target = webhook_redirect_target(url, location);
	require(target == NULL || strncasecmp(target, "https://user:word@receiver.example:8443/", 40) == 0);
	cleanup_free char *again = target != NULL ? webhook_redirect_target(url, target) : NULL;
	require((target == NULL) == (again == NULL));
}

static void check_line(const char *line)
{
	if (line == NULL)
		return;
	require(strlen(line) <= WEBHOOK_LINE_LIMIT);
	require(strstr(line, "hush") == NULL);
	for (const char *byte = line; *byte != '\0'; byte++)
		require((unsigned char)*byte >= 0x20 && *byte != 0x7F);
	json_t *valid = json_string(line); /* NULL where this is no UTF-8 */
	require(valid != NULL);
	json_decref(valid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t length = line_length(text, size);
	cleanup_free char *location = text_copy_range(text, length > 0 ? length - 1 : 0);
	check_redirect(location);
	text += length;
	size -= length;

	cleanup_webhook_answer struct webhook_answer answer = {0};
	bool more = true;
	while (more && size > 0 && !answer.complete) {
		length = line_length(text, size);
		more = webhook_answer_take_header(&answer, text, length);
		text += length;
		size -= length;
	}
	require(answer.status >= 0 && answer.status <= 999);
	require(!answer.complete || answer.status >= 200);
	if (answer.location != NULL)
		check_redirect(answer.location);
	long long pause = webhook_answer_pause_ms(&answer, 1700000000);
	require(pause >= -1 && pause <= WEBHOOK_DAY_MS);

	if (size > 0)
		webhook_answer_take_body(&answer, text, size);
	require(answer.bytes <= WEBHOOK_ANSWER_LIMIT && answer.body.length <= answer.bytes);
	cleanup_strlist struct strlist secrets = {0};
	strlist_add(&secrets, "hush");
	cleanup_free char *line = webhook_answer_line(&answer, &secrets);
	check_line(line);
	return 0;
}
