/* The ways through a block: the state before each instruction and where control comes out. */
#ifndef BISECTD_WORKER_EVIDENCE_CONTRACT_WALK_H
#define BISECTD_WORKER_EVIDENCE_CONTRACT_WALK_H

#include "evidence/contract.h"
#include "evidence/values.h"

struct walk {
	const struct contract *contract;
	const struct instructions *instructions; /* borrowed */
	struct values *before;                   /* one for each instruction */
	struct values end;  /* where control goes on in compiled code; not reached where it never does */
	size_t *by_address; /* index + 1 of the instruction that starts there; 0: none does */
	bool *pending;
};

#define cleanup_walk __attribute__((cleanup(walk_clear)))

/* -1 where control goes to no instruction of the block, or the block is too long. */
int walk_block(struct walk *walk, const struct contract *contract, struct error *error);
void walk_clear(struct walk *walk);

/* What instruction `index` makes of the state before it. */
void walk_step(const struct walk *walk, size_t index, struct values *values);
/* The last instruction that writes the register (the stack pointer: that moves the stack); count where none does. */
size_t walk_last_writer(const struct walk *walk, int number);
/* Could the compiler have put both operands, by their index, into one register? */
bool walk_may_share(const struct walk *walk, size_t output, size_t input);
/* Does the linker fill in a part of this instruction? */
bool walk_is_relocated(const size_t *relocations, size_t count, const struct instruction *instruction);

#endif
