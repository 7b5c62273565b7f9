/* What the elf*.c share; only they may include this: libelf and libdw show here. */
#ifndef BISECTD_WORKER_EVIDENCE_ELF_INSIDE_H
#define BISECTD_WORKER_EVIDENCE_ELF_INSIDE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

#include "evidence/elf.h"

struct binary_section {
	const char *name; /* owned by libelf */
	uint64_t address; /* given by us in object files */
	uint64_t size;
	const uint8_t *content; /* NULL: none in the file */
	unsigned type;
	uint64_t flags;
	uint64_t info;
	uint64_t link;
	uint64_t entry_size;
};

struct binary_relocation {
	uint64_t address;
	unsigned size;
};

/* Where one compilation unit's code lies. */
struct unit_range {
	uint64_t start;
	uint64_t end;
	Dwarf_Off unit; /* of its debugging information */
};

struct binary {
	char *path;
	int file; /* -1: in memory */
	void *image;
	Elf *elf;
	GElf_Ehdr header;
	struct binary_section *sections;
	size_t section_count;
	struct binary_function *functions;
	size_t function_count;
	size_t function_capacity;
	struct binary_relocation *relocations; /* of object files, by address */
	size_t relocation_count;
	size_t relocation_capacity;
	Dwarf *dwarf; /* NULL: not looked for yet, or none */
	bool dwarf_tried;
	struct unit_range *ranges;
	size_t range_count;
	size_t range_capacity;
};

const struct binary_section *binary_section_named(const struct binary *binary, const char *name);
void binary_close_lines(struct binary *binary);

#endif
