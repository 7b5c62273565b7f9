/* See lock.h. */
#include "lock.h"

#include <stdlib.h>
#include <string.h>

static void package_clear(struct lock_package *package)
{
	free(package->name);
	free(package->version);
	free(package->source);
	free(package->checksum);
	strlist_clear(&package->dependencies);
}

void lock_clear(struct lock *lock)
{
	for (size_t i = 0; i < lock->count; i++)
		package_clear(&lock->packages[i]);
	free(lock->packages);
	*lock = (struct lock){0};
}

/* `name = "text"`: a copy of the text; NULL where the line is another one. */
static char *quoted_value(const char *line, const char *name)
{
	size_t length = strlen(name);
	if (strncmp(line, name, length) != 0 || strncmp(line + length, " = \"", 4) != 0)
		return NULL;
	const char *start = line + length + 4;
	const char *end = strchr(start, '"');
	return end != NULL ? text_copy_range(start, (size_t)(end - start)) : NULL;
}

static void read_value(const char *line, const char *name, char **value)
{
	char *text = quoted_value(line, name);
	if (text == NULL)
		return;
	free(*value);
	*value = text;
}

static void read_package_line(struct lock_package *package, const char *line)
{
	read_value(line, "name", &package->name);
	read_value(line, "version", &package->version);
	read_value(line, "source", &package->source);
	read_value(line, "checksum", &package->checksum);
	const char *end = strrchr(line, '"');
	if (text_starts_with(line, " \"") && end > line + 1)
		strlist_add_owned(&package->dependencies, text_copy_range(line + 2, (size_t)(end - line - 2)));
}

/* The line at *text without its end; *text moves behind it.  Owned by the caller; NULL at the end. */
static char *next_line(const char **text)
{
	if (**text == '\0')
		return NULL;
	size_t length = strcspn(*text, "\n");
	size_t kept = length > 0 && (*text)[length - 1] == '\r' ? length - 1 : length;
	char *line = text_copy_range(*text, kept);
	*text += length + ((*text)[length] == '\n');
	return line;
}

static struct lock_package *add_package(struct lock *lock)
{
	lock->packages = memory_grow(lock->packages, lock->count, &lock->capacity, sizeof *lock->packages);
	lock->packages[lock->count] = (struct lock_package){0};
	return &lock->packages[lock->count++];
}

int lock_parse(struct lock *lock, const char *text, struct error *error)
{
	struct lock_package *package = NULL;
	bool top = true;
	lock->version = 1;
	for (char *line; (line = next_line(&text)) != NULL; free(line)) {
		if (strcmp(line, "[[package]]") == 0)
			package = add_package(lock);
		else if (line[0] == '[')
			package = NULL;
		else if (package != NULL)
			read_package_line(package, line);
		else if (top && text_starts_with(line, "version = "))
			lock->version = strtoll(line + strlen("version = "), NULL, 10);
		top = top && line[0] != '[';
	}
	for (size_t i = 0; i < lock->count; i++)
		if (lock->packages[i].name == NULL || lock->packages[i].version == NULL)
			return error_set(error, "Cargo.lock: package %zu has no name or no version", i + 1);
	return 0;
}

const struct lock_package *lock_find(const struct lock *lock, const char *name, const char *version, size_t from)
{
	for (size_t i = from; i < lock->count; i++)
		if (strcmp(lock->packages[i].name, name) == 0 &&
		    (version == NULL || strcmp(lock->packages[i].version, version) == 0))
			return &lock->packages[i];
	return NULL;
}

/* "name version (source)" -> is it `name`, and which version (owned; NULL where it says none)? */
static bool is_dependency(const char *text, const char *name, char **version)
{
	size_t length = strlen(name);
	if (strncmp(text, name, length) != 0 || (text[length] != '\0' && text[length] != ' '))
		return false;
	*version = text[length] == ' ' ? text_copy_range(text + length + 1, strcspn(text + length + 1, " ")) : NULL;
	return true;
}

const char *lock_direct_version(const struct lock *lock, const char *name)
{
	for (size_t i = 0; i < lock->count; i++) {
		const struct lock_package *package = &lock->packages[i];
		for (size_t j = 0; package->source == NULL && j < package->dependencies.count; j++) {
			cleanup_free char *version = NULL;
			if (!is_dependency(package->dependencies.items[j], name, &version))
				continue;
			const struct lock_package *found = lock_find(lock, name, version, 0);
			if (found != NULL)
				return found->version;
		}
	}
	const struct lock_package *only = lock_find(lock, name, NULL, 0);
	return only != NULL ? only->version : NULL;
}

bool lock_from_crates_io(const struct lock_package *package)
{
	return text_equal(package->source, "registry+https://github.com/rust-lang/crates.io-index");
}

static void list_versions(const struct lock *lock, const struct lock *other, const char *name, struct strlist *versions)
{
	for (size_t i = 0; i < lock->count; i++) {
		const struct lock_package *package = &lock->packages[i];
		if (strcmp(package->name, name) == 0 && lock_find(other, name, package->version, 0) == NULL)
			strlist_add(versions, package->version);
	}
}

static void add_changes(json_t *changes, const struct lock *before, const struct lock *after, const char *name)
{
	cleanup_strlist struct strlist gone = {0};
	cleanup_strlist struct strlist new = {0};
	list_versions(before, after, name, &gone);
	list_versions(after, before, name, &new);
	size_t both = gone.count < new.count ? gone.count : new.count;
	for (size_t i = 0; i < both; i++)
		json_array_append_new(changes, json_sprintf("%s %s -> %s", name, gone.items[i], new.items[i]));
	for (size_t i = both; i < gone.count; i++)
		json_array_append_new(changes, json_sprintf("%s %s (gone)", name, gone.items[i]));
	for (size_t i = both; i < new.count; i++)
		json_array_append_new(changes, json_sprintf("%s %s (new)", name, new.items[i]));
}

json_t *lock_changes(const struct lock *before, const struct lock *after, const struct strlist *asked)
{
	cleanup_strlist struct strlist names = {0};
	for (size_t i = 0; i < before->count; i++)
		strlist_add(&names, before->packages[i].name);
	for (size_t i = 0; i < after->count; i++)
		strlist_add(&names, after->packages[i].name);
	strlist_sort(&names);
	json_t *changes = json_array();
	for (size_t i = 0; i < names.count; i++) {
		if (i > 0 && strcmp(names.items[i], names.items[i - 1]) == 0)
			continue;
		if (!strlist_contains(asked, names.items[i]))
			add_changes(changes, before, after, names.items[i]);
	}
	return changes;
}

/* Is this `[[package]]` (from its line on) the one? */
static bool block_is(const char *block, const char *name, const char *version)
{
	cleanup_free char *start = text_format("[[package]]\nname = \"%s\"\nversion = \"%s\"\n", name, version);
	return text_starts_with(block, start);
}

char *lock_without_source(const char *text, const char *name, const char *version)
{
	struct str result = {0};
	bool inside = false;
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		length += text[length] == '\n';
		if (*text == '[' && text[1] == '[')
			inside = block_is(text, name, version);
		if (!inside || (!text_starts_with(text, "source = ") && !text_starts_with(text, "checksum = ")))
			str_append_bytes(&result, text, length);
		text += length;
	}
	return str_steal(&result);
}

char *lock_for_old_cargo(const char *text)
{
	const char *found = text_starts_with(text, "version = 4\n") ? text : strstr(text, "\nversion = 4\n");
	if (found == NULL || strstr(text, "\nsource = \"git+") != NULL)
		return text_copy(text);
	size_t before = (size_t)(strchr(found, '4') - text);
	struct str result = {0};
	str_append_bytes(&result, text, before);
	str_append(&result, "3");
	str_append(&result, text + before + 1);
	return str_steal(&result);
}
