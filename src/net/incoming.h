/* SPDX-License-Identifier: Apache-2.0 */
/* incoming: a request from its head to the workers' queue. The loop's thread calls it. */
#pragma once

#include "http/http.h"
#include "net/state.h"

extern const struct http_events net_events;
/* One that net_pause_next() has let go on. */
void net_incoming_resume(struct net_exchange *x);
/* One that is `judging` comes back from its worker. Drops one reference. */
void net_incoming_judged(struct net_exchange *x);
