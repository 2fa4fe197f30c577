/* SPDX-License-Identifier: Apache-2.0 */
/* handler: from the whole request to its answer, and the threads that do it. */
#pragma once

#include "net/state.h"

/* Worker thread or loop. */
void net_handler_run(struct net_exchange *x);
/* net_workers_stop() must be called after a failure too. */
NODISCARD enum status net_workers_start(
	struct net_lane *l, struct net_server *s, uint32_t workers, struct err *e);
/* Requests in the queue are still handled. */
void net_workers_stop(struct net_lane *l);
/* A thread for the handler of a stream. False: there are too many. */
NODISCARD bool net_stream_start(struct net_exchange *x);
/* Waits for all handlers of streams to return; their streams are gone. */
void net_stream_join_all(struct net_server *s);
