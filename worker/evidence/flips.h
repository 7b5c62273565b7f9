/*
 * The classic switches, one at a time: what to add to a compile to change one thing of it.  Pure: a table, and a reader
 * of rustc's command line that knows which rows would change nothing.
 */
#ifndef BISECTD_WORKER_EVIDENCE_FLIPS_H
#define BISECTD_WORKER_EVIDENCE_FLIPS_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

struct flip {
	const char *name;
	const char *key; /* what it sets, as in settings_read; "-Z" ones with that before: "-Z mir-opt-level" */
	const char *value;
	const char *flags[6]; /* NULL-terminated */
	const char *machine;  /* uname's; NULL: any */
	bool final_only;      /* for programs and shared libraries: rustc refuses it elsewhere */
	bool refusable;       /* may be impossible here: a build that fails then says nothing */
};

extern const struct flip flips[];
extern const size_t flip_count;

/*
 * What a rustc command line says about the keys of the table, defaults filled in, each value in one spelling:
 * "debuginfo" -> "2". Of several the last counts, as for rustc.  "-O" stands as "O": it means 2 or 3, by version.
 */
void settings_read(const struct strlist *words, struct strmap *settings);
/* Would it change anything, on this machine (uname's)? */
bool flip_differs(const struct flip *flip, const struct strmap *settings, const char *machine);

#endif
