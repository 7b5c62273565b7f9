/* See values.h. */
#include "evidence/values.h"

#include <stdlib.h>
#include <string.h>

static const struct value unknown = {.kind = VALUE_UNKNOWN, .number = REGISTER_NONE};

int stack_register(const struct machine *machine)
{
	return machine_kind(machine) == MACHINE_X86_64 ? (int)X86_RSP : (int)ARM_SP;
}

void values_at_entry(struct values *values, const struct machine *machine)
{
	*values = (struct values){.reached = true, .flags = ~(flag_set)0};
	for (int i = 0; i < VALUES_REGISTERS; i++)
		values->registers[i] = (struct value){.kind = VALUE_ENTRY, .number = (int8_t)i};
	values->registers[stack_register(machine)] = (struct value){.kind = VALUE_STACK, .number = REGISTER_NONE};
}

static bool same_value(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->number == b->number && a->flags == b->flags && a->offset == b->offset;
}

static struct value join_value(const struct value *a, const struct value *b)
{
	if (same_value(a, b))
		return *a;
	bool near =
		(a->kind == VALUE_ENTRY || a->kind == VALUE_NEAR) && (b->kind == VALUE_ENTRY || b->kind == VALUE_NEAR);
	if (near && a->number == b->number)
		return (struct value){.kind = VALUE_NEAR, .number = a->number};
	if (a->kind == VALUE_FLAGS && b->kind == VALUE_FLAGS)
		return (struct value){.kind = VALUE_FLAGS, .number = REGISTER_NONE, .flags = a->flags & b->flags};
	return unknown;
}

static struct slot *find_slot(struct values *values, int64_t offset)
{
	for (size_t i = 0; i < values->slot_count; i++)
		if (values->slots[i].offset == offset)
			return &values->slots[i];
	return NULL;
}

static bool join_slots(struct values *into, const struct values *from)
{
	bool changed = false;
	for (size_t i = 0; i < into->slot_count;) {
		struct slot *slot = &into->slots[i];
		struct value value = unknown;
		for (size_t j = 0; j < from->slot_count; j++)
			if (from->slots[j].offset == slot->offset)
				value = join_value(&slot->value, &from->slots[j].value);
		changed = changed || !same_value(&value, &slot->value);
		if (value.kind == VALUE_UNKNOWN)
			*slot = into->slots[--into->slot_count];
		else
			into->slots[i++].value = value;
	}
	return changed;
}

bool values_join(struct values *into, const struct values *from)
{
	if (!into->reached) {
		*into = *from;
		into->reached = true;
		return true;
	}
	bool changed = join_slots(into, from);
	for (int i = 0; i < VALUES_REGISTERS; i++) {
		struct value value = join_value(&into->registers[i], &from->registers[i]);
		changed = changed || !same_value(&value, &into->registers[i]);
		into->registers[i] = value;
	}
	flag_set flags = into->flags & from->flags;
	uint64_t written = into->written | from->written;
	bool x87 = into->x87_changed || from->x87_changed || into->x87_depth != from->x87_depth;
	changed = changed || flags != into->flags || written != into->written || x87 != into->x87_changed;
	into->flags = flags;
	into->written = written;
	into->x87_changed = x87;
	return changed;
}

bool values_hold_entry(const struct values *values, int number)
{
	const struct value *value = &values->registers[number];
	return value->kind == VALUE_ENTRY && value->number == number;
}

/* ---- the stack ---- */

static void set_slot(struct values *values, int64_t offset, struct value value)
{
	if (offset < INT32_MIN / 2 || offset > INT32_MAX / 2)
		return;
	struct slot *slot = find_slot(values, offset);
	if (slot != NULL)
		slot->value = value;
	else if (value.kind != VALUE_UNKNOWN && values->slot_count < VALUES_SLOTS)
		values->slots[values->slot_count++] = (struct slot){.offset = (int32_t)offset, .value = value};
}

static struct value get_slot(struct values *values, int64_t offset)
{
	const struct slot *slot = find_slot(values, offset);
	return slot != NULL ? slot->value : unknown;
}

/* `size` bytes at `offset` are overwritten with nothing that is followed. */
static void forget_slots(struct values *values, int64_t offset, unsigned size)
{
	for (size_t i = 0; i < values->slot_count; i++)
		if (values->slots[i].offset < offset + (int64_t)(size > 0 ? size : 16) &&
		    values->slots[i].offset + 8 > offset)
			values->slots[i].value = unknown;
}

bool values_stack_place(const struct values *values, const struct instruction *instruction,
			const struct machine_memory *memory, const struct machine *machine, int64_t *offset)
{
	(void)instruction;
	(void)machine;
	if (memory->base == REGISTER_NONE || memory->index != REGISTER_NONE || memory->segment)
		return false;
	const struct value *base = &values->registers[memory->base];
	if (base->kind != VALUE_STACK)
		return false;
	*offset = base->offset + memory->displacement;
	return true;
}

static void move_stack(struct values *values, int stack, const struct instruction *instruction)
{
	struct value *pointer = &values->registers[stack];
	int64_t place = pointer->offset + instruction->stack_change;
	if (!instruction->stack_known || pointer->kind != VALUE_STACK || place < INT32_MIN / 2 || place > INT32_MAX / 2)
		*pointer = unknown;
	else
		pointer->offset = (int32_t)place;
}

/* The registers that are named before the address of a load or store, whole ones only. */
static size_t named_registers(const struct instruction *instruction, const struct machine *machine, int *numbers,
			      unsigned *size)
{
	size_t count = 0;
	const char *at = instruction->operands;
	for (; *at != '\0' && *at != '[' && count < 2; at++) {
		size_t length = strcspn(at, ", [");
		char name[8];
		if (length == 0)
			continue;
		if (length >= sizeof name)
			return 0;
		memcpy(name, at, length);
		name[length] = '\0';
		*size = name[0] == 'q' ? 16 : 8;
		if (strchr("xdq", name[0]) == NULL && strcmp(name, "fp") != 0 && strcmp(name, "lr") != 0)
			return 0;
		numbers[count] = machine_register_number(machine, name);
		if (numbers[count++] == REGISTER_NONE)
			return 0;
		at += length - 1;
	}
	return count;
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Loads and stores of whole registers on AArch64: str, stp, stur and their counterparts, with or without write-back. */
static bool transfer_arm64(struct values *values, const struct instruction *instruction, const struct machine *machine,
			   int64_t offset)
{
	int numbers[2];
	unsigned size = 0;
	bool pair = strcmp(instruction->mnemonic, "stp") == 0 || strcmp(instruction->mnemonic, "ldp") == 0;
	bool store = starts_with(instruction->mnemonic, "st");
	static const char *const single[] = {"str", "stur", "ldr", "ldur"};
	bool known = pair;
	for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
		known = known || strcmp(instruction->mnemonic, single[i]) == 0;
	size_t count = known ? named_registers(instruction, machine, numbers, &size) : 0;
	if (count != (pair ? 2U : 1U))
		return false;
	for (size_t i = 0; i < count; i++) {
		int64_t place = offset + (int64_t)(i * size);
		if (store)
			set_slot(values, place, values->registers[numbers[i]]);
		else
			values->registers[numbers[i]] = get_slot(values, place);
	}
	return true;
}

static int only_register(register_set set)
{
	for (int i = 0; i < VALUES_REGISTERS; i++)
		if (set == REGISTER(i))
			return i;
	return REGISTER_NONE;
}

static bool transfer_x86(struct values *values, const struct instruction *instruction,
			 const struct machine_memory *memory, int64_t offset)
{
	static const char *const moves[] = {"mov",    "movabs", "movups",  "movaps",  "movdqu",  "movdqa",
					    "movupd", "movapd", "vmovups", "vmovaps", "vmovdqu", "vmovdqa"};
	bool known = false;
	for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
		known = known || strcmp(instruction->mnemonic, moves[i]) == 0;
	if (!known || memory->size < 8)
		return false;
	int loaded = only_register(instruction->registers_written);
	int stored = only_register(instruction->registers_read & ~REGISTER(memory->base));
	if (memory->read && loaded != REGISTER_NONE && (loaded < X86_ZMM0) == (memory->size == 8))
		values->registers[loaded] = get_slot(values, offset);
	else if (memory->written && stored != REGISTER_NONE && (stored < X86_ZMM0) == (memory->size == 8))
		set_slot(values, offset, values->registers[stored]);
	else
		return false;
	return true;
}

/* ---- one instruction ---- */

/* lea r, [base + constant]; add r, constant. */
static bool is_near(const struct values *values, const struct instruction *instruction, int target,
		    struct value *result)
{
	const char *name = instruction->mnemonic;
	const struct value *from = &values->registers[target];
	int64_t change = 0;
	const char *last = strrchr(instruction->operands, ',');
	bool constant = last != NULL && strpbrk(last, "0123456789") == last + 2 + (last[2] == '-' || last[2] == '#') +
									       (last[2] == '#' && last[3] == '-');
	if (strcmp(name, "lea") == 0 && instruction->memory_count == 1) {
		const struct machine_memory *memory = &instruction->memory[0];
		if (memory->base == REGISTER_NONE || memory->index != REGISTER_NONE || memory->segment)
			return false;
		from = &values->registers[memory->base];
		change = memory->displacement;
	} else if ((strcmp(name, "add") == 0 || strcmp(name, "sub") == 0) && constant) {
		register_set others = instruction->registers_read & ~REGISTER(target);
		int source = others != 0 ? only_register(others) : target;
		if (source == REGISTER_NONE)
			return false;
		from = &values->registers[source];
		const char *digits = strpbrk(last, "-0123456789");
		change = strtoll(digits, NULL, 0) * (name[0] == 's' ? -1 : 1);
	} else if (strcmp(name, "inc") != 0 && strcmp(name, "dec") != 0) {
		return false;
	} else {
		change = name[0] == 'i' ? 1 : -1;
	}
	*result = *from;
	if (from->kind == VALUE_ENTRY)
		result->kind = VALUE_NEAR;
	if (from->kind == VALUE_STACK) {
		int64_t place = from->offset + change;
		if (place < INT32_MIN / 2 || place > INT32_MAX / 2)
			return false;
		result->offset = (int32_t)place;
	}
	return from->kind == VALUE_NEAR || from->kind == VALUE_ENTRY || from->kind == VALUE_STACK;
}

static void step_x87(struct values *values, const struct instruction *instruction)
{
	static const char *const two[] = {"fcompp", "fucompp"};
	static const char *const down[] = {"fyl2x", "fyl2xp1", "fpatan", "fcompi", "fucompi", "fcomip", "fucomip"};
	static const char *const up[] = {"fptan", "fsincos", "fxtract", "fild", "fbld"};
	static const char *const still[] = {"fldcw",  "fnstcw",  "fnstsw", "fnclex",   "fwait",  "wait",
					    "fnop",   "fcom",    "fcomi",  "fucom",    "fucomi", "fxsave",
					    "fnsave", "fnstenv", "fldenv", "fxsave64", "ficom",  "ftst",
					    "fxam",   "ffree",   "fst",    "fist"};
	const char *name = instruction->mnemonic;
	if (!(instruction->registers_written & REGISTER(X86_X87)))
		return;
	int change = 0;
	bool harmless = false;
	for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
		change -= strcmp(name, two[i]) == 0 ? 2 : 0;
	for (size_t i = 0; i < sizeof down / sizeof down[0]; i++)
		change -= strcmp(name, down[i]) == 0;
	for (size_t i = 0; i < sizeof up / sizeof up[0]; i++)
		change += strcmp(name, up[i]) == 0;
	for (size_t i = 0; i < sizeof still / sizeof still[0]; i++)
		harmless = harmless || strcmp(name, still[i]) == 0;
	size_t length = strlen(name);
	if (change == 0 && !harmless && starts_with(name, "fld"))
		change = 1;
	else if (change == 0 && !harmless && name[0] == 'f' && name[length - 1] == 'p')
		change = -1;
	/* with nothing of its own on the stack it works on what others left there */
	if (name[0] != 'f' || (change <= 0 && !harmless && values->x87_depth + change < (change < 0 ? 0 : 1)))
		values->x87_changed = true;
	values->x87_depth += change;
	if (values->x87_depth < -8 || values->x87_depth > 8) {
		values->x87_depth = 0;
		values->x87_changed = true;
	}
}

static void step_flags(struct values *values, const struct instruction *instruction, const struct value *restored)
{
	flag_set kept = values->flags & ~instruction->flags_written;
	if (restored->kind == VALUE_FLAGS)
		kept |= restored->flags & instruction->flags_written;
	if (instruction->flags_cleared & FLAG_DF)
		kept |= FLAG_DF;
	values->flags = kept;
}

/* Everything that the call may change; it comes back with the direction flag clear. */
static void step_call(struct values *values, const struct machine *machine)
{
	register_set changed = machine_call_clobbers(machine);
	for (int i = 0; i < VALUES_REGISTERS; i++)
		if (changed & REGISTER(i))
			values->registers[i] = unknown;
	values->flags &= ~(machine_status_flags(machine) | FLAG_X87);
}

static struct value flags_copy(const struct values *values)
{
	return (struct value){.kind = VALUE_FLAGS, .number = REGISTER_NONE, .flags = (uint16_t)values->flags};
}

/* Moves, pushes and pops of whole values; true where the shape says all about the registers. */
static bool step_shape(struct values *values, const struct instruction *instruction, int stack, struct value *restored)
{
	struct value *pointer = &values->registers[stack];
	bool known = pointer->kind == VALUE_STACK;
	int64_t top = pointer->offset;
	int first = instruction->first;
	switch (instruction->shape) {
	case SHAPE_MOVE:
		values->registers[first] = values->registers[instruction->second];
		return true;
	case SHAPE_EXCHANGE: {
		struct value value = values->registers[first];
		values->registers[first] = values->registers[instruction->second];
		values->registers[instruction->second] = value;
		return true;
	}
	case SHAPE_PUSH:
	case SHAPE_PUSH_FLAGS: {
		struct value value = instruction->shape == SHAPE_PUSH_FLAGS ? flags_copy(values)
				     : first != REGISTER_NONE               ? values->registers[first]
									    : unknown;
		if (known)
			set_slot(values, top + instruction->stack_change, value);
		move_stack(values, stack, instruction);
		return true;
	}
	case SHAPE_POP:
	case SHAPE_POP_FLAGS: {
		struct value value = known ? get_slot(values, top) : unknown;
		move_stack(values, stack, instruction);
		if (instruction->shape == SHAPE_POP_FLAGS)
			*restored = value;
		else if (first != REGISTER_NONE)
			values->registers[first] = value;
		return true;
	}
	case SHAPE_FLAGS_TO_FIRST:
		values->registers[first] = flags_copy(values);
		return true;
	case SHAPE_FIRST_TO_FLAGS:
		*restored = values->registers[first];
		return true;
	case SHAPE_NOTHING:
		return true;
	case SHAPE_ZERO:
	case SHAPE_OTHER:
		break;
	}
	return false;
}

static void step_other(struct values *values, const struct instruction *instruction, const struct machine *machine,
		       int stack)
{
	bool x86 = machine_kind(machine) == MACHINE_X86_64;
	int64_t offset = 0;
	struct values before = *values;
	for (int i = 0; i < VALUES_REGISTERS; i++)
		if ((instruction->registers_written & REGISTER(i)) && i != stack)
			values->registers[i] = unknown;
	if (instruction->stack_moved)
		move_stack(values, stack, instruction);
	int target = only_register(instruction->registers_written);
	struct value near;
	if (target != REGISTER_NONE && !(target == stack && instruction->stack_moved && instruction->stack_known) &&
	    is_near(&before, instruction, target, &near))
		values->registers[target] = near;
	if (instruction->memory_count == 0 || strcmp(instruction->mnemonic, "lea") == 0)
		return;
	const struct machine_memory *memory = &instruction->memory[0];
	if (!values_stack_place(&before, instruction, memory, machine, &offset))
		return;
	bool transferred = false;
	if (instruction->memory_count == 1 && x86)
		transferred = transfer_x86(values, instruction, memory, offset);
	else if (instruction->memory_count == 1)
		transferred = transfer_arm64(values, instruction, machine, offset);
	if (!transferred && memory->written)
		forget_slots(values, offset, memory->size);
}

void values_step(struct values *values, const struct instruction *instruction, const struct machine *machine,
		 bool local_call)
{
	int stack = stack_register(machine);
	struct value restored = unknown;
	if (local_call && machine_kind(machine) == MACHINE_X86_64) {
		struct value *pointer = &values->registers[stack];
		if (pointer->kind == VALUE_STACK) {
			pointer->offset -= 8;
			set_slot(values, pointer->offset, unknown);
		}
		return;
	}
	if (instruction->flow == MACHINE_CALL && !local_call) {
		step_call(values, machine);
		return;
	}
	if (strcmp(instruction->mnemonic, "leave") == 0) { /* the stack pointer from the frame pointer, then a pop */
		values->registers[stack] = values->registers[X86_RBP];
		struct value *pointer = &values->registers[stack];
		values->registers[X86_RBP] = pointer->kind == VALUE_STACK ? get_slot(values, pointer->offset) : unknown;
		pointer->offset += pointer->kind == VALUE_STACK ? 8 : 0;
		return;
	}
	if (!step_shape(values, instruction, stack, &restored))
		step_other(values, instruction, machine, stack);
	step_flags(values, instruction, &restored);
	if (machine_kind(machine) == MACHINE_X86_64)
		step_x87(values, instruction);
}
