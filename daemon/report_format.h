/* The formats of a report, one file each: from models to text.  What they share stands here too. */
#ifndef BISECTD_DAEMON_REPORT_FORMAT_H
#define BISECTD_DAEMON_REPORT_FORMAT_H

#include "report_model.h"

/* All models in one document, appended.  `links`: what leads to the state folder from where the report lies: "", or ends in '/'. */
void report_text(const struct report_model *models, size_t count, const char *links, struct str *to);
void report_markdown(const struct report_model *models, size_t count, const char *links, struct str *to);
void report_json(const struct report_model *models, size_t count, const char *links, struct str *to);
void report_html(const struct report_model *models, size_t count, const char *links, struct str *to);

/* The matrix as letters: the last axis across, the others down; a label that equals the row's above is not repeated, rows whose
 * cells are all excluded and rows after `most` are left out (and counted in a last line).  Without a heading. */
void report_matrix_rows(const struct view_matrix *matrix, const char *indent, size_t most, struct str *to);
/* What the columns and the letters mean, a line each. */
void report_matrix_legend(const struct view_matrix *matrix, const char *indent, struct str *to);

/*
 * Which rows of a comparison are worth showing, with some around them, at most `most`: the steps of the broken path, or where
 * there are none those that differ.  `shown` has `count` members.  Returns how many are true.
 */
size_t report_excerpt(const struct report_neighbour *neighbour, size_t most, bool *shown);
/* The neighbour whose assembly tells most: with the broken path in it, and with the fewest differences; or NULL. */
const struct report_neighbour *report_compared(const struct report_model *model);

/* Words that all formats use; static. */
const char *report_holds(int holds); /* "holds", "does not hold", "not known" */
const char *report_mark(int flag, const char *yes, const char *no, const char *unknown);

bool report_is_tried(const struct report_flip *flip);

/* Sentences; owned by the caller. */
char *report_counts_sentence(const struct report_model *model); /* "202 cells, 193 decided: ..." */
char *report_confirmed_sentence(const struct view_first_bad *first_bad);
char *report_build_sentence(const struct report_model *model); /* how the evidence was gathered, or why not */
char *report_audit_sentence(const struct report_model *model); /* NULL where nothing was audited */
char *report_paths_sentence(const struct report_model *model); /* NULL where there are no paths */
char *report_pass_sentence(const struct report_pass *pass);    /* NULL where it was not tried */
char *report_untried_flips(const struct report_pass *pass);    /* "lto=thin, lto=fat", or NULL */
char *report_neighbour_sentence(const struct report_neighbour *neighbour);

#endif
