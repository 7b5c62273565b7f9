/*
 * An investigation as written: one YAML file, read into checked structs.
 *
 * Knows the file's form and nothing else: no value is resolved here, no disk but the file itself is touched.  All that is
 * wrong is reported at once, each as one `file:line:column: message`.  Only this file's implementation includes yaml.h.
 * docs/config.md documents every key for users.
 */
#ifndef BISECTD_DAEMON_CONFIG_H
#define BISECTD_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "outcome.h"
#include "str.h"

enum axis_type { AXIS_TOOLCHAIN, AXIS_COMMIT, AXIS_CRATE, AXIS_PROFILE, AXIS_CHOICE };

/* "toolchain", "commit", ... as in `type:`, in the database and in the docs. */
const char *axis_type_name(enum axis_type type);

/* sources: NAME: {url, alternates} */
struct config_source {
	char *name;
	char *url;		   /* https://, ssh://, user@host:path, file:// or an absolute path */
	struct strlist alternates; /* tried in order when `url` does not answer */
	int line;
};

/*
 * One entry of an axis' `values:`.  An entry that names a range of commits stands for many values.
 * Written as a scalar ("0.5.0", release, both-arms) or as a mapping.
 */
struct config_value {
	char *name;	    /* the scalar, or `name:`; NULL for a range of commits without a name */
	char *commits;	    /* `commits: A..B` (commit and crate axes), or NULL */
	char *source;	    /* `source:` of `commits` in a crate axis; a commit axis names it once for all; NULL otherwise */
	struct strlist paths; /* `paths:` only commits that touch one of them */
	bool first_parent;    /* `first_parent: true` */
	char *command;	      /* toolchain axis: `command:` a compiler that is no rustc (gcc-12, /opt/cc); or NULL */
	/* choice axis (features and the like also allowed on a profile axis' value) */
	struct strlist features;     /* joined by commas with those of the other axes into {features} */
	struct strmap environment;
	struct strlist rustflags;    /* joined by spaces with those of the other axes into RUSTFLAGS */
	struct strmap placeholders;
	char *note;		     /* `note:` one line shown in the report, or NULL */
	/* `stands_for: {source, commit, file, contains}`: where upstream this value comes from, read from the clone */
	char *stands_for_source;     /* NULL where there is none */
	char *stands_for_commit;     /* any revision: oid, tag, `d1bf765^` */
	char *stands_for_file;	     /* or NULL */
	struct strlist stands_for_contains; /* literal texts that the file must hold there; a string or a list in YAML */
	int line;
	int column;
};

/* axes: a list (its order is the walk's), each {name, type, ordered, values, ...} */
struct config_axis {
	char *name;
	enum axis_type type;
	bool ordered;	       /* default: true for toolchain, commit and crate; false for profile and choice */
	char *source;	       /* commit axis: which source (required there) */
	char *crate;	       /* crate axis: the crate's name, default the axis' name; commit axis: the crate that the
				  checkout replaces in cargo's resolution, or NULL */
	struct strlist search; /* toolchain axis: folders of toolchain folders that `auto` looks through, absolute */
	struct config_value *values;
	size_t value_count;
	size_t value_capacity;
	int line;
};

struct config_edit {
	char *file;    /* relative to the crate's or checkout's root; no "..", not absolute */
	char *find;    /* literal, not empty */
	char *replace; /* literal, may be empty */
	long long min; /* `matches: 1` (default), `matches: "1.."`, `matches: "0..2"`; max -1: no upper bound */
	long long max;
	int line;
};

/* overrides: a list of {name, crate | source, os, reason, edits} */
struct config_override {
	char *name;
	char *crate;	   /* edits that crate, wherever it comes from (release or checkout); or NULL */
	char *source;	   /* edits the checkout of that source; exactly one of the two is given, but for a twin that edits
			      the reproducer itself */
	struct strlist os; /* only on these ("linux", "illumos"); empty: everywhere.  A string or a list in YAML */
	char *reason;	   /* shown in the report, or NULL */
	struct config_edit *edits;
	size_t edit_count;
	size_t edit_capacity;
	int line;
};

/* One pattern of an exclude or include entry: `axis: pattern` or `axis: [pattern, ...]` (any of them). */
struct config_match {
	char *axis;
	/* Globs (fnmatch) over labels; or @first and @last (of the axis' values), @commits and @releases (values that came
	 * from a range of commits, or did not); a leading "!" negates. */
	struct strlist patterns;
};

/* One entry: all of its matches together. */
struct config_rule {
	struct config_match *matches;
	size_t match_count;
	size_t match_capacity;
	int line;
};

struct config_rules {
	struct config_rule *items;
	size_t count;
	size_t capacity;
};

/* reproducer: {path, build, run, environment, runs, expect: {exit, output}, limits: {...}, sandbox, network} */
struct config_reproducer {
	char *path; /* absolute */
	struct strlist *build; /* commands; `build:` is one command (a list of words) or a list of commands; may be none */
	size_t build_count;
	size_t build_capacity;
	struct strlist run; /* one command (required) */
	struct strmap environment;
	long long runs;	       /* default 1, 1..1000 */
	long long expect_exit; /* default 0, 0..255 */
	char *expect_output;   /* POSIX extended regular expression, compiled once here to check it; or NULL */
	/* limits, 0 where not given (the worker's defaults are used).  Times: "90s", "10m", "1h", "500ms" or a number of
	 * seconds; sizes: "512MiB", "4GiB", "1MB", or a number of bytes. */
	long long build_ms;	/* build: */
	long long run_ms;	/* run: */
	long long memory_bytes; /* memory: */
	long long processes;	/* processes: */
	long long output_bytes; /* output: */
	long long file_bytes;	/* file: */
	char *sandbox;		/* "auto" (default), "bubblewrap", "none" */
	bool network_for_build; /* network: build | never (default) */
};

/* evidence: {gather, function} */
struct config_evidence {
	char *gather;	/* "auto" (default): once the first bad combination is confirmed; "never" */
	char *function; /* POSIX extended regular expression on the names of the functions to show; or NULL: those that
			   hold what the audit found */
};

enum webhook_format { WEBHOOK_GENERIC, WEBHOOK_SLACK, WEBHOOK_GITHUB_ISSUE_COMMENT };

const char *webhook_format_name(enum webhook_format format);

/* webhooks: a list of {name, url, format, secret_file | secret_env, token_file | token_env, events, give_up_after} */
struct config_webhook {
	char *name;
	char *url; /* http:// or https:// */
	enum webhook_format format;
	char *secret_file; /* absolute path of the HMAC secret, or NULL */
	char *secret_env;  /* name of the variable that holds it, or NULL */
	char *token_file;  /* bearer token, likewise */
	char *token_env;
	struct strlist events;	  /* of "first-bad", "boundary", "verdict"; default all */
	long long give_up_after_ms; /* default 24 h */
	int line;
};

struct config {
	char *file; /* as given */
	char *text; /* the whole file: stored with the investigation */
	char *name; /* [a-z0-9][a-z0-9-]*, at most 64 characters */
	char *question; /* or NULL */
	char *report_url; /* where people find the report that a run leaves in <state>/reports/; {name} is replaced; or NULL */
	long long workers; /* 0: as many as processors; at most 256 */
	long long confirm; /* further runs of the first bad cell before it is posted: default 3, 0..100 */
	long long retries; /* how often an attempt that ended in `error` is tried again: default 2, 0..10 */
	bool bad[OUTCOME_COUNT]; /* default: fail, crash.  pass, skip and error are refused here */

	struct config_source *sources;
	size_t source_count;
	size_t source_capacity;
	struct config_axis *axes;
	size_t axis_count;
	size_t axis_capacity;
	struct config_override *overrides;
	size_t override_count;
	size_t override_capacity;
	struct config_override *twins; /* twins: a list as overrides: what the first bad cell is tried again with */
	size_t twin_count;
	size_t twin_capacity;
	struct config_evidence evidence;
	struct config_rules exclude;
	struct config_rules include;
	struct config_reproducer reproducer;
	struct config_webhook *webhooks;
	size_t webhook_count;
	size_t webhook_capacity;
};

#define cleanup_config __attribute__((cleanup(config_clear)))

/*
 * Read `file` into `config` (start with `{0}`).  Relative paths in the file are taken from the file's own folder and become
 * absolute.  Returns 0, or -1 with every problem found as one line in `problems`, in order of line and column.
 */
int config_load(struct config *config, const char *file, struct strlist *problems);
/* The same from text: `file` is used for messages and as the base of relative paths. */
int config_parse(struct config *config, const char *file, const char *text, size_t length, struct strlist *problems);
void config_clear(struct config *config);

const struct config_source *config_find_source(const struct config *config, const char *name); /* NULL: none */

#endif
