/* See myers.h. */
#include "evidence/myers.h"

#include <limits.h>
#include <stdlib.h>

#include "str.h"

/* Steps of one search from both ends before the best way so far is taken; 4,000 is done in some 50 ms. */
enum { STEPS_MAX = 4000 };

/* A corner is (x, y): x items of the left side and y of the right are behind us.  The diagonal of a corner is x - y. */
struct search {
	const size_t *left;
	const size_t *right;
	bool *left_unmatched;
	bool *right_unmatched;
	int *forward;  /* the greatest x reached from the start on each diagonal */
	int *backward; /* the smallest x reached from the end */
	bool exact;
};

struct box {
	int left, left_end;
	int right, right_end;
};

/* The diagonals that one direction has reached: every second one between the two. */
struct front {
	int *reached;
	int lowest, highest;
	int outside; /* what lies beyond the fringe: never the better neighbour */
};

static void widen(struct front *front, int lowest, int highest)
{
	if (front->lowest > lowest)
		front->reached[--front->lowest - 1] = front->outside;
	else
		front->lowest++;
	if (front->highest < highest)
		front->reached[++front->highest + 1] = front->outside;
	else
		front->highest--;
}

static bool within(const struct front *front, int diagonal)
{
	return diagonal >= front->lowest && diagonal <= front->highest;
}

static int step_forward(const struct search *search, const struct box *box, const struct front *front, int diagonal)
{
	int below = front->reached[diagonal - 1];
	int above = front->reached[diagonal + 1];
	int x = below >= above ? below + 1 : above;
	while (x < box->left_end && x - diagonal < box->right_end && search->left[x] == search->right[x - diagonal])
		x++;
	return front->reached[diagonal] = x;
}

static int step_backward(const struct search *search, const struct box *box, const struct front *front, int diagonal)
{
	int below = front->reached[diagonal - 1];
	int above = front->reached[diagonal + 1];
	int x = below < above ? below : above - 1;
	while (x > box->left && x - diagonal > box->right && search->left[x - 1] == search->right[x - 1 - diagonal])
		x--;
	return front->reached[diagonal] = x;
}

/* The corner that came furthest from the start, within the box. */
static void take_furthest(const struct box *box, const struct front *forward, int *x, int *y)
{
	int best = INT_MIN;
	for (int diagonal = forward->highest; diagonal >= forward->lowest; diagonal -= 2) {
		int at = forward->reached[diagonal] < box->left_end ? forward->reached[diagonal] : box->left_end;
		if (at - diagonal > box->right_end)
			at = box->right_end + diagonal;
		if (at >= box->left && at - diagonal >= box->right && at + at - diagonal > best) {
			best = at + at - diagonal;
			*x = at;
			*y = at - diagonal;
		}
	}
}

/* A corner on a shortest way through the box, neither of whose sides is empty and whose first and last items differ. */
static void split(struct search *search, const struct box *box, int *x, int *y)
{
	int lowest = box->left - box->right_end;
	int highest = box->left_end - box->right;
	int first = box->left - box->right;
	int last = box->left_end - box->right_end;
	bool odd = ((first - last) & 1) != 0;
	struct front forward = {search->forward, first, first, -1};
	struct front backward = {search->backward, last, last, INT_MAX};
	forward.reached[first] = box->left;
	backward.reached[last] = box->left_end;
	for (int steps = 0; steps < STEPS_MAX; steps++) {
		widen(&forward, lowest, highest);
		for (int diagonal = forward.highest; diagonal >= forward.lowest; diagonal -= 2) {
			*x = step_forward(search, box, &forward, diagonal);
			*y = *x - diagonal;
			if (odd && within(&backward, diagonal) && backward.reached[diagonal] <= *x)
				return;
		}
		widen(&backward, lowest, highest);
		for (int diagonal = backward.highest; diagonal >= backward.lowest; diagonal -= 2) {
			*x = step_backward(search, box, &backward, diagonal);
			*y = *x - diagonal;
			if (!odd && within(&forward, diagonal) && *x <= forward.reached[diagonal])
				return;
		}
	}
	search->exact = false;
	take_furthest(box, &forward, x, y);
}

static void align(struct search *search, struct box box)
{
	for (;;) {
		while (box.left < box.left_end && box.right < box.right_end &&
		       search->left[box.left] == search->right[box.right])
			box.left++, box.right++;
		while (box.left < box.left_end && box.right < box.right_end &&
		       search->left[box.left_end - 1] == search->right[box.right_end - 1])
			box.left_end--, box.right_end--;
		if (box.left == box.left_end || box.right == box.right_end)
			break;
		int x = box.left;
		int y = box.right;
		split(search, &box, &x, &y);
		align(search, (struct box){box.left, x, box.right, y});
		box.left = x;
		box.right = y;
	}
	for (int i = box.left; i < box.left_end; i++)
		search->left_unmatched[i] = true;
	for (int i = box.right; i < box.right_end; i++)
		search->right_unmatched[i] = true;
}

bool myers_align(const struct myers_side *left, const struct myers_side *right)
{
	size_t diagonals = left->count + right->count + 3;
	cleanup_free int *forward = memory_new(diagonals, sizeof *forward);
	cleanup_free int *backward = memory_new(diagonals, sizeof *backward);
	size_t zero = right->count + 1;
	struct search search = {.left = left->items,
				.right = right->items,
				.left_unmatched = left->unmatched,
				.right_unmatched = right->unmatched,
				.forward = forward + zero,
				.backward = backward + zero,
				.exact = true};
	align(&search, (struct box){0, (int)left->count, 0, (int)right->count});
	return search.exact;
}
