/*
 * Names that are used must be defined somewhere in the file: looked up once everything is read.
 *
 * Each kind of name is a row: its words, and the list of what is defined.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "config_schema.h"

/* Patterns against values: an investigation needs some hundreds; beyond this, what matches nothing is no longer looked
 * for. */
enum { COMPARISON_LIMIT = 4000000 };

struct names {
	struct strlist axes;
	struct strlist sources;
	struct strlist placeholders;
	size_t comparisons; /* done so far */
};

static int compare_texts(const void *key, const void *item)
{
	return strcmp(key, *(char *const *)item);
}

/* `sorted` by strlist_sort. */
static bool is_among(const struct strlist *sorted, const char *name)
{
	return sorted->count > 0 &&
	       bsearch(name, sorted->items, sorted->count, sizeof *sorted->items, compare_texts) != NULL;
}

static void collect_names(const struct config_reader *reader, struct names *names)
{
	const struct config *config = reader->config;
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].name != NULL)
			strlist_add(&names->axes, config->axes[i].name);
	for (size_t i = 0; i < config->source_count; i++) {
		strlist_add(&names->sources, config->sources[i].name);
		strlist_add_owned(&names->placeholders, text_format("checkout:%s", config->sources[i].name));
	}
	for (size_t i = 0; config_builtin_placeholders[i] != NULL; i++)
		strlist_add(&names->placeholders, config_builtin_placeholders[i]);
	for (size_t i = 0; i < reader->reference_count; i++)
		if (reader->references[i].kind == CONFIG_PLACEHOLDER_DEFINED)
			strlist_add(&names->placeholders, reader->references[i].name);
	strlist_add_all(&names->placeholders, &names->axes);
	strlist_sort(&names->axes);
	strlist_sort(&names->sources);
	strlist_sort(&names->placeholders);
}

static bool is_full(const struct config_reader *reader)
{
	return reader->problems.count >= CONFIG_PROBLEM_LIMIT;
}

static void report_undefined(struct config_reader *reader, const struct config_reference *used,
			     const struct strlist *known, const char *format, const char *advice)
{
	struct config_nearest nearest = {.word = used->name};
	for (size_t i = 0; i < known->count && !is_full(reader); i++)
		config_nearest_consider(&nearest, known->items[i]);
	cleanup_free char *quoted = config_quote(used->name);
	cleanup_free char *hint = config_nearest_hint(&nearest, advice);
	config_report(reader, used, "%s %s is not defined%s", format, quoted, hint);
}

static void check_axis(struct config_reader *reader, const struct config_reference *used, struct names *names)
{
	if (!is_among(&names->axes, used->name))
		report_undefined(reader, used, &names->axes, "axis", ": add it under \"axes\" or remove this entry");
}

static void check_source(struct config_reader *reader, const struct config_reference *used, struct names *names)
{
	if (!is_among(&names->sources, used->name))
		report_undefined(reader, used, &names->sources, "source", ": add it under \"sources\"");
}

static void check_placeholder(struct config_reader *reader, const struct config_reference *used, struct names *names)
{
	if (!is_among(&names->placeholders, used->name))
		report_undefined(
			reader, used, &names->placeholders, "placeholder",
			": define it under \"placeholders\" of a choice, or write { with a blank after it where "
			"none is meant");
}

static void check_new_placeholder(struct config_reader *reader, const struct config_reference *used,
				  struct names *names)
{
	cleanup_free char *quoted = config_quote(used->name);
	if (is_among(&names->axes, used->name))
		config_report(reader, used,
			      "placeholder %s is already the value of the axis of that name: choose another name",
			      quoted);
}

static bool matches_a_value(const struct config_axis *axis, const char *pattern)
{
	for (size_t i = 0; i < axis->value_count; i++)
		if (axis->values[i].name == NULL || fnmatch(pattern, axis->values[i].name, 0) == 0)
			return true;
	return false;
}

/* Only where the labels are the names as written: a toolchain's or a commit's label is not known yet. */
static void check_value(struct config_reader *reader, const struct config_reference *used, struct names *names)
{
	const struct config *config = reader->config;
	for (size_t i = 0; i < config->axis_count; i++) {
		const struct config_axis *axis = &config->axes[i];
		bool known = axis->type == AXIS_PROFILE || axis->type == AXIS_CHOICE;
		if (!known || !text_equal(axis->name, used->axis))
			continue;
		names->comparisons += axis->value_count;
		if (names->comparisons > COMPARISON_LIMIT || matches_a_value(axis, used->name))
			continue;
		struct config_nearest nearest = {.word = used->name};
		for (size_t j = 0; j < axis->value_count && !is_full(reader); j++)
			config_nearest_consider(&nearest, axis->values[j].name);
		cleanup_free char *quoted = config_quote(used->name);
		cleanup_free char *hint =
			config_nearest_hint(&nearest, ": use one of its values or remove the pattern");
		config_report(reader, used, "%s matches no value of axis \"%s\"%s", quoted, axis->name, hint);
		return;
	}
}

void config_check(struct config_reader *reader)
{
	static void (*const checks[])(struct config_reader *, const struct config_reference *, struct names *) = {
		[CONFIG_AXIS_USED] = check_axis,
		[CONFIG_SOURCE_USED] = check_source,
		[CONFIG_PLACEHOLDER_USED] = check_placeholder,
		[CONFIG_PLACEHOLDER_DEFINED] = check_new_placeholder,
		[CONFIG_VALUE_USED] = check_value,
	};
	struct names names = {0};
	collect_names(reader, &names);
	for (size_t i = 0; i < reader->reference_count; i++)
		checks[reader->references[i].kind](reader, &reader->references[i], &names);
	strlist_clear(&names.axes);
	strlist_clear(&names.sources);
	strlist_clear(&names.placeholders);
}
