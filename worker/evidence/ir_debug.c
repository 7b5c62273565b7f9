/* See ir_debug.h.  Chains of scopes and of inlining come from a file that may be made to hurt: all of them are followed
 * so far only. */
#include "ir_debug.h"

#include <stdlib.h>
#include <string.h>

enum { SCOPES_MAX = 64, INLINES_MAX = 256 };

void ir_table_add(struct ir_table *table, unsigned long long number, const char *at)
{
	table->entries = memory_grow(table->entries, table->count, &table->capacity, sizeof *table->entries);
	table->entries[table->count++] = (struct ir_entry){number, at};
}

static int compare_entries(const void *left, const void *right)
{
	const struct ir_entry *a = left;
	const struct ir_entry *b = right;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

void ir_table_sort(struct ir_table *table)
{
	if (table->count > 0)
		qsort(table->entries, table->count, sizeof *table->entries, compare_entries);
}

const char *ir_table_find(const struct ir_table *table, unsigned long long number)
{
	size_t low = 0;
	size_t high = table->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table->entries[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < table->count && table->entries[low].number == number ? table->entries[low].at : NULL;
}

void ir_table_clear(struct ir_table *table)
{
	free(table->entries);
	*table = (struct ir_table){0};
}

/* !DILocation(line: 5, scope: !7): `kind` is DILocation, `members` starts behind the "(". */
struct node {
	struct ir_word kind;
	struct ir_lexer members;
};

static bool find_node(const struct ir_debug *debug, unsigned long long number, struct node *node)
{
	const char *at = ir_table_find(&debug->metadata, number);
	if (at == NULL)
		return false;
	struct ir_lexer lexer = {at, debug->end};
	struct ir_word word = ir_next(&lexer);
	if (ir_word_is(&word, "distinct"))
		word = ir_next(&lexer);
	if (word.kind != IR_SIGN || word.sign != '!')
		return false;
	node->kind = ir_next(&lexer);
	word = ir_next(&lexer);
	node->members = lexer;
	return node->kind.kind == IR_WORD && word.kind == IR_SIGN && word.sign == '(';
}

/* `name` with its colon. */
static bool find_member(const struct node *node, const char *name, struct ir_word *value)
{
	struct ir_lexer lexer = node->members;
	for (;;) {
		struct ir_word word = ir_next(&lexer);
		if (word.kind == IR_END || word.kind == IR_OPEN || (word.kind == IR_SIGN && word.sign == ')'))
			return false;
		if (word.kind == IR_SIGN && strchr("([{", word.sign) != NULL && !ir_skip_group(&lexer))
			return false;
		if (word.kind == IR_WORD && ir_word_is(&word, name)) {
			*value = ir_next(&lexer);
			return true;
		}
	}
}

static bool find_reference(const struct node *node, const char *name, unsigned long long *number)
{
	struct ir_word value;
	if (!find_member(node, name, &value) || value.kind != IR_NUMBER || value.sign != '!')
		return false;
	*number = value.number;
	return true;
}

static char *find_text(const struct node *node, const char *name)
{
	struct ir_word value;
	char *text = NULL;
	if (find_member(node, name, &value) && value.kind == IR_STRING)
		ir_unescape(&value, &text);
	return text;
}

static long long find_number(const struct node *node, const char *name)
{
	struct ir_word value;
	if (!find_member(node, name, &value) || value.kind != IR_WORD)
		return 0;
	cleanup_free char *digits = text_copy_range(value.start, (size_t)(value.end - value.start));
	return strtoll(digits, NULL, 10);
}

static char *file_path(const struct ir_debug *debug, unsigned long long number)
{
	struct node node;
	if (!find_node(debug, number, &node) || !ir_word_is(&node.kind, "DIFile"))
		return NULL;
	char *name = find_text(&node, "filename:");
	cleanup_free char *folder = find_text(&node, "directory:");
	if (name == NULL || name[0] == '/' || name[0] == '\\' || folder == NULL || folder[0] == '\0')
		return name;
	char *path = text_format("%s/%s", folder, name);
	free(name);
	return path;
}

/* "crate::module::" before `name`, as far as the scopes say. */
static char *qualify(const struct ir_debug *debug, const struct node *subprogram, char *name)
{
	unsigned long long scope;
	struct node node = *subprogram;
	for (size_t depth = 0; depth < SCOPES_MAX && find_reference(&node, "scope:", &scope); depth++) {
		if (!find_node(debug, scope, &node) || ir_word_is(&node.kind, "DIFile"))
			break;
		cleanup_free char *outer = find_text(&node, "name:");
		if (outer == NULL || ir_word_is(&node.kind, "DICompileUnit"))
			continue;
		char *longer = text_format("%s::%s", outer, name);
		free(name);
		name = longer;
	}
	return name;
}

char *ir_debug_function(const struct ir_debug *debug, unsigned long long number)
{
	struct node node;
	if (!find_node(debug, number, &node) || !ir_word_is(&node.kind, "DISubprogram"))
		return NULL;
	char *name = find_text(&node, "name:");
	return name != NULL ? qualify(debug, &node, name) : NULL;
}

bool ir_debug_names_rustc(const struct ir_debug *debug, unsigned long long number)
{
	const char *at = ir_table_find(&debug->metadata, number);
	if (at == NULL)
		return false;
	const char *line = memchr(at, '\n', (size_t)(debug->end - at));
	size_t length = (size_t)((line != NULL ? line : debug->end) - at);
	return memmem(at, length, "rustc", 5) != NULL || memmem(at, length, "DW_LANG_Rust", 12) != NULL;
}

bool ir_debug_is_rust(const struct ir_debug *debug, unsigned long long number, bool otherwise)
{
	struct node node;
	unsigned long long unit;
	if (!find_node(debug, number, &node) || !find_reference(&node, "unit:", &unit))
		return otherwise;
	return ir_debug_names_rustc(debug, unit);
}

/* A place without a line: blocks of both arms of a branch that were merged above it, for one. */
static void take_beginning(const struct ir_debug *debug, const struct node *subprogram, struct ir_location *location)
{
	unsigned long long file;
	if (location->line != 0 || !find_reference(subprogram, "file:", &file))
		return;
	free(location->file);
	location->file = file_path(debug, file);
	location->line = find_number(subprogram, "line:");
	location->merged = true;
}

/* The file of the innermost scope that has one, and the function around the scope. */
static void take_scope(const struct ir_debug *debug, unsigned long long scope, struct ir_location *location)
{
	struct node node;
	for (size_t depth = 0; depth < SCOPES_MAX && find_node(debug, scope, &node); depth++) {
		unsigned long long file;
		if (location->file == NULL && find_reference(&node, "file:", &file))
			location->file = file_path(debug, file);
		if (ir_word_is(&node.kind, "DISubprogram")) {
			location->function = ir_debug_function(debug, scope);
			take_beginning(debug, &node, location);
			return;
		}
		if (!find_reference(&node, "scope:", &scope))
			return;
	}
}

void ir_debug_locate(const struct ir_debug *debug, unsigned long long number, struct ir_block *block)
{
	struct node node;
	size_t capacity = block->location_count;
	for (size_t depth = 0; depth < INLINES_MAX && find_node(debug, number, &node); depth++) {
		unsigned long long scope;
		if (!ir_word_is(&node.kind, "DILocation"))
			return;
		struct ir_location location = {.line = find_number(&node, "line:"),
					       .column = find_number(&node, "column:")};
		if (find_reference(&node, "scope:", &scope))
			take_scope(debug, scope, &location);
		block->locations =
			memory_grow(block->locations, block->location_count, &capacity, sizeof *block->locations);
		block->locations[block->location_count++] = location;
		if (!find_reference(&node, "inlinedAt:", &number))
			return;
	}
}
