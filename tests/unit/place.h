/* A folder of its own for each test, which is the test's state: made before it, removed after it. */
#ifndef BISECTD_TESTS_PLACE_H
#define BISECTD_TESTS_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "error.h"
#include "fs.h"
#include "str.h"

static inline int make_place(void **state)
{
	char *folder = text_copy("/tmp/bisectd-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	*state = folder;
	return 0;
}

static inline int remove_place(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *folder = *state;
	return fs_remove_tree(folder, &error);
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

/* In memory where that is possible, for what flushes often and executes nothing there. */
static inline int make_quick_place(void **state)
{
	char *folder = text_copy("/dev/shm/bisectd-test-XXXXXX");
	if (mkdtemp(folder) == NULL) {
		free(folder);
		return make_place(state);
	}
	*state = folder;
	return 0;
}

#define in_quick_place(test) cmocka_unit_test_setup_teardown(test, make_quick_place, remove_place)

/* Failed calls show their error, not only that there was one. */
static inline void assert_done(int result, const struct error *error)
{
	if (result < 0)
		fail_msg("%s", error_text(error));
}

static inline void assert_says(const struct error *error, const char *part)
{
	if (strstr(error_text(error), part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error_text(error), part);
}

static inline void put_file(const char *folder, const char *name, const char *text)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(folder, name);
	cleanup_free char *parent = path_parent(path);
	assert_done(fs_make_folder(parent, &error), &error);
	assert_done(fs_write_file(path, text, strlen(text), &error), &error);
}

static inline void assert_file(const char *folder, const char *name, const char *text)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(folder, name);
	assert_done(fs_read_file(path, 0, &contents, &error), &error);
	assert_string_equal(str_text(&contents), text);
}

#endif
