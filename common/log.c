/* See log.h. */
#include "log.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "str.h"

static struct {
	const char *program;
	enum log_level level;
	bool status_shown;
} state = {.program = "bisectd", .level = LOG_LEVEL_INFO};

void log_open(const char *program, enum log_level level)
{
	state.program = program;
	state.level = level;
}

static void take_status_away(void)
{
	if (state.status_shown)
		fputs("\r\033[K", stderr);
	state.status_shown = false;
}

void log_message(enum log_level level, const char *format, ...)
{
	static const char *const words[] = {"error: ", "warning: ", "", ""};
	if (level > state.level)
		return;
	cleanup_str struct str line = {0};
	str_append_format(&line, "%s: %s", state.program, words[level]);
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&line, format, arguments);
	va_end(arguments);
	str_append(&line, "\n");
	take_status_away();
	fputs(str_text(&line), stderr);
	fflush(stderr);
}

bool log_has_terminal(void)
{
	return isatty(STDERR_FILENO) == 1;
}

static size_t terminal_width(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return 79;
	return (size_t)size.ws_col - 1;
}

void log_status(const char *text)
{
	if (!log_has_terminal())
		return;
	take_status_away();
	if (text != NULL) {
		fprintf(stderr, "%.*s", (int)terminal_width(), text);
		state.status_shown = true;
	}
	fflush(stderr);
}
