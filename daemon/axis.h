/*
 * Axes: the values that the entries of an investigation resolved to, and which combinations of them are in the matrix.
 *
 * Takes answers (of workers, of sources) and does no I/O itself.  A value that could not be resolved stays on its axis with the
 * reason why its cells are skipped, so that the report can say what is not known.
 */
#ifndef BISECTD_DAEMON_AXIS_H
#define BISECTD_DAEMON_AXIS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "error.h"
#include "source.h"
#include "str.h"

struct axis_value {
	char *label;	   /* unique on its axis */
	char *identity;	   /* immutable: what the cell's key covers */
	char *detail;	   /* one line for people, or NULL */
	char *skip_reason; /* or NULL */
	const struct config_value *config; /* the entry that it came from; NULL for a toolchain that was found */
	bool from_range;   /* one commit of a range (@commits) */
	char *oid;	   /* a commit's 40 digits, or NULL */
	const char *source; /* which source the commit is of (owned by the configuration), or NULL */
	/* toolchain */
	char *compiler; /* the program itself: rustc, or what a `command:` names; or NULL */
	char *rustc;	/* or NULL */
	char *cargo;
	struct strlist path;
	struct strlist read_only;
};

struct axis {
	const struct config_axis *config;
	struct axis_value *values;
	size_t count;
	size_t capacity;
};

struct axes {
	struct axis *items; /* in walk order, as in the configuration */
	size_t count;
};

#define cleanup_axes __attribute__((cleanup(axes_clear)))

/* One empty axis for each of the configuration, which must outlive them. */
void axes_start(struct axes *axes, const struct config *config);
void axes_clear(struct axes *axes);
void axis_clear(struct axis *axis); /* its values; the axis itself is the caller's */

/* Profiles and choices resolve to themselves. */
void axis_take_written(struct axis *axis);
/* The answer of a "toolchains" job (job.h). */
int axis_take_toolchains(struct axis *axis, const json_t *answer, struct error *error);
/* One answer of a "releases" job for one entry. */
void axis_take_release(struct axis *axis, const struct config_value *entry, const json_t *answer);
/* The commits of one entry (a single revision or a range), oldest first. */
void axis_take_commits(struct axis *axis, const struct config_value *entry, const char *source,
		       const struct source_commits *commits);
/* An entry that could not be resolved. */
void axis_take_unresolved(struct axis *axis, const struct config_value *entry, const char *reason);
/* Values with one label (a commit that two ranges share) are one; call when all entries are taken. */
void axis_drop_duplicates(struct axis *axis);

/* Is the entry `name` a commit (of a commit axis, or a range of a crate axis)? */
bool axis_entry_is_commit(const struct axis *axis, const struct config_value *entry);
/* The source that a commit entry belongs to. */
const char *axis_entry_source(const struct axis *axis, const struct config_value *entry);

/* Does the value at `position` match one pattern of exclude or include (docs/config.md)? */
bool axis_matches(const struct axis *axis, size_t position, const char *pattern);
/* Is the combination in the matrix: not excluded, or included again?  `positions` has one entry for each axis. */
bool axes_include(const struct axes *axes, const struct config *config, const size_t *positions);
/* "toolchain=1.63.0 usdt=0.5.0 profile=release"; owned by the caller. */
char *axes_combination(const struct axes *axes, const size_t *positions);
/* Patterns of exclude and include that match no value at all, one line each: most likely mistakes. */
void axes_unmatched_patterns(const struct axes *axes, const struct config *config, struct strlist *lines);

#endif
