/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 connections against a client session of nghttp2 that may misbehave. */
#include "test.h"

#include "peer.h"

#include <nghttp2/nghttp2.h>

struct client {
	nghttp2_session *s;
	struct peer peer;
	struct buf body;
	uint32_t closed, resets, goaways;
	int status;
	uint32_t code; /* of the last reset or GOAWAY */
	char trailer[64];
	size_t upload_left;
};

static int on_close(nghttp2_session *s, int32_t id, uint32_t code, void *user)
{
	struct client *c = user;
	(void)s;
	(void)id;
	c->closed++;
	if (code)
		c->code = code;
	return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct client *c = user;
	(void)s;
	if (f->hd.type == NGHTTP2_RST_STREAM) {
		c->resets++;
		c->code = f->rst_stream.error_code;
	}
	if (f->hd.type == NGHTTP2_GOAWAY) {
		c->goaways++;
		c->code = f->goaway.error_code;
	}
	return 0;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *n, size_t nl,
	const uint8_t *v, size_t vl, uint8_t flags, void *user)
{
	struct client *c = user;
	(void)s;
	(void)f;
	(void)flags;
	if (str_eq(str_make(n, nl), STR(":status")))
		c->status = atoi((const char *)v);
	if (str_eq(str_make(n, nl), STR("grpc-status")))
		snprintf(c->trailer, sizeof(c->trailer), "%.*s", (int)vl, (const char *)v);
	return 0;
}

static int on_data(
	nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *user)
{
	(void)s;
	(void)flags;
	(void)id;
	buf_put(&((struct client *)user)->body, p, len);
	return 0;
}

static void client_init(struct client *c)
{
	nghttp2_session_callbacks *cb;
	memset(c, 0, sizeof(*c));
	buf_init(&c->body, 64 << 20);
	peer_init(&c->peer);
	assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	assert_int_equal(nghttp2_session_client_new(&c->s, cb, c), 0);
	nghttp2_session_callbacks_del(cb);
	assert_int_equal(nghttp2_submit_settings(c->s, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void client_deinit(struct client *c)
{
	nghttp2_session_del(c->s);
	peer_deinit(&c->peer);
	buf_deinit(&c->body);
}

/* Both ways until nothing moves; the client's bytes `step` at a time. */
static void pump(struct client *c, size_t step)
{
	for (bool moved = true; moved;) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(c->s, &p);
		assert_true(n >= 0);
		moved = n > 0;
		for (ssize_t at = 0; at < n; at += (ssize_t)step)
			http_conn_feed(c->peer.c, p + at, MIN(step, (size_t)(n - at)));
		http_conn_feed(c->peer.c, NULL, 0);
		moved |= peer_flush(&c->peer);
		if (c->peer.out.len) {
			(void)nghttp2_session_mem_recv(c->s, c->peer.out.data, c->peer.out.len);
			buf_clear(&c->peer.out);
		}
	}
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t upload(nghttp2_session *s, int32_t id, uint8_t *out, size_t max, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct client *c = user;
	(void)s;
	(void)id;
	(void)source;
	size_t n = MIN(max, c->upload_left);
	memset(out, 'u', n);
	c->upload_left -= n;
	if (c->upload_left == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int32_t request(struct client *c, size_t body)
{
	char length[24];
	snprintf(length, sizeof(length), "%zu", body);
	nghttp2_nv nv[] = { nv_of(":method", "POST"), nv_of(":scheme", "http"),
		nv_of(":path", "/p"), nv_of(":authority", "h"), nv_of("x", "y"),
		nv_of("content-length", length) };
	nghttp2_data_provider d = { .read_callback = upload };
	c->upload_left = body;
	int32_t id = nghttp2_submit_request(c->s, NULL, nv, body ? 6 : 5, body ? &d : NULL, NULL);
	assert_true(id > 0);
	return id;
}

static void answers_requests(void **state)
{
	(void)state;
	for (size_t step = 1; step <= 20000; step += 4999) {
		struct client c;
		client_init(&c);
		request(&c, 0);
		pump(&c, step);
		request(&c, 3000000);
		pump(&c, step);
		assert_int_equal(c.closed, 2);
		assert_int_equal(c.status, 200);
		CHECK_STR(buf_view(&c.body), "ok 0ok 3000000");
		assert_int_equal(c.peer.closes, 2);
		CHECK(http_conn_phase(c.peer.c) == HTTP_IDLE);
		CHECK(str_starts(
			buf_view(&c.peer.log), STR("head POST /p host=h len=-1 [x=y]\nend 0 ")));
		CHECK(!http_conn_done(c.peer.c));
		http_conn_drain(c.peer.c);
		pump(&c, step);
		assert_int_equal(c.goaways, 1);
		CHECK(http_conn_done(c.peer.c));
		client_deinit(&c);
	}
}

static void answer_trailers(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	struct http_header status = { STR("grpc-status"), STR("7") };
	if (body.len == 1) {
		http_respond(s, 200, &status, 1, HTTP_NO_BODY);
		http_finish(s, NULL, 0);
		return;
	}
	http_respond(s, 200, NULL, 0, HTTP_LENGTH_UNKNOWN);
	struct buf big;
	buf_init(&big, 1 << 20);
	memset(buf_extend(&big, 300000), 'b', 300000);
	http_write_buf(s, &big);
	http_write(s, "end", 3);
	http_finish(s, &status, 1);
}

static void sends_trailers(void **state)
{
	(void)state;
	struct client c;
	client_init(&c);
	c.peer.answer = answer_trailers;
	request(&c, 1);
	pump(&c, 10000);
	assert_int_equal(c.closed, 1);
	assert_int_equal(c.body.len, 0);
	assert_string_equal(c.trailer, "7");
	c.trailer[0] = 0;
	request(&c, 2);
	pump(&c, 10000);
	assert_int_equal(c.closed, 2);
	assert_int_equal(c.body.len, 300003);
	assert_string_equal(c.trailer, "7");
	assert_int_equal(http_conn_unsent(c.peer.c), 0);
	client_deinit(&c);
}

/* An answer in parts, with pauses: the stream is deferred and resumed. */
static struct http_stream *held;

static void hold(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	(void)body;
	held = s;
	http_respond(s, 200, NULL, 0, HTTP_LENGTH_UNKNOWN);
}

static void streams_answers(void **state)
{
	(void)state;
	struct client c;
	client_init(&c);
	c.peer.answer = hold;
	request(&c, 0);
	pump(&c, 10000);
	assert_int_equal(c.status, 200);
	http_write(held, "a", 1);
	pump(&c, 10000);
	CHECK_STR(buf_view(&c.body), "a");
	http_write(held, "b", 1);
	pump(&c, 10000);
	CHECK_STR(buf_view(&c.body), "ab");
	http_finish(held, NULL, 0);
	pump(&c, 10000);
	assert_int_equal(c.closed, 1);
	/* And one that is given up. */
	request(&c, 0);
	pump(&c, 10000);
	http_abort(held);
	pump(&c, 10000);
	assert_int_equal(c.resets, 1);
	assert_int_equal(c.peer.closes, 2);
	client_deinit(&c);
}

static void holds_uploads_back(void **state)
{
	(void)state;
	struct client c;
	client_init(&c);
	c.peer.keep_window = true;
	request(&c, 10 << 20);
	pump(&c, 20000);
	/* What was not consumed fills the stream's window and no more. */
	struct http_config config;
	http_config_default(&config);
	assert_int_equal((10 << 20) - c.upload_left, config.stream_window_bytes);
	assert_int_equal(c.peer.ends, 0);
	client_deinit(&c);
}

static void refuse_at_head(void *ctx, struct http_stream *s)
{
	peer_on_head(ctx, s);
	http_respond(s, 413, NULL, 0, 2);
	http_write(s, "no", 2);
	http_finish(s, NULL, 0);
}

/* A client whose uploads the server refuses when it has read their heads. */
static void client_init_refused(struct client *c)
{
	static struct http_events events; /* the connection keeps it */
	events = peer_events;
	struct http_config config;
	client_init(c);
	events.on_head = refuse_at_head;
	http_config_default(&config);
	http_conn_free(c->peer.c);
	c->peer.c = http_conn_new(&config, &events, &c->peer);
}

static void stops_uploads_that_are_refused(void **state)
{
	(void)state;
	struct client c;
	client_init_refused(&c);
	for (int i = 0; i < 200; i++) {
		request(&c, 10 << 20);
		pump(&c, 20000);
	}
	assert_int_equal(c.status, 413);
	assert_int_equal(c.closed, 200);
	assert_int_equal(c.resets, 200);
	assert_int_equal(c.code, NGHTTP2_NO_ERROR);
	assert_int_equal(c.peer.ends, 0);
	client_deinit(&c);
}

/* A client that may still be sending when it reads its answer has it. */
static void lets_small_uploads_end(void **state)
{
	(void)state;
	struct client c;
	client_init_refused(&c);
	for (int i = 0; i < 20; i++) {
		request(&c, 200 << 10);
		pump(&c, 20000);
	}
	assert_int_equal(c.status, 413);
	assert_int_equal(c.closed, 20);
	assert_int_equal(c.resets, 0);
	client_deinit(&c);
}

static void limits_heads(void **state)
{
	(void)state;
	char value[5000];
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = 0;
	for (int many = 0; many < 2; many++) {
		struct client c;
		client_init(&c);
		nghttp2_nv nv[120] = { nv_of(":method", "GET"), nv_of(":scheme", "http"),
			nv_of(":path", "/"), nv_of(":authority", "h") };
		size_t count = many ? 120 : 12;
		for (size_t i = 4; i < count; i++)
			nv[i] = nv_of("x", many ? "y" : value);
		assert_true(nghttp2_submit_request(c.s, NULL, nv, count, NULL, NULL) > 0);
		pump(&c, 9000);
		assert_int_equal(c.peer.heads, 0);
		assert_int_equal(c.status, 431);
		assert_int_equal(c.peer.refused, 431);
		/* The connection goes on. */
		request(&c, 0);
		pump(&c, 9000);
		assert_int_equal(c.status, 200);
		client_deinit(&c);
	}
}

static void limits_streams(void **state)
{
	(void)state;
	struct client c;
	client_init(&c);
	c.peer.answer = hold;
	pump(&c, 10000);
	assert_int_equal(
		nghttp2_session_get_remote_settings(c.s, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
		HTTP_STREAMS_MAX);
	for (int i = 0; i < HTTP_STREAMS_MAX + 50; i++)
		request(&c, 0);
	pump(&c, 10000);
	assert_int_equal(c.peer.heads, HTTP_STREAMS_MAX);
	client_deinit(&c);
}

static void ends_rapid_resets(void **state)
{
	(void)state;
	struct client c;
	client_init(&c);
	c.peer.answer = hold;
	pump(&c, 10000);
	int rounds = 0;
	while (!c.goaways && rounds < 1000) {
		int32_t id = request(&c, 0);
		pump(&c, 10000);
		(void)nghttp2_submit_rst_stream(c.s, 0, id, NGHTTP2_CANCEL);
		pump(&c, 10000);
		rounds++;
	}
	assert_int_equal(c.goaways, 1);
	assert_true(rounds >= 150 && rounds < 400);
	assert_int_equal(c.peer.heads, c.peer.closes);
	client_deinit(&c);
}

static void ends_at_malformed_frames(void **state)
{
	(void)state;
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	/* clang-format off */
	static const struct { const char *name; uint8_t bytes[24]; size_t len; } cases[] = {
		{ "no settings first", { 0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 17 },
		{ "frame too long",    { 0xFF, 0xFF, 0xFF, 4, 0, 0, 0, 0, 0 }, 9 },
		{ "odd settings",      { 0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5 }, 14 },
		{ "data on stream 0",  { 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 9 }, 19 },
		{ "bad header block",  { 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0xFF }, 19 },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		for (size_t step = 1; step < 30; step += 28) {
			struct peer p;
			peer_init(&p);
			peer_feed(&p, preface, sizeof(preface) - 1, step);
			peer_feed(&p, c->bytes, c->len, step);
			(void)peer_flush(&p);
			CHECK_CASE(c, http_conn_done(p.c));
			CHECK_CASE(c, p.heads == 0);
			peer_deinit(&p);
		}
	}
}

static void survives_a_flood_of_pings(void **state)
{
	(void)state;
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t settings[9] = { 0, 0, 0, 4 };
	static const uint8_t ping[17] = { 0, 0, 8, 6 };
	struct peer p;
	peer_init(&p);
	http_conn_feed(p.c, preface, sizeof(preface) - 1);
	http_conn_feed(p.c, settings, sizeof(settings));
	/* A peer that never reads: acknowledgements are not piled up without end. */
	for (int i = 0; i < 100000 && !http_conn_done(p.c); i++)
		http_conn_feed(p.c, ping, sizeof(ping));
	(void)peer_flush(&p);
	CHECK(http_conn_done(p.c));
	CHECK(p.out.len < 10000);
	peer_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(answers_requests), cmocka_unit_test(sends_trailers),
	cmocka_unit_test(streams_answers), cmocka_unit_test(holds_uploads_back),
	cmocka_unit_test(stops_uploads_that_are_refused), cmocka_unit_test(lets_small_uploads_end),
	cmocka_unit_test(limits_heads), cmocka_unit_test(limits_streams),
	cmocka_unit_test(ends_rapid_resets), cmocka_unit_test(ends_at_malformed_frames),
	cmocka_unit_test(survives_a_flood_of_pings))
