/*
 * One function out of textual LLVM IR, and what is inlined into which function: see listing.h.
 *
 * Read by lines, as LLVM prints them: a definition starts with "define " in the first column and ends at the first line
 * "}".
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/listing.h"
#include "fs.h"

/* A piece of the file; not NUL-terminated. */
struct piece {
	const char *start;
	const char *end;
};

/* The next line without its newline; false at the end. */
static bool next_line(struct piece *rest, struct piece *line)
{
	if (rest->start >= rest->end)
		return false;
	const char *newline = memchr(rest->start, '\n', (size_t)(rest->end - rest->start));
	*line = (struct piece){rest->start, newline != NULL ? newline : rest->end};
	rest->start = newline != NULL ? newline + 1 : rest->end;
	return true;
}

static bool starts(const struct piece *piece, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(piece->end - piece->start) >= length && memcmp(piece->start, text, length) == 0;
}

/* Where `text` stands, outside of quotation marks; NULL where it does not. */
static const char *find_outside(const char *start, const char *end, const char *text)
{
	size_t length = strlen(text);
	bool quoted = false;
	for (const char *at = start; at < end && (size_t)(end - at) >= length; at++) {
		if (!quoted && memcmp(at, text, length) == 0)
			return at;
		if (*at == '"')
			quoted = !quoted;
	}
	return NULL;
}

/* What LLVM escaped as \22; owned by the caller. */
static char *unescape(const char *start, const char *end)
{
	struct str text = {0};
	for (const char *at = start; at < end; at++) {
		if (*at == '\\' && end - at > 2 && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2])) {
			char digits[3] = {at[1], at[2], '\0'};
			char byte = (char)strtol(digits, NULL, 16);
			str_append_bytes(&text, byte != '\0' ? &byte : "?", 1);
			at += 2;
		} else {
			str_append_bytes(&text, *at != '\0' ? at : "?", 1);
		}
	}
	return str_steal(&text);
}

/* The symbol that a "define" line defines; NULL where it has none.  Owned by the caller. */
static char *defined_symbol(const struct piece *line)
{
	const char *at = find_outside(line->start, line->end, "@");
	if (at == NULL || ++at == line->end)
		return NULL;
	if (*at == '"') {
		const char *end = memchr(at + 1, '"', (size_t)(line->end - at - 1));
		return end != NULL ? unescape(at + 1, end) : NULL;
	}
	const char *end = memchr(at, '(', (size_t)(line->end - at));
	return end != NULL ? unescape(at, end) : NULL;
}

struct definition {
	char *symbol;
	struct piece text; /* with the comments above it, to the closing brace */
	struct piece body; /* from "define" on */
	bool whole;
};

/* The next definition of the file; false at its end.  The symbol is the caller's. */
static bool next_definition(struct piece *rest, struct definition *definition)
{
	struct piece line;
	const char *comments = NULL;
	while (next_line(rest, &line)) {
		if (starts(&line, ";")) {
			comments = comments != NULL ? comments : line.start;
			continue;
		}
		char *symbol = starts(&line, "define ") ? defined_symbol(&line) : NULL;
		if (symbol == NULL) {
			comments = NULL;
			continue;
		}
		*definition = (struct definition){.symbol = symbol,
						  .text = {comments != NULL ? comments : line.start, rest->end},
						  .body = {line.start, rest->end}};
		while (!definition->whole && next_line(rest, &line)) {
			definition->whole = starts(&line, "}") && line.end - line.start <= 2;
			definition->text.end = definition->body.end = line.end;
		}
		return true;
	}
	return false;
}

/* ---- without debug records ---- */

static bool is_debug_record(const struct piece *line)
{
	struct piece trimmed = *line;
	while (trimmed.start < trimmed.end && *trimmed.start == ' ')
		trimmed.start++;
	return starts(&trimmed, "#dbg_") || find_outside(trimmed.start, trimmed.end, "call void @llvm.dbg.") != NULL ||
	       find_outside(trimmed.start, trimmed.end, "@llvm.experimental.noalias.scope.decl(") != NULL;
}

/* The end of the line without its metadata ("…, !dbg !12, !srcloc !13") and the number of an attribute group (" #12").
 */
static const char *plain_end(const struct piece *line)
{
	const char *end = find_outside(line->start, line->end, ", !");
	end = end != NULL ? end : line->end;
	const char *digits = end;
	while (digits > line->start && isdigit((unsigned char)digits[-1]))
		digits--;
	if (digits < end && digits - line->start >= 2 && digits[-1] == '#' && digits[-2] == ' ')
		return digits - 2;
	return end;
}

static void append_plain(struct str *text, const struct piece *line)
{
	if (is_debug_record(line))
		return;
	const char *debug = starts(line, "define ") ? find_outside(line->start, line->end, " !dbg ") : NULL;
	if (debug != NULL) {
		str_append_bytes(text, line->start, (size_t)(debug - line->start));
		str_append(text, " {\n");
		return;
	}
	str_append_bytes(text, line->start, (size_t)(plain_end(line) - line->start));
	str_append(text, "\n");
}

static void append_definition(struct str *text, const struct definition *definition, bool plain)
{
	struct piece rest = definition->text;
	struct piece line;
	while (next_line(&rest, &line)) {
		if (plain) {
			append_plain(text, &line);
		} else {
			str_append_bytes(text, line.start, (size_t)(line.end - line.start));
			str_append(text, "\n");
		}
	}
}

int listing_ir(const char *ir, size_t length, const char *symbol, bool plain, struct str *text, struct error *error)
{
	struct piece rest = {ir, ir + length};
	struct definition definition;
	size_t seen = 0;
	while (next_definition(&rest, &definition)) {
		cleanup_free char *found = definition.symbol;
		seen++;
		if (strcmp(found, symbol) != 0)
			continue;
		append_definition(text, &definition, plain);
		if (!definition.whole)
			str_append(text, "; the file ends within this function\n");
		return 0;
	}
	return error_set(error, "the LLVM IR, which defines %zu function%s, does not define %s", seen,
			 seen == 1 ? "" : "s", symbol);
}

/* ---- what is inlined ---- */

/* The numbered metadata: where each stands behind its "= ", or NULL. */
struct metadata {
	const char **items;
	size_t count;
	const char *end; /* of the file */
};

/* "!12" at `at`: its number; SIZE_MAX where it is none. */
static size_t metadata_number(const char *at, const char *end)
{
	size_t number = 0;
	if (at >= end || *at != '!' || ++at >= end || !isdigit((unsigned char)*at))
		return SIZE_MAX;
	for (; at < end && isdigit((unsigned char)*at); at++) {
		if (number > SIZE_MAX / 16)
			return SIZE_MAX;
		number = number * 10 + (size_t)(*at - '0');
	}
	return number;
}

static void metadata_read(struct metadata *metadata, struct piece file)
{
	size_t capacity = 0;
	struct piece line;
	size_t most = (size_t)(file.end - file.start);
	metadata->end = file.end;
	while (next_line(&file, &line)) {
		size_t number = starts(&line, "!") ? metadata_number(line.start, line.end) : SIZE_MAX;
		const char *is = number < most ? find_outside(line.start, line.end, " = ") : NULL;
		/* LLVM numbers without gaps: a number beyond the lines so far is not its own. */
		if (is == NULL || number > metadata->count)
			continue;
		if (number == metadata->count) {
			metadata->items =
				memory_grow(metadata->items, metadata->count, &capacity, sizeof *metadata->items);
			metadata->count++;
		}
		metadata->items[number] = is + 3;
	}
}

static struct piece metadata_line(const struct metadata *metadata, size_t number)
{
	if (number >= metadata->count)
		return (struct piece){NULL, NULL};
	const char *start = metadata->items[number];
	const char *end = memchr(start, '\n', (size_t)(metadata->end - start));
	struct piece line = {start, end != NULL ? end : metadata->end};
	if (starts(&line, "distinct "))
		line.start += strlen("distinct ");
	return line;
}

/* The field's value: behind "scope: " and the like; NULL where the line has none. */
static const char *field(const struct piece *line, const char *name)
{
	const char *at = line->start != NULL ? find_outside(line->start, line->end, name) : NULL;
	return at != NULL ? at + strlen(name) : NULL;
}

static size_t reference(const struct piece *line, const char *name)
{
	const char *at = field(line, name);
	return at != NULL ? metadata_number(at, line->end) : SIZE_MAX;
}

enum { SCOPES_MAX = 200 };

/* The DISubprogram that a scope lies in; SIZE_MAX: none. */
static size_t subprogram_of(const struct metadata *metadata, size_t scope)
{
	for (int depth = 0; depth < SCOPES_MAX && scope != SIZE_MAX; depth++) {
		struct piece line = metadata_line(metadata, scope);
		if (line.start == NULL)
			return SIZE_MAX;
		if (starts(&line, "!DISubprogram("))
			return scope;
		scope = reference(&line, "scope: ");
	}
	return SIZE_MAX;
}

struct inlining {
	const struct metadata *metadata;
	size_t *seen; /* for each metadata: the last function, counted from 1, that met it */
	size_t function;
	struct listing_function *into;
};

static void add_subprogram(struct inlining *inlining, size_t subprogram)
{
	if (subprogram == SIZE_MAX || inlining->seen[subprogram] == inlining->function)
		return;
	inlining->seen[subprogram] = inlining->function;
	struct piece line = metadata_line(inlining->metadata, subprogram);
	const char *at = field(&line, "linkageName: \"");
	const char *end = at != NULL ? memchr(at, '"', (size_t)(line.end - at)) : NULL;
	if (end == NULL)
		return;
	cleanup_free char *symbol = unescape(at, end);
	if (strcmp(symbol, inlining->into->symbol) != 0)
		strlist_add_owned(&inlining->into->inlined, demangle(symbol));
}

static void add_location(struct inlining *inlining, size_t location)
{
	while (location < inlining->metadata->count && inlining->seen[location] != inlining->function) {
		inlining->seen[location] = inlining->function;
		struct piece line = metadata_line(inlining->metadata, location);
		if (!starts(&line, "!DILocation("))
			return;
		add_subprogram(inlining, subprogram_of(inlining->metadata, reference(&line, "scope: ")));
		location = reference(&line, "inlinedAt: ");
	}
}

static void add_inlined(struct inlining *inlining, struct piece body)
{
	struct piece line;
	while (next_line(&body, &line)) {
		const char *at = find_outside(line.start, line.end, "!dbg ");
		if (at != NULL)
			add_location(inlining, metadata_number(at + strlen("!dbg "), line.end));
	}
}

void listing_ir_functions(const char *ir, size_t length, struct listing_functions *functions)
{
	struct piece rest = {ir, ir + length};
	struct metadata metadata = {0};
	metadata_read(&metadata, rest);
	struct inlining inlining = {.metadata = &metadata,
				    .seen = memory_new(metadata.count + 1, sizeof *inlining.seen)};
	struct definition definition;
	while (next_definition(&rest, &definition)) {
		cleanup_free char *symbol = definition.symbol;
		inlining.function++;
		inlining.into =
			listing_add(functions, symbol, 0, (uint64_t)(definition.body.end - definition.body.start));
		add_inlined(&inlining, definition.body);
	}
	free(inlining.seen);
	free(metadata.items);
}

/* ---- which file ---- */

enum { FILE_MAX = 1 << 30 };

/* A line that starts with "SYMBOL:", or "\"SYMBOL\":" where it has characters that must be quoted. */
static bool assembly_defines(const struct str *text, const char *symbol)
{
	struct piece rest = {str_text(text), str_text(text) + text->length};
	struct piece line;
	cleanup_free char *bare = text_format("%s:", symbol);
	cleanup_free char *quoted = text_format("\"%s\":", symbol);
	while (next_line(&rest, &line))
		if (starts(&line, bare) || starts(&line, quoted))
			return true;
	return false;
}

static bool ir_defines(const struct str *text, const char *symbol)
{
	struct piece rest = {str_text(text), str_text(text) + text->length};
	struct definition definition;
	while (next_definition(&rest, &definition)) {
		cleanup_free char *found = definition.symbol;
		if (strcmp(found, symbol) == 0)
			return true;
	}
	return false;
}

char *listing_find_file(const struct strlist *files, const char *symbol, struct error *error)
{
	for (size_t i = 0; i < files->count; i++) {
		cleanup_error struct error trouble = {0};
		cleanup_str struct str text = {0};
		if (fs_read_file(files->items[i], FILE_MAX, &text, &trouble) < 0)
			continue;
		if (text_ends_with(files->items[i], ".ll") ? ir_defines(&text, symbol)
							   : assembly_defines(&text, symbol))
			return text_copy(files->items[i]);
	}
	error_set(error, "none of %zu files defines %s", files->count, symbol);
	return NULL;
}
