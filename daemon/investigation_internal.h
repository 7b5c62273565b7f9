/* What the files of the investigation room share. */
#ifndef BISECTD_DAEMON_INVESTIGATION_INTERNAL_H
#define BISECTD_DAEMON_INVESTIGATION_INTERNAL_H

#include <stdatomic.h>

#include "axis.h"
#include "cell_job.h"
#include "investigation.h"
#include "notify.h"
#include "plan/plan.h"

/* One source while it is fetched and afterwards. */
struct investigation_source {
	struct investigation *investigation;
	const struct config_source *config;
	char *folder;
	struct error error; /* of the fetch */
	bool failed;
	atomic_size_t done; /* progress, written by the fetching thread */
	atomic_size_t total;
};

/* An exported tree or a preparation: made once, before the cells that need it. */
enum supply_state { SUPPLY_ABSENT, SUPPLY_MAKING, SUPPLY_READY, SUPPLY_FAILED };

struct supply {
	struct investigation *investigation;
	char *name; /* oid, or the preparation's key */
	const char *source; /* of a tree */
	enum supply_state state;
	enum outcome outcome; /* where it failed: OUTCOME_ERROR or OUTCOME_SKIP */
	char *reason;
	long long failures;
	struct error error; /* of the thread that exports */
};

/* One job after the walk: see investigation_evidence.c. */
enum evidence_kind { EVIDENCE_BUILD, EVIDENCE_TWIN, EVIDENCE_PASSES, EVIDENCE_NEIGHBOUR };
enum evidence_state { EVIDENCE_OPEN, EVIDENCE_RUNNING, EVIDENCE_DONE };

struct evidence_task {
	enum evidence_kind kind;
	enum evidence_state state;
	size_t cell;	    /* whose combination is built */
	long long other_id; /* the cell that is looked at, in the store: a good neighbour, a twin */
	long long failures;
	/* of a twin: the investigation's context with one override more */
	struct cell_context context;
	struct config config;
	struct config_override correction; /* of an accused declaration; empty for a twin of the user's own */
	json_t *edits;			   /* to the reproducer, or NULL */
};

/* One slot of the pool, and the cell that it brings to its end. */
struct walker {
	struct investigation *investigation;
	size_t slot;
	bool busy;
	bool waits; /* for a supply that is being made */
	long group; /* value of the toolchain axis that it stays with, or PLAN_NONE */
	size_t cell;
	bool confirms; /* a clean build with further runs, in place of the walk's attempt */
	bool keeps;    /* in a folder that stays */
	struct evidence_task *task; /* in place of a cell of the walk; or NULL */
	bool working;		    /* a job of its lane is under way */
	long long lane;
	long long attempt_id; /* 0 before it starts */
	char *log;
	char *phase; /* for the status line */
	long long started_ms;
};

enum confirmation { CONFIRMATION_NONE, CONFIRMATION_WANTED, CONFIRMATION_RUNNING, CONFIRMATION_DONE };

struct cell_record {
	long long id; /* in the store; 0 where it is excluded or skipped */
	enum outcome outcome;
	bool confirmed;
	bool repeatable;	    /* confirmed in a folder that is kept */
	unsigned char confirmation; /* enum confirmation */
	unsigned char errors;	    /* in this run */
};

struct investigation {
	struct investigation_setup setup;
	struct axes axes;
	struct cell_context context;
	char *reproducer_hash;
	struct axis implicit; /* the toolchains found where the investigation names none, or only old ones */
	struct config_axis implicit_config;
	char *fetch_cargo;

	struct investigation_source *sources;
	size_t fetching;

	/* resolving */
	size_t axis;		   /* the one being resolved */
	json_t *releases;	   /* answers by release */
	struct source_commits *commits; /* of each entry of the axis */
	struct error *commit_errors;	/* likewise */
	bool *commit_failed;
	char **details; /* stands_for: read from the clone, for each entry */

	struct plan plan;
	struct cell_record *cells;
	int group_axis; /* the toolchain axis, or PLAN_NONE */
	long long id;	/* in the store */
	struct str notes;

	struct supply **supplies;
	size_t supply_count;
	size_t supply_capacity;
	struct walker *walkers;
	size_t walker_count;
	size_t works; /* on other threads */
	size_t decided_now;
	long long walk_started_ms;
	struct loop_timer *status_timer;

	struct notify *notify;
	struct loop_timer *delivery_timer;

	struct evidence_task **tasks;
	size_t task_count;
	size_t task_capacity;
	bool evidence_planned; /* the first stage, the bad cell itself */
	bool evidence_spread;  /* what follows from it: twins, passes, neighbours */
	long evidence_cell;    /* the bad cell that it is about, or PLAN_NONE */

	bool first_bad_recorded;
	bool stopping;
	bool walking;
	bool ended;
	enum investigation_end end;
	struct error error;
};

/* Sets `positions` (one for each axis) to where a cell stands. */
void investigation_positions(const struct investigation *investigation, size_t cell, size_t *positions);
/* Ends the investigation with trouble (or as stopped) once nothing is under way. */
void investigation_fail(struct investigation *investigation, const char *attempt, struct error *error);
/* Nothing is under way any more: set the state, and tell the owner. */
void investigation_finish(struct investigation *investigation, enum investigation_end end);

/* investigation_resolve.c: fetches and resolves, then calls investigation_resolved. */
void investigation_resolve(struct investigation *investigation);
void investigation_resolved(struct investigation *investigation);

/* investigation_matrix.c: the plan and its rows in the store.  -1: trouble. */
int investigation_make_plan(struct investigation *investigation, struct error *error);
int investigation_save_matrix(struct investigation *investigation, struct error *error);
enum plan_state investigation_plan_state(const struct investigation *investigation, enum outcome outcome);

/* investigation_supply.c.  True when all that the walker's cell needs is there; else it is being made (the walker
 * waits), or the walker was concluded because it cannot be made. */
bool investigation_supply_cell(struct walker *walker, const size_t *positions);

/* investigation_walk.c */
void investigation_walk(struct investigation *investigation);
void investigation_advance(struct walker *walker);
/* Every walker that waits looks again, every idle one takes a cell. */
void investigation_advance_all(struct investigation *investigation);
/* The walker's cell ends with a result that no worker gave. */
void investigation_conclude(struct walker *walker, enum outcome outcome, const char *reason);

/* An attempt at a cell of the store, which sets walker->log.  False: trouble; the walker is free. */
bool investigation_start_attempt(struct walker *walker, long long cell_id);
/* The walker is free. */
void investigation_leave(struct walker *walker);

/* investigation_evidence.c: after the walk.  False: nothing to do (now). */
bool investigation_take_task(struct walker *walker);
/* Sets walker->log, and for a twin, which is a cell, starts an attempt.  False: trouble; the walker is free. */
bool investigation_open_task(struct walker *walker);
/* On top of what a cell's job says: what the walker's task asks. */
void investigation_fill_task(const struct walker *walker, struct job *job);
/* What came of the walker's task; the walker is free afterwards. */
void investigation_record_task(struct walker *walker, const struct result *result);
/* The walker's task ends with a result that no worker gave. */
void investigation_conclude_task(struct walker *walker, enum outcome outcome, const char *reason);
/* What the walker's combination stands for: the investigation's context, or its twin's. */
const struct cell_context *investigation_context(const struct walker *walker);
void investigation_free_tasks(struct investigation *investigation);

/* investigation_findings.c: what is new is recorded and put in the outbox.  -1: trouble. */
int investigation_record_first_bad(struct investigation *investigation, struct error *error);
int investigation_record_end(struct investigation *investigation, struct error *error);

/* investigation_status.c: the status line, from now on, where there is a terminal for it. */
void investigation_start_status(struct investigation *investigation);

#endif
