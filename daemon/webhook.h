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

/* Once, before any thread.  SIGPIPE is ignored from then on, where it had its default: libcurl's TLS would raise it. */
int webhook_library_start(struct error *error);
void webhook_library_stop(void);

/*
 * The body to post for a finding, owned by the caller.  `finding` is the generic JSON object, sent as it is by
 * WEBHOOK_GENERIC:
 *   {"event": "first-bad" | "boundary" | "verdict" | "finished", "investigation": name, "question": text or null,
 *    "title": one line, "text": several lines of plain text, "markdown": the same as GitHub-flavoured Markdown,
 *    "final": bool, ... (further members by event) }
 * WEBHOOK_SLACK: {"text": title + text} in Slack's mrkdwn, with &, < and > escaped.  WEBHOOK_GITHUB_ISSUE_COMMENT:
 * {"body": markdown}. The last two are cut where the receiver's limit is, with a line that says so.
 */
char *webhook_body(enum webhook_format format, const json_t *finding);

struct webhook_request {
	const char *url;
	const char *event;	     /* X-Bisectd-Event */
	const char *idempotency_key; /* Idempotency-Key, stable over all attempts at one delivery */
	const char *body;
	const char *secret;	     /* HMAC-SHA256 key for X-Bisectd-Signature-256, or NULL: no such header */
	const char *token;	     /* Authorization: Bearer, or NULL */
	long long timeout_ms;	     /* for the whole exchange, redirects included; 0 or less: 30 s */
};

struct webhook_response {
	bool delivered;		  /* a 2xx came back */
	/*
	 * Trying again cannot help: 4xx other than 408, 425, 429 and a 403 that says when to come back (GitHub's rate limits); a
	 * redirect that is refused (but not one too many); a URL or a header value that cannot be sent.
	 */
	bool permanent;
	long status;		  /* HTTP status, 0 where none came */
	/* From Retry-After (seconds or HTTP date, RFC 9110 10.2.3), else from a used-up X-RateLimit; capped at one day;
	 * -1: none. */
	long long retry_after_ms;
	/*
	 * One sentence for a person, NULL when delivered; no control characters, no secret, and of the URL only its
	 * scheme, host and port, because the path of a chat system's webhook is itself the permission to post.
	 */
	char *reason;
};

void webhook_response_clear(struct webhook_response *response);

/*
 * One attempt.  Redirects (307, 308 with the same method and body; 301, 302, 303 are refused) are followed at most three times and
 * only within the same scheme, host and port; a redirect elsewhere is refused, so that neither body nor token leaves for another
 * host.  TLS certificates are verified.  Only http and https.  At most 64 KiB of each response, its header included, are looked
 * at; once the header is whole its status counts, whatever becomes of the body.  Never fails otherwise: all trouble is described
 * by `response`, which this overwrites.  `ca_file`: a PEM file of the only authorities to trust, NULL for the system's.  A proxy
 * is taken from the environment (http_proxy, https_proxy, no_proxy), as the curl program does.
 */
void webhook_send(const struct webhook_request *request, const char *ca_file, struct webhook_response *response);

/*
 * How long to wait before attempt number `attempt` (1: after the first failure): exponential from 1 s, doubling, at most one
 * hour, with full jitter over the upper half ("equal jitter"): half of it fixed, half by `random` in [0, 1).  A Retry-After is
 * a floor.
 */
long long webhook_backoff_ms(unsigned attempt, long long retry_after_ms, double random);

/*
 * Read a secret from `file` (owner: this user or root; no group or other permission bits, else refused with what to do;
 * one trailing newline is dropped; at most 64 KiB, not empty) or from environment variable `variable`; both NULL:
 * *secret is NULL.
 */
int webhook_read_secret(const char *file, const char *variable, char **secret, struct error *error);

/* Lower-case hexadecimal HMAC-SHA256 (RFC 2104), owned by the caller. */
char *webhook_sign(const char *secret, const char *body);

#endif
