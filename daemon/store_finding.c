/* Findings and the outbox of their deliveries.  See store.h. */
#include "store.h"

#include <stdlib.h>

#include "digest.h"
#include "store_internal.h"

static char *idempotency_key(long long investigation_id, const struct store_finding *finding, const char *webhook)
{
	struct digest digest;
	digest_start(&digest);
	digest_add_number(&digest, "investigation", investigation_id);
	digest_add(&digest, "finding", finding->key);
	digest_add(&digest, "body", finding->body);
	digest_add(&digest, "webhook", webhook);
	return digest_finish(&digest);
}

static int add_deliveries(struct store *store, long long investigation_id, long long finding_id,
			  const struct store_finding *finding, struct error *error)
{
	long long now = store_now();
	for (size_t i = 0; i < finding->webhook_count; i++) {
		cleanup_free char *key = idempotency_key(investigation_id, finding, finding->webhooks[i].name);
		if (sql_run(store->sql, error,
			    "INSERT INTO delivery (finding_id, webhook, idempotency_key, state, next_at, give_up_at) "
			    "VALUES (?, ?, ?, 'pending', ?, ?)",
			    "ittii", finding_id, finding->webhooks[i].name, key, now,
			    now + finding->webhooks[i].give_up_after_ms) < 0)
			return -1;
	}
	return 0;
}

int store_add_finding(struct store *store, long long investigation_id, const struct store_finding *finding, bool *added,
		      struct error *error)
{
	*added = false;
	if (sql_begin(store->sql, error) < 0)
		return -1;
	if (sql_run(store->sql, error,
		    "INSERT INTO finding (investigation_id, kind, key, title, text, verdict, body) VALUES (?, ?, ?, ?, ?, ?, ?) "
		    "ON CONFLICT (investigation_id, key) DO NOTHING",
		    "itttttt", investigation_id, finding->kind, finding->key, finding->title, finding->text, finding->verdict,
		    finding->body) < 0)
		goto failed;
	*added = sql_changes(store->sql) > 0;
	if (*added && add_deliveries(store, investigation_id, sql_last_id(store->sql), finding, error) < 0)
		goto failed;
	/* also where it stands already: what was found last is what holds */
	if (sql_run(store->sql, error,
		    "UPDATE finding SET seen = (SELECT 1 + max(seen) FROM finding WHERE investigation_id = ?1) "
		    "WHERE investigation_id = ?1 AND key = ?2",
		    "it", investigation_id, finding->key) < 0)
		goto failed;
	return sql_commit(store->sql, error);
failed:
	sql_rollback(store->sql);
	return -1;
}

void store_delivery_clear(struct store_delivery *delivery)
{
	free(delivery->webhook);
	free(delivery->event);
	free(delivery->idempotency_key);
	free(delivery->body);
	*delivery = (struct store_delivery){0};
}

static int list_pending_webhooks(struct store *store, long long investigation_id, struct strlist *names, struct error *error)
{
	struct sql_statement *row;
	if (sql_start(store->sql, &row, error,
		      "SELECT DISTINCT d.webhook FROM delivery d JOIN finding f ON f.id = d.finding_id "
		      "WHERE d.state = 'pending' AND f.investigation_id = ?",
		      "i", investigation_id) < 0)
		return -1;
	int got;
	while ((got = sql_next(row, error)) == 1)
		strlist_add(names, sql_text(row, 0));
	return got;
}

int store_give_up_removed(struct store *store, long long investigation_id, const struct strlist *webhooks,
			  struct error *error)
{
	cleanup_strlist struct strlist pending = {0};
	if (list_pending_webhooks(store, investigation_id, &pending, error) < 0)
		return -1;
	for (size_t i = 0; i < pending.count; i++) {
		if (strlist_contains(webhooks, pending.items[i]))
			continue;
		if (sql_run(store->sql, error,
			    "UPDATE delivery SET state = 'given-up', reason = 'the investigation names no such webhook any more', "
			    "finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE state = 'pending' AND webhook = ? "
			    "AND finding_id IN (SELECT id FROM finding WHERE investigation_id = ?)",
			    "ti", pending.items[i], investigation_id) < 0)
			return -1;
	}
	return 0;
}

int store_next_delivery(struct store *store, long long investigation_id, const char *webhook,
			struct store_delivery *delivery, struct error *error)
{
	struct sql_statement *statement;
	*delivery = (struct store_delivery){0};
	if (sql_start(store->sql, &statement, error,
		      "SELECT d.id, d.webhook, f.kind, d.idempotency_key, f.body, d.attempts, d.next_at, d.give_up_at "
		      "FROM delivery d JOIN finding f ON f.id = d.finding_id "
		      "WHERE d.state = 'pending' AND f.investigation_id = ? AND d.webhook = ? ORDER BY d.next_at, d.id LIMIT 1",
		      "it", investigation_id, webhook) < 0)
		return -1;
	int row = sql_next(statement, error);
	if (row < 1)
		return row;
	*delivery = (struct store_delivery){
		.id = sql_integer(statement, 0),
		.webhook = text_copy(sql_text(statement, 1)),
		.event = text_copy(sql_text(statement, 2)),
		.idempotency_key = text_copy(sql_text(statement, 3)),
		.body = text_copy(sql_text(statement, 4)),
		.attempts = sql_integer(statement, 5),
		.next_at = sql_integer(statement, 6),
		.give_up_at = sql_integer(statement, 7),
	};
	sql_finish(statement);
	return 0;
}

int store_record_delivery(struct store *store, long long delivery_id, const char *state, long status, const char *reason,
			  long long next_at, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE delivery SET state = ?1, attempts = attempts + 1, status = nullif(?2, 0), reason = ?3, "
		       "next_at = ?4, finished_at = CASE WHEN ?1 <> 'pending' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now') END "
		       "WHERE id = ?5",
		       "titii", state, (long long)status, reason, next_at, delivery_id);
}
