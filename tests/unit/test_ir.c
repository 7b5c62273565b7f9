/* The reader of textual LLVM IR, the constraint strings in it, and templates with operands put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/constraint.h"
#include "evidence/ir.h"
#include "evidence/operand.h"
#include "evidence/template.h"

#define TRIPLE "target triple = \"x86_64-unknown-linux-gnu\"\n"

static void read_ir(struct ir_module *module, const char *text)
{
	cleanup_error struct error error = {0};
	assert_int_equal(ir_read(module, text, strlen(text), &error), 0);
	assert_null(error.text);
}

/* ---- what is a block and what is not ---- */

static void test_a_call_as_clang_14_prints_it(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, TRIPLE
		"define dso_local i32 @f(i32* noundef %0, i64 noundef %1) #0 {\n"
		"  %4 = tail call i32 asm \"cmpl $$3, $1\", \"={@ccz},*m,~{dirflag},~{fpsr},~{flags}\"(i32* nonnull "
		"elementtype(i32) %0) #3, "
		"!srcloc !28\n  ret i32 %4\n}\nattributes #0 = { noredzone }\nattributes #3 = { nounwind readonly }\n");
	assert_string_equal(module.triple, "x86_64-unknown-linux-gnu");
	assert_int_equal(module.block_count, 1);
	const struct ir_block *block = &module.blocks[0];
	assert_null(block->unread);
	assert_string_equal(block->symbol, "f");
	assert_string_equal(block->template, "cmpl $$3, $1");
	assert_string_equal(block->constraints, "={@ccz},*m,~{dirflag},~{fpsr},~{flags}");
	assert_int_equal(block->result_count, 1);
	assert_int_equal(block->results[0].bits, 32);
	assert_int_equal(block->argument_count, 1);
	assert_string_equal(block->arguments[0].type, "i32*");
	assert_string_equal(block->arguments[0].element, "i32");
	assert_string_equal(block->arguments[0].text, "%0");
	assert_false(block->side_effect);
	assert_false(block->intel);
	assert_true(block->may_read);
	assert_false(block->may_write);
	assert_true(block->no_red_zone);
	assert_int_equal(block->text_line, 3);
	assert_null(module.cut_off);
}

static void test_a_call_as_rustc_of_llvm_22_prints_it(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, "source_filename = \"a.3c21057c25934469-cgu.0\"\n" TRIPLE
			 "define noundef i32 @\"a b\\22\"(i32 noundef range(i32 0, 5) %leaf) unnamed_addr #0 !dbg !20 "
			 "{\nstart:\n"
			 "    #dbg_value(i32 %leaf, !25, !DIExpression(), !28)\n"
			 "  %0 = tail call fastcc noundef range(i32 0, 10) { i32, <4 x float>, [2 x i8], ptr } asm "
			 "sideeffect alignstack inteldialect unwind "
			 "\"mov ${0:q}, rbx\\0Acpuid\", \"=&r,=&{ax},=&{cx},=&{dx},1,~{memory}\"(i32 %leaf) #6, !dbg "
			 "!29, !srcloc !30\n"
			 "    #dbg_value(i32 %leaf, !25, !DIExpression(), !28)\n  unreachable\n}\n"
			 "attributes #6 = { nounwind memory(read, inaccessiblemem: readwrite) }\n");
	const struct ir_block *block = &module.blocks[0];
	assert_int_equal(module.block_count, 1);
	assert_string_equal(block->symbol, "a b\"");
	assert_string_equal(block->template, "mov ${0:q}, rbx\ncpuid");
	assert_int_equal(block->result_count, 4);
	assert_string_equal(block->results[1].type, "<4 x float>");
	assert_int_equal(block->results[1].bits, 128);
	assert_int_equal(block->results[3].bits, 64);
	assert_true(block->side_effect && block->align_stack && block->intel && block->ends && block->rust);
	assert_true(block->may_read);
	assert_false(block->may_write);
}

static void test_memory_attributes(void **state)
{
	static const struct {
		const char *attributes;
		bool read;
		bool write;
	} rows[] = {{"", true, true},
		    {"readnone", false, false},
		    {"readonly", true, false},
		    {"inaccessiblememonly", false, false},
		    {"memory(none)", false, false},
		    {"memory(read)", true, false},
		    {"memory(readwrite)", true, true},
		    {"memory(inaccessiblemem: readwrite)", false, false},
		    {"memory(argmem: read, inaccessiblemem: write)", true, false},
		    {"memory(read, inaccessiblemem: readwrite)", true, false},
		    {"memory(write, errnomem: none, target_mem0: readwrite)", false, true}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_ir_module struct ir_module module = {0};
		cleanup_free char *text = text_format("define void @f() {\n  call void asm \"\", \"~{memory}\"() %s "
						      "#9\n  ret void\n}\nattributes #9 = { nounwind }\n",
						      rows[i].attributes);
		read_ir(&module, text);
		assert_int_equal(module.block_count, 1);
		assert_int_equal(module.blocks[0].may_read, rows[i].read);
		assert_int_equal(module.blocks[0].may_write, rows[i].write);
	}
}

static void test_strings_comments_and_names_are_no_code(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, "module asm \"call void asm \\22x\\22, \\22\\22()\"\n"
			 "@asm = constant [30 x i8] c\"  call void asm \\22a\\22, \\22b\\22() \", align 1 ; call void "
			 "asm \"x\", \"\"()\n"
			 "define void @asm(i64 %asm) { ; call void asm \"y\", \"\"()\nasm:\n"
			 "  %\"call void asm\" = add i64 %asm, 1\n  call void @asm(i64 %asm) ; asm \"z\", \"\"()\n"
			 "  call void @use(ptr @\"x asm y\"), !note !{!\" asm \"}\n  ret void\n}\n");
	assert_int_equal(module.block_count, 0);
	assert_null(module.cut_off);
}

static void test_asm_goto_of_both_forms(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, TRIPLE "define i32 @f(i32 %0) {\n  callbr void asm sideeffect \"jz ${1:l}\", "
				"\"r,i,~{flags}\"(i32 %0, i8* blockaddress(@f, %3)) #1\n"
				"          to label %2 [label %3], !dbg !7\n2:\n"
				"  callbr void asm sideeffect \"jz ${1:l}\", \"r,!i,!i,~{flags}\"(i32 %0) #1\n"
				"          to label %2 [label %3, label %4]\n3:\n"
				"  invoke void asm sideeffect unwind \"call f\", \"~{memory}\"()\n          to label "
				"%4 unwind label %9, !dbg !7\n}\n"
				"!7 = !DILocation(line: 5, column: 2, scope: !8)\n!8 = distinct !DISubprogram(name: "
				"\"f\", file: !9, line: 3)\n"
				"!9 = !DIFile(filename: \"a.c\", directory: \"/x\")\n");
	assert_int_equal(module.block_count, 3);
	assert_int_equal(module.blocks[0].label_count, 1);
	assert_string_equal(module.blocks[0].arguments[1].text, "blockaddress(@f, %3)");
	assert_int_equal(module.blocks[0].locations[0].line, 5);
	assert_int_equal(module.blocks[1].label_count, 2);
	assert_int_equal(module.blocks[2].label_count, 0);
	assert_int_equal(module.blocks[2].locations[0].line, 5);
}

static void test_what_cannot_be_read_is_a_block_with_a_reason(void **state)
{
	static const struct {
		const char *call;
		const char *reason;
	} rows[] = {{"call void asm \"a\\00b\", \"\"()", "its template holds a zero byte"},
		    {"call void asm sideeffect", "its template could not be read"},
		    {"call void asm \"nop\"", "its constraints could not be read"},
		    {"call void asm \"nop\", \"r\"(i64 %x", "its arguments could not be read"},
		    {"call void asm \"nop\", \"r\"(what is this)", "its arguments could not be read"},
		    {"call void asm \"nop\", \"*m\"(ptr elementtype(i32))", "its arguments could not be read"},
		    {"call void asm \"nop\", \"*m\"(ptr elementtype(i32) elementtype(i32",
		     "its arguments could not be read"},
		    {"%x = frob asm \"nop\", \"\"()", "this use of inline assembly could not be read"}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_ir_module struct ir_module module = {0};
		cleanup_free char *text = text_format("define void @f() {\n  %s\n  ret void\n}\n", rows[i].call);
		read_ir(&module, text);
		assert_int_equal(module.block_count, 1);
		assert_string_equal(module.blocks[0].unread, rows[i].reason);
		assert_string_equal(module.blocks[0].symbol, "f");
	}
}

/* ---- places ---- */

static void test_places_follow_scopes_and_inlining(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, "define void @_ZN1a1bE() !dbg !3 {\n  call void asm \"\", \"\"(), !dbg !10\n  call void asm "
			 "\"\", \"\"(), !dbg !14\n}\n"
			 "!0 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !1, producer: \"clang LLVM (rustc "
			 "version 1.63.0)\")\n"
			 "!1 = !DIFile(filename: \"/abs/lib.rs\", directory: \"/work\")\n!2 = !DINamespace(name: "
			 "\"a\", scope: null)\n"
			 "!3 = distinct !DISubprogram(name: \"b\", linkageName: \"_ZN1a1bE\", scope: !2, file: !1, "
			 "line: 9, unit: !0)\n"
			 "!4 = !DIFile(filename: \"src/inner.rs\", directory: \"/work\")\n"
			 "!5 = distinct !DISubprogram(name: \"c\", scope: !6, file: !4, line: 20, unit: !0)\n"
			 "!6 = !DINamespace(name: \"inner\", scope: !2)\n"
			 "!7 = distinct !DILexicalBlock(scope: !5, file: !4, line: 21, column: 5)\n"
			 "!8 = !DILexicalBlockFile(scope: !7, file: !9, discriminator: 2)\n!9 = !DIFile(filename: "
			 "\"macro.rs\", directory: \"/m\")\n"
			 "!10 = !DILocation(line: 22, column: 7, scope: !8, inlinedAt: !11)\n"
			 "!11 = distinct !DILocation(line: 11, column: 1, scope: !3)\n"
			 "!14 = !DILocation(line: 0, scope: !7)\n");
	const struct ir_block *block = &module.blocks[0];
	assert_string_equal(block->name, "a::b");
	assert_true(block->rust);
	assert_int_equal(block->location_count, 2);
	assert_string_equal(block->locations[0].file, "/m/macro.rs");
	assert_int_equal(block->locations[0].line, 22);
	assert_int_equal(block->locations[0].column, 7);
	assert_string_equal(block->locations[0].function, "a::inner::c");
	assert_string_equal(block->locations[1].file, "/abs/lib.rs");
	assert_string_equal(block->locations[1].function, "a::b");
	/* merged from several places: where the function begins */
	assert_true(module.blocks[1].locations[0].merged);
	assert_string_equal(module.blocks[1].locations[0].file, "/work/src/inner.rs");
	assert_int_equal(module.blocks[1].locations[0].line, 20);
}

static void test_circles_of_metadata_end(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, "define void @f() !dbg !2 {\n  call void asm \"\", \"\"(), !dbg !1\n}\n!1 = !DILocation(line: "
			 "1, scope: !3, inlinedAt: !1)\n"
			 "!2 = !DISubprogram(name: \"f\", scope: !2)\n!3 = !DILexicalBlock(scope: !3)\n");
	assert_true(module.blocks[0].location_count > 0);
}

static void test_bitcasts_of_addresses_are_undone(void **state)
{
	(void)state;
	cleanup_ir_module struct ir_module module = {0};
	read_ir(&module, "define void @f(i64* %0) {\n  %2 = bitcast i64* %0 to [2 x i64]*\n"
			 "  call void asm \"\", \"=*m,r\"([2 x i64]* elementtype([2 x i64]) %2, i64* %0)\n}\n");
	assert_string_equal(module.blocks[0].arguments[0].text, "%0");
}

/* ---- files that are no IR, or only a part of one ---- */

static void test_other_files_are_named(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *says;
	} rows[] = {{"BC\xC0\xDE\x35", 5, "this is LLVM bitcode"},
		    {"\xDE\xC0\x17\x0B", 4, "this is LLVM bitcode"},
		    {"", 0, "the file is empty"},
		    {"int main(void) { }", 18, "this is no textual LLVM IR"},
		    {"\177ELF\2\1\1\0\0", 9, "this is no textual LLVM IR"},
		    {"\0\0\0\0\xff", 5, "this is no textual LLVM IR"}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_ir_module struct ir_module module = {0};
		cleanup_error struct error error = {0};
		assert_int_equal(ir_read(&module, rows[i].bytes, rows[i].length, &error), -1);
		assert_true(text_starts_with(error_text(&error), rows[i].says));
	}
}

static void test_every_truncation_is_read_without_harm(void **state)
{
	static const char whole[] = TRIPLE
		"define void @f() {\n  %1 = call { i32, <2 x float> } asm sideeffect \"a\\22b\", \"=r,=x,*m\"(i32* "
		"elementtype(i32) %0) #1, "
		"!dbg !1\n  ret void\n}\nattributes #1 = { memory(read) }\n!1 = !DILocation(line: 1, scope: !2)\n"
		"!2 = !DISubprogram(name: \"f\", file: !3)\n!3 = !DIFile(filename: \"x\")\n";
	(void)state;
	for (size_t length = 1; length < sizeof whole - 1; length++) {
		cleanup_ir_module struct ir_module module = {0};
		cleanup_error struct error error = {0};
		cleanup_free char *part = text_copy_range(whole, length);
		if (ir_read(&module, part, length, &error) == 0 && strchr(part, '{') != NULL &&
		    strstr(part, "\n}") == NULL)
			assert_non_null(module.cut_off);
	}
}

/* ---- constraints ---- */

static void test_constraints_of_all_kinds(void **state)
{
	(void)state;
	cleanup_constraints struct constraints constraints = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(constraints_parse(&constraints, "=&{ax},=*rm,={@ccz},%0,^Yk,@3abc,r|m,!i,~{memory}", &error),
			 0);
	const struct constraint *items = constraints.items;
	assert_int_equal(constraints.count, 9);
	assert_true(items[0].kind == CONSTRAINT_OUTPUT && items[0].early && strcmp(items[0].fixed, "ax") == 0);
	assert_true(items[1].indirect && constraint_has_code(&items[1], "r") && constraint_has_code(&items[1], "m"));
	assert_string_equal(items[2].fixed, "@ccz");
	assert_int_equal(items[3].tie, 0);
	assert_true(constraint_has_code(&items[4], "Yk"));
	assert_true(constraint_has_code(&items[5], "abc"));
	assert_true(constraint_has_code(&items[6], "r") && !constraint_has_code(&items[6], "m"));
	assert_int_equal(items[7].kind, CONSTRAINT_LABEL);
	assert_true(constraints_clobber(&constraints, "memory") && !constraints_clobber(&constraints, "cc"));
}

static void test_bad_constraints_are_errors(void **state)
{
	static const char *const rows[] = {"=",  "=&", "{ax", "{}",   "0",  "=r,1", "=r,,r", "r,",
					   "~r", "~",  "^Y",  "@5ab", "@0", "r,=r", "*",     "=r,99999999999999999999"};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_constraints struct constraints constraints = {0};
		cleanup_error struct error error = {0};
		if (constraints_parse(&constraints, rows[i], &error) != -1)
			fail_msg("accepted: %s", rows[i]);
		assert_non_null(error.text);
	}
	cleanup_constraints struct constraints none = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(constraints_parse(&none, "", &error), 0);
	assert_int_equal(none.count, 0);
}

/* ---- templates ---- */

/* The text for the assembler of the one block in a function with this call. */
static char *expand(const char *triple, const char *call, struct error *error)
{
	cleanup_ir_module struct ir_module module = {0};
	cleanup_constraints struct constraints constraints = {0};
	cleanup_operands struct operands operands = {0};
	cleanup_machine struct machine *machine = NULL;
	struct str text = {0};
	cleanup_free char *ir = text_format("define void @f() {\n  %s\n  ret void\n}\n", call);
	read_ir(&module, ir);
	assert_int_equal(module.block_count, 1);
	assert_null(module.blocks[0].unread);
	assert_int_equal(machine_open_triple(&machine, triple, error), 0);
	if (constraints_parse(&constraints, module.blocks[0].constraints, error) < 0 ||
	    operands_assign(&operands, &constraints, &module.blocks[0], machine, error) < 0 ||
	    template_expand(&module.blocks[0], &operands, machine, 7, &text, error) < 0) {
		str_clear(&text);
		return NULL;
	}
	return str_steal(&text);
}

static void test_templates_become_text(void **state)
{
	static const char x86[] = "x86_64-unknown-linux-gnu";
	static const char arm[] = "aarch64-unknown-linux-gnu";
	static const struct {
		const char *triple;
		const char *call;
		const char *text;
	} rows[] = {
		{x86, "%1 = call i64 asm \"addq $2, $0\", \"=r,0,i\"(i64 %x, i64 5)", "addq $5, %r8"},
		{x86, "%1 = call i32 asm \"mov $0, $1\", \"=r,r\"(i8 %x)", "mov %r8d, %r9b"},
		{x86, "%1 = call i64 asm inteldialect \"mov ${0:q}, ${1:e}\", \"=r,r\"(i64 %x)", NULL},
		{x86, "%1 = call i64 asm inteldialect \"mov ${0:q}, ${1:k}\", \"=r,r\"(i64 %x)", "mov r8, r9d"},
		{x86, "call void asm \"${0:c} ${0:n} ${1:P} $1\", \"i,s\"(i32 7, ptr @st)",
		 "7 -7 bisectd.st $bisectd.st"},
		{x86, "call void asm inteldialect \"call ${0:c}\", \"s\"(ptr @\"odd name\")", "call bisectd.value0"},
		{x86, "call void asm \"incl $0; incl 4+$0; ${0:H}\", \"=*m\"(ptr elementtype(i32) %p)",
		 "incl 16384(%r8); incl 4+16384(%r8); 16392(%r8)"},
		{x86, "call void asm inteldialect \"inc dword ptr $0\", \"*m\"(ptr elementtype(i32) %p)",
		 "inc dword ptr [r8 + 16384]"},
		{x86, "%1 = call i8 asm \"movb ${1:h}, ${0:b}\", \"=Q,Q\"(i32 %x)", "movb %dh, %bl"},
		{x86, "%1 = call i8 asm \"$0 $1\", \"={si},q\"(i8 %x)", "%sil %r8b"},
		{x86,
		 "%1 = call i64 asm \"$(mov $1, $0$|mov $0, $1$) $$ ${:uid} ${:private}a ${:comment}\", \"=r,r\"(i64 "
		 "%x)",
		 "mov %r9, %r8 $ 7 .La #"},
		{x86, "%1 = call i64 asm inteldialect \"$(mov $1, $0$|mov $0, $1$)\", \"=r,r\"(i64 %x)", "mov r8, r9"},
		{x86,
		 "%1 = call <8 x float> asm \"${0:x} $0 ${1:t} ${2:g} $3\", \"=x,x,v,^Yk\"(float %x, double %y, i16 "
		 "%z)",
		 "%xmm6 %ymm6 %ymm7 %zmm8 %k1"},
		{x86, "call void asm \"${0:a} $1 ${1:w}\", \"r,{r10}\"(i64 %x, i16 %y)", "(%r8) %r10w %r10w"},
		{x86, "call void asm \"jmp ${0:l}\", \"!i\"()", "jmp .Lbisectd_goto_7_0"},
		{x86, "call void asm \"$0\", \"n\"(i64 -9223372036854775808)", "$-9223372036854775808"},
		{x86, "call void asm \"$0 $1\", \"i,i\"(ptr null, i1 true)", "$0 $1"},
		{arm, "%1 = call i64 asm \"add $0, $1, ${1:w}\", \"=r,r\"(i64 %x)", "add x9, x10, w10"},
		{arm, "call void asm \"ldr $1, $0 ${0:a}\", \"*m,r\"(ptr elementtype(i64) %p, i64 %x)",
		 "ldr x9, [x10] [x10]"},
		{arm, "%1 = call float asm \"$0 ${0:s} ${1:d} ${1:v}\", \"=w,w\"(float %x)", "v4 s4 d5 v5"},
		{arm, "call void asm \"mov x0, #$0; ${1:w} ${1:x}\", \"i,rZ\"(i64 12, i64 0)", "mov x0, #12; wzr xzr"},
		{arm, "call void asm \"$0 $1\", \"{x3},{w4}\"(i64 %x, i32 %y)", "x3 x4"},
		{x86, "call void asm \"$5\", \"r\"(i64 %x)", NULL},
		{x86, "call void asm \"$\", \"r\"(i64 %x)", NULL},
		{x86, "call void asm \"${0\", \"r\"(i64 %x)", NULL},
		{x86, "call void asm \"${0:qq}\", \"r\"(i64 %x)", NULL},
		{x86, "call void asm \"$0\", \"r,r\"(i64 %x)", NULL},
		{x86, "%1 = call i64 asm \"$0\", \"=r,=r\"()", NULL},
		{x86, "call void asm \"$0\", \"{nosuch}\"(i64 %x)", NULL},
		{x86, "call void asm \"$0\", \"^ZZ\"(i64 %x)", NULL},
		{x86,
		 "call void asm \"$0\", \"r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r\"(i64 %a,i64 %a,i64 %a,i64 %a,i64 %a,i64 "
		 "%a,i64 %a,i64 %a,i64 %a,"
		 "i64 %a,i64 %a,i64 %a,i64 %a,i64 %a,i64 %a,i64 %a)",
		 NULL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_free char *text = expand(rows[i].triple, rows[i].call, &error);
		if (rows[i].text != NULL && text == NULL)
			fail_msg("%s: %s", rows[i].call, error_text(&error));
		if (rows[i].text == NULL && (text != NULL || error.text == NULL))
			fail_msg("%s: became %s", rows[i].call, text);
		if (rows[i].text != NULL)
			assert_string_equal(text, rows[i].text);
	}
}

static void test_registers_that_the_template_names_are_left_alone(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	cleanup_free char *text = expand(
		"x86_64-linux", "call void asm \"mov %r8d, %r10; $0 $1\", \"r,r,~{r9}\"(i64 %x, i64 %y)", &error);
	assert_string_equal(text, "mov %r8d, %r10; %r11 %r12");
}

static void test_directives_that_read_files_are_refused(void **state)
{
	static const char *const refused[] = {".incbin \"/etc/passwd\"",
					      "nop; .INCBIN \"x\"",
					      ".include \"x\"",
					      ".altmacro",
					      ".end",
					      "/* x",
					      ".macro m\nnop",
					      ".if 1",
					      ".rept 3\nnop",
					      ".irp r, a\nnop",
					      ".macro m x\n.\\x \"f\"\n.endm",
					      "\\x \"f\"",
					      ".fill 0x7fffffff",
					      ".skip 99999999",
					      ".p2align 30",
					      ".rept 1000000\nnop\n.endr"};
	static const char *const fine[] = {"nop",
					   "990: nop\n.pushsection a\n.4byte 992f-991b // length\n.popsection",
					   ".ifdef x\nnop\n.endif",
					   ".macro m x\nmov \\x, \\x\n.endm\nm %rax",
					   ".endr_not",
					   ".rept 3\nnop\n.endr",
					   ".skip 16, 0x90",
					   ".asciz \"a\"",
					   "/* a */ nop /* b */"};
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (template_refusal(refused[i]) == NULL)
			fail_msg("accepted: %s", refused[i]);
	for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
		if (template_refusal(fine[i]) != NULL)
			fail_msg("refused: %s: %s", fine[i], template_refusal(fine[i]));
}

static void test_probes_are_named(void **state)
{
	static const struct {
		const char *template;
		const char *probe;
	} rows[] = {{"990: clr rax\n.pushsection set_dtrace_probes,\"aw\"\n.4byte 992f-991b\n.asciz \"serial\"\n.asciz "
		     "\"uart-read\"\n",
		     "serial:uart-read"},
		    {"990: nop\n.pushsection .note.stapsdt, \"\", \"note\"\n.asciz \"stapsdt\"\n.8byte 990b\n.asciz "
		     "\"p\"\n.asciz \"q\"\n.asciz \"\"",
		     "p:q"},
		    {"nop", NULL},
		    {".pushsection set_dtrace_probes\n.asciz \"only\"", NULL},
		    {"set_dtrace_probes .asciz \"open", NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_free char *probe = template_probe(rows[i].template);
		assert_true(text_equal(probe, rows[i].probe));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call_as_clang_14_prints_it),
		cmocka_unit_test(test_a_call_as_rustc_of_llvm_22_prints_it),
		cmocka_unit_test(test_memory_attributes),
		cmocka_unit_test(test_strings_comments_and_names_are_no_code),
		cmocka_unit_test(test_asm_goto_of_both_forms),
		cmocka_unit_test(test_what_cannot_be_read_is_a_block_with_a_reason),
		cmocka_unit_test(test_places_follow_scopes_and_inlining),
		cmocka_unit_test(test_circles_of_metadata_end),
		cmocka_unit_test(test_bitcasts_of_addresses_are_undone),
		cmocka_unit_test(test_other_files_are_named),
		cmocka_unit_test(test_every_truncation_is_read_without_harm),
		cmocka_unit_test(test_constraints_of_all_kinds),
		cmocka_unit_test(test_bad_constraints_are_errors),
		cmocka_unit_test(test_templates_become_text),
		cmocka_unit_test(test_registers_that_the_template_names_are_left_alone),
		cmocka_unit_test(test_directives_that_read_files_are_refused),
		cmocka_unit_test(test_probes_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
