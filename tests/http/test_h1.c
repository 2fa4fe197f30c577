/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 connections: what a peer sends, whole and in pieces, and what it gets. */
#include "test.h"

#include "peer.h"

#define GET "GET /a HTTP/1.1\r\nhost: h\r\n\r\n"

/* clang-format off */
static const struct {
	const char *name, *in, *log;
	const char *out; /* begin of the output; NULL: not looked at */
	int refused;
} cases[] = {
	{ "one", GET, "head GET /a host=h len=-1 [host=h]\nend 0 ", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok 0", -1 },
	{ "names in lower case", "GET / HTTP/1.1\r\nHOST: H\r\nX-Y: Z\r\n\r\n", "head GET / host=H len=-1 [host=H] [x-y=Z]\n", NULL, -1 },
	{ "body", "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc", "head POST / host=h len=3", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok 3", -1 },
	{ "chunked", "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "head POST / host=h len=-1", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok 3", -1 },
	{ "continue", "POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\nx", "head POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", -1 },
	{ "continue without body", "POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 0\r\n\r\n", "head POST", "HTTP/1.1 200 OK\r\n", -1 },
	{ "close", "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n" GET, "head GET / ", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nok 0", -1 },
	{ "1.0", "GET / HTTP/1.0\r\n\r\n" GET, "head GET / ", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nok 0", -1 },
	{ "1.0 kept", "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", "head GET / ", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: keep-alive\r\n\r\nok 0", -1 },
	{ "head", "HEAD / HTTP/1.1\r\nhost: h\r\n\r\n", "head HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n", -1 },
	{ "CRLF in front", "\r\n" GET, "head GET", "HTTP/1.1 200", -1 },
	{ "two CRLF in front", "\r\n\r\n" GET, "refuse 400\n", "HTTP/1.1 400 Bad Request\r\n", 400 },
	{ "PRI without more", "PRI * HTTP/2.0\r\n\r\nXX", "refuse 505\n", "HTTP/1.1 505", 505 },
	{ "garbage", "\x16\x03\x01 hello\n", "refuse 400\n", "HTTP/1.1 400", 400 },
	{ "second is bad", GET "GET /b HTTP/1.1\nhost: h\n\n", "head GET /a ", "HTTP/1.1 200 OK\r\n", 400 },
	{ "bad chunk", "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n", "head POST", "HTTP/1.1 400", 400 },
	{ "smuggled behind a length", "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nhost: h\r\n\r\n", "head POST / host=h len=3 [host=h] [content-length=3]\nend 3 ", NULL, -1 },
};
/* clang-format on */

static void run(struct peer *p, const char *in, size_t step)
{
	peer_init(p);
	peer_feed(p, in, strlen(in), step);
	peer_end(p);
}

static void answers(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct peer whole;
		run(&whole, c->in, 60000);
		if (!str_starts(buf_view(&whole.log), str_of(c->log)))
			print_error("[%s] %.*s\n", c->name, STR_ARG(buf_view(&whole.log)));
		CHECK_CASE(c, str_starts(buf_view(&whole.log), str_of(c->log)));
		CHECK_CASE(c, !c->out || str_starts(buf_view(&whole.out), str_of(c->out)));
		CHECK_CASE(c, whole.refused == c->refused);
		CHECK_CASE(c, whole.closes == whole.heads);
		for (size_t step = 1; step <= 7; step++) {
			struct peer cut;
			run(&cut, c->in, step);
			CHECK_CASE(c, str_eq(buf_view(&cut.log), buf_view(&whole.log)));
			CHECK_CASE(c, str_eq(buf_view(&cut.out), buf_view(&whole.out)));
			peer_deinit(&cut);
		}
		peer_deinit(&whole);
	}
}

static void answers_pipelined_requests_in_order(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in;
	buf_init(&in, 1 << 20);
	for (int i = 0; i < 2000; i++)
		buf_printf(&in, "POST /%d HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n%.*s", i,
			i % 7, i % 7, "abcdefg");
	struct peer p;
	peer_init(&p);
	peer_feed(&p, in.data, in.len, 50000);
	assert_int_equal(p.ends, 2000);
	CHECK(http_conn_phase(p.c) == HTTP_IDLE);
	struct str out = buf_view(&p.out);
	for (int i = 0; i < 2000; i++) {
		char want[64];
		int n = snprintf(want, sizeof(want),
			"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok %d", i % 7);
		CHECK(str_starts(out, str_make(want, (size_t)n)));
		out = str_sub(out, (size_t)n, out.len);
	}
	assert_int_equal(out.len, 0);
	peer_deinit(&p);
}

/* An answer that comes later: nothing of the next request is looked at until then. */
static struct http_stream *held;

static void hold(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	(void)body;
	held = s;
}

static void waits_for_answers(void **state)
{
	(void)state;
	struct peer p;
	peer_init(&p);
	p.answer = hold;
	http_conn_feed(p.c, GET GET, 2 * strlen(GET));
	assert_int_equal(p.heads, 1);
	CHECK(!http_conn_wants_input(p.c));
	CHECK(http_conn_phase(p.c) == HTTP_BUSY);
	/* Without a length: chunks. */
	http_respond(held, 200, NULL, 0, HTTP_LENGTH_UNKNOWN);
	http_write(held, "abc", 3);
	http_write(held, "", 0);
	struct buf big;
	buf_init(&big, 100000);
	memset(buf_extend(&big, 50000), 'x', 50000);
	http_write_buf(held, &big);
	CHECK(big.data == NULL);
	http_finish(held, NULL, 0);
	assert_int_equal(p.heads, 1);
	http_conn_feed(p.c, NULL, 0);
	assert_int_equal(p.heads, 2);
	(void)peer_flush(&p);
	struct str out = buf_view(&p.out);
	CHECK(str_starts(
		out, STR("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
			 "c350\r\nxxxx")));
	CHECK(str_ends(out, STR("xx\r\n0\r\n\r\n")));
	/* The connection goes while the second is being answered. */
	peer_end(&p);
	CHECK(str_ends(buf_view(&p.log), STR("close 0\n")));
	assert_int_equal(p.closes, 2);
	peer_deinit(&p);
}

static void refuse_now(void *ctx, struct http_stream *s)
{
	peer_on_head(ctx, s);
	struct http_header evil[] = { { STR("x"), STR("a\r\nset-cookie: b") },
		{ STR("y"), STR("fine") } };
	http_respond(s, 413, evil, 2, 2);
	http_write(s, "no", 2);
	http_finish(s, NULL, 0);
}

static void refuses_by_the_head(void **state)
{
	(void)state;
	static const char in[] = "POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n"
				 "content-length: 1000\r\n\r\nabc";
	struct http_events events = peer_events;
	events.on_head = refuse_now;
	struct http_config config;
	http_config_default(&config);
	struct peer p;
	peer_init(&p);
	http_conn_free(p.c);
	p.c = http_conn_new(&config, &events, &p);
	peer_feed(&p, in, sizeof(in) - 1, 60000);
	/* No 100, no header that breaks the line, no data, and the connection ends. */
	CHECK_STR(buf_view(&p.out), "HTTP/1.1 413 Content Too Large\r\ny: fine\r\n"
				    "content-length: 2\r\nconnection: close\r\n\r\nno");
	assert_int_equal(p.ends, 0);
	CHECK(http_conn_done(p.c) && http_conn_lingers(p.c));
	CHECK(http_conn_wants_input(p.c));
	peer_feed(&p, GET, strlen(GET), 60000);
	assert_int_equal(p.heads, 1);
	peer_deinit(&p);
}

static void limits_heads(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in;
	buf_init(&in, 1 << 20);
	buf_cstr(&in, "GET / HTTP/1.1\r\nhost: h\r\nx: ");
	while (in.len < HTTP_HEAD_BYTES_MAX - 4)
		buf_u8(&in, 'x');
	buf_cstr(&in, "\r\n\r\n");
	for (size_t step = 1000; step <= 60000; step += 59000) {
		struct peer p;
		peer_init(&p);
		peer_feed(&p, in.data, in.len, step);
		assert_int_equal(p.ends, 1);
		peer_deinit(&p);
	}
	in.len -= 4;
	buf_cstr(&in, "x\r\n\r\n");
	for (size_t step = 1000; step <= 60000; step += 59000) {
		struct peer p;
		peer_init(&p);
		peer_feed(&p, in.data, in.len, step);
		assert_int_equal(p.ends, 0);
		assert_int_equal(p.refused, 431);
		peer_deinit(&p);
	}
}

static void drains(void **state)
{
	(void)state;
	struct peer p;
	peer_init(&p);
	peer_feed(&p, GET, strlen(GET), 60000);
	http_conn_drain(p.c);
	CHECK(http_conn_done(p.c));
	peer_deinit(&p);
	peer_init(&p);
	p.answer = hold;
	peer_feed(&p, GET, strlen(GET), 60000);
	http_conn_drain(p.c);
	CHECK(!http_conn_done(p.c));
	http_respond(held, 204, NULL, 0, HTTP_NO_BODY);
	http_finish(held, NULL, 0);
	(void)peer_flush(&p);
	CHECK(http_conn_done(p.c) && !http_conn_lingers(p.c));
	CHECK_STR(buf_view(&p.out), "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
	peer_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(answers), cmocka_unit_test(answers_pipelined_requests_in_order),
	cmocka_unit_test(waits_for_answers), cmocka_unit_test(refuses_by_the_head),
	cmocka_unit_test(limits_heads), cmocka_unit_test(drains))
