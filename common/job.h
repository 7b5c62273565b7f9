/*
 * The job protocol between bisectd and bisect-worker.
 *
 * A job is one JSON object on the worker's standard input, ended by a newline; the input then stays open, and its end
 * means "stop at once".  The worker answers on standard output with newline-delimited JSON objects, each with an "event":
 * `{"event":"phase","phase":"build"}` as it goes on and exactly one `{"event":"result",...}` at the end.  Its standard
 * error is the attempt's log.  Fields that do not matter to a kind of job are left out; unknown ones are ignored, so that a
 * daemon and a worker of neighbouring versions understand each other.  PROTOCOL_VERSION changes when that no longer holds.
 *
 * All folders are absolute paths on the machine of the worker.
 */
#ifndef BISECTD_COMMON_JOB_H
#define BISECTD_COMMON_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "error.h"
#include "outcome.h"
#include "str.h"

enum { PROTOCOL_VERSION = 1, PROTOCOL_LINE_LIMIT = 4 << 20 /* bytes in one line, either way */ };

/* Limits where a job gives none. */
enum { JOB_DEFAULT_BUILD_MS = 600000, JOB_DEFAULT_RUN_MS = 60000 };

/*
 * Kinds of job and what they read and answer:
 *
 * "toolchains"  `names` (as written in the investigation: "auto", a rustup name, a folder with bin/rustc, or
 * "command:PROGRAM" for any other compiler), `search` (folders whose children are toolchain folders, for auto),
 * `edited` (where hashes of driver libraries are remembered; may be left out), `run_ms` (for each question to a
 * compiler).  Result data: an array, one object for every toolchain found or asked for: {"name", "label", "identity",
 * "root", "rustc", "cargo" (null where it has none), "program" (the compiler itself: rustc, or PROGRAM), "path" (what
 * goes first on PATH; left out with "skip"), "read_only": [folders that the sandbox must show], "skip": reason or
 * null}.  Labels are unique among those that can be used.  "auto" gives each identity once, in the order of versions; a
 * named one is not repeated by it.
 *
 * "releases"    `cargo`, `crate`, `names` (releases asked for).  Result data: an array
 * of {"name", "identity": registry checksum or null, "yanked", "skip": reason or null, "error": reason or null}. "skip"
 * is cargo's answer (no such release), "error" is no answer (registry away): it may be asked again.  At most one of
 * "identity", "skip" and "error" is not null.
 *
 * "prepare"     Resolve, fetch, vendor and edit what a combination of crate
 * values needs, into the folder `prepared` (made whole or not at all; a repetition of the same job answers at once).
 * Reads `reproducer`, `cargo` (the newest at hand), `vendor`, `edited`, `crates`, `overrides`, `lock`, and `checkouts`:
 * those that an override edits are copied, edited, to <prepared>/checkouts/<name>.  For a reproducer with a Cargo.toml
 * `prepared` holds the Cargo.lock to build with and cargo-config.toml (source replacement and patches, absolute paths).
 * SKIP: cargo's answer is that this combination cannot be had.  ERROR: the registry or the disk, or an override that
 * does not fit.  Result data: {"lock": text of the resolved Cargo.lock or null, as it is before overrides turn registry
 * crates into folders, so that it keeps their checksums: this is what belongs into `lock` of a repetition; "edits":
 * [{"override", "crate", "version", "file", "matches"}], "vendored": number of crates, "changed": [texts: what differs
 * from the shipped Cargo.lock besides the crates asked for], "read_only": [folders that a build needs to see besides
 * `prepared`]}.
 *
 * "cell"        Build and run one cell.  Reads everything else.
 *
 * "evidence"    Build one cell again (the fields of "cell", `target` may be warm) so that the compiler also leaves IR, assembly
 * and MIR of the reproducer's own packages; run that build; audit its inline assembly; look in the program for what the audit's
 * findings do there.  Reads also `evidence`, `compare`, `function`, `tools`, `prepared`, `vendor`, `edited`.  Result data:
 * docs/evidence.md.  SKIP: there is nothing to look at (no IR came out of the build).
 *
 * "passes"      Which LLVM pass makes the cell bad (-opt-bisect-limit), and which one flip of a switch makes it good.  Reads
 * also `bad_outcome`, `budget_ms`, `function` (whose passes are tried first) and `names` (of the switches; none: all of them).
 * Result data: docs/evidence.md.  SKIP: the build compiles nothing through rustc that flags can be added to.
 *
 * "audit"       The inline assembly of `files` (textual LLVM IR; with `compile`, sources in C or C++ for clang, given `flags`)
 * against what it declares.  Reads also `clang` (program; left out: the newest on PATH) and writes the audits as JSON to `report`,
 * because they may be longer than a line of this protocol: an array, one object a file, {"file", "error"} where it could not be
 * read at all, otherwise as docs/audit.md says.  Result data: {"judged": blocks, "not_judged": blocks, "violations", "unread":
 * files not read to their end}.
 */
struct job {
	char *kind;
	char *id; /* for messages only */

	/* what to build */
	char *reproducer;           /* folder, copied into the workspace */
	char *workspace;            /* folder, removed and made anew by the job: reproducer/ and checkouts/ go below it */
	char *target;               /* build folder, kept between jobs of one toolchain (CARGO_TARGET_DIR, {target}) */
	char *prepared;             /* folder of a finished "prepare" job, or NULL */
	bool clean;                 /* empty `target` first */
	struct strmap checkouts;    /* name -> exported tree, copied to <workspace>/checkouts/<name> ({checkout:<name>}) */
	struct strlist path;        /* folders put first on PATH */
	struct strlist read_only;   /* folders outside the system's own that the sandbox must show */
	struct strmap environment;  /* for build and run; values may hold placeholders */
	struct strmap placeholders; /* {name} in commands and environment; the worker adds workspace, target, checkout:NAME */
	json_t *build;              /* array of commands, each an array of words; done in order; may be NULL */
	struct strlist run;         /* one command */
	long long runs;             /* how often `run` is done */

	/* what counts as a pass */
	long long expect_exit;
	char *expect_output; /* POSIX extended regular expression on standard output and error together, or NULL */

	/* limits; 0 means the worker's default */
	long long build_ms;     /* all build commands together */
	long long run_ms;       /* each run */
	long long memory_bytes; /* resident, all processes of the job together; also RLIMIT_AS of each at eight times it */
	long long processes;    /* at once */
	long long output_bytes; /* kept of each command's output; more than 64 times it ends the command */
	long long file_bytes;   /* RLIMIT_FSIZE */
	char *sandbox;          /* "auto" (bubblewrap where it works), "bubblewrap" (or error), "none" */
	bool network_for_build; /* leave the network to the build commands; never to the runs */

	/* toolchains, releases */
	struct strlist names;
	struct strlist search;

	/* prepare (and `cargo`, `crate` for releases) */
	char *cargo; /* program */
	char *crate;
	char *vendor;   /* folder shared by all preparations: worker/vendor.h */
	char *edited;   /* folder shared by all preparations: <edited>/<key>/<crate or source>/, keyed by content and edits */
	char *lock;     /* text of the Cargo.lock that this preparation must use, or NULL to resolve one */
	json_t *crates; /* [{"name", "release": version} or {"name", "tree": exported checkout, "oid", "source": its name}] */
	/* [{"name", "crate": name or "checkout": name of a source, "edits": [{"file","find","replace","min","max"}]}] */
	json_t *overrides;

	/* cell, evidence, passes: [{"file","find","replace","min","max"}] done to the workspace's copy of the reproducer */
	json_t *edits;

	/* evidence, passes */
	char *evidence;      /* folder for the files that belong to it: emptied first */
	bool all_packages;   /* evidence: IR of every crate that is built, not only of the reproducer's own; nothing else is left */
	char *compare;       /* "evidence" folder of the bad cell, which this good neighbour is to be compared with; or NULL */
	char *function;      /* POSIX extended regular expression on names of functions, or NULL: where something was found */
	char *tools;         /* folder with bin/cargo-asm, or NULL */
	char *bad_outcome;   /* what the cell's own runs ended with: "fail", "crash", ... */
	long long budget_ms; /* for all builds and runs of a "passes" job; 0: no limit of its own */

	/* audit */
	struct strlist files;
	bool compile;         /* the files are sources */
	struct strlist flags; /* for compiling them */
	char *clang;
	char *report; /* file to write, made anew */
};

#define cleanup_job __attribute__((cleanup(job_clear)))

void job_clear(struct job *job);
/* One line of JSON without the newline; owned by the caller. */
char *job_encode(const struct job *job);
int job_decode(struct job *job, const char *line, size_t length, struct error *error);

/* The "result" event. */
struct result {
	enum outcome outcome;  /* of a "cell"; OUTCOME_PASS for other kinds that succeeded, OUTCOME_SKIP or OUTCOME_ERROR */
	char *reason;          /* one sentence for a person: why it is not a pass; NULL for a pass */
	char *signature;       /* what identifies the failure: first line of output of the first run that was not a pass */
	char *binary;          /* SHA-256 of the program that ran, or NULL */
	char *commands;        /* shell text that repeats the build and the run by hand in this workspace, or NULL */
	char *sandbox;         /* what held the job: "bubblewrap", "none" */
	long long exit_status; /* of the first run that was not a pass, else of the last; -1 where it did not exit */
	long long signal;      /* 0 where none */
	long long build_ms;
	long long run_ms; /* all runs together */
	json_t *runs;     /* [{"outcome", "exit", "signal", "ms"}] */
	json_t *data;     /* see the kinds above */
};

#define cleanup_result __attribute__((cleanup(result_clear)))

void result_clear(struct result *result);
char *result_encode(const struct result *result);
/* `object` is one event with "event":"result"; borrowed. */
int result_decode(struct result *result, const json_t *object, struct error *error);

#endif
