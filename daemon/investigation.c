/* The life of an investigation, from start to end.  See investigation.h. */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "log.h"
#include "os.h"

void investigation_positions(const struct investigation *investigation, size_t cell, size_t *positions)
{
	for (size_t i = 0; i < investigation->axes.count; i++)
		positions[i] = plan_position(&investigation->plan, cell, i);
}

static bool is_idle(const struct investigation *investigation)
{
	if (investigation->works > 0 || investigation->fetching > 0)
		return false;
	for (size_t i = 0; i < pool_slots(investigation->setup.pool); i++)
		if (pool_is_busy(investigation->setup.pool, i))
			return false;
	return true;
}

static void end_now(void *context)
{
	struct investigation *investigation = context;
	log_status(NULL);
	loop_timer_cancel(&investigation->status_timer);
	loop_timer_cancel(&investigation->delivery_timer);
	notify_close(investigation->notify);
	investigation->notify = NULL;
	investigation->setup.on_end(investigation->setup.context);
}

static void save_state(struct investigation *investigation, const char *state)
{
	cleanup_error struct error error = {0};
	if (investigation->id != 0 && store_set_state(investigation->setup.store, investigation->id, state, &error) < 0)
		log_error("cannot record the end of the investigation: %s", error_text(&error));
}

static void deliveries_late(void *context)
{
	struct investigation *investigation = context;
	investigation->delivery_timer = NULL;
	log_warning("webhook deliveries are still outstanding: the next `bisectd run` goes on with them");
	end_now(investigation);
}

static void deliveries_done(void *context)
{
	struct investigation *investigation = context;
	if (investigation->delivery_timer != NULL && !notify_has_pending(investigation->notify))
		end_now(investigation);
}

static void wait_for_deliveries(struct investigation *investigation)
{
	if (investigation->notify == NULL || !notify_has_pending(investigation->notify) || investigation->stopping) {
		loop_defer(investigation->setup.loop, end_now, investigation);
		return;
	}
	log_status("waiting for webhook deliveries");
	investigation->delivery_timer = loop_timer_start(investigation->setup.loop, investigation->setup.delivery_wait_ms,
							 deliveries_late, investigation);
	notify_when_empty(investigation->notify, deliveries_done, investigation);
}

void investigation_finish(struct investigation *investigation, enum investigation_end end)
{
	if (investigation->ended)
		return;
	investigation->ended = true;
	investigation->end = end;
	bool complete = end == INVESTIGATION_FOUND || end == INVESTIGATION_NONE;
	save_state(investigation, complete ? "finished" : "stopped");
	loop_timer_cancel(&investigation->status_timer);
	wait_for_deliveries(investigation);
}

/* Called whenever something comes to its end while the investigation is stopping. */
static void finish_when_idle(struct investigation *investigation)
{
	if (is_idle(investigation))
		investigation_finish(investigation, investigation->error.text != NULL ? INVESTIGATION_TROUBLE
										       : INVESTIGATION_STOPPED);
}

void investigation_fail(struct investigation *investigation, const char *attempt, struct error *error)
{
	if (investigation->error.text == NULL)
		error_set(&investigation->error, "%s: %s", attempt, error_text(error));
	investigation_stop(investigation);
}

static void look_again(void *context)
{
	struct investigation *investigation = context;
	if (!investigation->ended)
		investigation_advance_all(investigation);
}

void investigation_stop(struct investigation *investigation)
{
	if (investigation->ended) {
		/* only deliveries are awaited: they go on next time */
		if (investigation->delivery_timer != NULL)
			end_now(investigation);
		return;
	}
	investigation->stopping = true;
	pool_stop(investigation->setup.pool, 5000);
	loop_defer(investigation->setup.loop, look_again, investigation);
}

static void begin(void *context)
{
	struct investigation *investigation = context;
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist skip = {0};
	const char *path = investigation->setup.config->reproducer.path;
	strlist_add(&skip, "target");
	strlist_add(&skip, ".git");
	if (fs_hash_tree(path, &skip, &investigation->reproducer_hash, &error) < 0) {
		investigation_fail(investigation, "reading the reproducer", &error);
		return;
	}
	cleanup_free char *manifest = path_join(path, "Cargo.toml");
	investigation->context.has_manifest = path_exists(manifest);
	investigation->context.reproducer_hash = investigation->reproducer_hash;
	investigation_resolve(investigation);
	investigation_start_status(investigation);
}

struct investigation *investigation_start(const struct investigation_setup *setup)
{
	struct investigation *investigation = memory_new(1, sizeof *investigation);
	investigation->setup = *setup;
	investigation->group_axis = PLAN_NONE;
	investigation->evidence_cell = PLAN_NONE;
	axes_start(&investigation->axes, setup->config);
	investigation->context = (struct cell_context){
		.config = setup->config, .axes = &investigation->axes, .state_folder = setup->state_folder};
	investigation->walker_count = pool_slots(setup->pool);
	investigation->walkers = memory_new(investigation->walker_count, sizeof *investigation->walkers);
	for (size_t i = 0; i < investigation->walker_count; i++)
		investigation->walkers[i] =
			(struct walker){.investigation = investigation, .slot = i, .group = PLAN_NONE};
	loop_defer(setup->loop, begin, investigation);
	return investigation;
}

void investigation_resolved(struct investigation *investigation)
{
	cleanup_error struct error error = {0};
	if (investigation_make_plan(investigation, &error) < 0) {
		investigation_fail(investigation, "making the plan", &error);
		return;
	}
	if (investigation->setup.resolve_only) {
		investigation_finish(investigation, INVESTIGATION_NONE);
		return;
	}
	if (investigation_save_matrix(investigation, &error) < 0) {
		investigation_fail(investigation, "saving the matrix", &error);
		return;
	}
	investigation->notify = notify_open(investigation->setup.loop, investigation->setup.store, investigation->setup.config,
					    investigation->id);
	investigation_walk(investigation);
}

static enum investigation_end judge_end(const struct investigation *investigation)
{
	bool final;
	struct plan_counts counts = plan_count(&investigation->plan);
	if (plan_first_bad(&investigation->plan, &final) != PLAN_NONE && final)
		return INVESTIGATION_FOUND;
	return counts.failed > 0 ? INVESTIGATION_TROUBLE : INVESTIGATION_NONE;
}

void investigation_advance_all(struct investigation *investigation)
{
	if (investigation->ended)
		return;
	if (investigation->stopping) {
		finish_when_idle(investigation);
		return;
	}
	if (!investigation->walking)
		return;
	for (size_t i = 0; i < investigation->walker_count && !investigation->stopping; i++)
		if (!pool_is_busy(investigation->setup.pool, i))
			investigation_advance(&investigation->walkers[i]);
	bool busy = investigation->stopping;
	for (size_t i = 0; i < investigation->walker_count; i++)
		busy = busy || investigation->walkers[i].busy;
	if (busy || investigation->works > 0)
		return;
	cleanup_error struct error error = {0};
	investigation->walking = false;
	if (investigation_record_end(investigation, &error) < 0) {
		investigation_fail(investigation, "recording the findings", &error);
		return;
	}
	notify_wake(investigation->notify);
	enum investigation_end end = judge_end(investigation);
	if (end == INVESTIGATION_TROUBLE)
		error_set(&investigation->error, "%zu cells could not be decided: see \"Not known\" in the report",
			  plan_count(&investigation->plan).failed);
	investigation_finish(investigation, end);
}

enum investigation_end investigation_end(const struct investigation *investigation)
{
	return investigation->end;
}

bool investigation_has_matrix(const struct investigation *investigation)
{
	return investigation->id != 0;
}

const char *investigation_trouble(const struct investigation *investigation)
{
	return error_text(&investigation->error);
}

static void free_sources(struct investigation *investigation)
{
	for (size_t i = 0; investigation->sources != NULL && i < investigation->setup.config->source_count; i++) {
		free(investigation->sources[i].folder);
		error_clear(&investigation->sources[i].error);
	}
	free(investigation->sources);
}

static void free_supplies(struct investigation *investigation)
{
	for (size_t i = 0; i < investigation->supply_count; i++) {
		free(investigation->supplies[i]->name);
		free(investigation->supplies[i]->reason);
		error_clear(&investigation->supplies[i]->error);
		free(investigation->supplies[i]);
	}
	free(investigation->supplies);
}

void investigation_free(struct investigation *investigation)
{
	if (investigation == NULL)
		return;
	for (size_t i = 0; i < investigation->walker_count; i++) {
		free(investigation->walkers[i].log);
		free(investigation->walkers[i].phase);
	}
	free(investigation->walkers);
	free_sources(investigation);
	free_supplies(investigation);
	investigation_free_tasks(investigation);
	axes_clear(&investigation->axes);
	axis_clear(&investigation->implicit);
	plan_free(&investigation->plan);
	free(investigation->cells);
	free(investigation->reproducer_hash);
	free(investigation->fetch_cargo);
	json_decref(investigation->releases);
	str_clear(&investigation->notes);
	error_clear(&investigation->error);
	free(investigation);
}
