/*
 * What an asm block does against what its declaration says: a small abstract interpretation over the block's
 * instructions.
 *
 * Registers, stack slots and flags are followed by where their value comes from ("what rbx held at the entry"), so that
 * a block which saves and restores is clean and one that only half does is not.  docs/audit.md has the rules, one for
 * each kind.
 */
#ifndef BISECTD_WORKER_EVIDENCE_CONTRACT_H
#define BISECTD_WORKER_EVIDENCE_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "evidence/machine.h"
#include "ir.h"
#include "operand.h"

enum violation_kind {
	VIOLATION_FLAGS,       /* status flags changed that the block promises to keep */
	VIOLATION_X87,         /* the x87 status word likewise */
	VIOLATION_DIRECTION,   /* the direction flag may be set at the end */
	VIOLATION_REGISTER,    /* a register changed that is no output and no clobber */
	VIOLATION_INPUT,       /* an input's register changed without being an output */
	VIOLATION_LATE_OUTPUT, /* an output that may share an input's register written before that input's last use */
	VIOLATION_MEMORY_READ,
	VIOLATION_MEMORY_WRITE,
	VIOLATION_STACK, /* the stack used where the compiler may keep values below it */
	VIOLATION_STACK_UNBALANCED,
	VIOLATION_PURE, /* an effect in a block that the compiler may repeat or leave out */
	VIOLATION_KINDS
};

/* "flags", "late-output", …: the word in reports. */
const char *violation_name(enum violation_kind kind);

struct violation {
	enum violation_kind kind;
	char *promise;      /* what was declared: "preserves_flags", "no \"memory\" clobber" */
	size_t instruction; /* index */
	char *what;         /* what is changed: "ZF, CF", "rbx"; "" where that says nothing more */
	char *text;         /* one sentence without a full stop */
};

struct contract {
	/* in; borrowed */
	const struct machine *machine;
	const struct ir_block *block;
	const struct operands *operands;
	const struct instructions *instructions; /* the first one at address 0 */
	size_t size;                             /* bytes */
	const size_t *relocations;               /* places that the linker fills in */
	size_t relocation_count;
	const char *triple; /* whether there is a red zone */
	/* out; owned */
	struct violation *violations;
	size_t violation_count;
	size_t violation_capacity;
	register_set destroyed_registers; /* undeclared, at the block's end */
	flag_set destroyed_flags;
};

/* -1 where the block cannot be judged: the error says why. */
int contract_check(struct contract *contract, struct error *error);
void contract_clear(struct contract *contract); /* what is owned */

/* The promises of a block by their names in Rust ("nomem", "preserves_flags", …), added to `promises`. */
void contract_promises(const struct ir_block *block, const struct operands *operands, const struct machine *machine,
		       struct strlist *promises);

#endif
