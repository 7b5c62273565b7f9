/*
 * bisect-worker: does one job and exits; decides nothing.
 *
 * Reads the job (one line) from standard input, which then stays open: its end means that whoever asked is gone, and
 * the worker stops at once, with everything that it started.  A thread watches for that, so that it holds in every
 * phase.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence/look.h"
#include "inside.h"
#include "jobs.h"
#include "log.h"
#include "os.h"

enum {
	EXIT_ANSWERED = 0, /* a result was printed, whatever it says */
	EXIT_USAGE = 2,
	EXIT_STOPPED = 3, /* standard input ended: no result */
	KILL_TRIES = 200,
};

static const struct {
	const char *kind;
	void (*run)(const struct job *job, struct result *result);
} kinds[] = {
	{"toolchains", toolchains_job},
	{"releases", releases_job},
	{"prepare", prepare_job},
	{"cell", cell_job},
	{"evidence", evidence_job},
	{"audit", audit_job},
	{"passes", passes_job},
};

static const char usage[] =
	"usage: bisect-worker            do the job that standard input names (bisectd starts it so)\n"
	"       bisect-worker --version\n"
	"       bisect-worker --help\n";

/* Up to the newline.  What comes behind it is not looked at. */
static int read_line(struct str *line, struct error *error)
{
	char block[1 << 14];
	for (;;) {
		ssize_t got = read(STDIN_FILENO, block, sizeof block);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, "cannot read the job from standard input");
		if (got == 0)
			return error_set(error, "standard input ended before the job did");
		const char *end = memchr(block, '\n', (size_t)got);
		str_append_bytes(line, block, end != NULL ? (size_t)(end - block) : (size_t)got);
		if (line->length > PROTOCOL_LINE_LIMIT)
			return error_set(error, "the job is longer than %d bytes", PROTOCOL_LINE_LIMIT);
		if (end != NULL)
			return 0;
	}
}

/* Held by whoever decides how this process ends: with a result, or without because nobody waits for one. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

/* Ends the process when standard input ends. */
static void *watch_input(void *unused)
{
	(void)unused;
	char block[256];
	for (;;) {
		ssize_t got = read(STDIN_FILENO, block, sizeof block);
		if (got > 0 || (got < 0 && errno == EINTR))
			continue;
		if (got < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
			continue;
		}
		pthread_mutex_lock(&ending);
		os_kill_descendants(KILL_TRIES);
		_exit(EXIT_STOPPED);
	}
	return NULL;
}

static int start_watching(struct error *error)
{
	pthread_t thread;
	int number = pthread_create(&thread, NULL, watch_input, NULL);
	if (number != 0)
		return error_set(error, "cannot watch standard input: %s", strerror(number));
	pthread_detach(thread);
	return 0;
}

static void do_job(const struct job *job, struct result *result)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(kinds[i].kind, job->kind) == 0) {
			kinds[i].run(job, result);
			return;
		}
	}
	result_set(result, OUTCOME_ERROR, "this worker knows no job of kind \"%s\"", job->kind);
}

static int work(void)
{
	cleanup_job struct job job = {0};
	cleanup_result struct result result = {0};
	cleanup_error struct error error = {0};
	cleanup_str struct str line = {0};
	if (read_line(&line, &error) < 0 || job_decode(&job, str_text(&line), line.length, &error) < 0 ||
	    start_watching(&error) < 0)
		result_set(&result, OUTCOME_ERROR, "%s", error_text(&error));
	else
		do_job(&job, &result);
	pthread_mutex_lock(&ending);
	event_result(&result);
	return EXIT_ANSWERED;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], "--inside") == 0)
		return inside_main(argc, argv);
	if (argc == 3 && strcmp(argv[1], "--look") == 0)
		return look_main(argv[2]);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("bisect-worker " BISECTD_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 1) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	log_open("bisect-worker", LOG_LEVEL_INFO);
	umask(022);
	os_keep_descriptors();
	setsid(); /* fails where we lead a group already: then nothing is lost but a terminal's Ctrl-C */
	os_adopt_orphans();
	os_die_with_parent();
	return work();
}
