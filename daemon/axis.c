/* See axis.h. */
#include "axis.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_OID = 10 };

void axes_start(struct axes *axes, const struct config *config)
{
	axes->count = config->axis_count;
	axes->items = memory_new(axes->count, sizeof *axes->items);
	for (size_t i = 0; i < axes->count; i++)
		axes->items[i].config = &config->axes[i];
}

static void value_clear(struct axis_value *value)
{
	free(value->label);
	free(value->identity);
	free(value->detail);
	free(value->skip_reason);
	free(value->oid);
	free(value->compiler);
	free(value->rustc);
	free(value->cargo);
	strlist_clear(&value->path);
	strlist_clear(&value->read_only);
}

void axis_clear(struct axis *axis)
{
	for (size_t i = 0; i < axis->count; i++)
		value_clear(&axis->values[i]);
	free(axis->values);
	*axis = (struct axis){.config = axis->config};
}

void axes_clear(struct axes *axes)
{
	for (size_t i = 0; i < axes->count; i++)
		axis_clear(&axes->items[i]);
	free(axes->items);
	*axes = (struct axes){0};
}

static struct axis_value *add_value(struct axis *axis)
{
	axis->values = memory_grow(axis->values, axis->count, &axis->capacity, sizeof *axis->values);
	axis->values[axis->count] = (struct axis_value){0};
	return &axis->values[axis->count++];
}

static char *entry_label(const struct config_value *entry)
{
	if (entry->name != NULL)
		return text_copy(entry->name);
	return text_copy(entry->commits != NULL ? entry->commits : entry->command);
}

static void add_list(struct str *identity, const char *name, const struct strlist *list)
{
	cleanup_free char *joined = strlist_join(list, " ");
	if (list->count > 0)
		str_append_format(identity, "%s: %s\n", name, joined);
}

static void add_map(struct str *identity, const char *name, const struct strmap *map)
{
	for (size_t i = 0; i < map->count; i++)
		str_append_format(identity, "%s: %s=%s\n", name, map->entries[i].key, map->entries[i].value);
}

void axis_take_written(struct axis *axis)
{
	for (size_t i = 0; i < axis->config->value_count; i++) {
		const struct config_value *entry = &axis->config->values[i];
		struct axis_value *value = add_value(axis);
		struct str identity = {0};
		str_append_format(&identity, "%s\n", entry->name);
		add_list(&identity, "features", &entry->features);
		add_map(&identity, "environment", &entry->environment);
		add_list(&identity, "rustflags", &entry->rustflags);
		add_map(&identity, "placeholder", &entry->placeholders);
		value->config = entry;
		value->label = text_copy(entry->name);
		value->identity = str_steal(&identity);
		value->detail = text_copy(entry->note);
	}
}

static char *json_text_copy(const json_t *object, const char *key)
{
	return text_copy(json_string_value(json_object_get(object, key)));
}

static void json_list_copy(struct strlist *list, const json_t *array)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *item = json_string_value(json_array_get(array, i));
		if (item != NULL)
			strlist_add(list, item);
	}
}

/* The entry that the worker was asked for by this name; NULL for what "auto" found. */
static const struct config_value *asked_entry(const struct config_axis *axis, const char *name)
{
	static const char command[] = "command:";
	for (size_t i = 0; i < axis->value_count; i++) {
		const struct config_value *entry = &axis->values[i];
		if (entry->command != NULL && text_starts_with(name, command) &&
		    text_equal(name + sizeof command - 1, entry->command))
			return entry;
		if (entry->command == NULL && text_equal(entry->name, name) && strcmp(name, "auto") != 0)
			return entry;
	}
	return NULL;
}

int axis_take_toolchains(struct axis *axis, const json_t *answer, struct error *error)
{
	if (!json_is_array(answer))
		return error_set(error, "the worker's answer about toolchains is no list");
	for (size_t i = 0; i < json_array_size(answer); i++) {
		const json_t *found = json_array_get(answer, i);
		const char *label = json_string_value(json_object_get(found, "label"));
		const char *name = json_string_value(json_object_get(found, "name"));
		if (label == NULL && name == NULL)
			return error_set(error, "the worker's answer about toolchains has an entry without a name");
		struct axis_value *value = add_value(axis);
		value->label = text_copy(label != NULL ? label : name);
		value->identity = json_text_copy(found, "identity");
		value->skip_reason = json_text_copy(found, "skip");
		value->compiler = json_text_copy(found, "program");
		value->rustc = json_text_copy(found, "rustc");
		value->cargo = json_text_copy(found, "cargo");
		json_list_copy(&value->read_only, json_object_get(found, "read_only"));
		const char *path = json_string_value(json_object_get(found, "path"));
		if (path != NULL)
			strlist_add(&value->path, path);
		if (value->identity == NULL && value->skip_reason == NULL)
			value->skip_reason = text_copy("the worker gave no identity for it");
		if (value->identity == NULL)
			value->identity = text_copy("unknown");
		value->config = name != NULL ? asked_entry(axis->config, name) : NULL;
		const char *root = json_string_value(json_object_get(found, "root"));
		const char *note = value->config != NULL ? value->config->note : NULL;
		if (root != NULL && note != NULL)
			value->detail = text_format("%s; %s", root, note);
		else
			value->detail = text_copy(root != NULL ? root : note);
	}
	return 0;
}

void axis_take_release(struct axis *axis, const struct config_value *entry, const json_t *answer)
{
	const char *identity = json_string_value(json_object_get(answer, "identity"));
	const char *reason = json_string_value(json_object_get(answer, "skip"));
	if (reason == NULL)
		reason = json_string_value(json_object_get(answer, "error"));
	if (reason == NULL && identity == NULL)
		reason = "the worker gave no identity for it";
	if (identity == NULL) {
		axis_take_unresolved(axis, entry, reason);
		return;
	}
	struct axis_value *value = add_value(axis);
	value->config = entry;
	value->label = text_copy(entry->name);
	value->identity = text_format("release %s sha256 %s", entry->name, identity);
	value->detail = text_copy(entry->note);
}

bool axis_entry_is_commit(const struct axis *axis, const struct config_value *entry)
{
	return entry->commits != NULL || axis->config->type == AXIS_COMMIT;
}

const char *axis_entry_source(const struct axis *axis, const struct config_value *entry)
{
	return entry->source != NULL ? entry->source : axis->config->source;
}

void axis_take_commits(struct axis *axis, const struct config_value *entry, const char *source,
		       const struct source_commits *commits)
{
	for (size_t i = 0; i < commits->count; i++) {
		const struct source_commit *commit = &commits->items[i];
		struct axis_value *value = add_value(axis);
		cleanup_free char *date = text_copy_range(commit->date, strcspn(commit->date, "T"));
		value->config = entry;
		value->from_range = entry->commits != NULL;
		value->source = source;
		value->oid = text_copy(commit->oid);
		value->label = entry->commits != NULL ? text_copy_range(commit->oid, SHORT_OID) : entry_label(entry);
		value->identity = text_format("commit %s", commit->oid);
		value->detail = entry->note != NULL ? text_format("%s %s; %s", date, commit->subject, entry->note)
						   : text_format("%s %s", date, commit->subject);
	}
}

void axis_take_unresolved(struct axis *axis, const struct config_value *entry, const char *reason)
{
	struct axis_value *value = add_value(axis);
	value->config = entry;
	value->label = entry_label(entry);
	value->identity = text_copy("unresolved");
	value->skip_reason = text_copy(reason);
	value->from_range = entry->commits != NULL;
	value->detail = text_copy(entry->note);
}

void axis_drop_duplicates(struct axis *axis)
{
	size_t kept = 0;
	for (size_t i = 0; i < axis->count; i++) {
		bool known = false;
		for (size_t j = 0; j < kept && !known; j++)
			known = text_equal(axis->values[j].label, axis->values[i].label);
		if (known)
			value_clear(&axis->values[i]);
		else
			axis->values[kept++] = axis->values[i];
	}
	axis->count = kept;
}

static bool matches_class(const struct axis *axis, size_t position, const char *name)
{
	if (strcmp(name, "@first") == 0)
		return position == 0;
	if (strcmp(name, "@last") == 0)
		return position + 1 == axis->count;
	if (strcmp(name, "@commits") == 0)
		return axis->values[position].from_range;
	return strcmp(name, "@releases") == 0 && !axis->values[position].from_range;
}

bool axis_matches(const struct axis *axis, size_t position, const char *pattern)
{
	if (pattern[0] == '!')
		return !axis_matches(axis, position, pattern + 1);
	if (pattern[0] == '@')
		return matches_class(axis, position, pattern);
	return fnmatch(pattern, axis->values[position].label, 0) == 0;
}

static size_t find_axis(const struct axes *axes, const char *name)
{
	for (size_t i = 0; i < axes->count; i++)
		if (strcmp(axes->items[i].config->name, name) == 0)
			return i;
	return axes->count;
}

static bool match_holds(const struct axes *axes, const struct config_match *match, const size_t *positions)
{
	size_t axis = find_axis(axes, match->axis);
	if (axis == axes->count)
		return false;
	for (size_t i = 0; i < match->patterns.count; i++)
		if (axis_matches(&axes->items[axis], positions[axis], match->patterns.items[i]))
			return true;
	return false;
}

static bool any_rule_holds(const struct axes *axes, const struct config_rules *rules, const size_t *positions)
{
	for (size_t i = 0; i < rules->count; i++) {
		bool holds = true;
		for (size_t j = 0; j < rules->items[i].match_count && holds; j++)
			holds = match_holds(axes, &rules->items[i].matches[j], positions);
		if (holds)
			return true;
	}
	return false;
}

bool axes_include(const struct axes *axes, const struct config *config, const size_t *positions)
{
	return !any_rule_holds(axes, &config->exclude, positions) || any_rule_holds(axes, &config->include, positions);
}

char *axes_combination(const struct axes *axes, const size_t *positions)
{
	struct str text = {0};
	for (size_t i = 0; i < axes->count; i++)
		str_append_format(&text, "%s%s=%s", i > 0 ? " " : "", axes->items[i].config->name,
				  axes->items[i].values[positions[i]].label);
	return str_steal(&text);
}

static void check_rules(const struct axes *axes, const struct config *config, const struct config_rules *rules,
			const char *section, struct strlist *lines)
{
	for (size_t i = 0; i < rules->count; i++) {
		for (size_t j = 0; j < rules->items[i].match_count; j++) {
			const struct config_match *match = &rules->items[i].matches[j];
			size_t index = find_axis(axes, match->axis);
			if (index == axes->count)
				continue;
			const struct axis *axis = &axes->items[index];
			for (size_t k = 0; k < match->patterns.count; k++) {
				bool used = false;
				for (size_t p = 0; p < axis->count && !used; p++)
					used = axis_matches(axis, p, match->patterns.items[k]);
				if (!used)
					strlist_add_owned(lines, text_format("%s:%d: %s: the pattern \"%s\" matches no value of %s",
									     config->file, rules->items[i].line, section,
									     match->patterns.items[k], match->axis));
			}
		}
	}
}

void axes_unmatched_patterns(const struct axes *axes, const struct config *config, struct strlist *lines)
{
	check_rules(axes, config, &config->exclude, "exclude", lines);
	check_rules(axes, config, &config->include, "include", lines);
}
