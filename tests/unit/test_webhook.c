/* Sending webhooks to a real HTTP server on the loopback (http_server.h), and to a TLS server by the openssl program.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "fs.h"
#include "http_server.h"
#include "os.h"
#include "webhook.h"
#include "webhook_answer.h"

/* --- one delivery --- */

static const struct webhook_request sample = {
	.event = "first-bad",
	.idempotency_key = "0123-first-bad",
	.body = "{\"event\":\"first-bad\"}",
	.secret = "wrzlbrnft-hmac-key",
	.token = "wrzlbrnft-token",
	.timeout_ms = 20000,
};

#define cleanup_response __attribute__((cleanup(webhook_response_clear)))

static void check_response(const struct webhook_response *response)
{
	assert_int_equal(response->delivered, response->reason == NULL);
	assert_true(response->retry_after_ms >= -1 && response->retry_after_ms <= WEBHOOK_DAY_MS);
	for (const char *byte = response->reason; byte != NULL && *byte != '\0'; byte++)
		assert_true((unsigned char)*byte >= 0x20 && *byte != 0x7F);
	if (response->reason != NULL) {
		assert_null(strstr(response->reason, "wrzlbrnft"));
		assert_true(strlen(response->reason) < 500);
	}
}

static void send_to(const char *url, struct webhook_request request, struct webhook_response *response)
{
	request.url = url;
	webhook_send(&request, NULL, response);
	check_response(response);
}

/* What comes of one reply. */
static void send_once(const struct reply *reply, long long timeout_ms, struct webhook_response *response)
{
	cleanup_server struct server server = {0};
	server_start(&server);
	server_script(&server, reply, 1);
	cleanup_free char *url = server_url(&server, "/hook");
	struct webhook_request request = sample;
	request.timeout_ms = timeout_ms;
	send_to(url, request, response);
}

static void assert_contains(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not hold \"%s\"", text, part);
}

static char *repeat(const char *text, size_t times)
{
	struct str result = {0};
	for (size_t i = 0; i < times; i++)
		str_append(&result, text);
	return str_steal(&result);
}

/* --- backoff --- */

static void given_more_failures_then_the_wait_doubles_up_to_an_hour(void **state)
{
	(void)state;
	assert_int_equal(webhook_backoff_ms(1, -1, 0), 500);
	long long before = 0;
	for (unsigned attempt = 1; attempt < 100; attempt++) {
		long long least = webhook_backoff_ms(attempt, -1, 0);
		long long most = webhook_backoff_ms(attempt, -1, 0.999999);
		long long full = attempt < 13 ? 1000LL << (attempt - 1) : 3600000;
		assert_int_equal(least, (full < 3600000 ? full : 3600000) / 2);
		assert_true(most >= least && most < 2 * least && most > 2 * least - 2 - least / 1000);
		assert_true(least >= before);
		before = least;
	}
	assert_true(webhook_backoff_ms(UINT32_MAX, -1, 0.5) <= 3600000);
	assert_int_equal(webhook_backoff_ms(0, -1, 0), 500);
}

static void given_a_random_number_then_the_wait_grows_with_it(void **state)
{
	(void)state;
	long long before = 0;
	for (int i = 0; i < 1000; i++) {
		long long wait = webhook_backoff_ms(5, -1, i / 1000.0);
		assert_true(wait >= before && wait >= 8000 && wait < 16000);
		before = wait;
	}
	assert_int_equal(webhook_backoff_ms(1, -1, -3), 500);
	assert_int_equal(webhook_backoff_ms(1, -1, 7), 1000);
	assert_int_equal(webhook_backoff_ms(1, -1, strtod("nan", NULL)), 500);
}

static void given_a_retry_after_then_it_is_a_floor(void **state)
{
	(void)state;
	assert_int_equal(webhook_backoff_ms(1, 86400000, 0.5), 86400000);
	assert_int_equal(webhook_backoff_ms(1, 0, 0), 500);
	assert_int_equal(webhook_backoff_ms(10, 1000, 0), 256000);
}

/* --- sending --- */

static void given_200_then_it_is_delivered_with_all_headers(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 200, NULL, "ok"};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = server_url(&server, "/hook?a=b#fragment");
	send_to(url, sample, &response);
	assert_true(response.delivered);
	assert_false(response.permanent);
	assert_int_equal(response.status, 200);
	assert_int_equal(response.retry_after_ms, -1);

	cleanup_free char *signature = webhook_sign(sample.secret, sample.body);
	cleanup_free char *signature_line = text_format("\r\nX-Bisectd-Signature-256: sha256=%s\r\n", signature);
	cleanup_free char *length_line = text_format("\r\nContent-Length: %zu\r\n", strlen(sample.body));
	const char *request = server.request;
	assert_true(text_starts_with(request, "POST /hook?a=b HTTP/1.1\r\n"));
	assert_contains(request, "\r\nContent-Type: application/json\r\n");
	assert_contains(request, "\r\nUser-Agent: bisectd/" BISECTD_VERSION "\r\n");
	assert_contains(request, "\r\nX-Bisectd-Event: first-bad\r\n");
	assert_contains(request, "\r\nIdempotency-Key: 0123-first-bad\r\n");
	assert_contains(request, "\r\nAuthorization: Bearer wrzlbrnft-token\r\n");
	assert_contains(request, signature_line);
	assert_contains(request, length_line);
	assert_null(strcasestr(request, "\r\nExpect:"));
	assert_true(text_ends_with(request, "\r\n\r\n{\"event\":\"first-bad\"}"));
}

static void given_no_secret_and_no_token_then_their_headers_are_not_sent(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 204, NULL, NULL};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = server_url(&server, "");
	struct webhook_request request = sample;
	request.secret = NULL;
	request.token = NULL;
	request.timeout_ms = 0; /* the default */
	send_to(url, request, &response);
	assert_true(response.delivered);
	assert_int_equal(response.status, 204);
	assert_null(strcasestr(server.request, "signature"));
	assert_null(strcasestr(server.request, "authorization"));
}

static void given_a_large_body_then_it_arrives_whole(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 202, NULL, NULL};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = server_url(&server, "/");
	cleanup_free char *body = repeat("0123456789", 20000);
	struct webhook_request request = sample;
	request.body = body;
	send_to(url, request, &response);
	assert_true(response.delivered);
	assert_true(text_ends_with(server.request, body));
}

static void given_each_status_then_it_is_told_whether_to_try_again(void **state)
{
	(void)state;
	static const struct {
		int status;
		bool delivered;
		bool permanent;
	} rows[] = {{200, true, false},  {201, true, false},  {299, true, false},  {400, false, true},
		    {401, false, true},  {403, false, true},  {404, false, true},  {408, false, false},
		    {410, false, true},  {413, false, true},  {422, false, true},  {425, false, false},
		    {429, false, false}, {499, false, true},  {500, false, false}, {502, false, false},
		    {503, false, false}, {504, false, false}, {599, false, false}, {600, false, false},
		    {300, false, true},  {304, false, true},  {305, false, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct reply reply = {REPLY_WHOLE, rows[i].status, NULL, NULL};
		cleanup_response struct webhook_response response = {0};
		send_once(&reply, 20000, &response);
		cleanup_free char *status = text_format("HTTP %d", rows[i].status);
		assert_int_equal(response.status, rows[i].status);
		assert_int_equal(response.delivered, rows[i].delivered);
		assert_int_equal(response.permanent, rows[i].permanent);
		if (!rows[i].delivered)
			assert_contains(response.reason, status);
	}
}

static void given_a_text_answer_then_its_first_line_is_in_the_reason(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 400, "Content-Type: text/plain\r\n",
					   "\r\n invalid\x1b[31m pay\tload\x7f \nsecond"};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	assert_contains(response.reason, "answered HTTP 400:  invalid[31m pay load");
	assert_null(strstr(response.reason, "second"));
}

static void given_a_json_answer_then_its_message_is_in_the_reason(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 404, "Content-Type: application/json; charset=utf-8\r\n",
					   "{\n  \"message\": \"Not Found\\nx\",\n  \"documentation_url\": \"u\"\n}"};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	assert_true(text_ends_with(response.reason, "answered HTTP 404: Not Found"));
}

static void given_a_binary_answer_then_only_the_status_is_in_the_reason(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 500, "Content-Type: image/png\r\n", "PNG"};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	assert_true(text_ends_with(response.reason, "answered HTTP 500"));
}

static void given_a_long_line_then_at_most_200_bytes_are_quoted(void **state)
{
	(void)state;
	cleanup_free char *long_line = repeat("\u2713", 500);
	const struct reply reply = {REPLY_WHOLE, 500, NULL, long_line};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	const char *line = strstr(response.reason, "500: ") + strlen("500: ");
	assert_true(strlen(line) <= 200 && strlen(line) > 190);
	assert_true(text_ends_with(line, "\u2713..."));
}

static void given_a_receiver_that_repeats_our_secrets_then_they_are_hidden(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 401, NULL,
					   "POST /services/T0/wrzlbrnft-in-the-path?key=wrzlbrnft-query by "
					   "me:wrzlbrnft-pass with wrzlbrnft-token, wrzlbrnft-hmac-key, "
					   "wrzlbrnft-in-the-path"};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = text_format(
		"http://me:wrzlbrnft-pass@127.0.0.1:%d/services/T0/wrzlbrnft-in-the-path?key=wrzlbrnft-query",
		server.port);
	struct webhook_request request = sample;
	send_to(url, request, &response);
	assert_int_equal(response.status, 401);
	assert_contains(response.reason, "http://***@127.0.0.1:");
	assert_contains(response.reason, "HTTP 401: POST ***");
	assert_null(strstr(response.reason, "/services/T0"));
}

static void given_retry_after_then_it_is_read_and_capped(void **state)
{
	(void)state;
	static const struct {
		const char *headers;
		long long least;
		long long most;
	} rows[] = {
		{"Retry-After: 7\r\n", 7000, 7000},
		{"retry-after:\t 120 \r\n", 120000, 120000},
		{"Retry-After: 0\r\n", 0, 0},
		{"Retry-After: 99999999999999999999999999\r\n", 86400000, 86400000},
		{"Retry-After: Fri, 31 Dec 2199 23:59:59 GMT\r\n", 86400000, 86400000},
		{"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 0, 0},
		{"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 0, 0},
		{"Retry-After: -5\r\n", -1, -1},
		{"Retry-After: 1.5\r\n", -1, -1},
		{"Retry-After: soon\r\n", -1, -1},
		{"Retry-After:\r\n", -1, -1},
		{"Retry-After: 5\r\nRetry-After: 9\r\n", 9000, 9000},
		{"X-Retry-After: 5\r\n", -1, -1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct reply reply = {REPLY_WHOLE, 429, rows[i].headers, NULL};
		cleanup_response struct webhook_response response = {0};
		send_once(&reply, 20000, &response);
		assert_false(response.permanent);
		assert_in_range(response.retry_after_ms + 1, rows[i].least + 1, rows[i].most + 1);
	}
}

static void given_retry_after_as_a_date_then_it_counts_from_now(void **state)
{
	(void)state;
	time_t then = time(NULL) + 600;
	struct tm broken_down;
	char header[100];
	gmtime_r(&then, &broken_down);
	strftime(header, sizeof header, "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", &broken_down);
	const struct reply reply = {REPLY_WHOLE, 503, header, NULL};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	assert_in_range(response.retry_after_ms, 570000, 600000);
}

static void given_githubs_rate_limits_then_403_is_not_the_end(void **state)
{
	(void)state;
	cleanup_free char *used_up =
		text_format("X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: %lld\r\n", (long long)time(NULL) + 600);
	const struct {
		const char *headers;
		bool permanent;
	} rows[] = {{used_up, false},
		    {"Retry-After: 60\r\n", false},
		    {"X-RateLimit-Remaining: 1\r\nX-RateLimit-Reset: 99999999999\r\n", true},
		    {"X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: x\r\n", true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct reply reply = {REPLY_WHOLE, 403, rows[i].headers, NULL};
		cleanup_response struct webhook_response response = {0};
		send_once(&reply, 20000, &response);
		assert_int_equal(response.permanent, rows[i].permanent);
		assert_int_equal(response.retry_after_ms >= 0, !rows[i].permanent);
	}
}

static void given_a_receiver_that_stalls_then_the_time_limit_holds(void **state)
{
	(void)state;
	static const enum reply_kind kinds[] = {REPLY_STALL, REPLY_DRIP};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct reply reply = {kinds[i], 200, NULL, NULL};
		cleanup_response struct webhook_response response = {0};
		long long start = os_monotonic_ms();
		send_once(&reply, 300, &response);
		long long took = os_monotonic_ms() - start;
		assert_true(took >= 290 && took < 10000);
		assert_false(response.delivered);
		assert_false(response.permanent);
		assert_int_equal(response.status, 0);
		assert_true(text_ends_with(response.reason, ": no answer within 300 ms"));
	}
}

static void given_a_body_that_stalls_then_the_status_still_counts(void **state)
{
	(void)state;
	static const int statuses[] = {200, 410};
	for (size_t i = 0; i < 2; i++) {
		const struct reply reply = {REPLY_STALL_BODY, statuses[i], NULL, NULL};
		cleanup_response struct webhook_response response = {0};
		send_once(&reply, 300, &response);
		assert_int_equal(response.status, statuses[i]);
		assert_int_equal(response.delivered, i == 0);
		assert_int_equal(response.permanent, i == 1);
	}
}

static void given_an_endless_body_then_64_kib_are_read(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_ENDLESS_BODY, 500, NULL, NULL};
	cleanup_response struct webhook_response response = {0};
	long long start = os_monotonic_ms();
	send_once(&reply, 20000, &response);
	assert_true(os_monotonic_ms() - start < 15000);
	assert_int_equal(response.status, 500);
	assert_contains(response.reason, "HTTP 500: X-Filler: 0123");
}

static void given_an_endless_header_then_it_is_given_up(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_ENDLESS_HEADER, 200, NULL, NULL};
	cleanup_response struct webhook_response response = {0};
	long long start = os_monotonic_ms();
	send_once(&reply, 20000, &response);
	assert_true(os_monotonic_ms() - start < 15000);
	assert_false(response.delivered);
	assert_false(response.permanent);
	assert_contains(response.reason, "no end within 64 KiB");
}

static void given_a_connection_that_ends_early_then_it_is_tried_again(void **state)
{
	(void)state;
	static const struct reply replies[] = {
		{REPLY_CLOSE, 0, NULL, NULL},
		{REPLY_RAW, 0, NULL, "HTTP/1.1 20"},
		{REPLY_RAW, 0, NULL, "HTTP/1.1 200 OK\r\nContent-Le"},
	};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		cleanup_response struct webhook_response response = {0};
		send_once(&replies[i], 20000, &response);
		assert_false(response.delivered);
		assert_false(response.permanent);
		assert_int_equal(response.status, 0);
	}
}

static void given_garbage_then_it_is_no_answer(void **state)
{
	(void)state;
	static const struct reply replies[] = {
		{REPLY_RAW, 0, NULL, "\x01\x02\xff\xfe garbage \x1b]0;title\x07\r\n\r\n"},
		{REPLY_RAW, 0, NULL, "SSH-2.0-OpenSSH_9.2p1\r\n"},
		{REPLY_RAW, 0, NULL, "HTTP/9.9 abc\r\n\r\n"},
		{REPLY_RAW, 0, NULL, "200 OK\r\n\r\n"},
		{REPLY_RAW, 0, NULL, "HTTP/1.1 100 Continue\r\n\r\n"},
	};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		cleanup_response struct webhook_response response = {0};
		send_once(&replies[i], 20000, &response);
		assert_false(response.delivered);
		assert_false(response.permanent);
		assert_int_equal(response.status, 0);
	}
}

static void given_an_interim_answer_then_the_final_one_counts(void **state)
{
	(void)state;
	static const struct reply reply = {
		REPLY_RAW, 0, NULL,
		"HTTP/1.1 103 Early Hints\r\nRetry-After: 5\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"};
	cleanup_response struct webhook_response response = {0};
	send_once(&reply, 20000, &response);
	assert_int_equal(response.status, 503);
	assert_int_equal(response.retry_after_ms, -1);
}

static void given_nobody_listens_then_it_is_tried_again(void **state)
{
	(void)state;
	struct server server = {0};
	server_start(&server);
	cleanup_free char *url = server_url(&server, "/wrzlbrnft-hidden-path");
	server_stop(&server);
	cleanup_response struct webhook_response response = {0};
	send_to(url, sample, &response);
	assert_false(response.permanent);
	assert_int_equal(response.status, 0);
	assert_contains(response.reason, "connect");
}

static void given_an_unfit_url_then_it_is_refused_for_good(void **state)
{
	(void)state;
	static const char *const urls[] = {"",
					   "nonsense",
					   "//host/path",
					   "ftp://127.0.0.1/wrzlbrnft",
					   "file:///etc/passwd",
					   "gopher://127.0.0.1:1/",
					   "http://",
					   "http://127.0.0.1:99999/",
					   "http://user:wrzlbrnft@ho st/",
					   "http://127.0.0.1/\r\nX: y"};
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		cleanup_response struct webhook_response response = {0};
		send_to(urls[i], sample, &response);
		assert_true(response.permanent);
		assert_int_equal(response.status, 0);
		assert_contains(response.reason, "not sent");
	}
}

static void given_a_line_end_in_a_token_then_nothing_is_sent(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 200, NULL, NULL};
	cleanup_server struct server server = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = server_url(&server, "/");
	struct webhook_request requests[3] = {sample, sample, sample};
	requests[0].token = "wrzlbrnft\r\nX-Evil: 1";
	requests[1].idempotency_key = "a\nb";
	requests[2].event = "a\x01";
	for (size_t i = 0; i < 3; i++) {
		cleanup_response struct webhook_response response = {0};
		send_to(url, requests[i], &response);
		assert_true(response.permanent);
		assert_contains(response.reason, "control character");
	}
	assert_int_equal(server_requests(&server), 0);
}

static void given_credentials_in_the_url_then_they_are_sent_and_masked(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 500, NULL, NULL};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = text_format("http://me:wrzlbrnft@127.0.0.1:%d/", server.port);
	struct webhook_request request = sample;
	request.token = NULL;
	send_to(url, request, &response);
	assert_contains(server.request, "\r\nAuthorization: Basic bWU6d3J6bGJybmZ0\r\n");
	cleanup_free char *start = text_format("http://***@127.0.0.1:%d: answered HTTP 500", server.port);
	assert_string_equal(response.reason, start);
}

static void given_a_proxy_in_the_environment_then_it_is_used(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 200, NULL, NULL};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *proxy = server_url(&server, "");
	setenv("http_proxy", proxy, 1);
	send_to("http://receiver.invalid/hook", sample, &response);
	setenv("http_proxy", "nonsense://u:wrzlbrnft@127.0.0.1:1", 1);
	cleanup_response struct webhook_response refused = {0};
	send_to("http://receiver.invalid/hook", sample, &refused);
	unsetenv("http_proxy");
	assert_true(response.delivered);
	assert_true(text_starts_with(server.request, "POST http://receiver.invalid/hook HTTP/1.1\r\n"));
	assert_false(refused.delivered);
}

/* --- redirects --- */

static void given_a_redirect_within_the_host_then_method_and_body_go_along(void **state)
{
	(void)state;
	static const int statuses[] = {307, 308};
	static const char *const before[] = {"/", "", "//127.0.0.1:", "HTTP://127.0.0.1:"};
	for (size_t i = 0; i < 4; i++) {
		cleanup_server struct server server = {0};
		cleanup_response struct webhook_response response = {0};
		server_start(&server);
		cleanup_free char *port = i < 2 ? text_copy("") : text_format("%d/", server.port);
		cleanup_free char *header = text_format("Location: %s%sother?x=1\r\n", before[i], port);
		const struct reply replies[] = {{REPLY_WHOLE, statuses[i % 2], header, "moved"},
						{REPLY_WHOLE, 200, NULL, "ok"}};
		server_script(&server, replies, 2);
		cleanup_free char *url = server_url(&server, "/first");
		send_to(url, sample, &response);
		assert_true(response.delivered);
		assert_int_equal(response.status, 200);
		assert_int_equal(server_requests(&server), 2);
		assert_true(text_starts_with(server.request, "POST /other?x=1 HTTP/1.1\r\n"));
		assert_contains(server.request, "Authorization: Bearer");
		assert_true(text_ends_with(server.request, sample.body));
	}
}

static void given_a_redirect_elsewhere_then_nothing_leaves(void **state)
{
	(void)state;
	cleanup_server struct server other = {0};
	static const struct reply ok = {REPLY_WHOLE, 200, NULL, NULL};
	server_start(&other);
	server_script(&other, &ok, 1);
	for (size_t i = 0; i < 7; i++) {
		cleanup_server struct server server = {0};
		cleanup_response struct webhook_response response = {0};
		server_start(&server);
		const char *host = i == 1 ? "localhost" : i == 5 ? "127.1.1.1" : "127.0.0.1";
		const char *scheme = i == 2 ? "https" : i == 3 ? "ftp" : "http";
		int port = i == 0 || i == 4 ? other.port : server.port;
		cleanup_free char *location =
			i == 6 ? text_format("Location: http://127.0.0.1:%d@127.0.0.1:%d/\r\n", server.port, other.port)
			       : text_format("Location: %s://%s:%d/wrzlbrnft\r\n", scheme, host, port);
		const struct reply replies[] = {{REPLY_WHOLE, i == 4 ? 308 : 307, location, "moved"}, ok};
		server_script(&server, replies, 2);
		cleanup_free char *url = server_url(&server, "/");
		send_to(url, sample, &response);
		assert_false(response.delivered);
		assert_true(response.permanent);
		assert_int_equal(response.status, i == 4 ? 308 : 307);
		assert_int_equal(server_requests(&server), 1);
		assert_contains(response.reason, "same scheme, host and port");
	}
	assert_int_equal(server_requests(&other), 0);
}

static void given_a_second_hop_elsewhere_then_it_is_refused_too(void **state)
{
	(void)state;
	cleanup_server struct server server = {0};
	cleanup_server struct server other = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_start(&other);
	cleanup_free char *elsewhere = text_format("Location: http://127.0.0.1:%d/\r\n", other.port);
	const struct reply replies[] = {{REPLY_WHOLE, 307, "Location: /b\r\n", NULL},
					{REPLY_WHOLE, 307, elsewhere, NULL}};
	server_script(&server, replies, 2);
	cleanup_free char *url = server_url(&server, "/a");
	send_to(url, sample, &response);
	assert_true(response.permanent);
	assert_int_equal(server_requests(&server), 2);
	assert_int_equal(server_requests(&other), 0);
}

static void given_a_redirect_that_changes_the_method_then_it_is_refused(void **state)
{
	(void)state;
	static const int statuses[] = {301, 302, 303, 307};
	for (size_t i = 0; i < 4; i++) {
		const struct reply reply = {REPLY_WHOLE, statuses[i], i < 3 ? "Location: /b\r\n" : NULL, NULL};
		cleanup_response struct webhook_response response = {0};
		send_once(&reply, 20000, &response);
		assert_false(response.delivered);
		assert_true(response.permanent);
		assert_int_equal(response.status, statuses[i]);
	}
}

static void given_a_redirect_loop_then_three_are_followed(void **state)
{
	(void)state;
	static const struct reply reply = {REPLY_WHOLE, 307, "Location: /again\r\n", NULL};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, &reply, 1);
	cleanup_free char *url = server_url(&server, "/");
	send_to(url, sample, &response);
	assert_false(response.delivered);
	assert_false(response.permanent);
	assert_int_equal(server_requests(&server), 4);
	assert_contains(response.reason, "more than 3 redirects");
}

static void given_a_redirect_to_a_receiver_that_stalls_then_the_time_is_for_both(void **state)
{
	(void)state;
	static const struct reply replies[] = {{REPLY_WHOLE, 307, "Location: /b\r\n", NULL},
					       {REPLY_STALL, 0, NULL, NULL}};
	cleanup_server struct server server = {0};
	cleanup_response struct webhook_response response = {0};
	server_start(&server);
	server_script(&server, replies, 2);
	cleanup_free char *url = server_url(&server, "/");
	struct webhook_request request = sample;
	request.timeout_ms = 300;
	long long start = os_monotonic_ms();
	send_to(url, request, &response);
	assert_true(os_monotonic_ms() - start < 10000);
	assert_int_equal(response.status, 0);
	assert_contains(response.reason, "no answer within 300 ms");
}

static void given_pairs_of_urls_then_only_one_origin_is_followed(void **state)
{
	(void)state;
	static const struct {
		const char *url;
		const char *location;
		const char *target; /* NULL: refused */
	} rows[] = {
		{"http://h/a/b", "c", "http://h/a/c"},
		{"http://h/a/b?q", "?r", "http://h/a/b?r"},
		{"http://h/a#f", "/c#g", "http://h/c"},
		{"http://h/a", "http://H:80/c", "http://h/c"},
		{"http://h:80/a", "http://h/c", "http://h:80/c"},
		{"https://h/a", "https://h:443/c", "https://h/c"},
		{"https://h:443/a", "//h/c", "https://h:443/c"},
		{"http://u:p@h/a", "http://h/c", "http://u:p@h/c"},
		{"http://u:p@h/a", "http://x:y@h/c", "http://u:p@h/c"},
		{"http://[::1]:8/a", "http://[0:0::1]:8/c", "http://[::1]:8/c"},
		{"http://[::1]:8/a", "http://[::1]:8/c", "http://[::1]:8/c"},
		{"http://h/a", "https://h/c", NULL},
		{"https://h/a", "http://h/c", NULL},
		{"https://h/a", "https://h:80/c", NULL},
		{"http://h/a", "http://h:443/c", NULL},
		{"http://h/a", "http://h.evil/c", NULL},
		{"http://h/a", "http://h@evil/c", NULL},
		{"http://h/a", "http://evil#@h/", NULL},
		{"http://h/a", "http://evil\\@h/", "http://h/"}, /* browsers would go to evil */
		{"http://h/a", "//evil/c", NULL},
		{"http://h/a", "file:///etc/passwd", NULL},
		{"http://h/a", "javascript:alert(1)", NULL},
		{"nonsense", "/c", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_free char *target = webhook_redirect_target(rows[i].url, rows[i].location);
		if (!text_equal(target, rows[i].target))
			fail_msg("%s -> %s: %s", rows[i].url, rows[i].location, target != NULL ? target : "refused");
	}
}

/* --- other programs --- */

struct program {
	pid_t child;
	int input;
	int output;
	int port;
};

static void program_stop(struct program *program)
{
	if (program->child <= 0)
		return;
	fd_close(&program->input);
	fd_close(&program->output);
	kill(program->child, SIGKILL);
	waitpid(program->child, NULL, 0);
}

#define cleanup_program __attribute__((cleanup(program_stop)))

/* Start a server and read its port from the first line of its output that starts with `ready`: what stands after the
 * last colon. */
static void program_start(struct program *program, const char *const *words, const char *input_text, const char *ready)
{
	cleanup_strlist struct strlist command = {0};
	for (; *words != NULL; words++)
		strlist_add(&command, *words);
	cleanup_strmap struct strmap environment = {0};
	child_own_environment(&environment);
	int input[2];
	int output[2];
	assert_int_equal(pipe(input), 0);
	assert_int_equal(pipe(output), 0);
	cleanup_error struct error error = {0};
	struct child_setup setup = {.command = &command,
				    .environment = &environment,
				    .input = input[0],
				    .output = output[1],
				    .errors = -1,
				    .extra = -1};
	program->child = child_start(&setup, &error);
	close(input[0]);
	close(output[1]);
	program->input = input[1];
	program->output = output[0];
	assert_true(program->child > 0);
	assert_int_equal(write(program->input, input_text, strlen(input_text)), (ssize_t)strlen(input_text));
	cleanup_str struct str line = {0};
	for (char byte; read(program->output, &byte, 1) == 1;) {
		if (byte != '\n')
			str_append_bytes(&line, &byte, 1);
		else if (text_starts_with(str_text(&line), ready))
			break;
		else
			str_clear(&line);
	}
	const char *colon = strrchr(str_text(&line), ':');
	program->port = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
	assert_true(program->port > 0);
}

/* Does it run, and end well? */
static bool program_succeeds(const char *const *words)
{
	cleanup_strlist struct strlist command = {0};
	for (; *words != NULL; words++)
		strlist_add(&command, *words);
	cleanup_strmap struct strmap environment = {0};
	child_own_environment(&environment);
	cleanup_child_output struct child_output output = {0};
	cleanup_error struct error error = {0};
	return child_capture(&command, &environment, NULL, 30000, 65536, &output, &error) == 0 && output.status == 0;
}

static void given_a_self_signed_certificate_then_only_its_authority_file_admits_it(void **state)
{
	cleanup_free char *key = path_join(*state, "key.pem");
	cleanup_free char *certificate = path_join(*state, "certificate.pem");
	cleanup_free char *missing = path_join(*state, "missing.pem");
	const char *const certify[] = {"openssl",
				       "req",
				       "-x509",
				       "-newkey",
				       "ec",
				       "-pkeyopt",
				       "ec_paramgen_curve:prime256v1",
				       "-nodes",
				       "-days",
				       "2",
				       "-subj",
				       "/CN=localhost",
				       "-addext",
				       "subjectAltName=DNS:localhost",
				       "-keyout",
				       key,
				       "-out",
				       certificate,
				       NULL};
	const char *const serve[] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "1",
				     "-key",    key,        "-cert",   certificate,   NULL};
	if (!program_succeeds(certify)) {
		print_message("skipped: TLS is not tested, because there is no openssl program\n");
		skip();
	}
	const struct {
		const char *host;
		const char *ca_file;
		bool delivered;
	} rows[] = {{"localhost", NULL, false},
		    {"localhost", certificate, true},
		    {"127.0.0.1", certificate, false}, /* trusted, but not by this name */
		    {"localhost", missing, false}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_program struct program server = {0};
		program_start(&server, serve, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
			      "ACCEPT ");
		cleanup_free char *url = text_format("https://%s:%d/", rows[i].host, server.port);
		cleanup_response struct webhook_response response = {0};
		struct webhook_request request = sample;
		request.url = url;
		webhook_send(&request, rows[i].ca_file, &response);
		check_response(&response);
		assert_int_equal(response.delivered, rows[i].delivered);
		assert_false(response.permanent);
		if (i == 0 || i == 2)
			assert_contains(response.reason, "certificate");
	}
}

static void given_the_shipped_receiver_then_it_knows_our_signature_and_key(void **state)
{
	static const char receiver[] = "contrib/webhook-receivers/receiver.py";
	cleanup_free char *secret = path_join(*state, "secret");
	cleanup_free char *log = path_join(*state, "log");
	cleanup_error struct error error = {0};
	assert_int_equal(fs_write_file(secret, sample.secret, strlen(sample.secret), &error), 0);
	const char *const compile[] = {"python3", receiver, "--help", NULL};
	const char *const serve[] = {"python3", receiver,        "--port", "0",     "--fail", "1", "--retry-after",
				     "3",       "--secret-file", secret,   "--log", log,      NULL};
	if (!program_succeeds(compile)) {
		print_message("skipped: no python3, or not started in the project's folder\n");
		skip();
	}
	cleanup_program struct program server = {0};
	program_start(&server, serve, "", "listening on ");
	cleanup_free char *url = text_format("http://127.0.0.1:%d/hook", server.port);
	struct webhook_request forged = sample;
	forged.secret = "another";
	struct webhook_request unsigned_one = sample;
	unsigned_one.secret = NULL;
	const struct {
		const struct webhook_request *request;
		long status;
		long long retry_after_ms;
	} rows[] = {{&forged, 401, 3000},
		    {&unsigned_one, 401, 3000},
		    {&sample, 503, 3000},
		    {&sample, 200, -1},
		    {&sample, 200, -1}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_response struct webhook_response response = {0};
		send_to(url, *rows[i].request, &response);
		assert_int_equal(response.status, rows[i].status);
		assert_int_equal(response.retry_after_ms, rows[i].retry_after_ms);
	}
	cleanup_str struct str lines = {0};
	assert_int_equal(fs_read_file(log, 0, &lines, &error), 0);
	assert_contains(lines.data, "\"signature\": \"invalid\"");
	assert_contains(lines.data, "\"signature\": \"missing\"");
	assert_contains(lines.data, "\"signature\": \"valid\", \"repeated\": true, \"status\": 200");
}

static void given_the_library_is_started_then_a_broken_pipe_does_not_kill(void **state)
{
	(void)state;
	struct sigaction action = {0};
	assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
	assert_true(action.sa_handler == SIG_IGN);
}

/* --- main --- */

static int make_folder(void **state)
{
	char *folder = text_copy("/tmp/bisectd-test-webhook-XXXXXX");
	*state = mkdtemp(folder);
	return *state != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	cleanup_error struct error error = {0};
	int result = fs_remove_tree(*state, &error);
	free(*state);
	return result;
}

static int start_library(void **state)
{
	static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
					      "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
	(void)state;
	for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
		unsetenv(proxies[i]);
	cleanup_error struct error error = {0};
	return webhook_library_start(&error);
}

static int stop_library(void **state)
{
	(void)state;
	webhook_library_stop();
	return 0;
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_more_failures_then_the_wait_doubles_up_to_an_hour),
		cmocka_unit_test(given_a_random_number_then_the_wait_grows_with_it),
		cmocka_unit_test(given_a_retry_after_then_it_is_a_floor),
		cmocka_unit_test(given_200_then_it_is_delivered_with_all_headers),
		cmocka_unit_test(given_no_secret_and_no_token_then_their_headers_are_not_sent),
		cmocka_unit_test(given_a_large_body_then_it_arrives_whole),
		cmocka_unit_test(given_each_status_then_it_is_told_whether_to_try_again),
		cmocka_unit_test(given_a_text_answer_then_its_first_line_is_in_the_reason),
		cmocka_unit_test(given_a_json_answer_then_its_message_is_in_the_reason),
		cmocka_unit_test(given_a_binary_answer_then_only_the_status_is_in_the_reason),
		cmocka_unit_test(given_a_long_line_then_at_most_200_bytes_are_quoted),
		cmocka_unit_test(given_a_receiver_that_repeats_our_secrets_then_they_are_hidden),
		cmocka_unit_test(given_retry_after_then_it_is_read_and_capped),
		cmocka_unit_test(given_retry_after_as_a_date_then_it_counts_from_now),
		cmocka_unit_test(given_githubs_rate_limits_then_403_is_not_the_end),
		cmocka_unit_test(given_a_receiver_that_stalls_then_the_time_limit_holds),
		cmocka_unit_test(given_a_body_that_stalls_then_the_status_still_counts),
		cmocka_unit_test(given_an_endless_body_then_64_kib_are_read),
		cmocka_unit_test(given_an_endless_header_then_it_is_given_up),
		cmocka_unit_test(given_a_connection_that_ends_early_then_it_is_tried_again),
		cmocka_unit_test(given_garbage_then_it_is_no_answer),
		cmocka_unit_test(given_an_interim_answer_then_the_final_one_counts),
		cmocka_unit_test(given_nobody_listens_then_it_is_tried_again),
		cmocka_unit_test(given_an_unfit_url_then_it_is_refused_for_good),
		cmocka_unit_test(given_a_line_end_in_a_token_then_nothing_is_sent),
		cmocka_unit_test(given_credentials_in_the_url_then_they_are_sent_and_masked),
		cmocka_unit_test(given_a_proxy_in_the_environment_then_it_is_used),
		cmocka_unit_test(given_a_redirect_within_the_host_then_method_and_body_go_along),
		cmocka_unit_test(given_a_redirect_elsewhere_then_nothing_leaves),
		cmocka_unit_test(given_a_second_hop_elsewhere_then_it_is_refused_too),
		cmocka_unit_test(given_a_redirect_that_changes_the_method_then_it_is_refused),
		cmocka_unit_test(given_a_redirect_loop_then_three_are_followed),
		cmocka_unit_test(given_a_redirect_to_a_receiver_that_stalls_then_the_time_is_for_both),
		cmocka_unit_test(given_pairs_of_urls_then_only_one_origin_is_followed),
		in_folder(given_a_self_signed_certificate_then_only_its_authority_file_admits_it),
		in_folder(given_the_shipped_receiver_then_it_knows_our_signature_and_key),
		cmocka_unit_test(given_the_library_is_started_then_a_broken_pipe_does_not_kill),
	};
	return cmocka_run_group_tests_name("webhook", tests, start_library, stop_library);
}
