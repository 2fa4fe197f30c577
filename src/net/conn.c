/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: its descriptor (edge triggered, so `readable` and `writable` remember what epoll
 * reported), its http_conn, and the time since its phase began. It is used by the loop's thread
 * only.
 *
 * A connection is too slow if its head takes longer than header_timeout, if it is idle longer than
 * idle_timeout, or if a body or an answer moved less than RATE_MIN on average in one stall_timeout.
 * Earlier, faster periods do not count: the bytes they brought stay in memory until the rest has
 * come.
 */
#include "net/conn.h"
#include "base/clock.h"
#include "net/address.h"
#include "net/exchange.h"
#include "net/incoming.h"
#include "net/state.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/wake.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <errno.h>

#define PIECES_MAX 16
#define READS_MAX 16       /* in a row, before other connections have their turn */
#define RATE_MIN_BYTES 512 /* a second */
#define LINGER_NS (2 * NS_PER_SEC)
#define HANDSHAKE_YOUNG_NS NS_PER_SEC
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_EVERY_S 15
#define KEEPALIVE_TIMES 4

/* Detects a peer that vanished without closing: a stream that waits for it would never end. */
static void keep_alive(int fd)
{
	int on = 1, idle_s = KEEPALIVE_IDLE_S, every_s = KEEPALIVE_EVERY_S, times = KEEPALIVE_TIMES;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

/* ---- handshakes ---- */

static void begin_handshake(struct net_conn *c)
{
	struct net_server *s = c->server;
	c->shaking = c->tls != NULL;
	if (!c->shaking)
		return;
	TAILQ_INSERT_TAIL(&s->shakes, c, shake);
	metric_set(&s->metrics.handshakes, ++s->shake_count);
}

static void end_handshake(struct net_conn *c)
{
	struct net_server *s = c->server;
	if (!c->shaking)
		return;
	c->shaking = false;
	TAILQ_REMOVE(&s->shakes, c, shake);
	metric_set(&s->metrics.handshakes, --s->shake_count);
}

bool net_conn_make_room(struct net_server *s, int64_t now_ns, int64_t *out_at_ns)
{
	struct net_conn *oldest = TAILQ_FIRST(&s->shakes);
	if (!oldest || s->shake_count < s->config.handshakes_max)
		return true;
	*out_at_ns = oldest->phase_ns + HANDSHAKE_YOUNG_NS;
	if (now_ns < *out_at_ns)
		return false;
	metric_add(&s->metrics.handshakes_dropped, 1);
	net_conn_close(oldest);
	return true;
}

/* ---- open and close ---- */

void net_conn_open(struct net_server *s, int fd, const struct sockaddr_storage *peer)
{
	int one = 1;
	struct http_config config;
	http_config_default(&config);
	struct net_conn *c = calloc(1, sizeof(*c));
	if (!c || !(c->http = http_conn_new(&config, &net_events, c)) ||
		(s->tls && !(c->tls = net_tls_accept(s->tls, &s->metrics)))) {
		http_conn_free(c ? c->http : NULL);
		free(c);
		close(fd);
		metric_add(&s->metrics.accept_failed, 1);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->phase = HTTP_HEAD;
	c->phase_ns = clock_monotonic_ns();
	net_address_format(peer, c->peer, sizeof(c->peer));
	if (peer->ss_family != AF_UNIX) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		keep_alive(fd);
	}
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.ptr = c };
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		http_conn_free(c->http);
		net_tls_conn_free(c->tls);
		free(c);
		close(fd);
		metric_add(&s->metrics.accept_failed, 1);
		return;
	}
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	s->conn_count++;
	metric_add(&s->metrics.accepted, 1);
	metric_set(&s->metrics.connections, s->conn_count);
	begin_handshake(c);
	net_loop_look_at(s, c->phase_ns + s->config.header_timeout_ns);
}

/* Bytes that wait to be sent, encrypted or not. */
static size_t unsent_of(const struct net_conn *c)
{
	return http_conn_unsent(c->http) + (c->tls ? net_tls_output(c->tls).len : 0);
}

static void note_unsent(struct net_conn *c)
{
	size_t now = unsent_of(c);
	atomic_fetch_add_explicit(&c->server->memory, now - c->unsent, memory_order_relaxed);
	c->unsent = now;
}

/* Sends the TLS connection's last bytes, as far as the socket takes them now. */
static void say_goodbye(struct net_conn *c)
{
	metric_add(&c->server->metrics.tls_failed, net_tls_failed(c->tls));
	net_tls_close(c->tls);
	struct str last = net_tls_output(c->tls);
	if (last.len && !c->shut)
		(void)!send(c->fd, last.p, last.len, MSG_NOSIGNAL);
	net_tls_conn_free(c->tls);
	c->tls = NULL;
}

/* Closes the connection and frees it. If it is in the loop's list of connections with more to do,
 * the loop frees it. */
void net_conn_close(struct net_conn *c)
{
	struct net_server *s = c->server;
	if (c->dead)
		return;
	c->dead = true;
	end_handshake(c);
	if (c->tls)
		say_goodbye(c);
	http_conn_free(c->http);
	c->http = NULL;
	atomic_fetch_sub_explicit(&s->memory, c->unsent, memory_order_relaxed);
	/* A child process that is being started may have the descriptor for a moment. Closing alone
	 * would then leave it in epoll, with a pointer to freed memory. */
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->conn_count--;
	metric_set(&s->metrics.connections, s->conn_count);
	net_loop_again(s, c);
}

static void hang_up(struct net_conn *c)
{
	for (struct net_exchange *x = c->exchanges; x; x = x->next)
		atomic_store_explicit(&x->hung_up, true, memory_order_relaxed);
}

static bool may_read(const struct net_conn *c)
{
	return c->readable || (c->tls && net_tls_pending(c->tls));
}

/* Passes decrypted bytes on to http; false: there are none now. */
static bool read_plain(struct net_conn *c)
{
	struct net_server *s = c->server;
	size_t n = net_tls_read(c->tls, s->scratch, HTTP_FEED_MAX);
	if (n)
		http_conn_feed(c->http, s->scratch, n);
	if (n || !net_tls_ended(c->tls))
		return n > 0;
	c->eof = true;
	c->readable = false;
	hang_up(c);
	return false;
}

static void take_bytes(struct net_conn *c, size_t len)
{
	struct net_server *s = c->server;
	metric_add(&s->metrics.bytes_in, len);
	if (!c->tls)
		http_conn_feed(c->http, s->scratch, len);
	else if (!net_tls_put(c->tls, s->scratch, len)) {
		c->eof = true;
		c->readable = false;
	}
}

/* Reads once; false: nothing more to read now. */
static bool conn_read(struct net_conn *c)
{
	struct net_server *s = c->server;
	if (c->tls && net_tls_pending(c->tls))
		return read_plain(c) || c->readable;
	if (!c->readable)
		return false;
	ssize_t n = recv(c->fd, s->scratch, HTTP_FEED_MAX, 0);
	if (n > 0) {
		take_bytes(c, (size_t)n);
		return true;
	}
	if (n < 0 && errno == EINTR)
		return true;
	c->readable = false;
	if (n < 0 && errno == EAGAIN)
		return false;
	c->eof = true;
	hang_up(c);
	if (n < 0)
		c->writable = false;
	return false;
}

/* Encrypts http's output, as much as TLS takes. */
static void encrypt_some(struct net_conn *c)
{
	struct str piece;
	while (http_conn_output(c->http, &piece, 1)) {
		size_t n = net_tls_write(c->tls, piece.p, piece.len);
		if (n == 0)
			return;
		http_conn_sent(c->http, n);
	}
}

static size_t gather_output(struct net_conn *c, struct str pieces[PIECES_MAX])
{
	if (!c->tls)
		return http_conn_output(c->http, pieces, PIECES_MAX);
	encrypt_some(c);
	pieces[0] = net_tls_output(c->tls);
	return pieces[0].len > 0;
}

/* Writes once; false: nothing to write, or the socket is full. */
static bool conn_write(struct net_conn *c)
{
	struct net_server *s = c->server;
	struct str pieces[PIECES_MAX];
	struct iovec iov[PIECES_MAX];
	size_t count = gather_output(c, pieces);
	if (count == 0 || !c->writable)
		return false;
	for (size_t i = 0; i < count; i++)
		iov[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].p, pieces[i].len };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };
	ssize_t n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	if (n >= 0) {
		metric_add(&s->metrics.bytes_out, (uint64_t)n);
		if (c->tls)
			net_tls_sent(c->tls, (size_t)n);
		else
			http_conn_sent(c->http, (size_t)n);
		c->stall_sent += (size_t)n;
		return true;
	}
	if (errno == EINTR)
		return true;
	c->writable = false;
	if (errno != EAGAIN)
		c->eof = c->shut = true; /* reset: the peer is gone */
	return false;
}

static void note_phase(struct net_conn *c)
{
	struct net_server *s = c->server;
	int64_t now = clock_monotonic_ns();
	enum http_phase phase = http_conn_phase(c->http);
	if (phase != c->phase) {
		c->phase = phase;
		c->phase_ns = now;
		net_loop_look_at(s, net_conn_deadline(c));
	}
	bool waiting = unsent_of(c) > 0;
	if (waiting && c->stall_ns == 0) {
		c->stall_ns = now;
		c->stall_sent = 0;
		net_loop_look_at(s, now + s->config.stall_timeout_ns);
	} else if (!waiting) {
		c->stall_ns = 0;
	}
}

/* Whether some request will never be complete. */
static bool cut_short(const struct net_conn *c)
{
	for (const struct net_exchange *x = c->exchanges; x; x = x->next)
		if (!x->whole && !x->answered)
			return true;
	return false;
}

/* True: the connection was closed. */
static bool finish_up(struct net_conn *c)
{
	bool nobody = c->eof && (c->shut || cut_short(c));
	bool answered_all = c->eof && !c->exchanges && unsent_of(c) == 0;
	if (nobody || (answered_all && !may_read(c))) {
		net_conn_close(c);
		return true;
	}
	if (!http_conn_done(c->http) || unsent_of(c))
		return false;
	if (!http_conn_lingers(c->http) || c->eof) {
		net_conn_close(c);
		return true;
	}
	if (!c->shut) {
		if (c->tls) {
			net_tls_close(c->tls);
			(void)conn_write(c);
		}
		c->shut = true;
		(void)shutdown(c->fd, SHUT_WR);
		c->phase_ns = clock_monotonic_ns();
		net_loop_look_at(c->server, c->phase_ns + LINGER_NS);
	}
	return false;
}

void net_conn_pump(struct net_conn *c)
{
	int reads = 0;
	bool progress = true;
	while (progress) {
		progress = false;
		http_conn_feed(c->http, NULL, 0);
		while (may_read(c) && !c->paused && http_conn_wants_input(c->http) &&
			reads < READS_MAX) {
			reads++;
			progress |= conn_read(c);
		}
		while (conn_write(c))
			progress = true;
	}
	if (c->shaking && net_tls_ready(c->tls))
		end_handshake(c);
	note_unsent(c);
	for (struct net_exchange *x = c->exchanges; x; x = x->next)
		if (x->rpc_stream && x->rpc_stream->running)
			net_stream_note_sent(x->rpc_stream, http_stream_unsent(x->stream));
	if (finish_up(c))
		return;
	note_phase(c);
	if (reads == READS_MAX && may_read(c))
		net_loop_again(c->server, c);
}

void net_conn_events(struct net_conn *c, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		c->readable = true;
	if (events & EPOLLOUT)
		c->writable = true;
	if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		hang_up(c);
	net_conn_pump(c);
}

static bool too_slow(int64_t since_ns, size_t bytes, int64_t now_ns)
{
	return (double)bytes * (double)NS_PER_SEC < RATE_MIN_BYTES * (double)(now_ns - since_ns);
}

/* When the request's body is late. INT64_MAX: no bytes of it are expected now. */
static int64_t body_deadline(const struct net_conn *c, const struct net_exchange *x)
{
	if (x->whole || x->answered || x->paused || x->judging ||
		(x->rpc_stream && x->rpc_stream->running))
		return INT64_MAX;
	return MIN(x->pace_ns + c->server->config.stall_timeout_ns, x->request.deadline_ns);
}

/* When the output has stalled too long. INT64_MAX: no output waits. */
static int64_t stall_deadline(const struct net_conn *c)
{
	return c->stall_ns ? c->stall_ns + c->server->config.stall_timeout_ns : INT64_MAX;
}

/* A transfer that was fast enough until its deadline gets another period of the same length. */
static void renew_deadlines(struct net_conn *c, int64_t now_ns)
{
	int64_t stall_timeout = c->server->config.stall_timeout_ns;
	if (stall_deadline(c) <= now_ns && !too_slow(c->stall_ns, c->stall_sent, now_ns)) {
		c->stall_ns = now_ns;
		c->stall_sent = 0;
	}
	for (struct net_exchange *x = c->exchanges; x; x = x->next) {
		if (x->pace_ns + stall_timeout > now_ns ||
			too_slow(x->pace_ns, x->body.len - x->pace_bytes, now_ns))
			continue;
		x->pace_ns = now_ns;
		x->pace_bytes = x->body.len;
	}
}

/* If output waits for the windows of streams, and not for the socket, only these streams are
 * aborted; the others of the connection go on. */
static bool abort_unread(struct net_conn *c, int64_t now_ns)
{
	int64_t old_ns = now_ns - c->server->config.stall_timeout_ns;
	bool any = false;
	if (!c->writable || stall_deadline(c) > now_ns)
		return false;
	struct net_exchange *next;
	for (struct net_exchange *x = c->exchanges; x; x = next) {
		next = x->next;
		bool is_answering = x->answered || (x->rpc_stream && x->rpc_stream->running);
		int64_t since_ns = x->answered ? x->answered_ns : x->begun_ns;
		if (http_stream_request(x->stream)->version != HTTP_2 || !is_answering ||
			since_ns > old_ns || http_stream_unsent(x->stream) == 0)
			continue;
		metric_add(&c->server->metrics.timeouts, 1);
		x->answered = true;
		http_abort(x->stream);
		any = true;
	}
	if (any) {
		c->stall_ns = now_ns;
		c->stall_sent = 0;
	}
	return any;
}

/* When the rest of a request must have come after its answer was sent (HTTP/2): until then the
 * stream takes memory. INT64_MAX: the answer is not sent completely, or the request is complete. */
static int64_t rest_deadline(const struct net_conn *c, const struct net_exchange *x)
{
	if (!x->answered || x->whole || http_stream_request(x->stream)->version != HTTP_2 ||
		http_stream_unsent(x->stream))
		return INT64_MAX;
	return x->answered_ns + c->server->config.stall_timeout_ns;
}

static int64_t turn_deadline(const struct net_exchange *x)
{
	return (x->queued || x->paused) && !x->answered ? x->turn_ns : INT64_MAX;
}

int64_t net_conn_deadline(const struct net_conn *c)
{
	const struct net_server_config *k = &c->server->config;
	int64_t at = INT64_MAX;
	switch (c->phase) {
	case HTTP_IDLE:
		at = c->phase_ns + k->idle_timeout_ns;
		break;
	case HTTP_HEAD:
		at = c->phase_ns + k->header_timeout_ns;
		break;
	case HTTP_CLOSING:
		at = c->phase_ns + LINGER_NS;
		break;
	case HTTP_BUSY:
		break;
	}
	int64_t stall = stall_deadline(c);
	/* A connection that is closing waits until the peer has read the answer. */
	at = c->stall_ns && c->phase == HTTP_CLOSING ? stall : MIN(at, stall);
	for (const struct net_exchange *x = c->exchanges; x; x = x->next)
		at = MIN(at, MIN(rest_deadline(c, x), MIN(body_deadline(c, x), turn_deadline(x))));
	return at;
}

void net_conn_give_up_late(struct net_conn *c, int64_t now_ns)
{
	renew_deadlines(c, now_ns);
	bool any = abort_unread(c, now_ns);
	struct net_exchange *next;
	for (struct net_exchange *x = c->exchanges; x; x = next) {
		next = x->next;
		if (turn_deadline(x) <= now_ns) {
			any |= net_exchange_refuse_waiting(x);
			continue;
		}
		if (rest_deadline(c, x) <= now_ns) {
			metric_add(&c->server->metrics.timeouts, 1);
			x->whole = true;
			http_abort(x->stream);
			any = true;
			continue;
		}
		if (body_deadline(c, x) > now_ns)
			continue;
		net_exchange_refuse_late(x, now_ns);
		any = true;
	}
	if (any)
		net_conn_pump(c);
}
