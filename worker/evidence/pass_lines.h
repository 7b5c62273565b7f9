/*
 * What LLVM prints under -opt-bisect-limit: `BISECT: running pass (12) NAME on UNIT` and `BISECT: NOT running pass (13)
 * ...` (llvm/lib/IR/OptBisect.cpp), one line a pass, in the order of their numbers, from 1.  Hundreds of thousands of
 * lines come from one real crate, mixed with the compiler's other messages, out of a file that code under test could
 * have written: it is read in pieces and believed only as far as its numbers follow each other.
 */
#ifndef BISECTD_WORKER_EVIDENCE_PASS_LINES_H
#define BISECTD_WORKER_EVIDENCE_PASS_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

struct pass_line {
	long long number;
	bool running;
	char *text; /* the whole line: bytes that are no printable ASCII shown as '?', cut at some length */
	char *pass;
	char *unit; /* "function (NAME)", a plain symbol, "[module]", "(NAME)" for a call-graph component, ... */
};

#define cleanup_pass_line __attribute__((cleanup(pass_line_clear)))

/* False where the text is no such line; then nothing is owned. */
bool pass_line_parse(const char *text, size_t length, struct pass_line *line);
void pass_line_clear(struct pass_line *line);
/* The symbol that `unit` names, NULL where it names none (a module, a loop) or more than one.  Owned. */
char *pass_line_function(const struct pass_line *line);

/* Called for each line with the unit's text, which is not terminated. */
struct pass_visitor {
	void (*visit)(void *context, long long number, const char *unit, size_t length);
	void *context;
};

/* As pass_line_function, of a unit's text as it was printed. */
char *pass_unit_function(const char *unit, size_t length);

/*
 * Read all of `fd`: `passes` is how many lines there are, `wanted` (0: none) the number of the line that is kept in
 * `line` (empty where there is none); `visitor` may be NULL.  An error where the numbers do not follow each other, or
 * reading fails.
 */
int pass_lines_read(int fd, long long wanted, const struct pass_visitor *visitor, long long *passes,
		    struct pass_line *line, struct error *error);

#endif
