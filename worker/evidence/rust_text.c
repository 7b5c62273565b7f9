/* See rust_text.h. */
#include "evidence/rust_text.h"

#include <ctype.h>
#include <string.h>

bool rust_is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

void rust_invocation_clear(struct rust_invocation *invocation)
{
	strlist_clear(&invocation->literals);
	*invocation = (struct rust_invocation){0};
}

static size_t skip_line(const char *text, size_t at)
{
	return at + strcspn(text + at, "\n");
}

/* Block comments nest. */
static size_t skip_block_comment(const char *text, size_t at)
{
	size_t depth = 0;
	do {
		if (text[at] == '/' && text[at + 1] == '*') {
			depth++;
			at += 2;
		} else if (text[at] == '*' && text[at + 1] == '/') {
			depth--;
			at += 2;
		} else {
			at++;
		}
	} while (depth > 0 && text[at] != '\0');
	return at;
}

static size_t skip_string(const char *text, size_t at)
{
	for (at++; text[at] != '\0' && text[at] != '"'; at++)
		if (text[at] == '\\' && text[at + 1] != '\0')
			at++;
	return text[at] == '"' ? at + 1 : at;
}

/* r"...", r#"..."#: number of hashes, or -1 where no raw string starts here. */
static int raw_hashes(const char *text, size_t at)
{
	int hashes = 0;
	while (text[at + 1 + (size_t)hashes] == '#')
		hashes++;
	return text[at + 1 + (size_t)hashes] == '"' ? hashes : -1;
}

static size_t raw_end(const char *text, size_t at, int hashes, size_t *body_end)
{
	for (; text[at] != '\0'; at++) {
		int found = 0;
		if (text[at] != '"')
			continue;
		while (found < hashes && text[at + 1 + (size_t)found] == '#')
			found++;
		if (found == hashes) {
			*body_end = at;
			return at + 1 + (size_t)hashes;
		}
	}
	*body_end = at;
	return at;
}

/* 'a' and '\n' are characters, 'a is a lifetime. */
static size_t skip_quote(const char *text, size_t at)
{
	if (text[at + 1] == '\\') {
		size_t end = at + 2;
		if (text[end] != '\0')
			end++;
		while (text[end] != '\0' && text[end] != '\'' && text[end] != '\n')
			end++;
		return text[end] == '\'' ? end + 1 : end;
	}
	if (text[at + 1] != '\0' && text[at + 2] == '\'')
		return at + 3;
	return at + 1;
}

static bool starts_raw(const char *text, size_t at)
{
	return text[at] == 'r' && (at == 0 || !rust_is_word(text[at - 1]) || text[at - 1] == 'b') && raw_hashes(text, at) >= 0;
}

/* Behind a comment, string or character at `at`; `at` itself where none starts there. */
static size_t skip_opaque(const char *text, size_t at)
{
	size_t body_end;
	if (text[at] == '/' && text[at + 1] == '/')
		return skip_line(text, at);
	if (text[at] == '/' && text[at + 1] == '*')
		return skip_block_comment(text, at);
	if (text[at] == '"')
		return skip_string(text, at);
	if (text[at] == '\'')
		return skip_quote(text, at);
	if (starts_raw(text, at)) {
		int hashes = raw_hashes(text, at);
		return raw_end(text, at + 2 + (size_t)hashes, hashes, &body_end);
	}
	return at;
}

static size_t skip_blanks(const char *text, size_t at)
{
	while (isspace((unsigned char)text[at]))
		at++;
	return at;
}

static char *unescape(const char *text, size_t length)
{
	struct str plain = {0};
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '\\' || i + 1 == length) {
			str_append_bytes(&plain, text + i, 1);
			continue;
		}
		char next = text[++i];
		if (next == '\n') { /* a line that goes on: blanks at the start of the next one are not part of it */
			while (i + 1 < length && isspace((unsigned char)text[i + 1]))
				i++;
			continue;
		}
		char byte = next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
		str_append_bytes(&plain, &byte, 1);
	}
	return str_steal(&plain);
}

static void add_literal(const char *text, size_t at, size_t end, struct strlist *literals)
{
	size_t body_end;
	if (text[at] == '"') {
		bool closed = end > at + 1 && text[end - 1] == '"';
		strlist_add_owned(literals, unescape(text + at + 1, end - at - 1 - (closed ? 1 : 0)));
	} else if (starts_raw(text, at)) {
		int hashes = raw_hashes(text, at);
		size_t body = at + 2 + (size_t)hashes;
		raw_end(text, body, hashes, &body_end);
		strlist_add_owned(literals, text_copy_range(text + body, body_end - body));
	}
}

static bool is_word_at(const char *text, size_t at, const char *word)
{
	size_t length = strlen(word);
	return strncmp(text + at, word, length) == 0 && !rust_is_word(text[at + length]) &&
	       (at == 0 || !rust_is_word(text[at - 1]));
}

/* The bracket behind a word, or 0. */
static size_t bracket_behind(const char *text, size_t at, const char *word)
{
	size_t place = skip_blanks(text, at + strlen(word));
	return text[place] == '(' ? place : 0;
}

/* Reads what stands between the brackets, the first of which is at `at`.  False: they do not close. */
static bool read_arguments(const char *text, size_t at, struct rust_invocation *invocation)
{
	size_t depth = 0;
	size_t concat = 0; /* depth inside a concat!, or 0 */
	size_t options = 0;
	while (text[at] != '\0') {
		size_t behind = skip_opaque(text, at);
		if (behind != at) {
			if (depth == 1 || (concat != 0 && depth == concat))
				add_literal(text, at, behind, &invocation->literals);
			at = behind;
			continue;
		}
		if (depth == 1 && is_word_at(text, at, "options") && bracket_behind(text, at, "options") != 0) {
			invocation->options_word = at;
			invocation->options_start = bracket_behind(text, at, "options") + 1;
			options = depth + 1;
		} else if (depth == 1 && is_word_at(text, at, "concat")) {
			concat = depth + 1;
		}
		if (strchr("([{", text[at]) != NULL) {
			depth++;
		} else if (strchr(")]}", text[at]) != NULL) {
			if (options == depth)
				invocation->options_end = at;
			options = options == depth ? 0 : options;
			concat = concat == depth ? 0 : concat;
			if (--depth == 0) {
				invocation->end = at + 1;
				return true;
			}
		}
		at++;
	}
	return false;
}

static bool holds(const char *name, size_t length, const char *part)
{
	size_t wanted = strlen(part);
	for (size_t i = 0; i + wanted <= length; i++)
		if (strncmp(name + i, part, wanted) == 0)
			return true;
	return false;
}

bool rust_next_invocation(const char *text, size_t *at, const char *part, struct rust_invocation *invocation)
{
	while (text[*at] != '\0') {
		size_t behind = skip_opaque(text, *at);
		if (behind != *at) {
			*at = behind;
			continue;
		}
		if (!rust_is_word(text[*at])) {
			++*at;
			continue;
		}
		size_t start = *at;
		while (rust_is_word(text[*at]))
			++*at;
		size_t mark = skip_blanks(text, *at);
		size_t bracket = text[mark] == '!' ? skip_blanks(text, mark + 1) : 0;
		if (bracket == 0 || strchr("([{", text[bracket]) == NULL || text[bracket] == '\0' ||
		    !holds(text + start, *at - start, part))
			continue;
		*invocation = (struct rust_invocation){.start = start};
		if (read_arguments(text, bracket, invocation))
			return true;
		rust_invocation_clear(invocation);
	}
	return false;
}
