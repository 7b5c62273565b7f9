/* bisectd: the command line. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_command.h"
#include "fs.h"
#include "log.h"
#include "os.h"
#include "service.h"

static const char usage[] =
	"usage: bisectd run [OPTION]... FILE...     walk each investigation to its end and report\n"
	"       bisectd check [OPTION]... FILE...   resolve its axes and print the plan\n"
	"       bisectd report [OPTION]... [NAME]...  report what the database knows\n"
	"       bisectd audit [--json] FILE...      what inline assembly does against what it declares: LLVM IR, programs\n"
	"       bisectd audit [--json] --cargo DIR [-- FLAGS]    the same for a cargo package and all that it depends on\n"
	"       bisectd audit [--json] --clang FILE.c -- FLAGS   the same for C and C++\n"
	"       bisectd --version | --help\n"
	"\n"
	"  --state DIR        state folder (default: var)\n"
	"  --workers N        workers at once (default: as the investigation says)\n"
	"  --worker PATH      the bisect-worker to run (default: beside bisectd, or installed)\n"
	"  --offline          do not fetch sources that were cloned before\n"
	"  --wait SECONDS     how long to wait for webhook deliveries at the end (default: 60)\n"
	"  --verbose, --quiet more or fewer messages\n"
	"  --format FORMAT    of `report`: text, markdown, json or html (default: text)\n"
	"  --output FILE      of `report`: write it there instead of standard output\n"
	"\n"
	"exit status: 0 a bad combination was found, 1 none, 2 usage or configuration, 3 could not finish\n"
	"audit: 0 every block keeps its promises, 1 violations, 2 usage, 3 no violation, but something could not be judged\n"
	"more of a command: bisectd COMMAND --help\n";

static const char report_usage[] =
	"usage: bisectd report [OPTION]... [NAME]...\n"
	"\n"
	"Reports what the database knows of the named investigations, or of all: the matrix, the first bad combination, the\n"
	"boundaries, the evidence, the verdict with its reasons, what is missing, and the commands to repeat it.\n"
	"\n"
	"  --format text      for a terminal (the default)\n"
	"  --format markdown  to paste into an issue\n"
	"  --format json      for programs; docs/report.md has its shape\n"
	"  --format html      one file for a browser, that needs nothing but itself\n"
	"  --output FILE      write it there, whole or not at all, instead of standard output\n"
	"  --state DIR        state folder (default: var)\n"
	"  --verbose, --quiet more or fewer messages\n"
	"\n"
	"exit status: 0 it is written, 2 usage, 3 it could not be made or written\n";

struct command {
	const char *name;
	int (*run)(const struct service_options *options, const struct strlist *arguments);
	bool needs_arguments;
	const char *usage;
};

static const struct command commands[] = {
	{"run", service_run, true, usage},
	{"check", service_check, true, usage},
	{"report", service_report, false, report_usage},
	{"audit", audit_command, false, usage},
};

enum option_code {
	OPTION_STATE = 256,
	OPTION_WORKERS,
	OPTION_WORKER,
	OPTION_OFFLINE,
	OPTION_WAIT,
	OPTION_VERBOSE,
	OPTION_QUIET,
	OPTION_FORMAT,
	OPTION_OUTPUT,
	OPTION_JSON,
	OPTION_CLANG,
	OPTION_CARGO,
	OPTION_HELP
};

static const struct option long_options[] = {
	{"state", required_argument, NULL, OPTION_STATE},   {"workers", required_argument, NULL, OPTION_WORKERS},
	{"worker", required_argument, NULL, OPTION_WORKER}, {"offline", no_argument, NULL, OPTION_OFFLINE},
	{"wait", required_argument, NULL, OPTION_WAIT},	    {"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"quiet", no_argument, NULL, OPTION_QUIET},	    {"format", required_argument, NULL, OPTION_FORMAT},
	{"output", required_argument, NULL, OPTION_OUTPUT}, {"help", no_argument, NULL, OPTION_HELP},
	{"json", no_argument, NULL, OPTION_JSON},	    {"clang", required_argument, NULL, OPTION_CLANG},
	{"cargo", required_argument, NULL, OPTION_CARGO},
	{NULL, 0, NULL, 0},
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

/* The worker beside this program (a build folder), else where `make install` puts it, seen from this program. */
static char *find_worker(void)
{
	static const char *const places[] = {"bisect-worker", "../libexec/bisectd/bisect-worker"};
	cleanup_free char *folder = os_program_folder();
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		char *candidate = path_join(folder, places[i]);
		if (access(candidate, X_OK) == 0)
			return candidate;
		free(candidate);
	}
	return path_join(folder, places[0]);
}

struct command_line {
	struct service_options options;
	const char *state;
	const char *worker; /* NULL: find it */
	const char *format; /* of the report; NULL: not given */
	const char *output;
	bool help;
	enum log_level level;
};

/* False where an option is wrong: getopt has said why. */
static bool parse_options(int argc, char **argv, struct command_line *line)
{
	int option;
	optind = 2;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_STATE:
			line->state = optarg;
			break;
		case OPTION_WORKERS:
			line->options.workers = parse_number("workers", optarg, 256);
			break;
		case OPTION_WORKER:
			line->worker = optarg;
			break;
		case OPTION_OFFLINE:
			line->options.offline = true;
			break;
		case OPTION_WAIT:
			line->options.delivery_wait_ms = parse_number("wait", optarg, 86400) * 1000;
			break;
		case OPTION_VERBOSE:
			line->level = LOG_LEVEL_DEBUG;
			break;
		case OPTION_QUIET:
			line->level = LOG_LEVEL_WARNING;
			break;
		case OPTION_FORMAT:
			line->format = optarg;
			break;
		case OPTION_OUTPUT:
			line->output = optarg;
			break;
		case OPTION_HELP:
			line->help = true;
			break;
		case OPTION_JSON:
			line->options.json = true;
			break;
		case OPTION_CLANG:
			line->options.clang_source = optarg;
			break;
		case OPTION_CARGO:
			line->options.cargo_folder = optarg;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* False where they make no sense here, after saying why. */
static bool take_report_options(const struct command *command, struct command_line *line)
{
	if ((line->format != NULL || line->output != NULL) && command->run != service_report) {
		fprintf(stderr, "bisectd: --%s belongs to `bisectd report`, not to `bisectd %s`\n",
			line->format != NULL ? "format" : "output", command->name);
		return false;
	}
	if (line->format != NULL && !report_format_parse(line->format, &line->options.format)) {
		fprintf(stderr, "bisectd: --format takes text, markdown, json or html, not \"%s\"\n", line->format);
		return false;
	}
	if (line->output != NULL && *line->output == '\0') {
		fprintf(stderr, "bisectd: --output takes the name of a file\n");
		return false;
	}
	return true;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct command_line line = {.options = {.delivery_wait_ms = 60000}, .state = "var", .level = LOG_LEVEL_INFO};
	if (!parse_options(argc, argv, &line))
		return EXIT_USAGE;
	if (line.help) {
		fputs(command->usage, stdout);
		return 0;
	}
	if (!take_report_options(command, &line))
		return EXIT_USAGE;
	cleanup_strlist struct strlist arguments = {0};
	for (int i = optind; i < argc; i++)
		strlist_add(&arguments, argv[i]);
	if (command->needs_arguments && arguments.count == 0) {
		fprintf(stderr, "bisectd: %s needs the file of an investigation\n%s", command->name, usage);
		return EXIT_USAGE;
	}
	cleanup_free char *state = path_absolute(line.state);
	cleanup_free char *worker = line.worker != NULL ? path_absolute(line.worker) : find_worker();
	line.options.state_folder = state;
	line.options.worker = worker;
	cleanup_free char *output = line.output != NULL ? path_absolute(line.output) : NULL;
	line.options.output = output;
	cleanup_free char *package = line.options.cargo_folder != NULL ? path_absolute(line.options.cargo_folder) : NULL;
	line.options.cargo_folder = package;
	log_open("bisectd", line.level);
	return command->run(&line.options, &arguments);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	if (strcmp(word, "--version") == 0) {
		puts("bisectd " BISECTD_VERSION);
		return 0;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	const struct command *command = find_command(word);
	if (command != NULL)
		return run_command(command, argc, argv);
	if (*word != '\0')
		fprintf(stderr, "bisectd: there is no command \"%s\"\n", word);
	fputs(usage, stderr);
	return EXIT_USAGE;
}
