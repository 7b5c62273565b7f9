/* Every key of an investigation: the tables, and what a record must hold besides single right keys. */
#include "config_schema.h"

#include <stdlib.h>
#include <string.h>

enum {
	SOURCE_LIMIT = 1000,
	AXIS_LIMIT = 32,
	TWIN_LIMIT = 8, /* each is a clean build */
	TOOLCHAINS = 1u << AXIS_TOOLCHAIN,
	COMMITS = 1u << AXIS_COMMIT,
	CRATES = 1u << AXIS_CRATE,
	PROFILES = 1u << AXIS_PROFILE,
	CHOICES = 1u << AXIS_CHOICE,
	ALL_AXES = TOOLCHAINS | COMMITS | CRATES | PROFILES | CHOICES,
};

#define DAYS(count) ((count)*24LL * 60 * 60 * 1000)
#define TIB(count) ((long long)(count) << 40)

const char *const config_axis_types[] = {
	[AXIS_TOOLCHAIN] = "toolchain", [AXIS_COMMIT] = "commit", [AXIS_CRATE] = "crate",
	[AXIS_PROFILE] = "profile",     [AXIS_CHOICE] = "choice", NULL};
const char *const config_webhook_formats[] = {[WEBHOOK_GENERIC] = "generic",
					      [WEBHOOK_SLACK] = "slack",
					      [WEBHOOK_GITHUB_ISSUE_COMMENT] = "github-issue-comment",
					      NULL};
const char *const config_builtin_placeholders[] = {"profile_dir", "features", "rustflags", "workspace", "target",
						   "rustc",       "cargo",    "compiler",  NULL};

static const char *const systems[] = {"linux", "illumos", NULL};
static const char *const sandboxes[] = {"auto", "bubblewrap", "none", NULL};
static const char *const gathers[] = {"auto", "never", NULL};
static const char *const webhook_events[] = {"first-bad", "boundary", "verdict", NULL};

/* One row: key, type, member of RECORD, and then what else there is to say by name. */
#define ROW(name, kind, record, member, ...)                                                                           \
	{                                                                                                              \
		.key = name, .type = &config_type_##kind, .offset = offsetof(struct record, member), __VA_ARGS__       \
	}
#define TABLE(words, rows, ...)                                                                                        \
	{                                                                                                              \
		.noun = words, .fields = rows, .count = CONFIG_FIELD_COUNT(rows), __VA_ARGS__                          \
	}
/* Records of struct `element` in the members `list`_count and `list`_capacity of `record`. */
#define RECORDS(record, list, element, ...)                                                                            \
	{                                                                                                              \
		.count_offset = offsetof(struct record, list##_count),                                                 \
		.capacity_offset = offsetof(struct record, list##_capacity), .size = sizeof(struct element),           \
		.line_offset = offsetof(struct element, line), .column_offset = CONFIG_NONE, __VA_ARGS__               \
	}

static void refer_source(struct config_reader *reader, const struct config_node *node, const char *name)
{
	if (node != NULL && name != NULL)
		config_refer(reader, CONFIG_SOURCE_USED, NULL, text_copy(name), node);
}

/* `replacement` takes the place of what `text` held. */
static void replace_text(char **text, char *replacement)
{
	free(*text);
	*text = replacement;
}

static bool is_relative(const char *text)
{
	return text_starts_with(text, "./") || text_starts_with(text, "../");
}

/* ---- sources ---- */

static void finish_source(struct config_reader *reader, const struct config_node *node, void *record)
{
	(void)node;
	struct config_source *source = record;
	if (source->url != NULL && is_relative(source->url))
		replace_text(&source->url, config_resolve_path(reader, source->url));
	for (size_t i = 0; i < source->alternates.count; i++)
		if (is_relative(source->alternates.items[i]))
			replace_text(&source->alternates.items[i],
				     config_resolve_path(reader, source->alternates.items[i]));
}

static const struct config_field source_fields[] = {
	ROW("url", line, config_source, url, .required = true, .check = config_must_be_source_url),
	ROW("alternates", lines, config_source, alternates, .check = config_must_be_source_url),
};
static const struct config_table source_table = TABLE("a source", source_fields, .finish = finish_source);
static const struct config_records source_records = RECORDS(
	config, source, config_source, .name_offset = offsetof(struct config_source, name), .table = &source_table);

/* ---- values of axes ---- */

static void finish_stands_for(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_value *value = record;
	refer_source(reader, config_node_find(node, "source"), value->stands_for_source);
	if (config_node_find(node, "contains") != NULL && config_node_find(node, "file") == NULL)
		config_report(reader, node, "\"contains\" needs \"file\": name the file that must hold the text");
}

static const struct config_field stands_for_fields[] = {
	ROW("source", line, config_value, stands_for_source, .required = true),
	ROW("commit", line, config_value, stands_for_commit, .required = true),
	ROW("file", line, config_value, stands_for_file, .check = config_must_be_inside),
	ROW("contains", literals, config_value, stands_for_contains, .not_empty = true),
};
static const struct config_table stands_for_table =
	TABLE("\"stands_for\"", stands_for_fields, .finish = finish_stands_for);

static void check_commits(struct config_reader *reader, const struct config_node *node)
{
	static const char *const needs_commits[] = {"source", "paths", "first_parent"};
	const struct config_node *commits = config_node_find(node, "commits");
	bool takes_commits = (reader->axis_types & (COMMITS | CRATES)) != 0;
	if (commits == NULL && config_node_find(node, "name") == NULL)
		config_report(reader, node, "a value needs \"name\"%s: add it", takes_commits ? " or \"commits\"" : "");
	for (size_t i = 0; commits == NULL && takes_commits && i < 3; i++)
		if (config_node_find(node, needs_commits[i]) != NULL)
			config_report(reader, node, "\"%s\" needs \"commits\": add the range of commits, A..B",
				      needs_commits[i]);
	if (commits != NULL && reader->axis_types == CRATES && config_node_find(node, "source") == NULL)
		config_report(reader, node,
			      "\"commits\" in a crate axis needs \"source\": name the source they are in");
}

static void refer_new_placeholders(struct config_reader *reader, const struct config_node *node)
{
	if (node == NULL || node->kind != CONFIG_MAPPING)
		return;
	for (size_t i = 0; i < node->count; i++)
		config_refer(reader, CONFIG_PLACEHOLDER_DEFINED, NULL, text_copy(node->entries[i].key->text),
			     node->entries[i].key);
}

static void finish_value(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_value *value = record;
	check_commits(reader, node);
	refer_source(reader, config_node_find(node, "source"), value->source);
	refer_new_placeholders(reader, config_node_find(node, "placeholders"));
	config_refer_placeholders(reader, config_node_find(node, "environment"));
	if (value->command != NULL && strchr(value->command, '/') != NULL)
		replace_text(&value->command, config_resolve_path(reader, value->command));
}

static const struct config_field value_fields[] = {
	ROW("name", line, config_value, name, .check = config_must_be_label),
	ROW("commits", line, config_value, commits, .axis_types = COMMITS | CRATES, .check = config_must_be_range),
	ROW("source", line, config_value, source, .axis_types = CRATES),
	ROW("paths", lines, config_value, paths, .axis_types = COMMITS | CRATES, .not_empty = true,
	    .check = config_must_be_inside),
	ROW("first_parent", boolean, config_value, first_parent, .axis_types = COMMITS | CRATES),
	ROW("command", line, config_value, command, .axis_types = TOOLCHAINS),
	ROW("features", lines, config_value, features, .axis_types = PROFILES | CHOICES,
	    .check = config_must_be_feature),
	ROW("environment", map, config_value, environment, .axis_types = PROFILES | CHOICES,
	    .check = config_must_be_variable),
	ROW("rustflags", lines, config_value, rustflags, .axis_types = PROFILES | CHOICES),
	ROW("placeholders", map, config_value, placeholders, .axis_types = PROFILES | CHOICES,
	    .check = config_must_be_name),
	ROW("note", line, config_value, note),
	{.key = "stands_for", .type = &config_type_section, .table = &stands_for_table},
};
static const struct config_table value_table = TABLE("a value", value_fields, .finish = finish_value);

/* A text is the value's name: `0.5.0` is {name: 0.5.0}. */
static void read_value(struct config_reader *reader, const struct config_node *node, void *record)
{
	static const struct config_field as_text =
		ROW("values", line, config_value, name, .help = "a list of texts and mappings",
		    .check = config_must_be_label);
	struct config_value *value = record;
	if (node->kind == CONFIG_SCALAR)
		as_text.type->read(reader, &as_text, node, record);
	else
		config_record_read(reader, &value_table, node, record);
	if (value->name == NULL)
		return;
	if (reader->axis_types == TOOLCHAINS && is_relative(value->name))
		replace_text(&value->name, config_resolve_path(reader, value->name));
	if (reader->axis_types == COMMITS && value->commits == NULL && strstr(value->name, "..") != NULL) {
		cleanup_free char *quoted = config_quote(value->name);
		config_report(reader, node, "%s is no revision: write a range as {commits: %s}", quoted, quoted);
	}
}

/* ---- axes ---- */

static const struct config_records value_records = {
	.count_offset = offsetof(struct config_axis, value_count),
	.capacity_offset = offsetof(struct config_axis, value_capacity),
	.size = sizeof(struct config_value),
	.line_offset = offsetof(struct config_value, line),
	.column_offset = offsetof(struct config_value, column),
	.name_offset = CONFIG_NONE,
	.unique = "two values of an axis are called",
	.table = &value_table,
	.read = read_value,
};

/* The type decides which keys are allowed, so it is looked at before them. */
static void prepare_axis(struct config_reader *reader, const struct config_node *node, void *record)
{
	(void)record;
	const struct config_node *type = config_node_find(node, "type");
	const char *text = type != NULL ? config_node_text(type) : NULL;
	reader->axis_types = ALL_AXES;
	for (unsigned i = 0; text != NULL && config_axis_types[i] != NULL; i++)
		if (strcmp(config_axis_types[i], text) == 0)
			reader->axis_types = 1u << i;
}

static void finish_axis(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_axis *axis = record;
	if (config_node_find(node, "ordered") == NULL)
		axis->ordered = (reader->axis_types & (PROFILES | CHOICES)) == 0;
	if (reader->axis_types == CRATES && config_node_find(node, "crate") == NULL)
		axis->crate = text_copy(axis->name);
	refer_source(reader, config_node_find(node, "source"), axis->source);
	reader->axis_types = ALL_AXES;
}

static const struct config_field axis_fields[] = {
	ROW("name", line, config_axis, name, .required = true, .check = config_must_be_name),
	ROW("type", axis_type, config_axis, type, .required = true,
	    .help = "one of toolchain, commit, crate, profile, choice"),
	ROW("ordered", boolean, config_axis, ordered),
	ROW("source", line, config_axis, source, .axis_types = COMMITS, .required = true,
	    .help = "the name of one of the sources"),
	ROW("crate", line, config_axis, crate, .axis_types = COMMITS | CRATES, .check = config_must_be_crate),
	ROW("search", paths, config_axis, search, .axis_types = TOOLCHAINS),
	ROW("values", records, config_axis, values, .required = true, .not_empty = true, .records = &value_records,
	    .help = "a list of at least one value"),
};
static const struct config_table axis_table =
	TABLE("an axis", axis_fields, .prepare = prepare_axis, .finish = finish_axis);
static const struct config_records axis_records = RECORDS(config, axis, config_axis, .name_offset = CONFIG_NONE,
							  .unique = "two axes are called", .table = &axis_table);

/* ---- overrides ---- */

static const struct config_field edit_fields[] = {
	ROW("file", line, config_edit, file, .required = true, .check = config_must_be_inside),
	ROW("find", literal, config_edit, find, .required = true, .check = config_must_be_literal),
	ROW("replace", literal, config_edit, replace, .required = true,
	    .help = "a text, \"\" to delete what was found"),
	{.key = "matches", .type = &config_type_matches},
};
static const struct config_table edit_table = TABLE("an edit", edit_fields, .finish = NULL);
static const struct config_records edit_records =
	RECORDS(config_override, edit, config_edit, .name_offset = CONFIG_NONE, .table = &edit_table);

static void finish_override(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_override *override = record;
	const struct config_node *crate = config_node_find(node, "crate");
	const struct config_node *source = config_node_find(node, "source");
	refer_source(reader, source, override->source);
	if (crate == NULL && source == NULL)
		config_report(reader, node, "an override needs \"crate\" or \"source\": say what is edited");
	else if (crate != NULL && source != NULL)
		config_report(reader, crate,
			      "an override has either \"crate\" or \"source\": remove one, or make it two "
			      "overrides");
}

static const struct config_field override_fields[] = {
	ROW("name", line, config_override, name, .required = true),
	ROW("crate", line, config_override, crate, .check = config_must_be_crate),
	ROW("source", line, config_override, source),
	ROW("os", words, config_override, os, .words = systems),
	ROW("reason", text, config_override, reason),
	ROW("edits", records, config_override, edits, .required = true, .not_empty = true, .records = &edit_records,
	    .help = "a list of edits"),
};
static const struct config_table override_table = TABLE("an override", override_fields, .finish = finish_override);
static const struct config_records override_records =
	RECORDS(config, override, config_override, .name_offset = CONFIG_NONE, .unique = "two overrides are called",
		.table = &override_table);

static void finish_twin(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_override *twin = record;
	const struct config_node *source = config_node_find(node, "source");
	refer_source(reader, source, twin->source);
	if (source != NULL && config_node_find(node, "crate") != NULL)
		config_report(reader, source,
			      "a twin edits either a \"crate\" or a \"source\", or the reproducer where neither is "
			      "given: remove one");
}

static const struct config_table twin_table = TABLE("a twin", override_fields, .finish = finish_twin);
static const struct config_records twin_records = RECORDS(config, twin, config_override, .name_offset = CONFIG_NONE,
							  .unique = "two twins are called", .table = &twin_table);

/* ---- evidence ---- */

static const struct config_field evidence_fields[] = {
	ROW("gather", word, config_evidence, gather, .words = gathers, .standard_text = "auto"),
	ROW("function", regex, config_evidence, function),
};
static const struct config_table evidence_table = TABLE("\"evidence\"", evidence_fields, .finish = NULL);

/* ---- exclude and include ---- */

#define RULES(list)                                                                                                    \
	{                                                                                                              \
		.count_offset = offsetof(struct config, list) + offsetof(struct config_rules, count),                  \
		.capacity_offset = offsetof(struct config, list) + offsetof(struct config_rules, capacity),            \
		.size = sizeof(struct config_rule), .line_offset = offsetof(struct config_rule, line),                 \
		.column_offset = CONFIG_NONE, .name_offset = CONFIG_NONE, .read = config_read_rule,                    \
		.clear = config_clear_rule                                                                             \
	}

static const struct config_records exclude_records = RULES(exclude);
static const struct config_records include_records = RULES(include);

/* ---- the reproducer ---- */

static const struct config_field expect_fields[] = {
	ROW("exit", number, config_reproducer, expect_exit, .max = 255),
	ROW("output", regex, config_reproducer, expect_output),
};
static const struct config_table expect_table = TABLE("\"expect\"", expect_fields, .finish = NULL);

/* 0, the worker's own default, is what is not written. */
static const struct config_field limit_fields[] = {
	ROW("build", time, config_reproducer, build_ms, .min = 1, .max = DAYS(365)),
	ROW("run", time, config_reproducer, run_ms, .min = 1, .max = DAYS(365)),
	ROW("memory", size, config_reproducer, memory_bytes, .min = 1, .max = TIB(1024)),
	ROW("processes", number, config_reproducer, processes, .min = 1, .max = 1000000),
	ROW("output", size, config_reproducer, output_bytes, .min = 1, .max = TIB(1024)),
	ROW("file", size, config_reproducer, file_bytes, .min = 1, .max = TIB(1024)),
};
static const struct config_table limit_table = TABLE("\"limits\"", limit_fields, .finish = NULL);

static void finish_reproducer(struct config_reader *reader, const struct config_node *node, void *record)
{
	(void)record;
	config_refer_placeholders(reader, config_node_find(node, "build"));
	config_refer_placeholders(reader, config_node_find(node, "run"));
	config_refer_placeholders(reader, config_node_find(node, "environment"));
}

static const struct config_field reproducer_fields[] = {
	ROW("path", path, config_reproducer, path, .required = true, .help = "the folder of the program to build"),
	ROW("build", commands, config_reproducer, build),
	ROW("run", command, config_reproducer, run, .required = true),
	ROW("environment", map, config_reproducer, environment, .check = config_must_be_variable),
	ROW("runs", number, config_reproducer, runs, .min = 1, .max = 1000, .standard = 1),
	{.key = "expect", .type = &config_type_section, .table = &expect_table},
	{.key = "limits", .type = &config_type_section, .table = &limit_table},
	ROW("sandbox", word, config_reproducer, sandbox, .words = sandboxes, .standard_text = "auto"),
	ROW("network", network, config_reproducer, network_for_build),
};
static const struct config_table reproducer_table =
	TABLE("\"reproducer\"", reproducer_fields, .finish = finish_reproducer);

/* ---- webhooks ---- */

static void refuse_both(struct config_reader *reader, const struct config_node *node, const char *one,
			const char *other)
{
	const struct config_node *second = config_node_find(node, other);
	if (config_node_find(node, one) != NULL && second != NULL)
		config_report(reader, second, "a webhook has either \"%s\" or \"%s\": remove one", one, other);
}

static void finish_webhook(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_webhook *webhook = record;
	refuse_both(reader, node, "secret_file", "secret_env");
	refuse_both(reader, node, "token_file", "token_env");
	for (size_t i = 0; config_node_find(node, "events") == NULL && webhook_events[i] != NULL; i++)
		strlist_add(&webhook->events, webhook_events[i]);
}

static const struct config_field webhook_fields[] = {
	ROW("name", line, config_webhook, name, .required = true),
	ROW("url", line, config_webhook, url, .required = true, .check = config_must_be_web_url),
	ROW("format", webhook_format, config_webhook, format),
	ROW("secret_file", path, config_webhook, secret_file),
	ROW("secret_env", line, config_webhook, secret_env, .check = config_must_be_variable),
	ROW("token_file", path, config_webhook, token_file),
	ROW("token_env", line, config_webhook, token_env, .check = config_must_be_variable),
	ROW("events", words, config_webhook, events, .not_empty = true, .words = webhook_events),
	ROW("give_up_after", time, config_webhook, give_up_after_ms, .min = 1000, .max = DAYS(365),
	    .standard = DAYS(1)),
};
static const struct config_table webhook_table = TABLE("a webhook", webhook_fields, .finish = finish_webhook);
static const struct config_records webhook_records =
	RECORDS(config, webhook, config_webhook, .name_offset = CONFIG_NONE, .unique = "two webhooks are called",
		.table = &webhook_table);

/* ---- the whole ---- */

/* Which crate each axis sets: `crate:`, or the name of a crate axis. */
static const struct config_node *crate_of_axis(const struct config_node *axis)
{
	const struct config_node *crate = config_node_find(axis, "crate");
	const struct config_node *type = config_node_find(axis, "type");
	const char *word = type != NULL ? config_node_text(type) : NULL;
	return crate == NULL && text_equal(word, "crate") ? config_node_find(axis, "name") : crate;
}

static void finish_investigation(struct config_reader *reader, const struct config_node *node, void *record)
{
	(void)record;
	const struct config_node *axes = config_node_find(node, "axes");
	if (axes == NULL || axes->kind != CONFIG_LIST)
		return;
	cleanup_free struct config_name *crates = memory_new(axes->count, sizeof *crates);
	for (size_t i = 0; i < axes->count; i++)
		crates[i].node = crate_of_axis(axes->entries[i].value);
	config_report_repeated(reader, crates, axes->count, "two axes set the crate");
}

static const struct config_field investigation_fields[] = {
	ROW("name", line, config, name, .required = true, .check = config_must_be_investigation),
	ROW("question", text, config, question),
	ROW("report_url", line, config, report_url, .check = config_must_be_web_url),
	ROW("workers", number, config, workers, .max = 256),
	ROW("confirm", number, config, confirm, .max = 100, .standard = 3),
	ROW("retries", number, config, retries, .max = 10, .standard = 2),
	ROW("bad", outcomes, config, bad, .not_empty = true),
	ROW("sources", records, config, sources, .max = SOURCE_LIMIT, .records = &source_records,
	    .check = config_must_be_source_name, .help = "a mapping of names to {url: ...}"),
	ROW("axes", records, config, axes, .required = true, .not_empty = true, .max = AXIS_LIMIT,
	    .records = &axis_records, .help = "a list of at least one {name, type, values}"),
	ROW("overrides", records, config, overrides, .records = &override_records, .help = "a list of overrides"),
	ROW("twins", records, config, twins, .max = TWIN_LIMIT, .records = &twin_records, .help = "a list of twins"),
	{.key = "evidence",
	 .type = &config_type_section,
	 .offset = offsetof(struct config, evidence),
	 .table = &evidence_table,
	 .help = "{gather: auto | never, function: REGEX}"},
	ROW("exclude", records, config, exclude.items, .records = &exclude_records,
	    .help = "a list of mappings, - {axis: pattern}"),
	ROW("include", records, config, include.items, .records = &include_records,
	    .help = "a list of mappings, - {axis: pattern}"),
	{.key = "reproducer",
	 .type = &config_type_section,
	 .offset = offsetof(struct config, reproducer),
	 .required = true,
	 .table = &reproducer_table,
	 .help = "{path: ..., build: [...], run: [...]}"},
	ROW("webhooks", records, config, webhooks, .records = &webhook_records, .help = "a list of webhooks"),
};
const struct config_table config_schema =
	TABLE("an investigation", investigation_fields, .finish = finish_investigation);
