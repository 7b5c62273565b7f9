/* The strategy that visits every cell in walk order, with as few changes of toolchain as it can.  See plan.h. */
#include "plan.h"

enum choice { CHOICE_NONE, CHOICE_ANY, CHOICE_FREE_GROUP, CHOICE_OWN_GROUP };

static enum choice judge(const struct plan *plan, size_t cell, int group_axis, long group_position,
			 const bool *busy_groups)
{
	if (group_axis == PLAN_NONE)
		return CHOICE_OWN_GROUP;
	size_t position = plan_position(plan, cell, (size_t)group_axis);
	if ((long)position == group_position)
		return CHOICE_OWN_GROUP;
	return busy_groups[position] ? CHOICE_ANY : CHOICE_FREE_GROUP;
}

/* One pass over the cells that may be open; it ends at the first cell of the best kind. */
long plan_walk_next(struct plan *plan, int group_axis, long group_position, const bool *busy_groups)
{
	enum choice best = CHOICE_NONE;
	enum choice wanted = group_axis == PLAN_NONE || group_position != PLAN_NONE ? CHOICE_OWN_GROUP : CHOICE_FREE_GROUP;
	long found = PLAN_NONE;
	for (size_t i = plan->first_open; i < plan->cell_count && best < wanted; i++) {
		if (plan_get(plan, i) != PLAN_OPEN)
			continue;
		enum choice choice = judge(plan, i, group_axis, group_position, busy_groups);
		if (choice <= best)
			continue;
		best = choice;
		found = (long)i;
	}
	return found;
}
