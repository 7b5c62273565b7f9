/* bisectd: the command line. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"
#include "os.h"
#include "service.h"

#ifndef BISECTD_LIBEXECDIR
#define BISECTD_LIBEXECDIR "/usr/local/libexec"
#endif

static const char usage[] =
	"usage: bisectd run [OPTION]... FILE...     walk each investigation to its end and report\n"
	"       bisectd check [OPTION]... FILE...   resolve its axes and print the plan\n"
	"       bisectd report [OPTION]... [NAME]...  report what the database knows\n"
	"       bisectd --version | --help\n"
	"\n"
	"  --state DIR        state folder (default: var)\n"
	"  --workers N        workers at once (default: as the investigation says)\n"
	"  --worker PATH      the bisect-worker to run (default: beside bisectd, or installed)\n"
	"  --offline          do not fetch sources that were cloned before\n"
	"  --wait SECONDS     how long to wait for webhook deliveries at the end (default: 60)\n"
	"  --verbose, --quiet more or fewer messages\n"
	"\n"
	"exit status: 0 a bad combination was found, 1 none, 2 usage or configuration, 3 could not finish\n";

struct command {
	const char *name;
	int (*run)(const struct service_options *options, const struct strlist *arguments);
	bool needs_arguments;
};

static const struct command commands[] = {
	{"run", service_run, true},
	{"check", service_check, true},
	{"report", service_report, false},
};

enum option_code { OPTION_STATE = 256, OPTION_WORKERS, OPTION_WORKER, OPTION_OFFLINE, OPTION_WAIT, OPTION_VERBOSE, OPTION_QUIET };

static const struct option long_options[] = {
	{"state", required_argument, NULL, OPTION_STATE},   {"workers", required_argument, NULL, OPTION_WORKERS},
	{"worker", required_argument, NULL, OPTION_WORKER}, {"offline", no_argument, NULL, OPTION_OFFLINE},
	{"wait", required_argument, NULL, OPTION_WAIT},	    {"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"quiet", no_argument, NULL, OPTION_QUIET},	    {NULL, 0, NULL, 0},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static long long parse_number(const char *option, const char *text, long long max)
{
	char *end;
	long long number = strtoll(text, &end, 10);
	if (*text == '\0' || *end != '\0' || number < 0 || number > max) {
		fprintf(stderr, "bisectd: --%s takes a whole number from 0 to %lld, not \"%s\"\n", option, max, text);
		exit(EXIT_USAGE);
	}
	return number;
}

/* The worker beside this program (a build folder), else the installed one. */
static char *find_worker(const char *program)
{
	cleanup_free char *own = realpath(os_own_program(), NULL);
	cleanup_free char *folder = path_parent(own != NULL ? own : program);
	char *beside = path_join(folder, "bisect-worker");
	if (access(beside, X_OK) == 0)
		return beside;
	free(beside);
	return text_copy(BISECTD_LIBEXECDIR "/bisectd/bisect-worker");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("bisectd " BISECTD_VERSION);
		return 0;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	const struct command *command = find_command(argv[1]);
	if (command == NULL) {
		fprintf(stderr, "bisectd: there is no command \"%s\"\n%s", argv[1], usage);
		return EXIT_USAGE;
	}
	struct service_options options = {.delivery_wait_ms = 60000};
	const char *state = "var";
	const char *worker = NULL;
	enum log_level level = LOG_LEVEL_INFO;
	int option;
	optind = 2;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPTION_STATE)
			state = optarg;
		else if (option == OPTION_WORKERS)
			options.workers = parse_number("workers", optarg, 256);
		else if (option == OPTION_WORKER)
			worker = optarg;
		else if (option == OPTION_OFFLINE)
			options.offline = true;
		else if (option == OPTION_WAIT)
			options.delivery_wait_ms = parse_number("wait", optarg, 86400) * 1000;
		else if (option == OPTION_VERBOSE)
			level = LOG_LEVEL_DEBUG;
		else if (option == OPTION_QUIET)
			level = LOG_LEVEL_WARNING;
		else
			return EXIT_USAGE;
	}
	cleanup_strlist struct strlist arguments = {0};
	for (int i = optind; i < argc; i++)
		strlist_add(&arguments, argv[i]);
	if (command->needs_arguments && arguments.count == 0) {
		fprintf(stderr, "bisectd: %s needs the file of an investigation\n%s", command->name, usage);
		return EXIT_USAGE;
	}
	cleanup_free char *state_folder = path_absolute(state);
	cleanup_free char *worker_path = worker != NULL ? path_absolute(worker) : find_worker(argv[0]);
	options.state_folder = state_folder;
	options.worker = worker_path;
	log_open("bisectd", level);
	return command->run(&options, &arguments);
}
