/* One line of a function: its head, and a call of inline assembly.  What ir.c puts together. */
#ifndef BISECTD_WORKER_EVIDENCE_IR_CALL_H
#define BISECTD_WORKER_EVIDENCE_IR_CALL_H

#include "ir.h"

enum { IR_GROUPS_MAX = 8 };

struct ir_function {
	char *symbol;
	unsigned long long groups[IR_GROUPS_MAX];
	size_t group_count;
	bool has_subprogram;
	unsigned long long subprogram;
	bool no_red_zone;
	bool naked;
};

void ir_function_read(struct ir_function *function, const char *at, const char *end);
void ir_function_clear(struct ir_function *function);

/* Numbers to be looked up when the whole file is known. */
struct ir_call {
	unsigned long long groups[IR_GROUPS_MAX];
	size_t group_count;
	unsigned long long function_groups[IR_GROUPS_MAX];
	size_t function_group_count;
	bool has_location;
	unsigned long long location;
	bool has_subprogram;
	unsigned long long subprogram;
};

enum ir_call_end {
	IR_CALL_NONE,   /* no asm call after all */
	IR_CALL_READ,   /* or block->unread says why not */
	IR_CALL_GOES_ON /* callbr and invoke: read again with the next line included */
};

enum ir_call_end ir_call_read(struct ir_call *call, struct ir_block *block, const struct ir_function *function,
			      const char *at, const char *end);
/* Attributes of the call, of the function: `at` is where they start, in the line or in a group's braces. */
void ir_call_attributes(struct ir_block *block, const char *at, const char *end);
void ir_function_attributes(struct ir_block *block, const char *at, const char *end);
void ir_block_clear(struct ir_block *block);

#endif
