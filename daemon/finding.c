/* See finding.h. */
#include "finding.h"

#include <stdlib.h>
#include <string.h>

#include "str.h"

static json_t *text_or_null(const char *text)
{
	return text != NULL ? json_string(text) : json_null();
}

static json_t *start(const struct view_investigation *investigation, const char *event, const char *title,
		     const struct str *text, const struct str *markdown)
{
	json_t *finding = json_object();
	json_object_set_new(finding, "event", json_string(event));
	json_object_set_new(finding, "investigation", json_string(investigation->name));
	json_object_set_new(finding, "question", text_or_null(investigation->question));
	json_object_set_new(finding, "title", json_string(title));
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
		json_object_set_new(values, matrix->axes[i].name,
				    json_pack("{s:s, s:s}", "label", value->label, "identity", value->identity));
	}
	return values;
}

json_t *finding_first_bad(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			  const struct view_matrix *matrix)
{
	cleanup_str struct str text = {0};
	cleanup_str struct str markdown = {0};
	cleanup_free char *title = text_format("%s: first bad combination: %s", investigation->name, first_bad->combination);
	str_append_format(&text, "Outcome: %s%s%s\n", first_bad->outcome, first_bad->reason != NULL ? ", " : "",
			  first_bad->reason != NULL ? first_bad->reason : "");
	if (first_bad->signature != NULL)
		str_append_format(&text, "It printed: %s\n", first_bad->signature);
	str_append_format(&text, "%s; %s.\n",
			  first_bad->confirmed ? "Confirmed by a clean build and further runs" : "Not confirmed by a clean build",
			  first_bad->final ? "every earlier combination in walk order is decided"
					   : "earlier combinations could not be decided, so an earlier one may be bad too");
	str_append_format(&markdown, "### First bad combination of `%s`\n\n| axis | value |\n| --- | --- |\n", investigation->name);
	for (size_t i = 0; i < matrix->axis_count; i++)
		str_append_format(&markdown, "| %s | `%s` |\n", matrix->axes[i].name,
				  value_at(matrix, i, first_bad->walk_index)->label);
	str_append_format(&markdown, "\n%s", str_text(&text));
	if (first_bad->commands != NULL) {
		str_append_format(&text, "To repeat it by hand:\n%s\n", first_bad->commands);
		str_append_format(&markdown, "\nTo repeat it by hand:\n\n```sh\n%s\n```\n", first_bad->commands);
	}
	json_t *finding = start(investigation, "first-bad", title, &text, &markdown);
	json_object_set_new(finding, "final", json_boolean(first_bad->final));
	json_object_set_new(finding, "confirmed", json_boolean(first_bad->confirmed));
	json_object_set_new(finding, "combination", json_string(first_bad->combination));
	json_object_set_new(finding, "values", values_to_json(matrix, first_bad->walk_index));
	json_object_set_new(finding, "outcome", json_string(first_bad->outcome));
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
	str_append_format(&line, ", %s is still %s", boundary->from_value,
			  strcmp(boundary->change, "fixed") == 0 ? "bad" : "good");
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
	str_append_format(&text, "%s\n%s: %s\n%s: %s\n", line, fixed ? "last bad" : "last good", boundary->from_combination,
			  fixed ? "first good" : "first bad", boundary->to_combination);
	str_append_format(&markdown, "### Boundary of `%s`\n\n%s\n\n- %s: `%s`\n- %s: `%s`\n", investigation->name, line,
			  fixed ? "last bad" : "last good", boundary->from_combination, fixed ? "first good" : "first bad",
			  boundary->to_combination);
	json_t *finding = start(investigation, "boundary", title, &text, &markdown);
	json_object_set_new(finding, "axis", json_string(boundary->axis));
	json_object_set_new(finding, "change", json_string(boundary->change));
	json_object_set_new(finding, "from", json_string(boundary->from_value));
	json_object_set_new(finding, "to", json_string(boundary->to_value));
	json_object_set_new(finding, "from_combination", json_string(boundary->from_combination));
	json_object_set_new(finding, "to_combination", json_string(boundary->to_combination));
	json_object_set_new(finding, "gap", json_integer(boundary->gap));
	json_object_set_new(finding, "pairs", json_integer(boundary->pairs));
	json_object_set_new(finding, "confirmed", json_boolean(boundary->confirmed));
	json_object_set_new(finding, "final", json_true());
	return finding;
}

json_t *finding_verdict(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			const struct view_boundaries *boundaries)
{
	cleanup_str struct str text = {0};
	cleanup_free char *title = text_format("%s: verdict: inconclusive", investigation->name);
	if (first_bad->combination == NULL)
		str_append_format(&text, "None of the %lld decided combinations is bad: there is nothing to blame anyone for.\n",
				  investigation->decided);
	else
		str_append_format(&text,
				  "%lld of %lld combinations are bad, %lld good.  The matrix shows when it fails (%zu "
				  "boundar%s), not whose "
				  "fault it is: a difference between versions, compilers or profiles alone is never "
				  "grounds for blame.\n",
				  investigation->bad, investigation->cells, investigation->good, boundaries->count,
				  boundaries->count == 1 ? "y" : "ies");
	if (first_bad->combination != NULL)
		str_append(&text, "Missing: evidence from the bad cell itself (the inline-asm audit, the broken path, "
				  "the pass, the "
				  "repaired twin), which this version of bisectd does not gather yet.\n");
	json_t *finding = start(investigation, "verdict", title, &text, &text);
	json_object_set_new(finding, "verdict", json_string("inconclusive"));
	json_object_set_new(finding, "final", json_true());
	return finding;
}
