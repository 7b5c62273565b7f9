/*
 * The compiler's assembly as text: its marked blocks, with a label put before and behind each.  It assembles nothing
 * and knows no binary.
 */
#ifndef BISECTD_WORKER_EVIDENCE_PLACE_TEXT_H
#define BISECTD_WORKER_EVIDENCE_PLACE_TEXT_H

#include "evidence/place.h"

/* Symbols "<prefix>N" before and behind the Nth block of a file. */
#define LABEL_BEFORE "bisectd.before."
#define LABEL_BEHIND "bisectd.behind."

/*
 * Append the blocks of `source` to `regions` (nothing placed yet) and write the labelled text to `labelled`.  -1 where
 * the text has directives that are refused (.include, .incbin, macros) or its marks do not match.
 */
int place_read_assembly(const char *source, struct regions *regions, struct str *labelled, struct error *error);

#endif
