/* See outcome.h. */
#include "outcome.h"

#include <string.h>

static const struct {
	const char *name;
	char letter;
	const char *meaning;
} table[OUTCOME_COUNT] = {
	[OUTCOME_UNDECIDED] = {"", ' ', "not tried"},
	[OUTCOME_PASS] = {"pass", '.', "every run met the expectation"},
	[OUTCOME_FAIL] = {"fail", 'F', "every run missed the expectation"},
	[OUTCOME_FLAKY] = {"flaky", '~', "some runs met the expectation, some did not"},
	[OUTCOME_CRASH] = {"crash", 'C', "the program was killed by a signal"},
	[OUTCOME_TIMEOUT] = {"timeout", 'T', "the program did not end in time"},
	[OUTCOME_BUILD_FAIL] = {"build-fail", 'b', "it could not be built: no evidence"},
	[OUTCOME_ICE] = {"ice", 'I', "the compiler itself crashed"},
	[OUTCOME_SKIP] = {"skip", '-', "cannot be tried"},
	[OUTCOME_ERROR] = {"error", '!', "trouble of bisectd's own"},
};

const char *outcome_name(enum outcome outcome)
{
	return table[outcome].name;
}

char outcome_letter(enum outcome outcome)
{
	return table[outcome].letter;
}

const char *outcome_meaning(enum outcome outcome)
{
	return table[outcome].meaning;
}

bool outcome_parse(const char *word, enum outcome *outcome)
{
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++) {
		if (strcmp(table[i].name, word) == 0) {
			*outcome = (enum outcome)i;
			return true;
		}
	}
	return false;
}
