/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that waits in epoll: the listener, an eventfd (answers are ready, or stop), and the
 * connections. It sleeps until the nearest deadline of any connection, checks deadlines at most
 * once a second, and sleeps for ever without connections.
 */
#include "net/loop.h"
#include "base/clock.h"
#include "net/conn.h"
#include "net/exchange.h"
#include "net/incoming.h"
#include "net/pause.h"
#include "net/state.h"
#include "net/stream.h"
#include "net/wake.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <errno.h>

#define EVENTS_MAX 256
#define ACCEPTS_MAX 64
#define LOOK_MIN_NS NS_PER_SEC

/* data.ptr of the two descriptors that are not connections */
static char listener_tag, wake_tag;

static void deliver_all(struct net_server *s)
{
	lock_take(&s->done_lock);
	struct net_exchange *x = s->done;
	s->done = NULL;
	lock_release(&s->done_lock);
	while (x) {
		struct net_exchange *next = x->done_next;
		if (x->judging)
			net_incoming_judged(x);
		else
			net_exchange_deliver(x);
		x = next;
	}
}

/* ---- accepting ---- */

static void accept_on(struct net_server *s, bool on)
{
	if (s->accepting == on || s->listen_fd < 0)
		return;
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &listener_tag };
	int op = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
	if (epoll_ctl(s->epoll_fd, op, s->listen_fd, &ev) == 0)
		s->accepting = on;
}

static void accept_some(struct net_server *s)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		if (!net_conn_make_room(s, clock_monotonic_ns(), &s->accept_again_ns)) {
			metric_add(&s->metrics.accept_paused, 1);
			accept_on(s, false);
			net_loop_look_at(s, s->accept_again_ns);
			return;
		}
		s->accept_again_ns = 0;
		if (s->conn_count >= s->config.connections_max) {
			metric_add(&s->metrics.accept_paused, 1);
			accept_on(s, false);
			return;
		}
		struct sockaddr_storage peer = { 0 };
		socklen_t len = sizeof(peer);
		int fd = accept4(
			s->listen_fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			net_conn_open(s, fd, &peer);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN) {
			/* No descriptors or memory are left: the listener is switched off, since it
			 * would wake the loop again at once. */
			metric_add(&s->metrics.accept_failed, 1);
			accept_on(s, false);
			s->accept_again_ns = clock_monotonic_ns() + NS_PER_SEC;
			net_loop_look_at(s, s->accept_again_ns);
		}
		return;
	}
}

/* ---- time ---- */

static void close_late(struct net_conn *c)
{
	struct net_server *s = c->server;
	bool idle = c->phase == HTTP_IDLE && !c->stall_ns;
	bool answered = c->phase == HTTP_CLOSING && !c->stall_ns;
	if (!answered)
		metric_add(idle ? &s->metrics.idle_closed : &s->metrics.timeouts, 1);
	/* An idle peer of HTTP/2 gets a GOAWAY; others are closed without a message. */
	if (idle)
		http_conn_drain(c->http);
	if (idle)
		net_conn_pump(c);
	net_conn_close(c);
}

static void look_at_deadlines(struct net_server *s, int64_t now)
{
	if (now < s->look_ns)
		return;
	s->look_ns = INT64_MAX;
	if (s->accept_again_ns && now >= s->accept_again_ns) {
		s->accept_again_ns = 0;
		accept_on(s, true);
	} else if (s->accept_again_ns) {
		s->look_ns = s->accept_again_ns;
	}
	struct net_conn *next;
	for (struct net_conn *c = s->conns; c; c = next) {
		next = c->next;
		net_conn_give_up_late(c, now);
		if (c->dead)
			continue;
		int64_t at = net_conn_deadline(c);
		if (at <= now)
			close_late(c);
		else
			s->look_ns = MIN(s->look_ns, at);
	}
	if (s->look_ns != INT64_MAX)
		s->look_ns = MAX(s->look_ns, now + LOOK_MIN_NS);
}

static int wait_ms(const struct net_server *s, int64_t now)
{
	int64_t until = s->look_ns;
	if (s->draining)
		until = MIN(until, s->drain_until_ns);
	if (s->again)
		return 0;
	if (until == INT64_MAX)
		return -1;
	return (int)MIN(MAX(until - now, (int64_t)0) / NS_PER_MS + 1, (int64_t)3600000);
}

/* ---- the loop ---- */

/* Connections that stopped in the middle to let others go on, and connections to be freed. */
static void run_again(struct net_server *s)
{
	struct net_conn *c = s->again;
	s->again = NULL;
	while (c) {
		struct net_conn *next = c->again_next;
		c->again = false;
		if (c->dead)
			free(c);
		else
			net_conn_pump(c);
		c = next;
	}
}

static void resume_paused(struct net_server *s)
{
	struct net_exchange *x;
	while ((x = net_pause_next(s)))
		net_incoming_resume(x);
}

static void start_draining(struct net_server *s)
{
	s->draining = true;
	s->drain_until_ns = clock_monotonic_ns() + s->config.drain_timeout_ns;
	accept_on(s, false);
	close(s->listen_fd);
	s->listen_fd = -1;
	if (s->unix_path[0])
		(void)unlink(s->unix_path);
	struct net_conn *next;
	for (struct net_conn *c = s->conns; c; c = next) {
		next = c->next;
		http_conn_drain(c->http);
		for (struct net_exchange *x = c->exchanges; x; x = x->next)
			if (x->rpc_stream)
				net_stream_stop(x->rpc_stream);
		net_conn_pump(c);
	}
}

static void handle(struct net_server *s, const struct epoll_event *ev)
{
	if (ev->data.ptr == &listener_tag) {
		if (s->accepting)
			accept_some(s);
	} else if (ev->data.ptr == &wake_tag) {
		uint64_t n;
		(void)!read(s->event_fd, &n, sizeof(n));
	} else {
		struct net_conn *c = (struct net_conn *)ev->data.ptr;
		if (!c->dead)
			net_conn_events(c, ev->events);
	}
}

static void *loop_main(void *ctx)
{
	struct net_server *s = (struct net_server *)ctx;
	struct epoll_event events[EVENTS_MAX];
	for (;;) {
		int n = epoll_wait(
			s->epoll_fd, events, EVENTS_MAX, wait_ms(s, clock_monotonic_ns()));
		atomic_fetch_add(&s->turns, 1);
		for (int i = 0; i < n; i++)
			handle(s, &events[i]);
		deliver_all(s);
		look_at_deadlines(s, clock_monotonic_ns());
		run_again(s);
		resume_paused(s); /* after everything that may end a request */
		if (!s->accept_again_ns && !s->draining &&
			s->conn_count < s->config.connections_max)
			accept_on(s, true);
		if (atomic_load(&s->stop) && !s->draining)
			start_draining(s);
		if (s->draining && (!s->conns || clock_monotonic_ns() >= s->drain_until_ns))
			break;
	}
	while (s->conns)
		net_conn_close(s->conns);
	run_again(s);
	return NULL;
}

enum status net_loop_start(struct net_server *s, struct err *e)
{
	s->look_ns = INT64_MAX;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->scratch = malloc(HTTP_FEED_MAX);
	if (s->epoll_fd < 0 || s->event_fd < 0)
		return err_os(e, "epoll");
	if (!s->scratch)
		return err_set(e, E_NOMEM, "loop");
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &wake_tag };
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->event_fd, &ev) != 0)
		return err_os(e, "epoll");
	accept_on(s, true);
	if (!s->accepting)
		return err_os(e, "epoll");
	enum status st = os_thread_start(&s->loop, "net-loop", loop_main, s, e);
	s->loop_runs = st == OK;
	return st;
}
