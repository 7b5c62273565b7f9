/* The status line on a terminal: what is fetched and resolved, then cells done and left, what each worker does, time left. */
#include "investigation_internal.h"

#include "log.h"
#include "os.h"

enum { STATUS_EVERY_MS = 250 };

static void add_duration(struct str *line, long long seconds)
{
	if (seconds >= 3600)
		str_append_format(line, "%lld h %lld min", seconds / 3600, seconds / 60 % 60);
	else if (seconds >= 60)
		str_append_format(line, "%lld min", (seconds + 30) / 60);
	else
		str_append_format(line, "%lld s", seconds);
}

static void add_walker(const struct investigation *investigation, const struct walker *walker, struct str *line)
{
	if (!walker->busy)
		return;
	str_append_format(line, " | %zu:", walker->slot + 1);
	for (size_t i = 0; i < investigation->axes.count; i++) {
		const struct axis *axis = &investigation->axes.items[i];
		str_append_format(line, " %s", axis->values[plan_position(&investigation->plan, walker->cell, i)].label);
	}
	str_append_format(line, " (%s %lld s)", walker->phase != NULL ? walker->phase : walker->waits ? "waiting" : "starting",
			  (os_monotonic_ms() - walker->started_ms) / 1000);
}

static void add_sources(struct investigation *investigation, struct str *line)
{
	str_append(line, "fetching sources");
	for (size_t i = 0; i < investigation->setup.config->source_count; i++) {
		struct investigation_source *source = &investigation->sources[i];
		size_t total = atomic_load(&source->total);
		if (total > 0)
			str_append_format(line, " | %s %zu/%zu", source->config->name, atomic_load(&source->done), total);
	}
}

static void show_before_walk(struct investigation *investigation)
{
	cleanup_str struct str line = {0};
	if (investigation->fetching > 0)
		add_sources(investigation, &line);
	else if (investigation->axis < investigation->axes.count && investigation->commits != NULL)
		str_append_format(&line, "resolving the axis %s", investigation->axes.items[investigation->axis].config->name);
	else
		str_append(&line, "finding toolchains");
	log_status(str_text(&line));
}

static void show_walk(struct investigation *investigation)
{
	struct plan_counts counts = plan_count(&investigation->plan);
	size_t left = counts.open + counts.running;
	cleanup_str struct str line = {0};
	str_append_format(&line, "%zu/%zu cells, %zu bad", counts.cells - left, counts.cells, counts.bad);
	if (investigation->decided_now >= 3 && left > 0) {
		long long elapsed = os_monotonic_ms() - investigation->walk_started_ms;
		str_append(&line, ", about ");
		add_duration(&line, elapsed * (long long)left / (long long)investigation->decided_now / 1000);
		str_append(&line, " left");
	} else if (left == 0) {
		str_append(&line, investigation->evidence_planned ? ", gathering evidence" : ", confirming");
	}
	for (size_t i = 0; i < investigation->walker_count; i++)
		add_walker(investigation, &investigation->walkers[i], &line);
	log_status(str_text(&line));
}

static void show(void *context)
{
	struct investigation *investigation = context;
	if (investigation->walking)
		show_walk(investigation);
	else
		show_before_walk(investigation);
	investigation->status_timer = loop_timer_start(investigation->setup.loop, STATUS_EVERY_MS, show, investigation);
}

void investigation_start_status(struct investigation *investigation)
{
	if (log_has_terminal())
		show(investigation);
}
