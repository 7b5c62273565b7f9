/* See markup.h. */
#include "markup.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NO_WIDTH "\xE2\x80\x8B" /* U+200B, zero width space */

/* The length of the character that `text` starts with and its number; 0 where it is no UTF-8 (RFC 3629). */
static size_t decode(const char *text, uint32_t *number)
{
	const unsigned char *bytes = (const unsigned char *)text;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = bytes[0] < 0x80   ? 1
			: bytes[0] < 0xC2 ? 0
			: bytes[0] < 0xE0 ? 2
			: bytes[0] < 0xF0 ? 3
			: bytes[0] < 0xF5 ? 4
					  : 0;
	if (length < 2) {
		*number = bytes[0];
		return length;
	}
	*number = bytes[0] & (0xFFU >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xC0) != 0x80)
			return 0;
		*number = *number << 6 | (bytes[i] & 0x3FU);
	}
	return *number < least[length] || *number > 0x10FFFF || (*number >= 0xD800 && *number <= 0xDFFF) ? 0 : length;
}

/* Characters that a reader cannot see, or that change how others are seen: first and last of each range. */
static bool is_hidden(uint32_t number)
{
	static const uint32_t ranges[][2] = {
		{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E}, {0x200B, 0x200F},
		{0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xFDD0, 0xFDEF}, {0xE0000, 0xE007F},
	};
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (number >= ranges[i][0] && number <= ranges[i][1])
			return true;
	return (number & 0xFFFE) == 0xFFFE;
}

/* One character as it is shown: itself, or the escape that makes it visible. */
struct piece {
	char bytes[16];
	size_t length;
};

static bool next_piece(const char **at, bool keep_lines, struct piece *piece)
{
	uint32_t number;
	if (**at == '\r' && (*at)[1] == '\n')
		++*at;
	if (**at == '\0')
		return false;
	size_t length = decode(*at, &number);
	if (**at == '\n' || **at == '\t') {
		piece->bytes[0] = keep_lines ? **at : ' ';
		piece->length = 1;
	} else if (length > 0 && !is_hidden(number)) {
		piece->length = length;
		memcpy(piece->bytes, *at, length);
	} else {
		cleanup_free char *escape = number < 0x100 || length == 0
						    ? text_format("\\x%02x", length == 0 ? (unsigned char)**at : number)
						    : text_format("\\u{%x}", number);
		piece->length = strlen(escape);
		memcpy(piece->bytes, escape, piece->length);
	}
	*at += length > 0 ? length : 1;
	return true;
}

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

void markup_line(struct str *to, const char *text)
{
	struct piece piece;
	for (const char *at = or_empty(text); next_piece(&at, false, &piece);)
		str_append_bytes(to, piece.bytes, piece.length);
}

/* Takes blanks off the end, down to `start`, and ends the line. */
static void end_line(struct str *to, size_t start)
{
	while (to->length > start && to->data[to->length - 1] == ' ')
		to->length--;
	str_append(to, "\n");
}

void markup_block(struct str *to, const char *indent, const char *text)
{
	const char *at = or_empty(text);
	struct piece piece;
	while (*at != '\0') {
		size_t start = to->length;
		str_append(to, indent);
		while (next_piece(&at, true, &piece) && piece.bytes[0] != '\n')
			str_append_bytes(to, piece.bytes, piece.length);
		end_line(to, start);
	}
}

void markup_format(struct str *to, const char *format, ...)
{
	cleanup_str struct str text = {0};
	size_t start = to->length;
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	markup_line(to, str_text(&text));
	end_line(to, start);
}

/* Markdown ------------------------------------------------------------------------------------------------------------ */

static bool starts_with_word(const char *at, const char *word)
{
	for (; *word != '\0'; at++, word++)
		if (tolower((unsigned char)*at) != *word)
			return false;
	return true;
}

/* One letter of `text`, before `rest`.  Lists, headings and quotations are only made by what stands first in a line. */
static void append_prose(struct str *to, char letter, const char *rest, const char *text)
{
	static const char marks[] = "\\`*_[]~$";
	static const char at_start[] = "-+=#>";
	bool first = rest - text == 1;
	bool numbered = (letter == '.' || letter == ')') && strspn(text, "0123456789") + 1 == (size_t)(rest - text) && !first;
	if (letter == '<')
		str_append(to, "&lt;");
	else if (letter == '&')
		str_append(to, "&amp;");
	else if (letter == '|')
		str_append(to, "&vert;");
	else if (strchr(marks, letter) != NULL || numbered || (first && strchr(at_start, letter) != NULL))
		str_append_bytes(to, (char[]){'\\', letter}, 2);
	else
		str_append_bytes(to, &letter, 1);
	bool link = letter == ':' && text_starts_with(rest, "//");
	bool reference = letter == '@' || (letter == '#' && isdigit((unsigned char)*rest));
	bool number = letter == '-' && rest - text >= 3 && starts_with_word(rest - 3, "gh-") && isdigit((unsigned char)*rest);
	bool site = letter == '.' && rest - text >= 4 && starts_with_word(rest - 4, "www.");
	if (link || reference || number || site)
		str_append(to, NO_WIDTH);
}

void markup_markdown(struct str *to, const char *text)
{
	cleanup_str struct str line = {0};
	markup_line(&line, text);
	const char *start = str_text(&line);
	while (*start == ' ')
		start++;
	for (const char *at = start; *at != '\0'; at++)
		append_prose(to, *at, at + 1, start);
}

static size_t longest_run(const char *text, char letter)
{
	size_t longest = 0;
	size_t run = 0;
	for (; *text != '\0'; text++) {
		run = *text == letter ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	return longest;
}

static void append_times(struct str *to, char letter, size_t count)
{
	for (size_t i = 0; i < count; i++)
		str_append_bytes(to, &letter, 1);
}

void markup_markdown_code(struct str *to, const char *text)
{
	cleanup_str struct str line = {0};
	markup_line(&line, text);
	const char *code = str_text(&line);
	if (line.length == 0 || strchr(code, '|') != NULL) {
		markup_markdown(to, line.length == 0 ? "(nothing)" : code);
		return;
	}
	size_t fence = longest_run(code, '`') + 1;
	char last = code[line.length - 1];
	const char *pad = *code == '`' || last == '`' || *code == ' ' || last == ' ' ? " " : "";
	append_times(to, '`', fence);
	str_append_format(to, "%s%s%s", pad, code, pad);
	append_times(to, '`', fence);
}

void markup_markdown_fence(struct str *to, const char *language, const char *text)
{
	cleanup_str struct str block = {0};
	markup_block(&block, "", text);
	size_t fence = longest_run(str_text(&block), '`') + 1;
	fence = fence < 3 ? 3 : fence;
	append_times(to, '`', fence);
	str_append_format(to, "%s\n%s", language, str_text(&block));
	append_times(to, '`', fence);
	str_append(to, "\n");
}

/* HTML and JSON -------------------------------------------------------------------------------------------------------- */

void markup_html(struct str *to, const char *text)
{
	struct piece piece;
	for (const char *at = or_empty(text); next_piece(&at, true, &piece);) {
		switch (piece.bytes[0]) {
		case '&':
			str_append(to, "&amp;");
			break;
		case '<':
			str_append(to, "&lt;");
			break;
		case '>':
			str_append(to, "&gt;");
			break;
		case '"':
			str_append(to, "&quot;");
			break;
		case '\'':
			str_append(to, "&#39;");
			break;
		default:
			str_append_bytes(to, piece.bytes, piece.length);
		}
	}
}

char *markup_utf8(const char *text)
{
	struct str valid = {0};
	uint32_t number;
	for (const char *at = or_empty(text); *at != '\0';) {
		size_t length = decode(at, &number);
		if (length > 0)
			str_append_bytes(&valid, at, length);
		else
			str_append(&valid, "\xEF\xBF\xBD"); /* U+FFFD, replacement character */
		at += length > 0 ? length : 1;
	}
	return str_steal(&valid);
}
