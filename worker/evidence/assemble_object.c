/* See assemble_object.h. */
#include "evidence/assemble_object.h"

#include <stdlib.h>
#include <string.h>

#include "evidence/elf.h"

/* A label that is not there. */
#define NOWHERE UINT64_MAX

static void take_relocations(struct assembly *block, const struct binary *binary, uint64_t begin)
{
	block->relocations = memory_new(block->size + 1, sizeof *block->relocations);
	if (!binary_relocated(binary, begin, block->size))
		return;
	for (size_t i = 0; i < block->size; i++)
		if (binary_relocated(binary, begin + i, 1))
			block->relocations[block->relocation_count++] = i;
}

static void take_bytes(struct assembly *block, struct binary *binary, uint64_t begin, uint64_t end)
{
	uint64_t start = begin;
	uint64_t size = 0;
	if (begin == NOWHERE || end == NOWHERE) {
		block->refused = text_copy("the assembler left it out");
		return;
	}
	bool placed = begin == end || binary_section_at(binary, begin, NULL, &start, &size);
	if (!placed || end < begin || end > start + size) {
		block->refused = text_copy("it ends in another section than it begins in");
		return;
	}
	block->size = (size_t)(end - begin);
	const uint8_t *bytes = block->size > 0 ? binary_bytes(binary, begin, block->size) : NULL;
	if (block->size > 0 && bytes == NULL) {
		block->size = 0;
		block->refused = text_copy("its bytes are not in the object file");
		return;
	}
	block->bytes = memory_new(block->size + 1, 1);
	if (bytes != NULL)
		memcpy(block->bytes, bytes, block->size);
	take_relocations(block, binary, begin);
}

int assemble_read_object(const char *path, struct assembly *blocks, const size_t *members, size_t count,
			 struct error *error)
{
	cleanup_binary struct binary *binary = NULL;
	size_t numbers = members[count - 1] + 1; /* members are sorted */
	cleanup_free uint64_t *begins = memory_new(numbers, sizeof *begins);
	cleanup_free uint64_t *ends = memory_new(numbers, sizeof *ends);
	if (binary_open(&binary, path, error) < 0)
		return error_wrap(error, "reading what the assembler made");
	for (size_t i = 0; i < numbers; i++)
		begins[i] = ends[i] = NOWHERE;
	binary_numbered(binary, "bisectd_begin_", begins, numbers);
	binary_numbered(binary, "bisectd_end_", ends, numbers);
	for (size_t i = 0; i < count; i++)
		take_bytes(&blocks[members[i]], binary, begins[members[i]], ends[members[i]]);
	return 0;
}
