/* See config_problem.h. */
#include "config_problem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUOTE_LIMIT = 60,   /* bytes of a quoted text */
	NEAREST_LIMIT = 64, /* bytes; longer words are nobody's misspelling */
};

void config_problem_add(struct config_problems *problems, int line, int column, const char *format, ...)
{
	if (problems->count >= CONFIG_PROBLEM_LIMIT) {
		problems->dropped++;
		return;
	}
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	problems->items = memory_grow(problems->items, problems->count, &problems->capacity, sizeof *problems->items);
	problems->items[problems->count] = (struct config_problem){
		.line = line, .column = column, .order = problems->count, .text = str_steal(&text)};
	problems->count++;
}

static int compare_problems(const void *left, const void *right)
{
	const struct config_problem *a = left;
	const struct config_problem *b = right;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* What an alias stands for is read once for every use, and is then wrong as often. */
static bool said_before(const struct config_problems *problems, size_t i)
{
	const struct config_problem *problem = &problems->items[i];
	while (i-- > 0 && problems->items[i].line == problem->line && problems->items[i].column == problem->column)
		if (strcmp(problems->items[i].text, problem->text) == 0)
			return true;
	return false;
}

void config_problems_hand_over(struct config_problems *problems, const char *file, struct strlist *lines)
{
	if (problems->count > 1)
		qsort(problems->items, problems->count, sizeof *problems->items, compare_problems);
	for (size_t i = 0; i < problems->count; i++) {
		const struct config_problem *problem = &problems->items[i];
		if (!said_before(problems, i))
			strlist_add_owned(lines, text_format("%s:%d:%d: %s", file, problem->line, problem->column,
							     problem->text));
		if (i + 1 == problems->count && problems->dropped > 0)
			strlist_add_owned(lines,
					  text_format("%s:%d:%d: %zu more problems are not shown: mend these first",
						      file, problem->line, problem->column, problems->dropped));
	}
	for (size_t i = 0; i < problems->count; i++)
		free(problems->items[i].text);
	free(problems->items);
	*problems = (struct config_problems){0};
}

static void append_quoted_byte(struct str *quoted, char byte)
{
	if (byte == '\n')
		str_append(quoted, "\\n");
	else if (byte == '\t')
		str_append(quoted, "\\t");
	else if ((unsigned char)byte < 0x20 || byte == 0x7f)
		str_append_format(quoted, "\\x%02x", (unsigned)(unsigned char)byte);
	else
		str_append_bytes(quoted, &byte, 1);
}

static bool continues_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

char *config_quote(const char *text)
{
	size_t length = strlen(text);
	bool cut = length > QUOTE_LIMIT;
	if (cut)
		for (length = QUOTE_LIMIT; length > 0 && continues_character(text[length]); length--)
			;
	struct str quoted = {0};
	str_append(&quoted, "\"");
	for (size_t i = 0; i < length; i++)
		append_quoted_byte(&quoted, text[i]);
	str_append(&quoted, cut ? "...\"" : "\"");
	return str_steal(&quoted);
}

static size_t close_enough(size_t length)
{
	return length <= 4 ? 1 : length <= 8 ? 2 : 3;
}

/* "nmae" for "name": two edits to text_distance, one slip of the hand. */
static bool is_swap(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return a[0] != '\0' && b[0] != '\0' && a[1] != '\0' && a[0] == b[1] && a[1] == b[0] &&
	       strcmp(a + 2, b + 2) == 0;
}

void config_nearest_consider(struct config_nearest *nearest, const char *candidate)
{
	size_t length = strlen(nearest->word);
	size_t other = strlen(candidate);
	if (length > NEAREST_LIMIT || other > NEAREST_LIMIT)
		return;
	size_t limit = close_enough(length);
	if (length + limit < other || other + limit < length)
		return;
	size_t distance = is_swap(nearest->word, candidate) ? 1 : text_distance(nearest->word, candidate);
	if (distance > limit || distance >= length || distance >= other)
		return;
	if (nearest->best == NULL || distance < nearest->distance) {
		nearest->best = candidate;
		nearest->distance = distance;
	}
}

char *config_nearest_hint(const struct config_nearest *nearest, const char *otherwise)
{
	return nearest->best != NULL ? text_format(": did you mean \"%s\"?", nearest->best) : text_copy(otherwise);
}
