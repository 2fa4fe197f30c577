/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Senders that are faster than the store are slowed down: while bodies and answers take more than
 * memory_max, requests that have no worker yet stop. In HTTP/2 the stream's window stays closed, in
 * HTTP/1 the socket is not read. The first of these requests is favoured and goes on all the same,
 * so that one always makes progress; when a worker has taken it, the next one is favoured. The body
 * of a request whose sender is not authenticated yet waits in the same way.
 */
#include "net/pause.h"
#include "base/clock.h"
#include "net/state.h"
#include "net/wake.h"

static bool is_http1(const struct net_exchange *x)
{
	return http_stream_request(x->stream)->version != HTTP_2;
}

static bool is_full(const struct net_server *s)
{
	return atomic_load(&s->memory) > s->config.memory_max;
}

bool net_pause_is_pressed(const struct net_server *s)
{
	return atomic_load(&s->memory) > 2 * s->config.memory_max;
}

/* Above twice the limit none is favoured until the workers have finished their requests. */
static bool may_favour(const struct net_server *s)
{
	return !atomic_load(&s->favoured) && (!net_pause_is_pressed(s) || s->at_work == 0);
}

void net_pause(struct net_exchange *x)
{
	struct net_server *s = x->server;
	if (x->paused || x->rpc_stream || !is_full(s) || atomic_load(&s->favoured) == x)
		return;
	if (may_favour(s)) {
		atomic_store(&s->favoured, x);
		return;
	}
	x->paused = true;
	x->conn->paused += is_http1(x);
	x->turn_ns = MIN(clock_monotonic_ns() + s->config.turn_timeout_ns, x->request.deadline_ns);
	metric_add(&s->metrics.paused, 1);
	TAILQ_INSERT_TAIL(&s->paused, x, pause);
	net_loop_look_at(s, x->turn_ns);
}

static void take_out(struct net_exchange *x)
{
	TAILQ_REMOVE(&x->server->paused, x, pause);
	x->paused = false;
	x->conn->paused -= is_http1(x);
}

static bool unfavour(struct net_exchange *x)
{
	struct net_exchange *it = x;
	return atomic_compare_exchange_strong(&x->server->favoured, &it, NULL);
}

void net_pause_judge(struct net_exchange *x)
{
	x->judging = true;
	x->conn->paused += is_http1(x);
}

void net_pause_judged(struct net_exchange *x)
{
	x->judging = false;
	x->conn->paused -= is_http1(x);
}

void net_pause_begun(struct net_exchange *x)
{
	if (unfavour(x))
		net_loop_wake(x->server);
}

void net_pause_forget(struct net_exchange *x)
{
	if (x->paused)
		take_out(x);
	if (x->judging)
		net_pause_judged(x);
	(void)unfavour(x);
}

struct net_exchange *net_pause_next(struct net_server *s)
{
	struct net_exchange *x = TAILQ_FIRST(&s->paused);
	if (!x || (is_full(s) && !may_favour(s)))
		return NULL;
	if (is_full(s))
		atomic_store(&s->favoured, x);
	take_out(x);
	return x;
}
