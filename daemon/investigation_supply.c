/*
 * What cells stand on: exported trees and preparations.  Each is made once, by the first walker that needs it, while the others
 * wait.  Both are folders that appear whole or not at all, so a killed run leaves nothing half-made.
 */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "log.h"
#include "source.h"

enum { PREPARATION_MS = 900000 };

static struct supply *find_supply(struct investigation *investigation, const char *name)
{
	for (size_t i = 0; i < investigation->supply_count; i++)
		if (strcmp(investigation->supplies[i]->name, name) == 0)
			return investigation->supplies[i];
	struct supply *supply = memory_new(1, sizeof *supply);
	supply->investigation = investigation;
	supply->name = text_copy(name);
	investigation->supplies = memory_grow(investigation->supplies, investigation->supply_count,
					      &investigation->supply_capacity, sizeof(struct supply *));
	investigation->supplies[investigation->supply_count++] = supply;
	return supply;
}

static void supply_ended(struct supply *supply, enum outcome outcome, const char *reason)
{
	struct investigation *investigation = supply->investigation;
	if (outcome == OUTCOME_PASS) {
		supply->state = SUPPLY_READY;
	} else if (outcome == OUTCOME_ERROR && supply->failures < investigation->setup.config->retries) {
		log_warning("%s; trying again", reason);
		supply->failures++;
		supply->state = SUPPLY_ABSENT;
	} else {
		log_warning("%s", reason);
		supply->state = SUPPLY_FAILED;
		supply->outcome = outcome;
		free(supply->reason);
		supply->reason = text_copy(reason);
	}
	for (size_t i = 0; i < investigation->walker_count; i++)
		investigation->walkers[i].waits = false;
}

/* Trees ---------------------------------------------------------------------------------------------------------------- */

static void export(void *context)
{
	struct supply *supply = context;
	const struct investigation *investigation = supply->investigation;
	cleanup_source struct source *source = NULL;
	cleanup_free char *folder =
		text_format("%s/sources/%s.git", investigation->setup.state_folder, supply->source);
	cleanup_free char *tree = cell_tree_folder(&investigation->context, supply->name);
	if (source_open(&source, folder, &supply->error) == 0)
		source_export(source, supply->name, tree, &supply->error);
}

static void exported(void *context)
{
	struct supply *supply = context;
	struct investigation *investigation = supply->investigation;
	cleanup_error struct error error = supply->error;
	supply->error = (struct error){0};
	investigation->works--;
	if (error.text != NULL)
		error_wrap(&error, "exporting %.10s of %s", supply->name, supply->source);
	supply_ended(supply, error.text == NULL ? OUTCOME_PASS : OUTCOME_ERROR, error_text(&error));
	investigation_advance_all(investigation);
}

static void make_tree(struct walker *walker, struct supply *supply, const char *source)
{
	struct investigation *investigation = walker->investigation;
	cleanup_free char *tree = cell_tree_folder(&investigation->context, supply->name);
	supply->source = source;
	if (path_is_folder(tree)) {
		supply->state = SUPPLY_READY;
		return;
	}
	supply->state = SUPPLY_MAKING;
	investigation->works++;
	loop_work(investigation->setup.loop, export, exported, supply);
}

/* Preparations --------------------------------------------------------------------------------------------------------- */

static void on_phase(void *context, size_t slot, const char *phase)
{
	struct supply *supply = context;
	struct walker *walker = &supply->investigation->walkers[slot];
	free(walker->phase);
	walker->phase = text_format("preparing: %s", phase);
}

/* A lock file is resolved once and then pinned: the same question must have the same dependencies tomorrow. */
static int pin_lock(struct supply *supply, const struct result *result, struct error *error)
{
	const char *lock = json_string_value(json_object_get(result->data, "lock"));
	if (lock == NULL)
		return 0;
	return store_pin(supply->investigation->setup.store, "lock", supply->name, lock, error);
}

/* Dependencies that could not stay as the reproducer's lock file has them differ between the cells that are compared: say so. */
static void tell_changes(const struct result *result)
{
	size_t index;
	json_t *change;
	json_array_foreach(json_object_get(result->data, "changed"), index, change)
	{
		cleanup_free char *text = json_is_string(change) ? text_copy(json_string_value(change))
								 : json_dumps(change, JSON_COMPACT | JSON_ENCODE_ANY);
		log_info("a dependency differs from the reproducer's Cargo.lock: %s", text);
	}
}

static void prepared(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct supply *supply = context;
	struct investigation *investigation = supply->investigation;
	cleanup_error struct error error = {0};
	cleanup_free char *reason = text_format("%s (see %s/prepared/%.20s.log)",
						result->reason != NULL ? result->reason : "no reason given",
						investigation->setup.state_folder, supply->name);
	(void)slot;
	if (!stopped && result->outcome == OUTCOME_PASS && pin_lock(supply, result, &error) < 0) {
		supply->state = SUPPLY_FAILED;
		investigation_fail(investigation, "pinning a lock file", &error);
	} else if (!stopped) {
		tell_changes(result);
		supply_ended(supply, result->outcome, reason);
	}
	investigation_advance_all(investigation);
}

static void make_preparation(struct walker *walker, struct supply *supply, const size_t *positions)
{
	struct investigation *investigation = walker->investigation;
	cleanup_error struct error error = {0};
	cleanup_free char *lock = NULL;
	const struct cell_context *context = investigation_context(walker);
	cleanup_free char *folder = cell_prepared_folder(context, supply->name);
	cleanup_free char *log = text_format("%s.log", folder);
	cleanup_job struct job job = {0};
	/* a twin differs by its edit alone: it gets the lock file of its cell */
	cleanup_free char *pinned = cell_preparation_key(&investigation->context, positions);
	if (store_recall(investigation->setup.store, "lock", pinned, &lock, &error) < 0) {
		investigation_fail(investigation, "recalling a lock file", &error);
		return;
	}
	/* also where the folder stands: the worker looks whether all that it needs is there still, and that is quick */
	supply->state = SUPPLY_MAKING;
	cell_fill_preparation(context, positions, supply->name, lock, &job);
	struct pool_task task = {.log = log,
				 .deadline_ms = PREPARATION_MS,
				 .on_phase = on_phase,
				 .on_result = prepared,
				 .context = supply};
	pool_start(investigation->setup.pool, walker->slot, &job, &task);
}

/* True: it is there.  False: the walker waits, or was concluded. */
static bool settle(struct walker *walker, const struct supply *supply)
{
	if (supply->state == SUPPLY_READY)
		return true;
	if (supply->state == SUPPLY_FAILED && walker->task != NULL)
		investigation_conclude_task(walker, supply->outcome, supply->reason);
	else if (supply->state == SUPPLY_FAILED)
		investigation_conclude(walker, supply->outcome, supply->reason);
	else
		walker->waits = true;
	return false;
}

bool investigation_supply_cell(struct walker *walker, const size_t *positions)
{
	struct investigation *investigation = walker->investigation;
	cleanup_free const struct axis_value **commits = memory_new(investigation->axes.count, sizeof(void *));
	size_t count = cell_commits(&investigation->context, positions, commits);
	for (size_t i = 0; i < count; i++) {
		struct supply *tree = find_supply(investigation, commits[i]->oid);
		if (tree->state == SUPPLY_ABSENT)
			make_tree(walker, tree, commits[i]->source);
		if (!settle(walker, tree))
			return false;
	}
	cleanup_free char *key = cell_preparation_key(investigation_context(walker), positions);
	if (key == NULL)
		return true;
	struct supply *preparation = find_supply(investigation, key);
	if (preparation->state == SUPPLY_ABSENT)
		make_preparation(walker, preparation, positions);
	return settle(walker, preparation);
}
