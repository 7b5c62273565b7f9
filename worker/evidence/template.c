/* See template.h. */
#include "template.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct expansion {
	const struct ir_block *block;
	const struct operands *operands;
	const struct machine *machine;
	size_t unique;
	bool x86;
	bool intel;
	struct str *text;
};

char *template_label(size_t unique, size_t label)
{
	return text_format(".Lbisectd_goto_%zu_%zu", unique, label);
}

/* ---- names of registers ---- */

static void name_general_x86(struct str *text, int number, unsigned bits, bool high)
{
	static const char *const old[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
	if (number >= 8) {
		str_append_format(text, "r%d%s", number, bits == 8 ? "b" : bits == 16 ? "w" : bits == 32 ? "d" : "");
	} else if (bits == 8 && number < 4) {
		str_append_format(text, "%c%c", old[number][0], high ? 'h' : 'l');
	} else {
		str_append_format(text, "%s%s%s",
				  bits == 64   ? "r"
				  : bits == 32 ? "e"
					       : "",
				  old[number], bits == 8 ? "l" : "");
	}
}

/* Size of a general register by its modifier letter; 0: none of them. */
static unsigned general_bits_x86(char modifier)
{
	switch (modifier) {
	case 'b':
	case 'h':
		return 8;
	case 'w':
		return 16;
	case 'k':
		return 32;
	case 'q':
		return 64;
	default:
		return 0;
	}
}

static unsigned natural_bits(const struct operand *operand)
{
	if (operand->bits <= 8)
		return 8;
	return operand->bits <= 16 ? 16 : operand->bits <= 32 ? 32 : 64;
}

static void name_register_x86(const struct expansion *expansion, const struct operand *operand, char modifier)
{
	int number = operand->number;
	struct str *text = expansion->text;
	if (!expansion->intel && modifier != 'V')
		str_append(text, "%");
	if (number < X86_ZMM0) {
		unsigned bits = general_bits_x86(modifier);
		name_general_x86(text, number,
				 modifier == 'V' ? 64
				 : bits > 0      ? bits
						 : natural_bits(operand),
				 modifier == 'h');
	} else if (number < X86_K0) {
		char letter = modifier == 'x' ? 'x' : modifier == 't' ? 'y' : modifier == 'g' ? 'z' : '\0';
		if (letter == '\0')
			letter = operand->bits > 256 ? 'z' : operand->bits > 128 ? 'y' : 'x';
		str_append_format(text, "%cmm%d", letter, number - X86_ZMM0);
	} else if (number < X86_X87) {
		str_append_format(text, "k%d", number - X86_K0);
	} else {
		str_append(text, "st");
	}
}

static void name_register_arm64(const struct expansion *expansion, const struct operand *operand, char modifier)
{
	int number = operand->number;
	struct str *text = expansion->text;
	if (number < ARM_SP)
		str_append_format(text, "%c%d", modifier == 'w' ? 'w' : 'x', number);
	else if (number == ARM_SP)
		str_append(text, "sp");
	else
		str_append_format(text, "%c%d", strchr("bhsdq", modifier) != NULL && modifier != '\0' ? modifier : 'v',
				  number - ARM_V0);
}

/* ---- values ---- */

static bool is_plain_name(const char *name)
{
	if (*name == '\0' || strlen(name) > 200)
		return false;
	for (; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && *name != '.')
			return false;
	return true;
}

/* A symbol of its own for each value: the module's own names could be registers or keywords to the assembler. */
static void name_symbol(const struct expansion *expansion, const struct operand *operand)
{
	const char *value = operand->value->text;
	if (value[0] == '@' && is_plain_name(value + 1))
		str_append_format(expansion->text, "bisectd.%s", value + 1);
	else
		str_append_format(expansion->text, "bisectd.value%zu", (size_t)(operand - expansion->operands->items));
}

/* False where it is no number. */
static bool constant_value(const struct operand *operand, long long *number)
{
	const char *text = operand->value != NULL ? operand->value->text : NULL;
	if (text == NULL)
		return false;
	static const char *const zeros[] = {"null", "false", "zeroinitializer", "undef", "poison"};
	for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
		if (strcmp(text, zeros[i]) == 0) {
			*number = 0;
			return true;
		}
	}
	if (strcmp(text, "true") == 0) {
		*number = 1;
		return true;
	}
	char *end;
	errno = 0;
	*number = strtoll(text, &end, 10);
	if (errno == ERANGE && text[0] != '-')
		*number = (long long)strtoull(text, &end, 10);
	return end != text && *end == '\0';
}

static int put_immediate(const struct expansion *expansion, const struct operand *operand, char modifier,
			 struct error *error)
{
	long long number = 0;
	bool known = constant_value(operand, &number);
	struct str *text = expansion->text;
	if (operand->value == NULL || operand->value->text == NULL)
		return error_set(error, "an immediate operand has no value");
	bool number_first = operand->value->text[0] == '-' || isdigit((unsigned char)operand->value->text[0]);
	if (!known && number_first)
		return error_set(error, "the value %s of an immediate operand is no whole number",
				 operand->value->text);
	if (!expansion->x86 && known && number == 0 && (modifier == 'w' || modifier == 'x')) {
		str_append_format(text, "%czr", modifier);
		return 0;
	}
	bool bare = !expansion->x86 || expansion->intel || strchr("cPnapA", modifier) != NULL;
	if (!bare || modifier == '\0')
		str_append(text, expansion->x86 && !expansion->intel ? "$" : "");
	if (known && modifier == 'n')
		number = (long long)(0 - (unsigned long long)number);
	if (known)
		str_append_format(text, "%lld", number);
	else
		name_symbol(expansion, operand);
	return 0;
}

static void put_memory(const struct expansion *expansion, const struct operand *operand, char modifier)
{
	long long displacement = OPERAND_DISPLACEMENT + (modifier == 'H' ? 8 : 0);
	struct str *text = expansion->text;
	if (!expansion->x86) {
		str_append_format(text, "[x%d]", operand->number);
		return;
	}
	str_append_format(text, expansion->intel ? "[" : "%lld(%%", displacement);
	name_general_x86(text, operand->number, 64, false);
	if (expansion->intel)
		str_append_format(text, " + %lld]", displacement);
	else
		str_append(text, ")");
}

/* "${0:a}": the operand as an address. */
static void put_address(const struct expansion *expansion, const struct operand *operand)
{
	struct str *text = expansion->text;
	if (!expansion->x86) {
		str_append_format(text, "[x%d]", operand->number);
		return;
	}
	str_append(text, expansion->intel ? "[" : "(%");
	name_general_x86(text, operand->number, 64, false);
	str_append(text, expansion->intel ? "]" : ")");
}

static int check_modifier(const struct expansion *expansion, const struct operand *operand, char modifier,
			  struct error *error)
{
	static const char *const x86[] = {[OPERAND_REGISTER] = "bhwkqVxtgaAPcn",
					  [OPERAND_MEMORY] = "bhwkqHPapcxtg",
					  [OPERAND_IMMEDIATE] = "cPnapAbhwkqxl",
					  [OPERAND_FLAG] = "",
					  [OPERAND_LABEL] = "lPc"};
	static const char *const arm64[] = {[OPERAND_REGISTER] = "wxbhsdqvac",
					    [OPERAND_MEMORY] = "a",
					    [OPERAND_IMMEDIATE] = "wxcnai",
					    [OPERAND_FLAG] = "",
					    [OPERAND_LABEL] = "lc"};
	if (modifier == '\0' || strchr(expansion->x86 ? x86[operand->kind] : arm64[operand->kind], modifier) != NULL)
		return 0;
	return error_set(error, "the operand modifier '%c' is not known here", modifier);
}

static int put_operand(const struct expansion *expansion, size_t number, char modifier, struct error *error)
{
	if (number >= expansion->operands->count)
		return error_set(error, "the template refers to operand %zu of %zu", number,
				 expansion->operands->count);
	const struct operand *operand = &expansion->operands->items[number];
	if (check_modifier(expansion, operand, modifier, error) < 0)
		return -1;
	bool general = operand->number < (expansion->x86 ? (int)X86_ZMM0 : (int)ARM_V0);
	switch (operand->kind) {
	case OPERAND_REGISTER:
		if (modifier == 'a' && general) {
			put_address(expansion, operand);
			return 0;
		}
		if (modifier == 'A')
			str_append(expansion->text, "*");
		if (expansion->x86)
			name_register_x86(expansion, operand, modifier);
		else
			name_register_arm64(expansion, operand, modifier);
		return 0;
	case OPERAND_MEMORY:
		put_memory(expansion, operand, modifier);
		return 0;
	case OPERAND_IMMEDIATE:
		return put_immediate(expansion, operand, modifier, error);
	case OPERAND_LABEL: {
		cleanup_free char *label = template_label(expansion->unique, (size_t)operand->number);
		str_append(expansion->text, label);
		return 0;
	}
	case OPERAND_FLAG:
		break;
	}
	return error_set(error, "the template refers to a flag as if it had a place");
}

/* ---- the template's own language ---- */

/* Behind "${": "0:q}", ":uid}".  Returns behind the brace. */
static const char *put_braced(const struct expansion *expansion, const char *at, struct error *error)
{
	const char *close = strchr(at, '}');
	if (close == NULL) {
		error_set(error, "the template has a ${ that is not closed");
		return NULL;
	}
	char *rest;
	if (!isdigit((unsigned char)*at)) {
		if (strncmp(at, ":uid}", 5) == 0)
			str_append_format(expansion->text, "%zu", expansion->unique);
		else if (strncmp(at, ":private}", 9) == 0)
			str_append(expansion->text, ".L");
		else if (strncmp(at, ":comment}", 9) == 0)
			str_append(expansion->text, expansion->x86 ? "#" : "//");
		else
			error_set(error, "the template's ${%.*s} is not known here",
				  (int)(close - at < 40 ? close - at : 40), at);
		return error->text == NULL ? close + 1 : NULL;
	}
	unsigned long number = strtoul(at, &rest, 10);
	bool modified = rest[0] == ':' && rest + 2 == close;
	if (rest != close && !modified) {
		error_set(error, "the template's ${%.*s} is not known here", (int)(close - at < 40 ? close - at : 40),
			  at);
		return NULL;
	}
	return put_operand(expansion, number, modified ? rest[1] : '\0', error) == 0 ? close + 1 : NULL;
}

/* Behind "$".  `variant`: -1, or the alternative of "$(a$|b$)" that is being read. */
static const char *put_escape(const struct expansion *expansion, const char *at, int *variant, struct error *error)
{
	int wanted = expansion->intel ? 1 : 0;
	bool shown = *variant < 0 || *variant == wanted;
	switch (*at) {
	case '$':
		if (shown)
			str_append(expansion->text, "$");
		return at + 1;
	case '(':
		*variant = 0;
		return at + 1;
	case '|':
		if (*variant >= 0)
			++*variant;
		else
			str_append(expansion->text, "|");
		return at + 1;
	case ')':
		if (*variant < 0)
			str_append(expansion->text, "}"); /* as LLVM prints it */
		*variant = -1;
		return at + 1;
	case '{':
		if (!shown) {
			const char *close = strchr(at, '}');
			return close != NULL ? close + 1 : at + 1;
		}
		return put_braced(expansion, at + 1, error);
	default:
		break;
	}
	if (!isdigit((unsigned char)*at)) {
		error_set(error, "the template has a $ that means nothing");
		return NULL;
	}
	char *rest;
	unsigned long number = strtoul(at, &rest, 10);
	return !shown || put_operand(expansion, number, '\0', error) == 0 ? rest : NULL;
}

int template_expand(const struct ir_block *block, const struct operands *operands, const struct machine *machine,
		    size_t unique, struct str *text, struct error *error)
{
	bool x86 = machine_kind(machine) == MACHINE_X86_64;
	const struct expansion expansion = {.block = block,
					    .operands = operands,
					    .machine = machine,
					    .unique = unique,
					    .x86 = x86,
					    .intel = x86 && block->intel,
					    .text = text};
	int variant = -1;
	for (const char *at = block->template; *at != '\0';) {
		size_t plain = strcspn(at, "$");
		if (variant < 0 || variant == (expansion.intel ? 1 : 0))
			str_append_bytes(text, at, plain);
		at += plain;
		if (*at == '\0')
			break;
		at = put_escape(&expansion, at + 1, &variant, error);
		if (at == NULL)
			return -1;
	}
	return 0;
}

/* ---- what is not assembled ---- */

static bool is_word_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '.' || byte == '\\' || byte == '$';
}

/* A statement whose first word is put together from a macro's arguments could become any directive. */
static bool hides_directive(const char *text)
{
	bool first = true; /* word of a statement */
	for (; *text != '\0'; text++) {
		if (*text == '\n' || *text == ';' || *text == ':')
			first = true;
		else if (first && is_word_byte(*text)) {
			for (; is_word_byte(*text); text++)
				if (*text == '\\')
					return true;
			first = *text == ':';
			if (*text == '\0')
				return false;
			if (*text == '\n' || *text == ';')
				first = true;
		} else if (!isspace((unsigned char)*text)) {
			first = false;
		}
	}
	return false;
}

/* How often `word` stands in `text` as a whole directive; with `prefix` as the start of one. */
static size_t count_directive(const char *text, const char *word, bool prefix)
{
	size_t count = 0;
	size_t length = strlen(word);
	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + length, word))
		if ((at == text || !is_word_byte(at[-1])) && (prefix || !is_word_byte(at[length])))
			count++;
	return count;
}

/* What begins in a block must end in it: the assembler would take the next block for a part of it. */
static const char *is_open(const char *text)
{
	const char *comment = text;
	while ((comment = strstr(comment, "/*")) != NULL) {
		comment = strstr(comment + 2, "*/");
		if (comment == NULL)
			return "it has a comment that does not end";
	}
	if (count_directive(text, ".macro", false) !=
	    count_directive(text, ".endm", false) + count_directive(text, ".endmacro", false))
		return "it has a macro that does not end";
	if (count_directive(text, ".if", true) != count_directive(text, ".endif", false))
		return "it has a condition that does not end";
	size_t repeated = count_directive(text, ".rept", false) + count_directive(text, ".rep", false) +
			  count_directive(text, ".irp", false) + count_directive(text, ".irpc", false);
	if (repeated != count_directive(text, ".endr", false))
		return "it has a repetition that does not end";
	return NULL;
}

/* Does a directive ask for more bytes or repetitions than any block needs?  (What an expression hides meets the time
 * limit.) */
static bool is_huge(const char *text)
{
	static const struct {
		const char *word;
		unsigned long long limit;
	} directives[] = {{".fill", 1 << 20}, {".space", 1 << 20},  {".skip", 1 << 20},
			  {".zero", 1 << 20}, {".org", 1 << 20},    {".rept", 1 << 16},
			  {".rep", 1 << 16},  {".balign", 1 << 16}, {".p2align", 16}};
	for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
		size_t length = strlen(directives[i].word);
		for (const char *at = strstr(text, directives[i].word); at != NULL;
		     at = strstr(at + length, directives[i].word)) {
			const char *number = at + length + strspn(at + length, " \t(");
			if (!is_word_byte(at[length]) && isdigit((unsigned char)*number) &&
			    strtoull(number, NULL, 0) > directives[i].limit)
				return true;
		}
	}
	return false;
}

const char *template_refusal(const char *text)
{
	cleanup_free char *lower = text_copy(text);
	for (char *letter = lower; *letter != '\0'; letter++)
		*letter = (char)tolower((unsigned char)*letter);
	if (strstr(lower, "incbin") != NULL)
		return "it asks the assembler to read a file (.incbin)";
	if (strstr(lower, ".include") != NULL)
		return "it asks the assembler to read a file (.include)";
	if (strstr(lower, ".altmacro") != NULL)
		return "it changes how macros work (.altmacro)";
	if (count_directive(lower, ".end", false) > 0)
		return "it ends the assembler's input (.end)";
	if (is_huge(lower))
		return "it asks the assembler for more bytes than any block needs";
	if (hides_directive(lower))
		return "it puts the name of an instruction together from a macro's arguments";
	return is_open(lower);
}

/* ---- probes ---- */

/* The text of the next .asciz or .string behind `*at`. */
static char *next_text(const char **at)
{
	for (const char *dot = strchr(*at, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
		size_t word = strncmp(dot, ".asciz", 6) == 0 ? 6 : strncmp(dot, ".string", 7) == 0 ? 7 : 0;
		if (word == 0)
			continue;
		const char *quote = dot + word + strspn(dot + word, " \t");
		if (*quote != '"')
			continue;
		size_t length = strcspn(quote + 1, "\"\n");
		*at = quote + 1 + length;
		return text_copy_range(quote + 1, length);
	}
	return NULL;
}

char *template_probe(const char *template)
{
	const char *at = strstr(template, "set_dtrace_probes");
	bool note = at == NULL;
	if (note)
		at = strstr(template, ".note.stapsdt");
	if (at == NULL)
		return NULL;
	cleanup_free char *provider = next_text(&at);
	if (note && provider != NULL && strcmp(provider, "stapsdt") == 0) { /* the note's own name */
		free(provider);
		provider = next_text(&at);
	}
	cleanup_free char *probe = provider != NULL ? next_text(&at) : NULL;
	return probe != NULL ? text_format("%s:%s", provider, probe) : NULL;
}
