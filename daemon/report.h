/*
 * Reports: what the database knows of investigations, for a terminal, for an issue, for programs and for a browser.
 *
 * Reads the database through view.h alone, so it can be made at any time.  report_model.h is what a report says, and each format
 * is one file: report_text.c, report_markdown.c, report_json.c (docs/report.md documents its shape), report_html.c.
 */
#ifndef BISECTD_DAEMON_REPORT_H
#define BISECTD_DAEMON_REPORT_H

#include <stdbool.h>

#include "error.h"
#include "sql.h"
#include "str.h"

enum report_format { REPORT_TEXT, REPORT_MARKDOWN, REPORT_JSON, REPORT_HTML };

/* "text", "markdown", "json", "html"; false where it is none of them. */
bool report_format_parse(const char *word, enum report_format *format);

struct report_options {
	enum report_format format;
	const char *state_folder; /* absolute; named in the report */
	const char *folder;       /* absolute: where the report will lie, so that links lead from there; NULL: the state folder */
};

/* Appends one report of all the named investigations. */
int report_make(struct sql *sql, const struct strlist *names, const struct report_options *options, struct str *report,
		struct error *error);

#endif
