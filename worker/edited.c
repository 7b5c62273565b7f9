/* See edited.h. */
#include "edited.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "edits.h"
#include "fs.h"
#include "str.h"
#include "whole.h"

enum { REPORT_LIMIT = 16 << 20 };

/* What belongs to a repository's or registry's bookkeeping, not to the sources. */
static const char *const left_out[] = {".git", ".cargo-checksum.json", "target"};

static char *request_key(const struct edited_request *request)
{
	struct digest digest;
	char *plan = json_dumps(request->plan, JSON_COMPACT | JSON_SORT_KEYS);
	if (plan == NULL)
		memory_exhausted();
	digest_start(&digest);
	digest_add(&digest, "edited", "1"); /* changes when the copies are made in another way */
	digest_add(&digest, "name", request->name);
	digest_add(&digest, "identity", request->identity);
	digest_add(&digest, "plan", plan);
	free(plan);
	return digest_finish(&digest);
}

int edited_apply(const char *copy, const json_t *planned, json_t *report, struct error *error)
{
	const char *below = json_string_value(json_object_get(planned, "folder"));
	cleanup_free char *folder = below != NULL && below[0] != '\0' ? path_join(copy, below) : text_copy(copy);
	json_t *edits = json_array();
	size_t index;
	json_t *edit;
	int result = edits_apply(folder, json_object_get(planned, "edits"),
				 json_string_value(json_object_get(planned, "override")), edits, error);
	json_array_foreach (edits, index, edit) {
		json_object_set(edit, "override", json_object_get(planned, "override"));
		json_object_set(edit, "crate", json_object_get(planned, "crate"));
		json_object_set(edit, "version", json_object_get(planned, "version"));
	}
	json_array_extend(report, edits);
	json_decref(edits);
	return result;
}

static int write_report(const char *folder, const json_t *report, struct error *error)
{
	cleanup_free char *path = path_join(folder, "edits.json");
	cleanup_free char *text = json_dumps(report, JSON_INDENT(1));
	if (text == NULL)
		return error_set(error, "the list of edits is no JSON");
	return fs_write_file(path, text, strlen(text), error);
}

static int fill(const char *folder, void *context, struct error *error)
{
	const struct edited_request *request = context;
	cleanup_strlist struct strlist skip = {0};
	cleanup_free char *copy = path_join(folder, request->name);
	for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
		strlist_add(&skip, left_out[i]);
	if (fs_copy_tree(request->from, copy, &skip, error) < 0)
		return -1;
	json_t *report = json_array();
	int result = 0;
	size_t index;
	json_t *planned;
	json_array_foreach (request->plan, index, planned) {
		result = edited_apply(copy, planned, report, error);
		if (result < 0)
			break;
	}
	if (result == 0)
		result = write_report(folder, report, error);
	json_decref(report);
	return result;
}

static int read_report(const char *folder, json_t *report, struct error *error)
{
	cleanup_free char *path = path_join(folder, "edits.json");
	cleanup_str struct str text = {0};
	json_error_t trouble;
	if (fs_read_file(path, REPORT_LIMIT, &text, error) < 0)
		return -1;
	json_t *edits = json_loads(str_text(&text), 0, &trouble);
	if (edits == NULL)
		return error_set(error, "%s: %s", path, trouble.text);
	json_array_extend(report, edits);
	json_decref(edits);
	return 0;
}

int edited_make(const struct edited_request *request, char **path, json_t *report, struct error *error)
{
	struct edited_request copy = *request;
	cleanup_free char *edited = path_absolute(request->edited);
	cleanup_free char *key = request_key(request);
	cleanup_free char *folder = path_join(edited, key);
	if (whole_make(folder, fill, &copy, error) < 0 || read_report(folder, report, error) < 0)
		return -1;
	*path = path_join(folder, request->name);
	return 0;
}
