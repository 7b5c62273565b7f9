/* See operand.h. */
#include "operand.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct assignment {
	struct operands *operands;
	const struct constraints *constraints;
	const struct ir_block *block;
	const struct machine *machine;
	bool x86;
	register_set taken;   /* by operands, clobbers and names in constraints */
	register_set avoided; /* named in the template: only taken when there is no other */
	bool old_only;        /* a high byte (ah, bh, …) is asked for, which goes with the old registers only */
};

/* Best first: those that no instruction has built in. */
static const signed char general_x86[] = {X86_R8,  X86_R9,  X86_R10, X86_R11, 12,      13,      14,      15,
					  X86_RSI, X86_RDI, X86_RDX, X86_RBX, X86_RCX, X86_RAX, X86_RBP, REGISTER_NONE};
static const signed char old_x86[] = {X86_RSI, X86_RDI, X86_RDX, X86_RBX, X86_RCX, X86_RAX, REGISTER_NONE};
static const signed char high_x86[] = {X86_RBX, X86_RDX, X86_RCX, X86_RAX, REGISTER_NONE};
static const signed char vector_x86[] = {22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 21, 20, 19, 18, 17, 16, REGISTER_NONE};
static const signed char mask_x86[] = {49, 50, 51, 52, 53, 54, 55, REGISTER_NONE};
static const signed char x87[] = {X86_X87, REGISTER_NONE};
static const signed char general_arm64[] = {9, 10, 11, 12, 13, 14, 15, 8,  7,  6,  5,  4,  3,  2,  1,
					    0, 16, 17, 20, 21, 22, 23, 24, 25, 26, 27, 28, 18, 30, REGISTER_NONE};
static const signed char vector_arm64[] = {36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,           52,
					   53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 35, 34, 33, 32, REGISTER_NONE};
static const signed char low_vector_arm64[] = {36, 37, 38, 39, 35, 34, 33, 32,           40,
					       41, 42, 43, 44, 45, 46, 47, REGISTER_NONE};

static register_set template_registers(const struct machine *machine, const char *template)
{
	register_set found = 0;
	for (const char *at = template; *at != '\0';) {
		if (!isalpha((unsigned char)*at)) {
			at++;
			continue;
		}
		size_t length = 0;
		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
		if (length <= 6) {
			cleanup_free char *word = text_copy_range(at, length);
			for (char *letter = word; *letter != '\0'; letter++)
				*letter = (char)tolower((unsigned char)*letter);
			int number = machine_register_number(machine, word);
			if (number != REGISTER_NONE)
				found |= REGISTER(number);
		}
		at += length;
	}
	return found;
}

static bool asks_high_byte(const char *template)
{
	for (const char *at = strstr(template, "${"); at != NULL; at = strstr(at + 2, "${")) {
		const char *digits = at + 2;
		while (isdigit((unsigned char)*digits))
			digits++;
		if (strncmp(digits, ":h}", 3) == 0)
			return true;
	}
	return false;
}

/* A name in braces: a register, or one of the things that are no registers. */
static void take_clobber(struct assignment *assignment, const char *name)
{
	struct operands *operands = assignment->operands;
	int number = machine_register_number(assignment->machine, name);
	if (number != REGISTER_NONE) {
		operands->clobbers |= REGISTER(number);
		assignment->taken |= REGISTER(number);
	} else if (strcmp(name, "memory") == 0) {
		operands->memory = true;
	} else if (strcmp(name, "flags") == 0 || strcmp(name, "cc") == 0 || strcmp(name, "nzcv") == 0) {
		operands->flags |= machine_status_flags(assignment->machine);
	} else if (strcmp(name, "dirflag") == 0) {
		operands->flags |= FLAG_DF;
	} else if (strcmp(name, "fpsr") == 0 || strcmp(name, "fpsw") == 0) {
		operands->flags |= FLAG_X87 | FLAG_MXCSR | FLAG_FPSR;
	}
}

static int take_free(struct assignment *assignment, const signed char *pool)
{
	for (int relaxed = 0; relaxed < 2; relaxed++) {
		for (const signed char *at = pool; *at != REGISTER_NONE; at++) {
			register_set bit = REGISTER(*at);
			if ((assignment->taken & bit) != 0 || (relaxed == 0 && (assignment->avoided & bit) != 0))
				continue;
			assignment->taken |= bit;
			return *at;
		}
	}
	return REGISTER_NONE;
}

static bool is_constant(const struct ir_value *value)
{
	if (value == NULL || value->text == NULL)
		return false;
	return value->text[0] != '%' && strcmp(value->text, "undef") != 0 && strcmp(value->text, "poison") != 0;
}

static bool has_any_code(const struct constraint *constraint, const char *const *codes)
{
	for (; *codes != NULL; codes++)
		if (constraint_has_code(constraint, *codes))
			return true;
	return false;
}

static const signed char *register_pool(const struct assignment *assignment, const struct constraint *constraint)
{
	static const struct {
		const char *code;
		const signed char *pool;
	} pools_x86[] = {{"Q", high_x86},   {"R", old_x86},     {"r", NULL},        {"q", NULL},
			 {"l", NULL},       {"g", NULL},        {"X", NULL},        {"x", vector_x86},
			 {"v", vector_x86}, {"Yi", vector_x86}, {"Yt", vector_x86}, {"Y2", vector_x86},
			 {"Yk", mask_x86},  {"k", mask_x86},    {"y", x87},         {"f", x87},
			 {"t", x87},        {"u", x87},         {"Ym", x87}},
	  pools_arm64[] = {{"r", general_arm64},    {"w", vector_arm64},  {"x", low_vector_arm64},
			   {"y", low_vector_arm64}, {"g", general_arm64}, {"X", general_arm64}};
	size_t count =
		assignment->x86 ? sizeof pools_x86 / sizeof pools_x86[0] : sizeof pools_arm64 / sizeof pools_arm64[0];
	for (size_t i = 0; i < count; i++) {
		if (!constraint_has_code(constraint, assignment->x86 ? pools_x86[i].code : pools_arm64[i].code))
			continue;
		const signed char *pool = assignment->x86 ? pools_x86[i].pool : pools_arm64[i].pool;
		return pool != NULL ? pool : assignment->old_only ? old_x86 : general_x86;
	}
	return NULL;
}

static int named_register(const struct assignment *assignment, const struct constraint *constraint)
{
	static const struct {
		const char *code;
		int number;
	} letters[] = {{"a", X86_RAX}, {"b", X86_RBX}, {"c", X86_RCX}, {"d", X86_RDX},
		       {"S", X86_RSI}, {"D", X86_RDI}, {"A", X86_RAX}, {"Yz", X86_ZMM0}};
	if (constraint->fixed != NULL)
		return machine_register_number(assignment->machine, constraint->fixed);
	for (size_t i = 0; assignment->x86 && i < sizeof letters / sizeof letters[0]; i++)
		if (constraint_has_code(constraint, letters[i].code))
			return letters[i].number;
	return REGISTER_NONE;
}

static char *describe(const struct constraint *constraint)
{
	cleanup_free char *codes = strlist_join(&constraint->codes, "");
	return constraint->fixed != NULL ? text_format("{%s}", constraint->fixed) : text_copy(codes);
}

static int not_known(const struct constraint *constraint, struct error *error)
{
	cleanup_free char *text = describe(constraint);
	return error_set(error, "the constraint \"%s\" is not known here", text);
}

/* What kind of operand it becomes.  Where the constraint leaves a choice, a constant stays one, then a register is
 * taken. */
static int choose_kind(const struct assignment *assignment, const struct constraint *constraint,
		       struct operand *operand, struct error *error)
{
	static const char *const constants[] = {"i", "n", "s", "e", "Z", "I", "J", "K", "L",  "M",  "N",
						"O", "G", "C", "E", "F", "X", "g", "S", "Ws", "Wd", NULL};
	static const char *const memories_x86[] = {"m", "o", "V", "g", "p", "<", ">", NULL};
	static const char *const memories_arm64[] = {"m", "o", "Q", "g", "p", "Ump", NULL};
	const char *const *memories = assignment->x86 ? memories_x86 : memories_arm64;
	bool blockaddress = operand->value != NULL && operand->value->text != NULL &&
			    text_starts_with(operand->value->text, "blockaddress");
	bool in_register = constraint->tie >= 0 || named_register(assignment, constraint) != REGISTER_NONE ||
			   register_pool(assignment, constraint) != NULL;
	bool in_memory = has_any_code(constraint, memories);
	bool as_value =
		constraint->kind == CONSTRAINT_INPUT && !constraint->indirect && has_any_code(constraint, constants);
	if (constraint->kind == CONSTRAINT_LABEL || (blockaddress && assignment->block->label_count > 0))
		operand->kind = OPERAND_LABEL;
	else if (constraint->fixed != NULL && text_starts_with(constraint->fixed, "@cc"))
		operand->kind = OPERAND_FLAG;
	else if (as_value && (is_constant(operand->value) || (!in_register && !in_memory)))
		operand->kind = OPERAND_IMMEDIATE;
	else if (in_register)
		operand->kind = OPERAND_REGISTER;
	else if (in_memory)
		operand->kind = OPERAND_MEMORY;
	else
		return not_known(constraint, error);
	/* "=*rm" names memory: the compiler takes it as such */
	if (constraint->indirect && operand->kind == OPERAND_REGISTER && in_memory)
		operand->kind = OPERAND_MEMORY;
	return 0;
}

static unsigned operand_bits(const struct operand *operand, const struct ir_value *value, bool indirect)
{
	unsigned bits = 0;
	if (value != NULL)
		bits = indirect ? (value->element != NULL ? ir_type_bits(value->element) : 0) : value->bits;
	if (operand->kind == OPERAND_MEMORY)
		return bits;
	return bits > 0 ? bits : 64;
}

/* Values in the order of the constraints: results for direct outputs, arguments for everything else. */
static int take_values(struct assignment *assignment, struct error *error)
{
	const struct ir_block *block = assignment->block;
	size_t result = 0;
	size_t argument = 0;
	size_t label = 0;
	for (size_t i = 0; i < assignment->operands->count; i++) {
		const struct constraint *constraint = &assignment->constraints->items[i];
		struct operand *operand = &assignment->operands->items[i];
		const struct ir_value *value = NULL;
		operand->output = constraint->kind == CONSTRAINT_OUTPUT;
		operand->input = constraint->kind == CONSTRAINT_INPUT;
		operand->early = constraint->early;
		operand->tie = constraint->tie;
		operand->number = REGISTER_NONE;
		if (operand->output && !constraint->indirect) {
			if (result == block->result_count)
				return error_set(error, "it has more outputs than its type has members");
			value = &block->results[result++];
		} else if (constraint->kind != CONSTRAINT_LABEL) {
			if (argument == block->argument_count)
				return error_set(error, "it has more operands than arguments");
			value = operand->value = &block->arguments[argument++];
		}
		if (choose_kind(assignment, constraint, operand, error) < 0)
			return -1;
		operand->bits = operand_bits(operand, value, constraint->indirect);
		if (operand->kind == OPERAND_LABEL)
			operand->number = (int)label++;
	}
	return 0;
}

static int take_fixed(struct assignment *assignment, struct error *error)
{
	for (size_t i = 0; i < assignment->operands->count; i++) {
		struct operand *operand = &assignment->operands->items[i];
		const struct constraint *constraint = &assignment->constraints->items[i];
		if (operand->kind != OPERAND_REGISTER)
			continue;
		operand->number = named_register(assignment, constraint);
		operand->fixed = operand->number != REGISTER_NONE;
		if (operand->fixed)
			assignment->taken |= REGISTER(operand->number);
		else if (constraint->fixed != NULL)
			return not_known(constraint, error);
	}
	return 0;
}

static int take_pools(struct assignment *assignment, struct error *error)
{
	struct operands *operands = assignment->operands;
	for (size_t i = 0; i < operands->count; i++) {
		struct operand *operand = &operands->items[i];
		const struct constraint *constraint = &assignment->constraints->items[i];
		if (operand->kind != OPERAND_REGISTER || operand->fixed || operand->tie >= 0)
			continue;
		const signed char *pool = register_pool(assignment, constraint);
		operand->number = pool != NULL ? take_free(assignment, pool) : REGISTER_NONE;
		if (pool == x87) /* one stack, whatever its depth */
			operand->number = X86_X87;
		if (operand->number == REGISTER_NONE)
			return error_set(error, "it asks for more registers than there are");
	}
	for (size_t i = 0; i < operands->count; i++) {
		struct operand *operand = &operands->items[i];
		if (operand->tie < 0 || operand->kind != OPERAND_REGISTER)
			continue;
		const struct operand *other = &operands->items[operand->tie];
		operand->kind = other->kind;
		operand->number = other->number;
	}
	return 0;
}

/* Operands behind the same pointer are the same memory: "+m" comes as "=*m,*m". */
static void share_memory(struct operands *operands, size_t index)
{
	struct operand *operand = &operands->items[index];
	operand->may_read = operand->input;
	operand->may_write = operand->output;
	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *other = &operands->items[i];
		if (other->kind != OPERAND_MEMORY || other->value == NULL || operand->value == NULL ||
		    strcmp(other->value->text, operand->value->text) != 0)
			continue;
		operand->may_read = operand->may_read || other->input;
		operand->may_write = operand->may_write || other->output;
	}
}

static int take_addresses(struct assignment *assignment, struct error *error)
{
	struct operands *operands = assignment->operands;
	for (size_t i = 0; i < operands->count; i++) {
		struct operand *operand = &operands->items[i];
		if (operand->kind != OPERAND_MEMORY)
			continue;
		operand->number = take_free(assignment, assignment->x86 ? general_x86 : general_arm64);
		if (operand->number == REGISTER_NONE)
			return error_set(error, "no register is left for the address of a memory operand");
		share_memory(operands, i);
		if (constraint_has_code(&assignment->constraints->items[i], "p"))
			operand->may_read = operand->may_write = false;
	}
	return 0;
}

static void gather(struct operands *operands)
{
	for (size_t i = 0; i < operands->count; i++) {
		const struct operand *operand = &operands->items[i];
		if (operand->kind == OPERAND_REGISTER && operand->output)
			operands->outputs |= REGISTER(operand->number);
		else if (operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_MEMORY)
			operands->inputs |= REGISTER(operand->number);
		if (operand->kind == OPERAND_FLAG)
			operands->flags |= FLAGS_STATUS;
	}
	operands->outputs |= operands->clobbers;
}

int operands_assign(struct operands *operands, const struct constraints *constraints, const struct ir_block *block,
		    const struct machine *machine, struct error *error)
{
	bool x86 = machine_kind(machine) == MACHINE_X86_64;
	struct assignment assignment = {.operands = operands,
					.constraints = constraints,
					.block = block,
					.machine = machine,
					.x86 = x86,
					.avoided = template_registers(machine, block->template),
					.old_only = x86 && asks_high_byte(block->template)};
	assignment.taken = x86 ? REGISTER(X86_RSP) : REGISTER(ARM_SP) | REGISTER(29) | REGISTER(19);
	operands->items = memory_new(constraints->count + 1, sizeof *operands->items);
	while (operands->count < constraints->count && constraints->items[operands->count].kind != CONSTRAINT_CLOBBER)
		operands->count++;
	for (size_t i = operands->count; i < constraints->count; i++) {
		if (constraints->items[i].kind != CONSTRAINT_CLOBBER)
			return error_set(error, "an operand stands behind the clobbers");
		take_clobber(&assignment, constraints->items[i].fixed);
	}
	if (take_values(&assignment, error) < 0 || take_fixed(&assignment, error) < 0 ||
	    take_pools(&assignment, error) < 0 || take_addresses(&assignment, error) < 0)
		return -1;
	gather(operands);
	return 0;
}

void operands_clear(struct operands *operands)
{
	free(operands->items);
	*operands = (struct operands){0};
}
