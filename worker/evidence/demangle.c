/*
 * Rust's symbols as people write them.  Legacy: https://doc.rust-lang.org/rustc/symbol-mangling/legacy.html; of v0
 * (https://doc.rust-lang.org/rustc/symbol-mangling/v0.html) the names along the path are shown, without generic
 * arguments.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/elf.h"

/* The length before an identifier: digits; 0 where there are none or too many. */
static size_t take_length(const char **at)
{
	size_t length = 0;
	while (isdigit((unsigned char)**at)) {
		length = length * 10 + (size_t)(**at - '0');
		if (length > 1 << 16)
			return 0;
		(*at)++;
	}
	return length;
}

/* ---- legacy ---- */

static const struct {
	const char *code;
	const char *text;
} escapes[] = {{"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"},
	       {"$GT$", ">"}, {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","}};

/* "$u7b$": a character by its number.  Returns how much of the text it took, or 0. */
static size_t numbered_escape(const char *at, size_t left, struct str *text)
{
	const char *end = left > 3 ? memchr(at + 2, '$', left - 2) : NULL;
	if (end == NULL || at[1] != 'u' || end - at > 6)
		return 0;
	char *stop;
	unsigned long code = strtoul(at + 2, &stop, 16);
	if (stop != end || code < 0x20 || code > 0x7e)
		return 0;
	char letter = (char)code;
	str_append_bytes(text, &letter, 1);
	return (size_t)(end + 1 - at);
}

static size_t named_escape(const char *at, size_t left, struct str *text)
{
	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
		size_t length = strlen(escapes[i].code);
		if (left >= length && memcmp(at, escapes[i].code, length) == 0) {
			str_append(text, escapes[i].text);
			return length;
		}
	}
	return numbered_escape(at, left, text);
}

static void append_legacy(const char *name, size_t length, struct str *text)
{
	size_t at = length > 1 && name[0] == '_' && name[1] == '$' ? 1 : 0;
	while (at < length) {
		size_t taken = name[at] == '$' ? named_escape(name + at, length - at, text) : 0;
		if (taken == 0 && name[at] == '.' && at + 1 < length && name[at + 1] == '.') {
			str_append(text, "::");
			taken = 2;
		}
		if (taken == 0) {
			str_append_bytes(text, name + at, 1);
			taken = 1;
		}
		at += taken;
	}
}

static bool is_hash(const char *name, size_t length)
{
	if (length != 17 || name[0] != 'h')
		return false;
	for (size_t i = 1; i < length; i++)
		if (!isxdigit((unsigned char)name[i]))
			return false;
	return true;
}

static bool legacy(const char *symbol, struct str *text)
{
	const char *at = symbol + 3; /* after _ZN */
	bool hashed = false;
	while (isdigit((unsigned char)*at)) {
		size_t length = take_length(&at);
		if (length == 0 || strlen(at) < length)
			return false;
		hashed = is_hash(at, length) && at[length] == 'E';
		if (!hashed) {
			str_append(text, text->length > 0 ? "::" : "");
			append_legacy(at, length, text);
		}
		at += length;
	}
	return *at == 'E' && hashed; /* without the hash it is C++'s */
}

/* ---- v0 ---- */

/* An identifier: [s<base62>_] [u] length [_] bytes. */
static bool take_identifier(const char **at, const char **name, size_t *length)
{
	const char *cursor = *at;
	if (*cursor == 's') {
		const char *end = strchr(cursor, '_');
		if (end == NULL)
			return false;
		cursor = end + 1;
	}
	if (*cursor == 'u')
		cursor++;
	if (!isdigit((unsigned char)*cursor))
		return false;
	*length = take_length(&cursor);
	if (*cursor == '_')
		cursor++;
	if (strlen(cursor) < *length)
		return false;
	*name = cursor;
	*at = cursor + *length;
	return true;
}

/* A path of nested names in a crate: N<namespace>…C<crate> name name …; whatever is more involved is not shown. */
static bool v0(const char *symbol, struct str *text)
{
	const char *at = symbol + 2; /* after _R */
	char spaces[64];
	size_t depth = 0;
	while (*at == 'I')
		at++;
	while (*at == 'N' && at[1] != '\0' && depth < sizeof spaces) {
		spaces[depth++] = at[1];
		at += 2;
	}
	if (*at++ != 'C' || depth == 0)
		return false;
	const char *name;
	size_t length;
	if (!take_identifier(&at, &name, &length))
		return false;
	str_append_bytes(text, name, length);
	while (depth-- > 0) {
		if (!take_identifier(&at, &name, &length))
			return false;
		str_append(text, "::");
		if (spaces[depth] == 'C')
			str_append(text, "{closure}");
		else
			str_append_bytes(text, name, length);
	}
	return true;
}

char *symbol_demangle(const char *symbol)
{
	cleanup_str struct str text = {0};
	bool known = (text_starts_with(symbol, "_ZN") && legacy(symbol, &text)) ||
		     (text_starts_with(symbol, "_R") && v0(symbol, &text));
	if (!known || text.length == 0)
		return text_copy_range(symbol, strlen(symbol));
	/* What the compiler appended (".llvm.123", ".cold") is left out. */
	return str_steal(&text);
}
