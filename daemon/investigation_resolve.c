/*
 * Resolving: sources are fetched side by side, then toolchains are found, then each axis in turn gets its values.
 *
 * What cannot be reached becomes a value that is skipped, with the reason; only trouble of our own ends the investigation.
 */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "log.h"
#include "store.h"

enum { QUESTION_MS = 300000 /* for a worker that answers a question */ };

static void resolve_axis(struct investigation *investigation);

/* Fetching ----------------------------------------------------------------------------------------------------------- */

static void note_progress(void *context, const char *phase, size_t done, size_t total)
{
	struct investigation_source *source = context;
	(void)phase;
	atomic_store(&source->done, done);
	atomic_store(&source->total, total);
}

static void fetch(void *context)
{
	struct investigation_source *source = context;
	const struct investigation_setup *setup = &source->investigation->setup;
	cleanup_error struct error ignored = {0};
	cleanup_source struct source *mirror = NULL;
	if (setup->offline && source_open(&mirror, source->folder, &ignored) == 0)
		return;
	source->failed = source_fetch(source->folder, source->config->url, &source->config->alternates, note_progress,
				      source, &source->error) < 0;
}

static void find_toolchains(struct investigation *investigation);

static void fetched(void *context)
{
	struct investigation_source *source = context;
	struct investigation *investigation = source->investigation;
	investigation->fetching--;
	if (source->failed)
		log_warning("source %s: %s", source->config->name, error_text(&source->error));
	if (investigation->stopping)
		investigation_advance_all(investigation);
	else if (investigation->fetching == 0)
		find_toolchains(investigation);
}

static void fetch_sources(struct investigation *investigation)
{
	const struct config *config = investigation->setup.config;
	investigation->sources = memory_new(config->source_count, sizeof *investigation->sources);
	investigation->fetching = config->source_count;
	for (size_t i = 0; i < config->source_count; i++) {
		struct investigation_source *source = &investigation->sources[i];
		source->investigation = investigation;
		source->config = &config->sources[i];
		source->folder = text_format("%s/sources/%s.git", investigation->setup.state_folder, source->config->name);
		log_info("source %s: fetching %s", source->config->name, source->config->url);
		loop_work(investigation->setup.loop, fetch, fetched, source);
	}
}

static const struct investigation_source *find_source(const struct investigation *investigation, const char *name)
{
	for (size_t i = 0; i < investigation->setup.config->source_count; i++)
		if (text_equal(investigation->sources[i].config->name, name))
			return &investigation->sources[i];
	return NULL;
}

/* Toolchains --------------------------------------------------------------------------------------------------------- */

static struct axis *toolchain_axis(struct investigation *investigation)
{
	for (size_t i = 0; i < investigation->axes.count; i++)
		if (investigation->axes.items[i].config->type == AXIS_TOOLCHAIN)
			return &investigation->axes.items[i];
	return NULL;
}

static bool mentions_rust(const struct strlist *command)
{
	static const char *const words[] = {"cargo", "rustc", "{cargo}", "{rustc}", "{compiler}"};
	for (size_t i = 0; i < command->count; i++)
		for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
			if (strcmp(command->items[i], words[j]) == 0)
				return true;
	return false;
}

static bool needs_rust(const struct investigation *investigation)
{
	const struct config_reproducer *reproducer = &investigation->setup.config->reproducer;
	bool needed = investigation->context.has_manifest || mentions_rust(&reproducer->run);
	for (size_t i = 0; i < reproducer->build_count; i++)
		needed = needed || mentions_rust(&reproducer->build[i]);
	for (size_t i = 0; i < investigation->axes.count; i++)
		needed = needed || investigation->axes.items[i].config->type == AXIS_CRATE;
	return needed;
}

static const struct axis_value *newest(const struct axis *axis, bool with_cargo)
{
	for (size_t i = axis->count; i > 0; i--) {
		const struct axis_value *value = &axis->values[i - 1];
		if (value->skip_reason == NULL && (!with_cargo || value->cargo != NULL))
			return value;
	}
	return NULL;
}

static bool asks_for_all(const struct axis *axis)
{
	for (size_t i = 0; i < axis->config->value_count; i++)
		if (text_equal(axis->config->values[i].name, "auto"))
			return true;
	return false;
}

static void ask(struct investigation *investigation, struct job *job,
		void (*answered)(void *context, size_t slot, const struct result *result, bool stopped))
{
	struct pool_task task = {.deadline_ms = QUESTION_MS, .on_result = answered, .context = investigation};
	pool_start(investigation->setup.pool, 0, job, &task);
}

static void start_axes(struct investigation *investigation)
{
	investigation->axis = 0;
	resolve_axis(investigation);
}

static void implicit_answered(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct investigation *investigation = context;
	cleanup_error struct error error = {0};
	(void)slot;
	if (stopped) {
		investigation_advance_all(investigation);
		return;
	}
	if (result->outcome == OUTCOME_ERROR || axis_take_toolchains(&investigation->implicit, result->data, &error) < 0)
		log_warning("looking for Rust toolchains: %s", result->reason != NULL ? result->reason : error_text(&error));
	const struct axis_value *cargo = newest(&investigation->implicit, true);
	investigation->fetch_cargo = cargo != NULL ? text_copy(cargo->cargo) : NULL;
	if (toolchain_axis(investigation) == NULL)
		investigation->context.default_toolchain = newest(&investigation->implicit, false);
	start_axes(investigation);
}

/* Crates are resolved with the newest cargo at hand, which the axis may not name. */
static void find_newest_cargo(struct investigation *investigation)
{
	const struct axis *axis = toolchain_axis(investigation);
	if (axis != NULL && asks_for_all(axis)) {
		const struct axis_value *cargo = newest(axis, true);
		investigation->fetch_cargo = cargo != NULL ? text_copy(cargo->cargo) : NULL;
	}
	if (investigation->fetch_cargo != NULL || !needs_rust(investigation)) {
		start_axes(investigation);
		return;
	}
	cleanup_job struct job job = {.kind = text_copy("toolchains"), .id = text_copy("the newest cargo")};
	cleanup_free char *search = path_join(investigation->setup.state_folder, "toolchains");
	strlist_add(&job.names, "auto");
	strlist_add(&job.search, search);
	job.edited = path_join(investigation->setup.state_folder, "edited");
	ask(investigation, &job, implicit_answered);
}

static void toolchains_answered(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct investigation *investigation = context;
	cleanup_error struct error error = {0};
	(void)slot;
	if (stopped) {
		investigation_advance_all(investigation);
		return;
	}
	if (result->outcome == OUTCOME_ERROR)
		error_set(&error, "%s", result->reason != NULL ? result->reason : "no reason given");
	if (result->outcome == OUTCOME_ERROR ||
	    axis_take_toolchains(toolchain_axis(investigation), result->data, &error) < 0) {
		investigation_fail(investigation, "finding the toolchains", &error);
		return;
	}
	find_newest_cargo(investigation);
}

static void find_toolchains(struct investigation *investigation)
{
	const struct axis *axis = toolchain_axis(investigation);
	if (axis == NULL) {
		find_newest_cargo(investigation);
		return;
	}
	cleanup_job struct job job = {.kind = text_copy("toolchains"), .id = text_copy("the toolchains")};
	cleanup_free char *search = path_join(investigation->setup.state_folder, "toolchains");
	for (size_t i = 0; i < axis->config->value_count; i++) {
		const struct config_value *entry = &axis->config->values[i];
		strlist_add_owned(&job.names, entry->command != NULL ? text_format("command:%s", entry->command)
								     : text_copy(entry->name));
	}
	strlist_add_all(&job.search, &axis->config->search);
	if (!strlist_contains(&job.search, search))
		strlist_add(&job.search, search);
	job.edited = path_join(investigation->setup.state_folder, "edited");
	ask(investigation, &job, toolchains_answered);
}

/* One axis after the other -------------------------------------------------------------------------------------------- */

static struct axis *current(struct investigation *investigation)
{
	return &investigation->axes.items[investigation->axis];
}

static void forget_answers(struct investigation *investigation)
{
	size_t count = current(investigation)->config->value_count;
	for (size_t i = 0; i < count; i++) {
		source_commits_clear(&investigation->commits[i]);
		error_clear(&investigation->commit_errors[i]);
		free(investigation->details[i]);
	}
	free(investigation->commits);
	free(investigation->commit_errors);
	free(investigation->commit_failed);
	free(investigation->details);
	json_decref(investigation->releases);
	investigation->releases = NULL;
	investigation->commits = NULL;
	investigation->commit_errors = NULL;
	investigation->commit_failed = NULL;
	investigation->details = NULL;
}

static void take_entry(struct investigation *investigation, size_t index)
{
	struct axis *axis = current(investigation);
	const struct config_value *entry = &axis->config->values[index];
	if (!axis_entry_is_commit(axis, entry)) {
		axis_take_release(axis, entry, json_object_get(investigation->releases, entry->name));
	} else if (investigation->commit_failed[index]) {
		axis_take_unresolved(axis, entry, error_text(&investigation->commit_errors[index]));
	} else {
		axis_take_commits(axis, entry, axis_entry_source(axis, entry), &investigation->commits[index]);
	}
}

static void add_detail(struct axis_value *value, const char *detail)
{
	cleanup_free char *note = value->detail;
	value->detail = note != NULL ? text_format("%s; %s", note, detail) : text_copy(detail);
}

static void take_answers(struct investigation *investigation)
{
	struct axis *axis = current(investigation);
	size_t entries = axis->config->value_count;
	if (axis->config->type == AXIS_PROFILE || axis->config->type == AXIS_CHOICE) {
		axis_take_written(axis);
	} else if (axis->config->type != AXIS_TOOLCHAIN) {
		for (size_t i = 0; i < entries; i++)
			take_entry(investigation, i);
	}
	for (size_t i = 0; i < axis->count; i++) {
		const struct config_value *entry = axis->values[i].config;
		const char *detail = entry != NULL ? investigation->details[entry - axis->config->values] : NULL;
		if (detail != NULL)
			add_detail(&axis->values[i], detail);
	}
	axis_drop_duplicates(axis);
	forget_answers(investigation);
	investigation->axis++;
	resolve_axis(investigation);
}

static void pin_releases(struct investigation *investigation, const char *crate, const json_t *answer)
{
	cleanup_error struct error error = {0};
	for (size_t i = 0; i < json_array_size(answer); i++) {
		json_t *release = json_array_get(answer, i);
		const char *name = json_string_value(json_object_get(release, "name"));
		if (name == NULL)
			continue;
		json_object_set(investigation->releases, name, release);
		if (!json_is_string(json_object_get(release, "identity")))
			continue;
		cleanup_free char *key = text_format("%s %s", crate, name);
		cleanup_free char *content = json_dumps(release, JSON_COMPACT);
		if (store_pin(investigation->setup.store, "release", key, content, &error) < 0)
			log_warning("cannot remember the identity of %s: %s", key, error_text(&error));
	}
}

static void releases_answered(void *context, size_t slot, const struct result *result, bool stopped)
{
	struct investigation *investigation = context;
	(void)slot;
	if (stopped) {
		forget_answers(investigation);
		investigation_advance_all(investigation);
		return;
	}
	const struct axis *axis = current(investigation);
	pin_releases(investigation, axis->config->crate, result->data);
	for (size_t i = 0; i < axis->config->value_count; i++) {
		const struct config_value *entry = &axis->config->values[i];
		if (axis_entry_is_commit(axis, entry) || json_object_get(investigation->releases, entry->name) != NULL)
			continue;
		json_object_set_new(investigation->releases, entry->name,
				    json_pack("{s:s}", "skip", result->reason != NULL ? result->reason : "no answer came for it"));
	}
	take_answers(investigation);
}

/* What was resolved once is pinned: a registry that does not answer today does not matter then. */
static void recall_release(struct investigation *investigation, const char *crate, const char *release)
{
	cleanup_error struct error error = {0};
	cleanup_free char *key = text_format("%s %s", crate, release);
	cleanup_free char *content = NULL;
	if (store_recall(investigation->setup.store, "release", key, &content, &error) < 0)
		log_warning("cannot recall %s: %s", key, error_text(&error));
	json_t *answer = content != NULL ? json_loads(content, 0, NULL) : NULL;
	if (answer != NULL)
		json_object_set_new(investigation->releases, release, answer);
}

static void ask_for_releases(struct investigation *investigation)
{
	const struct axis *axis = current(investigation);
	cleanup_job struct job job = {.kind = text_copy("releases"), .id = text_format("releases of %s", axis->config->name)};
	investigation->releases = json_object();
	if (axis->config->type != AXIS_CRATE) {
		take_answers(investigation);
		return;
	}
	for (size_t i = 0; i < axis->config->value_count; i++) {
		const struct config_value *entry = &axis->config->values[i];
		if (axis_entry_is_commit(axis, entry))
			continue;
		recall_release(investigation, axis->config->crate, entry->name);
		if (json_object_get(investigation->releases, entry->name) == NULL)
			strlist_add(&job.names, entry->name);
	}
	if (job.names.count == 0) {
		take_answers(investigation);
		return;
	}
	job.crate = text_copy(axis->config->crate);
	job.cargo = text_copy(investigation->fetch_cargo);
	ask(investigation, &job, releases_answered);
}

/* On another thread: everything that this axis wants to know of the mirrors. */

static int list_commits(const struct investigation *investigation, const struct axis *axis, size_t index, struct error *error)
{
	const struct config_value *entry = &axis->config->values[index];
	const struct investigation_source *known = find_source(investigation, axis_entry_source(axis, entry));
	cleanup_source struct source *source = NULL;
	if (known == NULL)
		return error_set(error, "no such source");
	if (source_open(&source, known->folder, error) < 0) {
		if (known->failed)
			error_set(error, "source %s cannot be reached: %s", known->config->name, error_text(&known->error));
		return -1;
	}
	if (entry->commits != NULL)
		return source_list(source, entry->commits, entry->first_parent, &entry->paths, &investigation->commits[index],
				   error);
	struct source_commits *commits = &investigation->commits[index];
	commits->items = memory_grow(commits->items, commits->count, &commits->capacity, sizeof *commits->items);
	commits->items[0] = (struct source_commit){0};
	if (source_resolve(source, entry->name, &commits->items[0], error) < 0)
		return -1;
	commits->count = 1;
	return 0;
}

static void check_contents(struct source *source, const struct config_value *entry, const char *oid, struct str *detail)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	if (entry->stands_for_file == NULL)
		return;
	if (source_read_file(source, oid, entry->stands_for_file, 16 << 20, &contents, &error) < 0) {
		str_append_format(detail, "; its %s cannot be read: %s", entry->stands_for_file, error_text(&error));
		return;
	}
	for (size_t i = 0; i < entry->stands_for_contains.count; i++)
		if (strstr(str_text(&contents), entry->stands_for_contains.items[i]) == NULL) {
			str_append_format(detail, "; but its %s does not hold \"%s\"", entry->stands_for_file,
					  entry->stands_for_contains.items[i]);
			return;
		}
	if (entry->stands_for_contains.count > 0)
		str_append_format(detail, "; its %s holds the text looked for", path_base(entry->stands_for_file));
}

static char *read_provenance(const struct investigation *investigation, const struct config_value *entry)
{
	cleanup_error struct error error = {0};
	cleanup_source struct source *source = NULL;
	cleanup_source_commit struct source_commit commit = {0};
	const struct investigation_source *known = find_source(investigation, entry->stands_for_source);
	if (known == NULL)
		return NULL;
	struct str detail = {0};
	str_append_format(&detail, "stands for %s ", known->config->name);
	if (source_open(&source, known->folder, &error) < 0 ||
	    source_resolve(source, entry->stands_for_commit, &commit, &error) < 0) {
		str_append_format(&detail, "%s, which cannot be read: %s", entry->stands_for_commit,
				  known->failed ? error_text(&known->error) : error_text(&error));
		return str_steal(&detail);
	}
	str_append_format(&detail, "%.10s (%.10s, %s: \"%s\")", commit.oid, commit.date, commit.author, commit.subject);
	check_contents(source, entry, commit.oid, &detail);
	return str_steal(&detail);
}

static void ask_mirrors(void *context)
{
	struct investigation *investigation = context;
	const struct axis *axis = current(investigation);
	for (size_t i = 0; i < axis->config->value_count; i++) {
		const struct config_value *entry = &axis->config->values[i];
		if (axis_entry_is_commit(axis, entry))
			investigation->commit_failed[i] =
				list_commits(investigation, axis, i, &investigation->commit_errors[i]) < 0;
		if (entry->stands_for_source != NULL)
			investigation->details[i] = read_provenance(investigation, entry);
	}
}

static void mirrors_asked(void *context)
{
	struct investigation *investigation = context;
	investigation->works--;
	if (investigation->stopping) {
		forget_answers(investigation);
		investigation_advance_all(investigation);
		return;
	}
	ask_for_releases(investigation);
}

static void resolve_axis(struct investigation *investigation)
{
	if (investigation->axis == investigation->axes.count) {
		investigation_resolved(investigation);
		return;
	}
	size_t count = current(investigation)->config->value_count;
	investigation->commits = memory_new(count, sizeof *investigation->commits);
	investigation->commit_errors = memory_new(count, sizeof *investigation->commit_errors);
	investigation->commit_failed = memory_new(count, sizeof *investigation->commit_failed);
	investigation->details = memory_new(count, sizeof *investigation->details);
	investigation->works++;
	loop_work(investigation->setup.loop, ask_mirrors, mirrors_asked, investigation);
}

void investigation_resolve(struct investigation *investigation)
{
	investigation->implicit_config = (struct config_axis){.type = AXIS_TOOLCHAIN};
	investigation->implicit.config = &investigation->implicit_config;
	if (investigation->setup.config->source_count > 0)
		fetch_sources(investigation);
	else
		find_toolchains(investigation);
}
