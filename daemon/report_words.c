/* What the formats of a report share: sentences over the model, and which rows of a comparison are worth showing. */
#include "report_format.h"

#include <stdlib.h>
#include <string.h>

const char *report_mark(int flag, const char *yes, const char *no, const char *unknown)
{
	return flag > 0 ? yes : flag == 0 ? no : unknown;
}

const char *report_holds(int holds)
{
	return report_mark(holds, "holds", "does not hold", "not known");
}

char *report_counts_sentence(const struct report_model *model)
{
	const struct view_investigation *about = &model->about;
	return text_format("%lld cell%s, %lld decided: %lld good, %lld bad (%s)", about->cells, about->cells == 1 ? "" : "s",
			   about->decided, about->good, about->bad, about->state);
}

char *report_confirmed_sentence(const struct view_first_bad *first_bad)
{
	return text_format("%s; %s",
			   first_bad->confirmed ? "confirmed by a clean build and further runs" : "not confirmed by a clean build",
			   first_bad->final ? "no earlier combination can take its place"
					    : "provisional: earlier combinations are not decided");
}

char *report_build_sentence(const struct report_model *model)
{
	if (!text_equal(model->build_outcome, "pass"))
		return text_format("Not gathered%s%s", model->build_reason != NULL ? ": " : "",
				   model->build_reason != NULL ? model->build_reason : "");
	struct str text = {0};
	str_append_format(&text, "Gathered from a build of the bad cell with debug information; its program ended with %s",
			  model->build_run != NULL ? model->build_run : "an outcome that is not known");
	str_append(&text, report_mark(model->same_text, ", and its code is that of the program that ran before",
				      ", and its code is not that of the program that ran before", ""));
	return str_steal(&text);
}

char *report_audit_sentence(const struct report_model *model)
{
	if (!model->audited)
		return NULL;
	return text_format("%lld block%s of inline assembly, %lld judged, %lld could not be judged, %lld broken promise%s",
			   model->blocks, model->blocks == 1 ? "" : "s", model->judged_blocks, model->not_judged_blocks,
			   model->violation_count, model->violation_count == 1 ? "" : "s");
}

char *report_paths_sentence(const struct report_model *model)
{
	if (model->path_count == 0)
		return NULL;
	size_t broken = report_model_paths(model, "broken");
	size_t sleeping = report_model_paths(model, "sleeping");
	return text_format(
		"%zu broken (what the block destroys is read), %zu sleeping (the promise is broken, and nothing reads it "
		"here), %zu not known",
		broken, sleeping, model->path_count - broken - sleeping);
}

char *report_pass_sentence(const struct report_pass *pass)
{
	if (pass->pass != NULL)
		return text_format("Good up to pass %lld of %lld, bad from pass %lld on: %s on %s", pass->number - 1, pass->passes,
				   pass->number, pass->pass, pass->unit != NULL ? pass->unit : "a unit that is not known");
	const char *reason = pass->trouble != NULL ? pass->trouble : pass->reason;
	if (pass->outcome == NULL && reason == NULL)
		return NULL;
	return text_format("No pass could be named%s%s", reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

char *report_neighbour_sentence(const struct report_neighbour *neighbour)
{
	struct str text = {0};
	if (neighbour->axis != NULL)
		str_append_format(&text, "%s=%s (bad: %s)", neighbour->axis, neighbour->value != NULL ? neighbour->value : "?",
				  neighbour->bad_value != NULL ? neighbour->bad_value : "?");
	else
		str_append(&text, neighbour->combination != NULL ? neighbour->combination : "a good combination");
	if (neighbour->symbol != NULL && neighbour->summary != NULL)
		str_append_format(&text, ": %s: %s", neighbour->symbol, neighbour->summary);
	else if (neighbour->symbol != NULL)
		str_append_format(&text, ": %s, %lld line%s changed, %lld only by names of registers", neighbour->symbol,
				  neighbour->changed, neighbour->changed == 1 ? "" : "s", neighbour->renamed);
	else
		str_append_format(&text, ": not compared%s%s", neighbour->reason != NULL ? ": " : "",
				  neighbour->reason != NULL ? neighbour->reason : "");
	return str_steal(&text);
}

const struct report_neighbour *report_compared(const struct report_model *model)
{
	const struct report_neighbour *best = NULL;
	for (size_t i = 0; i < model->neighbour_count; i++) {
		const struct report_neighbour *one = &model->neighbours[i];
		if (one->count == 0)
			continue;
		if (best == NULL || one->has_step > best->has_step ||
		    (one->has_step == best->has_step && one->changed < best->changed))
			best = one;
	}
	return best;
}

char *report_untried_flips(const struct report_pass *pass)
{
	cleanup_str struct str text = {0};
	for (size_t i = 0; i < pass->count; i++)
		if (!report_is_tried(&pass->flips[i]))
			str_append_format(&text, "%s%s", text.length > 0 ? ", " : "",
					  pass->flips[i].name != NULL ? pass->flips[i].name : "?");
	if (text.length == 0)
		return NULL;
	return str_steal(&text);
}

bool report_is_tried(const struct report_flip *flip)
{
	return flip->outcome != NULL && !text_equal(flip->outcome, "skip");
}

/* Marks rows around each one that is `wanted`, until `most` are marked. */
static size_t mark_around(const struct report_neighbour *neighbour, bool steps, size_t around, size_t most, size_t marked,
			  bool *shown)
{
	for (size_t i = 0; i < neighbour->count; i++) {
		const struct report_row *row = &neighbour->rows[i];
		bool differs = !text_equal(row->change, "same") && !text_equal(row->change, "renamed");
		if (!(steps ? row->deciding : differs))
			continue;
		size_t from = i > around ? i - around : 0;
		for (size_t j = from; j <= i + around && j < neighbour->count && marked < most; j++) {
			marked += !shown[j];
			shown[j] = true;
		}
	}
	return marked;
}

size_t report_excerpt(const struct report_neighbour *neighbour, size_t most, bool *shown)
{
	memset(shown, 0, neighbour->count * sizeof *shown);
	size_t marked = mark_around(neighbour, true, 6, most, 0, shown);
	if (marked == 0)
		marked = mark_around(neighbour, false, 2, most, marked, shown);
	for (size_t i = 0; marked == 0 && i < neighbour->count && i < most; i++)
		shown[i] = true;
	return marked;
}
