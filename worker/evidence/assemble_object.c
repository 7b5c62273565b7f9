/* See assemble_object.h.  The only file of the assembler that knows ELF. */
#include "evidence/assemble_object.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"

/* Where a block's labels are; section 0: not seen. */
struct place {
	size_t begin_section;
	size_t end_section;
	uint64_t begin;
	uint64_t end;
};

struct object {
	Elf *elf;
	struct assembly *blocks;
	struct place *places; /* by number of the block */
	size_t place_count;
	size_t *by_section; /* number of the block + 1 that a section belongs to; 0: none */
	size_t section_count;
};

static void take_symbol(struct object *object, const char *name, const GElf_Sym *symbol)
{
	bool begin = text_starts_with(name, "bisectd_begin_");
	bool end = text_starts_with(name, "bisectd_end_");
	if (!begin && !end)
		return;
	unsigned long number = strtoul(name + strlen(begin ? "bisectd_begin_" : "bisectd_end_"), NULL, 10);
	if (number >= object->place_count || symbol->st_shndx >= object->section_count)
		return;
	struct place *place = &object->places[number];
	if (begin) {
		place->begin_section = symbol->st_shndx;
		place->begin = symbol->st_value;
		object->by_section[symbol->st_shndx] = number + 1;
	} else {
		place->end_section = symbol->st_shndx;
		place->end = symbol->st_value;
	}
}

static void read_symbols(struct object *object, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	if (data == NULL || header->sh_entsize == 0)
		return;
	for (size_t i = 0; i < header->sh_size / header->sh_entsize && i <= INT32_MAX; i++) {
		GElf_Sym symbol;
		if (gelf_getsym(data, (int)i, &symbol) == NULL)
			return;
		const char *name = elf_strptr(object->elf, header->sh_link, symbol.st_name);
		if (name != NULL)
			take_symbol(object, name, &symbol);
	}
}

static void read_relocations(struct object *object, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	if (data == NULL || header->sh_entsize == 0 || header->sh_info >= object->section_count ||
	    object->by_section[header->sh_info] == 0)
		return;
	struct assembly *block = &object->blocks[object->by_section[header->sh_info] - 1];
	size_t count = header->sh_size / header->sh_entsize;
	free(block->relocations);
	block->relocations = memory_new(count + 1, sizeof *block->relocations);
	block->relocation_count = 0;
	for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
		GElf_Rela entry;
		if (gelf_getrela(data, (int)i, &entry) != NULL)
			block->relocations[block->relocation_count++] = entry.r_offset;
	}
}

static void each_section(struct object *object, GElf_Word type,
			 void (*read)(struct object *, Elf_Scn *, const GElf_Shdr *))
{
	for (Elf_Scn *section = elf_nextscn(object->elf, NULL); section != NULL;
	     section = elf_nextscn(object->elf, section)) {
		GElf_Shdr header;
		if (gelf_getshdr(section, &header) != NULL && header.sh_type == type)
			read(object, section, &header);
	}
}

static void take_bytes(const struct object *object, size_t number)
{
	const struct place *place = &object->places[number];
	struct assembly *block = &object->blocks[number];
	if (place->begin_section == 0 || place->end_section == 0) {
		block->refused = text_copy("the assembler left it out");
		return;
	}
	if (place->begin_section != place->end_section || place->end < place->begin || place->begin != 0) {
		block->refused = text_copy("it ends in another section than it begins in");
		return;
	}
	Elf_Scn *section = elf_getscn(object->elf, place->begin_section);
	Elf_Data *data = section != NULL ? elf_getdata(section, NULL) : NULL;
	if (place->end > 0 && (data == NULL || data->d_buf == NULL || data->d_size < place->end)) {
		block->refused = text_copy("its bytes are not in the object file");
		return;
	}
	block->size = place->end;
	block->bytes = memory_new(block->size + 1, 1);
	if (block->size > 0 && data != NULL)
		memcpy(block->bytes, data->d_buf, block->size);
}

static int read_elf(Elf *elf, struct assembly *blocks, const size_t *members, size_t count, struct error *error)
{
	struct object object = {.elf = elf, .blocks = blocks, .place_count = members[count - 1] + 1};
	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrnum(elf, &object.section_count) < 0)
		return error_set(error, "the assembler's object file is no ELF file");
	cleanup_free struct place *places = object.places = memory_new(object.place_count, sizeof *object.places);
	cleanup_free size_t *by_section = object.by_section =
		memory_new(object.section_count + 1, sizeof *object.by_section);
	each_section(&object, SHT_SYMTAB, read_symbols);
	each_section(&object, SHT_RELA, read_relocations);
	for (size_t i = 0; i < count; i++)
		take_bytes(&object, members[i]);
	return 0;
}

int assemble_read_object(const char *path, size_t limit, struct assembly *blocks, const size_t *members, size_t count,
			 struct error *error)
{
	struct stat about;
	cleanup_fd int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &about) < 0)
		return error_set_errno(error, "cannot open the assembler's object file");
	if (about.st_size < 0 || (unsigned long long)about.st_size > limit)
		return error_set(error, "the assembler's object file has more than %zu bytes", limit);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_set(error, "libelf does not know its own version");
	Elf *elf = elf_begin(file, ELF_C_READ, NULL);
	if (elf == NULL)
		return error_set(error, "cannot read the assembler's object file: %s", elf_errmsg(-1));
	int result = read_elf(elf, blocks, members, count, error);
	elf_end(elf);
	return result;
}
