/*
 * The kinds of job (common/job.h), one function each, and what they say while they work.
 *
 * A job function fills in the result and nothing else: trouble of its own is OUTCOME_ERROR with a reason.  It may use
 * standard error (the attempt's log); standard output belongs to the events below.
 */
#ifndef BISECTD_WORKER_JOBS_H
#define BISECTD_WORKER_JOBS_H

#include "job.h"

void toolchains_job(const struct job *job, struct result *result);
void releases_job(const struct job *job, struct result *result);
void prepare_job(const struct job *job, struct result *result);
void cell_job(const struct job *job, struct result *result);
void evidence_job(const struct job *job, struct result *result);
void audit_job(const struct job *job, struct result *result); /* worker/evidence/audit_file.c */
void passes_job(const struct job *job, struct result *result);

/* Sets outcome and reason (a format), replacing an earlier reason. */
void result_set(struct result *result, enum outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* {"event":"phase","phase":"run","number":2,"of":5}; number and of are left out where `of` is 0. */
void event_phase(const char *phase, long long number, long long of);
/* {"event":"progress","text":"..."}: one line for a person who watches. */
void event_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The "result" event; nothing may follow it. */
void event_result(const struct result *result);

#endif
