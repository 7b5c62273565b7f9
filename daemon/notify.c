/* See notify.h. */
#include "notify.h"

#include <stdlib.h>

#include "log.h"
#include "webhook.h"

enum { REQUEST_TIMEOUT_MS = 30000, UNRECORDED_PAUSE_MS = 30000 };

struct channel {
	struct notify *notify;
	const struct config_webhook *webhook;
	struct loop_timer *timer;
	bool pending; /* something waits for its time, or is under way */
	/* under way */
	bool busy;
	struct store_delivery delivery;
	char *body;
	char *secret;
	char *token;
	struct webhook_response response;
};

struct notify {
	struct loop *loop;
	struct store *store;
	long long investigation_id;
	struct channel *channels;
	size_t count;
	size_t busy;
	bool closed;
	loop_callback *on_empty;
	void *context;
};

static void try_next(struct channel *channel);

static void free_notify(struct notify *notify)
{
	free(notify->channels);
	free(notify);
}

static void forget_request(struct channel *channel)
{
	store_delivery_clear(&channel->delivery);
	webhook_response_clear(&channel->response);
	free(channel->body);
	free(channel->secret);
	free(channel->token);
	channel->body = channel->secret = channel->token = NULL;
	channel->busy = false;
	channel->notify->busy--;
}

static int record(struct channel *channel, const char *state, long long next_at)
{
	cleanup_error struct error error = {0};
	if (store_record_delivery(channel->notify->store, channel->delivery.id, state, channel->response.status,
				  channel->response.reason, next_at, &error) == 0)
		return 0;
	log_error("cannot record a delivery to webhook %s: %s", channel->webhook->name, error_text(&error));
	return -1;
}

/* -1: the outbox does not know of it, and would have it sent again at once. */
static int judge_response(struct channel *channel)
{
	const struct webhook_response *response = &channel->response;
	const char *name = channel->webhook->name;
	long long now = store_now();
	long long wait = webhook_backoff_ms((unsigned)channel->delivery.attempts + 1, response->retry_after_ms, drand48());
	if (response->delivered) {
		log_info("webhook %s: delivered %s", name, channel->delivery.event);
		return record(channel, "delivered", now);
	}
	if (response->permanent || now + wait > channel->delivery.give_up_at) {
		log_warning("webhook %s: giving up on %s after %lld attempt%s: %s", name, channel->delivery.event,
			    channel->delivery.attempts + 1, channel->delivery.attempts == 0 ? "" : "s", response->reason);
		return record(channel, "given-up", now);
	}
	log_warning("webhook %s: %s; next try in %.1f s", name, response->reason, (double)wait / 1000);
	return record(channel, "pending", now + wait);
}

static void wake_channel(void *context);

static void request_done(void *context)
{
	struct channel *channel = context;
	struct notify *notify = channel->notify;
	bool recorded = notify->closed || judge_response(channel) == 0;
	forget_request(channel);
	if (!recorded)
		channel->timer = loop_timer_start(notify->loop, UNRECORDED_PAUSE_MS, wake_channel, channel);
	else if (!notify->closed)
		try_next(channel);
	else if (notify->busy == 0)
		free_notify(notify);
}

static void send_request(void *context)
{
	struct channel *channel = context;
	struct webhook_request request = {
		.url = channel->webhook->url,
		.event = channel->delivery.event,
		.idempotency_key = channel->delivery.idempotency_key,
		.body = channel->body,
		.secret = channel->secret,
		.token = channel->token,
		.timeout_ms = REQUEST_TIMEOUT_MS,
	};
	webhook_send(&request, NULL, &channel->response);
}

/* A secret that cannot be read is no reason to send without a signature: it counts as a failed attempt. */
static int make_request(struct channel *channel, struct error *error)
{
	const struct config_webhook *webhook = channel->webhook;
	json_error_t trouble;
	json_t *finding = json_loads(channel->delivery.body, 0, &trouble);
	if (finding == NULL)
		return error_set(error, "the stored finding is no JSON: %s", trouble.text);
	channel->body = webhook_body(webhook->format, finding);
	json_decref(finding);
	if (webhook_read_secret(webhook->secret_file, webhook->secret_env, &channel->secret, error) < 0)
		return error_wrap(error, "reading the secret");
	if (webhook_read_secret(webhook->token_file, webhook->token_env, &channel->token, error) < 0)
		return error_wrap(error, "reading the token");
	return 0;
}

static void wake_channel(void *context)
{
	struct channel *channel = context;
	channel->timer = NULL;
	try_next(channel);
}

static void tell_when_empty(struct notify *notify)
{
	if (!notify_has_pending(notify) && notify->on_empty != NULL)
		loop_defer(notify->loop, notify->on_empty, notify->context);
}

static void try_next(struct channel *channel)
{
	cleanup_error struct error error = {0};
	struct notify *notify = channel->notify;
	if (channel->busy)
		return;
	loop_timer_cancel(&channel->timer);
	channel->pending = false;
	if (store_next_delivery(notify->store, notify->investigation_id, channel->webhook->name, &channel->delivery, &error) < 0) {
		log_error("cannot read the outbox: %s", error_text(&error));
		return;
	}
	if (channel->delivery.id == 0) {
		tell_when_empty(notify);
		return;
	}
	channel->pending = true;
	long long wait = channel->delivery.next_at - store_now();
	if (wait > 0) {
		store_delivery_clear(&channel->delivery);
		channel->timer = loop_timer_start(notify->loop, wait, wake_channel, channel);
		return;
	}
	channel->busy = true;
	notify->busy++;
	channel->response = (struct webhook_response){.retry_after_ms = -1};
	if (make_request(channel, &error) == 0) {
		loop_work(notify->loop, send_request, request_done, channel);
		return;
	}
	channel->response.reason = text_copy(error_text(&error));
	loop_defer(notify->loop, request_done, channel);
}

static void give_up_removed(struct notify *notify)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist names = {0};
	for (size_t i = 0; i < notify->count; i++)
		strlist_add(&names, notify->channels[i].webhook->name);
	if (store_give_up_removed(notify->store, notify->investigation_id, &names, &error) < 0)
		log_error("cannot tidy the outbox: %s", error_text(&error));
}

struct notify *notify_open(struct loop *loop, struct store *store, const struct config *config, long long investigation_id)
{
	struct notify *notify = memory_new(1, sizeof *notify);
	*notify = (struct notify){.loop = loop,
				  .store = store,
				  .investigation_id = investigation_id,
				  .channels = memory_new(config->webhook_count, sizeof *notify->channels),
				  .count = config->webhook_count};
	for (size_t i = 0; i < notify->count; i++)
		notify->channels[i] = (struct channel){.notify = notify, .webhook = &config->webhooks[i]};
	give_up_removed(notify);
	notify_wake(notify);
	return notify;
}

void notify_wake(struct notify *notify)
{
	for (size_t i = 0; i < notify->count; i++)
		try_next(&notify->channels[i]);
}

bool notify_has_pending(const struct notify *notify)
{
	for (size_t i = 0; i < notify->count; i++)
		if (notify->channels[i].pending)
			return true;
	return false;
}

void notify_when_empty(struct notify *notify, loop_callback *callback, void *context)
{
	notify->on_empty = callback;
	notify->context = context;
}

void notify_close(struct notify *notify)
{
	if (notify == NULL)
		return;
	notify->closed = true;
	notify->on_empty = NULL;
	for (size_t i = 0; i < notify->count; i++)
		loop_timer_cancel(&notify->channels[i].timer);
	if (notify->busy == 0)
		free_notify(notify);
}
