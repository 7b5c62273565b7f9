/* See error.h. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "str.h"

static void replace_text(struct error *error, struct str *text)
{
	free(error->text);
	error->text = str_steal(text);
}

int error_set(struct error *error, const char *format, ...)
{
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	replace_text(error, &text);
	return -1;
}

int error_set_errno(struct error *error, const char *format, ...)
{
	int number = errno;
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	str_append_format(&text, ": %s", strerror(number));
	replace_text(error, &text);
	return -1;
}

int error_wrap(struct error *error, const char *format, ...)
{
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	str_append_format(&text, ": %s", error_text(error));
	replace_text(error, &text);
	return -1;
}

const char *error_text(const struct error *error)
{
	return error->text != NULL ? error->text : "unknown error";
}

void error_clear(struct error *error)
{
	free(error->text);
	error->text = NULL;
}
