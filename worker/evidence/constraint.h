/*
 * The constraint string of an asm call, "=&{ax},r,*m,~{memory}": what each operand asks for and what is given up.
 *
 * LLVM's language reference ("Inline Asm Constraint String") is the source.  It knows the grammar, not what the letters
 * mean on a machine.
 */
#ifndef BISECTD_WORKER_EVIDENCE_CONSTRAINT_H
#define BISECTD_WORKER_EVIDENCE_CONSTRAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

enum constraint_kind { CONSTRAINT_OUTPUT, CONSTRAINT_INPUT, CONSTRAINT_LABEL, CONSTRAINT_CLOBBER };

struct constraint {
	enum constraint_kind kind;
	bool indirect;        /* '*': the value is behind a pointer that is an argument */
	bool early;           /* '&': written before the inputs are all read */
	int tie;              /* number of the output whose register it shares, or -1 */
	char *fixed;          /* the name in braces ("ax", "memory", "@ccz"), or NULL */
	struct strlist codes; /* the letters and codes of the first alternative: "r", "m", "^Yk" */
};

enum { CONSTRAINTS_MAX = 256 };

struct constraints {
	struct constraint *items;
	size_t count;
	size_t capacity;
};

#define cleanup_constraints __attribute__((cleanup(constraints_clear)))

/* -1 where the string does not follow the grammar: the error names the place. */
int constraints_parse(struct constraints *constraints, const char *text, struct error *error);
void constraints_clear(struct constraints *constraints);

bool constraint_has_code(const struct constraint *constraint, const char *code);
/* Is there a clobber of this name? */
bool constraints_clobber(const struct constraints *constraints, const char *name);

#endif
