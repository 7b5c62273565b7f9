/*
 * The matrix in HTML: a picture (inline SVG, a letter in every square, so that colour is not needed), and the same as a table with
 * headings for its rows and columns.
 */
#include "report_html.h"

#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "outcome.h"

enum {
	ROWS = 2000,          /* more are left out, with a note */
	TITLED_CELLS = 20000, /* more go without the text that a mouse brings up */
	CELL_WIDTH = 22,      /* pixels */
	ROW_HEIGHT = 20,
	LETTER = 7,        /* of the labels' font */
	LABEL_LETTERS = 24 /* longer labels are cut in the picture */
};

/* The rows that hold cells, as the walk index of their first. */
struct rows {
	size_t *first;
	size_t count;
	size_t left_out;
};

static const struct view_axis *across(const struct view_matrix *matrix)
{
	return &matrix->axes[matrix->axis_count - 1];
}

static void find_rows(const struct view_matrix *matrix, struct rows *rows)
{
	size_t width = across(matrix)->count;
	*rows = (struct rows){.first = memory_new(ROWS, sizeof *rows->first)};
	for (size_t first = 0; width > 0 && first + width <= matrix->cell_count; first += width) {
		bool any = false;
		for (size_t i = 0; i < width && !any; i++)
			any = matrix->outcomes[first + i] != VIEW_ABSENT;
		if (any && rows->count < ROWS)
			rows->first[rows->count++] = first;
		else if (any)
			rows->left_out++;
	}
}

static const char *label_at(const struct view_matrix *matrix, size_t axis, size_t index)
{
	const struct view_axis *along = &matrix->axes[axis];
	return along->values[index / along->stride % along->count].label;
}

/* Do two rows have the same values on the axes up to this one? */
static bool same_until(const struct view_matrix *matrix, size_t axis, size_t one, size_t other)
{
	for (size_t i = 0; i <= axis; i++) {
		const struct view_axis *along = &matrix->axes[i];
		if (one / along->stride % along->count != other / along->stride % along->count)
			return false;
	}
	return true;
}

static const char *word_of(unsigned char outcome)
{
	return outcome == OUTCOME_UNDECIDED ? "not tried" : outcome_name((enum outcome)outcome);
}

static char letter_of(unsigned char outcome)
{
	return outcome == OUTCOME_UNDECIDED ? '?' : outcome_letter((enum outcome)outcome);
}

/* The picture ---------------------------------------------------------------------------------------------------------- */

static size_t letters_of(const char *label)
{
	size_t letters = 0;
	for (; *label != '\0'; label++)
		letters += (*label & 0xC0) != 0x80;
	return letters;
}

static size_t shown_letters(const char *label)
{
	size_t letters = letters_of(label);
	return letters > LABEL_LETTERS ? LABEL_LETTERS : letters;
}

static size_t longest_label(const struct view_axis *axis)
{
	size_t longest = shown_letters(axis->name);
	for (size_t i = 0; i < axis->count; i++)
		if (shown_letters(axis->values[i].label) > longest)
			longest = shown_letters(axis->values[i].label);
	return longest;
}

static void add_label(struct str *to, const char *label)
{
	size_t bytes = 0;
	size_t letters = 0;
	size_t most = letters_of(label) > LABEL_LETTERS ? LABEL_LETTERS - 1 : LABEL_LETTERS;
	for (; label[bytes] != '\0'; bytes++) {
		letters += (label[bytes] & 0xC0) != 0x80;
		if (letters > most)
			break;
	}
	cleanup_free char *cut = text_copy_range(label, bytes);
	markup_html(to, cut);
	if (label[bytes] != '\0')
		str_append(to, "\xE2\x80\xA6");
}

struct picture {
	struct str *to;
	const struct view_matrix *matrix;
	const struct view_first_bad *first_bad;
	const struct rows *rows;
	size_t *columns; /* x of each axis' labels; of the last axis: of the first cell */
	size_t headroom; /* height of the labels above the cells */
	size_t width;
	bool titled;
};

static void draw_heads(const struct picture *picture)
{
	const struct view_matrix *matrix = picture->matrix;
	size_t last = matrix->axis_count - 1;
	for (size_t i = 0; i < last; i++) {
		str_append_format(picture->to, "<text class=\"axis\" x=\"%zu\" y=\"%zu\">", picture->columns[i],
				  picture->headroom - 6);
		add_label(picture->to, matrix->axes[i].name);
		str_append(picture->to, "</text>\n");
	}
	for (size_t i = 0; i < matrix->axes[last].count; i++) {
		size_t x = picture->columns[last] + i * CELL_WIDTH + 15;
		str_append_format(picture->to, "<text transform=\"translate(%zu %zu) rotate(-90)\">", x, picture->headroom - 6);
		add_label(picture->to, matrix->axes[last].values[i].label);
		str_append(picture->to, "</text>\n");
	}
}

static void draw_cell(const struct picture *picture, size_t row, size_t column)
{
	struct str *to = picture->to;
	const struct view_matrix *matrix = picture->matrix;
	size_t index = picture->rows->first[row] + column;
	unsigned char outcome = matrix->outcomes[index];
	size_t x = picture->columns[matrix->axis_count - 1] + column * CELL_WIDTH;
	size_t y = picture->headroom + row * ROW_HEIGHT;
	if (outcome == VIEW_ABSENT)
		return;
	bool first_bad = picture->first_bad->combination != NULL && (size_t)picture->first_bad->walk_index == index;
	str_append_format(to, "<g class=\"%s%s\">", html_outcome_class(outcome_name((enum outcome)outcome)),
			  first_bad ? " first" : "");
	if (picture->titled) {
		str_append(to, "<title>");
		for (size_t i = 0; i < matrix->axis_count; i++) {
			markup_html(to, label_at(matrix, i, index));
			str_append(to, " ");
		}
		str_append_format(to, "%s%s</title>", word_of(outcome), first_bad ? " (the first bad combination)" : "");
	}
	str_append_format(to,
			  "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"2\"/><text x=\"%zu\" y=\"%zu\">%c</text></g>",
			  x, y, CELL_WIDTH - 2, ROW_HEIGHT - 2, x + CELL_WIDTH / 2 - 1, y + 13, letter_of(outcome));
}

static void draw_row(const struct picture *picture, size_t row)
{
	const struct view_matrix *matrix = picture->matrix;
	size_t first = picture->rows->first[row];
	if (row > 0 && matrix->axis_count > 2 && !same_until(matrix, 0, first, picture->rows->first[row - 1]))
		str_append_format(picture->to, "<path class=\"rule\" d=\"M0 %zuH%zu\"/>", picture->headroom + row * ROW_HEIGHT - 1,
				  picture->width);
	for (size_t i = 0; i + 1 < matrix->axis_count; i++) {
		if (row > 0 && same_until(matrix, i, first, picture->rows->first[row - 1]))
			continue;
		str_append_format(picture->to, "<text x=\"%zu\" y=\"%zu\">", picture->columns[i],
				  picture->headroom + row * ROW_HEIGHT + 13);
		add_label(picture->to, label_at(matrix, i, first));
		str_append(picture->to, "</text>");
	}
	for (size_t i = 0; i < across(matrix)->count; i++)
		draw_cell(picture, row, i);
	str_append(picture->to, "\n");
}

/*
 * Where the cells are few, they come first, and the label that changes most often stands beside them: both are then seen on a
 * telephone.  Else the labels come first, as in the table.  Returns the width of the picture.
 */
static size_t place_columns(const struct view_matrix *matrix, size_t *columns)
{
	enum { NARROW = 10, GAP = 8, MARGIN = 2 };
	size_t last = matrix->axis_count - 1;
	bool cells_first = across(matrix)->count <= NARROW;
	size_t x = MARGIN + (cells_first ? across(matrix)->count * CELL_WIDTH + GAP : 0);
	for (size_t i = 0; i < last; i++) {
		size_t axis = cells_first ? last - 1 - i : i;
		columns[axis] = x;
		x += longest_label(&matrix->axes[axis]) * LETTER + GAP;
	}
	columns[last] = cells_first ? MARGIN : x;
	return x + (cells_first ? 0 : across(matrix)->count * CELL_WIDTH) + MARGIN;
}

static void draw(const struct html_page *page, const struct rows *rows)
{
	const struct view_matrix *matrix = &page->model->matrix;
	cleanup_free size_t *columns = memory_new(matrix->axis_count, sizeof *columns);
	size_t width = place_columns(matrix, columns);
	const struct picture picture = {.to = page->to,
					.matrix = matrix,
					.first_bad = &page->model->first_bad,
					.rows = rows,
					.columns = columns,
					.width = width,
					.headroom = longest_label(across(matrix)) * LETTER + 10,
					.titled = rows->count * across(matrix)->count <= TITLED_CELLS};
	size_t height = picture.headroom + rows->count * ROW_HEIGHT + 2;
	str_append_format(
		page->to,
		"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The matrix as a picture\">\n"
		"<svg class=\"matrix\" role=\"img\" aria-labelledby=\"i%zu-picture\" width=\"%zu\" height=\"%zu\" viewBox=\"0 0 "
		"%zu "
		"%zu\">\n<title id=\"i%zu-picture\">The matrix: %lld good, %lld bad of %lld cells; the table below says the "
		"same</title>\n",
		page->number, width, height, width, height, page->number, page->model->about.good, page->model->about.bad,
		page->model->about.cells);
	draw_heads(&picture);
	for (size_t i = 0; i < rows->count; i++)
		draw_row(&picture, i);
	str_append(page->to, "</svg></div>\n");
}

/* The table ------------------------------------------------------------------------------------------------------------ */

static void add_head(const struct view_matrix *matrix, struct str *to)
{
	str_append(to, "<thead><tr>");
	for (size_t i = 0; i + 1 < matrix->axis_count; i++)
		html_tag(to, "th scope=\"col\"", matrix->axes[i].name);
	for (size_t i = 0; i < across(matrix)->count; i++)
		html_tag(to, "th scope=\"col\"", across(matrix)->values[i].label);
	str_append(to, "</tr></thead>\n<tbody>\n");
}

static void add_row_heads(const struct view_matrix *matrix, const struct rows *rows, size_t row, struct str *to)
{
	for (size_t i = 0; i + 1 < matrix->axis_count; i++) {
		size_t end = row + 1;
		if (row > 0 && same_until(matrix, i, rows->first[row], rows->first[row - 1]))
			continue;
		while (end < rows->count && same_until(matrix, i, rows->first[row], rows->first[end]))
			end++;
		cleanup_free char *open =
			text_format("th scope=\"%s\" rowspan=\"%zu\"", i + 2 < matrix->axis_count ? "rowgroup" : "row", end - row);
		html_tag(to, open, label_at(matrix, i, rows->first[row]));
	}
}

static void add_table(const struct html_page *page, const struct rows *rows)
{
	const struct view_matrix *matrix = &page->model->matrix;
	struct str *to = page->to;
	str_append(to, "<details><summary>The matrix as a table</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		       "aria-label=\"The matrix as a table\"><table class=\"matrix\">\n");
	html_tag(to, "caption", "Every combination and its outcome");
	add_head(matrix, to);
	for (size_t row = 0; row < rows->count; row++) {
		str_append(to, "<tr>");
		add_row_heads(matrix, rows, row, to);
		for (size_t i = 0; i < across(matrix)->count; i++) {
			unsigned char outcome = matrix->outcomes[rows->first[row] + i];
			if (outcome == VIEW_ABSENT)
				str_append(to, "<td><span class=\"unseen\">excluded</span></td>");
			else
				str_append_format(to, "<td><span class=\"%s\">%s</span></td>",
						  html_outcome_class(outcome_name((enum outcome)outcome)), word_of(outcome));
		}
		str_append(to, "</tr>\n");
	}
	str_append(to, "</tbody></table></div></details>\n");
}

static void add_legend(const struct view_matrix *matrix, struct str *to)
{
	bool present[OUTCOME_COUNT] = {false};
	for (size_t i = 0; i < matrix->cell_count; i++)
		if (matrix->outcomes[i] != VIEW_ABSENT)
			present[matrix->outcomes[i]] = true;
	str_append(to, "<ul class=\"legend\">\n");
	for (int i = 0; i < OUTCOME_COUNT; i++)
		if (present[i])
			str_append_format(to, "<li><span class=\"%s\">%c</span> %s%s%s</li>\n",
					  html_outcome_class(outcome_name((enum outcome)i)), letter_of((unsigned char)i),
					  word_of((unsigned char)i), i == OUTCOME_UNDECIDED ? "" : ": ",
					  i == OUTCOME_UNDECIDED ? "" : outcome_meaning((enum outcome)i));
	str_append(
		to,
		"<li>An empty place is a combination that the investigation excludes; the thick frame is the first bad one.</li>\n"
		"</ul>\n");
}

void html_matrix(const struct html_page *page)
{
	struct rows rows;
	find_rows(&page->model->matrix, &rows);
	str_append(page->to, "<p>The columns are values of ");
	html_tag(page->to, "strong", across(&page->model->matrix)->name);
	str_append(page->to, ".</p>\n");
	draw(page, &rows);
	add_legend(&page->model->matrix, page->to);
	if (rows.left_out > 0)
		str_append_format(page->to, "<p>%zu more rows are in the database only.</p>\n", rows.left_out);
	add_table(page, &rows);
	free(rows.first);
}
