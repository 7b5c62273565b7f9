/* See whole.h. */
#include "whole.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"
#include "str.h"

/* `name` is `<base>.tmp-PID` of a process that is no more. */
static bool is_leftover(const char *name, const char *base)
{
	size_t length = strlen(base);
	if (strncmp(name, base, length) != 0 || !text_starts_with(name + length, ".tmp-"))
		return false;
	const char *digits = name + length + strlen(".tmp-");
	char *end;
	long id = strtol(digits, &end, 10);
	return isdigit((unsigned char)digits[0]) && *end == '\0' && id > 0 && kill((pid_t)id, 0) < 0 && errno == ESRCH;
}

/* They are in nobody's way: what cannot be removed now (a child of the dead process may still write) is left for the
 * next. */
static void remove_leftovers(const char *parent, const char *base)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error error = {0};
	if (fs_list_folder(parent, &names, &error) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *path = path_join(parent, names.items[i]);
		if (is_leftover(names.items[i], base) && fs_remove_tree(path, &error) < 0)
			log_warning("%s", error_text(&error));
	}
}

static int fill_and_rename(const char *beside, const char *path, whole_fill fill, void *context, struct error *error)
{
	if (fs_remove_tree(beside, error) < 0 || fs_make_folder(beside, error) < 0 || fill(beside, context, error) < 0)
		return -1;
	if (rename(beside, path) < 0 && !((errno == EEXIST || errno == ENOTEMPTY) && path_is_folder(path)))
		return error_set_errno(error, "cannot put %s in its place", path);
	return 0;
}

int whole_make(const char *path, whole_fill fill, void *context, struct error *error)
{
	if (path_is_folder(path))
		return 0;
	cleanup_free char *parent = path_parent(path);
	cleanup_free char *beside = text_format("%s.tmp-%ld", path, (long)getpid());
	if (fs_make_folder(parent, error) < 0)
		return -1;
	remove_leftovers(parent, path_base(path));
	int result = fill_and_rename(beside, path, fill, context, error);
	cleanup_error struct error ignored = {0};
	fs_remove_tree(beside, &ignored);
	return result;
}
