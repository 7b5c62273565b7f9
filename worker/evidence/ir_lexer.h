/* The words of textual LLVM IR: what ir.c and ir_debug.c read with. */
#ifndef BISECTD_WORKER_EVIDENCE_IR_LEXER_H
#define BISECTD_WORKER_EVIDENCE_IR_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

enum ir_word_kind {
	IR_END,
	IR_WORD,   /* define, i64, 0x1F, -5, name: */
	IR_NAME,   /* %x, @"a b" */
	IR_NUMBER, /* the N of !N or #N: see `sign` */
	IR_STRING,
	IR_SIGN, /* one of the other characters */
	IR_OPEN  /* a string that does not end */
};

struct ir_word {
	enum ir_word_kind kind;
	char sign;         /* IR_SIGN: the character; IR_NUMBER: '!' or '#' */
	const char *start; /* whole word, quotes and signs included */
	const char *end;
	unsigned long long number;
};

struct ir_lexer {
	const char *at;
	const char *end;
};

/* The next word; comments and white space (line ends too) are passed over. */
struct ir_word ir_next(struct ir_lexer *lexer);
bool ir_word_is(const struct ir_word *word, const char *text);
/* Behind a "(" , "[", "{" or "<" that was just read: go on to behind the sign that closes it. False where it is not
 * closed. */
bool ir_skip_group(struct ir_lexer *lexer);

/* Start of the next line, strings and comments heeded; `limit` at the end.  Counts the line ends it passes. */
const char *ir_line_end(const char *at, const char *limit, size_t *lines, bool *open_string);

/* Text of a string (IR_STRING) or a name (IR_NAME, without its @ or %), with \XX put in; false where it holds a NUL. */
bool ir_unescape(const struct ir_word *word, char **text);

#endif
