/* Assembling the compiler's assembly again, and comparing what comes out with the binary. */
#include "evidence/place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "evidence/place_text.h"
#include "fs.h"

enum { ASSEMBLY_MAX = 512 << 20 };

/* ---- assembling ---- */

static int run_clang(const char *source, const char *object, struct machine *machine, const struct place_setup *setup,
		     struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_child_output struct child_output output = {0};
	const char *clang = setup->clang != NULL ? setup->clang : "clang";
	const char *const words[] = {clang,
				     machine_kind(machine) == MACHINE_X86_64 ? "--target=x86_64-unknown-linux-gnu"
									     : "--target=aarch64-unknown-linux-gnu",
				     "-c",
				     "-x",
				     "assembler",
				     "-o",
				     object,
				     source};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		strlist_add(&command, words[i]);
	if (machine_kind(machine) == MACHINE_AARCH64)
		strlist_add(&command, "-march=armv8.5-a+crypto+sve");
	child_own_environment(&environment);
	long long timeout = setup->timeout_ms > 0 ? setup->timeout_ms : 60000;
	if (child_capture(&command, &environment, NULL, timeout, 1 << 16, &output, error) != 0)
		return error_wrap(error, "assembling");
	if (output.status == 0)
		return 0;
	const char *said = str_text(&output.errors);
	const char *trouble = strstr(said, "error: ");
	cleanup_free char *status = child_status_text(output.status);
	if (trouble == NULL)
		return error_set(error, "%s failed: %s", clang, status);
	return error_set(error, "%s refuses it (%.*s)", clang, (int)strcspn(trouble, "\n"), trouble);
}

/* Write the labelled text, assemble it, open the object.  The files are gone afterwards. */
static int assemble(const struct str *labelled, struct machine *machine, const struct place_setup *setup,
		    struct binary **object, struct error *error)
{
	cleanup_free char *folder = text_format("%s/place-XXXXXX", setup->scratch);
	if (mkdtemp(folder) == NULL)
		return error_set_errno(error, "making a folder in %s", setup->scratch);
	cleanup_free char *source = text_format("%s/labelled.s", folder);
	cleanup_free char *product = text_format("%s/labelled.o", folder);
	int status = fs_write_file(source, str_text(labelled), labelled->length, error);
	if (status == 0)
		status = run_clang(source, product, machine, setup, error);
	if (status == 0)
		status = binary_open(object, product, error);
	cleanup_error struct error ignored = {0};
	fs_remove_tree(folder, &ignored);
	return status;
}

/* ---- comparing ---- */

/* How many bytes of nothing but nops there are: padding before the target of a loop, which each assembler fills in its
 * own way. */
static size_t padding(const uint8_t *bytes, size_t size, struct machine *machine)
{
	struct instruction instruction;
	size_t length = 0;
	while (machine_decode(machine, bytes + length, size - length, 0, &instruction) &&
	       strncmp(instruction.mnemonic, "nop", 3) == 0)
		length += instruction.size;
	return length;
}

/* The function of the object against one of the binary: the same instructions but for what relocations fill in. */
static bool same_code(struct binary *object, const struct binary_function *ours, struct binary *binary,
		      const struct binary_function *theirs, struct machine *machine)
{
	if (ours->size != theirs->size)
		return false;
	size_t size = (size_t)ours->size;
	const uint8_t *left = binary_bytes(object, ours->address, size);
	const uint8_t *right = binary_bytes(binary, theirs->address, size);
	if (left == NULL || right == NULL)
		return false;
	for (size_t at = 0; at < size;) {
		struct instruction instruction;
		/* Data in code (a jump table, a constant) is compared byte by byte. */
		size_t step = machine_decode(machine, left + at, size - at, ours->address + at, &instruction)
				      ? instruction.size
				      : 1;
		bool same =
			binary_relocated(object, ours->address + at, step) || memcmp(left + at, right + at, step) == 0;
		size_t skipped = same ? 0 : padding(left + at, size - at, machine);
		if (!same && (skipped == 0 || skipped != padding(right + at, size - at, machine)))
			return false;
		at += same ? step : skipped;
	}
	return true;
}

static int not_placed(struct region *region, const char *reason)
{
	region->reason = text_copy(reason);
	return -1;
}

/* Functions that were compared already: one function often holds several blocks. */
struct compared {
	const struct binary_function *ours;
	const struct binary_function *theirs; /* NULL: none is equal */
	bool named;                           /* the binary has a function of that name */
};

static void compare(struct compared *compared, struct binary *object, const struct binary_function *ours,
		    struct binary *binary, struct machine *machine)
{
	size_t count;
	const struct binary_function *functions = binary_functions(binary, &count);
	*compared = (struct compared){.ours = ours};
	for (size_t i = binary_function_named(binary, ours->symbol, 0); i < count;
	     i = binary_function_named(binary, ours->symbol, i + 1)) {
		compared->named = true;
		if (same_code(object, ours, binary, &functions[i], machine)) {
			compared->theirs = &functions[i];
			return;
		}
	}
}

static int place_region(struct region *region, uint64_t before, uint64_t behind, struct binary *object,
			struct binary *binary, struct machine *machine, struct compared *compared)
{
	const struct binary_function *ours = binary_function_at(object, before);
	size_t count;
	binary_functions(binary, &count);
	if (before == 0 || behind == 0)
		return not_placed(region, "its marks are in no section that is loaded");
	if (ours == NULL || behind < before || behind - ours->address > ours->size)
		return not_placed(region, "it stands in no function");
	region->symbol = text_copy(ours->symbol);
	if (count == 0)
		return not_placed(region, "the binary is stripped: it names no functions");
	if (compared->ours != ours)
		compare(compared, object, ours, binary, machine);
	if (!compared->named)
		return not_placed(
			region,
			"the binary has no function of that name: the linker dropped it, or it was built otherwise");
	if (compared->theirs == NULL)
		return not_placed(region,
				  "the binary's function has other instructions: it was not built from this assembly");
	region->placed = true;
	region->start = compared->theirs->address + (before - ours->address);
	region->end = compared->theirs->address + (behind - ours->address);
	return 0;
}

static void place_all(struct regions *regions, size_t first, struct binary *object, struct binary *binary,
		      struct machine *machine)
{
	size_t count = regions->count - first;
	struct compared compared = {0};
	cleanup_free uint64_t *before = memory_new(count + 1, sizeof *before);
	cleanup_free uint64_t *behind = memory_new(count + 1, sizeof *behind);
	binary_numbered(object, LABEL_BEFORE, before, count);
	binary_numbered(object, LABEL_BEHIND, behind, count);
	for (size_t i = 0; i < count; i++)
		place_region(&regions->items[first + i], before[i], behind[i], object, binary, machine, &compared);
}

int regions_place(struct regions *regions, struct binary *binary, struct machine *machine, const char *assembly,
		  const struct place_setup *setup, struct error *error)
{
	cleanup_str struct str source = {0};
	cleanup_str struct str labelled = {0};
	cleanup_binary struct binary *object = NULL;
	size_t first = regions->count;
	if (fs_read_file(assembly, ASSEMBLY_MAX, &source, error) != 0)
		return -1;
	if (strlen(str_text(&source)) != source.length)
		return error_set(error, "%s: not text: it has a zero byte", assembly);
	if (strstr(str_text(&source), "APP") == NULL)
		return 0;
	if (place_read_assembly(str_text(&source), regions, &labelled, error) != 0 || regions->count == first ||
	    assemble(&labelled, machine, setup, &object, error) != 0) {
		int status = error->text != NULL ? error_wrap(error, "%s", assembly) : 0;
		for (size_t i = first; i < regions->count && status != 0; i++)
			not_placed(&regions->items[i], error_text(error));
		return status;
	}
	place_all(regions, first, object, binary, machine);
	return 0;
}

int regions_of_probes(struct regions *regions, struct binary *binary, struct machine *machine, struct error *error)
{
	cleanup_binary_probes struct binary_probes probes = {0};
	int status = binary_probes(binary, &probes, error);
	for (size_t i = 0; i < probes.count; i++) {
		struct binary_probe *probe = &probes.items[i];
		const struct binary_function *function = binary_function_at(binary, probe->address);
		uint64_t start = 0, size = 0;
		struct instruction instruction;
		regions->items =
			memory_grow(regions->items, regions->count, &regions->capacity, sizeof *regions->items);
		struct region *region = &regions->items[regions->count++];
		*region = (struct region){.symbol = function != NULL ? text_copy(function->symbol) : NULL,
					  .text = text_format("(the probe record's address)"),
					  .provider = text_copy(probe->provider),
					  .name = text_copy(probe->name),
					  .is_enabled = probe->is_enabled};
		size_t room = binary_section_at(binary, probe->address, NULL, &start, &size)
				      ? (size_t)(start + size - probe->address)
				      : 0;
		const uint8_t *bytes = binary_bytes(binary, probe->address, room < 16 ? room : 16);
		if (bytes == NULL ||
		    !machine_decode(machine, bytes, room < 16 ? room : 16, probe->address, &instruction)) {
			not_placed(region, "its record points to no instruction");
			continue;
		}
		region->placed = true;
		region->start = probe->address;
		region->end = probe->address + instruction.size;
		free(region->text);
		region->text = instruction_text(&instruction);
	}
	return status;
}

/* ---- matching ---- */

static size_t word_length(const char *at)
{
	size_t length = 0;
	while (isalnum((unsigned char)at[length]) || at[length] == '_')
		length++;
	return length;
}

/* The kind of thing that a word of an operand is: 'r' register of a class, '0' number, otherwise itself. */
static int word_kind(const struct machine *machine, const char *at, size_t length)
{
	cleanup_free char *word = text_copy_range(at, length);
	if (isdigit((unsigned char)*word))
		return '0';
	int number = machine_register_number(machine, word);
	if (number == REGISTER_NONE)
		return 0;
	return machine_kind(machine) == MACHINE_AARCH64 ? (number < ARM_V0 ? 'r' : 'v')
							: (number < X86_ZMM0 ? 'r'
							   : number < X86_K0 ? 'v'
									     : 'k');
}

static bool operands_match(const struct machine *machine, const char *left, const char *right)
{
	while (*left != '\0' && *right != '\0') {
		size_t a = word_length(left), b = word_length(right);
		if (a == 0 || b == 0) {
			if (*left++ != *right++)
				return false;
			continue;
		}
		int kind = word_kind(machine, left, a);
		bool same = a == b && memcmp(left, right, a) == 0;
		if (!same && (kind == 0 || kind != word_kind(machine, right, b)))
			return false;
		left += a;
		right += b;
	}
	return *left == *right;
}

bool region_matches(const struct region *region, struct binary *binary, struct machine *machine,
		    const struct instruction *block, size_t count)
{
	cleanup_instructions struct instructions found = {0};
	cleanup_error struct error ignored = {0};
	size_t size = (size_t)(region->end - region->start);
	const uint8_t *bytes = region->placed ? binary_bytes(binary, region->start, size) : NULL;
	if (bytes == NULL || machine_decode_all(machine, bytes, size, region->start, &found, &ignored) != 0 ||
	    found.count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(found.items[i].mnemonic, block[i].mnemonic) != 0 ||
		    !operands_match(machine, found.items[i].operands, block[i].operands))
			return false;
	return true;
}

void regions_clear(struct regions *regions)
{
	for (size_t i = 0; i < regions->count; i++) {
		struct region *region = &regions->items[i];
		free(region->symbol);
		free(region->text);
		free(region->file);
		free(region->provider);
		free(region->name);
		free(region->reason);
	}
	free(regions->items);
	*regions = (struct regions){0};
}
