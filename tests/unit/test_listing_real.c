/*
 * listing and compare on what real compilers leave: each toolchain at hand builds data/listing/serial.rs, and the async
 * function in it is found and shown in every form.  Without a compiler, or without cargo-asm, what needs it is skipped
 * and says so.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evidence/listing.h"
#include "place.h"

/* ---- the compilers ---- */

static char *toolchains_folder(void)
{
	const char *set = getenv("BISECTD_TOOLCHAINS");
	return text_copy(set != NULL ? set : "var/toolchains");
}

/* rustc of every folder there, else the one on PATH. */
static void find_compilers(struct strlist *compilers)
{
	cleanup_error struct error error = {0};
	cleanup_free char *folder = toolchains_folder();
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(folder, &names, &error) < 0)
		strlist_clear(&names);
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *rustc = text_format("%s/%s/bin/rustc", folder, names.items[i]);
		if (access(rustc, X_OK) == 0)
			strlist_add(compilers, rustc);
	}
	if (compilers->count == 0)
		strlist_add(compilers, "rustc");
}

/* False where this compiler cannot be used; NAME.{s,ll,mir} and NAME, the program, are then not there. */
static bool build(const char *rustc, const char *place, const char *mangling)
{
	cleanup_error struct error error = {0};
	cleanup_child_output struct child_output output = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_free char *source = realpath("tests/unit/data/listing/serial.rs", NULL);
	static const char *const words[] = {"--edition=2021", "-O", "-Cdebuginfo=2", "-Ccodegen-units=1",
					    "--emit=asm,llvm-ir,mir,link"};
	strlist_add(&command, rustc);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		strlist_add(&command, words[i]);
	if (mangling != NULL)
		strlist_add(&command, mangling);
	strlist_add(&command, source);
	child_own_environment(&environment);
	if (child_capture(&command, &environment, place, 120000, 1 << 20, &output, &error) < 0) {
		print_message("%s\n", error_text(&error));
		return false;
	}
	if (output.status != 0)
		fail_msg("%s: %s", rustc, str_text(&output.errors));
	return true;
}

static void read_output(const char *place, const char *name, struct str *text)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(place, name);
	assert_done(fs_read_file(path, 0, text, &error), &error);
}

static void assert_has(const struct str *text, const char *part)
{
	if (strstr(str_text(text), part) == NULL)
		fail_msg("no \"%s\" in:\n%s", part, str_text(text));
}

/* ---- one function in all its forms ---- */

/* The function into which serial_task's body went, by the IR; and its MIR. */
static void check_texts(const char *place, struct listing_functions *chosen)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str ir = {0};
	cleanup_str struct str mir = {0};
	cleanup_str struct str ir_text = {0};
	cleanup_str struct str mir_text = {0};
	cleanup_listing_functions struct listing_functions functions = {0};
	cleanup_free char *said = NULL;
	read_output(place, "serial.ll", &ir);
	read_output(place, "serial.mir", &mir);
	listing_ir_functions(ir.data, ir.length, &functions);
	assert_done(listing_choose(&functions, "serial_task::", NULL, chosen, &said, &error), &error);
	assert_done(listing_ir(ir.data, ir.length, chosen->items[0].symbol, true, &ir_text, &error), &error);
	assert_has(&ir_text, "xor rax, rax");
	assert_null(strstr(str_text(&ir_text), "!dbg"));
	const char *name = chosen->items[0].why != NULL ? chosen->items[0].why : chosen->items[0].name;
	assert_done(listing_mir(mir.data, mir.length, name, true, &mir_text, &error), &error);
	if (!text_starts_with(str_text(&mir_text), "fn serial_task::{closure#0}("))
		fail_msg("for %s:\n%.200s", name, str_text(&mir_text));
}

/* The same function from the binary, with the source lines of its own crate; compared with itself it is the same. */
static void check_binary(const char *place, const char *symbol)
{
	cleanup_error struct error error = {0};
	cleanup_free char *program = path_join(place, "serial");
	cleanup_binary struct binary *binary = NULL;
	cleanup_machine struct machine *machine = NULL;
	cleanup_listing_functions struct listing_functions all = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_listing_sources struct listing_sources sources = {0};
	cleanup_strlist struct strlist symbols = {0};
	cleanup_free char *said = NULL;
	cleanup_code struct code code = {0};
	cleanup_str struct str text = {0};
	strlist_add(&symbols, symbol);
	assert_done(binary_open(&binary, program, &error), &error);
	assert_done(machine_open(&machine, binary_machine(binary), &error), &error);
	listing_binary_functions(binary, &all);
	assert_done(listing_choose(&all, NULL, &symbols, &chosen, &said, &error), &error);
	strlist_add_owned(&sources.roots, realpath("tests/unit/data", NULL));
	assert_done(listing_of_binary(binary, machine, &chosen.items[0], &sources, &code, &error), &error);
	listing_text(&code, NULL, 0, &text);
	assert_has(&text, "xor rax, rax");
	assert_has(&text, "serial.rs:");
	assert_has(&text, "  *last = n;");
	cleanup_comparison struct comparison comparison = {0};
	compare(&comparison, &code, &code, NULL);
	assert_int_equal(comparison.marks[COMPARE_SAME], code.count);
}

/* False where there is no cargo-asm. */
static bool check_cargo_asm(const char *place, const char *symbol)
{
	cleanup_error struct error error = {0};
	cleanup_free char *toolchains = toolchains_folder();
	cleanup_free char *tools = text_format("%s/../tools", toolchains);
	cleanup_free char *program = listing_find_cargo_asm(tools, &error);
	if (program == NULL) {
		print_message("%s\n", error_text(&error));
		return false;
	}
	cleanup_free char *absolute = realpath(program, NULL);
	cleanup_free char *folder = path_join(place, "listing");
	cleanup_free char *assembly = path_join(place, "serial.s");
	cleanup_free char *workspace = realpath("tests/unit/data/listing", NULL);
	cleanup_str struct str text = {0};
	struct listing_request request = {
		.program = absolute, .folder = folder, .assembly = assembly, .symbol = symbol, .workspace = workspace};
	assert_done(listing_cargo_asm(&request, listing_run_child, NULL, &text, &error), &error);
	assert_has(&text, "// serial.rs:");
	assert_has(&text, "*last = n;");
	assert_has(&text, "xorq");
	return true;
}

static void with_each_compiler(const char *place, const char *mangling)
{
	cleanup_strlist struct strlist compilers = {0};
	size_t built = 0;
	bool listed = true;
	find_compilers(&compilers);
	for (size_t i = 0; i < compilers.count; i++) {
		cleanup_listing_functions struct listing_functions chosen = {0};
		if (!build(compilers.items[i], place, mangling))
			continue;
		built++;
		check_texts(place, &chosen);
		check_binary(place, chosen.items[0].symbol);
		listed = check_cargo_asm(place, chosen.items[0].symbol) && listed;
	}
	if (built == 0 || !listed)
		skip();
}

static void an_async_function_is_shown_in_every_form(void **state)
{
	with_each_compiler(*state, NULL);
}

static void so_it_is_with_the_newer_mangling(void **state)
{
	with_each_compiler(*state, "-Csymbol-mangling-version=v0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_place(an_async_function_is_shown_in_every_form),
		in_place(so_it_is_with_the_newer_mangling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
