/* See look.h: the order of things, and the answer. */
#include "evidence/look.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/look_inside.h"
#include "fs.h"
#include "json_text.h"

enum { ARTIFACT_TEXT_LIMIT = 8 << 20 };

const char *look_text(const struct look *look, const char *key)
{
	return json_text(look->request, key);
}

void look_miss(struct look *look, const char *format, ...)
{
	cleanup_str struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	json_array_append_new(json_object_get(look->answer, "not_done"), json_string(str_text(&text)));
	fprintf(stderr, "%s\n", str_text(&text));
}

int look_add_artifact(struct look *look, const char *name, const char *kind, const char *title, const struct str *text,
		      struct error *error)
{
	cleanup_free char *path = path_join(look->folder, name);
	size_t length = text->length < ARTIFACT_TEXT_LIMIT ? text->length : ARTIFACT_TEXT_LIMIT;
	if (fs_write_file(path, str_text(text), length, error) < 0)
		return -1;
	json_array_append_new(json_object_get(look->answer, "artifacts"),
			      json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", name, "path", name, "kind", kind, "title", title,
					"cut", length < text->length));
	return 0;
}

/* The program that ran: the good neighbours are compared with it. */
static int keep_program(struct look *look, const char *path, struct error *error)
{
	cleanup_free char *copy = path_join(look->folder, "program");
	if (look_text(look, "compare") != NULL)
		return 0;
	if (fs_copy_file(path, copy, error) < 0)
		return -1;
	json_array_append_new(json_object_get(look->answer, "artifacts"),
			      json_pack("{s:s, s:s, s:s, s:s}", "name", "program", "path", "program", "kind", "binary", "title",
					"the program of the evidence build"));
	return 0;
}

static int open_program(struct look *look, struct error *error)
{
	const char *path = look_text(look, "program");
	cleanup_error struct error trouble = {0};
	if (path == NULL || !path_exists(path)) {
		look_miss(look, "the program is not where the run command starts it, so its code was not looked at");
		return 0;
	}
	if (binary_open(&look->binary, path, &trouble) < 0 ||
	    machine_open(&look->machine, binary_machine(look->binary), &trouble) < 0) {
		look_miss(look, "the program's code was not looked at: %s", error_text(&trouble));
		binary_close(&look->binary);
		return 0;
	}
	return keep_program(look, path, error);
}

static int work(struct look *look, struct error *error)
{
	const char *reproducer = look_text(look, "reproducer");
	if (reproducer == NULL)
		return error_set(error, "the request has no \"reproducer\"");
	if (declare_roots(reproducer, look_text(look, "prepared"), &look->roots, error) < 0 || open_program(look, error) < 0 ||
	    look_at_contracts(look, error) < 0 || look_for_twins(look, error) < 0 || look_at_paths(look, error) < 0)
		return -1;
	return look_at_code(look, error);
}

static int write_answer(const struct look *look, struct error *error)
{
	cleanup_free char *path = path_join(look->folder, LOOK_ANSWER);
	cleanup_free char *text = json_dumps(look->answer, JSON_COMPACT);
	if (text == NULL)
		return error_set(error, "the answer cannot be written as JSON");
	return fs_write_file(path, text, strlen(text), error);
}

static void clear(struct look *look)
{
	for (size_t i = 0; i < look->audit_count; i++)
		audit_clear(&look->audits[i]);
	free(look->audits);
	declare_roots_clear(&look->roots);
	machine_close(&look->machine);
	binary_close(&look->binary);
	free(look->deciding);
	free(look->folder);
	json_decref(look->answer);
}

int look_main(const char *path)
{
	json_error_t trouble;
	cleanup_error struct error error = {0};
	json_t *request = json_load_file(path, 0, &trouble);
	if (request == NULL) {
		fprintf(stderr, "%s: %s\n", path, trouble.text);
		return 1;
	}
	struct look look = {
		.request = request, .folder = path_parent(path), .answer = json_pack("{s:[], s:[]}", "artifacts", "not_done")};
	int result = work(&look, &error);
	if (result == 0)
		result = write_answer(&look, &error);
	if (result < 0)
		fprintf(stderr, "%s\n", error_text(&error));
	clear(&look);
	json_decref(request);
	return result < 0 ? 1 : 0;
}
