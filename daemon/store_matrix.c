/* Investigations, axes, values, places and cells.  See store.h. */
#include "store.h"

#include "store_internal.h"

static int save_bad_outcomes(struct store *store, long long id, const bool *bad, struct error *error)
{
	for (int outcome = OUTCOME_PASS; outcome < OUTCOME_COUNT; outcome++)
		if (bad[outcome] && sql_run(store->sql, error,
					    "INSERT INTO bad_outcome (investigation_id, outcome) VALUES (?, ?)", "it", id,
					    outcome_name((enum outcome)outcome)) < 0)
			return -1;
	return 0;
}

int store_save_investigation(struct store *store, const struct store_investigation *investigation, long long *id,
			     struct error *error)
{
	if (sql_run(store->sql, error,
		    "INSERT INTO investigation (name, question, file, text, notes, state) VALUES (?, ?, ?, ?, ?, 'walking') "
		    "ON CONFLICT (name) DO UPDATE SET question = excluded.question, file = excluded.file, "
		    "text = excluded.text, notes = excluded.notes, state = 'walking', finished_at = NULL, "
		    "started_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
		    "ttttt", investigation->name, investigation->question, investigation->file, investigation->text,
		    investigation->notes) < 0)
		return -1;
	if (sql_number(store->sql, id, 0, error, "SELECT id FROM investigation WHERE name = ?", "t", investigation->name) < 0)
		return -1;
	if (sql_run(store->sql, error, "DELETE FROM place WHERE investigation_id = ?", "i", *id) < 0 ||
	    sql_run(store->sql, error, "DELETE FROM axis WHERE investigation_id = ?", "i", *id) < 0 ||
	    sql_run(store->sql, error, "DELETE FROM bad_outcome WHERE investigation_id = ?", "i", *id) < 0)
		return -1;
	return save_bad_outcomes(store, *id, investigation->bad, error);
}

int store_save_axis(struct store *store, long long investigation_id, size_t position, const char *name, const char *type,
		    bool ordered, size_t size, size_t stride, long long *axis_id, struct error *error)
{
	if (sql_run(store->sql, error,
		    "INSERT INTO axis (investigation_id, position, name, type, ordered, size, stride) "
		    "VALUES (?, ?, ?, ?, ?, ?, ?)",
		    "iittiii", investigation_id, (long long)position, name, type, (long long)ordered, (long long)size,
		    (long long)stride) < 0)
		return -1;
	*axis_id = sql_last_id(store->sql);
	return 0;
}

int store_save_value(struct store *store, long long axis_id, size_t position, const char *label, const char *identity,
		     const char *detail, const char *skip_reason, struct error *error)
{
	return sql_run(store->sql, error,
		       "INSERT INTO value (axis_id, position, label, identity, detail, skip_reason) VALUES (?, ?, ?, ?, ?, ?)",
		       "iitttt", axis_id, (long long)position, label, identity, detail, skip_reason);
}

/*
 * A skip that no command under test asked for (exit status 125) came from cargo's answer while preparing: another cargo or a mended
 * registry may answer otherwise, so it is asked again.
 */
int store_find_cell(struct store *store, const char *key, struct store_cell *cell, struct error *error)
{
	*cell = (struct store_cell){0};
	struct sql_statement *statement;
	if (sql_run(store->sql, error, "INSERT OR IGNORE INTO cell (key) VALUES (?)", "t", key) < 0 ||
	    sql_start(store->sql, &statement, error,
		      "SELECT id, CASE WHEN outcome = 'skip' AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.cell_id = cell.id "
		      "AND a.outcome = 'skip' AND a.sandbox IS NOT NULL) THEN NULL ELSE outcome END, confirmed, commands "
		      "FROM cell WHERE key = ?", "t", key) < 0)
		return -1;
	int row = sql_next(statement, error);
	if (row < 1)
		return row < 0 ? -1 : error_set(error, "the cell %s vanished while it was being saved", key);
	cell->id = sql_integer(statement, 0);
	if (!sql_is_null(statement, 1))
		outcome_parse(sql_text(statement, 1), &cell->outcome);
	cell->confirmed = sql_integer(statement, 2) != 0;
	cell->repeatable = !sql_is_null(statement, 3);
	sql_finish(statement);
	return 0;
}

int store_save_place(struct store *store, long long investigation_id, size_t walk_index, const char *combination,
		     const char *cell_key, struct store_cell *cell, struct error *error)
{
	if (store_find_cell(store, cell_key, cell, error) < 0)
		return -1;
	return sql_run(store->sql, error,
		       "INSERT INTO place (investigation_id, walk_index, combination, cell_id) VALUES (?, ?, ?, ?)", "iiti",
		       investigation_id, (long long)walk_index, combination, cell->id);
}

int store_save_skipped_place(struct store *store, long long investigation_id, size_t walk_index, const char *combination,
			     const char *skip_reason, struct error *error)
{
	return sql_run(store->sql, error,
		       "INSERT INTO place (investigation_id, walk_index, combination, skip_reason) VALUES (?, ?, ?, ?)",
		       "iitt", investigation_id, (long long)walk_index, combination, skip_reason);
}

int store_set_state(struct store *store, long long investigation_id, const char *state, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE investigation SET state = ?1, finished_at = CASE ?1 WHEN 'finished' THEN "
		       "strftime('%Y-%m-%dT%H:%M:%fZ', 'now') END WHERE id = ?2",
		       "ti", state, investigation_id);
}
