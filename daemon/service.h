/*
 * The service: owns the loop and what runs on it, for one command.  Starts and stops the other rooms, and turns signals
 * into a stop.
 */
#ifndef BISECTD_DAEMON_SERVICE_H
#define BISECTD_DAEMON_SERVICE_H

#include <stdbool.h>

#include "report.h"
#include "str.h"

struct service_options {
	const char *state_folder; /* absolute */
	const char *worker;	  /* path of bisect-worker */
	struct strlist launcher;  /* words before it */
	long long workers;	  /* 0: as the investigation says */
	long long delivery_wait_ms;
	bool offline;
	enum report_format format; /* of `bisectd report` */
	const char *output;	   /* absolute path of the file it goes to; NULL: standard output */
	bool json;			/* audit: print JSON */
	const char *clang_source;	/* audit: a source file in C or C++, or NULL */
	const char *cargo_folder;	/* audit: absolute path of a package, or NULL */
};

/* Exit statuses of the commands (docs/design.md). */
enum { EXIT_FOUND = 0, EXIT_NONE = 1, EXIT_USAGE = 2, EXIT_TROUBLE = 3 };

/* `bisectd run`: each file in turn, to its end; prints each report to standard output.  Returns the exit status. */
int service_run(const struct service_options *options, const struct strlist *files);
/* `bisectd check`: resolves and prints the plan of each file. */
int service_check(const struct service_options *options, const struct strlist *files);
/* `bisectd report`: of the named investigations, or of all. */
int service_report(const struct service_options *options, const struct strlist *names);

#endif
