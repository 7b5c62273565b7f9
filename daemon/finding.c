/* See finding.h. */
#include "finding.h"

#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "str.h"

/* What is no UTF-8 is replaced: a finding is not lost by it. */
static json_t *text_json(const char *text)
{
	cleanup_free char *valid = markup_utf8(text);
	return json_string(valid);
}

static json_t *text_or_null(const char *text)
{
	return text != NULL ? text_json(text) : json_null();
}

/* `title` is shown as one line. */
static json_t *start(const struct view_investigation *investigation, const char *event, const char *title, const struct str *text,
		     const struct str *markdown)
{
	json_t *finding = json_object();
	cleanup_str struct str line = {0};
	markup_line(&line, title);
	json_object_set_new(finding, "event", json_string(event));
	json_object_set_new(finding, "investigation", text_json(investigation->name));
	json_object_set_new(finding, "question", text_or_null(investigation->question));
	json_object_set_new(finding, "title", json_string(str_text(&line)));
	json_object_set_new(finding, "text", json_string(str_text(text)));
	json_object_set_new(finding, "markdown", json_string(str_text(markdown)));
	return finding;
}

static const struct view_value *value_at(const struct view_matrix *matrix, size_t axis, long long walk_index)
{
	const struct view_axis *along = &matrix->axes[axis];
	return &along->values[(size_t)walk_index / along->stride % along->count];
}

static json_t *values_to_json(const struct view_matrix *matrix, long long walk_index)
{
	json_t *values = json_object();
	for (size_t i = 0; i < matrix->axis_count; i++) {
		const struct view_value *value = value_at(matrix, i, walk_index);
		cleanup_free char *name = markup_utf8(matrix->axes[i].name);
		json_object_set_new(
			values, name,
			json_pack("{s:o, s:o}", "label", text_json(value->label), "identity", text_json(value->identity)));
	}
	return values;
}

json_t *finding_first_bad(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			  const struct view_matrix *matrix)
{
	cleanup_str struct str text = {0};
	cleanup_str struct str markdown = {0};
	cleanup_free char *title = text_format("%s: first bad combination: %s", investigation->name, first_bad->combination);
	markup_format(&text, "Outcome: %s%s%s", first_bad->outcome, first_bad->reason != NULL ? ", " : "",
		      first_bad->reason != NULL ? first_bad->reason : "");
	if (first_bad->signature != NULL)
		markup_format(&text, "It printed: %s", first_bad->signature);
	const char *confirmed =
		first_bad->confirmed ? "Confirmed by a clean build and further runs" : "Not confirmed by a clean build";
	const char *final = first_bad->final ? "every earlier combination in walk order is decided"
					     : "earlier combinations could not be decided, so an earlier one may be bad too";
	markup_format(&text, "%s; %s.", confirmed, final);
	str_append(&markdown, "### First bad combination of ");
	markup_markdown_code(&markdown, investigation->name);
	str_append(&markdown, "\n\n| axis | value |\n| --- | --- |\n");
	for (size_t i = 0; i < matrix->axis_count; i++) {
		str_append(&markdown, "| ");
		markup_markdown(&markdown, matrix->axes[i].name);
		str_append(&markdown, " | ");
		markup_markdown_code(&markdown, value_at(matrix, i, first_bad->walk_index)->label);
		str_append(&markdown, " |\n");
	}
	str_append_format(&markdown, "\nOutcome: %s", first_bad->outcome);
	if (first_bad->reason != NULL) {
		str_append(&markdown, ", ");
		markup_markdown(&markdown, first_bad->reason);
	}
	if (first_bad->signature != NULL) {
		str_append(&markdown, "\nIt printed: ");
		markup_markdown_code(&markdown, first_bad->signature);
	}
	str_append_format(&markdown, "\n%s; %s.\n", confirmed, final);
	if (first_bad->commands != NULL) {
		str_append(&text, "To repeat it by hand:\n");
		markup_block(&text, "", first_bad->commands);
		str_append(&markdown, "\nTo repeat it by hand:\n\n");
		markup_markdown_fence(&markdown, "sh", first_bad->commands);
	}
	json_t *finding = start(investigation, "first-bad", title, &text, &markdown);
	json_object_set_new(finding, "final", json_boolean(first_bad->final));
	json_object_set_new(finding, "confirmed", json_boolean(first_bad->confirmed));
	json_object_set_new(finding, "combination", text_json(first_bad->combination));
	json_object_set_new(finding, "values", values_to_json(matrix, first_bad->walk_index));
	json_object_set_new(finding, "outcome", text_json(first_bad->outcome));
	json_object_set_new(finding, "reason", text_or_null(first_bad->reason));
	json_object_set_new(finding, "signature", text_or_null(first_bad->signature));
	json_object_set_new(finding, "commands", text_or_null(first_bad->commands));
	json_object_set_new(finding, "log", text_or_null(first_bad->log));
	json_object_set_new(finding, "cell", json_string(first_bad->cell_key));
	return finding;
}

char *finding_boundary_line(const struct view_boundary *boundary)
{
	struct str line = {0};
	str_append_format(&line, "%s: %s by %s", boundary->axis, boundary->change, boundary->to_value);
	if (boundary->to_detail != NULL)
		str_append_format(&line, " (%s)", boundary->to_detail);
	str_append_format(&line, ", %s is still %s", boundary->from_value, strcmp(boundary->change, "fixed") == 0 ? "bad" : "good");
	if (boundary->gap > 0)
		str_append_format(&line, ", %lld value%s between them not tried or without evidence", boundary->gap,
				  boundary->gap == 1 ? "" : "s");
	str_append_format(&line, "; %lld pair%s of cells%s", boundary->pairs, boundary->pairs == 1 ? "" : "s",
			  boundary->confirmed ? ", confirmed by clean builds" : ", not confirmed");
	return str_steal(&line);
}

json_t *finding_boundary(const struct view_investigation *investigation, const struct view_boundary *boundary)
{
	bool fixed = strcmp(boundary->change, "fixed") == 0;
	cleanup_str struct str text = {0};
	cleanup_str struct str markdown = {0};
	cleanup_free char *line = finding_boundary_line(boundary);
	cleanup_free char *title = text_format("%s: %s between %s and %s on %s", investigation->name, boundary->change,
					       boundary->from_value, boundary->to_value, boundary->axis);
	const char *before = fixed ? "last bad" : "last good";
	const char *after = fixed ? "first good" : "first bad";
	markup_format(&text, "%s", line);
	markup_format(&text, "%s: %s", before, boundary->from_combination);
	markup_format(&text, "%s: %s", after, boundary->to_combination);
	str_append(&markdown, "### Boundary of ");
	markup_markdown_code(&markdown, investigation->name);
	str_append(&markdown, "\n\n");
	markup_markdown(&markdown, line);
	str_append_format(&markdown, "\n\n- %s: ", before);
	markup_markdown_code(&markdown, boundary->from_combination);
	str_append_format(&markdown, "\n- %s: ", after);
	markup_markdown_code(&markdown, boundary->to_combination);
	str_append(&markdown, "\n");
	json_t *finding = start(investigation, "boundary", title, &text, &markdown);
	json_object_set_new(finding, "axis", text_json(boundary->axis));
	json_object_set_new(finding, "change", text_json(boundary->change));
	json_object_set_new(finding, "from", text_json(boundary->from_value));
	json_object_set_new(finding, "to", text_json(boundary->to_value));
	json_object_set_new(finding, "from_combination", text_json(boundary->from_combination));
	json_object_set_new(finding, "to_combination", text_json(boundary->to_combination));
	json_object_set_new(finding, "gap", json_integer(boundary->gap));
	json_object_set_new(finding, "pairs", json_integer(boundary->pairs));
	json_object_set_new(finding, "confirmed", json_boolean(boundary->confirmed));
	json_object_set_new(finding, "final", json_true());
	return finding;
}

/* The verdict ---------------------------------------------------------------------------------------------------------- */

static void say_nothing_judged(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			       const struct view_boundaries *boundaries, struct str *text)
{
	if (first_bad->combination == NULL) {
		markup_format(text, "None of the %lld decided combinations is bad: there is nothing to blame anyone for.",
			      investigation->decided);
		return;
	}
	markup_format(text,
		      "%lld of %lld combinations are bad, %lld good.  The matrix shows when it fails (%zu boundar%s), not whose "
		      "fault it is: "
		      "a difference between versions, compilers or profiles alone is never grounds for blame.",
		      investigation->bad, investigation->cells, investigation->good, boundaries->count,
		      boundaries->count == 1 ? "y" : "ies");
	markup_format(
		text,
		"Missing: evidence from the bad cell itself (the inline-asm audit, the broken path, the pass, the repaired twin).");
}

static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : "";
}

/* The reasons that hold; all that are known where none does. */
static void say_reasons(const json_t *judged, struct str *text, struct str *markdown)
{
	size_t index;
	json_t *reason;
	const json_t *reasons = json_object_get(judged, "reasons");
	bool any = false;
	json_array_foreach (reasons, index, reason)
		any = any || json_is_true(json_object_get(reason, "holds"));
	json_array_foreach (reasons, index, reason) {
		const json_t *holds = json_object_get(reason, "holds");
		if (any ? !json_is_true(holds) : !json_is_boolean(holds))
			continue;
		markup_format(text, "- %s", member(reason, "text"));
		str_append(markdown, "- ");
		markup_markdown(markdown, member(reason, "text"));
		str_append(markdown, "\n");
	}
}

static void say_missing(const json_t *judged, struct str *text, struct str *markdown)
{
	size_t index;
	json_t *missing;
	json_array_foreach (json_object_get(judged, "missing"), index, missing) {
		const char *command = json_string_value(json_object_get(missing, "command"));
		markup_format(text, "Missing: %s%s%s", member(missing, "text"), command != NULL ? ": " : "",
			      command != NULL ? command : "");
		str_append(markdown, index == 0 ? "\nMissing:\n\n- " : "- ");
		markup_markdown(markdown, member(missing, "text"));
		if (command != NULL) {
			str_append(markdown, ": ");
			markup_markdown_code(markdown, command);
		}
		str_append(markdown, "\n");
	}
}

static void say_judged(const struct view_first_bad *first_bad, const json_t *judged, struct str *text, struct str *markdown)
{
	say_reasons(judged, text, markdown);
	say_missing(judged, text, markdown);
	if (first_bad->commands == NULL)
		return;
	str_append(text, "To repeat the first bad combination by hand:\n");
	markup_block(text, "", first_bad->commands);
	str_append(markdown, "\nTo repeat the first bad combination by hand:\n\n");
	markup_markdown_fence(markdown, "sh", first_bad->commands);
}

static json_t *shared_or_null(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	return value != NULL ? json_incref(value) : json_null();
}

json_t *finding_verdict(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			const struct view_boundaries *boundaries, const json_t *judged)
{
	cleanup_str struct str text = {0};
	cleanup_str struct str markdown = {0};
	const char *verdict = judged != NULL ? member(judged, "verdict") : "inconclusive";
	const char *says = judged != NULL && *member(judged, "title") != '\0' ? member(judged, "title") : verdict;
	cleanup_free char *title = text_format("%s: verdict: %s", investigation->name, says);
	str_append(&markdown, "### Verdict for ");
	markup_markdown_code(&markdown, investigation->name);
	str_append(&markdown, ": ");
	markup_markdown(&markdown, says);
	str_append(&markdown, "\n\n");
	if (judged != NULL) {
		say_judged(first_bad, judged, &text, &markdown);
	} else {
		say_nothing_judged(investigation, first_bad, boundaries, &text);
		markup_markdown(&markdown, str_text(&text));
		str_append(&markdown, "\n");
	}
	json_t *finding = start(investigation, "verdict", title, &text, &markdown);
	json_object_set_new(finding, "verdict", json_string(verdict));
	json_object_set_new(finding, "blames", shared_or_null(judged, "blames"));
	json_object_set_new(finding, "reasons", shared_or_null(judged, "reasons"));
	json_object_set_new(finding, "missing", shared_or_null(judged, "missing"));
	json_object_set_new(finding, "combination", text_or_null(first_bad->combination));
	json_object_set_new(finding, "commands", text_or_null(first_bad->commands));
	json_object_set_new(finding, "final", json_true());
	return finding;
}
