/* listing: the function that is meant, and what its IR, its MIR, its binary and cargo-show-asm say of it. */
#include <sys/stat.h>
#include <unistd.h>

#include "evidence/demangle.h"
#include "evidence/listing.h"
#include "place.h"

static const char poll_symbol[] = "_ZN97_$LT$core..future..from_generator..GenFuture$LT$T$GT$$u20$as$u20$core..future.."
				  "future..Future$GT$4poll17hf5ba9cc524a55840E";

static void read_data(const char *name, struct str *text)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = text_format("tests/unit/data/listing/%s", name);
	assert_done(fs_read_file(path, 0, text, &error), &error);
}

/* ---- names ---- */

static void symbols_are_read_as_people_know_them(void **state)
{
	(void)state;
	static const struct {
		const char *symbol, *name;
	} cases[] = {
		{poll_symbol, "<core::future::from_generator::GenFuture<T> as core::future::future::Future>::poll"},
		{"_ZN10reproducer11serial_task28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
		 "reproducer::serial_task::{{closure}}"},
		{"_RNCNvC4test4main0", "test::main::{closure#0}"},
		{"_Z3fooi", "foo(int)"},
		{"main", "main"},
		{"_start", "_start"},
		{"_ZN", "_ZN"},
		{"_R", "_R"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cleanup_free char *name = demangle(cases[i].symbol);
		assert_string_equal(name, cases[i].name);
	}
}

/* A tuple of two of the tuple before, sixty times over: 2^60 types in some 500 bytes. */
static void a_symbol_that_stands_for_too_much_stays_as_it_is(void **state)
{
	(void)state;
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	cleanup_str struct str symbol = {0};
	str_append(&symbol, "_RINvC1a1bu");
	size_t before = symbol.length - 3;
	for (int i = 0; i < 60; i++) {
		size_t start = symbol.length - 2;
		char back[8];
		if (before - 1 < 62)
			snprintf(back, sizeof back, "B%c_", digits[before - 1]);
		else
			snprintf(back, sizeof back, "B%c%c_", digits[(before - 1) / 62], digits[(before - 1) % 62]);
		str_append_format(&symbol, "T%s%sE", back, back);
		before = start;
	}
	str_append(&symbol, "E");
	cleanup_free char *name = demangle(str_text(&symbol));
	assert_string_equal(name, str_text(&symbol));
}

/* ---- given the functions of a program, when one is asked for, then it is found by every name that it has ---- */

static void add_functions(struct listing_functions *functions)
{
	listing_add(functions, "main", 0x1000, 10);
	listing_add(functions, "_ZN6serial4main17h0123456789abcdefE", 0x1100, 100);
	strlist_add(&listing_add(functions, poll_symbol, 0x1200, 5000)->inlined, "serial::serial_task::{{closure}}");
	listing_add(functions,
		    "_ZN4core3ptr69drop_in_place$LT$serial..serial_task..$u7b$$u7b$closure$u7d$$u7d$$GT$"
		    "17h0123456789abcdefE",
		    0x9000, 9000);
	listing_add(functions, "_ZN6serial11serial_task17h0123456789abcdefE", 0x8000, 20);
}

static void assert_chosen(const char *pattern, const struct strlist *symbols, const char *expected)
{
	cleanup_error struct error error = {0};
	cleanup_listing_functions struct listing_functions all = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_free char *said = NULL;
	cleanup_str struct str found = {0};
	add_functions(&all);
	assert_done(listing_choose(&all, pattern, symbols, &chosen, &said, &error), &error);
	assert_null(said);
	for (size_t i = 0; i < chosen.count; i++)
		str_append_format(&found, "%s%s%s;", chosen.items[i].name, chosen.items[i].why != NULL ? " for " : "",
				  chosen.items[i].why != NULL ? chosen.items[i].why : "");
	assert_string_equal(str_text(&found), expected);
}

static void the_named_come_before_the_inlined_and_glue_comes_last(void **state)
{
	(void)state;
	assert_chosen("serial_task", NULL,
		      "serial::serial_task;"
		      "<core::future::from_generator::GenFuture<T> as core::future::future::Future>::poll for "
		      "serial::serial_task::{{closure}};"
		      "core::ptr::drop_in_place<serial::serial_task::{{closure}}>;");
	assert_chosen("main$", NULL, "serial::main;main;");
	assert_chosen("^serial::(main|nothing)$", NULL, "serial::main;");
}

static void a_symbol_is_found_without_a_pattern(void **state)
{
	(void)state;
	cleanup_strlist struct strlist symbols = {0};
	strlist_add(&symbols, "main");
	assert_chosen(NULL, &symbols, "main;");
}

static void assert_refused(const char *pattern, const struct listing_functions *all, const char *says)
{
	cleanup_error struct error error = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_free char *said = NULL;
	assert_int_equal(listing_choose(all, pattern, NULL, &chosen, &said, &error), -1);
	assert_says(&error, says);
}

static void what_is_not_there_is_said_with_what_is_near(void **state)
{
	(void)state;
	cleanup_listing_functions struct listing_functions all = {0};
	assert_refused("serial", &all, "stripped");
	add_functions(&all);
	assert_refused("seriel_task", &all,
		       "none of the 5 functions matches \"seriel_task\"; the nearest name is \"serial::serial_task\"");
	assert_refused("serial(", &all, "\"serial(\" is no regular expression: ");
}

static void many_matches_are_cut_at_the_largest_eight(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_listing_functions struct listing_functions all = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_free char *said = NULL;
	for (unsigned i = 0; i < 12; i++) {
		cleanup_free char *symbol = text_format("f%u", i);
		listing_add(&all, symbol, i, i);
	}
	assert_done(listing_choose(&all, "^f", NULL, &chosen, &said, &error), &error);
	assert_int_equal(chosen.count, 8);
	assert_string_equal(chosen.items[0].symbol, "f11");
	assert_string_equal(chosen.items[7].symbol, "f4");
	assert_non_null(strstr(said, "12 functions match \"^f\": 8 are shown"));
}

/* ---- LLVM IR ---- */

static void ir_says_what_is_inlined_where(void **state)
{
	(void)state;
	cleanup_str struct str ir = {0};
	cleanup_listing_functions struct listing_functions functions = {0};
	read_data("serial.ll", &ir);
	listing_ir_functions(ir.data, ir.length, &functions);
	assert_int_equal(functions.count, 3);
	assert_string_equal(functions.items[0].symbol, poll_symbol);
	assert_int_equal(functions.items[0].inlined.count, 2);
	assert_string_equal(functions.items[0].inlined.items[0], "serial::Uart::head");
	assert_string_equal(functions.items[0].inlined.items[1], "serial::serial_task::{{closure}}");
	assert_int_equal(functions.items[1].inlined.count, 0);
	assert_string_equal(functions.items[2].symbol, "main");

	cleanup_listing_functions struct listing_functions binary = {0};
	listing_add(&binary, "other", 1, 1);
	listing_add(&binary, poll_symbol, 2, 2);
	listing_add_inlined(&binary, &functions);
	assert_int_equal(binary.items[0].inlined.count, 0);
	assert_int_equal(binary.items[1].inlined.count, 2);
}

static void ir_of_a_function_is_taken_whole_or_plain(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str ir = {0};
	cleanup_str struct str whole = {0};
	cleanup_str struct str plain = {0};
	read_data("serial.ll", &ir);
	assert_done(listing_ir(ir.data, ir.length, poll_symbol, false, &whole, &error), &error);
	assert_true(text_starts_with(str_text(&whole), "; <core::future"));
	assert_non_null(strstr(str_text(&whole), "llvm.dbg.value"));
	assert_true(text_ends_with(str_text(&whole), "\n}\n"));
	assert_done(listing_ir(ir.data, ir.length, poll_symbol, true, &plain, &error), &error);
	const char *body = strstr(str_text(&plain), "start:");
	assert_non_null(body);
	assert_string_equal(
		body, "start:\n"
		      "  %0 = load i64, i64* %self, align 8\n"
		      "  %1 = tail call i64 asm sideeffect inteldialect \"990: clr rax # } , !dbg \\22quoted\\22\", "
		      "\"=&{ax}\"()\n"
		      "  br label %bb1\n"
		      "\n"
		      "bb1:                                              ; preds = %start\n"
		      "  ret { i64, i64 } zeroinitializer\n"
		      "}\n");
}

static void newer_debug_records_are_left_out_too(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str ir = {0};
	cleanup_str struct str plain = {0};
	read_data("serial.ll", &ir);
	assert_done(listing_ir(ir.data, ir.length, "_ZN6serial4main17h0123456789abcdefE", true, &plain, &error),
		    &error);
	assert_string_equal(str_text(&plain),
			    "; serial::main\n"
			    "; Function Attrs: nonlazybind uwtable\n"
			    "define hidden void @_ZN6serial4main17h0123456789abcdefE() unnamed_addr #0 {\n"
			    "start:\n"
			    "  call void @outside()\n"
			    "  ret void\n"
			    "}\n");
}

static void ir_that_lacks_the_function_or_its_end_says_so(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str ir = {0};
	cleanup_str struct str text = {0};
	read_data("serial.ll", &ir);
	assert_int_equal(listing_ir(ir.data, ir.length, "outside", false, &text, &error), -1);
	assert_says(&error, "the LLVM IR, which defines 3 functions, does not define outside");
	size_t middle = (size_t)(strstr(ir.data, "  %1 = tail") - ir.data);
	assert_done(listing_ir(ir.data, middle, poll_symbol, false, &text, &error), &error);
	assert_true(text_ends_with(str_text(&text), "; the file ends within this function\n"));
}

static void the_file_that_defines_a_symbol_is_found(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist files = {0};
	static const char assembly[] = "\t.type g,@function\n\tcall f\n\"a b\":\ng:\n\tret\nmain2:\n";
	cleanup_free char *written = text_format("%s/x.cgu.1.rcgu.s", (const char *)*state);
	assert_done(fs_write_file(written, assembly, sizeof assembly - 1, &error), &error);
	strlist_add(&files, "/nonexistent.s");
	strlist_add(&files, written);
	strlist_add(&files, "tests/unit/data/listing/serial.ll");
	cleanup_free char *in_ir = listing_find_file(&files, "main", &error);
	assert_string_equal(in_ir, "tests/unit/data/listing/serial.ll");
	cleanup_free char *in_assembly = listing_find_file(&files, "g", &error);
	assert_string_equal(in_assembly, written);
	cleanup_free char *in_quotes = listing_find_file(&files, "a b", &error);
	assert_string_equal(in_quotes, written);
	assert_null(listing_find_file(&files, "f", &error));
	assert_says(&error, "none of 3 files defines f");
}

/* ---- MIR ---- */

static void assert_mir(const char *name, const char *starts, const char *lacks)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str mir = {0};
	cleanup_str struct str text = {0};
	read_data("serial.mir", &mir);
	assert_done(listing_mir(mir.data, mir.length, name, false, &text, &error), &error);
	if (!text_starts_with(str_text(&text), starts) || strstr(str_text(&text), lacks) != NULL)
		fail_msg("for %s:\n%s", name, str_text(&text));
}

static void mir_is_found_by_the_demangled_name(void **state)
{
	(void)state;
	assert_mir("serial::task::serial_task::{{closure}}", "fn serial_task::{closure#0}(", "{closure#1}");
	assert_mir("serial::task::serial_task::{closure#0}", "fn serial_task::{closure#0}(", "{closure#1}");
	assert_mir("serial::task::serial_task::{closure#0}::{closure#1}", "fn serial_task::{closure#0}::{closure#1}(",
		   "Pin<");
	assert_mir("serial::buffered::Uart::read::{{closure}}",
		   "fn buffered::<impl at src/uart.rs:27:5: 57:6>::read::{closure#0}(", "serial_task");
	assert_mir("<&mut serial::Read as core::future::Future>::poll",
		   "fn <impl at src/main.rs:1:1: 2:2>::poll(_1: Pin<&mut Read>", "Reader");
	assert_mir("serial::main", "fn main() -> () {\n", "read");
}

static void mir_without_a_function_says_so(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str mir = {0};
	cleanup_str struct str text = {0};
	read_data("serial.mir", &mir);
	assert_int_equal(listing_mir(mir.data, mir.length, "serial::task::{closure#7}", false, &text, &error), -1);
	assert_says(&error, "the MIR has no function serial::task::{closure#7}");
	/* an impl somewhere, but not of this type */
	assert_int_equal(listing_mir(mir.data, mir.length, "<core::a::GenFuture<b> as core::Future>::poll", false,
				     &text, &error),
			 -1);
}

static void plain_mir_has_no_comments_and_no_debug_lines(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_str struct str mir = {0};
	cleanup_str struct str text = {0};
	read_data("serial.mir", &mir);
	assert_done(listing_mir(mir.data, mir.length, "serial::serial_task::{{closure}}", true, &text, &error), &error);
	const char *body = strchr(str_text(&text), '\n') + 1;
	assert_string_equal(body, "    let mut _0: std::ops::GeneratorState<(), ()>;\n"
				  "    scope 1 {\n"
				  "    }\n"
				  "\n"
				  "    bb0: {\n"
				  "        _3 = const \"a // b\";\n"
				  "        goto -> bb1;\n"
				  "    }\n"
				  "}\n");
}

/* ---- the binary ---- */

static char *name_of(void *context, uint64_t address)
{
	(void)context;
	return address == 0x5000 ? text_copy("core::fmt::write") : NULL;
}

static char *source_of(void *context, uint64_t address)
{
	(void)context;
	return text_copy(address < 0x1003 ? "main.rs:7" : "main.rs:8");
}

static void a_function_has_names_labels_and_source_lines(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {0x48, 0x85, 0xff, 0x74, 0x05, 0xe8, 0xf6, 0x3f, 0x00, 0x00, 0xeb, 0xf4, 0x06};
	static const struct listing_names names = {.symbol = name_of, .source = source_of};
	static const uint64_t deciding[] = {0x1003};
	cleanup_error struct error error = {0};
	cleanup_machine struct machine *machine = NULL;
	cleanup_code struct code code = {0};
	cleanup_str struct str text = {0};
	assert_done(machine_open(&machine, 62, &error), &error);
	listing_disassemble(&code, machine, bytes, sizeof bytes, 0x1000, &names);
	listing_text(&code, deciding, 1, &text);
	assert_string_equal(str_text(&text), "                ; main.rs:7\n"
					     ".L1:\n"
					     "       1000  test rdi, rdi\n"
					     "                ; main.rs:8\n"
					     "=>     1003  je .L2\n"
					     "       1005  call core::fmt::write\n"
					     ".L2:\n"
					     "       100a  jmp .L1\n"
					     "       100c  .byte 0x06\n");
}

static void sources_are_read_below_their_roots_only(void **state)
{
	const char *place = *state;
	cleanup_error struct error error = {0};
	cleanup_listing_sources struct listing_sources sources = {0};
	cleanup_free char *root = text_format("%s/src", place);
	cleanup_free char *inside = text_format("%s/src/main.rs", place);
	cleanup_free char *outside = text_format("%s/secret", place);
	cleanup_free char *link = text_format("%s/src/link.rs", place);
	assert_done(fs_make_folder(root, &error), &error);
	assert_done(fs_write_file(inside, "one\n\t  two\r\nthree", 17, &error), &error);
	assert_done(fs_write_file(outside, "secret\n", 7, &error), &error);
	assert_int_equal(symlink(outside, link), 0);
	strlist_add(&sources.roots, root);
	static const struct {
		const char *file;
		long long line;
		const char *text;
	} cases[] = {{"src/main.rs", 2, "main.rs:2  two"},
		     {"src/main.rs", 3, "main.rs:3  three"},
		     {"src/main.rs", 4, "main.rs:4"},
		     {"src/main.rs", 0, "main.rs:0"},
		     {"secret", 1, "secret:1"},
		     {"src/link.rs", 1, "link.rs:1"},
		     {"src/../secret", 1, "secret:1"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cleanup_free char *file = path_join(place, cases[i].file);
		cleanup_free char *line = listing_source_line(&sources, file, cases[i].line);
		assert_string_equal(line, cases[i].text);
	}
}

/* ---- this very program ---- */

int this_calls_getenv(int a);

__attribute__((noinline)) static int add_then_triple(int a, int b)
{
	__asm__ volatile("" ::: "memory");
	return (a + b) * 3;
}

__attribute__((noinline)) int this_calls_getenv(int a)
{
	if (getenv("HOME") != NULL)
		a++;
	return add_then_triple(a, 2) + 1;
}

static void a_function_of_this_program_is_listed_by_its_own_symbols(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_binary struct binary *binary = NULL;
	cleanup_machine struct machine *machine = NULL;
	cleanup_listing_functions struct listing_functions all = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_listing_sources struct listing_sources sources = {0};
	cleanup_code struct code code = {0};
	cleanup_free char *said = NULL;
	cleanup_str struct str text = {0};
	char own[4096] = {0};
	assert_true(this_calls_getenv(1) >= 10);
	assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
	assert_done(binary_open(&binary, own, &error), &error);
	assert_done(machine_open(&machine, binary_machine(binary), &error), &error);
	listing_binary_functions(binary, &all);
	assert_done(listing_choose(&all, "^this_calls_getenv", NULL, &chosen, &said, &error), &error);
	cleanup_free char *root = realpath(".", NULL);
	strlist_add(&sources.roots, root);
	assert_done(listing_of_binary(binary, machine, &chosen.items[0], &sources, &code, &error), &error);
	listing_text(&code, NULL, 0, &text);
	if (strstr(str_text(&text), "getenv") == NULL || strstr(str_text(&text), "add_then_triple") == NULL ||
	    strstr(str_text(&text), "test_listing.c:") == NULL ||
	    strstr(str_text(&text), "return add_then_triple(") == NULL)
		fail_msg("%s", str_text(&text));
	struct listing_function elsewhere = {.symbol = chosen.items[0].symbol, .address = 1, .size = UINT64_MAX};
	assert_int_equal(listing_of_binary(binary, machine, &elsewhere, &sources, &code, &error), -1);
	assert_says(&error, "cannot be had");
}

/* ---- cargo-asm: what it is given, and what becomes of its answers ---- */

struct pretended {
	int calls;
	const char *list; /* what it prints for --json */
	const char *print;
	int status;
	struct str assembly; /* what it was given */
};

static int pretend(void *context, const struct strlist *command, const struct strmap *environment, const char *folder,
		   struct child_output *output, struct error *error)
{
	struct pretended *pretended = context;
	assert_true(path_exists(folder));
	assert_string_equal(command->items[1], "asm");
	cleanup_free char *copy = text_format("%s/deps/listing.s", strmap_get(environment, "HOME"));
	if (pretended->calls++ == 0) {
		assert_true(strlist_contains(command, "--json"));
		str_append(&output->output, pretended->list);
		return fs_read_file(copy, 0, &pretended->assembly, error);
	}
	assert_true(strlist_contains(command, "--rust"));
	assert_string_equal(command->items[command->count - 1], "4");
	str_append(&output->output, pretended->print);
	str_append(&output->errors, "\nsomething is wrong\nat length\n");
	output->status = pretended->status;
	return 0;
}

static const char list_with_it[] = "[{\"id\": 3, \"mangled_name\": \"f\"}, {\"id\": 4, \"mangled_name\": \"g\"}]";

static int list_function(const char *place, struct pretended *pretended, struct str *text, struct error *error)
{
	cleanup_free char *workspace = text_format("%s/src", place);
	cleanup_free char *folder = text_format("%s/listing", place);
	cleanup_free char *assembly = text_format("%s/program.s", place);
	cleanup_free char *main = text_format("%s/main.rs", workspace);
	cleanup_str struct str written = {0};
	assert_done(fs_make_folder(workspace, error), error);
	assert_done(fs_write_file(main, "fn main() {}\n", 13, error), error);
	str_append_format(&written,
			  "\t.file\t\"program\"\n\t.file\t0 \"%s\" \"main.rs\" md5 0x12\n\t.file\t1 "
			  "\"/rustc/1234/library/core\" \"option.rs\"\n"
			  "\t.file\t2 \"/etc/passwd\"\n\t.file\t99999999999 "
			  "\"main.rs\"\ng:\n\t.cfi_startproc\n\t.loc\t0 1 5\n\tnop\n\t.loc\t1 2 5\n"
			  "\t.loc\t2 1 1\n\t.loc\t7 1 1\n\tret\n",
			  workspace);
	assert_done(fs_write_file(assembly, written.data, written.length, error), error);
	struct listing_request request = {
		.program = "cargo-asm", .folder = folder, .assembly = assembly, .symbol = "g", .workspace = workspace};
	return listing_cargo_asm(&request, pretend, pretended, text, error);
}

static void cargo_asm_gets_only_what_it_may_read(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	struct pretended pretended = {.list = list_with_it, .print = "g:\n\tret\n"};
	assert_done(list_function(*state, &pretended, &text, &error), &error);
	assert_string_equal(str_text(&text), "g:\n\tret\n");
	assert_int_equal(pretended.calls, 2);
	cleanup_free char *expected =
		text_format("\t.file\t\"program\"\n\t.file\t0 \"%s/src\" \"main.rs\" md5 0x12\ng:\n\t.loc\t0 1 5\n"
			    "\tnop\n\tret\n",
			    (const char *)*state);
	assert_string_equal(str_text(&pretended.assembly), expected);
	str_clear(&pretended.assembly);
}

static void assert_cargo_asm_fails(void **state, struct pretended pretended, const char *says)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	assert_int_equal(list_function(*state, &pretended, &text, &error), -1);
	assert_says(&error, says);
	str_clear(&pretended.assembly);
}

static void what_cargo_asm_cannot_do_is_one_line(void **state)
{
	assert_cargo_asm_fails(state, (struct pretended){.list = list_with_it, .print = "", .status = 256},
			       "cargo-asm ended with exit status 1: something is wrong");
	assert_cargo_asm_fails(state, (struct pretended){.list = list_with_it, .print = ""},
			       "cargo-asm printed nothing for g");
	assert_cargo_asm_fails(state, (struct pretended){.list = "[]"},
			       "cargo-asm finds 0 functions in the assembly, but not g");
	assert_cargo_asm_fails(state, (struct pretended){.list = "oops"},
			       "cargo-asm's list of functions cannot be read");
}

static void a_missing_cargo_asm_is_said_with_its_cure(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = text_copy(getenv("PATH"));
	setenv("PATH", "/usr/bin:relative:", 1);
	cleanup_free char *missing = listing_find_cargo_asm(*state, &error);
	assert_null(missing);
	assert_says(&error, "make tools");
	cleanup_free char *bin = text_format("%s/bin", (const char *)*state);
	cleanup_free char *program = text_format("%s/cargo-asm", bin);
	assert_done(fs_make_folder(bin, &error), &error);
	assert_done(fs_write_file(program, "#!/bin/sh\n", 10, &error), &error);
	assert_int_equal(chmod(program, 0755), 0);
	cleanup_free char *own = listing_find_cargo_asm(*state, &error);
	assert_string_equal(own, program);
	setenv("PATH", bin, 1);
	cleanup_free char *on_path = listing_find_cargo_asm(NULL, &error);
	assert_string_equal(on_path, program);
	setenv("PATH", path, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_are_read_as_people_know_them),
		cmocka_unit_test(a_symbol_that_stands_for_too_much_stays_as_it_is),
		cmocka_unit_test(the_named_come_before_the_inlined_and_glue_comes_last),
		cmocka_unit_test(a_symbol_is_found_without_a_pattern),
		cmocka_unit_test(what_is_not_there_is_said_with_what_is_near),
		cmocka_unit_test(many_matches_are_cut_at_the_largest_eight),
		cmocka_unit_test(ir_says_what_is_inlined_where),
		cmocka_unit_test(ir_of_a_function_is_taken_whole_or_plain),
		cmocka_unit_test(newer_debug_records_are_left_out_too),
		cmocka_unit_test(ir_that_lacks_the_function_or_its_end_says_so),
		in_place(the_file_that_defines_a_symbol_is_found),
		cmocka_unit_test(mir_is_found_by_the_demangled_name),
		cmocka_unit_test(mir_without_a_function_says_so),
		cmocka_unit_test(plain_mir_has_no_comments_and_no_debug_lines),
		cmocka_unit_test(a_function_has_names_labels_and_source_lines),
		cmocka_unit_test(a_function_of_this_program_is_listed_by_its_own_symbols),
		in_place(sources_are_read_below_their_roots_only),
		in_place(cargo_asm_gets_only_what_it_may_read),
		in_place(what_cargo_asm_cannot_do_is_one_line),
		in_place(a_missing_cargo_asm_is_said_with_its_cure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
