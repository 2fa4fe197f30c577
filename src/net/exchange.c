/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a request: on_head makes the exchange, chooses framing and route, and refuses at once
 * what can be refused by the head; on_data collects the body; on_end runs the handler here
 * (on_loop) or queues it for a worker; net_exchange_deliver() sends the answer; on_close lets go.
 *
 * References: one of the stream (until on_close), one of a job (until delivered). `answered` guards
 * against a second answer: a refusal leaves the rest of the body to be dropped by http.
 */
#include "base/clock.h"
#include "net/internal.h"

static const char *const known_methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS",
	"PATCH" };

/* ---- memory ---- */

static void account(struct net_exchange *x, size_t bytes)
{
	struct net_server *s = x->server;
	atomic_fetch_add_explicit(&s->memory, bytes - x->accounted, memory_order_relaxed);
	x->accounted = bytes;
}

void net_exchange_unref(struct net_exchange *x)
{
	if (atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel) != 1)
		return;
	account(x, 0);
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

static struct net_exchange *exchange_new(struct net_conn *c, struct http_stream *stream)
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
}

static void send_answer(struct net_exchange *x)
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
	account(x, 0);
}

/* Answer at once, on the loop, without a handler. http_status 0: the status' own. */
static void refuse(struct net_exchange *x, int http_status, enum status s, const struct err *e)
{
	if (x->answered)
		return;
	net_pause_forget(x);
	net_fail(&x->response, s, e);
	if (http_status)
		x->response.http_status = http_status;
	net_answer_make(&x->answer, x->framing, http_stream_request(x->stream), &x->response);
	send_answer(x);
	buf_deinit(&x->body);
}

static void refuse_busy(struct net_exchange *x)
{
	struct err e;
	metric_add(&x->server->metrics.overloaded, 1);
	err_set(&e, E_UNAVAILABLE, "the server is busy, try again");
	refuse(x, 503, E_UNAVAILABLE, &e);
}

void net_exchange_refuse_late(struct net_exchange *x, int64_t now_ns)
{
	struct err e;
	bool is_over = now_ns >= x->request.deadline_ns;
	metric_add(&x->server->metrics.timeouts, 1);
	err_set(&e, E_TIMEOUT,
		is_over ? "the deadline passed before the request was whole"
			: "the body comes too slowly");
	refuse(x, is_over ? 0 : 408, E_TIMEOUT, &e);
}

/* Frames that are whole; as text each piece is padded, which every client takes. */
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
	x->rpc_stream->begun = true;
	net_answer_begin(&x->answer, x->framing, x->rpc_stream->compress);
	net_access_put(x);
	http_respond(x->stream, x->answer.http_status, x->answer.headers, x->answer.header_count,
		HTTP_LENGTH_UNKNOWN);
}

/* Delivers what the handler of a stream has sent: messages, its window, its end. */
static void deliver_stream(struct net_exchange *x)
{
	struct net_stream *st = x->rpc_stream;
	struct net_stream_news n = net_stream_take_news(st);
	if (x->conn && !x->answered) {
		struct net_conn *c = x->conn;
		account(x, n.waiting);
		if (n.open)
			http_open_window(x->stream, n.open);
		/* REST has no trailers: a failure before any answer has a status of its own. */
		bool bare = x->framing == NET_REST && n.finished && !st->begun && !n.out.len &&
			    x->response.status != OK;
		if (!st->begun && !bare)
			begin_stream_answer(x);
		if (!bare)
			write_frames(x, &n.out);
		if (bare) {
			net_answer_make(
				&x->answer, NET_REST, http_stream_request(x->stream), &x->response);
			send_answer(x);
		} else if (n.finished) {
			set_answered(x);
			net_answer_end(&x->answer, &x->response);
			count_answer(x->server, &x->answer, x->response.status);
			http_write_buf(x->stream, &x->answer.body);
			http_finish(x->stream, x->answer.trailers, x->answer.trailer_count);
			account(x, 0);
		}
		net_conn_pump(c);
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
		struct net_conn *c = x->conn;
		send_answer(x);
		net_conn_pump(c);
	}
	net_exchange_unref(x);
}

/* ---- routing ---- */

static bool route_path_fits(const struct net_route *route, struct str path, bool any_prefix)
{
	struct str want = str_of(route->path);
	struct pb_param fields[NET_REST_FIELDS_MAX];
	size_t count;
	if (route->rest)
		return net_rest_fits(route->path, path, fields, &count);
	if (want.len && want.p[want.len - 1] == '*')
		return str_starts(path, str_sub(want, 0, want.len - 1));
	return str_eq(path, want) || (any_prefix && route->is_rpc && str_ends(path, want));
}

static bool route_method_fits(const struct net_route *route, struct str method)
{
	if (!route->method)
		return true;
	struct str want = str_of(route->method);
	return str_eq(method, want) || (str_eq(method, STR("HEAD")) && str_eq(want, STR("GET")));
}

/* The methods that a path takes, in x->response.headers; false when there is no such path. */
static bool put_allow(struct net_exchange *x)
{
	char *out = x->response.headers;
	size_t size = sizeof(x->response.headers), n = 0;
	for (size_t i = 0; i < x->server->route_count; i++) {
		const struct net_route *r = &x->server->routes[i];
		if (!r->method || !route_path_fits(r, x->request.path, false))
			continue;
		int more = snprintf(out + n, size - n, "%s%s%s", n ? ", " : "allow: ", r->method,
			strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
		n = MIN(n + (size_t)more, size - 16);
	}
	if (n)
		snprintf(out + n, size - n, ", OPTIONS\r\n");
	return n > 0;
}

/* An answer without a body, by the head alone. */
static void answer_bare(struct net_exchange *x, int http_status)
{
	x->response.http_status = http_status;
	net_answer_make(&x->answer, NET_PLAIN, http_stream_request(x->stream), &x->response);
	if (http_status == 204 && net_access_is_preflight(x))
		net_access_preflight(x);
	send_answer(x);
}

static void refuse_no_route(struct net_exchange *x)
{
	struct err e;
	struct str method = x->request.method, path = str_sub(x->request.path, 0, 128);
	if (x->framing != NET_PLAIN) {
		err_set(&e, E_UNSUPPORTED, "unknown method %.*s", STR_ARG(path));
		refuse(x, 0, E_UNSUPPORTED, &e);
		return;
	}
	bool known = false;
	for (size_t i = 0; i < ARRAY_COUNT(known_methods); i++)
		known |= str_eq(method, str_of(known_methods[i]));
	if (!known) {
		err_set(&e, E_UNSUPPORTED, "method %.*s is not known here", STR_ARG(method));
		refuse(x, 501, E_UNSUPPORTED, &e);
	} else if (!put_allow(x)) {
		err_set(&e, E_NOTFOUND, "nothing at %.*s", STR_ARG(path));
		refuse(x, 404, E_NOTFOUND, &e);
	} else if (str_eq(method, STR("OPTIONS"))) {
		answer_bare(x, 204);
	} else {
		err_set(&e, E_UNSUPPORTED, "%.*s does not take %.*s", STR_ARG(path),
			STR_ARG(method));
		refuse(x, 405, E_UNSUPPORTED, &e);
	}
}

static const struct net_route *find_route(const struct net_exchange *x)
{
	bool web = x->framing == NET_GRPC_WEB || x->framing == NET_GRPC_WEB_TEXT;
	for (size_t i = 0; i < x->server->route_count; i++) {
		const struct net_route *r = &x->server->routes[i];
		if (x->framing != NET_PLAIN && !r->is_rpc)
			continue;
		if (route_path_fits(r, x->request.path, web) &&
			route_method_fits(r, x->request.method))
			return r;
	}
	return NULL;
}

/* Framing and route together: JSON is Connect's on the path of an RPC, else REST or plain. */
static void choose_route(struct net_exchange *x, const struct http_request *h)
{
	x->framing = net_framing_of(http_request_header(h, "content-type"));
	x->route = find_route(x);
	bool connect = http_request_header(h, "connect-protocol-version").len > 0;
	if (x->framing == NET_CONNECT_JSON && !x->route && !connect) {
		x->framing = NET_PLAIN;
		x->route = find_route(x);
	}
	if (x->framing == NET_PLAIN && x->route && x->route->rest)
		x->framing = NET_REST;
	x->request.is_rpc = x->framing != NET_PLAIN;
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
	if (x->framing == NET_GRPC && h->version != HTTP_2) {
		err_set(&e, E_UNSUPPORTED, "gRPC needs HTTP/2; gRPC-Web and Connect do not");
		x->framing = NET_PLAIN;
		refuse(x, 415, E_UNSUPPORTED, &e);
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
		refuse(x, 415, E_UNSUPPORTED, &e);
		return false;
	}
	struct str encoding = http_request_header(h, "content-encoding");
	bool encoded = x->framing == NET_PLAIN || x->framing >= NET_CONNECT;
	if (encoded && encoding.len && !str_eq_nocase(encoding, STR("gzip")) &&
		!str_eq_nocase(encoding, STR("identity"))) {
		err_set(&e, E_UNSUPPORTED, "content-encoding \"%.*s\"; gzip is known",
			STR_ARG(str_sub(encoding, 0, 32)));
		refuse(x, 415, E_UNSUPPORTED, &e);
		return false;
	}
	return true;
}

/* What a body may hold: a message, and what the framing puts around it. */
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
	refuse(x, 413, E_LIMIT, &e);
}

static void start_stream(struct net_exchange *x)
{
	struct err e;
	if (net_stream_start(x))
		return;
	metric_add(&x->server->metrics.streams_refused, 1);
	err_set(&e, E_QUOTA, "more than %u streaming calls at a time",
		x->server->config.streams_max);
	refuse(x, 0, E_QUOTA, &e);
}

/* Over gRPC, and Connect's streams on HTTP/2, the handler runs while messages come; the other
 * framings send all of them first. */
static void open_stream(struct net_exchange *x)
{
	struct err e;
	bool connect = net_is_connect_stream(x->framing);
	bool live = x->framing == NET_GRPC ||
		    (connect && http_stream_request(x->stream)->version == HTTP_2);
	enum status s = net_stream_new(x, &e);
	if (s != OK) {
		refuse(x, 0, s, &e);
	} else if (live) {
		x->rpc_stream->live = true;
		start_stream(x);
	}
}

/* Host, origin and prefix, and then the route; false: it was answered. */
static bool admit(struct net_exchange *x, const struct http_request *h)
{
	struct err e;
	enum net_prefix prefix = net_access_prefix(x, x->request.path, &x->request.path);
	choose_route(x, h);
	enum status s = net_access_check(x, h, &e);
	bool rpc = x->framing == NET_GRPC || x->framing == NET_GRPC_WEB ||
		   x->framing == NET_GRPC_WEB_TEXT;
	if (s != OK) {
		refuse(x, 403, s, &e);
	} else if (net_access_is_preflight(x)) {
		answer_bare(x, 204);
	} else if (prefix == NET_PREFIX_REDIRECT) {
		snprintf(x->response.headers, sizeof(x->response.headers), "location: %s/\r\n",
			x->server->config.path_prefix);
		answer_bare(x, 302);
	} else if (prefix == NET_PREFIX_OTHER && !rpc) {
		err_set(&e, E_NOTFOUND, "nothing at %.*s; all is below %s/",
			STR_ARG(str_sub(x->request.path, 0, 100)), x->server->config.path_prefix);
		refuse(x, 404, E_NOTFOUND, &e);
	}
	return !x->answered;
}

/* By the head alone; false: it was answered. */
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
	refuse(x, 0, e.status, &e);
	return false;
}

/* A request without a body that fills the memory: senders do not hold up queries. */
static bool asks_only(const struct net_exchange *x)
{
	return str_eq(x->request.method, STR("GET"));
}

static void check_head(struct net_exchange *x, const struct http_request *h)
{
	struct err e;
	enum status s =
		http_target_parse(h->target, x->path_text, &x->request.path, &x->request.query, &e);
	if (s != OK) {
		refuse(x, 400, s, &e);
		return;
	}
	if (!admit(x, h))
		return;
	set_deadline(x);
	s = http_query_check(x->request.query, &e);
	if (s != OK) {
		refuse(x, 400, s, &e);
		return;
	}
	if (!x->route) {
		refuse_no_route(x);
		return;
	}
	if (!guard_lets_in(x) || !check_type(x, h))
		return;
	assert(!x->unguarded || !x->route->on_loop);
	x->body.max = body_max(x);
	struct net_server *server = x->server;
	if (h->content_length > 0 && (uint64_t)h->content_length > body_max(x))
		refuse_large(x);
	else if (x->route->stream_fn && atomic_load(&server->memory) > server->config.memory_max)
		refuse_busy(x);
	else if (x->route->stream_fn)
		open_stream(x);
	else if (!x->route->on_loop && (!asks_only(x) || net_pause_is_pressed(server)))
		net_pause(x);
}

static void on_head(void *ctx, struct http_stream *stream)
{
	struct net_conn *c = (struct net_conn *)ctx;
	metric_add(&c->server->metrics.requests, 1);
	struct net_exchange *x = exchange_new(c, stream);
	if (!x) {
		http_abort(stream);
		return;
	}
	check_head(x, http_stream_request(stream));
	int64_t stall_ns = x->begun_ns + c->server->config.stall_timeout_ns;
	net_loop_look_at(c->server, MIN(stall_ns, x->request.deadline_ns));
}

/* ---- the body ---- */

/* A body that began below the limit, or was slowed down above it, goes on until memory is a
 * multiple of the limit. One exchange always may. */
static bool others_fill_memory(const struct net_exchange *x)
{
	size_t times = x->rpc_stream ? 2 : 4;
	return atomic_load(&x->server->favoured) != x &&
	       atomic_load(&x->server->memory) - x->accounted >
		       times * x->server->config.memory_max;
}

/* A message says its length first: one that is too long is not waited for. */
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
	account(x, net_stream_feed(x->rpc_stream, bytes, len, &open));
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
	if (running && !x->route->on_loop)
		net_pause(x);
	if (running && x->paused) {
		http_consume_held(stream, len);
		x->window_held += len;
	} else {
		http_consume(stream, len);
	}
	if (!running)
		return;
	if (x->body.len + len > x->body.max) {
		refuse_large(x);
		return;
	}
	/* A body of known length gets its memory once. */
	int64_t expected = http_stream_request(stream)->content_length;
	if (x->body.len == 0 && expected > (int64_t)len && (uint64_t)expected <= x->body.max &&
		!buf_reserve(&x->body, (size_t)MIN(expected, (int64_t)1 << 20)))
		refuse_busy(x);
	if (x->answered)
		return;
	buf_put(&x->body, bytes, len);
	if (prefix_too_large(x))
		refuse_large(x);
	else if (x->body.failed || others_fill_memory(x))
		refuse_busy(x);
	else
		account(x, x->body.len);
}

/* The client's last message is here. */
static void end_stream(struct net_exchange *x)
{
	struct net_stream *st = x->rpc_stream;
	if (st->running) {
		net_stream_end(st);
		return;
	}
	start_stream(x);
}

void net_exchange_await_turn(struct net_exchange *x)
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
	refuse_busy(x);
	net_exchange_unref(x);
}

/* The client has gone, or it is too late: true when no worker had begun. */
static bool leave_queue(struct net_exchange *x)
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
		refuse_busy(x);
		return true;
	}
	if (!leave_queue(x))
		return false;
	bool is_over = clock_monotonic_ns() >= x->request.deadline_ns;
	metric_add(&x->server->metrics.turns_late, 1);
	err_set(&e, is_over ? E_TIMEOUT : E_UNAVAILABLE,
		"the server is busy, and this did not get its turn in time: try again");
	refuse(x, 0, is_over ? E_TIMEOUT : E_UNAVAILABLE, &e);
	net_exchange_unref(x);
	return true;
}

static void on_end(void *ctx, struct http_stream *stream)
{
	(void)ctx;
	struct net_exchange *x = (struct net_exchange *)http_stream_user(stream);
	if (!x)
		return;
	x->whole = true;
	if (x->answered)
		return;
	if (x->rpc_stream) {
		end_stream(x);
		return;
	}
	if (x->route->on_loop) {
		net_exchange_run(x);
		send_answer(x);
		return;
	}
	if (!x->paused)
		net_exchange_await_turn(x);
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
	if (leave_queue(x))
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

/* ---- the handler ---- */

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

void net_exchange_run(struct net_exchange *x)
{
	struct err e = { 0 };
	net_pause_begun(x);
	if (atomic_load_explicit(&x->closed, memory_order_relaxed))
		return;
	if (!net_access_guard(x)) {
		net_answer_make(
			&x->answer, x->framing, http_stream_request(x->stream), &x->response);
		return;
	}
	enum status s = decode(x, &e);
	if (s == OK) {
		x->route->fn(x->route->ctx, &x->request, &x->response);
		/* A handler that gave up because exchange_gone() said so. */
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
	if (x->framing >= NET_CONNECT_JSON)
		net_json_answer(x);
	net_answer_make(&x->answer, x->framing, http_stream_request(x->stream), &x->response);
}
