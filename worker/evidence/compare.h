/*
 * Two disassemblies of one function side by side: what is the same, what only uses other registers, what is different.
 *
 * What does not count: addresses, the numbers of labels, distances to the program counter, hashes in symbols.  Two
 * instructions that differ in registers alone are `renamed` where the renaming is consistent: within a run of aligned
 * instructions, from label to label, each register of one side stands for one of the other from its definition to its
 * last use; what an instruction or a call uses without naming it (rax and rdx of mul, arguments, the stack pointer) can
 * stand only for itself.  Where it is not consistent the pair is `changed`, with a note.  Hence: `same` and `renamed`
 * are claims, `changed` is what could not be claimed. Bindings begin anew at every label: that both sides come there
 * with the same renaming is not proven.
 *
 * Pure: no files, no processes.  Knows machine.h for what an instruction reads and writes.
 */
#ifndef BISECTD_WORKER_EVIDENCE_COMPARE_H
#define BISECTD_WORKER_EVIDENCE_COMPARE_H

#include <jansson.h>

#include "evidence/machine.h"

#define CODE_REGISTERS_MAX 6

/* One instruction, as it is shown and as it is compared. */
struct code_line {
	uint64_t address;
	char *label;  /* ".L3" where branches of this function come here, or NULL */
	char *source; /* "main.rs:12  let n = head - tail;" where the line changes, or NULL */
	char *text;   /* "call core::fmt::write" */
	char *key;    /* `text` with what does not count taken out and registers as %r64, %r32, %xmm, ... */

	/* The registers that the text names, in its order, and what is known of them. */
	unsigned char registers[CODE_REGISTERS_MAX];
	bool address_part[CODE_REGISTERS_MAX]; /* between brackets */
	unsigned register_count;
	register_set read;
	register_set written;
	register_set kept;
	bool call;
	bool leaves; /* a return */
};

struct code {
	char *title;                   /* "v0.5.0, rustc 1.63.0" or NULL */
	const struct machine *machine; /* borrowed: must live as long */
	struct code_line *lines;
	size_t count;
	size_t capacity;
};

#define cleanup_code __attribute__((cleanup(code_clear)))

/*
 * Append an instruction.  `name` is what its address stands for (where a jump or call goes, what a distance to the
 * program counter comes to): a symbol, ".L3" for a label of this function; NULL: not known, the address is shown and
 * not compared.  `label` and `source` may be NULL.
 */
void code_add(struct code *code, const struct instruction *instruction, const char *name, const char *label,
	      const char *source);
void code_clear(struct code *code);

enum compare_mark { COMPARE_SAME, COMPARE_RENAMED, COMPARE_CHANGED, COMPARE_LEFT_ONLY, COMPARE_RIGHT_ONLY };

/* "same", "renamed", "changed", "left-only", "right-only". */
const char *compare_mark_name(enum compare_mark mark);

#define COMPARE_NONE SIZE_MAX

struct compare_row {
	size_t left; /* index of the line, or COMPARE_NONE */
	size_t right;
	enum compare_mark mark;
	const char *note; /* why a pair with the same text or the same shape is `changed`; static; or NULL */
	bool deciding;
};

struct comparison {
	const struct code *left; /* borrowed */
	const struct code *right;
	struct compare_row *rows;
	size_t count;
	size_t capacity;
	size_t marks[5];  /* rows with each mark */
	bool approximate; /* too different to find the shortest difference in reasonable time: a longer one is shown */
};

#define cleanup_comparison __attribute__((cleanup(comparison_clear)))

/* Addresses of deciding instructions (definition, destroyer, reader). */
struct compare_deciding {
	const uint64_t *left;
	size_t left_count;
	const uint64_t *right;
	size_t right_count;
};

/* `deciding` may be NULL. */
void compare(struct comparison *comparison, const struct code *left, const struct code *right,
	     const struct compare_deciding *deciding);
void comparison_clear(struct comparison *comparison);

/*
 * As text.  In both, a deciding instruction has "=>" in the first columns.  Unified: "-" left, "+" right, "~" renamed
 * (the right side's text), " " the same; `context` equal rows are kept around each difference (and around deciding
 * rows), SIZE_MAX: all. Side by side: `width` columns in all (at least 40); between the sides " ", "~" renamed, "|"
 * changed, "<" left only, ">" right only; what does not fit is cut and ends in "…".
 */
void compare_unified(const struct comparison *comparison, size_t context, struct str *text);
void compare_side_by_side(const struct comparison *comparison, size_t width, struct str *text);
/* One line: "812 instructions left, 806 right: 700 the same, 61 with other registers, 20 changed, 31 only left, 25 only
 * right". */
void compare_summary(const struct comparison *comparison, struct str *text);
/*
 * A new reference: [{"left", "right": {"address": "0x…", "text", "label"?, "source"?} or null, "mark": "same" |
 * "renamed" | "changed" | "left-only" | "right-only" | "deciding", "difference": the mark without regard to deciding,
 * "note"?}].
 */
json_t *compare_json(const struct comparison *comparison);

#endif
