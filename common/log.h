/*
 * Messages to the person who runs a program, on standard error, one line each.
 *
 * On a terminal a status line may stand below them; log_status draws it and every message moves it down.  The only
 * state outside `main` that the project keeps, because a message must be possible from everywhere.
 */
#ifndef BISECTD_COMMON_LOG_H
#define BISECTD_COMMON_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* `program` is put before each line and must outlive all messages; messages above `level` are dropped. */
void log_open(const char *program, enum log_level level);
void log_message(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_message(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_message(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Is standard error a terminal that can hold a status line? */
bool log_has_terminal(void);
/* Draw (or with NULL take away) the status line; cut to the terminal's width.  Does nothing where there is no terminal. */
void log_status(const char *text);

#endif
