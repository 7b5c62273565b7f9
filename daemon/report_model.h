/*
 * What a report says, whatever its format: the views, and the evidence and the verdict as lists of plain text.
 *
 * Evidence and verdict come as JSON that was made of programs under test: a member that is missing or of another type than it
 * should be is NULL, 0 or an empty list here, and nothing else is lost by it.  All text is as it was written, hostile as ever:
 * formats pass it through markup.h.  All pointers are owned by the model.
 */
#ifndef BISECTD_DAEMON_REPORT_MODEL_H
#define BISECTD_DAEMON_REPORT_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "sql.h"
#include "str.h"
#include "view.h"

/* Cells without evidence for or against anything, by outcome. */
struct report_unknown {
	const char *outcome; /* "not tried" where there is none */
	long long cells;
	size_t reasons;                     /* different ones */
	const struct view_unknown *example; /* the first in walk order */
};

/* One broken promise, of all blocks that are made from the same line of source. */
struct report_violation {
	const char *where; /* "src/no-linker.rs:94:13", or NULL */
	const char *crate;
	const char *probe;
	const char *function; /* of the first such block */
	const char *kind;
	const char *promise;
	const char *instruction;
	const char *what;
	const char *text;
	size_t blocks;
};

/* Blocks that could not be judged for one reason; function and place are the first's. */
struct report_unjudged {
	const char *reason;
	const char *function;
	const char *where;
	size_t blocks;
};

struct report_step {
	const char *role; /* "definition", "destroyer", "reader" */
	const char *address;
	const char *text;
	long long line; /* of the source; 0: not known */
};

struct report_path {
	const char *state; /* "broken", "sleeping", "unknown" */
	const char *function;
	const char *where;
	const char *probe;
	const char *destroys; /* "ZF, CF" */
	const char *consequence;
	const char *taken;
	const char *text;
	struct report_step *steps;
	size_t count;
};

/* One side of a line of two assemblies. */
struct report_side {
	const char *text; /* NULL where there is nothing on this side */
	const char *address;
	const char *label;  /* where branches come to it, or NULL */
	const char *source; /* where its line of source changes, or NULL */
};

struct report_row {
	struct report_side bad;
	struct report_side good;
	const char
		*change;  /* "same", "renamed", "changed", "left-only" (only in the bad one), "right-only" (only in the good one) */
	const char *note; /* why it counts as changed, or NULL */
	const char *role; /* of the broken path, where the bad line is a step of it; else NULL */
	bool deciding;
};

struct report_neighbour {
	long long cell;
	const char *combination;
	const char *axis; /* NULL where more than one differs */
	const char *value;
	const char *bad_value;
	const char *outcome; /* of the gathering */
	const char *reason;
	const char *symbol;  /* NULL where nothing was compared */
	const char *summary; /* how the two differ, in numbers; or NULL */
	bool has_step;       /* one of the rows is a step of the broken path */
	long long renamed;
	long long changed;
	struct report_row *rows;
	size_t count;
};

struct report_flip {
	const char *name;
	const char *flags;
	const char *outcome;
	const char *reason;
};

struct report_pass {
	const char *outcome; /* of the gathering, NULL where it was not tried */
	const char *reason;
	const char *pass;
	const char *unit;
	const char *line;
	const char *trouble; /* why it could not be bisected */
	long long number;
	long long passes;
	long long tried;
	const char *commands;
	struct report_flip *flips;
	size_t count;
};

struct report_twin {
	const char *name;
	const char *origin;
	const char *where;   /* "usdt-impl 0.3.5, src/no-linker.rs:94" */
	const char *edits;   /* "-" and "+" lines: what was found, what it became; NULL where that is not known */
	const char *outcome; /* NULL where it was not tried */
	const char *reason;
	const char *commands;
};

/* A file that the worker left. */
struct report_artifact {
	const char *name;
	const char *kind;
	const char *title;
	const char *path; /* relative to the state folder, or NULL where the worker's answer led out of its folder */
	const char *of;   /* the combination */
};

struct report_reason {
	const char *rule;
	const char *kind;
	const char *text;
	int holds; /* 1, 0, or -1: not known */
};

/* What the accused is fixed by. */
struct report_fix {
	const char *axis;
	const char *value;
	const char *detail; /* or NULL */
};

struct report_missing {
	const char *text;
	const char *command; /* or NULL */
};

struct report_model {
	char *state_folder;
	struct view_investigation about;
	struct view_first_bad first_bad;
	struct view_boundaries boundaries;
	struct view_matrix matrix;
	struct view_unknowns unknowns;
	struct strlist deliveries;
	char *sandboxes;

	json_t *evidence; /* view_evidence, or NULL */
	json_t *judged;   /* verdict_judge, or NULL */

	const char *verdict; /* the word, NULL where nothing was judged */
	const char *title;
	const char *blames;
	char *said_title; /* of the latest verdict that was recorded, for where nothing was judged; or NULL */
	char *said_text;

	/* of the evidence build */
	const char *build_outcome; /* of the gathering; NULL: it was not tried */
	const char *build_reason;
	const char *build_run; /* outcome of the program that was looked at */
	const char *build_commands;
	struct strlist not_done; /* what could not be found out about the bad cell's program, and why */
	int same_text;           /* 1: the code is that of the program that failed; 0: not; -1: not known */
	bool audited;
	long long blocks;
	long long judged_blocks;
	long long not_judged_blocks;
	long long violation_count;

	struct report_unknown *unknown;
	size_t unknown_count;
	struct report_reason *reasons;
	size_t reason_count;
	struct report_fix *fixes;
	size_t fix_count;
	struct report_missing *missing;
	size_t missing_count;
	struct report_violation *violations; /* by line of source; all together are `violation_count` */
	size_t violation_kinds;
	struct report_unjudged *unjudged;
	size_t unjudged_count;
	struct report_path *paths; /* the broken ones first */
	size_t path_count;
	struct report_neighbour *neighbours;
	size_t neighbour_count;
	struct report_pass pass;
	struct report_twin *twins;
	size_t twin_count;
	struct report_artifact *artifacts;
	size_t artifact_count;

	struct strlist pool; /* texts that were put together */
};

#define cleanup_report_model __attribute__((cleanup(report_model_clear)))

/* Everything of one investigation; a name that is not there is an error. */
int report_model_load(struct report_model *model, struct sql *sql, const char *investigation, const char *state_folder,
		      struct error *error);
/* Takes over both references, each of which may be NULL, and makes the lists from them.  Once a model. */
void report_model_take(struct report_model *model, json_t *evidence, json_t *judged);
void report_model_clear(struct report_model *model);

/* The number of paths in that state. */
size_t report_model_paths(const struct report_model *model, const char *state);

/* report_evidence.c: the lists of `evidence` and `judged`.  For report_model_take alone. */
void report_evidence_read(struct report_model *model);
void report_evidence_clear(struct report_model *model);

#endif
