/*
 * The kinds of job: one entry point each.  A job fills in its result (outcome PASS, or ERROR or SKIP with the reason)
 * and returns; it never ends the process.  What each reads and answers stands in job.h.
 */
#ifndef BISECTD_WORKER_JOBS_H
#define BISECTD_WORKER_JOBS_H

#include "job.h"

void toolchains_job(const struct job *job, struct result *result);
void releases_job(const struct job *job, struct result *result);
void prepare_job(const struct job *job, struct result *result);

#endif
