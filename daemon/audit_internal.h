/* What the files of the audit command share. */
#ifndef BISECTD_DAEMON_AUDIT_INTERNAL_H
#define BISECTD_DAEMON_AUDIT_INTERNAL_H

#include <jansson.h>

#include "loop.h"
#include "pool.h"
#include "service.h"

struct auditing {
	const struct service_options *options;
	struct loop *loop;
	struct pool *pool;
	char *folder;  /* temporary */
	char *report;  /* a file in it */
	char *trouble; /* of the latest job: why it did not succeed; or NULL */
	json_t *data;  /* of the latest job, or NULL */
	bool stopped;
};

/* One job of a worker, to its end; its answer is in auditing->data. */
int audit_do_job(struct auditing *auditing, const struct job *job, struct error *error);

/*
 * Builds the package in options->cargo_folder with the newest toolchain at hand, and all that it depends on, in a workspace of its
 * own and in the sandbox, and audits the LLVM IR of every crate of it.  `flags` are for cargo build.  As the array of a report
 * file; a new reference, or NULL with the error.
 */
json_t *audit_cargo(struct auditing *auditing, const struct strlist *flags, struct error *error);

#endif
