/* `bisectd audit`: has a worker audit the inline assembly of files, and prints what it found. */
#ifndef BISECTD_DAEMON_AUDIT_COMMAND_H
#define BISECTD_DAEMON_AUDIT_COMMAND_H

#include <jansson.h>

#include "service.h"
#include "str.h"

/*
 * 0 every block was judged and keeps its promises, 1 there are violations, 2 usage, 3 no violation, but a file or a
 * block could not be judged.  With options->clang_source the arguments are flags for clang, otherwise files.
 */
enum { AUDIT_CLEAN = 0, AUDIT_VIOLATIONS = 1, AUDIT_NOT_JUDGED = 3 };
int audit_command(const struct service_options *options, const struct strlist *arguments);

/* What the audits (the array in a job's report file) say to a person, appended. */
void audit_text(const json_t *audits, struct str *text);

#endif
