/* The audit from IR text to violations: what tests/integration/audit/cases.py cannot say in a compiler's language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/assemble.h"
#include "evidence/audit.h"

#define X86 "x86_64-unknown-linux-gnu"
#define ARM "aarch64-unknown-linux-gnu"
/* What rustc adds where nothing is promised. */
#define RUST_X86 "~{dirflag},~{fpsr},~{flags},~{memory}"
#define CLANG_X86 "~{dirflag},~{fpsr},~{flags}"

struct row {
	const char *triple;
	bool rust;
	const char *call;  /* what stands behind "call" */
	const char *kinds; /* "flags register", or "not judged: part of the reason" */
};

static char *module_text(const struct row *row)
{
	return text_format("%starget triple = \"%s\"\ndefine void @f(i64 %%x) {\n  call %s\n  ret void\n}\n"
			   "attributes #1 = { nounwind memory(none) }\nattributes #2 = { nounwind memory(read) }\n",
			   row->rust ? "source_filename = \"a.3a1fbbbh-cgu.0\"\n" : "", row->triple, row->call);
}

static char *judge(const struct row *row)
{
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *text = module_text(row);
	const struct audit_options options = {0};
	struct str kinds = {0};
	if (audit_ir_text(&audit, "test.ll", text, strlen(text), &options, &error) < 0)
		return text_format("error: %s", error_text(&error));
	assert_int_equal(audit.module.block_count, 1);
	const struct audit_block *block = &audit.blocks[0];
	if (block->reason != NULL)
		return text_format("not judged: %s", block->reason);
	for (size_t i = 0; i < block->violation_count; i++)
		str_append_format(&kinds, "%s%s", i > 0 ? " " : "", violation_name(block->violations[i].kind));
	return str_steal(&kinds);
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *kinds = judge(&rows[i]);
		bool start = text_starts_with(rows[i].kinds, "not judged") &&
			     strstr(kinds, strchr(rows[i].kinds, ':') + 2) != NULL;
		if (!start && strcmp(kinds, rows[i].kinds) != 0)
			fail_msg("%s\n  is: %s\n  not: %s", rows[i].call, kinds, rows[i].kinds);
	}
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

/* Rust for AArch64, whose library is not at hand to compile the cases for. */
static void test_rust_on_aarch64(void **state)
{
	static const struct row rows[] = {
		{ARM, true, "i64 asm sideeffect \"adds ${0:x}, ${1:x}, #1\", \"=&r,r\"(i64 %x)", "flags"},
		{ARM, true, "i64 asm sideeffect \"adds ${0:x}, ${1:x}, #1\", \"=&r,r,~{cc}\"(i64 %x)", ""},
		{ARM, true, "i64 asm sideeffect \"add ${0:x}, ${1:x}, #1\", \"=&r,r\"(i64 %x)", ""},
		{ARM, true,
		 "void asm sideeffect \"stp x29, x30, [sp, #-16]!\\0Aldp x29, x30, [sp], #16\", \"~{cc},~{memory}\"()",
		 "stack"},
		{ARM, true,
		 "void asm sideeffect alignstack \"stp x29, x30, [sp, #-16]!\\0Aldp x29, x30, [sp], #16\", "
		 "\"~{cc},~{memory}\"()",
		 ""},
		{ARM, true,
		 "void asm sideeffect alignstack \"sub sp, sp, #32\\0Astr x20, [sp, #8]\\0Amov x20, #1\\0Aldr x20, "
		 "[sp, #8]\\0Aadd sp, sp, #32\", "
		 "\"~{cc}\"()",
		 ""},
		{ARM, true,
		 "void asm sideeffect alignstack \"sub sp, sp, #32\\0Astr w20, [sp, #8]\\0Amov x20, #1\\0Aldr w20, "
		 "[sp, #8]\\0Aadd sp, sp, #32\", "
		 "\"~{cc}\"()",
		 "register"},
		{ARM, true, "i64 asm sideeffect \"ldr ${0:x}, [${1:x}]\", \"=&r,r\"(i64 %x)", "memory-read"},
		{ARM, true, "i64 asm \"ldr ${0:x}, [${1:x}]\", \"=&r,r,~{memory}\"(i64 %x) #2", ""},
		{ARM, true, "i64 asm \"str ${1:x}, [${1:x}]\\0Amov ${0:x}, #1\", \"=&r,r,~{memory}\"(i64 %x) #2",
		 "memory-write"},
		{ARM, true, "i64 asm sideeffect \"svc #0\", \"=&{x0},{x8},0,~{memory}\"(i64 %x, i64 %x)", ""},
		{ARM, true, "i64 asm \"svc #0\", \"=&{x0},{x8},0\"(i64 %x, i64 %x) #1", "pure"},
		{ARM, true, "i64 asm sideeffect \"mov ${0:x}, ${1:x}\\0Aadd ${0:x}, ${0:x}, ${1:x}\", \"=r,r\"(i64 %x)",
		 "late-output"},
		{ARM, true, "void asm sideeffect \"fmov d8, ${0:x}\", \"r\"(i64 %x)", "register"},
		{ARM, true, "void asm sideeffect \"bl other\", \"~{memory},~{cc},~{lr}\"()", "register"},
		{ARM, true, "void asm sideeffect \"brk #1\", \"\"()", ""},
	};
	(void)state;
	CHECK(rows);
}

static void test_values_are_followed(void **state)
{
	static const struct row rows[] = {
		/* chains of moves and exchanges, and back */
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"mov r8, rbx\\0Amov r9, r8\\0Axor r8d, r8d\\0Amov rbx, "
		 "r9\", \"~{r8},~{r9}," RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"mov r8, rbx\\0Amov rbx, 1\\0Amov rbx, r9\", "
		 "\"~{r8},~{r9}," RUST_X86 "\"()",
		 "register"},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"xchg rbx, r12\\0Axchg r12, rbx\", \"" RUST_X86 "\"()",
		 ""},
		{X86, true, "void asm sideeffect alignstack inteldialect \"xchg rbx, r12\", \"" RUST_X86 "\"()",
		 "register"},
		/* through the stack, with frames */
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"push rbp\\0Amov rbp, rsp\\0Asub rsp, 32\\0Amov rsp, "
		 "rbp\\0Apop rbp\", \"" RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"push rbx\\0Amov qword ptr [rsp], 1\\0Apop rbx\", "
		 "\"" RUST_X86 "\"()",
		 "register"},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"push rbx\\0Amov dword ptr [rsp + 4], 1\\0Apop rbx\", "
		 "\"" RUST_X86 "\"()",
		 "register"},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"sub rsp, 32\\0Amovups [rsp], xmm6\\0Axorps xmm6, "
		 "xmm6\\0Amovups xmm6, [rsp]\\0Aadd rsp, 32\", \"" RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"mov r8, rsp\\0Aand rsp, -64\\0Apush rbx\\0Apop "
		 "rbx\\0Amov rsp, r8\", \"~{r8}," RUST_X86 "\"()",
		 "register"},
		/* ways that meet */
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"jrcxz 2f\\0Apush rbx\\0Apop rbx\\0A2:\", \"" RUST_X86
		 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"push rbx\\0A2:\\0Adec rcx\\0Amov rbx, rcx\\0Ajnz "
		 "2b\\0Apop rbx\", \"~{cx}," RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"2: push rbx\\0Ajrcxz 3f\\0Apop rbx\\0Ajmp 2b\\0A3:\", "
		 "\"" RUST_X86 "\"()",
		 "stack-unbalanced"},
		/* ways that never come out */
		{X86, true, "void asm sideeffect alignstack inteldialect \"mov rbx, 1\\0Aud2\", \"" RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"mov rbx, 1\\0A2: jmp 2b\", \"" RUST_X86 "\"()", ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"mov rbx, 1\\0Ajmp elsewhere\", \"" RUST_X86 "\"()", ""},
		/* calls inside and outside */
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"call 2f\\0A2: add rsp, 8\", \"" RUST_X86 "\"()", ""},
		{X86, true, "void asm sideeffect alignstack inteldialect \"call elsewhere\", \"" RUST_X86 "\"()",
		 "register"},
		/* flags by way of registers */
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"pushfq\\0Apop r8\\0Axor r9d, r9d\\0Apush "
		 "r8\\0Apopfq\", \"~{r8},~{r9}\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect alignstack inteldialect \"pushfq\\0Apop r8\\0Axor r8d, r8d\\0Apush "
		 "r8\\0Apopfq\", \"~{r8},~{r9}\"()",
		 "flags direction"},
		/* writes that do nothing, and ones that only look so */
		{X86, true, "void asm sideeffect inteldialect \"mov rbx, rbx\", \"\"()", ""},
		{X86, true, "void asm sideeffect inteldialect \"xchg rbx, rbx\", \"\"()", ""},
		{X86, true, "void asm sideeffect inteldialect \"mov ebx, ebx\", \"\"()", "register"},
		{X86, true,
		 "void asm sideeffect inteldialect \"endbr64\\0Anop\\0Aprefetcht0 [rax]\\0Alea r8, [rax + 8]\", "
		 "\"~{r8}\"()",
		 ""},
		{X86, true, "i64 asm sideeffect inteldialect \"xor ${0:k}, ${0:k}\", \"=r,~{flags}\"()", ""},
		/* MXCSR's exception flags only gather: documented as not judged */
		{X86, true, "double asm sideeffect inteldialect \"addsd $0, $1\", \"=&x,x,0\"(double %y, double %y)",
		 ""},
		/* x87 */
		{X86, true, "void asm sideeffect inteldialect \"fadd st(0), st(1)\", \"" RUST_X86 "\"()", "register"},
		{X86, true, "void asm sideeffect inteldialect \"fadd st(0), st(1)\", \"~{st},~{st(1)}," RUST_X86 "\"()",
		 ""},
		{X86, true,
		 "void asm sideeffect inteldialect \"fild qword ptr [rax]\\0Afistp qword ptr [rax]\", \"" RUST_X86
		 "\"()",
		 ""},
		{X86, true, "void asm sideeffect inteldialect \"paddb mm0, mm1\", \"" RUST_X86 "\"()", "register"},
		{X86, true, "void asm sideeffect inteldialect \"fldcw word ptr [rax]\", \"" RUST_X86 "\"()", ""},
	};
	(void)state;
	CHECK(rows);
}

static void test_promises_of_c(void **state)
{
	static const struct row rows[] = {
		{X86, false, "i64 asm sideeffect \"pushfq; popq $0\", \"=r," CLANG_X86 "\"()", "stack"},
		{"x86_64-pc-windows-msvc", false, "i64 asm sideeffect \"pushfq; popq $0\", \"=r," CLANG_X86 "\"()", ""},
		{"arm64-apple-macosx14.0.0", false,
		 "i64 asm sideeffect \"str x0, [sp, #-16]!; ldr $0, [sp], #16\", \"=r\"()", "stack"},
		{ARM, false, "i64 asm sideeffect \"str x0, [sp, #-16]!; ldr $0, [sp], #16\", \"=r\"()", ""},
		/* the declared operand, all ways to reach it */
		{X86, false, "void asm sideeffect \"movl $$1, $0\", \"=*m," CLANG_X86 "\"(ptr elementtype(i32) %p)",
		 ""},
		{X86, false, "void asm sideeffect \"movl $$1, $0\", \"*m," CLANG_X86 "\"(ptr elementtype(i32) %p)",
		 "memory-write"},
		{X86, false,
		 "void asm sideeffect \"incl $0\", \"=*m,*m," CLANG_X86
		 "\"(ptr elementtype(i32) %p, ptr elementtype(i32) %p)",
		 ""},
		{X86, false,
		 "i64 asm sideeffect \"leaq $1, $0; movq 8($0), $0\", \"=&r,*m," CLANG_X86
		 "\"(ptr elementtype(i128) %p)",
		 ""},
		{X86, false,
		 "i64 asm sideeffect \"movq ($1), $0\", \"=r,r,*m," CLANG_X86
		 "\"(ptr %p, ptr elementtype([4 x i64]) %p)",
		 ""},
		{X86, false,
		 "i64 asm sideeffect \"movq ($1), $0\", \"=r,r,*m," CLANG_X86
		 "\"(ptr %q, ptr elementtype([4 x i64]) %p)",
		 "memory-read"},
		{X86, false, "i64 asm sideeffect \"movq %gs:24, $0\", \"=r," CLANG_X86 "\"()", "memory-read"},
		{X86, false, "i64 asm sideeffect \"movq %fs:0, $0\", \"=r," CLANG_X86 "\"()", ""},
		{X86, false, "i64 asm sideeffect \"movq symbol(%rip), $0\", \"=r," CLANG_X86 "\"()", "memory-read"},
		/* what may share a register */
		{X86, false, "i64 asm \"movq $2, $0; addq $1, $0\", \"=&r,r,r," CLANG_X86 "\"(i64 %x, i64 %x)", ""},
		{X86, false, "i64 asm \"movq $2, $0; addq $1, $0\", \"=r,r,r," CLANG_X86 "\"(i64 %x, i64 %x)",
		 "late-output"},
		{X86, false, "i64 asm \"movl $$1, %eax; addq $1, %rax\", \"={ax},{cx}," CLANG_X86 "\"(i64 %x)", ""},
		{X86, false,
		 "double asm \"movapd $1, $0; movq $2, %xmm1\", \"=x,x,r,~{xmm1}," CLANG_X86 "\"(double %y, i64 %x)",
		 ""},
	};
	(void)state;
	CHECK(rows);
}

static void test_asm_goto_is_judged_at_every_way_out(void **state)
{
	static const char text[] =
		"target triple = \"" X86 "\"\ndefine void @f(i64 %x) {\n"
		"  callbr void asm sideeffect \"std; testq $0, $0; jz ${1:l}; cld\", \"r,!i," CLANG_X86 "\"(i64 %x)\n"
		"          to label %1 [label %2]\n1:\n"
		"  callbr void asm sideeffect \"std; testq $0, $0; cld; jz ${2:l}\", \"r,!i,!i," CLANG_X86
		"\"(i64 %x)\n"
		"          to label %1 [label %1, label %2]\n2:\n  ret void\n}\n";
	(void)state;
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	const struct audit_options options = {0};
	assert_int_equal(audit_ir_text(&audit, "t", text, sizeof text - 1, &options, &error), 0);
	assert_int_equal(audit.judged, 2);
	assert_int_equal(audit.blocks[0].violation_count, 1);
	assert_int_equal(audit.blocks[0].violations[0].kind, VIOLATION_DIRECTION);
	assert_int_equal(audit.blocks[1].violation_count, 0);
}

static void test_what_cannot_be_judged(void **state)
{
	static const struct row rows[] = {
		{X86, true, "void asm sideeffect inteldialect \".byte 0x06\", \"\"()",
		 "not judged: no instruction known"},
		{X86, true, "void asm sideeffect inteldialect \".section .data\\0A.byte 1\", \"\"()",
		 "not judged: ends in another section"},
		{X86, true, "void asm sideeffect inteldialect \"jmp 2f + 1\\0A2: mov eax, 5\", \"~{ax}\"()",
		 "not judged: into the middle"},
		{X86, true, "void asm sideeffect inteldialect \"jmp 2f - 20\\0A2:\", \"~{ax}\"()",
		 "not judged: outside of itself"},
		{X86, true, "void asm sideeffect inteldialect \"nop\", \"=\"()", "not judged: of the constraints"},
		{X86, true, "void asm sideeffect inteldialect \"# 7 \\22x.s\\22\\0Afrobnicate\", \"\"()",
		 "not judged: the assembler"},
		{X86, true, "void asm sideeffect inteldialect \".macro m\\0Afrobnicate\\0A.endm\\0Am\", \"\"()",
		 "not judged: invalid instruction mnemonic"},
		{"riscv64-unknown-linux-gnu", true, "void asm sideeffect \"nop\", \"\"()", "not judged: riscv64"},
	};
	(void)state;
	CHECK(rows);
}

static void test_a_naked_function_has_nobody_to_keep_promises_to(void **state)
{
	static const char text[] =
		"target triple = \"" X86
		"\"\ndefine void @f() #0 {\n  call void asm sideeffect \"movl $$1, %ebx; ret\", \"\"()\n"
		"  unreachable\n}\nattributes #0 = { naked }\n";
	(void)state;
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	const struct audit_options options = {0};
	assert_int_equal(audit_ir_text(&audit, "t", text, sizeof text - 1, &options, &error), 0);
	assert_int_equal(audit.not_judged, 1);
	assert_non_null(strstr(audit.blocks[0].reason, "naked"));
}

/* ---- the assembler ---- */

static void test_a_refused_block_costs_the_others_nothing(void **state)
{
	static const char *const texts[] = {"nop", "frobnicate", "# 1 \"elsewhere.s\"\nfrobnicate", "nop\nnop",
					    ".macro m\nfrob\n.endm\nm"};
	enum { COUNT = sizeof texts / sizeof texts[0] };
	(void)state;
	struct assembly blocks[COUNT] = {0};
	cleanup_error struct error error = {0};
	const struct assembler assembler = {.kind = MACHINE_X86_64};
	for (size_t i = 0; i < COUNT; i++)
		blocks[i].text = text_copy(texts[i]);
	assert_int_equal(assemble(&assembler, blocks, COUNT, &error), 0);
	assert_int_equal(blocks[0].size, 1);
	assert_int_equal(blocks[0].bytes[0], 0x90);
	assert_string_equal(blocks[1].refused, "the assembler refuses it: invalid instruction mnemonic 'frobnicate'");
	assert_non_null(blocks[2].refused);
	assert_int_equal(blocks[3].size, 2);
	assert_non_null(strstr(blocks[4].refused, "invalid instruction mnemonic 'frob'"));
	for (size_t i = 0; i < COUNT; i++)
		assembly_clear(&blocks[i]);
}

static void test_an_assembler_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	struct assembly block = {.text = text_copy("nop")};
	cleanup_error struct error error = {0};
	const struct assembler assembler = {.program = "/nowhere/clang", .kind = MACHINE_X86_64};
	assert_int_equal(assemble(&assembler, &block, 1, &error), -1);
	assert_string_equal(error_text(&error), "cannot run the assembler /nowhere/clang: No such file or directory");
	assembly_clear(&block);
}

/* ---- what it says ---- */

static void test_crates_are_known_by_their_folders(void **state)
{
	static const struct {
		const char *path;
		const char *crate; /* NULL: none */
		const char *version;
	} rows[] = {
		{"/root/.cargo/registry/src/index-1949cf8c6b5b557f/usdt-impl-0.5.0/src/lib.rs", "usdt-impl", "0.5.0"},
		{"/x/var/vendor/crates/ring-0.17.0-alpha.11/src/cpu.rs", "ring", "0.17.0-alpha.11"},
		{"/x/var/vendor/cargo-1.60/tokio-1.24.2/src/macros/select.rs", "tokio", "1.24.2"},
		{"/x/vendor/libc/src/lib.rs", "libc", NULL},
		{"/rustc/4b91a6ea7258a947e59c6522cd5898e7c0a6a88f/library/core/src/hint.rs", "core", NULL},
		{"/usr/src/rustc-1.63.0/library/core/src/hint.rs", "core", NULL},
		{"/home/me/project/src/main.rs", NULL, NULL},
		{"/home/me/a-1.2/src/main.rs", NULL, NULL},
		{"main.rs", NULL, NULL},
		{"", NULL, NULL},
		{"/vendor/", NULL, NULL},
		{"/-1.2.3/x", NULL, NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_free char *crate = NULL;
		cleanup_free char *version = NULL;
		assert_int_equal(audit_crate_of_path(rows[i].path, &crate, &version), rows[i].crate != NULL);
		assert_true(text_equal(crate, rows[i].crate));
		assert_true(text_equal(version, rows[i].version));
	}
}

static void test_json_says_who_broke_what(void **state)
{
	static const struct row row = {
		X86, true,
		"i64 asm sideeffect inteldialect \"990: clr rax\\0Acpuid\", \"=&{ax},~{cx},~{dx},~{memory}\"()", ""};
	(void)state;
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	const struct audit_options options = {0};
	cleanup_free char *text = module_text(&row);
	assert_int_equal(audit_ir_text(&audit, "test.ll", text, strlen(text), &options, &error), 0);
	json_t *json = audit_to_json(&audit);
	const json_t *block = json_array_get(json_object_get(json, "blocks"), 0);
	const json_t *violations = json_object_get(block, "violations");
	assert_int_equal(json_integer_value(json_object_get(json, "violations")), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(violations, 0), "kind")), "flags");
	assert_string_equal(json_string_value(json_object_get(json_array_get(violations, 0), "instruction")),
			    "xor rax, rax");
	assert_string_equal(json_string_value(json_object_get(json_array_get(violations, 1), "what")), "rbx");
	assert_string_equal(json_string_value(json_object_get(json_array_get(violations, 1), "text")),
			    "`cpuid` changes rbx, which is neither an output nor a clobber");
	const json_t *destroys = json_object_get(block, "destroys");
	assert_string_equal(json_string_value(json_array_get(json_object_get(destroys, "registers"), 0)), "rbx");
	assert_int_equal(json_array_size(json_object_get(destroys, "flags")), 6);
	assert_true(json_is_true(json_object_get(block, "judged")));
	json_decref(json);
}

static void test_what_ways_that_meet_destroy_is_blamed_on_an_instruction(void **state)
{
	static const struct row row = {
		X86, true,
		"void asm sideeffect alignstack inteldialect \"2: xchg rbx, r12\\0Ajrcxz 2b\", \"" RUST_X86 "\"()", ""};
	(void)state;
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	const struct audit_options options = {0};
	cleanup_free char *text = module_text(&row);
	assert_int_equal(audit_ir_text(&audit, "test.ll", text, strlen(text), &options, &error), 0);
	assert_int_equal(audit.blocks[0].violation_count, 1);
	assert_string_equal(audit.blocks[0].violations[0].what, "rbx, r12");
	assert_int_equal(audit.blocks[0].violations[0].instruction, 0);
}

static void test_a_module_without_blocks_needs_no_assembler(void **state)
{
	static const char text[] = "target triple = \"riscv64\"\ndefine void @f() {\n  ret void\n}\n";
	(void)state;
	cleanup_audit struct audit audit = {0};
	cleanup_error struct error error = {0};
	const struct audit_options options = {.clang = "/nowhere/clang"};
	assert_int_equal(audit_ir_text(&audit, "t", text, sizeof text - 1, &options, &error), 0);
	assert_int_equal(audit.judged + audit.not_judged, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rust_on_aarch64),
		cmocka_unit_test(test_values_are_followed),
		cmocka_unit_test(test_promises_of_c),
		cmocka_unit_test(test_asm_goto_is_judged_at_every_way_out),
		cmocka_unit_test(test_what_cannot_be_judged),
		cmocka_unit_test(test_a_naked_function_has_nobody_to_keep_promises_to),
		cmocka_unit_test(test_a_refused_block_costs_the_others_nothing),
		cmocka_unit_test(test_an_assembler_that_is_not_there_is_an_error),
		cmocka_unit_test(test_crates_are_known_by_their_folders),
		cmocka_unit_test(test_json_says_who_broke_what),
		cmocka_unit_test(test_what_ways_that_meet_destroy_is_blamed_on_an_instruction),
		cmocka_unit_test(test_a_module_without_blocks_needs_no_assembler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
