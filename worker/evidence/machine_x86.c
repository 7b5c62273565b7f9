/*
 * What one x86-64 instruction does to registers, memory, the stack and control: capstone's operands, with the
 * corrections that tests/unit/test_machine.c pins down one by one.  capstone 4 thinks that setcc reads its memory
 * operand, that cdq writes rax, that syscall touches no register, and so on.  Flags are the business of
 * machine_x86_flags.c.
 */
#include <stdio.h>
#include <string.h>

#include "evidence/machine_inside.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- operands ---- */

/* How operand `index` is accessed, corrected. */
static unsigned access_of(const char *name, const cs_x86 *x86, unsigned index)
{
	static const char *const untouched[] = {"lea",        "nop",        "prefetch",  "prefetchnta", "prefetcht0",
						"prefetcht1", "prefetcht2", "prefetchw", "clflush",     "clflushopt",
						"clwb",       "invlpg",     "bndmk"};
	static const char *const stored[] = {
		"fst",      "fstp",       "fist",     "fistp",    "fisttp",   "fbstp", "fnstcw",  "fnstsw", "fnstenv",
		"fnsave",   "stmxcsr",    "vstmxcsr", "fxsave",   "fxsave64", "xsave", "xsave64", "xsavec", "xsavec64",
		"xsaveopt", "xsaveopt64", "xsaves",   "xsaves64", "sgdt",     "sidt",  "sldt",    "str",    "smsw"};
	static const char *const changed[] = {"cmpxchg", "cmpxchg8b", "cmpxchg16b", "adox", "adcx"};
	static const char *const moves[] = {"mov",      "vmov",      "vpmov",     "pextr",      "vpextr",
					    "extract",  "vextract",  "vcvtps2ph", "vpcompress", "vcompress",
					    "vscatter", "vpscatter", "vmaskmov",  "vpmaskmov",  "kmov"};
	const cs_x86_op *operand = &x86->operands[index];
	bool memory = operand->type == X86_OP_MEM;
	if (memory && machine_is_one_of(name, untouched, COUNT(untouched)))
		return 0;
	if (index == 0 && memory && machine_is_one_of(name, stored, COUNT(stored)))
		return CS_AC_WRITE;
	if (index == 0 && machine_is_one_of(name, changed, COUNT(changed)))
		return CS_AC_READ | CS_AC_WRITE;
	if (index == 0 && text_starts_with(name, "set") && machine_x86_condition(name) != 0)
		return CS_AC_WRITE;
	/* Gathering merges under a mask that it uses up. */
	if (!memory && (text_starts_with(name, "vpgather") || text_starts_with(name, "vgather")))
		return CS_AC_READ | CS_AC_WRITE;
	/* A scalar moved between registers leaves the upper part, which is no use of the old value. */
	if (index == 0 && !memory && (strcmp(name, "movss") == 0 || strcmp(name, "movsd") == 0))
		return CS_AC_WRITE;
	if (memory && !machine_x86_two_memory_operands(x86))
		for (size_t i = 0; i < COUNT(moves); i++)
			if (text_starts_with(name, moves[i]))
				return index == 0 ? CS_AC_WRITE : CS_AC_READ;
	if (memory && operand->access == 0)
		return CS_AC_READ;
	return operand->access;
}

static void memory_operand(const struct machine *machine, const cs_insn *decoded, const cs_x86_op *operand,
			   unsigned access, struct instruction *instruction)
{
	const x86_op_mem *mem = &operand->mem;
	struct machine_memory memory = {.base = machine_part(machine, mem->base).number,
					.index = machine_part(machine, mem->index).number,
					.scale = mem->scale,
					.displacement = mem->disp,
					.size = operand->size,
					.read = access & CS_AC_READ,
					.written = access & CS_AC_WRITE,
					.relative = mem->base == X86_REG_RIP,
					.segment = mem->segment == X86_REG_FS || mem->segment == X86_REG_GS};
	if (memory.relative)
		memory.address = decoded->address + decoded->size + (uint64_t)mem->disp;
	machine_add_memory(instruction, &memory);
	if (instruction->shape == SHAPE_NOTHING)
		return;
	if (memory.base != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.base, 64, false});
	if (memory.index != REGISTER_NONE)
		machine_add_read(instruction, (struct register_part){memory.index, 64, false});
}

static void operand_facts(const struct machine *machine, const char *name, const cs_insn *decoded,
			  struct instruction *instruction)
{
	const cs_x86 *x86 = &decoded->detail->x86;
	for (unsigned i = 0; i < x86->op_count; i++) {
		const cs_x86_op *operand = &x86->operands[i];
		unsigned access = access_of(name, x86, i);
		if (operand->type == X86_OP_MEM)
			memory_operand(machine, decoded, operand, access, instruction);
		if (operand->type != X86_OP_REG || instruction->shape == SHAPE_NOTHING)
			continue;
		struct register_part part = machine_part(machine, operand->reg);
		if (access & CS_AC_READ || access == 0)
			machine_add_read(instruction, part);
		if (access & CS_AC_WRITE)
			machine_add_written(instruction, part);
	}
}

/* ---- registers that no operand names ---- */

#define R(name) REGISTER(X86_##name)
#define VECTORS (((REGISTER(X86_ZMM0 + 31) << 1) - 1) & ~(REGISTER(X86_ZMM0) - 1))
#define FIRST_VECTORS (REGISTER(X86_ZMM0 + 16) - REGISTER(X86_ZMM0))
#define MASKS (REGISTER(X86_X87) - REGISTER(X86_K0))

static const struct implied {
	const char *name;
	register_set read;
	register_set written;
	register_set kept;        /* of those written */
	register_set not_written; /* capstone says so, the manual does not */
} implied_table[] = {
	{"cdq", 0, 0, 0, R(RAX)},
	{"cqo", 0, 0, 0, R(RAX)},
	{"cwd", 0, 0, 0, R(RAX)},
	{"cmpxchg", R(RAX), R(RAX), R(RAX), 0},
	{"cmpxchg16b", R(RAX) | R(RBX) | R(RCX) | R(RDX), R(RAX) | R(RDX), R(RAX) | R(RDX), 0},
	{"cmpxchg8b", R(RAX) | R(RBX) | R(RCX) | R(RDX), R(RAX) | R(RDX), R(RAX) | R(RDX), 0},
	{"enter", R(RBP) | R(RSP), R(RBP) | R(RSP), 0, 0},
	{"fxrstor", 0, FIRST_VECTORS | R(X87), FIRST_VECTORS, 0},
	{"fxrstor64", 0, FIRST_VECTORS | R(X87), FIRST_VECTORS, 0},
	{"int", R(RAX) | R(RBX) | R(RCX) | R(RDX) | R(RSI) | R(RDI) | R(RBP), R(RAX), 0, 0},
	{"jrcxz", R(RCX), 0, 0, 0},
	{"maskmovdqu", R(RDI), 0, 0, 0},
	{"maskmovq", R(RDI), 0, 0, 0},
	{"vmaskmovdqu", R(RDI), 0, 0, 0},
	{"syscall", R(RAX) | R(RDI) | R(RSI) | R(RDX) | R(R10) | R(R8) | R(R9), R(RAX) | R(RCX) | R(R11), 0, 0},
	{"vzeroall", 0, FIRST_VECTORS, 0, 0},
	{"vzeroupper", 0, FIRST_VECTORS, FIRST_VECTORS, 0},
	{"xbegin", 0, R(RAX), R(RAX), 0},
	{"xlatb", R(RAX) | R(RBX), R(RAX), R(RAX), 0},
	{"xrstor", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstor64", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstors", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xrstors64", R(RAX) | R(RDX), VECTORS | MASKS | R(X87), VECTORS | MASKS | R(X87), 0},
	{"xsetbv", R(RAX) | R(RCX) | R(RDX), 0, 0, 0},
	{"emms", 0, R(X87), 0, 0},
};

static void implied_facts(const struct machine *machine, const char *name, const cs_insn *decoded,
			  struct instruction *instruction)
{
	const cs_detail *detail = decoded->detail;
	for (int i = 0; i < detail->regs_read_count; i++)
		machine_add_read(instruction, machine_part(machine, detail->regs_read[i]));
	for (int i = 0; i < detail->regs_write_count; i++)
		machine_add_written(instruction, machine_part(machine, detail->regs_write[i]));
	if (machine_x86_has_group(decoded, X86_GRP_FPU) && strcmp(name, "fnstsw") != 0 && strcmp(name, "wait") != 0) {
		instruction->registers_read |= R(X87);
		instruction->registers_written |= R(X87);
		instruction->registers_kept |= R(X87);
	}
	if (text_starts_with(name, "bsf") || text_starts_with(name, "bsr"))
		instruction->registers_kept |= instruction->registers_written;
	for (size_t i = 0; i < COUNT(implied_table); i++) {
		const struct implied *row = &implied_table[i];
		if (strcmp(name, row->name) != 0)
			continue;
		instruction->registers_read |= row->read;
		instruction->registers_narrow &= ~row->read;
		instruction->registers_written = (instruction->registers_written | row->written) & ~row->not_written;
		instruction->registers_kept =
			(instruction->registers_kept | row->kept) & instruction->registers_written;
	}
	if (strcmp(name, "xlatb") == 0) {
		struct machine_memory table = {.base = X86_RBX, .index = X86_RAX, .scale = 1, .size = 1, .read = true};
		machine_add_memory(instruction, &table);
	}
	if (strstr(name, "maskmovdqu") != NULL || strcmp(name, "maskmovq") == 0) {
		struct machine_memory target = {
			.base = X86_RDI, .index = REGISTER_NONE, .scale = 1, .size = 16, .written = true};
		machine_add_memory(instruction, &target);
	}
	if (instruction->repeated)
		instruction->registers_kept |= instruction->registers_written;
}

/* ---- stack, control, shapes ---- */

static void move_stack(struct instruction *instruction, bool known, int64_t change)
{
	instruction->stack_moved = true;
	instruction->stack_known = known;
	instruction->stack_change = change;
}

static void stack_facts(const char *name, const cs_x86 *x86, struct instruction *instruction)
{
	const cs_x86_op *first = &x86->operands[0];
	int64_t width = x86->op_count > 0 && first->size == 2 ? 2 : 8;
	if (strcmp(name, "push") == 0 || text_starts_with(name, "pushf")) {
		instruction->stack_pushed = true;
		move_stack(instruction, true, strcmp(name, "pushf") == 0 ? -2 : -width);
	} else if (strcmp(name, "pop") == 0 || text_starts_with(name, "popf")) {
		instruction->stack_popped = true;
		bool itself = x86->op_count > 0 && first->type == X86_OP_REG && first->reg == X86_REG_RSP;
		move_stack(instruction, !itself, strcmp(name, "popf") == 0 ? 2 : width);
	} else if (strcmp(name, "call") == 0) {
		instruction->stack_pushed = true;
		instruction->registers_written &= ~R(RSP);
	} else if (strcmp(name, "ret") == 0) {
		instruction->stack_popped = true;
		move_stack(instruction, true, 8 + (x86->op_count > 0 ? first->imm : 0));
	} else if (strcmp(name, "enter") == 0) {
		instruction->stack_pushed = true;
		move_stack(instruction, x86->op_count > 1 && x86->operands[1].imm == 0,
			   x86->op_count > 0 ? -8 - first->imm : 0);
	} else if (strcmp(name, "leave") == 0) {
		instruction->stack_popped = true;
		move_stack(instruction, false, 0);
	} else if (instruction->registers_written & R(RSP)) {
		const cs_x86_op *second = &x86->operands[1];
		bool immediate = x86->op_count == 2 && second->type == X86_OP_IMM && first->type == X86_OP_REG;
		bool lea = strcmp(name, "lea") == 0 && second->mem.base == X86_REG_RSP &&
			   second->mem.index == X86_REG_INVALID;
		if (immediate && strcmp(name, "sub") == 0)
			move_stack(instruction, true, -second->imm);
		else if (immediate && strcmp(name, "add") == 0)
			move_stack(instruction, true, second->imm);
		else
			move_stack(instruction, lea, lea ? second->mem.disp : 0);
	}
}

static void flow_facts(const char *name, const cs_insn *decoded, struct instruction *instruction)
{
	static const char *const traps[] = {"ud2", "ud2b", "ud0"};
	const cs_x86 *x86 = &decoded->detail->x86;
	if (strcmp(name, "jmp") == 0 || strcmp(name, "ljmp") == 0)
		instruction->flow = MACHINE_JUMP;
	else if (name[0] == 'j' || text_starts_with(name, "loop") || strcmp(name, "xbegin") == 0)
		instruction->flow = MACHINE_BRANCH;
	else if (strcmp(name, "call") == 0 || strcmp(name, "lcall") == 0)
		instruction->flow = MACHINE_CALL;
	else if (text_starts_with(name, "ret") || text_starts_with(name, "iret") || text_starts_with(name, "sysret"))
		instruction->flow = MACHINE_RETURN;
	else if (machine_is_one_of(name, traps, COUNT(traps)))
		instruction->flow = MACHINE_TRAP;
	else if (strcmp(name, "syscall") == 0 || strcmp(name, "sysenter") == 0 || strcmp(name, "int") == 0)
		instruction->flow = MACHINE_SYSTEM;
	bool goes = instruction->flow == MACHINE_JUMP || instruction->flow == MACHINE_BRANCH ||
		    instruction->flow == MACHINE_CALL;
	if (goes && x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM) {
		instruction->target_known = true;
		instruction->target = (uint64_t)x86->operands[0].imm;
	}
}

static void set_shape(struct instruction *instruction, enum machine_shape shape, int first, int second)
{
	instruction->shape = shape;
	instruction->first = first;
	instruction->second = second;
}

/* Result 0 whatever was there: nothing is read. */
static void zero_idiom(const char *name, const cs_x86 *x86, struct instruction *instruction, int number)
{
	static const char *const names[] = {"xor",    "sub",    "pxor",   "xorps", "xorpd", "vpxor", "vxorps",
					    "vxorpd", "vpxord", "vpxorq", "psubd", "psubq", "psubb", "psubw"};
	unsigned last = x86->op_count - 1U;
	bool same = x86->operands[last].reg == x86->operands[last - 1].reg && x86->operands[last].type == X86_OP_REG &&
		    x86->operands[last - 1].type == X86_OP_REG;
	if (x86->op_count > 3 || !same || !machine_is_one_of(name, names, COUNT(names)))
		return;
	instruction->registers_read = 0;
	instruction->registers_narrow = 0;
	if (x86->operands[0].size >= 4)
		set_shape(instruction, SHAPE_ZERO, number, REGISTER_NONE);
}

static void shape_facts(const struct machine *machine, const char *name, const cs_x86 *x86,
			struct instruction *instruction)
{
	static const char *const moves[] = {"mov",    "movaps",  "movapd",  "movups",  "movupd",  "movdqa",
					    "movdqu", "vmovaps", "vmovapd", "vmovups", "vmovdqa", "vmovdqu"};
	struct register_part first = {REGISTER_NONE, 0, false};
	struct register_part second = {REGISTER_NONE, 0, false};
	if (x86->op_count > 0 && x86->operands[0].type == X86_OP_REG)
		first = machine_part(machine, x86->operands[0].reg);
	if (x86->op_count > 1 && x86->operands[1].type == X86_OP_REG)
		second = machine_part(machine, x86->operands[1].reg);
	bool whole = x86->op_count == 2 && first.number != REGISTER_NONE && second.number != REGISTER_NONE &&
		     first.bits >= 64 && second.bits == first.bits;
	if (whole && machine_is_one_of(name, moves, COUNT(moves)))
		set_shape(instruction, SHAPE_MOVE, first.number, second.number);
	else if (whole && strcmp(name, "xchg") == 0)
		set_shape(instruction, SHAPE_EXCHANGE, first.number, second.number);
	else if (strcmp(name, "push") == 0)
		set_shape(instruction, SHAPE_PUSH, first.number, REGISTER_NONE);
	else if (strcmp(name, "pop") == 0)
		set_shape(instruction, SHAPE_POP, first.number, REGISTER_NONE);
	else if (strcmp(name, "pushfq") == 0)
		set_shape(instruction, SHAPE_PUSH_FLAGS, REGISTER_NONE, REGISTER_NONE);
	else if (strcmp(name, "popfq") == 0)
		set_shape(instruction, SHAPE_POP_FLAGS, REGISTER_NONE, REGISTER_NONE);
	else if (strcmp(name, "lahf") == 0)
		set_shape(instruction, SHAPE_FLAGS_TO_FIRST, X86_RAX, REGISTER_NONE);
	else if (strcmp(name, "sahf") == 0)
		set_shape(instruction, SHAPE_FIRST_TO_FLAGS, X86_RAX, REGISTER_NONE);
	else if (x86->op_count >= 2 && first.number != REGISTER_NONE)
		zero_idiom(name, x86, instruction, first.number);
	/* sbb r, r comes to minus the carry: the register does not matter. */
	if (strcmp(name, "sbb") == 0 && first.number != REGISTER_NONE && x86->operands[1].type == X86_OP_REG &&
	    x86->operands[0].reg == x86->operands[1].reg)
		instruction->registers_read = instruction->registers_narrow = 0;
}

void machine_x86_facts(const struct machine *machine, const cs_insn *decoded, struct instruction *instruction)
{
	static const char *const nothing[] = {"nop", "endbr64", "endbr32", "pause", "fnop"};
	const cs_x86 *x86 = &decoded->detail->x86;
	const char *name = cs_insn_name(machine->handle, decoded->id);
	if (name == NULL)
		name = instruction->mnemonic;
	bool string = machine_x86_is_string(name, x86);
	instruction->repeated = string && (x86->prefix[0] == X86_PREFIX_REP || x86->prefix[0] == X86_PREFIX_REPNE);
	instruction->locked = x86->prefix[0] == X86_PREFIX_LOCK;
	if (machine_is_one_of(name, nothing, COUNT(nothing)))
		instruction->shape = SHAPE_NOTHING;
	machine_x86_flag_facts(name, decoded, instruction);
	operand_facts(machine, name, decoded, instruction);
	implied_facts(machine, name, decoded, instruction);
	flow_facts(name, decoded, instruction);
	shape_facts(machine, name, x86, instruction);
	stack_facts(name, x86, instruction);
}

/* ---- what capstone 4 does not know ---- */

/* rdpid r64: f3 [41] 0f c7 /7 */
static bool rdpid(const uint8_t *bytes, size_t size, struct instruction *instruction)
{
	size_t rex = size > 1 && (bytes[1] & 0xf0) == 0x40 ? 1 : 0;
	if (size < 4 + rex || bytes[0] != 0xf3 || bytes[1 + rex] != 0x0f || bytes[2 + rex] != 0xc7 ||
	    bytes[3 + rex] < 0xf8)
		return false;
	static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	int number = (bytes[3 + rex] & 7) + (rex > 0 && bytes[1] & 1 ? 8 : 0);
	instruction->size = (unsigned)(4 + rex);
	instruction->registers_written = REGISTER(number);
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "rdpid");
	snprintf(instruction->operands, sizeof instruction->operands, "%s", names[number]);
	return true;
}

/* ktest{b,w,d,q} k, k: a VEX prefix of two or three bytes, opcode 99, two registers */
static bool ktest(const uint8_t *bytes, size_t size, struct instruction *instruction)
{
	static const char letters[2][2] = {{'w', 'b'}, {'q', 'd'}};
	size_t length = size >= 4 && bytes[0] == 0xc5 ? 2 : size >= 5 && bytes[0] == 0xc4 && bytes[1] == 0xe1 ? 3 : 0;
	uint8_t last = length > 0 ? bytes[length - 1] : 0;
	if (length == 0 || bytes[length] != 0x99 || (last & 0x7e) != 0x78 || bytes[length + 1] < 0xc0 ||
	    (length == 2 && !(last & 0x80)))
		return false;
	unsigned first = bytes[length + 1] >> 3 & 7, second = bytes[length + 1] & 7;
	instruction->size = (unsigned)length + 2;
	instruction->registers_read = REGISTER(X86_K0 + first) | REGISTER(X86_K0 + second);
	instruction->flags_written = FLAGS_X86_STATUS;
	instruction->flags_cleared = FLAG_OF | FLAG_SF | FLAG_AF | FLAG_PF;
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "ktest%c",
		 letters[length == 3 && last & 0x80][last & 1]);
	snprintf(instruction->operands, sizeof instruction->operands, "k%u, k%u", first, second);
	return true;
}

bool machine_x86_extra(const uint8_t *bytes, size_t size, struct instruction *instruction)
{
	if (size >= 3 && bytes[0] == 0x0f && bytes[1] == 0x01 && (bytes[2] == 0xee || bytes[2] == 0xef)) {
		bool reads = bytes[2] == 0xee;
		instruction->size = 3;
		instruction->registers_read = reads ? R(RCX) : R(RAX) | R(RCX) | R(RDX);
		instruction->registers_written = reads ? R(RAX) | R(RDX) : 0;
		snprintf(instruction->mnemonic, sizeof instruction->mnemonic, "%s", reads ? "rdpkru" : "wrpkru");
		return true;
	}
	return rdpid(bytes, size, instruction) || ktest(bytes, size, instruction);
}
