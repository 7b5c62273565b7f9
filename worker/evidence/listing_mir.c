/*
 * Functions out of rustc's textual MIR (--emit=mir): see listing.h.
 *
 * Read by lines: "fn PATH(...) -> TYPE {", or a constant's or static's header, in the first column, to the first line
 * "}".
 */
#include <ctype.h>
#include <string.h>

#include "evidence/listing.h"

/* ---- paths ---- */

/* A path as its segments, without generics: a::<impl at f.rs:1:2: 3:4>::b::{closure#0} and a::b::{{closure}}. */
static void split_path(const char *path, size_t length, struct strlist *segments)
{
	struct str segment = {0};
	int depth = 0;
	bool generic = false;
	for (size_t i = 0; i < length; i++) {
		char c = path[i];
		if (depth == 0 && c == ':' && i + 1 < length && path[i + 1] == ':') {
			if (segment.length > 0)
				strlist_add(segments, str_text(&segment));
			segment.length = 0;
			i++;
			continue;
		}
		if (c == '<') {
			generic = depth++ == 0 ? segment.length > 0 : generic;
			if (depth == 1 && !generic)
				str_append(&segment, "<"); /* <impl at ...>, <T as Trait>: any type */
		} else if (c == '>' && depth > 0 && (i == 0 || path[i - 1] != '-')) {
			depth--;
		} else if (depth == 0 && c != '\0') {
			str_append_bytes(&segment, &c, 1);
		}
	}
	if (segment.length > 0)
		strlist_add(segments, str_text(&segment));
	str_clear(&segment);
}

static bool is_closure(const char *segment)
{
	return text_starts_with(segment, "{closure") || text_starts_with(segment, "{{closure") ||
	       text_starts_with(segment, "{async_") || text_starts_with(segment, "{coroutine") ||
	       text_starts_with(segment, "{generator");
}

/* legacy mangling does not say which closure it is */
static bool same_segment(const char *a, const char *b)
{
	if (is_closure(a) && is_closure(b))
		return strcmp(a, b) == 0 || text_starts_with(a, "{{") || text_starts_with(b, "{{");
	return strcmp(a, b) == 0 || a[0] == '<' || b[0] == '<';
}

/* How many segments agree; 0 where one of the shorter path does not. */
static size_t agreement(const struct strlist *wanted, const struct strlist *path)
{
	size_t count = path->count < wanted->count ? path->count : wanted->count;
	for (size_t i = 1; i <= count; i++)
		if (!same_segment(wanted->items[wanted->count - i], path->items[path->count - i]))
			return 0;
	return count;
}

/*
 * Of "<a::B<C> as d::E>::f": "B", the type whose method it is; NULL for other names.  MIR says only where such an
 * `impl` stands, so that the type must be looked for among the arguments.  Owned by the caller.
 */
static char *implementing_type(const char *name)
{
	if (name[0] != '<')
		return NULL;
	const char *start = name + 1;
	const char *at = start + strspn(start, "&*( ");
	start = text_starts_with(at, "mut ") ? at + strlen("mut ") : at;
	for (at = start; isalnum((unsigned char)*at) || *at == '_' || *at == ':'; at++)
		if (*at == ':')
			start = at + 1;
	return at > start ? text_copy_range(start, (size_t)(at - start)) : NULL;
}

/* ---- bodies ---- */

/* The next line with its newline; the length, 0 at the end. */
static size_t line_length(const char *at, const char *end)
{
	const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	return (size_t)((newline != NULL ? newline + 1 : end) - at);
}

static bool line_starts(const char *at, size_t length, const char *text)
{
	return length >= strlen(text) && memcmp(at, text, strlen(text)) == 0;
}

/* The path in "fn PATH(…": up to the first parenthesis outside of angle brackets and braces. */
static size_t path_length(const char *at, size_t length)
{
	int depth = 0;
	for (size_t i = 0; i < length; i++) {
		if (at[i] == '<')
			depth++;
		else if (at[i] == '>' && depth > 0 && (i == 0 || at[i - 1] != '-'))
			depth--;
		else if (at[i] == '(' && depth == 0)
			return i;
	}
	return 0;
}

struct wanted {
	struct strlist path;
	char *type; /* see implementing_type */
};

static bool speaks_of(const char *line, size_t length, const char *word)
{
	cleanup_free char *copy = text_copy_range(line, length);
	size_t word_length = strlen(word);
	for (const char *at = copy; (at = strstr(at, word)) != NULL; at++)
		if ((at == copy || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    !isalnum((unsigned char)at[word_length]) && at[word_length] != '_')
			return true;
	return false;
}

struct body {
	const char *start;
	const char *end;
	size_t agreement;
};

/* The next "fn" from `*at` on; false at the end. */
static bool next_function(const char **at, const char *end, const struct wanted *wanted, struct body *body)
{
	for (size_t length; (length = line_length(*at, end)) > 0; *at += length) {
		if (!line_starts(*at, length, "fn "))
			continue;
		cleanup_strlist struct strlist path = {0};
		split_path(*at + 3, path_length(*at + 3, length - 3), &path);
		*body = (struct body){*at, end, path.count > 0 ? agreement(&wanted->path, &path) : 0};
		if (wanted->type != NULL && !speaks_of(*at, length, wanted->type))
			body->agreement = 0;
		bool open = true;
		for (*at += length; open && (length = line_length(*at, end)) > 0; *at += length)
			if (line_starts(*at, length, "}")) {
				open = false;
				body->end = *at + length;
			}
		return true;
	}
	return false;
}

/* The length of a line without the comment at its end, for one outside of quotation marks. */
static size_t without_comment(const char *line, size_t length)
{
	bool quoted = false;
	for (size_t i = 0; i < length; i++) {
		if (line[i] == '\\' && quoted)
			i++;
		else if (line[i] == '"')
			quoted = !quoted;
		else if (!quoted && line[i] == '/' && i + 1 < length && line[i + 1] == '/')
			length = i;
	}
	while (length > 0 && isspace((unsigned char)line[length - 1]))
		length--;
	return length;
}

static void append_body(struct str *text, const struct body *body, bool plain)
{
	for (const char *at = body->start; at < body->end; at += line_length(at, body->end)) {
		size_t length = line_length(at, body->end);
		size_t indent = 0;
		while (indent < length && at[indent] == ' ')
			indent++;
		size_t kept = plain ? without_comment(at, length) : length - (at[length - 1] == '\n');
		if (plain && (line_starts(at + indent, length - indent, "debug ") || (kept == 0 && length > 1)))
			continue;
		str_append_bytes(text, at, kept);
		str_append(text, "\n");
	}
}

int listing_mir(const char *mir, size_t length, const char *name, bool plain, struct str *text, struct error *error)
{
	cleanup_free char *type = implementing_type(name);
	struct wanted wanted = {.type = type};
	split_path(name, strlen(name), &wanted.path);
	const char *end = mir + length;
	size_t best = 0;
	struct body body;
	for (const char *at = mir; next_function(&at, end, &wanted, &body);)
		best = body.agreement > best ? body.agreement : best;
	const char *between = "";
	for (const char *at = mir; best > 0 && next_function(&at, end, &wanted, &body);) {
		if (body.agreement != best)
			continue;
		str_append(text, between);
		append_body(text, &body, plain);
		between = "\n";
	}
	strlist_clear(&wanted.path);
	return best > 0 ? 0 : error_set(error, "the MIR has no function %s", name);
}
