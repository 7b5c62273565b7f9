/* A function disassembled from a binary's bytes: see listing.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/listing.h"
#include "fs.h"

struct addresses {
	uint64_t *items;
	size_t count;
	size_t capacity;
};

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

static void addresses_sort(struct addresses *addresses)
{
	size_t kept = 0;
	if (addresses->count > 0)
		qsort(addresses->items, addresses->count, sizeof *addresses->items, by_value);
	for (size_t i = 0; i < addresses->count; i++)
		if (kept == 0 || addresses->items[kept - 1] != addresses->items[i])
			addresses->items[kept++] = addresses->items[i];
	addresses->count = kept;
}

/* ".L3" for a target within the function; NULL for any other.  Owned by the caller. */
static char *label_of(const struct addresses *targets, uint64_t address)
{
	const uint64_t *found =
		targets->count > 0 ? bsearch(&address, targets->items, targets->count, sizeof address, by_value) : NULL;
	return found != NULL ? text_format(".L%zu", (size_t)(found - targets->items) + 1) : NULL;
}

/* What is no instruction: one byte, on AArch64 one word; shown, and passed over. */
static void make_data(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
		      struct instruction *instruction)
{
	*instruction =
		(struct instruction){.address = address, .size = 1, .first = REGISTER_NONE, .second = REGISTER_NONE};
	if (machine_kind(machine) == MACHINE_AARCH64 && size >= 4) {
		uint32_t word =
			bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
		instruction->size = 4;
		snprintf(instruction->mnemonic, sizeof instruction->mnemonic, ".word");
		snprintf(instruction->operands, sizeof instruction->operands, "%#010" PRIx32, word);
		return;
	}
	snprintf(instruction->mnemonic, sizeof instruction->mnemonic, ".byte");
	snprintf(instruction->operands, sizeof instruction->operands, "0x%02x", bytes[0]);
}

static void next_instruction(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
			     struct instruction *instruction)
{
	if (machine_decode(machine, bytes, size, address, instruction) != 1 || instruction->size == 0 ||
	    instruction->size > size)
		make_data(machine, bytes, size, address, instruction);
}

static void collect_targets(struct machine *machine, const uint8_t *bytes, size_t size, uint64_t address,
			    struct addresses *targets)
{
	struct instruction instruction;
	for (size_t at = 0; at < size; at += instruction.size) {
		next_instruction(machine, bytes + at, size - at, address + at, &instruction);
		bool local = instruction.target_known && instruction.flow != MACHINE_CALL &&
			     instruction.target >= address && instruction.target - address < size;
		if (!local)
			continue;
		targets->items =
			memory_grow(targets->items, targets->count, &targets->capacity, sizeof *targets->items);
		targets->items[targets->count++] = instruction.target;
	}
	addresses_sort(targets);
}

/* The name of the address that the instruction speaks of; NULL where it speaks of none, or nobody knows. */
static char *name_of(const struct instruction *instruction, const struct addresses *targets,
		     const struct listing_names *names)
{
	uint64_t address = instruction->target;
	if (!instruction->target_known) {
		const struct machine_memory *memory = instruction->memory;
		if (instruction->memory_count == 0 || !memory->relative)
			return NULL;
		address = memory->address;
	} else if (instruction->flow != MACHINE_CALL) {
		char *label = label_of(targets, address);
		if (label != NULL)
			return label;
	}
	return names != NULL && names->symbol != NULL ? names->symbol(names->context, address) : NULL;
}

void listing_disassemble(struct code *code, struct machine *machine, const uint8_t *bytes, size_t size,
			 uint64_t address, const struct listing_names *names)
{
	struct addresses targets = {0};
	cleanup_free char *before = NULL;
	struct instruction instruction;
	code->machine = machine;
	collect_targets(machine, bytes, size, address, &targets);
	for (size_t at = 0; at < size; at += instruction.size) {
		next_instruction(machine, bytes + at, size - at, address + at, &instruction);
		cleanup_free char *name = name_of(&instruction, &targets, names);
		cleanup_free char *label = label_of(&targets, address + at);
		char *source =
			names != NULL && names->source != NULL ? names->source(names->context, address + at) : NULL;
		bool news = source != NULL && !text_equal(source, before);
		code_add(code, &instruction, name, label, news ? source : NULL);
		if (source != NULL) {
			free(before);
			before = source;
		}
	}
	free(targets.items);
}

static bool is_among(uint64_t address, const uint64_t *addresses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (addresses[i] == address)
			return true;
	return false;
}

void listing_text(const struct code *code, const uint64_t *deciding, size_t deciding_count, struct str *text)
{
	for (size_t i = 0; i < code->count; i++) {
		const struct code_line *line = &code->lines[i];
		if (line->source != NULL)
			str_append_format(text, "                ; %s\n", line->source);
		if (line->label != NULL)
			str_append_format(text, "%s:\n", line->label);
		str_append_format(text, "%s %8" PRIx64 "  %s\n",
				  is_among(line->address, deciding, deciding_count) ? "=>" : "  ", line->address,
				  line->text);
	}
}

/* ---- source text ---- */

enum { SOURCE_MAX = 8 << 20, SOURCE_LINE_MAX = 160 };

void listing_sources_clear(struct listing_sources *sources)
{
	for (size_t i = 0; i < sources->names.count; i++)
		str_clear(&sources->texts[i]);
	free(sources->texts);
	strlist_clear(&sources->names);
	strlist_clear(&sources->roots);
	*sources = (struct listing_sources){0};
}

bool listing_is_below(const struct strlist *roots, const char *file)
{
	cleanup_free char *path = realpath(file, NULL);
	for (size_t i = 0; path != NULL && i < roots->count; i++) {
		cleanup_free char *root = realpath(roots->items[i], NULL);
		size_t length = root != NULL ? strlen(root) : 0;
		if (length > 1 && strncmp(path, root, length) == 0 && path[length] == '/')
			return true;
	}
	return false;
}

/* Read it where it may be read; a relative name is one below a root. */
static void read_source(const struct strlist *roots, const char *file, struct str *text)
{
	size_t places = file[0] == '/' ? 1 : roots->count;
	for (size_t i = 0; i < places && text->length == 0; i++) {
		cleanup_error struct error error = {0};
		cleanup_free char *path = file[0] == '/' ? text_copy(file) : path_join(roots->items[i], file);
		if (listing_is_below(roots, path) && fs_read_file(path, SOURCE_MAX, text, &error) < 0)
			str_clear(text);
	}
}

/* The text of a file; empty where it cannot or may not be read. */
static const struct str *source_text(struct listing_sources *sources, const char *file)
{
	for (size_t i = 0; i < sources->names.count; i++)
		if (strcmp(sources->names.items[i], file) == 0)
			return &sources->texts[i];
	struct str text = {0};
	read_source(&sources->roots, file, &text);
	sources->texts = memory_grow(sources->texts, sources->names.count, &sources->capacity, sizeof *sources->texts);
	sources->texts[sources->names.count] = text;
	strlist_add(&sources->names, file);
	return &sources->texts[sources->names.count - 1];
}

bool listing_source_known(struct listing_sources *sources, const char *file)
{
	return source_text(sources, file)->length > 0;
}

char *listing_source_line(struct listing_sources *sources, const char *file, long long line)
{
	const char *at = str_text(source_text(sources, file));
	for (long long i = 1; i < line && at != NULL; i++) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	at = line > 0 && at != NULL ? at + strspn(at, " \t") : "";
	size_t length = strcspn(at, "\r\n");
	if (length > SOURCE_LINE_MAX)
		length = SOURCE_LINE_MAX;
	while (length > 0 && length == SOURCE_LINE_MAX && ((unsigned char)at[length] & 0xc0) == 0x80)
		length--;
	return text_format("%s:%lld%s%.*s", path_base(file), line, length > 0 ? "  " : "", (int)length, at);
}
