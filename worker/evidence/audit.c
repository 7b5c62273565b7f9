/* See audit.h. */
#include "evidence/audit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/assemble.h"
#include "evidence/constraint.h"
#include "evidence/operand.h"
#include "evidence/template.h"
#include "fs.h"

enum { FILE_LIMIT = 1 << 30 /* bytes */ };

/* What is needed of each block between the steps. */
struct work {
	struct constraints constraints;
	struct operands operands;
	struct assembly assembly;
	size_t same_as; /* block whose text is the same: it is assembled once */
};

/* ---- crates ---- */

static size_t digits_at(const char *at, const char *end)
{
	size_t count = 0;
	while (at + count < end && isdigit((unsigned char)at[count]))
		count++;
	return count;
}

/* "usdt-impl-0.5.0" is usdt-impl and 0.5.0: the version starts behind the first dash that three numbers follow. */
static bool split_name(const char *name, const char *end, char **crate, char **version)
{
	for (const char *dash = name + 1; dash < end; dash++) {
		const char *at = dash + 1;
		int numbers = 0;
		for (; *dash == '-' && numbers < 3; numbers++) {
			size_t digits = digits_at(at, end);
			if (digits == 0 || (numbers < 2 && (at + digits >= end || at[digits] != '.')))
				break;
			at += digits + (numbers < 2);
		}
		if (numbers == 3) {
			*crate = text_copy_range(name, (size_t)(dash - name));
			*version = text_copy_range(dash + 1, (size_t)(end - dash - 1));
			return true;
		}
	}
	return false;
}

/* Folders whose children are crates even without a version in their names. */
static bool crate_behind(const char *path, const char *mark, char **crate)
{
	const char *found = strstr(path, mark);
	if (found == NULL)
		return false;
	const char *name = found + strlen(mark);
	size_t length = strcspn(name, "/");
	if (length == 0 || name[length] != '/')
		return false;
	*crate = text_copy_range(name, length);
	return true;
}

/* The innermost folder that is named like a crate of a registry wins: a vendor folder may stand in another crate. */
bool audit_crate_of_path(const char *path, char **crate, char **version)
{
	*crate = *version = NULL;
	const char *end = strrchr(path, '/');
	while (end != NULL && end > path) {
		const char *start = end;
		while (start > path && start[-1] != '/')
			start--;
		/* a toolchain's folder is named like a crate of a registry but holds the compiler's own library */
		if (!text_starts_with(start, "rustc-") && split_name(start, end, crate, version))
			return true;
		end = start > path ? start - 1 : NULL;
	}
	return crate_behind(path, "/library/", crate) || crate_behind(path, "/vendor/", crate);
}

/* By the path, else by the outermost part of the function's name, which is the crate in Rust. */
static void find_crate(struct audit_block *block)
{
	const struct ir_block *ir = block->ir;
	const struct ir_location *location = ir->location_count > 0 ? &ir->locations[0] : NULL;
	if (location != NULL && location->file != NULL &&
	    audit_crate_of_path(location->file, &block->crate, &block->version))
		return;
	const char *function = location != NULL && location->function != NULL ? location->function : ir->name;
	const char *end = function != NULL ? strstr(function, "::") : NULL;
	if (ir->rust && end != NULL && end > function && function[0] != '{' && function[0] != '<')
		block->crate = text_copy_range(function, (size_t)(end - function));
}

/* ---- one block ---- */

static void prepare_block(const struct audit *audit, struct audit_block *block, struct work *work, size_t index)
{
	const struct ir_block *ir = block->ir;
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	work->same_as = index;
	find_crate(block);
	if (ir->unread != NULL) {
		block->reason = text_copy(ir->unread);
		return;
	}
	block->probe = template_probe(ir->template);
	if (constraints_parse(&work->constraints, ir->constraints, &error) < 0 ||
	    operands_assign(&work->operands, &work->constraints, ir, audit->machine, &error) < 0 ||
	    template_expand(ir, &work->operands, audit->machine, index, &text, &error) < 0) {
		block->reason = text_copy(error_text(&error));
		return;
	}
	contract_promises(ir, &work->operands, audit->machine, &block->promises);
	work->assembly.intel = ir->intel;
	work->assembly.label_count = ir->label_count;
	work->assembly.text = str_steal(&text);
}

static void judge_block(struct audit *audit, struct audit_block *block, const struct work *work,
			const struct assembly *assembly)
{
	cleanup_error struct error error = {0};
	if (block->reason != NULL)
		return;
	if (assembly->refused != NULL || assembly->bytes == NULL) {
		block->reason = text_copy(assembly->refused != NULL ? assembly->refused : "it was not assembled");
		return;
	}
	block->size = assembly->size;
	block->bytes = memory_new(assembly->size + 1, 1);
	memcpy(block->bytes, assembly->bytes, assembly->size);
	struct contract contract = {.machine = audit->machine,
				    .block = block->ir,
				    .operands = &work->operands,
				    .instructions = &block->instructions,
				    .size = assembly->size,
				    .relocations = assembly->relocations,
				    .relocation_count = assembly->relocation_count,
				    .triple = audit->module.triple};
	if (machine_decode_all(audit->machine, block->bytes, block->size, 0, &block->instructions, &error) < 0 ||
	    contract_check(&contract, &error) < 0) {
		block->reason = text_copy(error_text(&error));
		contract_clear(&contract);
		return;
	}
	block->violations = contract.violations;
	block->violation_count = contract.violation_count;
	block->destroyed_registers = contract.destroyed_registers;
	block->destroyed_flags = contract.destroyed_flags;
}

/* ---- all blocks ---- */

struct by_text {
	const struct assembly *assembly;
	size_t index;
};

static int compare_texts(const void *left, const void *right)
{
	const struct by_text *a = left;
	const struct by_text *b = right;
	int order = strcmp(a->assembly->text, b->assembly->text);
	if (order == 0)
		order = (a->assembly->intel > b->assembly->intel) - (a->assembly->intel < b->assembly->intel);
	return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

/* What was inlined into many places has the same text in all of them. */
static void share_texts(struct work *works, size_t count)
{
	cleanup_free struct by_text *sorted = memory_new(count + 1, sizeof *sorted);
	size_t used = 0;
	for (size_t i = 0; i < count; i++)
		if (works[i].assembly.text != NULL)
			sorted[used++] = (struct by_text){&works[i].assembly, i};
	if (used == 0)
		return;
	qsort(sorted, used, sizeof *sorted, compare_texts);
	size_t first = 0;
	for (size_t i = 1; i < used; i++) {
		const struct assembly *a = sorted[first].assembly;
		const struct assembly *b = sorted[i].assembly;
		if (strcmp(a->text, b->text) == 0 && a->intel == b->intel && a->label_count == 0 && b->label_count == 0)
			works[sorted[i].index].same_as = sorted[first].index;
		else
			first = i;
	}
}

static int assemble_all(struct audit *audit, struct work *works, const struct audit_options *options,
			struct error *error)
{
	size_t count = audit->module.block_count;
	cleanup_free struct assembly *blocks = memory_new(count + 1, sizeof *blocks);
	const struct assembler assembler = {
		.program = options->clang, .kind = machine_kind(audit->machine), .timeout_ms = options->timeout_ms};
	for (size_t i = 0; i < count; i++)
		if (works[i].same_as == i)
			blocks[i] = works[i].assembly;
	int result = assemble(&assembler, blocks, count, error);
	for (size_t i = 0; i < count; i++)
		if (works[i].same_as == i)
			works[i].assembly = blocks[i];
	return result;
}

static void count_block(struct audit *audit, const struct audit_block *block)
{
	if (block->reason != NULL)
		audit->not_judged++;
	else
		audit->judged++;
	audit->violations += block->violation_count;
}

static int audit_module(struct audit *audit, const struct audit_options *options, struct error *error)
{
	size_t count = audit->module.block_count;
	struct work *works = memory_new(count + 1, sizeof *works);
	audit->blocks = memory_new(count + 1, sizeof *audit->blocks);
	for (size_t i = 0; i < count; i++) {
		audit->blocks[i].ir = &audit->module.blocks[i];
		prepare_block(audit, &audit->blocks[i], &works[i], i);
	}
	share_texts(works, count);
	int result = assemble_all(audit, works, options, error);
	for (size_t i = 0; result == 0 && i < count; i++) {
		judge_block(audit, &audit->blocks[i], &works[i], &works[works[i].same_as].assembly);
		count_block(audit, &audit->blocks[i]);
	}
	for (size_t i = 0; i < count; i++) {
		constraints_clear(&works[i].constraints);
		operands_clear(&works[i].operands);
		assembly_clear(&works[i].assembly);
	}
	free(works);
	return result;
}

int audit_ir_text(struct audit *audit, const char *name, const char *text, size_t length,
		  const struct audit_options *options, struct error *error)
{
	audit->file = text_copy(name);
	if (ir_read(&audit->module, text, length, error) < 0)
		return error_wrap(error, "%s", name);
	if (audit->module.block_count == 0)
		return 0;
	if (machine_open_triple(&audit->machine, audit->module.triple, error) < 0 ||
	    audit_module(audit, options, error) < 0)
		return error_wrap(error, "%s", name);
	return 0;
}

int audit_ir_file(struct audit *audit, const char *path, const struct audit_options *options, struct error *error)
{
	cleanup_str struct str text = {0};
	if (fs_read_file(path, FILE_LIMIT, &text, error) < 0)
		return -1;
	return audit_ir_text(audit, path, str_text(&text), text.length, options, error);
}

void audit_clear(struct audit *audit)
{
	for (size_t i = 0; audit->blocks != NULL && i < audit->module.block_count; i++) {
		struct audit_block *block = &audit->blocks[i];
		struct contract owner = {.violations = block->violations, .violation_count = block->violation_count};
		contract_clear(&owner);
		instructions_clear(&block->instructions);
		strlist_clear(&block->promises);
		free(block->probe);
		free(block->crate);
		free(block->version);
		free(block->bytes);
		free(block->reason);
	}
	free(audit->blocks);
	free(audit->file);
	ir_module_clear(&audit->module);
	machine_close(&audit->machine);
	*audit = (struct audit){0};
}
