/* See keep.h. */
#include "keep.h"

#include <stdlib.h>
#include <string.h>

static void add_to_tail(struct keep *keep, const char *bytes, size_t length)
{
	if (keep->tail == NULL)
		keep->tail = memory_new(KEEP_TAIL, 1);
	keep->tail_total += length;
	if (length > KEEP_TAIL) {
		bytes += length - KEEP_TAIL;
		length = KEEP_TAIL;
	}
	size_t at = (size_t)((keep->tail_total - length) % KEEP_TAIL);
	size_t first = length < KEEP_TAIL - at ? length : KEEP_TAIL - at;
	memcpy(keep->tail + at, bytes, first);
	memcpy(keep->tail, bytes + first, length - first);
}

size_t keep_add(struct keep *keep, const char *bytes, size_t length)
{
	size_t room = keep->head.length < keep->limit ? keep->limit - keep->head.length : 0;
	size_t shown = room < length ? room : length;
	keep->total += length;
	str_append_bytes(&keep->head, bytes, shown);
	if (shown < length)
		add_to_tail(keep, bytes + shown, length - shown);
	return shown;
}

void keep_append_rest(const struct keep *keep, struct str *text)
{
	if (keep->tail_total == 0)
		return;
	if (keep->tail_total <= KEEP_TAIL) {
		str_append_bytes(text, keep->tail, (size_t)keep->tail_total);
		return;
	}
	size_t at = (size_t)(keep->tail_total % KEEP_TAIL);
	str_append_format(text, "\n[... %llu bytes left out ...]\n", keep->tail_total - KEEP_TAIL);
	str_append_bytes(text, keep->tail + at, KEEP_TAIL - at);
	str_append_bytes(text, keep->tail, at);
}

void keep_append_all(const struct keep *keep, struct str *text)
{
	str_append_bytes(text, str_text(&keep->head), keep->head.length);
	keep_append_rest(keep, text);
}

void keep_clear(struct keep *keep)
{
	str_clear(&keep->head);
	free(keep->tail);
	*keep = (struct keep){0};
}
