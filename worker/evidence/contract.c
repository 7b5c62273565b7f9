/* See contract.h.  flow of the block first (values.c does one instruction), then one function for each kind of
 * violation. */
#include "evidence/contract.h"

#include <stdlib.h>
#include <string.h>

#include "evidence/contract_walk.h"
#include "evidence/values.h"

enum { RED_ZONE = 128 };

const char *violation_name(enum violation_kind kind)
{
	static const char *const names[VIOLATION_KINDS] = {[VIOLATION_FLAGS] = "flags",
							   [VIOLATION_X87] = "x87",
							   [VIOLATION_DIRECTION] = "direction",
							   [VIOLATION_REGISTER] = "register",
							   [VIOLATION_INPUT] = "input",
							   [VIOLATION_LATE_OUTPUT] = "late-output",
							   [VIOLATION_MEMORY_READ] = "memory-read",
							   [VIOLATION_MEMORY_WRITE] = "memory-write",
							   [VIOLATION_STACK] = "stack",
							   [VIOLATION_STACK_UNBALANCED] = "stack-unbalanced",
							   [VIOLATION_PURE] = "pure"};
	return names[kind];
}

static bool is_x86(const struct contract *contract)
{
	return machine_kind(contract->machine) == MACHINE_X86_64;
}

/* What the compiler may assume: not "volatile" and no memory clobber in C; pure in Rust. */
static bool is_pure(const struct ir_block *block, const struct operands *operands)
{
	return !block->side_effect && (block->rust || !operands->memory);
}

void contract_promises(const struct ir_block *block, const struct operands *operands, const struct machine *machine,
		       struct strlist *promises)
{
	if (!operands->memory)
		strlist_add(promises, "nomem");
	else if (!block->may_write)
		strlist_add(promises, "readonly");
	if ((operands->flags & machine_status_flags(machine)) == 0)
		strlist_add(promises, "preserves_flags");
	if (block->rust && !block->align_stack)
		strlist_add(promises, "nostack");
	if (is_pure(block, operands))
		strlist_add(promises, "pure");
}

/* Takes over `promise` and `what`. */
static void add(struct contract *contract, enum violation_kind kind, char *promise, size_t instruction, char *what,
		char *text)
{
	contract->violations = memory_grow(contract->violations, contract->violation_count,
					   &contract->violation_capacity, sizeof *contract->violations);
	contract->violations[contract->violation_count++] = (struct violation){
		.kind = kind, .promise = promise, .instruction = instruction, .what = what, .text = text};
}

static char *instruction_words(const struct contract *contract, size_t index)
{
	return index < contract->instructions->count ? instruction_text(&contract->instructions->items[index])
						     : text_copy("the block");
}

/* ---- at the block's end ---- */

/* For everything that is followed, the last instruction that took the entry's value away; the count where there is
 * none. */
struct destroyers {
	size_t registers[VALUES_REGISTERS];
	size_t flags[32];
};

static void find_destroyers(const struct walk *walk, struct destroyers *destroyers)
{
	size_t count = walk->instructions->count;
	for (int i = 0; i < VALUES_REGISTERS; i++)
		destroyers->registers[i] = count;
	for (int i = 0; i < 32; i++)
		destroyers->flags[i] = count;
	for (size_t index = 0; index < count; index++) {
		const struct values *before = &walk->before[index];
		if (!before->reached)
			continue;
		struct values after = *before;
		walk_step(walk, index, &after);
		for (int i = 0; i < VALUES_REGISTERS; i++)
			if (values_hold_entry(before, i) && !values_hold_entry(&after, i))
				destroyers->registers[i] = index;
		for (unsigned i = 0; i < 32; i++)
			if (before->flags & ~after.flags & (flag_set)1 << i)
				destroyers->flags[i] = index;
	}
	/* lost where ways meet, each of which keeps it in a place of its own */
	for (int i = 0; i < VALUES_REGISTERS; i++)
		if (destroyers->registers[i] == count)
			destroyers->registers[i] = walk_last_writer(walk, i);
}

/* The last one that took one of these flags away. */
static size_t flags_destroyer(const struct destroyers *destroyers, flag_set flags, size_t count)
{
	size_t last = count;
	for (unsigned i = 0; i < 32; i++)
		if ((flags & (flag_set)1 << i) && destroyers->flags[i] < count &&
		    (last == count || destroyers->flags[i] > last))
			last = destroyers->flags[i];
	return last;
}

static char *flags_text(flag_set flags)
{
	struct str text = {0};
	machine_flags_text(flags, &text);
	return str_steal(&text);
}

static char *registers_text(const struct contract *contract, register_set registers)
{
	struct str text = {0};
	machine_registers_text(contract->machine, registers, &text);
	return str_steal(&text);
}

static void check_flags(struct contract *contract, const struct walk *walk, const struct destroyers *destroyers)
{
	flag_set changed = ~walk->end.flags & machine_status_flags(contract->machine) & ~contract->operands->flags;
	const char *promise = contract->block->rust ? "preserves_flags"
			      : is_x86(contract)    ? "no flags clobber"
						    : "no \"cc\" clobber";
	if (changed != 0) {
		size_t at = flags_destroyer(destroyers, changed, walk->instructions->count);
		char *what = flags_text(changed);
		cleanup_free char *words = instruction_words(contract, at);
		add(contract, VIOLATION_FLAGS, text_copy(promise), at, what,
		    text_format("`%s` changes the flags %s, but the block is declared with %s", words, what, promise));
	}
	contract->destroyed_flags = changed;
	if (!(walk->end.flags & FLAG_X87) && !(contract->operands->flags & FLAG_X87) && is_x86(contract)) {
		size_t at = flags_destroyer(destroyers, FLAG_X87, walk->instructions->count);
		cleanup_free char *words = instruction_words(contract, at);
		add(contract, VIOLATION_X87, text_copy(promise), at, text_copy("the x87 status word"),
		    text_format("`%s` changes the x87 status word, but the block is declared with %s", words, promise));
	}
	if (!(walk->end.flags & FLAG_DF) && is_x86(contract)) {
		size_t at = flags_destroyer(destroyers, FLAG_DF, walk->instructions->count);
		cleanup_free char *words = instruction_words(contract, at);
		add(contract, VIOLATION_DIRECTION, text_copy("direction flag clear at the end"), at, text_copy("DF"),
		    text_format("after `%s` the direction flag may still be set where the block ends", words));
		contract->destroyed_flags |= FLAG_DF;
	}
}

/* Registers that code under test can name: not the stack pointer, which has its own rule. */
static register_set ordinary_registers(const struct contract *contract)
{
	if (is_x86(contract))
		return (REGISTER(X86_X87) - 1) & ~REGISTER(X86_RSP);
	return ~REGISTER(ARM_SP);
}

/* One violation for all registers that the same instruction destroys. */
static void check_registers(struct contract *contract, const struct walk *walk, const struct destroyers *destroyers)
{
	const struct operands *operands = contract->operands;
	register_set wrong = 0;
	for (int i = 0; i < VALUES_REGISTERS; i++)
		if ((ordinary_registers(contract) & ~operands->outputs & REGISTER(i)) &&
		    !values_hold_entry(&walk->end, i))
			wrong |= REGISTER(i);
	if (is_x86(contract) && (walk->end.x87_changed || walk->end.x87_depth != 0) &&
	    !(operands->outputs & REGISTER(X86_X87)))
		wrong |= REGISTER(X86_X87);
	contract->destroyed_registers = wrong;
	while (wrong != 0) {
		int first = 0;
		while (!(wrong & REGISTER(first)))
			first++;
		size_t at = first == X86_X87 && is_x86(contract) ? walk_last_writer(walk, first)
								 : destroyers->registers[first];
		register_set same = 0;
		bool input = operands->inputs & REGISTER(first);
		for (int i = first; i < VALUES_REGISTERS; i++)
			if ((wrong & REGISTER(i)) && ((operands->inputs & REGISTER(i)) != 0) == input &&
			    (i == first || destroyers->registers[i] == at))
				same |= REGISTER(i);
		wrong &= ~same;
		char *what = registers_text(contract, same);
		cleanup_free char *words = instruction_words(contract, at);
		const char *promise =
			input ? "an input is left as it is" : "what is neither output nor clobber is left as it is";
		char *text =
			input ? text_format("`%s` changes %s, which holds an input and is no output", words, what)
			      : text_format("`%s` changes %s, which is neither an output nor a clobber", words, what);
		add(contract, input ? VIOLATION_INPUT : VIOLATION_REGISTER, text_copy(promise), at, what, text);
	}
}

static void check_balance(struct contract *contract, const struct walk *walk)
{
	int stack = stack_register(contract->machine);
	const struct value *pointer = &walk->end.registers[stack];
	if (pointer->kind == VALUE_STACK && pointer->offset == 0)
		return;
	size_t at = walk_last_writer(walk, stack);
	char *text = pointer->kind == VALUE_STACK
			     ? text_format("the stack pointer is %d bytes %s where the block ends than where it began",
					   abs(pointer->offset), pointer->offset < 0 ? "lower" : "higher")
			     : text_copy("the stack pointer is not put back where the block ends");
	add(contract, VIOLATION_STACK_UNBALANCED, text_copy("the stack pointer is put back"), at, text_copy(""), text);
}

/* ---- instruction by instruction ---- */

static void once(struct contract *contract, enum violation_kind kind, const char *promise, size_t instruction,
		 const char *what, const char *form)
{
	for (size_t i = 0; i < contract->violation_count; i++)
		if (contract->violations[i].kind == kind)
			return;
	cleanup_free char *words = instruction_words(contract, instruction);
	add(contract, kind, text_copy(promise), instruction, text_copy(what), text_format("`%s` %s", words, form));
}

static bool has_red_zone(const struct contract *contract)
{
	bool windows = strstr(contract->triple, "windows") != NULL || strstr(contract->triple, "uefi") != NULL;
	bool apple = strstr(contract->triple, "apple") != NULL || strstr(contract->triple, "darwin") != NULL;
	return !contract->block->no_red_zone && (is_x86(contract) ? !windows : apple);
}

/* lock add [rsp - 4], 0: a fence, which writes what is there. */
static bool leaves_as_it_was(const struct instruction *instruction)
{
	const char *last = strrchr(instruction->operands, ',');
	bool adds = strstr(instruction->mnemonic, "add") != NULL || strstr(instruction->mnemonic, "or") != NULL;
	return adds && last != NULL && strcmp(last, ", 0") == 0;
}

/* Where an instruction writes below the stack pointer that the block began with: `offset` is the lowest byte. */
static bool writes_stack(const struct contract *contract, const struct values *before,
			 const struct instruction *instruction, int64_t *offset)
{
	const struct value *pointer = &before->registers[stack_register(contract->machine)];
	if (instruction->stack_pushed) {
		int64_t change = instruction->flow == MACHINE_CALL ? -8 : instruction->stack_change;
		*offset = pointer->kind == VALUE_STACK ? pointer->offset + change : -1;
		return true;
	}
	for (unsigned i = 0; i < instruction->memory_count && !leaves_as_it_was(instruction); i++)
		if (instruction->memory[i].written &&
		    values_stack_place(before, instruction, &instruction->memory[i], contract->machine, offset))
			return *offset < 0;
	return false;
}

static void check_stack(struct contract *contract, const struct values *before, size_t index)
{
	const struct instruction *instruction = &contract->instructions->items[index];
	const struct ir_block *block = contract->block;
	int64_t offset = 0;
	bool writes = writes_stack(contract, before, instruction, &offset);
	if (block->rust && !block->align_stack && (writes || instruction->stack_moved))
		once(contract, VIOLATION_STACK, "nostack", index, "the stack",
		     "uses the stack, but the block is declared with nostack");
	else if (!block->rust && writes && has_red_zone(contract) && offset >= -RED_ZONE && offset < 0)
		once(contract, VIOLATION_STACK, "red zone", index, "the stack",
		     "writes into the red zone below the stack pointer, where this function may keep values");
}

/* Mnemonics (x86-64 and AArch64) whose effect is more than values in registers and memory. */
static bool has_effect(const struct instruction *instruction)
{
	static const char *const names[] = {"in",    "insb",   "insw",   "insd",     "out",      "outsb",  "outsw",
					    "outsd", "hlt",    "cli",    "sti",      "wrmsr",    "lgdt",   "lidt",
					    "lldt",  "ltr",    "lmsw",   "invlpg",   "invpcid",  "wbinvd", "invd",
					    "mwait", "vmcall", "swapgs", "wrfsbase", "wrgsbase", "clts",   "xsetbv",
					    "tlbi",  "ic",     "wfi"};
	if (instruction->flow == MACHINE_SYSTEM)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(instruction->mnemonic, names[i]) == 0)
			return true;
	return strcmp(instruction->mnemonic, "msr") == 0 && instruction->flags_written == 0;
}

static void check_pure(struct contract *contract, size_t index)
{
	if (is_pure(contract->block, contract->operands) && has_effect(&contract->instructions->items[index]))
		once(contract, VIOLATION_PURE, contract->block->rust ? "pure" : "not volatile", index,
		     "an effect of its own",
		     contract->block->rust ? "has an effect of its own, but the block is declared with pure"
					   : "has an effect of its own, but the block is not volatile: it may be "
					     "repeated or left out");
}

static void check_late(struct contract *contract, const struct walk *walk, size_t index)
{
	const struct operands *operands = contract->operands;
	const struct values *before = &walk->before[index];
	const struct instruction *instruction = &contract->instructions->items[index];
	for (size_t input = 0; input < operands->count; input++) {
		int number = operands->items[input].number;
		if (number == REGISTER_NONE || number >= VALUES_REGISTERS ||
		    !(instruction->registers_read & REGISTER(number)) || !values_hold_entry(before, number))
			continue;
		for (size_t output = 0; output < operands->count; output++) {
			if (output >= 64 || !(before->written >> output & 1) || !walk_may_share(walk, output, input))
				continue;
			const char *promise = contract->block->rust ? "lateout" : "\"=\" without \"&\"";
			cleanup_free char *form = text_format(
				"reads the input %s after the output %s was written; declared with %s, both may be in "
				"one register",
				machine_register_name(contract->machine, number),
				machine_register_name(contract->machine, operands->items[output].number), promise);
			once(contract, VIOLATION_LATE_OUTPUT, promise, index,
			     machine_register_name(contract->machine, operands->items[output].number), form);
			return;
		}
	}
}

/* The memory operand that an access through this register belongs to, or NULL. */
static const struct operand *operand_behind(const struct contract *contract, const struct values *before, int base)
{
	const struct operands *operands = contract->operands;
	if (base == REGISTER_NONE)
		return NULL;
	const struct value *value = &before->registers[base];
	if (value->kind != VALUE_ENTRY && value->kind != VALUE_NEAR)
		return NULL;
	for (size_t i = 0; i < operands->count; i++)
		if (operands->items[i].kind == OPERAND_MEMORY && operands->items[i].number == value->number)
			return &operands->items[i];
	/* a register that holds the address of a memory operand: the way to name a whole array in C */
	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *pointer = &operands->items[i];
		if (pointer->kind != OPERAND_REGISTER || pointer->value == NULL || pointer->number != value->number)
			continue;
		for (size_t j = 0; j < operands->count; j++) {
			const struct operand *memory = &operands->items[j];
			if (memory->kind == OPERAND_MEMORY && memory->value != NULL &&
			    strcmp(memory->value->text, pointer->value->text) == 0)
				return memory;
		}
	}
	return NULL;
}

/* Bytes of the block itself, the thread's own control block: reads that nobody can object to. */
static bool is_harmless_read(const struct contract *contract, size_t index, const struct machine_memory *memory)
{
	static const int64_t self[] = {0x0, 0x10, 0x28, 0x30, 0x60};
	const struct instruction *instruction = &contract->instructions->items[index];
	if (memory->relative)
		return memory->address < contract->size &&
		       !walk_is_relocated(contract->relocations, contract->relocation_count, instruction);
	for (size_t i = 0; memory->segment && i < sizeof self / sizeof self[0]; i++)
		if (memory->base == REGISTER_NONE && memory->index == REGISTER_NONE && memory->displacement == self[i])
			return true;
	return false;
}

struct access {
	bool read;
	bool written;
};

/* What of an access is not covered by a memory operand, the block's own stack or the block itself. */
static struct access uncovered(const struct contract *contract, const struct values *before, size_t index,
			       const struct machine_memory *memory)
{
	struct access access = {memory->read, memory->written};
	int64_t offset = 0;
	const struct operand *operand = operand_behind(contract, before, memory->base);
	if (operand == NULL)
		operand = operand_behind(contract, before, memory->index);
	if (operand != NULL)
		return (struct access){access.read && !operand->may_read && !operand->may_write,
				       access.written && !operand->may_write};
	if (values_stack_place(before, &contract->instructions->items[index], memory, contract->machine, &offset) &&
	    offset < 0)
		return (struct access){false, false};
	if (is_harmless_read(contract, index, memory))
		access.read = false;
	return access;
}

static void check_memory(struct contract *contract, const struct values *before, size_t index)
{
	const struct instruction *instruction = &contract->instructions->items[index];
	const struct operands *operands = contract->operands;
	struct access access = {instruction->memory_count == 0 && instruction->memory_read,
				instruction->memory_count == 0 && instruction->memory_written};
	for (unsigned i = 0; i < instruction->memory_count; i++) {
		struct access one = uncovered(contract, before, index, &instruction->memory[i]);
		access.read = access.read || one.read;
		access.written = access.written || one.written;
	}
	const char *promise = !contract->block->rust ? "no \"memory\" clobber"
			      : operands->memory     ? "readonly"
						     : "nomem";
	cleanup_free char *reads =
		text_format("reads memory that is no operand, but the block is declared with %s", promise);
	cleanup_free char *writes =
		text_format("writes memory that is no operand, but the block is declared with %s", promise);
	if (access.written && !(operands->memory && contract->block->may_write))
		once(contract, VIOLATION_MEMORY_WRITE, promise, index, "memory", writes);
	if (access.read && !operands->memory)
		once(contract, VIOLATION_MEMORY_READ, promise, index, "memory", reads);
}

int contract_check(struct contract *contract, struct error *error)
{
	cleanup_walk struct walk walk = {0};
	if (contract->block->naked)
		return error_set(
			error,
			"it is the whole of a naked function: there is no compiled code around it to keep promises to");
	if (walk_block(&walk, contract, error) < 0)
		return -1;
	for (size_t i = 0; i < contract->instructions->count; i++) {
		if (!walk.before[i].reached)
			continue;
		check_late(contract, &walk, i);
		check_memory(contract, &walk.before[i], i);
		check_stack(contract, &walk.before[i], i);
		check_pure(contract, i);
	}
	if (!walk.end.reached || contract->block->ends)
		return 0;
	struct destroyers destroyers;
	find_destroyers(&walk, &destroyers);
	check_flags(contract, &walk, &destroyers);
	check_registers(contract, &walk, &destroyers);
	check_balance(contract, &walk);
	return 0;
}

void contract_clear(struct contract *contract)
{
	for (size_t i = 0; i < contract->violation_count; i++) {
		free(contract->violations[i].promise);
		free(contract->violations[i].what);
		free(contract->violations[i].text);
	}
	free(contract->violations);
	contract->violations = NULL;
	contract->violation_count = contract->violation_capacity = 0;
}
