/* See look.h. */
#include "evidence/look.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "str.h"

struct look {
	const json_t *request;
	char *folder;
	json_t *answer;
};

static int look(struct look *look, struct error *error)
{
	(void)error;
	json_object_set_new(look->answer, "artifacts", json_array());
	return 0;
}

static int write_answer(const struct look *look, struct error *error)
{
	cleanup_free char *path = path_join(look->folder, LOOK_ANSWER);
	cleanup_free char *text = json_dumps(look->answer, JSON_COMPACT);
	return fs_write_file(path, text, strlen(text), error);
}

static int work(const char *path, struct error *error)
{
	json_error_t trouble;
	json_t *request = json_load_file(path, 0, &trouble);
	if (request == NULL)
		return error_set(error, "%s: %s", path, trouble.text);
	struct look about = {.request = request, .folder = path_parent(path), .answer = json_object()};
	int result = look(&about, error);
	if (result == 0)
		result = write_answer(&about, error);
	free(about.folder);
	json_decref(about.answer);
	json_decref(request);
	return result;
}

int look_main(const char *request)
{
	cleanup_error struct error error = {0};
	if (work(request, &error) == 0)
		return 0;
	fprintf(stderr, "%s\n", error_text(&error));
	return 1;
}
