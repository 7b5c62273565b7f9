/*
 * From an accused block of inline assembly to the asm! that declares it, and to the edit that corrects that declaration: what the
 * repaired twin is made of.
 *
 * A block that a macro made has the line of the macro's caller in the debug information, so the declaration is looked for by its
 * text: an invocation of asm!, or of something that is called like it (`#asm_macro!` in a quote!), whose template lines all occur
 * in the block's and which makes the promise that the block breaks.  Sources are untrusted text: nothing is compiled, nothing
 * followed.
 */
#ifndef BISECTD_WORKER_EVIDENCE_DECLARE_H
#define BISECTD_WORKER_EVIDENCE_DECLARE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Where a package's sources lie. */
struct declare_root {
	char *name;
	char *version; /* or NULL: not known, or the reproducer */
	char *folder;
	bool reproducer;
};

struct declare_roots {
	struct declare_root *items;
	size_t count;
	size_t capacity;
};

struct declaration {
	struct declare_root package; /* a copy */
	char *file;                  /* below the package's folder; NULL: nothing was found */
	long long line;              /* where the invocation starts, from 1 */
	char *find;                  /* the whole invocation as it stands there */
	char *replace;               /* the same, corrected */
	long long matches;           /* how often `find` stands in the file */
	char *change;                /* "without preserves_flags" */
};

#define cleanup_declaration __attribute__((cleanup(declaration_clear)))
#define cleanup_declare_roots __attribute__((cleanup(declare_roots_clear)))

/*
 * The packages that a prepared build may use: those of <prepared>/Cargo.lock in the folders that its cargo-config.toml names, those
 * edited, and the reproducer (first).  `prepared` may be NULL.
 */
int declare_roots(const char *reproducer, const char *prepared, struct declare_roots *roots, struct error *error);
void declare_roots_clear(struct declare_roots *roots);

/*
 * Find the declaration of a block.  `block_template`: as the IR has it, unescaped.  `promise`: the option that is broken
 * ("preserves_flags", "nomem", "readonly", "nostack", "pure"); `registers`: a list of names that are destroyed and not declared
 * ("rbx, rcx"), for promises that are no option; or NULL.  Where several fit, the one whose template says most.
 * Returns 0 also where nothing is found (declaration->file is NULL).
 */
int declare_find(const struct declare_roots *roots, const char *block_template, const char *promise, const char *registers,
		 struct declaration *declaration, struct error *error);
void declaration_clear(struct declaration *declaration);

/* For tests: the same in one text. */
void declare_find_in_text(const char *text, const char *block_template, const char *promise, const char *registers,
			  struct declaration *declaration);

#endif
