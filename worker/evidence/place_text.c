/* The compiler's assembly as text.  The marks are LLVM's (MCAsmInfo: InlineAsmStart, InlineAsmEnd), on lines of their
 * own. */
#include "evidence/place_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 1 << 16, REGIONS_MAX = 1 << 20 };

struct reader {
	struct regions *regions;
	struct str *labelled;
	size_t first;        /* index in regions of this file's first block */
	struct region *open; /* the block that the line is in; NULL: none */
	struct str text;     /* of the open block */
	char **files;        /* by the number of .file */
	size_t file_count;
	size_t file_capacity;
	char *file; /* of the last .loc: one of `files` */
	int line;
};

/* ---- words of a line ---- */

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

static bool starts_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);
	if ((size_t)(end - at) < length || strncasecmp(at, word, length) != 0)
		return false;
	return at + length == end || isspace((unsigned char)at[length]);
}

/* Directives that read other files, or with which a directive's name can be put together. */
static const char *const refused[] = {".include", ".incbin", ".macro", ".altmacro", ".irp", ".irpc", ".rept", ".rep"};

/*
 * A refused directive anywhere on the line (several statements may share it), or NULL.  What is quoted is told from
 * what is not the way the assembler does, as long as strings end on their line and there are no comments within it:
 * others are refused.
 */
static const char *find_refused(const char *line, const char *end)
{
	bool quoted = false;
	for (const char *at = line; at < end; at++) {
		if (quoted && *at == '\\') {
			at++;
			continue;
		}
		if (*at == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		if (*at == '/' && at + 1 < end && at[1] == '*')
			return "a comment";
		if (*at != '.' || (at > line && (isalnum((unsigned char)at[-1]) || strchr("_.$@", at[-1]) != NULL)))
			continue;
		for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
			if (starts_word(at, end, refused[i]))
				return refused[i];
	}
	return quoted ? "a string over several lines" : NULL;
}

/* The text of the quoted string at `*at`, without its escapes being undone but \" and \\; NULL: none.  Owned by the
 * caller. */
static char *take_string(const char **at, const char *end)
{
	struct str text = {0};
	const char *cursor = skip_blanks(*at, end);
	if (cursor == end || *cursor != '"')
		return NULL;
	for (cursor++; cursor < end && *cursor != '"'; cursor++) {
		if (*cursor == '\\' && cursor + 1 < end && (cursor[1] == '"' || cursor[1] == '\\'))
			cursor++;
		str_append_bytes(&text, cursor, 1);
	}
	*at = cursor < end ? cursor + 1 : end;
	return str_steal(&text);
}

static long take_number(const char **at, const char *end)
{
	const char *cursor = skip_blanks(*at, end);
	long value = 0;
	bool any = false;
	for (; cursor < end && isdigit((unsigned char)*cursor) && value < 100000000; cursor++, any = true)
		value = value * 10 + (*cursor - '0');
	*at = cursor;
	return any ? value : -1;
}

/* ---- .file and .loc ---- */

static void note_file(struct reader *reader, const char *at, const char *end)
{
	long number = take_number(&at, end);
	if (number < 0 || number >= FILES_MAX)
		return;
	cleanup_free char *first = take_string(&at, end);
	cleanup_free char *second = take_string(&at, end);
	if (first == NULL)
		return;
	while (reader->file_count <= (size_t)number) {
		reader->files =
			memory_grow(reader->files, reader->file_count, &reader->file_capacity, sizeof *reader->files);
		reader->files[reader->file_count++] = NULL;
	}
	if (reader->files[number] != NULL)
		return; /* the first stays: .loc may point to it */
	bool whole = second == NULL || second[0] == '/';
	reader->files[number] =
		whole ? text_copy(second != NULL ? second : first) : text_format("%s/%s", first, second);
}

static void note_line(struct reader *reader, const char *at, const char *end)
{
	long file = take_number(&at, end);
	long line = take_number(&at, end);
	reader->file = file >= 0 && (size_t)file < reader->file_count ? reader->files[file] : NULL;
	reader->line = line > 0 ? (int)line : 0;
}

/* ---- probe records in a block ---- */

/* The operands of usdt's record: flags in the first 2-byte number, then provider and name as the first two strings. */
static void note_record(struct region *region, const char *text)
{
	const char *record = strstr(text, "set_dtrace_probes");
	const char *strings[2] = {".ascii", ".asciz"};
	if (record == NULL)
		return;
	for (const char *line = record; line != NULL && region->name == NULL; line = strchr(line + 1, '\n')) {
		const char *end = strchrnul(line + 1, '\n');
		const char *at = skip_blanks(line + (*line == '\n'), end);
		bool flags = starts_word(at, end, ".short") || starts_word(at, end, ".hword") ||
			     starts_word(at, end, ".2byte");
		if (flags) {
			at += strcspn(at, " \t");
			region->is_enabled = take_number(&at, end) > 0;
		}
		for (size_t i = 0; i < 2; i++) {
			if (!starts_word(at, end, strings[i]))
				continue;
			const char *value = at + strlen(strings[i]);
			char **wanted = region->provider == NULL ? &region->provider : &region->name;
			*wanted = take_string(&value, end);
			if (*wanted != NULL && text_ends_with(*wanted, "\\000"))
				(*wanted)[strlen(*wanted) - 4] = '\0';
			break;
		}
	}
	if (region->name == NULL) {
		free(region->provider);
		region->provider = NULL;
	}
}

/* ---- lines ---- */

static int open_block(struct reader *reader, unsigned long number, struct error *error)
{
	struct regions *regions = reader->regions;
	if (reader->open != NULL)
		return error_set(error, "line %lu: #APP inside of a block", number);
	if (regions->count >= REGIONS_MAX)
		return error_set(error, "more than %d blocks are too many", REGIONS_MAX);
	regions->items = memory_grow(regions->items, regions->count, &regions->capacity, sizeof *regions->items);
	reader->open = &regions->items[regions->count];
	*reader->open = (struct region){.file = text_copy(reader->file), .line = reader->line};
	str_append_format(reader->labelled, "%s%zu:\n", LABEL_BEFORE, regions->count++ - reader->first);
	return 0;
}

static int close_block(struct reader *reader, unsigned long number, struct error *error)
{
	if (reader->open == NULL)
		return error_set(error, "line %lu: #NO_APP without #APP", number);
	str_append_format(reader->labelled, "%s%zu:\n", LABEL_BEHIND, reader->regions->count - 1 - reader->first);
	reader->open->text = str_steal(&reader->text);
	note_record(reader->open, reader->open->text);
	reader->open = NULL;
	return 0;
}

static bool is_mark(const char *at, const char *end, const char *name)
{
	size_t comment = end - at > 1 && at[0] == '/' && at[1] == '/' ? 2 : end > at && *at == '#' ? 1 : 0;
	at += comment;
	return comment > 0 && starts_word(at, end, name);
}

static int read_line(struct reader *reader, const char *line, const char *end, unsigned long number,
		     struct error *error)
{
	const char *at = skip_blanks(line, end);
	const char *word = find_refused(line, end);
	if (word != NULL)
		return error_set(error, "line %lu: %s is refused: a compiler's own assembly has none", number, word);
	if (is_mark(at, end, "NO_APP"))
		return close_block(reader, number, error);
	if (is_mark(at, end, "APP"))
		return open_block(reader, number, error);
	if (reader->open != NULL && at < end) {
		str_append(&reader->text, reader->text.length > 0 ? "\n" : "");
		str_append_bytes(&reader->text, at, (size_t)(end - at));
	}
	if (starts_word(at, end, ".file"))
		note_file(reader, at + 5, end);
	else if (starts_word(at, end, ".loc"))
		note_line(reader, at + 4, end);
	str_append_bytes(reader->labelled, line, (size_t)(end - line));
	str_append(reader->labelled, "\n");
	return 0;
}

static void close_reader(struct reader *reader)
{
	for (size_t i = 0; i < reader->file_count; i++)
		free(reader->files[i]);
	free(reader->files);
	str_clear(&reader->text);
}

int place_read_assembly(const char *source, struct regions *regions, struct str *labelled, struct error *error)
{
	struct reader reader = {.regions = regions, .labelled = labelled, .first = regions->count};
	unsigned long number = 0;
	int status = 0;
	for (const char *line = source; *line != '\0' && status == 0;) {
		const char *end = strchrnul(line, '\n');
		status = read_line(&reader, line, end, ++number, error);
		line = *end != '\0' ? end + 1 : end;
	}
	if (status == 0 && reader.open != NULL)
		status = error_set(error, "cut off inside of a block");
	close_reader(&reader);
	return status;
}
