/*
 * The shortest difference of two sequences of numbers: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations"
 * (1986), in its linear-space form (section 4b).  Knows nothing of what the numbers stand for.
 */
#ifndef BISECTD_WORKER_EVIDENCE_MYERS_H
#define BISECTD_WORKER_EVIDENCE_MYERS_H

#include <stdbool.h>
#include <stddef.h>

struct myers_side {
	const size_t *items;
	size_t count;    /* at most INT_MAX / 4 */
	bool *unmatched; /* one for each item, false before: receives whether it has no partner; partners are in order
			  */
};

/* False where the sequences are so different that a longer difference than the shortest one was taken, to be done in
 * time. */
bool myers_align(const struct myers_side *left, const struct myers_side *right);

#endif
