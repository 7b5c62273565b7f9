/*
 * Text of others made harmless: for a terminal, Markdown, HTML and JSON.
 *
 * Everything that a program under test, a compiler, a repository or an investigation's file wrote is hostile where it is shown.
 * First it is made visible: control characters, characters that turn the direction of writing or cannot be seen, and bytes that
 * are no UTF-8 become \x1b, \u{202e} and the like.  Then it is quoted for the place where it goes.  All functions append, and
 * take NULL for "".  Knows nothing of reports.
 */
#ifndef BISECTD_DAEMON_MARKUP_H
#define BISECTD_DAEMON_MARKUP_H

#include <stdarg.h>
#include <stdbool.h>

#include "str.h"

/* One line: ends of lines and tabs become blanks. */
void markup_line(struct str *to, const char *text);
/* Every line of it after `indent`, without the blanks at its end, ended by a newline. */
void markup_block(struct str *to, const char *indent, const char *text);
/* A formatted line for a terminal, by the same rules, ended by one newline whatever is in the arguments. */
void markup_format(struct str *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * GitHub-flavoured Markdown, as prose of one line: no markup, HTML, mention (@name), reference (#1, GH-1) or link comes out of it.
 * GitHub finds mentions and references after it has undone every escape, so those are broken by a character without width.
 */
void markup_markdown(struct str *to, const char *text);
/* As a span of code, wherever it stands (also in a table, where a text with a bar in it becomes prose). */
void markup_markdown_code(struct str *to, const char *text);
/* As a fenced block on lines of its own; the fence is longer than any run of backticks inside.  `language` is ours, or "". */
void markup_markdown_fence(struct str *to, const char *language, const char *text);

/* HTML, as content of an element or value of a quoted attribute; lines are kept. */
void markup_html(struct str *to, const char *text);

/* Valid UTF-8 for JSON, nothing else changed; owned by the caller. */
char *markup_utf8(const char *text);

#endif
