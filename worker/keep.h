/*
 * The kept part of a command's output: its head up to a limit, its last bytes, and how much fell out between them.
 * Memory stays bounded however much a program prints.
 */
#ifndef BISECTD_WORKER_KEEP_H
#define BISECTD_WORKER_KEEP_H

#include <stddef.h>

#include "str.h"

enum { KEEP_TAIL = 16 << 10 };

struct keep {
	size_t limit;             /* of the head, in bytes */
	unsigned long long total; /* that came by */
	struct str head;
	char *tail; /* ring of KEEP_TAIL bytes, made when the head is full */
	unsigned long long tail_total;
};

#define cleanup_keep __attribute__((cleanup(keep_clear)))

/* Returns how many of these bytes went into the head: what a log that follows along may show now. */
size_t keep_add(struct keep *keep, const char *bytes, size_t length);
/* What a log must still show: nothing, the tail, or a line "[... N bytes left out ...]" and the tail.  Appended to
 * `text`. */
void keep_append_rest(const struct keep *keep, struct str *text);
/* All of it: head and rest. */
void keep_append_all(const struct keep *keep, struct str *text);
void keep_clear(struct keep *keep);

#endif
