/* See pass_lines.h. */
#include "evidence/pass_lines.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "str.h"

enum { LONGEST_LINE = 4096 }; /* what is longer is cut: symbols of generic code reach a few thousand bytes */

static const char start[] = "BISECT: ";
static const char not_running[] = "NOT running pass (";
static const char running[] = "running pass (";
static const char on[] = " on ";

/* Take `word` off the front of [*at, end). */
static bool take(const char **at, const char *end, const char *word)
{
	size_t length = strlen(word);
	if ((size_t)(end - *at) < length || memcmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

/* LLVM counts in an int. */
static bool take_number(const char **at, const char *end, long long *number)
{
	const char *first = *at;
	*number = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
		*number = *number * 10 + (**at - '0');
		if (*number > INT_MAX)
			return false;
	}
	return *at > first && *number > 0;
}

static char *printable(const char *text, size_t length)
{
	char *copy = text_copy_range(text, length);
	for (size_t i = 0; i < length; i++)
		if (copy[i] < ' ' || copy[i] > '~')
			copy[i] = '?';
	return copy;
}

/* As pass_line_parse, without a copy of anything: *pass and *unit point into the text. */
static bool split(const char *text, size_t length, struct pass_line *line, const char **pass, const char **unit)
{
	const char *at = text;
	const char *end = text + length;
	if (!take(&at, end, start))
		return false;
	line->running = !take(&at, end, not_running);
	if (line->running && !take(&at, end, running))
		return false;
	if (!take_number(&at, end, &line->number) || !take(&at, end, ") "))
		return false;
	*pass = at;
	*unit = memmem(at, (size_t)(end - at), on, strlen(on));
	return *unit != NULL && *unit > at;
}

bool pass_line_parse(const char *text, size_t length, struct pass_line *line)
{
	const char *pass;
	const char *unit;
	*line = (struct pass_line){0};
	if (length > 0 && text[length - 1] == '\r')
		length--;
	if (!split(text, length, line, &pass, &unit))
		return false;
	line->text = printable(text, length);
	line->pass = printable(pass, (size_t)(unit - pass));
	unit += strlen(on);
	line->unit = printable(unit, (size_t)(text + length - unit));
	return true;
}

void pass_line_clear(struct pass_line *line)
{
	free(line->text);
	free(line->pass);
	free(line->unit);
	*line = (struct pass_line){0};
}

char *pass_unit_function(const char *unit, size_t length)
{
	static const char legacy[] = "function (";
	size_t start_length = strlen(legacy);
	bool closed = length > 0 && unit[length - 1] == ')';
	if (closed && length > start_length && memcmp(unit, legacy, start_length) == 0) {
		unit += start_length;
		length -= start_length + 1;
	} else if (closed && length > 1 && unit[0] == '(') {
		unit++;
		length -= 2;
	}
	if (length == 0 || unit[0] == '[' || memchr(unit, ' ', length) != NULL || memchr(unit, ',', length) != NULL)
		return NULL;
	return printable(unit, length);
}

char *pass_line_function(const struct pass_line *line)
{
	return line->unit != NULL ? pass_unit_function(line->unit, strlen(line->unit)) : NULL;
}

struct reader {
	char line[LONGEST_LINE];
	size_t length;
	long long wanted;
	long long passes;
	const struct pass_visitor *visitor;
	struct pass_line *kept;
	struct error *error;
};

static int end_line(struct reader *reader)
{
	struct pass_line line = {0};
	const char *pass;
	const char *unit;
	size_t length = reader->length;
	reader->length = 0;
	if (!split(reader->line, length, &line, &pass, &unit))
		return 0;
	if (line.number != reader->passes + 1)
		return error_set(reader->error, "the compiler's lines are out of order: pass %lld follows pass %lld",
				 line.number, reader->passes);
	reader->passes++;
	if (reader->visitor != NULL) {
		unit += strlen(on);
		reader->visitor->visit(reader->visitor->context, line.number, unit,
				       (size_t)(reader->line + length - unit));
	}
	if (line.number == reader->wanted)
		pass_line_parse(reader->line, length, reader->kept);
	return 0;
}

static int take_block(struct reader *reader, const char *at, const char *end)
{
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t piece = (size_t)((newline != NULL ? newline : end) - at);
		size_t room = sizeof reader->line - reader->length;
		memcpy(reader->line + reader->length, at, piece < room ? piece : room);
		reader->length += piece < room ? piece : room;
		at += piece;
		if (newline == NULL)
			break;
		at++;
		if (end_line(reader) < 0)
			return -1;
	}
	return 0;
}

int pass_lines_read(int fd, long long wanted, const struct pass_visitor *visitor, long long *passes,
		    struct pass_line *line, struct error *error)
{
	cleanup_free struct reader *reader = memory_new(1, sizeof *reader);
	cleanup_free char *block = memory_new(1 << 16, 1);
	*line = (struct pass_line){0};
	*passes = 0;
	reader->wanted = wanted;
	reader->visitor = visitor;
	reader->kept = line;
	reader->error = error;
	for (;;) {
		ssize_t got = read(fd, block, 1 << 16);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			error_set_errno(error, "cannot read the compiler's lines");
		/* the last line may lack its newline */
		if (got < 0 || (got > 0 ? take_block(reader, block, block + got) : end_line(reader)) < 0) {
			pass_line_clear(line);
			return -1;
		}
		*passes = reader->passes;
		if (got == 0)
			return 0;
	}
}
