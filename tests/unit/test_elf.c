/*
 * Reading ELF files: this very program is the example.  It carries a function with probe records of both kinds, symbols
 * and, as it is built, debugging information.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence/demangle.h"
#include "evidence/elf.h"
#include "fs.h"

/* What usdt's standard backend and SystemTap's sdt.h write, in a function that is easy to find. */
int probed_function_of_test_elf(int value);

#define RECORD(flags, arguments, extra)                                                                                \
	"\t.pushsection set_dtrace_probes,\"aw\",\"progbits\"\n\t.balign 8\n991:\t.4byte 992f-991b\n\t.byte "          \
	"1\n\t.byte " arguments "\n\t.2byte " flags                                                                    \
	"\n\t.8byte 990b\n\t.asciz \"testing\"\n\t.asciz \"a-probe\"\n" extra "\t.balign 8\n992:\t.popsection\n"

__attribute__((noinline)) int probed_function_of_test_elf(int value)
{
	__asm__ volatile("990:\tnop\n" RECORD("1", "0", "")::: "memory");
	__asm__ volatile("990:\tnop\n" RECORD("0", "2", "\t.asciz \"int\"\n\t.asciz \"char\"\n")::: "memory");
	__asm__ volatile(
		"990:\tnop\n\t.pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f, 994f-993f, 3\n"
		"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n\t.8byte 0\n"
		"\t.asciz \"noted\"\n\t.asciz \"point\"\n\t.asciz \"-4@4(%%rsp) 8@%%rax\"\n994:\t.balign "
		"4\n\t.popsection\n"
		"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n\t.weak _.stapsdt.base\n"
		"\t.hidden _.stapsdt.base\n_.stapsdt.base:\t.space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n" ::
			: "memory");
	return value + 1;
}

/* The linker defines these around the section, which keeps it. */
extern const char start_of_probes[] __asm__("__start_set_dtrace_probes");

static char own_path[4096];

static struct binary *open_self(void)
{
	struct binary *binary = NULL;
	cleanup_error struct error error = {0};
	if (binary_open(&binary, own_path, &error) != 0)
		fail_msg("%s", error_text(&error));
	return binary;
}

static void functions_are_found_by_name_and_address(void **state)
{
	(void)state;
	cleanup_binary struct binary *binary = open_self();
	size_t count = 0;
	const struct binary_function *functions = binary_functions(binary, &count);
	assert_true(count > 20);
	size_t index = binary_function_named(binary, "probed_function_of_test_elf", 0);
	assert_true(index < count);
	const struct binary_function *function = &functions[index];
	assert_ptr_equal(binary_function_at(binary, function->address + function->size - 1), function);
	assert_ptr_equal(binary_function_at(binary, function->address), function);
	assert_true(binary_function_at(binary, function->address - 1) != function);
	assert_null(binary_function_at(binary, UINT64_MAX));
	assert_int_equal(binary_function_named(binary, "no such function", 0), count);
	uint64_t address = 0;
	assert_true(binary_symbol(binary, "probed_function_of_test_elf", &address));
	assert_int_equal(address, function->address);
	assert_false(binary_symbol(binary, "no such function", &address));
	assert_false(binary_is_object(binary));
}

static void bytes_are_those_that_run(void **state)
{
	(void)state;
	cleanup_binary struct binary *binary = open_self();
	size_t count = 0;
	const struct binary_function *functions = binary_functions(binary, &count);
	const struct binary_function *function =
		&functions[binary_function_named(binary, "probed_function_of_test_elf", 0)];
	const uint8_t *bytes = binary_bytes(binary, function->address, (size_t)function->size);
	assert_non_null(bytes);
	int (*const running)(int) = probed_function_of_test_elf;
	const void *code;
	memcpy(&code, &running, sizeof code);
	assert_memory_equal(bytes, code, (size_t)function->size);
	const char *name;
	uint64_t start, size;
	assert_true(binary_section_at(binary, function->address, &name, &start, &size));
	assert_true(text_starts_with(name, ".text"));
	assert_null(binary_bytes(binary, function->address, (size_t)size + 1));
	assert_null(binary_bytes(binary, start + size - 1, SIZE_MAX));
	assert_null(binary_bytes(binary, UINT64_MAX - 3, 8));
}

static void probe_records_of_both_kinds_are_read(void **state)
{
	(void)state;
	assert_true(start_of_probes[0] != 0);
	assert_int_equal(probed_function_of_test_elf(1), 2);
	cleanup_binary struct binary *binary = open_self();
	cleanup_binary_probes struct binary_probes probes = {0};
	cleanup_error struct error error = {0};
	if (binary_probes(binary, &probes, &error) != 0)
		fail_msg("%s", error_text(&error));
	assert_int_equal(probes.count, 3);
	for (size_t i = 0; i < probes.count; i++) {
		const struct binary_function *function = binary_function_at(binary, probes.items[i].address);
		assert_non_null(function);
		assert_string_equal(function->symbol, "probed_function_of_test_elf");
	}
	assert_string_equal(probes.items[0].provider, "testing");
	assert_string_equal(probes.items[0].name, "a-probe");
	assert_true(probes.items[0].is_enabled);
	assert_false(probes.items[1].is_enabled);
	assert_int_equal(probes.items[1].arguments, 2);
	assert_int_equal(probes.items[2].source, PROBE_STAPSDT);
	assert_string_equal(probes.items[2].provider, "noted");
	assert_string_equal(probes.items[2].name, "point");
	assert_int_equal(probes.items[2].arguments, 2);
}

static void lines_lead_back_to_the_source(void **state)
{
	(void)state;
	cleanup_binary struct binary *binary = open_self();
	uint64_t address = 0;
	assert_true(binary_symbol(binary, "probed_function_of_test_elf", &address));
	if (!binary_has_lines(binary)) {
		print_message("SKIPPED: built without debugging information\n");
		skip();
	}
	cleanup_source_frames struct source_frames frames = {0};
	binary_frames(binary, address, true, &frames);
	assert_int_equal(frames.count, 1);
	assert_true(text_ends_with(frames.items[0].file, "tests/unit/test_elf.c"));
	assert_true(frames.items[0].line > 20 && frames.items[0].line < 60);
	assert_string_equal(frames.items[0].function, "probed_function_of_test_elf");
	cleanup_source_frames struct source_frames none = {0};
	binary_frames(binary, 1, true, &none);
	assert_int_equal(none.count, 0);
}

static void expect_refusal(const void *bytes, size_t size, const char *start)
{
	struct binary *binary = NULL;
	cleanup_error struct error error = {0};
	assert_int_equal(binary_open_memory(&binary, bytes, size, "x", &error), -1);
	assert_null(binary);
	if (strstr(error_text(&error), start) == NULL)
		fail_msg("%s", error_text(&error));
	assert_null(strchr(error_text(&error), '\n'));
}

static void what_is_no_such_file_is_said_in_one_line(void **state)
{
	(void)state;
	cleanup_str struct str contents = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(fs_read_file(own_path, 1 << 28, &contents, &error), 0);
	char *bytes = contents.data;
	size_t size = contents.length;
	expect_refusal("", 0, "not an ELF file");
	expect_refusal("#!/bin/sh\n", 10, "not an ELF file");
	expect_refusal("!<arch>\nlibx.a          ", 24, "n");
	expect_refusal(bytes, 40, "x: ");
	expect_refusal(bytes, size / 2, "x: cut off: its section headers should be at ");
	char class = bytes[4], order = bytes[5];
	bytes[4] = 1;
	expect_refusal(bytes, size, "32 bits");
	bytes[4] = class;
	bytes[5] = 2;
	expect_refusal(bytes, size, "x: ");
	bytes[5] = order;
	struct binary *binary = NULL;
	assert_int_equal(binary_open(&binary, "/nonexistent", &error), -1);
	assert_string_equal(error_text(&error), "/nonexistent: No such file or directory");
	assert_int_equal(binary_open(&binary, "/", &error), -1);
	assert_string_equal(error_text(&error), "/: not a regular file");
}

/* Cut at many places and with bytes changed: an error or an answer, never anything worse. */
static void damage_does_no_harm(void **state)
{
	(void)state;
	cleanup_str struct str contents = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(fs_read_file(own_path, 1 << 28, &contents, &error), 0);
	char *bytes = contents.data;
	size_t size = contents.length;
	for (size_t i = 0; i < 64; i++) {
		cleanup_binary struct binary *binary = NULL;
		cleanup_binary_probes struct binary_probes probes = {0};
		cleanup_error struct error trouble = {0};
		char kept = bytes[i];
		bytes[i] = (char)(kept ^ 0x55);
		if (binary_open_memory(&binary, bytes, i % 2 ? size : size - size / 64 * i, "damaged", &trouble) == 0) {
			binary_probes(binary, &probes, &trouble);
			binary_function_at(binary, 0x1000);
			binary_bytes(binary, 0x1000, 16);
		} else
			assert_true(text_starts_with(error_text(&trouble), "damaged: "));
		bytes[i] = kept;
	}
}

static void symbols_read_as_people_write_them(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"},
		{"_ZN97_$LT$core..future..from_generator..GenFuture$LT$T$GT$$u20$as$u20$core..future..future..Future$"
		 "GT$4poll"
		 "17hf5ba9cc524a55840E",
		 "<core::future::from_generator::GenFuture<T> as core::future::future::Future>::poll"},
		{"_ZN3std9panicking11begin_panic28_$u7b$$u7b$closure$u7d$$u7d$17ha4f7e016b7dc4878E",
		 "std::panicking::begin_panic::{{closure}}"},
		{"_ZN3foo3barE", "foo::bar"}, /* C++ */
		{"_ZN99fooE", "_ZN99fooE"},
		{"_ZN", "_ZN"},
		{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
		{"_RNCNvCs1234_7mycrate4main0B3_", "mycrate::main::{closure#0}"},
		{"_RNvC", "_RNvC"},
		{"_R", "_R"},
		{"main", "main"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_free char *text = demangle(rows[i][0]);
		assert_string_equal(text, rows[i][1]);
	}
}

int main(int count, char **arguments)
{
	(void)count;
	if (realpath(arguments[0], own_path) == NULL)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_name_and_address),
		cmocka_unit_test(bytes_are_those_that_run),
		cmocka_unit_test(probe_records_of_both_kinds_are_read),
		cmocka_unit_test(lines_lead_back_to_the_source),
		cmocka_unit_test(what_is_no_such_file_is_said_in_one_line),
		cmocka_unit_test(damage_does_no_harm),
		cmocka_unit_test(symbols_read_as_people_write_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
