/* See report.h. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "report_format.h"
#include "report_model.h"

static const struct {
	const char *name;
	void (*write)(const struct report_model *models, size_t count, const char *links, struct str *to);
} formats[] = {
	[REPORT_TEXT] = {"text", report_text},
	[REPORT_MARKDOWN] = {"markdown", report_markdown},
	[REPORT_JSON] = {"json", report_json},
	[REPORT_HTML] = {"html", report_html},
};

bool report_format_parse(const char *word, enum report_format *format)
{
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		if (strcmp(formats[i].name, word) == 0) {
			*format = (enum report_format)i;
			return true;
		}
	}
	return false;
}

/* What leads from one absolute folder to another: "../state/"; "" where they are the same; owned by the caller. */
static char *way_between(const char *from, const char *to)
{
	struct str way = {0};
	size_t common = 0;
	size_t at = 0;
	for (; from[at] != '\0' && from[at] == to[at]; at++)
		if (from[at] == '/')
			common = at + 1;
	if ((from[at] == '\0' && (to[at] == '/' || to[at] == '\0')) || (to[at] == '\0' && from[at] == '/'))
		common = at + (from[at] == '/' || to[at] == '/');
	const char *rest = common <= strlen(from) ? from + common : "";
	for (; *rest != '\0'; rest += strspn(rest, "/")) {
		str_append(&way, "../");
		rest += strcspn(rest, "/");
	}
	if (common < strlen(to))
		str_append_format(&way, "%s/", to + common);
	return str_steal(&way);
}

int report_make(struct sql *sql, const struct strlist *names, const struct report_options *options, struct str *report,
		struct error *error)
{
	cleanup_free struct report_model *models = memory_new(names->count + 1, sizeof *models);
	cleanup_free char *links =
		way_between(options->folder != NULL ? options->folder : options->state_folder, options->state_folder);
	int result = 0;
	size_t count = 0;
	while (result == 0 && count < names->count) {
		result = report_model_load(&models[count], sql, names->items[count], options->state_folder, error);
		count++;
	}
	if (result == 0)
		formats[options->format].write(models, count, links, report);
	for (size_t i = 0; i < count; i++)
		report_model_clear(&models[i]);
	return result;
}
