/* The object file that clang made of the blocks: their bytes, found by the labels around them. */
#ifndef BISECTD_WORKER_EVIDENCE_ASSEMBLE_OBJECT_H
#define BISECTD_WORKER_EVIDENCE_ASSEMBLE_OBJECT_H

#include "evidence/assemble.h"

/* Every one of blocks[members[i]] ends up with bytes or refused.  -1 where the file is no such object. */
int assemble_read_object(const char *path, struct assembly *blocks, const size_t *members, size_t count,
			 struct error *error);

#endif
