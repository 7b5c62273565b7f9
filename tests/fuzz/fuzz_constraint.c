/*
 * libFuzzer: constraint strings, operands and the walk over machine code that nobody wrote.
 *
 * The input is "CONSTRAINTS\n" and then bytes that are decoded as the block's instructions.  Parsing ends in a list or
 * an error; operands get registers of their own or an error; checking the contract ends in violations that name
 * instructions of the block.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/constraint.h"
#include "evidence/contract.h"
#include "evidence/operand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUES = 12 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_operands(const struct operands *operands)
{
	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *operand = &operands->items[i];
		if (operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_MEMORY)
			require(operand->number >= 0 && operand->number < 64);
	}
}

static void try_code(const struct ir_block *block, const struct operands *operands, struct machine *machine,
		     const uint8_t *code, size_t size)
{
	cleanup_instructions struct instructions instructions = {0};
	cleanup_error struct error error = {0};
	machine_decode_all(machine, code, size, 0, &instructions, &error);
	error_clear(&error);
	struct contract contract = {.machine = machine,
				    .block = block,
				    .operands = operands,
				    .instructions = &instructions,
				    .size = instructions.decoded,
				    .triple = "x86_64-linux"};
	int status = contract_check(&contract, &error);
	require((status == 0) == (error.text == NULL));
	for (size_t i = 0; i < contract.violation_count; i++) {
		require(contract.violations[i].instruction <= instructions.count);
		require(contract.violations[i].text != NULL && contract.violations[i].promise != NULL);
	}
	contract_clear(&contract);
}

static void try_machine(struct machine *machine, const struct ir_block *block, const struct constraints *constraints,
			const uint8_t *code, size_t size)
{
	cleanup_operands struct operands operands = {0};
	cleanup_error struct error error = {0};
	int status = operands_assign(&operands, constraints, block, machine, &error);
	require((status == 0) == (error.text == NULL));
	if (status < 0)
		return;
	check_operands(&operands);
	try_code(block, &operands, machine, code, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine *machines[2];
	static struct ir_value values[VALUES];
	cleanup_error struct error error = {0};
	if (machines[0] == NULL) {
		require(machine_open_triple(&machines[0], "x86_64-linux", &error) == 0 &&
			machine_open_triple(&machines[1], "aarch64-linux", &error) == 0);
		for (size_t i = 0; i < VALUES; i++) {
			values[i].type = text_copy(i % 3 == 0 ? "i64" : i % 3 == 1 ? "i32" : "ptr");
			values[i].bits = ir_type_bits(values[i].type);
			values[i].text = i % 4 == 3 ? text_format("%zu", i) : text_format("%%v%zu", i % 5);
		}
	}
	const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t length = line != NULL ? (size_t)(line - data) : size;
	cleanup_free char *text = text_copy_range((const char *)data, length);
	cleanup_constraints struct constraints constraints = {0};
	int status = constraints_parse(&constraints, text, &error);
	require((status == 0) == (error.text == NULL));
	if (status < 0)
		return 0;
	const struct ir_block block = {.template = (char *)(uintptr_t) "",
				       .constraints = text,
				       .results = values,
				       .result_count = VALUES,
				       .arguments = values,
				       .argument_count = VALUES,
				       .rust = size & 1,
				       .align_stack = size & 2,
				       .may_read = true,
				       .may_write = size & 4,
				       .side_effect = size & 8};
	for (size_t i = 0; i < 2; i++)
		try_machine(machines[i], &block, &constraints, line != NULL ? line + 1 : data,
			    line != NULL ? size - length - 1 : 0);
	return 0;
}
