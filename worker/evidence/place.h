/*
 * Where the inline-assembly blocks of a compile stand in the program that was linked from it.
 *
 * A binary does not say which of its instructions came from an asm! block.  The compiler's own assembly (--emit=asm)
 * does: #APP and #NO_APP stand around each.  So that assembly is assembled once more, with a label at every mark, and
 * the function around each block is compared with the function of that name in the binary, byte by byte where no
 * relocation is filled in.  Only where they are equal is the block placed: a guess would be worse than no answer.
 *
 * To have the same code, rustc must be given its number of codegen units explicitly: --emit=asm alone changes it to 1.
 */
#ifndef BISECTD_WORKER_EVIDENCE_PLACE_H
#define BISECTD_WORKER_EVIDENCE_PLACE_H

#include "evidence/elf.h"
#include "evidence/machine.h"

struct region {
	char *symbol; /* of the function that it stands in; NULL where it is in none */
	char *text; /* the lines between the marks, as the compiler wrote them (AT&T syntax mostly), without empty ones
		     */
	char *file; /* of the .loc before it; NULL: none */
	int line;   /* 0: none, as for a block that was merged from several places */
	char *provider; /* of the probe whose record the block writes; NULL: none */
	char *name;
	bool is_enabled; /* that record is an is-enabled one */
	bool placed;
	char *reason;   /* where it was not placed: why */
	uint64_t start; /* in the binary, [start, end): empty for a block without instructions */
	uint64_t end;
};

struct regions {
	struct region *items; /* in the order of the assembly files */
	size_t count;
	size_t capacity;
};

#define cleanup_regions __attribute__((cleanup(regions_clear)))

struct place_setup {
	const char *clang;    /* program to assemble with; NULL: clang on PATH */
	const char *scratch;  /* an existing folder for files that are removed again */
	long long timeout_ms; /* for each assembly file; 0: a minute */
};

/*
 * Append every block of the assembly file to `regions`, placed or with the reason why not.  -1 where the file as a
 * whole is of no use: it cannot be read, clang is missing, refuses it or takes too long, or it has directives that read
 * files or build other directives.
 */
int regions_place(struct regions *regions, struct binary *binary, struct machine *machine, const char *assembly,
		  const struct place_setup *setup, struct error *error);
/*
 * For a bare binary: a region of one instruction for each probe record (the is-enabled instruction or the nop).  -1 as
 * binary_probes.
 */
int regions_of_probes(struct regions *regions, struct binary *binary, struct machine *machine, struct error *error);

/*
 * Whether the region's instructions are those of a block that was assembled by itself: the same mnemonics and operands
 * in the same order, where any register stands for any of its kind and any number for any other.
 */
bool region_matches(const struct region *region, struct binary *binary, struct machine *machine,
		    const struct instruction *block, size_t count);

void regions_clear(struct regions *regions);

#endif
