/* See view.h. */
#include "view.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const struct sql_statement *row, int column)
{
	return text_copy(sql_text(row, column));
}

void view_investigation_clear(struct view_investigation *investigation)
{
	free(investigation->name);
	free(investigation->state);
	free(investigation->question);
	free(investigation->file);
	free(investigation->notes);
	free(investigation->started_at);
	free(investigation->finished_at);
	*investigation = (struct view_investigation){0};
}

int view_investigation(struct sql *sql, const char *name, struct view_investigation *investigation, struct error *error)
{
	struct sql_statement *row;
	*investigation = (struct view_investigation){0};
	if (sql_start(sql, &row, error,
		      "SELECT v.name, v.state, v.question, i.notes, v.started_at, v.finished_at, v.cells, v.decided, v.bad, "
		      "v.good, i.file FROM investigations v JOIN investigation i ON i.name = v.name WHERE v.name = ?",
		      "t", name) < 0)
		return -1;
	int got = sql_next(row, error);
	if (got < 1)
		return got;
	*investigation = (struct view_investigation){
		.name = copy(row, 0),
		.state = copy(row, 1),
		.question = copy(row, 2),
		.notes = copy(row, 3),
		.started_at = copy(row, 4),
		.finished_at = copy(row, 5),
		.cells = sql_integer(row, 6),
		.decided = sql_integer(row, 7),
		.bad = sql_integer(row, 8),
		.good = sql_integer(row, 9),
		.file = copy(row, 10),
	};
	sql_finish(row);
	return 0;
}

int view_names(struct sql *sql, struct strlist *names, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error, "SELECT name FROM investigation ORDER BY id", "") < 0)
		return -1;
	int got;
	while ((got = sql_next(row, error)) == 1)
		strlist_add(names, sql_text(row, 0));
	return got;
}

void view_first_bad_clear(struct view_first_bad *first_bad)
{
	free(first_bad->combination);
	free(first_bad->outcome);
	free(first_bad->reason);
	free(first_bad->signature);
	free(first_bad->log);
	free(first_bad->commands);
	free(first_bad->cell_key);
	*first_bad = (struct view_first_bad){0};
}

int view_first_bad(struct sql *sql, const char *investigation, struct view_first_bad *first_bad, struct error *error)
{
	struct sql_statement *row;
	*first_bad = (struct view_first_bad){0};
	if (sql_start(sql, &row, error,
		      "SELECT f.combination, f.outcome, f.reason, c.signature, f.log, f.commands, f.final, "
		      "f.confirmed, f.walk_index, "
		      "f.cell, c.key FROM first_bad f JOIN cell c ON c.id = f.cell WHERE f.investigation = ?",
		      "t", investigation) < 0)
		return -1;
	int got = sql_next(row, error);
	if (got < 1)
		return got;
	*first_bad = (struct view_first_bad){
		.combination = copy(row, 0),
		.outcome = copy(row, 1),
		.reason = copy(row, 2),
		.signature = copy(row, 3),
		.log = copy(row, 4),
		.commands = copy(row, 5),
		.final = sql_integer(row, 6) != 0,
		.confirmed = sql_integer(row, 7) != 0,
		.walk_index = sql_integer(row, 8),
		.cell = sql_integer(row, 9),
		.cell_key = copy(row, 10),
	};
	sql_finish(row);
	return 0;
}

void view_boundaries_clear(struct view_boundaries *boundaries)
{
	for (size_t i = 0; i < boundaries->count; i++) {
		struct view_boundary *boundary = &boundaries->items[i];
		free(boundary->axis);
		free(boundary->change);
		free(boundary->from_value);
		free(boundary->to_value);
		free(boundary->to_detail);
		free(boundary->from_combination);
		free(boundary->to_combination);
	}
	free(boundaries->items);
	*boundaries = (struct view_boundaries){0};
}

int view_boundaries(struct sql *sql, const char *investigation, struct view_boundaries *boundaries, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "SELECT axis, change, from_value, to_value, to_detail, from_combination, to_combination, gap, pairs, "
		      "confirmed, from_walk_index, to_walk_index, from_cell, to_cell FROM boundaries WHERE investigation = ?",
		      "t", investigation) < 0)
		return -1;
	int got;
	while ((got = sql_next(row, error)) == 1) {
		boundaries->items = memory_grow(boundaries->items, boundaries->count, &boundaries->capacity,
						sizeof *boundaries->items);
		boundaries->items[boundaries->count++] = (struct view_boundary){
			.axis = copy(row, 0),
			.change = copy(row, 1),
			.from_value = copy(row, 2),
			.to_value = copy(row, 3),
			.to_detail = copy(row, 4),
			.from_combination = copy(row, 5),
			.to_combination = copy(row, 6),
			.gap = sql_integer(row, 7),
			.pairs = sql_integer(row, 8),
			.confirmed = sql_integer(row, 9) != 0,
			.from_walk_index = sql_integer(row, 10),
			.to_walk_index = sql_integer(row, 11),
			.from_cell = sql_integer(row, 12),
			.to_cell = sql_integer(row, 13),
		};
	}
	return got;
}

void view_matrix_clear(struct view_matrix *matrix)
{
	for (size_t i = 0; i < matrix->axis_count; i++) {
		struct view_axis *axis = &matrix->axes[i];
		for (size_t j = 0; j < axis->count; j++) {
			free(axis->values[j].label);
			free(axis->values[j].identity);
			free(axis->values[j].detail);
			free(axis->values[j].skip_reason);
		}
		free(axis->values);
		free(axis->name);
		free(axis->type);
	}
	free(matrix->axes);
	free(matrix->outcomes);
	*matrix = (struct view_matrix){0};
}

static int load_axes(struct sql *sql, const char *investigation, struct view_matrix *matrix, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "SELECT a.name, a.type, a.ordered, a.stride, v.label, v.identity, v.detail, v.skip_reason, a.size "
		      "FROM axis a JOIN investigation i ON i.id = a.investigation_id JOIN value v ON v.axis_id = a.id "
		      "WHERE i.name = ? ORDER BY a.position, v.position",
		      "t", investigation) < 0)
		return -1;
	int got;
	matrix->cell_count = 1;
	while ((got = sql_next(row, error)) == 1) {
		struct view_axis *axis = matrix->axis_count > 0 ? &matrix->axes[matrix->axis_count - 1] : NULL;
		if (axis == NULL || !text_equal(axis->name, sql_text(row, 0))) {
			matrix->axes = memory_grow(matrix->axes, matrix->axis_count, &matrix->axis_capacity, sizeof *matrix->axes);
			axis = &matrix->axes[matrix->axis_count++];
			*axis = (struct view_axis){.name = copy(row, 0),
						   .type = copy(row, 1),
						   .ordered = sql_integer(row, 2) != 0,
						   .stride = (size_t)sql_integer(row, 3)};
			matrix->cell_count *= (size_t)sql_integer(row, 8);
		}
		axis->values = memory_grow(axis->values, axis->count, &axis->capacity, sizeof *axis->values);
		axis->values[axis->count++] = (struct view_value){
			.label = copy(row, 4), .identity = copy(row, 5), .detail = copy(row, 6), .skip_reason = copy(row, 7)};
	}
	return got;
}

int view_matrix(struct sql *sql, const char *investigation, struct view_matrix *matrix, struct error *error)
{
	struct sql_statement *row;
	*matrix = (struct view_matrix){0};
	if (load_axes(sql, investigation, matrix, error) < 0 ||
	    sql_start(sql, &row, error, "SELECT walk_index, outcome FROM matrix WHERE investigation = ?", "t", investigation) < 0)
		return -1;
	matrix->outcomes = memory_new(matrix->cell_count, 1);
	memset(matrix->outcomes, VIEW_ABSENT, matrix->cell_count);
	int got;
	while ((got = sql_next(row, error)) == 1) {
		size_t index = (size_t)sql_integer(row, 0);
		enum outcome outcome = OUTCOME_UNDECIDED;
		outcome_parse(sql_text(row, 1), &outcome);
		if (index < matrix->cell_count)
			matrix->outcomes[index] = (unsigned char)outcome;
	}
	return got;
}

void view_unknowns_clear(struct view_unknowns *unknowns)
{
	for (size_t i = 0; i < unknowns->count; i++) {
		free(unknowns->items[i].outcome);
		free(unknowns->items[i].reason);
		free(unknowns->items[i].combination);
	}
	free(unknowns->items);
	*unknowns = (struct view_unknowns){0};
}

int view_unknowns(struct sql *sql, const char *investigation, struct view_unknowns *unknowns, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "SELECT m.outcome, coalesce(m.reason, ''), m.combination, count(*), min(m.walk_index) FROM matrix m "
		      "JOIN investigation i ON i.name = m.investigation "
		      "WHERE m.investigation = ? AND m.outcome <> 'pass' "
		      "AND m.outcome NOT IN (SELECT outcome FROM bad_outcome b WHERE b.investigation_id = i.id) "
		      "GROUP BY m.outcome, m.reason ORDER BY 5",
		      "t", investigation) < 0)
		return -1;
	int got;
	while ((got = sql_next(row, error)) == 1) {
		unknowns->items = memory_grow(unknowns->items, unknowns->count, &unknowns->capacity, sizeof *unknowns->items);
		unknowns->items[unknowns->count++] = (struct view_unknown){.outcome = copy(row, 0),
									   .reason = copy(row, 1),
									   .combination = copy(row, 2),
									   .cells = sql_integer(row, 3)};
	}
	return got;
}

int view_deliveries(struct sql *sql, const char *investigation, struct strlist *lines, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "SELECT webhook, event, state, attempts, reason FROM deliveries WHERE investigation = ? ORDER BY "
		      "finished_at, next_at",
		      "t", investigation) < 0)
		return -1;
	int got;
	while ((got = sql_next(row, error)) == 1) {
		struct str line = {0};
		str_append_format(&line, "%s: %s %s (%lld attempt%s)", sql_text(row, 0), sql_text(row, 1), sql_text(row, 2),
				  sql_integer(row, 3), sql_integer(row, 3) == 1 ? "" : "s");
		if (!sql_is_null(row, 4))
			str_append_format(&line, ": %s", sql_text(row, 4));
		strlist_add_owned(lines, str_steal(&line));
	}
	return got;
}

int view_verdict(struct sql *sql, const char *investigation, char **title, char **text, struct error *error)
{
	struct sql_statement *row;
	*title = *text = NULL;
	if (sql_start(sql, &row, error, "SELECT title, text FROM verdicts WHERE investigation = ?", "t", investigation) < 0)
		return -1;
	int got = sql_next(row, error);
	if (got < 1)
		return got;
	*title = copy(row, 0);
	*text = copy(row, 1);
	sql_finish(row);
	return 0;
}

int view_sandboxes(struct sql *sql, const char *investigation, char **text, struct error *error)
{
	struct sql_statement *row;
	*text = NULL;
	if (sql_start(sql, &row, error,
		      "SELECT group_concat(sandbox || ' for ' || n, ', ') FROM (SELECT a.sandbox AS sandbox, count(*) "
		      "AS n FROM attempt a "
		      "WHERE a.sandbox IS NOT NULL AND a.cell_id IN (SELECT cell FROM matrix WHERE investigation = ?) "
		      "GROUP BY a.sandbox)",
		      "t", investigation) < 0)
		return -1;
	int got = sql_next(row, error);
	if (got < 1)
		return got;
	*text = copy(row, 0);
	sql_finish(row);
	return 0;
}
