/*
 * A real HTTP server for tests: one thread of the test's own process on the loopback, on a port that the system
 * chooses.  It answers each request with the next reply of a script (the last one again and again) and keeps what it
 * was asked.
 *
 * Included once by a test, after cmocka.h.
 */
#ifndef BISECTD_TESTS_HTTP_SERVER_H
#define BISECTD_TESTS_HTTP_SERVER_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "str.h"

enum reply_kind {
	REPLY_WHOLE,
	REPLY_STALL,          /* nothing at all */
	REPLY_STALL_BODY,     /* a header, then nothing */
	REPLY_DRIP,           /* a header that never ends, byte by byte */
	REPLY_ENDLESS_HEADER, /* as fast as it can be taken */
	REPLY_ENDLESS_BODY,
	REPLY_CLOSE, /* the connection ends at once */
	REPLY_RAW    /* `body` is all that is sent */
};

struct reply {
	enum reply_kind kind;
	int status;
	const char *headers; /* whole lines, or NULL */
	const char *body;    /* or NULL */
};

struct server {
	int listener;
	int stop[2];
	int port;
	pthread_t thread;
	pthread_mutex_t lock;
	const struct reply *replies;
	size_t reply_count;
	size_t request_count;
	char *request; /* the last one, whole */
	size_t sent;   /* bytes of the last answer */
};

#define cleanup_server __attribute__((cleanup(server_stop)))

/* Waits for the connection or the test's end; false: the end. */
static bool server_wait(const struct server *server, int connection, short events, int timeout_ms)
{
	struct pollfd polled[] = {{.fd = connection, .events = events}, {.fd = server->stop[0], .events = POLLIN}};
	return poll(polled, 2, timeout_ms) >= 0 && polled[1].revents == 0;
}

static bool server_send(struct server *server, int connection, const char *bytes, size_t length)
{
	while (length > 0) {
		if (!server_wait(server, connection, POLLOUT, -1))
			return false;
		ssize_t sent = send(connection, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return false;
		bytes += sent;
		length -= (size_t)sent;
		server->sent += (size_t)sent;
	}
	return true;
}

static bool request_is_whole(const struct str *request)
{
	const char *end = request->length > 0 ? strstr(request->data, "\r\n\r\n") : NULL;
	if (end == NULL)
		return false;
	const char *length = strstr(request->data, "Content-Length: ");
	size_t body =
		length != NULL && length < end ? (size_t)strtoul(length + strlen("Content-Length: "), NULL, 10) : 0;
	return request->length >= (size_t)(end + 4 - request->data) + body;
}

static void server_read(struct server *server, int connection, struct str *request)
{
	char buffer[4096];
	while (!request_is_whole(request) && request->length < 1 << 20 && server_wait(server, connection, POLLIN, -1)) {
		ssize_t got = recv(connection, buffer, sizeof buffer, 0);
		if (got <= 0)
			return;
		str_append_bytes(request, buffer, (size_t)got);
	}
}

/* Until the client goes or the test ends. */
static void server_stall(struct server *server, int connection)
{
	char byte;
	while (server_wait(server, connection, POLLIN, -1) && recv(connection, &byte, 1, 0) > 0)
		;
}

static void server_answer(struct server *server, int connection, const struct reply *reply)
{
	size_t body_length = reply->body != NULL ? strlen(reply->body) : 0;
	cleanup_free char *head =
		reply->kind == REPLY_WHOLE
			? text_format("HTTP/1.1 %d Some Words\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n",
				      reply->status, body_length, reply->headers != NULL ? reply->headers : "")
			: text_format("HTTP/1.1 %d Some Words\r\n%s\r\n", reply->status,
				      reply->headers != NULL ? reply->headers : "");
	static const char filler[] = "X-Filler: 0123456789012345678901234567890123456789012345678901234567890\r\n";
	switch (reply->kind) {
	case REPLY_WHOLE:
		if (server_send(server, connection, head, strlen(head)) && body_length > 0)
			server_send(server, connection, reply->body, body_length);
		break;
	case REPLY_STALL:
		server_stall(server, connection);
		break;
	case REPLY_STALL_BODY:
		server_send(server, connection, head, strlen(head));
		server_stall(server, connection);
		break;
	case REPLY_DRIP:
		for (const char *drop = head; server_send(server, connection, *drop == '\r' ? "x" : drop, 1);) {
			drop += *drop != '\r';
			if (!server_wait(server, connection, 0, 20))
				break;
		}
		break;
	case REPLY_ENDLESS_HEADER:
		server_send(server, connection, head, strlen(head) - 2);
		while (server_send(server, connection, filler, strlen(filler)))
			;
		break;
	case REPLY_ENDLESS_BODY:
		server_send(server, connection, head, strlen(head));
		while (server_send(server, connection, filler, strlen(filler)))
			;
		break;
	case REPLY_RAW:
		server_send(server, connection, reply->body, body_length);
		break;
	case REPLY_CLOSE:
		break;
	}
}

static void *server_run(void *context)
{
	struct server *server = context;
	while (server_wait(server, server->listener, POLLIN, -1)) {
		int connection = accept(server->listener, NULL, NULL);
		if (connection < 0)
			continue;
		cleanup_str struct str request = {0};
		server_read(server, connection, &request);
		pthread_mutex_lock(&server->lock);
		size_t at =
			server->request_count < server->reply_count ? server->request_count : server->reply_count - 1;
		struct reply reply =
			server->reply_count > 0 ? server->replies[at] : (struct reply){.kind = REPLY_CLOSE};
		server->request_count++;
		server->sent = 0;
		free(server->request);
		server->request = str_steal(&request);
		pthread_mutex_unlock(&server->lock);
		server_answer(server, connection, &reply);
		close(connection);
	}
	return NULL;
}

static void server_start(struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(server->listener, (const struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(server->listener, 8), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &length), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(pipe(server->stop), 0);
	assert_int_equal(pthread_mutex_init(&server->lock, NULL), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
}

static void server_stop(struct server *server)
{
	if (server->port == 0)
		return;
	close(server->stop[1]);
	pthread_join(server->thread, NULL);
	close(server->stop[0]);
	close(server->listener);
	pthread_mutex_destroy(&server->lock);
	free(server->request);
}

static void server_script(struct server *server, const struct reply *replies, size_t count)
{
	pthread_mutex_lock(&server->lock);
	server->replies = replies;
	server->reply_count = count;
	pthread_mutex_unlock(&server->lock);
}

static size_t server_requests(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	size_t count = server->request_count;
	pthread_mutex_unlock(&server->lock);
	return count;
}

static char *server_url(const struct server *server, const char *path)
{
	return text_format("http://127.0.0.1:%d%s", server->port, path);
}

#endif
