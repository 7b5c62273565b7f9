/* Evidence and twins.  See store.h. */
#include "store.h"

#include "store_internal.h"

int store_has_evidence(struct store *store, long long cell_id, const char *kind, long long other_id, bool *has,
		       struct error *error)
{
	long long count;
	if (sql_number(store->sql, &count, 0, error,
		       "SELECT count(*) FROM evidence_row WHERE cell_id = ? AND kind = ? AND other_id = ? AND outcome <> 'error'",
		       "iti", cell_id, kind, other_id) < 0)
		return -1;
	*has = count > 0;
	return 0;
}

int store_save_evidence(struct store *store, const struct store_evidence *evidence, struct error *error)
{
	return sql_run(store->sql, error,
		       "INSERT INTO evidence_row (cell_id, kind, other_id, outcome, reason, data) VALUES (?, ?, ?, ?, ?, ?) "
		       "ON CONFLICT DO UPDATE SET outcome = excluded.outcome, reason = excluded.reason, data = excluded.data, "
		       "created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
		       "itittt", evidence->cell_id, evidence->kind, evidence->other_id, outcome_name(evidence->outcome),
		       evidence->reason, evidence->data);
}

static int save_twin(struct store *store, const struct store_twin *twin, struct store_cell *cell, struct error *error)
{
	if (store_find_cell(store, twin->cell_key, cell, error) < 0)
		return -1;
	return sql_run(store->sql, error,
		       "INSERT INTO twin (of_cell_id, name, origin, edit, cell_id) VALUES (?, ?, ?, ?, ?) "
		       "ON CONFLICT DO UPDATE SET origin = excluded.origin, edit = excluded.edit, cell_id = excluded.cell_id",
		       "ittti", twin->of_cell_id, twin->name, twin->origin, twin->edit, cell->id);
}

int store_save_twin(struct store *store, const struct store_twin *twin, struct store_cell *cell, struct error *error)
{
	if (sql_begin(store->sql, error) < 0)
		return -1;
	if (save_twin(store, twin, cell, error) < 0) {
		sql_rollback(store->sql);
		return -1;
	}
	return sql_commit(store->sql, error);
}
