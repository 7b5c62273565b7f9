/* See report_matrix.h. */
#include "report_matrix.h"

#include <stdlib.h>
#include <string.h>

static size_t label_width(const struct view_axis *axis)
{
	size_t width = strlen(axis->name);
	for (size_t i = 0; i < axis->count; i++)
		if (strlen(axis->values[i].label) > width)
			width = strlen(axis->values[i].label);
	return width;
}

static void add_header(const struct view_matrix *matrix, const size_t *widths, struct str *text)
{
	const struct view_axis *across = &matrix->axes[matrix->axis_count - 1];
	str_append(text, "  ");
	for (size_t i = 0; i + 1 < matrix->axis_count; i++)
		str_append_format(text, "%-*s ", (int)widths[i], matrix->axes[i].name);
	for (size_t i = 0; i < across->count; i++)
		str_append_format(text, " %-2zu", i + 1);
	str_append(text, "\n");
}

static bool row_is_absent(const struct view_matrix *matrix, size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (matrix->outcomes[first + i] != VIEW_ABSENT)
			return false;
	return true;
}

static void add_row(const struct view_matrix *matrix, const size_t *widths, size_t first, size_t *above, struct str *text)
{
	size_t count = matrix->axes[matrix->axis_count - 1].count;
	bool same = true;
	str_append(text, "  ");
	for (size_t i = 0; i + 1 < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		size_t position = first / axis->stride % axis->count;
		same = same && above[i] == position;
		above[i] = position;
		str_append_format(text, "%-*s ", (int)widths[i], same ? "" : axis->values[position].label);
	}
	for (size_t i = 0; i < count; i++) {
		unsigned char outcome = matrix->outcomes[first + i];
		str_append_format(text, " %c ", outcome == VIEW_ABSENT ? ' ' : outcome_letter((enum outcome)outcome));
	}
	str_append(text, "\n");
}

static void add_legend(const struct view_matrix *matrix, struct str *text)
{
	const struct view_axis *across = &matrix->axes[matrix->axis_count - 1];
	bool present[OUTCOME_COUNT] = {false};
	str_append_format(text, "  %s:", across->name);
	for (size_t i = 0; i < across->count; i++)
		str_append_format(text, " %zu %s%s", i + 1, across->values[i].label, i + 1 < across->count ? "," : "\n");
	for (size_t i = 0; i < matrix->cell_count; i++)
		if (matrix->outcomes[i] != VIEW_ABSENT)
			present[matrix->outcomes[i]] = true;
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++)
		if (present[i])
			str_append_format(text, "  %c %s: %s\n", outcome_letter((enum outcome)i), outcome_name((enum outcome)i),
					  outcome_meaning((enum outcome)i));
}

void report_matrix(const struct view_matrix *matrix, struct str *text)
{
	if (matrix->axis_count == 0)
		return;
	size_t across = matrix->axes[matrix->axis_count - 1].count;
	cleanup_free size_t *widths = memory_new(matrix->axis_count, sizeof *widths);
	cleanup_free size_t *above = memory_new(matrix->axis_count, sizeof *above);
	str_append(text, "\nMatrix\n");
	for (size_t i = 0; i < matrix->axis_count; i++) {
		widths[i] = label_width(&matrix->axes[i]);
		above[i] = (size_t)-1;
	}
	add_header(matrix, widths, text);
	for (size_t first = 0; first < matrix->cell_count; first += across)
		if (!row_is_absent(matrix, first, across))
			add_row(matrix, widths, first, above, text);
	add_legend(matrix, text);
}
