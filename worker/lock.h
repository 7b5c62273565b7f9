/*
 * Reading Cargo.lock: which packages, where from.  The file is written by cargo, in one fixed layout (cargo's
 * core/resolver/encode.rs), so it is read line by line; this is no TOML reader.
 */
#ifndef BISECTD_WORKER_LOCK_H
#define BISECTD_WORKER_LOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

struct lock_package {
	char *name;
	char *version;
	char *source;                /* NULL: a folder (the reproducer itself, a path dependency) */
	char *checksum;              /* NULL where there is none */
	struct strlist dependencies; /* "name", "name version" or "name version (source)" */
};

struct lock {
	long long version; /* of the file's format; 1 where it says nothing */
	struct lock_package *packages;
	size_t count;
	size_t capacity;
};

#define cleanup_lock __attribute__((cleanup(lock_clear)))

int lock_parse(struct lock *lock, const char *text, struct error *error);
void lock_clear(struct lock *lock);

/* The first package of that name from index `from` on (and of that version, where not NULL); NULL where there is none.
 */
const struct lock_package *lock_find(const struct lock *lock, const char *name, const char *version, size_t from);
/* The version of `name` that the packages without a source depend on, or the only one; NULL where there is none. */
const char *lock_direct_version(const struct lock *lock, const char *name);
bool lock_from_crates_io(const struct lock_package *package);

/*
 * What differs besides the packages named in `asked`, as texts for people: "a 1.0.0 -> 1.0.1", "b 2.0.0 (new)",
 * "c 3.0.0 (gone)". A new array.
 */
json_t *lock_changes(const struct lock *before, const struct lock *after, const struct strlist *asked);

/* The text with the source and checksum of one package taken out: what cargo writes once it is patched by a folder.
 * Owned by the caller. */
char *lock_without_source(const char *text, const char *name, const char *version);
/* The text with `version = 4` made 3, which every cargo from 1.53 on reads; they differ only in how git addresses are
 * spelled. */
char *lock_for_old_cargo(const char *text);

#endif
