/*
 * Growable strings, lists of strings and ordered maps of strings.
 *
 * Everything starts as `{0}`, owns its memory and is freed by its cleanup attribute.  Running out of memory ends the
 * process with one line (memory_exhausted): both programs are built so that an end at any instant loses nothing.
 */
#ifndef BISECTD_COMMON_STR_H
#define BISECTD_COMMON_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
	char *data; /* NUL-terminated once anything was appended; NULL before */
	size_t length;
	size_t capacity;
};

struct strlist {
	char **items; /* NULL-terminated once anything was added, so that it can be an argv */
	size_t count;
	size_t capacity;
};

struct strmap_entry {
	char *key;
	char *value;
};

/* Insertion order is kept: it is what users wrote. */
struct strmap {
	struct strmap_entry *entries;
	size_t count;
	size_t capacity;
};

#define cleanup_str __attribute__((cleanup(str_clear)))
#define cleanup_strlist __attribute__((cleanup(strlist_clear)))
#define cleanup_strmap __attribute__((cleanup(strmap_clear)))
#define cleanup_free __attribute__((cleanup(free_pointer)))

void free_pointer(void *pointer_to_pointer);

/* Allocation that cannot fail: see memory_exhausted.  memory_new returns zeroed memory. */
void *memory_new(size_t count, size_t size) __attribute__((returns_nonnull));
/* Grow `array` so that it holds one element more; returns the (moved) array. */
void *memory_grow(void *array, size_t count, size_t *capacity, size_t size) __attribute__((returns_nonnull));
char *text_copy(const char *text); /* NULL gives NULL */
char *text_copy_range(const char *text, size_t length) __attribute__((returns_nonnull));
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
_Noreturn void memory_exhausted(void);

bool text_equal(const char *a, const char *b); /* NULL equals only NULL */
bool text_starts_with(const char *text, const char *start);
bool text_ends_with(const char *text, const char *end);
/* Number of single-character insertions, deletions and substitutions between the two (Levenshtein's distance). */
size_t text_distance(const char *a, const char *b);

void str_append(struct str *str, const char *text);
void str_append_bytes(struct str *str, const char *bytes, size_t length);
void str_append_format(struct str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_append_format_list(struct str *str, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
/* Append `text` as one word of a POSIX shell command, quoted where it must be. */
void str_append_shell_word(struct str *str, const char *text);
/* Hand the buffer over to the caller ("" where nothing was appended) and start anew. */
char *str_steal(struct str *str) __attribute__((returns_nonnull));
const char *str_text(const struct str *str) __attribute__((returns_nonnull)); /* never NULL */
void str_clear(struct str *str);

void strlist_add(struct strlist *list, const char *item);
void strlist_add_owned(struct strlist *list, char *item);
void strlist_add_all(struct strlist *list, const struct strlist *from);
void strlist_sort(struct strlist *list); /* bytewise */
bool strlist_contains(const struct strlist *list, const char *item);
/* A new string: the items with `separator` between them. */
char *strlist_join(const struct strlist *list, const char *separator) __attribute__((returns_nonnull));
void strlist_clear(struct strlist *list);

/* Set or replace. */
void strmap_set(struct strmap *map, const char *key, const char *value);
void strmap_set_all(struct strmap *map, const struct strmap *from);
const char *strmap_get(const struct strmap *map, const char *key); /* NULL where it is not set */
void strmap_remove(struct strmap *map, const char *key); /* nothing where it is not set */
void strmap_clear(struct strmap *map);

/*
 * A new string in which every `{name}` that the map holds is replaced by its value.  Anything else in braces is left
 * as it is, so that shell text and JSON pass through unharmed.
 */
char *text_substitute(const char *text, const struct strmap *placeholders) __attribute__((returns_nonnull));

#endif
