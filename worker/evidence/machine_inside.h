/*
 * What machine.c and the two files of one architecture each share.  Only the machine*.c may include this: capstone
 * shows here.
 */
#ifndef BISECTD_WORKER_EVIDENCE_MACHINE_INSIDE_H
#define BISECTD_WORKER_EVIDENCE_MACHINE_INSIDE_H

#include <capstone/capstone.h>

#include "evidence/machine.h"

/* A register of capstone's as one of ours. */
struct register_part {
	int number;    /* REGISTER_NONE: not one that is followed */
	unsigned bits; /* its width */
	bool high;     /* ah, bh, ch, dh */
};

#define MACHINE_PARTS 300

struct machine {
	enum machine_kind kind;
	csh handle;
	cs_insn *decoded; /* reused for every instruction */
	struct register_part parts[MACHINE_PARTS];
};

struct register_part machine_part(const struct machine *machine, unsigned capstone_register);
void machine_add_read(struct instruction *instruction, struct register_part part);
void machine_add_written(struct instruction *instruction, struct register_part part);
/* Append a memory operand (those past the maximum only count as accesses). */
void machine_add_memory(struct instruction *instruction, const struct machine_memory *memory);

/* Conditions: x86's condition code plus 1; AArch64's plus 33. */
enum { CONDITION_X86 = 1, CONDITION_ARM = 33 };
/* The flags that a condition asks for. */
flag_set machine_condition_flags(int condition);

bool machine_is_one_of(const char *name, const char *const *names, size_t count);

/* Of x86: `name` is capstone's, without prefixes. */
bool machine_x86_has_group(const cs_insn *decoded, unsigned group);
bool machine_x86_two_memory_operands(const cs_x86 *x86);
/* movs, stos and the like; movsd and cmpsd are also names of vector instructions. */
bool machine_x86_is_string(const char *name, const cs_x86 *x86);
/* Of jcc, setcc, cmovcc, fcmovcc; 0: none. */
int machine_x86_condition(const char *name);
void machine_x86_flag_facts(const char *name, const cs_insn *decoded, struct instruction *instruction);

/* From what capstone says to facts; everything but address, size and text. */
void machine_x86_facts(const struct machine *machine, const cs_insn *decoded, struct instruction *instruction);
void machine_arm64_facts(const struct machine *machine, const cs_insn *decoded, struct instruction *instruction);
/* Instructions that capstone 4 does not know or takes for others: protection keys, rdpid, ktest.  True: known, and its
 * size is filled in.
 */
bool machine_x86_extra(const uint8_t *bytes, size_t size, struct instruction *instruction);
/* The same of AArch64 (atomics of ARMv8.1, authenticated branches, flag manipulation).  True:
 * known. */
bool machine_arm64_extra(uint32_t word, struct instruction *instruction);

#endif
