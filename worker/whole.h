/*
 * Folders that are made whole or not at all: filled in beside their place under a name of this process, then renamed.
 * What a process that died left beside is removed by the next one that makes the same folder.
 */
#ifndef BISECTD_WORKER_WHOLE_H
#define BISECTD_WORKER_WHOLE_H

#include "error.h"

/* Fills the (existing, empty) folder; 0, or -1 with the error. */
typedef int (*whole_fill)(const char *folder, void *context, struct error *error);

/* Make `path` unless it exists.  When two processes make it at once, one of the two results stays, and both succeed. */
int whole_make(const char *path, whole_fill fill, void *context, struct error *error);

#endif
