/*
 * What one AArch64 instruction does, from capstone's operands with corrections (it thinks that cmp writes its first
 * operand, that movz reads its target, that svc writes x30, that mrs and msr do both to both), and the instructions
 * that capstone 4 does not know at all: the atomics of ARMv8.1, returns and branches with authentication, and the flag
 * manipulation of ARMv8.4 and 8.5.
 */
#include <stdio.h>
#include <string.h>

#include "evidence/machine_inside.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* The system registers of msr and mrs, as op0:op1:CRn:CRm:op2. */
enum { SYSTEM_NZCV = 0xda10, SYSTEM_FPSR = 0xda21 };

/* ---- operands ---- */

static bool is_comparison(const char *name)
{
	static const char *const names[] = {"cmp", "cmn", "tst", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe"};
	return machine_is_one_of(name, names, COUNT(names));
}

/* How a register operand is accessed, corrected. */
static unsigned access_of(const char *name, const cs_arm64_op *operand, unsigned index)
{
	static const char *const fresh[] = {"mov",  "movz", "movn", "sxtb", "sxth", "sxtw", "uxtb",  "uxth",  "uxtw",
					    "lsl",  "lsr",  "asr",  "ror",  "sbfx", "ubfx", "sbfiz", "ubfiz", "sbfm",
					    "ubfm", "movi", "mvni", "fmov", "mrs",  "tbl",  "dup",   "umov",  "smov"};
	if (is_comparison(name))
		return CS_AC_READ;
	if (index == 0 && operand->vector_index < 0 && machine_is_one_of(name, fresh, COUNT(fresh)))
		return CS_AC_WRITE;
	if (strcmp(name, "msr") == 0)
		return CS_AC_READ;
	/* Whole vectors that are loaded; a lane alone (an index) leaves the others. */
	if (text_starts_with(name, "ld") && operand->vector_index < 0 && operand->access == (CS_AC_READ | CS_AC_WRITE))
		return CS_AC_WRITE;
	return operand->access;
}

static bool touches_memory(const char *name)
{
	return text_starts_with(name, "ld") || text_starts_with(name, "st");
}

static void memory_operand(const struct machine *machine, const char *name, const cs_arm64_op *operand,
			   struct instruction *instruction)
{
	struct machine_memory memory = {.base = machine_part(machine, operand->mem.base).number,
					.index = machine_part(machine, operand->mem.index).number,
					.scale = 1 << (operand->shift.value & 7),
					.displacement = operand->mem.disp,
					.read = text_starts_with(name, "ld"),
					.written = text_starts_with(name, "st")};
	machine_add_memory(instruction, &memory);
	if (memory.base != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.base, 64, false});
	if (memory.index != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.index, 64, false});
}

/* [base, change]! or [base], change: the base is written, and where it is the stack pointer the stack moves. */
static void write_back(const cs_arm64 *arm, struct instruction *instruction)
{
	for (unsigned i = 0; i < arm->op_count; i++) {
		if (arm->operands[i].type != ARM64_OP_MEM)
			continue;
		int base = instruction->memory_count > 0 ? instruction->memory[0].base : REGISTER_NONE;
		if (base == REGISTER_NONE)
			return;
		machine_add_written(instruction, (struct register_part){base, 64, false});
		if (base != ARM_SP)
			return;
		bool after = i + 1 < arm->op_count;
		instruction->stack_moved = true;
		instruction->stack_known = !after || arm->operands[i + 1].type == ARM64_OP_IMM;
		if (instruction->stack_known)
			instruction->stack_change = after ? arm->operands[i + 1].imm : arm->operands[i].mem.disp;
		instruction->stack_pushed = instruction->memory_written && instruction->stack_change < 0;
		instruction->stack_popped = instruction->memory_read;
		instruction->memory_read = false;
		instruction->memory_written = false;
	}
}

static void operand_facts(const struct machine *machine, const char *name, const cs_insn *decoded,
			  struct instruction *instruction)
{
	const cs_arm64 *arm = &decoded->detail->arm64;
	for (unsigned i = 0; i < arm->op_count; i++) {
		const cs_arm64_op *operand = &arm->operands[i];
		if (operand->type == ARM64_OP_MEM)
			memory_operand(machine, name, operand, instruction);
		if (operand->type != ARM64_OP_REG)
			continue;
		struct register_part part = machine_part(machine, operand->reg);
		part.bits = 64; /* a write to w, s or b clears the rest */
		unsigned access = access_of(name, operand, i);
		if (access & CS_AC_READ)
			machine_add_read(instruction, part);
		if (access & CS_AC_WRITE)
			machine_add_written(instruction, part);
	}
	/* ldr x0, label */
	if (strncmp(name, "ldr", 3) == 0 && arm->op_count == 2 && arm->operands[1].type == ARM64_OP_IMM) {
		struct machine_memory memory = {.base = REGISTER_NONE,
						.index = REGISTER_NONE,
						.scale = 1,
						.read = true,
						.relative = true,
						.address = (uint64_t)arm->operands[1].imm};
		machine_add_memory(instruction, &memory);
	}
	if (strcmp(name, "dc") == 0 && arm->op_count > 0 && arm->operands[0].sys == ARM64_DC_ZVA)
		instruction->memory_written = true;
	if (arm->writeback && touches_memory(name))
		write_back(arm, instruction);
}

/* ---- flags ---- */

static bool same_registers(const cs_arm64 *arm)
{
	if (arm->op_count < 2)
		return false;
	const cs_arm64_op *last = &arm->operands[arm->op_count - 1];
	const cs_arm64_op *before = &arm->operands[arm->op_count - 2];
	return last->type == ARM64_OP_REG && before->type == ARM64_OP_REG && last->reg == before->reg &&
	       last->shift.type == ARM64_SFT_INVALID && last->ext == ARM64_EXT_INVALID;
}

static void system_register(const char *name, const cs_arm64 *arm, struct instruction *instruction)
{
	bool reads = strcmp(name, "mrs") == 0;
	if ((!reads && strcmp(name, "msr") != 0) || arm->op_count != 2)
		return;
	const cs_arm64_op *system = &arm->operands[reads ? 1 : 0];
	const cs_arm64_op *general = &arm->operands[reads ? 0 : 1];
	flag_set flags = system->type != (reads ? ARM64_OP_REG_MRS : ARM64_OP_REG_MSR) ? 0
			 : (unsigned)system->reg == SYSTEM_NZCV                        ? FLAGS_NZCV
			 : (unsigned)system->reg == SYSTEM_FPSR                        ? FLAG_FPSR
										       : 0;
	instruction->flags_read |= reads ? flags : 0;
	instruction->flags_written = reads ? 0 : flags;
	if (flags != FLAGS_NZCV || general->type != ARM64_OP_REG)
		return;
	register_set named = instruction->registers_read | instruction->registers_written;
	instruction->shape = reads ? SHAPE_FLAGS_TO_FIRST : SHAPE_FIRST_TO_FLAGS;
	for (int i = 0; i <= ARM_X30; i++)
		if (named & REGISTER(i))
			instruction->first = i;
}

static bool is_arithmetic_on_floats(const char *name)
{
	static const char *const exact[] = {"fmov", "fcsel", "fabs", "fneg"};
	return (name[0] == 'f' && !machine_is_one_of(name, exact, COUNT(exact))) || strcmp(name, "scvtf") == 0 ||
	       strcmp(name, "ucvtf") == 0;
}

static void flag_facts(const char *name, const cs_arm64 *arm, struct instruction *instruction)
{
	static const char *const carry[] = {"adc", "adcs", "sbc", "sbcs", "ngc", "ngcs"};
	static const char *const logical[] = {"ands", "bics", "tst"};
	static const char *const subtraction[] = {"subs", "cmp"};
	const char *shown = instruction->mnemonic; /* "adds" has capstone's id of add */
	if (arm->cc != ARM64_CC_INVALID) {
		instruction->condition = CONDITION_ARM + (int)arm->cc - 1;
		instruction->flags_read = machine_condition_flags(instruction->condition);
	}
	if (machine_is_one_of(shown, carry, COUNT(carry)))
		instruction->flags_read |= FLAG_C;
	if (arm->update_flags && strcmp(name, "msr") != 0)
		instruction->flags_written = FLAGS_NZCV;
	if (machine_is_one_of(shown, logical, COUNT(logical)))
		instruction->flags_cleared = FLAG_C | FLAG_V;
	if (machine_is_one_of(shown, subtraction, COUNT(subtraction)) && same_registers(arm)) {
		instruction->flags_set = FLAG_Z | FLAG_C;
		instruction->flags_cleared = FLAG_N | FLAG_V;
	}
	system_register(name, arm, instruction);
	if (is_arithmetic_on_floats(shown)) {
		instruction->flags_written |= FLAG_FPSR;
		instruction->flags_kept |= FLAG_FPSR;
	}
}

/* ---- control, stack, shapes ---- */

static void flow_facts(const char *name, const cs_arm64 *arm, struct instruction *instruction)
{
	static const char *const branches[] = {"cbz", "cbnz", "tbz", "tbnz"};
	if (strcmp(name, "b") == 0)
		instruction->flow = arm->cc == ARM64_CC_INVALID || arm->cc == ARM64_CC_AL || arm->cc == ARM64_CC_NV
					    ? MACHINE_JUMP
					    : MACHINE_BRANCH;
	else if (strcmp(name, "br") == 0)
		instruction->flow = MACHINE_JUMP;
	else if (machine_is_one_of(name, branches, COUNT(branches)))
		instruction->flow = MACHINE_BRANCH;
	else if (strcmp(name, "bl") == 0 || strcmp(name, "blr") == 0)
		instruction->flow = MACHINE_CALL;
	else if (strcmp(name, "ret") == 0 || strcmp(name, "eret") == 0)
		instruction->flow = MACHINE_RETURN;
	else if (strcmp(name, "brk") == 0 || strcmp(name, "hlt") == 0)
		instruction->flow = MACHINE_TRAP;
	else if (strcmp(name, "svc") == 0 || strcmp(name, "hvc") == 0 || strcmp(name, "smc") == 0)
		instruction->flow = MACHINE_SYSTEM;
	bool goes = instruction->flow == MACHINE_JUMP || instruction->flow == MACHINE_BRANCH ||
		    instruction->flow == MACHINE_CALL;
	if (goes && arm->op_count > 0 && arm->operands[arm->op_count - 1].type == ARM64_OP_IMM) {
		instruction->target_known = true;
		instruction->target = (uint64_t)arm->operands[arm->op_count - 1].imm;
	}
	if (instruction->flow == MACHINE_RETURN && arm->op_count == 0)
		instruction->registers_read |= REGISTER(ARM_X30);
	if (instruction->flow == MACHINE_CALL)
		instruction->registers_written |= REGISTER(ARM_X30);
	if (instruction->flow == MACHINE_SYSTEM) {
		instruction->registers_read |= 0x3f | REGISTER(8); /* x0-x5, x8: Linux */
		instruction->registers_written |= REGISTER(0);
	}
}

static void stack_facts(const char *name, const cs_arm64 *arm, struct instruction *instruction)
{
	if (!(instruction->registers_written & REGISTER(ARM_SP)) || instruction->stack_moved)
		return;
	instruction->stack_moved = true;
	bool adds = strcmp(name, "add") == 0;
	bool immediate = arm->op_count >= 3 && arm->operands[1].type == ARM64_OP_REG &&
			 arm->operands[1].reg == ARM64_REG_SP && arm->operands[2].type == ARM64_OP_IMM;
	if (!immediate || (!adds && strcmp(name, "sub") != 0))
		return;
	int64_t amount = arm->operands[2].imm;
	if (arm->operands[2].shift.type == ARM64_SFT_LSL)
		amount *= (int64_t)1 << (arm->operands[2].shift.value & 15);
	instruction->stack_known = true;
	instruction->stack_change = adds ? amount : -amount;
}

/* hint n: authentication changes x30 or x17; the others do nothing that is followed. */
static void hint_facts(const cs_arm64 *arm, struct instruction *instruction)
{
	int64_t number = arm->op_count > 0 ? arm->operands[0].imm : 0;
	if ((number >= 24 && number <= 31) || number == 7) {
		instruction->registers_read = REGISTER(ARM_X30) | (number > 7 && number & 1 ? REGISTER(ARM_SP) : 0);
		instruction->registers_written = REGISTER(ARM_X30);
	} else if (number >= 8 && number <= 15) {
		instruction->registers_read = REGISTER(16) | REGISTER(17);
		instruction->registers_written = REGISTER(17);
	} else {
		instruction->shape = SHAPE_NOTHING;
	}
}

static void shape_facts(const struct machine *machine, const char *name, const cs_arm64 *arm,
			struct instruction *instruction)
{
	static const char *const nothing[] = {"nop", "yield", "sev", "sevl", "wfe"};
	struct register_part first = {REGISTER_NONE, 0, false};
	struct register_part second = {REGISTER_NONE, 0, false};
	if (arm->op_count > 0 && arm->operands[0].type == ARM64_OP_REG)
		first = machine_part(machine, arm->operands[0].reg);
	if (arm->op_count > 1 && arm->operands[1].type == ARM64_OP_REG)
		second = machine_part(machine, arm->operands[1].reg);
	if (machine_is_one_of(name, nothing, COUNT(nothing)))
		instruction->shape = SHAPE_NOTHING;
	if (strcmp(name, "hint") == 0)
		hint_facts(arm, instruction);
	bool whole = first.number != REGISTER_NONE && second.number != REGISTER_NONE && first.bits >= 64 &&
		     first.bits == second.bits;
	if (strcmp(name, "mov") == 0 && arm->op_count == 2 && whole && arm->operands[0].vector_index < 0) {
		instruction->shape = SHAPE_MOVE;
		instruction->first = first.number;
		instruction->second = second.number;
	}
	if (strcmp(name, "eor") == 0 && arm->op_count == 3 && same_registers(arm) && first.number != REGISTER_NONE) {
		instruction->shape = SHAPE_ZERO;
		instruction->first = first.number;
		instruction->registers_read = 0;
	}
}

void machine_arm64_facts(const struct machine *machine, const cs_insn *decoded, struct instruction *instruction)
{
	const cs_arm64 *arm = &decoded->detail->arm64;
	const char *name = cs_insn_name(machine->handle, decoded->id);
	if (name == NULL)
		name = instruction->mnemonic;
	operand_facts(machine, name, decoded, instruction);
	flag_facts(name, arm, instruction);
	flow_facts(name, arm, instruction);
	stack_facts(name, arm, instruction);
	shape_facts(machine, name, arm, instruction);
}

/* ---- what capstone 4 does not know (Arm Architecture Reference Manual, C4.1) ---- */

static void name_it(struct instruction *instruction, const char *mnemonic, const char *operands)
{
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "%s", mnemonic);
	snprintf(instruction->operands, sizeof instruction->operands, "%s", operands);
}

/* Register 31 is the zero register here. */
static register_set general(unsigned number)
{
	return number < 31 ? REGISTER(number) : 0;
}

static void atomic_memory(struct instruction *instruction, unsigned base, unsigned size)
{
	struct machine_memory memory = {.base = base == 31 ? ARM_SP : (int)base,
					.index = REGISTER_NONE,
					.scale = 1,
					.size = size,
					.read = true,
					.written = true};
	machine_add_memory(instruction, &memory);
	instruction->registers_read |= REGISTER(base == 31 ? ARM_SP : (int)base);
}

/* "x5", "wzr"; with ", " before all but the first. */
static void append_general(struct instruction *instruction, bool wide, unsigned number)
{
	char whole[sizeof instruction->operands];
	const char *comma = *instruction->operands != '\0' ? ", " : "";
	if (number < 31)
		snprintf(whole, sizeof whole, "%.100s%s%c%u", instruction->operands, comma, wide ? 'x' : 'w', number);
	else
		snprintf(whole, sizeof whole, "%.100s%s%s", instruction->operands, comma, wide ? "xzr" : "wzr");
	memcpy(instruction->operands, whole, sizeof whole);
}

/* "[sp]" or "[x5]" behind what is there. */
static void append_base(struct instruction *instruction, unsigned base)
{
	char whole[sizeof instruction->operands];
	if (base == 31)
		snprintf(whole, sizeof whole, "%.100s, [sp]", instruction->operands);
	else
		snprintf(whole, sizeof whole, "%.100s, [x%u]", instruction->operands, base);
	memcpy(instruction->operands, whole, sizeof whole);
}

static const char *const orders[4] = {"", "l", "a", "al"};
static const char *const widths[4] = {"b", "h", "", ""};

/* The mnemonic's ordering and width, from the fields of the word. */
static void name_atomic(struct instruction *instruction, const char *start, unsigned acquire, unsigned release,
			unsigned size)
{
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "%s%s%s", start, orders[acquire * 2 + release],
		 widths[size]);
}

static void compare_and_swap(uint32_t word, bool pair, struct instruction *instruction)
{
	unsigned size = pair ? 2 + (word >> 30 & 1) : word >> 30;
	unsigned compared = word >> 16 & 31, stored = word & 31, base = word >> 5 & 31;
	name_atomic(instruction, pair ? "casp" : "cas", word >> 22 & 1, word >> 15 & 1, size);
	for (unsigned i = 0; i < (pair ? 2U : 1U); i++) {
		instruction->registers_read |= general(compared + i) | general(stored + i);
		instruction->registers_written |= general(compared + i);
		append_general(instruction, size == 3, compared + i);
	}
	for (unsigned i = 0; i < (pair ? 2U : 1U); i++)
		append_general(instruction, size == 3, stored + i);
	append_base(instruction, base);
	atomic_memory(instruction, base, (pair ? 2U : 1U) << size);
}

static void atomic_operation(uint32_t word, struct instruction *instruction)
{
	static const char *const names[9] = {"ldadd",  "ldclr",  "ldeor",  "ldset", "ldsmax",
					     "ldsmin", "ldumax", "ldumin", "swp"};
	unsigned size = word >> 30, source = word >> 16 & 31, target = word & 31, base = word >> 5 & 31;
	unsigned operation = word >> 15 & 1 ? 8 : word >> 12 & 7;
	name_atomic(instruction, names[operation], word >> 23 & 1, word >> 22 & 1, size);
	append_general(instruction, size == 3, source);
	append_general(instruction, size == 3, target);
	append_base(instruction, base);
	instruction->registers_read = general(source);
	instruction->registers_written = general(target);
	atomic_memory(instruction, base, 1U << size);
}

static bool authenticated_branch(uint32_t word, struct instruction *instruction)
{
	static const struct {
		uint32_t mask;
		uint32_t value;
		const char *name;
		enum machine_flow flow;
	} rows[] = {
		{0xffffffff, 0xd65f0bff, "retaa", MACHINE_RETURN}, {0xffffffff, 0xd65f0fff, "retab", MACHINE_RETURN},
		{0xfffffc1f, 0xd61f081f, "braaz", MACHINE_JUMP},   {0xfffffc1f, 0xd61f0c1f, "brabz", MACHINE_JUMP},
		{0xfffffc00, 0xd71f0800, "braa", MACHINE_JUMP},    {0xfffffc00, 0xd71f0c00, "brab", MACHINE_JUMP},
		{0xfffffc1f, 0xd63f081f, "blraaz", MACHINE_CALL},  {0xfffffc1f, 0xd63f0c1f, "blrabz", MACHINE_CALL},
		{0xfffffc00, 0xd73f0800, "blraa", MACHINE_CALL},   {0xfffffc00, 0xd73f0c00, "blrab", MACHINE_CALL}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		if ((word & rows[i].mask) != rows[i].value)
			continue;
		name_it(instruction, rows[i].name, "");
		instruction->flow = rows[i].flow;
		unsigned target = word >> 5 & 31, modifier = word & 31;
		if (rows[i].flow == MACHINE_RETURN) {
			instruction->registers_read = REGISTER(ARM_X30) | REGISTER(ARM_SP);
			return true;
		}
		bool modified = rows[i].mask == 0xfffffc00;
		if (modified)
			snprintf(instruction->operands, sizeof instruction->operands,
				 modifier == 31 ? "x%u, sp" : "x%u, x%u", target, modifier);
		else
			snprintf(instruction->operands, sizeof instruction->operands, "x%u", target);
		instruction->registers_read = general(target) | (!modified        ? 0
								 : modifier == 31 ? REGISTER(ARM_SP)
										  : general(modifier));
		if (rows[i].flow == MACHINE_CALL)
			instruction->registers_written = REGISTER(ARM_X30);
		return true;
	}
	return false;
}

static bool flag_manipulation(uint32_t word, struct instruction *instruction)
{
	if (word == 0xd500401f || word == 0xd500403f || word == 0xd500405f) {
		name_it(instruction, word == 0xd500401f ? "cfinv" : word == 0xd500403f ? "xaflag" : "axflag", "");
		instruction->flags_read = word == 0xd500401f ? FLAG_C : FLAGS_NZCV;
		instruction->flags_written = word == 0xd500401f ? FLAG_C : FLAGS_NZCV;
		return true;
	}
	if ((word & 0xffffbc1f) == 0x3a00080d) {
		snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "%s", word & 0x4000 ? "setf16" : "setf8");
		snprintf(instruction->operands, sizeof instruction->operands, "w%u", word >> 5 & 31);
		instruction->registers_read = general(word >> 5 & 31);
		instruction->flags_written = FLAG_N | FLAG_Z | FLAG_V;
		return true;
	}
	if ((word & 0xffe07c10) == 0xba000400) {
		name_it(instruction, "rmif", "");
		snprintf(instruction->operands, sizeof instruction->operands, "x%u, #%u, #%u", word >> 5 & 31,
			 word >> 15 & 63, word & 15);
		instruction->registers_read = general(word >> 5 & 31);
		for (unsigned i = 0; i < 4; i++) {
			static const flag_set flags[4] = {FLAG_V, FLAG_C, FLAG_Z, FLAG_N};
			instruction->flags_written |= word >> i & 1 ? flags[i] : 0;
		}
		return true;
	}
	return false;
}

bool machine_arm64_extra(uint32_t word, struct instruction *instruction)
{
	bool plain_atomic = (word & 0x3f200c00) == 0x38200000 && !(word & 0x8000 && word & 0x7000);
	if ((word & 0x3fa07c00) == 0x08a07c00)
		compare_and_swap(word, false, instruction);
	else if ((word & 0xbfa07c00) == 0x08207c00)
		compare_and_swap(word, true, instruction);
	else if (plain_atomic)
		atomic_operation(word, instruction);
	else if ((word & 0xffff0000) == 0) {
		name_it(instruction, "udf", "");
		snprintf(instruction->operands, sizeof instruction->operands, "#%u", word & 0xffff);
		instruction->flow = MACHINE_TRAP;
	} else
		return authenticated_branch(word, instruction) || flag_manipulation(word, instruction);
	return true;
}
