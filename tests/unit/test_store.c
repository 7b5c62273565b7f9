/* sql and store: what is written, what is refused, and what a second start finds. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "place.h"
#include "store.h"

static struct store *open_store(const char *folder)
{
	cleanup_error struct error error = {0};
	struct store *store = NULL;
	assert_done(store_open(&store, folder, &error), &error);
	return store;
}

/* Macros, since SQL is a literal: the first column of the first row. */
#define assert_number(store, expected, query)                                                                          \
	do {                                                                                                           \
		cleanup_error struct error number_error = {0};                                                         \
		long long number_found;                                                                                \
		assert_done(sql_number(store_connection(store), &number_found, -99, &number_error, query, ""),         \
			    &number_error);                                                                            \
		assert_int_equal(number_found, expected);                                                              \
	} while (0)
#define run(store, query)                                                                                              \
	do {                                                                                                           \
		cleanup_error struct error run_error = {0};                                                            \
		assert_done(sql_run(store_connection(store), &run_error, query, ""), &run_error);                      \
	} while (0)

static void assert_sound(struct store *store)
{
	assert_number(store, 1, "SELECT integrity_check = 'ok' FROM pragma_integrity_check");
	assert_number(store, 0, "SELECT count(*) FROM pragma_foreign_key_check");
}

static const bool fail_is_bad[OUTCOME_COUNT] = {[OUTCOME_FAIL] = true, [OUTCOME_CRASH] = true};

/* One axis with two values; places 0 and 1 are cells, place 2 is skipped.  Returns the investigation. */
static long long save(struct store *store, const char *name, struct store_cell cells[2])
{
	cleanup_error struct error error = {0};
	const struct store_investigation investigation = {
		.name = name, .file = "/inv/a.yaml", .text = "name: a\n", .notes = "", .bad = fail_is_bad};
	long long id;
	long long axis;
	assert_done(store_begin(store, &error), &error);
	assert_done(store_save_investigation(store, &investigation, &id, &error), &error);
	assert_done(store_save_axis(store, id, 0, "tool", "toolchain", true, 3, 1, &axis, &error), &error);
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *label = text_format("v%zu", i);
		assert_done(store_save_value(store, axis, i, label, "identity", NULL, i == 2 ? "gone" : NULL, &error),
			    &error);
	}
	assert_done(store_save_place(store, id, 0, "tool=v0", "key0", &cells[0], &error), &error);
	assert_done(store_save_place(store, id, 1, "tool=v1", "key1", &cells[1], &error), &error);
	assert_done(store_save_skipped_place(store, id, 2, "tool=v2", "gone", &error), &error);
	assert_done(store_commit(store, &error), &error);
	return id;
}

static long long start_attempt(struct store *store, long long cell)
{
	cleanup_error struct error error = {0};
	cleanup_free char *log = NULL;
	long long id;
	assert_done(store_start_attempt(store, cell, "walk", &id, &log, &error), &error);
	cleanup_free char *expected = text_format("logs/%lld/%lld.log", cell, id);
	assert_string_equal(log, expected);
	return id;
}

static void finish(struct store *store, long long attempt, const struct result *result, enum outcome outcome,
		   const char *reason, bool confirmed)
{
	cleanup_error struct error error = {0};
	const struct store_decision decision = {.outcome = outcome, .reason = reason, .confirmed = confirmed, .keeps = confirmed};
	assert_done(store_finish_attempt(store, attempt, result, &decision, &error), &error);
}

/* ---- sql ---- */

static void values_come_back_as_they_were_bound(void **state)
{
	struct store *store = open_store(*state);
	struct sql *sql = store_connection(store);
	cleanup_error struct error error = {0};
	struct sql_statement *row;
	assert_done(sql_start(sql, &row, &error, "SELECT ? AS a, ?, ?, ?, ? IS NULL", "ittni", INT64_MIN,
			      "it's; --\xc3\xa4", NULL, 7LL),
		    &error);
	assert_int_equal(sql_next(row, &error), 1);
	assert_int_equal(sql_column_count(row), 5);
	assert_string_equal(sql_column_name(row, 0), "a");
	assert_true(sql_integer(row, 0) == INT64_MIN);
	assert_string_equal(sql_text(row, 1), "it's; --\xc3\xa4");
	assert_null(sql_text(row, 2));
	assert_true(sql_is_null(row, 2));
	assert_true(sql_is_null(row, 3));
	assert_int_equal(sql_next(row, &error), 0);
	store_close(store);
}

static void one_text_can_be_run_inside_itself(void **state)
{
	struct store *store = open_store(*state);
	struct sql *sql = store_connection(store);
	cleanup_error struct error error = {0};
	struct sql_statement *rows[2];
	static const char text[] = "SELECT value FROM json_each(?)";
	long long sum = 0;
	assert_done(sql_start(sql, &rows[0], &error, text, "t", "[1,2,3]"), &error);
	while (sql_next(rows[0], &error) == 1) {
		assert_done(sql_start(sql, &rows[1], &error, text, "t", "[10,20]"), &error);
		while (sql_next(rows[1], &error) == 1)
			sum += sql_integer(rows[0], 0) * sql_integer(rows[1], 0);
	}
	assert_int_equal(sum, 180);
	store_close(store);
}

static void the_connection_is_as_careful_as_it_says(void **state)
{
	struct store *store = open_store(*state);
	assert_number(store, 1, "SELECT foreign_keys FROM pragma_foreign_keys");
	assert_number(store, 0, "SELECT trusted_schema FROM pragma_trusted_schema");
	assert_number(store, 2, "SELECT synchronous FROM pragma_synchronous");
	assert_number(store, 1, "SELECT journal_mode = 'wal' FROM pragma_journal_mode");
	store_close(store);
}

static void a_reader_cannot_write_and_makes_no_database(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(*state, "bisectd.db");
	struct sql *sql = NULL;
	assert_int_equal(sql_open(&sql, path, SQL_READ_ONLY, &error), -1);
	assert_says(&error, "cannot open the database ");
	assert_false(path_exists(path));
	struct store *store = open_store(*state);
	assert_done(sql_open(&sql, path, SQL_READ_ONLY, &error), &error);
	assert_int_equal(sql_run(sql, &error, "DELETE FROM cell", ""), -1);
	assert_says(&error, path);
	sql_close(sql);
	store_close(store);
}

static void mistakes_in_statements_name_the_file(void **state)
{
	struct store *store = open_store(*state);
	struct sql *sql = store_connection(store);
	cleanup_error struct error error = {0};
	assert_int_equal(sql_run(sql, &error, "SELEKT 1", ""), -1);
	assert_says(&error, "preparing a statement in ");
	assert_says(&error, "/bisectd.db: near \"SELEKT\": syntax error");
	assert_int_equal(sql_script(sql, "CREATE TABLE cell (id)", &error), -1);
	assert_says(&error, "table cell already exists");
	assert_int_equal(sql_run(sql, &error,
				 "INSERT INTO attempt (cell_id, kind, state, log) VALUES (77, 'walk', 'running', '')",
				 ""),
			 -1);
	assert_says(&error, "FOREIGN KEY constraint failed");
	store_close(store);
}

/* ---- opening ---- */

static void a_new_state_folder_is_private_and_has_the_schema(void **state)
{
	struct stat status;
	cleanup_free char *folder = path_join(*state, "new/state");
	struct store *store = open_store(folder);
	assert_int_equal(stat(folder, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	assert_number(store, 2, "SELECT user_version FROM pragma_user_version");
	assert_number(store, 10,
		      "SELECT count(*) FROM sqlite_schema WHERE type = 'view' AND name IN ('matrix', 'investigations', "
		      "'first_bad', 'boundary_pairs', 'boundaries', 'verdicts', 'flaky', 'deliveries', 'evidence', 'twins')");
	run(store,
	    "SELECT * FROM matrix, investigations, first_bad, boundary_pairs, boundaries, verdicts, flaky, deliveries, evidence, "
	    "twins");
	assert_sound(store);
	store_close(store);
	store_close(NULL);
}

static void a_database_that_is_none_or_damaged_or_newer_is_refused_and_left_alone(void **state)
{
	cleanup_free char *path = path_join(*state, "bisectd.db");
	cleanup_str struct str whole = {0};
	cleanup_error struct error error = {0};
	struct store *store = open_store(*state);
	run(store, "PRAGMA wal_checkpoint(TRUNCATE)");
	store_close(store);
	assert_done(fs_read_file(path, 0, &whole, &error), &error);
	static const char newer[] = {0, 0, 0, 9};
	static const struct {
		const char *what;
		size_t at;
		size_t length;
		const char *bytes;
		const char *message;
	} cases[] = {
		{"no database", 0, 16, "This is a text.\n",
		 " is no SQLite database: move it away, or give another state folder"},
		{"damaged", 100, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", " is damaged ("},
		{"newer", 60, 4, newer,
		 " was written by a newer bisectd (schema 9, this one knows 2): use that one, or give another folder "
		 "with --state"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_str struct str after = {0};
		cleanup_free char *bytes = memory_new(whole.length, 1);
		memcpy(bytes, whole.data, whole.length);
		memcpy(bytes + cases[i].at, cases[i].bytes, cases[i].length);
		assert_done(fs_write_file(path, bytes, whole.length, &error), &error);
		struct store *none = NULL;
		if (store_open(&none, *state, &error) == 0)
			fail_msg("%s: opened", cases[i].what);
		assert_says(&error, path);
		assert_says(&error, cases[i].message);
		assert_done(fs_read_file(path, 0, &after, &error), &error);
		assert_memory_equal(after.data, bytes, whole.length);
	}
}

static void a_database_of_version_1_gets_what_is_new_and_keeps_what_it_has(void **state)
{
	struct store_cell cells[2];
	struct store *store = open_store(*state);
	save(store, "a", cells);
	run(store, "DROP VIEW evidence");
	run(store, "DROP VIEW twins");
	run(store, "DROP TABLE evidence_row");
	run(store, "DROP TABLE twin");
	run(store, "PRAGMA user_version = 1");
	store_close(store);
	store = open_store(*state);
	assert_number(store, 2, "SELECT user_version FROM pragma_user_version");
	assert_number(store, 0, "SELECT count(*) FROM evidence, twins");
	assert_number(store, 1, "SELECT count(*) FROM investigations");
	assert_sound(store);
	store_close(store);
}

static void a_state_folder_in_use_is_refused_with_who_uses_it(void **state)
{
	struct store *store = open_store(*state);
	cleanup_free char *expected =
		text_format("is in use by another bisectd (process %ld): stop that one", (long)getpid());
	pid_t id = fork();
	assert_true(id >= 0);
	if (id == 0) { /* a record lock is the process': only another one meets it */
		struct error error = {0};
		struct store *second = NULL;
		bool refused = store_open(&second, *state, &error) < 0 && strstr(error_text(&error), expected) != NULL;
		error_clear(&error);
		_exit(refused ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_int_equal(status, 0);
	store_close(store);
	store_close(open_store(*state));
}

static void attempts_of_a_killed_run_are_interrupted_at_the_next_start(void **state)
{
	struct store_cell cells[2];
	struct result result = {.outcome = OUTCOME_PASS};
	struct store *store = open_store(*state);
	cleanup_error struct error error = {0};
	save(store, "a", cells);
	finish(store, start_attempt(store, cells[0].id), &result, OUTCOME_PASS, NULL, false);
	start_attempt(store, cells[1].id);
	assert_done(store_interrupt_attempt(store, start_attempt(store, cells[1].id), &error), &error);
	store_close(store);
	store = open_store(*state);
	assert_number(store, 0, "SELECT count(*) FROM attempt WHERE state = 'running'");
	assert_number(store, 1, "SELECT count(*) FROM attempt WHERE state = 'finished'");
	assert_number(store, 1,
		      "SELECT count(*) FROM attempt WHERE reason = 'bisectd was killed while it ran' AND finished_at "
		      "IS NOT NULL");
	assert_number(store, 1, "SELECT count(*) FROM attempt WHERE reason = 'bisectd was asked to stop'");
	assert_number(store, 1, "SELECT count(*) FROM cell WHERE outcome IS NULL AND key = 'key1'");
	store_close(store);
}

static void the_first_pinned_answer_stays(void **state)
{
	cleanup_error struct error error = {0};
	struct store *store = open_store(*state);
	char *content = NULL;
	assert_done(store_recall(store, "release", "usdt 0.5.0", &content, &error), &error);
	assert_null(content);
	assert_done(store_pin(store, "release", "usdt 0.5.0", "one", &error), &error);
	assert_done(store_pin(store, "release", "usdt 0.5.0", "two", &error), &error);
	assert_done(store_pin(store, "lock", "usdt 0.5.0", "three", &error), &error);
	store_close(store);
	store = open_store(*state);
	assert_done(store_recall(store, "release", "usdt 0.5.0", &content, &error), &error);
	assert_string_equal(content, "one");
	free(content);
	store_close(store);
}

/* ---- matrix ---- */

static void saving_again_forgets_axes_and_places_and_no_cell(void **state)
{
	struct store_cell cells[2];
	struct result result = {.outcome = OUTCOME_FAIL, .reason = NULL};
	struct store *store = open_store(*state);
	cleanup_error struct error error = {0};
	long long first = save(store, "a", cells);
	assert_int_equal(cells[0].outcome, OUTCOME_UNDECIDED);
	finish(store, start_attempt(store, cells[0].id), &result, OUTCOME_FAIL, "x", true);
	assert_done(store_set_state(store, first, "finished", &error), &error);
	assert_number(store, 1, "SELECT finished_at IS NOT NULL FROM investigation");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(save(store, "a", cells), first);
		assert_int_equal(cells[0].outcome, OUTCOME_FAIL);
		assert_true(cells[0].confirmed);
		assert_int_equal(cells[1].outcome, OUTCOME_UNDECIDED);
		assert_number(store, 1, "SELECT state = 'walking' AND finished_at IS NULL FROM investigation");
		assert_number(store, 1, "SELECT count(*) FROM axis");
		assert_number(store, 3, "SELECT count(*) FROM value");
		assert_number(store, 3, "SELECT count(*) FROM place");
		assert_number(store, 2, "SELECT count(*) FROM bad_outcome");
		assert_number(store, 2, "SELECT count(*) FROM cell");
	}
	assert_true(save(store, "b", cells) != first); /* another investigation shares what is known */
	assert_int_equal(cells[0].outcome, OUTCOME_FAIL);
	assert_number(store, 2, "SELECT count(*) FROM cell");
	assert_number(store, 6, "SELECT count(*) FROM place");
	assert_sound(store);
	store_close(store);
}

static void what_is_rolled_back_never_was(void **state)
{
	struct store *store = open_store(*state);
	cleanup_error struct error error = {0};
	const struct store_investigation investigation = {
		.name = "a", .file = "f", .text = "t", .notes = "", .bad = fail_is_bad};
	long long id;
	assert_done(store_begin(store, &error), &error);
	assert_done(store_save_investigation(store, &investigation, &id, &error), &error);
	store_rollback(store);
	store_rollback(store);
	assert_number(store, 0, "SELECT count(*) FROM investigation");
	store_close(store);
}

/* ---- attempts ---- */

static void an_attempt_is_kept_with_its_runs_and_what_did_not_happen_is_null(void **state)
{
	struct store_cell cells[2];
	struct store *store = open_store(*state);
	cleanup_result struct result result = {.outcome = OUTCOME_CRASH,
					       .reason = text_copy("killed by signal 11"),
					       .signature = text_copy("boom"),
					       .binary = text_copy("sha"),
					       .sandbox = text_copy("none"),
					       .exit_status = -1,
					       .signal = 11,
					       .build_ms = 5,
					       .run_ms = 6};
	result.runs = json_pack("[{s:s, s:i, s:i, s:i}, {s:s, s:i, s:i, s:i}, {}]", "outcome", "pass", "exit", 0,
				"signal", 0, "ms", 2, "outcome", "crash", "exit", -1, "signal", 11, "ms", 4);
	save(store, "a", cells);
	finish(store, start_attempt(store, cells[0].id), &result, OUTCOME_CRASH, "killed by signal 11", false);
	assert_number(store, 1,
		      "SELECT count(*) FROM attempt WHERE state = 'finished' AND outcome = 'crash' AND exit_status IS "
		      "NULL AND "
		      "signal = 11 AND build_ms = 5 AND run_ms = 6 AND binary = 'sha' AND sandbox = 'none' AND "
		      "signature = 'boom'");
	assert_number(store, 1,
		      "SELECT count(*) FROM run WHERE number = 1 AND outcome = 'pass' AND exit_status = 0 AND signal "
		      "IS NULL");
	assert_number(store, 1,
		      "SELECT count(*) FROM run WHERE number = 2 AND outcome = 'crash' AND exit_status IS NULL AND "
		      "signal = 11");
	assert_number(store, 1, "SELECT count(*) FROM run WHERE number = 3 AND outcome = 'error'");
	assert_sound(store);
	store_close(store);
}

static void a_cell_follows_the_decisions_one_after_the_other(void **state)
{
	static const struct {
		enum outcome outcome;
		bool confirmed;
		const char *signature; /* of the attempt */
		const char *commands;  /* of the attempt */
		const char *cell;      /* outcome confirmed errors signature commands */
	} steps[] = {
		{OUTCOME_ERROR, false, NULL, "c0", "error 0 1 - -"},
		{OUTCOME_ERROR, false, NULL, NULL, "error 0 2 - -"},
		{OUTCOME_FAIL, false, "s1", "c1", "fail 0 0 s1 -"},
		{OUTCOME_FAIL, true, NULL, "c2", "fail 1 0 s1 c2"}, /* the signature of the walk is kept */
		{OUTCOME_FAIL, true, "s2", NULL, "fail 1 0 s2 c2"},
		{OUTCOME_FLAKY, false, NULL, "c3", "flaky 0 0 s2 c2"},
		{OUTCOME_ERROR, false, NULL, NULL, "error 0 1 s2 c2"},
		{OUTCOME_PASS, true, NULL, "c4", "pass 1 0 s2 c4"},
	};
	struct store_cell cells[2];
	struct store *store = open_store(*state);
	cleanup_error struct error error = {0};
	save(store, "a", cells);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		cleanup_result struct result result = {.outcome = steps[i].outcome,
						       .signature = text_copy(steps[i].signature),
						       .commands = text_copy(steps[i].commands)};
		struct sql_statement *row;
		finish(store, start_attempt(store, cells[0].id), &result, steps[i].outcome, NULL, steps[i].confirmed);
		assert_done(sql_start(store_connection(store), &row, &error,
				      "SELECT outcome || ' ' || confirmed || ' ' || errors || ' ' || "
				      "coalesce(signature, '-') || ' ' || "
				      "coalesce(commands, '-') FROM cell WHERE id = ? AND decided_at IS NOT NULL",
				      "i", cells[0].id),
			    &error);
		assert_int_equal(sql_next(row, &error), 1);
		assert_string_equal(sql_text(row, 0), steps[i].cell);
		sql_finish(row);
	}
	store_close(store);
}

/* ---- findings ---- */

static const struct store_webhook webhooks[] = {{"team", 1000}, {"ci", 2000}};

static bool add(struct store *store, long long investigation, const char *key, const char *body)
{
	cleanup_error struct error error = {0};
	bool added;
	const struct store_finding finding = {.kind = "first-bad",
					      .key = key,
					      .title = "title",
					      .text = "text",
					      .body = body,
					      .webhooks = webhooks,
					      .webhook_count = 2};
	assert_done(store_add_finding(store, investigation, &finding, &added, &error), &error);
	return added;
}

static void a_finding_is_added_once_with_a_delivery_to_everyone(void **state)
{
	struct store_cell cells[2];
	struct store *store = open_store(*state);
	long long a = save(store, "a", cells);
	long long b = save(store, "b", cells);
	assert_true(add(store, a, "k", "{}"));
	assert_false(add(store, a, "k", "{}"));
	assert_false(add(store, a, "k", "{\"other\":1}"));
	assert_true(add(store, b, "k", "{}"));
	assert_number(store, 2, "SELECT count(*) FROM finding");
	assert_number(store, 4, "SELECT count(*) FROM delivery WHERE state = 'pending' AND attempts = 0");
	assert_number(store, 4, "SELECT count(DISTINCT idempotency_key) FROM delivery");
	assert_number(
		store, 2,
		"SELECT count(*) FROM delivery WHERE give_up_at - next_at = CASE webhook WHEN 'team' THEN 1000 END");
	save(store, "a", cells); /* a restart keeps it */
	assert_false(add(store, a, "k", "{}"));
	assert_sound(store);
	store_close(store);
}

static void deliveries_are_tried_in_order_of_their_time_and_then_of_their_finding(void **state)
{
	struct store_cell cells[2];
	cleanup_error struct error error = {0};
	struct store *store = open_store(*state);
	long long id = save(store, "a", cells);
	static const char *const bodies[] = {"1", "2", "3"};
	for (size_t i = 0; i < 3; i++)
		assert_true(add(store, id, bodies[i], bodies[i]));
	run(store, "UPDATE delivery SET next_at = 1000, give_up_at = 5000");
	static const struct {
		const char *body; /* expected to be next for "team"; NULL: none */
		const char *state;
		long long next_at;
		long long attempts;
	} steps[] = {
		{"1", "pending", 3000, 0}, {"2", "delivered", 0, 0}, {"3", "pending", 2000, 0},
		{"3", "pending", 4000, 1}, {"1", "given-up", 0, 1},  {"3", "delivered", 0, 2},
		{NULL, NULL, 0, 0},
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct store_delivery delivery;
		assert_done(store_next_delivery(store, id, "team", &delivery, &error), &error);
		if (steps[i].body == NULL) {
			assert_int_equal(delivery.id, 0);
			continue;
		}
		assert_string_equal(delivery.body, steps[i].body);
		assert_string_equal(delivery.webhook, "team");
		assert_string_equal(delivery.event, "first-bad");
		assert_int_equal(strlen(delivery.idempotency_key), 64);
		assert_int_equal(delivery.attempts, steps[i].attempts);
		assert_int_equal(delivery.give_up_at, 5000);
		assert_done(store_record_delivery(store, delivery.id, steps[i].state, i == 0 ? 503 : 0, "why",
						  steps[i].next_at, &error),
			    &error);
		store_delivery_clear(&delivery);
	}
	assert_number(store, 3,
		      "SELECT count(*) FROM delivery WHERE webhook = 'ci' AND state = 'pending' AND next_at = 1000");
	assert_number(
		store, 3,
		"SELECT count(*) FROM delivery WHERE webhook = 'team' AND finished_at IS NOT NULL AND status IS NULL");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_quick_place(values_come_back_as_they_were_bound),
		in_quick_place(one_text_can_be_run_inside_itself),
		in_quick_place(the_connection_is_as_careful_as_it_says),
		in_quick_place(a_reader_cannot_write_and_makes_no_database),
		in_quick_place(mistakes_in_statements_name_the_file),
		in_quick_place(a_new_state_folder_is_private_and_has_the_schema),
		in_quick_place(a_database_that_is_none_or_damaged_or_newer_is_refused_and_left_alone),
		in_quick_place(a_database_of_version_1_gets_what_is_new_and_keeps_what_it_has),
		in_quick_place(a_state_folder_in_use_is_refused_with_who_uses_it),
		in_quick_place(attempts_of_a_killed_run_are_interrupted_at_the_next_start),
		in_quick_place(the_first_pinned_answer_stays),
		in_quick_place(saving_again_forgets_axes_and_places_and_no_cell),
		in_quick_place(what_is_rolled_back_never_was),
		in_quick_place(an_attempt_is_kept_with_its_runs_and_what_did_not_happen_is_null),
		in_quick_place(a_cell_follows_the_decisions_one_after_the_other),
		in_quick_place(a_finding_is_added_once_with_a_delivery_to_everyone),
		in_quick_place(deliveries_are_tried_in_order_of_their_time_and_then_of_their_finding),
	};
	return cmocka_run_group_tests_name("sql, store", tests, NULL, NULL);
}
