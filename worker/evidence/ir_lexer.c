/* See ir_lexer.h.  The rules are those of LLVM's LLLexer, but for what no inline assembly needs. */
#include "ir_lexer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_byte(char byte)
{
	return isalnum((unsigned char)byte) || strchr("-$._", byte) != NULL ? byte != '\0'
									    : (unsigned char)byte >= 0x80;
}

static const char *skip_space(const char *at, const char *end)
{
	while (at < end) {
		if (*at == ';') {
			const char *line = memchr(at, '\n', (size_t)(end - at));
			at = line != NULL ? line : end;
		} else if (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' || *at == '\0') {
			at++;
		} else {
			break;
		}
	}
	return at;
}

/* `at` is at the opening quote; NULL where the string does not end. */
static const char *string_end(const char *at, const char *end)
{
	const char *quote = at + 1 < end ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
	return quote != NULL ? quote + 1 : NULL;
}

static const char *name_end(const char *at, const char *end)
{
	while (at < end && is_name_byte(*at))
		at++;
	return at;
}

static const char *number_end(const char *at, const char *end, unsigned long long *number)
{
	*number = 0;
	while (at < end && isdigit((unsigned char)*at)) {
		*number = *number > (1ULL << 50) ? *number : *number * 10 + (unsigned long long)(*at - '0');
		at++;
	}
	return at;
}

struct ir_word ir_next(struct ir_lexer *lexer)
{
	const char *at = lexer->at = skip_space(lexer->at, lexer->end);
	struct ir_word word = {.kind = IR_END, .start = at, .end = at};
	if (at >= lexer->end)
		return word;
	word.sign = *at;
	bool has_more = at + 1 < lexer->end;
	if (*at == '"') {
		word.end = string_end(at, lexer->end);
		word.kind = word.end != NULL ? IR_STRING : IR_OPEN;
		word.end = word.end != NULL ? word.end : lexer->end;
	} else if ((*at == '%' || *at == '@') && has_more && at[1] == '"') {
		word.end = string_end(at + 1, lexer->end);
		word.kind = word.end != NULL ? IR_NAME : IR_OPEN;
		word.end = word.end != NULL ? word.end : lexer->end;
	} else if ((*at == '%' || *at == '@') && has_more && is_name_byte(at[1])) {
		word.kind = IR_NAME;
		word.end = name_end(at + 1, lexer->end);
	} else if ((*at == '!' || *at == '#') && has_more && isdigit((unsigned char)at[1])) {
		word.kind = IR_NUMBER;
		word.end = number_end(at + 1, lexer->end, &word.number);
	} else if (is_name_byte(*at)) {
		word.kind = IR_WORD;
		word.end = name_end(at, lexer->end);
		if (word.end < lexer->end && *word.end == ':') /* a label, a member of metadata */
			word.end++;
	} else {
		word.kind = IR_SIGN;
		word.end = at + 1;
	}
	lexer->at = word.end;
	return word;
}

bool ir_word_is(const struct ir_word *word, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(word->end - word->start) == length && memcmp(word->start, text, length) == 0;
}

bool ir_skip_group(struct ir_lexer *lexer)
{
	for (size_t depth = 1; depth > 0;) {
		struct ir_word word = ir_next(lexer);
		if (word.kind == IR_END || word.kind == IR_OPEN)
			return false;
		if (word.kind != IR_SIGN)
			continue;
		if (strchr("([{<", word.sign) != NULL)
			depth++;
		else if (strchr(")]}>", word.sign) != NULL)
			depth--;
	}
	return true;
}

const char *ir_line_end(const char *at, const char *limit, size_t *lines, bool *open_string)
{
	while (at < limit) {
		if (*at == '\n') {
			++*lines;
			return at + 1;
		}
		if (*at == ';') {
			const char *line = memchr(at, '\n', (size_t)(limit - at));
			at = line != NULL ? line : limit;
		} else if (*at == '"') {
			const char *end = string_end(at, limit);
			*open_string = *open_string || end == NULL;
			for (const char *byte = at; byte < (end != NULL ? end : limit); byte++)
				*lines += *byte == '\n';
			at = end != NULL ? end : limit;
		} else {
			at++;
		}
	}
	return limit;
}

static int hex_value(char digit)
{
	if (isdigit((unsigned char)digit))
		return digit - '0';
	return isxdigit((unsigned char)digit) ? tolower((unsigned char)digit) - 'a' + 10 : -1;
}

bool ir_unescape(const struct ir_word *word, char **text)
{
	const char *at = word->start;
	const char *end = word->end;
	cleanup_str struct str plain = {0};
	if (word->kind == IR_NAME)
		at++;
	bool quoted = at < end && *at == '"';
	if (quoted) {
		at++;
		end--;
	}
	for (; at < end; at++) {
		char byte = *at;
		if (quoted && byte == '\\' && end - at > 2 && hex_value(at[1]) >= 0 && hex_value(at[2]) >= 0) {
			byte = (char)(hex_value(at[1]) * 16 + hex_value(at[2]));
			at += 2;
		} else if (quoted && byte == '\\' && end - at > 1 && at[1] == '\\') {
			at++;
		}
		if (byte == '\0')
			return false;
		str_append_bytes(&plain, &byte, 1);
	}
	*text = str_steal(&plain);
	return true;
}
