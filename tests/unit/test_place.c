/*
 * Placing inline-assembly blocks in a binary: with clang, from a small program that is compiled, changed and placed
 * again.  Without clang those tests are skipped, out loud.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "evidence/flow.h"
#include "evidence/place.h"
#include "evidence/place_text.h"
#include "fs.h"

/* Two functions with blocks, a call and data between them, so that there are relocations to look past. */
static const char program[] =
	"extern int other(int); int table[4];\n"
	"#define RECORD(flags) \".pushsection set_dtrace_probes,\\\"aw\\\"\\n.balign 8\\n991: .4byte 992f-991b\\n.byte "
	"1, 0\\n.2byte \" flags \\\n"
	"  \"\\n.8byte 990b\\n.asciz \\\"prov\\\"\\n.asciz \\\"name\\\"\\n.balign 8\\n992: .popsection\"\n"
	"int probed(int a, int b) { int n = a - b; unsigned long e; table[1] = other(n);\n"
	"  __asm__ volatile(\"990: xorq %%rax, %%rax\\n\" RECORD(\"1\") : \"=a\"(e));\n"
	"  if (e) __asm__ volatile(\"990: nop\\n\" RECORD(\"0\") :: \"D\"(n));\n"
	"  return table[n & 3]; }\n"
	"int plain(int a) { __asm__ volatile(\"incl %0\" : \"+r\"(a)); __asm__ volatile(\"\" ::: \"memory\"); return "
	"a; }\n"
	"int other(int a) { return a + table[0]; }\n"
	"void _start(void) { table[0] = probed(1, 2) + plain(3); for (;;) ; }\n";

struct place {
	char *folder;
	char *source;
	char *assembly;
	char *binary;
	struct place_setup setup;
};

/* True where the command ended well. */
static bool run(const char *const *words)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_child_output struct child_output output = {0};
	cleanup_error struct error error = {0};
	for (; *words != NULL; words++)
		strlist_add(&command, *words);
	child_own_environment(&environment);
	return child_capture(&command, &environment, NULL, 60000, 1 << 16, &output, &error) == 0 && output.status == 0;
}

static int make_place(void **state)
{
	cleanup_error struct error error = {0};
	struct place *place = memory_new(1, sizeof *place);
	place->folder = text_copy("/tmp/test-place-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	place->source = path_join(place->folder, "program.c");
	place->assembly = path_join(place->folder, "program.s");
	place->binary = path_join(place->folder, "program");
	place->setup = (struct place_setup){.scratch = place->folder};
	assert_int_equal(fs_write_file(place->source, program, strlen(program), &error), 0);
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	cleanup_error struct error error = {0};
	fs_remove_tree(place->folder, &error);
	free(place->folder);
	free(place->source);
	free(place->assembly);
	free(place->binary);
	free(place);
	return 0;
}

static void build(const struct place *place)
{
	const char *const version[] = {"clang", "--version", NULL};
	const char *const compile[] = {"clang",
				       "--target=x86_64-linux-gnu",
				       "-O2",
				       "-g",
				       "-ffunction-sections",
				       "-fno-inline",
				       "-S",
				       "-o",
				       place->assembly,
				       place->source,
				       NULL};
	const char *const link[] = {"clang",
				    "--target=x86_64-linux-gnu",
				    "-nostdlib",
				    "-static",
				    "-Wl,-z,nognustack",
				    "-o",
				    place->binary,
				    place->assembly,
				    NULL};
	const char *const plain_link[] = {
		"clang", "--target=x86_64-linux-gnu", "-nostdlib", "-static", "-o", place->binary, place->assembly,
		NULL};
	if (!run(version)) {
		print_message("SKIPPED: clang is not installed\n");
		skip();
	}
	assert_true(run(compile));
	if (!run(link) && !run(plain_link)) {
		print_message("SKIPPED: clang cannot link for x86-64 here\n");
		skip();
	}
}

struct opened {
	struct binary *binary;
	struct machine *machine;
	struct regions regions;
	struct error error;
};

static void close_opened(struct opened *opened)
{
	regions_clear(&opened->regions);
	machine_close(&opened->machine);
	binary_close(&opened->binary);
	error_clear(&opened->error);
}

#define cleanup_opened __attribute__((cleanup(close_opened)))

static int place_all(struct opened *opened, const struct place *place)
{
	assert_int_equal(binary_open(&opened->binary, place->binary, &opened->error), 0);
	assert_int_equal(machine_open(&opened->machine, binary_machine(opened->binary), &opened->error), 0);
	return regions_place(&opened->regions, opened->binary, opened->machine, place->assembly, &place->setup,
			     &opened->error);
}

static void replace_in_assembly(const struct place *place, const char *find, const char *replacement)
{
	cleanup_str struct str text = {0};
	cleanup_str struct str changed = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(fs_read_file(place->assembly, 0, &text, &error), 0);
	char *at = strstr(str_text(&text), find);
	assert_non_null(at);
	str_append_bytes(&changed, text.data, (size_t)(at - text.data));
	str_append(&changed, replacement);
	str_append(&changed, at + strlen(find));
	assert_int_equal(fs_write_file(place->assembly, str_text(&changed), changed.length, &error), 0);
}

static void blocks_are_found_where_they_stand(void **state)
{
	const struct place *place = *state;
	build(place);
	cleanup_opened struct opened opened = {0};
	if (place_all(&opened, place) != 0)
		fail_msg("%s", error_text(&opened.error));
	assert_int_equal(opened.regions.count, 4);
	const struct region *asks = &opened.regions.items[0];
	assert_true(asks->placed);
	assert_string_equal(asks->symbol, "probed");
	assert_string_equal(asks->provider, "prov");
	assert_string_equal(asks->name, "name");
	assert_true(asks->is_enabled);
	assert_int_equal(asks->line, 5);
	assert_true(text_ends_with(asks->file, "program.c"));
	assert_int_equal(asks->end - asks->start, 3);
	assert_memory_equal(binary_bytes(opened.binary, asks->start, 3), "\x48\x31\xc0", 3);
	assert_false(opened.regions.items[1].is_enabled);
	assert_memory_equal(binary_bytes(opened.binary, opened.regions.items[1].start, 1), "\x90", 1);
	const struct region *counts = &opened.regions.items[2];
	assert_string_equal(counts->symbol, "plain");
	assert_null(counts->provider);
	assert_int_equal(counts->line, 8);
	assert_true(opened.regions.items[3].placed);
	assert_int_equal(opened.regions.items[3].start, opened.regions.items[3].end);
	/* The linked program's own records lead to the same places. */
	cleanup_regions struct regions probes = {0};
	assert_int_equal(regions_of_probes(&probes, opened.binary, opened.machine, &opened.error), 0);
	assert_int_equal(probes.count, 2);
	assert_int_equal(probes.items[0].start, asks->start);
	assert_int_equal(probes.items[0].end, asks->end);
	assert_string_equal(probes.items[0].text, "xor rax, rax");
}

static void another_program_is_not_trusted(void **state)
{
	const struct place *place = *state;
	build(place);
	replace_in_assembly(place, "incl", "decl");
	cleanup_opened struct opened opened = {0};
	assert_int_equal(place_all(&opened, place), 0);
	assert_int_equal(opened.regions.count, 4);
	assert_true(opened.regions.items[0].placed); /* its function is the same */
	assert_false(opened.regions.items[2].placed);
	assert_string_equal(opened.regions.items[2].reason,
			    "the binary's function has other instructions: it was not built from this assembly");
}

/* Each assembler fills the room before a loop with nops of its own taste. */
static void padding_of_another_form_is_no_difference(void **state)
{
	const struct place *place = *state;
	build(place);
	replace_in_assembly(place, "\n\tincl", "\n\tnopl (%rax)\n\tincl");
	const char *const link[] = {
		"clang", "--target=x86_64-linux-gnu", "-nostdlib", "-static", "-o", place->binary, place->assembly,
		NULL};
	assert_true(run(link));
	replace_in_assembly(place, "\n\tnopl (%rax)", "\n\tnop\n\tnop\n\tnop");
	cleanup_opened struct opened same = {0};
	assert_int_equal(place_all(&same, place), 0);
	assert_true(same.regions.items[2].placed);
	replace_in_assembly(place, "\n\tnop\n\tnop\n\tnop", "\n\tnop\n\tmov %al, %al");
	cleanup_opened struct opened other = {0};
	assert_int_equal(place_all(&other, place), 0);
	assert_false(other.regions.items[2].placed);
}

static void a_function_that_is_not_there_is_said(void **state)
{
	const struct place *place = *state;
	build(place);
	replace_in_assembly(place, "\nplain:", "\nplain:\nrenamed:");
	replace_in_assembly(place, ".type\tplain,@function", ".type\trenamed,@function");
	replace_in_assembly(place, ".size\tplain, ", ".size\trenamed, ");
	cleanup_opened struct opened opened = {0};
	assert_int_equal(place_all(&opened, place), 0);
	assert_false(opened.regions.items[2].placed);
	assert_true(text_starts_with(opened.regions.items[2].reason, "the binary has no function of that name"));
}

static void a_stripped_binary_is_said(void **state)
{
	const struct place *place = *state;
	build(place);
	const char *const strip[] = {"strip", place->binary, NULL};
	if (!run(strip)) {
		print_message("SKIPPED: strip is not installed\n");
		skip();
	}
	cleanup_opened struct opened opened = {0};
	assert_int_equal(place_all(&opened, place), 0);
	assert_string_equal(opened.regions.items[0].reason, "the binary is stripped: it names no functions");
	cleanup_error struct error error = {0};
	json_t *report = flow_binary(place->binary, NULL, &place->setup, &error);
	assert_non_null(report);
	assert_int_equal(json_array_size(json_object_get(report, "troubles")), 1);
	assert_int_equal(json_integer_value(json_object_get(report, "unknown")), 2);
	json_decref(report);
}

static void instructions_are_matched_whatever_the_registers(void **state)
{
	const struct place *place = *state;
	build(place);
	cleanup_opened struct opened opened = {0};
	assert_int_equal(place_all(&opened, place), 0);
	static const struct {
		const char *bytes;
		size_t size;
		size_t region;
		bool matches;
	} rows[] = {{"\x48\x31\xc0", 3, 0, true},      /* xor rax, rax */
		    {"\x48\x31\xc9", 3, 0, true},      /* xor rcx, rcx */
		    {"\x48\x29\xc0", 3, 0, false},     /* sub rax, rax */
		    {"\x48\x31\xc0\x90", 4, 0, false}, /* one more */
		    {"\xff\xc0", 2, 2, true},          /* inc eax */
		    {"\xff\x00", 2, 2, false},         /* inc dword ptr [rax] */
		    {"\x90", 1, 1, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_instructions struct instructions block = {0};
		assert_int_equal(machine_decode_all(opened.machine, (const uint8_t *)rows[i].bytes, rows[i].size, 0,
						    &block, &opened.error),
				 0);
		bool matches = region_matches(&opened.regions.items[rows[i].region], opened.binary, opened.machine,
					      block.items, block.count);
		if (matches != rows[i].matches)
			fail_msg("row %zu", i);
	}
}

static void a_whole_binary_is_reported(void **state)
{
	const struct place *place = *state;
	build(place);
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist assembly = {0};
	strlist_add(&assembly, place->assembly);
	json_t *report = flow_binary(place->binary, &assembly, &place->setup, &error);
	assert_non_null(report);
	assert_int_equal(json_array_size(json_object_get(report, "paths")), 3);
	assert_int_equal(json_array_size(json_object_get(report, "troubles")), 0);
	assert_int_equal(json_integer_value(json_object_get(report, "broken")), 0);
	assert_int_equal(json_integer_value(json_object_get(report, "sleeping")), 2);
	assert_int_equal(json_integer_value(json_object_get(report, "clean")), 1);
	json_decref(report);
	assert_null(flow_binary(place->source, NULL, &place->setup, &error));
	assert_non_null(strstr(error_text(&error), "not an ELF file"));
}

static void a_missing_or_refusing_assembler_is_one_line(void **state)
{
	const struct place *place = *state;
	build(place);
	cleanup_opened struct opened missing = {0};
	struct place other = *place;
	other.setup.clang = "/nonexistent/clang";
	assert_int_equal(place_all(&missing, &other), -1);
	assert_non_null(strstr(error_text(&missing.error), "/nonexistent/clang"));
	assert_null(strchr(error_text(&missing.error), '\n'));
	cleanup_opened struct opened refused = {0};
	replace_in_assembly(place, "incl", "frobnicate");
	assert_int_equal(place_all(&refused, place), -1);
	assert_non_null(strstr(error_text(&refused.error), "clang refuses it (error: invalid instruction mnemonic"));
	assert_int_equal(refused.regions.count, 4);
	assert_string_equal(refused.regions.items[0].reason, error_text(&refused.error));
}

/* The whole way on AArch64, where an object file stands for the program: a block that changes the flags and does not
 * say so. */
static void a_broken_path_is_found_on_aarch64(void **state)
{
	const struct place *place = *state;
	static const char careless[] = "int table[4]; extern int other(int);\n"
				       "int probed(int a, int b) { int n = a - b; table[1] = n;\n"
				       "  __asm__ volatile(\"adds x9, x9, #1\" ::: \"x9\");\n"
				       "  if (n) return other(n);\n"
				       "  return table[n & 3]; }\n";
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist assembly = {0};
	const char *const compile[] = {
		"clang", "--target=aarch64-linux-gnu", "-O2", "-S", "-o", place->assembly, place->source, NULL};
	const char *const assemble[] = {
		"clang", "--target=aarch64-linux-gnu", "-c", "-o", place->binary, place->assembly, NULL};
	assert_int_equal(fs_write_file(place->source, careless, strlen(careless), &error), 0);
	if (!run(compile) || !run(assemble)) {
		print_message("SKIPPED: no clang for AArch64 here\n");
		skip();
	}
	strlist_add(&assembly, place->assembly);
	json_t *report = flow_binary(place->binary, &assembly, &place->setup, &error);
	assert_non_null(report);
	assert_string_equal(json_string_value(json_object_get(report, "machine")), "AArch64");
	json_t *path = json_array_get(json_object_get(report, "paths"), 0);
	assert_string_equal(json_string_value(json_object_get(path, "state")), "broken");
	assert_string_equal(json_string_value(json_object_get(path, "function")), "probed");
	json_t *chain = json_object_get(path, "chain");
	assert_int_equal(json_array_size(chain), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(chain, 1), "text")), "adds x9, x9, #1");
	assert_string_equal(json_string_value(json_object_get(path, "taken")), "unknown");
	json_decref(report);
}

/* ---- the text alone: no clang needed ---- */

static void directives_that_read_files_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"\t.incbin \"/etc/passwd\"\n",
					    "\tnop; .include \"x\"\n",
					    "#APP\n.macro m\n.endm\n#NO_APP\n",
					    "label:.INCBIN \"x\"\n",
					    "\t.irp x, bin\n",
					    "\t.ascii \"a\nb\"; .include \"x\"\n",
					    "\t/* \" */ .include \"x\" /* \" */\n",
					    "\t.ascii \"a\\\\\"; .include \"x\"\n"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		cleanup_regions struct regions regions = {0};
		cleanup_str struct str labelled = {0};
		cleanup_error struct error error = {0};
		assert_int_equal(place_read_assembly(texts[i], &regions, &labelled, &error), -1);
		assert_non_null(strstr(error_text(&error), " is refused: "));
	}
	cleanup_regions struct regions regions = {0};
	cleanup_str struct str labelled = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(place_read_assembly("\t.ascii \"say .include x\"\nx.include y\n", &regions, &labelled, &error),
			 0);
}

static void marks_that_do_not_match_are_said(void **state)
{
	(void)state;
	static const char *const texts[][2] = {{"#APP\n#APP\n", "line 2: #APP inside of a block"},
					       {"\n#NO_APP\n", "line 2: #NO_APP without #APP"},
					       {"#APP\nnop\n", "cut off inside of a block"}};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		cleanup_regions struct regions regions = {0};
		cleanup_str struct str labelled = {0};
		cleanup_error struct error error = {0};
		assert_int_equal(place_read_assembly(texts[i][0], &regions, &labelled, &error), -1);
		assert_string_equal(error_text(&error), texts[i][1]);
	}
}

static void lines_and_files_come_from_loc(void **state)
{
	(void)state;
	static const char text[] = "\t.file\t1 \"/src/dep\" \"lib.rs\"\n\t.file\t2 \"/abs/main.rs\" md5 0x1\n\t.loc\t1 "
				   "12 5\n\t#APP\n\n\tnop\n"
				   "\t#NO_APP\n\t.loc\t2 0 0 is_stmt 0\n\t//APP\n\tclr\tx0\n\tret\n\t//NO_APP\n\t.loc "
				   "99 1 1\n#APP\n#NO_APP";
	cleanup_regions struct regions regions = {0};
	cleanup_str struct str labelled = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(place_read_assembly(text, &regions, &labelled, &error), 0);
	assert_int_equal(regions.count, 3);
	assert_string_equal(regions.items[0].file, "/src/dep/lib.rs");
	assert_int_equal(regions.items[0].line, 12);
	assert_string_equal(regions.items[0].text, "nop");
	assert_string_equal(regions.items[1].file, "/abs/main.rs");
	assert_int_equal(regions.items[1].line, 0);
	assert_string_equal(regions.items[1].text, "clr\tx0\nret");
	assert_null(regions.items[2].file);
	assert_non_null(strstr(str_text(&labelled), LABEL_BEFORE "1:\n\tclr\tx0\n\tret\n" LABEL_BEHIND "1:\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocks_are_found_where_they_stand, make_place, remove_place),
		cmocka_unit_test_setup_teardown(another_program_is_not_trusted, make_place, remove_place),
		cmocka_unit_test_setup_teardown(padding_of_another_form_is_no_difference, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_function_that_is_not_there_is_said, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_stripped_binary_is_said, make_place, remove_place),
		cmocka_unit_test_setup_teardown(instructions_are_matched_whatever_the_registers, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(a_whole_binary_is_reported, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_missing_or_refusing_assembler_is_one_line, make_place, remove_place),
		cmocka_unit_test_setup_teardown(a_broken_path_is_found_on_aarch64, make_place, remove_place),
		cmocka_unit_test(directives_that_read_files_are_refused),
		cmocka_unit_test(marks_that_do_not_match_are_said),
		cmocka_unit_test(lines_and_files_come_from_loc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
