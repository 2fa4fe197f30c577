/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: one request and its answer. The loop's thread calls it. */
#pragma once

#include "net/state.h"

/* Has one reference, the stream's. NULL: no memory. */
struct net_exchange *net_exchange_new(struct net_conn *c, struct http_stream *stream);
/* Sets how many bytes of server->memory the exchange takes now. */
void net_exchange_account(struct net_exchange *x, size_t bytes);
/* Hands x->answer to http. */
void net_exchange_answer(struct net_exchange *x);
/* Answers at once, without a handler. http_status 0: the status' own. */
void net_exchange_refuse(
	struct net_exchange *x, int http_status, enum status s, const struct err *e);
void net_exchange_refuse_busy(struct net_exchange *x);
/* To be called when the client has gone, or it is too late. True: no worker had begun. */
bool net_exchange_leave_queue(struct net_exchange *x);
/* Loop: hand the answer to http. Drops one reference. */
void net_exchange_deliver(struct net_exchange *x);
void net_exchange_unref(struct net_exchange *x);
/* Loop: refuses it, since its body is late or its deadline has passed. */
void net_exchange_refuse_late(struct net_exchange *x, int64_t now_ns);
/* Loop: refuses it, since it has waited too long for a worker. False: a worker has it by now. */
bool net_exchange_refuse_waiting(struct net_exchange *x);
