/* A report for a terminal.  What matters most stands last, where a terminal stops. */
#include "report_format.h"

#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "markup.h"

enum { MATRIX_ROWS = 2000, PATHS = 3, EXCERPT_ROWS = 40 };

#define add_line markup_format

static const char *or_what(const char *text, const char *otherwise)
{
	return text != NULL ? text : otherwise;
}

/* "word" where it is known, with `before` in front of it; else nothing. */
static void add_part(struct str *line, const char *before, const char *text)
{
	if (text != NULL && *text != '\0')
		str_append_format(line, "%s%s", before, text);
}

static void add_heading(struct str *to, const char *heading)
{
	add_line(to, "%s", "");
	add_line(to, "%s", heading);
}

static void add_head(const struct report_model *model, struct str *to)
{
	cleanup_free char *counts = report_counts_sentence(model);
	add_heading(to, model->about.name);
	if (model->about.question != NULL)
		add_line(to, "  %s", model->about.question);
	add_line(to, "  %s", counts);
	markup_block(to, "  ", model->about.notes);
}

static void add_values(const struct view_matrix *matrix, struct str *to)
{
	bool any = false;
	for (size_t i = 0; i < matrix->axis_count; i++) {
		for (size_t j = 0; j < matrix->axes[i].count; j++) {
			const struct view_value *value = &matrix->axes[i].values[j];
			if (value->detail == NULL)
				continue;
			if (!any)
				add_heading(to, "Values");
			any = true;
			add_line(to, "  %s %s: %s", matrix->axes[i].name, value->label, value->detail);
		}
	}
}

static void add_unknowns(const struct report_model *model, struct str *to)
{
	if (model->unknown_count > 0)
		add_heading(to, "Not known");
	for (size_t i = 0; i < model->unknown_count; i++) {
		const struct report_unknown *unknown = &model->unknown[i];
		cleanup_str struct str line = {0};
		str_append_format(&line, "%lld cell%s %s", unknown->cells, unknown->cells == 1 ? "" : "s", unknown->outcome);
		if (unknown->reasons > 1)
			str_append_format(&line, " for %zu reasons, such as", unknown->reasons);
		add_part(&line, ": ", unknown->example->reason);
		add_line(to, "  %s", str_text(&line));
		add_line(to, "    %s %s", unknown->cells == 1 ? "it is" : "such as", unknown->example->combination);
	}
}

static bool has_ordered_axis(const struct view_matrix *matrix)
{
	for (size_t i = 0; i < matrix->axis_count; i++)
		if (matrix->axes[i].ordered)
			return true;
	return false;
}

static void add_boundaries(const struct report_model *model, struct str *to)
{
	const struct view_boundaries *boundaries = &model->boundaries;
	if (has_ordered_axis(&model->matrix))
		add_heading(to, "Boundaries on the ordered axes");
	for (size_t axis = 0; axis < model->matrix.axis_count; axis++) {
		const struct view_axis *along = &model->matrix.axes[axis];
		bool any = false;
		for (size_t i = 0; along->ordered && i < boundaries->count; i++) {
			const struct view_boundary *boundary = &boundaries->items[i];
			if (strcmp(boundary->axis, along->name) != 0)
				continue;
			cleanup_free char *line = finding_boundary_line(boundary);
			add_line(to, "  %s", line);
			add_line(to, "    from %s", boundary->from_combination);
			add_line(to, "    to   %s", boundary->to_combination);
			any = true;
		}
		if (along->ordered && !any)
			add_line(to, "  %s: none, good and bad are never neighbours on it", along->name);
	}
}

static void add_first_bad(const struct report_model *model, struct str *to)
{
	const struct view_first_bad *first_bad = &model->first_bad;
	add_heading(to, "First bad combination");
	if (first_bad->combination == NULL) {
		add_line(to, "  none");
		return;
	}
	cleanup_free char *confirmed = report_confirmed_sentence(first_bad);
	add_line(to, "  %s", first_bad->combination);
	add_line(to, "  %s%s%s", first_bad->outcome, first_bad->reason != NULL ? ": " : "", or_what(first_bad->reason, ""));
	if (first_bad->signature != NULL)
		add_line(to, "  it printed: %s", first_bad->signature);
	add_line(to, "  %s", confirmed);
	if (first_bad->log != NULL)
		add_line(to, "  its log: %s/%s", model->state_folder, first_bad->log);
	if (first_bad->commands != NULL) {
		add_heading(to, "To repeat it by hand");
		markup_block(to, "  ", first_bad->commands);
	}
}

/* Evidence ------------------------------------------------------------------------------------------------------------- */

static void add_violations(const struct report_model *model, struct str *to)
{
	cleanup_free char *sentence = report_audit_sentence(model);
	if (sentence == NULL)
		return;
	add_heading(to, "Promises of inline assembly");
	add_line(to, "  %s", sentence);
	for (size_t i = 0; i < model->violation_kinds; i++) {
		const struct report_violation *violation = &model->violations[i];
		cleanup_str struct str line = {0};
		str_append(&line, or_what(violation->where, "somewhere"));
		add_part(&line, " of ", violation->crate);
		add_part(&line, ", probe ", violation->probe);
		add_line(to, "  %s: %s (%zu block%s)", str_text(&line), or_what(violation->promise, or_what(violation->kind, "?")),
			 violation->blocks, violation->blocks == 1 ? "" : "s");
		if (violation->text != NULL)
			add_line(to, "    %s", violation->text);
		else if (violation->instruction != NULL)
			add_line(to, "    %s%s%s", violation->instruction, violation->what != NULL ? " changes " : "",
				 or_what(violation->what, ""));
	}
	for (size_t i = 0; i < model->unjudged_count; i++)
		add_line(to, "  not judged: %s (%zu block%s)", model->unjudged[i].reason, model->unjudged[i].blocks,
			 model->unjudged[i].blocks == 1 ? "" : "s");
}

static void add_path(const struct report_path *path, struct str *to)
{
	cleanup_str struct str line = {0};
	str_append(&line, or_what(path->function, "a function"));
	add_part(&line, ", probe ", path->probe);
	add_part(&line, ", block at ", path->where);
	add_line(to, "  %s", str_text(&line));
	for (size_t i = 0; i < path->count; i++) {
		const struct report_step *step = &path->steps[i];
		add_line(to, "    %-10s  %-12s  %s", or_what(step->role, "?"), or_what(step->address, ""),
			 or_what(step->text, "?"));
	}
	if (path->consequence != NULL)
		add_line(to, "    %s", path->consequence);
}

static void add_paths(const struct report_model *model, struct str *to)
{
	cleanup_free char *sentence = report_paths_sentence(model);
	size_t broken = report_model_paths(model, "broken");
	if (sentence == NULL)
		return;
	add_heading(to, "Paths through the program that ran");
	add_line(to, "  %s", sentence);
	for (size_t i = 0; i < broken && i < PATHS; i++)
		add_path(&model->paths[i], to);
	if (broken > PATHS)
		add_line(to, "  ... and %zu more that are broken", broken - PATHS);
}

static void add_row(const struct report_row *row, struct str *to)
{
	bool same = text_equal(row->change, "same");
	const char *mark = row->deciding ? "=>" : "  ";
	cleanup_str struct str role = {0};
	add_part(&role, "    <- ", row->role);
	if (same || text_equal(row->change, "renamed")) {
		add_line(to, "  %s %s %s%s", mark, same ? " " : "~", or_what(row->bad.text, "?"), str_text(&role));
		return;
	}
	if (row->bad.text != NULL)
		add_line(to, "  %s - %s%s", mark, row->bad.text, str_text(&role));
	if (row->good.text != NULL)
		add_line(to, "  %s + %s", mark, row->good.text);
}

static void add_assembly(const struct report_model *model, struct str *to)
{
	const struct report_neighbour *compared = report_compared(model);
	if (model->neighbour_count > 0)
		add_heading(to, "Assembly, beside the good neighbours");
	for (size_t i = 0; i < model->neighbour_count; i++) {
		cleanup_free char *sentence = report_neighbour_sentence(&model->neighbours[i]);
		add_line(to, "  %s", sentence);
	}
	if (compared == NULL)
		return;
	cleanup_free bool *shown = memory_new(compared->count + 1, sizeof *shown);
	report_excerpt(compared, EXCERPT_ROWS, shown);
	add_line(to, "  - bad, + good (%s), ~ the same with other registers, => decides", or_what(compared->combination, "?"));
	for (size_t i = 0; i < compared->count; i++) {
		if (shown[i])
			add_row(&compared->rows[i], to);
		else if (i > 0 && shown[i - 1])
			add_line(to, "       ...");
	}
}

static void add_pass(const struct report_pass *pass, struct str *to)
{
	cleanup_free char *untried = report_untried_flips(pass);
	cleanup_free char *sentence = report_pass_sentence(pass);
	if (sentence == NULL && pass->count == 0)
		return;
	add_heading(to, "The pass with which it shows");
	if (sentence != NULL)
		add_line(to, "  %s", sentence);
	for (size_t i = 0; i < pass->count; i++) {
		const struct report_flip *flip = &pass->flips[i];
		if (report_is_tried(flip))
			add_line(to, "  with %s alone: %s%s%s", or_what(flip->name, or_what(flip->flags, "?")), flip->outcome,
				 flip->reason != NULL ? ": " : "", or_what(flip->reason, ""));
	}
	if (untried != NULL)
		add_line(to, "  not tried: %s", untried);
}

static void add_twins(const struct report_model *model, struct str *to)
{
	if (model->twin_count > 0)
		add_heading(to, "Twins: one edit, nothing else changed");
	for (size_t i = 0; i < model->twin_count; i++) {
		const struct report_twin *twin = &model->twins[i];
		add_line(to, "  %s: %s%s%s", or_what(twin->name, "?"), or_what(twin->outcome, "not tried"),
			 twin->reason != NULL ? ": " : "", or_what(twin->reason, ""));
		add_line(to, "    in %s", twin->where);
		markup_block(to, "    ", twin->edits);
	}
}

static void add_evidence(const struct report_model *model, struct str *to)
{
	if (model->evidence == NULL || model->first_bad.combination == NULL)
		return;
	cleanup_free char *sentence = report_build_sentence(model);
	add_heading(to, "Evidence");
	add_line(to, "  %s", sentence);
	for (size_t i = 0; i < model->not_done.count; i++)
		add_line(to, "  not found out: %s", model->not_done.items[i]);
	add_violations(model, to);
	add_paths(model, to);
	add_assembly(model, to);
	add_pass(&model->pass, to);
	add_twins(model, to);
}

static void add_verdict(const struct report_model *model, struct str *to)
{
	if (model->verdict == NULL && model->said_title == NULL)
		return;
	add_heading(to, "Verdict");
	if (model->verdict == NULL) {
		add_line(to, "  %s", model->said_title);
		markup_block(to, "  ", model->said_text);
		return;
	}
	add_line(to, "  %s", or_what(model->title, model->verdict));
	for (size_t i = 0; i < model->fix_count; i++)
		add_line(to, "  fixed by %s=%s%s%s", or_what(model->fixes[i].axis, "?"), or_what(model->fixes[i].value, "?"),
			 model->fixes[i].detail != NULL ? ": " : "", or_what(model->fixes[i].detail, ""));
	for (size_t i = 0; i < model->reason_count; i++)
		add_line(to, "  %-13s  %s: %s", report_holds(model->reasons[i].holds), or_what(model->reasons[i].rule, "?"),
			 or_what(model->reasons[i].text, "?"));
	if (model->missing_count > 0)
		add_heading(to, "What is missing");
	for (size_t i = 0; i < model->missing_count; i++) {
		add_line(to, "  %s", model->missing[i].text);
		markup_block(to, "    ", model->missing[i].command);
	}
}

static void add_rest(const struct report_model *model, struct str *to)
{
	if (model->deliveries.count > 0)
		add_heading(to, "Webhook deliveries");
	for (size_t i = 0; i < model->deliveries.count; i++)
		add_line(to, "  %s", model->deliveries.items[i]);
	add_heading(to, "Database");
	add_line(to, "  sqlite3 %s/bisectd.db 'SELECT * FROM first_bad'", model->state_folder);
	if (model->sandboxes != NULL)
		add_line(to, "  attempts ran under: %s", model->sandboxes);
}

static void add_investigation(const struct report_model *model, struct str *to)
{
	add_head(model, to);
	if (model->matrix.axis_count > 0) {
		add_heading(to, "Matrix");
		report_matrix_rows(&model->matrix, "  ", MATRIX_ROWS, to);
		report_matrix_legend(&model->matrix, "  ", to);
	}
	add_values(&model->matrix, to);
	add_unknowns(model, to);
	add_boundaries(model, to);
	add_first_bad(model, to);
	add_evidence(model, to);
	add_verdict(model, to);
	add_rest(model, to);
}

void report_text(const struct report_model *models, size_t count, const char *links, struct str *to)
{
	(void)links;
	for (size_t i = 0; i < count; i++)
		add_investigation(&models[i], to);
}
