/*
 * The broken path, on functions of a few instructions each, given as bytes with the block in brackets; the text above
 * each row is what they were assembled from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/flow.h"

struct row {
	unsigned machine;
	enum flow_state state;
	const char *name;
	const char *bytes; /* hexadecimal, the block in brackets */
	const char *chain; /* definition | destroyer | reader; or the reason of an unknown one */
	const char *consequence;
};

static const struct row rows[] = {
	/* sub rdi, rsi; mov [rdx], rdi; [xor rax, rax]; jne 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "hoisted above the branch", "4829f748893a[4831c0]7501c3c3", 
	 "sub rdi, rsi | xor rax, rax | jne 0x100c", "jne never jumps: ZF is always 1 here"},
	/* cmp qword ptr [rsp+0x38], 0; [xor rax, rax]; je 1f; mov eax, 1; ret; 1: ret */
	{62, FLOW_BROKEN, "report shape", "48837c243800[4831c0]7406b801000000c3c3", 
	 "cmp qword ptr [rsp + 0x38], 0 | xor rax, rax | je 0x1011", "je always jumps: ZF is always 1 here"},
	/* cmp rdi, rsi; [xor eax, eax]; ja 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "never jumps on greater", "4839f7[31c0]7701c3c3",  "cmp rdi, rsi | xor eax, eax | ja 0x1008",
	 "ja never jumps: CF is always 0, ZF is always 1 here"},
	/* sub rdi, rsi; [xor rax, rax]; test rdi, rdi; jne 1f; ret; 1: ret */
	{62, FLOW_SLEEPING, "test behind the block", "4829f7[4831c0]4885ff7501c3c3",  "", ""},
	/* cmp rdi, rsi; [xor rax, rax]; jrcxz 1f; test rdi, rdi; 1: je 2f; ret; 2: ret */
	{62, FLOW_BROKEN, "redefined on one path only", "4839f7[4831c0]e3034885ff7401c3c3", 
	 "cmp rdi, rsi | xor rax, rax | je 0x100e", "je always jumps: ZF is always 1 here"},
	/* cmp rdi, rsi; [xor rax, rax]; jrcxz 1f; test rdi, rdi; jmp 2f; 1: test rsi, rsi; 2: je 3f; ret; 3: ret */
	{62, FLOW_SLEEPING, "redefined on both paths", "4839f7[4831c0]e3054885ffeb034885f67401c3c3",  "", ""},
	/* cmp rdi, rsi; [xor rax, rax]; jrcxz 1f; ret; 1: je 2f; ret; 2: ret */
	{62, FLOW_BROKEN, "reader on one path only", "4839f7[4831c0]e301c37401c3c3", 
	 "cmp rdi, rsi | xor rax, rax | je 0x100c", "je always jumps: ZF is always 1 here"},
	/* cmp rdi, rsi; [xor rax, rax]; call rdx; je 2f; ret; 2: ret */
	{62, FLOW_SLEEPING, "call in between", "4839f7[4831c0]ffd27401c3c3",  "", ""},
	/* cmp rdi, rsi; [xor rax, rax]; sete cl; ret */
	{62, FLOW_BROKEN, "setcc", "4839f7[4831c0]0f94c1c3",  "cmp rdi, rsi | xor rax, rax | sete cl",
	 "sete always gives 1: ZF is always 1 here"},
	/* cmp rdi, rsi; [xor rax, rax]; cmovb rcx, rdx; ret */
	{62, FLOW_BROKEN, "cmov", "4839f7[4831c0]480f42cac3",  "cmp rdi, rsi | xor rax, rax | cmovb rcx, rdx",
	 "cmovb never moves: CF is always 0 here"},
	/* add rdi, rsi; [xor rax, rax]; adc rdx, rcx; ret */
	{62, FLOW_BROKEN, "adc", "4801f7[4831c0]4811cac3",  "add rdi, rsi | xor rax, rax | adc rdx, rcx",
	 "adc always gets a carry of 0: CF is always 0 here"},
	/* sub rdi, rsi; [add rax, 1]; sbb rdx, rcx; ret */
	{62, FLOW_BROKEN, "sbb", "4829f7[4883c001]4819cac3",  "sub rdi, rsi | add rax, 1 | sbb rdx, rcx",
	 "sbb decides by what the block left in CF"},
	/* add rdi, rsi; [inc rax]; adc rdx, rcx; ret */
	{62, FLOW_SLEEPING, "inc leaves the carry", "4801f7[48ffc0]4811cac3",  "", ""},
	/* add rdi, rsi; [xor rax, rax]; inc rcx; adc rdx, rcx; ret */
	{62, FLOW_BROKEN, "inc behind the block keeps the carry destroyed", "4801f7[4831c0]48ffc14811cac3", 
	 "add rdi, rsi | xor rax, rax | adc rdx, rcx", "adc always gets a carry of 0: CF is always 0 here"},
	/* cmp rdi, rsi; [lea rax, [rdi+rsi]]; je 1f; ret; 1: ret */
	{62, FLOW_CLEAN, "lea only", "4839f7[488d0437]7401c3c3",  "", ""},
	/* cmp rdi, rsi; [mov eax, 0]; je 1f; ret; 1: ret */
	{62, FLOW_CLEAN, "mov instead of xor", "4839f7[b800000000]7401c3c3",  "", ""},
	/* cmp rdi, rsi; [pushfq; xor rax, rax; popfq]; je 1f; ret; 1: ret */
	{62, FLOW_CLEAN, "saved and put back by the block", "4839f7[9c4831c09d]7401c3c3",  "", ""},
	/* cmp rdi, rsi; [push rbx; pushfq; xor eax, eax; popfq; pop rbx]; je 1f; ret; 1: ret */
	{62, FLOW_CLEAN, "saved around other pushes", "4839f7[539c31c09d5b]7401c3c3",  "", ""},
	/* cmp rdi, rsi; [pushfq; push rbx; xor eax, eax; popfq; pop rbx]; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "put back the wrong way round", "4839f7[9c5331c09d5b]7401c3c3", 
	 "cmp rdi, rsi | popfq | je 0x100c", "je decides by what the block left in ZF"},
	/* cmp rdi, rsi; [lahf; xor ebx, ebx; sahf]; jl 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "lahf and sahf lose OF", "4839f7[9f31db9e]7c01c3c3", 
	 "cmp rdi, rsi | xor ebx, ebx | jl 0x100a", "jl decides by what the block left in OF"},
	/* cmp rdi, rsi; [lahf; xor ebx, ebx; sahf]; je 1f; ret; 1: ret */
	{62, FLOW_SLEEPING, "lahf and sahf keep ZF", "4839f7[9f31db9e]7401c3c3",  "", ""},
	/* test rdi, rdi; 1: je 2f; dec rdi; [xor rax, rax]; jmp 1b; 2: ret */
	{62, FLOW_BROKEN, "loop: read in the next round", "4885ff740848ffcf[4831c0]ebf6c3", 
	 "dec rdi | xor rax, rax | je 0x100d", "je always jumps: ZF is always 1 here"},
	/* 1: test rdi, rdi; je 2f; [xor rax, rax]; jmp 1b; 2: ret */
	{62, FLOW_SLEEPING, "loop: defined anew in the next round", "4885ff7405[4831c0]ebf6c3",  "", ""},
	/* [xor rax, rax]; je 1f; ret; 1: ret */
	{62, FLOW_UNKNOWN, "no definition before", "[4831c0]7401c3c3", 
	 "it is read afterwards, but no definition of it stands before the block", ""},
	/* cmp rdi, rsi; call rdx; [xor rax, rax]; je 1f; ret; 1: ret */
	{62, FLOW_UNKNOWN, "definition behind a call", "4839f7ffd2[4831c0]7401c3c3", 
	 "it is read afterwards, but no definition of it stands before the block", ""},
	/* cmp rdi, rsi; [xor rax, rax]; jmp [rdx+rcx*8] */
	{62, FLOW_UNKNOWN, "indirect jump", "4839f7[4831c0]ff24ca", 
	 "it is still destroyed at an indirect jump, whose targets are not known", ""},
	/* cmp rdi, rsi; [xor rax, rax]; jmp far */
	{62, FLOW_SLEEPING, "tail call", "4839f7[4831c0]e900040000",  "", ""},
	/* cmp rdi, rsi; [xor rax, rax]; pushfq; pop rcx; ret */
	{62, FLOW_UNKNOWN, "saved by the function", "4839f7[4831c0]9c59c3", 
	 "it is saved after the block together with the other flags", ""},
	/* cmp rdi, rsi; [xor rax, rax]; shl rdx, cl; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "a shift by cl may leave them", "4839f7[4831c0]48d3e27401c3c3", 
	 "cmp rdi, rsi | xor rax, rax | je 0x100c", "je decides by what the block left in ZF"},
	/* cmp rdi, rsi; [xor rax, rax]; shl rdx, 3; je 1f; ret; 1: ret */
	{62, FLOW_SLEEPING, "a shift by 3 does not", "4839f7[4831c0]48c1e2037401c3c3",  "", ""},
	/* cmp rdi, rsi; [xor rax, rax]; shl rdx, 0; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "a shift by 0 does", "4839f7[4831c0]48c1e2007401c3c3", 
	 "cmp rdi, rsi | xor rax, rax | je 0x100d", "je always jumps: ZF is always 1 here"},
	/* cmp rdi, rsi; [add rax, rbx]; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "value not known", "4839f7[4801d8]7401c3c3",  "cmp rdi, rsi | add rax, rbx | je 0x1009",
	 "je decides by what the block left in ZF"},
	/* cmp rdi, rsi; [and rax, rbx]; jbe 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "one of two flags known", "4839f7[4821d8]7601c3c3", 
	 "cmp rdi, rsi | and rax, rbx | jbe 0x1009", "jbe decides by what the block left in ZF, CF"},
	/* ucomisd xmm0, xmm1; [xor eax, eax]; jp 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "parity", "660f2ec1[31c0]7a01c3c3",  "ucomisd xmm0, xmm1 | xor eax, eax | jp 0x1009",
	 "jp always jumps: PF is always 1 here"},
	/* cld; [std]; call rdx; ret */
	{62, FLOW_BROKEN, "direction flag at a call", "fc[fd]ffd2c3",  "cld | std | call rdx",
	 "call expects DF to be 0"},
	/* cld; [std; cld]; call rdx; ret */
	{62, FLOW_CLEAN, "direction flag cleared again", "fc[fdfc]ffd2c3",  "", ""},
	/* cld; [std]; rep movsb; cld; ret */
	{62, FLOW_BROKEN, "direction flag before rep movs", "fc[fd]f3a4fcc3", 
	 "cld | std | rep movsb byte ptr [rdi], byte ptr [rsi]", "rep movsb decides by what the block left in DF"},
	/* add rdi, rsi; [stc]; jb 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "stc and jc", "4801f7[f9]7201c3c3",  "add rdi, rsi | stc | jb 0x1007",
	 "jb always jumps: CF is always 1 here"},
	/* cmp rdi, rsi; [3: dec rcx; jne 3b]; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "the block loops inside", "4839f7[48ffc975fb]7401c3c3",  "cmp rdi, rsi | dec rcx | je 0x100b",
	 "je decides by what the block left in ZF"},
	/* cmp rdi, rsi; [xor eax, eax]; syscall; je 1f; ret; 1: ret */
	{62, FLOW_BROKEN, "system call keeps flags", "4839f7[31c0]0f057401c3c3", 
	 "cmp rdi, rsi | xor eax, eax | je 0x100a", "je always jumps: ZF is always 1 here"},
	/* cmp rdi, rsi; [xor eax, eax]; ud2 */
	{62, FLOW_SLEEPING, "trap ends", "4839f7[31c0]0f0b",  "", ""},
	/* subs x0, x0, x1; str x0, [x2]; [adds x3, x3, #1]; b.ne 1f; ret; 1: ret */
	{183, FLOW_BROKEN, "arm hoisted above the branch", "000001eb400000f9[630400b1]41000054c0035fd6c0035fd6", 
	 "subs x0, x0, x1 | adds x3, x3, #1 | b.ne #0x1014", "b.ne decides by what the block left in Z"},
	/* cmp x0, x1; [cmp x3, x3]; csel x0, x1, x2, eq; ret */
	{183, FLOW_BROKEN, "arm known", "1f0001eb[7f0003eb]2000829ac0035fd6", 
	 "cmp x0, x1 | cmp x3, x3 | csel x0, x1, x2, eq", "csel always takes its first choice: Z is always 1 here"},
	/* cmp x0, x1; [adds x3, x3, #1]; cbz x0, 1f; ret; 1: ret */
	{183, FLOW_SLEEPING, "arm cbz reads no flag", "1f0001eb[630400b1]400000b4c0035fd6c0035fd6",  "", ""},
	/* cmp x0, x1; [adds x3, x3, #1]; bl far; b.eq 1f; ret; 1: ret */
	{183, FLOW_SLEEPING, "arm call ends", "1f0001eb[630400b1]0001009440000054c0035fd6c0035fd6",  "", ""},
	/* cmp x0, x1; [mrs x3, nzcv; subs x4, x4, #1; msr nzcv, x3]; b.eq 1f; ret; 1: ret */
	{183, FLOW_CLEAN, "arm saved with mrs", "1f0001eb[03423bd5840400f103421bd5]40000054c0035fd6c0035fd6",  "", ""},
	/* cmp x0, x1; [add x3, x3, #1]; b.eq 1f; ret; 1: ret */
	{183, FLOW_CLEAN, "arm without flags", "1f0001eb[63040091]40000054c0035fd6c0035fd6",  "", ""},
	/* cmp x0, x1; [adds x3, x3, #1]; ccmp x0, x2, #0, ne; b.eq 1f; ret; 1: ret */
	{183, FLOW_BROKEN, "arm ccmp reads", "1f0001eb[630400b1]001042fa40000054c0035fd6c0035fd6", 
	 "cmp x0, x1 | adds x3, x3, #1 | ccmp x0, x2, #0, ne", "ccmp decides by what the block left in Z"},
	/* adds x0, x0, x1; [cmp x3, #1]; adc x2, x2, x4; ret */
	{183, FLOW_BROKEN, "arm adc reads", "000001ab[7f0400f1]4200049ac0035fd6", 
	 "adds x0, x0, x1 | cmp x3, #1 | adc x2, x2, x4", "adc decides by what the block left in C"},
};

struct sample {
	uint8_t bytes[256];
	size_t size;
	uint64_t start; /* of the block */
	uint64_t end;
};

enum { BASE = 0x1000 };

static void read_sample(struct sample *sample, const char *text)
{
	memset(sample, 0, sizeof *sample);
	for (; *text != '\0'; text++) {
		unsigned value;
		if (*text == '[')
			sample->start = BASE + sample->size;
		else if (*text == ']')
			sample->end = BASE + sample->size;
		else {
			assert_true(sample->size < sizeof sample->bytes);
			assert_int_equal(sscanf(text, "%2x", &value), 1);
			sample->bytes[sample->size++] = (uint8_t)value;
			text++;
		}
	}
}

static void follow(struct flow_path *path, unsigned kind, const char *bytes, const struct flow_question *question)
{
	cleanup_machine struct machine *machine = NULL;
	cleanup_flow_graph struct flow_graph graph = {0};
	cleanup_error struct error error = {0};
	struct sample sample;
	read_sample(&sample, bytes);
	assert_int_equal(machine_open(&machine, kind, &error), 0);
	flow_graph_build_bytes(&graph, machine, sample.bytes, sample.size, BASE);
	struct flow_question asked = *question;
	asked.start = sample.start;
	asked.end = sample.end;
	flow_follow(path, NULL, machine, &graph, &asked);
}

static char *chain_text(const struct flow_path *path)
{
	struct str text = {0};
	for (size_t i = 0; i < path->step_count; i++)
		str_append_format(&text, "%s%s", i > 0 ? " | " : "", path->steps[i].text);
	if (path->reason != NULL)
		str_append(&text, path->reason);
	return str_steal(&text);
}

static void check(const struct row *row, const struct flow_question *question, unsigned *wrong)
{
	cleanup_flow_path struct flow_path path = {0};
	follow(&path, row->machine, row->bytes, question);
	cleanup_free char *chain = chain_text(&path);
	const char *consequence = path.consequence != NULL ? path.consequence : "";
	if (path.state == row->state && strcmp(chain, row->chain) == 0 && strcmp(consequence, row->consequence) == 0)
		return;
	print_error("%s: %s\n\t \"%s\",\n\t \"%s\"},\n", row->name, flow_state_name(path.state), chain, consequence);
	(*wrong)++;
}

static void what_is_read_after_a_block_is_told_from_what_is_not(void **state)
{
	(void)state;
	unsigned wrong = 0;
	const struct flow_question question = {.measured = true};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(&rows[i], &question, &wrong);
	assert_int_equal(wrong, 0);
}

static const struct register_row {
	const char *name;
	struct row row;
} register_rows[] = {
	/* mov rbx, rdi; [xor ebx, ebx]; mov rax, rbx; ret */
	{"rbx",
	 {62, FLOW_BROKEN, "read later", "4889fb[31db]4889d8c3",  "mov rbx, rdi | xor ebx, ebx | mov rax, rbx",
	  "mov works on what the block left in rbx"}},
	/* mov r11, rdi; [xor r11d, r11d]; mov r11b, 1; movzx eax, r11b; ret */
	{"r11", {62, FLOW_SLEEPING, "part written, part read", "4989fb[4531db]41b301410fb6c3c3",  "", ""}},
	/* mov rcx, rdi; [xor ecx, ecx]; mov cl, 1; mov eax, ecx; ret */
	{"rcx",
	 {62, FLOW_UNKNOWN, "part written, whole read", "4889f9[31c9]b10189c8c3", 
	  "more of it is read than was written since", ""}},
	/* mov rcx, rdi; [xor ecx, ecx]; test rdi, rdi; je 1f; mov cl, 1; 1: movzx eax, cl; ret */
	{"rcx",
	 {62, FLOW_BROKEN, "part written on one path only", "4889f9[31c9]4885ff7402b1010fb6c1c3", 
	  "mov rcx, rdi | xor ecx, ecx | movzx eax, cl", "movzx works on what the block left in rcx"}},
	/* [xor ebx, ebx]; ret */
	{"rbx",
	 {62, FLOW_BROKEN, "the caller's register at the return", "[31db]c3", 
	  "(the function's entry) | xor ebx, ebx | ret", "the caller's value is lost: rbx"}},
	/* push rbx; [xor ebx, ebx]; pop rbx; ret */
	{"rbx", {62, FLOW_SLEEPING, "put back by the function", "53[31db]5bc3",  "", ""}},
	/* mov rdi, rsi; [xor edi, edi]; call rax; ret */
	{"rdi", {62, FLOW_UNKNOWN, "argument of a call", "4889f7[31ff]ffd0c3",  "it may be an argument of a call", ""}},
	/* mov r11, rsi; [xor r11d, r11d]; call rax; mov rax, r11; ret */
	{"r11", {62, FLOW_SLEEPING, "not kept by a call", "4989f3[4531db]ffd04c89d8c3",  "", ""}},
	/* mov r12, rsi; [xor r12d, r12d]; call rax; mov rax, r12; ret */
	{"r12",
	 {62, FLOW_BROKEN, "kept by a call", "4989f4[4531e4]ffd04c89e0c3", 
	  "mov r12, rsi | xor r12d, r12d | mov rax, r12", "mov works on what the block left in r12"}},
	/* mov rax, rdi; [xor eax, eax]; ret */
	{"rax", {62, FLOW_UNKNOWN, "maybe the result", "4889f8[31c0]c3",  "it may be the function's result", ""}},
	/* mov rcx, rdi; [xor ecx, ecx]; xor ecx, ecx; mov rax, rcx; ret */
	{"rcx", {62, FLOW_SLEEPING, "zeroed again", "4889f9[31c9]31c94889c8c3",  "", ""}},
	/* [xor edi, edi]; mov rax, rdi; ret */
	{"rdi",
	 {62, FLOW_BROKEN, "an argument of the function", "[31ff]4889f8c3", 
	  "(the function's entry) | xor edi, edi | mov rax, rdi", "mov works on what the block left in rdi"}},
	/* movaps xmm1, xmm0; [xorps xmm1, xmm1]; addps xmm0, xmm1; ret */
	{"xmm1",
	 {62, FLOW_BROKEN, "a vector register", "0f28c8[0f57c9]0f58c1c3", 
	  "movaps xmm1, xmm0 | xorps xmm1, xmm1 | addps xmm0, xmm1", "addps works on what the block left in xmm1"}},
	/* mov rcx, rdi; [xor ecx, ecx]; mov [rcx], rax; ret */
	{"rcx",
	 {62, FLOW_BROKEN, "as an address", "4889f9[31c9]488901c3", 
	  "mov rcx, rdi | xor ecx, ecx | mov qword ptr [rcx], rax", "mov works on what the block left in rcx"}},
	/* call rdx; [xor eax, eax]; mov rbx, rax; ret */
	{"rax",
	 {62, FLOW_BROKEN, "result of a call", "ffd2[31c0]4889c3c3",  "call rdx | xor eax, eax | mov rbx, rax",
	  "mov works on what the block left in rax"}},
	/* mov x19, x0; [mov x19, x1]; add x0, x19, #1; ret */
	{"x19",
	 {183, FLOW_BROKEN, "arm read later", "f30300aa[f30301aa]60060091c0035fd6", 
	  "mov x19, x0 | mov x19, x1 | add x0, x19, #1", "add works on what the block left in x19"}},
	/* [mov x20, x1]; ret */
	{"x20",
	 {183, FLOW_BROKEN, "arm the caller's register", "[f40301aa]c0035fd6", 
	  "(the function's entry) | mov x20, x1 | ret", "the caller's value is lost: x20"}},
	/* mov x9, x0; [mov x9, x1]; blr x2; mov x0, x9; ret */
	{"x9", {183, FLOW_SLEEPING, "arm not kept by a call", "e90300aa[e90301aa]40003fd6e00309aac0035fd6",  "", ""}},
};

static void registers_are_followed_by_the_convention(void **state)
{
	(void)state;
	unsigned wrong = 0;
	for (size_t i = 0; i < sizeof register_rows / sizeof *register_rows; i++) {
		cleanup_machine struct machine *machine = NULL;
		cleanup_error struct error error = {0};
		assert_int_equal(machine_open(&machine, register_rows[i].row.machine, &error), 0);
		const struct flow_question question = {
			.registers = REGISTER(machine_register_number(machine, register_rows[i].name))};
		check(&register_rows[i].row, &question, &wrong);
	}
	assert_int_equal(wrong, 0);
}

/* What was declared as changed is not asked about, whatever the instructions do. */
static void only_what_is_asked_about_counts(void **state)
{
	(void)state;
	cleanup_flow_path struct flow_path declared = {0};
	cleanup_flow_path struct flow_path carry = {0};
	const char *bytes = "4829f748893a[4831c0]7501c3c3"; /* sub rdi, rsi; mov [rdx], rdi; [xor rax, rax]; jne */
	const struct flow_question nothing = {.flags = 0};
	const struct flow_question one = {.flags = FLAG_CF};
	follow(&declared, 62, bytes, &nothing);
	follow(&carry, 62, bytes, &one);
	assert_int_equal(declared.state, FLOW_CLEAN);
	assert_int_equal(carry.state, FLOW_SLEEPING);
}

static void both_arms_of_a_branch_are_named(void **state)
{
	(void)state;
	cleanup_flow_path struct flow_path path = {0};
	const struct flow_question question = {.measured = true};
	follow(&path, 62, "4829f7[4831c0]7501c3c3", &question); /* sub rdi, rsi; [xor rax, rax]; jne 1f; ret; 1: ret */
	assert_int_equal(path.taken, 0);
	assert_true(path.always.known && path.never.known);
	assert_int_equal(path.always.address, BASE + 8);
	assert_int_equal(path.never.address, BASE + 9);
	assert_int_equal(path.read_flags, FLAG_ZF);
}

static void a_block_that_cannot_be_followed_is_unknown(void **state)
{
	(void)state;
	const struct flow_question question = {.measured = true};
	static const struct row odd[] = {
		{62, FLOW_UNKNOWN, "in the middle of an instruction", "48[31c0]7501c3c3", 
		 "no instruction of the function starts where the block does", ""},
		{62, FLOW_UNKNOWN, "bytes behind it that are none", "4839f7[4831c0]0606", 
		 "the bytes after it are no instruction known here", ""},
		{62, FLOW_UNKNOWN, "bytes further behind", "4839f7[4831c0]900606", 
		 "some of the function's bytes are no instruction known here", ""},
		{62, FLOW_CLEAN, "a block without instructions", "4839f7[]7501c3c3",  "", ""},
	};
	unsigned wrong = 0;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		check(&odd[i], &question, &wrong);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_after_a_block_is_told_from_what_is_not),
		cmocka_unit_test(registers_are_followed_by_the_convention),
		cmocka_unit_test(only_what_is_asked_about_counts),
		cmocka_unit_test(both_arms_of_a_branch_are_named),
		cmocka_unit_test(a_block_that_cannot_be_followed_is_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
