/*
 * One machine instruction as facts: what it reads and writes (registers, flags, memory, stack) and where control goes.
 *
 * The wall around capstone: nothing of it shows here.  capstone 4's facts about flags and accesses are wrong for a
 * number of instructions; machine_x86*.c and machine_arm64.c hold the tables of corrections, tests/unit/test_machine.c
 * a row for each.  It knows nothing of files, functions or promises.
 */
#ifndef BISECTD_WORKER_EVIDENCE_MACHINE_H
#define BISECTD_WORKER_EVIDENCE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "str.h"

enum machine_kind { MACHINE_X86_64, MACHINE_AARCH64 };

/*
 * A set of registers, one bit each; a part of a register counts as the register.
 * x86-64: 0-15 rax rcx rdx rbx rsp rbp rsi rdi r8-r15, 16-47 zmm0-31 (xmm and ymm are parts), 48-55 k0-k7, 56 x87 and
 * MMX. AArch64: 0-30 x0-x30, 31 sp, 32-63 v0-v31.  The program counter and segment registers are not among them.
 */
typedef uint64_t register_set;

#define REGISTER(number) ((register_set)1 << (number))
enum {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R9,
	X86_R10,
	X86_R11,
	X86_ZMM0 = 16,
	X86_K0 = 48,
	X86_X87 = 56,
	ARM_X30 = 30,
	ARM_SP = 31,
	ARM_V0 = 32,
	REGISTER_NONE = -1
};

/* A set of flags. */
typedef uint32_t flag_set;

enum {
	FLAG_CF = 1 << 0,
	FLAG_PF = 1 << 1,
	FLAG_AF = 1 << 2,
	FLAG_ZF = 1 << 3,
	FLAG_SF = 1 << 4,
	FLAG_OF = 1 << 5,
	FLAG_DF = 1 << 6,    /* the direction flag */
	FLAG_X87 = 1 << 7,   /* the x87 status word, as a whole */
	FLAG_MXCSR = 1 << 8, /* the floating-point exception flags in MXCSR, which only gather */
	FLAG_N = 1 << 9,     /* AArch64 */
	FLAG_Z = 1 << 10,
	FLAG_C = 1 << 11,
	FLAG_V = 1 << 12,
	FLAG_FPSR = 1 << 13, /* AArch64's exception flags, which only gather */
	FLAGS_X86_STATUS = FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF,
	FLAGS_NZCV = FLAG_N | FLAG_Z | FLAG_C | FLAG_V,
	/* What arithmetic leaves and branches read: the flags that `preserves_flags` is about in practice. */
	FLAGS_STATUS = FLAGS_X86_STATUS | FLAGS_NZCV
};

enum machine_flow {
	MACHINE_NEXT,   /* on to the next instruction */
	MACHINE_JUMP,   /* always elsewhere */
	MACHINE_BRANCH, /* elsewhere or next */
	MACHINE_CALL,   /* elsewhere, and mostly back to the next */
	MACHINE_RETURN,
	MACHINE_TRAP,  /* ud2, hlt, brk: does not go on */
	MACHINE_SYSTEM /* syscall, svc, int n: the kernel, then the next */
};

/* Shapes that whoever follows values needs to know; `first` and `second` below are their registers. */
enum machine_shape {
	SHAPE_OTHER,
	SHAPE_MOVE,           /* register `first` = register `second`, whole (32-bit moves between registers are not) */
	SHAPE_EXCHANGE,       /* registers `first` and `second` change places, whole */
	SHAPE_PUSH,           /* register `first` (REGISTER_NONE: something else) onto the stack */
	SHAPE_POP,            /* register `first` (REGISTER_NONE: memory) from the stack */
	SHAPE_PUSH_FLAGS,     /* pushfq */
	SHAPE_POP_FLAGS,      /* popfq */
	SHAPE_FLAGS_TO_FIRST, /* lahf (first = rax, without OF), mrs x, nzcv */
	SHAPE_FIRST_TO_FLAGS, /* sahf, msr nzcv, x */
	SHAPE_ZERO,           /* register `first` = 0 whatever it was: xor r, r; sub r, r */
	SHAPE_NOTHING         /* nop, endbr64, hint */
};

struct machine_memory {
	int base;  /* number of a register, or REGISTER_NONE */
	int index; /* the same */
	int scale;
	int64_t displacement;
	unsigned size; /* in bytes; 0 where it is unknown */
	bool read;
	bool written;
	bool relative; /* to the program counter: `address` is what it comes to */
	uint64_t address;
	bool segment; /* through fs or gs: thread-local */
};

#define MACHINE_MEMORY_MAX 2

struct instruction {
	uint64_t address;
	unsigned size; /* in bytes */
	char mnemonic[32];
	char operands[160]; /* Intel syntax on x86-64 */

	register_set registers_read;
	register_set registers_narrow;  /* of those read: only their low 8 or 16 bits are looked at */
	register_set registers_written; /* changed, in any part, in any case */
	register_set registers_kept; /* of those written: a part of the old value survives, or all of it in some case */

	flag_set flags_read;
	flag_set flags_written;   /* may be changed, undefined ones included */
	flag_set flags_kept;      /* of those written: may also keep their old value (shl rax, cl with cl = 0) */
	flag_set flags_undefined; /* of those written: the manual gives them no value */
	flag_set flags_cleared;   /* of those written: known to be 0 afterwards */
	flag_set flags_set;       /* of those written: known to be 1 afterwards */
	int condition;            /* what a branch, setcc, cmov, csel asks: for machine_condition; 0: nothing */

	bool memory_read; /* through an address of its own; pushes, pops, calls and returns are not counted */
	bool memory_written;
	struct machine_memory memory[MACHINE_MEMORY_MAX]; /* lea's operand is here too, neither read nor written */
	unsigned memory_count;

	bool stack_pushed; /* writes below the stack pointer that it found: push, call, enter, stp [sp, -16]! */
	bool stack_popped;
	bool stack_moved; /* the stack pointer is changed */
	bool stack_known; /* ... by `stack_change` bytes, below 0: downwards */
	int64_t stack_change;

	enum machine_flow flow;
	bool target_known; /* jump, branch, call: `target` is the address; otherwise it comes from a register or memory
			    */
	uint64_t target;

	enum machine_shape shape;
	int first;
	int second;
	bool repeated; /* rep: may happen no time at all */
	bool locked;
};

struct machine; /* owned by whoever opened it; not to be shared between threads */

#define cleanup_machine __attribute__((cleanup(machine_close)))

/* For the e_machine of an ELF file: EM_X86_64 (62), EM_AARCH64 (183).  The error names what is not known. */
int machine_open(struct machine **machine, unsigned elf_machine, struct error *error);
/* For the target triple of LLVM IR: "x86_64-unknown-linux-gnu", "aarch64-…", "arm64-apple-…". */
int machine_open_triple(struct machine **machine, const char *triple, struct error *error);
void machine_close(struct machine **machine);
enum machine_kind machine_kind(const struct machine *machine);

/* 1 and the instruction at the start of `bytes`, or 0 where there is none that is known (also: cut off). */
int machine_decode(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
		   struct instruction *instruction);

struct instructions {
	struct instruction *items;
	size_t count;
	size_t capacity;
	size_t decoded; /* bytes; fewer than were given: no instruction follows */
};

#define cleanup_instructions __attribute__((cleanup(instructions_clear)))

/* All of `bytes`; -1 with "the bytes 0f ff at 0x1234 are no instruction known here" and what came before it. */
int machine_decode_all(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
		       struct instructions *instructions, struct error *error);
void instructions_clear(struct instructions *instructions);

/* "xor rax, rax"; owned by the caller. */
char *instruction_text(const struct instruction *instruction);

/*
 * What a condition comes to where the flags in `known` have the values in `values`: 1 it holds, 0 it does not, -1 that
 * depends on flags that are not known.
 */
int machine_condition(int condition, flag_set known, flag_set values);

/* "rax", "xmm3" for the whole of zmm3, "x19", "v0". */
const char *machine_register_name(const struct machine *machine, int number);
/* The register (or register class part) of a name as in constraint strings and asm!: "eax", "ymm1", "w3", "d7"; or
 * REGISTER_NONE. */
int machine_register_number(const struct machine *machine, const char *name);
void machine_registers_text(const struct machine *machine, register_set registers,
			    struct str *text);             /* appends "rax, rbx" */
void machine_flags_text(flag_set flags, struct str *text); /* appends "ZF, CF" */
const char *machine_flag_name(flag_set flag);              /* of one flag */

/* Registers that a call may change, and that it must not, by the platform's convention (System V, AAPCS64); flags are
 * in the former. */
register_set machine_call_clobbers(const struct machine *machine);
/* Registers that may carry arguments to a call, and results out of a return. */
register_set machine_call_arguments(const struct machine *machine);
register_set machine_return_values(const struct machine *machine);
/* The status flags of this machine. */
flag_set machine_status_flags(const struct machine *machine);

#endif
