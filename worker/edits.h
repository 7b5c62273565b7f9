/*
 * Literal edits: file, find, replace, how many times it must match.  The folder that is edited comes from a repository
 * under test, so nothing is written outside it and no symbolic link in it is followed.
 */
#ifndef BISECTD_WORKER_EDITS_H
#define BISECTD_WORKER_EDITS_H

#include <jansson.h>

#include "error.h"

/*
 * Apply `edits` (an array of {"file", "find", "replace", "min", "max"}), in order, each to what the ones before it
 * left. Matches are counted from the left and do not overlap.  `min` is 1 and `max` unlimited where they are left out;
 * a file that does not exist has 0 matches.  `override` is the name for messages.  For each edit {"file", "matches"} is
 * appended to `report`.  -1 at the first edit that does not fit; the folder is then half edited, and the caller's to
 * throw away.
 */
int edits_apply(const char *folder, const json_t *edits, const char *override, json_t *report, struct error *error);

#endif
