/*
 * What is wrong with an investigation's file: gathered in any order, handed over sorted.
 *
 * Private to config*.c.  Also the two things that good messages need: a text quoted so that it fits on a line, and the
 * nearest known word.
 */
#ifndef BISECTD_DAEMON_CONFIG_PROBLEM_H
#define BISECTD_DAEMON_CONFIG_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

enum { CONFIG_PROBLEM_LIMIT = 200 /* more are counted, not kept: nobody reads them, and a hostile file has many */ };

struct config_problem {
	int line; /* both count from 1; columns are characters, not bytes */
	int column;
	size_t order; /* of being found */
	char *text;
};

struct config_problems {
	struct config_problem *items;
	size_t count;
	size_t capacity;
	size_t dropped;
};

/* One sentence without a full stop: what is wrong, and what to do. */
void config_problem_add(struct config_problems *problems, int line, int column, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Append all to `lines` as `file:line:column: text`, sorted, each once; and forget them. */
void config_problems_hand_over(struct config_problems *problems, const char *file, struct strlist *lines);

/* The text in double quotes, control characters as \n or \x1b, cut with "..." where it is long.  Owned by the caller.
 */
char *config_quote(const char *text);

/* Start as {.word = what was written}; `best` is then the closest of those considered, NULL where none is close. */
struct config_nearest {
	const char *word;
	const char *best;
	size_t distance;
};

void config_nearest_consider(struct config_nearest *nearest, const char *candidate);
/* `: did you mean "best"?`, or `otherwise` where none is close.  Owned by the caller. */
char *config_nearest_hint(const struct config_nearest *nearest, const char *otherwise);

#endif
