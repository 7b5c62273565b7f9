/*
 * Asking cargo: resolution, checksums, manifests, sources.  Nothing is ever built here, and cargo's own configuration
 * (mirrors, source replacement, proxies, offline) is honoured, because cargo itself is asked.  Knows nothing of jobs.
 */
#ifndef BISECTD_WORKER_CARGO_H
#define BISECTD_WORKER_CARGO_H

#include <jansson.h>

#include "child.h"
#include "error.h"
#include "str.h"

/* Why cargo did not do what it was asked. */
enum cargo_trouble {
	CARGO_FINE,
	CARGO_REFUSED, /* an answer: there is no such release, the requirements contradict each other */
	CARGO_BROKEN,  /* no answer: the registry is away, the disk is full, cargo does not run */
};

struct cargo {
	char *program;
	char *config; /* file for --config; NULL: none */
	struct strmap environment;
	enum cargo_trouble trouble; /* of the last command */
};

#define cleanup_cargo __attribute__((cleanup(cargo_clear)))

/* `program` NULL: the cargo on PATH.  `target` is the (never used) build folder, so that nothing is written anywhere
 * else. */
void cargo_open(struct cargo *cargo, const char *program, const char *target);
void cargo_clear(struct cargo *cargo);

/*
 * Run cargo in `folder` with the words of `arguments`; what it says on standard error is copied to ours.  0 when it
 * succeeded; -1 with its message in one line and `trouble` set.
 */
int cargo_run(struct cargo *cargo, const char *folder, const struct strlist *arguments, struct child_output *output,
	      struct error *error);
/* The same with an array of words that NULL ends, and without the output. */
int cargo_do(struct cargo *cargo, const char *folder, const char *const words[], struct error *error);

/* The packages that a manifest and its workspace define, without dependencies; a new reference in `metadata`. */
int cargo_members(struct cargo *cargo, const char *folder, const char *manifest, json_t **metadata,
		  struct error *error);

/* Cargo's message on standard error as one line: from its first "error:" on; owned by the caller.  For tests. */
char *cargo_reason(const char *errors);
/* For tests: is this message an answer or a breakdown? */
enum cargo_trouble cargo_judge(const char *errors);

#endif
