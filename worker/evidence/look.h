/*
 * Looking at what a build left: IR, assembly, MIR and the program.  All of it is untrusted, so it is read inside the sandbox, by a
 * copy of this program as the user that the build ran as; what it finds goes out as one JSON text and files beside it, which the
 * worker outside takes as data.
 *
 * The request (JSON, a file): {"ir": [paths], "assembly": [paths], "mir": [paths], "program": path, "function": regular expression
 * or null, "reproducer": folder, "prepared": folder or null, "compare": folder of a bad cell's files or null, "tools": folder or
 * null}. The answer, "answer.json" beside the request: docs/evidence.md, "Evidence of a cell"; its "artifacts" are files beside it.
 */
#ifndef BISECTD_WORKER_EVIDENCE_LOOK_H
#define BISECTD_WORKER_EVIDENCE_LOOK_H

#define LOOK_REQUEST "request.json"
#define LOOK_ANSWER "answer.json"

/* Exit status: 0 with an answer; 1 with a line on standard error. */
int look_main(const char *request);

#endif
