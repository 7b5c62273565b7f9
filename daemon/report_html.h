/* What the files of the HTML report share: a page being written, and its smallest parts. */
#ifndef BISECTD_DAEMON_REPORT_HTML_H
#define BISECTD_DAEMON_REPORT_HTML_H

#include "report_format.h"

struct html_page {
	struct str *to;
	const struct report_model *model;
	size_t number;     /* of the investigation in the document: ids start with it */
	const char *links; /* what leads to the state folder */
};

/* <open>text</open>; `open` may have attributes, and is ours; `text` is anybody's. */
void html_tag(struct str *to, const char *open, const char *text);
/* The same in <code>; nothing where `text` is NULL. */
void html_code(struct str *to, const char *text);
/*
 * A table that scrolls by itself where the page is narrow: caption, and the head's cells, "" for an empty one, NULL at the end. The
 * roles are written out, because what is laid out in another way on a narrow page is no table to some browsers any more.
 */
void html_table_start(struct str *to, const char *caption, const char *const *head);
void html_table_end(struct str *to);
/* One row; `kinds` has a letter for each cell: 'h' a row's heading, 'c' code, 't' text, 'o' an outcome. NULL is an empty cell. */
void html_row(struct str *to, const char *kinds, const char *const *cells);
/* Text in a box that scrolls. */
void html_block(struct str *to, const char *label, const char *text);
/* A link to a file below the state folder, shown as `text`. */
void html_link(const struct html_page *page, const char *path, const char *text);
/* "o o-fail" for an outcome's word; static. */
const char *html_outcome_class(const char *outcome);

/* Sections, written only where there is something to write (report_html.c knows). */
void html_matrix(const struct html_page *page);
void html_promises(const struct html_page *page);
void html_paths(const struct html_page *page);
void html_assembly(const struct html_page *page);
void html_pass(const struct html_page *page);
void html_twins(const struct html_page *page);
void html_files(const struct html_page *page);

/* The style sheet. */
extern const char report_html_style[];

#endif
