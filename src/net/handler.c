/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of handlers. A worker answers complete requests of its lane; the loop itself answers
 * those of routes that never block. A streaming RPC has a thread of its own, which runs the handler
 * from the first message to the end of the answer, with a reference of its own.
 */
#include "net/handler.h"
#include "base/clock.h"
#include "net/access.h"
#include "net/exchange.h"
#include "net/lane.h"
#include "net/pause.h"
#include "net/state.h"
#include "net/stream.h"
#include "net/transcode.h"
#include "net/wake.h"

#include <stdlib.h>

#define WORKERS_MAX 256

static enum status decode(struct net_exchange *x, struct err *e)
{
	const struct http_request *h = http_stream_request(x->stream);
	if (x->request.deadline_ns < clock_monotonic_ns())
		return err_set(e, E_TIMEOUT, "the deadline passed before the call began");
	enum status s = net_rpc_decode(x->framing, h, buf_view(&x->body),
		x->server->config.body_max, &x->scratch, &x->request.body, e);
	if (s != OK || x->framing < NET_CONNECT_JSON)
		return s;
	s = net_json_message(x, x->request.body, &x->message, e);
	if (s == OK)
		x->request.body = buf_view(&x->message);
	return s;
}

static void tell_handled(struct net_exchange *x)
{
	const struct net_server_config *c = &x->server->config;
	const struct net_handled h = { .request = &x->request,
		.route = x->route->path,
		.http_status = x->response.http_status,
		.status = x->response.status,
		.begun_ns = x->begun_ns };
	if (c->handled && !x->route->on_loop)
		c->handled(c->handled_ctx, &h);
}

void net_handler_run(struct net_exchange *x)
{
	struct err e = { 0 };
	net_pause_begun(x);
	if (atomic_load_explicit(&x->closed, memory_order_relaxed))
		return;
	if (x->unguarded) {
		if (!net_access_guard(x))
			net_answer_make(&x->answer, x->framing, http_stream_request(x->stream),
				&x->response);
		return;
	}
	enum status s = decode(x, &e);
	if (s == OK) {
		x->route->fn(x->route->ctx, &x->request, &x->response);
		/* The handler gave up because exchange_gone() returned true. */
		if (x->response.status == E_CANCELED &&
			x->request.deadline_ns < clock_monotonic_ns()) {
			err_set(&e, E_TIMEOUT, "the deadline passed");
			net_fail(&x->response, E_TIMEOUT, &e);
		}
	} else {
		net_fail(&x->response, s, &e);
		if (s == E_LIMIT)
			x->response.http_status = 413;
		else if (s == E_UNSUPPORTED)
			x->response.http_status = 415;
	}
	tell_handled(x);
	if (x->framing >= NET_CONNECT_JSON)
		net_json_answer(x);
	net_answer_make(&x->answer, x->framing, http_stream_request(x->stream), &x->response);
}

/* ---- workers ---- */

static void *worker_main(void *ctx)
{
	struct net_lane_worker *w = ctx;
	struct net_server *s = w->lane->server;
	struct net_exchange *x;
	while ((x = net_lane_pop(w))) {
		net_handler_run(x);
		net_loop_done(s, x);
	}
	return NULL;
}

enum status net_workers_start(
	struct net_lane *l, struct net_server *s, uint32_t workers, struct err *e)
{
	l->server = s;
	if (workers == 0 || workers > WORKERS_MAX)
		return err_set(e, E_INVALID, "workers must be 1 to %d", WORKERS_MAX);
	l->workers = calloc(workers, sizeof(*l->workers));
	if (!l->workers)
		return err_set(e, E_NOMEM, "workers");
	net_lane_init(l);
	while (l->worker_count < workers) {
		struct net_lane_worker *w = &l->workers[l->worker_count];
		w->lane = l;
		enum status st = os_thread_start(&w->thread, "net-worker", worker_main, w, e);
		if (st != OK)
			return st;
		l->worker_count++;
	}
	return OK;
}

void net_workers_stop(struct net_lane *l)
{
	if (!l->workers)
		return;
	net_lane_close(l);
	for (uint32_t i = 0; i < l->worker_count; i++)
		pthread_join(l->workers[i].thread, NULL);
	net_lane_deinit(l);
	free(l->workers);
	l->workers = NULL;
}

/* ---- streams ---- */

/* Makes frames of the body, for framings that send all messages at once. */
static enum status fill(struct net_stream *st, struct err *e)
{
	CLEANUP(buf_deinit) struct buf frames;
	buf_init(&frames, st->in.max);
	enum status s = net_body_frames(st->x, &frames, e);
	if (s != OK)
		return s;
	net_stream_put_all(st, &frames);
	return OK;
}

static void *stream_main(void *ctx)
{
	struct net_exchange *x = (struct net_exchange *)ctx;
	struct net_stream *st = x->rpc_stream;
	struct net_server *server = x->server;
	const struct net_route *route = x->route;
	struct err e = { 0 };
	bool admitted = net_access_guard(x);
	enum status s = st->live || !admitted ? OK : fill(st, &e);
	if (!admitted) {
		s = x->response.status;
	} else if (s != OK) {
		net_fail(&x->response, s, &e);
	} else {
		route->stream_fn(route->ctx, &x->request, st, &x->response);
		s = x->response.status;
	}
	if (s == OK && route->rpc && !route->rpc->server_streams) {
		s = buf_status(&x->response.body);
		if (s == OK)
			s = net_stream_send(st, buf_view(&x->response.body), &e);
		if (s != OK)
			net_fail(&x->response, s, &e);
	}
	if (s == E_CANCELED && clock_monotonic_ns() >= x->request.deadline_ns) {
		err_set(&e, E_TIMEOUT, "the deadline passed");
		net_fail(&x->response, E_TIMEOUT, &e);
	}
	if (admitted)
		tell_handled(x);
	net_stream_finish(st);
	net_exchange_unref(x);
	lock_take(&server->streams_lock);
	server->streams--;
	metric_set(&server->metrics.streams, server->streams);
	pthread_cond_broadcast(&server->streams_gone);
	lock_release(&server->streams_lock);
	return NULL;
}

bool net_stream_start(struct net_exchange *x)
{
	struct net_server *s = x->server;
	pthread_t thread;
	const struct http_request *h = http_stream_request(x->stream);
	x->rpc_stream->compress =
		x->framing == NET_GRPC &&
		http_list_has(http_request_header(h, "grpc-accept-encoding"), "gzip");
	lock_take(&s->streams_lock);
	bool room = s->streams < s->config.streams_max;
	if (room)
		metric_set(&s->metrics.streams, ++s->streams);
	lock_release(&s->streams_lock);
	if (!room)
		return false;
	x->rpc_stream->running = true;
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	if (os_thread_start(&thread, "net-stream", stream_main, x, NULL) == OK) {
		pthread_detach(thread);
		return true;
	}
	x->rpc_stream->running = false;
	net_exchange_unref(x);
	lock_take(&s->streams_lock);
	s->streams--;
	lock_release(&s->streams_lock);
	return false;
}

void net_stream_join_all(struct net_server *s)
{
	lock_take(&s->streams_lock);
	while (s->streams)
		lock_wait(&s->streams_gone, &s->streams_lock);
	lock_release(&s->streams_lock);
}
