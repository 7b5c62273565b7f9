/*
 * libFuzzer: whatever stands in a compiler's assembly, its marked blocks are read or refused, every block is whole, and
 * no directive that reads files is left in what would be assembled.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/place_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_regions struct regions regions = {0};
	cleanup_str struct str labelled = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *source = text_copy_range((const char *)data, size);
	cleanup_free char *name = demangle(source);
	require(*name != '\0' || *source == '\0');
	int status = place_read_assembly(source, &regions, &labelled, &error);
	require((status == 0) == (error.text == NULL));
	if (status != 0)
		return 0;
	for (size_t i = 0; i < regions.count; i++)
		require(regions.items[i].text != NULL && !regions.items[i].placed &&
			(regions.items[i].provider == NULL) == (regions.items[i].name == NULL));
	for (const char *line = str_text(&labelled); line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += strspn(line, " \t\r\n");
		require(!text_starts_with(line, ".incbin ") && !text_starts_with(line, ".include\t"));
	}
	return 0;
}
