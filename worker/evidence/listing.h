/*
 * One function as people read it: as cargo-show-asm prints it, as capstone decodes it from the binary, as LLVM IR and
 * as MIR; and which function to look at.
 *
 * Everything that is read here comes from a build under test: any bytes end in text or in one clear error.  Knows no
 * jobs and no folders of the project; it builds nothing.
 */
#ifndef BISECTD_WORKER_EVIDENCE_LISTING_H
#define BISECTD_WORKER_EVIDENCE_LISTING_H

#include "child.h"
#include "error.h"
#include "evidence/compare.h"
#include "evidence/elf.h"
#include "evidence/machine.h"
#include "str.h"

/* ---- which function: listing_choose.c ---- */

/* A function that could be meant. */
struct listing_function {
	char *symbol;
	char *name; /* demangled; listing_add fills it in */
	uint64_t address;
	uint64_t size;
	/* Names of functions that are inlined into it ("usdt_86_reproducer::task::serial_task::{{closure}}"): an async
	 * fn's body is often found nowhere else.  May be empty. */
	struct strlist inlined;
	char *why; /* of a chosen one: the inlined function that was meant (and whose MIR to ask for), where it is not
		      itself; else NULL */
};

struct listing_functions {
	struct listing_function *items;
	size_t count;
	size_t capacity;
};

#define cleanup_listing_functions __attribute__((cleanup(listing_functions_clear)))

enum { LISTING_CHOSEN_MAX = 8 };

/* The new element, for `inlined`; valid until the next one is added. */
struct listing_function *listing_add(struct listing_functions *functions, const char *symbol, uint64_t address,
				     uint64_t size);
void listing_functions_clear(struct listing_functions *functions);
/* Give the functions of a binary what the IR of the same build (listing_ir_functions) says to be inlined into them. */
void listing_add_inlined(struct listing_functions *functions, const struct listing_functions *from);

/*
 * The functions that `pattern` means (a POSIX extended regular expression on demangled names and symbols; NULL: none)
 * or whose symbol is in `symbols` (NULL: none).  A function whose own name matches goes before one into which such a
 * function is inlined, and of those the largest goes first; glue (core::ptr::drop_in_place<...>) comes last.  At most
 * LISTING_CHOSEN_MAX; where there are more, `said` receives "12 functions match "serial_task": the 8 largest are
 * shown".  -1: the expression is none, or nothing matches (the error names the nearest candidates).
 */
int listing_choose(const struct listing_functions *all, const char *pattern, const struct strlist *symbols,
		   struct listing_functions *chosen, char **said, struct error *error);

/* ---- from the binary: listing_binary.c ---- */

/* What addresses stand for.  Both may be NULL, and return NULL where they do not know; what they return is owned by the
 * caller. */
struct listing_names {
	char *(*symbol)(void *context, uint64_t address); /* "core::fmt::write", "memcpy@plt", "anon.12+0x8" */
	char *(*source)(void *context, uint64_t address); /* "main.rs:12"; asked in the order of addresses */
	void *context;
};

/*
 * Append the function's instructions to `code` (whose `machine` is set here): call targets and what distances to the
 * program counter come to by name, local branch targets by labels .L1, .L2, ... in the order of addresses, the source
 * where it changes. Bytes that are no instruction become ".byte 0x0f" (x86-64) or ".word 0x…" lines.
 */
void listing_disassemble(struct code *code, struct machine *machine, const uint8_t *bytes, size_t size,
			 uint64_t address, const struct listing_names *names);
/* The same as text: "; source" lines, labels, instructions with their addresses; deciding addresses marked with "=>".
 */
void listing_text(const struct code *code, const uint64_t *deciding, size_t deciding_count, struct str *text);

/* A line of a source file for listing_names.source: "main.rs:12  let n = head - tail;".  Files are read once. */
struct listing_sources {
	struct strlist roots; /* folders; files that do not lie below one of them are named but not read; empty: none
				 is read */
	struct strlist names;
	struct str *texts;
	size_t capacity;
};

#define cleanup_listing_sources __attribute__((cleanup(listing_sources_clear)))

char *listing_source_line(struct listing_sources *sources, const char *file, long long line);
/* Has it the text of this file? */
bool listing_source_known(struct listing_sources *sources, const char *file);
void listing_sources_clear(struct listing_sources *sources);
/* Is this (with links followed) a file that exists below one of the folders? */
bool listing_is_below(const struct strlist *roots, const char *file);

/* The functions of a binary, for listing_choose: listing_elf.c. */
void listing_binary_functions(const struct binary *binary, struct listing_functions *functions);
/*
 * listing_disassemble for a function of a binary: names from its symbols, lines from its debug information (the
 * innermost place whose file lies below the roots of `sources`).  `machine` is one opened for binary_machine.  -1: the
 * file does not hold it.
 */
int listing_of_binary(struct binary *binary, struct machine *machine, const struct listing_function *function,
		      struct listing_sources *sources, struct code *code, struct error *error);
enum { LISTING_BYTES_MAX = 16 << 20 };

/* ---- from cargo-show-asm: listing_cargo_asm.c ---- */

/*
 * The real cargo-asm prints a function of the assembly that the evidence build has left, with source lines; nothing is
 * built.
 *
 * `cargo asm --file F.s` prints no sources, and `cargo asm` in a workspace builds with -C codegen-units=1, which is
 * another program than the one that failed.  So cargo-asm is run in a workspace of ours, in `folder`: what it believes
 * to be cargo and rustc (CARGO, RUSTC) are two scripts that answer "built already: here".  The assembly is put there as
 * a copy without the line marks (.loc) of files that do not exist or do not lie below `roots`: cargo-asm ends where a
 * standard library's source is missing, and prints any file that the assembly names.
 *
 * Run it in the sandbox where there is one: what it needs to see is `program`, `folder` and `roots`, and no network.
 */
struct listing_request {
	const char *program;         /* cargo-asm */
	const char *folder;          /* made anew, and the caller's to remove */
	const char *assembly;        /* NAME-HASH.s of the evidence build, with -C debuginfo=2 */
	const char *symbol;          /* mangled, as in the assembly */
	const char *workspace;       /* sources that count as the program's own */
	const struct strlist *roots; /* further folders with sources (vendored crates); NULL: none */
	bool all_crates;             /* show source lines of other crates too */
};

/* How to run a command; as child_capture with a fixed time and limit.  `environment` is the whole of it. */
typedef int (*listing_run)(void *context, const struct strlist *command, const struct strmap *environment,
			   const char *folder, struct child_output *output, struct error *error);

/* For listing_run: as a child of this process, for at most 60 s, output cut at 16 MiB. */
int listing_run_child(void *context, const struct strlist *command, const struct strmap *environment,
		      const char *folder, struct child_output *output, struct error *error);

/* The listing of one function, appended to `text`.  -1: cargo-asm is missing or cannot do it, with its reason in one
 * line. */
int listing_cargo_asm(const struct listing_request *request, listing_run run, void *context, struct str *text,
		      struct error *error);
/*
 * Where cargo-asm is: <tools>/bin/cargo-asm, or on PATH; owned by the caller.  NULL: nowhere; the error says so and
 * names the command that would supply it.
 */
char *listing_find_cargo_asm(const char *tools, struct error *error);

/*
 * Which of the files (a build with several codegen units leaves many: NAME-HASH.CRATE.ID-cgu.3.rcgu.s and .ll) defines
 * `symbol`; owned by the caller.  Files whose names end in ".ll" are read as LLVM IR, others as assembly.  NULL: none
 * of them does.
 */
char *listing_find_file(const struct strlist *files, const char *symbol, struct error *error);

/* ---- from the compiler's intermediate forms: listing_extract.c ---- */

/*
 * The definition of `symbol` in textual LLVM IR, appended to `text`.  `plain`: without debug records and metadata (",
 * !dbg !12", "call void @llvm.dbg.value", "#dbg_value", attribute group numbers).  -1: it is not there.
 */
int listing_ir(const char *ir, size_t length, const char *symbol, bool plain, struct str *text, struct error *error);
/* The symbols defined in textual LLVM IR, and with debug information the names of what is inlined into each. */
void listing_ir_functions(const char *ir, size_t length, struct listing_functions *functions);
/*
 * The MIR of every function of `name` (demangled, "reproducer::serial_task::{{closure}}" or v0's "::{closure#0}"),
 * appended to `text`.  MIR knows neither symbols nor the crate's own name: what agrees from the right with the most
 * path segments is taken, and a generic function is there once.  `plain`: without scopes' debug lines and comments. -1:
 * it is not there.
 */
int listing_mir(const char *mir, size_t length, const char *name, bool plain, struct str *text, struct error *error);

#endif
