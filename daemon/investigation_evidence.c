/*
 * Evidence, after the walk: the bad cell is built once more for the worker's eyes; what that finds is tried as twins, while the
 * pass is searched for and good neighbours are looked at in the same way.
 *
 * Each task is one job of a worker.  What was gathered stays with the cell in the store, so a later run does only what is missing.
 */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "json_text.h"
#include "log.h"
#include "os.h"
#include "view.h"

enum {
	MOST_TWINS = 4, /* corrected declarations that are tried: each is a clean build */
	MOST_NEIGHBOURS = 8,
	PASSES_BUDGET_MS = 60000, /* at least; else half as much again as a clean build of the cell took */
};

static struct store *store_of(const struct investigation *investigation)
{
	return investigation->setup.store;
}

const struct cell_context *investigation_context(const struct walker *walker)
{
	return walker->task != NULL ? &walker->task->context : &walker->investigation->context;
}

static struct evidence_task *add_task(struct investigation *investigation, enum evidence_kind kind, size_t cell, long long other_id)
{
	struct evidence_task *task = memory_new(1, sizeof *task);
	task->kind = kind;
	task->cell = cell;
	task->other_id = other_id;
	task->context = investigation->context;
	investigation->tasks = memory_grow(investigation->tasks, investigation->task_count, &investigation->task_capacity,
					   sizeof(struct evidence_task *));
	investigation->tasks[investigation->task_count++] = task;
	return task;
}

static void free_override(struct config_override *override)
{
	for (size_t i = 0; i < override->edit_count; i++) {
		free(override->edits[i].file);
		free(override->edits[i].find);
		free(override->edits[i].replace);
	}
	free(override->edits);
	free(override->name);
	free(override->crate);
	free(override->source);
}

static void free_task(struct evidence_task *task)
{
	if (task == NULL)
		return;
	free(task->config.overrides);
	free_override(&task->correction);
	json_decref(task->edits);
	free(task);
}

void investigation_free_tasks(struct investigation *investigation)
{
	for (size_t i = 0; i < investigation->task_count; i++)
		free_task(investigation->tasks[i]);
	free(investigation->tasks);
}

/* What is to be done ---------------------------------------------------------------------------------------------------- */

static const char *kind_name(enum evidence_kind kind)
{
	return kind == EVIDENCE_BUILD ? "build" : kind == EVIDENCE_PASSES ? "passes" : "neighbour";
}

/* Adds the task unless the store has its answer. */
static int want_gathered(struct investigation *investigation, enum evidence_kind kind, size_t cell, struct error *error)
{
	bool has;
	long long bad_id = investigation->cells[investigation->evidence_cell].id;
	long long other_id = investigation->cells[cell].id;
	if (store_has_evidence(store_of(investigation), bad_id, kind_name(kind), other_id, &has, error) < 0)
		return -1;
	if (!has)
		add_task(investigation, kind, cell, other_id);
	return 0;
}

/* IR, assembly and passes come from rustc; other compilers leave nothing to look at yet. */
static bool can_be_looked_at(const struct investigation *investigation, size_t cell)
{
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	investigation_positions(investigation, cell, positions);
	const struct axis_value *toolchain = cell_toolchain(&investigation->context, positions);
	return toolchain != NULL && toolchain->rustc != NULL;
}

static int plan_bad_cell(struct investigation *investigation, struct error *error)
{
	bool final;
	const struct config *config = investigation->setup.config;
	long cell = plan_first_bad(&investigation->plan, &final);
	investigation->evidence_planned = true;
	if (cell == PLAN_NONE || !final || text_equal(config->evidence.gather, "never") ||
	    !can_be_looked_at(investigation, (size_t)cell))
		return 0;
	if (config->confirm > 0 && !investigation->cells[cell].confirmed)
		return 0;
	investigation->evidence_cell = cell;
	return want_gathered(investigation, EVIDENCE_BUILD, (size_t)cell, error);
}

static char *own(json_t *object, const char *key)
{
	return text_copy(json_text(object, key));
}

/* The worker's correction of a declaration as one override; all of it the caller's. */
static struct config_override to_override(json_t *twin)
{
	struct config_edit *edit = memory_new(1, sizeof *edit);
	*edit = (struct config_edit){.file = own(twin, "file"),
				     .find = own(twin, "find"),
				     .replace = own(twin, "replace"),
				     .min = json_integer_value(json_object_get(twin, "min")),
				     .max = json_integer_value(json_object_get(twin, "max"))};
	return (struct config_override){.name = own(twin, "name"),
					.crate = own(twin, "crate"),
					.source = own(twin, "source"),
					.edits = edit,
					.edit_count = 1};
}

/* The task's own configuration: the investigation's with one edit more. */
static void differ(struct investigation *investigation, struct evidence_task *task, const struct config_override *twin)
{
	const struct config *config = investigation->setup.config;
	task->config = *config;
	task->config.overrides = memory_new(config->override_count + 1, sizeof *task->config.overrides);
	for (size_t i = 0; i < config->override_count; i++)
		task->config.overrides[i] = config->overrides[i];
	if (twin->crate != NULL || twin->source != NULL)
		task->config.overrides[task->config.override_count++] = *twin;
	else
		task->edits = cell_edits_to_json(twin);
	task->context.config = &task->config;
	task->context.reproducer_edits = task->edits;
}

/* What is stored of a twin's edit; a new reference. */
static char *describe(const struct investigation *investigation, const struct config_override *twin, const json_t *source)
{
	json_t *edit = source != NULL ? json_deep_copy(source) : json_object();
	if (twin->crate != NULL)
		json_object_set_new(edit, "crate", json_string(twin->crate));
	else if (twin->source != NULL)
		json_object_set_new(edit, "source", json_string(twin->source));
	else
		json_object_set_new(edit, "reproducer", json_string(path_base(investigation->setup.config->reproducer.path)));
	json_object_set_new(edit, "edits", cell_edits_to_json(twin));
	char *text = json_dumps(edit, JSON_COMPACT);
	json_decref(edit);
	return text;
}

/* `twin` stays in place as long as the task. */
static int save_twin_task(struct investigation *investigation, struct evidence_task *task, const struct config_override *twin,
			  const char *origin, const json_t *source, struct error *error)
{
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	investigation_positions(investigation, task->cell, positions);
	differ(investigation, task, twin);
	cleanup_free char *key = cell_key(&task->context, positions);
	cleanup_free char *edit = describe(investigation, twin, source);
	struct store_cell known;
	struct store_twin row = {.of_cell_id = investigation->cells[task->cell].id,
				 .name = twin->name,
				 .origin = origin,
				 .edit = edit,
				 .cell_key = key};
	if (store_save_twin(store_of(investigation), &row, &known, error) < 0)
		return -1;
	task->other_id = known.id;
	if (known.confirmed && known.outcome != OUTCOME_UNDECIDED && known.outcome != OUTCOME_ERROR)
		task->state = EVIDENCE_DONE;
	return 0;
}

static int plan_audit_twins(struct investigation *investigation, json_t *evidence, struct error *error)
{
	json_t *twins = json_object_get(json_object_get(json_object_get(evidence, "build"), "data"), "twins");
	for (size_t i = 0; i < json_array_size(twins) && i < MOST_TWINS; i++) {
		json_t *twin = json_array_get(twins, i);
		struct evidence_task *task = add_task(investigation, EVIDENCE_TWIN, (size_t)investigation->evidence_cell, 0);
		task->correction = to_override(twin);
		const struct config_edit *edit = task->correction.edits;
		if (task->correction.name == NULL || edit->file == NULL || edit->find == NULL || edit->replace == NULL)
			return error_set(error, "the worker named a twin without name, file, find or replace");
		if (save_twin_task(investigation, task, &task->correction, "audit", twin, error) < 0)
			return -1;
	}
	return 0;
}

static int plan_own_twins(struct investigation *investigation, struct error *error)
{
	const struct config *config = investigation->setup.config;
	for (size_t i = 0; i < config->twin_count; i++) {
		struct evidence_task *task = add_task(investigation, EVIDENCE_TWIN, (size_t)investigation->evidence_cell, 0);
		if (save_twin_task(investigation, task, &config->twins[i], "user", NULL, error) < 0)
			return -1;
	}
	return 0;
}

static int want_neighbour(struct investigation *investigation, long cell, size_t *wanted, struct error *error)
{
	if (cell == PLAN_NONE || cell == investigation->evidence_cell || *wanted >= MOST_NEIGHBOURS ||
	    !can_be_looked_at(investigation, (size_t)cell))
		return 0;
	for (size_t i = 0; i < investigation->task_count; i++)
		if (investigation->tasks[i]->kind == EVIDENCE_NEIGHBOUR && investigation->tasks[i]->cell == (size_t)cell)
			return 0;
	++*wanted;
	return want_gathered(investigation, EVIDENCE_NEIGHBOUR, (size_t)cell, error);
}

/* Both sides of a boundary on an axis of code: where an accused promise is kept on one side and not on the other, that axis answers
 * for it. */
static int plan_boundaries(struct investigation *investigation, size_t *wanted, struct error *error)
{
	struct view_boundaries boundaries = {0};
	int result =
		view_boundaries(store_connection(store_of(investigation)), investigation->setup.config->name, &boundaries, error);
	for (size_t i = 0; result == 0 && i < boundaries.count; i++) {
		const struct view_boundary *boundary = &boundaries.items[i];
		for (size_t axis = 0; axis < investigation->axes.count; axis++) {
			const struct config_axis *config = investigation->axes.items[axis].config;
			if (strcmp(config->name, boundary->axis) != 0 || config->type == AXIS_TOOLCHAIN)
				continue;
			result = want_neighbour(investigation, (long)boundary->from_walk_index, wanted, error);
			if (result == 0)
				result = want_neighbour(investigation, (long)boundary->to_walk_index, wanted, error);
		}
	}
	view_boundaries_clear(&boundaries);
	return result;
}

static int plan_neighbours(struct investigation *investigation, struct error *error)
{
	size_t wanted = 0;
	for (size_t axis = 0; axis < investigation->axes.count; axis++)
		if (want_neighbour(investigation,
				   plan_nearest_good(&investigation->plan, (size_t)investigation->evidence_cell, axis), &wanted,
				   error) < 0)
			return -1;
	return plan_boundaries(investigation, &wanted, error);
}

static int plan_what_follows(struct investigation *investigation, struct error *error)
{
	json_t *evidence;
	investigation->evidence_spread = true;
	if (investigation->evidence_cell == PLAN_NONE)
		return 0;
	if (view_evidence(store_connection(store_of(investigation)), investigation->setup.config->name, &evidence, error) < 0)
		return -1;
	int result = plan_audit_twins(investigation, evidence, error);
	if (result == 0)
		result = plan_own_twins(investigation, error);
	if (result == 0)
		result = want_gathered(investigation, EVIDENCE_PASSES, (size_t)investigation->evidence_cell, error);
	if (result == 0)
		result = plan_neighbours(investigation, error);
	json_decref(evidence);
	return result;
}

static bool is_under_way(const struct investigation *investigation)
{
	for (size_t i = 0; i < investigation->task_count; i++)
		if (investigation->tasks[i]->state != EVIDENCE_DONE)
			return true;
	return false;
}

/* What is confirmed now may change which cell is the first bad one, and whether that is confirmed. */
static bool is_confirming(const struct investigation *investigation)
{
	for (size_t i = 0; i < investigation->walker_count; i++)
		if (investigation->walkers[i].busy && investigation->walkers[i].task == NULL)
			return true;
	return false;
}

static bool plan_next_stage(struct investigation *investigation)
{
	cleanup_error struct error error = {0};
	int result = 0;
	if (!investigation->evidence_planned && is_confirming(investigation))
		return false;
	if (!investigation->evidence_planned)
		result = plan_bad_cell(investigation, &error);
	if (result == 0 && !investigation->evidence_spread && !is_under_way(investigation))
		result = plan_what_follows(investigation, &error);
	if (result < 0)
		investigation_fail(investigation, "planning what evidence to gather", &error);
	return result == 0;
}

bool investigation_take_task(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	if (!plan_next_stage(investigation))
		return false;
	for (size_t i = 0; i < investigation->task_count; i++) {
		struct evidence_task *task = investigation->tasks[i];
		if (task->state != EVIDENCE_OPEN)
			continue;
		task->state = EVIDENCE_RUNNING;
		walker->task = task;
		walker->cell = task->cell;
		walker->confirms = walker->keeps = task->kind == EVIDENCE_TWIN;
		if (investigation->group_axis != PLAN_NONE)
			walker->group = (long)plan_position(&investigation->plan, task->cell, (size_t)investigation->group_axis);
		return true;
	}
	return false;
}

/* What came of it ------------------------------------------------------------------------------------------------------- */

static const char *what_it_is(const struct evidence_task *task)
{
	static const char *const names[] = {[EVIDENCE_BUILD] = "evidence of the bad cell",
					    [EVIDENCE_TWIN] = "twin",
					    [EVIDENCE_PASSES] = "the pass, and single switches",
					    [EVIDENCE_NEIGHBOUR] = "evidence of a good neighbour"};
	return names[task->kind];
}

static void tell(const struct walker *walker, const struct result *result)
{
	const struct investigation *investigation = walker->investigation;
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	investigation_positions(investigation, walker->cell, positions);
	cleanup_free char *combination = axes_combination(&investigation->axes, positions);
	log_info("%s: %s: %s  (build %.1f s)%s%s", what_it_is(walker->task), combination,
		 result->outcome == OUTCOME_PASS && walker->task->kind != EVIDENCE_TWIN ? "done" : outcome_name(result->outcome),
		 (double)result->build_ms / 1000, result->reason != NULL ? "  " : "", result->reason != NULL ? result->reason : "");
}

static int save_gathered(const struct walker *walker, const struct result *result, struct error *error)
{
	const struct investigation *investigation = walker->investigation;
	cleanup_free char *data = result->data != NULL ? json_dumps(result->data, JSON_COMPACT) : text_copy("null");
	bool usable = result->outcome == OUTCOME_PASS || result->outcome == OUTCOME_SKIP;
	const struct store_evidence row = {.cell_id = investigation->cells[investigation->evidence_cell].id,
					   .kind = kind_name(walker->task->kind),
					   .other_id = walker->task->other_id,
					   .outcome = usable ? result->outcome : OUTCOME_ERROR,
					   .reason = result->reason,
					   .data = data};
	return store_save_evidence(store_of(investigation), &row, error);
}

static int save_twin(const struct walker *walker, const struct result *result, struct error *error)
{
	const struct store_decision decision = {
		.outcome = result->outcome, .reason = result->reason, .confirmed = true, .keeps = true};
	return store_finish_attempt(store_of(walker->investigation), walker->attempt_id, result, &decision, error);
}

void investigation_record_task(struct walker *walker, const struct result *result)
{
	struct investigation *investigation = walker->investigation;
	struct evidence_task *task = walker->task;
	cleanup_error struct error error = {0};
	int saved = task->kind == EVIDENCE_TWIN ? save_twin(walker, result, &error) : save_gathered(walker, result, &error);
	tell(walker, result);
	task->state = result->outcome == OUTCOME_ERROR && task->failures++ < investigation->setup.config->retries ? EVIDENCE_OPEN
														  : EVIDENCE_DONE;
	investigation_leave(walker);
	if (saved < 0)
		investigation_fail(investigation, "recording evidence", &error);
}

/* A twin is a cell and has attempts; the rest has a log only. */
bool investigation_open_task(struct walker *walker)
{
	const struct investigation *investigation = walker->investigation;
	if (walker->task->kind == EVIDENCE_TWIN)
		return investigation_start_attempt(walker, walker->task->other_id);
	walker->log = text_format("evidence/%lld/%s-%lld.log", investigation->cells[investigation->evidence_cell].id,
				  kind_name(walker->task->kind), walker->task->other_id);
	return true;
}

void investigation_conclude_task(struct walker *walker, enum outcome outcome, const char *reason)
{
	cleanup_result struct result result = {.outcome = outcome, .reason = text_copy(reason), .exit_status = -1};
	walker->task->failures = walker->investigation->setup.config->retries; /* trying again was done while preparing */
	if (investigation_open_task(walker))
		investigation_record_task(walker, &result);
}

/* The job --------------------------------------------------------------------------------------------------------------- */

static char *evidence_folder(const struct investigation *investigation, const char *kind, long long other_id)
{
	return text_format("%s/evidence/%lld/%s-%lld", investigation->setup.state_folder,
			   investigation->cells[investigation->evidence_cell].id, kind, other_id);
}

static long long passes_budget(struct investigation *investigation)
{
	long long clean = 0;
	cleanup_error struct error error = {0};
	if (view_clean_build_ms(store_connection(store_of(investigation)), investigation->cells[investigation->evidence_cell].id,
				&clean, &error) < 0)
		log_warning("how long a clean build takes is not known: %s", error_text(&error));
	clean += clean / 2;
	return clean > PASSES_BUDGET_MS ? clean : PASSES_BUDGET_MS;
}

/* As a regular expression: a compile in another folder hashes otherwise, so a legacy symbol goes without its hash. */
static char *symbol_pattern(const char *symbol)
{
	static const size_t hash_length = sizeof "17h0123456789abcdefE" - 1;
	struct str pattern = {0};
	size_t length = strlen(symbol);
	if (text_starts_with(symbol, "_ZN") && length > hash_length && text_starts_with(symbol + length - hash_length, "17h"))
		length -= hash_length;
	str_append(&pattern, "^");
	for (size_t i = 0; i < length; i++)
		str_append_format(&pattern, strchr("$.[]()*+?{}|^\\", symbol[i]) != NULL ? "\\%c" : "%c", symbol[i]);
	return str_steal(&pattern);
}

/* The function that the bad cell's own evidence points at, which the search for the pass then tries first; NULL: none. */
static char *accused_function(struct investigation *investigation)
{
	json_t *evidence;
	cleanup_error struct error error = {0};
	if (view_evidence(store_connection(store_of(investigation)), investigation->setup.config->name, &evidence, &error) < 0)
		return NULL;
	const json_t *build = json_object_get(json_object_get(evidence, "build"), "data");
	const char *symbol = json_string_value(json_object_get(json_array_get(json_object_get(build, "functions"), 0), "symbol"));
	char *pattern = symbol != NULL ? symbol_pattern(symbol) : NULL;
	json_decref(evidence);
	return pattern;
}

void investigation_fill_task(const struct walker *walker, struct job *job)
{
	struct investigation *investigation = walker->investigation;
	const struct evidence_task *task = walker->task;
	const char *state = investigation->setup.state_folder;
	if (task->kind == EVIDENCE_TWIN)
		return;
	free(job->kind);
	job->kind = text_copy(task->kind == EVIDENCE_PASSES ? "passes" : "evidence");
	job->evidence = evidence_folder(investigation, kind_name(task->kind), task->other_id);
	job->vendor = path_join(state, "vendor");
	job->edited = path_join(state, "edited");
	job->tools = path_join(state, "tools");
	job->function = text_copy(investigation->setup.config->evidence.function);
	job->bad_outcome = text_copy(outcome_name(investigation->cells[investigation->evidence_cell].outcome));
	if (task->kind == EVIDENCE_NEIGHBOUR)
		job->compare = evidence_folder(investigation, "build", investigation->cells[investigation->evidence_cell].id);
	if (task->kind == EVIDENCE_PASSES) {
		job->budget_ms = passes_budget(investigation);
		if (job->function == NULL)
			job->function = accused_function(investigation);
	}
}
