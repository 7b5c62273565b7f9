/* The evidence in HTML: promises, paths, assembly side by side, the pass, the twins, and the worker's files. */
#include "report_html.h"

#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "report_artifact.h"

enum {
	LISTED_PATHS = 400,
	EXCERPT_ROWS = 120,
	WHOLE_ROWS = 4000 /* of one comparison, in all */
};

static void add_sentence(struct str *to, char *owned)
{
	cleanup_free char *sentence = owned;
	if (sentence == NULL)
		return;
	str_append(to, "<p>");
	markup_html(to, sentence);
	str_append(to, ".</p>\n");
}

static const char *or_what(const char *text, const char *otherwise)
{
	return text != NULL ? text : otherwise;
}

static void add_left_out(struct str *to, size_t all, size_t shown, const char *what)
{
	if (all > shown)
		str_append_format(to, "<p>%zu more %s are in the JSON report only.</p>\n", all - shown, what);
}

void html_promises(const struct html_page *page)
{
	static const char *const unjudged_head[] = {"Why", "Function", "Blocks", "Place", NULL};
	static const char *const head[] = {"Crate", "Place", "Probe", "Promise", "Instruction", "What it does", "Blocks", NULL};
	const struct report_model *model = page->model;
	long long shown = 0;
	add_sentence(page->to, report_audit_sentence(model));
	if (model->violation_kinds > 0)
		html_table_start(page->to, "Broken promises, by line of source", head);
	for (size_t i = 0; i < model->violation_kinds; i++) {
		const struct report_violation *violation = &model->violations[i];
		cleanup_free char *blocks = text_format("%zu", violation->blocks);
		html_row(page->to, "hcccctt",
			 (const char *[]){or_what(violation->crate, "not known"), violation->where, violation->probe,
					  or_what(violation->promise, violation->kind), violation->instruction,
					  or_what(violation->text, violation->what), blocks});
		shown += (long long)violation->blocks;
	}
	if (model->violation_kinds > 0)
		html_table_end(page->to);
	add_left_out(page->to, (size_t)model->violation_count, (size_t)shown, "broken promises");
	if (model->unjudged_count == 0)
		return;
	html_table_start(page->to, "Blocks that could not be judged", unjudged_head);
	for (size_t i = 0; i < model->unjudged_count; i++) {
		const struct report_unjudged *unjudged = &model->unjudged[i];
		cleanup_free char *blocks = text_format("%zu", unjudged->blocks);
		html_row(page->to, "hctc", (const char *[]){unjudged->reason, unjudged->function, blocks, unjudged->where});
	}
	html_table_end(page->to);
}

/* Paths ---------------------------------------------------------------------------------------------------------------- */

/* "definition" -> "step s-definition"; static. */
static const char *step_class(const char *role)
{
	if (text_equal(role, "definition"))
		return "s-definition";
	if (text_equal(role, "destroyer"))
		return "s-destroyer";
	return text_equal(role, "reader") ? "s-reader" : "s-other";
}

static void add_broken_path(struct str *to, const struct report_path *path)
{
	static const char *const head[] = {"Step", "Address", "Instruction", "Source line", NULL};
	str_append(to, "<h3>");
	html_code(to, or_what(path->function, "a function without a name"));
	str_append(to, "</h3>\n<p>");
	if (path->probe != NULL) {
		str_append(to, "Probe ");
		html_code(to, path->probe);
		str_append(to, ". ");
	}
	if (path->where != NULL) {
		str_append(to, "Block at ");
		html_code(to, path->where);
		str_append(to, ". ");
	}
	if (path->destroys != NULL) {
		str_append(to, "It destroys ");
		html_code(to, path->destroys);
		str_append(to, ".");
	}
	str_append(to, "</p>\n");
	html_table_start(to, "The broken path, in the order of the program", head);
	for (size_t i = 0; i < path->count; i++) {
		const struct report_step *step = &path->steps[i];
		cleanup_free char *line = step->line > 0 ? text_format("%lld", step->line) : NULL;
		str_append_format(to, "<tr role=\"row\" class=\"%s\">", step_class(step->role));
		html_tag(to, "th role=\"rowheader\" scope=\"row\"", step->role);
		str_append(to, "<td role=\"cell\">");
		html_code(to, step->address);
		str_append(to, "</td><td role=\"cell\">");
		html_code(to, step->text);
		str_append(to, "</td>");
		html_tag(to, "td role=\"cell\"", line);
		str_append(to, "</tr>\n");
	}
	html_table_end(to);
	if (path->consequence != NULL)
		html_tag(to, "p class=\"consequence\"", path->consequence);
	if (path->taken != NULL && !text_equal(path->taken, "unknown")) {
		str_append(to, "<p>The branch is therefore ");
		html_tag(to, "strong", path->taken);
		str_append(to, " taken.</p>\n");
	}
	if (path->text != NULL)
		html_tag(to, "p", path->text);
}

void html_paths(const struct html_page *page)
{
	static const char *const head[] = {"Function", "Probe", "Block at", "State", "Destroys", "What happens", NULL};
	const struct report_model *model = page->model;
	size_t broken = report_model_paths(model, "broken");
	size_t full = broken < 5 ? broken : 5;
	size_t end = model->path_count < LISTED_PATHS ? model->path_count : LISTED_PATHS;
	add_sentence(page->to, report_paths_sentence(model));
	for (size_t i = 0; i < full; i++)
		add_broken_path(page->to, &model->paths[i]);
	if (end > full) {
		str_append_format(page->to, "<details%s><summary>The other blocks: %zu</summary>\n", broken == 0 ? " open" : "",
				  model->path_count - full);
		html_table_start(page->to, "What becomes of the other blocks", head);
		for (size_t i = full; i < end; i++) {
			const struct report_path *path = &model->paths[i];
			html_row(page->to, "ccctct",
				 (const char *[]){path->function, path->probe, path->where, path->state, path->destroys,
						  or_what(path->consequence, path->text)});
		}
		html_table_end(page->to);
		str_append(page->to, "</details>\n");
	}
	add_left_out(page->to, model->path_count, end, "paths");
}

/* Assembly ------------------------------------------------------------------------------------------------------------- */

static void add_side(struct str *to, const struct report_side *side)
{
	str_append(to, "<td role=\"cell\" class=\"address\">");
	if (side->label != NULL) {
		html_tag(to, "b", side->label);
		str_append(to, " ");
	}
	markup_html(to, side->address);
	str_append(to, "</td>");
	html_tag(to, "td role=\"cell\" class=\"code\"", side->text);
}

/* The lines of source that begin here, above what was made of them. */
static void add_source(struct str *to, const struct report_row *row)
{
	if (row->bad.source == NULL && row->good.source == NULL)
		return;
	str_append(to, "<tr role=\"row\" class=\"source\"><td role=\"cell\"></td><td role=\"cell\"></td>");
	html_tag(to, "td role=\"cell\" colspan=\"2\"", row->bad.source);
	html_tag(to, "td role=\"cell\" colspan=\"2\"", row->good.source);
	str_append(to, "</tr>\n");
}

/* How a row differs, as a sign and a word. */
static void add_sign(struct str *to, const struct report_row *row)
{
	static const struct {
		const char *change;
		const char *sign;
		const char *word;
		const char *class;
	} signs[] = {
		{"same", "=", "the same", "same"},
		{"renamed", "~", "other registers", "renamed"},
		{"changed", "&ne;", "changed", "changed"},
		{"left-only", "&minus;", "only in the bad one", "changed"},
		{"right-only", "+", "only in the good one", "changed"},
	};
	size_t at = 0;
	while (at + 1 < sizeof signs / sizeof signs[0] && !text_equal(signs[at].change, row->change))
		at++;
	const char *class = row->deciding ? step_class(row->role) : signs[at].class;
	str_append_format(to,
			  "<tr role=\"row\" class=\"%s\"><td role=\"cell\" class=\"sign\"><span "
			  "aria-hidden=\"true\">%s</span><span class=\"unseen\">%s</span></td>",
			  class, signs[at].sign, signs[at].word);
}

static void add_row(struct str *to, const struct report_row *row)
{
	add_source(to, row);
	add_sign(to, row);
	str_append(to, "<td role=\"cell\" class=\"role\">");
	if (row->role != NULL)
		html_tag(to, "strong", row->role);
	else if (row->deciding)
		str_append(to, "<strong>decides</strong>");
	else
		markup_html(to, row->note);
	str_append(to, "</td>");
	add_side(to, &row->bad);
	add_side(to, &row->good);
	str_append(to, "</tr>\n");
}

static void add_rows(struct str *to, const char *caption, const struct report_neighbour *neighbour, const bool *shown)
{
	static const char *const head[] = {"", "Role", "Address", "Bad", "Address", "Good", NULL};
	size_t hidden = 0;
	str_append(to, "<div class=\"assembly\">\n");
	html_table_start(to, caption, head);
	for (size_t i = 0; i <= neighbour->count; i++) {
		bool is_shown = i < neighbour->count && (shown == NULL || shown[i]);
		if (hidden > 0 && (is_shown || i == neighbour->count)) {
			str_append_format(to,
					  "<tr role=\"row\" class=\"gap\"><td role=\"cell\"></td><td role=\"cell\" "
					  "colspan=\"5\">%zu lines left out</td></tr>\n",
					  hidden);
			hidden = 0;
		}
		if (is_shown)
			add_row(to, &neighbour->rows[i]);
		else
			hidden++;
	}
	html_table_end(to);
	str_append(to, "</div>\n");
}

static void add_comparison(const struct html_page *page, const struct report_neighbour *neighbour, bool in_full)
{
	struct str *to = page->to;
	cleanup_free bool *shown = memory_new(neighbour->count + 1, sizeof *shown);
	size_t marked = report_excerpt(neighbour, in_full ? EXCERPT_ROWS : EXCERPT_ROWS / 2, shown);
	cleanup_free char *caption =
		text_format("%s: bad on the left, good on the right", or_what(neighbour->symbol, "the function"));
	if (!in_full)
		str_append(to, "<details><summary>Side by side</summary>\n");
	add_rows(to, caption, neighbour, shown);
	if (!in_full)
		str_append(to, "</details>\n");
	if (!in_full || marked >= neighbour->count)
		return;
	str_append_format(to, "<details><summary>All lines that were compared: %zu</summary>\n", neighbour->count);
	for (size_t i = 0; i < neighbour->count; i++)
		shown[i] = i < WHOLE_ROWS;
	add_rows(to, caption, neighbour, shown);
	str_append(to, "</details>\n");
}

static void add_neighbour(const struct html_page *page, const struct report_neighbour *neighbour, bool in_full)
{
	cleanup_free char *title = neighbour->axis != NULL
					   ? text_format("%s: %s is good, %s is bad", neighbour->axis,
							 or_what(neighbour->value, "?"), or_what(neighbour->bad_value, "?"))
					   : text_copy(or_what(neighbour->combination, "A good neighbour"));
	html_tag(page->to, "h3", title);
	add_sentence(page->to, report_neighbour_sentence(neighbour));
	add_comparison(page, neighbour, in_full);
}

/* The one that tells most first, then the others, then those that could not be compared. */
void html_assembly(const struct html_page *page)
{
	const struct report_model *model = page->model;
	const struct report_neighbour *best = report_compared(model);
	size_t others = 0;
	if (best != NULL) {
		html_tag(page->to, "p",
			 "One line an instruction. Between the two: = the same, ~ the same with other registers, \xE2\x89\xA0 "
			 "changed, \xE2\x88\x92 only in the bad one, + only in the good one. The steps of the broken path are "
			 "named beside their instructions.");
		add_neighbour(page, best, true);
	}
	for (size_t i = 0; i < model->neighbour_count; i++) {
		const struct report_neighbour *neighbour = &model->neighbours[i];
		others += neighbour->count == 0;
		if (best != NULL && neighbour != best && neighbour->count > 0)
			add_neighbour(page, neighbour, false);
	}
	if (others == 0)
		return;
	str_append(page->to, "<h3>Without a comparison</h3>\n<ul>\n");
	for (size_t i = 0; i < model->neighbour_count; i++) {
		if (model->neighbours[i].count > 0)
			continue;
		cleanup_free char *sentence = report_neighbour_sentence(&model->neighbours[i]);
		html_tag(page->to, "li", sentence);
		str_append(page->to, "\n");
	}
	str_append(page->to, "</ul>\n");
}

/* The pass, the flips, the twins ----------------------------------------------------------------------------------------- */

void html_pass(const struct html_page *page)
{
	static const char *const head[] = {"One change", "Flags", "Outcome", "Why", NULL};
	const struct report_pass *pass = &page->model->pass;
	add_sentence(page->to, report_pass_sentence(pass));
	if (pass->line != NULL)
		html_block(page->to, "What the compiler printed", pass->line);
	if (pass->tried > 0)
		str_append_format(page->to, "<p>%lld builds were tried.</p>\n", pass->tried);
	if (pass->count == 0)
		return;
	html_table_start(page->to, "One switch changed, everything else as in the bad cell", head);
	for (size_t i = 0; i < pass->count; i++)
		html_row(page->to, "hcot",
			 (const char *[]){pass->flips[i].name, pass->flips[i].flags, or_what(pass->flips[i].outcome, "not tried"),
					  pass->flips[i].reason});
	html_table_end(page->to);
}

void html_twins(const struct html_page *page)
{
	for (size_t i = 0; i < page->model->twin_count; i++) {
		const struct report_twin *twin = &page->model->twins[i];
		cleanup_free char *open = text_format("strong class=\"%s\"", html_outcome_class(twin->outcome));
		html_tag(page->to, "h3", twin->name);
		str_append(page->to, "<p>");
		html_tag(page->to, open, or_what(twin->outcome, "not tried"));
		str_append(page->to, " ");
		markup_html(page->to, twin->reason);
		str_append(page->to, "</p>\n<p>The edit in ");
		html_code(page->to, twin->where);
		str_append(page->to,
			   text_equal(twin->origin, "audit") ? ", made from the audit:</p>\n" : ", asked for by the user:</p>\n");
		if (twin->edits != NULL)
			html_block(page->to, "The edit", twin->edits);
		if (twin->commands != NULL) {
			str_append(page->to, "<details><summary>To repeat it by hand</summary>\n");
			html_block(page->to, "Commands of the twin", twin->commands);
			str_append(page->to, "</details>\n");
		}
	}
}

/* Files ---------------------------------------------------------------------------------------------------------------- */

/* What is worth reading in the page itself; the rest is linked. */
static bool is_embedded(const struct report_artifact *artifact)
{
	return artifact->path != NULL && (text_equal(artifact->kind, "assembly") || text_equal(artifact->kind, "disassembly") ||
					  text_equal(artifact->kind, "diff"));
}

static void embed(const struct html_page *page, const struct report_artifact *artifact)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	bool cut = false;
	const char *title = or_what(artifact->title, or_what(artifact->name, artifact->path));
	str_append(page->to, "<details><summary>");
	markup_html(page->to, title);
	if (artifact->of != NULL) {
		str_append(page->to, ", of ");
		markup_html(page->to, artifact->of);
	}
	str_append(page->to, "</summary>\n");
	if (report_artifact_read(page->model->state_folder, artifact->path, &text, &cut, &error) < 0)
		html_tag(page->to, "p", error_text(&error));
	else
		html_block(page->to, title, str_text(&text));
	if (cut)
		str_append_format(page->to, "<p>Cut here after %zu KiB: the whole text is in the file.</p>\n", text.length >> 10);
	str_append(page->to, "</details>\n");
}

void html_files(const struct html_page *page)
{
	static const char *const head[] = {"File", "Kind", "What it is", "Combination", NULL};
	const struct report_model *model = page->model;
	html_table_start(page->to, "Files that the evidence was read from", head);
	for (size_t i = 0; i < model->artifact_count; i++) {
		const struct report_artifact *artifact = &model->artifacts[i];
		str_append(page->to, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
		if (artifact->path != NULL)
			html_link(page, artifact->path, or_what(artifact->name, artifact->path));
		else
			markup_html(page->to, or_what(artifact->name, "not in the evidence's folder"));
		str_append(page->to, "</th>");
		html_tag(page->to, "td role=\"cell\"", artifact->kind);
		html_tag(page->to, "td role=\"cell\"", artifact->title);
		html_tag(page->to, "td role=\"cell\"", artifact->of);
		str_append(page->to, "</tr>\n");
	}
	html_table_end(page->to);
	for (size_t i = 0; i < model->artifact_count; i++)
		if (is_embedded(&model->artifacts[i]))
			embed(page, &model->artifacts[i]);
}
