/*
 * A report to paste into an issue: GitHub-flavoured Markdown, the verdict first.
 *
 * Text of others stands in spans and blocks of code, or is escaped (markup.h).  Long lists are cut with a note, because an issue
 * takes 65,536 characters.
 */
#include "report_format.h"

#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "markup.h"

enum { MATRIX_ROWS = 150, LISTED = 50, PATHS = 3, EXCERPT_ROWS = 60 };

static void add(struct str *to, const char *before, const char *text)
{
	str_append(to, before);
	markup_markdown(to, text);
}

static void add_code(struct str *to, const char *before, const char *text)
{
	str_append(to, before);
	markup_markdown_code(to, text != NULL ? text : "?");
}

/* A row of a table; `kinds` has a letter for each cell: 'c' code, 't' prose. */
static void add_row(struct str *to, const char *kinds, const char *const *cells)
{
	str_append(to, "|");
	for (size_t i = 0; kinds[i] != '\0'; i++) {
		str_append(to, " ");
		if (cells[i] != NULL && *cells[i] != '\0')
			(kinds[i] == 'c' ? markup_markdown_code : markup_markdown)(to, cells[i]);
		str_append(to, " |");
	}
	str_append(to, "\n");
}

static void add_more(struct str *to, size_t all, size_t shown)
{
	if (all > shown)
		str_append_format(to, "\n... and %zu more.\n", all - shown);
}

static void add_verdict(const struct report_model *model, struct str *to)
{
	if (model->verdict == NULL && model->said_title == NULL)
		return;
	const char *title = model->verdict == NULL ? model->said_title : model->title != NULL ? model->title : model->verdict;
	add(to, "\n### Verdict: ", title);
	str_append(to, "\n");
	if (model->verdict == NULL) {
		add(to, "\n", model->said_text);
		str_append(to, "\n");
	}
	for (size_t i = 0; i < model->fix_count; i++) {
		const struct report_fix *fix = &model->fixes[i];
		add_code(to, "\nFixed by ", fix->value);
		add(to, " on ", fix->axis);
		if (fix->detail != NULL)
			add(to, ": ", fix->detail);
		str_append(to, "\n");
	}
	if (model->reason_count > 0)
		str_append(to, "\n| rule | | why |\n| --- | --- | --- |\n");
	for (size_t i = 0; i < model->reason_count; i++)
		add_row(to, "ctt",
			(const char *[]){model->reasons[i].rule, report_holds(model->reasons[i].holds), model->reasons[i].text});
	if (model->missing_count > 0)
		str_append(to, "\nWhat is missing:\n\n");
	for (size_t i = 0; i < model->missing_count; i++) {
		add(to, "- ", model->missing[i].text);
		if (model->missing[i].command != NULL)
			add_code(to, ": ", model->missing[i].command);
		str_append(to, "\n");
	}
}

static void add_first_bad(const struct report_model *model, struct str *to)
{
	const struct view_first_bad *first_bad = &model->first_bad;
	const struct view_matrix *matrix = &model->matrix;
	str_append(to, "\n### First bad combination\n\n");
	if (first_bad->combination == NULL) {
		str_append(to, "None.\n");
		return;
	}
	str_append(to, "| axis | value |\n| --- | --- |\n");
	for (size_t i = 0; i < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		const struct view_value *value = &axis->values[(size_t)first_bad->walk_index / axis->stride % axis->count];
		add_row(to, "tc", (const char *[]){axis->name, value->label});
	}
	cleanup_free char *confirmed = report_confirmed_sentence(first_bad);
	add(to, "\n", first_bad->outcome);
	if (first_bad->reason != NULL)
		add_code(to, ": ", first_bad->reason);
	if (first_bad->signature != NULL)
		add_code(to, "; it printed ", first_bad->signature);
	add(to, ". This is ", confirmed);
	str_append(to, ".\n");
	if (first_bad->commands != NULL) {
		str_append(to, "\nTo repeat it by hand:\n\n");
		markup_markdown_fence(to, "sh", first_bad->commands);
	}
}

static void add_matrix(const struct report_model *model, struct str *to)
{
	if (model->matrix.axis_count == 0)
		return;
	cleanup_str struct str block = {0};
	report_matrix_rows(&model->matrix, "", MATRIX_ROWS, &block);
	report_matrix_legend(&model->matrix, "", &block);
	str_append(to, "\n### Matrix\n\n");
	markup_markdown_fence(to, "text", str_text(&block));
}

static void add_unknowns(const struct report_model *model, struct str *to)
{
	if (model->unknown_count > 0)
		str_append(
			to,
			"\n### Not known\n\n| cells | outcome | reasons | such as | because |\n| --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < model->unknown_count; i++) {
		const struct report_unknown *unknown = &model->unknown[i];
		cleanup_free char *cells = text_format("%lld", unknown->cells);
		cleanup_free char *reasons = text_format("%zu", unknown->reasons);
		add_row(to, "tttcc",
			(const char *[]){cells, unknown->outcome, reasons, unknown->example->combination,
					 unknown->example->reason});
	}
}

static void add_boundaries(const struct report_model *model, struct str *to)
{
	const struct view_boundaries *boundaries = &model->boundaries;
	if (boundaries->count > 0)
		str_append(to, "\n### Boundaries on the ordered axes\n\n");
	for (size_t i = 0; i < boundaries->count && i < LISTED; i++) {
		const struct view_boundary *boundary = &boundaries->items[i];
		cleanup_free char *line = finding_boundary_line(boundary);
		add(to, "- ", line);
		add_code(to, "\n  - from ", boundary->from_combination);
		add_code(to, "\n  - to ", boundary->to_combination);
		str_append(to, "\n");
	}
	add_more(to, boundaries->count, LISTED);
}

/* Evidence ------------------------------------------------------------------------------------------------------------- */

static void add_violations(const struct report_model *model, struct str *to)
{
	cleanup_free char *sentence = report_audit_sentence(model);
	if (sentence == NULL)
		return;
	add(to, "\n#### Promises of inline assembly\n\n", sentence);
	str_append(to, ".\n");
	if (model->violation_kinds > 0)
		str_append(to, "\n| crate | place | probe | promise | instruction | what it does | blocks |\n"
			       "| --- | --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < model->violation_kinds && i < LISTED; i++) {
		const struct report_violation *violation = &model->violations[i];
		cleanup_free char *blocks = text_format("%zu", violation->blocks);
		add_row(to, "ccccctt",
			(const char *[]){violation->crate, violation->where, violation->probe,
					 violation->promise != NULL ? violation->promise : violation->kind, violation->instruction,
					 violation->text != NULL ? violation->text : violation->what, blocks});
	}
	add_more(to, model->violation_kinds, LISTED);
	for (size_t i = 0; i < model->unjudged_count && i < LISTED; i++) {
		str_append_format(to, "%s- %zu not judged", i == 0 ? "\n" : "", model->unjudged[i].blocks);
		add_code(to, ": ", model->unjudged[i].reason);
		str_append(to, "\n");
	}
}

static void add_paths(const struct report_model *model, struct str *to)
{
	cleanup_free char *sentence = report_paths_sentence(model);
	size_t broken = report_model_paths(model, "broken");
	if (sentence == NULL)
		return;
	add(to, "\n#### Paths through the program that ran\n\n", sentence);
	str_append(to, ".\n");
	for (size_t i = 0; i < broken && i < PATHS; i++) {
		const struct report_path *path = &model->paths[i];
		cleanup_str struct str block = {0};
		for (size_t j = 0; j < path->count; j++)
			markup_format(&block, "%-12s  %-32s ; %s", path->steps[j].address != NULL ? path->steps[j].address : "",
				      path->steps[j].text != NULL ? path->steps[j].text : "?",
				      path->steps[j].role != NULL ? path->steps[j].role : "?");
		add_code(to, "\nIn ", path->function);
		if (path->where != NULL)
			add_code(to, ", block at ", path->where);
		add(to, ": ", path->consequence != NULL ? path->consequence : path->text);
		str_append(to, "\n\n");
		markup_markdown_fence(to, "asm", str_text(&block));
	}
	add_more(to, broken, PATHS);
}

static void add_difference(const struct report_neighbour *compared, struct str *to)
{
	cleanup_free bool *shown = memory_new(compared->count + 1, sizeof *shown);
	cleanup_str struct str block = {0};
	report_excerpt(compared, EXCERPT_ROWS, shown);
	for (size_t i = 0; i < compared->count; i++) {
		const struct report_row *row = &compared->rows[i];
		bool same = text_equal(row->change, "same") || text_equal(row->change, "renamed");
		if (!shown[i]) {
			if (i > 0 && shown[i - 1])
				markup_format(&block, " ...");
			continue;
		}
		const char *role = row->role != NULL ? row->role : "";
		const char *mark = row->role != NULL ? "    ; <- " : "";
		if (row->bad.text != NULL)
			markup_format(&block, "%s%s%s%s", same ? " " : "-", row->bad.text, mark, role);
		if (row->good.text != NULL && !same)
			markup_format(&block, "+%s", row->good.text);
	}
	add_code(to, "\nFrom the bad (`-`) to the good (`+`) ", compared->combination);
	str_append(to, ":\n\n");
	markup_markdown_fence(to, "diff", str_text(&block));
}

static void add_assembly(const struct report_model *model, struct str *to)
{
	const struct report_neighbour *compared = report_compared(model);
	if (model->neighbour_count > 0)
		str_append(to, "\n#### Assembly, beside the good neighbours\n\n");
	for (size_t i = 0; i < model->neighbour_count && i < LISTED; i++) {
		cleanup_free char *sentence = report_neighbour_sentence(&model->neighbours[i]);
		add(to, "- ", sentence);
		str_append(to, "\n");
	}
	if (compared != NULL)
		add_difference(compared, to);
}

static void add_pass(const struct report_pass *pass, struct str *to)
{
	cleanup_free char *untried = report_untried_flips(pass);
	cleanup_free char *sentence = report_pass_sentence(pass);
	if (sentence == NULL && pass->count == 0)
		return;
	str_append(to, "\n#### The pass with which it shows\n");
	if (sentence != NULL) {
		add(to, "\n", sentence);
		str_append(to, ".\n");
	}
	bool any = false;
	for (size_t i = 0; i < pass->count && i < LISTED; i++) {
		const struct report_flip *flip = &pass->flips[i];
		if (!report_is_tried(flip))
			continue;
		if (!any)
			str_append(to, "\n| one change | outcome | why |\n| --- | --- | --- |\n");
		any = true;
		add_row(to, "ctt", (const char *[]){flip->flags != NULL ? flip->flags : flip->name, flip->outcome, flip->reason});
	}
	if (untried != NULL) {
		add(to, "\nNot tried: ", untried);
		str_append(to, ".\n");
	}
}

static void add_twins(const struct report_model *model, struct str *to)
{
	if (model->twin_count > 0)
		str_append(to, "\n#### Twins: one edit, nothing else changed\n");
	for (size_t i = 0; i < model->twin_count && i < LISTED; i++) {
		const struct report_twin *twin = &model->twins[i];
		add_code(to, "\n", twin->name);
		add(to, ": ", twin->outcome != NULL ? twin->outcome : "not tried");
		if (twin->reason != NULL)
			add(to, ", ", twin->reason);
		add_code(to, " (in ", twin->where);
		str_append(to, ")\n\n");
		if (twin->edits != NULL)
			markup_markdown_fence(to, "diff", twin->edits);
	}
}

static void add_evidence(const struct report_model *model, struct str *to)
{
	if (model->evidence == NULL || model->first_bad.combination == NULL)
		return;
	cleanup_free char *sentence = report_build_sentence(model);
	add(to, "\n### Evidence\n\n", sentence);
	str_append(to, ".\n");
	for (size_t i = 0; i < model->not_done.count && i < LISTED; i++) {
		add(to, i == 0 ? "\n- Not found out: " : "- Not found out: ", model->not_done.items[i]);
		str_append(to, "\n");
	}
	add_violations(model, to);
	add_paths(model, to);
	add_assembly(model, to);
	add_pass(&model->pass, to);
	add_twins(model, to);
}

static void add_notes(const char *notes, struct str *to)
{
	while (*notes != '\0') {
		size_t length = strcspn(notes, "\n");
		cleanup_free char *note = text_copy_range(notes, length);
		add(to, "\n> ", note);
		notes += length + (notes[length] == '\n');
	}
	str_append(to, "\n");
}

void report_markdown(const struct report_model *models, size_t count, const char *links, struct str *to)
{
	(void)links;
	for (size_t i = 0; i < count; i++) {
		const struct report_model *model = &models[i];
		cleanup_free char *counts = report_counts_sentence(model);
		add(to, i > 0 ? "\n## " : "## ", model->about.name);
		str_append(to, "\n");
		if (model->about.question != NULL) {
			add(to, "\n", model->about.question);
			str_append(to, "\n");
		}
		add(to, "\n", counts);
		str_append(to, ".\n");
		if (model->about.notes != NULL && model->about.notes[0] != '\0')
			add_notes(model->about.notes, to);
		add_verdict(model, to);
		add_first_bad(model, to);
		add_matrix(model, to);
		add_boundaries(model, to);
		add_unknowns(model, to);
		add_evidence(model, to);
	}
	str_append(to, "\nMade by bisectd " BISECTD_VERSION ".\n");
}
