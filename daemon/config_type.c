/* The types of single values: texts, words, paths, numbers, times, sizes and lists of them.  See config_field.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config_field.h"

enum { MAP_LIMIT = 1000 /* entries of a map of strings, which is searched from its start */ };

/* ---- texts ---- */

static char **text_member(const struct config_field *field, void *record)
{
	return config_member(field, record);
}

static void replace(char **text, char *owned)
{
	free(*text);
	*text = owned;
}

static void start_text(const struct config_field *field, void *record)
{
	if (field->standard_text != NULL)
		replace(text_member(field, record), text_copy(field->standard_text));
}

static void clear_text(const struct config_field *field, void *record)
{
	replace(text_member(field, record), NULL);
}

/* Without the newlines that a block scalar (`|`, `>`) ends in. */
static char *without_end(const char *text)
{
	size_t length = strlen(text);
	while (length > 0 && strchr("\n\r \t", text[length - 1]) != NULL)
		length--;
	return text_copy_range(text, length);
}

static bool is_one_line(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/*
 * The text, reported where it is empty or fails the field's own check; NULL where there is none.  One that was reported
 * is returned all the same, so that names in it are not reported again as undefined.  Owned by the caller.
 */
static char *take_text(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       bool one_line)
{
	const char *written = config_expect_text(reader, field, node);
	if (written == NULL)
		return NULL;
	char *text = without_end(written);
	const char *must = field->check != NULL ? field->check(text) : NULL;
	if (one_line && !is_one_line(text))
		must = "one line without control characters";
	if (text[0] == '\0' && must == NULL)
		must = "a text that is not empty";
	if (must != NULL)
		config_wrong(reader, field, node, must);
	return text;
}

static void read_line(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	char *text = take_text(reader, field, node, true);
	if (text != NULL)
		replace(text_member(field, record), text);
}

static void read_text(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	char *text = take_text(reader, field, node, false);
	if (text != NULL)
		replace(text_member(field, record), text);
}

static void read_literal(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	const char *text = config_expect_text(reader, field, node);
	const char *must = text != NULL && field->check != NULL ? field->check(text) : NULL;
	if (must != NULL)
		config_wrong(reader, field, node, must);
	else if (text != NULL)
		replace(text_member(field, record), text_copy(text));
}

static char *take_path(struct config_reader *reader, const struct config_field *field, const struct config_node *node)
{
	cleanup_free char *text = take_text(reader, field, node, true);
	if (text != NULL && text[0] == '~') {
		config_wrong(reader, field, node, "a path written out in full, as ~ is not expanded");
		return NULL;
	}
	return text != NULL ? config_resolve_path(reader, text) : NULL;
}

static void read_path(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	char *path = take_path(reader, field, node);
	if (path != NULL)
		replace(text_member(field, record), path);
}

static void read_word(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	int word = config_expect_word(reader, field, node, field->words);
	if (word >= 0)
		replace(text_member(field, record), text_copy(field->words[word]));
}

const struct config_type config_type_line = {"a text", read_line, start_text, clear_text};
const struct config_type config_type_text = {"a text", read_text, start_text, clear_text};
const struct config_type config_type_literal = {"a text", read_literal, start_text, clear_text};
const struct config_type config_type_path = {"a path", read_path, start_text, clear_text};
const struct config_type config_type_word = {"a word", read_word, start_text, clear_text};

/* ---- lists of texts; one text stands for a list of one ---- */

static void add_line(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		     void *record)
{
	char *text = take_text(reader, field, node, true);
	if (text != NULL)
		strlist_add_owned(config_member(field, record), text);
}

static void add_literal(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			void *record)
{
	const char *text = config_expect_text(reader, field, node);
	if (text != NULL && text[0] == '\0')
		config_wrong(reader, field, node, "a text that is not empty");
	else if (text != NULL)
		strlist_add(config_member(field, record), text);
}

static void add_path(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		     void *record)
{
	char *path = take_path(reader, field, node);
	if (path != NULL)
		strlist_add_owned(config_member(field, record), path);
}

static void add_word(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		     void *record)
{
	struct strlist *list = config_member(field, record);
	int word = config_expect_word(reader, field, node, field->words);
	if (word >= 0 && !strlist_contains(list, field->words[word]))
		strlist_add(list, field->words[word]);
}

static void read_lines(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       void *record)
{
	config_each_item(reader, field, node, record, add_line);
}

static void read_literals(struct config_reader *reader, const struct config_field *field,
			  const struct config_node *node, void *record)
{
	config_each_item(reader, field, node, record, add_literal);
}

static void read_paths(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       void *record)
{
	config_each_item(reader, field, node, record, add_path);
}

static void read_words(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       void *record)
{
	config_each_item(reader, field, node, record, add_word);
}

static void clear_list(const struct config_field *field, void *record)
{
	strlist_clear(config_member(field, record));
}

const struct config_type config_type_lines = {"a text or a list of texts", read_lines, NULL, clear_list};
const struct config_type config_type_literals = {"a text or a list of texts", read_literals, NULL, clear_list};
const struct config_type config_type_paths = {"a path or a list of paths", read_paths, NULL, clear_list};
const struct config_type config_type_words = {"a word or a list of words", read_words, NULL, clear_list};

/* ---- maps of texts ---- */

static void read_map_entry(struct config_reader *reader, const struct config_field *field,
			   const struct config_entry *entry, void *record)
{
	const char *key = entry->key->text;
	const char *must = field->check != NULL ? field->check(key) : NULL;
	if (must != NULL) {
		cleanup_free char *quoted = config_quote(key);
		config_report(reader, entry->key, "a name in \"%s\" must be %s, not %s", field->key, must, quoted);
		return;
	}
	const char *value = config_expect_text(reader, field, entry->value);
	if (value != NULL)
		strmap_set(config_member(field, record), key, value);
}

static void read_map(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		     void *record)
{
	if (node->kind != CONFIG_MAPPING || node->broken) {
		config_wrong(reader, field, node, NULL);
		return;
	}
	if (node->count > MAP_LIMIT) {
		config_report(reader, node, "\"%s\" has %zu entries: at most %d are allowed", field->key, node->count,
			      (int)MAP_LIMIT);
		return;
	}
	for (size_t i = 0; i < node->count; i++)
		read_map_entry(reader, field, &node->entries[i], record);
}

static void clear_map(const struct config_field *field, void *record)
{
	strmap_clear(config_member(field, record));
}

const struct config_type config_type_map = {"a mapping of names to texts", read_map, NULL, clear_map};

/* ---- booleans ---- */

static void read_boolean(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	const char *text = node->plain ? config_node_text(node) : NULL;
	bool *member = config_member(field, record);
	if (text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
		*member = text[0] == 't';
	else
		config_wrong(reader, field, node, NULL);
}

const struct config_type config_type_boolean = {"true or false", read_boolean, NULL, NULL};

/* ---- numbers, and numbers with a unit ---- */

bool config_take_number(const char **text, long long *number)
{
	const char *at = *text;
	long long value = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		int digit = *at - '0';
		if (value > (LLONG_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (at == *text)
		return false;
	*text = at;
	*number = value;
	return true;
}

struct unit {
	const char *name;
	long long factor;
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct unit time_units[] = {{"", 1000},     {"ms", 1},       {"s", 1000}, {"m", 60000},
					 {"h", 3600000}, {"d", 86400000}, {NULL, 0}};

static const struct unit size_units[] = {{"", 1},
					 {"B", 1},
					 {"kB", 1000},
					 {"KB", 1000},
					 {"MB", 1000000},
					 {"GB", 1000000000},
					 {"TB", 1000000000000},
					 {"KiB", 1LL << 10},
					 {"MiB", 1LL << 20},
					 {"GiB", 1LL << 30},
					 {"TiB", 1LL << 40},
					 {NULL, 0}};

static bool take_quantity(const char *text, const struct unit *units, long long *quantity)
{
	long long number;
	if (!config_take_number(&text, &number))
		return false;
	for (; units->name != NULL; units++) {
		if (strcmp(units->name, text) != 0)
			continue;
		if (number > LLONG_MAX / units->factor)
			return false;
		*quantity = number * units->factor;
		return true;
	}
	return false;
}

/* `1073741824` as "1GiB": in the largest unit that divides it, so that ranges in messages can be read. */
static char *quantity_text(long long quantity, const struct unit *units)
{
	const struct unit *best = units;
	for (const struct unit *unit = units; unit->name != NULL; unit++)
		if (unit->name[0] != '\0' && quantity % unit->factor == 0 &&
		    (best->name[0] == '\0' || unit->factor > best->factor))
			best = unit;
	return text_format("%lld%s", quantity / best->factor, best->name);
}

static void read_quantity(struct config_reader *reader, const struct config_field *field,
			  const struct config_node *node, void *record, const struct unit *units)
{
	const char *text = config_node_text(node);
	long long quantity = 0;
	long long *member = config_member(field, record);
	if (text != NULL && take_quantity(text, units, &quantity) && quantity >= field->min && quantity <= field->max) {
		*member = quantity;
		return;
	}
	cleanup_free char *min = quantity_text(field->min, units);
	cleanup_free char *max = quantity_text(field->max, units);
	cleanup_free char *expected = text_format("%s from %s to %s", field->type->expected, min, max);
	config_wrong(reader, field, node, expected);
}

static void read_number(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			void *record)
{
	read_quantity(reader, field, node, record, no_units);
}

static void read_time(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	read_quantity(reader, field, node, record, time_units);
}

static void read_size(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record)
{
	read_quantity(reader, field, node, record, size_units);
}

static void start_number(const struct config_field *field, void *record)
{
	long long *member = config_member(field, record);
	*member = field->standard;
}

const struct config_type config_type_number = {"a whole number", read_number, start_number, NULL};
const struct config_type config_type_time = {"a time (500ms, 90s, 10m, 1h, 1d; without a unit: seconds)", read_time,
					     start_number, NULL};
const struct config_type config_type_size = {"a size (512MiB, 4GiB, 1MB; without a unit: bytes)", read_size,
					     start_number, NULL};
