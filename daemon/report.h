/*
 * The report of an investigation as text for a terminal: the matrix, the first bad combination, the boundaries, how to repeat it,
 * what is not known, and where everything is.  Reads the database through view.h alone, so it can be made at any time.
 */
#ifndef BISECTD_DAEMON_REPORT_H
#define BISECTD_DAEMON_REPORT_H

#include "error.h"
#include "sql.h"
#include "str.h"

/* Appends to `text`.  `state_folder` is named in the report. */
int report_text(struct sql *sql, const char *investigation, const char *state_folder, struct str *text,
		struct error *error);

#endif
