/* Records by table: see config_field.h.  The types of single values are in config_type.c. */
#include "config_field.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"

void *config_member(const struct config_field *field, void *record)
{
	return (char *)record + field->offset;
}

void config_wrong(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		  const char *expected)
{
	if (node->broken)
		return;
	if (expected == NULL)
		expected = field->help != NULL ? field->help : field->type->expected;
	cleanup_free char *key = config_quote(field->key);
	cleanup_free char *what = config_node_describe(node);
	config_report(reader, node, "%s must be %s, not %s", key, expected, what);
}

/* A `{profile}` without quotes is a mapping to YAML. */
static bool looks_like_placeholder(const struct config_node *node)
{
	return node->kind == CONFIG_MAPPING && node->count == 1 && node->entries[0].key->plain &&
	       config_node_is_nothing(node->entries[0].value);
}

const char *config_expect_text(struct config_reader *reader, const struct config_field *field,
			       const struct config_node *node)
{
	const char *text = config_node_text(node);
	if (text != NULL)
		return text;
	if (looks_like_placeholder(node))
		config_report(reader, node, "YAML reads {%s} as a mapping: put it in quotes, \"{%s}\"",
			      node->entries[0].key->text, node->entries[0].key->text);
	else if (config_node_is_nothing(node))
		config_wrong(reader, field, node, "a text (in quotes if it is meant to be empty or \"null\")");
	else
		config_wrong(reader, field, node, NULL);
	return NULL;
}

int config_expect_word(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       const char *const *words)
{
	const char *text = config_expect_text(reader, field, node);
	if (text == NULL)
		return -1;
	struct config_nearest nearest = {.word = text};
	struct strlist known = {0};
	int found = -1;
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0)
			found = i;
		config_nearest_consider(&nearest, words[i]);
		strlist_add(&known, words[i]);
	}
	if (found < 0) {
		cleanup_free char *list = strlist_join(&known, ", ");
		cleanup_free char *quoted = config_quote(text);
		cleanup_free char *hint = config_nearest_hint(&nearest, "");
		config_report(reader, node, "\"%s\" must be %s%s, not %s%s", field->key,
			      known.count > 1 ? "one of " : "", list, quoted, hint);
	}
	strlist_clear(&known);
	return found;
}

void config_each_item(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record,
		      void (*item)(struct config_reader *reader, const struct config_field *field,
				   const struct config_node *node, void *record))
{
	if (node->kind != CONFIG_LIST || node->broken) {
		item(reader, field, node, record);
		return;
	}
	cleanup_free char *key = config_quote(field->key);
	if (field->not_empty && node->count == 0)
		config_report(reader, node, "%s is empty: give at least one entry", key);
	for (size_t i = 0; i < node->count; i++)
		item(reader, field, node->entries[i].value, record);
}

char *config_resolve_path(const struct config_reader *reader, const char *path)
{
	while (strncmp(path, "./", 2) == 0)
		for (path += 2; *path == '/'; path++)
			;
	if (*path == '\0' || strcmp(path, ".") == 0)
		return text_copy(reader->folder);
	return path_join(reader->folder, path);
}

void config_refer(struct config_reader *reader, enum config_reference_kind kind, const char *axis, char *owned_name,
		  const struct config_node *node)
{
	reader->references = memory_grow(reader->references, reader->reference_count, &reader->reference_capacity,
					 sizeof *reader->references);
	reader->references[reader->reference_count++] = (struct config_reference){
		.kind = kind, .axis = text_copy(axis), .name = owned_name, .line = node->line, .column = node->column};
}

/* ---- one record ---- */

void config_record_start(const struct config_table *table, void *record)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->fields[i].type->start != NULL)
			table->fields[i].type->start(&table->fields[i], record);
}

void config_record_clear(const struct config_table *table, void *record)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->fields[i].type->clear != NULL)
			table->fields[i].type->clear(&table->fields[i], record);
}

static bool belongs(const struct config_reader *reader, const struct config_field *field)
{
	return field->axis_types == 0 || (field->axis_types & reader->axis_types) != 0;
}

static const struct config_field *find_field(const struct config_table *table, const char *key)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->fields[i].key, key) == 0)
			return &table->fields[i];
	return NULL;
}

static void report_unknown_key(struct config_reader *reader, const struct config_table *table,
			       const struct config_node *key)
{
	struct config_nearest nearest = {.word = key->text};
	struct str known = {0};
	str_append_format(&known, " in %s: remove it; known keys are", table->noun);
	for (size_t i = 0; i < table->count; i++) {
		if (!belongs(reader, &table->fields[i]))
			continue;
		config_nearest_consider(&nearest, table->fields[i].key);
		str_append_format(&known, " %s,", table->fields[i].key);
	}
	known.data[known.length - 1] = '\0';
	cleanup_free char *quoted = config_quote(key->text);
	cleanup_free char *hint = config_nearest_hint(&nearest, known.data);
	config_report(reader, key, "unknown key %s%s", quoted, hint);
	str_clear(&known);
}

static void report_misplaced_key(struct config_reader *reader, const struct config_field *field,
				 const struct config_node *key)
{
	struct strlist types = {0};
	const char *own = "this";
	for (unsigned i = AXIS_TOOLCHAIN; i <= AXIS_CHOICE; i++) {
		if ((field->axis_types & 1u << i) != 0)
			strlist_add(&types, axis_type_name((enum axis_type)i));
		if (reader->axis_types == 1u << i)
			own = axis_type_name((enum axis_type)i);
	}
	cleanup_free char *list = strlist_join(&types, " and ");
	strlist_clear(&types);
	config_report(reader, key, "\"%s\" means nothing in a %s axis, only in %s axes: remove it", field->key, own,
		      list);
}

static void read_entry(struct config_reader *reader, const struct config_table *table, const struct config_entry *entry,
		       void *record)
{
	const struct config_field *field = find_field(table, entry->key->text);
	if (field == NULL)
		report_unknown_key(reader, table, entry->key);
	else if (!belongs(reader, field))
		report_misplaced_key(reader, field, entry->key);
	else
		field->type->read(reader, field, entry->value, record);
}

static void report_missing_keys(struct config_reader *reader, const struct config_table *table,
				const struct config_node *node)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct config_field *field = &table->fields[i];
		bool needed =
			field->required && (field->axis_types == 0 || (reader->axis_types & ~field->axis_types) == 0);
		if (needed && config_node_find(node, field->key) == NULL)
			config_report(reader, node, "%s needs \"%s\": add it (%s)", table->noun, field->key,
				      field->help != NULL ? field->help : field->type->expected);
	}
}

void config_record_read(struct config_reader *reader, const struct config_table *table, const struct config_node *node,
			void *record)
{
	if (node->broken)
		return;
	if (node->kind != CONFIG_MAPPING) {
		cleanup_free char *what = config_node_describe(node);
		config_report(reader, node, "%s must be a mapping (key: value), not %s", table->noun, what);
		return;
	}
	if (table->prepare != NULL)
		table->prepare(reader, node, record);
	for (size_t i = 0; i < node->count; i++)
		read_entry(reader, table, &node->entries[i], record);
	report_missing_keys(reader, table, node);
	if (table->finish != NULL)
		table->finish(reader, node, record);
}

/* ---- sections: a mapping of its own in the file, the same record in memory ---- */

static void read_section(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	config_record_read(reader, field->table, node, config_member(field, record));
}

static void start_section(const struct config_field *field, void *record)
{
	config_record_start(field->table, config_member(field, record));
}

static void clear_section(const struct config_field *field, void *record)
{
	config_record_clear(field->table, config_member(field, record));
}

const struct config_type config_type_section = {"a mapping", read_section, start_section, clear_section};

/* ---- lists of records ---- */

/* The pointer to the records is of another type in every list, so it is copied as bytes, not dereferenced. */
static char *get_items(const struct config_field *field, const void *record)
{
	char *items;
	memcpy(&items, (const char *)record + field->offset, sizeof items);
	return items;
}

static void set_items(const struct config_field *field, void *record, char *items)
{
	memcpy((char *)record + field->offset, &items, sizeof items);
}

static size_t *size_at(void *record, size_t offset)
{
	return (size_t *)(void *)((char *)record + offset);
}

static char *add_record(const struct config_field *field, void *record)
{
	const struct config_records *records = field->records;
	size_t *count = size_at(record, records->count_offset);
	size_t *capacity = size_at(record, records->capacity_offset);
	char *items = memory_grow(get_items(field, record), *count, capacity, records->size);
	set_items(field, record, items);
	char *added = items + *count * records->size;
	memset(added, 0, records->size);
	if (records->table != NULL)
		config_record_start(records->table, added);
	*count += 1;
	return added;
}

static void set_place(char *record, size_t offset, int place)
{
	if (offset != CONFIG_NONE)
		memcpy(record + offset, &place, sizeof place);
}

static void set_name(struct config_reader *reader, const struct config_field *field, const struct config_node *key,
		     char *member)
{
	const char *must = field->check != NULL ? field->check(key->text) : NULL;
	cleanup_free char *quoted = config_quote(key->text);
	if (must != NULL)
		config_report(reader, key, "a name in \"%s\" must be %s, not %s", field->key, must, quoted);
	char *name = text_copy(key->text);
	memcpy(member, &name, sizeof name);
}

static void read_record(struct config_reader *reader, const struct config_field *field,
			const struct config_entry *entry, void *record)
{
	const struct config_records *records = field->records;
	const struct config_node *place = entry->key != NULL ? entry->key : entry->value;
	char *added = add_record(field, record);
	set_place(added, records->line_offset, place->line);
	set_place(added, records->column_offset, place->column);
	if (records->name_offset != CONFIG_NONE && entry->key != NULL)
		set_name(reader, field, entry->key, added + records->name_offset);
	if (records->read != NULL)
		records->read(reader, entry->value, added);
	else
		config_record_read(reader, records->table, entry->value, added);
}

static int compare_names(const void *left, const void *right)
{
	const struct config_node *a = ((const struct config_name *)left)->node;
	const struct config_node *b = ((const struct config_name *)right)->node;
	int order = strcmp(a->text, b->text);
	if (order != 0)
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->column < b->column ? -1 : a->column > b->column;
}

void config_report_repeated(struct config_reader *reader, struct config_name *names, size_t count, const char *what)
{
	size_t texts = 0;
	for (size_t i = 0; i < count; i++)
		if (names[i].node != NULL && config_node_text(names[i].node) != NULL)
			names[texts++] = names[i];
	if (texts > 1)
		qsort(names, texts, sizeof *names, compare_names);
	for (size_t i = 1, first = 0; i < texts; i++) {
		const struct config_node *node = names[i].node;
		if (strcmp(node->text, names[first].node->text) != 0) {
			first = i;
			continue;
		}
		cleanup_free char *quoted = config_quote(node->text);
		config_report(reader, node, "%s %s, the first in line %d: rename or remove one", what, quoted,
			      names[first].node->line);
	}
}

/* Their names: the scalar itself, or what stands behind `name:`. */
static void check_names(struct config_reader *reader, const struct config_field *field, const struct config_node *node)
{
	if (field->records->unique == NULL || node->kind != CONFIG_LIST)
		return;
	cleanup_free struct config_name *names = memory_new(node->count, sizeof *names);
	for (size_t i = 0; i < node->count; i++) {
		const struct config_node *value = node->entries[i].value;
		names[i].node = value->kind == CONFIG_SCALAR ? value : config_node_find(value, "name");
	}
	config_report_repeated(reader, names, node->count, field->records->unique);
}

static bool fits(struct config_reader *reader, const struct config_field *field, const struct config_node *node)
{
	if (field->not_empty && node->count == 0)
		config_report(reader, node, "\"%s\" is empty: give at least one entry", field->key);
	if (field->max <= 0 || node->count <= (size_t)field->max)
		return true;
	config_report(reader, node, "\"%s\" has %zu entries: at most %lld are allowed", field->key, node->count,
		      field->max);
	return false;
}

static void read_records(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	bool by_name = field->records->name_offset != CONFIG_NONE;
	bool one = !by_name && node->kind == CONFIG_SCALAR && config_node_text(node) != NULL &&
		   field->records->read != NULL;
	if (one) {
		read_record(reader, field, &(struct config_entry){.value = node}, record);
		return;
	}
	if (node->kind != (by_name ? CONFIG_MAPPING : CONFIG_LIST) || node->broken) {
		config_wrong(reader, field, node, NULL);
		return;
	}
	if (!fits(reader, field, node))
		return;
	for (size_t i = 0; i < node->count; i++)
		read_record(reader, field, &node->entries[i], record);
	check_names(reader, field, node);
}

static void clear_records(const struct config_field *field, void *record)
{
	const struct config_records *records = field->records;
	size_t *count = size_at(record, records->count_offset);
	char *items = get_items(field, record);
	for (size_t i = 0; i < *count; i++) {
		char *item = items + i * records->size;
		if (records->clear != NULL)
			records->clear(item);
		if (records->table != NULL)
			config_record_clear(records->table, item);
		if (records->name_offset != CONFIG_NONE)
			free_pointer(item + records->name_offset);
	}
	free(items);
	set_items(field, record, NULL);
	*count = 0;
	*size_at(record, records->capacity_offset) = 0;
}

const struct config_type config_type_records = {"a list", read_records, NULL, clear_records};
