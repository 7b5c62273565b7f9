/*
 * libFuzzer: whatever a file holds, reading it as LLVM IR ends in a module or in an error, every block of a module has
 * a symbol and either its template and constraints or the reason why not, and what follows (constraints, operands,
 * template) ends the same way.
 *
 * Nothing is assembled: what the assembler is given is another program's trouble, and bounded
 * (worker/evidence/assemble.c).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/constraint.h"
#include "evidence/ir.h"
#include "evidence/operand.h"
#include "evidence/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void try_block(const struct ir_block *block, const struct machine *machine)
{
	cleanup_constraints struct constraints constraints = {0};
	cleanup_operands struct operands operands = {0};
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	require(block->symbol != NULL);
	if (block->unread != NULL)
		return;
	require(block->template != NULL && block->constraints != NULL);
	free(template_probe(block->template));
	if (constraints_parse(&constraints, block->constraints, &error) < 0 ||
	    operands_assign(&operands, &constraints, block, machine, &error) < 0 ||
	    template_expand(block, &operands, machine, 3, &text, &error) < 0) {
		require(error.text != NULL);
		return;
	}
	require(error.text == NULL);
	template_refusal(str_text(&text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine *machines[2];
	cleanup_ir_module struct ir_module module = {0};
	cleanup_error struct error error = {0};
	if (machines[0] == NULL)
		require(machine_open_triple(&machines[0], "x86_64-linux", &error) == 0 &&
			machine_open_triple(&machines[1], "aarch64-linux", &error) == 0);
	int status = ir_read(&module, (const char *)data, size, &error);
	require((status == 0) == (error.text == NULL));
	for (size_t i = 0; status == 0 && i < module.block_count; i++)
		for (size_t j = 0; j < 2; j++)
			try_block(&module.blocks[i], machines[j]);
	return 0;
}
