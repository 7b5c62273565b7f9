/* See cell_job.h. */
#include "cell_job.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "fs.h"
#include "os.h"

static const struct axis_value *value_at(const struct cell_context *context, const size_t *positions, size_t axis)
{
	return &context->axes->items[axis].values[positions[axis]];
}

const struct axis_value *cell_toolchain(const struct cell_context *context, const size_t *positions)
{
	for (size_t i = 0; i < context->axes->count; i++)
		if (context->axes->items[i].config->type == AXIS_TOOLCHAIN)
			return value_at(context, positions, i);
	return context->default_toolchain;
}

/* The crate that a value of this axis decides, or NULL. */
static const char *decided_crate(const struct axis *axis)
{
	return axis->config->type == AXIS_CRATE || axis->config->type == AXIS_COMMIT ? axis->config->crate : NULL;
}

static bool override_applies(const struct config_override *override)
{
	return override->os.count == 0 || strlist_contains(&override->os, os_name());
}

/* Edits of a checkout are made while preparing, even where the reproducer is no cargo crate. */
static bool edits_checkout(const struct config *config, const char *source)
{
	for (size_t i = 0; i < config->override_count; i++)
		if (override_applies(&config->overrides[i]) && text_equal(config->overrides[i].source, source))
			return true;
	return false;
}

static bool is_plain_checkout(const struct axis *axis, const struct axis_value *value)
{
	return value->oid != NULL && decided_crate(axis) == NULL;
}

static bool needs_preparation(const struct cell_context *context, const size_t *positions)
{
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct axis_value *value = value_at(context, positions, i);
		if (is_plain_checkout(&context->axes->items[i], value) && edits_checkout(context->config, value->source))
			return true;
	}
	return context->has_manifest;
}

static void digest_list(struct digest *digest, const char *name, const struct strlist *list)
{
	digest_add_number(digest, name, (long long)list->count);
	for (size_t i = 0; i < list->count; i++)
		digest_add(digest, name, list->items[i]);
}

static void digest_map(struct digest *digest, const char *name, const struct strmap *map)
{
	digest_add_number(digest, name, (long long)map->count);
	for (size_t i = 0; i < map->count; i++)
		digest_add(digest, map->entries[i].key, map->entries[i].value);
}

static void digest_overrides(struct digest *digest, const struct config *config)
{
	for (size_t i = 0; i < config->override_count; i++) {
		const struct config_override *override = &config->overrides[i];
		if (!override_applies(override))
			continue;
		digest_add(digest, "override of crate", override->crate);
		digest_add(digest, "override of source", override->source);
		for (size_t j = 0; j < override->edit_count; j++) {
			digest_add(digest, "file", override->edits[j].file);
			digest_add(digest, "find", override->edits[j].find);
			digest_add(digest, "replace", override->edits[j].replace);
			digest_add_number(digest, "min", override->edits[j].min);
			digest_add_number(digest, "max", override->edits[j].max);
		}
	}
}

char *cell_preparation_key(const struct cell_context *context, const size_t *positions)
{
	if (!needs_preparation(context, positions))
		return NULL;
	struct digest digest;
	digest_start(&digest);
	digest_add(&digest, "preparation", "1");
	digest_add(&digest, "os", os_name());
	digest_add(&digest, "reproducer", context->reproducer_hash);
	digest_overrides(&digest, context->config);
	for (size_t i = 0; i < context->axes->count; i++) {
		const char *crate = decided_crate(&context->axes->items[i]);
		const struct axis_value *value = value_at(context, positions, i);
		if (crate == NULL && !(value->oid != NULL && edits_checkout(context->config, value->source)))
			continue;
		digest_add(&digest, "crate", crate);
		digest_add(&digest, "source", value->source); /* checkouts and their overrides go by its name */
		digest_add(&digest, "identity", value->identity);
	}
	return digest_finish(&digest);
}

size_t cell_commits(const struct cell_context *context, const size_t *positions, const struct axis_value **values)
{
	size_t count = 0;
	for (size_t i = 0; i < context->axes->count; i++)
		if (value_at(context, positions, i)->oid != NULL)
			values[count++] = value_at(context, positions, i);
	return count;
}

char *cell_tree_folder(const struct cell_context *context, const char *oid)
{
	return text_format("%s/trees/%s", context->state_folder, oid);
}

char *cell_prepared_folder(const struct cell_context *context, const char *preparation_key)
{
	return text_format("%s/prepared/%.20s", context->state_folder, preparation_key);
}

static json_t *crates_to_json(const struct cell_context *context, const size_t *positions)
{
	json_t *crates = json_array();
	for (size_t i = 0; i < context->axes->count; i++) {
		const char *crate = decided_crate(&context->axes->items[i]);
		const struct axis_value *value = value_at(context, positions, i);
		if (crate == NULL)
			continue;
		json_t *entry = json_object();
		json_object_set_new(entry, "name", json_string(crate));
		if (value->oid != NULL) {
			cleanup_free char *tree = cell_tree_folder(context, value->oid);
			json_object_set_new(entry, "tree", json_string(tree));
			json_object_set_new(entry, "oid", json_string(value->oid));
			json_object_set_new(entry, "source", json_string(value->source));
		} else {
			json_object_set_new(entry, "release", json_string(value->label));
		}
		json_array_append_new(crates, entry);
	}
	return crates;
}

json_t *cell_edits_to_json(const struct config_override *override)
{
	json_t *edits = json_array();
	for (size_t i = 0; i < override->edit_count; i++) {
		const struct config_edit *edit = &override->edits[i];
		json_t *entry = json_object();
		json_object_set_new(entry, "file", json_string(edit->file));
		json_object_set_new(entry, "find", json_string(edit->find));
		json_object_set_new(entry, "replace", json_string(edit->replace));
		json_object_set_new(entry, "min", json_integer(edit->min));
		json_object_set_new(entry, "max", json_integer(edit->max));
		json_array_append_new(edits, entry);
	}
	return edits;
}

static json_t *overrides_to_json(const struct config *config)
{
	json_t *overrides = json_array();
	for (size_t i = 0; i < config->override_count; i++) {
		const struct config_override *override = &config->overrides[i];
		if (!override_applies(override))
			continue;
		json_t *entry = json_object();
		json_object_set_new(entry, "name", json_string(override->name));
		if (override->crate != NULL)
			json_object_set_new(entry, "crate", json_string(override->crate));
		else
			json_object_set_new(entry, "checkout", json_string(override->source));
		json_object_set_new(entry, "edits", cell_edits_to_json(override));
		json_array_append_new(overrides, entry);
	}
	return overrides;
}

void cell_fill_preparation(const struct cell_context *context, const size_t *positions, const char *preparation_key,
			   const char *lock, struct job *job)
{
	job->kind = text_copy("prepare");
	job->id = text_format("preparation %.12s", preparation_key);
	job->reproducer = text_copy(context->config->reproducer.path);
	job->prepared = cell_prepared_folder(context, preparation_key);
	job->cargo = text_copy(context->fetch_cargo);
	job->vendor = path_join(context->state_folder, "vendor");
	job->edited = path_join(context->state_folder, "edited");
	job->lock = text_copy(lock);
	job->crates = crates_to_json(context, positions);
	job->overrides = overrides_to_json(context->config);
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct axis_value *value = value_at(context, positions, i);
		if (!is_plain_checkout(&context->axes->items[i], value) || !edits_checkout(context->config, value->source))
			continue;
		cleanup_free char *tree = cell_tree_folder(context, value->oid);
		strmap_set(&job->checkouts, value->source, tree);
	}
}

static bool list_mentions(const struct strlist *words, const char *text)
{
	for (size_t i = 0; i < words->count; i++)
		if (strstr(words->items[i], text) != NULL)
			return true;
	return false;
}

static bool map_mentions(const struct strmap *map, const char *text)
{
	for (size_t i = 0; i < map->count; i++)
		if (strstr(map->entries[i].value, text) != NULL)
			return true;
	return false;
}

/* Does a command or the environment use the placeholder? */
static bool uses_placeholder(const struct config *config, const struct job *job, const char *name)
{
	cleanup_free char *text = text_format("{%s}", name);
	bool used = list_mentions(&config->reproducer.run, text) || map_mentions(&job->environment, text);
	for (size_t i = 0; i < config->reproducer.build_count; i++)
		used = used || list_mentions(&config->reproducer.build[i], text);
	return used;
}

/*
 * A toolchain's label depends on what else is installed ("1.85.0" or "1.85.0 (/usr/bin)"), and its identity is in the key anyway:
 * the label counts only where a command uses it.
 */
static void drop_unused_toolchain_labels(const struct cell_context *context, struct job *job)
{
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct config_axis *axis = context->axes->items[i].config;
		if (axis->type == AXIS_TOOLCHAIN && !uses_placeholder(context->config, job, axis->name))
			strmap_remove(&job->placeholders, axis->name);
	}
}

/* What every value adds: {axis} is its label; features, flags, environment and placeholders of choices add up in axis order. */
static void gather_values(const struct cell_context *context, const size_t *positions, struct job *job)
{
	cleanup_strlist struct strlist features = {0};
	cleanup_strlist struct strlist rustflags = {0};
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct axis *axis = &context->axes->items[i];
		const struct axis_value *value = value_at(context, positions, i);
		strmap_set(&job->placeholders, axis->config->name, value->label);
		if (axis->config->type == AXIS_PROFILE) {
			bool debug = strcmp(value->label, "dev") == 0 || strcmp(value->label, "test") == 0;
			bool release = strcmp(value->label, "bench") == 0;
			strmap_set(&job->placeholders, "profile_dir", debug ? "debug" : release ? "release" : value->label);
		}
		if (value->config == NULL)
			continue;
		strlist_add_all(&features, &value->config->features);
		strlist_add_all(&rustflags, &value->config->rustflags);
		strmap_set_all(&job->environment, &value->config->environment);
		strmap_set_all(&job->placeholders, &value->config->placeholders);
	}
	cleanup_free char *joined_features = strlist_join(&features, ",");
	cleanup_free char *joined_flags = strlist_join(&rustflags, " ");
	strmap_set(&job->placeholders, "features", joined_features);
	strmap_set(&job->placeholders, "rustflags", joined_flags);
	if (rustflags.count > 0)
		strmap_set(&job->environment, "RUSTFLAGS", joined_flags);
}

static json_t *build_to_json(const struct config_reproducer *reproducer)
{
	json_t *commands = json_array();
	for (size_t i = 0; i < reproducer->build_count; i++) {
		json_t *words = json_array();
		for (size_t j = 0; j < reproducer->build[i].count; j++)
			json_array_append_new(words, json_string(reproducer->build[i].items[j]));
		json_array_append_new(commands, words);
	}
	return commands;
}

/* Everything of the job that is no path of this machine: this part decides the outcome, and is what the key covers. */
static void fill_question(const struct cell_context *context, const size_t *positions, struct job *job)
{
	const struct config_reproducer *reproducer = &context->config->reproducer;
	job->build = build_to_json(reproducer);
	strlist_add_all(&job->run, &reproducer->run);
	strmap_set_all(&job->environment, &reproducer->environment);
	gather_values(context, positions, job);
	drop_unused_toolchain_labels(context, job);
	job->runs = reproducer->runs;
	job->expect_exit = reproducer->expect_exit;
	job->expect_output = text_copy(reproducer->expect_output);
	job->build_ms = reproducer->build_ms;
	job->run_ms = reproducer->run_ms;
	job->memory_bytes = reproducer->memory_bytes;
	job->processes = reproducer->processes;
	job->output_bytes = reproducer->output_bytes;
	job->file_bytes = reproducer->file_bytes;
	job->sandbox = text_copy(reproducer->sandbox);
	job->network_for_build = reproducer->network_for_build;
}

static void digest_question(struct digest *digest, const struct job *job)
{
	cleanup_free char *build = json_dumps(job->build, JSON_COMPACT);
	digest_add(digest, "build", build);
	digest_list(digest, "run", &job->run);
	digest_map(digest, "environment", &job->environment);
	digest_map(digest, "placeholders", &job->placeholders);
	digest_add_number(digest, "runs", job->runs);
	digest_add_number(digest, "expect exit", job->expect_exit);
	digest_add(digest, "expect output", job->expect_output);
	digest_add_number(digest, "build ms", job->build_ms);
	digest_add_number(digest, "run ms", job->run_ms);
	digest_add_number(digest, "memory", job->memory_bytes);
	digest_add_number(digest, "processes", job->processes);
	digest_add_number(digest, "output", job->output_bytes);
	digest_add_number(digest, "file", job->file_bytes);
	digest_add(digest, "sandbox", job->sandbox);
	digest_add_number(digest, "network", job->network_for_build);
}

char *cell_key(const struct cell_context *context, const size_t *positions)
{
	cleanup_job struct job job = {0};
	cleanup_free char *preparation = cell_preparation_key(context, positions);
	const struct axis_value *toolchain = cell_toolchain(context, positions);
	fill_question(context, positions, &job);
	struct digest digest;
	digest_start(&digest);
	digest_add(&digest, "cell", "1");
	digest_add(&digest, "os", os_name());
	digest_add(&digest, "reproducer", context->reproducer_hash);
	digest_add(&digest, "preparation", preparation);
	digest_add(&digest, "toolchain", toolchain != NULL ? toolchain->identity : NULL);
	digest_question(&digest, &job);
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct axis_value *value = value_at(context, positions, i);
		digest_add(&digest, "axis", context->axes->items[i].config->name);
		digest_add(&digest, "checkout", is_plain_checkout(&context->axes->items[i], value) ? value->source : NULL);
		digest_add(&digest, "identity", value->identity);
	}
	digest_overrides(&digest, context->config);
	if (context->reproducer_edits != NULL) {
		cleanup_free char *edits = json_dumps(context->reproducer_edits, JSON_COMPACT);
		digest_add(&digest, "edits of the reproducer", edits);
	}
	return digest_finish(&digest);
}

static void add_toolchain(const struct axis_value *toolchain, struct job *job)
{
	strlist_add_all(&job->path, &toolchain->path);
	strlist_add_all(&job->read_only, &toolchain->read_only);
	if (toolchain->rustc != NULL)
		strmap_set(&job->placeholders, "rustc", toolchain->rustc);
	if (toolchain->compiler != NULL)
		strmap_set(&job->placeholders, "compiler", toolchain->compiler);
	if (toolchain->cargo != NULL)
		strmap_set(&job->placeholders, "cargo", toolchain->cargo);
}

static void add_checkouts(const struct cell_context *context, const size_t *positions, struct job *job)
{
	for (size_t i = 0; i < context->axes->count; i++) {
		const struct axis_value *value = value_at(context, positions, i);
		if (!is_plain_checkout(&context->axes->items[i], value))
			continue;
		cleanup_free char *tree = job->prepared != NULL && edits_checkout(context->config, value->source)
						  ? text_format("%s/checkouts/%s", job->prepared, value->source)
						  : cell_tree_folder(context, value->oid);
		strmap_set(&job->checkouts, value->source, tree);
	}
}

void cell_fill_job(const struct cell_context *context, const size_t *positions, const char *folder, bool clean,
		   struct job *job)
{
	const struct axis_value *toolchain = cell_toolchain(context, positions);
	fill_question(context, positions, job);
	job->kind = text_copy("cell");
	job->id = axes_combination(context->axes, positions);
	job->reproducer = text_copy(context->config->reproducer.path);
	job->workspace = path_join(folder, "work");
	job->target = path_join(folder, "target");
	job->clean = clean;
	job->edits = json_incref(context->reproducer_edits);
	if (toolchain != NULL)
		add_toolchain(toolchain, job);
	cleanup_free char *key = cell_preparation_key(context, positions);
	if (key != NULL)
		job->prepared = cell_prepared_folder(context, key);
	add_checkouts(context, positions, job);
	if (key == NULL)
		return;
	cleanup_free char *edited = path_join(context->state_folder, "edited");
	cleanup_free char *vendor = path_join(context->state_folder, "vendor");
	strlist_add(&job->read_only, edited);
	strlist_add(&job->read_only, vendor);
}
