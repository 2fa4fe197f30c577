/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer: its memory, its references, and the ways in which it ends. incoming.c
 * receives the request, handler.c runs its handler.
 *
 * References: one of the stream (until on_close), one of a job (until delivered). `answered` guards
 * against a second answer: a refusal leaves the rest of the body to be dropped by http. An answer
 * is written when the loop comes to the connection again, so nothing in this file frees the
 * connection.
 */
#include "net/exchange.h"
#include "base/clock.h"
#include "net/access.h"
#include "net/lane.h"
#include "net/pause.h"
#include "net/state.h"
#include "net/stream.h"
#include "net/wake.h"

/* ---- memory ---- */

void net_exchange_account(struct net_exchange *x, size_t bytes)
{
	struct net_server *s = x->server;
	atomic_fetch_add_explicit(&s->memory, bytes - x->accounted, memory_order_relaxed);
	x->accounted = bytes;
}

void net_exchange_unref(struct net_exchange *x)
{
	if (atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel) != 1)
		return;
	net_exchange_account(x, 0);
	buf_deinit(&x->body);
	buf_deinit(&x->scratch);
	buf_deinit(&x->message);
	buf_deinit(&x->response.body);
	buf_deinit(&x->answer.body);
	net_stream_free(x->rpc_stream);
	free(x->path_text);
	http_stream_unref(x->stream);
	free(x);
}

static bool exchange_gone(const struct net_request *r)
{
	struct net_exchange *x = (struct net_exchange *)r->conn;
	return atomic_load_explicit(&x->closed, memory_order_relaxed) ||
	       atomic_load_explicit(&x->hung_up, memory_order_relaxed) ||
	       (r->deadline_ns != INT64_MAX && clock_monotonic_ns() > r->deadline_ns);
}

struct net_exchange *net_exchange_new(struct net_conn *c, struct http_stream *stream)
{
	const struct http_request *h = http_stream_request(stream);
	struct net_exchange *x = calloc(1, sizeof(*x));
	char *path = malloc(h->target.len + 1);
	if (!x || !path) {
		free(x);
		free(path);
		return NULL;
	}
	atomic_init(&x->refs, 1);
	x->server = c->server;
	x->conn = c;
	x->stream = stream;
	http_stream_ref(stream);
	http_stream_set_user(stream, x);
	x->path_text = path;
	memcpy(x->peer, c->peer, sizeof(x->peer));
	buf_init(&x->body, c->server->config.body_max);
	buf_init(&x->scratch, c->server->config.body_max);
	buf_init(&x->message, c->server->config.body_max);
	net_response_init(&x->response);
	buf_init(&x->answer.body, 1);
	x->begun_ns = x->pace_ns = clock_monotonic_ns();
	x->next = c->exchanges;
	x->link = &c->exchanges;
	if (x->next)
		x->next->link = &x->next;
	c->exchanges = x;
	x->request = (struct net_request){ .method = h->method,
		.headers = h->headers,
		.header_count = h->header_count,
		.deadline_ns = INT64_MAX,
		.peer = x->peer,
		.gone = exchange_gone,
		.conn = x };
	return x;
}

/* ---- answers ---- */

static void count_answer(struct net_server *s, const struct net_answer *a, enum status status)
{
	int code = a->http_status;
	if (a->framing != NET_PLAIN && status != OK)
		code = status_http(status);
	metric_add(code < 400   ? &s->metrics.answers_ok
		   : code < 500 ? &s->metrics.answers_client
				: &s->metrics.answers_server,
		1);
}

static void set_answered(struct net_exchange *x)
{
	x->answered = true;
	x->answered_ns = clock_monotonic_ns();
	if (!x->whole)
		net_loop_look_at(x->server, x->answered_ns + x->server->config.stall_timeout_ns);
}

void net_exchange_answer(struct net_exchange *x)
{
	struct net_answer *a = &x->answer;
	set_answered(x);
	net_access_put(x);
	count_answer(x->server, a, x->response.status);
	int64_t length = (int64_t)a->body.len;
	if (a->no_body)
		length = HTTP_NO_BODY;
	else if (a->trailer_count)
		length = HTTP_LENGTH_UNKNOWN;
	http_respond(x->stream, a->http_status, a->headers, a->header_count, length);
	http_write_buf(x->stream, &a->body);
	http_finish(x->stream, a->trailers, a->trailer_count);
	net_exchange_account(x, 0);
}

void net_exchange_refuse(
	struct net_exchange *x, int http_status, enum status s, const struct err *e)
{
	if (x->answered)
		return;
	net_pause_forget(x);
	net_fail(&x->response, s, e);
	if (http_status)
		x->response.http_status = http_status;
	net_answer_make(&x->answer, x->framing, http_stream_request(x->stream), &x->response);
	net_exchange_answer(x);
	buf_deinit(&x->body);
}

void net_exchange_refuse_busy(struct net_exchange *x)
{
	struct err e;
	metric_add(&x->server->metrics.overloaded, 1);
	err_set(&e, E_UNAVAILABLE, "the server is busy, try again");
	net_exchange_refuse(x, 503, E_UNAVAILABLE, &e);
}

void net_exchange_refuse_late(struct net_exchange *x, int64_t now_ns)
{
	struct err e;
	bool is_over = now_ns >= x->request.deadline_ns;
	metric_add(&x->server->metrics.timeouts, 1);
	err_set(&e, E_TIMEOUT,
		is_over ? "the deadline passed before the request was whole"
			: "the body comes too slowly");
	net_exchange_refuse(x, is_over ? 0 : 408, E_TIMEOUT, &e);
}

/* Writes complete frames. As text, each piece ends with padding of its own, which every client
 * accepts. */
static void write_frames(struct net_exchange *x, struct buf *frames)
{
	if (x->framing != NET_GRPC_WEB_TEXT || frames->len == 0) {
		http_write_buf(x->stream, frames);
		return;
	}
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 2 * NET_ANSWER_MAX);
	http_base64_encode(&text, buf_view(frames));
	if (buf_status(&text) == OK)
		http_write_buf(x->stream, &text);
	else
		http_abort(x->stream);
}

static void begin_stream_answer(struct net_exchange *x)
{
	int64_t length = HTTP_LENGTH_UNKNOWN;
	x->rpc_stream->begun = true;
	if (x->framing == NET_PLAIN) {
		struct net_plain_head *head = &x->rpc_stream->head;
		net_answer_begin_plain(&x->answer, head);
		if (head->bytes)
			length = (int64_t)head->bytes;
	} else {
		net_answer_begin(&x->answer, x->framing, x->rpc_stream->compress);
	}
	net_access_put(x);
	http_respond(x->stream, x->answer.http_status, x->answer.headers, x->answer.header_count,
		length);
}

static void end_stream_answer(struct net_exchange *x)
{
	set_answered(x);
	if (x->framing == NET_PLAIN && x->response.status != OK) {
		count_answer(x->server, &x->answer, x->response.status);
		http_abort(x->stream);
		net_exchange_account(x, 0);
		return;
	}
	if (x->framing != NET_PLAIN)
		net_answer_end(&x->answer, &x->response);
	count_answer(x->server, &x->answer, x->response.status);
	http_write_buf(x->stream, &x->answer.body);
	http_finish(x->stream, x->answer.trailers, x->answer.trailer_count);
	net_exchange_account(x, 0);
}

/* Whether the answer is sent in one piece instead of as a stream. REST and plain HTTP have no
 * trailers, so a failure before the first message becomes the HTTP status. A handler may also have
 * left a plain answer in one piece. */
static bool is_answered_at_once(const struct net_exchange *x, const struct net_stream_news *n)
{
	if (!n->finished || n->out.len || x->rpc_stream->begun)
		return false;
	return x->framing == NET_PLAIN || (x->framing == NET_REST && x->response.status != OK);
}

/* Delivers what the handler of a stream has sent: messages, its window, its end. */
static void deliver_stream(struct net_exchange *x)
{
	struct net_stream *st = x->rpc_stream;
	struct net_stream_news n = net_stream_take_news(st);
	if (x->conn && !x->answered) {
		net_exchange_account(x, n.waiting);
		if (n.open)
			http_open_window(x->stream, n.open);
		if (is_answered_at_once(x, &n)) {
			net_answer_make(&x->answer, x->framing, http_stream_request(x->stream),
				&x->response);
			net_exchange_answer(x);
		} else {
			if (!st->begun)
				begin_stream_answer(x);
			write_frames(x, &n.out);
			if (n.finished)
				end_stream_answer(x);
		}
		net_loop_again(x->server, x->conn);
	}
	buf_deinit(&n.out);
	net_exchange_unref(x);
}

void net_exchange_deliver(struct net_exchange *x)
{
	if (x->rpc_stream && x->rpc_stream->running) {
		deliver_stream(x);
		return;
	}
	x->server->at_work--;
	if (x->conn && !x->answered) {
		net_exchange_answer(x);
		net_loop_again(x->server, x->conn);
	}
	net_exchange_unref(x);
}

/* ---- requests that wait ---- */

bool net_exchange_leave_queue(struct net_exchange *x)
{
	struct net_lane *lane = x->queued;
	x->queued = NULL;
	if (!lane || !net_lane_remove(lane, x))
		return false;
	x->server->at_work--;
	return true;
}

bool net_exchange_refuse_waiting(struct net_exchange *x)
{
	struct err e;
	if (x->paused) {
		net_exchange_refuse_busy(x);
		return true;
	}
	if (!net_exchange_leave_queue(x))
		return false;
	bool is_over = clock_monotonic_ns() >= x->request.deadline_ns;
	metric_add(&x->server->metrics.turns_late, 1);
	err_set(&e, is_over ? E_TIMEOUT : E_UNAVAILABLE,
		"the server is busy, and this did not get its turn in time: try again");
	net_exchange_refuse(x, 0, is_over ? E_TIMEOUT : E_UNAVAILABLE, &e);
	net_exchange_unref(x);
	return true;
}
