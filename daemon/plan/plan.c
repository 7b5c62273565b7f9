/* The matrix that all strategies share.  See plan.h. */
#include "plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool plan_start(struct plan *plan, const size_t *sizes, size_t axis_count)
{
	*plan = (struct plan){.axis_count = axis_count, .cell_count = 1};
	plan->sizes = calloc(axis_count + 1, sizeof *plan->sizes);
	plan->strides = calloc(axis_count + 1, sizeof *plan->strides);
	if (plan->sizes == NULL || plan->strides == NULL)
		return false;
	for (size_t i = axis_count; i > 0; i--) {
		plan->sizes[i - 1] = sizes[i - 1];
		plan->strides[i - 1] = plan->cell_count;
		if (sizes[i - 1] > 0 && plan->cell_count > (size_t)LONG_MAX / sizes[i - 1])
			return false;
		plan->cell_count *= sizes[i - 1];
	}
	plan->states = malloc(plan->cell_count > 0 ? plan->cell_count : 1);
	if (plan->states == NULL)
		return false;
	memset(plan->states, PLAN_OPEN, plan->cell_count);
	return true;
}

void plan_free(struct plan *plan)
{
	free(plan->sizes);
	free(plan->strides);
	free(plan->states);
	*plan = (struct plan){0};
}

size_t plan_position(const struct plan *plan, size_t cell, size_t axis)
{
	return cell / plan->strides[axis] % plan->sizes[axis];
}

void plan_set(struct plan *plan, size_t cell, enum plan_state state)
{
	plan->states[cell] = (unsigned char)state;
	if (state == PLAN_OPEN && cell < plan->first_open)
		plan->first_open = cell;
	while (plan->first_open < plan->cell_count && plan->states[plan->first_open] != PLAN_OPEN)
		plan->first_open++;
}

enum plan_state plan_get(const struct plan *plan, size_t cell)
{
	return (enum plan_state)plan->states[cell];
}

long plan_first_bad(const struct plan *plan, bool *final)
{
	*final = true;
	for (size_t i = 0; i < plan->cell_count; i++) {
		enum plan_state state = plan_get(plan, i);
		if (state == PLAN_BAD)
			return (long)i;
		if (state == PLAN_OPEN || state == PLAN_RUNNING || state == PLAN_FAILED)
			*final = false;
	}
	return PLAN_NONE;
}

struct plan_counts plan_count(const struct plan *plan)
{
	size_t counts[PLAN_FAILED + 1] = {0};
	for (size_t i = 0; i < plan->cell_count; i++)
		counts[plan->states[i]]++;
	return (struct plan_counts){
		.cells = plan->cell_count - counts[PLAN_EXCLUDED],
		.open = counts[PLAN_OPEN],
		.running = counts[PLAN_RUNNING],
		.good = counts[PLAN_GOOD],
		.bad = counts[PLAN_BAD],
		.no_evidence = counts[PLAN_NO_EVIDENCE],
		.failed = counts[PLAN_FAILED],
	};
}

long plan_nearest_good(const struct plan *plan, size_t cell, size_t axis)
{
	size_t position = plan_position(plan, cell, axis);
	size_t size = plan->sizes[axis];
	for (size_t distance = 1; distance < size; distance++) {
		if (position + distance < size && plan_get(plan, cell + distance * plan->strides[axis]) == PLAN_GOOD)
			return (long)(cell + distance * plan->strides[axis]);
		if (distance <= position && plan_get(plan, cell - distance * plan->strides[axis]) == PLAN_GOOD)
			return (long)(cell - distance * plan->strides[axis]);
	}
	return PLAN_NONE;
}
