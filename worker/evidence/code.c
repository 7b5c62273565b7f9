/* Instructions as they are shown and as they are compared: the first half of compare.h. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/compare.h"

void code_clear(struct code *code)
{
	for (size_t i = 0; i < code->count; i++) {
		free(code->lines[i].label);
		free(code->lines[i].source);
		free(code->lines[i].text);
		free(code->lines[i].key);
	}
	free(code->lines);
	free(code->title);
	*code = (struct code){0};
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* ---- names without what differs from build to build ---- */

static bool is_hash(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* How much of a name at `text` is a hash or a number that the compiler gave: "::h" and 16 digits, "anon." and 32,
 * ".llvm." and a number. */
static size_t arbitrary_length(const char *text)
{
	static const struct {
		const char *start;
		size_t digits; /* 0: any number of decimal ones */
		const char *end;
	} shapes[] = {{"::h", 16, ""}, {"17h", 16, "E"}, {"anon.", 32, "."}, {".llvm.", 0, ""}};
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (!text_starts_with(text, shapes[i].start))
			continue;
		size_t length = strlen(shapes[i].start) + shapes[i].digits;
		if (shapes[i].digits == 0)
			length += strspn(text + length, "0123456789");
		else if (strnlen(text, length) < length || !is_hash(text + length - shapes[i].digits, shapes[i].digits))
			continue;
		if (text_starts_with(text + length, shapes[i].end))
			return length;
	}
	return 0;
}

/* A label of the function itself is only "a label"; a crate's hash in brackets (v0 mangling) goes too. */
static void append_name(struct str *key, const char *name)
{
	if (text_starts_with(name, ".L") && !text_starts_with(name, ".Lanon.")) {
		str_append(key, ".L");
		return;
	}
	while (*name != '\0') {
		size_t length = arbitrary_length(name);
		if (length > 0) {
			str_append(key, "#");
			name += length;
			if (*name == '.') /* anon.HASH.12 */
				name += 1 + strspn(name + 1, "0123456789");
		} else if (*name == '[' && strlen(name) > 17 && name[17] == ']' && is_hash(name + 1, 16)) {
			name += 18;
		} else {
			str_append_bytes(key, name++, 1);
		}
	}
}

/* ---- operands ---- */

/* The size and kind that a register's spelling stands for: two registers of one class can take each other's place. */
static const char *register_class(const struct machine *machine, const char *name, size_t length)
{
	if (machine_kind(machine) == MACHINE_AARCH64) {
		static const char *const classes[] = {"%x", "%w", "%v", "%q", "%d", "%s", "%h", "%b"};
		for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
			if (classes[i][1] == name[0])
				return classes[i];
		return NULL;
	}
	char last = name[length - 1];
	if (name[0] == 'x' || name[0] == 'y' || name[0] == 'z')
		return name[0] == 'x' ? "%xmm" : name[0] == 'y' ? "%ymm" : "%zmm";
	if (name[0] == 'k')
		return "%k";
	if (name[0] == 'r')
		return last == 'd' && isdigit((unsigned char)name[1]) ? "%r32"
		       : last == 'w'                                  ? "%r16"
		       : last == 'b'                                  ? "%r8"
								      : "%r64";
	if (name[0] == 'e')
		return "%r32";
	return last == 'h' ? "%high" : last == 'l' ? "%r8" : "%r16";
}

/* Of those that always stand for themselves. */
static bool is_fixed(const struct machine *machine, int number)
{
	return machine_kind(machine) == MACHINE_AARCH64 ? number == ARM_SP : number == X86_RSP || number == X86_X87;
}

/* A word of the operands: a register goes into the list and leaves its class in the key; anything else stays as it is.
 */
static void append_word(struct code_line *line, const struct code *code, struct str *key, const char *word,
			size_t length, bool between)
{
	char name[16];
	int number = REGISTER_NONE;
	if (length < sizeof name) {
		memcpy(name, word, length);
		name[length] = '\0';
		number = isalpha((unsigned char)name[0]) ? machine_register_number(code->machine, name) : REGISTER_NONE;
	}
	const char *class = number != REGISTER_NONE ? register_class(code->machine, name, length) : NULL;
	if (class == NULL || is_fixed(code->machine, number) || line->register_count == CODE_REGISTERS_MAX) {
		str_append_bytes(key, word, length);
		return;
	}
	line->registers[line->register_count] = (unsigned char)number;
	line->address_part[line->register_count++] = between;
	str_append(key, class);
}

static void append_operands(struct code_line *line, const struct code *code, struct str *key, const char *operands)
{
	bool between = false;
	for (const char *at = operands; *at != '\0';) {
		size_t length = 0;
		while (is_word(at[length]))
			length++;
		if (length > 0) {
			append_word(line, code, key, at, length, between);
			at += length;
			continue;
		}
		between = *at == '[' || (between && *at != ']');
		str_append_bytes(key, at++, 1);
	}
}

/* "[rip + 0x1234]" with `name` for the distance: appended to `text`; without a name the brackets hold "rip" alone. */
static void replace_distance(struct str *text, const char *operands, const char *name)
{
	const char *rip = strstr(operands, "[rip");
	const char *end = rip != NULL ? strchr(rip, ']') : NULL;
	if (end == NULL) {
		str_append(text, operands);
		return;
	}
	str_append_bytes(text, operands, (size_t)(rip - operands) + strlen("[rip"));
	if (name != NULL)
		str_append_format(text, " + %s", name);
	str_append(text, end);
}

static bool is_relative(const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->memory_count; i++)
		if (instruction->memory[i].relative)
			return true;
	return false;
}

/* Operands that are nothing but an address elsewhere, and those that end in one (AArch64's cbz x0, 0x1234; adrp x0,
 * 0x1000). */
static size_t before_address(const char *operands)
{
	const char *comma = strrchr(operands, ',');
	return comma != NULL ? (size_t)(comma - operands) + 2 : 0;
}

static void write_line(struct code_line *line, const struct code *code, const struct instruction *instruction,
		       const char *name)
{
	cleanup_str struct str text = {0};
	cleanup_str struct str key = {0};
	const char *operands = instruction->operands;
	str_append(&text, instruction->mnemonic);
	str_append(&key, instruction->mnemonic);
	if (operands[0] != '\0') {
		str_append(&text, " ");
		str_append(&key, " ");
	}
	bool page = text_starts_with(instruction->mnemonic, "adr");
	if (instruction->target_known || (page && strrchr(operands, ',') != NULL)) {
		cleanup_free char *start = text_copy_range(operands, before_address(operands));
		append_operands(line, code, &key, start);
		str_append_format(&text, "%s%s", start, name != NULL ? name : operands + strlen(start));
		append_name(&key, name != NULL ? name : "#");
	} else if (is_relative(instruction) && strstr(operands, "[rip") != NULL) {
		cleanup_str struct str bare = {0};
		replace_distance(&text, operands, name);
		if (name == NULL)
			str_append_format(&text, " # %#" PRIx64, instruction->memory[0].address);
		replace_distance(&bare, operands, NULL);
		append_operands(line, code, &key, str_text(&bare));
		str_append(&key, " ");
		append_name(&key, name != NULL ? name : "#");
	} else {
		str_append(&text, operands);
		append_operands(line, code, &key, operands);
	}
	line->text = str_steal(&text);
	line->key = str_steal(&key);
}

void code_add(struct code *code, const struct instruction *instruction, const char *name, const char *label,
	      const char *source)
{
	code->lines = memory_grow(code->lines, code->count, &code->capacity, sizeof *code->lines);
	struct code_line *line = &code->lines[code->count++];
	*line = (struct code_line){.address = instruction->address,
				   .label = text_copy(label),
				   .source = text_copy(source),
				   .read = instruction->registers_read,
				   .written = instruction->registers_written,
				   .kept = instruction->registers_kept,
				   .call = instruction->flow == MACHINE_CALL,
				   .leaves = instruction->flow == MACHINE_RETURN};
	write_line(line, code, instruction, name);
}
