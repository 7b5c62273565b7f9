/* See edits.h. */
#include "edits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"
#include "str.h"

enum { FILE_LIMIT = 64 << 20, SHOWN_LIMIT = 60 };

struct edit {
	const char *file;
	const char *find;
	const char *replace;
	long long min;
	long long max; /* below 0: unlimited */
};

/* Where the edited file is: its folder, opened without following a link, and its name in it. */
struct place {
	int folder;
	const char *name;
};

static void place_clear(struct place *place)
{
	fd_close(&place->folder);
}

static int read_edit(const json_t *object, struct edit *edit, struct error *error)
{
	const json_t *min = json_object_get(object, "min");
	const json_t *max = json_object_get(object, "max");
	edit->file = json_string_value(json_object_get(object, "file"));
	edit->find = json_string_value(json_object_get(object, "find"));
	edit->replace = json_string_value(json_object_get(object, "replace"));
	edit->min = json_is_integer(min) ? json_integer_value(min) : 1;
	edit->max = json_is_integer(max) ? json_integer_value(max) : -1;
	if (edit->file == NULL || edit->find == NULL || edit->replace == NULL)
		return error_set(error, "an edit needs a file, what to find, and its replacement");
	if (edit->find[0] == '\0')
		return error_set(error, "file %s: the text to find is empty", edit->file);
	return 0;
}

/* Every part of the path is a plain name: no "..", no ".", nothing empty, not absolute. */
static bool stays_inside(const char *file)
{
	for (const char *part = file;; part += strcspn(part, "/") + 1) {
		size_t length = strcspn(part, "/");
		if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && strncmp(part, "..", 2) == 0))
			return false;
		if (part[length] == '\0')
			return true;
	}
}

/* 1: found; 0: no such folder; -1: error. */
static int find_place(const char *folder, const char *file, struct place *place, struct error *error)
{
	place->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->folder < 0)
		return error_set_errno(error, "cannot open %s", folder);
	for (; strchr(file, '/') != NULL; file += strcspn(file, "/") + 1) {
		cleanup_free char *part = text_copy_range(file, strcspn(file, "/"));
		int next = openat(place->folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT)
			return 0;
		if (next < 0)
			return error_set(error, "%s is no folder of its own (a symbolic link is not followed)", part);
		fd_close(&place->folder);
		place->folder = next;
	}
	return 1;
}

/* 1: read; 0: no such file; -1: error. */
static int read_place(const struct place *place, struct str *contents, struct error *error)
{
	struct stat status;
	cleanup_fd int fd = openat(place->folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP)
		return error_set(error, "it is a symbolic link, which is not followed");
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_set_errno(error, "cannot open it");
	if (!S_ISREG(status.st_mode))
		return error_set(error, "it is no regular file");
	if (status.st_size > FILE_LIMIT)
		return error_set(error, "it is larger than %d bytes", FILE_LIMIT);
	char block[8192];
	for (ssize_t got; (got = read(fd, block, sizeof block)) != 0;) {
		if (got < 0 && errno != EINTR)
			return error_set_errno(error, "cannot read it");
		if (got > 0)
			str_append_bytes(contents, block, (size_t)got);
	}
	return 1;
}

static int write_place(const struct place *place, const struct str *contents, struct error *error)
{
	cleanup_fd int fd = openat(place->folder, place->name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(error, "cannot write it");
	for (size_t done = 0; done < contents->length;) {
		ssize_t written = write(fd, contents->data + done, contents->length - done);
		if (written < 0 && errno != EINTR)
			return error_set_errno(error, "cannot write it");
		if (written > 0)
			done += (size_t)written;
	}
	return 0;
}

/* Replace every match; returns how many there were. */
static long long replace_all(const struct str *before, const struct edit *edit, struct str *after)
{
	const char *at = str_text(before);
	const char *end = at + before->length;
	size_t length = strlen(edit->find);
	long long matches = 0;
	for (const char *found; (found = memmem(at, (size_t)(end - at), edit->find, length)) != NULL;
	     at = found + length) {
		str_append_bytes(after, at, (size_t)(found - at));
		str_append(after, edit->replace);
		matches++;
	}
	str_append_bytes(after, at, (size_t)(end - at));
	return matches;
}

static char *wanted_text(const struct edit *edit)
{
	if (edit->max < 0)
		return text_format("at least %lld", edit->min);
	if (edit->max == edit->min)
		return text_format("exactly %lld", edit->min);
	return text_format("%lld to %lld", edit->min, edit->max);
}

/* What was looked for, in one short line. */
static char *shown_text(const char *text)
{
	size_t length = strlen(text);
	bool cut = length > SHOWN_LIMIT;
	cleanup_free char *start = text_copy_range(text, cut ? SHOWN_LIMIT : length);
	for (char *byte = start; *byte != '\0'; byte++)
		if (*byte == '\n' || *byte == '\r' || *byte == '\t')
			*byte = ' ';
	return text_format("'%s%s'", start, cut ? "..." : "");
}

static int check_matches(const struct edit *edit, long long matches, bool exists, struct error *error)
{
	if (matches >= edit->min && (edit->max < 0 || matches <= edit->max))
		return 0;
	cleanup_free char *wanted = wanted_text(edit);
	cleanup_free char *shown = shown_text(edit->find);
	if (!exists)
		return error_set(error, "there is no such file, wanted %s of: %s", wanted, shown);
	return error_set(error, "found %lld times, wanted %s: %s", matches, wanted, shown);
}

static int apply_edit(const char *folder, const struct edit *edit, long long *matches, struct error *error)
{
	__attribute__((cleanup(place_clear))) struct place place = {.folder = -1, .name = path_base(edit->file)};
	cleanup_str struct str before = {0};
	cleanup_str struct str after = {0};
	if (!stays_inside(edit->file))
		return error_set(error, "it leaves the folder that is edited");
	int exists = find_place(folder, edit->file, &place, error);
	if (exists > 0)
		exists = read_place(&place, &before, error);
	if (exists < 0)
		return -1;
	*matches = replace_all(&before, edit, &after);
	if (check_matches(edit, *matches, exists > 0, error) < 0)
		return -1;
	return *matches > 0 ? write_place(&place, &after, error) : 0;
}

int edits_apply(const char *folder, const json_t *edits, const char *override, json_t *report, struct error *error)
{
	size_t index;
	json_t *object;
	json_array_foreach (edits, index, object) {
		struct edit edit;
		long long matches = 0;
		if (read_edit(object, &edit, error) < 0)
			return error_wrap(error, "override %s", override);
		if (apply_edit(folder, &edit, &matches, error) < 0)
			return error_wrap(error, "override %s: file %s", override, edit.file);
		json_array_append_new(report,
				      json_pack("{s:s, s:I}", "file", edit.file, "matches", (json_int_t)matches));
	}
	return 0;
}
