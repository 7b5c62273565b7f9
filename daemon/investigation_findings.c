/* What was found is recorded once, together with its deliveries. */
#include "investigation_internal.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "finding.h"
#include "log.h"
#include "verdict.h"
#include "view.h"

static struct sql *connection(const struct investigation *investigation)
{
	return store_connection(investigation->setup.store);
}

/* Takes over the reference.  `key`: what makes it the same finding after a restart. */
static int add(struct investigation *investigation, json_t *finding, const char *key, struct error *error)
{
	const struct config *config = investigation->setup.config;
	const char *kind = json_string_value(json_object_get(finding, "event"));
	if (config->report_url != NULL) {
		cleanup_strmap struct strmap names = {0};
		strmap_set(&names, "name", config->name);
		cleanup_free char *link = text_substitute(config->report_url, &names);
		json_object_set_new(finding, "link", json_string(link));
	}
	cleanup_free char *body = json_dumps(finding, JSON_COMPACT);
	cleanup_free struct store_webhook *webhooks = memory_new(config->webhook_count, sizeof *webhooks);
	struct store_finding row = {.kind = kind,
				    .key = key,
				    .title = json_string_value(json_object_get(finding, "title")),
				    .text = json_string_value(json_object_get(finding, "text")),
				    .verdict = json_string_value(json_object_get(finding, "verdict")),
				    .body = body,
				    .webhooks = webhooks};
	for (size_t i = 0; i < config->webhook_count; i++)
		if (strlist_contains(&config->webhooks[i].events, kind))
			webhooks[row.webhook_count++] = (struct store_webhook){
				.name = config->webhooks[i].name, .give_up_after_ms = config->webhooks[i].give_up_after_ms};
	bool added;
	int result = store_add_finding(investigation->setup.store, investigation->id, &row, &added, error);
	if (result == 0 && added)
		log_info("%s", row.title);
	json_decref(finding);
	return result;
}

static int add_first_bad(struct investigation *investigation, struct error *error)
{
	struct view_investigation about;
	struct view_first_bad first_bad = {0};
	struct view_matrix matrix = {0};
	const char *name = investigation->setup.config->name;
	int result = view_investigation(connection(investigation), name, &about, error);
	if (result == 0)
		result = view_first_bad(connection(investigation), name, &first_bad, error);
	if (result == 0)
		result = view_matrix(connection(investigation), name, &matrix, error);
	if (result == 0 && first_bad.combination != NULL) {
		cleanup_free char *key = text_format("first-bad %s%s%s", first_bad.cell_key, first_bad.final ? "" : " provisional",
						     first_bad.confirmed ? "" : " unconfirmed");
		result = add(investigation, finding_first_bad(&about, &first_bad, &matrix), key, error);
	}
	view_matrix_clear(&matrix);
	view_first_bad_clear(&first_bad);
	view_investigation_clear(&about);
	return result;
}

/* During the walk: as soon as it is final and confirmed. */
int investigation_record_first_bad(struct investigation *investigation, struct error *error)
{
	bool final;
	long cell = plan_first_bad(&investigation->plan, &final);
	if (cell == PLAN_NONE || !final || investigation->first_bad_recorded)
		return 0;
	if (investigation->setup.config->confirm > 0 &&
	    !(investigation->cells[cell].confirmed && investigation->cells[cell].repeatable))
		return 0;
	investigation->first_bad_recorded = true;
	return add_first_bad(investigation, error);
}

static int add_boundary(struct investigation *investigation, const struct view_investigation *about,
			const struct view_boundary *boundary, struct error *error)
{
	cleanup_free char *key = text_format("boundary %s %s %s..%s, cells %lld..%lld%s", boundary->axis, boundary->change,
					     boundary->from_value, boundary->to_value, boundary->from_cell, boundary->to_cell,
					     boundary->confirmed ? "" : " unconfirmed");
	return add(investigation, finding_boundary(about, boundary), key, error);
}

/* A verdict is new when what it says is new. */
static int add_verdict(struct investigation *investigation, const struct view_investigation *about,
		       const struct view_boundaries *boundaries, struct error *error)
{
	struct view_first_bad first_bad;
	json_t *evidence = NULL;
	if (view_first_bad(connection(investigation), about->name, &first_bad, error) < 0)
		return -1;
	if (view_evidence(connection(investigation), about->name, &evidence, error) < 0) {
		view_first_bad_clear(&first_bad);
		return -1;
	}
	json_t *judged = evidence != NULL ? verdict_judge(evidence, about->file) : NULL;
	json_t *finding = finding_verdict(about, &first_bad, boundaries, judged);
	json_decref(judged);
	json_decref(evidence);
	struct digest digest;
	digest_start(&digest);
	digest_add(&digest, "title", json_string_value(json_object_get(finding, "title")));
	digest_add(&digest, "text", json_string_value(json_object_get(finding, "text")));
	cleanup_free char *hash = digest_finish(&digest);
	cleanup_free char *key = text_format("verdict %.16s", hash);
	view_first_bad_clear(&first_bad);
	return add(investigation, finding, key, error);
}

int investigation_record_end(struct investigation *investigation, struct error *error)
{
	const char *name = investigation->setup.config->name;
	struct view_investigation about;
	struct view_boundaries boundaries = {0};
	int result = add_first_bad(investigation, error);
	if (result < 0 || view_investigation(connection(investigation), name, &about, error) < 0)
		return -1;
	result = view_boundaries(connection(investigation), name, &boundaries, error);
	for (size_t i = 0; result == 0 && i < boundaries.count; i++)
		result = add_boundary(investigation, &about, &boundaries.items[i], error);
	if (result == 0)
		result = add_verdict(investigation, &about, &boundaries, error);
	view_boundaries_clear(&boundaries);
	view_investigation_clear(&about);
	return result;
}
