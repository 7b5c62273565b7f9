/*
 * Probe records.  The layout of usdt's standard backend is that of usdt-impl's src/record.rs (emit_probe_record):
 * length u32, version u8, number of arguments u8, flags u16 (1: is-enabled), address u64, provider, name and argument
 * types, each ended by a zero; records start at multiples of 8.  SystemTap's:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
 */
#include <stdlib.h>
#include <string.h>

#include "evidence/elf_inside.h"

enum { RECORD_HEADER = 16, RECORD_VERSION = 1, PROBES_MAX = 1 << 20, NOTE_STAPSDT = 3 };

struct cursor {
	const uint8_t *at;
	size_t left;
};

static uint64_t number(const uint8_t *at, size_t size)
{
	uint64_t value = 0;
	for (size_t i = size; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* The text up to the next zero, or NULL where there is none. */
static const char *take_text(struct cursor *cursor)
{
	const uint8_t *end = memchr(cursor->at, 0, cursor->left);
	if (end == NULL)
		return NULL;
	const char *text = (const char *)cursor->at;
	cursor->left -= (size_t)(end + 1 - cursor->at);
	cursor->at = end + 1;
	return text;
}

static int add_probe(struct binary_probes *probes, const struct binary_probe *probe, struct error *error)
{
	if (probes->count >= PROBES_MAX)
		return error_set(error, "more than %d probes are too many", PROBES_MAX);
	probes->items = memory_grow(probes->items, probes->count, &probes->capacity, sizeof *probes->items);
	struct binary_probe *added = &probes->items[probes->count++];
	*added = *probe;
	added->provider = text_copy(probe->provider);
	added->name = text_copy(probe->name);
	return 0;
}

/* ---- usdt's records ---- */

/* Addresses that a loader writes (position-independent programs): the field's address and what belongs there. */
struct relative {
	uint64_t field;
	uint64_t value;
};

struct relatives {
	struct relative *items;
	size_t count;
	size_t capacity;
};

static int by_field(const void *a, const void *b)
{
	const struct relative *left = a, *right = b;
	return left->field < right->field ? -1 : left->field > right->field;
}

static uint64_t symbol_value(const struct binary *binary, const struct binary_section *table, size_t index)
{
	GElf_Sym symbol;
	if (table->link == 0 || table->link >= binary->section_count)
		return 0;
	Elf_Data *data = elf_getdata(elf_getscn(binary->elf, table->link), NULL);
	if (data == NULL || data->d_buf == NULL || index > INT32_MAX || gelf_getsym(data, (int)index, &symbol) == NULL)
		return 0;
	bool placed = binary_is_object(binary) && symbol.st_shndx < binary->section_count;
	return symbol.st_value + (placed ? binary->sections[symbol.st_shndx].address : 0);
}

static void collect_relatives(const struct binary *binary, const struct binary_section *section,
			      struct relatives *relatives)
{
	for (size_t i = 1; i < binary->section_count; i++) {
		const struct binary_section *table = &binary->sections[i];
		bool own = binary_is_object(binary);
		if (table->type != SHT_RELA || (own && table->info != (uint64_t)(section - binary->sections)))
			continue;
		Elf_Data *data = elf_getdata(elf_getscn(binary->elf, i), NULL);
		size_t count = data != NULL && data->d_buf != NULL ? data->d_size / sizeof(Elf64_Rela) : 0;
		for (size_t j = 0; j < count && j <= INT32_MAX; j++) {
			GElf_Rela relocation;
			if (gelf_getrela(data, (int)j, &relocation) == NULL)
				break;
			uint64_t field = relocation.r_offset + (own ? section->address : 0);
			if (field < section->address || field - section->address >= section->size)
				continue;
			relatives->items = memory_grow(relatives->items, relatives->count, &relatives->capacity,
						       sizeof *relatives->items);
			uint64_t base = symbol_value(binary, table, GELF_R_SYM(relocation.r_info));
			relatives->items[relatives->count++] =
				(struct relative){field, base + (uint64_t)relocation.r_addend};
		}
	}
	if (relatives->count > 0)
		qsort(relatives->items, relatives->count, sizeof *relatives->items, by_field);
}

static uint64_t address_in_field(const struct relatives *relatives, uint64_t field, uint64_t stored)
{
	struct relative wanted = {.field = field};
	const struct relative *found =
		relatives->count > 0 ? bsearch(&wanted, relatives->items, relatives->count, sizeof wanted, by_field)
				     : NULL;
	return found != NULL ? found->value : stored;
}

static int read_record(const uint8_t *record, size_t length, uint64_t field, const struct relatives *relatives,
		       struct binary_probes *probes, struct error *error)
{
	struct cursor cursor = {record + RECORD_HEADER, length - RECORD_HEADER};
	if (record[4] > RECORD_VERSION)
		return error_set(error, "a probe record of version %u: 0 and 1 are known", record[4]);
	struct binary_probe probe = {.source = PROBE_DTRACE,
				     .address = address_in_field(relatives, field, number(record + 8, 8)),
				     .arguments = record[5],
				     .is_enabled = number(record + 6, 2) != 0};
	const char *provider = take_text(&cursor);
	const char *name = provider != NULL ? take_text(&cursor) : NULL;
	if (name == NULL)
		return error_set(error, "a probe record whose names do not end");
	cleanup_free char *provider_copy = text_copy(provider);
	cleanup_free char *name_copy = text_copy(name);
	probe.provider = provider_copy;
	probe.name = name_copy;
	return add_probe(probes, &probe, error);
}

static int read_records(const struct binary *binary, const struct binary_section *section, struct binary_probes *probes,
			struct error *error)
{
	struct relatives relatives = {0};
	int status = 0;
	collect_relatives(binary, section, &relatives);
	size_t at = 0;
	while (status == 0 && section->content != NULL && section->size - at >= RECORD_HEADER) {
		size_t length = (size_t)number(section->content + at, 4);
		if (length == 0) { /* padding between the parts of several object files */
			at += 8;
			continue;
		}
		if (length < RECORD_HEADER || length > section->size - at)
			status = error_set(error, "a probe record that claims %zu of %zu bytes", length,
					   (size_t)section->size - at);
		else
			status = read_record(section->content + at, length, section->address + at + 8, &relatives,
					     probes, error);
		at += length;
	}
	free(relatives.items);
	return status;
}

/* ---- SystemTap notes ---- */

static int read_note(const struct binary *binary, const uint8_t *content, size_t size, struct binary_probes *probes,
		     struct error *error)
{
	if (size < 24)
		return error_set(error, "a SystemTap note of %zu bytes is too short", size);
	struct cursor cursor = {content + 24, size - 24};
	struct binary_probe probe = {
		.source = PROBE_STAPSDT, .address = number(content, 8), .semaphore = number(content + 16, 8)};
	/* A tool may have moved the program since: the section .stapsdt.base moved with it. */
	const struct binary_section *base = binary_section_named(binary, ".stapsdt.base");
	if (base != NULL && !binary_is_object(binary)) {
		uint64_t moved = base->address - number(content + 8, 8);
		probe.address += moved;
		probe.semaphore += probe.semaphore != 0 ? moved : 0;
	}
	const char *provider = take_text(&cursor);
	const char *name = provider != NULL ? take_text(&cursor) : NULL;
	const char *arguments = name != NULL ? take_text(&cursor) : NULL;
	if (arguments == NULL)
		return error_set(error, "a SystemTap note whose names do not end");
	for (const char *at = arguments; *at != '\0'; at++)
		probe.arguments += *at != ' ' && (at == arguments || at[-1] == ' ');
	cleanup_free char *provider_copy = text_copy(provider);
	cleanup_free char *name_copy = text_copy(name);
	probe.provider = provider_copy;
	probe.name = name_copy;
	return add_probe(probes, &probe, error);
}

static int read_notes(const struct binary *binary, const struct binary_section *section, struct binary_probes *probes,
		      struct error *error)
{
	size_t at = 0;
	while (section->content != NULL && section->size - at >= 12) {
		const uint8_t *note = section->content + at;
		size_t name = (size_t)number(note, 4), content = (size_t)number(note + 4, 4);
		size_t room = (size_t)section->size - at - 12;
		size_t padded = (name + 3) / 4 * 4;
		if (padded > room || content > room - padded)
			return error_set(error, "a note in %s that is longer than its section", section->name);
		bool known = number(note + 8, 4) == NOTE_STAPSDT && name == 8 && memcmp(note + 12, "stapsdt", 8) == 0;
		if (known && read_note(binary, note + 12 + padded, content, probes, error) != 0)
			return -1;
		size_t whole = 12 + padded + (content + 3) / 4 * 4;
		at += whole < section->size - at ? whole : (size_t)section->size - at;
	}
	return 0;
}

static int probe_by_address(const void *a, const void *b)
{
	const struct binary_probe *left = a, *right = b;
	return left->address < right->address ? -1 : left->address > right->address;
}

int binary_probes(struct binary *binary, struct binary_probes *probes, struct error *error)
{
	int status = 0;
	for (size_t i = 1; i < binary->section_count && status == 0; i++) {
		const struct binary_section *section = &binary->sections[i];
		if (strcmp(section->name, "set_dtrace_probes") == 0)
			status = read_records(binary, section, probes, error);
		else if (section->type == SHT_NOTE && strcmp(section->name, ".note.stapsdt") == 0)
			status = read_notes(binary, section, probes, error);
	}
	if (probes->count > 0)
		qsort(probes->items, probes->count, sizeof *probes->items, probe_by_address);
	return status != 0 ? error_wrap(error, "%s", binary->path) : 0;
}

void binary_probes_clear(struct binary_probes *probes)
{
	for (size_t i = 0; i < probes->count; i++) {
		free(probes->items[i].provider);
		free(probes->items[i].name);
	}
	free(probes->items);
	*probes = (struct binary_probes){0};
}
