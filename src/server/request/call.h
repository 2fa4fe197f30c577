/* SPDX-License-Identifier: Apache-2.0 */
/* The frame around each call of the query APIs that speak protobuf, and of /pyroscope/render. */
#pragma once

#include "server/request/state.h"

/* What the arena of one call may hold. */
#define SERVER_CALL_BYTES_MAX ((size_t)256 << 20)

struct server_call {
	const struct server *s;
	const struct query_engine *engine;
	const struct net_request *r;
	struct str tenant;
	int64_t deadline_ns; /* monotonic: of all queries to the store by one call */
	struct arena a;
	struct buf *out;
	const char **content_type; /* of the response, for a call with more than one */
	struct err *e;
};
typedef enum status server_call_fn(struct server_call *c);

/* Calls fn, and again while server_query_again() says so; fn appends to an empty c->out. A failure,
 * or an answer beyond the limit, becomes the response. */
void server_call_answer(
	void *ctx, const struct net_request *r, struct net_response *out, server_call_fn *fn);
/* E_NOMEM or E_LIMIT of the arena, with a sentence. */
NODISCARD enum status server_call_no_memory(struct server_call *c);

#define SERVER_CALL_HANDLER(name, fn)                                               \
	void name(void *ctx, const struct net_request *r, struct net_response *out) \
	{                                                                           \
		server_call_answer(ctx, r, out, fn);                                \
	}
