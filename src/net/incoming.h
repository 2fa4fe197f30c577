/* SPDX-License-Identifier: Apache-2.0 */
/* incoming: a request from its head to the workers' queue. The loop's thread calls it. */
#pragma once

#include "http/http.h"
#include "net/state.h"

extern const struct http_events net_events;
/* Goes on with an exchange that net_pause_next() returned. */
void net_incoming_resume(struct net_exchange *x);
/* Goes on with a `judging` exchange that its worker has given back. Drops one reference. */
void net_incoming_judged(struct net_exchange *x);
