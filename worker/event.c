/*
 * What a worker says on standard output: one JSON object a line, see common/job.h.  A reader that went away means that
 * nobody wants the answer: the worker then ends, and with it everything that it started (see inside.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs.h"

enum { EXIT_UNHEARD = 3 };

static void emit(const char *line)
{
	cleanup_str struct str text = {0};
	str_append(&text, line);
	str_append(&text, "\n");
	for (size_t done = 0; done < text.length;) {
		ssize_t written = write(STDOUT_FILENO, text.data + done, text.length - done);
		if (written > 0)
			done += (size_t)written;
		else if (errno != EINTR)
			_exit(EXIT_UNHEARD);
	}
}

static void emit_object(json_t *object)
{
	cleanup_free char *line = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (line == NULL)
		memory_exhausted();
	emit(line);
}

void event_phase(const char *phase, long long number, long long of)
{
	json_t *object = json_object();
	json_object_set_new(object, "event", json_string("phase"));
	json_object_set_new(object, "phase", json_string(phase));
	if (of > 0) {
		json_object_set_new(object, "number", json_integer(number));
		json_object_set_new(object, "of", json_integer(of));
	}
	emit_object(object);
}

void event_progress(const char *format, ...)
{
	cleanup_str struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	json_t *value = json_string(str_text(&text));
	if (value == NULL) /* not UTF-8: there is nothing to show */
		return;
	json_t *object = json_object();
	json_object_set_new(object, "event", json_string("progress"));
	json_object_set_new(object, "text", value);
	emit_object(object);
}

void event_result(const struct result *result)
{
	cleanup_free char *line = result_encode(result);
	emit(line);
}

void result_set(struct result *result, enum outcome outcome, const char *format, ...)
{
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	free(result->reason);
	result->reason = str_steal(&text);
	result->outcome = outcome;
}
