/*
 * The sources of registry crates, laid out for builds without a network.
 *
 *   <vendor>/crates/NAME-VERSION/       as `cargo vendor` makes them, shared by all preparations, never changed
 *   <vendor>/cargo-1.NN/NAME-VERSION    links to them: the folder that cargo is pointed at (a "directory source")
 *   <vendor>/lock-HASH/crates/...       the same for one lock only, where it takes crates from git or another registry
 *
 * Why not one folder: cargo parses every manifest of a directory source, needed or not, so one crate of edition 2024
 * would break every build of a cargo before 1.85.  Why not one folder a preparation: cargo's fingerprints hold the path
 * of each source file, so another path means that all dependencies are built again.  Hence one folder for each age of
 * cargo that the manifests of a lock ask for: its path is the same for all preparations that an old cargo can build.
 */
#ifndef BISECTD_WORKER_VENDOR_H
#define BISECTD_WORKER_VENDOR_H

#include "cargo.h"
#include "lock.h"

/*
 * Have the sources of all packages of `lock` (its text `lock_text`, which lies in `folder` beside the manifest) under
 * `vendor`.  `sources` receives the folder whose children NAME-VERSION they are.  Safe for several processes at once.
 */
int vendor_fetch(struct cargo *cargo, const char *folder, const struct lock *lock, const char *lock_text,
		 const char *vendor, char **sources, struct str *settings, struct error *error);
/*
 * The directory source for `lock`, whose packages vendor_fetch has put into `sources`; owned by the caller.  Packages
 * that have no source any more (patched ones) are not in it.
 */
int vendor_link(const struct lock *lock, const char *vendor, const char *sources, char **directory,
		struct error *error);

/* The minor version of the oldest cargo (1.NN) that can read this manifest of a published crate.  For tests. */
int vendor_oldest_cargo(const char *manifest);

#endif
