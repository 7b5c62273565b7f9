/* See report.h. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "report_matrix.h"
#include "view.h"

/* "a" to `text`, every line of it indented. */
static void append_indented(struct str *text, const char *indent, const char *block)
{
	while (*block != '\0') {
		size_t length = strcspn(block, "\n");
		str_append_format(text, "%s%.*s\n", indent, (int)length, block);
		block += length + (block[length] == '\n');
	}
}

static void add_head(const struct view_investigation *about, struct str *text)
{
	str_append_format(text, "\n%s\n", about->name);
	if (about->question != NULL)
		str_append_format(text, "  %s\n", about->question);
	str_append_format(text, "  %lld cells, %lld decided: %lld good, %lld bad (%s)\n", about->cells, about->decided, about->good,
			  about->bad, about->state);
	append_indented(text, "  ", about->notes);
}

static void add_first_bad(const struct view_first_bad *first_bad, const char *state_folder, struct str *text)
{
	str_append(text, "\nFirst bad combination\n");
	if (first_bad->combination == NULL) {
		str_append(text, "  none\n");
		return;
	}
	str_append_format(text, "  %s\n  %s%s%s\n", first_bad->combination, first_bad->outcome,
			  first_bad->reason != NULL ? ": " : "", first_bad->reason != NULL ? first_bad->reason : "");
	if (first_bad->signature != NULL)
		str_append_format(text, "  it printed: %s\n", first_bad->signature);
	str_append_format(text, "  %s; %s\n",
			  first_bad->confirmed ? "confirmed by a clean build and further runs" : "not confirmed by a clean build",
			  first_bad->final ? "no earlier combination can take its place"
					   : "provisional: earlier combinations are not decided");
	if (first_bad->log != NULL)
		str_append_format(text, "  its log: %s/%s\n", state_folder, first_bad->log);
	if (first_bad->commands != NULL) {
		str_append(text, "\nTo repeat it by hand\n");
		append_indented(text, "  ", first_bad->commands);
	}
}

static void add_boundaries(const struct view_boundaries *boundaries, const struct view_matrix *matrix, struct str *text)
{
	str_append(text, "\nBoundaries on the ordered axes\n");
	for (size_t axis = 0; axis < matrix->axis_count; axis++) {
		bool any = false;
		if (!matrix->axes[axis].ordered)
			continue;
		for (size_t i = 0; i < boundaries->count; i++) {
			const struct view_boundary *boundary = &boundaries->items[i];
			if (strcmp(boundary->axis, matrix->axes[axis].name) != 0)
				continue;
			cleanup_free char *line = finding_boundary_line(boundary);
			str_append_format(text, "  %s\n    from %s\n    to   %s\n", line, boundary->from_combination,
					  boundary->to_combination);
			any = true;
		}
		if (!any)
			str_append_format(text, "  %s: none, good and bad are never neighbours on it\n", matrix->axes[axis].name);
	}
}

static void add_values(const struct view_matrix *matrix, struct str *text)
{
	str_append(text, "\nValues\n");
	for (size_t i = 0; i < matrix->axis_count; i++) {
		for (size_t j = 0; j < matrix->axes[i].count; j++) {
			const struct view_value *value = &matrix->axes[i].values[j];
			if (value->detail != NULL)
				str_append_format(text, "  %s %s: %s\n", matrix->axes[i].name, value->label, value->detail);
		}
	}
}

static void add_unknowns(const struct view_unknowns *unknowns, struct str *text)
{
	if (unknowns->count == 0)
		return;
	str_append(text, "\nNot known\n");
	for (size_t i = 0; i < unknowns->count; i++) {
		const struct view_unknown *unknown = &unknowns->items[i];
		str_append_format(text, "  %lld cell%s %s%s%s\n    such as %s\n", unknown->cells,
				  unknown->cells == 1 ? "" : "s",
				  unknown->outcome[0] != '\0' ? unknown->outcome : "not tried",
				  unknown->reason[0] != '\0' ? ": " : "", unknown->reason, unknown->combination);
	}
}

static int add_rest(struct sql *sql, const char *investigation, const char *state_folder, struct str *text,
		    struct error *error)
{
	cleanup_strlist struct strlist deliveries = {0};
	cleanup_free char *title = NULL;
	cleanup_free char *verdict = NULL;
	cleanup_free char *sandboxes = NULL;
	if (view_verdict(sql, investigation, &title, &verdict, error) < 0 ||
	    view_deliveries(sql, investigation, &deliveries, error) < 0 ||
	    view_sandboxes(sql, investigation, &sandboxes, error) < 0)
		return -1;
	if (title != NULL) {
		str_append_format(text, "\nVerdict\n  %s\n", title);
		append_indented(text, "  ", verdict);
	}
	if (deliveries.count > 0)
		str_append(text, "\nWebhook deliveries\n");
	for (size_t i = 0; i < deliveries.count; i++)
		str_append_format(text, "  %s\n", deliveries.items[i]);
	str_append_format(text, "\nDatabase\n  sqlite3 %s/bisectd.db 'SELECT * FROM first_bad'\n", state_folder);
	if (sandboxes != NULL)
		str_append_format(text, "  attempts ran under: %s\n", sandboxes);
	return 0;
}

int report_text(struct sql *sql, const char *investigation, const char *state_folder, struct str *text,
		struct error *error)
{
	struct view_investigation about = {0};
	struct view_first_bad first_bad = {0};
	struct view_boundaries boundaries = {0};
	struct view_matrix matrix = {0};
	struct view_unknowns unknowns = {0};
	int result = -1;
	if (view_investigation(sql, investigation, &about, error) < 0)
		return -1;
	if (about.name == NULL)
		return error_set(error, "there is no investigation \"%s\" in %s", investigation, state_folder);
	if (view_first_bad(sql, investigation, &first_bad, error) == 0 &&
	    view_boundaries(sql, investigation, &boundaries, error) == 0 &&
	    view_matrix(sql, investigation, &matrix, error) == 0 &&
	    view_unknowns(sql, investigation, &unknowns, error) == 0) {
		add_head(&about, text);
		report_matrix(&matrix, text);
		add_values(&matrix, text);
		add_unknowns(&unknowns, text);
		add_boundaries(&boundaries, &matrix, text);
		add_first_bad(&first_bad, state_folder, text);
		result = add_rest(sql, investigation, state_folder, text, error);
	}
	view_unknowns_clear(&unknowns);
	view_matrix_clear(&matrix);
	view_boundaries_clear(&boundaries);
	view_first_bad_clear(&first_bad);
	view_investigation_clear(&about);
	return result;
}
