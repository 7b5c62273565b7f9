/*
 * The walk: each walker takes a cell, sees to what it stands on, has it tried, and records what came of it.
 *
 * Confirmations come before new cells: a clean build in a build folder of its own with `confirm` further runs.  The first bad
 * combination is confirmed as soon as no earlier cell can take its place; the two cells of each boundary at the end of the walk.
 */
#include "investigation_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "fs.h"
#include "log.h"
#include "os.h"
#include "view.h"

enum {
	DEADLINE_SPARE_MS = 120000, /* on top of a job's own limits */
};

/* Which cell next ------------------------------------------------------------------------------------------------------ */

/* `keeps`: its folder is to stay, so that it can be repeated by hand; where it was confirmed in one that did not (as a cell of a
 * boundary, of this or another investigation), that is done once more. */
static void want_confirmation(struct investigation *investigation, size_t cell, bool keeps)
{
	struct cell_record *record = &investigation->cells[cell];
	if (investigation->setup.config->confirm == 0 || record->id == 0 ||
	    record->errors > investigation->setup.config->retries)
		return;
	if (record->confirmed && record->confirmation == CONFIRMATION_DONE && keeps && !record->repeatable)
		record->confirmation = CONFIRMATION_NONE;
	if ((!record->confirmed || (keeps && !record->repeatable)) && record->confirmation == CONFIRMATION_NONE)
		record->confirmation = CONFIRMATION_WANTED;
}

/* The first bad cell, once it is final; at the end of the walk what stands in for it too, because it is posted then. */
static void want_first_bad(struct investigation *investigation, bool at_end)
{
	bool final;
	long cell = plan_first_bad(&investigation->plan, &final);
	if (cell != PLAN_NONE && (final || at_end))
		want_confirmation(investigation, (size_t)cell, true);
}

/* The cells of every boundary that nothing confirms yet.  -1: trouble. */
static int want_boundaries(struct investigation *investigation, struct error *error)
{
	struct view_boundaries boundaries = {0};
	int result = view_boundaries(store_connection(investigation->setup.store), investigation->setup.config->name,
				     &boundaries, error);
	for (size_t i = 0; result == 0 && i < boundaries.count; i++) {
		want_confirmation(investigation, (size_t)boundaries.items[i].from_walk_index, false);
		want_confirmation(investigation, (size_t)boundaries.items[i].to_walk_index, false);
	}
	view_boundaries_clear(&boundaries);
	return result;
}

static bool take_confirmation(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	for (size_t cell = 0; cell < investigation->plan.cell_count; cell++) {
		if (investigation->cells[cell].confirmation != CONFIRMATION_WANTED)
			continue;
		bool final;
		investigation->cells[cell].confirmation = CONFIRMATION_RUNNING;
		walker->cell = cell;
		walker->confirms = true;
		walker->keeps = plan_first_bad(&investigation->plan, &final) == (long)cell;
		return true;
	}
	return false;
}

static bool take_next(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	size_t groups = investigation->group_axis == PLAN_NONE ? 1 : investigation->plan.sizes[investigation->group_axis];
	cleanup_free bool *busy = memory_new(groups, sizeof *busy);
	for (size_t i = 0; i < investigation->walker_count; i++)
		if (investigation->walkers[i].busy && investigation->walkers[i].group != PLAN_NONE)
			busy[investigation->walkers[i].group] = true;
	long cell = plan_walk_next(&investigation->plan, investigation->group_axis, walker->group, busy);
	if (cell == PLAN_NONE)
		return false;
	walker->cell = (size_t)cell;
	walker->confirms = walker->keeps = false;
	plan_set(&investigation->plan, walker->cell, PLAN_RUNNING);
	if (investigation->group_axis != PLAN_NONE)
		walker->group = (long)plan_position(&investigation->plan, walker->cell, (size_t)investigation->group_axis);
	return true;
}

static bool walk_is_done(const struct investigation *investigation)
{
	struct plan_counts counts = plan_count(&investigation->plan);
	return counts.open == 0 && counts.running == 0;
}

/* False: nothing to do (now). */
static bool take_cell(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	cleanup_error struct error error = {0};
	want_first_bad(investigation, false);
	if (!take_confirmation(walker) && !take_next(walker)) {
		if (!walk_is_done(investigation))
			return false;
		want_first_bad(investigation, true);
		if (want_boundaries(investigation, &error) < 0) {
			investigation_fail(investigation, "reading the boundaries", &error);
			return false;
		}
		if (!take_confirmation(walker) && !investigation_take_task(walker))
			return false;
	}
	walker->busy = true;
	walker->started_ms = os_monotonic_ms();
	return true;
}

/* What came of it ------------------------------------------------------------------------------------------------------ */

void investigation_leave(struct walker *walker)
{
	free(walker->log);
	free(walker->phase);
	*walker = (struct walker){.investigation = walker->investigation, .slot = walker->slot, .group = walker->group};
}

static void tell(const struct walker *walker, const struct result *result)
{
	struct investigation *investigation = walker->investigation;
	struct plan_counts counts = plan_count(&investigation->plan);
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	investigation_positions(investigation, walker->cell, positions);
	cleanup_free char *combination = axes_combination(&investigation->axes, positions);
	log_info("[%zu/%zu] %-10s %s%s  (build %.1f s, run %.2f s)%s%s", counts.cells - counts.open - counts.running, counts.cells,
		 outcome_name(result->outcome), walker->confirms ? "confirming by a clean build: " : "", combination,
		 (double)result->build_ms / 1000, (double)result->run_ms / 1000, result->reason != NULL ? "  " : "",
		 result->reason != NULL ? result->reason : "");
}

/* What a confirming attempt makes of the cell: two answers that differ in good or bad are flaky. */
static void decide_confirmation(const struct walker *walker, const struct result *result, struct store_decision *decision,
				char **reason)
{
	struct investigation *investigation = walker->investigation;
	const struct cell_record *record = &investigation->cells[walker->cell];
	decision->outcome = result->outcome;
	decision->confirmed = true;
	decision->keeps = walker->keeps;
	if (result->outcome == record->outcome ||
	    investigation_plan_state(investigation, result->outcome) == investigation_plan_state(investigation, record->outcome))
		return;
	*reason = text_format("%s at first, %s when built clean and run again", outcome_name(record->outcome),
			      outcome_name(result->outcome));
	decision->outcome = OUTCOME_FLAKY;
	decision->reason = *reason;
}

static void note_error(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	struct cell_record *record = &investigation->cells[walker->cell];
	bool again = record->errors < investigation->setup.config->retries;
	record->errors++;
	if (walker->confirms)
		record->confirmation = again ? CONFIRMATION_WANTED : CONFIRMATION_DONE;
	else
		plan_set(&investigation->plan, walker->cell, again ? PLAN_OPEN : PLAN_FAILED);
}

/* An error in a confirmation (or what is as good as one) leaves the cell as it is; elsewhere it is the cell's outcome until it is
 * tried again. */
static void note_outcome(struct walker *walker, enum outcome outcome)
{
	struct investigation *investigation = walker->investigation;
	struct cell_record *record = &investigation->cells[walker->cell];
	if (outcome == OUTCOME_ERROR) {
		note_error(walker);
		return;
	}
	record->outcome = outcome;
	record->errors = 0;
	record->confirmed = walker->confirms;
	record->repeatable = record->repeatable || walker->keeps;
	if (walker->confirms)
		record->confirmation = CONFIRMATION_DONE;
	plan_set(&investigation->plan, walker->cell, investigation_plan_state(investigation, outcome));
	if (!walker->confirms)
		investigation->decided_now++;
}

/* A clean build that could not be had (too slow, refused, trouble of ours) says nothing about what was seen before. */
static bool contradicts_nothing(const struct investigation *investigation, enum outcome outcome)
{
	enum plan_state state = investigation_plan_state(investigation, outcome);
	return state != PLAN_GOOD && state != PLAN_BAD && outcome != OUTCOME_FLAKY;
}

/* Records the result and what follows from it; the walker is free afterwards. */
static void record(struct walker *walker, const struct result *result)
{
	struct investigation *investigation = walker->investigation;
	cleanup_error struct error error = {0};
	cleanup_free char *reason = NULL;
	struct store_decision decision = {.outcome = result->outcome, .reason = result->reason};
	bool undecided = walker->confirms && contradicts_nothing(investigation, result->outcome);
	if (walker->confirms && !undecided)
		decide_confirmation(walker, result, &decision, &reason);
	if (store_finish_attempt(investigation->setup.store, walker->attempt_id, result, undecided ? NULL : &decision, &error) <
	    0) {
		investigation_leave(walker);
		investigation_fail(investigation, "recording an attempt", &error);
		return;
	}
	note_outcome(walker, undecided ? OUTCOME_ERROR : decision.outcome);
	tell(walker, result);
	investigation_leave(walker);
	if (investigation_record_first_bad(investigation, &error) < 0)
		investigation_fail(investigation, "recording the first bad combination", &error);
	else
		notify_wake(investigation->notify);
}

bool investigation_start_attempt(struct walker *walker, long long cell_id)
{
	struct investigation *investigation = walker->investigation;
	cleanup_error struct error error = {0};
	if (store_start_attempt(investigation->setup.store, cell_id, walker->confirms ? "confirm" : "walk", &walker->attempt_id,
				&walker->log, &error) == 0)
		return true;
	investigation_leave(walker);
	investigation_fail(investigation, "recording an attempt", &error);
	return false;
}

/* False: trouble; the walker is free. */
static bool start_attempt(struct walker *walker)
{
	return walker->task != NULL ? investigation_open_task(walker)
				    : investigation_start_attempt(walker, walker->investigation->cells[walker->cell].id);
}

void investigation_conclude(struct walker *walker, enum outcome outcome, const char *reason)
{
	/* what cannot be prepared again contradicts nothing that was seen */
	cleanup_result struct result result = {.outcome = walker->confirms ? OUTCOME_ERROR : outcome,
					       .reason = text_copy(reason),
					       .exit_status = -1};
	if (!start_attempt(walker))
		return;
	/* trying again was done while preparing */
	walker->investigation->cells[walker->cell].errors = UCHAR_MAX - 1;
	record(walker, &result);
}

/* The attempt ---------------------------------------------------------------------------------------------------------- */

static void on_phase(void *context, size_t slot, const char *phase)
{
	struct investigation *investigation = context;
	struct walker *walker = &investigation->walkers[slot];
	free(walker->phase);
	walker->phase = text_copy(phase);
}

static void on_result(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct investigation *investigation = context;
	struct walker *walker = &investigation->walkers[slot];
	cleanup_error struct error error = {0};
	if (stopped) {
		if (walker->attempt_id != 0 &&
		    store_interrupt_attempt(investigation->setup.store, walker->attempt_id, &error) < 0)
			log_error("recording an interrupted attempt: %s", error_text(&error));
		if (walker->task != NULL)
			walker->task->state = EVIDENCE_OPEN;
		investigation_leave(walker);
	} else if (walker->task != NULL) {
		investigation_record_task(walker, result);
	} else {
		record(walker, result);
	}
	investigation_advance_all(investigation);
}

/* Two walkers on one toolchain need two build folders. */
static void choose_lane(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	for (walker->lane = 0;; walker->lane++) {
		bool taken = false;
		for (size_t i = 0; i < investigation->walker_count && !taken; i++) {
			const struct walker *other = &investigation->walkers[i];
			taken = other != walker && other->working && other->group == walker->group && other->lane == walker->lane;
		}
		if (!taken)
			return;
	}
}

static char *lane_folder(struct walker *walker, const size_t *positions)
{
	const struct investigation *investigation = walker->investigation;
	const struct axis_value *toolchain = cell_toolchain(&investigation->context, positions);
	choose_lane(walker);
	walker->working = true;
	struct digest digest;
	digest_start(&digest);
	digest_add(&digest, "toolchain", toolchain != NULL ? toolchain->identity : NULL);
	cleanup_free char *hash = digest_finish(&digest);
	return text_format("%s/build/%.12s/%lld", investigation->setup.state_folder, hash, walker->lane);
}

static char *attempt_folder(struct walker *walker, const size_t *positions)
{
	const struct investigation *investigation = walker->investigation;
	const char *state = investigation->setup.state_folder;
	if (walker->keeps) {
		cleanup_free char *key = cell_key(investigation_context(walker), positions);
		return text_format("%s/kept/%.12s", state, key);
	}
	if (walker->confirms)
		return text_format("%s/build/clean/%zu", state, walker->slot);
	return lane_folder(walker, positions);
}

static long long deadline(const struct job *job)
{
	long long build = job->build_ms > 0 ? job->build_ms : JOB_DEFAULT_BUILD_MS;
	long long run = job->run_ms > 0 ? job->run_ms : JOB_DEFAULT_RUN_MS;
	return build + run * job->runs + 2 * job->budget_ms + DEADLINE_SPARE_MS;
}

static void start_job(struct walker *walker, const size_t *positions)
{
	struct investigation *investigation = walker->investigation;
	cleanup_job struct job job = {0};
	cleanup_free char *folder = attempt_folder(walker, positions);
	if (!start_attempt(walker))
		return;
	cleanup_free char *log = path_join(investigation->setup.state_folder, walker->log);
	cell_fill_job(investigation_context(walker), positions, folder, walker->confirms, &job);
	if (walker->confirms && investigation->setup.config->confirm > job.runs)
		job.runs = investigation->setup.config->confirm;
	if (walker->task != NULL)
		investigation_fill_task(walker, &job);
	struct pool_task task = {.log = log,
				 .deadline_ms = deadline(&job),
				 .on_phase = on_phase,
				 .on_result = on_result,
				 .context = investigation};
	pool_start(investigation->setup.pool, walker->slot, &job, &task);
}

void investigation_advance(struct walker *walker)
{
	struct investigation *investigation = walker->investigation;
	cleanup_free size_t *positions = memory_new(investigation->axes.count, sizeof *positions);
	while (!investigation->stopping && !walker->waits && !pool_is_busy(investigation->setup.pool, walker->slot)) {
		if (!walker->busy && !take_cell(walker))
			return;
		investigation_positions(investigation, walker->cell, positions);
		if (investigation_supply_cell(walker, positions))
			start_job(walker, positions);
	}
}

void investigation_walk(struct investigation *investigation)
{
	struct plan_counts counts = plan_count(&investigation->plan);
	log_info("%zu cells, %zu of them decided already", counts.cells, counts.cells - counts.open);
	investigation->walking = true;
	investigation->walk_started_ms = os_monotonic_ms();
	investigation_advance_all(investigation);
}
