/*
 * Opening, sections, functions, bytes, relocations.  Lines are in elf_lines.c, probe records in elf_probes.c.
 */
#include "evidence/elf.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence/elf_inside.h"

/* A program with more than this is refused: the largest that are known have some hundred thousand. */
enum { SECTIONS_MAX = 1 << 20, SYMBOLS_MAX = 1 << 26 };

/* ---- sections ---- */

/* Sections of an object file one after the other, each with room to its end. */
static void place_section(struct binary_section *section, uint64_t *next)
{
	section->address = *next;
	uint64_t room = (section->size + 63) / 64 * 64 + 64;
	if (room < section->size || room > UINT64_MAX / 4 - *next)
		section->size = 0;
	else
		*next += room;
}

/* A name from the file, fit for one line of a message. */
static char *shown(const char *name)
{
	char *text = text_copy_range(name, strnlen(name, 64));
	for (char *at = text; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return text;
}

static int load_section(struct binary *binary, Elf_Scn *scn, size_t names, struct binary_section *section,
			struct error *error)
{
	GElf_Shdr header;
	if (gelf_getshdr(scn, &header) == NULL)
		return error_set(error, "a section header cannot be read: %s", elf_errmsg(-1));
	const char *name = elf_strptr(binary->elf, names, header.sh_name);
	section->name = name != NULL ? name : "";
	section->address = header.sh_addr;
	section->size = header.sh_size;
	section->type = header.sh_type;
	section->flags = header.sh_flags;
	section->info = header.sh_info;
	section->link = header.sh_link;
	section->entry_size = header.sh_entsize;
	if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL || header.sh_size == 0)
		return 0;
	Elf_Data *data = elf_rawdata(scn, NULL);
	if (data == NULL || data->d_buf == NULL || data->d_size < header.sh_size) {
		cleanup_free char *text = shown(section->name);
		return error_set(error, "cut off: section %s is not whole", text);
	}
	section->content = data->d_buf;
	return 0;
}

static int load_sections(struct binary *binary, struct error *error)
{
	size_t count = 0, names = 0;
	if (elf_getshdrnum(binary->elf, &count) != 0)
		return error_set(error, "its section headers cannot be read: %s", elf_errmsg(-1));
	if (count > SECTIONS_MAX)
		return error_set(error, "%zu sections are too many", count);
	if (count == 0)
		return 0;
	if (elf_getshdrstrndx(binary->elf, &names) != 0)
		return error_set(error, "the names of its sections cannot be read: %s", elf_errmsg(-1));
	binary->sections = memory_new(count, sizeof *binary->sections);
	binary->section_count = count;
	uint64_t next = 0x1000;
	for (size_t i = 1; i < count; i++) {
		Elf_Scn *scn = elf_getscn(binary->elf, i);
		if (scn == NULL)
			return error_set(error, "section %zu cannot be read: %s", i, elf_errmsg(-1));
		if (load_section(binary, scn, names, &binary->sections[i], error) != 0)
			return -1;
		if (binary_is_object(binary))
			place_section(&binary->sections[i], &next);
	}
	return 0;
}

const struct binary_section *binary_section_named(const struct binary *binary, const char *name)
{
	for (size_t i = 1; i < binary->section_count; i++)
		if (strcmp(binary->sections[i].name, name) == 0)
			return &binary->sections[i];
	return NULL;
}

/* ---- symbols ---- */

/* -1: not defined in a section of this file. */
static int symbol_address(const struct binary *binary, const GElf_Sym *symbol, uint64_t *address)
{
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE ||
	    symbol->st_shndx >= binary->section_count)
		return -1;
	*address = symbol->st_value + (binary_is_object(binary) ? binary->sections[symbol->st_shndx].address : 0);
	return 0;
}

static void add_function(struct binary *binary, const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	uint64_t address;
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_size == 0 || name == NULL || *name == '\0')
		return;
	if (symbol_address(binary, symbol, &address) != 0 || symbol->st_size > UINT64_MAX - address)
		return;
	binary->functions = memory_grow(binary->functions, binary->function_count, &binary->function_capacity,
					sizeof *binary->functions);
	binary->functions[binary->function_count++] =
		(struct binary_function){.symbol = name,
					 .address = address,
					 .size = symbol->st_size,
					 .local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL};
}

static int by_address(const void *a, const void *b)
{
	const struct binary_function *left = a, *right = b;
	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->local != right->local)
		return left->local ? 1 : -1;
	return strcmp(left->symbol, right->symbol);
}

/* Called with each symbol of a table until it answers other than 0. */
typedef int symbol_visitor(struct binary *binary, const GElf_Sym *symbol, const char *name, void *context);

static int each_symbol(struct binary *binary, unsigned table_type, symbol_visitor *visit, void *context)
{
	for (size_t i = 1; i < binary->section_count; i++) {
		const struct binary_section *table = &binary->sections[i];
		if (table->type != table_type)
			continue;
		Elf_Data *data = elf_getdata(elf_getscn(binary->elf, i), NULL);
		if (data == NULL || data->d_buf == NULL)
			continue;
		size_t count = data->d_size / sizeof(Elf64_Sym);
		for (size_t j = 1; j < count && j < SYMBOLS_MAX; j++) {
			GElf_Sym symbol;
			if (gelf_getsym(data, (int)j, &symbol) == NULL)
				break;
			int status =
				visit(binary, &symbol, elf_strptr(binary->elf, table->link, symbol.st_name), context);
			if (status != 0)
				return status;
		}
	}
	return 0;
}

static int collect_function(struct binary *binary, const GElf_Sym *symbol, const char *name, void *context)
{
	(void)context;
	add_function(binary, symbol, name);
	return 0;
}

static void load_functions(struct binary *binary)
{
	each_symbol(binary, SHT_SYMTAB, collect_function, NULL);
	if (binary->function_count == 0)
		each_symbol(binary, SHT_DYNSYM, collect_function, NULL);
	if (binary->function_count > 0)
		qsort(binary->functions, binary->function_count, sizeof *binary->functions, by_address);
}

struct wanted_symbol {
	const char *name;
	uint64_t *address;
};

static int find_symbol(struct binary *binary, const GElf_Sym *symbol, const char *name, void *context)
{
	const struct wanted_symbol *wanted = context;
	return text_equal(name, wanted->name) && symbol_address(binary, symbol, wanted->address) == 0;
}

bool binary_symbol(struct binary *binary, const char *symbol, uint64_t *address)
{
	struct wanted_symbol wanted = {symbol, address};
	return each_symbol(binary, SHT_SYMTAB, find_symbol, &wanted) != 0;
}

struct numbered_symbols {
	const char *prefix;
	uint64_t *addresses;
	size_t count;
};

static int take_numbered(struct binary *binary, const GElf_Sym *symbol, const char *name, void *context)
{
	struct numbered_symbols *wanted = context;
	size_t length = strlen(wanted->prefix);
	uint64_t address;
	if (name == NULL || strncmp(name, wanted->prefix, length) != 0 || !isdigit((unsigned char)name[length]))
		return 0;
	char *end;
	unsigned long number = strtoul(name + length, &end, 10);
	if (*end == '\0' && number < wanted->count && symbol_address(binary, symbol, &address) == 0)
		wanted->addresses[number] = address;
	return 0;
}

void binary_numbered(struct binary *binary, const char *prefix, uint64_t *addresses, size_t count)
{
	struct numbered_symbols wanted = {prefix, addresses, count};
	each_symbol(binary, SHT_SYMTAB, take_numbered, &wanted);
}

/* ---- relocations of object files ---- */

/* How many bytes a relocation fills in (System V AMD64 ABI, table 4.9); every one of AArch64's code is an instruction.
 */
static unsigned relocation_size(const struct binary *binary, unsigned type)
{
	if (binary->header.e_machine != EM_X86_64)
		return type == 257 /* R_AARCH64_ABS64 */ || type == 260 /* R_AARCH64_PREL64 */ ? 8 : 4;
	switch (type) {
	case R_X86_64_64:
	case R_X86_64_PC64:
	case R_X86_64_GOTOFF64:
	case R_X86_64_DTPMOD64:
	case R_X86_64_DTPOFF64:
	case R_X86_64_TPOFF64:
	case R_X86_64_SIZE64:
		return 8;
	case R_X86_64_8:
	case R_X86_64_PC8:
		return 1;
	case R_X86_64_16:
	case R_X86_64_PC16:
		return 2;
	default:
		return 4;
	}
}

static int relocation_by_address(const void *a, const void *b)
{
	const struct binary_relocation *left = a, *right = b;
	return left->address < right->address ? -1 : left->address > right->address;
}

static void load_relocations(struct binary *binary)
{
	for (size_t i = 1; i < binary->section_count; i++) {
		const struct binary_section *table = &binary->sections[i];
		if (table->type != SHT_RELA || table->info == 0 || table->info >= binary->section_count)
			continue;
		const struct binary_section *target = &binary->sections[table->info];
		Elf_Data *data = elf_getdata(elf_getscn(binary->elf, i), NULL);
		size_t count = data != NULL && data->d_buf != NULL ? data->d_size / sizeof(Elf64_Rela) : 0;
		for (size_t j = 0; j < count && j < SYMBOLS_MAX; j++) {
			GElf_Rela relocation;
			if (gelf_getrela(data, (int)j, &relocation) == NULL)
				break;
			if (relocation.r_offset >= target->size)
				continue;
			binary->relocations = memory_grow(binary->relocations, binary->relocation_count,
							  &binary->relocation_capacity, sizeof *binary->relocations);
			binary->relocations[binary->relocation_count++] = (struct binary_relocation){
				target->address + relocation.r_offset,
				relocation_size(binary, (unsigned)GELF_R_TYPE(relocation.r_info))};
		}
	}
	if (binary->relocation_count > 0)
		qsort(binary->relocations, binary->relocation_count, sizeof *binary->relocations,
		      relocation_by_address);
}

bool binary_relocated(const struct binary *binary, uint64_t address, size_t size)
{
	size_t low = 0, high = binary->relocation_count;
	uint64_t from = address >= 8 ? address - 8 : 0; /* the widest field that can reach into it */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (binary->relocations[middle].address < from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < binary->relocation_count && binary->relocations[low].address < address + size; low++)
		if (binary->relocations[low].address + binary->relocations[low].size > address)
			return true;
	return false;
}

/* ---- opening and closing ---- */

static int check_header(struct binary *binary, struct error *error)
{
	size_t length = 0;
	const char *ident = elf_getident(binary->elf, &length);
	if (elf_kind(binary->elf) == ELF_K_AR)
		return error_set(error, "an archive of object files: name one of its members");
	if (elf_kind(binary->elf) != ELF_K_ELF || ident == NULL || length < EI_NIDENT)
		return error_set(error, "not an ELF file");
	if (ident[EI_CLASS] != ELFCLASS64)
		return error_set(error, "an ELF file of 32 bits: only 64 bits can be read");
	if (ident[EI_DATA] != ELFDATA2LSB)
		return error_set(error,
				 "an ELF file of the other byte order (big-endian): only little-endian can be read");
	if (gelf_getehdr(binary->elf, &binary->header) == NULL)
		return error_set(error, "cut off: its header cannot be read");
	size_t size = 0;
	elf_rawfile(binary->elf, &size);
	uint64_t table = (uint64_t)binary->header.e_shnum * sizeof(Elf64_Shdr);
	if (binary->header.e_shoff > size || table > size - binary->header.e_shoff)
		return error_set(error, "cut off: its section headers should be at %llu, the file has %zu bytes",
				 (unsigned long long)binary->header.e_shoff, size);
	return 0;
}

static int load(struct binary *binary, struct error *error)
{
	if (binary->elf == NULL)
		return error_set(error, "not an ELF file (%s)", elf_errmsg(-1));
	if (check_header(binary, error) != 0 || load_sections(binary, error) != 0)
		return -1;
	load_functions(binary);
	if (binary_is_object(binary))
		load_relocations(binary);
	return 0;
}

static int start(struct binary **opened, struct binary *binary, struct error *error)
{
	if (load(binary, error) != 0) {
		error_wrap(error, "%s", binary->path);
		binary_close(&binary);
		return -1;
	}
	*opened = binary;
	return 0;
}

int binary_open(struct binary **opened, const char *path, struct error *error)
{
	struct stat status;
	elf_version(EV_CURRENT);
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return error_set_errno(error, "%s", path);
	if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
		close(file);
		return error_set(error, "%s: not a regular file", path);
	}
	struct binary *binary = memory_new(1, sizeof *binary);
	binary->path = text_copy(path);
	binary->file = file;
	binary->elf = status.st_size > 0 ? elf_begin(file, ELF_C_READ, NULL) : NULL;
	if (status.st_size == 0) {
		binary_close(&binary);
		return error_set(error, "%s: empty", path);
	}
	return start(opened, binary, error);
}

int binary_open_memory(struct binary **opened, const void *bytes, size_t size, const char *name, struct error *error)
{
	elf_version(EV_CURRENT);
	struct binary *binary = memory_new(1, sizeof *binary);
	binary->path = text_copy(name);
	binary->file = -1;
	binary->image = memory_new(size + 1, 1);
	memcpy(binary->image, bytes, size);
	binary->elf = size > 0 ? elf_memory(binary->image, size) : NULL;
	return start(opened, binary, error);
}

void binary_close(struct binary **pointer)
{
	struct binary *binary = *pointer;
	if (binary == NULL)
		return;
	binary_close_lines(binary);
	if (binary->elf != NULL)
		elf_end(binary->elf);
	if (binary->file >= 0)
		close(binary->file);
	free(binary->image);
	free(binary->sections);
	free(binary->functions);
	free(binary->relocations);
	free(binary->ranges);
	free(binary->path);
	free(binary);
	*pointer = NULL;
}

/* ---- questions ---- */

unsigned binary_machine(const struct binary *binary)
{
	return binary->header.e_machine;
}

bool binary_is_object(const struct binary *binary)
{
	return binary->header.e_type == ET_REL;
}

const char *binary_path(const struct binary *binary)
{
	return binary->path;
}

const struct binary_function *binary_functions(const struct binary *binary, size_t *count)
{
	*count = binary->function_count;
	return binary->functions;
}

const struct binary_function *binary_function_at(const struct binary *binary, uint64_t address)
{
	size_t low = 0, high = binary->function_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (binary->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* The nearest start before it may be that of an alias or of a part: look back a little. */
	for (size_t back = 0; low > 0 && back < 16; low--, back++) {
		const struct binary_function *function = &binary->functions[low - 1];
		if (address - function->address < function->size) {
			while (low > 1 && binary->functions[low - 2].address == function->address &&
			       binary->functions[low - 2].size == function->size)
				function = &binary->functions[--low - 1];
			return function;
		}
	}
	return NULL;
}

size_t binary_function_named(const struct binary *binary, const char *symbol, size_t from)
{
	while (from < binary->function_count && strcmp(binary->functions[from].symbol, symbol) != 0)
		from++;
	return from;
}

static const struct binary_section *section_around(const struct binary *binary, uint64_t address)
{
	for (size_t i = 1; i < binary->section_count; i++) {
		const struct binary_section *section = &binary->sections[i];
		bool loaded = section->flags & SHF_ALLOC && !(section->type == SHT_NOBITS && section->flags & SHF_TLS);
		if (loaded && address >= section->address && address - section->address < section->size)
			return section;
	}
	return NULL;
}

const uint8_t *binary_bytes(struct binary *binary, uint64_t address, size_t size)
{
	const struct binary_section *section = section_around(binary, address);
	if (section == NULL || section->content == NULL)
		return NULL;
	uint64_t offset = address - section->address;
	return size <= section->size - offset ? section->content + offset : NULL;
}

bool binary_section_at(const struct binary *binary, uint64_t address, const char **name, uint64_t *first,
		       uint64_t *size)
{
	const struct binary_section *section = section_around(binary, address);
	if (section == NULL)
		return false;
	if (name != NULL)
		*name = section->name;
	*first = section->address;
	*size = section->size;
	return true;
}
