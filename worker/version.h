/* The order of versions (semver.org 2.0, clause 11): 1.9.0 < 1.10.0-nightly < 1.10.0; what is no version comes last,
 * bytewise. */
#ifndef BISECTD_WORKER_VERSION_H
#define BISECTD_WORKER_VERSION_H

int version_compare(const char *a, const char *b);

#endif
