/* plan: the walk over random matrices, with any number of workers, against the plainest way to say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

enum { MATRICES = 300, MOST_WORKERS = 5, MOST_AXES = 4 };

static const enum plan_state all_states[] = {PLAN_EXCLUDED, PLAN_OPEN,        PLAN_RUNNING, PLAN_GOOD,
					     PLAN_BAD,      PLAN_NO_EVIDENCE, PLAN_FAILED};

/* The same numbers every time (Marsaglia's xorshift). */
static uint32_t random_state = 2463534242u;

static size_t random_below(size_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return limit > 0 ? random_state % limit : 0;
}

static void start_random(struct plan *plan)
{
	size_t sizes[MOST_AXES];
	size_t axis_count = 1 + random_below(MOST_AXES);
	for (size_t i = 0; i < axis_count; i++)
		sizes[i] = 1 + random_below(4);
	assert_true(plan_start(plan, sizes, axis_count));
}

/* ---- the matrix ---- */

static void cells_are_counted_with_the_last_axis_fastest(void **state)
{
	(void)state;
	static const size_t sizes[] = {2, 3, 4};
	struct plan plan;
	assert_true(plan_start(&plan, sizes, 3));
	assert_int_equal(plan.cell_count, 24);
	for (size_t cell = 0; cell < 24; cell++) {
		assert_int_equal(plan_position(&plan, cell, 0), cell / 12);
		assert_int_equal(plan_position(&plan, cell, 1), cell / 4 % 3);
		assert_int_equal(plan_position(&plan, cell, 2), cell % 4);
		assert_int_equal(plan_get(&plan, cell), PLAN_OPEN);
	}
	plan_free(&plan);
	plan_free(&plan);
}

static void a_matrix_of_any_shape_starts_or_is_refused(void **state)
{
	(void)state;
	static const struct {
		size_t sizes[4];
		size_t axis_count;
		bool fits;
		size_t cells;
	} cases[] = {
		{{0}, 0, true, 1},
		{{1}, 1, true, 1},
		{{0}, 1, true, 0},
		{{3, 0, 5}, 3, true, 0},
		{{1, 1, 1, 1}, 4, true, 1},
		{{SIZE_MAX, 2}, 2, false, 0},
		{{SIZE_MAX / 2, SIZE_MAX / 2, 4}, 3, false, 0},
		{{1u << 31, 1u << 31, 1u << 31, 1u << 31}, 4, false, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct plan plan;
		assert_int_equal(plan_start(&plan, cases[i].sizes, cases[i].axis_count), cases[i].fits);
		if (cases[i].fits) {
			bool final;
			assert_int_equal(plan.cell_count, cases[i].cells);
			assert_int_equal(plan_walk_next(&plan, PLAN_NONE, PLAN_NONE, NULL),
					 cases[i].cells > 0 ? 0 : PLAN_NONE);
			assert_int_equal(plan_first_bad(&plan, &final), PLAN_NONE);
			assert_int_equal(final, cases[i].cells == 0);
		}
		plan_free(&plan);
	}
}

static void every_state_is_kept_and_counted(void **state)
{
	(void)state;
	for (size_t matrix = 0; matrix < MATRICES; matrix++) {
		struct plan plan;
		size_t counts[PLAN_FAILED + 1] = {0};
		start_random(&plan);
		for (size_t i = 0; i < plan.cell_count; i++) {
			enum plan_state chosen = all_states[random_below(7)];
			plan_set(&plan, i, chosen);
			assert_int_equal(plan_get(&plan, i), chosen);
			counts[chosen]++;
		}
		struct plan_counts found = plan_count(&plan);
		assert_int_equal(found.cells, plan.cell_count - counts[PLAN_EXCLUDED]);
		assert_int_equal(found.open, counts[PLAN_OPEN]);
		assert_int_equal(found.running, counts[PLAN_RUNNING]);
		assert_int_equal(found.good, counts[PLAN_GOOD]);
		assert_int_equal(found.bad, counts[PLAN_BAD]);
		assert_int_equal(found.no_evidence, counts[PLAN_NO_EVIDENCE]);
		assert_int_equal(found.failed, counts[PLAN_FAILED]);
		plan_free(&plan);
	}
}

/* ---- the first bad cell ---- */

static void the_first_bad_cell_is_final_when_nothing_before_it_is_undecided(void **state)
{
	(void)state;
	static const struct {
		const char *cells; /* x excluded, o open, r running, . good, B bad, - no evidence, ! failed */
		long first;
		bool final;
	} cases[] = {
		{"B", 0, true},           {".", PLAN_NONE, true},    {"o", PLAN_NONE, false}, {"x", PLAN_NONE, true},
		{"-B", 1, true},          {"xB", 1, true},           {".B", 1, true},         {"oB", 1, false},
		{"rB", 1, false},         {"!B", 1, false},          {"Bo", 0, true},         {"BrB!", 0, true},
		{".!", PLAN_NONE, false}, {".-x.", PLAN_NONE, true}, {"-.xB.B", 3, true},     {".oB", 2, false},
	};
	static const char letters[] = "xor.B-!";
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t size = strlen(cases[i].cells);
		struct plan plan;
		bool final;
		assert_true(plan_start(&plan, &size, 1));
		for (size_t j = 0; j < size; j++)
			plan_set(&plan, j, (enum plan_state)(strchr(letters, cases[i].cells[j]) - letters));
		assert_int_equal(plan_first_bad(&plan, &final), cases[i].first);
		assert_int_equal(final, cases[i].final);
		plan_free(&plan);
	}
}

/* ---- the next cell ---- */

/* As plan.h says it, in three passes. */
static long next_by_the_book(const struct plan *plan, int group_axis, long group_position, const bool *busy)
{
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < plan->cell_count; i++) {
			long position = group_axis >= 0 ? (long)plan_position(plan, i, (size_t)group_axis) : 0;
			bool fits = pass == 0 ? group_axis < 0 || position == group_position
					      : pass == 2 || group_axis < 0 || !busy[position];
			if (fits && plan_get(plan, i) == PLAN_OPEN)
				return (long)i;
		}
	}
	return PLAN_NONE;
}

static void the_next_cell_is_the_one_by_the_book(void **state)
{
	(void)state;
	for (size_t matrix = 0; matrix < MATRICES; matrix++) {
		struct plan plan;
		start_random(&plan);
		for (int change = 0; change < 60; change++) {
			bool busy[4] = {random_below(2) == 0, random_below(2) == 0, random_below(2) == 0,
					random_below(2) == 0};
			int axis = (int)random_below(plan.axis_count + 1) - 1;
			long position = axis >= 0 ? (long)random_below(plan.sizes[axis] + 1) - 1 : PLAN_NONE;
			plan_set(&plan, random_below(plan.cell_count), all_states[random_below(7)]);
			assert_int_equal(plan_walk_next(&plan, axis, position, busy),
					 next_by_the_book(&plan, axis, position, busy));
		}
		plan_free(&plan);
	}
}

static void a_cell_that_opens_again_is_found_again(void **state)
{
	(void)state;
	static const size_t sizes[] = {5};
	struct plan plan;
	assert_true(plan_start(&plan, sizes, 1));
	for (size_t i = 0; i < 5; i++)
		plan_set(&plan, i, PLAN_GOOD);
	assert_int_equal(plan_walk_next(&plan, PLAN_NONE, PLAN_NONE, NULL), PLAN_NONE);
	plan_set(&plan, 3, PLAN_OPEN); /* tried again after trouble of ours */
	assert_int_equal(plan_walk_next(&plan, PLAN_NONE, PLAN_NONE, NULL), 3);
	plan_set(&plan, 1, PLAN_OPEN);
	assert_int_equal(plan_walk_next(&plan, PLAN_NONE, PLAN_NONE, NULL), 1);
	plan_free(&plan);
}

/* ---- whole walks ---- */

struct worker {
	long cell;  /* that it is on, or PLAN_NONE */
	long group; /* or PLAN_NONE */
};

struct walk {
	struct plan plan;
	unsigned char *truth;  /* enum plan_state that each cell turns out to be; PLAN_EXCLUDED: not in the matrix */
	unsigned char *visits; /* of each cell */
	struct worker workers[MOST_WORKERS];
	size_t worker_count;
	int group_axis;
	size_t changes; /* of a worker's group */
};

static void start_walk(struct walk *walk)
{
	static const enum plan_state outcomes[] = {PLAN_GOOD, PLAN_BAD, PLAN_NO_EVIDENCE, PLAN_EXCLUDED};
	size_t chance_of_bad = 1 + random_below(8);
	*walk = (struct walk){.worker_count = 1 + random_below(MOST_WORKERS)};
	start_random(&walk->plan);
	walk->group_axis = (int)random_below(walk->plan.axis_count + 1) - 1;
	walk->truth = calloc(walk->plan.cell_count, 1);
	walk->visits = calloc(walk->plan.cell_count, 1);
	assert_non_null(walk->truth);
	assert_non_null(walk->visits);
	for (size_t i = 0; i < MOST_WORKERS; i++)
		walk->workers[i] = (struct worker){PLAN_NONE, PLAN_NONE};
	for (size_t i = 0; i < walk->plan.cell_count; i++) {
		enum plan_state outcome = outcomes[random_below(4)];
		if (outcome == PLAN_BAD && random_below(chance_of_bad) > 0)
			outcome = PLAN_GOOD;
		walk->truth[i] = (unsigned char)outcome;
		if (outcome == PLAN_EXCLUDED)
			plan_set(&walk->plan, i, PLAN_EXCLUDED);
	}
}

static void free_walk(struct walk *walk)
{
	plan_free(&walk->plan);
	free(walk->truth);
	free(walk->visits);
}

static bool group_has_open_cells(const struct plan *plan, int axis, long position)
{
	for (size_t i = 0; i < plan->cell_count; i++)
		if (plan_get(plan, i) == PLAN_OPEN && (long)plan_position(plan, i, (size_t)axis) == position)
			return true;
	return false;
}

/* Give an idle worker a cell; false where there is none. */
static bool give_cell(struct walk *walk, struct worker *worker)
{
	bool busy[4] = {false};
	for (size_t i = 0; i < walk->worker_count; i++)
		if (&walk->workers[i] != worker && walk->workers[i].group != PLAN_NONE)
			busy[walk->workers[i].group] = true;
	long cell = plan_walk_next(&walk->plan, walk->group_axis, worker->group, busy);
	if (cell == PLAN_NONE)
		return false;
	assert_int_equal(plan_get(&walk->plan, (size_t)cell), PLAN_OPEN);
	if (walk->group_axis >= 0) {
		long group = (long)plan_position(&walk->plan, (size_t)cell, (size_t)walk->group_axis);
		if (worker->group != group) {
			assert_true(worker->group == PLAN_NONE ||
				    !group_has_open_cells(&walk->plan, walk->group_axis, worker->group));
			walk->changes++;
		}
		worker->group = group;
	}
	plan_set(&walk->plan, (size_t)cell, PLAN_RUNNING);
	walk->visits[cell]++;
	worker->cell = cell;
	return true;
}

static void end_cell(struct walk *walk, struct worker *worker)
{
	plan_set(&walk->plan, (size_t)worker->cell, (enum plan_state)walk->truth[worker->cell]);
	worker->cell = PLAN_NONE;
}

static long first_of(const struct walk *walk, enum plan_state wanted)
{
	for (size_t i = 0; i < walk->plan.cell_count; i++)
		if (walk->truth[i] == wanted)
			return (long)i;
	return PLAN_NONE;
}

/* While it goes on, what is called final stays. */
static void do_walk(struct walk *walk)
{
	long truth = first_of(walk, PLAN_BAD);
	for (size_t step = 0;; step++) {
		bool final;
		bool active = false;
		struct worker *worker = &walk->workers[random_below(walk->worker_count)];
		if (worker->cell != PLAN_NONE)
			end_cell(walk, worker);
		else
			give_cell(walk, worker);
		long first = plan_first_bad(&walk->plan, &final);
		if (final)
			assert_int_equal(first, truth);
		assert_true(first == PLAN_NONE || walk->truth[first] == PLAN_BAD);
		for (size_t i = 0; i < walk->worker_count; i++)
			active = active || walk->workers[i].cell != PLAN_NONE;
		if (!active && plan_count(&walk->plan).open == 0)
			return;
		assert_true(step < 100 * walk->plan.cell_count + 1000);
	}
}

static void every_walk_ends_visits_each_cell_once_and_finds_the_first_bad(void **state)
{
	(void)state;
	for (size_t matrix = 0; matrix < 2 * MATRICES; matrix++) {
		struct walk walk;
		bool final;
		start_walk(&walk);
		do_walk(&walk);
		for (size_t i = 0; i < walk.plan.cell_count; i++)
			assert_int_equal(walk.visits[i], walk.truth[i] == PLAN_EXCLUDED ? 0 : 1);
		assert_int_equal(plan_first_bad(&walk.plan, &final), first_of(&walk, PLAN_BAD));
		assert_true(final);
		free_walk(&walk);
	}
}

static void one_worker_without_groups_goes_in_walk_order(void **state)
{
	(void)state;
	for (size_t matrix = 0; matrix < MATRICES; matrix++) {
		struct walk walk;
		long last = PLAN_NONE;
		start_walk(&walk);
		walk.worker_count = 1;
		walk.group_axis = PLAN_NONE;
		while (give_cell(&walk, &walk.workers[0])) {
			assert_true(walk.workers[0].cell > last);
			last = walk.workers[0].cell;
			end_cell(&walk, &walk.workers[0]);
		}
		free_walk(&walk);
	}
}

static void one_worker_enters_each_group_once(void **state)
{
	(void)state;
	for (size_t matrix = 0; matrix < MATRICES; matrix++) {
		struct walk walk;
		start_walk(&walk);
		walk.worker_count = 1;
		while (give_cell(&walk, &walk.workers[0]))
			end_cell(&walk, &walk.workers[0]);
		if (walk.group_axis >= 0)
			assert_true(walk.changes <= walk.plan.sizes[walk.group_axis]);
		free_walk(&walk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_counted_with_the_last_axis_fastest),
		cmocka_unit_test(a_matrix_of_any_shape_starts_or_is_refused),
		cmocka_unit_test(every_state_is_kept_and_counted),
		cmocka_unit_test(the_first_bad_cell_is_final_when_nothing_before_it_is_undecided),
		cmocka_unit_test(the_next_cell_is_the_one_by_the_book),
		cmocka_unit_test(a_cell_that_opens_again_is_found_again),
		cmocka_unit_test(every_walk_ends_visits_each_cell_once_and_finds_the_first_bad),
		cmocka_unit_test(one_worker_without_groups_goes_in_walk_order),
		cmocka_unit_test(one_worker_enters_each_group_once),
	};
	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
