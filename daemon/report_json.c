/*
 * A report for programs: one JSON document, whose shape docs/report.md documents.
 *
 * Members are added between versions and never change their meaning; REPORT_JSON_VERSION is raised where that is not possible.
 * Written in ASCII, so that nothing in it can reach a terminal as a control character.
 */
#include "report_format.h"

#include <stdlib.h>
#include <string.h>

#include "markup.h"

enum { REPORT_JSON_VERSION = 1 };

static json_t *text_of(const char *text)
{
	if (text == NULL)
		return json_null();
	cleanup_free char *valid = markup_utf8(text);
	return json_string(valid);
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text_of(text));
}

static void set_number(json_t *object, const char *key, long long number)
{
	json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_flag(json_t *object, const char *key, bool flag)
{
	json_object_set_new(object, key, json_boolean(flag));
}

/* Each line of a text. */
static json_t *lines_of(const char *text)
{
	json_t *lines = json_array();
	while (text != NULL && *text != '\0') {
		size_t length = strcspn(text, "\n");
		cleanup_free char *line = text_copy_range(text, length);
		json_array_append_new(lines, text_of(line));
		text += length + (text[length] == '\n');
	}
	return lines;
}

static json_t *axes_of(const struct view_matrix *matrix)
{
	json_t *axes = json_array();
	for (size_t i = 0; i < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		json_t *values = json_array();
		json_t *object = json_object();
		for (size_t j = 0; j < axis->count; j++) {
			json_t *value = json_object();
			set_text(value, "label", axis->values[j].label);
			set_text(value, "identity", axis->values[j].identity);
			set_text(value, "detail", axis->values[j].detail);
			set_text(value, "skip_reason", axis->values[j].skip_reason);
			json_array_append_new(values, value);
		}
		set_text(object, "name", axis->name);
		set_text(object, "type", axis->type);
		set_flag(object, "ordered", axis->ordered);
		json_object_set_new(object, "values", values);
		json_array_append_new(axes, object);
	}
	return axes;
}

static json_t *outcome_of(unsigned char outcome)
{
	return outcome == OUTCOME_UNDECIDED ? json_null() : json_string(outcome_name((enum outcome)outcome));
}

/* Excluded cells are not there. */
static json_t *matrix_of(const struct view_matrix *matrix)
{
	json_t *cells = json_array();
	for (size_t i = 0; i < matrix->cell_count && matrix->axis_count > 0; i++) {
		if (matrix->outcomes[i] == VIEW_ABSENT)
			continue;
		json_t *cell = json_object();
		json_t *position = json_array();
		for (size_t j = 0; j < matrix->axis_count; j++)
			json_array_append_new(position,
					      json_integer((json_int_t)(i / matrix->axes[j].stride % matrix->axes[j].count)));
		set_number(cell, "walk_index", (long long)i);
		json_object_set_new(cell, "position", position);
		json_object_set_new(cell, "outcome", outcome_of(matrix->outcomes[i]));
		json_array_append_new(cells, cell);
	}
	return cells;
}

static json_t *unknowns_of(const struct view_unknowns *unknowns)
{
	json_t *list = json_array();
	for (size_t i = 0; i < unknowns->count; i++) {
		const struct view_unknown *unknown = &unknowns->items[i];
		json_t *object = json_object();
		set_text(object, "outcome", unknown->outcome[0] != '\0' ? unknown->outcome : NULL);
		set_text(object, "reason", unknown->reason[0] != '\0' ? unknown->reason : NULL);
		set_number(object, "cells", unknown->cells);
		set_text(object, "example", unknown->combination);
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *boundaries_of(const struct view_boundaries *boundaries)
{
	json_t *list = json_array();
	for (size_t i = 0; i < boundaries->count; i++) {
		const struct view_boundary *boundary = &boundaries->items[i];
		json_t *object = json_object();
		set_text(object, "axis", boundary->axis);
		set_text(object, "change", boundary->change);
		set_text(object, "from", boundary->from_value);
		set_text(object, "to", boundary->to_value);
		set_text(object, "to_detail", boundary->to_detail);
		set_text(object, "from_combination", boundary->from_combination);
		set_text(object, "to_combination", boundary->to_combination);
		set_number(object, "gap", boundary->gap);
		set_number(object, "pairs", boundary->pairs);
		set_flag(object, "confirmed", boundary->confirmed);
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *first_bad_of(const struct view_first_bad *first_bad)
{
	if (first_bad->combination == NULL)
		return json_null();
	json_t *object = json_object();
	set_text(object, "combination", first_bad->combination);
	set_number(object, "walk_index", first_bad->walk_index);
	set_text(object, "outcome", first_bad->outcome);
	set_text(object, "reason", first_bad->reason);
	set_text(object, "signature", first_bad->signature);
	set_flag(object, "final", first_bad->final);
	set_flag(object, "confirmed", first_bad->confirmed);
	set_text(object, "commands", first_bad->commands);
	set_text(object, "log", first_bad->log);
	set_text(object, "cell", first_bad->cell_key);
	return object;
}

static json_t *recorded_of(const struct report_model *model)
{
	if (model->said_title == NULL)
		return json_null();
	json_t *object = json_object();
	set_text(object, "title", model->said_title);
	set_text(object, "text", model->said_text);
	return object;
}

static json_t *shared(json_t *json)
{
	return json != NULL ? json_incref(json) : json_null();
}

static json_t *investigation_of(const struct report_model *model)
{
	const struct view_investigation *about = &model->about;
	json_t *object = json_object();
	json_t *cells = json_object();
	json_t *deliveries = json_array();
	for (size_t i = 0; i < model->deliveries.count; i++)
		json_array_append_new(deliveries, text_of(model->deliveries.items[i]));
	set_number(cells, "all", about->cells);
	set_number(cells, "decided", about->decided);
	set_number(cells, "good", about->good);
	set_number(cells, "bad", about->bad);
	set_text(object, "name", about->name);
	set_text(object, "question", about->question);
	set_text(object, "file", about->file);
	set_text(object, "state", about->state);
	set_text(object, "started_at", about->started_at);
	set_text(object, "finished_at", about->finished_at);
	json_object_set_new(object, "notes", lines_of(about->notes));
	json_object_set_new(object, "cells", cells);
	json_object_set_new(object, "axes", axes_of(&model->matrix));
	json_object_set_new(object, "matrix", matrix_of(&model->matrix));
	json_object_set_new(object, "not_known", unknowns_of(&model->unknowns));
	json_object_set_new(object, "boundaries", boundaries_of(&model->boundaries));
	json_object_set_new(object, "first_bad", first_bad_of(&model->first_bad));
	json_object_set_new(object, "verdict", shared(model->judged));
	json_object_set_new(object, "recorded_verdict", recorded_of(model));
	json_object_set_new(object, "evidence", shared(model->evidence));
	json_object_set_new(object, "deliveries", deliveries);
	set_text(object, "sandboxes", model->sandboxes);
	set_text(object, "state_folder", model->state_folder);
	return object;
}

/* A delete character is as good as a control character on a terminal, and jansson writes it as it is. */
static void append_ascii(struct str *to, const char *dump)
{
	for (const char *at = dump; *at != '\0';) {
		size_t length = strcspn(at, "\x7F");
		str_append_bytes(to, at, length);
		at += length;
		if (*at != '\0') {
			str_append(to, "\\u007f");
			at++;
		}
	}
	str_append(to, "\n");
}

void report_json(const struct report_model *models, size_t count, const char *links, struct str *to)
{
	json_t *investigations = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(investigations, investigation_of(&models[i]));
	json_t *document = json_pack("{s:s, s:i, s:s, s:o, s:o}", "format", "bisectd-report", "version", REPORT_JSON_VERSION,
				     "bisectd", BISECTD_VERSION, "links", text_of(links), "investigations", investigations);
	cleanup_free char *dump = json_dumps(document, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	if (dump == NULL)
		memory_exhausted();
	append_ascii(to, dump);
	json_decref(document);
}
