/*
 * view: what the database says about random matrices, with gaps, exclusions and values that cannot be tried, against
 * the plainest computation of the same in C; and the lines for people.
 */
#include "place.h"
#include "store.h"
#include "view.h"

enum {
	MATRICES = 400,
	MOST_AXES = 3,
	MOST_VALUES = 5,
	MOST_CELLS = 125,
	ABSENT = -1,
	UNTRIED = -2 /* a place without a cell */
};

/* The same numbers every time (Marsaglia's xorshift). */
static uint32_t random_state = 88172645u;

static size_t random_below(size_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % limit;
}

struct matrix {
	size_t axis_count;
	size_t sizes[MOST_AXES];
	size_t strides[MOST_AXES];
	bool ordered[MOST_AXES];
	size_t cell_count;
	int outcomes[MOST_CELLS]; /* enum outcome, ABSENT or UNTRIED */
	bool confirmed[MOST_CELLS];
	bool bad[OUTCOME_COUNT];
};

static void fill_matrix(struct matrix *matrix)
{
	static const int outcomes[] = {OUTCOME_PASS, OUTCOME_PASS,       OUTCOME_PASS,    OUTCOME_FAIL,
				       OUTCOME_FAIL, OUTCOME_CRASH,      OUTCOME_TIMEOUT, OUTCOME_FLAKY,
				       OUTCOME_ICE,  OUTCOME_SKIP,       OUTCOME_ERROR,   OUTCOME_UNDECIDED,
				       ABSENT,       OUTCOME_BUILD_FAIL, UNTRIED};
	size_t variety = 4 + random_below(sizeof outcomes / sizeof outcomes[0] - 3);
	*matrix = (struct matrix){.axis_count = 1 + random_below(MOST_AXES), .cell_count = 1};
	matrix->bad[OUTCOME_FAIL] = true;
	matrix->bad[OUTCOME_CRASH] = random_below(2) == 0;
	matrix->bad[OUTCOME_TIMEOUT] = random_below(3) == 0;
	for (size_t i = matrix->axis_count; i > 0; i--) {
		matrix->sizes[i - 1] = 1 + random_below(MOST_VALUES);
		matrix->ordered[i - 1] = random_below(4) > 0;
		matrix->strides[i - 1] = matrix->cell_count;
		matrix->cell_count *= matrix->sizes[i - 1];
	}
	for (size_t i = 0; i < matrix->cell_count; i++) {
		matrix->outcomes[i] = outcomes[random_below(variety)];
		matrix->confirmed[i] = matrix->outcomes[i] > OUTCOME_UNDECIDED && random_below(2) == 0;
	}
}

static bool is_bad(const struct matrix *matrix, size_t cell)
{
	return matrix->outcomes[cell] > OUTCOME_UNDECIDED && matrix->bad[matrix->outcomes[cell]];
}

static char *combination_of(const struct matrix *matrix, size_t cell)
{
	struct str text = {0};
	for (size_t i = 0; i < matrix->axis_count; i++) {
		size_t stride = matrix->strides[i] > 0 ? matrix->strides[i] : 1;
		size_t size = matrix->sizes[i] > 0 ? matrix->sizes[i] : 1;
		str_append_format(&text, "%sa%zu=v%zu", i > 0 ? " " : "", i, cell / stride % size);
	}
	return str_steal(&text);
}

static void save_cell(struct store *store, const struct matrix *matrix, long long id, size_t index, struct error *error)
{
	struct store_cell cell;
	cleanup_free char *combination = combination_of(matrix, index);
	if (matrix->outcomes[index] == ABSENT)
		return;
	if (matrix->outcomes[index] == UNTRIED) {
		assert_done(store_save_skipped_place(store, id, index, combination, "gone", error), error);
		return;
	}
	cleanup_free char *key = text_format("key %zu", index);
	assert_done(store_save_place(store, id, index, combination, key, &cell, error), error);
	if (matrix->outcomes[index] != OUTCOME_UNDECIDED)
		assert_done(sql_run(store_connection(store), error,
				    "UPDATE cell SET outcome = ?, confirmed = ?, reason = 'why' WHERE id = ?", "tii",
				    outcome_name((enum outcome)matrix->outcomes[index]),
				    (long long)matrix->confirmed[index], cell.id),
			    error);
}

/* Inside a transaction that the caller rolls back: nothing is flushed, so hundreds are quick. */
static void save_matrix(struct store *store, const struct matrix *matrix)
{
	cleanup_error struct error error = {0};
	const struct store_investigation investigation = {
		.name = "m", .file = "f", .text = "t", .notes = "", .bad = matrix->bad};
	long long id;
	assert_done(store_save_investigation(store, &investigation, &id, &error), &error);
	for (size_t i = 0; i < matrix->axis_count; i++) {
		long long axis;
		cleanup_free char *name = text_format("a%zu", i);
		assert_done(store_save_axis(store, id, i, name, "choice", matrix->ordered[i], matrix->sizes[i],
					    matrix->strides[i], &axis, &error),
			    &error);
		for (size_t j = 0; j < matrix->sizes[i]; j++) {
			cleanup_free char *label = text_format("v%zu", j);
			assert_done(store_save_value(store, axis, j, label, "identity", j % 2 == 0 ? label : NULL, NULL,
						     &error),
				    &error);
		}
	}
	for (size_t i = 0; i < matrix->cell_count; i++)
		save_cell(store, matrix, id, i, &error);
}

static void over_random_matrices(const char *folder, void (*check)(struct sql *sql, const struct matrix *matrix))
{
	cleanup_error struct error error = {0};
	struct store *store = NULL;
	assert_done(store_open(&store, folder, &error), &error);
	for (size_t i = 0; i < MATRICES; i++) {
		struct matrix matrix;
		fill_matrix(&matrix);
		assert_done(store_begin(store, &error), &error);
		save_matrix(store, &matrix);
		check(store_connection(store), &matrix);
		store_rollback(store);
	}
	store_close(store);
}

/* ---- boundaries ---- */

struct crossing {
	size_t axis;
	size_t from;
	size_t to;
	bool introduced;
	size_t pairs;
	size_t from_cell; /* of the first pair in walk order */
	size_t to_cell;
};

struct crossings {
	struct crossing items[4 * MOST_AXES * MOST_VALUES * MOST_VALUES];
	size_t count;
};

static void add_pair(struct crossings *crossings, const struct crossing *pair)
{
	for (size_t i = 0; i < crossings->count; i++) {
		struct crossing *known = &crossings->items[i];
		if (known->axis != pair->axis || known->from != pair->from || known->to != pair->to ||
		    known->introduced != pair->introduced)
			continue;
		known->pairs++;
		if (pair->from_cell < known->from_cell) {
			known->from_cell = pair->from_cell;
			known->to_cell = pair->to_cell;
		}
		return;
	}
	crossings->items[crossings->count++] = *pair;
}

/* From each cell with evidence along the axis to the next one that has some. */
static void find_crossings(const struct matrix *matrix, struct crossings *crossings)
{
	crossings->count = 0;
	for (size_t axis = 0; axis < matrix->axis_count; axis++) {
		for (size_t cell = 0; matrix->ordered[axis] && cell < matrix->cell_count; cell++) {
			size_t stride = matrix->strides[axis];
			size_t from = cell / stride % matrix->sizes[axis];
			if (matrix->outcomes[cell] != OUTCOME_PASS && !is_bad(matrix, cell))
				continue;
			for (size_t to = from + 1; to < matrix->sizes[axis]; to++) {
				size_t other = cell + (to - from) * stride;
				if (matrix->outcomes[other] != OUTCOME_PASS && !is_bad(matrix, other))
					continue;
				if (is_bad(matrix, other) != is_bad(matrix, cell))
					add_pair(crossings, &(struct crossing){axis, from, to, is_bad(matrix, other), 1,
									       cell, other});
				break;
			}
		}
	}
}

static bool describes(const struct view_boundary *boundary, const struct crossing *crossing)
{
	cleanup_free char *axis = text_format("a%zu", crossing->axis);
	cleanup_free char *from = text_format("v%zu", crossing->from);
	cleanup_free char *to = text_format("v%zu", crossing->to);
	return text_equal(boundary->axis, axis) && text_equal(boundary->from_value, from) &&
	       text_equal(boundary->to_value, to) &&
	       text_equal(boundary->change, crossing->introduced ? "introduced" : "fixed");
}

static void check_boundary(const struct matrix *matrix, const struct view_boundary *boundary,
			   const struct crossing *crossing)
{
	cleanup_free char *from = combination_of(matrix, crossing->from_cell);
	cleanup_free char *to = combination_of(matrix, crossing->to_cell);
	assert_int_equal(boundary->gap, crossing->to - crossing->from - 1);
	assert_int_equal(boundary->pairs, crossing->pairs);
	assert_int_equal(boundary->from_walk_index, crossing->from_cell);
	assert_int_equal(boundary->to_walk_index, crossing->to_cell);
	assert_string_equal(boundary->from_combination, from);
	assert_string_equal(boundary->to_combination, to);
	assert_true(text_equal(boundary->to_detail, crossing->to % 2 == 0 ? boundary->to_value : NULL));
	assert_int_equal(boundary->confirmed,
			 matrix->confirmed[crossing->from_cell] && matrix->confirmed[crossing->to_cell]);
}

static void check_boundaries(struct sql *sql, const struct matrix *matrix)
{
	cleanup_error struct error error = {0};
	struct crossings crossings;
	struct view_boundaries boundaries = {0};
	find_crossings(matrix, &crossings);
	assert_done(view_boundaries(sql, "m", &boundaries, &error), &error);
	assert_int_equal(boundaries.count, crossings.count);
	for (size_t i = 0; i < crossings.count; i++) {
		size_t found = 0;
		for (size_t j = 0; j < boundaries.count; j++) {
			if (!describes(&boundaries.items[j], &crossings.items[i]))
				continue;
			check_boundary(matrix, &boundaries.items[j], &crossings.items[i]);
			found++;
		}
		assert_int_equal(found, 1);
	}
	for (size_t i = 1; i < boundaries.count; i++)
		assert_true(strcmp(boundaries.items[i - 1].axis, boundaries.items[i].axis) <= 0);
	view_boundaries_clear(&boundaries);
}

static void the_boundaries_are_those_that_a_look_at_each_pair_finds(void **state)
{
	over_random_matrices(*state, check_boundaries);
}

/* ---- first bad, counts, matrix ---- */

static void check_first_bad(struct sql *sql, const struct matrix *matrix)
{
	cleanup_error struct error error = {0};
	struct view_first_bad first_bad;
	size_t first = 0;
	bool final = true;
	while (first < matrix->cell_count && !is_bad(matrix, first)) {
		if (matrix->outcomes[first] == OUTCOME_UNDECIDED || matrix->outcomes[first] == OUTCOME_ERROR)
			final = false;
		first++;
	}
	assert_done(view_first_bad(sql, "m", &first_bad, &error), &error);
	if (first == matrix->cell_count) {
		assert_null(first_bad.combination);
		return;
	}
	cleanup_free char *combination = combination_of(matrix, first);
	cleanup_free char *key = text_format("key %zu", first);
	assert_string_equal(first_bad.combination, combination);
	assert_string_equal(first_bad.outcome, outcome_name((enum outcome)matrix->outcomes[first]));
	assert_string_equal(first_bad.cell_key, key);
	assert_int_equal(first_bad.walk_index, first);
	assert_int_equal(first_bad.final, final);
	assert_int_equal(first_bad.confirmed, matrix->confirmed[first]);
	view_first_bad_clear(&first_bad);
}

static void the_first_bad_cell_is_final_when_all_before_it_are_decided(void **state)
{
	over_random_matrices(*state, check_first_bad);
}

static void check_counts(struct sql *sql, const struct matrix *matrix)
{
	cleanup_error struct error error = {0};
	struct view_investigation about;
	struct view_matrix seen;
	struct view_unknowns unknowns = {0};
	long long counts[5] = {0}; /* cells, decided, bad, good, no evidence */
	assert_done(view_investigation(sql, "m", &about, &error), &error);
	assert_done(view_matrix(sql, "m", &seen, &error), &error);
	assert_done(view_unknowns(sql, "m", &unknowns, &error), &error);
	assert_int_equal(seen.axis_count, matrix->axis_count);
	assert_int_equal(seen.cell_count, matrix->cell_count);
	for (size_t i = 0; i < matrix->cell_count; i++) {
		int outcome = matrix->outcomes[i];
		assert_int_equal(seen.outcomes[i], outcome == ABSENT    ? VIEW_ABSENT
						   : outcome == UNTRIED ? OUTCOME_SKIP
									: outcome);
		counts[0] += outcome != ABSENT;
		counts[1] += outcome != ABSENT && outcome != OUTCOME_UNDECIDED;
		counts[2] += is_bad(matrix, i);
		counts[3] += outcome == OUTCOME_PASS;
		counts[4] += outcome != ABSENT && outcome != OUTCOME_PASS && !is_bad(matrix, i);
	}
	for (size_t i = 0; i < matrix->axis_count; i++) {
		assert_int_equal(seen.axes[i].count, matrix->sizes[i]);
		assert_int_equal(seen.axes[i].stride, matrix->strides[i]);
		assert_int_equal(seen.axes[i].ordered, matrix->ordered[i]);
	}
	for (size_t i = 0; i < unknowns.count; i++)
		counts[4] -= unknowns.items[i].cells;
	assert_int_equal(about.cells, counts[0]);
	assert_int_equal(about.decided, counts[1]);
	assert_int_equal(about.bad, counts[2]);
	assert_int_equal(about.good, counts[3]);
	assert_int_equal(counts[4], 0);
	view_unknowns_clear(&unknowns);
	view_matrix_clear(&seen);
	view_investigation_clear(&about);
}

static void cells_are_counted_and_shown_as_they_are(void **state)
{
	over_random_matrices(*state, check_counts);
}

/* ---- lines for people ---- */

static void what_is_not_there_is_empty_and_no_error(void **state)
{
	cleanup_error struct error error = {0};
	struct store *store = NULL;
	struct view_investigation about;
	struct view_first_bad first_bad;
	struct view_boundaries boundaries = {0};
	struct view_matrix matrix;
	cleanup_strlist struct strlist lines = {0};
	char *texts[3] = {NULL, NULL, NULL};
	assert_done(store_open(&store, *state, &error), &error);
	struct sql *sql = store_connection(store);
	assert_done(view_investigation(sql, "none", &about, &error), &error);
	assert_done(view_first_bad(sql, "none", &first_bad, &error), &error);
	assert_done(view_boundaries(sql, "none", &boundaries, &error), &error);
	assert_done(view_matrix(sql, "none", &matrix, &error), &error);
	assert_done(view_deliveries(sql, "none", &lines, &error), &error);
	assert_done(view_names(sql, &lines, &error), &error);
	assert_done(view_verdict(sql, "none", &texts[0], &texts[1], &error), &error);
	assert_done(view_sandboxes(sql, "none", &texts[2], &error), &error);
	assert_null(about.name);
	assert_null(first_bad.combination);
	assert_int_equal(boundaries.count + matrix.axis_count + lines.count, 0);
	assert_true(texts[0] == NULL && texts[1] == NULL && texts[2] == NULL);
	view_matrix_clear(&matrix);
	store_close(store);
}

static void deliveries_verdicts_and_sandboxes_become_lines(void **state)
{
	cleanup_error struct error error = {0};
	struct store *store = NULL;
	struct matrix matrix = {.axis_count = 1, .sizes = {3}, .strides = {1}, .cell_count = 3};
	static const struct store_webhook webhooks[] = {{"team", 1000}, {"ci", 1000}};
	cleanup_strlist struct strlist lines = {0};
	cleanup_free char *title = NULL;
	cleanup_free char *text = NULL;
	cleanup_free char *sandboxes = NULL;
	bool added;
	assert_done(store_open(&store, *state, &error), &error);
	save_matrix(store, &matrix);
	for (int i = 0; i < 3; i++) {
		cleanup_free char *log = NULL;
		long long attempt;
		struct result result = {.outcome = OUTCOME_PASS,
					.sandbox = i == 1 ? text_copy("none") : text_copy("bubblewrap")};
		const struct store_decision decision = {.outcome = OUTCOME_PASS};
		assert_done(store_start_attempt(store, 1 + i, "walk", &attempt, &log, &error), &error);
		assert_done(store_finish_attempt(store, attempt, &result, &decision, &error), &error);
		result_clear(&result);
		cleanup_free char *name = text_format("verdict %d", i);
		const struct store_finding finding = {.kind = "verdict",
						      .key = name,
						      .title = name,
						      .text = "text",
						      .verdict = "inconclusive",
						      .body = "{}",
						      .webhooks = webhooks,
						      .webhook_count = i == 0 ? 2 : 0};
		assert_done(store_add_finding(store, 1, &finding, &added, &error), &error);
	}
	assert_done(store_record_delivery(store, 1, "pending", 503, "HTTP 503", 1, &error), &error);
	assert_done(store_record_delivery(store, 1, "delivered", 200, NULL, 1, &error), &error);
	assert_done(store_record_delivery(store, 2, "pending", 0, "no route", 1, &error), &error);
	struct sql *sql = store_connection(store);
	assert_done(view_deliveries(sql, "m", &lines, &error), &error);
	assert_done(view_verdict(sql, "m", &title, &text, &error), &error);
	assert_done(view_sandboxes(sql, "m", &sandboxes, &error), &error);
	assert_int_equal(lines.count, 2);
	assert_true(strlist_contains(&lines, "team: verdict delivered (2 attempts)"));
	assert_true(strlist_contains(&lines, "ci: verdict pending (1 attempt): no route"));
	assert_string_equal(title, "verdict 2");
	assert_string_equal(text, "text");
	assert_string_equal(sandboxes, "bubblewrap for 2, none for 1");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_quick_place(the_boundaries_are_those_that_a_look_at_each_pair_finds),
		in_quick_place(the_first_bad_cell_is_final_when_all_before_it_are_decided),
		in_quick_place(cells_are_counted_and_shown_as_they_are),
		in_quick_place(what_is_not_there_is_empty_and_no_error),
		in_quick_place(deliveries_verdicts_and_sandboxes_become_lines),
	};
	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
