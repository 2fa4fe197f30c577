/* SPDX-License-Identifier: Apache-2.0 */
/* query_call: the frame around each query. */
#pragma once

#include "net/net.h"
#include "query/query.h"
#include "server/request/state.h"
#include "store/store.h"

/* call.c */

/* How long a request waits for a worker. A refused request loses its place in the queue, so this is
 * near the time that the page (90 s) and the command line (120 s) wait for an answer. A client that
 * leaves earlier takes its request along. */
#define SERVER_TURN_MAX_NS ((int64_t)60 * 1000000000)
/* How long a query that has a worker waits for memory. */
#define SERVER_MEMORY_TURN_MAX_NS ((int64_t)30 * 1000000000)
/* Around each query: it is counted and timed, and waits for memory as long as its client waits for
 * the answer, at most SERVER_MEMORY_TURN_MAX_NS. server_query_end() must always follow; while
 * server_query_again() is true, the answer is made anew. */
struct server_query {
	struct server *s;
	int64_t begun_ns;
	struct store_query query;
	struct query_engine engine; /* over it */
};
NODISCARD enum status server_query_begin(
	struct server *s, const struct net_request *r, struct server_query *out, struct err *e);
bool server_query_again(struct server_query *q, enum status status);
void server_query_end(struct server_query *q, enum status status);
/* A samples_cancel_fn whose ctx is a net_request: its client has closed the connection. */
bool server_client_gone(void *ctx);
