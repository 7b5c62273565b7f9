/*
 * Errors as sentences that gather context on their way up.
 *
 * A function that can fail returns 0, or -1 with its `struct error` filled in.  Each caller may put its own
 * attempt before the text: "walking usdt: resolving v0.5.0: no such tag".  The text never ends in a full stop or a
 * newline.  A `struct error` starts as `{0}`, is owned by the frame that declares it and freed by `cleanup_error`.
 */
#ifndef BISECTD_COMMON_ERROR_H
#define BISECTD_COMMON_ERROR_H

struct error {
	char *text; /* owned; NULL while nothing failed */
};

#define cleanup_error __attribute__((cleanup(error_clear)))

/* Replace the text.  Always returns -1, so that `return error_set(...)` reads as one step. */
int error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like error_set, and append ": " and the meaning of the current errno. */
int error_set_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put what was being attempted before the text: "attempt: text".  Always returns -1. */
int error_wrap(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text, or "unknown error" where none was set; never NULL.  Owned by the error. */
const char *error_text(const struct error *error);

void error_clear(struct error *error);

#endif
