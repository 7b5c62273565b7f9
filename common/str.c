/* See str.h. */
#include "str.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void memory_exhausted(void)
{
	static const char message[] = "out of memory: stopping; nothing is lost, start again to go on\n";
	ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
	(void)ignored;
	_exit(3);
}

void free_pointer(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

void *memory_new(size_t count, size_t size)
{
	void *memory = calloc(count > 0 ? count : 1, size);
	if (memory == NULL)
		memory_exhausted();
	return memory;
}

static void *memory_resize(void *memory, size_t count, size_t size)
{
	void *resized = count > SIZE_MAX / size ? NULL : realloc(memory, count * size);
	if (resized == NULL)
		memory_exhausted();
	return resized;
}

void *memory_grow(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity == 0 ? 8 : *capacity * 2;
	return memory_resize(array, *capacity, size);
}

char *text_copy_range(const char *text, size_t length)
{
	char *copy = memory_new(length + 1, 1);
	memcpy(copy, text, length);
	return copy;
}

char *text_copy(const char *text)
{
	return text != NULL ? text_copy_range(text, strlen(text)) : NULL;
}

char *text_format(const char *format, ...)
{
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	return str_steal(&text);
}

bool text_equal(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

bool text_starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t text_length = strlen(text);
	size_t end_length = strlen(end);
	return text_length >= end_length && strcmp(text + text_length - end_length, end) == 0;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t text_distance(const char *a, const char *b)
{
	size_t length = strlen(b);
	cleanup_free size_t *row = memory_new(length + 1, sizeof *row);
	for (size_t i = 0; i <= length; i++)
		row[i] = i;
	for (size_t line = 1; *a != '\0'; a++, line++) {
		size_t diagonal = row[0];
		row[0] = line;
		for (size_t i = 1; i <= length; i++) {
			size_t substituted = diagonal + (*a != b[i - 1]);
			diagonal = row[i];
			row[i] = smaller(substituted, smaller(row[i], row[i - 1]) + 1);
		}
	}
	return row[length];
}

static void reserve(struct str *str, size_t more)
{
	size_t needed = str->length + more + 1;
	if (str->data != NULL && needed <= str->capacity)
		return;
	size_t capacity = str->capacity == 0 ? 64 : str->capacity;
	while (capacity < needed)
		capacity *= 2;
	str->data = memory_resize(str->data, capacity, 1);
	str->capacity = capacity;
}

void str_append_bytes(struct str *str, const char *bytes, size_t length)
{
	reserve(str, length);
	if (length > 0)
		memcpy(str->data + str->length, bytes, length);
	str->length += length;
	str->data[str->length] = '\0';
}

void str_append(struct str *str, const char *text)
{
	str_append_bytes(str, text, strlen(text));
}

void str_append_format_list(struct str *str, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0)
		memory_exhausted();
	reserve(str, (size_t)length);
	vsnprintf(str->data + str->length, (size_t)length + 1, format, arguments);
	str->length += (size_t)length;
}

void str_append_format(struct str *str, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(str, format, arguments);
	va_end(arguments);
}

void str_append_shell_word(struct str *str, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
	if (*text != '\0' && strspn(text, plain) == strlen(text)) {
		str_append(str, text);
		return;
	}
	str_append(str, "'");
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			str_append(str, "'\\''");
		else
			str_append_bytes(str, text, 1);
	}
	str_append(str, "'");
}

char *str_steal(struct str *str)
{
	char *data = str->data != NULL ? str->data : text_copy("");
	*str = (struct str){0};
	return data;
}

const char *str_text(const struct str *str)
{
	return str->data != NULL ? str->data : "";
}

void str_clear(struct str *str)
{
	free(str->data);
	*str = (struct str){0};
}

void strlist_add_owned(struct strlist *list, char *item)
{
	list->items = memory_grow(list->items, list->count + 1, &list->capacity, sizeof *list->items);
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
}

void strlist_add(struct strlist *list, const char *item)
{
	strlist_add_owned(list, text_copy(item));
}

void strlist_add_all(struct strlist *list, const struct strlist *from)
{
	for (size_t i = 0; i < from->count; i++)
		strlist_add(list, from->items[i]);
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof *list->items, compare_items);
}

bool strlist_contains(const struct strlist *list, const char *item)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], item) == 0)
			return true;
	return false;
}

char *strlist_join(const struct strlist *list, const char *separator)
{
	struct str joined = {0};
	for (size_t i = 0; i < list->count; i++) {
		if (i > 0)
			str_append(&joined, separator);
		str_append(&joined, list->items[i]);
	}
	return str_steal(&joined);
}

void strlist_clear(struct strlist *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct strlist){0};
}

static struct strmap_entry *find_entry(const struct strmap *map, const char *key)
{
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->entries[i].key, key) == 0)
			return &map->entries[i];
	return NULL;
}

void strmap_set(struct strmap *map, const char *key, const char *value)
{
	struct strmap_entry *entry = find_entry(map, key);
	char *copy = text_copy(value);
	if (entry != NULL) {
		free(entry->value);
		entry->value = copy;
		return;
	}
	map->entries = memory_grow(map->entries, map->count, &map->capacity, sizeof *map->entries);
	map->entries[map->count++] = (struct strmap_entry){.key = text_copy(key), .value = copy};
}

void strmap_set_all(struct strmap *map, const struct strmap *from)
{
	for (size_t i = 0; i < from->count; i++)
		strmap_set(map, from->entries[i].key, from->entries[i].value);
}

const char *strmap_get(const struct strmap *map, const char *key)
{
	const struct strmap_entry *entry = find_entry(map, key);
	return entry != NULL ? entry->value : NULL;
}

void strmap_remove(struct strmap *map, const char *key)
{
	struct strmap_entry *entry = find_entry(map, key);
	if (entry == NULL)
		return;
	free(entry->key);
	free(entry->value);
	size_t after = (size_t)(map->entries + map->count - entry) - 1;
	memmove(entry, entry + 1, after * sizeof *entry);
	map->count--;
}

void strmap_clear(struct strmap *map)
{
	for (size_t i = 0; i < map->count; i++) {
		free(map->entries[i].key);
		free(map->entries[i].value);
	}
	free(map->entries);
	*map = (struct strmap){0};
}

char *text_substitute(const char *text, const struct strmap *placeholders)
{
	struct str result = {0};
	while (*text != '\0') {
		size_t plain = strcspn(text, "{");
		str_append_bytes(&result, text, plain);
		text += plain;
		if (*text == '\0')
			break;
		const char *end = strchr(text, '}');
		cleanup_free char *name = end != NULL ? text_copy_range(text + 1, (size_t)(end - text - 1)) : NULL;
		const char *value = name != NULL ? strmap_get(placeholders, name) : NULL;
		if (value != NULL) {
			str_append(&result, value);
			text = end + 1;
		} else {
			str_append(&result, "{");
			text++;
		}
	}
	return str_steal(&result);
}
