/*
 * Notify: empties the outbox.  One delivery at a time for each webhook, so that a hung one does not stop the others.
 *
 * What is due is sent on a thread of the loop's pool and the answer recorded; a failure is tried again later with growing
 * pauses until it is given up, which is said and recorded.  A delivery that was under way when bisectd was killed is sent
 * again, with the same Idempotency-Key.
 */
#ifndef BISECTD_DAEMON_NOTIFY_H
#define BISECTD_DAEMON_NOTIFY_H

#include <stdbool.h>

#include "config.h"
#include "loop.h"
#include "store.h"

struct notify;

/* `config` must outlive it.  Starts with what is pending already. */
struct notify *notify_open(struct loop *loop, struct store *store, const struct config *config, long long investigation_id);
/* There may be something new in the outbox. */
void notify_wake(struct notify *notify);
/* Is anything pending, under way or waiting for its next try? */
bool notify_has_pending(const struct notify *notify);
/* Called on the loop each time the last pending delivery is done. */
void notify_when_empty(struct notify *notify, loop_callback *callback, void *context);
/* No new sending; what is under way is awaited by loop_close (bounded by the time limit of a request), and then
 * recorded nowhere. */
void notify_close(struct notify *notify);

#endif
