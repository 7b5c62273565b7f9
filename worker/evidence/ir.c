/* See ir.h. */
#include "ir.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir_call.h"
#include "ir_debug.h"
#include "ir_lexer.h"

struct reader {
	struct ir_module *module;
	const char *end;
	struct ir_debug debug;
	struct ir_table groups; /* attributes #N */
	struct ir_function function;
	bool inside;      /* a function */
	const char *body; /* where its head stands */
	size_t capacity;
	/* what is to be looked up when the whole file is read: by number of the block */
	struct ir_call *calls;
	size_t call_capacity;
	struct ir_table idents; /* numbers named by !llvm.ident and !llvm.dbg.cu; `at` is not used */
	bool strings_open;
};

static bool starts_with(const char *at, const char *end, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

bool ir_looks_like_ir(const char *text, size_t length)
{
	static const char *const words[] = {"source_filename", "target",     "define",      "declare",
					    "module",          "attributes", "uselistorder"};
	const char *end = text + length;
	if (length >= 4 && (memcmp(text, "BC\xC0\xDE", 4) == 0 || memcmp(text, "\xDE\xC0\x17\x0B", 4) == 0))
		return true;
	if (starts_with(text, end, "; ModuleID"))
		return true;
	struct ir_lexer lexer = {text, end};
	struct ir_word word = ir_next(&lexer);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (ir_word_is(&word, words[i]))
			return true;
	struct ir_word next = ir_next(&lexer);
	if (word.kind == IR_SIGN && word.sign == '!' && next.kind == IR_WORD) /* !llvm.ident = */
		next = ir_next(&lexer);
	else if (word.kind != IR_NAME && word.kind != IR_NUMBER && !(word.kind == IR_WORD && word.sign == '$'))
		return false;
	return next.kind == IR_SIGN && next.sign == '=';
}

static int check_kind(const char *text, size_t length, struct error *error)
{
	if (length >= 4 && (memcmp(text, "BC\xC0\xDE", 4) == 0 || memcmp(text, "\xDE\xC0\x17\x0B", 4) == 0))
		return error_set(error,
				 "this is LLVM bitcode; give textual IR (rustc --emit=llvm-ir, clang -S -emit-llvm)");
	struct ir_lexer lexer = {text, text + length};
	struct ir_word word = ir_next(&lexer);
	if (length == 0)
		return error_set(error, "the file is empty");
	if (word.kind != IR_END && !ir_looks_like_ir(text, length))
		return error_set(error, "this is no textual LLVM IR");
	return 0;
}

static void open_function(struct reader *reader, const char *at, const char *line_end)
{
	ir_function_clear(&reader->function);
	ir_function_read(&reader->function, at, line_end);
	reader->inside = true;
	reader->body = at;
}

/* What is said behind "=": `attributes #5 = { … }`, `!5 = …`. */
static void add_entry(struct ir_table *table, struct ir_lexer lexer, unsigned long long number)
{
	struct ir_word word = ir_next(&lexer);
	if (word.kind == IR_SIGN && word.sign == '=')
		ir_table_add(table, number, lexer.at);
}

/* `!llvm.ident = !{!4, !5}` */
static void take_named_metadata(struct reader *reader, struct ir_lexer lexer)
{
	struct ir_word word = ir_next(&lexer);
	if (!ir_word_is(&word, "llvm.ident") && !ir_word_is(&word, "llvm.dbg.cu"))
		return;
	while ((word = ir_next(&lexer)).kind != IR_END && word.kind != IR_OPEN)
		if (word.kind == IR_NUMBER)
			ir_table_add(&reader->idents, word.number, word.start);
}

static void take_text(char **place, struct ir_lexer lexer)
{
	struct ir_word word = ir_next(&lexer);
	if (word.kind == IR_SIGN && word.sign == '=')
		word = ir_next(&lexer);
	char *text = NULL;
	if (word.kind == IR_STRING && ir_unescape(&word, &text)) {
		free(*place);
		*place = text;
	}
}

static void read_top_line(struct reader *reader, const char *at, const char *line_end)
{
	struct ir_lexer lexer = {at, line_end};
	struct ir_word word = ir_next(&lexer);
	if (word.kind == IR_NUMBER && word.sign == '!') {
		add_entry(&reader->debug.metadata, lexer, word.number);
	} else if (word.kind == IR_SIGN && word.sign == '!') {
		take_named_metadata(reader, lexer);
	} else if (ir_word_is(&word, "define")) {
		open_function(reader, at, line_end);
	} else if (ir_word_is(&word, "attributes")) {
		word = ir_next(&lexer);
		if (word.kind == IR_NUMBER && word.sign == '#')
			add_entry(&reader->groups, lexer, word.number);
	} else if (ir_word_is(&word, "target")) {
		word = ir_next(&lexer);
		if (ir_word_is(&word, "triple"))
			take_text(&reader->module->triple, lexer);
	} else if (ir_word_is(&word, "source_filename")) {
		cleanup_free char *name = NULL;
		take_text(&name, lexer);
		reader->module->rust = reader->module->rust || (name != NULL && strstr(name, "-cgu.") != NULL);
	}
}

/* The first line behind `at` that is more than a debug record or a comment begins with "unreachable". */
static bool ends_here(const char *at, const char *end)
{
	for (;;) {
		struct ir_lexer lexer = {at, end};
		struct ir_word word = ir_next(&lexer);
		if (word.kind != IR_SIGN || word.sign != '#')
			return ir_word_is(&word, "unreachable");
		size_t lines = 0;
		bool open = false;
		at = ir_line_end(word.start, end, &lines, &open);
	}
}

static void add_block(struct reader *reader, struct ir_block *block, const struct ir_call *call)
{
	struct ir_module *module = reader->module;
	reader->calls = memory_grow(reader->calls, module->block_count, &reader->call_capacity, sizeof *reader->calls);
	reader->calls[module->block_count] = *call;
	module->blocks = memory_grow(module->blocks, module->block_count, &reader->capacity, sizeof *module->blocks);
	module->blocks[module->block_count++] = *block;
}

/* Cheap, for the many lines that hold none: may there be an asm call in this line? */
static bool may_hold_asm(const char *at, const char *line_end)
{
	for (;;) {
		const char *found = memmem(at, (size_t)(line_end - at), "asm", 3);
		if (found == NULL)
			return false;
		bool begins = found == at || isspace((unsigned char)found[-1]) || strchr("}>])*", found[-1]) != NULL;
		if (begins && (found + 3 == line_end || isspace((unsigned char)found[3]) || found[3] == '"'))
			return true;
		at = found + 3;
	}
}

/* `%name = bitcast TYPE %from to …`: `from`, owned by the caller; NULL where the function holds no such line before
 * `end`. */
static char *bitcast_source(const char *body, const char *end, const char *name)
{
	cleanup_free char *line = text_format("  %s = bitcast ", name);
	const char *found = memmem(body, (size_t)(end - body), line, strlen(line));
	if (found == NULL)
		return NULL;
	struct ir_lexer lexer = {found + strlen(line), end};
	for (struct ir_word word = ir_next(&lexer); word.kind != IR_END && !ir_word_is(&word, "to");
	     word = ir_next(&lexer))
		if (word.kind == IR_NAME && word.sign == '%')
			return text_copy_range(word.start, (size_t)(word.end - word.start));
	return NULL;
}

/* Before LLVM 15 one address had as many names as types: memory operands are to be known by the first. */
static void undo_bitcasts(const struct reader *reader, struct ir_block *block, const char *at)
{
	enum { STEPS_MAX = 4 };
	if (block->constraints == NULL || strchr(block->constraints, '*') == NULL)
		return;
	for (size_t i = 0; i < block->argument_count; i++) {
		struct ir_value *value = &block->arguments[i];
		for (int step = 0; step < STEPS_MAX && value->text[0] == '%'; step++) {
			char *source = bitcast_source(reader->body, at, value->text);
			if (source == NULL)
				break;
			free(value->text);
			value->text = source;
		}
	}
}

/* Returns where the next line starts: a callbr or an invoke goes on in the next. */
static const char *read_body_line(struct reader *reader, const char *at, const char *line_end, size_t line,
				  size_t *lines)
{
	if (!may_hold_asm(at, line_end))
		return line_end;
	struct ir_call call = {0};
	struct ir_block block = {.text_line = line, .may_read = true, .may_write = true};
	const char *limit = line_end;
	enum ir_call_end end = ir_call_read(&call, &block, &reader->function, at, limit);
	if (end == IR_CALL_GOES_ON) {
		limit = ir_line_end(line_end, reader->end, lines, &reader->strings_open);
		ir_block_clear(&block);
		call = (struct ir_call){0};
		block = (struct ir_block){.text_line = line, .may_read = true, .may_write = true};
		end = ir_call_read(&call, &block, &reader->function, at, limit);
	}
	if (end == IR_CALL_NONE)
		return line_end;
	block.symbol = text_copy(reader->function.symbol != NULL ? reader->function.symbol : "");
	block.ends = ends_here(limit, reader->end);
	undo_bitcasts(reader, &block, at);
	add_block(reader, &block, &call);
	return limit;
}

static void read_lines(struct reader *reader, const char *text)
{
	size_t lines = 1;
	for (const char *at = text; at < reader->end;) {
		size_t line = lines;
		const char *line_end = ir_line_end(at, reader->end, &lines, &reader->strings_open);
		if (reader->inside && *at == '}')
			reader->inside = false;
		else if (reader->inside &&
			 (starts_with(at, line_end, "define ") || starts_with(at, line_end, "declare ")))
			reader->inside = false, read_top_line(reader, at, line_end);
		else if (reader->inside)
			line_end = read_body_line(reader, at, line_end, line, &lines);
		else
			read_top_line(reader, at, line_end);
		at = line_end;
	}
}

/* What the file says only at its end: attribute groups and metadata. */
static void finish_block(struct reader *reader, struct ir_block *block, const struct ir_call *call)
{
	const struct ir_debug *debug = &reader->debug;
	for (size_t i = 0; i < call->group_count; i++) {
		const char *at = ir_table_find(&reader->groups, call->groups[i]);
		if (at != NULL)
			ir_call_attributes(block, at, reader->end);
	}
	for (size_t i = 0; i < call->function_group_count; i++) {
		const char *at = ir_table_find(&reader->groups, call->function_groups[i]);
		if (at != NULL)
			ir_function_attributes(block, at, reader->end);
	}
	if (call->has_location)
		ir_debug_locate(debug, call->location, block);
	block->rust = reader->module->rust;
	if (call->has_subprogram) {
		block->name = ir_debug_function(debug, call->subprogram);
		block->rust = ir_debug_is_rust(debug, call->subprogram, reader->module->rust);
	}
}

static void find_end(struct reader *reader)
{
	struct ir_module *module = reader->module;
	const char *symbol = reader->function.symbol != NULL ? reader->function.symbol : "";
	if (reader->strings_open)
		module->cut_off = text_copy("the file ends inside a string");
	else if (reader->inside)
		module->cut_off = text_format("the file ends inside the function %s", symbol);
}

int ir_read(struct ir_module *module, const char *text, size_t length, struct error *error)
{
	if (check_kind(text, length, error) < 0)
		return -1;
	struct reader reader = {.module = module, .end = text + length, .debug = {.end = text + length}};
	module->triple = text_copy("");
	read_lines(&reader, text);
	ir_table_sort(&reader.debug.metadata);
	ir_table_sort(&reader.groups);
	for (size_t i = 0; i < reader.idents.count; i++)
		module->rust = module->rust || ir_debug_names_rustc(&reader.debug, reader.idents.entries[i].number);
	for (size_t i = 0; i < module->block_count; i++)
		finish_block(&reader, &module->blocks[i], &reader.calls[i]);
	find_end(&reader);
	ir_table_clear(&reader.debug.metadata);
	ir_table_clear(&reader.groups);
	ir_table_clear(&reader.idents);
	ir_function_clear(&reader.function);
	free(reader.calls);
	return 0;
}

void ir_module_clear(struct ir_module *module)
{
	for (size_t i = 0; i < module->block_count; i++)
		ir_block_clear(&module->blocks[i]);
	free(module->blocks);
	free(module->triple);
	free(module->cut_off);
	*module = (struct ir_module){0};
}
