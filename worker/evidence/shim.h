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
 * the build gives none, because --emit=asm and the like would make it one.  `errors`: a file that the compiler's standard
 * error goes to, or NULL.  Sources are touched, so that cargo compiles the packages again.
 */
int shim_write(const struct shim *shim, struct cell *cell, const struct strlist *flags, bool units, const char *errors,
	       struct error *error);
void shim_clear(struct shim *shim);

#endif
