/*
 * From a combination of values to the jobs that try it, and to the keys that identify them.
 *
 * Pure: the same configuration, axes and positions always give the same job and the same key.  A key covers all that can change an
 * outcome: the reproducer's tree, every resolved identity, commands, environment, placeholders, expectation, overrides, limits;
 * and no path of this machine, so that it stays the same when the state folder moves.
 */
#ifndef BISECTD_DAEMON_CELL_JOB_H
#define BISECTD_DAEMON_CELL_JOB_H

#include "axis.h"
#include "config.h"
#include "job.h"

/* What all cells of an investigation share. */
struct cell_context {
	const struct config *config;
	const struct axes *axes;
	const struct axis_value *default_toolchain; /* where no axis is a toolchain, or NULL */
	const char *state_folder;		    /* absolute */
	const char *reproducer_hash;
	bool has_manifest;			    /* the reproducer is a cargo crate: preparations are needed */
	const char *fetch_cargo;		    /* the newest cargo at hand, or NULL */
	json_t *reproducer_edits;		    /* done to the copy that is built: of a twin; or NULL */
};

/* The toolchain of a combination, or NULL. */
const struct axis_value *cell_toolchain(const struct cell_context *context, const size_t *positions);

/* Key of a cell; owned by the caller. */
char *cell_key(const struct cell_context *context, const size_t *positions);

/* Key of the preparation that a cell needs; NULL where it needs none.  Owned by the caller. */
char *cell_preparation_key(const struct cell_context *context, const size_t *positions);

/* The commit values whose trees a combination needs exported: their count, and the values (borrowed) in `values`, which has room
 * for one an axis. */
size_t cell_commits(const struct cell_context *context, const size_t *positions, const struct axis_value **values);
/* Where the tree of a commit is exported to; owned by the caller. */
char *cell_tree_folder(const struct cell_context *context, const char *oid);
char *cell_prepared_folder(const struct cell_context *context, const char *preparation_key);

/* The edits of an override as a job has them, and as twins are stored: [{"file","find","replace","min","max"}]; a new reference. */
json_t *cell_edits_to_json(const struct config_override *override);

/* Fill in a "prepare" job.  `lock`: the pinned Cargo.lock, or NULL. */
void cell_fill_preparation(const struct cell_context *context, const size_t *positions, const char *preparation_key,
			   const char *lock, struct job *job);

/*
 * Fill in a "cell" job that works below `folder` (work/ and target/ in it).  `clean`: empty the build folder first.
 */
void cell_fill_job(const struct cell_context *context, const size_t *positions, const char *folder, bool clean,
		   struct job *job);

#endif
