/* See ir_call.h. */
#include "ir_call.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir_lexer.h"

static bool is_sign(const struct ir_word *word, char sign)
{
	return word->kind == IR_SIGN && word->sign == sign;
}

static bool is_in(const struct ir_word *word, const char *const *list)
{
	for (; *list != NULL; list++)
		if (ir_word_is(word, *list))
			return true;
	return false;
}

static bool is_integer_type(const struct ir_word *word)
{
	const char *at = word->start;
	if (word->end - at < 2 || *at != 'i')
		return false;
	while (++at < word->end)
		if (!isdigit((unsigned char)*at))
			return false;
	return true;
}

static bool starts_type(const struct ir_word *word)
{
	static const char *const names[] = {"void",     "ptr",      "half",      "bfloat",  "float",   "double",
					    "x86_fp80", "fp128",    "ppc_fp128", "x86_mmx", "x86_amx", "token",
					    "label",    "metadata", "target",    NULL};
	if (word->kind == IR_SIGN)
		return strchr("{<[", word->sign) != NULL;
	if (word->kind == IR_NAME)
		return word->sign == '%';
	return word->kind == IR_WORD && (is_integer_type(word) || is_in(word, names));
}

/* `word` begins a type: go on to its end, stars and address spaces included.  NULL where it does not end. */
static const char *type_end(struct ir_lexer *lexer, const struct ir_word *word)
{
	if (word->kind == IR_SIGN && !ir_skip_group(lexer))
		return NULL;
	const char *end = lexer->at;
	for (;;) {
		struct ir_lexer before = *lexer;
		struct ir_word next = ir_next(lexer);
		if (is_sign(&next, '*')) {
			end = lexer->at;
		} else if (ir_word_is(&next, "addrspace") || is_sign(&next, '(')) {
			/* a function type's "(" belongs to the type only where a star follows: i32 (i8*)* */
			if (!is_sign(&next, '('))
				next = ir_next(lexer);
			if (!is_sign(&next, '(') || !ir_skip_group(lexer))
				return NULL;
			end = lexer->at;
		} else {
			*lexer = before;
			return end;
		}
	}
}

unsigned ir_type_bits(const char *type)
{
	static const struct {
		const char *name;
		unsigned bits;
	} sizes[] = {{"ptr", 64},    {"half", 16},     {"bfloat", 16}, {"float", 32},
		     {"double", 64}, {"x86_fp80", 80}, {"fp128", 128}, {"x86_mmx", 64}};
	size_t length = strlen(type);
	if (length == 0)
		return 0;
	if (type[length - 1] == '*' || text_starts_with(type, "ptr addrspace"))
		return 64;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if (strcmp(type, sizes[i].name) == 0)
			return sizes[i].bits;
	if (type[0] == 'i' && isdigit((unsigned char)type[1])) {
		unsigned long bits = strtoul(type + 1, NULL, 10);
		return bits <= 1 << 16 ? (unsigned)bits : 0;
	}
	if (type[0] != '<' || !isdigit((unsigned char)type[1]))
		return 0;
	char *rest;
	unsigned long count = strtoul(type + 1, &rest, 10);
	if (count > 4096 || strncmp(rest, " x ", 3) != 0)
		return 0;
	cleanup_free char *element = text_copy_range(rest + 3, strcspn(rest + 3, ">"));
	unsigned bits = element[0] != '<' ? ir_type_bits(element) : 0;
	return bits <= 128 ? (unsigned)count * bits : 0;
}

static char *copy_between(const char *start, const char *end)
{
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	return text_copy_range(start, (size_t)(end - start));
}

static void add_value(struct ir_value **values, size_t *count, size_t *capacity, struct ir_value value)
{
	value.bits = ir_type_bits(value.type);
	*values = memory_grow(*values, *count, capacity, sizeof **values);
	(*values)[(*count)++] = value;
}

/* One result for each member of { … } (or <{ … }>), one for any other type, none for void. */
static int take_results(struct ir_block *block, const char *start, const char *end)
{
	struct ir_lexer lexer = {start, end};
	struct ir_word word = ir_next(&lexer);
	size_t capacity = 0;
	if (ir_word_is(&word, "void"))
		return 0;
	if (is_sign(&word, '<') && lexer.at < end && *lexer.at == '{')
		word = ir_next(&lexer);
	if (!is_sign(&word, '{')) {
		struct ir_lexer whole = {start, end};
		struct ir_word first = ir_next(&whole);
		const char *type = type_end(&whole, &first);
		if (type == NULL)
			return -1;
		struct ir_value value = {.type = copy_between(start, type)};
		char *function_type = value.type[0] != '%' ? strchr(value.type, '(') : NULL;
		if (function_type != NULL && function_type > value.type && value.type[strlen(value.type) - 1] == ')' &&
		    !text_starts_with(value.type, "ptr ") && !text_starts_with(value.type, "target")) {
			while (function_type > value.type && function_type[-1] == ' ')
				function_type--;
			*function_type = '\0';
		}
		if (strcmp(value.type, "void") == 0) {
			free(value.type);
			return 0;
		}
		add_value(&block->results, &block->result_count, &capacity, value);
		return 0;
	}
	for (word = ir_next(&lexer); !is_sign(&word, '}'); word = ir_next(&lexer)) {
		if (is_sign(&word, ','))
			continue;
		if (!starts_type(&word))
			return -1;
		const char *from = word.start;
		const char *to = type_end(&lexer, &word);
		if (to == NULL)
			return -1;
		add_value(&block->results, &block->result_count, &capacity,
			  (struct ir_value){.type = copy_between(from, to)});
	}
	return 0;
}

static bool starts_value(const struct ir_word *word)
{
	static const char *const names[] = {"null",
					    "undef",
					    "poison",
					    "true",
					    "false",
					    "zeroinitializer",
					    "none",
					    "getelementptr",
					    "ptrtoint",
					    "inttoptr",
					    "bitcast",
					    "addrspacecast",
					    "blockaddress",
					    "splat",
					    "dso_local_equivalent",
					    "no_cfi",
					    "trunc",
					    "zext",
					    "sext",
					    "add",
					    "sub",
					    "mul",
					    "xor",
					    "and",
					    "or",
					    "shl",
					    "lshr",
					    "ashr",
					    "select",
					    "icmp",
					    "ptrauth",
					    "c",
					    "asm",
					    "ptrtoaddr",
					    NULL};
	if (word->kind == IR_NAME)
		return true;
	if (word->kind == IR_SIGN)
		return strchr("<{[!", word->sign) != NULL;
	if (word->kind != IR_WORD)
		return false;
	return isdigit((unsigned char)word->sign) || word->sign == '-' || is_in(word, names);
}

/* On to the value, over the attributes before it; the type of elementtype(…) is kept.  -1 where there is no value. */
static int skip_attributes(struct ir_lexer *lexer, struct ir_word *word, char **element)
{
	for (*word = ir_next(lexer); !starts_value(word); *word = ir_next(lexer)) {
		if (word->kind == IR_END || word->kind == IR_OPEN)
			return -1;
		if (ir_word_is(word, "align")) {
			ir_next(lexer);
		} else if (ir_word_is(word, "elementtype")) {
			struct ir_word open = ir_next(lexer);
			const char *from = lexer->at;
			if (!is_sign(&open, '(') || !ir_skip_group(lexer))
				return -1;
			free(*element);
			*element = copy_between(from, lexer->at - 1);
		} else if (is_sign(word, '(') && !ir_skip_group(lexer)) {
			return -1;
		}
	}
	return 0;
}

/* "ptr nonnull elementtype(i32) %x": `lexer` stands before it and ends with it. */
static int take_argument(struct ir_block *block, struct ir_lexer lexer, size_t *capacity)
{
	struct ir_value value = {0};
	struct ir_word word = ir_next(&lexer);
	if (!starts_type(&word))
		return -1;
	const char *start = word.start;
	const char *end = type_end(&lexer, &word);
	if (end == NULL || skip_attributes(&lexer, &word, &value.element) < 0) {
		free(value.element);
		return -1;
	}
	value.type = copy_between(start, end);
	value.text = copy_between(word.start, lexer.end);
	add_value(&block->arguments, &block->argument_count, capacity, value);
	return 0;
}

/* `lexer` stands behind the "(" and is left behind the ")". */
static int take_arguments(struct ir_block *block, struct ir_lexer *lexer)
{
	size_t capacity = 0;
	const char *start = lexer->at;
	for (;;) {
		struct ir_word word = ir_next(lexer);
		if (word.kind == IR_END || word.kind == IR_OPEN)
			return -1;
		if (is_sign(&word, ',') || is_sign(&word, ')')) {
			struct ir_lexer one = {start, word.start};
			struct ir_lexer look = one;
			bool empty = ir_next(&look).kind == IR_END;
			if (!empty && take_argument(block, one, &capacity) < 0)
				return -1;
			if (word.sign == ')')
				return 0;
			start = lexer->at;
		} else if (word.kind == IR_SIGN && strchr("([{<", word.sign) != NULL && !ir_skip_group(lexer)) {
			return -1;
		}
	}
}

/* memory(read, argmem: readwrite, inaccessiblemem: readwrite): what it says of memory that others see. */
static void take_memory(struct ir_block *block, struct ir_lexer *lexer)
{
	bool read = false;
	bool write = false;
	bool hidden = false; /* the next word is about memory that no program sees */
	for (struct ir_word word = ir_next(lexer); !is_sign(&word, ')'); word = ir_next(lexer)) {
		if (word.kind == IR_END || word.kind == IR_OPEN)
			return;
		if (is_sign(&word, ','))
			hidden = false;
		else if (word.kind == IR_WORD && word.end[-1] == ':')
			hidden = !ir_word_is(&word, "argmem:") && !ir_word_is(&word, "other:");
		else if (!hidden) {
			read = read || ir_word_is(&word, "read") || ir_word_is(&word, "readwrite");
			write = write || ir_word_is(&word, "write") || ir_word_is(&word, "readwrite");
		}
	}
	block->may_read = block->may_read && read;
	block->may_write = block->may_write && write;
}

static void take_attribute(struct ir_block *block, const struct ir_word *word, struct ir_lexer *lexer)
{
	if (ir_word_is(word, "readnone") || ir_word_is(word, "inaccessiblememonly")) {
		block->may_read = false;
		block->may_write = false;
	} else if (ir_word_is(word, "readonly")) {
		block->may_write = false;
	} else if (ir_word_is(word, "writeonly")) {
		block->may_read = false;
	} else if (ir_word_is(word, "memory")) {
		struct ir_word open = ir_next(lexer);
		if (is_sign(&open, '('))
			take_memory(block, lexer);
	}
}

void ir_call_attributes(struct ir_block *block, const char *at, const char *end)
{
	struct ir_lexer lexer = {at, end};
	struct ir_word word = ir_next(&lexer);
	if (!is_sign(&word, '{'))
		return;
	for (word = ir_next(&lexer); word.kind != IR_END && word.kind != IR_OPEN && !is_sign(&word, '}');
	     word = ir_next(&lexer))
		take_attribute(block, &word, &lexer);
}

void ir_function_attributes(struct ir_block *block, const char *at, const char *end)
{
	struct ir_lexer lexer = {at, end};
	for (struct ir_word word = ir_next(&lexer); word.kind != IR_END && word.kind != IR_OPEN && !is_sign(&word, '}');
	     word = ir_next(&lexer)) {
		block->no_red_zone = block->no_red_zone || ir_word_is(&word, "noredzone");
		block->naked = block->naked || ir_word_is(&word, "naked");
	}
}

/* The N of "!dbg !N"; `word` is the "!". */
static bool take_debug(struct ir_lexer *lexer, const struct ir_word *word, unsigned long long *number)
{
	struct ir_lexer look = *lexer;
	if (!is_sign(word, '!'))
		return false;
	struct ir_word name = ir_next(&look);
	struct ir_word reference = ir_next(&look);
	if (!ir_word_is(&name, "dbg") || reference.kind != IR_NUMBER || reference.sign != '!')
		return false;
	*lexer = look;
	*number = reference.number;
	return true;
}

void ir_function_read(struct ir_function *function, const char *at, const char *end)
{
	struct ir_lexer lexer = {at, end};
	for (struct ir_word word = ir_next(&lexer); word.kind != IR_END && word.kind != IR_OPEN;
	     word = ir_next(&lexer)) {
		if (word.kind == IR_NAME && word.sign == '@' && function->symbol == NULL)
			ir_unescape(&word, &function->symbol);
		else if (word.kind == IR_NUMBER && word.sign == '#' && function->group_count < IR_GROUPS_MAX)
			function->groups[function->group_count++] = word.number;
		else if (take_debug(&lexer, &word, &function->subprogram))
			function->has_subprogram = true;
		function->no_red_zone = function->no_red_zone || ir_word_is(&word, "noredzone");
		function->naked = function->naked || ir_word_is(&word, "naked");
	}
}

void ir_function_clear(struct ir_function *function)
{
	free(function->symbol);
	*function = (struct ir_function){0};
}

static int refuse(struct ir_block *block, const char *reason)
{
	if (block->unread == NULL)
		block->unread = text_copy(reason);
	return -1;
}

/* Behind the word asm: flags, the two strings, the arguments. */
static int take_asm(struct ir_block *block, struct ir_lexer *lexer)
{
	struct ir_word word = ir_next(lexer);
	for (; word.kind == IR_WORD; word = ir_next(lexer)) {
		block->side_effect = block->side_effect || ir_word_is(&word, "sideeffect");
		block->align_stack = block->align_stack || ir_word_is(&word, "alignstack");
		block->intel = block->intel || ir_word_is(&word, "inteldialect");
	}
	if (word.kind != IR_STRING)
		return refuse(block, "its template could not be read");
	if (!ir_unescape(&word, &block->template))
		return refuse(block, "its template holds a zero byte");
	word = ir_next(lexer);
	struct ir_word constraints = ir_next(lexer);
	if (!is_sign(&word, ',') || constraints.kind != IR_STRING || !ir_unescape(&constraints, &block->constraints))
		return refuse(block, "its constraints could not be read");
	word = ir_next(lexer);
	if (!is_sign(&word, '(') || take_arguments(block, lexer) < 0)
		return refuse(block, "its arguments could not be read");
	return 0;
}

/* Behind the arguments: attributes, labels, metadata. */
static void take_rest(struct ir_call *call, struct ir_block *block, struct ir_lexer *lexer)
{
	bool in_labels = false;
	for (struct ir_word word = ir_next(lexer); word.kind != IR_END && word.kind != IR_OPEN; word = ir_next(lexer)) {
		if (word.kind == IR_NUMBER && word.sign == '#' && call->group_count < IR_GROUPS_MAX)
			call->groups[call->group_count++] = word.number;
		else if (take_debug(lexer, &word, &call->location))
			call->has_location = true;
		else if (is_sign(&word, '[') || is_sign(&word, ']'))
			in_labels = is_sign(&word, '[');
		else if (ir_word_is(&word, "label"))
			block->label_count += in_labels;
		else if (word.kind == IR_WORD)
			take_attribute(block, &word, lexer);
	}
}

/* From behind "call" to the word asm: the type.  False where this call calls something else. */
static bool take_type(struct ir_block *block, struct ir_lexer *lexer)
{
	struct ir_lexer look = *lexer;
	struct ir_word word = ir_next(&look);
	while (!starts_type(&word)) {
		if (word.kind != IR_WORD && !is_sign(&word, '('))
			return false;
		if (ir_word_is(&word, "asm"))
			break;
		if (is_sign(&word, '(') && !ir_skip_group(&look))
			return false;
		word = ir_next(&look);
	}
	const char *start = word.start;
	if (!ir_word_is(&word, "asm") && type_end(&look, &word) == NULL)
		return false;
	const char *end = look.at;
	if (!ir_word_is(&word, "asm"))
		word = ir_next(&look);
	if (!ir_word_is(&word, "asm"))
		return false;
	*lexer = look;
	if (take_results(block, start, end) < 0)
		refuse(block, "its result type could not be read");
	return true;
}

enum ir_call_end ir_call_read(struct ir_call *call, struct ir_block *block, const struct ir_function *function,
			      const char *at, const char *end)
{
	struct ir_lexer lexer = {at, end};
	bool two_lines = false;
	bool seen = false; /* the word asm where no call of it could be made out */
	for (;;) {
		struct ir_word word = ir_next(&lexer);
		if ((word.kind == IR_END || word.kind == IR_OPEN) && !seen)
			return IR_CALL_NONE;
		if (word.kind == IR_END || word.kind == IR_OPEN) {
			refuse(block, "this use of inline assembly could not be read");
			return IR_CALL_READ;
		}
		seen = seen || ir_word_is(&word, "asm");
		bool on = ir_word_is(&word, "callbr") || ir_word_is(&word, "invoke");
		if ((on || ir_word_is(&word, "call")) && take_type(block, &lexer)) {
			two_lines = on;
			break;
		}
	}
	block->no_red_zone = function->no_red_zone;
	block->naked = function->naked;
	memcpy(call->function_groups, function->groups, sizeof function->groups);
	call->function_group_count = function->group_count;
	call->has_subprogram = function->has_subprogram;
	call->subprogram = function->subprogram;
	if (take_asm(block, &lexer) < 0)
		return IR_CALL_READ;
	const char *line = memchr(lexer.at, '\n', (size_t)(end - lexer.at));
	if (two_lines && (line == NULL || line + 1 == end) &&
	    memmem(lexer.at, (size_t)(end - lexer.at), "label", 5) == NULL)
		return IR_CALL_GOES_ON;
	take_rest(call, block, &lexer);
	return IR_CALL_READ;
}

static void clear_values(struct ir_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(values[i].type);
		free(values[i].element);
		free(values[i].text);
	}
	free(values);
}

void ir_block_clear(struct ir_block *block)
{
	clear_values(block->results, block->result_count);
	clear_values(block->arguments, block->argument_count);
	for (size_t i = 0; i < block->location_count; i++) {
		free(block->locations[i].file);
		free(block->locations[i].function);
	}
	free(block->locations);
	free(block->symbol);
	free(block->name);
	free(block->template);
	free(block->constraints);
	free(block->unread);
	*block = (struct ir_block){0};
}
