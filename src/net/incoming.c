/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives a request, in the loop's thread: on_head makes the exchange, chooses framing and route,
 * and refuses at once what can be refused by the head; on_data collects the body; on_end runs the
 * handler here (on_loop) or queues it for a worker; on_close drops the reference.
 */
#include "net/incoming.h"
#include "base/clock.h"
#include "net/access.h"
#include "net/exchange.h"
#include "net/handler.h"
#include "net/lane.h"
#include "net/pause.h"
#include "net/route.h"
#include "net/state.h"
#include "net/stream.h"
#include "net/wake.h"

#include <stdio.h>

static const char *const known_methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS",
	"PATCH" };

/* Answers without a body, as soon as the head has come. */
static void answer_bare(struct net_exchange *x, int http_status)
{
	x->response.http_status = http_status;
	net_answer_make(&x->answer, NET_PLAIN, http_stream_request(x->stream), &x->response);
	if (http_status == 204 && net_access_is_preflight(x))
		net_access_preflight(x);
	net_exchange_answer(x);
}

static void refuse_no_route(struct net_exchange *x)
{
	struct err e;
	struct str method = x->request.method, path = str_sub(x->request.path, 0, 128);
	if (x->framing != NET_PLAIN) {
		err_set(&e, E_UNSUPPORTED, "unknown method %.*s", STR_ARG(path));
		net_exchange_refuse(x, 0, E_UNSUPPORTED, &e);
		return;
	}
	bool known = false;
	for (size_t i = 0; i < ARRAY_COUNT(known_methods); i++)
		known |= str_eq(method, str_of(known_methods[i]));
	if (!known) {
		err_set(&e, E_UNSUPPORTED, "method %.*s is not known here", STR_ARG(method));
		net_exchange_refuse(x, 501, E_UNSUPPORTED, &e);
	} else if (!net_route_put_allow(x)) {
		err_set(&e, E_NOTFOUND, "nothing at %.*s", STR_ARG(path));
		net_exchange_refuse(x, 404, E_NOTFOUND, &e);
	} else if (str_eq(method, STR("OPTIONS"))) {
		answer_bare(x, 204);
	} else {
		err_set(&e, E_UNSUPPORTED, "%.*s does not take %.*s", STR_ARG(path),
			STR_ARG(method));
		net_exchange_refuse(x, 405, E_UNSUPPORTED, &e);
	}
}

/* ---- the head ---- */

static void set_deadline(struct net_exchange *x)
{
	struct str text = net_header_find(&x->request, "grpc-timeout");
	struct str ms = net_header_find(&x->request, "connect-timeout-ms");
	int64_t timeout;
	uint64_t n;
	bool connect = x->framing >= NET_CONNECT_STREAM && x->framing <= NET_CONNECT_JSON;
	if (connect && ms.len <= 10 && str_parse_u64(ms, 10, &n))
		timeout = (int64_t)n * NS_PER_MS;
	else if (connect || !http_grpc_parse_timeout(text, &timeout))
		return;
	if (__builtin_add_overflow(x->begun_ns, timeout, &x->request.deadline_ns))
		x->request.deadline_ns = INT64_MAX;
}

static bool check_type(struct net_exchange *x, const struct http_request *h)
{
	struct err e;
	/* A unary gRPC call is answered on HTTP/1.1 too, with trailers after the last chunk:
	 * profilecli sends such calls without TLS. */
	if (x->framing == NET_GRPC &&
		(h->version == HTTP_1_0 || (h->version != HTTP_2 && x->route->stream_fn))) {
		err_set(&e, E_UNSUPPORTED, "gRPC needs HTTP/2; gRPC-Web and Connect do not");
		x->framing = NET_PLAIN;
		net_exchange_refuse(x, 415, E_UNSUPPORTED, &e);
		return false;
	}
	bool json = x->framing == NET_CONNECT_JSON;
	bool unary = json || x->framing == NET_CONNECT;
	bool stream = net_is_connect_stream(x->framing);
	bool other = x->route->stream_fn ? unary : stream;
	if ((x->framing == NET_PLAIN && x->route->is_rpc) || (json && !x->route->rpc) || other) {
		x->framing = NET_PLAIN;
		err_set(&e, E_UNSUPPORTED,
			"content-type must be application/grpc, application/grpc-web%s",
			x->route->stream_fn ? ", application/grpc-web-text, "
					      "application/connect+proto or "
					      "application/connect+json"
			: x->route->rpc     ? ", application/grpc-web-text, application/proto or "
					      "application/json"
					    : ", application/grpc-web-text or application/proto");
		net_exchange_refuse(x, 415, E_UNSUPPORTED, &e);
		return false;
	}
	struct str encoding = http_request_header(h, "content-encoding");
	bool encoded = x->framing == NET_PLAIN || x->framing >= NET_CONNECT;
	if (encoded && encoding.len && !str_eq_nocase(encoding, STR("gzip")) &&
		!str_eq_nocase(encoding, STR("identity"))) {
		err_set(&e, E_UNSUPPORTED, "content-encoding \"%.*s\"; gzip is known",
			STR_ARG(str_sub(encoding, 0, 32)));
		net_exchange_refuse(x, 415, E_UNSUPPORTED, &e);
		return false;
	}
	return true;
}

/* The most bytes of a body: those of a message, and of the framing around it. */
static size_t body_max(const struct net_exchange *x)
{
	size_t most = x->server->config.body_max;
	if (x->framing == NET_GRPC || x->framing == NET_GRPC_WEB ||
		net_is_connect_stream(x->framing))
		return most + HTTP_GRPC_PREFIX_BYTES;
	if (x->framing == NET_GRPC_WEB_TEXT)
		return (most + HTTP_GRPC_PREFIX_BYTES + 2) / 3 * 4;
	return most;
}

static void refuse_large(struct net_exchange *x)
{
	struct err e;
	metric_add(&x->server->metrics.too_large, 1);
	err_set(&e, E_LIMIT, "the body is longer than %zu bytes", x->server->config.body_max);
	net_exchange_refuse(x, 413, E_LIMIT, &e);
}

static void start_stream(struct net_exchange *x)
{
	struct err e;
	if (net_stream_start(x))
		return;
	metric_add(&x->server->metrics.streams_refused, 1);
	err_set(&e, E_QUOTA, "more than %u streaming calls at a time",
		x->server->config.streams_max);
	net_exchange_refuse(x, 0, E_QUOTA, &e);
}

/* Over gRPC, and Connect's streams on HTTP/2, the handler runs while messages come; the other
 * framings send all of them first. */
static bool is_live(const struct net_exchange *x)
{
	bool connect = net_is_connect_stream(x->framing);
	return x->route->stream_fn &&
	       (x->framing == NET_GRPC ||
		       (connect && http_stream_request(x->stream)->version == HTTP_2));
}

static void open_stream(struct net_exchange *x)
{
	struct err e;
	enum status s = net_stream_new(x, &e);
	if (s != OK) {
		net_exchange_refuse(x, 0, s, &e);
	} else if (is_live(x)) {
		x->rpc_stream->live = true;
		start_stream(x);
	}
}

/* Host, origin and prefix, and then the route; false: it was answered. */
static bool admit(struct net_exchange *x, const struct http_request *h)
{
	struct err e;
	enum net_prefix prefix = net_access_prefix(x, x->request.path, &x->request.path);
	net_route_choose(x, h);
	enum status s = net_access_check(x, h, &e);
	bool rpc = x->framing == NET_GRPC || x->framing == NET_GRPC_WEB ||
		   x->framing == NET_GRPC_WEB_TEXT;
	if (s != OK) {
		net_exchange_refuse(x, 403, s, &e);
	} else if (net_access_is_preflight(x)) {
		answer_bare(x, 204);
	} else if (prefix == NET_PREFIX_REDIRECT) {
		snprintf(x->response.headers, sizeof(x->response.headers), "location: %s/\r\n",
			x->server->config.path_prefix);
		answer_bare(x, 302);
	} else if (prefix == NET_PREFIX_OTHER && !rpc) {
		err_set(&e, E_NOTFOUND, "nothing at %.*s; all is below %s/",
			STR_ARG(str_sub(x->request.path, 0, 100)), x->server->config.path_prefix);
		net_exchange_refuse(x, 404, E_NOTFOUND, &e);
	}
	return !x->answered;
}

/* Asks the guard, with the head only; false: the request was answered. */
static bool guard_lets_in(struct net_exchange *x)
{
	const struct net_server_config *c = &x->server->config;
	char challenge[NET_CHALLENGE_BYTES] = "";
	struct err e = { 0 };
	if (!c->guard)
		return true;
	enum net_verdict v = c->guard(c->guard_ctx, &x->request, x->route->scope, false,
		&x->request.caller, challenge, &e);
	x->unguarded = v == NET_GUARD_BLOCKS;
	if (v != NET_GUARD_NO)
		return true;
	snprintf(x->response.headers, sizeof(x->response.headers), "%s", challenge);
	net_exchange_refuse(x, 0, e.status, &e);
	return false;
}

/* A GET has no body that fills memory: it need not wait for senders. */
static bool asks_only(const struct net_exchange *x)
{
	return str_eq(x->request.method, STR("GET"));
}

/* Begins the body after the head and the guard's check. */
static void begin_body(struct net_exchange *x, const struct http_request *h)
{
	struct net_server *server = x->server;
	x->body.max = body_max(x);
	if (x->body.failed || (h->content_length > 0 && (uint64_t)h->content_length > body_max(x)))
		refuse_large(x);
	else if (x->route->stream_fn && atomic_load(&server->memory) > server->config.memory_max)
		net_exchange_refuse_busy(x);
	else if (x->route->stream_fn)
		open_stream(x);
	else if (!x->route->on_loop && (!asks_only(x) || net_pause_is_pressed(server)))
		net_pause(x);
}

/* Queues the request for a worker, with a reference. */
static void await_turn(struct net_exchange *x)
{
	struct net_server *s = x->server;
	struct net_lane *lane = &s->lanes[x->route->lane];
	x->turn_ns = MIN(clock_monotonic_ns() + s->config.turn_timeout_ns, x->request.deadline_ns);
	x->queued = lane->workers ? lane : &s->lanes[0];
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	if (net_lane_push(x->queued, x)) {
		s->at_work++;
		net_loop_look_at(s, x->turn_ns);
		return;
	}
	net_exchange_refuse_busy(x);
	net_exchange_unref(x);
}

/* A guard that may block is asked by a worker, before the body is received. */
static void judge(struct net_exchange *x)
{
	net_pause_judge(x);
	await_turn(x);
}

static void check_head(struct net_exchange *x, const struct http_request *h)
{
	struct err e;
	enum status s =
		http_target_parse(h->target, x->path_text, &x->request.path, &x->request.query, &e);
	if (s != OK) {
		net_exchange_refuse(x, 400, s, &e);
		return;
	}
	if (!admit(x, h))
		return;
	set_deadline(x);
	s = http_query_check(x->request.query, &e);
	if (s != OK) {
		net_exchange_refuse(x, 400, s, &e);
		return;
	}
	if (!x->route) {
		refuse_no_route(x);
		return;
	}
	if (!guard_lets_in(x) || !check_type(x, h))
		return;
	assert(!x->unguarded || !x->route->on_loop);
	if (x->unguarded && !is_live(x))
		judge(x);
	else
		begin_body(x, h);
}

static void on_head(void *ctx, struct http_stream *stream)
{
	struct net_conn *c = (struct net_conn *)ctx;
	metric_add(&c->server->metrics.requests, 1);
	struct net_exchange *x = net_exchange_new(c, stream);
	if (!x) {
		http_abort(stream);
		return;
	}
	check_head(x, http_stream_request(stream));
	int64_t stall_ns = x->begun_ns + c->server->config.stall_timeout_ns;
	net_loop_look_at(c->server, MIN(stall_ns, x->request.deadline_ns));
}

/* ---- the body ---- */

/* Whether the other exchanges take several times the memory limit. Up to that, bodies that began
 * below the limit or are slowed down go on. The favoured exchange always goes on. */
static bool others_fill_memory(const struct net_exchange *x)
{
	size_t times = x->rpc_stream ? 2 : 4;
	return atomic_load(&x->server->favoured) != x &&
	       atomic_load(&x->server->memory) - x->accounted >
		       times * x->server->config.memory_max;
}

/* A message begins with its length. If that is too large, the request is refused without waiting
 * for the message. */
static bool prefix_too_large(const struct net_exchange *x)
{
	const uint8_t *p = x->body.data;
	if ((x->framing != NET_GRPC && x->framing != NET_GRPC_WEB) ||
		x->body.len < HTTP_GRPC_PREFIX_BYTES)
		return false;
	size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
	return len > x->server->config.body_max;
}

static void stream_data(struct net_exchange *x, const void *bytes, size_t len)
{
	bool open;
	net_exchange_account(x, net_stream_feed(x->rpc_stream, bytes, len, &open));
	if (open)
		http_consume(x->stream, len);
	else
		http_consume_held(x->stream, len);
	if (others_fill_memory(x)) {
		metric_add(&x->server->metrics.overloaded, 1);
		net_stream_overload(x->rpc_stream);
	}
}

static void on_data(void *ctx, struct http_stream *stream, const void *bytes, size_t len)
{
	(void)ctx;
	struct net_exchange *x = (struct net_exchange *)http_stream_user(stream);
	if (x && !x->answered && x->rpc_stream && x->rpc_stream->running) {
		stream_data(x, bytes, len);
		return;
	}
	bool running = x && !x->answered;
	if (running && !x->route->on_loop && !x->judging)
		net_pause(x);
	if (running && (x->paused || x->judging)) {
		http_consume_held(stream, len);
		x->window_held += len;
	} else {
		http_consume(stream, len);
	}
	if (!running)
		return;
	if (x->judging) {
		/* These bytes are at most a window, or were read together with the head. Limits are
		 * checked when the worker is done with the exchange. */
		buf_put(&x->body, bytes, len);
		net_exchange_account(x, x->body.len);
		return;
	}
	if (x->body.len + len > x->body.max) {
		refuse_large(x);
		return;
	}
	/* Memory for a body of known length is allocated once. */
	int64_t expected = http_stream_request(stream)->content_length;
	if (x->body.len == 0 && expected > (int64_t)len && (uint64_t)expected <= x->body.max &&
		!buf_reserve(&x->body, (size_t)MIN(expected, (int64_t)1 << 20)))
		net_exchange_refuse_busy(x);
	if (x->answered)
		return;
	buf_put(&x->body, bytes, len);
	if (prefix_too_large(x))
		refuse_large(x);
	else if (x->body.failed || others_fill_memory(x))
		net_exchange_refuse_busy(x);
	else
		net_exchange_account(x, x->body.len);
}

/* The client's last message has come. */
static void end_stream(struct net_exchange *x)
{
	struct net_stream *st = x->rpc_stream;
	if (st->running) {
		net_stream_end(st);
		return;
	}
	start_stream(x);
}

static void body_is_whole(struct net_exchange *x)
{
	if (x->rpc_stream) {
		end_stream(x);
	} else if (x->route->on_loop) {
		net_handler_run(x);
		net_exchange_answer(x);
	} else {
		await_turn(x);
	}
}

void net_incoming_resume(struct net_exchange *x)
{
	size_t held = x->window_held;
	x->window_held = 0;
	x->pace_ns = clock_monotonic_ns();
	x->pace_bytes = x->body.len;
	if (held)
		http_open_window(x->stream, held);
	if (x->whole)
		body_is_whole(x);
	net_loop_again(x->server, x->conn);
}

void net_incoming_judged(struct net_exchange *x)
{
	x->server->at_work--;
	if (x->conn && !x->answered) {
		net_pause_judged(x);
		x->unguarded = false;
		x->queued = NULL;
		if (x->response.status != OK)
			net_exchange_answer(x);
		else
			begin_body(x, http_stream_request(x->stream));
		if (!x->answered && !x->paused)
			net_incoming_resume(x);
		else
			net_loop_again(x->server, x->conn);
	}
	net_exchange_unref(x);
}

static void on_end(void *ctx, struct http_stream *stream)
{
	(void)ctx;
	struct net_exchange *x = (struct net_exchange *)http_stream_user(stream);
	if (!x)
		return;
	x->whole = true;
	if (!x->answered && !x->paused && !x->judging)
		body_is_whole(x);
}

static void on_close(void *ctx, struct http_stream *stream, bool answered)
{
	struct net_conn *c = (struct net_conn *)ctx;
	struct net_exchange *x = (struct net_exchange *)http_stream_user(stream);
	if (!x)
		return;
	if (!answered)
		metric_add(&c->server->metrics.canceled, 1);
	net_pause_forget(x);
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	x->next = NULL;
	x->conn = NULL;
	atomic_store_explicit(&x->closed, true, memory_order_relaxed);
	if (x->rpc_stream)
		net_stream_gone(x->rpc_stream);
	if (net_exchange_leave_queue(x))
		net_exchange_unref(x);
	net_exchange_unref(x);
}

static void on_refuse(void *ctx, int http_status)
{
	struct net_conn *c = (struct net_conn *)ctx;
	(void)http_status;
	metric_add(&c->server->metrics.malformed, 1);
}

const struct http_events net_events = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.on_refuse = on_refuse,
};
