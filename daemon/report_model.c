/* See report_model.h. */
#include "report_model.h"

#include <stdlib.h>
#include <string.h>

#include "verdict.h"

/* Reasons often name paths of their own, so they are counted by outcome; every one of them is in `unknowns`. */
static void group_unknowns(struct report_model *model)
{
	const struct view_unknowns *unknowns = &model->unknowns;
	model->unknown = memory_new(unknowns->count + 1, sizeof *model->unknown);
	for (size_t i = 0; i < unknowns->count; i++) {
		const struct view_unknown *one = &unknowns->items[i];
		const char *outcome = one->outcome[0] != '\0' ? one->outcome : "not tried";
		size_t at = 0;
		while (at < model->unknown_count && strcmp(model->unknown[at].outcome, outcome) != 0)
			at++;
		if (at == model->unknown_count)
			model->unknown[model->unknown_count++] = (struct report_unknown){.outcome = outcome, .example = one};
		model->unknown[at].cells += one->cells;
		model->unknown[at].reasons += one->reason[0] != '\0';
	}
}

void report_model_take(struct report_model *model, json_t *evidence, json_t *judged)
{
	model->evidence = evidence;
	model->judged = judged;
	report_evidence_read(model);
}

static int load_views(struct report_model *model, struct sql *sql, const char *investigation, struct error *error)
{
	if (view_investigation(sql, investigation, &model->about, error) < 0)
		return -1;
	if (model->about.name == NULL)
		return error_set(error, "there is no investigation \"%s\" in %s", investigation, model->state_folder);
	if (view_first_bad(sql, investigation, &model->first_bad, error) < 0 ||
	    view_boundaries(sql, investigation, &model->boundaries, error) < 0 ||
	    view_matrix(sql, investigation, &model->matrix, error) < 0 ||
	    view_unknowns(sql, investigation, &model->unknowns, error) < 0 ||
	    view_deliveries(sql, investigation, &model->deliveries, error) < 0 ||
	    view_verdict(sql, investigation, &model->said_title, &model->said_text, error) < 0)
		return -1;
	return view_sandboxes(sql, investigation, &model->sandboxes, error);
}

/* A database that an older bisectd wrote, and that none has opened for writing since, has no such view: nothing was gathered. */
static int load_evidence(struct report_model *model, struct sql *sql, json_t **evidence, struct error *error)
{
	long long count;
	*evidence = NULL;
	if (sql_number(sql, &count, 0, error, "SELECT count(*) FROM sqlite_master WHERE name = 'evidence'", "") < 0)
		return -1;
	if (count > 0)
		return view_evidence(sql, model->about.name, evidence, error);
	if (model->first_bad.combination != NULL)
		*evidence = json_object();
	return 0;
}

int report_model_load(struct report_model *model, struct sql *sql, const char *investigation, const char *state_folder,
		      struct error *error)
{
	json_t *evidence;
	*model = (struct report_model){.state_folder = text_copy(state_folder), .same_text = -1};
	if (load_views(model, sql, investigation, error) < 0 || load_evidence(model, sql, &evidence, error) < 0)
		return -1;
	group_unknowns(model);
	report_model_take(model, evidence, evidence != NULL ? verdict_judge(evidence, model->about.file) : NULL);
	return 0;
}

void report_model_clear(struct report_model *model)
{
	report_evidence_clear(model);
	free(model->unknown);
	view_unknowns_clear(&model->unknowns);
	view_matrix_clear(&model->matrix);
	view_boundaries_clear(&model->boundaries);
	view_first_bad_clear(&model->first_bad);
	view_investigation_clear(&model->about);
	strlist_clear(&model->deliveries);
	strlist_clear(&model->pool);
	free(model->said_title);
	free(model->said_text);
	free(model->sandboxes);
	free(model->state_folder);
	json_decref(model->evidence);
	json_decref(model->judged);
	*model = (struct report_model){0};
}
