/*
 * What a webhook's receiver answered, read from bytes that it chose: header lines, body, and one line of it for a
 * person.
 *
 * Private to webhook.c and its tests.  Everything here is bounded and takes any bytes.  Knows nothing of libcurl, apart
 * from the last two functions, which webhook.c defines because dates and URLs are libcurl's to read.
 */
#ifndef BISECTD_DAEMON_WEBHOOK_ANSWER_H
#define BISECTD_DAEMON_WEBHOOK_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

enum {
	WEBHOOK_ANSWER_LIMIT = 64 << 10, /* bytes of header and body together, over all answers to one request */
	WEBHOOK_LINE_LIMIT = 200,        /* bytes of the answer's text that a reason quotes */
	WEBHOOK_DAY_MS = 24 * 60 * 60 * 1000
};

/* Starts as {0}.  The texts hold the last header of their name, NULL where there was none. */
struct webhook_answer {
	long status;   /* of the last status line, 0: none */
	bool complete; /* the header of a final (not 1xx) answer has ended */
	size_t bytes;  /* taken so far */
	char *location;
	char *content_type;
	char *retry_after;
	char *rate_limit_remaining; /* X-RateLimit-Remaining and -Reset, as GitHub sends them */
	char *rate_limit_reset;
	struct str body;
};

#define cleanup_webhook_answer __attribute__((cleanup(webhook_answer_clear)))

/* One header line, with or without its line end.  A status line starts anew.  False: more than the limit has come. */
bool webhook_answer_take_header(struct webhook_answer *answer, const char *line, size_t length);
/* A part of the body; what does not fit is dropped.  False: more than the limit has come. */
bool webhook_answer_take_body(struct webhook_answer *answer, const char *bytes, size_t length);
void webhook_answer_clear(struct webhook_answer *answer);

/*
 * What the body says, for a person: of a JSON object its "message", "error" or "detail", of other text its first line
 * that is not empty; at most WEBHOOK_LINE_LIMIT bytes of UTF-8 without control characters, in which every text of
 * `secrets` is replaced by "***".  NULL where the body is no text or says nothing.  Owned by the caller.
 */
char *webhook_answer_line(const struct webhook_answer *answer, const struct strlist *secrets);

/* `text` as valid UTF-8 without control characters and with every one of `secrets` replaced; owned by the caller. */
char *webhook_clean_text(const char *text, size_t length, const struct strlist *secrets);

/* Digits only, and more than `most` (at most 10^17) counts as `most`; -1 for anything else. */
long long webhook_read_seconds(const char *text, long long most);

/*
 * How long the answer asks to be left alone, in milliseconds from `now` (seconds since 1970), capped at one day; -1: it
 * does not. Retry-After as RFC 9110 10.2.3 says; without it, a rate limit that is used up counts until its reset.
 */
long long webhook_answer_pause_ms(const struct webhook_answer *answer, long long now);

/*
 * Where a request to `url` goes on after an answer with `location` (absolute or relative): the URL, owned by the
 * caller, or NULL when that is not the same scheme, host and port.  User, password, host and port are always those of
 * `url`.
 */
char *webhook_redirect_target(const char *url, const char *location);

#endif
