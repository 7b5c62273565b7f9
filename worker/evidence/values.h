/*
 * Where values come from: the state of registers, stack and flags at one point of a block, and what one instruction
 * makes of it. It knows what instructions do and nothing of what was promised.
 */
#ifndef BISECTD_WORKER_EVIDENCE_VALUES_H
#define BISECTD_WORKER_EVIDENCE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evidence/machine.h"

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_ENTRY, /* what register `number` held at the block's entry */
	VALUE_NEAR,  /* that plus a constant: an address in the same object */
	VALUE_STACK, /* the stack pointer of the entry plus `offset` */
	VALUE_FLAGS  /* a copy of the flags in which `flags` are those of the entry */
};

struct value {
	uint8_t kind;
	int8_t number;
	uint16_t flags;
	int32_t offset;
};

enum { VALUES_REGISTERS = 64, VALUES_SLOTS = 32 };

struct slot {
	int32_t offset; /* from the stack pointer of the entry */
	struct value value;
};

struct values {
	bool reached;
	struct value registers[VALUES_REGISTERS]; /* the stack pointer too */
	flag_set flags;                           /* those that still are as at the entry; FLAG_DF: clear */
	struct slot slots[VALUES_SLOTS];
	size_t slot_count;
	uint64_t written; /* late outputs written so far, on some path: by their order; for contract.c */
	int x87_depth;    /* values pushed onto the x87 stack */
	bool x87_changed; /* what was there before is not as it was */
};

void values_at_entry(struct values *values, const struct machine *machine);
/* What is true on both ways; true where `into` changed. */
bool values_join(struct values *into, const struct values *from);
/* `local_call`: a call whose target is in the block. */
void values_step(struct values *values, const struct instruction *instruction, const struct machine *machine,
		 bool local_call);

int stack_register(const struct machine *machine);
bool values_hold_entry(const struct values *values, int number);
/* Where a memory operand points into the stack: true and the offset from the entry's stack pointer. */
bool values_stack_place(const struct values *values, const struct instruction *instruction,
			const struct machine_memory *memory, const struct machine *machine, int64_t *offset);

#endif
