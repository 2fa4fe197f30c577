/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the listener, the workers and the loop; stops the loop (which drains connections), the
 * queue, and the workers, in this order. */
#include "base/clock.h"
#include "net/exchange.h"
#include "net/handler.h"
#include "net/loop.h"
#include "net/state.h"
#include "net/tls.h"
#include "net/wake.h"

#include <stdio.h>
#include <unistd.h>

void net_server_config_default(struct net_server_config *c)
{
	*c = (struct net_server_config){
		.address = "127.0.0.1:7070",
		.listen_fd = -1,
		.workers = 4,
		.handshakes_max = 1024,
		.connections_max = 8192,
		.body_max = NET_BODY_MAX,
		.memory_max = (size_t)256 << 20,
		.idle_timeout_ns = 120 * NS_PER_SEC,
		.header_timeout_ns = 10 * NS_PER_SEC,
		.stall_timeout_ns = 30 * NS_PER_SEC,
		.drain_timeout_ns = 10 * NS_PER_SEC,
		.turn_timeout_ns = 30 * NS_PER_SEC,
		.streams_max = 256,
		.stream_idle_ns = 60 * NS_PER_SEC,
	};
}

static void server_free(struct net_server *s)
{
	atomic_store(&s->stop, true);
	if (s->loop_runs) {
		net_loop_wake(s);
		pthread_join(s->loop, NULL);
	}
	net_stream_join_all(s);
	for (size_t i = 0; i < NET_LANES; i++)
		net_workers_stop(&s->lanes[i]);
	while (s->done) {
		struct net_exchange *x = s->done;
		s->done = x->done_next;
		net_exchange_unref(x);
	}
	lock_destroy(&s->done_lock);
	lock_destroy(&s->streams_lock);
	pthread_cond_destroy(&s->streams_gone);
	fd_cleanup(&s->listen_fd);
	fd_cleanup(&s->epoll_fd);
	fd_cleanup(&s->event_fd);
	net_tls_free(s->tls);
	free(s->scratch);
	free(s->routes);
	free(s);
}

static enum status start_workers(struct net_server *s, struct err *e)
{
	enum status st = net_workers_start(&s->lanes[0], s, s->config.workers, e);
	for (size_t i = 1; st == OK && i < NET_LANES; i++)
		if (s->config.lane_workers[i])
			st = net_workers_start(&s->lanes[i], s, s->config.lane_workers[i], e);
	return st;
}

static enum status open_listener(struct net_server *s, struct err *e)
{
	const struct net_server_config *c = &s->config;
	if (c->listen_fd < 0)
		return net_listen(c->address, &s->listen_fd, s->address, sizeof(s->address), e);
	s->listen_fd = c->listen_fd;
	snprintf(s->address, sizeof(s->address), "%s", c->address);
	return OK;
}

enum status net_server_start(const struct net_server_config *c, const struct net_route *routes,
	size_t route_count, struct net_server **out, struct err *e)
{
	struct net_server *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "server");
	s->config = *c;
	s->listen_fd = s->epoll_fd = s->event_fd = -1;
	TAILQ_INIT(&s->shakes);
	TAILQ_INIT(&s->paused);
	lock_init(&s->done_lock, LOCK_NET_DONE);
	lock_init(&s->streams_lock, LOCK_NET_STREAMS);
	pthread_cond_init(&s->streams_gone, NULL);
	s->routes = calloc(route_count + 1, sizeof(*routes));
	enum status st = s->routes ? OK : err_set(e, E_NOMEM, "routes");
	if (st == OK) {
		if (route_count)
			memcpy(s->routes, routes, route_count * sizeof(*routes));
		s->route_count = route_count;
		st = open_listener(s, e);
	}
	if (st == OK && c->tls_cert_file)
		st = net_tls_new(c, &s->tls, e);
	if (st == OK && strncmp(s->address, "unix:", 5) == 0)
		snprintf(s->unix_path, sizeof(s->unix_path), "%s", s->address + 5);
	if (st == OK)
		st = start_workers(s, e);
	if (st == OK)
		st = net_loop_start(s, e);
	if (st != OK) {
		if (s->unix_path[0])
			(void)unlink(s->unix_path);
		server_free(s);
		return st;
	}
	*out = s;
	return OK;
}

const char *net_server_address(const struct net_server *s)
{
	return s->address;
}

bool net_server_turns(struct net_server *s)
{
	unsigned seen = s->turns_seen;
	s->turns_seen = atomic_load(&s->turns);
	net_loop_wake(s);
	return s->turns_seen != seen;
}

void net_server_stop(struct net_server *s)
{
	if (s)
		server_free(s);
}

static const struct metric_def defs[] = { NET_METRICS(METRIC_DEF) };

void net_server_write_metrics(struct net_server *s, struct buf *out)
{
	metric_set(&s->metrics.memory, atomic_load(&s->memory));
	metrics_write(out, defs, (const metric_value *)&s->metrics, ARRAY_COUNT(defs));
}
