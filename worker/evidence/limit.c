/* See limit.h. */
#include "evidence/limit.h"

#include <stdbool.h>
#include <stdlib.h>

#include "str.h"

/* The limits between the ends that were asked for in vain, ascending. */
struct unknowns {
	long long *items;
	size_t count;
	size_t capacity;
};

static void add_unknown(struct unknowns *unknowns, long long limit)
{
	unknowns->items = memory_grow(unknowns->items, unknowns->count, &unknowns->capacity, sizeof *unknowns->items);
	size_t at = unknowns->count++;
	for (; at > 0 && unknowns->items[at - 1] > limit; at--)
		unknowns->items[at] = unknowns->items[at - 1];
	unknowns->items[at] = limit;
}

static void forget_outside(struct unknowns *unknowns, long long low, long long high)
{
	size_t kept = 0;
	for (size_t i = 0; i < unknowns->count; i++)
		if (unknowns->items[i] > low && unknowns->items[i] < high)
			unknowns->items[kept++] = unknowns->items[i];
	unknowns->count = kept;
}

static bool is_unknown(const struct unknowns *unknowns, long long limit)
{
	for (size_t i = 0; i < unknowns->count; i++)
		if (unknowns->items[i] == limit)
			return true;
	return false;
}

/* How many likely limits are below. */
static size_t count_below(const struct limit_search *search, long long limit)
{
	size_t low = 0;
	size_t high = search->likely_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (search->likely[middle] < limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The middle one of the likely limits between the ends, or the one right before the upper end; -1 where that is no
 * help. */
static long long choose_likely(const struct limit_search *search, const struct unknowns *unknowns, long long low)
{
	size_t first = count_below(search, low + 1);
	size_t last = count_below(search, search->bad);
	long long limit = -1;
	if (first < last)
		limit = search->likely[first + (last - first) / 2];
	else if (last < search->likely_count && search->likely[last] == search->bad && search->bad - 1 > low)
		limit = search->bad - 1;
	return limit >= 0 && !is_unknown(unknowns, limit) ? limit : -1;
}

/* The middle of the widest gap; -1 where nothing is left to ask. */
static long long choose(const struct unknowns *unknowns, long long low, long long high)
{
	long long widest = 1;
	long long middle = -1;
	long long before = low;
	for (size_t i = 0; i <= unknowns->count; i++) {
		long long after = i < unknowns->count ? unknowns->items[i] : high;
		if (after - before > widest) {
			widest = after - before;
			middle = before + widest / 2;
		}
		before = after;
	}
	return middle;
}

/* The two ends.  Returns whether there is anything to search between `low` (0) and search->bad. */
static bool look_at_ends(struct limit_search *search)
{
	switch (search->observe(search->context, search->bound)) {
	case SIGHT_BAD:
		search->bad = search->bound;
		break;
	case SIGHT_END:
		search->end = LIMIT_STOPPED;
		return false;
	case SIGHT_GOOD:
	case SIGHT_UNKNOWN:
		search->end = LIMIT_NOT_BAD;
		return false;
	}
	switch (search->bound > 0 ? search->observe(search->context, 0) : SIGHT_BAD) {
	case SIGHT_GOOD:
		search->good = 0;
		break;
	case SIGHT_BAD:
		search->bad = 0;
		search->end = LIMIT_BAD_AT_ZERO;
		return false;
	case SIGHT_END:
		search->end = LIMIT_STOPPED;
		return false;
	case SIGHT_UNKNOWN:
		break;
	}
	return true;
}

static enum limit_end narrow(struct limit_search *search, struct unknowns *unknowns)
{
	for (;;) {
		long long low = search->good >= 0 ? search->good : 0;
		forget_outside(unknowns, low, search->bad);
		long long limit = choose_likely(search, unknowns, low);
		if (limit < 0)
			limit = choose(unknowns, low, search->bad);
		if (limit < 0 || unknowns->count >= search->patience)
			break;
		switch (search->observe(search->context, limit)) {
		case SIGHT_GOOD:
			search->good = limit;
			break;
		case SIGHT_BAD:
			search->bad = limit;
			break;
		case SIGHT_UNKNOWN:
			add_unknown(unknowns, limit);
			break;
		case SIGHT_END:
			return LIMIT_STOPPED;
		}
	}
	if (search->good < 0)
		return LIMIT_NO_GOOD;
	return search->good + 1 == search->bad ? LIMIT_FOUND : LIMIT_RANGE;
}

void limit_search(struct limit_search *search)
{
	struct unknowns unknowns = {0};
	search->good = search->bad = -1;
	if (look_at_ends(search))
		search->end = narrow(search, &unknowns);
	free(unknowns.items);
}
