/*
 * The store: everything that is written to <state>/bisectd.db, and the lock that keeps a second daemon out.
 *
 * Every function is one transaction unless it says that it runs inside the caller's (store_begin).  All of them return 0, or -1
 * with the error; then nothing was changed.  Knows nothing of axes or plans: what it is given is text and numbers.
 */
#ifndef BISECTD_DAEMON_STORE_H
#define BISECTD_DAEMON_STORE_H

#include <stdbool.h>

#include "error.h"
#include "job.h"
#include "outcome.h"
#include "sql.h"
#include "str.h"

struct store;

/*
 * Open the state folder (made when missing, private to its owner), take its lock, open and migrate the database, and mark what a
 * killed run left running as interrupted.  A folder in use, a database of a newer bisectd and a damaged one are refused with
 * what to do.
 */
int store_open(struct store **store, const char *state_folder, struct error *error);
void store_close(struct store *store); /* NULL is fine */
struct sql *store_connection(struct store *store); /* for view.h; borrowed */

int store_begin(struct store *store, struct error *error);
int store_commit(struct store *store, struct error *error);
void store_rollback(struct store *store);

/* Pinned answers: see table resolution.  store_recall gives NULL where there is none; owned by the caller. */
int store_recall(struct store *store, const char *kind, const char *name, char **content, struct error *error);
int store_pin(struct store *store, const char *kind, const char *name, const char *content, struct error *error);

/* Matrix ------------------------------------------------------------------------------------------------------------- */

struct store_investigation {
	const char *name;
	const char *question; /* or NULL */
	const char *file;
	const char *text;
	const char *notes; /* for the report, one line each */
	const bool *bad;   /* OUTCOME_COUNT flags */
};

struct store_cell {
	long long id;
	enum outcome outcome; /* OUTCOME_UNDECIDED where there is none */
	bool confirmed;
	bool repeatable; /* has commands, whose folder is kept */
};

/* These five run inside the caller's transaction.  Saving an investigation forgets its old axes and places, never a cell. */
int store_save_investigation(struct store *store, const struct store_investigation *investigation, long long *id,
			     struct error *error);
int store_save_axis(struct store *store, long long investigation_id, size_t position, const char *name, const char *type,
		    bool ordered, size_t size, size_t stride, long long *axis_id, struct error *error);
int store_save_value(struct store *store, long long axis_id, size_t position, const char *label, const char *identity,
		     const char *detail, const char *skip_reason, struct error *error);
/* The cell with that key is made where it does not exist yet, else found with what is known of it. */
int store_save_place(struct store *store, long long investigation_id, size_t walk_index, const char *combination,
		     const char *cell_key, struct store_cell *cell, struct error *error);
int store_save_skipped_place(struct store *store, long long investigation_id, size_t walk_index, const char *combination,
			     const char *skip_reason, struct error *error);

/* "walking", "finished", "stopped". */
int store_set_state(struct store *store, long long investigation_id, const char *state, struct error *error);

/* Attempts ----------------------------------------------------------------------------------------------------------- */

/* `log` becomes the path of its log relative to the state folder, owned by the caller. */
int store_start_attempt(struct store *store, long long cell_id, const char *kind, long long *attempt_id, char **log,
			struct error *error);

struct store_decision {
	enum outcome outcome; /* of the cell from now on */
	const char *reason;   /* or NULL */
	bool confirmed;
	bool keeps; /* the folder that its commands name stays: they are recorded */
};

/* Records the attempt, its runs and what they mean for the cell: nothing where `decision` is NULL. */
int store_finish_attempt(struct store *store, long long attempt_id, const struct result *result,
			 const struct store_decision *decision, struct error *error);
/* An attempt that was stopped on purpose: it says nothing about the cell. */
int store_interrupt_attempt(struct store *store, long long attempt_id, struct error *error);

/* Evidence ----------------------------------------------------------------------------------------------------------- */

struct store_evidence {
	long long cell_id;  /* the bad cell that it is about */
	const char *kind;   /* "build", "neighbour", "passes" */
	long long other_id; /* the cell that was looked at: cell_id, or a good neighbour's */
	enum outcome outcome; /* of the gathering: OUTCOME_PASS, OUTCOME_SKIP or OUTCOME_ERROR (which is tried again) */
	const char *reason; /* or NULL */
	const char *data;   /* JSON, "null" where there is none */
};

/* *has: gathered already, so that it need not be again ("error" is not). */
int store_has_evidence(struct store *store, long long cell_id, const char *kind, long long other_id, bool *has,
		       struct error *error);
/* Replaces what was there. */
int store_save_evidence(struct store *store, const struct store_evidence *evidence, struct error *error);

struct store_twin {
	long long of_cell_id;
	const char *name;
	const char *origin; /* "audit", "user" */
	const char *edit;   /* JSON: see table twin */
	const char *cell_key;
};

/* The twin and its cell: `cell` says what is known of that already. */
int store_save_twin(struct store *store, const struct store_twin *twin, struct store_cell *cell, struct error *error);

/* Findings and their deliveries ---------------------------------------------------------------------------------------- */

struct store_webhook {
	const char *name;
	long long give_up_after_ms;
};

struct store_finding {
	const char *kind; /* "first-bad", "boundary", "verdict" */
	const char *key;  /* names what was found: written once an investigation */
	const char *title;
	const char *text;
	const char *verdict; /* or NULL */
	const char *body;    /* JSON */
	const struct store_webhook *webhooks; /* who is to be told */
	size_t webhook_count;
};

/* Finding and outbox in one transaction.  *added is false where the finding stands already. */
int store_add_finding(struct store *store, long long investigation_id, const struct store_finding *finding, bool *added,
		      struct error *error);

struct store_delivery {
	long long id; /* 0: there is none */
	char *webhook;
	char *event;
	char *idempotency_key;
	char *body; /* the finding's JSON */
	long long attempts;
	long long next_at;    /* Unix ms */
	long long give_up_at; /* Unix ms */
};

void store_delivery_clear(struct store_delivery *delivery);
/* Pending deliveries to webhooks that are not among the named ones any more are given up. */
int store_give_up_removed(struct store *store, long long investigation_id, const struct strlist *webhooks,
			  struct error *error);
/* The pending delivery to one webhook of an investigation that is to be tried next; id 0 where there is none. */
int store_next_delivery(struct store *store, long long investigation_id, const char *webhook,
			struct store_delivery *delivery, struct error *error);
/* `state` "pending" (then `next_at` counts), "delivered" or "given-up". */
int store_record_delivery(struct store *store, long long delivery_id, const char *state, long status, const char *reason,
			  long long next_at, struct error *error);

/* Unix time in milliseconds. */
long long store_now(void);

#endif
