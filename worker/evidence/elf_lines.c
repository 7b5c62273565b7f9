/*
 * From an address to source lines, through libdw.  Damaged debugging information only means that less is known.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/elf_inside.h"

enum { FRAMES_MAX = 64, RANGES_MAX = 1 << 22 };

static void add_range(struct binary *binary, uint64_t first, uint64_t end, Dwarf_Off unit)
{
	if (first >= end || binary->range_count >= RANGES_MAX)
		return;
	binary->ranges =
		memory_grow(binary->ranges, binary->range_count, &binary->range_capacity, sizeof *binary->ranges);
	binary->ranges[binary->range_count++] = (struct unit_range){first, end, unit};
}

static int by_start(const void *a, const void *b)
{
	const struct unit_range *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->unit < right->unit ? -1 : left->unit > right->unit;
}

static void load_ranges(struct binary *binary)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t kind;
	while (dwarf_get_units(binary->dwarf, unit, &unit, NULL, &kind, &die, NULL) == 0) {
		Dwarf_Addr base, first, end;
		ptrdiff_t offset = 0;
		if (kind != DW_UT_compile && kind != DW_UT_skeleton)
			continue;
		while ((offset = dwarf_ranges(&die, offset, &base, &first, &end)) > 0 &&
		       binary->range_count < RANGES_MAX)
			add_range(binary, first, end, dwarf_dieoffset(&die));
	}
	if (binary->range_count > 0)
		qsort(binary->ranges, binary->range_count, sizeof *binary->ranges, by_start);
}

bool binary_has_lines(struct binary *binary)
{
	if (!binary->dwarf_tried) {
		binary->dwarf_tried = true;
		/* Object files have their debugging information unrelocated: addresses in it mean nothing. */
		if (!binary_is_object(binary) && binary_section_named(binary, ".debug_line") != NULL)
			binary->dwarf = dwarf_begin_elf(binary->elf, DWARF_C_READ, NULL);
		if (binary->dwarf != NULL)
			load_ranges(binary);
	}
	return binary->dwarf != NULL && binary->range_count > 0;
}

void binary_close_lines(struct binary *binary)
{
	if (binary->dwarf != NULL)
		dwarf_end(binary->dwarf);
	binary->dwarf = NULL;
}

static bool find_unit(struct binary *binary, uint64_t address, Dwarf_Die *die)
{
	size_t low = 0, high = binary->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (binary->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; low > 0 && back < 16; low--, back++)
		if (address < binary->ranges[low - 1].end)
			return dwarf_offdie(binary->dwarf, binary->ranges[low - 1].unit, die) != NULL;
	return false;
}

static struct source_frame *add_frame(struct source_frames *frames)
{
	frames->items = memory_grow(frames->items, frames->count, &frames->capacity, sizeof *frames->items);
	frames->items[frames->count] = (struct source_frame){0};
	return &frames->items[frames->count++];
}

static void place_of_line(Dwarf_Die *unit, uint64_t address, struct source_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	if (line == NULL)
		return;
	frame->file = text_copy(dwarf_linesrc(line, NULL, NULL));
	dwarf_lineno(line, &frame->line);
	dwarf_linecol(line, &frame->column);
}

/* Where an inlined function was called from. */
static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct source_frame *frame)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	Dwarf_Files *files = NULL;
	size_t count = 0;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0 && value <= INT32_MAX)
		frame->line = (int)value;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_column, &attribute), &value) == 0 && value <= INT32_MAX)
		frame->column = (int)value;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
	    dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count)
		frame->file = text_copy(dwarf_filesrc(files, (size_t)value, NULL, NULL));
}

static char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *linkage = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
	if (linkage != NULL)
		return demangle(linkage);
	return text_copy(dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute)));
}

void binary_frames(struct binary *binary, uint64_t address, bool inlined, struct source_frames *frames)
{
	Dwarf_Die unit;
	if (binary == NULL || !binary_has_lines(binary) || !find_unit(binary, address, &unit))
		return;
	place_of_line(&unit, address, add_frame(frames));
	Dwarf_Die *scopes = NULL;
	int count = inlined ? dwarf_getscopes(&unit, address, &scopes) : 0;
	for (int i = 0; i < count && frames->count < FRAMES_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);
		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		free(frames->items[frames->count - 1].function);
		frames->items[frames->count - 1].function = name_of(&scopes[i]);
		if (tag == DW_TAG_subprogram)
			break;
		place_of_call(&unit, &scopes[i], add_frame(frames));
	}
	free(scopes);
}

void source_frames_clear(struct source_frames *frames)
{
	for (size_t i = 0; i < frames->count; i++) {
		free(frames->items[i].function);
		free(frames->items[i].file);
	}
	free(frames->items);
	*frames = (struct source_frames){0};
}
