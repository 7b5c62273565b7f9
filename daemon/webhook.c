/*
 * Sending a webhook: see webhook.h.  This file owns libcurl.
 *
 * Redirects are followed by hand, because libcurl's own following knows no rule about ports and would carry the body
 * and custom headers (our signature, our token) along.  Proxies are taken from the environment (http_proxy,
 * https_proxy, no_proxy) as the curl program does; nothing else of the user's set-up (.netrc, .curlrc, cookies) is
 * read.
 */
#include "webhook.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "os.h"
#include "webhook_answer.h"

enum {
	MOST_REDIRECTS = 3,
	DEFAULT_TIMEOUT_MS = 30 * 1000,
	CONNECT_TIMEOUT_MS = 10 * 1000,
	CLOCK_SLACK_MS = 100, /* libcurl may find that the time is up a little before we do */
	BACKOFF_START_MS = 1000,
	BACKOFF_MOST_MS = 60 * 60 * 1000,
	LONG_SEGMENT = 16, /* bytes from which a part of a URL's path may be a secret, as in Slack's */
};

#define cleanup_url __attribute__((cleanup(url_free)))
#define cleanup_curl_text __attribute__((cleanup(curl_text_free)))

static void url_free(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void curl_text_free(char **text)
{
	curl_free(*text);
}

int webhook_library_start(struct error *error)
{
	CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
	if (code != CURLE_OK)
		return error_set(error, "cannot start libcurl: %s", curl_easy_strerror(code));
	/* Without signals (CURLOPT_NOSIGNAL, because of threads) libcurl leaves this to us: a TLS peer that goes away
	 * raises it. */
	struct sigaction old = {0};
	if (sigaction(SIGPIPE, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
	return 0;
}

void webhook_library_stop(void)
{
	curl_global_cleanup();
}

void webhook_response_clear(struct webhook_response *response)
{
	free(response->reason);
	*response = (struct webhook_response){.retry_after_ms = -1};
}

long long webhook_backoff_ms(unsigned attempt, long long retry_after_ms, double random)
{
	long long wait = BACKOFF_START_MS;
	for (unsigned i = 1; i < attempt && wait < BACKOFF_MOST_MS; i++)
		wait *= 2;
	if (wait > BACKOFF_MOST_MS)
		wait = BACKOFF_MOST_MS;
	if (!(random >= 0))
		random = 0;
	if (random > 1)
		random = 1;
	long long half = wait / 2;
	wait = half + (long long)((double)half * random);
	return wait > retry_after_ms ? wait : retry_after_ms;
}

static long long seconds_to_ms_capped(long long seconds)
{
	if (seconds < 0)
		return 0;
	return seconds < WEBHOOK_DAY_MS / 1000 ? seconds * 1000 : WEBHOOK_DAY_MS;
}

long long webhook_answer_pause_ms(const struct webhook_answer *answer, long long now)
{
	const long long far_future = 100LL * 1000 * 1000 * 1000 * 1000;
	const char *after = answer->retry_after;
	if (after != NULL && *after >= '0' && *after <= '9') {
		long long seconds = webhook_read_seconds(after, WEBHOOK_DAY_MS / 1000);
		if (seconds >= 0)
			return seconds_to_ms_capped(seconds);
	} else if (after != NULL && ((*after >= 'A' && *after <= 'Z') || (*after >= 'a' && *after <= 'z'))) {
		time_t date = curl_getdate(after, NULL);
		if (date != -1)
			return seconds_to_ms_capped((long long)date - now);
	}
	if (text_equal(answer->rate_limit_remaining, "0") && answer->rate_limit_reset != NULL) {
		long long reset = webhook_read_seconds(answer->rate_limit_reset, far_future);
		if (reset >= 0)
			return seconds_to_ms_capped(reset - now);
	}
	return -1;
}

/* A parsed http or https URL with a host, or NULL. */
static CURLU *url_parse(const char *text)
{
	CURLU *url = curl_url();
	if (url == NULL)
		memory_exhausted();
	cleanup_curl_text char *scheme = NULL;
	if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0))
		return url;
	curl_url_cleanup(url);
	return NULL;
}

/* Both parts are there and equal, whatever their case. */
static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	cleanup_curl_text char *of_a = NULL;
	cleanup_curl_text char *of_b = NULL;
	CURLUcode code_a = curl_url_get(a, part, &of_a, CURLU_DEFAULT_PORT);
	CURLUcode code_b = curl_url_get(b, part, &of_b, CURLU_DEFAULT_PORT);
	if (code_a != CURLUE_OK || code_b != CURLUE_OK)
		return part == CURLUPART_ZONEID && code_a == CURLUE_NO_ZONEID && code_b == CURLUE_NO_ZONEID;
	return strcasecmp(of_a, of_b) == 0;
}

char *webhook_redirect_target(const char *url, const char *location)
{
	cleanup_url CURLU *from = url_parse(url);
	cleanup_url CURLU *to = url_parse(url);
	if (from == NULL || to == NULL || curl_url_set(to, CURLUPART_URL, location, CURLU_URLENCODE) != CURLUE_OK ||
	    !same_part(from, to, CURLUPART_SCHEME) || !same_part(from, to, CURLUPART_HOST) ||
	    !same_part(from, to, CURLUPART_PORT) || !same_part(from, to, CURLUPART_ZONEID))
		return NULL;
	/* Only path and query are taken over: even if the two parsers of a URL disagreed, this goes nowhere new. */
	cleanup_curl_text char *path = NULL;
	cleanup_curl_text char *query = NULL;
	cleanup_curl_text char *target = NULL;
	curl_url_get(to, CURLUPART_PATH, &path, 0);
	curl_url_get(to, CURLUPART_QUERY, &query, 0);
	if (path == NULL || curl_url_set(from, CURLUPART_PATH, path, 0) != CURLUE_OK ||
	    curl_url_set(from, CURLUPART_QUERY, query, 0) != CURLUE_OK ||
	    curl_url_set(from, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
	    curl_url_get(from, CURLUPART_URL, &target, 0) != CURLUE_OK)
		return NULL;
	return text_copy(target);
}

/*
 * One delivery's state.  `origin` is what people see of the URL: user, password, path and query are left out, because a
 * chat system's webhook URL is itself the permission to post.
 */
struct exchange {
	const struct webhook_request *request;
	const char *ca_file;
	struct webhook_response *response;
	CURL *easy;
	struct curl_slist *headers;
	char *origin;
	struct strlist secrets;
	struct webhook_answer answer;
	long long timeout_ms;
	long long deadline_ms;
	char trouble[CURL_ERROR_SIZE];
};

#define cleanup_exchange __attribute__((cleanup(exchange_clear)))

static void exchange_clear(struct exchange *exchange)
{
	curl_easy_cleanup(exchange->easy);
	curl_slist_free_all(exchange->headers);
	free(exchange->origin);
	strlist_clear(&exchange->secrets);
	webhook_answer_clear(&exchange->answer);
}

/* "<origin>: <what>".  What others wrote is cleaned by the caller (webhook_clean_text, webhook_answer_line). */
static void explain(struct exchange *exchange, bool permanent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void explain(struct exchange *exchange, bool permanent, const char *format, ...)
{
	cleanup_str struct str text = {0};
	str_append_format(&text, "%s: ", exchange->origin);
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	free(exchange->response->reason);
	exchange->response->reason = str_steal(&text);
	exchange->response->permanent = permanent;
}

static void add_secret(struct exchange *exchange, const char *text)
{
	if (text != NULL && *text != '\0')
		strlist_add(&exchange->secrets, text);
}

static void add_long_segments(struct exchange *exchange, const char *path)
{
	while (*path != '\0') {
		size_t length = strcspn(path, "/&=");
		if (length >= LONG_SEGMENT)
			strlist_add_owned(&exchange->secrets, text_copy_range(path, length));
		path += length + (path[length] != '\0');
	}
}

/* Longest first: what contains a secret must go before the secret does. */
static int compare_longest(const void *a, const void *b)
{
	size_t length_a = strlen(*(char *const *)a);
	size_t length_b = strlen(*(char *const *)b);
	return (length_a < length_b) - (length_a > length_b);
}

/* Remember which parts of the URL nobody may see, should the receiver or libcurl repeat them. */
static void hide_url(struct exchange *exchange, CURLU *url)
{
	static const struct {
		CURLUPart part;
		size_t shortest; /* hiding every "/a" would only garble the sentence */
	} hidden[] = {{CURLUPART_USER, 1}, {CURLUPART_PASSWORD, 1}, {CURLUPART_PATH, 4}, {CURLUPART_QUERY, 4}};
	for (size_t i = 0; i < 2 * sizeof hidden / sizeof *hidden; i++) {
		cleanup_curl_text char *text = NULL;
		unsigned flags = i % 2 == 0 ? 0 : CURLU_URLDECODE;
		if (curl_url_get(url, hidden[i / 2].part, &text, flags) != CURLUE_OK ||
		    strlen(text) < hidden[i / 2].shortest)
			continue;
		add_secret(exchange, text);
		add_long_segments(exchange, text);
	}
	if (exchange->secrets.count > 0)
		qsort(exchange->secrets.items, exchange->secrets.count, sizeof *exchange->secrets.items,
		      compare_longest);
}

static char *describe_origin(CURLU *url)
{
	cleanup_curl_text char *scheme = NULL;
	cleanup_curl_text char *host = NULL;
	cleanup_curl_text char *port = NULL;
	cleanup_curl_text char *user = NULL;
	bool has_user = curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
	bool has_port = curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK;
	if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		return text_copy("webhook");
	return text_format("%s://%s%s%s%s", scheme, has_user ? "***@" : "", host, has_port ? ":" : "",
			   has_port ? port : "");
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	return webhook_answer_take_header(&exchange->answer, line, size * count) ? size * count : 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	return webhook_answer_take_body(&exchange->answer, bytes, size * count) ? size * count : 0;
}

static bool add_header(struct exchange *exchange, const char *name, const char *value)
{
	for (const unsigned char *byte = (const unsigned char *)value; *byte != '\0'; byte++) {
		if (*byte < 0x20 || *byte == 0x7F) {
			explain(exchange, true,
				"not sent, because the value for %s holds a control character (a line end?)", name);
			return false;
		}
	}
	cleanup_free char *line = text_format("%s: %s", name, value);
	struct curl_slist *longer = curl_slist_append(exchange->headers, line);
	if (longer == NULL)
		memory_exhausted();
	exchange->headers = longer;
	return true;
}

static bool add_headers(struct exchange *exchange)
{
	const struct webhook_request *request = exchange->request;
	cleanup_free char *signature = request->secret != NULL ? webhook_sign(request->secret, request->body) : NULL;
	cleanup_free char *signed_by = signature != NULL ? text_format("sha256=%s", signature) : NULL;
	cleanup_free char *bearer = request->token != NULL ? text_format("Bearer %s", request->token) : NULL;
	struct curl_slist *no_expect = curl_slist_append(exchange->headers, "Expect:");
	if (no_expect == NULL)
		memory_exhausted();
	exchange->headers = no_expect;
	return add_header(exchange, "Content-Type", "application/json") &&
	       add_header(exchange, "X-Bisectd-Event", request->event) &&
	       add_header(exchange, "Idempotency-Key", request->idempotency_key) &&
	       (signed_by == NULL || add_header(exchange, "X-Bisectd-Signature-256", signed_by)) &&
	       (bearer == NULL || add_header(exchange, "Authorization", bearer));
}

/* Everything about the exchange but its URL and its time.  CURLE_OK, or what the library cannot do. */
static CURLcode set_options(struct exchange *exchange)
{
	CURL *easy = exchange->easy;
	CURLcode code = CURLE_OK;
#define SET(option, value)                                                                                             \
	if (code == CURLE_OK)                                                                                          \
	code = curl_easy_setopt(easy, option, value)
	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	SET(CURLOPT_QUICK_EXIT, 1L); /* or a name server that does not answer holds us beyond the time limit */
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* our headers are not for a proxy */
	SET(CURLOPT_USERAGENT, "bisectd/" BISECTD_VERSION);
	SET(CURLOPT_HTTPHEADER, exchange->headers);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(exchange->request->body));
	SET(CURLOPT_POSTFIELDS, exchange->request->body);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (exchange->ca_file != NULL) {
		SET(CURLOPT_CAINFO, exchange->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, exchange);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, exchange);
	SET(CURLOPT_ERRORBUFFER, exchange->trouble);
#undef SET
	return code;
}

/* No whole answer came: what libcurl says about it.  Its sentences about a proxy may quote the proxy's password. */
static void explain_trouble(struct exchange *exchange, CURLcode code)
{
	const char *trouble = exchange->trouble;
	if (code == CURLE_OK)
		trouble = "no HTTP answer came back";
	else if (*trouble == '\0' || strstr(trouble, "proxy ") != NULL)
		trouble = curl_easy_strerror(code);
	cleanup_free char *clean = webhook_clean_text(trouble, strlen(trouble), &exchange->secrets);
	explain(exchange, false, "%s", clean);
}

/*
 * One request and its answer.  True when a whole header came back, whatever happened to the body after it; else the
 * reason is given.
 */
static bool ask(struct exchange *exchange, const char *url)
{
	webhook_answer_clear(&exchange->answer);
	exchange->trouble[0] = '\0';
	long long left = exchange->deadline_ms - os_monotonic_ms();
	if (left <= 0) {
		explain(exchange, false, "no answer within %lld ms", exchange->timeout_ms);
		return false;
	}
	long connect = (long)(left < CONNECT_TIMEOUT_MS ? left : CONNECT_TIMEOUT_MS);
	CURLcode code = curl_easy_setopt(exchange->easy, CURLOPT_URL, url);
	if (code == CURLE_OK)
		code = curl_easy_setopt(exchange->easy, CURLOPT_TIMEOUT_MS, (long)left);
	if (code == CURLE_OK)
		code = curl_easy_setopt(exchange->easy, CURLOPT_CONNECTTIMEOUT_MS, connect);
	if (code == CURLE_OK)
		code = curl_easy_perform(exchange->easy);
	if (exchange->answer.complete)
		return true;
	if (code == CURLE_OPERATION_TIMEDOUT && os_monotonic_ms() + CLOCK_SLACK_MS >= exchange->deadline_ms)
		explain(exchange, false, "no answer within %lld ms", exchange->timeout_ms);
	else if (exchange->answer.bytes >= WEBHOOK_ANSWER_LIMIT)
		explain(exchange, false, "the header of the answer has no end within %d KiB",
			WEBHOOK_ANSWER_LIMIT >> 10);
	else
		explain_trouble(exchange, code);
	return false;
}

/* 4xx says that the request is at fault, but for those that are about the moment.  GitHub's rate limits come as 403. */
static bool is_permanent(long status, long long retry_after_ms)
{
	if (status == 408 || status == 425 || status == 429 || (status == 403 && retry_after_ms >= 0))
		return false;
	return status >= 400 && status < 500;
}

/* The answer that is not a redirect to follow, as `response`. */
static void judge(struct exchange *exchange)
{
	struct webhook_response *response = exchange->response;
	response->delivered = response->status >= 200 && response->status < 300;
	if (response->delivered)
		return;
	response->retry_after_ms = webhook_answer_pause_ms(&exchange->answer, (long long)time(NULL));
	if (response->status >= 300 && response->status < 400) {
		explain(exchange, true,
			"answered HTTP %ld; only redirects 307 and 308 within the same scheme, host and port are "
			"followed: "
			"check the webhook's URL",
			response->status);
		return;
	}
	cleanup_free char *line = webhook_answer_line(&exchange->answer, &exchange->secrets);
	explain(exchange, is_permanent(response->status, response->retry_after_ms), "answered HTTP %ld%s%s",
		response->status, line != NULL ? ": " : "", line != NULL ? line : "");
}

/* Where the answer sends us, or NULL where that is nowhere or elsewhere. */
static char *redirect_of(const struct exchange *exchange, const char *url)
{
	const struct webhook_answer *answer = &exchange->answer;
	bool followed = (answer->status == 307 || answer->status == 308) && answer->location != NULL;
	return followed ? webhook_redirect_target(url, answer->location) : NULL;
}

static void deliver(struct exchange *exchange, CURLU *url)
{
	cleanup_free char *text = text_copy(exchange->request->url);
	for (int redirects = 0;; redirects++) {
		hide_url(exchange, url);
		exchange->response->status = 0;
		if (!ask(exchange, text))
			return;
		exchange->response->status = exchange->answer.status;
		char *target = redirect_of(exchange, text);
		if (target == NULL) {
			judge(exchange);
			return;
		}
		free(text);
		text = target;
		if (redirects == MOST_REDIRECTS || curl_url_set(url, CURLUPART_URL, target, 0) != CURLUE_OK) {
			explain(exchange, false, "answered HTTP %ld: more than %d redirects", exchange->answer.status,
				MOST_REDIRECTS);
			return;
		}
	}
}

void webhook_send(const struct webhook_request *request, const char *ca_file, struct webhook_response *response)
{
	*response = (struct webhook_response){.retry_after_ms = -1};
	cleanup_exchange struct exchange exchange = {.request = request, .ca_file = ca_file, .response = response};
	exchange.timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : DEFAULT_TIMEOUT_MS;
	if (exchange.timeout_ms > WEBHOOK_DAY_MS)
		exchange.timeout_ms = WEBHOOK_DAY_MS;
	exchange.deadline_ms = os_monotonic_ms() + exchange.timeout_ms;
	add_secret(&exchange, request->token);
	add_secret(&exchange, request->secret);
	cleanup_url CURLU *url = url_parse(request->url);
	exchange.origin = url != NULL ? describe_origin(url) : text_copy("webhook");
	if (url == NULL) {
		explain(&exchange, true, "not sent, because its URL is no valid http or https URL");
		return;
	}
	if (!add_headers(&exchange))
		return;
	exchange.easy = curl_easy_init();
	if (exchange.easy == NULL)
		memory_exhausted();
	CURLcode code = set_options(&exchange);
	if (code != CURLE_OK)
		explain(&exchange, false, "libcurl cannot do this: %s", curl_easy_strerror(code));
	else
		deliver(&exchange, url);
}
