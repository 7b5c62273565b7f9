/* Attempts and their runs.  See store.h. */
#include "store.h"

#include "store_internal.h"

int store_start_attempt(struct store *store, long long cell_id, const char *kind, long long *attempt_id, char **log,
			struct error *error)
{
	if (sql_begin(store->sql, error) < 0)
		return -1;
	if (sql_run(store->sql, error, "INSERT INTO attempt (cell_id, kind, state, log) VALUES (?, ?, 'running', '')", "it",
		    cell_id, kind) < 0)
		goto failed;
	*attempt_id = sql_last_id(store->sql);
	*log = text_format("logs/%lld/%lld.log", cell_id, *attempt_id);
	if (sql_run(store->sql, error, "UPDATE attempt SET log = ? WHERE id = ?", "ti", *log, *attempt_id) < 0)
		goto failed;
	return sql_commit(store->sql, error);
failed:
	sql_rollback(store->sql);
	return -1;
}

static int save_runs(struct store *store, long long attempt_id, const json_t *runs, struct error *error)
{
	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *run = json_array_get(runs, i);
		const char *outcome = json_string_value(json_object_get(run, "outcome"));
		if (sql_run(store->sql, error,
			    "INSERT INTO run (attempt_id, number, outcome, exit_status, signal, ms) "
			    "VALUES (?, ?, ?, nullif(?, -1), nullif(?, 0), ?)",
			    "iitiii", attempt_id, (long long)i + 1, outcome != NULL ? outcome : "error",
			    (long long)json_integer_value(json_object_get(run, "exit")),
			    (long long)json_integer_value(json_object_get(run, "signal")),
			    (long long)json_integer_value(json_object_get(run, "ms"))) < 0)
			return -1;
	}
	return 0;
}

static int save_attempt(struct store *store, long long attempt_id, const struct result *result, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE attempt SET state = 'finished', outcome = ?, reason = ?, signature = ?, "
		       "exit_status = nullif(?, -1), signal = nullif(?, 0), build_ms = ?, run_ms = ?, binary = ?, sandbox = ?, "
		       "finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?",
		       "tttiiiitti", outcome_name(result->outcome), result->reason, result->signature, result->exit_status,
		       result->signal, result->build_ms, result->run_ms, result->binary, result->sandbox, attempt_id);
}

static int save_decision(struct store *store, long long attempt_id, const struct result *result,
			 const struct store_decision *decision, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE cell SET outcome = ?1, reason = ?2, signature = coalesce(?3, signature), confirmed = ?4, "
		       "commands = coalesce(?5, commands), "
		       "errors = CASE ?1 WHEN 'error' THEN errors + 1 ELSE 0 END, "
		       "decided_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') "
		       "WHERE id = (SELECT cell_id FROM attempt WHERE id = ?6)",
		       "tttiti", outcome_name(decision->outcome), decision->reason, result->signature,
		       (long long)decision->confirmed, decision->keeps ? result->commands : NULL, attempt_id);
}

int store_finish_attempt(struct store *store, long long attempt_id, const struct result *result,
			 const struct store_decision *decision, struct error *error)
{
	if (sql_begin(store->sql, error) < 0)
		return -1;
	if (save_attempt(store, attempt_id, result, error) < 0 || save_runs(store, attempt_id, result->runs, error) < 0 ||
	    (decision != NULL && save_decision(store, attempt_id, result, decision, error) < 0)) {
		sql_rollback(store->sql);
		return -1;
	}
	return sql_commit(store->sql, error);
}

int store_interrupt_attempt(struct store *store, long long attempt_id, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE attempt SET state = 'interrupted', reason = 'bisectd was asked to stop', "
		       "finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?",
		       "i", attempt_id);
}
