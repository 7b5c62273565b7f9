/* See service.h. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "fs.h"
#include "investigation.h"
#include "log.h"
#include "source.h"
#include "view.h"
#include "webhook.h"

struct service {
	const struct service_options *options;
	struct loop *loop;
	struct store *store;
	struct pool *pool;
	struct investigation *investigation;
	unsigned stops; /* signals that asked for one */
};

static void asked_to_stop(void *context)
{
	struct service *service = context;
	if (++service->stops > 1) {
		/* an end at any instant loses nothing, and the workers end when their input does */
		log_warning("ending at once");
		_exit(EXIT_TROUBLE);
	}
	log_info("stopping: what is finished is kept, the same command goes on with the rest (once more: at once)");
	if (service->investigation != NULL)
		investigation_stop(service->investigation);
}

static void ended(void *context)
{
	struct service *service = context;
	loop_stop(service->loop);
}

static void close_service(struct service *service)
{
	investigation_free(service->investigation);
	loop_close(service->loop);
	pool_close(service->pool);
	store_close(service->store);
	webhook_library_stop();
	source_library_stop();
}

static int open_service(struct service *service, const struct config *config, struct error *error)
{
	const struct service_options *options = service->options;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	long long workers = options->workers > 0 ? options->workers : config->workers;
	if (workers == 0)
		workers = processors > 0 ? processors : 1;
	if (source_library_start(error) < 0 || webhook_library_start(error) < 0 ||
	    store_open(&service->store, options->state_folder, error) < 0 || loop_open(&service->loop, error) < 0)
		return -1;
	if (pool_open(&service->pool, service->loop, options->worker, &options->launcher, (size_t)workers, error) < 0)
		return -1;
	if (loop_on_signal(service->loop, SIGTERM, asked_to_stop, service, error) < 0 ||
	    loop_on_signal(service->loop, SIGINT, asked_to_stop, service, error) < 0 ||
	    loop_on_signal(service->loop, SIGHUP, asked_to_stop, service, error) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

static int load_config(struct config *config, const char *file)
{
	cleanup_strlist struct strlist problems = {0};
	if (config_load(config, file, &problems) == 0)
		return 0;
	for (size_t i = 0; i < problems.count; i++)
		fprintf(stderr, "%s\n", problems.items[i]);
	return -1;
}

/* To standard output, or to a file: whole or not at all, unless it is a device, a pipe or the like. */
static int write_report(const struct str *report, const char *output, struct error *error)
{
	struct stat status;
	if (output == NULL) {
		bool written = fwrite(str_text(report), 1, report->length, stdout) == report->length && fflush(stdout) == 0;
		if (!written && errno != EPIPE) /* a reader that has seen enough, as of `| head`, is no trouble */
			return error_set_errno(error, "writing the report to standard output");
		return 0;
	}
	bool exists = stat(output, &status) == 0;
	if (exists && S_ISDIR(status.st_mode))
		return error_set(error, "writing the report to %s: that is a folder, name a file", output);
	cleanup_free char *target = exists ? realpath(output, NULL) : text_copy(output);
	if (!exists || (S_ISREG(status.st_mode) && target != NULL)) {
		if (fs_write_file(target, str_text(report), report->length, error) < 0)
			return error_wrap(error, "writing the report");
		return 0;
	}
	cleanup_fd int fd = open(output, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	for (size_t done = 0; fd >= 0 && done < report->length;) {
		ssize_t wrote = write(fd, report->data + done, report->length - done);
		if (wrote < 0 && errno != EINTR)
			return error_set_errno(error, "writing the report to %s", output);
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return fd < 0 ? error_set_errno(error, "writing the report to %s", output) : 0;
}

/* The page of an investigation, <state>/reports/NAME.html: what report_url leads to. */
static int write_page(struct service *service, const char *name, struct error *error)
{
	cleanup_str struct str page = {0};
	cleanup_strlist struct strlist names = {0};
	cleanup_free char *folder = path_join(service->options->state_folder, "reports");
	cleanup_free char *path = text_format("%s/%s.html", folder, name);
	const struct report_options options = {
		.format = REPORT_HTML, .state_folder = service->options->state_folder, .folder = folder};
	strlist_add(&names, name);
	if (fs_make_folder(folder, error) < 0 ||
	    report_make(store_connection(service->store), &names, &options, &page, error) < 0 ||
	    fs_write_file(path, str_text(&page), page.length, error) < 0)
		return error_wrap(error, "writing the page %s", path);
	log_info("the report as a page: %s", path);
	return 0;
}

static int print_report(struct service *service, const char *name)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	cleanup_strlist struct strlist names = {0};
	const struct report_options options = {.format = REPORT_TEXT, .state_folder = service->options->state_folder};
	strlist_add(&names, name);
	if (report_make(store_connection(service->store), &names, &options, &text, &error) < 0) {
		log_error("making the report: %s", error_text(&error));
		return -1;
	}
	if (write_report(&text, NULL, &error) < 0 || write_page(service, name, &error) < 0) {
		log_error("%s", error_text(&error));
		return -1;
	}
	return 0;
}

static int exit_status(const struct service *service)
{
	switch (investigation_end(service->investigation)) {
	case INVESTIGATION_FOUND:
		return EXIT_FOUND;
	case INVESTIGATION_NONE:
		return EXIT_NONE;
	case INVESTIGATION_TROUBLE:
		log_error("could not finish: %s", investigation_trouble(service->investigation));
		return EXIT_TROUBLE;
	case INVESTIGATION_STOPPED:
		log_error("stopped before the end: run the same command to go on");
		return EXIT_TROUBLE;
	}
	return EXIT_TROUBLE;
}

static int conclude(struct service *service, const struct config *config, bool resolve_only)
{
	int status = exit_status(service);
	if (!resolve_only) {
		if (!investigation_has_matrix(service->investigation))
			return status;
		if (print_report(service, config->name) < 0 && status == EXIT_FOUND)
			status = EXIT_TROUBLE;
		return status;
	}
	if (status == EXIT_TROUBLE)
		return status;
	cleanup_str struct str text = {0};
	investigation_print_plan(service->investigation, &text);
	fputs(str_text(&text), stdout);
	return 0;
}

static int investigate(const struct service_options *options, const struct config *config, bool resolve_only, bool *stopped)
{
	cleanup_error struct error error = {0};
	struct service service = {.options = options};
	int status = EXIT_TROUBLE;
	if (open_service(&service, config, &error) < 0) {
		log_error("%s", error_text(&error));
	} else {
		struct investigation_setup setup = {.loop = service.loop,
						    .store = service.store,
						    .pool = service.pool,
						    .config = config,
						    .state_folder = options->state_folder,
						    .resolve_only = resolve_only,
						    .offline = options->offline,
						    .delivery_wait_ms = options->delivery_wait_ms,
						    .on_end = ended,
						    .context = &service};
		service.investigation = investigation_start(&setup);
		loop_run(service.loop);
		status = conclude(&service, config, resolve_only);
	}
	*stopped = service.stops > 0;
	close_service(&service);
	return status;
}

/* The worst status of all files is the command's: trouble, then usage, then none, then found.  A signal stops the others too. */
static int each_file(const struct service_options *options, const struct strlist *files, bool resolve_only)
{
	int status = 0;
	bool stopped = false;
	for (size_t i = 0; i < files->count && !stopped; i++) {
		cleanup_config struct config config = {0};
		int one = load_config(&config, files->items[i]) < 0 ? EXIT_USAGE
								    : investigate(options, &config, resolve_only, &stopped);
		if (one > status)
			status = one;
	}
	return status;
}

int service_run(const struct service_options *options, const struct strlist *files)
{
	return each_file(options, files, false);
}

int service_check(const struct service_options *options, const struct strlist *files)
{
	return each_file(options, files, true);
}

static int report_all(struct sql *sql, const struct strlist *names, const struct service_options *options, struct error *error)
{
	cleanup_strlist struct strlist all = {0};
	cleanup_str struct str report = {0};
	cleanup_free char *folder = options->output != NULL ? path_parent(options->output) : NULL;
	const struct report_options how = {.format = options->format, .state_folder = options->state_folder, .folder = folder};
	if (names->count == 0 && view_names(sql, &all, error) < 0)
		return -1;
	const struct strlist *chosen = names->count > 0 ? names : &all;
	if (chosen->count == 0)
		return error_set(error, "there is no investigation in %s yet: start one with `bisectd run FILE`",
				 options->state_folder);
	if (report_make(sql, chosen, &how, &report, error) < 0)
		return -1;
	return write_report(&report, options->output, error);
}

int service_report(const struct service_options *options, const struct strlist *names)
{
	cleanup_error struct error error = {0};
	signal(SIGPIPE, SIG_IGN);
	cleanup_free char *path = path_join(options->state_folder, "bisectd.db");
	struct sql *sql = NULL;
	int result = sql_open(&sql, path, SQL_READ_ONLY, &error);
	if (result == 0)
		result = report_all(sql, names, options, &error);
	sql_close(sql);
	if (result < 0)
		log_error("%s", error_text(&error));
	return result < 0 ? EXIT_TROUBLE : 0;
}
