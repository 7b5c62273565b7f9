/*
 * libFuzzer: whatever a compiler prints under -opt-bisect-limit, and whatever its command line holds, is counted and
 * read within bounds.  The input is a compiler's standard error; its lines serve as words of a command line too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence/flips.h"
#include "evidence/pass_lines.h"
#include "fs.h"

enum { MOST_BYTES = 60000 /* fit into a pipe at once */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void visit(void *context, long long number, const char *unit, size_t length)
{
	long long *before = context;
	cleanup_free char *function = pass_unit_function(unit, length);
	require(number == *before + 1);
	require(function == NULL || (function[0] != '\0' && strlen(function) <= length));
	*before = number;
}

static void check_file(const uint8_t *data, size_t size)
{
	int ends[2];
	long long visited = 0;
	long long passes = -1;
	const struct pass_visitor visitor = {visit, &visited};
	cleanup_error struct error error = {0};
	cleanup_pass_line struct pass_line line = {0};
	require(pipe(ends) == 0 && write(ends[1], data, size) == (ssize_t)size);
	fd_close(&ends[1]);
	int result = pass_lines_read(ends[0], 2, &visitor, &passes, &line, &error);
	fd_close(&ends[0]);
	require((result < 0) == (error.text != NULL));
	require(result < 0 ? line.text == NULL : passes == visited);
	require((line.text != NULL) == (result == 0 && passes >= 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MOST_BYTES)
		return 0;
	check_file(data, size);
	cleanup_strlist struct strlist words = {0};
	cleanup_strmap struct strmap settings = {0};
	for (const char *at = (const char *)data, *end = at + size; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline != NULL ? newline : end) - at);
		cleanup_pass_line struct pass_line line = {0};
		if (pass_line_parse(at, length, &line))
			require(line.number > 0 && strlen(line.text) <= length &&
				strlen(line.pass) + strlen(line.unit) < length);
		strlist_add_owned(&words, text_copy_range(at, length));
		at += length + 1;
	}
	settings_read(&words, &settings);
	for (size_t i = 0; i < flip_count; i++)
		flip_differs(&flips[i], &settings, "x86_64");
	require(strmap_get(&settings, "opt-level") != NULL && strmap_get(&settings, "overflow-checks") != NULL);
	return 0;
}
