/*
 * Opening a machine, decoding, names, conditions, calling conventions.  What one instruction does is the business of
 * machine_x86.c and machine_arm64.c.
 */
#include "evidence/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/machine_inside.h"

/* ---- registers by name ---- */

static const char *const x86_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

/* The old registers have a name for each width. */
static const char *const x86_parts[8][4] = {
	{"eax", "ax", "al", "ah"},  {"ecx", "cx", "cl", "ch"},  {"edx", "dx", "dl", "dh"},  {"ebx", "bx", "bl", "bh"},
	{"esp", "sp", "spl", NULL}, {"ebp", "bp", "bpl", NULL}, {"esi", "si", "sil", NULL}, {"edi", "di", "dil", NULL}};
static const unsigned x86_part_bits[4] = {32, 16, 8, 8};

/* The number after `start`, below `limit`, and what follows it in `rest`; or -1. */
static int numbered(const char *name, const char *start, int limit, const char **rest)
{
	size_t length = strlen(start);
	if (strncmp(name, start, length) != 0 || !isdigit((unsigned char)name[length]))
		return -1;
	char *end;
	long number = strtol(name + length, &end, 10);
	*rest = end;
	return number < limit ? (int)number : -1;
}

static struct register_part x86_part(const char *name)
{
	const char *rest = "";
	for (int i = 0; i < 16; i++)
		if (strcmp(name, x86_names[i]) == 0)
			return (struct register_part){i, 64, false};
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 4; j++)
			if (x86_parts[i][j] != NULL && strcmp(name, x86_parts[i][j]) == 0)
				return (struct register_part){i, x86_part_bits[j], j == 3};
	int number = numbered(name, "r", 16, &rest);
	if (number >= 8 && strlen(rest) == 1 && strchr("dwb", *rest) != NULL)
		return (struct register_part){number, *rest == 'd' ? 32 : *rest == 'w' ? 16 : 8, false};
	static const struct {
		const char *start;
		int limit;
		int first;
		unsigned bits;
	} classes[] = {{"xmm", 32, X86_ZMM0, 128},
		       {"ymm", 32, X86_ZMM0, 256},
		       {"zmm", 32, X86_ZMM0, 512},
		       {"k", 8, X86_K0, 64}};
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if ((number = numbered(name, classes[i].start, classes[i].limit, &rest)) >= 0 && *rest == '\0')
			return (struct register_part){classes[i].first + number, classes[i].bits, false};
	if (strcmp(name, "st") == 0 || strncmp(name, "st(", 3) == 0 || numbered(name, "mm", 8, &rest) >= 0)
		return (struct register_part){X86_X87, 80, false};
	return (struct register_part){REGISTER_NONE, 0, false};
}

static struct register_part arm_part(const char *name)
{
	static const struct {
		const char *start;
		int limit;
		int first;
		unsigned bits;
	} classes[] = {{"x", 31, 0, 64},      {"w", 31, 0, 32},      {"v", 32, ARM_V0, 128}, {"q", 32, ARM_V0, 128},
		       {"d", 32, ARM_V0, 64}, {"s", 32, ARM_V0, 32}, {"h", 32, ARM_V0, 16},  {"b", 32, ARM_V0, 8}};
	const char *rest = "";
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		int number = numbered(name, classes[i].start, classes[i].limit, &rest);
		if (number >= 0 && *rest == '\0')
			return (struct register_part){classes[i].first + number, classes[i].bits, false};
	}
	if (strcmp(name, "sp") == 0 || strcmp(name, "wsp") == 0)
		return (struct register_part){ARM_SP, 64, false};
	if (strcmp(name, "fp") == 0)
		return (struct register_part){29, 64, false};
	if (strcmp(name, "lr") == 0)
		return (struct register_part){ARM_X30, 64, false};
	return (struct register_part){REGISTER_NONE, 0, false};
}

static struct register_part part_of_name(enum machine_kind kind, const char *name)
{
	return kind == MACHINE_X86_64 ? x86_part(name) : arm_part(name);
}

int machine_register_number(const struct machine *machine, const char *name)
{
	return part_of_name(machine->kind, name).number;
}

static const char *const vector_names[2][32] = {
	{"xmm0",  "xmm1",  "xmm2",  "xmm3",  "xmm4",  "xmm5",  "xmm6",  "xmm7",  "xmm8",  "xmm9",  "xmm10",
	 "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21",
	 "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"},
	{"v0",  "v1",  "v2",  "v3",  "v4",  "v5",  "v6",  "v7",  "v8",  "v9",  "v10",
	 "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
	 "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"}};
static const char *const mask_names[8] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
static const char *const arm_names[32] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
					  "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
					  "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};

const char *machine_register_name(const struct machine *machine, int number)
{
	if (number < 0 || number >= 64)
		return "?";
	if (machine->kind == MACHINE_AARCH64)
		return number < ARM_V0 ? arm_names[number] : vector_names[1][number - ARM_V0];
	if (number < X86_ZMM0)
		return x86_names[number];
	if (number < X86_K0)
		return vector_names[0][number - X86_ZMM0];
	return number < X86_X87 ? mask_names[number - X86_K0] : number == X86_X87 ? "st" : "?";
}

void machine_registers_text(const struct machine *machine, register_set registers, struct str *text)
{
	const char *comma = "";
	for (int i = 0; i < 64; i++)
		if (registers & REGISTER(i)) {
			str_append_format(text, "%s%s", comma, machine_register_name(machine, i));
			comma = ", ";
		}
}

/* ---- flags and conditions ---- */

/* In the order in which people read them. */
static const struct {
	flag_set flag;
	const char *name;
} flag_names[] = {{FLAG_ZF, "ZF"},       {FLAG_CF, "CF"},    {FLAG_SF, "SF"}, {FLAG_OF, "OF"},
		  {FLAG_PF, "PF"},       {FLAG_AF, "AF"},    {FLAG_DF, "DF"}, {FLAG_X87, "x87 status"},
		  {FLAG_MXCSR, "MXCSR"}, {FLAG_N, "N"},      {FLAG_Z, "Z"},   {FLAG_C, "C"},
		  {FLAG_V, "V"},         {FLAG_FPSR, "FPSR"}};

const char *machine_flag_name(flag_set flag)
{
	for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
		if (flag_names[i].flag == flag)
			return flag_names[i].name;
	return "?";
}

void machine_flags_text(flag_set flags, struct str *text)
{
	const char *comma = "";
	for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
		if (flags & flag_names[i].flag) {
			str_append_format(text, "%s%s", comma, flag_names[i].name);
			comma = ", ";
		}
}

/* 1, 0, or -1 where it is not known. */
static int flag_value(flag_set flag, flag_set known, flag_set values)
{
	return known & flag ? (values & flag) != 0 : -1;
}

static int not_value(int a)
{
	return a < 0 ? -1 : !a;
}

static int or_value(int a, int b)
{
	return a == 1 || b == 1 ? 1 : a < 0 || b < 0 ? -1 : 0;
}

static int differ_value(int a, int b)
{
	return a < 0 || b < 0 ? -1 : a != b;
}

/* The even condition codes; the odd ones are their opposites. */
static int x86_condition(int code, flag_set known, flag_set values)
{
	int carry = flag_value(FLAG_CF, known, values);
	int zero = flag_value(FLAG_ZF, known, values);
	int less = differ_value(flag_value(FLAG_SF, known, values), flag_value(FLAG_OF, known, values));
	int results[8] = {flag_value(FLAG_OF, known, values),
			  carry,
			  zero,
			  or_value(carry, zero),
			  flag_value(FLAG_SF, known, values),
			  flag_value(FLAG_PF, known, values),
			  less,
			  or_value(less, zero)};
	return code & 1 ? not_value(results[code >> 1]) : results[code >> 1];
}

static int arm_condition(int code, flag_set known, flag_set values)
{
	int zero = flag_value(FLAG_Z, known, values);
	int carry = flag_value(FLAG_C, known, values);
	int less = differ_value(flag_value(FLAG_N, known, values), flag_value(FLAG_V, known, values));
	int results[8] = {zero,
			  carry,
			  flag_value(FLAG_N, known, values),
			  flag_value(FLAG_V, known, values),
			  not_value(or_value(not_value(carry), zero)),
			  not_value(less),
			  not_value(or_value(less, zero)),
			  1};
	return code & 1 && code != 15 ? not_value(results[code >> 1]) : results[code >> 1];
}

int machine_condition(int condition, flag_set known, flag_set values)
{
	if (condition >= CONDITION_ARM && condition < CONDITION_ARM + 16)
		return arm_condition(condition - CONDITION_ARM, known, values);
	if (condition >= CONDITION_X86 && condition < CONDITION_X86 + 16)
		return x86_condition(condition - CONDITION_X86, known, values);
	return -1;
}

flag_set machine_condition_flags(int condition)
{
	static const flag_set x86[8] = {FLAG_OF, FLAG_CF, FLAG_ZF,           FLAG_CF | FLAG_ZF,
					FLAG_SF, FLAG_PF, FLAG_SF | FLAG_OF, FLAG_ZF | FLAG_SF | FLAG_OF};
	static const flag_set arm[8] = {
		FLAG_Z, FLAG_C, FLAG_N, FLAG_V, FLAG_C | FLAG_Z, FLAG_N | FLAG_V, FLAG_Z | FLAG_N | FLAG_V, 0};
	if (condition >= CONDITION_ARM && condition < CONDITION_ARM + 16)
		return arm[(condition - CONDITION_ARM) >> 1];
	if (condition >= CONDITION_X86 && condition < CONDITION_X86 + 16)
		return x86[(condition - CONDITION_X86) >> 1];
	return 0;
}

/* ---- conventions: System V AMD64 ABI 3.2.1, AAPCS64 6.1 ---- */

static register_set range_of(int first, int last)
{
	register_set registers = 0;
	for (int i = first; i <= last; i++)
		registers |= REGISTER(i);
	return registers;
}

register_set machine_call_clobbers(const struct machine *machine)
{
	if (machine->kind == MACHINE_AARCH64)
		return range_of(0, 18) | REGISTER(ARM_X30) | range_of(ARM_V0, ARM_V0 + 7) |
		       range_of(ARM_V0 + 16, ARM_V0 + 31);
	return REGISTER(X86_RAX) | REGISTER(X86_RCX) | REGISTER(X86_RDX) | REGISTER(X86_RSI) | REGISTER(X86_RDI) |
	       range_of(X86_R8, X86_R11) | range_of(X86_ZMM0, X86_X87);
}

register_set machine_call_arguments(const struct machine *machine)
{
	if (machine->kind == MACHINE_AARCH64)
		return range_of(0, 8) | range_of(ARM_V0, ARM_V0 + 7);
	/* rax: the number of vector registers of a variadic call; r10: the static chain. */
	return REGISTER(X86_RAX) | REGISTER(X86_RCX) | REGISTER(X86_RDX) | REGISTER(X86_RSI) | REGISTER(X86_RDI) |
	       range_of(X86_R8, X86_R10) | range_of(X86_ZMM0, X86_ZMM0 + 7);
}

register_set machine_return_values(const struct machine *machine)
{
	if (machine->kind == MACHINE_AARCH64)
		return range_of(0, 7) | range_of(ARM_V0, ARM_V0 + 7);
	return REGISTER(X86_RAX) | REGISTER(X86_RDX) | REGISTER(X86_RCX) | REGISTER(X86_ZMM0) | REGISTER(X86_ZMM0 + 1) |
	       REGISTER(X86_X87);
}

flag_set machine_status_flags(const struct machine *machine)
{
	return machine->kind == MACHINE_AARCH64 ? FLAGS_NZCV : FLAGS_X86_STATUS;
}

/* ---- opening and closing ---- */

static int open_kind(struct machine **opened, enum machine_kind kind, struct error *error)
{
	struct machine *machine = memory_new(1, sizeof *machine);
	machine->kind = kind;
	cs_err trouble = kind == MACHINE_X86_64 ? cs_open(CS_ARCH_X86, CS_MODE_64, &machine->handle)
						: cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &machine->handle);
	if (trouble == CS_ERR_OK)
		trouble = cs_option(machine->handle, CS_OPT_DETAIL, CS_OPT_ON);
	if (trouble != CS_ERR_OK) {
		free(machine);
		return error_set(error, "opening the disassembler: %s", cs_strerror(trouble));
	}
	machine->decoded = cs_malloc(machine->handle);
	if (machine->decoded == NULL)
		memory_exhausted();
	for (unsigned i = 0; i < MACHINE_PARTS; i++) {
		const char *name = i > 0 ? cs_reg_name(machine->handle, i) : NULL;
		machine->parts[i] =
			name != NULL ? part_of_name(kind, name) : (struct register_part){REGISTER_NONE, 0, false};
	}
	*opened = machine;
	return 0;
}

int machine_open(struct machine **machine, unsigned elf_machine, struct error *error)
{
	if (elf_machine == 62)
		return open_kind(machine, MACHINE_X86_64, error);
	if (elf_machine == 183)
		return open_kind(machine, MACHINE_AARCH64, error);
	return error_set(error, "the machine (ELF e_machine %u) is neither x86-64 nor AArch64: its code cannot be read",
			 elf_machine);
}

int machine_open_triple(struct machine **machine, const char *triple, struct error *error)
{
	size_t length = strcspn(triple, "-");
	cleanup_free char *architecture = text_copy_range(triple, length);
	if (text_equal(architecture, "x86_64") || text_equal(architecture, "x86_64h") ||
	    text_equal(architecture, "amd64"))
		return open_kind(machine, MACHINE_X86_64, error);
	if (text_equal(architecture, "aarch64") || text_equal(architecture, "arm64") ||
	    text_equal(architecture, "arm64e"))
		return open_kind(machine, MACHINE_AARCH64, error);
	return error_set(error, "the target %s is neither x86-64 nor AArch64: its code cannot be read",
			 *triple ? triple : "(none given)");
}

void machine_close(struct machine **machine)
{
	if (*machine == NULL)
		return;
	cs_free((*machine)->decoded, 1);
	cs_close(&(*machine)->handle);
	free(*machine);
	*machine = NULL;
}

enum machine_kind machine_kind(const struct machine *machine)
{
	return machine->kind;
}

/* ---- decoding ---- */

struct register_part machine_part(const struct machine *machine, unsigned capstone_register)
{
	if (capstone_register < MACHINE_PARTS)
		return machine->parts[capstone_register];
	return (struct register_part){REGISTER_NONE, 0, false};
}

void machine_add_read(struct instruction *instruction, struct register_part part)
{
	if (part.number == REGISTER_NONE)
		return;
	register_set bit = REGISTER(part.number);
	bool narrow = part.bits <= 16 && !part.high;
	if (narrow && !(instruction->registers_read & bit))
		instruction->registers_narrow |= bit;
	if (!narrow)
		instruction->registers_narrow &= ~bit;
	instruction->registers_read |= bit;
}

void machine_add_written(struct instruction *instruction, struct register_part part)
{
	if (part.number == REGISTER_NONE)
		return;
	register_set bit = REGISTER(part.number);
	if (part.bits <= 16 && !(instruction->registers_written & bit))
		instruction->registers_kept |= bit;
	if (part.bits > 16)
		instruction->registers_kept &= ~bit;
	instruction->registers_written |= bit;
}

void machine_add_memory(struct instruction *instruction, const struct machine_memory *memory)
{
	instruction->memory_read |= memory->read;
	instruction->memory_written |= memory->written;
	if (instruction->memory_count < MACHINE_MEMORY_MAX)
		instruction->memory[instruction->memory_count++] = *memory;
}

bool machine_is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void clear_facts(struct instruction *instruction, uint64_t address, unsigned size)
{
	memset(instruction, 0, sizeof *instruction);
	instruction->address = address;
	instruction->size = size;
	instruction->first = REGISTER_NONE;
	instruction->second = REGISTER_NONE;
}

static int decode_extra(const struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
			struct instruction *instruction)
{
	if (size < 4)
		return 0;
	clear_facts(instruction, address, 4);
	uint32_t word =
		(uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
	return machine->kind == MACHINE_AARCH64 && machine_arm64_extra(word, instruction);
}

int machine_decode(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
		   struct instruction *instruction)
{
	const uint8_t *at = bytes;
	size_t left = size;
	uint64_t next = address;
	cs_insn *decoded = machine->decoded;
	clear_facts(instruction, address, 0);
	/* First: capstone takes rdpid for rdseed, which changes the flags. */
	if (machine->kind == MACHINE_X86_64 && machine_x86_extra(bytes, size, instruction))
		return 1;
	if (!cs_disasm_iter(machine->handle, &at, &left, &next, decoded))
		return decode_extra(machine, bytes, size, address, instruction);
	clear_facts(instruction, address, decoded->size);
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "%s", decoded->mnemonic);
	snprintf(instruction->operands, sizeof instruction->operands, "%s", decoded->op_str);
	if (machine->kind == MACHINE_X86_64)
		machine_x86_facts(machine, decoded, instruction);
	else
		machine_arm64_facts(machine, decoded, instruction);
	return 1;
}

int machine_decode_all(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
		       struct instructions *instructions, struct error *error)
{
	while (instructions->decoded < size) {
		instructions->items = memory_grow(instructions->items, instructions->count, &instructions->capacity,
						  sizeof *instructions->items);
		struct instruction *next = &instructions->items[instructions->count];
		const uint8_t *at = bytes + instructions->decoded;
		size_t left = size - instructions->decoded;
		if (!machine_decode(machine, at, left, address + instructions->decoded, next)) {
			cleanup_str struct str shown = {0};
			for (size_t i = 0; i < left && i < 4; i++)
				str_append_format(&shown, " %02x", at[i]);
			return error_set(error, "the bytes%s%s at 0x%llx are no instruction known here",
					 str_text(&shown), left > 4 ? " ..." : "",
					 (unsigned long long)(address + instructions->decoded));
		}
		instructions->decoded += next->size;
		instructions->count++;
	}
	return 0;
}

void instructions_clear(struct instructions *instructions)
{
	free(instructions->items);
	*instructions = (struct instructions){0};
}

char *instruction_text(const struct instruction *instruction)
{
	return text_format("%s%s%s", instruction->mnemonic, *instruction->operands ? " " : "", instruction->operands);
}
