/* Functions of a binary for listing.h, through elf.h: which there are, and one of them disassembled with names and
 * lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/elf.h"
#include "evidence/listing.h"

void listing_binary_functions(const struct binary *binary, struct listing_functions *functions)
{
	size_t count = 0;
	const struct binary_function *all = binary_functions(binary, &count);
	for (size_t i = 0; i < count; i++)
		listing_add(functions, all[i].symbol, all[i].address, all[i].size);
}

struct lookup {
	struct binary *binary;
	struct machine *machine;
	struct listing_sources *sources;
};

/* Of a function: "name", or "name+0x12" for an address within it; NULL where there is none. */
static char *function_at(const struct binary *binary, uint64_t address)
{
	const struct binary_function *function = binary_function_at(binary, address);
	if (function == NULL)
		return NULL;
	char *name = demangle(function->symbol);
	if (function->address == address)
		return name;
	char *with_distance = text_format("%s+%#" PRIx64, name, address - function->address);
	free(name);
	return with_distance;
}

/* Of an entry of the global offset table: the name of what is found there. */
static char *slot_at(const struct binary *binary, uint64_t address)
{
	const char *symbol = NULL;
	uint64_t points_to = 0;
	if (!binary_slot(binary, address, &symbol, &points_to))
		return NULL;
	return symbol != NULL ? demangle(symbol) : function_at(binary, points_to);
}

/* A stub of the procedure linkage table, which the linker writes in its own way: "jmp [rip + slot]" within its first 16
 * bytes. */
static char *stub_at(const struct lookup *lookup, uint64_t address)
{
	const char *section = NULL;
	uint64_t start = 0;
	uint64_t size = 0;
	if (!binary_section_at(lookup->binary, address, &section, &start, &size) || section == NULL ||
	    !text_starts_with(section, ".plt"))
		return NULL;
	for (uint64_t at = address; at < address + 16;) {
		const uint8_t *bytes = binary_bytes(lookup->binary, at, 15);
		struct instruction instruction;
		if (bytes == NULL || machine_decode(lookup->machine, bytes, 15, at, &instruction) != 1 ||
		    instruction.size == 0)
			return NULL;
		if (instruction.flow == MACHINE_JUMP && instruction.memory_count > 0 && instruction.memory[0].relative)
			return slot_at(lookup->binary, instruction.memory[0].address);
		at += instruction.size;
	}
	return NULL;
}

static char *symbol_at(void *context, uint64_t address)
{
	const struct lookup *lookup = context;
	char *name = function_at(lookup->binary, address);
	if (name == NULL)
		name = stub_at(lookup, address);
	if (name != NULL)
		return name;
	cleanup_free char *behind = slot_at(lookup->binary, address);
	return behind != NULL ? text_format("&%s", behind) : NULL;
}

/* The innermost place whose source may be read: of what the standard library inlines, the line that called it. */
static char *source_at(void *context, uint64_t address)
{
	const struct lookup *lookup = context;
	cleanup_source_frames struct source_frames nearest = {0};
	cleanup_source_frames struct source_frames frames = {0};
	binary_frames(lookup->binary, address, false, &nearest);
	const struct source_frame *chosen = nearest.count > 0 && nearest.items[0].line > 0 ? nearest.items : NULL;
	if (chosen == NULL || chosen->file == NULL)
		return NULL;
	if (!listing_source_known(lookup->sources, chosen->file)) {
		binary_frames(lookup->binary, address, true, &frames);
		for (size_t i = 0; i < frames.count; i++) {
			const struct source_frame *frame = &frames.items[i];
			if (frame->file == NULL || frame->line <= 0 ||
			    !listing_source_known(lookup->sources, frame->file))
				continue;
			chosen = frame;
			break;
		}
	}
	return listing_source_line(lookup->sources, chosen->file, chosen->line);
}

int listing_of_binary(struct binary *binary, struct machine *machine, const struct listing_function *function,
		      struct listing_sources *sources, struct code *code, struct error *error)
{
	const uint8_t *bytes = function->size <= LISTING_BYTES_MAX
				       ? binary_bytes(binary, function->address, (size_t)function->size)
				       : NULL;
	if (bytes == NULL)
		return error_set(error, "%s: the %" PRIu64 " bytes of %s at %#" PRIx64 " cannot be had",
				 binary_path(binary), function->size, function->symbol, function->address);
	struct lookup lookup = {binary, machine, sources};
	const struct listing_names names = {
		.symbol = symbol_at, .source = binary_has_lines(binary) ? source_at : NULL, .context = &lookup};
	listing_disassemble(code, machine, bytes, (size_t)function->size, function->address, &names);
	return 0;
}
