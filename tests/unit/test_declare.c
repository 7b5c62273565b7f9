/* From an accused block to the text that declares it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/declare.h"
#include "fs.h"
#include "place.h"

#define ENABLED                                                                                                                    \
	"#asm_macro!(\n    \"990:   clr rax\",\n    #record,\n    out(\"rax\") is_enabled,\n    options(nomem, nostack, "          \
	"preserves_flags)\n)"

static void the_declaration_is_found_by_its_text_and_loses_the_option(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		const char *text;
		const char *block;
		const char *promise;
		const char *registers;
		const char *replace; /* NULL: nothing is found */
		long long line;
	} cases[] = {
		{"a quoted macro", "// asm!(\"990: clr rax\")\nquote! {\n " ENABLED "; }\n", "990:   clr rax\n  .pushsection x\n",
		 "preserves_flags", NULL,
		 "asm_macro!(\n    \"990:   clr rax\",\n    #record,\n    out(\"rax\") is_enabled,\n    options(nomem, "
		 "nostack)\n)",
		 3},
		{"another block", "quote! { " ENABLED "; }", "990: nop\n", "preserves_flags", NULL, NULL, 0},
		{"it does not promise that", "asm!(\"nop\", options(nomem))", "nop", "preserves_flags", NULL, NULL, 0},
		{"the only option", "asm!(\"nop\", options(nostack))", "nop", "nostack", NULL, "asm!(\"nop\", options())", 1},
		{"the first option", "asm!(\"nop\", options(nostack, nomem))", "nop", "nostack", NULL,
		 "asm!(\"nop\", options(nomem))", 1},
		{"options twice", "asm!(\"nop\", options(nomem), options(nostack))", "nop", "nostack", NULL,
		 "asm!(\"nop\", options(nomem), options())", 1},
		{"operands", "core::arch::asm!(\"mov {0:e}, {x}\", \"inc {0}\", out(reg) a, x = in(reg) b, options(nomem))",
		 "mov ${0:k}, $1\ninc $0", "nomem", NULL,
		 "asm!(\"mov {0:e}, {x}\", \"inc {0}\", out(reg) a, x = in(reg) b, options())", 1},
		{"doubled signs", "asm!(\"lock {{x}} $5\", options(nomem))", "lock {x} $$5", "nomem", NULL,
		 "asm!(\"lock {{x}} $5\", options())", 1},
		{"a raw string", "asm!(r#\"mov al, '\"'\"#, options(nomem))", "mov al, '\"'", "nomem", NULL,
		 "asm!(r#\"mov al, '\"'\"#, options())", 1},
		{"concat", "asm!(concat!(\"no\", \"p\"), options(nomem))", "no\np", "nomem", NULL,
		 "asm!(concat!(\"no\", \"p\"), options())", 1},
		{"in a comment", "/* /* asm!(\"nop\", options(nomem)) */ */", "nop", "nomem", NULL, NULL, 0},
		{"in a string", "let a = \"asm!(\\\"nop\\\", options(nomem))\";", "nop", "nomem", NULL, NULL, 0},
		{"brackets in characters", "let a = '\"'; let b = '('; f::<'a>(); asm![\"nop\", options(nomem)]", "nop", "nomem",
		 NULL, "asm![\"nop\", options()]", 1},
		{"a word that only looks so", "plasma(\"nop\", options(nomem))", "nop", "nomem", NULL, NULL, 0},
		{"a clobber", "asm!(\"cpuid\", options(nomem))", "cpuid", "clobbers", "rcx, rdx",
		 "asm!(\"cpuid\", out(\"rcx\") _, out(\"rdx\") _, options(nomem))", 1},
		{"a clobber without options", "asm!(\"cpuid\" )", "cpuid", NULL, "rcx", "asm!(\"cpuid\", out(\"rcx\") _, )", 1},
		{"cut short", "asm!(\"nop\", options(nomem", "nop", "nomem", NULL, NULL, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_declaration struct declaration found;
		declare_find_in_text(cases[i].text, cases[i].block, cases[i].promise, cases[i].registers, &found);
		if (!text_equal(found.replace, cases[i].replace))
			fail_msg("%s: gives %s", cases[i].what, found.replace != NULL ? found.replace : "nothing");
		if (found.replace == NULL)
			continue;
		assert_int_equal(found.line, cases[i].line);
		assert_int_equal(found.matches, 1);
		assert_non_null(strstr(cases[i].text, found.find));
	}
}

static void of_two_that_fit_the_one_that_says_more_is_meant(void **state)
{
	(void)state;
	cleanup_declaration struct declaration found;
	declare_find_in_text("asm!(\"nop\", options(nomem)); asm!(\"nop\", \"pause\", options(nomem))", "nop\npause\n", "nomem",
			     NULL, &found);
	assert_string_equal(found.find, "asm!(\"nop\", \"pause\", options(nomem))");
}

static void packages_of_a_preparation_are_searched_and_edited_ones_too(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_declare_roots struct declare_roots roots = {0};
	cleanup_free char *reproducer = path_join(*state, "reproducer");
	cleanup_free char *prepared = path_join(*state, "prepared");
	cleanup_free char *config = text_format("[source.vendored-sources]\ndirectory = \"%s/vendor\"\n[patch.crates-io.\"e\"]\n"
						"path = \"%s/edited/KEY/e/e\"\n",
						(char *)*state, (char *)*state);
	put_file(*state, "reproducer/src/main.rs", "fn main() { unsafe { asm!(\"own\", options(nomem)) } }");
	put_file(*state, "prepared/Cargo.lock",
		 "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n[[package]]\nname = \"gone\"\nversion = \"1.0.0\"\n");
	put_file(*state, "prepared/cargo-config.toml", config);
	put_file(*state, "vendor/a-1.2.3/src/deep/lib.rs", "\n\nasm!(\"vendored\", options(nomem))");
	put_file(*state, "edited/KEY/e/e-impl/Cargo.toml", "[package]\nname = \"e-impl\"\nversion = \"0.1.0\"\n");
	put_file(*state, "edited/KEY/e/e-impl/src/lib.rs", "asm!(\"edited\", options(nomem))");
	assert_done(declare_roots(reproducer, prepared, &roots, &error), &error);
	static const struct {
		const char *block;
		const char *package;
		const char *version;
		const char *file;
	} cases[] = {{"own", "reproducer", NULL, "src/main.rs"},
		     {"vendored", "a", "1.2.3", "src/deep/lib.rs"},
		     {"edited", "e-impl", "0.1.0", "src/lib.rs"},
		     {"nowhere", NULL, NULL, NULL}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_declaration struct declaration found;
		assert_done(declare_find(&roots, cases[i].block, "nomem", NULL, &found, &error), &error);
		assert_true(text_equal(found.package.name, cases[i].package));
		assert_true(text_equal(found.package.version, cases[i].version));
		assert_true(text_equal(found.file, cases[i].file));
		assert_int_equal(found.package.reproducer, i == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_declaration_is_found_by_its_text_and_loses_the_option),
		cmocka_unit_test(of_two_that_fit_the_one_that_says_more_is_meant),
		in_quick_place(packages_of_a_preparation_are_searched_and_edited_ones_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
