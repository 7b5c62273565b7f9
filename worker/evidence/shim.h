/*
 * What is added to a compile without the build noticing: a small script that stands between cargo and rustc for the
 * packages of the workspace (RUSTC_WORKSPACE_WRAPPER, cargo 1.55 and later), or for a build that calls {rustc} itself,
 * in rustc's place.  Dependencies are compiled as ever, so that a warm build folder stays warm.
 */
#ifndef BISECTD_WORKER_EVIDENCE_SHIM_H
#define BISECTD_WORKER_EVIDENCE_SHIM_H

#include <stdbool.h>

#include "cell.h"

struct shim {
	char *wrapper; /* for cargo: called as WRAPPER RUSTC ARGUMENTS... */
	char *direct;  /* in place of rustc */
	char *rustc;   /* the real one, for `direct`; NULL where the job names none */
};

#define cleanup_shim __attribute__((cleanup(shim_clear)))

/*
 * Name the scripts below the job's workspace.  `job` gets `direct` in place of its {rustc}; call it before cell_open,
 * which empties that folder.
 */
void shim_name(struct shim *shim, struct job *job);
/*
 * Write the scripts, after cell_open, and again for other flags: each compile of the workspace's own packages, build
 * scripts left out, gets `flags` at the end.  `units`: also the number of codegen units that rustc takes by itself, where
 * the build gives none, because --emit=asm and the like would make it one.  Sources are touched, so that cargo compiles the packages again.
 */
int shim_write(const struct shim *shim, struct cell *cell, const struct strlist *flags, bool units,
	       struct error *error);
/*
 * What the job "passes" needs: every compile by itself.  Per compile, called NAME.TYPE after crate and crate type,
 * `folder` (made by the script: it lies where the commands may write, and what is in it is untrusted) gets a line in
 * `order` as it starts, its words, one a line, in NAME.TYPE.words, and its standard error in NAME.TYPE.lines; what is
 * no line of -opt-bisect-limit's also goes where it always goes.  Codegen units are compiled one after the other.
 */
struct shim_trace {
	const char *folder;
	bool final_only; /* the flags go to programs and shared libraries only */
	bool quiet;      /* standard error is kept of a compile that fails only: LLVM writes its lines in many pieces */
	/* NAME.TYPE -> N of -opt-bisect-limit=N; -1 (all passes) for the rest; NULL: the flag is not given */
	const struct strmap *limits;
};

/* As shim_write, for a trace. */
int shim_write_traced(const struct shim *shim, struct cell *cell, const struct strlist *flags,
		      const struct shim_trace *trace, struct error *error);
/* After recipe_start: shell text that makes the same scripts again and touches the sources. */
void shim_recipe(const struct shim *shim, const struct strlist *flags, const struct shim_trace *trace,
		 struct str *recipe);
void shim_clear(struct shim *shim);

#endif
