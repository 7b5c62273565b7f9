/*
 * A report for a browser: one file that asks for nothing, runs nothing, and is read as well without colours, without eyes or on a
 * telephone.  Nothing that others wrote becomes markup: it all goes through markup_html, and a content security policy forbids
 * whatever could still be wrong.
 */
#include "report_html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "markup.h"

/* The smallest parts --------------------------------------------------------------------------------------------------- */

void html_tag(struct str *to, const char *open, const char *text)
{
	str_append_format(to, "<%s>", open);
	markup_html(to, text);
	str_append_format(to, "</%.*s>", (int)strcspn(open, " "), open);
}

void html_code(struct str *to, const char *text)
{
	enum { SHORT = 26 /* bytes that are not worth breaking */ };
	if (text != NULL)
		html_tag(to, strlen(text) <= SHORT ? "code class=\"short\"" : "code", text);
}

void html_table_start(struct str *to, const char *caption, const char *const *head)
{
	str_append(to, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	markup_html(to, caption);
	str_append(to, "\"><table role=\"table\">\n");
	html_tag(to, "caption", caption);
	str_append(to, "\n<thead role=\"rowgroup\"><tr role=\"row\">");
	for (; *head != NULL; head++)
		html_tag(to, "th role=\"columnheader\" scope=\"col\"", *head);
	str_append(to, "</tr></thead>\n<tbody role=\"rowgroup\">\n");
}

void html_table_end(struct str *to)
{
	str_append(to, "</tbody></table></div>\n");
}

const char *html_outcome_class(const char *outcome)
{
	static const char *const classes[OUTCOME_COUNT] = {
		[OUTCOME_UNDECIDED] = "o o-none",     [OUTCOME_PASS] = "o o-pass",   [OUTCOME_FAIL] = "o o-fail",
		[OUTCOME_FLAKY] = "o o-flaky",        [OUTCOME_CRASH] = "o o-crash", [OUTCOME_TIMEOUT] = "o o-timeout",
		[OUTCOME_BUILD_FAIL] = "o o-nobuild", [OUTCOME_ICE] = "o o-ice",     [OUTCOME_SKIP] = "o o-skip",
		[OUTCOME_ERROR] = "o o-error",
	};
	enum outcome number = OUTCOME_UNDECIDED;
	if (outcome != NULL)
		outcome_parse(outcome, &number);
	return classes[number];
}

static void add_cell(struct str *to, char kind, const char *text)
{
	enum { LONG = 60 /* bytes that want a wide column */ };
	const char *tag = kind == 'h' ? "th" : "td";
	bool is_long = text != NULL && strlen(text) > LONG;
	str_append_format(to, "<%s%s%s>", tag, kind == 'h' ? " role=\"rowheader\" scope=\"row\"" : " role=\"cell\"",
			  is_long ? " class=\"long\"" : "");
	if (text != NULL && kind == 'o') {
		cleanup_free char *open = text_format("span class=\"%s\"", html_outcome_class(text));
		html_tag(to, open, text);
	} else if (text != NULL && kind == 'c') {
		html_code(to, text);
	} else {
		markup_html(to, text);
	}
	str_append_format(to, "</%s>", tag);
}

void html_row(struct str *to, const char *kinds, const char *const *cells)
{
	str_append(to, "<tr role=\"row\">");
	for (size_t i = 0; kinds[i] != '\0'; i++)
		add_cell(to, kinds[i], cells[i]);
	str_append(to, "</tr>\n");
}

void html_block(struct str *to, const char *label, const char *text)
{
	cleanup_str struct str lines = {0};
	markup_block(&lines, "", text);
	str_append(to, "<pre class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	markup_html(to, label);
	str_append(to, "\"><code>");
	markup_html(to, str_text(&lines));
	str_append(to, "</code></pre>\n");
}

/* RFC 3986: all but unreserved characters and the bars between folders is written by its number. */
static void add_encoded(struct str *to, const char *path)
{
	for (; *path != '\0'; path++) {
		unsigned char byte = (unsigned char)*path;
		if (isalnum(byte) || strchr("-._~/", byte) != NULL)
			str_append_bytes(to, path, 1);
		else
			str_append_format(to, "%%%02X", byte);
	}
}

void html_link(const struct html_page *page, const char *path, const char *text)
{
	str_append(page->to, "<a href=\"");
	add_encoded(page->to, page->links);
	add_encoded(page->to, path);
	str_append(page->to, "\">");
	markup_html(page->to, text);
	str_append(page->to, "</a>");
}

/* Sections ------------------------------------------------------------------------------------------------------------- */

static const char *meaning_of(const char *verdict)
{
	static const char *const meanings[][2] = {
		{"crate", "A crate breaks what it promised to the compiler, and the evidence shows that this is the cause."},
		{"toolchain", "Nobody's promise is broken, and the compiler's output is wrong."},
		{"reproducer", "The reproducer itself breaks what it promised to the compiler."},
		{"inconclusive",
		 "The evidence does not show whose fault it is. A difference between versions, compilers or profiles alone "
		 "is never grounds for blame."},
	};
	for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
		if (text_equal(meanings[i][0], verdict))
			return meanings[i][1];
	return NULL;
}

static bool has_verdict(const struct report_model *model)
{
	return model->verdict != NULL || model->said_title != NULL;
}

static void add_verdict(const struct html_page *page)
{
	static const char *const head[] = {"", "Rule", "What it found", "Looks at", NULL};
	const struct report_model *model = page->model;
	const char *title = model->verdict == NULL ? model->said_title : model->title != NULL ? model->title : model->verdict;
	html_tag(page->to, "p class=\"verdict\"", title);
	if (meaning_of(model->verdict) != NULL)
		html_tag(page->to, "p", meaning_of(model->verdict));
	else if (model->verdict == NULL)
		html_tag(page->to, "p class=\"lines\"", model->said_text);
	for (size_t i = 0; i < model->fix_count; i++) {
		str_append(page->to, "<p>Fixed by ");
		html_tag(page->to, "strong", model->fixes[i].axis);
		str_append(page->to, " ");
		html_code(page->to, model->fixes[i].value);
		str_append(page->to, model->fixes[i].detail != NULL ? ": " : "");
		markup_html(page->to, model->fixes[i].detail);
		str_append(page->to, "</p>\n");
	}
	if (model->reason_count == 0)
		return;
	str_append(page->to, "<div class=\"stack\">\n");
	html_table_start(page->to, "The rules that the verdict stands on", head);
	for (size_t i = 0; i < model->reason_count; i++) {
		const struct report_reason *reason = &model->reasons[i];
		str_append_format(page->to,
				  "<tr role=\"row\" class=\"%s\"><td role=\"cell\" class=\"sign\"><strong>%s</strong></td>",
				  report_mark(reason->holds, "holds", "holds-not", "open"), report_holds(reason->holds));
		html_tag(page->to, "th role=\"rowheader\" scope=\"row\"", reason->rule);
		html_tag(page->to, "td role=\"cell\" class=\"long\"", reason->text);
		html_tag(page->to, "td role=\"cell\"", reason->kind);
		str_append(page->to, "</tr>\n");
	}
	html_table_end(page->to);
	str_append(page->to, "</div>\n");
}

static bool has_missing(const struct report_model *model)
{
	return model->missing_count > 0;
}

static void add_missing(const struct html_page *page)
{
	str_append(page->to, "<ul>\n");
	for (size_t i = 0; i < page->model->missing_count; i++) {
		const struct report_missing *missing = &page->model->missing[i];
		str_append(page->to, "<li>");
		html_tag(page->to, "p", missing->text);
		if (missing->command != NULL)
			html_block(page->to, "The command that would supply it", missing->command);
		str_append(page->to, "</li>\n");
	}
	str_append(page->to, "</ul>\n");
}

static void add_first_bad(const struct html_page *page)
{
	static const char *const head[] = {"Axis", "Value", "Resolved to", NULL};
	const struct view_first_bad *first_bad = &page->model->first_bad;
	const struct view_matrix *matrix = &page->model->matrix;
	if (first_bad->combination == NULL) {
		html_tag(page->to, "p", "None: no combination that was decided is bad.");
		return;
	}
	cleanup_free char *confirmed = report_confirmed_sentence(first_bad);
	cleanup_free char *open = text_format("strong class=\"%s\"", html_outcome_class(first_bad->outcome));
	str_append(page->to, "<p>");
	html_tag(page->to, open, first_bad->outcome);
	str_append(page->to, " ");
	markup_html(page->to, first_bad->reason);
	str_append(page->to, "</p>\n");
	if (first_bad->signature != NULL) {
		str_append(page->to, "<p>It printed: ");
		html_code(page->to, first_bad->signature);
		str_append(page->to, "</p>\n");
	}
	str_append(page->to, "<p>This is ");
	markup_html(page->to, confirmed);
	str_append(page->to, ".</p>\n");
	str_append(page->to, "<div class=\"stack\">\n");
	html_table_start(page->to, "The first bad combination", head);
	for (size_t i = 0; i < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		const struct view_value *value = &axis->values[(size_t)first_bad->walk_index / axis->stride % axis->count];
		html_row(page->to, "hcc", (const char *[]){axis->name, value->label, value->identity});
	}
	html_table_end(page->to);
	str_append(page->to, "</div>\n");
	if (first_bad->log != NULL) {
		str_append(page->to, "<p>Its log: ");
		html_link(page, first_bad->log, first_bad->log);
		str_append(page->to, "</p>\n");
	}
}

static bool has_matrix(const struct report_model *model)
{
	return model->matrix.axis_count > 0;
}

static bool has_boundaries(const struct report_model *model)
{
	return model->boundaries.count > 0;
}

static void add_boundaries(const struct html_page *page)
{
	static const char *const head[] = {"Axis",       "Change", "From",         "To",        "What that is",
					   "First pair", "Pairs",  "Between them", "Confirmed", NULL};
	html_table_start(page->to, "Neighbours of which one is good and one is bad, all else equal", head);
	for (size_t i = 0; i < page->model->boundaries.count; i++) {
		const struct view_boundary *boundary = &page->model->boundaries.items[i];
		cleanup_free char *pairs = text_format("%lld", boundary->pairs);
		cleanup_free char *gap = text_format("%lld without evidence", boundary->gap);
		html_row(page->to, "htccttttt",
			 (const char *[]){boundary->axis, boundary->change, boundary->from_value, boundary->to_value,
					  boundary->to_detail, boundary->to_combination, pairs, boundary->gap > 0 ? gap : NULL,
					  boundary->confirmed ? "by clean builds" : "no"});
	}
	html_table_end(page->to);
}

static bool has_evidence(const struct report_model *model)
{
	return model->evidence != NULL && model->first_bad.combination != NULL;
}

static bool has_promises(const struct report_model *model)
{
	return has_evidence(model) && model->audited;
}

static bool has_paths(const struct report_model *model)
{
	return has_evidence(model) && model->path_count > 0;
}

static bool has_assembly(const struct report_model *model)
{
	return has_evidence(model) && model->neighbour_count > 0;
}

static bool has_pass(const struct report_model *model)
{
	cleanup_free char *sentence = report_pass_sentence(&model->pass);
	return has_evidence(model) && (sentence != NULL || model->pass.count > 0);
}

static bool has_twins(const struct report_model *model)
{
	return has_evidence(model) && model->twin_count > 0;
}

static void add_gathering(const struct html_page *page)
{
	cleanup_free char *sentence = report_build_sentence(page->model);
	str_append(page->to, "<p>");
	markup_html(page->to, sentence);
	str_append(page->to, ".</p>\n");
	if (page->model->not_done.count > 0)
		str_append(page->to, "<p>Not found out:</p>\n<ul>\n");
	for (size_t i = 0; i < page->model->not_done.count; i++)
		html_tag(page->to, "li", page->model->not_done.items[i]);
	if (page->model->not_done.count > 0)
		str_append(page->to, "\n</ul>\n");
}

static bool has_commands(const struct report_model *model)
{
	return model->first_bad.commands != NULL || model->build_commands != NULL || model->pass.commands != NULL;
}

static void add_commands(const struct html_page *page)
{
	const struct report_model *model = page->model;
	const struct {
		const char *title;
		const char *commands;
	} parts[] = {{"The first bad combination", model->first_bad.commands},
		     {"The build that the evidence is from", model->build_commands},
		     {"The pass", model->pass.commands}};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (parts[i].commands == NULL)
			continue;
		html_tag(page->to, "h3", parts[i].title);
		html_block(page->to, parts[i].title, parts[i].commands);
	}
}

static bool has_unknowns(const struct report_model *model)
{
	return model->unknown_count > 0;
}

static void add_unknowns(const struct html_page *page)
{
	static const char *const head[] = {"Cells", "Outcome", "Reasons", "Such as", NULL};
	static const char *const all[] = {"Cells", "Outcome", "Reason", "Such as", NULL};
	const struct view_unknowns *unknowns = &page->model->unknowns;
	html_table_start(page->to, "Cells that are evidence for nothing, by outcome", head);
	for (size_t i = 0; i < page->model->unknown_count; i++) {
		const struct report_unknown *unknown = &page->model->unknown[i];
		cleanup_free char *cells = text_format("%lld", unknown->cells);
		cleanup_free char *reasons = text_format("%zu", unknown->reasons);
		html_row(page->to, "hotc", (const char *[]){cells, unknown->outcome, reasons, unknown->example->combination});
	}
	html_table_end(page->to);
	str_append(page->to, "<details><summary>Every reason</summary>\n");
	html_table_start(page->to, "Cells that are evidence for nothing, by reason", all);
	for (size_t i = 0; i < unknowns->count; i++) {
		const struct view_unknown *unknown = &unknowns->items[i];
		cleanup_free char *cells = text_format("%lld", unknown->cells);
		html_row(page->to, "hocc",
			 (const char *[]){cells, unknown->outcome[0] != '\0' ? unknown->outcome : "not tried",
					  unknown->reason[0] != '\0' ? unknown->reason : NULL, unknown->combination});
	}
	html_table_end(page->to);
	str_append(page->to, "</details>\n");
}

static bool has_values(const struct report_model *model)
{
	return model->matrix.axis_count > 0;
}

static void add_values(const struct html_page *page)
{
	static const char *const head[] = {"Value", "What it is", "Resolved to", "Cannot be tried", NULL};
	const struct view_matrix *matrix = &page->model->matrix;
	for (size_t i = 0; i < matrix->axis_count; i++) {
		const struct view_axis *axis = &matrix->axes[i];
		cleanup_free char *caption =
			text_format("%s (%s, %s)", axis->name, axis->type, axis->ordered ? "ordered" : "not ordered");
		html_table_start(page->to, caption, head);
		for (size_t j = 0; j < axis->count; j++)
			html_row(page->to, "htct",
				 (const char *[]){axis->values[j].label, axis->values[j].detail, axis->values[j].identity,
						  axis->values[j].skip_reason});
		html_table_end(page->to);
	}
}

static bool has_files(const struct report_model *model)
{
	return model->artifact_count > 0;
}

static bool always(const struct report_model *model)
{
	(void)model;
	return true;
}

static void add_about(const struct html_page *page)
{
	const struct report_model *model = page->model;
	cleanup_free char *query = text_format("sqlite3 %s/bisectd.db 'SELECT * FROM first_bad'", model->state_folder);
	str_append(page->to, "<dl>\n<dt>Started</dt>");
	html_tag(page->to, "dd", model->about.started_at != NULL ? model->about.started_at : "not known");
	str_append(page->to, "\n<dt>Finished</dt>");
	html_tag(page->to, "dd", model->about.finished_at != NULL ? model->about.finished_at : "not yet");
	str_append(page->to, "\n<dt>Database</dt><dd>");
	html_code(page->to, query);
	str_append(page->to, "</dd>\n");
	if (model->sandboxes != NULL) {
		str_append(page->to, "<dt>Attempts ran under</dt>");
		html_tag(page->to, "dd", model->sandboxes);
	}
	for (size_t i = 0; i < model->deliveries.count; i++) {
		str_append(page->to, i == 0 ? "\n<dt>Webhook deliveries</dt>" : "\n");
		html_tag(page->to, "dd", model->deliveries.items[i]);
	}
	str_append(page->to, "\n</dl>\n");
}

static const struct {
	const char *id;
	const char *title;
	bool (*has)(const struct report_model *model);
	void (*write)(const struct html_page *page);
} sections[] = {
	{"verdict", "Verdict", has_verdict, add_verdict},
	{"missing", "What is missing", has_missing, add_missing},
	{"first-bad", "First bad combination", always, add_first_bad},
	{"matrix", "Matrix", has_matrix, html_matrix},
	{"boundaries", "Boundaries", has_boundaries, add_boundaries},
	{"gathering", "Where the evidence is from", has_evidence, add_gathering},
	{"promises", "Promises of inline assembly", has_promises, html_promises},
	{"paths", "Paths through the program", has_paths, html_paths},
	{"assembly", "Assembly, beside the good neighbours", has_assembly, html_assembly},
	{"pass", "The pass with which it shows", has_pass, html_pass},
	{"twins", "Twins: one edit, nothing else changed", has_twins, html_twins},
	{"repeat", "To repeat it by hand", has_commands, add_commands},
	{"unknown", "Not known", has_unknowns, add_unknowns},
	{"values", "Values", has_values, add_values},
	{"files", "Files", has_files, html_files},
	{"about", "About this report", always, add_about},
};

enum { SECTIONS = sizeof sections / sizeof sections[0] };

/* The document --------------------------------------------------------------------------------------------------------- */

static void add_contents(const struct html_page *page)
{
	str_append_format(page->to, "<nav aria-label=\"Sections of this report\"><ul>\n");
	for (size_t i = 0; i < SECTIONS; i++)
		if (sections[i].has(page->model))
			str_append_format(page->to, "<li><a href=\"#i%zu-%s\">%s</a></li>\n", page->number, sections[i].id,
					  sections[i].title);
	str_append(page->to, "</ul></nav>\n");
}

static void add_investigation(const struct html_page *page)
{
	const struct report_model *model = page->model;
	cleanup_free char *counts = report_counts_sentence(model);
	str_append_format(page->to, "<article aria-labelledby=\"i%zu\">\n<header>\n<h1 id=\"i%zu\">", page->number, page->number);
	markup_html(page->to, model->about.name);
	str_append(page->to, "</h1>\n");
	if (model->about.question != NULL)
		html_tag(page->to, "p class=\"question\"", model->about.question);
	html_tag(page->to, "p", counts);
	if (model->about.notes != NULL && model->about.notes[0] != '\0')
		html_tag(page->to, "p class=\"lines note\"", model->about.notes);
	str_append(page->to, "</header>\n");
	add_contents(page);
	for (size_t i = 0; i < SECTIONS; i++) {
		if (!sections[i].has(model))
			continue;
		str_append_format(page->to, "<section aria-labelledby=\"i%zu-%s\">\n<h2 id=\"i%zu-%s\">%s</h2>\n", page->number,
				  sections[i].id, page->number, sections[i].id, sections[i].title);
		sections[i].write(page);
		str_append(page->to, "</section>\n");
	}
	str_append(page->to, "</article>\n");
}

void report_html(const struct report_model *models, size_t count, const char *links, struct str *to)
{
	str_append(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
		       "base-uri 'none'; form-action 'none'\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		       "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
		       "<link rel=\"icon\" href=\"data:,\">\n<title>");
	for (size_t i = 0; i < count; i++) {
		str_append(to, i > 0 ? ", " : "");
		markup_html(to, models[i].about.name);
	}
	str_append_format(to, " - bisectd report</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", report_html_style);
	for (size_t i = 0; i < count; i++)
		add_investigation(&(struct html_page){.to = to, .model = &models[i], .number = i + 1, .links = links});
	str_append(to, "</main>\n<footer><p>Made by bisectd " BISECTD_VERSION ".</p></footer>\n</body>\n</html>\n");
}
