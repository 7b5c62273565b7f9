/* Evidence as JSON: put together by SQLite, read by the verdict and the reports.  See view.h. */
#include "view.h"

/* One text column of JSON, one row an element. */
static int collect(struct sql_statement *row, json_t *array, struct error *error)
{
	int got;
	while ((got = sql_next(row, error)) == 1) {
		json_error_t trouble;
		json_t *element = json_loads(sql_text(row, 0), 0, &trouble);
		if (element == NULL) {
			sql_finish(row);
			return error_set(error, "the database holds evidence that is no JSON: %s", trouble.text);
		}
		json_array_append_new(array, element);
	}
	return got;
}

/*
 * "axis" and the two values stand where exactly one axis differs from the first bad cell; "boundary" where the cell is one of the
 * two that a boundary was first seen at.
 */
static int list_gathered(struct sql *sql, const char *investigation, const char *kind, json_t *array, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "WITH one AS (SELECT e.*, f.walk_index AS bad_index, o.walk_index AS other_index, i.id AS investigation_id "
		      "FROM evidence e JOIN first_bad f ON f.investigation = e.investigation AND f.cell = e.cell "
		      "JOIN matrix o ON o.investigation = e.investigation AND o.cell = e.other_cell "
		      "JOIN investigation i ON i.name = e.investigation WHERE e.investigation = ?1 AND e.kind = ?2), "
		      "differing AS (SELECT one.other_cell, count(*) AS axes, a.position, a.name, v.label AS value, b.label AS "
		      "bad_value "
		      "FROM one JOIN axis a ON a.investigation_id = one.investigation_id "
		      "AND (one.other_index / a.stride) % a.size <> (one.bad_index / a.stride) % a.size "
		      "JOIN value v ON v.axis_id = a.id AND v.position = (one.other_index / a.stride) % a.size "
		      "JOIN value b ON b.axis_id = a.id AND b.position = (one.bad_index / a.stride) % a.size "
		      "GROUP BY one.other_cell) "
		      "SELECT json_object('cell', one.other_cell, 'combination', one.other_combination, 'outcome', one.outcome, "
		      "'cell_outcome', c.outcome, 'reason', one.reason, 'data', json(one.data), "
		      "'axis', iif(d.axes = 1, d.name, NULL), 'value', iif(d.axes = 1, d.value, NULL), "
		      "'bad_value', iif(d.axes = 1, d.bad_value, NULL), 'boundary', (SELECT json_object('axis', n.axis, 'type', "
		      "(SELECT x.type FROM axis x "
		      "WHERE x.investigation_id = one.investigation_id AND x.name = n.axis), 'change', "
		      "n.change, 'from', n.from_value, 'to', n.to_value, 'to_detail', n.to_detail, 'side', iif(n.to_cell = "
		      "one.other_cell, "
		      "'to', 'from')) FROM boundaries n WHERE n.investigation = ?1 AND one.other_cell IN (n.from_cell, n.to_cell) "
		      "LIMIT 1)) "
		      "FROM one JOIN cell c ON c.id = one.other_cell LEFT JOIN differing d ON d.other_cell = one.other_cell "
		      "ORDER BY d.axes, d.position, one.other_index",
		      "tt", investigation, kind) < 0)
		return -1;
	return collect(row, array, error);
}

static int list_twins(struct sql *sql, const char *investigation, json_t *array, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(sql, &row, error,
		      "SELECT json_object('name', t.name, 'origin', t.origin, 'edit', json(t.edit), 'cell', t.cell, 'outcome', "
		      "t.outcome, 'reason', t.reason, 'commands', t.commands) "
		      "FROM twins t JOIN first_bad f ON f.investigation = t.investigation AND f.cell = t.of_cell "
		      "WHERE t.investigation = ? ORDER BY t.origin, t.name",
		      "t", investigation) < 0)
		return -1;
	return collect(row, array, error);
}

/* The only element of a kind that has at most one, or null. */
static void set_first(json_t *evidence, const char *key, json_t *array)
{
	json_object_set(evidence, key, json_array_size(array) > 0 ? json_array_get(array, 0) : json_null());
	json_decref(array);
}

int view_evidence(struct sql *sql, const char *investigation, json_t **evidence, struct error *error)
{
	struct view_first_bad first_bad;
	*evidence = NULL;
	if (view_first_bad(sql, investigation, &first_bad, error) < 0)
		return -1;
	if (first_bad.combination == NULL)
		return 0;
	json_t *builds = json_array();
	json_t *passes = json_array();
	json_t *neighbours = json_array();
	json_t *twins = json_array();
	int result = list_gathered(sql, investigation, "build", builds, error);
	if (result == 0)
		result = list_gathered(sql, investigation, "passes", passes, error);
	if (result == 0)
		result = list_gathered(sql, investigation, "neighbour", neighbours, error);
	if (result == 0)
		result = list_twins(sql, investigation, twins, error);
	*evidence = json_pack("{s:I, s:s, s:s, s:s, s:o, s:o}", "cell", (json_int_t)first_bad.cell, "key", first_bad.cell_key,
			      "combination", first_bad.combination, "outcome", first_bad.outcome, "neighbours", neighbours, "twins",
			      twins);
	set_first(*evidence, "build", builds);
	set_first(*evidence, "passes", passes);
	view_first_bad_clear(&first_bad);
	if (result == 0)
		return 0;
	json_decref(*evidence);
	*evidence = NULL;
	return -1;
}

int view_clean_build_ms(struct sql *sql, long long cell, long long *ms, struct error *error)
{
	return sql_number(sql, ms, 0, error,
			  "SELECT coalesce(build_ms, 0) FROM attempt WHERE cell_id = ? AND kind = 'confirm' AND state = 'finished' "
			  "ORDER BY id DESC LIMIT 1",
			  "i", cell);
}
