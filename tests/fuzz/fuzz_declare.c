/*
 * The search for a declaration in source text: the first line of the input is the block's template, the second the registers, the
 * rest the source.  Whatever is found must stand in the text, and its correction must differ from it.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/declare.h"
#include "str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const char *text, const char *block, const char *promise, const char *registers)
{
	cleanup_declaration struct declaration found;
	declare_find_in_text(text, block, promise, registers, &found);
	if (found.find == NULL)
		return;
	assert(strstr(text, found.find) != NULL);
	assert(found.line >= 1 && found.matches >= 1);
	assert(strcmp(found.find, found.replace) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const promises[] = {"preserves_flags", "nomem", "readonly", "nostack", "pure", "clobbers"};
	cleanup_free char *text = text_copy_range((const char *)data, size);
	char *block_end = strchr(text, '\n');
	char *registers_end = block_end != NULL ? strchr(block_end + 1, '\n') : NULL;
	if (registers_end == NULL)
		return 0;
	*block_end = *registers_end = '\0';
	for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++)
		search(registers_end + 1, text, promises[i], block_end + 1);
	return 0;
}
