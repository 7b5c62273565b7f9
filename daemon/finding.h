/*
 * Findings as JSON: what is stored, posted and shown.
 *
 * Pure: from what the views say to the generic payload of webhook.h.  docs/config.md ("What is posted") documents the members.
 * "title" and "text" are lines without control characters, "markdown" is escaped; all other members are as they were found.
 */
#ifndef BISECTD_DAEMON_FINDING_H
#define BISECTD_DAEMON_FINDING_H

#include <jansson.h>

#include "view.h"

/* New references. */
json_t *finding_first_bad(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			  const struct view_matrix *matrix);
json_t *finding_boundary(const struct view_investigation *investigation, const struct view_boundary *boundary);
/*
 * What can be concluded, in short.  `judged` is what verdict_judge gave: title, who is blamed, the reasons that hold, what is
 * missing and the commands; the whole is in the report.  Where it is NULL (nothing is bad, or nothing was judged) the verdict is
 * "inconclusive": a difference between versions, compilers or profiles alone is never grounds for blame.
 */
json_t *finding_verdict(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			const struct view_boundaries *boundaries, const json_t *judged);

/* "introduced between 0.5.0 and 0.6.0" and the like: one line, owned by the caller. */
char *finding_boundary_line(const struct view_boundary *boundary);

#endif
