/*
 * The operands of an asm block: every one gets a register, a place in memory or a value, as the compiler's register
 * allocator would give it one.  Any choice that the constraints allow is right; this one keeps operands apart from each
 * other and from every register that the template names, so that what the block does to each can be told.
 *
 * The letters are those of LLVM's language reference ("Supported Constraint Code List") for x86 and AArch64.
 */
#ifndef BISECTD_WORKER_EVIDENCE_OPERAND_H
#define BISECTD_WORKER_EVIDENCE_OPERAND_H

#include "constraint.h"
#include "error.h"
#include "evidence/machine.h"
#include "ir.h"

enum operand_kind {
	OPERAND_REGISTER,
	OPERAND_MEMORY,    /* `number` is the register that holds its address */
	OPERAND_IMMEDIATE, /* the text of `value` */
	OPERAND_FLAG,      /* a condition (=@ccz): never in the template */
	OPERAND_LABEL      /* asm goto: `number` counts from 0 */
};

struct operand {
	enum operand_kind kind;
	int number;
	unsigned bits; /* of the value; 64 where it has no known size */
	bool output;
	bool input;
	bool early;
	bool fixed;    /* the register was asked for by name */
	int tie;       /* input: the output that it shares its register with, or -1 */
	bool may_read; /* memory: by the constraints */
	bool may_write;
	const struct ir_value *value; /* the argument, or NULL; borrowed from the block */
};

struct operands {
	struct operand *items; /* in the order of $0, $1, … */
	size_t count;
	register_set outputs; /* what the block may change: outputs and clobbers */
	register_set inputs;  /* registers that arrive with a value, addresses of memory operands included */
	register_set clobbers;
	flag_set flags; /* that it may change */
	bool memory;    /* "memory" is clobbered */
};

#define cleanup_operands __attribute__((cleanup(operands_clear)))

/* -1 where the block asks for something that is not known here, or for more registers than there are. */
int operands_assign(struct operands *operands, const struct constraints *constraints, const struct ir_block *block,
		    const struct machine *machine, struct error *error);
void operands_clear(struct operands *operands);

/* Displacement that marks an address as a memory operand's own. */
enum { OPERAND_DISPLACEMENT = 0x4000 };

#endif
