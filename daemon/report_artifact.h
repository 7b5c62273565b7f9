/* Files that the worker left for the evidence, read to be shown. */
#ifndef BISECTD_DAEMON_REPORT_ARTIFACT_H
#define BISECTD_DAEMON_REPORT_ARTIFACT_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

enum { ARTIFACT_LIMIT = 400 << 10 /* bytes that are shown of one */ };

/*
 * At most ARTIFACT_LIMIT bytes of <state_folder>/<path>, cut at the end of a line where it is longer (*cut).  `path` starts with
 * "evidence/" and must still lie there once every symbolic link is followed, because programs under test write below that folder.
 */
int report_artifact_read(const char *state_folder, const char *path, struct str *text, bool *cut, struct error *error);

#endif
