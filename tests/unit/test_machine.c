/*
 * What single instructions do, as bytes with the facts beside them: a row for every correction of capstone's word, and
 * for what is common enough to be relied upon.  The facts are those of Intel's and Arm's manuals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/machine.h"

struct row {
	const char *bytes; /* hexadecimal */
	const char *text;
	const char *facts; /* as from facts_text */
};

static const struct row x86_rows[] = {
#include "data/machine_x86.inc"
};

static const struct row arm_rows[] = {
#include "data/machine_arm64.inc"
};

static size_t from_hex(const char *text, uint8_t *bytes, size_t room)
{
	size_t count = 0;
	unsigned value;
	for (; text[2 * count] != '\0' && count < room; count++) {
		assert_int_equal(sscanf(text + 2 * count, "%2x", &value), 1);
		bytes[count] = (uint8_t)value;
	}
	return count;
}

static void add_registers(struct str *text, const struct machine *machine, const char *label, register_set registers)
{
	if (registers == 0)
		return;
	str_append_format(text, "%s%s ", text->length > 0 ? "; " : "", label);
	machine_registers_text(machine, registers, text);
}

static void add_flags(struct str *text, const char *label, flag_set flags)
{
	if (flags == 0)
		return;
	str_append_format(text, "%s%s ", text->length > 0 ? "; " : "", label);
	machine_flags_text(flags, text);
}

static void add(struct str *text, const char *word)
{
	str_append_format(text, "%s%s", text->length > 0 ? "; " : "", word);
}

static void add_flow(struct str *text, const struct instruction *instruction)
{
	static const char *const flows[] = {NULL, "jump", "branch", "call", "return", "trap", "system"};
	static const char *const shapes[] = {NULL,        "move",     "exchange",   "push", "pop",    "push flags",
					     "pop flags", "flags to", "flags from", "zero", "nothing"};
	if (flows[instruction->flow] != NULL)
		add(text, flows[instruction->flow]);
	if (instruction->target_known)
		str_append_format(text, " to %llu", (unsigned long long)instruction->target);
	if (shapes[instruction->shape] != NULL)
		add(text, shapes[instruction->shape]);
}

/* All facts as one line; what does not apply is left out. */
static char *facts_text(const struct machine *machine, const struct instruction *instruction)
{
	struct str text = {0};
	add_registers(&text, machine, "reads", instruction->registers_read);
	add_registers(&text, machine, "narrow", instruction->registers_narrow);
	add_registers(&text, machine, "writes", instruction->registers_written);
	add_registers(&text, machine, "keeps", instruction->registers_kept);
	add_flags(&text, "asks", instruction->flags_read);
	add_flags(&text, "sets", instruction->flags_written);
	add_flags(&text, "or not", instruction->flags_kept);
	add_flags(&text, "undefined", instruction->flags_undefined);
	add_flags(&text, "0:", instruction->flags_cleared);
	add_flags(&text, "1:", instruction->flags_set);
	if (instruction->memory_read || instruction->memory_written)
		add(&text, !instruction->memory_written ? "loads"
			   : instruction->memory_read   ? "loads and stores"
							: "stores");
	if (instruction->stack_pushed)
		add(&text, "pushes");
	if (instruction->stack_popped)
		add(&text, "pops");
	if (instruction->stack_moved && instruction->stack_known) {
		add(&text, "stack ");
		str_append_format(&text, "%+lld", (long long)instruction->stack_change);
	} else if (instruction->stack_moved)
		add(&text, "stack anywhere");
	add_flow(&text, instruction);
	return str_steal(&text);
}

static struct machine *open_machine(unsigned kind)
{
	struct machine *machine = NULL;
	cleanup_error struct error error = {0};
	if (machine_open(&machine, kind, &error) != 0)
		fail_msg("%s", error_text(&error));
	return machine;
}

static void check_rows(struct machine *machine, const struct row *rows, size_t count)
{
	unsigned wrong = 0;
	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[16];
		size_t size = from_hex(rows[i].bytes, bytes, sizeof bytes);
		struct instruction instruction;
		if (!machine_decode(machine, bytes, size, 0, &instruction)) {
			print_error("%s (%s): not decoded\n", rows[i].text, rows[i].bytes);
			wrong++;
			continue;
		}
		cleanup_free char *text = instruction_text(&instruction);
		cleanup_free char *facts = facts_text(machine, &instruction);
		if (instruction.size != size || strcmp(text, rows[i].text) != 0 || strcmp(facts, rows[i].facts) != 0) {
			print_error("\t{\"%s\", \"%s\", \"%s\"},\n", rows[i].bytes, text, facts);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void x86_instructions_do_what_the_manual_says(void **state)
{
	(void)state;
	cleanup_machine struct machine *machine = open_machine(62);
	check_rows(machine, x86_rows, sizeof x86_rows / sizeof *x86_rows);
}

static void arm_instructions_do_what_the_manual_says(void **state)
{
	(void)state;
	cleanup_machine struct machine *machine = open_machine(183);
	check_rows(machine, arm_rows, sizeof arm_rows / sizeof *arm_rows);
}

static void no_instruction_is_said_with_its_bytes_and_place(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {0x90, 0x48, 0x31, 0xc0, 0x06, 0xff, 0x06, 0x06};
	cleanup_machine struct machine *machine = open_machine(62);
	cleanup_instructions struct instructions instructions = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(machine_decode_all(machine, bytes, sizeof bytes, 0x1000, &instructions, &error), -1);
	assert_int_equal(instructions.count, 2);
	assert_int_equal(instructions.decoded, 4);
	assert_string_equal(error_text(&error), "the bytes 06 ff 06 06 at 0x1004 are no instruction known here");
}

static void a_cut_off_instruction_is_none(void **state)
{
	(void)state;
	cleanup_machine struct machine *machine = open_machine(62);
	cleanup_machine struct machine *arm = open_machine(183);
	static const uint8_t bytes[] = {0x48, 0x31, 0xc0, 0x00};
	struct instruction instruction;
	for (size_t size = 0; size < 3; size++)
		assert_false(machine_decode(machine, bytes, size == 1 ? 1 : 0, 0, &instruction));
	for (size_t size = 0; size < 4; size++)
		assert_false(machine_decode(arm, bytes, size, 0, &instruction));
}

static void machines_are_known_by_number_and_by_triple(void **state)
{
	(void)state;
	static const struct {
		const char *triple;
		int kind;
	} rows[] = {{"x86_64-unknown-linux-gnu", MACHINE_X86_64},
		    {"x86_64", MACHINE_X86_64},
		    {"aarch64-unknown-linux-musl", MACHINE_AARCH64},
		    {"arm64-apple-macosx11.0.0", MACHINE_AARCH64},
		    {"i686-unknown-linux-gnu", -1},
		    {"riscv64gc-unknown-none", -1},
		    {"", -1}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_machine struct machine *machine = NULL;
		cleanup_error struct error error = {0};
		assert_int_equal(machine_open_triple(&machine, rows[i].triple, &error), rows[i].kind < 0 ? -1 : 0);
		if (machine != NULL)
			assert_int_equal(machine_kind(machine), rows[i].kind);
		else
			assert_non_null(strstr(error_text(&error), "neither x86-64 nor AArch64"));
	}
	struct machine *none = NULL;
	cleanup_error struct error error = {0};
	assert_int_equal(machine_open(&none, 8, &error), -1);
	assert_string_equal(error_text(&error),
			    "the machine (ELF e_machine 8) is neither x86-64 nor AArch64: its code cannot be read");
}

static void registers_have_the_names_of_all_their_parts(void **state)
{
	(void)state;
	cleanup_machine struct machine *x86 = open_machine(62);
	cleanup_machine struct machine *arm = open_machine(183);
	static const struct {
		const char *name;
		int number;
	} x86_names[] = {{"rax", 0},   {"eax", 0},    {"ah", 0},   {"bl", X86_RBX}, {"sil", X86_RSI}, {"r8d", 8},
			 {"r15w", 15}, {"r9b", 9},    {"r10", 10}, {"xmm3", 19},    {"ymm31", 47},    {"zmm0", 16},
			 {"k7", 55},   {"st(1)", 56}, {"st", 56},  {"mm4", 56},     {"r16", -1},      {"xmm32", -1},
			 {"r8x", -1},  {"flags", -1}, {"", -1},    {"r7d", -1}},
	  arm_names[] = {{"x0", 0},  {"w30", 30}, {"lr", 30},  {"fp", 29}, {"sp", 31},
			 {"d7", 39}, {"v31", 63}, {"x31", -1}, {"cc", -1}};
	for (size_t i = 0; i < sizeof x86_names / sizeof *x86_names; i++)
		assert_int_equal(machine_register_number(x86, x86_names[i].name), x86_names[i].number);
	for (size_t i = 0; i < sizeof arm_names / sizeof *arm_names; i++)
		assert_int_equal(machine_register_number(arm, arm_names[i].name), arm_names[i].number);
	for (int i = 0; i <= X86_X87; i++)
		assert_int_equal(machine_register_number(x86, machine_register_name(x86, i)), i);
	for (int i = 0; i < 64; i++)
		assert_int_equal(machine_register_number(arm, machine_register_name(arm, i)), i);
}

/* Every condition, against every setting of the flags that it may ask for. */
static void conditions_come_to_what_the_flags_say(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 32; bits++) {
		bool o = bits & 1, c = bits & 2, z = bits & 4, s = bits & 8, p = bits & 16;
		bool x86[16] = {o, !o, c, !c, z,      !z,     c || z,      !c && !z,
				s, !s, p, !p, s != o, s == o, z || s != o, !z && s == o};
		bool arm[16] = {z,       !z,     c,      !c,           s,           !s,   o,   !o, c && !z,
				!c || z, s == o, s != o, !z && s == o, z || s != o, true, true};
		flag_set x86_flags = (o ? FLAG_OF : 0u) | (c ? FLAG_CF : 0u) | (z ? FLAG_ZF : 0u) | (s ? FLAG_SF : 0u) |
				     (p ? FLAG_PF : 0u);
		flag_set arm_flags = (o ? FLAG_V : 0u) | (c ? FLAG_C : 0u) | (z ? FLAG_Z : 0u) | (s ? FLAG_N : 0u);
		for (int i = 0; i < 16; i++) {
			assert_int_equal(machine_condition(1 + i, FLAGS_X86_STATUS, x86_flags), x86[i]);
			assert_int_equal(machine_condition(33 + i, FLAGS_NZCV, arm_flags), arm[i]);
		}
	}
	for (int i = 0; i < 16; i++)
		assert_int_equal(machine_condition(1 + i, 0, 0), -1);
	assert_int_equal(machine_condition(1 + 6, FLAG_ZF, FLAG_ZF), 1); /* be: ZF alone is enough */
	assert_int_equal(machine_condition(1 + 7, FLAG_ZF, FLAG_ZF), 0); /* a: and for its opposite */
	assert_int_equal(machine_condition(1 + 6, FLAG_ZF, 0), -1);
	assert_int_equal(machine_condition(33 + 8, FLAG_Z, FLAG_Z), 0);
	assert_int_equal(machine_condition(0, FLAGS_STATUS, 0), -1);
}

static void addresses_are_told_apart(void **state)
{
	(void)state;
	cleanup_machine struct machine *machine = open_machine(62);
	static const uint8_t relative[] = {0x48, 0x8b, 0x05, 0x10, 0, 0, 0};       /* mov rax, [rip + 0x10] */
	static const uint8_t local[] = {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}; /* mov rax, fs:[0] */
	static const uint8_t indexed[] = {0x48, 0x8b, 0x44, 0x8b, 0xf8};           /* mov rax, [rbx + rcx*4 - 8] */
	struct instruction instruction;
	assert_true(machine_decode(machine, relative, sizeof relative, 0x1000, &instruction));
	assert_true(instruction.memory[0].relative);
	assert_int_equal(instruction.memory[0].address, 0x1017);
	assert_int_equal(instruction.memory[0].base, REGISTER_NONE);
	assert_true(machine_decode(machine, local, sizeof local, 0, &instruction));
	assert_true(instruction.memory[0].segment);
	assert_true(machine_decode(machine, indexed, sizeof indexed, 0, &instruction));
	assert_int_equal(instruction.memory[0].base, X86_RBX);
	assert_int_equal(instruction.memory[0].index, X86_RCX);
	assert_int_equal(instruction.memory[0].scale, 4);
	assert_int_equal(instruction.memory[0].displacement, -8);
	assert_int_equal(instruction.memory[0].size, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_instructions_do_what_the_manual_says),
		cmocka_unit_test(arm_instructions_do_what_the_manual_says),
		cmocka_unit_test(no_instruction_is_said_with_its_bytes_and_place),
		cmocka_unit_test(a_cut_off_instruction_is_none),
		cmocka_unit_test(machines_are_known_by_number_and_by_triple),
		cmocka_unit_test(registers_have_the_names_of_all_their_parts),
		cmocka_unit_test(conditions_come_to_what_the_flags_say),
		cmocka_unit_test(addresses_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
