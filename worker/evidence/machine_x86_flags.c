/*
 * The flags of one x86-64 instruction: Intel's Software Developer's Manual, volume 2, "Flags Affected", as a table.
 * capstone 4 has no flags for cmpxchg, vucomisd or lzcnt's carry, thinks that movss reads DF, that blsr clears ZF, and
 * so on: its word is only taken for instructions that the table does not know.
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

bool machine_x86_has_group(const cs_insn *decoded, unsigned group)
{
	for (int i = 0; i < decoded->detail->groups_count; i++)
		if (decoded->detail->groups[i] == group)
			return true;
	return false;
}

bool machine_x86_two_memory_operands(const cs_x86 *x86)
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

int machine_x86_condition(const char *name)
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
	if (machine_is_one_of(name, loads, COUNT(loads)))
		instruction->flags_written |= FLAG_MXCSR;
	if (machine_is_one_of(name, stores, COUNT(stores)))
		instruction->flags_read |= FLAG_MXCSR;
	if (strstr(name, "rstor") != NULL)
		instruction->flags_written |= FLAG_X87;
	if (strcmp(name, "fnstsw") == 0 || strcmp(name, "fnstenv") == 0 || strstr(name, "xsave") != NULL)
		instruction->flags_read |= FLAG_X87;
	if (name[0] == 'f' && machine_x86_has_group(decoded, X86_GRP_FPU) &&
	    !machine_is_one_of(name, x87_state, COUNT(x87_state)))
		instruction->flags_written |= FLAG_X87;
	bool vector = !machine_x86_has_group(decoded, X86_GRP_FPU) &&
		      (*name == 'v' || decoded->detail->x86.op_count > 1) &&
		      (strstr(name, "ps") != NULL || strstr(name, "pd") != NULL || strstr(name, "ss") != NULL ||
		       strstr(name, "sd") != NULL);
	if (vector && raises_exceptions(name) && !machine_x86_two_memory_operands(&decoded->detail->x86)) {
		instruction->flags_written |= FLAG_MXCSR;
		instruction->flags_kept |= FLAG_MXCSR;
	}
}

static bool is_shift(const char *name)
{
	static const char *const names[] = {"shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd"};
	return machine_is_one_of(name, names, COUNT(names));
}

bool machine_x86_is_string(const char *name, const cs_x86 *x86)
{
	static const char *const names[] = {"movsb", "movsw", "movsq", "stosb", "stosw", "stosd", "stosq", "lodsb",
					    "lodsw", "lodsd", "lodsq", "scasb", "scasw", "scasd", "scasq", "cmpsb",
					    "cmpsw", "cmpsq", "insb",  "insw",  "insd",  "outsb", "outsw", "outsd"};
	return machine_is_one_of(name, names, COUNT(names)) ||
	       ((strcmp(name, "movsd") == 0 || strcmp(name, "cmpsd") == 0) && machine_x86_two_memory_operands(x86));
}

void machine_x86_flag_facts(const char *name, const cs_insn *decoded, struct instruction *instruction)
{
	const cs_x86 *x86 = &decoded->detail->x86;
	instruction->condition = machine_x86_condition(name);
	instruction->flags_read = machine_condition_flags(instruction->condition);
	const struct flag_facts *row = bsearch(name, flag_table, COUNT(flag_table), sizeof *flag_table, compare_names);
	static const char *const none[] = {"movss", "movsd", "cmpsd", "syscall", "int", "int3", "int1"};
	if (row != NULL) {
		instruction->flags_read |= row->read;
		instruction->flags_written = row->written;
		instruction->flags_undefined = row->undefined;
		instruction->flags_cleared = row->cleared;
		instruction->flags_set = row->set;
	} else if (strcmp(name, "cmpsd") == 0 && machine_x86_two_memory_operands(x86)) {
		instruction->flags_read |= FLAG_DF;
		instruction->flags_written = ALL;
	} else if (strcmp(name, "movsd") == 0 && machine_x86_two_memory_operands(x86)) {
		instruction->flags_read |= FLAG_DF;
	} else if (instruction->condition == 0 && !machine_x86_has_group(decoded, X86_GRP_FPU) &&
		   !text_starts_with(name, "f") && !text_starts_with(name, "cmp") &&
		   !machine_is_one_of(name, none, COUNT(none))) {
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
