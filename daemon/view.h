/*
 * Views: the read-only queries that the report, the investigation and (later) HTTP share.
 *
 * Works on any connection to the database.  Results are owned by the caller and freed by their clear function.
 */
#ifndef BISECTD_DAEMON_VIEW_H
#define BISECTD_DAEMON_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "outcome.h"
#include "sql.h"
#include "str.h"

struct view_investigation {
	char *name; /* NULL: there is no such investigation */
	char *state;
	char *question;
	char *file; /* where its YAML file was */
	char *notes;
	char *started_at;
	char *finished_at; /* or NULL */
	long long cells;
	long long decided;
	long long bad;
	long long good;
};

void view_investigation_clear(struct view_investigation *investigation);
int view_investigation(struct sql *sql, const char *name, struct view_investigation *investigation, struct error *error);
/* The names of all investigations. */
int view_names(struct sql *sql, struct strlist *names, struct error *error);

struct view_first_bad {
	char *combination; /* NULL: nothing bad is known */
	char *outcome;
	char *reason;
	char *signature;
	char *log;	/* relative to the state folder */
	char *commands; /* or NULL while it is not confirmed */
	bool final;
	bool confirmed;
	long long walk_index;
	long long cell;
	char *cell_key;
};

void view_first_bad_clear(struct view_first_bad *first_bad);
int view_first_bad(struct sql *sql, const char *investigation, struct view_first_bad *first_bad, struct error *error);

struct view_boundary {
	char *axis;
	char *change; /* "introduced", "fixed" */
	char *from_value;
	char *to_value;
	char *to_detail; /* or NULL */
	char *from_combination;
	char *to_combination;
	long long gap;	 /* values between the two that gave no evidence */
	long long pairs; /* how many pairs of cells cross here */
	bool confirmed;
	long long from_walk_index;
	long long to_walk_index;
	long long from_cell; /* ids in the database, of the first pair */
	long long to_cell;
};

struct view_boundaries {
	struct view_boundary *items;
	size_t count;
	size_t capacity;
};

void view_boundaries_clear(struct view_boundaries *boundaries);
int view_boundaries(struct sql *sql, const char *investigation, struct view_boundaries *boundaries, struct error *error);

struct view_value {
	char *label;
	char *identity;
	char *detail;	   /* or NULL */
	char *skip_reason; /* or NULL */
};

struct view_axis {
	char *name;
	char *type;
	bool ordered;
	size_t stride;
	struct view_value *values;
	size_t count;
	size_t capacity;
};

enum { VIEW_ABSENT = 255 };

struct view_matrix {
	struct view_axis *axes;
	size_t axis_count;
	size_t axis_capacity;
	size_t cell_count;	 /* of the whole product */
	unsigned char *outcomes; /* enum outcome by walk index, or VIEW_ABSENT where the cell is excluded */
};

void view_matrix_clear(struct view_matrix *matrix);
int view_matrix(struct sql *sql, const char *investigation, struct view_matrix *matrix, struct error *error);

/* What the matrix could not tell: one row for each outcome and reason that is no evidence, with how many cells and an example. */
struct view_unknown {
	char *outcome; /* "" where it was not tried */
	char *reason;
	char *combination;
	long long cells;
};

struct view_unknowns {
	struct view_unknown *items;
	size_t count;
	size_t capacity;
};

void view_unknowns_clear(struct view_unknowns *unknowns);
int view_unknowns(struct sql *sql, const char *investigation, struct view_unknowns *unknowns, struct error *error);

/* "team: delivered first-bad (3 attempts)", one line a delivery, oldest first. */
int view_deliveries(struct sql *sql, const char *investigation, struct strlist *lines, struct error *error);

/* The text and title of the latest verdict; NULL where there is none.  Owned by the caller. */
int view_verdict(struct sql *sql, const char *investigation, char **title, char **text, struct error *error);

/* How long the latest clean build of a cell took; 0 where there was none. */
int view_clean_build_ms(struct sql *sql, long long cell, long long *ms, struct error *error);

/*
 * All that is known of the first bad cell beyond its outcome, as one JSON object (docs/evidence.md describes it); *evidence is NULL
 * where nothing is bad.  A new reference.
 */
int view_evidence(struct sql *sql, const char *investigation, json_t **evidence, struct error *error);

/* Attempts of the investigation's cells that ran commands under each kind of sandbox: "bubblewrap: 212, none: 3"; owned
 * by the caller. */
int view_sandboxes(struct sql *sql, const char *investigation, char **text, struct error *error);

#endif
