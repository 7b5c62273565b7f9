/* What the files of the look share. */
#ifndef BISECTD_WORKER_EVIDENCE_LOOK_INSIDE_H
#define BISECTD_WORKER_EVIDENCE_LOOK_INSIDE_H

#include <jansson.h>

#include "evidence/audit.h"
#include "evidence/declare.h"
#include "evidence/elf.h"
#include "evidence/listing.h"
#include "evidence/machine.h"
#include "str.h"

struct look {
	const json_t *request;
	char *folder; /* of the request: the artifacts go there */
	json_t *answer;
	struct declare_roots roots;
	struct audit *audits; /* one an IR file that could be read */
	size_t audit_count;
	size_t audit_capacity;
	struct binary *binary; /* the program; NULL where it cannot be read */
	struct machine *machine;
	uint64_t *deciding; /* addresses in the program: definition, destroyer, reader of broken paths */
	size_t deciding_count;
	size_t deciding_capacity;
};

/* Members of the request; NULL where they are missing or null. */
const char *look_text(const struct look *look, const char *key);
/* Something could not be done, which ends nothing: one line in "not_done" of the answer. */
void look_miss(struct look *look, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text file beside the answer, listed in its "artifacts". */
int look_add_artifact(struct look *look, const char *name, const char *kind, const char *title, const struct str *text,
		      struct error *error);

/* Where look_next_accused goes on; starts as {0}. */
struct look_place {
	size_t audit;
	size_t block;
};

/* The next block that breaks a promise, in the function `symbol` or (NULL) in any; NULL: there is none any more. */
const struct audit_block *look_next_accused(const struct look *look, struct look_place *at, const char *symbol);

/* "audit" of the answer, and "twins": the corrections of accused declarations. */
int look_at_contracts(struct look *look, struct error *error);
int look_for_twins(struct look *look, struct error *error);
/* "paths": what happens in the program behind the accused blocks. */
int look_at_paths(struct look *look, struct error *error);
/* "functions", their listings as artifacts, "comparison" with the bad cell's, "unsafe". */
int look_at_code(struct look *look, struct error *error);

#endif
