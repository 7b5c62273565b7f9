/*
 * Text of asm blocks in, machine code out: clang's integrated assembler, one process for all blocks of a file.
 *
 * The texts are untrusted: template.h says which ones are not given to an assembler at all; what is given to it runs
 * with limits on time, memory and the size of what it writes.  A block that the assembler refuses costs the others
 * nothing.
 */
#ifndef BISECTD_WORKER_EVIDENCE_ASSEMBLE_H
#define BISECTD_WORKER_EVIDENCE_ASSEMBLE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "evidence/machine.h"

struct assembly {
	/* in */
	char *text; /* without section and syntax directives; owned; NULL: left out */
	bool intel;
	size_t label_count; /* labels of an asm goto (template_label) to be defined behind it */
	/* out */
	uint8_t *bytes; /* owned; what of the block went into its own section, which starts at address 0 */
	size_t size;
	size_t *relocations; /* owned; places in `bytes` that the linker fills in */
	size_t relocation_count;
	char *refused; /* owned; why there are no bytes: the assembler's own words or ours */
};

struct assembler {
	const char *program; /* NULL: the newest clang on PATH */
	enum machine_kind kind;
	long long timeout_ms; /* for all blocks together; 0: ASSEMBLE_DEFAULT_MS */
};

enum { ASSEMBLE_DEFAULT_MS = 60000 };

/* Every block ends up with `bytes` or `refused`.  -1 where no block could be tried: no clang, no room for files. */
int assemble(const struct assembler *assembler, struct assembly *blocks, size_t count, struct error *error);
void assembly_clear(struct assembly *block);

/* Path of the newest of clang, clang-NN on PATH; -1 where there is none. */
int assemble_find_program(char **program, struct error *error);

#endif
