/*
 * The job "passes": at which optimizer pass a bad cell turns bad, and which of the classic switches cure it.
 * common/job.h has the contract.  The pass where a fault appears is where it becomes visible, not who is to blame: the
 * result says so.
 */
#ifndef BISECTD_WORKER_EVIDENCE_PASSES_H
#define BISECTD_WORKER_EVIDENCE_PASSES_H

#include "evidence/limit.h"
#include "evidence/shim.h"

/* The job while it is done.  Everything in it is passes.c's and bisect.c's. */
struct passes {
	const struct job *job;
	struct result *result; /* of the whole job */
	struct cell cell;
	struct shim shim;
	char *folder;         /* of the trace (shim.h) */
	long long deadline;   /* monotonic ms: no step starts that would probably end after it */
	long long longest_ms; /* the longest step so far */
	long long builds;     /* done */
	enum outcome bad;     /* OUTCOME_UNDECIDED: the first one that is not a pass */
	long long bad_exit;   /* as the first bad step ended: another end is another fault */
	long long bad_signal;
	bool bad_seen;
	regex_t function; /* where has_function */
	bool has_function;
	char *commands; /* of the result */
};

/* A build of the cell with something added, and its runs. */
struct step {
	/* in; borrowed */
	const char *const *flags; /* NULL-terminated; may be NULL */
	bool final_only;
	bool quiet; /* these three as in struct shim_trace */
	const struct strmap *limits;

	/* out */
	bool done;     /* false: no time was left, and nothing was done */
	bool compiled; /* the compiler was called at all */
	bool same_end; /* as the first bad step's */
	enum outcome outcome;
	char *reason; /* NULL for a pass */
	char *binary; /* hash of the program that ran, or NULL */
};

#define cleanup_step __attribute__((cleanup(step_clear)))

/* -1: trouble of our own, the job cannot go on. */
int step_do(struct passes *passes, struct step *step, struct error *error);
/* What the step means for the search: SIGHT_UNKNOWN unless it ended exactly as a pass or as the cell does. */
enum sight step_sight(const struct passes *passes, const struct step *step);
/* Text that repeats the step by hand.  Owned. */
char *step_commands(const struct passes *passes, const struct step *step);
void step_clear(struct step *step);
/* A file of the trace (untrusted: a regular one, within the workspace), or -1. */
int passes_open(const struct passes *passes, const char *name, struct error *error);
/* Read up to `limit` bytes of it as lines. */
int passes_read_lines(const struct passes *passes, const char *name, struct strlist *lines, struct error *error);

/* An outcome of a flip that the bisection has come upon. */
struct known_flip {
	const char *name;
	struct step step;
};
enum { KNOWN_FLIPS = 4 };
struct known_flips {
	struct known_flip items[KNOWN_FLIPS];
	size_t count;
};

/* bisect.c: the whole bisection.  Returns the member "limit" of the result, owned; NULL after an error. */
json_t *passes_bisect(struct passes *passes, struct known_flips *known, struct error *error);

/* Any bytes as a JSON string. */
json_t *json_line(const char *text);

#endif
