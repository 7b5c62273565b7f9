/*
 * The search for the number of passes at which a program turns bad: a binary search that copes with answers that say
 * nothing.  Pure: it asks, and knows neither compilers nor programs.
 */
#ifndef BISECTD_WORKER_EVIDENCE_LIMIT_H
#define BISECTD_WORKER_EVIDENCE_LIMIT_H

#include <stddef.h>

enum sight {
	SIGHT_GOOD,
	SIGHT_BAD,
	SIGHT_UNKNOWN, /* neither: it did not build, it ended in another way */
	SIGHT_END,     /* no answer, and no further question may be asked */
};

enum limit_end {
	LIMIT_FOUND,       /* `good` + 1 == `bad`, both seen */
	LIMIT_RANGE,       /* both ends seen; what was tried between them is unknown */
	LIMIT_NOT_BAD,     /* the bound itself is not bad */
	LIMIT_BAD_AT_ZERO, /* bad with no pass at all */
	LIMIT_NO_GOOD,     /* bad at `bad`; nothing below it was good */
	LIMIT_STOPPED,     /* SIGHT_END */
};

struct limit_search {
	long long bound; /* all passes */
	size_t patience; /* so many answers of SIGHT_UNKNOWN between the ends are taken before giving up */
	enum sight (*observe)(void *context, long long limit);
	void *context;
	const long long *likely; /* limits at which it may well turn bad, ascending; NULL: none are known */
	size_t likely_count;

	/* what came out */
	enum limit_end end;
	long long good; /* the highest limit seen good below `bad`; -1: none */
	long long bad;  /* the lowest limit seen bad above `good`; -1: none */
};

/*
 * Ends first (bound, then 0), then the likely limits, halved, and the one before the lowest of them that is bad; then
 * the middle of the widest gap that is left between the ends and the unknown limits between them.  No limit is asked
 * for twice.  Where good and bad alternate, the pair that is found is one of the turns.
 */
void limit_search(struct limit_search *search);

#endif
