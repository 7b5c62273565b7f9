/* The matrix as a table of letters: the last axis across, the others down.  See report_format.h. */
#include "report_format.h"

#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "outcome.h"

/* Widths are counted as a terminal shows a label: in characters, after markup_line. */
static size_t width_of(const char *label)
{
	cleanup_str struct str shown = {0};
	size_t width = 0;
	markup_line(&shown, label);
	for (size_t i = 0; i < shown.length; i++)
		width += (shown.data[i] & 0xC0) != 0x80;
	return width;
}

static size_t label_width(const struct view_axis *axis)
{
	size_t width = width_of(axis->name);
	for (size_t i = 0; i < axis->count; i++)
		if (width_of(axis->values[i].label) > width)
			width = width_of(axis->values[i].label);
	return width;
}

static void add_label(struct str *line, const char *label, size_t width)
{
	markup_line(line, label);
	for (size_t i = width_of(label); i <= width; i++)
		str_append(line, " ");
}

static void add_header(const struct view_matrix *matrix, const size_t *widths, const char *indent, struct str *to)
{
	cleanup_str struct str line = {0};
	const struct view_axis *across = &matrix->axes[matrix->axis_count - 1];
	for (size_t i = 0; i + 1 < matrix->axis_count; i++)
		add_label(&line, matrix->axes[i].name, widths[i]);
	for (size_t i = 0; i < across->count; i++)
		str_append_format(&line, " %-2zu", i + 1);
	markup_format(to, "%s%s", indent, str_text(&line));
}

static bool row_is_absent(const struct view_matrix *matrix, size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (matrix->outcomes[first + i] != VIEW_ABSENT)
			return false;
	return true;
}

static void add_row(const struct view_matrix *matrix, const size_t *widths, size_t first, size_t *above, const char *indent,
		    struct str *to)
{
	cleanup_str struct str line = {0};
	size_t count = matrix->axes[matrix->axis_count - 1].count;
	bool same = true;
	for (size_t i = 0; i + 1 < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		size_t position = first / axis->stride % axis->count;
		same = same && above[i] == position;
		above[i] = position;
		add_label(&line, same ? "" : axis->values[position].label, widths[i]);
	}
	for (size_t i = 0; i < count; i++) {
		unsigned char outcome = matrix->outcomes[first + i];
		str_append_format(&line, " %c ", outcome == VIEW_ABSENT ? ' ' : outcome_letter((enum outcome)outcome));
	}
	markup_format(to, "%s%s", indent, str_text(&line));
}

void report_matrix_rows(const struct view_matrix *matrix, const char *indent, size_t most, struct str *to)
{
	if (matrix->axis_count == 0)
		return;
	size_t across = matrix->axes[matrix->axis_count - 1].count;
	size_t rows = 0;
	cleanup_free size_t *widths = memory_new(matrix->axis_count, sizeof *widths);
	cleanup_free size_t *above = memory_new(matrix->axis_count, sizeof *above);
	for (size_t i = 0; i < matrix->axis_count; i++) {
		widths[i] = label_width(&matrix->axes[i]);
		above[i] = (size_t)-1;
	}
	add_header(matrix, widths, indent, to);
	for (size_t first = 0; first + across <= matrix->cell_count && across > 0; first += across)
		if (!row_is_absent(matrix, first, across) && rows++ < most)
			add_row(matrix, widths, first, above, indent, to);
	if (rows > most)
		markup_format(to, "%s... and %zu rows more", indent, rows - most);
}

void report_matrix_legend(const struct view_matrix *matrix, const char *indent, struct str *to)
{
	if (matrix->axis_count == 0)
		return;
	const struct view_axis *across = &matrix->axes[matrix->axis_count - 1];
	bool present[OUTCOME_COUNT] = {false};
	cleanup_str struct str line = {0};
	for (size_t i = 0; i < across->count; i++)
		str_append_format(&line, "%s%zu %s", i > 0 ? ", " : "", i + 1, across->values[i].label);
	markup_format(to, "%s%s: %s", indent, across->name, str_text(&line));
	for (size_t i = 0; i < matrix->cell_count; i++)
		if (matrix->outcomes[i] != VIEW_ABSENT)
			present[matrix->outcomes[i]] = true;
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++)
		if (present[i])
			markup_format(to, "%s%c %s: %s", indent, outcome_letter((enum outcome)i), outcome_name((enum outcome)i),
				      outcome_meaning((enum outcome)i));
}
