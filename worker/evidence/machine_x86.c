/*
 * What one x86-64 instruction does.  Flags come from the table below (Intel's Software Developer's Manual, volume 2,
 * "Flags Affected"), registers and memory from capstone's operands with the corrections that tests/unit/test_machine.c
 * pins down one by one: capstone 4 has no flags for cmpxchg, vucomisd or lzcnt's carry, thinks that setcc reads its
 * memory operand, that movss reads DF, and so on.
 */
#include <stdlib.h>
#include <string.h>

#include "evidence/machine_inside.h"

#define ALL FLAGS_X86_STATUS
#define OSAP (FLAG_OF | FLAG_SF | FLAG_AF | FLAG_PF)
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- flags ---- */

struct flag_facts {
	const char *name;
	flag_set read;
	flag_set written;
	flag_set undefined;
	flag_set cleared;
	flag_set set;
};

/* Shifts, rotations and string instructions are adjusted further below; conditions are read off the name. */
static const struct flag_facts flag_table[] = {
	{"adc", FLAG_CF, ALL, 0, 0, 0},
	{"adcx", FLAG_CF, FLAG_CF, 0, 0, 0},
	{"add", 0, ALL, 0, 0, 0},
	{"adox", FLAG_OF, FLAG_OF, 0, 0, 0},
	{"and", 0, ALL, FLAG_AF, FLAG_CF | FLAG_OF, 0},
	{"andn", 0, ALL, FLAG_AF | FLAG_PF, FLAG_CF | FLAG_OF, 0},
	{"bextr", 0, ALL, FLAG_AF | FLAG_SF | FLAG_PF, FLAG_CF | FLAG_OF, 0},
	{"blsi", 0, ALL, FLAG_AF | FLAG_PF, FLAG_OF, 0},
	{"blsmsk", 0, ALL, FLAG_AF | FLAG_PF, FLAG_OF | FLAG_ZF, 0},
	{"blsr", 0, ALL, FLAG_AF | FLAG_PF, FLAG_OF, 0},
	{"bsf", 0, ALL, FLAG_CF | OSAP, 0, 0},
	{"bsr", 0, ALL, FLAG_CF | OSAP, 0, 0},
	{"bt", 0, FLAG_CF | OSAP, OSAP, 0, 0},
	{"btc", 0, FLAG_CF | OSAP, OSAP, 0, 0},
	{"btr", 0, FLAG_CF | OSAP, OSAP, 0, 0},
	{"bts", 0, FLAG_CF | OSAP, OSAP, 0, 0},
	{"bzhi", 0, ALL, FLAG_AF | FLAG_PF, FLAG_OF, 0},
	{"clc", 0, FLAG_CF, 0, FLAG_CF, 0},
	{"cld", 0, FLAG_DF, 0, FLAG_DF, 0},
	{"cmc", FLAG_CF, FLAG_CF, 0, 0, 0},
	{"cmp", 0, ALL, 0, 0, 0},
	{"cmpsb", FLAG_DF, ALL, 0, 0, 0},
	{"cmpsq", FLAG_DF, ALL, 0, 0, 0},
	{"cmpsw", FLAG_DF, ALL, 0, 0, 0},
	{"cmpxchg", 0, ALL, 0, 0, 0},
	{"cmpxchg16b", 0, FLAG_ZF, 0, 0, 0},
	{"cmpxchg8b", 0, FLAG_ZF, 0, 0, 0},
	{"comisd", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"comiss", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"dec", 0, ALL & ~FLAG_CF, 0, 0, 0},
	{"div", 0, ALL, ALL, 0, 0},
	{"fcomi", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"fcomip", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"fucomi", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"fucomip", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"idiv", 0, ALL, ALL, 0, 0},
	{"imul", 0, ALL, FLAG_SF | FLAG_ZF | FLAG_AF | FLAG_PF, 0, 0},
	{"inc", 0, ALL & ~FLAG_CF, 0, 0, 0},
	{"insb", FLAG_DF, 0, 0, 0, 0},
	{"insd", FLAG_DF, 0, 0, 0, 0},
	{"insw", FLAG_DF, 0, 0, 0, 0},
	{"kortestb", 0, ALL, 0, OSAP, 0},
	{"kortestd", 0, ALL, 0, OSAP, 0},
	{"kortestq", 0, ALL, 0, OSAP, 0},
	{"kortestw", 0, ALL, 0, OSAP, 0},
	{"lahf", ALL & ~FLAG_OF, 0, 0, 0, 0},
	{"lar", 0, FLAG_ZF, 0, 0, 0},
	{"lodsb", FLAG_DF, 0, 0, 0, 0},
	{"lodsd", FLAG_DF, 0, 0, 0, 0},
	{"lodsq", FLAG_DF, 0, 0, 0, 0},
	{"lodsw", FLAG_DF, 0, 0, 0, 0},
	{"loope", FLAG_ZF, 0, 0, 0, 0},
	{"loopne", FLAG_ZF, 0, 0, 0, 0},
	{"lsl", 0, FLAG_ZF, 0, 0, 0},
	{"lzcnt", 0, ALL, OSAP, 0, 0},
	{"movsb", FLAG_DF, 0, 0, 0, 0},
	{"movsq", FLAG_DF, 0, 0, 0, 0},
	{"movsw", FLAG_DF, 0, 0, 0, 0},
	{"mul", 0, ALL, FLAG_SF | FLAG_ZF | FLAG_AF | FLAG_PF, 0, 0},
	{"neg", 0, ALL, 0, 0, 0},
	{"or", 0, ALL, FLAG_AF, FLAG_CF | FLAG_OF, 0},
	{"outsb", FLAG_DF, 0, 0, 0, 0},
	{"outsd", FLAG_DF, 0, 0, 0, 0},
	{"outsw", FLAG_DF, 0, 0, 0, 0},
	{"pcmpestri", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"pcmpestrm", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"pcmpistri", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"pcmpistrm", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"popcnt", 0, ALL, 0, ALL & ~FLAG_ZF, 0},
	{"popf", 0, ALL | FLAG_DF, 0, 0, 0},
	{"popfq", 0, ALL | FLAG_DF, 0, 0, 0},
	{"ptest", 0, ALL, 0, OSAP, 0},
	{"pushf", ALL | FLAG_DF, 0, 0, 0, 0},
	{"pushfq", ALL | FLAG_DF, 0, 0, 0, 0},
	{"rcl", FLAG_CF, FLAG_CF | FLAG_OF, 0, 0, 0},
	{"rcr", FLAG_CF, FLAG_CF | FLAG_OF, 0, 0, 0},
	{"rdrand", 0, ALL, 0, ALL & ~FLAG_CF, 0},
	{"rdseed", 0, ALL, 0, ALL & ~FLAG_CF, 0},
	{"rol", 0, FLAG_CF | FLAG_OF, 0, 0, 0},
	{"ror", 0, FLAG_CF | FLAG_OF, 0, 0, 0},
	{"sahf", 0, ALL & ~FLAG_OF, 0, 0, 0},
	{"sal", 0, ALL, FLAG_AF, 0, 0},
	{"sar", 0, ALL, FLAG_AF, 0, 0},
	{"sbb", FLAG_CF, ALL, 0, 0, 0},
	{"scasb", FLAG_DF, ALL, 0, 0, 0},
	{"scasd", FLAG_DF, ALL, 0, 0, 0},
	{"scasq", FLAG_DF, ALL, 0, 0, 0},
	{"scasw", FLAG_DF, ALL, 0, 0, 0},
	{"shl", 0, ALL, FLAG_AF, 0, 0},
	{"shld", 0, ALL, FLAG_AF, 0, 0},
	{"shr", 0, ALL, FLAG_AF, 0, 0},
	{"shrd", 0, ALL, FLAG_AF, 0, 0},
	{"stc", 0, FLAG_CF, 0, 0, FLAG_CF},
	{"std", 0, FLAG_DF, 0, 0, FLAG_DF},
	{"stosb", FLAG_DF, 0, 0, 0, 0},
	{"stosd", FLAG_DF, 0, 0, 0, 0},
	{"stosq", FLAG_DF, 0, 0, 0, 0},
	{"stosw", FLAG_DF, 0, 0, 0, 0},
	{"sub", 0, ALL, 0, 0, 0},
	{"test", 0, ALL, FLAG_AF, FLAG_CF | FLAG_OF, 0},
	{"tzcnt", 0, ALL, OSAP, 0, 0},
	{"ucomisd", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"ucomiss", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"vcomisd", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"vcomiss", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"verr", 0, FLAG_ZF, 0, 0, 0},
	{"verw", 0, FLAG_ZF, 0, 0, 0},
	{"vpcmpestri", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"vpcmpestrm", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"vpcmpistri", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"vpcmpistrm", 0, ALL, 0, FLAG_AF | FLAG_PF, 0},
	{"vptest", 0, ALL, 0, OSAP, 0},
	{"vtestpd", 0, ALL, 0, OSAP, 0},
	{"vtestps", 0, ALL, 0, OSAP, 0},
	{"vucomisd", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"vucomiss", 0, ALL, 0, FLAG_OF | FLAG_SF | FLAG_AF, 0},
	{"xadd", 0, ALL, 0, 0, 0},
	{"xtest", 0, ALL, 0, ALL & ~FLAG_ZF, 0},
};

static int compare_names(const void *key, const void *row)
{
	return strcmp(key, ((const struct flag_facts *)row)->name);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool has_group(const cs_insn *decoded, unsigned group)
{
	for (int i = 0; i < decoded->detail->groups_count; i++)
		if (decoded->detail->groups[i] == group)
			return true;
	return false;
}

static bool two_memory_operands(const cs_x86 *x86)
{
	return x86->op_count == 2 && x86->operands[0].type == X86_OP_MEM && x86->operands[1].type == X86_OP_MEM;
}

/* "e" -> 5: the condition code plus CONDITION_X86; 0: none. */
static int condition_of_suffix(const char *suffix)
{
	static const char *const suffixes[16] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
						 "s", "ns", "p", "np", "l", "ge", "le", "g"};
	for (int i = 0; i < 16; i++)
		if (strcmp(suffix, suffixes[i]) == 0)
			return CONDITION_X86 + i;
	return 0;
}

static int condition_of(const char *name)
{
	static const struct {
		const char *name;
		const char *suffix;
	} x87[] = {{"fcmovb", "b"},   {"fcmovnb", "ae"}, {"fcmove", "e"}, {"fcmovne", "ne"},
		   {"fcmovbe", "be"}, {"fcmovnbe", "a"}, {"fcmovu", "p"}, {"fcmovnu", "np"}};
	if (name[0] == 'j')
		return condition_of_suffix(name + 1);
	if (text_starts_with(name, "set"))
		return condition_of_suffix(name + 3);
	if (text_starts_with(name, "cmov"))
		return condition_of_suffix(name + 4);
	for (size_t i = 0; i < COUNT(x87); i++)
		if (strcmp(name, x87[i].name) == 0)
			return condition_of_suffix(x87[i].suffix);
	return 0;
}

/* The count of a shift or rotation: 0 to 63, or -1 where it stands in cl. */
static int shift_count(const cs_x86 *x86)
{
	const cs_x86_op *count = &x86->operands[x86->op_count - 1];
	if (count->type != X86_OP_IMM)
		return -1;
	return (int)(count->imm & (x86->operands[0].size == 8 ? 63 : 31));
}

/* By nothing: no flag is touched.  By one: OF has a meaning.  By more: it has none. */
static void shift_flags(const cs_x86 *x86, struct instruction *instruction)
{
	int count = shift_count(x86);
	if (count == 0) {
		instruction->flags_written = 0;
		instruction->flags_undefined = 0;
		return;
	}
	if (count < 0)
		instruction->flags_kept = instruction->flags_written;
	if (count != 1)
		instruction->flags_undefined |= FLAG_OF;
}

/* Operations whose result does not depend on what was there. */
static void known_result(const char *name, const cs_x86 *x86, struct instruction *instruction)
{
	const cs_x86_op *first = &x86->operands[0];
	const cs_x86_op *second = &x86->operands[1];
	bool same = x86->op_count == 2 && first->type == X86_OP_REG && second->type == X86_OP_REG &&
		    first->reg == second->reg;
	bool zero = x86->op_count == 2 && second->type == X86_OP_IMM && second->imm == 0;
	bool ones =
		x86->op_count == 2 && second->type == X86_OP_IMM &&
		((uint64_t)second->imm | (first->size >= 8 ? 0 : ~(uint64_t)0 << (8 * first->size))) == ~(uint64_t)0;
	bool subtract = strcmp(name, "sub") == 0 || strcmp(name, "cmp") == 0;
	bool conjunction = strcmp(name, "and") == 0 || strcmp(name, "test") == 0;
	if ((same && (subtract || strcmp(name, "xor") == 0)) || (zero && conjunction)) {
		instruction->flags_set = FLAG_ZF | FLAG_PF;
		instruction->flags_cleared = FLAG_SF | FLAG_CF | FLAG_OF | (subtract ? FLAG_AF : 0);
	}
	if (ones && strcmp(name, "or") == 0) {
		instruction->flags_set = FLAG_SF | FLAG_PF;
		instruction->flags_cleared |= FLAG_ZF;
	}
}

/* Where capstone's own word has to do: rare instructions that the table does not know. */
static void capstone_flags(uint64_t eflags, struct instruction *instruction)
{
	static const struct {
		flag_set flag;
		uint64_t read;
		uint64_t written;
		uint64_t undefined;
	} rows[] = {
		{FLAG_CF, X86_EFLAGS_TEST_CF, X86_EFLAGS_MODIFY_CF | X86_EFLAGS_RESET_CF | X86_EFLAGS_SET_CF,
		 X86_EFLAGS_UNDEFINED_CF},
		{FLAG_PF, X86_EFLAGS_TEST_PF, X86_EFLAGS_MODIFY_PF | X86_EFLAGS_RESET_PF | X86_EFLAGS_SET_PF,
		 X86_EFLAGS_UNDEFINED_PF},
		{FLAG_AF, X86_EFLAGS_TEST_AF, X86_EFLAGS_MODIFY_AF | X86_EFLAGS_RESET_AF | X86_EFLAGS_SET_AF,
		 X86_EFLAGS_UNDEFINED_AF},
		{FLAG_ZF, X86_EFLAGS_TEST_ZF, X86_EFLAGS_MODIFY_ZF | X86_EFLAGS_RESET_ZF | X86_EFLAGS_SET_ZF,
		 X86_EFLAGS_UNDEFINED_ZF},
		{FLAG_SF, X86_EFLAGS_TEST_SF, X86_EFLAGS_MODIFY_SF | X86_EFLAGS_RESET_SF | X86_EFLAGS_SET_SF,
		 X86_EFLAGS_UNDEFINED_SF},
		{FLAG_OF, X86_EFLAGS_TEST_OF,
		 X86_EFLAGS_MODIFY_OF | X86_EFLAGS_RESET_OF | X86_EFLAGS_SET_OF | X86_EFLAGS_RESET_0F,
		 X86_EFLAGS_UNDEFINED_OF},
		{FLAG_DF, X86_EFLAGS_TEST_DF, X86_EFLAGS_MODIFY_DF | X86_EFLAGS_RESET_DF | X86_EFLAGS_SET_DF, 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (eflags & rows[i].read)
			instruction->flags_read |= rows[i].flag;
		if (eflags & (rows[i].written | rows[i].undefined))
			instruction->flags_written |= rows[i].flag;
		if (eflags & rows[i].undefined)
			instruction->flags_undefined |= rows[i].flag;
	}
}

/* Vector arithmetic on floating-point numbers: may raise an exception flag in MXCSR. */
static bool raises_exceptions(const char *name)
{
	static const char *const starts[] = {"add",  "sub",   "mul",   "div",    "sqrt",   "min",     "max",
					     "hadd", "hsub",  "cmp",   "comis",  "ucomis", "cvt",     "round",
					     "dpp",  "fmadd", "fmsub", "fnmadd", "fnmsub", "rndscale"};
	if (*name == 'v')
		name++;
	for (size_t i = 0; i < COUNT(starts); i++)
		if (text_starts_with(name, starts[i]))
			return true;
	return false;
}

static void float_flags(const char *name, const cs_insn *decoded, struct instruction *instruction)
{
	static const char *const loads[] = {"ldmxcsr", "vldmxcsr", "fxrstor", "fxrstor64",
					    "xrstor",  "xrstor64", "xrstors", "xrstors64"};
	static const char *const stores[] = {"stmxcsr", "vstmxcsr", "fxsave",   "fxsave64",   "xsave",  "xsave64",
					     "xsavec",  "xsavec64", "xsaveopt", "xsaveopt64", "xsaves", "xsaves64"};
	static const char *const x87_state[] = {"fnstsw", "fnstcw", "wait"};
	if (is_one_of(name, loads, COUNT(loads)))
		instruction->flags_written |= FLAG_MXCSR;
	if (is_one_of(name, stores, COUNT(stores)))
		instruction->flags_read |= FLAG_MXCSR;
	if (strstr(name, "rstor") != NULL)
		instruction->flags_written |= FLAG_X87;
	if (strcmp(name, "fnstsw") == 0 || strcmp(name, "fnstenv") == 0 || strstr(name, "xsave") != NULL)
		instruction->flags_read |= FLAG_X87;
	if (name[0] == 'f' && has_group(decoded, X86_GRP_FPU) && !is_one_of(name, x87_state, COUNT(x87_state)))
		instruction->flags_written |= FLAG_X87;
	bool vector = !has_group(decoded, X86_GRP_FPU) && (*name == 'v' || decoded->detail->x86.op_count > 1) &&
		      (strstr(name, "ps") != NULL || strstr(name, "pd") != NULL || strstr(name, "ss") != NULL ||
		       strstr(name, "sd") != NULL);
	if (vector && raises_exceptions(name) && !two_memory_operands(&decoded->detail->x86)) {
		instruction->flags_written |= FLAG_MXCSR;
		instruction->flags_kept |= FLAG_MXCSR;
	}
}

static bool is_shift(const char *name)
{
	static const char *const names[] = {"shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd"};
	return is_one_of(name, names, COUNT(names));
}

static bool is_string(const char *name, const cs_x86 *x86)
{
	static const char *const names[] = {"movsb", "movsw", "movsq", "stosb", "stosw", "stosd", "stosq", "lodsb",
					    "lodsw", "lodsd", "lodsq", "scasb", "scasw", "scasd", "scasq", "cmpsb",
					    "cmpsw", "cmpsq", "insb",  "insw",  "insd",  "outsb", "outsw", "outsd"};
	return is_one_of(name, names, COUNT(names)) ||
	       ((strcmp(name, "movsd") == 0 || strcmp(name, "cmpsd") == 0) && two_memory_operands(x86));
}

static void flag_facts(const char *name, const cs_insn *decoded, struct instruction *instruction)
{
	const cs_x86 *x86 = &decoded->detail->x86;
	instruction->condition = condition_of(name);
	instruction->flags_read = machine_condition_flags(instruction->condition);
	const struct flag_facts *row = bsearch(name, flag_table, COUNT(flag_table), sizeof *flag_table, compare_names);
	static const char *const none[] = {"movss", "movsd", "cmpsd", "syscall", "int", "int3", "int1"};
	if (row != NULL) {
		instruction->flags_read |= row->read;
		instruction->flags_written = row->written;
		instruction->flags_undefined = row->undefined;
		instruction->flags_cleared = row->cleared;
		instruction->flags_set = row->set;
	} else if (strcmp(name, "cmpsd") == 0 && two_memory_operands(x86)) {
		instruction->flags_read |= FLAG_DF;
		instruction->flags_written = ALL;
	} else if (strcmp(name, "movsd") == 0 && two_memory_operands(x86)) {
		instruction->flags_read |= FLAG_DF;
	} else if (instruction->condition == 0 && !has_group(decoded, X86_GRP_FPU) && !text_starts_with(name, "f") &&
		   !text_starts_with(name, "cmp") && !is_one_of(name, none, COUNT(none))) {
		capstone_flags(x86->eflags, instruction);
	}
	if (is_shift(name))
		shift_flags(x86, instruction);
	if (instruction->repeated)
		instruction->flags_kept = instruction->flags_written;
	known_result(name, x86, instruction);
	instruction->flags_undefined &= ~(instruction->flags_set | instruction->flags_cleared);
	float_flags(name, decoded, instruction);
}

/* ---- operands ---- */

/* How operand `index` is accessed, corrected. */
static unsigned access_of(const char *name, const cs_x86 *x86, unsigned index)
{
	static const char *const untouched[] = {"lea",        "nop",        "prefetch",  "prefetchnta", "prefetcht0",
						"prefetcht1", "prefetcht2", "prefetchw", "clflush",     "clflushopt",
						"clwb",       "invlpg",     "bndmk"};
	static const char *const stored[] = {
		"fst",      "fstp",       "fist",     "fistp",    "fisttp",   "fbstp", "fnstcw",  "fnstsw", "fnstenv",
		"fnsave",   "stmxcsr",    "vstmxcsr", "fxsave",   "fxsave64", "xsave", "xsave64", "xsavec", "xsavec64",
		"xsaveopt", "xsaveopt64", "xsaves",   "xsaves64", "sgdt",     "sidt",  "sldt",    "str",    "smsw"};
	static const char *const changed[] = {"cmpxchg", "cmpxchg8b", "cmpxchg16b", "adox", "adcx"};
	static const char *const moves[] = {"mov",      "vmov",      "vpmov",     "pextr",      "vpextr",
					    "extract",  "vextract",  "vcvtps2ph", "vpcompress", "vcompress",
					    "vscatter", "vpscatter", "vmaskmov",  "vpmaskmov",  "kmov"};
	const cs_x86_op *operand = &x86->operands[index];
	bool memory = operand->type == X86_OP_MEM;
	if (memory && is_one_of(name, untouched, COUNT(untouched)))
		return 0;
	if (index == 0 && memory && is_one_of(name, stored, COUNT(stored)))
		return CS_AC_WRITE;
	if (index == 0 && is_one_of(name, changed, COUNT(changed)))
		return CS_AC_READ | CS_AC_WRITE;
	if (index == 0 && text_starts_with(name, "set") && condition_of(name) != 0)
		return CS_AC_WRITE;
	/* Gathering merges under a mask that it uses up. */
	if (!memory && (text_starts_with(name, "vpgather") || text_starts_with(name, "vgather")))
		return CS_AC_READ | CS_AC_WRITE;
	/* A scalar moved between registers leaves the upper part, which is no use of the old value. */
	if (index == 0 && !memory && (strcmp(name, "movss") == 0 || strcmp(name, "movsd") == 0))
		return CS_AC_WRITE;
	if (memory && !two_memory_operands(x86))
		for (size_t i = 0; i < COUNT(moves); i++)
			if (text_starts_with(name, moves[i]))
				return index == 0 ? CS_AC_WRITE : CS_AC_READ;
	if (memory && operand->access == 0)
		return CS_AC_READ;
	return operand->access;
}

static void memory_operand(const struct machine *machine, const cs_insn *decoded, const cs_x86_op *operand,
			   unsigned access, struct instruction *instruction)
{
	const x86_op_mem *mem = &operand->mem;
	struct machine_memory memory = {.base = machine_part(machine, mem->base).number,
					.index = machine_part(machine, mem->index).number,
					.scale = mem->scale,
					.displacement = mem->disp,
					.size = operand->size,
					.read = access & CS_AC_READ,
					.written = access & CS_AC_WRITE,
					.relative = mem->base == X86_REG_RIP,
					.segment = mem->segment == X86_REG_FS || mem->segment == X86_REG_GS};
	if (memory.relative)
		memory.address = decoded->address + decoded->size + (uint64_t)mem->disp;
	machine_add_memory(instruction, &memory);
	if (instruction->shape == SHAPE_NOTHING)
		return;
	if (memory.base != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.base, 64, false});
	if (memory.index != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.index, 64, false});
}

static void operand_facts(const struct machine *machine, const char *name, const cs_insn *decoded,
			  struct instruction *instruction)
{
	const cs_x86 *x86 = &decoded->detail->x86;
	for (unsigned i = 0; i < x86->op_count; i++) {
		const cs_x86_op *operand = &x86->operands[i];
		unsigned access = access_of(name, x86, i);
		if (operand->type == X86_OP_MEM)
			memory_operand(machine, decoded, operand, access, instruction);
		if (operand->type != X86_OP_REG || instruction->shape == SHAPE_NOTHING)
			continue;
		struct register_part part = machine_part(machine, operand->reg);
		if (access & CS_AC_READ || access == 0)
			machine_add_read(instruction, part);
		if (access & CS_AC_WRITE)
			machine_add_written(instruction, part);
	}
}

/* ---- registers that no operand names ---- */

#define R(name) REGISTER(X86_##name)
#define VECTORS (((REGISTER(X86_ZMM0 + 31) << 1) - 1) & ~(REGISTER(X86_ZMM0) - 1))
#define FIRST_VECTORS (REGISTER(X86_ZMM0 + 16) - REGISTER(X86_ZMM0))
#define MASKS (REGISTER(X86_X87) - REGISTER(X86_K0))

static const struct implied {
	const char *name;
	register_set read;
	register_set written;
	register_set kept;        /* of those written */
	register_set not_written; /* capstone says so, the manual does not */
} implied_table[] = {
	{"cdq", 0, 0, 0, R(RAX)},
	{"cqo", 0, 0, 0, R(RAX)},
	{"cwd", 0, 0, 0, R(RAX)},
	{"cmpxchg", R(RAX), R(RAX), R(RAX), 0},
	{"cmpxchg16b", R(RAX) | R(RBX) | R(RCX) | R(RDX), R(RAX) | R(RDX), R(RAX) | R(RDX), 0},
	{"cmpxchg8b", R(RAX) | R(RBX) | R(RCX) | R(RDX), R(RAX) | R(RDX), R(RAX) | R(RDX), 0},
	{"enter", R(RBP) | R(RSP), R(RBP) | R(RSP), 0, 0},
	{"fxrstor", 0, FIRST_VECTORS | R(X87), FIRST_VECTORS, 0},
	{"fxrstor64", 0, FIRST_VECTORS | R(X87), FIRST_VECTORS, 0},
	{"int", R(RAX) | R(RBX) | R(RCX) | R(RDX) | R(RSI) | R(RDI) | R(RBP), R(RAX), 0, 0},
	{"jrcxz", R(RCX), 0, 0, 0},
	{"maskmovdqu", R(RDI), 0, 0, 0},
	{"maskmovq", R(RDI), 0, 0, 0},
	{"vmaskmovdqu", R(RDI), 0, 0, 0},
	{"syscall", R(RAX) | R(RDI) | R(RSI) | R(RDX) | R(R10) | R(R8) | R(R9), R(RAX) | R(RCX) | R(R11), 0, 0},
	{"vzeroall", 0, FIRST_VECTORS, 0, 0},
	{"vzeroupper", 0, FIRST_VECTORS, FIRST_VECTORS, 0},
	{"xbegin", 0, R(RAX), R(RAX), 0},
	{"xlatb", R(RAX) | R(RBX), R(RAX), R(RAX), 0},
	{"xrstor", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstor64", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstors", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstors64", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xsetbv", R(RAX) | R(RCX) | R(RDX), 0, 0, 0},
	{"emms", 0, R(X87), 0, 0},
};

static void implied_facts(const struct machine *machine, const char *name, const cs_insn *decoded,
			  struct instruction *instruction)
{
	const cs_detail *detail = decoded->detail;
	for (int i = 0; i < detail->regs_read_count; i++)
		machine_add_read(instruction, machine_part(machine, detail->regs_read[i]));
	for (int i = 0; i < detail->regs_write_count; i++)
		machine_add_written(instruction, machine_part(machine, detail->regs_write[i]));
	if (has_group(decoded, X86_GRP_FPU) && strcmp(name, "fnstsw") != 0 && strcmp(name, "wait") != 0) {
		instruction->registers_read |= R(X87);
		instruction->registers_written |= R(X87);
		instruction->registers_kept |= R(X87);
	}
	if (text_starts_with(name, "bsf") || text_starts_with(name, "bsr"))
		instruction->registers_kept |= instruction->registers_written;
	for (size_t i = 0; i < COUNT(implied_table); i++) {
		const struct implied *row = &implied_table[i];
		if (strcmp(name, row->name) != 0)
			continue;
		instruction->registers_read |= row->read;
		instruction->registers_narrow &= ~row->read;
		instruction->registers_written = (instruction->registers_written | row->written) & ~row->not_written;
		instruction->registers_kept =
			(instruction->registers_kept | row->kept) & instruction->registers_written;
	}
	if (strcmp(name, "xlatb") == 0) {
		struct machine_memory table = {.base = X86_RBX, .index = X86_RAX, .scale = 1, .size = 1, .read = true};
		machine_add_memory(instruction, &table);
	}
	if (strstr(name, "maskmovdqu") != NULL || strcmp(name, "maskmovq") == 0) {
		struct machine_memory target = {
			.base = X86_RDI, .index = REGISTER_NONE, .scale = 1, .size = 16, .written = true};
		machine_add_memory(instruction, &target);
	}
	if (instruction->repeated)
		instruction->registers_kept |= instruction->registers_written;
}

/* ---- stack, control, shapes ---- */

static void move_stack(struct instruction *instruction, bool known, int64_t change)
{
	instruction->stack_moved = true;
	instruction->stack_known = known;
	instruction->stack_change = change;
}

static void stack_facts(const char *name, const cs_x86 *x86, struct instruction *instruction)
{
	const cs_x86_op *first = &x86->operands[0];
	int64_t width = x86->op_count > 0 && first->size == 2 ? 2 : 8;
	if (strcmp(name, "push") == 0 || text_starts_with(name, "pushf")) {
		instruction->stack_pushed = true;
		move_stack(instruction, true, strcmp(name, "pushf") == 0 ? -2 : -width);
	} else if (strcmp(name, "pop") == 0 || text_starts_with(name, "popf")) {
		instruction->stack_popped = true;
		bool itself = x86->op_count > 0 && first->type == X86_OP_REG && first->reg == X86_REG_RSP;
		move_stack(instruction, !itself, strcmp(name, "popf") == 0 ? 2 : width);
	} else if (strcmp(name, "call") == 0) {
		instruction->stack_pushed = true;
		instruction->registers_written &= ~R(RSP);
	} else if (strcmp(name, "ret") == 0) {
		instruction->stack_popped = true;
		move_stack(instruction, true, 8 + (x86->op_count > 0 ? first->imm : 0));
	} else if (strcmp(name, "enter") == 0) {
		instruction->stack_pushed = true;
		move_stack(instruction, x86->op_count > 1 && x86->operands[1].imm == 0,
			   x86->op_count > 0 ? -8 - first->imm : 0);
	} else if (strcmp(name, "leave") == 0) {
		instruction->stack_popped = true;
		move_stack(instruction, false, 0);
	} else if (instruction->registers_written & R(RSP)) {
		const cs_x86_op *second = &x86->operands[1];
		bool immediate = x86->op_count == 2 && second->type == X86_OP_IMM && first->type == X86_OP_REG;
		bool lea = strcmp(name, "lea") == 0 && second->mem.base == X86_REG_RSP &&
			   second->mem.index == X86_REG_INVALID;
		if (immediate && strcmp(name, "sub") == 0)
			move_stack(instruction, true, -second->imm);
		else if (immediate && strcmp(name, "add") == 0)
			move_stack(instruction, true, second->imm);
		else
			move_stack(instruction, lea, lea ? second->mem.disp : 0);
	}
}

static void flow_facts(const char *name, const cs_insn *decoded, struct instruction *instruction)
{
	static const char *const traps[] = {"ud2", "ud2b", "ud0"};
	const cs_x86 *x86 = &decoded->detail->x86;
	if (strcmp(name, "jmp") == 0 || strcmp(name, "ljmp") == 0)
		instruction->flow = MACHINE_JUMP;
	else if (name[0] == 'j' || text_starts_with(name, "loop") || strcmp(name, "xbegin") == 0)
		instruction->flow = MACHINE_BRANCH;
	else if (strcmp(name, "call") == 0 || strcmp(name, "lcall") == 0)
		instruction->flow = MACHINE_CALL;
	else if (text_starts_with(name, "ret") || text_starts_with(name, "iret") || text_starts_with(name, "sysret"))
		instruction->flow = MACHINE_RETURN;
	else if (is_one_of(name, traps, COUNT(traps)))
		instruction->flow = MACHINE_TRAP;
	else if (strcmp(name, "syscall") == 0 || strcmp(name, "sysenter") == 0 || strcmp(name, "int") == 0)
		instruction->flow = MACHINE_SYSTEM;
	bool goes = instruction->flow == MACHINE_JUMP || instruction->flow == MACHINE_BRANCH ||
		    instruction->flow == MACHINE_CALL;
	if (goes && x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM) {
		instruction->target_known = true;
		instruction->target = (uint64_t)x86->operands[0].imm;
	}
}

static void set_shape(struct instruction *instruction, enum machine_shape shape, int first, int second)
{
	instruction->shape = shape;
	instruction->first = first;
	instruction->second = second;
}

/* Result 0 whatever was there: nothing is read. */
static void zero_idiom(const char *name, const cs_x86 *x86, struct instruction *instruction, int number)
{
	static const char *const names[] = {"xor",    "sub",    "pxor",   "xorps", "xorpd", "vpxor", "vxorps",
					    "vxorpd", "vpxord", "vpxorq", "psubd", "psubq", "psubb", "psubw"};
	unsigned last = x86->op_count - 1U;
	bool same = x86->operands[last].reg == x86->operands[last - 1].reg && x86->operands[last].type == X86_OP_REG &&
		    x86->operands[last - 1].type == X86_OP_REG;
	if (x86->op_count > 3 || !same || !is_one_of(name, names, COUNT(names)))
		return;
	instruction->registers_read = 0;
	instruction->registers_narrow = 0;
	if (x86->operands[0].size >= 4)
		set_shape(instruction, SHAPE_ZERO, number, REGISTER_NONE);
}

static void shape_facts(const struct machine *machine, const char *name, const cs_x86 *x86,
			struct instruction *instruction)
{
	static const char *const moves[] = {"mov",    "movaps",  "movapd",  "movups",  "movupd",  "movdqa",
					    "movdqu", "vmovaps", "vmovapd", "vmovups", "vmovdqa", "vmovdqu"};
	struct register_part first = {REGISTER_NONE, 0, false};
	struct register_part second = {REGISTER_NONE, 0, false};
	if (x86->op_count > 0 && x86->operands[0].type == X86_OP_REG)
		first = machine_part(machine, x86->operands[0].reg);
	if (x86->op_count > 1 && x86->operands[1].type == X86_OP_REG)
		second = machine_part(machine, x86->operands[1].reg);
	bool whole = x86->op_count == 2 && first.number != REGISTER_NONE && second.number != REGISTER_NONE &&
		     first.bits >= 64 && second.bits == first.bits;
	if (whole && is_one_of(name, moves, COUNT(moves)))
		set_shape(instruction, SHAPE_MOVE, first.number, second.number);
	else if (whole && strcmp(name, "xchg") == 0)
		set_shape(instruction, SHAPE_EXCHANGE, first.number, second.number);
	else if (strcmp(name, "push") == 0)
		set_shape(instruction, SHAPE_PUSH, first.number, REGISTER_NONE);
	else if (strcmp(name, "pop") == 0)
		set_shape(instruction, SHAPE_POP, first.number, REGISTER_NONE);
	else if (strcmp(name, "pushfq") == 0)
		set_shape(instruction, SHAPE_PUSH_FLAGS, REGISTER_NONE, REGISTER_NONE);
	else if (strcmp(name, "popfq") == 0)
		set_shape(instruction, SHAPE_POP_FLAGS, REGISTER_NONE, REGISTER_NONE);
	else if (strcmp(name, "lahf") == 0)
		set_shape(instruction, SHAPE_FLAGS_TO_FIRST, X86_RAX, REGISTER_NONE);
	else if (strcmp(name, "sahf") == 0)
		set_shape(instruction, SHAPE_FIRST_TO_FLAGS, X86_RAX, REGISTER_NONE);
	else if (x86->op_count >= 2 && first.number != REGISTER_NONE)
		zero_idiom(name, x86, instruction, first.number);
	/* sbb r, r comes to minus the carry: the register does not matter. */
	if (strcmp(name, "sbb") == 0 && first.number != REGISTER_NONE && x86->operands[1].type == X86_OP_REG &&
	    x86->operands[0].reg == x86->operands[1].reg)
		instruction->registers_read = instruction->registers_narrow = 0;
}

void machine_x86_facts(const struct machine *machine, const cs_insn *decoded, struct instruction *instruction)
{
	static const char *const nothing[] = {"nop", "endbr64", "endbr32", "pause", "fnop"};
	const cs_x86 *x86 = &decoded->detail->x86;
	const char *name = cs_insn_name(machine->handle, decoded->id);
	if (name == NULL)
		name = instruction->mnemonic;
	bool string = is_string(name, x86);
	instruction->repeated = string && (x86->prefix[0] == X86_PREFIX_REP || x86->prefix[0] == X86_PREFIX_REPNE);
	instruction->locked = x86->prefix[0] == X86_PREFIX_LOCK;
	if (is_one_of(name, nothing, COUNT(nothing)))
		instruction->shape = SHAPE_NOTHING;
	flag_facts(name, decoded, instruction);
	operand_facts(machine, name, decoded, instruction);
	implied_facts(machine, name, decoded, instruction);
	flow_facts(name, decoded, instruction);
	shape_facts(machine, name, x86, instruction);
	stack_facts(name, x86, instruction);
}
