/*
 * One webhook delivery: what is sent, and one attempt at sending it.
 *
 * The only room that knows libcurl (curl/curl.h is included by webhook.c alone).  Knows nothing of the database: notify.c keeps
 * the outbox, hands requests in and records what came of them.  webhook_send blocks, so it is called from libuv's pool.
 */
#ifndef BISECTD_DAEMON_WEBHOOK_H
#define BISECTD_DAEMON_WEBHOOK_H

#include <jansson.h>
#include <stdbool.h>

#include "config.h"
#include "error.h"
#include "str.h"

int webhook_library_start(struct error *error);
void webhook_library_stop(void);

/*
 * The body to post for a finding, owned by the caller.  `finding` is the generic JSON object, sent as it is by WEBHOOK_GENERIC:
 *   {"event": "first-bad" | "boundary" | "verdict" | "finished", "investigation": name, "question": text or null,
 *    "title": one line, "text": several lines of plain text, "markdown": the same as GitHub-flavoured Markdown,
 *    "final": bool, ... (further members by event) }
 * WEBHOOK_SLACK: {"text": title + text} in Slack's mrkdwn, with &, < and > escaped.  WEBHOOK_GITHUB_ISSUE_COMMENT: {"body": markdown}.
 */
char *webhook_body(enum webhook_format format, const json_t *finding);

struct webhook_request {
	const char *url;
	const char *event;	     /* X-Bisectd-Event */
	const char *idempotency_key; /* Idempotency-Key, stable over all attempts at one delivery */
	const char *body;
	const char *secret;	     /* HMAC-SHA256 key for X-Bisectd-Signature-256, or NULL: no such header */
	const char *token;	     /* Authorization: Bearer, or NULL */
	long long timeout_ms;	     /* for the whole exchange */
};

struct webhook_response {
	bool delivered;		  /* a 2xx came back */
	bool permanent;		  /* trying again cannot help (4xx other than 408, 425, 429; a redirect to another host) */
	long status;		  /* HTTP status, 0 where none came */
	long long retry_after_ms; /* from Retry-After (seconds or HTTP date, RFC 9110 10.2.3), capped at one day; -1: none */
	char *reason;		  /* one sentence for a person, NULL when delivered; holds no secret and no control characters */
};

void webhook_response_clear(struct webhook_response *response);

/*
 * One attempt.  Redirects (307, 308 with the same method and body; 301, 302, 303 are refused) are followed at most three times and
 * only within the same scheme, host and port; a redirect elsewhere is refused, so that neither body nor token leaves for another
 * host.  TLS certificates are verified.  Only http and https.  At most 64 KiB of the response are read.  Never fails otherwise:
 * all trouble is described by `response`.  `ca_file`: a PEM file of authorities to trust, NULL for the system's.
 */
void webhook_send(const struct webhook_request *request, const char *ca_file, struct webhook_response *response);

/*
 * How long to wait before attempt number `attempt` (1: after the first failure): exponential from 1 s, doubling, at most one
 * hour, with full jitter over the upper half ("equal jitter"): half of it fixed, half by `random` in [0, 1).  A Retry-After is
 * a floor.
 */
long long webhook_backoff_ms(unsigned attempt, long long retry_after_ms, double random);

/*
 * Read a secret from `file` (owner: this user or root; no group or other permission bits, else refused with what to do; one trailing
 * newline is dropped; at most 64 KiB, not empty) or from environment variable `variable`; both NULL: *secret is NULL.
 */
int webhook_read_secret(const char *file, const char *variable, char **secret, struct error *error);

/* Lower-case hexadecimal HMAC-SHA256 (RFC 2104), owned by the caller. */
char *webhook_sign(const char *secret, const char *body);

#endif
