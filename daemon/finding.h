/*
 * Findings as JSON: what is stored, posted and shown.
 *
 * Pure: from what the views say to the generic payload of webhook.h.  docs/config.md ("What is posted") documents the members.
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
 * What can be concluded.  Without evidence about who is to blame it is "inconclusive": a difference between versions, compilers
 * or profiles alone is never grounds for blame.  Says what the matrix shows and what is missing.
 */
json_t *finding_verdict(const struct view_investigation *investigation, const struct view_first_bad *first_bad,
			const struct view_boundaries *boundaries);

/* "introduced between 0.5.0 and 0.6.0" and the like: one line, owned by the caller. */
char *finding_boundary_line(const struct view_boundary *boundary);

#endif
