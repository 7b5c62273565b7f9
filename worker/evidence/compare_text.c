/* The result of a comparison as text and as JSON: the last half of compare.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "evidence/compare.h"

/* ---- columns: one for each character that is not a continuation byte of UTF-8 ---- */

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t columns(const char *text)
{
	size_t count = 0;
	for (; *text != '\0'; text++)
		count += !is_continuation(*text);
	return count;
}

/* Exactly `width` columns: filled up with spaces, or cut with "…" at its end. */
static void append_fitted(struct str *text, const char *what, size_t width)
{
	size_t count = columns(what);
	if (count <= width) {
		str_append(text, what);
		str_append_format(text, "%*s", (int)(width - count), "");
		return;
	}
	size_t left = width > 0 ? width - 1 : 0;
	const char *end = what;
	while (*end != '\0' && (left > 0 || is_continuation(*end)))
		left -= !is_continuation(*end++) ? 1 : 0;
	str_append_bytes(text, what, (size_t)(end - what));
	if (width > 0)
		str_append(text, "…");
}

/* Tabs would tear the columns apart, and control characters come from hostile symbols. */
static char *printable(const char *what)
{
	char *copy = text_copy(what);
	for (char *c = copy; c != NULL && *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	return copy;
}

static void append_line(struct str *text, const char *start, const char *what)
{
	cleanup_free char *clean = printable(what);
	str_append_format(text, "%s%s\n", start, clean);
}

static const struct code_line *line_at(const struct code *code, size_t place)
{
	return place != COMPARE_NONE ? &code->lines[place] : NULL;
}

static const char *title_of(const struct code *code, const char *otherwise)
{
	return code->title != NULL ? code->title : otherwise;
}

void compare_summary(const struct comparison *comparison, struct str *text)
{
	str_append_format(text,
			  "%zu instructions left, %zu right: %zu the same, %zu with other registers, %zu changed, %zu "
			  "only left, %zu "
			  "only right%s",
			  comparison->left->count, comparison->right->count, comparison->marks[COMPARE_SAME],
			  comparison->marks[COMPARE_RENAMED], comparison->marks[COMPARE_CHANGED],
			  comparison->marks[COMPARE_LEFT_ONLY], comparison->marks[COMPARE_RIGHT_ONLY],
			  comparison->approximate ? " (too different for the shortest difference: this is a longer one)"
						  : "");
}

/* ---- unified ---- */

static bool is_of_interest(const struct compare_row *row)
{
	return row->deciding || row->mark != COMPARE_SAME;
}

/* How many rows ago the last one of interest was; SIZE_MAX: there was none. */
static size_t count_since(const struct compare_row *row, size_t since)
{
	return is_of_interest(row) ? 0 : since + (since < SIZE_MAX);
}

/* Whether each row is shown: those of interest and `context` rows around them.  Owned by the caller. */
static bool *choose_rows(const struct comparison *comparison, size_t context)
{
	bool *shown = memory_new(comparison->count + 1, sizeof *shown);
	size_t since = SIZE_MAX;
	for (size_t i = 0; i < comparison->count; i++) {
		since = count_since(&comparison->rows[i], since);
		shown[i] = since <= context;
	}
	since = SIZE_MAX;
	for (size_t i = comparison->count; i-- > 0;) {
		since = count_since(&comparison->rows[i], since);
		shown[i] = shown[i] || since <= context;
	}
	return shown;
}

static void append_unified_side(struct str *text, const struct compare_row *row, const struct code_line *line,
				char sign)
{
	char start[32];
	if (line->source != NULL) {
		snprintf(start, sizeof start, "   %c           ; ", sign);
		append_line(text, start, line->source);
	}
	if (line->label != NULL) {
		snprintf(start, sizeof start, "   %c ", sign);
		cleanup_free char *label = text_format("%s:", line->label);
		append_line(text, start, label);
	}
	snprintf(start, sizeof start, "%s %c %8" PRIx64 "  ", row->deciding ? "=>" : "  ", sign, line->address);
	append_line(text, start, line->text);
}

void compare_unified(const struct comparison *comparison, size_t context, struct str *text)
{
	cleanup_free bool *shown = choose_rows(comparison, context);
	append_line(text, "--- ", title_of(comparison->left, "left"));
	append_line(text, "+++ ", title_of(comparison->right, "right"));
	bool gap = false;
	for (size_t i = 0; i < comparison->count; i++) {
		const struct compare_row *row = &comparison->rows[i];
		if (!shown[i]) {
			gap = true;
			continue;
		}
		if (gap)
			str_append(text, "@@\n");
		gap = false;
		const struct code_line *left = line_at(comparison->left, row->left);
		const struct code_line *right = line_at(comparison->right, row->right);
		if (row->note != NULL)
			append_line(text, "   ! ", row->note);
		if (left != NULL && (right == NULL || row->mark == COMPARE_CHANGED))
			append_unified_side(text, row, left, '-');
		if (right != NULL)
			append_unified_side(text, row, right,
					    row->mark == COMPARE_SAME      ? ' '
					    : row->mark == COMPARE_RENAMED ? '~'
									   : '+');
	}
}

/* ---- side by side ---- */

static void append_pair(struct str *text, const char *arrow, const char *left, char between, const char *right,
			size_t half)
{
	cleanup_free char *clean_left = printable(left);
	cleanup_free char *clean_right = printable(right);
	str_append(text, arrow);
	append_fitted(text, clean_left, half);
	str_append_format(text, " %c ", between);
	cleanup_str struct str fitted = {0};
	append_fitted(&fitted, clean_right, half);
	while (fitted.length > 0 && fitted.data[fitted.length - 1] == ' ')
		fitted.data[--fitted.length] = '\0';
	str_append(text, str_text(&fitted));
	while (text->length > 0 && text->data[text->length - 1] == ' ')
		text->data[--text->length] = '\0';
	str_append(text, "\n");
}

/* Labels and sources stand on lines of their own above the instruction. */
static void append_above(struct str *text, const struct code_line *left, const struct code_line *right, size_t half)
{
	const char *left_source = left != NULL ? left->source : NULL;
	const char *right_source = right != NULL ? right->source : NULL;
	if (left_source != NULL || right_source != NULL) {
		cleanup_free char *a = left_source != NULL ? text_format("; %s", left_source) : text_copy("");
		cleanup_free char *b = right_source != NULL ? text_format("; %s", right_source) : text_copy("");
		append_pair(text, "   ", a, ' ', b, half);
	}
	const char *left_label = left != NULL ? left->label : NULL;
	const char *right_label = right != NULL ? right->label : NULL;
	if (left_label != NULL || right_label != NULL) {
		cleanup_free char *a = left_label != NULL ? text_format("%s:", left_label) : text_copy("");
		cleanup_free char *b = right_label != NULL ? text_format("%s:", right_label) : text_copy("");
		append_pair(text, "   ", a, ' ', b, half);
	}
}

static char *with_address(const struct code_line *line)
{
	return line != NULL ? text_format("%6" PRIx64 "  %s", line->address, line->text) : text_copy("");
}

void compare_side_by_side(const struct comparison *comparison, size_t width, struct str *text)
{
	static const char between[] = {' ', '~', '|', '<', '>'};
	size_t half = ((width < 40 ? 40 : width) - 6) / 2;
	append_pair(text, "   ", title_of(comparison->left, "left"), ' ', title_of(comparison->right, "right"), half);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct compare_row *row = &comparison->rows[i];
		const struct code_line *left = line_at(comparison->left, row->left);
		const struct code_line *right = line_at(comparison->right, row->right);
		append_above(text, left, right, half);
		cleanup_free char *a = with_address(left);
		cleanup_free char *b = with_address(right);
		append_pair(text, row->deciding ? "=> " : "   ", a, between[row->mark], b, half);
	}
}

/* ---- JSON ---- */

/* Text that may not be UTF-8 (a symbol of a hostile binary) must not lose the row. */
static json_t *json_text(const char *what)
{
	json_t *text = json_string(what);
	if (text != NULL)
		return text;
	cleanup_free char *copy = text_copy(what);
	for (char *c = copy; *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

static json_t *json_side(const struct code_line *line)
{
	if (line == NULL)
		return json_null();
	char address[24];
	snprintf(address, sizeof address, "%#" PRIx64, line->address);
	json_t *side = json_pack("{s:s, s:o}", "address", address, "text", json_text(line->text));
	if (line->label != NULL)
		json_object_set_new(side, "label", json_text(line->label));
	if (line->source != NULL)
		json_object_set_new(side, "source", json_text(line->source));
	return side;
}

json_t *compare_json(const struct comparison *comparison)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < comparison->count; i++) {
		const struct compare_row *row = &comparison->rows[i];
		const char *difference = compare_mark_name(row->mark);
		json_t *object =
			json_pack("{s:o, s:o, s:s, s:s}", "left", json_side(line_at(comparison->left, row->left)),
				  "right", json_side(line_at(comparison->right, row->right)), "mark",
				  row->deciding ? "deciding" : difference, "difference", difference);
		if (row->note != NULL)
			json_object_set_new(object, "note", json_string(row->note));
		json_array_append_new(rows, object);
	}
	return rows;
}
