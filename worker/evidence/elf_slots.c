/* Which symbol the loader, or a stub that the linker made, stands for: the global offset table and the procedure
 * linkage table. */
#include <string.h>

#include "evidence/elf_inside.h"

enum { SLOTS_MAX = 1 << 22 };

/* The name of symbol `index` in the table that section `table` links to; NULL where it has none. */
static const char *linked_symbol(const struct binary *binary, const struct binary_section *table, size_t index)
{
	GElf_Sym symbol;
	GElf_Shdr header;
	Elf_Scn *scn =
		index > 0 && table->link < binary->section_count ? elf_getscn(binary->elf, (size_t)table->link) : NULL;
	Elf_Data *data = scn != NULL ? elf_getdata(scn, NULL) : NULL;
	if (data == NULL || index > INT32_MAX || gelf_getshdr(scn, &header) == NULL ||
	    gelf_getsym(data, (int)index, &symbol) == NULL)
		return NULL;
	const char *name = elf_strptr(binary->elf, header.sh_link, symbol.st_name);
	return name != NULL && name[0] != '\0' ? name : NULL;
}

bool binary_slot(const struct binary *binary, uint64_t slot, const char **symbol, uint64_t *address)
{
	*symbol = NULL;
	*address = 0;
	for (size_t i = 1; i < binary->section_count && !binary_is_object(binary); i++) {
		const struct binary_section *table = &binary->sections[i];
		Elf_Data *data = table->type == SHT_RELA ? elf_getdata(elf_getscn(binary->elf, i), NULL) : NULL;
		size_t count = data != NULL && data->d_buf != NULL ? data->d_size / sizeof(Elf64_Rela) : 0;
		for (size_t j = 0; j < count && j < SLOTS_MAX; j++) {
			GElf_Rela relocation;
			if (gelf_getrela(data, (int)j, &relocation) == NULL)
				break;
			if (relocation.r_offset != slot)
				continue;
			*symbol = linked_symbol(binary, table, GELF_R_SYM(relocation.r_info));
			*address = (uint64_t)relocation.r_addend;
			return *symbol != NULL || relocation.r_addend > 0;
		}
	}
	return false;
}
