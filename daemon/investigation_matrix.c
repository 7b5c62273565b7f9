/* From resolved axes to the plan, and to its rows in the store. */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "os.h"

static int check_axes(const struct investigation *investigation, struct error *error)
{
	for (size_t i = 0; i < investigation->axes.count; i++) {
		const struct axis *axis = &investigation->axes.items[i];
		if (axis->count == 0)
			return error_set(error, "%s:%d: the axis %s has no value: nothing that it names was found",
					 investigation->setup.config->file, axis->config->line, axis->config->name);
	}
	return 0;
}

int investigation_make_plan(struct investigation *investigation, struct error *error)
{
	const struct axes *axes = &investigation->axes;
	cleanup_free size_t *sizes = memory_new(axes->count, sizeof *sizes);
	cleanup_free size_t *positions = memory_new(axes->count, sizeof *positions);
	if (check_axes(investigation, error) < 0)
		return -1;
	for (size_t i = 0; i < axes->count; i++) {
		sizes[i] = axes->items[i].count;
		if (axes->items[i].config->type == AXIS_TOOLCHAIN)
			investigation->group_axis = (int)i;
	}
	if (!plan_start(&investigation->plan, sizes, axes->count))
		return error_set(error, "the matrix is too large: cut it with fewer values");
	for (size_t cell = 0; cell < investigation->plan.cell_count; cell++) {
		investigation_positions(investigation, cell, positions);
		if (!axes_include(axes, investigation->setup.config, positions))
			plan_set(&investigation->plan, cell, PLAN_EXCLUDED);
	}
	if (plan_count(&investigation->plan).cells == 0)
		return error_set(error, "every combination is excluded: see exclude and include in %s",
				 investigation->setup.config->file);
	investigation->context.fetch_cargo = investigation->fetch_cargo;
	return 0;
}

enum plan_state investigation_plan_state(const struct investigation *investigation, enum outcome outcome)
{
	if (outcome == OUTCOME_PASS)
		return PLAN_GOOD;
	if (outcome == OUTCOME_UNDECIDED || outcome == OUTCOME_ERROR)
		return PLAN_OPEN;
	return investigation->setup.config->bad[outcome] ? PLAN_BAD : PLAN_NO_EVIDENCE;
}

static void gather_notes(struct investigation *investigation)
{
	const struct config *config = investigation->setup.config;
	cleanup_strlist struct strlist unmatched = {0};
	for (size_t i = 0; i < config->override_count; i++) {
		const struct config_override *override = &config->overrides[i];
		if (override->os.count > 0 && !strlist_contains(&override->os, os_name()))
			continue;
		str_append_format(&investigation->notes, "Override in force: %s (%zu edit%s of %s)%s%s\n", override->name,
				  override->edit_count, override->edit_count == 1 ? "" : "s",
				  override->crate != NULL ? override->crate : override->source,
				  override->reason != NULL ? ": " : "", override->reason != NULL ? override->reason : "");
	}
	for (size_t i = 0; i < config->source_count; i++)
		if (investigation->sources[i].failed)
			str_append_format(
				&investigation->notes,
				"Source %s could not be fetched; what an earlier run fetched of it was used, if anything: %s\n",
				config->sources[i].name, error_text(&investigation->sources[i].error));
	if (investigation->context.default_toolchain != NULL)
		str_append_format(&investigation->notes, "Toolchain of all cells, the newest found: %s\n",
				  investigation->context.default_toolchain->label);
	axes_unmatched_patterns(&investigation->axes, config, &unmatched);
	for (size_t i = 0; i < unmatched.count; i++) {
		log_warning("%s", unmatched.items[i]);
		str_append_format(&investigation->notes, "%s\n", unmatched.items[i]);
	}
}

static int save_axes(struct investigation *investigation, struct error *error)
{
	struct store *store = investigation->setup.store;
	for (size_t i = 0; i < investigation->axes.count; i++) {
		const struct axis *axis = &investigation->axes.items[i];
		long long axis_id;
		if (store_save_axis(store, investigation->id, i, axis->config->name, axis_type_name(axis->config->type),
				    axis->config->ordered, axis->count, investigation->plan.strides[i], &axis_id, error) < 0)
			return -1;
		for (size_t j = 0; j < axis->count; j++) {
			const struct axis_value *value = &axis->values[j];
			if (store_save_value(store, axis_id, j, value->label, value->identity, value->detail, value->skip_reason,
					     error) < 0)
				return -1;
		}
	}
	return 0;
}

/* Why a combination cannot be tried: the first of its values that cannot; NULL where it can. */
static char *skip_reason(const struct investigation *investigation, const size_t *positions)
{
	for (size_t i = 0; i < investigation->axes.count; i++) {
		const struct axis *axis = &investigation->axes.items[i];
		const struct axis_value *value = &axis->values[positions[i]];
		if (value->skip_reason != NULL)
			return text_format("%s %s: %s", axis->config->name, value->label, value->skip_reason);
	}
	return NULL;
}

static int save_place(struct investigation *investigation, size_t cell, const size_t *positions, struct error *error)
{
	struct store *store = investigation->setup.store;
	struct cell_record *record = &investigation->cells[cell];
	cleanup_free char *combination = axes_combination(&investigation->axes, positions);
	cleanup_free char *reason = skip_reason(investigation, positions);
	if (reason != NULL) {
		plan_set(&investigation->plan, cell, PLAN_NO_EVIDENCE);
		return store_save_skipped_place(store, investigation->id, cell, combination, reason, error);
	}
	cleanup_free char *key = cell_key(&investigation->context, positions);
	struct store_cell known;
	if (store_save_place(store, investigation->id, cell, combination, key, &known, error) < 0)
		return -1;
	record->id = known.id;
	record->outcome = known.outcome;
	record->confirmed = known.confirmed;
	record->repeatable = known.repeatable;
	plan_set(&investigation->plan, cell, investigation_plan_state(investigation, known.outcome));
	return 0;
}

static int save_all(struct investigation *investigation, struct error *error)
{
	const struct config *config = investigation->setup.config;
	struct store_investigation row = {.name = config->name,
					  .question = config->question,
					  .file = config->file,
					  .text = config->text,
					  .notes = str_text(&investigation->notes),
					  .bad = config->bad};
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	if (store_save_investigation(investigation->setup.store, &row, &investigation->id, error) < 0 ||
	    save_axes(investigation, error) < 0)
		return -1;
	for (size_t cell = 0; cell < investigation->plan.cell_count; cell++) {
		if (plan_get(&investigation->plan, cell) == PLAN_EXCLUDED)
			continue;
		investigation_positions(investigation, cell, positions);
		if (save_place(investigation, cell, positions, error) < 0)
			return -1;
	}
	return 0;
}

int investigation_save_matrix(struct investigation *investigation, struct error *error)
{
	struct store *store = investigation->setup.store;
	investigation->cells = memory_new(investigation->plan.cell_count, sizeof *investigation->cells);
	gather_notes(investigation);
	if (store_begin(store, error) < 0)
		return -1;
	if (save_all(investigation, error) < 0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, error);
}

static void print_axis(const struct axis *axis, struct str *text)
{
	str_append_format(text, "  %s (%s, %s, %zu value%s)\n", axis->config->name, axis_type_name(axis->config->type),
			  axis->config->ordered ? "ordered" : "not ordered", axis->count, axis->count == 1 ? "" : "s");
	for (size_t i = 0; i < axis->count; i++) {
		const struct axis_value *value = &axis->values[i];
		cleanup_free char *identity = text_copy(value->identity);
		for (char *at = identity; *at != '\0'; at++)
			if (*at == '\n')
				*at = at[1] != '\0' ? ';' : ' ';
		str_append_format(text, "    %-22s %s", value->label, value->skip_reason != NULL ? "will be skipped: " : identity);
		if (value->skip_reason != NULL)
			str_append(text, value->skip_reason);
		else if (value->detail != NULL)
			str_append_format(text, "  [%s]", value->detail);
		str_append(text, "\n");
	}
}

void investigation_print_plan(const struct investigation *investigation, struct str *text)
{
	const struct config *config = investigation->setup.config;
	struct plan_counts counts = plan_count(&investigation->plan);
	cleanup_strlist struct strlist unmatched = {0};
	str_append_format(text, "%s: %s\n", config->name, config->question != NULL ? config->question : config->file);
	for (size_t i = 0; i < investigation->axes.count; i++)
		print_axis(&investigation->axes.items[i], text);
	if (investigation->context.default_toolchain != NULL)
		str_append_format(text, "  toolchain of all cells: %s, the newest found\n",
				  investigation->context.default_toolchain->label);
	str_append_format(text, "  %zu cells of %zu combinations, %zu excluded\n", counts.cells, investigation->plan.cell_count,
			  investigation->plan.cell_count - counts.cells);
	axes_unmatched_patterns(&investigation->axes, config, &unmatched);
	for (size_t i = 0; i < unmatched.count; i++)
		str_append_format(text, "  warning: %s\n", unmatched.items[i]);
}
