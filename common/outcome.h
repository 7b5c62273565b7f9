/* The outcomes of an attempt and of a cell: one table, walked by everything that names them. */
#ifndef BISECTD_COMMON_OUTCOME_H
#define BISECTD_COMMON_OUTCOME_H

#include <stdbool.h>

enum outcome {
	OUTCOME_UNDECIDED,  /* not an outcome: no attempt has ended yet */
	OUTCOME_PASS,	    /* every run met the expectation */
	OUTCOME_FAIL,	    /* every run missed the expectation */
	OUTCOME_FLAKY,	    /* some runs met it, some did not */
	OUTCOME_CRASH,	    /* the program under test was killed by a signal of its own making */
	OUTCOME_TIMEOUT,    /* the program under test did not end in time */
	OUTCOME_BUILD_FAIL, /* the build ended with an error: no evidence for or against anything */
	OUTCOME_ICE,	    /* the compiler itself crashed */
	OUTCOME_SKIP,	    /* cannot be tried, with a reason; also exit status 125 */
	OUTCOME_ERROR,	    /* trouble of our own (disk, registry, worker); tried again */
	OUTCOME_COUNT
};

/* The word used in the database, the protocol and the configuration: "build-fail".  "" for OUTCOME_UNDECIDED. */
const char *outcome_name(enum outcome outcome);
/* One character for the matrix on a terminal. */
char outcome_letter(enum outcome outcome);
/* One sentence for a legend. */
const char *outcome_meaning(enum outcome outcome);
/* False where the word is none of the table's. */
bool outcome_parse(const char *word, enum outcome *outcome);

#endif
