/* See contract_walk.h. */
#include "evidence/contract_walk.h"

#include <stdlib.h>
#include <string.h>

enum { INSTRUCTIONS_MAX = 8192, VISITS_MAX = 512 /* of one instruction, on average */ };

bool walk_is_relocated(const size_t *relocations, size_t count, const struct instruction *instruction)
{
	for (size_t i = 0; i < count; i++)
		if (relocations[i] >= instruction->address && relocations[i] < instruction->address + instruction->size)
			return true;
	return false;
}

static bool leaves(const struct walk *walk, const struct instruction *instruction)
{
	const struct contract *contract = walk->contract;
	return !instruction->target_known ||
	       walk_is_relocated(contract->relocations, contract->relocation_count, instruction);
}

static bool is_local_call(const struct walk *walk, const struct instruction *instruction)
{
	return instruction->flow == MACHINE_CALL && !leaves(walk, instruction) &&
	       instruction->target < walk->contract->size;
}

/* Outputs that are not early clobbers, as they get written. */
static void note_outputs(const struct walk *walk, const struct instruction *instruction, struct values *values)
{
	const struct operands *operands = walk->contract->operands;
	for (size_t i = 0; i < operands->count && i < 64; i++) {
		const struct operand *operand = &operands->items[i];
		if (operand->kind == OPERAND_REGISTER && operand->output && !operand->early &&
		    (instruction->registers_written & REGISTER(operand->number)))
			values->written |= (uint64_t)1 << i;
	}
}

void walk_step(const struct walk *walk, size_t index, struct values *values)
{
	const struct instruction *instruction = &walk->instructions->items[index];
	values_step(values, instruction, walk->contract->machine, is_local_call(walk, instruction));
	note_outputs(walk, instruction, values);
}

/* On to an address: an instruction, or out of the block. */
static int go_to(struct walk *walk, uint64_t address, const struct values *values, struct error *error)
{
	size_t size = walk->contract->size;
	bool to_label = address > size && address <= size + 4 * (walk->contract->block->label_count + 1);
	if (address == size || (to_label && walk->contract->block->label_count > 0)) {
		values_join(&walk->end, values);
		return 0;
	}
	if (address > size)
		return error_set(error, "it jumps to a place outside of itself");
	if (walk->by_address[address] == 0)
		return error_set(error, "it jumps into the middle of an instruction");
	size_t index = walk->by_address[address] - 1;
	if (values_join(&walk->before[index], values))
		walk->pending[index] = true;
	return 0;
}

static int step_from(struct walk *walk, size_t index, struct error *error)
{
	const struct instruction *instruction = &walk->instructions->items[index];
	struct values after = walk->before[index];
	bool gone = leaves(walk, instruction);
	walk_step(walk, index, &after);
	switch (instruction->flow) {
	case MACHINE_RETURN:
	case MACHINE_TRAP:
		return 0;
	case MACHINE_JUMP:
		return gone ? 0 : go_to(walk, instruction->target, &after, error);
	case MACHINE_BRANCH:
		if (!gone && go_to(walk, instruction->target, &after, error) < 0)
			return -1;
		break;
	case MACHINE_CALL:
		if (is_local_call(walk, instruction))
			return go_to(walk, instruction->target, &after, error);
		break;
	case MACHINE_NEXT:
	case MACHINE_SYSTEM:
		break;
	}
	return go_to(walk, instruction->address + instruction->size, &after, error);
}

int walk_block(struct walk *walk, const struct contract *contract, struct error *error)
{
	size_t count = contract->instructions->count;
	walk->contract = contract;
	walk->instructions = contract->instructions;
	if (count > INSTRUCTIONS_MAX)
		return error_set(error, "it has more than %d instructions", INSTRUCTIONS_MAX);
	walk->before = memory_new(count + 1, sizeof *walk->before);
	walk->by_address = memory_new(contract->size + 1, sizeof *walk->by_address);
	walk->pending = memory_new(count + 1, sizeof *walk->pending);
	for (size_t i = 0; i < count; i++)
		walk->by_address[contract->instructions->items[i].address] = i + 1;
	struct values entry;
	values_at_entry(&entry, contract->machine);
	if (go_to(walk, 0, &entry, error) < 0)
		return -1;
	size_t budget = (count + 1) * VISITS_MAX;
	for (bool again = true; again;) {
		again = false;
		for (size_t i = 0; i < count; i++) {
			if (!walk->pending[i])
				continue;
			if (budget-- == 0)
				return error_set(error, "its ways could not be followed to an end");
			walk->pending[i] = false;
			again = true;
			if (step_from(walk, i, error) < 0)
				return -1;
		}
	}
	return 0;
}

void walk_clear(struct walk *walk)
{
	free(walk->before);
	free(walk->by_address);
	free(walk->pending);
	*walk = (struct walk){0};
}

size_t walk_last_writer(const struct walk *walk, int number)
{
	size_t count = walk->instructions->count;
	bool stack = number == stack_register(walk->contract->machine);
	for (size_t i = count; i > 0; i--) {
		const struct instruction *instruction = &walk->instructions->items[i - 1];
		if (walk->before[i - 1].reached &&
		    ((instruction->registers_written & REGISTER(number)) || (stack && instruction->stack_moved)))
			return i - 1;
	}
	return count;
}

static int bank(const struct walk *walk, int number)
{
	if (machine_kind(walk->contract->machine) == MACHINE_AARCH64)
		return number < ARM_V0 ? 0 : 1;
	return number < X86_ZMM0 ? 0 : number < X86_K0 ? 1 : number < X86_X87 ? 2 : 3;
}

/* Is some input put into the output's register, so that no other can be? */
static bool is_occupied(const struct operands *operands, size_t output, size_t except)
{
	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *operand = &operands->items[i];
		if (i != except && operand->input && operand->kind == OPERAND_REGISTER && operand->fixed &&
		    operand->number == operands->items[output].number)
			return true;
	}
	return false;
}

bool walk_may_share(const struct walk *walk, size_t output, size_t input)
{
	const struct operands *operands = walk->contract->operands;
	const struct operand *out = &operands->items[output];
	const struct operand *in = &operands->items[input];
	bool enters = in->kind == OPERAND_MEMORY || (in->kind == OPERAND_REGISTER && in->input && in->tie < 0);
	if (!enters || out->kind != OPERAND_REGISTER || !out->output || out->early)
		return false;
	if (bank(walk, out->number) != bank(walk, in->number) || bank(walk, out->number) == 3 ||
	    out->number == in->number)
		return false;
	if (out->fixed && (in->fixed || is_occupied(operands, output, input)))
		return false;
	return true;
}
