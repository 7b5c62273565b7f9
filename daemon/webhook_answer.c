/* See webhook_answer.h. */
#include "webhook_answer.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* The value of header `name` where `line` is that header, trimmed; NULL where it is another. */
static char *header_value(const char *line, size_t length, const char *name)
{
	size_t name_length = strlen(name);
	if (length <= name_length || line[name_length] != ':' || strncasecmp(line, name, name_length) != 0)
		return NULL;
	const char *start = line + name_length + 1;
	const char *end = line + length;
	while (start < end && is_blank(*start))
		start++;
	while (end > start && is_blank(end[-1]))
		end--;
	return text_copy_range(start, (size_t)(end - start));
}

static void forget_headers(struct webhook_answer *answer)
{
	free(answer->location);
	free(answer->content_type);
	free(answer->retry_after);
	free(answer->rate_limit_remaining);
	free(answer->rate_limit_reset);
	answer->location = NULL;
	answer->content_type = NULL;
	answer->retry_after = NULL;
	answer->rate_limit_remaining = NULL;
	answer->rate_limit_reset = NULL;
}

/* "HTTP/1.1 204 No Content": the number, or 0. */
static long status_of(const char *line, size_t length)
{
	const char *space = memchr(line, ' ', length);
	if (space == NULL || line + length - space < 4)
		return 0;
	long status = 0;
	for (int i = 1; i <= 3; i++) {
		if (space[i] < '0' || space[i] > '9')
			return 0;
		status = status * 10 + (space[i] - '0');
	}
	return line + length - space == 4 || space[4] == ' ' ? status : 0;
}

static void take_field(struct webhook_answer *answer, const char *line, size_t length)
{
	const struct {
		const char *name;
		char **value;
	} fields[] = {
		{"Location", &answer->location},
		{"Content-Type", &answer->content_type},
		{"Retry-After", &answer->retry_after},
		{"X-RateLimit-Remaining", &answer->rate_limit_remaining},
		{"X-RateLimit-Reset", &answer->rate_limit_reset},
	};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char *value = header_value(line, length, fields[i].name);
		if (value == NULL)
			continue;
		free(*fields[i].value);
		*fields[i].value = value;
		return;
	}
}

/* Counts `length` bytes as come; returns how many of them are within the limit. */
static size_t admit(struct webhook_answer *answer, size_t length)
{
	size_t room = (size_t)WEBHOOK_ANSWER_LIMIT - answer->bytes;
	size_t admitted = length < room ? length : room;
	answer->bytes += admitted;
	return admitted;
}

bool webhook_answer_take_header(struct webhook_answer *answer, const char *line, size_t length)
{
	if (admit(answer, length) < length)
		return false;
	while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
		length--;
	if (length >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		forget_headers(answer);
		answer->status = status_of(line, length);
		answer->complete = false;
	} else if (length == 0) {
		answer->complete = answer->status >= 200;
	} else if (!answer->complete) { /* what comes later is a trailer, and means nothing here */
		take_field(answer, line, length);
	}
	return true;
}

bool webhook_answer_take_body(struct webhook_answer *answer, const char *bytes, size_t length)
{
	size_t admitted = admit(answer, length);
	str_append_bytes(&answer->body, bytes, admitted);
	return admitted == length;
}

void webhook_answer_clear(struct webhook_answer *answer)
{
	forget_headers(answer);
	str_clear(&answer->body);
	*answer = (struct webhook_answer){0};
}

/*
 * The character at `text`: its length in bytes with its code point in *point, or 0 where these bytes are not UTF-8
 * (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
 */
static size_t read_character(const unsigned char *text, size_t length, uint32_t *point)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = text[0];
	size_t size = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 0;
	if (size == 0 || size > length)
		return 0;
	*point = size == 1 ? first : first & (0x7FU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xC0) != 0x80)
			return 0;
		*point = *point << 6 | (text[i] & 0x3FU);
	}
	bool valid =
		size == 1 || (*point >= smallest[size] && *point <= 0x10FFFF && !(*point >= 0xD800 && *point < 0xE000));
	return valid ? size : 0;
}

/* Control characters of either set, line separators, and what turns the direction of writing around. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7F && point < 0xA0) || (point >= 0x200E && point <= 0x200F) ||
	       (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

static void replace_all(struct str *text, const char *secret)
{
	size_t length = strlen(secret);
	if (length == 0 || text->length == 0)
		return;
	struct str result = {0};
	const char *from = text->data;
	for (const char *at; (at = strstr(from, secret)) != NULL; from = at + length) {
		str_append_bytes(&result, from, (size_t)(at - from));
		str_append(&result, "***");
	}
	str_append(&result, from);
	str_clear(text);
	*text = result;
}

char *webhook_clean_text(const char *text, size_t length, const struct strlist *secrets)
{
	cleanup_str struct str clean = {0};
	for (size_t i = 0; i < length;) {
		uint32_t point = 0;
		size_t size = read_character((const unsigned char *)text + i, length - i, &point);
		if (size == 0)
			str_append(&clean, "?");
		else if (point == '\t')
			str_append(&clean, " ");
		else if (!is_control(point))
			str_append_bytes(&clean, text + i, size);
		i += size > 0 ? size : 1;
	}
	for (size_t i = 0; i < secrets->count; i++)
		replace_all(&clean, secrets->items[i]);
	return str_steal(&clean);
}

static void cut_line(char *line)
{
	static const char mark[] = "...";
	if (strlen(line) <= WEBHOOK_LINE_LIMIT)
		return;
	size_t end = WEBHOOK_LINE_LIMIT - (sizeof mark - 1);
	while (end > 0 && ((unsigned char)line[end] & 0xC0) == 0x80)
		end--;
	memcpy(line + end, mark, sizeof mark);
}

/* The media type without its parameters ends in, or is, one of those that people can read. */
static bool is_text(const char *content_type)
{
	static const char *const types[] = {"application/json", "application/xml", "application/x-www-form-urlencoded"};
	if (content_type == NULL || *content_type == '\0' || strncasecmp(content_type, "text/", 5) == 0)
		return true;
	size_t length = strcspn(content_type, "; \t");
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i]) == length && strncasecmp(content_type, types[i], length) == 0)
			return true;
	return length > 5 && (strncasecmp(content_type + length - 5, "+json", 5) == 0 ||
			      strncasecmp(content_type + length - 4, "+xml", 4) == 0);
}

static char *json_message(const struct webhook_answer *answer)
{
	static const char *const members[] = {"message", "error", "detail", "title"};
	if (answer->body.length == 0 || answer->body.data[0] != '{')
		return NULL;
	json_t *object = json_loadb(answer->body.data, answer->body.length, 0, NULL);
	char *message = NULL;
	for (size_t i = 0; i < sizeof members / sizeof *members && message == NULL; i++)
		message = text_copy(json_string_value(json_object_get(object, members[i])));
	json_decref(object);
	return message;
}

/* The first line with anything on it, cleaned; NULL: there is none. */
static char *first_line(const char *text, size_t length, const struct strlist *secrets)
{
	for (const char *end = text + length; text < end;) {
		size_t line = 0;
		while (text + line < end && text[line] != '\n' && text[line] != '\r')
			line++;
		char *clean = webhook_clean_text(text, line, secrets);
		if (clean[strspn(clean, " ")] != '\0')
			return clean;
		free(clean);
		text += line < (size_t)(end - text) ? line + 1 : line;
	}
	return NULL;
}

char *webhook_answer_line(const struct webhook_answer *answer, const struct strlist *secrets)
{
	if (answer->body.length == 0 || !is_text(answer->content_type) ||
	    memchr(answer->body.data, '\0', answer->body.length) != NULL)
		return NULL;
	cleanup_free char *message = json_message(answer);
	char *line = message != NULL ? first_line(message, strlen(message), secrets)
				     : first_line(answer->body.data, answer->body.length, secrets);
	if (line != NULL)
		cut_line(line);
	return line;
}

long long webhook_read_seconds(const char *text, long long most)
{
	if (*text == '\0')
		return -1;
	long long seconds = 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		seconds = seconds * 10 + (*text - '0');
		if (seconds > most)
			seconds = most;
	}
	return *text == '\0' ? seconds : -1;
}
