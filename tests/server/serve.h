/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of a server on a free port, without a store. */
#pragma once

#include "base/clock.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "server/start.h"

/* So long that what waits for it to pass is told from what does not. */
#define SERVE_DRAIN_NS (120 * NS_PER_SEC)

struct serve {
	struct server s;
	struct server_config config;
	struct net_client *client;
	struct buf out;
	struct err e;
};

static inline void serve_start(struct serve *v)
{
	size_t count;
	struct net_server_config c;
	memset(v, 0, sizeof(*v));
	server_config_default(&v->config);
	v->s.config = &v->config;
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	c.drain_timeout_ns = SERVE_DRAIN_NS;
	CHECK_OK(server_make_routes(&v->s, &count, &v->e), &v->e);
	CHECK_OK(net_server_start(&c, v->s.routes, count, &v->s.net, &v->e), &v->e);
	CHECK_OK(net_client_new(net_server_address(v->s.net), &v->client, &v->e), &v->e);
	buf_init(&v->out, 64 << 20);
}

static inline void serve_stop(struct serve *v)
{
	net_client_free(v->client);
	net_server_stop(v->s.net);
	server_inlets_close(&v->s);
	ingest_deinit(&v->s.ingest);
	free(v->s.routes);
	free(v->s.paths);
	buf_deinit(&v->out);
}

/* One message, one answer (over gRPC). */
static inline enum status serve_call(struct serve *v, const char *path, struct str message)
{
	bool retry;
	buf_clear(&v->out);
	v->e.text[0] = 0;
	return net_client_rpc(v->client, path, message, 20 * NS_PER_SEC, &v->out, &retry, &v->e);
}
