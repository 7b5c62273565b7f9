/*
 * From text to nodes, by libyaml's events (see config_node.h).  The only file that includes yaml.h.
 *
 * The text is not trusted: it is checked before libyaml sees it, and depth, nodes and expanded text are limited as they
 * grow, so that a file of nested aliases ends early.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config_node.h"

struct anchor {
	char *name;
	struct config_node *node;
};

struct builder {
	yaml_parser_t parser;
	struct config_document *document;
	struct config_problems *problems;
	struct anchor *anchors;
	size_t anchor_count;
	size_t anchor_capacity;
	const char *text;
	size_t length;
};

#define cleanup_event __attribute__((cleanup(yaml_event_delete)))

static struct config_node *read_node(struct builder *builder, const yaml_event_t *event, unsigned depth);

/* ---- the text itself ---- */

/* Length of the UTF-8 character at `text` (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF), 0: not one.
 */
static size_t character_length(const unsigned char *text, size_t left)
{
	static const struct {
		unsigned char first_min, first_max, second_min, second_max;
		size_t length;
	} forms[] = {
		{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (text[0] < forms[i].first_min || text[0] > forms[i].first_max)
			continue;
		if (forms[i].length > left)
			return 0;
		if (forms[i].length > 1 && (text[1] < forms[i].second_min || text[1] > forms[i].second_max))
			return 0;
		for (size_t j = 2; j < forms[i].length; j++)
			if ((text[j] & 0xc0) != 0x80)
				return 0;
		return forms[i].length;
	}
	return 0;
}

static const char *why_not_text(const unsigned char *text, size_t length)
{
	if (length == 0)
		return "is no UTF-8: save the file as UTF-8";
	if (text[0] == 0)
		return "is a NUL byte: this is no text file, or a damaged one";
	if ((text[0] < 0x20 && strchr("\t\n\r", text[0]) == NULL) || text[0] == 0x7f)
		return "is a control character: remove it";
	return NULL;
}

static int check_text(const char *text, size_t length, struct config_problems *problems)
{
	int line = 1;
	int column = 1;
	const unsigned char *bytes = (const unsigned char *)text;
	for (size_t i = 0; i < length;) {
		size_t step = character_length(bytes + i, length - i);
		const char *why = why_not_text(bytes + i, step);
		if (why != NULL) {
			config_problem_add(problems, line, column, "byte 0x%02x here %s", (unsigned)bytes[i], why);
			return -1;
		}
		column = bytes[i] == '\n' ? 1 : column + 1;
		line += bytes[i] == '\n';
		i += step;
	}
	return 0;
}

/* ---- libyaml's complaints ---- */

static int mark_line(yaml_mark_t mark)
{
	return mark.line < INT32_MAX ? (int)mark.line + 1 : INT32_MAX;
}

static int mark_column(yaml_mark_t mark)
{
	return mark.column < INT32_MAX ? (int)mark.column + 1 : INT32_MAX;
}

static const char *line_start(const struct builder *builder, size_t line)
{
	const char *start = builder->text;
	const char *end = builder->text + builder->length;
	while (line-- > 0) {
		const char *newline = memchr(start, '\n', (size_t)(end - start));
		if (newline == NULL)
			return end;
		start = newline + 1;
	}
	return start;
}

/* The character at a mark, 0 at the end of the text.  Columns are characters, so continuation bytes do not count. */
static char character_at(const struct builder *builder, yaml_mark_t mark)
{
	const char *end = builder->text + builder->length;
	const char *at = line_start(builder, mark.line);
	for (size_t column = mark.column; at < end && column > 0; column--)
		for (at++; at < end && ((unsigned char)*at & 0xc0) == 0x80; at++)
			;
	return (char)(at < end ? *at : '\0');
}

static bool indented_by_tab(const struct builder *builder, yaml_mark_t mark)
{
	const char *at = line_start(builder, mark.line);
	while (at < builder->text + builder->length && *at == ' ')
		at++;
	return at < builder->text + builder->length && *at == '\t';
}

static const char *advice(const struct builder *builder)
{
	static const struct {
		char character;
		const char *advice;
	} table[] = {
		{'@', "put a text that starts with @ in quotes"}, {'`', "put a text that starts with ` in quotes"},
		{'%', "put a text that starts with % in quotes"}, {'*', "put a text that starts with * in quotes"},
		{'&', "put a text that starts with & in quotes"}, {'!', "put a text that starts with ! in quotes"},
		{'\t', "a tab may not stand here: use spaces"},
	};
	if (indented_by_tab(builder, builder->parser.problem_mark))
		return "the line is indented by a tab: use spaces";
	if (text_equal(builder->parser.context, "while scanning a tag"))
		return "put a text that starts with ! in quotes";
	char character = character_at(builder, builder->parser.problem_mark);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (character == table[i].character)
			return table[i].advice;
	return "check indentation, quotes and brackets";
}

static void report_parser(struct builder *builder)
{
	const yaml_parser_t *parser = &builder->parser;
	if (parser->error == YAML_MEMORY_ERROR)
		memory_exhausted();
	const char *problem = parser->problem != NULL ? parser->problem : "cannot be read";
	cleanup_free char *context = text_copy("");
	if (parser->context != NULL) {
		free(context);
		context = text_format(" (%s from line %d on)", parser->context, mark_line(parser->context_mark));
	}
	config_problem_add(builder->problems, mark_line(parser->problem_mark), mark_column(parser->problem_mark),
			   "this is no YAML: %s%s: %s", problem, context, advice(builder));
}

static int next_event(struct builder *builder, yaml_event_t *event)
{
	if (yaml_parser_parse(&builder->parser, event) == 1)
		return 0;
	report_parser(builder);
	return -1;
}

/* ---- nodes ---- */

static struct config_node *new_node(struct builder *builder, enum config_node_kind kind, const yaml_event_t *event)
{
	struct config_node *node = memory_new(1, sizeof *node);
	node->next = builder->document->nodes;
	builder->document->nodes = node;
	node->kind = kind;
	node->line = mark_line(event->start_mark);
	node->column = mark_column(event->start_mark);
	node->nodes = 1;
	return node;
}

static int fail_at(struct builder *builder, const yaml_event_t *event, const char *message)
{
	config_problem_add(builder->problems, mark_line(event->start_mark), mark_column(event->start_mark), "%s",
			   message);
	return -1;
}

static int keep_anchor(struct builder *builder, const yaml_event_t *event, const yaml_char_t *name,
		       struct config_node *node)
{
	if (name == NULL)
		return 0;
	if (builder->anchor_count >= CONFIG_ANCHOR_LIMIT)
		return fail_at(builder, event, "more than 1000 anchors (&name) in one file: write the values out");
	builder->anchors = memory_grow(builder->anchors, builder->anchor_count, &builder->anchor_capacity,
				       sizeof *builder->anchors);
	builder->anchors[builder->anchor_count++] =
		(struct anchor){.name = text_copy((const char *)name), .node = node};
	return 0;
}

/* Anchors may be given again; the last one before the alias counts (YAML 1.2.2, 7.1). */
static struct config_node *find_alias(struct builder *builder, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	size_t i = builder->anchor_count;
	while (i-- > 0)
		if (strcmp(builder->anchors[i].name, name) == 0)
			break;
	cleanup_free char *quoted = config_quote(name);
	cleanup_free char *message = NULL;
	if (i == SIZE_MAX)
		message = text_format("no anchor &name before this line is called %s: put a text that starts with * in "
				      "quotes",
				      quoted);
	else if (builder->anchors[i].node->open)
		message = text_format("the alias %s stands inside of what it stands for: write the value out", quoted);
	else
		return builder->anchors[i].node;
	fail_at(builder, event, message);
	return NULL;
}

/* `!@last` without quotes is a tag to YAML, and its text is lost. */
static bool has_strange_tag(struct builder *builder, const yaml_event_t *event, const yaml_char_t *tag)
{
	static const char *const known[] = {"!", YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG};
	if (tag == NULL)
		return false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp((const char *)tag, known[i]) == 0)
			return false;
	cleanup_free char *quoted = config_quote((const char *)tag);
	config_problem_add(
		builder->problems, mark_line(event->start_mark), mark_column(event->start_mark),
		"YAML reads %s as a tag, and tags mean nothing here: put a text that starts with ! in quotes", quoted);
	return true;
}

static struct config_node *read_scalar(struct builder *builder, const yaml_event_t *event)
{
	struct config_node *node = new_node(builder, CONFIG_SCALAR, event);
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	if (memchr(text, '\0', length) != NULL) {
		fail_at(builder, event, "a text may not hold a NUL character: remove the \\0");
		return NULL;
	}
	node->text = text_copy_range(text, length);
	node->bytes = length;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->broken = has_strange_tag(builder, event, event->data.scalar.tag);
	return keep_anchor(builder, event, event->data.scalar.anchor, node) < 0 ? NULL : node;
}

static int add_entry(struct builder *builder, const yaml_event_t *event, struct config_node *node,
		     struct config_entry entry)
{
	node->nodes += entry.value->nodes + (entry.key != NULL);
	node->bytes += entry.value->bytes + (entry.key != NULL ? entry.key->bytes : 0);
	if (node->nodes > CONFIG_NODE_LIMIT || node->bytes > CONFIG_EXPANDED_LIMIT)
		return fail_at(builder, event,
			       "the file, its aliases written out, grows beyond 50000 entries or 4 MiB here: make it "
			       "smaller");
	node->entries = memory_grow(node->entries, node->count, &node->capacity, sizeof *node->entries);
	node->entries[node->count++] = entry;
	return 0;
}

static int read_list(struct builder *builder, struct config_node *node, unsigned depth)
{
	for (;;) {
		cleanup_event yaml_event_t event = {0};
		if (next_event(builder, &event) < 0)
			return -1;
		if (event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		const struct config_node *value = read_node(builder, &event, depth + 1);
		if (value == NULL || add_entry(builder, &event, node, (struct config_entry){.value = value}) < 0)
			return -1;
	}
}

/* A key that cannot count is reported and left out with its value; the rest of the mapping stands. */
static bool usable_key(struct builder *builder, const struct config_node *key)
{
	if (key->kind != CONFIG_SCALAR) {
		cleanup_free char *what = config_node_describe(key);
		config_problem_add(builder->problems, key->line, key->column,
				   "a key must be a text, not %s: put a text that starts with { or [ in quotes", what);
		return false;
	}
	if (key->plain && strcmp(key->text, "<<") == 0) {
		config_problem_add(builder->problems, key->line, key->column,
				   "merging mappings with << is not supported: write the keys out");
		return false;
	}
	return !key->broken;
}

static int read_mapping(struct builder *builder, struct config_node *node, unsigned depth)
{
	for (;;) {
		cleanup_event yaml_event_t key_event = {0};
		cleanup_event yaml_event_t value_event = {0};
		if (next_event(builder, &key_event) < 0)
			return -1;
		if (key_event.type == YAML_MAPPING_END_EVENT)
			return 0;
		const struct config_node *key = read_node(builder, &key_event, depth + 1);
		if (key == NULL || next_event(builder, &value_event) < 0)
			return -1;
		const struct config_node *value = read_node(builder, &value_event, depth + 1);
		if (value == NULL)
			return -1;
		if (usable_key(builder, key) &&
		    add_entry(builder, &key_event, node, (struct config_entry){.key = key, .value = value}) < 0)
			return -1;
	}
}

struct key_place {
	const struct config_node *key;
	size_t place;
};

/* By text, then in the order written. */
static int compare_keys(const void *left, const void *right)
{
	const struct key_place *a = left;
	const struct key_place *b = right;
	int order = strcmp(a->key->text, b->key->text);
	return order != 0 ? order : a->place < b->place ? -1 : a->place > b->place;
}

/* Report every key that was there before, and keep the first only. */
static void drop_repeated_keys(struct builder *builder, struct config_node *node)
{
	cleanup_free struct key_place *sorted = memory_new(node->count, sizeof *sorted);
	for (size_t i = 0; i < node->count; i++)
		sorted[i] = (struct key_place){.key = node->entries[i].key, .place = i};
	qsort(sorted, node->count, sizeof *sorted, compare_keys);
	for (size_t i = 1, first = 0; i < node->count; i++) {
		const struct config_node *key = sorted[i].key;
		if (strcmp(key->text, sorted[first].key->text) != 0) {
			first = i;
			continue;
		}
		cleanup_free char *quoted = config_quote(key->text);
		config_problem_add(builder->problems, key->line, key->column,
				   "%s is given twice, first in line %d: remove one", quoted, sorted[first].key->line);
		node->entries[sorted[i].place].repeated = true;
	}
	size_t kept = 0;
	for (size_t i = 0; i < node->count; i++)
		if (!node->entries[i].repeated)
			node->entries[kept++] = node->entries[i];
	node->count = kept;
}

static struct config_node *read_container(struct builder *builder, const yaml_event_t *event, unsigned depth)
{
	if (depth >= CONFIG_DEPTH_LIMIT) {
		fail_at(builder, event, "lists and mappings are nested more than 32 deep here: no key needs that");
		return NULL;
	}
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
	struct config_node *node = new_node(builder, is_list ? CONFIG_LIST : CONFIG_MAPPING, event);
	node->broken = has_strange_tag(builder, event,
				       is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag);
	node->open = true;
	const yaml_char_t *anchor = is_list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
	if (keep_anchor(builder, event, anchor, node) < 0)
		return NULL;
	if ((is_list ? read_list(builder, node, depth) : read_mapping(builder, node, depth)) < 0)
		return NULL;
	if (!is_list)
		drop_repeated_keys(builder, node);
	node->open = false;
	return node;
}

static struct config_node *read_node(struct builder *builder, const yaml_event_t *event, unsigned depth)
{
	if (event->type == YAML_ALIAS_EVENT)
		return find_alias(builder, event);
	if (event->type == YAML_SCALAR_EVENT)
		return read_scalar(builder, event);
	return read_container(builder, event, depth);
}

/* ---- the document ---- */

/* Stream start, document start, the root node, document end, stream end: the events that the root stands among. */
static int read_document(struct builder *builder)
{
	cleanup_event yaml_event_t stream = {0};
	cleanup_event yaml_event_t start = {0};
	cleanup_event yaml_event_t first = {0};
	cleanup_event yaml_event_t end = {0};
	cleanup_event yaml_event_t after = {0};
	if (next_event(builder, &stream) < 0 || next_event(builder, &start) < 0)
		return -1;
	if (start.type == YAML_STREAM_END_EVENT) {
		config_problem_add(builder->problems, 1, 1,
				   "the file is empty: an investigation needs name, axes and reproducer");
		return -1;
	}
	if (next_event(builder, &first) < 0)
		return -1;
	const struct config_node *root = read_node(builder, &first, 0);
	if (root == NULL || next_event(builder, &end) < 0 || next_event(builder, &after) < 0)
		return -1;
	if (after.type != YAML_STREAM_END_EVENT)
		return fail_at(builder, &after, "a second document starts here: one file holds one investigation");
	builder->document->root = root;
	return 0;
}

int config_document_read(struct config_document *document, const char *text, size_t length,
			 struct config_problems *problems)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
		text += 3;
		length -= 3;
	}
	if (check_text(text, length, problems) < 0)
		return -1;
	struct builder builder = {.document = document, .problems = problems, .text = text, .length = length};
	if (yaml_parser_initialize(&builder.parser) != 1)
		memory_exhausted();
	yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&builder.parser, (const unsigned char *)text, length);
	int result = read_document(&builder);
	yaml_parser_delete(&builder.parser);
	for (size_t i = 0; i < builder.anchor_count; i++)
		free(builder.anchors[i].name);
	free(builder.anchors);
	return result;
}

void config_document_clear(struct config_document *document)
{
	for (struct config_node *node = document->nodes; node != NULL;) {
		struct config_node *next = node->next;
		free(node->text);
		free(node->entries);
		free(node);
		node = next;
	}
	*document = (struct config_document){0};
}

const struct config_node *config_node_find(const struct config_node *node, const char *key)
{
	for (size_t i = 0; node->kind == CONFIG_MAPPING && i < node->count; i++)
		if (strcmp(node->entries[i].key->text, key) == 0)
			return node->entries[i].value;
	return NULL;
}

bool config_node_is_nothing(const struct config_node *node)
{
	return node->kind == CONFIG_SCALAR && node->plain &&
	       (node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

const char *config_node_text(const struct config_node *node)
{
	return node->kind == CONFIG_SCALAR && !node->broken && !config_node_is_nothing(node) ? node->text : NULL;
}

char *config_node_describe(const struct config_node *node)
{
	if (node->kind != CONFIG_SCALAR)
		return text_copy(node->kind == CONFIG_LIST ? "a list" : "a mapping");
	return config_node_is_nothing(node) ? text_copy("nothing") : config_quote(node->text);
}
