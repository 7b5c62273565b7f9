/* The matrix as a table of letters: the last axis across, the others down. */
#ifndef BISECTD_DAEMON_REPORT_MATRIX_H
#define BISECTD_DAEMON_REPORT_MATRIX_H

#include "str.h"
#include "view.h"

/* Appends to `text`.  Rows whose cells are all excluded are left out; a label that equals the row's above is not repeated. */
void report_matrix(const struct view_matrix *matrix, struct str *text);

#endif
