/*
 * Edited copies of sources, shared by all preparations:
 *
 *   <edited>/KEY/NAME/        the copy; never changed once it is there, so that cargo's times of files stay true
 *   <edited>/KEY/edits.json   what was edited
 *
 * KEY is the SHA-256 of what the sources are and of the edits.
 */
#ifndef BISECTD_WORKER_EDITED_H
#define BISECTD_WORKER_EDITED_H

#include <jansson.h>

#include "error.h"

struct edited_request {
	const char *edited;   /* the folder for all of them */
	const char *name;     /* of the copy */
	const char *identity; /* of the sources: what they are, in a word that no other sources have */
	const char *from;     /* the sources */
	/* [{"override", "crate", "version", "folder" (below the sources, "" for themselves), "edits"}]; may be empty */
	const json_t *plan;
};

/* One element of a plan on a copy that is the caller's own. */
int edited_apply(const char *copy, const json_t *planned, json_t *report, struct error *error);
/* `path` receives the copy's folder.  To `report` {"override", "crate", "version", "file", "matches"} is appended for
 * each edit. */
int edited_make(const struct edited_request *request, char **path, json_t *report, struct error *error);

#endif
