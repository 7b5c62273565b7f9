/*
 * Just enough of Rust's lexical structure (The Rust Reference, "Lexical structure") to find macro invocations in source text:
 * comments, strings, raw strings and character literals are told from code.  No parser: what does not look like an invocation is
 * passed over.
 */
#ifndef BISECTD_WORKER_EVIDENCE_RUST_TEXT_H
#define BISECTD_WORKER_EVIDENCE_RUST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

/* Offsets into the text. */
struct rust_invocation {
	size_t start; /* of its name */
	size_t end;   /* behind its closing bracket */
	/* string literals directly in it (and in a concat! in it), unescaped: the template of an asm! */
	struct strlist literals;
	/* `options(` of asm!: the word, and what stands between its brackets; 0 where there is none */
	size_t options_word;
	size_t options_start;
	size_t options_end;
};

bool rust_is_word(char byte);
/*
 * The next invocation `NAME!(...)` from *at on, in any brackets, whose NAME holds `part`; *at goes behind its name, so that nested
 * ones are found too.  False: there is none.  Clear it before the next.
 */
bool rust_next_invocation(const char *text, size_t *at, const char *part, struct rust_invocation *invocation);
void rust_invocation_clear(struct rust_invocation *invocation);

#endif
