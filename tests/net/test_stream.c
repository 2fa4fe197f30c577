/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: over gRPC-Web, where the client sends all first, and over HTTP/2 against a client
 * session of nghttp2, where both sides go on. */
#include "test.h"

#include "net/state.h"

#include "peer.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

/* ---- a client ---- */

struct client {
	int fd;
	nghttp2_session *h2;
	struct buf in[8]; /* bytes of each stream's answer, by (id - 1) / 2 */
	char status[8][8];
	char message[8][256];
	bool closed[8];
	struct buf up[8]; /* bytes to be sent */
	size_t up_at[8];  /* of them, up to here they were */
	bool last[8];     /* and then its end */
	bool deferred[8];
	bool mute; /* the windows stay closed */
};

static int slot(int32_t id)
{
	return (id - 1) / 2 % 8;
}

static int on_data(
	nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *user)
{
	struct client *c = user;
	(void)flags;
	buf_put(&c->in[slot(id)], p, len);
	if (!c->mute)
		nghttp2_session_consume(h2, id, len);
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *n, size_t nl,
	const uint8_t *v, size_t vl, uint8_t flags, void *user)
{
	struct client *c = user;
	int i = slot(f->hd.stream_id);
	(void)h2;
	(void)flags;
	if (str_eq(str_make(n, nl), STR("grpc-status")))
		snprintf(c->status[i], sizeof(c->status[i]), "%.*s", (int)vl, (const char *)v);
	if (str_eq(str_make(n, nl), STR("grpc-message")))
		snprintf(c->message[i], sizeof(c->message[i]), "%.*s", (int)vl, (const char *)v);
	return 0;
}

static int on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *user)
{
	(void)h2;
	(void)code;
	((struct client *)user)->closed[slot(id)] = true;
	return 0;
}

static ssize_t read_up(nghttp2_session *h2, int32_t id, uint8_t *out, size_t max, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct client *c = user;
	int i = slot(id);
	struct buf *b = &c->up[i];
	(void)h2;
	(void)source;
	size_t n = MIN(max, b->len - c->up_at[i]);
	if (n == 0 && !c->last[i]) {
		c->deferred[i] = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n)
		memcpy(out, b->data + c->up_at[i], n);
	c->up_at[i] += n;
	if (b->len == c->up_at[i] && c->last[i])
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static void client_open(struct client *c, const struct net_server *s)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *opt = NULL;
	memset(c, 0, sizeof(*c));
	c->fd = peer_connect(s);
	for (int i = 0; i < 8; i++) {
		buf_init(&c->in[i], 256 << 20);
		buf_init(&c->up[i], 256 << 20);
	}
	CHECK(nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&opt) == 0);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	CHECK(nghttp2_session_client_new2(&c->h2, cb, c, opt) == 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(opt);
	CHECK(nghttp2_submit_settings(c->h2, 0, NULL, 0) == 0);
}

static void client_close(struct client *c)
{
	close(c->fd);
	nghttp2_session_del(c->h2);
	for (int i = 0; i < 8; i++) {
		buf_deinit(&c->in[i]);
		buf_deinit(&c->up[i]);
	}
}

/* What is ready on both sides; waits at most that long for the server. */
static void client_turn(struct client *c, int wait_ms)
{
	const uint8_t *p;
	ssize_t n;
	char chunk[65536];
	/* Together, so that a call and its message are not torn apart by whoever lets us wait. */
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 256 << 20);
	while ((n = nghttp2_session_mem_send(c->h2, &p)) > 0)
		buf_put(&out, p, (size_t)n);
	CHECK(buf_status(&out) == OK && peer_send(c->fd, out.data, out.len));
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
	if (poll(&pfd, 1, wait_ms) <= 0)
		return;
	n = recv(c->fd, chunk, sizeof(chunk), 0);
	if (n > 0)
		CHECK(nghttp2_session_mem_recv(c->h2, (uint8_t *)chunk, (size_t)n) == n);
}

#define CLIENT_UNTIL(c, x)                                             \
	do {                                                           \
		int64_t end_ = clock_monotonic_ns() + 30 * NS_PER_SEC; \
		while (!(x) && clock_monotonic_ns() < end_)            \
			client_turn((c), 10);                          \
		CHECK(x);                                              \
	} while (0)

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE };
}

/* A call; its id. `more` may be NULL. */
static int32_t call_as(
	struct client *c, const char *path, const char *type, const char *more, const char *value)
{
	nghttp2_nv head[] = { nv(":method", "POST"), nv(":path", path), nv(":scheme", "http"),
		nv(":authority", "h"), nv("content-type", type), nv("te", "trailers"),
		nv(more ? more : "x-none", more ? value : "1") };
	nghttp2_data_provider up = { .read_callback = read_up };
	int32_t id = nghttp2_submit_request(c->h2, NULL, head, ARRAY_COUNT(head), &up, NULL);
	CHECK(id > 0);
	return id;
}

static int32_t call(struct client *c, const char *path, const char *more, const char *value)
{
	return call_as(c, path, "application/grpc", more, value);
}

static void push(struct client *c, int32_t id, const void *bytes, size_t len, bool last)
{
	int i = slot(id);
	if (bytes)
		http_grpc_put(&c->up[i], 0, str_make(bytes, len));
	c->last[i] = last;
	if (c->deferred[i]) {
		c->deferred[i] = false;
		CHECK(nghttp2_session_resume_data(c->h2, id) == 0);
	}
}

/* ---- tests ---- */

static void answers_while_messages_come(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t id = call(&c, "/t.Test/Chat", NULL, NULL);
	for (size_t i = 1; i <= 20; i++) {
		push(&c, id, "ping", 4, false);
		CLIENT_UNTIL(&c, c.in[0].len == i * 9);
	}
	CHECK(!c.closed[0]);
	push(&c, id, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "0");
	/* An error ends it, whatever the client still wants. */
	id = call(&c, "/t.Test/Chat", NULL, NULL);
	push(&c, id, "fail", 4, false);
	CLIENT_UNTIL(&c, c.closed[1]);
	assert_string_equal(c.status[1], "3");
	assert_string_equal(c.message[1], "as you wish");
	client_close(&c);
	net_server_stop(s);
}

static void takes_what_is_longer_than_a_window(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	size_t large = 20 << 20;
	char *zeros = calloc(1, large);
	int32_t id = call(&c, "/t.Test/Sum", NULL, NULL);
	push(&c, id, zeros, large, false);
	for (int i = 0; i < 100; i++)
		push(&c, id, zeros, 1000, false);
	push(&c, id, zeros, 0, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "0");
	char want[64];
	snprintf(want, sizeof(want), "%zu in 102", large + 100 * 1000);
	CHECK_STR(str_sub(buf_view(&c.in[0]), 5, 100), want);
	/* One byte beyond the limit of a message is told by its prefix alone. */
	id = call(&c, "/t.Test/Sum", NULL, NULL);
	buf_put(&c.up[1], "\0\4\0\0\1", 5);
	push(&c, id, NULL, 0, false);
	CLIENT_UNTIL(&c, c.closed[1]);
	assert_string_equal(c.status[1], "8");
	free(zeros);
	client_close(&c);
	net_server_stop(s);
}

/* A handler that takes nothing stops its own client, and no other call of the connection. */
static void holds_back_one_stream_only(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	atomic_store(&peer_hold, true);
	char kilobytes[10000] = "";
	int32_t id = call(&c, "/t.Test/Sum", NULL, NULL);
	for (int i = 0; i < 1000; i++)
		push(&c, id, kilobytes, sizeof(kilobytes), false);
	CLIENT_UNTIL(&c, c.up_at[0] > NET_STREAM_AHEAD_MAX);
	for (int i = 0; i < 50; i++)
		client_turn(&c, 10);
	/* What waits: messages read ahead, and one window. */
	size_t sent = c.up_at[0];
	CHECK(sent < NET_STREAM_AHEAD_MAX + (512 << 10) && sent > NET_STREAM_AHEAD_MAX);
	CHECK(peer_metric(s, "firn_net_body_bytes") < 2 << 20);
	int32_t other = call(&c, "/t.Test/Echo", NULL, NULL);
	push(&c, other, "other", 5, true);
	CLIENT_UNTIL(&c, c.closed[1]);
	assert_string_equal(c.status[1], "0");
	atomic_store(&peer_hold, false);
	push(&c, id, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "0");
	client_close(&c);
	net_server_stop(s);
}

/* A client that reads nothing makes the handler wait, in bounded memory. */
static void waits_for_a_client_that_does_not_read(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	c.mute = true;
	int32_t id = call(&c, "/t.Test/Chat", NULL, NULL);
	char text[1000];
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 2000; i++)
		push(&c, id, text, sizeof(text), false);
	for (int i = 0; i < 50; i++)
		client_turn(&c, 10);
	CHECK(c.in[0].len <= 65535);
	CHECK(peer_metric(s, "firn_net_body_bytes") < 3 << 20);
	c.mute = false;
	nghttp2_session_consume(c.h2, id, c.in[0].len);
	push(&c, id, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_int_equal(c.in[0].len, 2000 * 1005);
	client_close(&c);
	net_server_stop(s);
}

static void ends_with_the_client_or_the_deadline(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	/* reset */
	int32_t id = call(&c, "/t.Test/Chat", NULL, NULL);
	push(&c, id, "x", 1, false);
	CLIENT_UNTIL(&c, c.in[0].len == 6);
	nghttp2_submit_rst_stream(c.h2, 0, id, NGHTTP2_CANCEL);
	CLIENT_UNTIL(&c, atomic_load(&peer_canceled) == 1);
	assert_int_equal(peer_stream_status, E_CANCELED);
	/* deadline */
	id = call(&c, "/t.Test/Chat", "grpc-timeout", "50m");
	CLIENT_UNTIL(&c, c.closed[1]);
	assert_string_equal(c.status[1], "4");
	assert_string_equal(c.message[1], "the deadline passed");
	/* half a message, then the end */
	id = call(&c, "/t.Test/Chat", NULL, NULL);
	buf_put(&c.up[2], "\0\0\0\0\5abc", 8);
	push(&c, id, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[2]);
	assert_string_equal(c.status[2], "3");
	assert_string_equal(c.message[2], "the last message is not whole");
	/* the connection */
	id = call(&c, "/t.Test/Chat", NULL, NULL);
	push(&c, id, "x", 1, false);
	CLIENT_UNTIL(&c, c.in[3].len == 6);
	int canceled = atomic_load(&peer_canceled);
	client_close(&c);
	PEER_UNTIL(atomic_load(&peer_canceled) == canceled + 1);
	PEER_UNTIL(peer_metric(s, "firn_net_streams") == 0);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	net_server_stop(s);
}

static void ends_where_no_message_comes(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stream_idle_ns = 300 * NS_PER_MS;
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	(void)call(&c, "/t.Test/Chat", NULL, NULL);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "4");
	assert_string_equal(c.message[0], "no message came in time");
	client_close(&c);
	net_server_stop(s);
}

/* What one stream does not send or read costs that stream, and no other of its connection. */
static void gives_up_one_stream_only(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = 300 * NS_PER_MS;
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t chat = call(&c, "/t.Test/Chat", NULL, NULL);
	push(&c, chat, "x", 1, false);
	CLIENT_UNTIL(&c, c.in[0].len == 6);
	/* half a body */
	int32_t id = call(&c, "/t.Test/Echo", NULL, NULL);
	buf_put(&c.up[1], "\0\0\0\0\5abc", 8);
	push(&c, id, NULL, 0, false);
	CLIENT_UNTIL(&c, c.closed[1]);
	assert_string_equal(c.status[1], "4");
	assert_string_equal(c.message[1], "the body comes too slowly");
	/* an answer longer than the window, which stays closed */
	c.mute = true;
	id = call(&c, "/t.Test/Large", NULL, NULL);
	push(&c, id, "", 0, true);
	CLIENT_UNTIL(&c, c.closed[2]);
	assert_string_equal(c.status[2], "");
	c.mute = false;
	CHECK(nghttp2_session_consume_connection(c.h2, c.in[2].len) == 0);
	/* the first one is still there */
	push(&c, chat, "y", 1, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "0");
	assert_int_equal(c.in[0].len, 12);
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 2);
	assert_int_equal(peer_metric(s, "firn_net_connections_accepted_total"), 1);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	client_close(&c);
	net_server_stop(s);
}

/* The deadline of a call counts while its message is on the way too. */
static void ends_half_a_call_by_its_deadline(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t id = call(&c, "/t.Test/Echo", "grpc-timeout", "200m");
	buf_put(&c.up[0], "\0\0\0\0\5abc", 8);
	push(&c, id, NULL, 0, false);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "4");
	assert_string_equal(c.message[0], "the deadline passed before the request was whole");
	assert_int_equal(atomic_load(&peer_calls), 0);
	client_close(&c);
	net_server_stop(s);
}

static void bounds_how_many_there_are(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.streams_max = 2;
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t a = call(&c, "/t.Test/Chat", NULL, NULL);
	int32_t b = call(&c, "/t.Test/Chat", NULL, NULL);
	(void)call(&c, "/t.Test/Chat", NULL, NULL);
	CLIENT_UNTIL(&c, c.closed[2]);
	assert_string_equal(c.status[2], "8");
	assert_string_equal(c.message[2], "more than 2 streaming calls at a time");
	CHECK(peer_metric(s, "firn_net_streams_refused_total") == 1);
	push(&c, a, NULL, 0, true);
	push(&c, b, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[0] && c.closed[1]);
	client_close(&c);
	net_server_stop(s);
}

static void stops_with_the_server(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.drain_timeout_ns = 120 * NS_PER_SEC;
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t id = call(&c, "/t.Test/Chat", NULL, NULL);
	push(&c, id, "x", 1, false);
	CLIENT_UNTIL(&c, c.in[0].len == 6);
	int64_t begun = clock_monotonic_ns();
	net_server_stop(s);
	CHECK(clock_monotonic_ns() - begun < config.drain_timeout_ns / 2);
	assert_int_equal(peer_stream_status, E_UNAVAILABLE);
	CLIENT_UNTIL(&c, c.closed[0]);
	assert_string_equal(c.status[0], "14");
	client_close(&c);
}

static void goes_over_web_too(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	/* clang-format off */
	static const struct { const char *name, *path, *type; const char *body; size_t len; const char *end; size_t end_len; } cases[] = {
		{ "two in, two out", "/t.Test/Chat", "application/grpc-web", "\0\0\0\0\1a\0\0\0\0\2bc", 13, "grpc-status: 0\r\n", 16 },
		{ "as text", "/api/t.Test/Sum", "application/grpc-web-text", "AAAAAAFhAAAAAAJiYw==", 20, "gAAAABBncnBjLXN0YXR1czogMA0K", 28 },
		{ "no base64", "/t.Test/Sum", "application/grpc-web-text", "AAA?", 4, "", 0 },
		{ "an error", "/t.Test/Chat", "application/grpc-web", "\0\0\0\0\4fail", 9, "grpc-status: 3\r\ngrpc-message: as you wish\r\n", 43 },
		{ "connect's unary type", "/t.Test/Chat", "application/proto", "", 0, "UNSUPPORTED\"}\n", 14 },
		{ "connect", "/t.Test/Chat", "application/connect+proto", "\0\0\0\0\1a\0\0\0\0\2bc", 13, "\2\0\0\0\2{}", 7 },
		{ "connect, an error", "/t.Test/Chat", "application/connect+proto", "\0\0\0\0\4fail", 9,
			"\2\0\0\0\75{\"error\":{\"code\":\"invalid_argument\",\"message\":\"as you wish\"}}", 66 },
		{ "connect, unary", "/t.Test/Json", "application/connect+proto", "", 0, "UNSUPPORTED\"}\n", 14 },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf request;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&request, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_printf(&request,
			"POST %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: %s\r\n"
			"content-length: %zu\r\n\r\n",
			c->path, c->type, c->len);
		buf_put(&request, c->body, c->len);
		peer_exchange(s, request.data, request.len, &out);
		/* The chunk that ends a body of unknown length stands behind it. */
		struct str got = buf_view(&out), tail = STR("\r\n0\r\n\r\n");
		if (str_ends(got, tail))
			got.len -= tail.len;
		if (!str_ends(got, str_make(c->end, c->end_len)))
			print_error("%.*s\n", STR_ARG(got));
		CHECK_CASE(c, str_ends(got, str_make(c->end, c->end_len)));
	}
	net_server_stop(s);
}

/* JSON in each of Connect's frames, both ways. */
static void goes_over_connect_in_json(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	static const struct {
		const char *name, *path, *body, *want;
	} cases[] = {
		{ "an answer for each", "/t.Test/Chat", "{\"count\":1}", "{\"count\":\"1\"}" },
		{ "a bad one", "/t.Test/Chat", "{\"count\":\"x\"}",
			"{\"error\":{\"code\":\"invalid_argument\",\"message\":\"count: " },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf request;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&request, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_printf(&request,
			"POST %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: "
			"application/connect+json\r\ncontent-length: %zu\r\n\r\n",
			c->path, strlen(c->body) + 5);
		http_grpc_put(&request, 0, str_of(c->body));
		peer_exchange(s, request.data, request.len, &out);
		CHECK_CASE(c, memmem(out.data, out.len, c->want, strlen(c->want)));
		CHECK_CASE(
			c, memmem(out.data, out.len, "content-type: application/connect+json", 38));
	}
	net_server_stop(s);
}

/* On HTTP/2 both sides go on, as in gRPC. */
static void goes_over_connect_while_messages_come(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct client c;
	client_open(&c, s);
	int32_t id = call_as(&c, "/t.Test/Chat", "application/connect+proto", NULL, NULL);
	for (size_t i = 1; i <= 3; i++) {
		push(&c, id, "ping", 4, false);
		CLIENT_UNTIL(&c, c.in[0].len == i * 9);
	}
	push(&c, id, NULL, 0, true);
	CLIENT_UNTIL(&c, c.closed[0]);
	CHECK(str_eq(str_sub(buf_view(&c.in[0]), 27, 100), str_make("\2\0\0\0\2{}", 7)));
	id = call_as(&c, "/t.Test/Chat", "application/connect+proto", "connect-timeout-ms", "50");
	CLIENT_UNTIL(&c, c.closed[1]);
	CHECK(memmem(c.in[1].data, c.in[1].len, "deadline_exceeded", 17));
	client_close(&c);
	net_server_stop(s);
}

/* Objects in, one behind the other; objects out. */
static void goes_over_rest_too(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	/* clang-format off */
	static const struct { const char *name, *path, *body, *status, *has; } cases[] = {
		{ "one answer", "/rest/count", "{\"labelName\":\"a}\\\"{\"} {\"count\":1}\n{}\n", "200", "{\"labelName\":\"\",\"count\":\"3\",\"match\":[]}" },
		{ "a failure has its status", "/rest/count", " \n", "404", "{\"code\":5,\"message\":\"no message\",\"details\":[]}" },
		{ "a bad one is named", "/rest/count", "{} {\"count\":\"x\"}", "400", "{\"code\":3,\"message\":\"object 2: count: \\\"x\\\" is not" },
		{ "one that does not end", "/rest/count", "{} {", "400", "{\"code\":3,\"message\":\"object 2: " },
		{ "an answer for each", "/rest/chat", "{\"count\":1}{\"count\":2}", "200", "{\"result\":{\"labelName\":\"\",\"count\":\"1\",\"match\":[]}}\n" },
		{ "no answers", "/rest/chat", "", "200", "transfer-encoding: chunked" },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf request;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&request, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_printf(&request,
			"POST %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: "
			"%zu\r\n\r\n%s",
			c->path, strlen(c->body), c->body);
		peer_exchange(s, request.data, request.len, &out);
		buf_u8(&out, 0);
		bool fits = strncmp((const char *)out.data + 9, c->status, 3) == 0 &&
			    strstr((const char *)out.data, c->has);
		if (!fits)
			print_error("%s\n", (const char *)out.data);
		CHECK_CASE(c, fits);
	}
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(answers_while_messages_come),
	cmocka_unit_test(takes_what_is_longer_than_a_window),
	cmocka_unit_test(holds_back_one_stream_only),
	cmocka_unit_test(waits_for_a_client_that_does_not_read),
	cmocka_unit_test(gives_up_one_stream_only),
	cmocka_unit_test(ends_half_a_call_by_its_deadline),
	cmocka_unit_test(ends_with_the_client_or_the_deadline),
	cmocka_unit_test(ends_where_no_message_comes), cmocka_unit_test(bounds_how_many_there_are),
	cmocka_unit_test(stops_with_the_server), cmocka_unit_test(goes_over_web_too),
	cmocka_unit_test(goes_over_connect_in_json),
	cmocka_unit_test(goes_over_connect_while_messages_come),
	cmocka_unit_test(goes_over_rest_too))
