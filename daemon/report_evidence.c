/* Evidence and verdict as lists: where the JSON of report_model.h is read, and the only place that knows its members. */
#include "report_model.h"

#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "markup.h"

/* Reading JSON that may hold anything ----------------------------------------------------------------------------------- */

static long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key)); /* 0 where it is no number */
}

static int flag_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_true(value) ? 1 : json_is_false(value) ? 0 : -1;
}

static const char *keep(struct report_model *model, char *owned)
{
	strlist_add_owned(&model->pool, owned);
	return owned;
}

/* "a, b" of a list of texts; NULL where there is none. */
static const char *joined(struct report_model *model, const json_t *list, const char *separator)
{
	size_t index;
	json_t *item;
	cleanup_str struct str text = {0};
	json_array_foreach (list, index, item)
		if (json_is_string(item))
			str_append_format(&text, "%s%s", text.length > 0 ? separator : "", json_string_value(item));
	if (text.length == 0)
		return NULL;
	return keep(model, str_steal(&text));
}

/* Numbers are shown as addresses are. */
static const char *address_of(struct report_model *model, const json_t *object)
{
	const json_t *value = json_object_get(object, "address");
	return json_is_integer(value) ? keep(model, text_format("0x%llx", (unsigned long long)json_integer_value(value)))
				      : json_string_value(value);
}

static const char *location_of(struct report_model *model, const json_t *location)
{
	const char *file = json_text(location, "file");
	long long line = number_of(location, "line");
	long long column = number_of(location, "column");
	if (file == NULL)
		return NULL;
	if (line <= 0)
		return file;
	return keep(model, column > 0 ? text_format("%s:%lld:%lld", file, line, column) : text_format("%s:%lld", file, line));
}

static const char *function_of(const json_t *object)
{
	const char *name = json_text(object, "name");
	return name != NULL ? name : json_text(object, "function");
}

static void *new_list(const json_t *array, size_t size)
{
	return memory_new(json_array_size(array) + 1, size);
}

enum { VIOLATION_KINDS = 200, UNJUDGED_REASONS = 50 /* more are only counted */ };

/* The audit ------------------------------------------------------------------------------------------------------------ */

static bool same_violation(const struct report_violation *a, const struct report_violation *b)
{
	return text_equal(a->where, b->where) && text_equal(a->crate, b->crate) && text_equal(a->promise, b->promise) &&
	       text_equal(a->kind, b->kind) && text_equal(a->instruction, b->instruction) && text_equal(a->probe, b->probe);
}

static void add_violation(struct report_model *model, const struct report_violation *violation, size_t *capacity)
{
	model->violation_count++;
	for (size_t i = 0; i < model->violation_kinds; i++) {
		if (same_violation(&model->violations[i], violation)) {
			model->violations[i].blocks++;
			return;
		}
	}
	if (model->violation_kinds == VIOLATION_KINDS)
		return;
	model->violations = memory_grow(model->violations, model->violation_kinds, capacity, sizeof *model->violations);
	model->violations[model->violation_kinds++] = *violation;
}

static void add_unjudged(struct report_model *model, const json_t *block, size_t *capacity)
{
	const char *reason = json_text(block, "reason") != NULL ? json_text(block, "reason") : "no reason is known";
	for (size_t i = 0; i < model->unjudged_count; i++) {
		if (strcmp(model->unjudged[i].reason, reason) == 0) {
			model->unjudged[i].blocks++;
			return;
		}
	}
	if (model->unjudged_count == UNJUDGED_REASONS)
		return;
	model->unjudged = memory_grow(model->unjudged, model->unjudged_count, capacity, sizeof *model->unjudged);
	model->unjudged[model->unjudged_count++] =
		(struct report_unjudged){.reason = reason,
					 .function = function_of(block),
					 .where = location_of(model, json_object_get(block, "location")),
					 .blocks = 1};
}

static void read_audit(struct report_model *model, const json_t *audit)
{
	size_t index;
	size_t number;
	size_t capacity = 0;
	size_t unjudged = 0;
	json_t *block;
	json_t *broken;
	const json_t *blocks = json_object_get(audit, "blocks");
	model->audited = json_is_array(blocks);
	model->blocks = (long long)json_array_size(blocks);
	model->judged_blocks = number_of(audit, "judged");
	model->not_judged_blocks = number_of(audit, "not_judged");
	json_array_foreach (blocks, index, block) {
		const json_t *location = json_object_get(block, "location");
		const char *where = json_array_size(json_object_get(block, "violations")) > 0 ? location_of(model, location) : NULL;
		json_array_foreach (json_object_get(block, "violations"), number, broken) {
			const struct report_violation violation = {.where = where,
								   .crate = json_text(location, "crate"),
								   .probe = json_text(block, "probe"),
								   .function = function_of(block),
								   .kind = json_text(broken, "kind"),
								   .promise = json_text(broken, "promise"),
								   .instruction = json_text(broken, "instruction"),
								   .what = json_text(broken, "what"),
								   .text = json_text(broken, "text"),
								   .blocks = 1};
			add_violation(model, &violation, &capacity);
		}
		if (flag_of(block, "judged") == 0)
			add_unjudged(model, block, &unjudged);
	}
}

/* Paths ---------------------------------------------------------------------------------------------------------------- */

static void read_path(struct report_model *model, const json_t *json, struct report_path *path)
{
	size_t index;
	json_t *step;
	const json_t *chain = json_object_get(json, "chain");
	const json_t *block = json_object_get(json, "block");
	*path = (struct report_path){.state = json_text(json, "state"),
				     .function = function_of(json),
				     .where = location_of(model, json_object_get(block, "location")),
				     .probe = json_text(block, "probe"),
				     .destroys = joined(model, json_object_get(json, "destroys"), ", "),
				     .consequence = json_text(json, "consequence"),
				     .taken = json_text(json, "taken"),
				     .text = json_text(json, "text"),
				     .steps = new_list(chain, sizeof *path->steps)};
	json_array_foreach (chain, index, step)
		path->steps[path->count++] = (struct report_step){.role = json_text(step, "role"),
								  .address = address_of(model, step),
								  .text = json_text(step, "text"),
								  .line = number_of(step, "line")};
}

/* The broken ones first, then in the order of the program. */
static void read_paths(struct report_model *model, const json_t *paths)
{
	size_t index;
	json_t *path;
	model->paths = new_list(paths, sizeof *model->paths);
	for (int broken = 1; broken >= 0; broken--)
		json_array_foreach (paths, index, path)
			if (json_is_object(path) && text_equal(json_text(path, "state"), "broken") == (broken == 1))
				read_path(model, path, &model->paths[model->path_count++]);
}

size_t report_model_paths(const struct report_model *model, const char *state)
{
	size_t count = 0;
	for (size_t i = 0; i < model->path_count; i++)
		count += text_equal(model->paths[i].state, state);
	return count;
}

/* Neighbours ----------------------------------------------------------------------------------------------------------- */

static struct report_side read_side(struct report_model *model, const json_t *json)
{
	return (struct report_side){.text = json_text(json, "text"),
				    .address = address_of(model, json),
				    .label = json_text(json, "label"),
				    .source = json_text(json, "source")};
}

/* The step of a broken path that stands at an address of the bad program, or NULL. */
static const struct report_step *find_step(const struct report_model *model, const char *address)
{
	for (size_t i = 0; i < model->path_count && address != NULL; i++) {
		const struct report_path *path = &model->paths[i];
		for (size_t j = 0; j < path->count && text_equal(path->state, "broken"); j++)
			if (text_equal(path->steps[j].address, address))
				return &path->steps[j];
	}
	return NULL;
}

static void read_rows(struct report_model *model, const json_t *rows, struct report_neighbour *neighbour)
{
	size_t index;
	json_t *json;
	neighbour->rows = new_list(rows, sizeof *neighbour->rows);
	json_array_foreach (rows, index, json) {
		struct report_row *row = &neighbour->rows[neighbour->count++];
		*row = (struct report_row){.bad = read_side(model, json_object_get(json, "left")),
					   .good = read_side(model, json_object_get(json, "right")),
					   .change = json_text(json, "difference"),
					   .note = json_text(json, "note"),
					   .deciding = text_equal(json_text(json, "mark"), "deciding")};
		const struct report_step *step = find_step(model, row->bad.address);
		row->role = step != NULL ? step->role : NULL;
		neighbour->has_step = neighbour->has_step || step != NULL;
		row->deciding = row->deciding || step != NULL;
	}
}

static void read_neighbours(struct report_model *model, const json_t *neighbours)
{
	size_t index;
	json_t *json;
	model->neighbours = new_list(neighbours, sizeof *model->neighbours);
	json_array_foreach (neighbours, index, json) {
		const json_t *comparison = json_object_get(json_object_get(json, "data"), "comparison");
		struct report_neighbour *neighbour = &model->neighbours[model->neighbour_count++];
		const char *reason = json_text(json, "reason");
		if (reason == NULL)
			reason = joined(model, json_object_get(json_object_get(json, "data"), "not_done"), "; ");
		*neighbour = (struct report_neighbour){.cell = number_of(json, "cell"),
						       .combination = json_text(json, "combination"),
						       .axis = json_text(json, "axis"),
						       .value = json_text(json, "value"),
						       .bad_value = json_text(json, "bad_value"),
						       .outcome = json_text(json, "outcome"),
						       .reason = reason,
						       .symbol = json_text(comparison, "symbol"),
						       .summary = json_text(comparison, "summary"),
						       .renamed = number_of(comparison, "renamed"),
						       .changed = number_of(comparison, "changed")};
		read_rows(model, json_object_get(comparison, "rows"), neighbour);
	}
}

/* The pass, the flips, the twins ----------------------------------------------------------------------------------------- */

static void read_pass(struct report_model *model, const json_t *passes)
{
	size_t index;
	json_t *flip;
	const json_t *data = json_object_get(passes, "data");
	const json_t *limit = json_object_get(data, "limit");
	const json_t *flips = json_object_get(data, "flips");
	struct report_pass *pass = &model->pass;
	*pass = (struct report_pass){.outcome = json_text(passes, "outcome"),
				     .reason = json_text(passes, "reason"),
				     .pass = json_text(limit, "pass"),
				     .unit = json_text(limit, "unit"),
				     .line = json_text(limit, "line"),
				     .trouble = json_text(limit, "reason"),
				     .number = number_of(limit, "bad"),
				     .passes = number_of(limit, "passes"),
				     .tried = number_of(limit, "tried"),
				     .commands = json_text(data, "commands"),
				     .flips = new_list(flips, sizeof *pass->flips)};
	json_array_foreach (flips, index, flip)
		pass->flips[pass->count++] = (struct report_flip){.name = json_text(flip, "name"),
								  .flags = joined(model, json_object_get(flip, "flags"), " "),
								  .outcome = json_text(flip, "outcome"),
								  .reason = json_text(flip, "reason")};
}

/* "usdt-impl 0.3.5, src/no-linker.rs:94" */
static const char *place_of(struct report_model *model, const json_t *edit)
{
	static const char *const holders[] = {"crate", "source", "reproducer"};
	const char *holder = NULL;
	const char *version = json_text(edit, "version");
	const char *file = json_text(edit, "file");
	struct str text = {0};
	if (file == NULL)
		file = json_text(json_array_get(json_object_get(edit, "edits"), 0), "file");
	for (size_t i = 0; holder == NULL && i < sizeof holders / sizeof holders[0]; i++)
		holder = json_text(edit, holders[i]);
	str_append(&text, holder != NULL ? holder : "the reproducer");
	if (version != NULL)
		str_append_format(&text, " %s", version);
	if (file != NULL)
		str_append_format(&text, ", %s", file);
	if (file != NULL && number_of(edit, "line") > 0)
		str_append_format(&text, ":%lld", number_of(edit, "line"));
	return keep(model, str_steal(&text));
}

/* One edit as a difference, line by line. */
static void add_edit(struct str *text, const json_t *edit)
{
	const char *find = json_text(edit, "find");
	const char *replace = json_text(edit, "replace");
	if (find == NULL)
		return;
	markup_block(text, "-", find);
	markup_block(text, "+", replace);
}

static void read_twins(struct report_model *model, const json_t *twins)
{
	size_t index;
	size_t number;
	json_t *twin;
	json_t *part;
	model->twins = new_list(twins, sizeof *model->twins);
	json_array_foreach (twins, index, twin) {
		const json_t *edit = json_object_get(twin, "edit");
		const json_t *parts = json_object_get(edit, "edits");
		const char *outcome = json_text(twin, "outcome");
		cleanup_str struct str text = {0};
		json_array_foreach (parts, number, part)
			add_edit(&text, part);
		if (json_array_size(parts) == 0)
			add_edit(&text, edit);
		model->twins[model->twin_count++] =
			(struct report_twin){.name = json_text(twin, "name"),
					     .origin = json_text(twin, "origin"),
					     .where = place_of(model, edit),
					     .edits = text.length > 0 ? keep(model, str_steal(&text)) : NULL,
					     .outcome = outcome != NULL && *outcome != '\0' ? outcome : NULL,
					     .reason = json_text(twin, "reason"),
					     .commands = json_text(twin, "commands")};
	}
}

/* Artifacts ------------------------------------------------------------------------------------------------------------ */

/* A path that stays below the folder that it is relative to. */
static bool is_below(const char *path)
{
	if (path == NULL || *path == '\0' || *path == '/')
		return false;
	for (const char *part = path; *part != '\0';) {
		size_t length = strcspn(part, "/");
		if (length == 0 || (length <= 2 && strncmp(part, "..", length) == 0))
			return false;
		part += length + (part[length] == '/');
	}
	return true;
}

static void add_artifact(struct report_model *model, const struct report_artifact *artifact, size_t *capacity)
{
	model->artifacts = memory_grow(model->artifacts, model->artifact_count, capacity, sizeof *model->artifacts);
	model->artifacts[model->artifact_count++] = *artifact;
}

/* Where they lie: evidence/CELL/KIND-OTHER/, and the job's log beside that folder (investigation_evidence.c). */
static void read_artifacts(struct report_model *model, const json_t *row, const char *kind, long long other,
			   const char *combination, size_t *capacity)
{
	size_t index;
	json_t *json;
	long long cell = number_of(model->evidence, "cell");
	if (!json_is_object(row))
		return;
	json_array_foreach (json_object_get(json_object_get(row, "data"), "artifacts"), index, json) {
		const char *path = json_text(json, "path");
		const struct report_artifact artifact = {
			.name = json_text(json, "name"),
			.kind = json_text(json, "kind"),
			.title = json_text(json, "title"),
			.path = is_below(path) ? keep(model, text_format("evidence/%lld/%s-%lld/%s", cell, kind, other, path))
					       : NULL,
			.of = combination};
		add_artifact(model, &artifact, capacity);
	}
	const struct report_artifact log = {.name = keep(model, text_format("%s-%lld.log", kind, other)),
					    .kind = "log",
					    .title = "what the worker did",
					    .path = keep(model, text_format("evidence/%lld/%s-%lld.log", cell, kind, other)),
					    .of = combination};
	add_artifact(model, &log, capacity);
}

static void read_all_artifacts(struct report_model *model)
{
	size_t index;
	json_t *neighbour;
	size_t capacity = 0;
	long long cell = number_of(model->evidence, "cell");
	const char *combination = json_text(model->evidence, "combination");
	read_artifacts(model, json_object_get(model->evidence, "build"), "build", cell, combination, &capacity);
	json_array_foreach (json_object_get(model->evidence, "neighbours"), index, neighbour)
		read_artifacts(model, neighbour, "neighbour", number_of(neighbour, "cell"), json_text(neighbour, "combination"),
			       &capacity);
	read_artifacts(model, json_object_get(model->evidence, "passes"), "passes", cell, combination, &capacity);
}

/* Verdict -------------------------------------------------------------------------------------------------------------- */

static void read_verdict(struct report_model *model)
{
	size_t index;
	json_t *json;
	const json_t *reasons = json_object_get(model->judged, "reasons");
	const json_t *missing = json_object_get(model->judged, "missing");
	const json_t *fixes = json_object_get(model->judged, "fixed_by");
	model->verdict = json_text(model->judged, "verdict");
	model->title = json_text(model->judged, "title");
	model->blames = json_text(model->judged, "blames");
	model->reasons = new_list(reasons, sizeof *model->reasons);
	json_array_foreach (reasons, index, json)
		model->reasons[model->reason_count++] = (struct report_reason){.rule = json_text(json, "rule"),
									       .kind = json_text(json, "kind"),
									       .text = json_text(json, "text"),
									       .holds = flag_of(json, "holds")};
	model->fixes = new_list(fixes, sizeof *model->fixes);
	json_array_foreach (fixes, index, json)
		model->fixes[model->fix_count++] = (struct report_fix){
			.axis = json_text(json, "axis"), .value = json_text(json, "value"), .detail = json_text(json, "detail")};
	model->missing = new_list(missing, sizeof *model->missing);
	json_array_foreach (missing, index, json)
		if (json_text(json, "text") != NULL)
			model->missing[model->missing_count++] =
				(struct report_missing){.text = json_text(json, "text"), .command = json_text(json, "command")};
}

void report_evidence_read(struct report_model *model)
{
	const json_t *build = json_object_get(model->evidence, "build");
	const json_t *data = json_object_get(build, "data");
	const json_t *built = json_object_get(data, "build");
	size_t index;
	json_t *note;
	json_array_foreach (json_object_get(data, "not_done"), index, note)
		if (json_is_string(note))
			strlist_add(&model->not_done, json_string_value(note));
	model->build_outcome = json_text(build, "outcome");
	model->build_reason = json_text(build, "reason");
	model->build_run = json_text(built, "outcome");
	model->build_commands = json_text(built, "commands");
	model->same_text = flag_of(built, "same_text");
	read_audit(model, json_object_get(data, "audit"));
	read_paths(model, json_object_get(data, "paths"));
	read_neighbours(model, json_object_get(model->evidence, "neighbours"));
	read_pass(model, json_object_get(model->evidence, "passes"));
	read_twins(model, json_object_get(model->evidence, "twins"));
	read_all_artifacts(model);
	read_verdict(model);
}

void report_evidence_clear(struct report_model *model)
{
	for (size_t i = 0; i < model->path_count; i++)
		free(model->paths[i].steps);
	for (size_t i = 0; i < model->neighbour_count; i++)
		free(model->neighbours[i].rows);
	free(model->paths);
	free(model->neighbours);
	free(model->violations);
	free(model->unjudged);
	free(model->fixes);
	free(model->pass.flips);
	free(model->twins);
	free(model->artifacts);
	free(model->reasons);
	free(model->missing);
	strlist_clear(&model->not_done);
}
