/* SPDX-License-Identifier: Apache-2.0 */
/* The client against our own server side. */
#include "test.h"

#include "peer.h"

static enum status pump(struct http_client *c, struct peer *p, struct err *e)
{
	enum status s = OK;
	for (bool moved = true; moved && s == OK;) {
		struct str piece;
		moved = false;
		while (http_client_output(c, &piece, 1)) {
			size_t n = MIN(piece.len, (size_t)10000);
			http_conn_feed(p->c, piece.p, n);
			http_client_sent(c, n);
			moved = true;
		}
		http_conn_feed(p->c, NULL, 0);
		moved |= peer_flush(p);
		for (size_t at = 0; at < p->out.len && s == OK; at += 10000)
			s = http_client_feed(
				c, p->out.data + at, MIN(p->out.len - at, (size_t)10000), e);
		buf_clear(&p->out);
	}
	return s;
}

static void talks_to_the_server(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, 1 << 22);
	memset(buf_extend(&body, 3000000), 'b', 3000000);
	struct http_client *c;
	struct err e;
	struct peer p;
	peer_init(&p);
	assert_int_equal(http_client_new(1000, &c), OK);
	for (int i = 0; i < 3; i++) {
		struct http_header h = { STR("x"), STR("y") };
		CHECK(http_client_reusable(c));
		CHECK_OK(http_client_start(c, "POST", STR("host"), STR("/t?q"), &h, 1, STR("12345"),
				 buf_view(&body), &e),
			&e);
		CHECK_OK(pump(c, &p, &e), &e);
		CHECK(http_client_done(c));
		assert_int_equal(http_client_status(c), 200);
		CHECK_STR(http_client_body(c), "ok 3000005");
		CHECK_STR(http_client_header(c, "content-length"), "10");
	}
	CHECK(http_client_reusable(c));
	CHECK(str_starts(buf_view(&p.log), STR("head POST /t?q host=host")));
	http_conn_drain(p.c);
	http_client_free(c);
	peer_deinit(&p);
}

static void answer_large(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	(void)body;
	struct buf big;
	buf_init(&big, 1 << 20);
	memset(buf_extend(&big, 200000), 'x', 200000);
	http_respond(s, 200, NULL, 0, HTTP_LENGTH_UNKNOWN);
	http_write_buf(s, &big);
	http_finish(s, NULL, 0);
}

static void limits_answers(void **state)
{
	(void)state;
	struct http_client *c;
	struct err e;
	struct peer p;
	peer_init(&p);
	p.answer = answer_large;
	assert_int_equal(http_client_new(100000, &c), OK);
	CHECK_OK(
		http_client_start(c, "GET", STR("h"), STR("/"), NULL, 0, STR(""), STR(""), &e), &e);
	assert_int_equal(pump(c, &p, &e), E_LIMIT);
	CHECK(!http_client_reusable(c));
	http_client_free(c);
	peer_deinit(&p);
}

static void refuses_bad_requests(void **state)
{
	(void)state;
	struct http_client *c;
	struct err e;
	struct http_header evil = { STR("x"), STR("a\r\nb: c") };
	assert_int_equal(http_client_new(100, &c), OK);
	assert_int_equal(
		http_client_start(c, "GET", STR("h"), STR("/a b"), NULL, 0, STR(""), STR(""), &e),
		E_INVALID);
	assert_int_equal(http_client_start(
				 c, "GET", STR("h"), STR("/a\r\nb"), NULL, 0, STR(""), STR(""), &e),
		E_INVALID);
	assert_int_equal(
		http_client_start(c, "GET", STR("h"), STR("/"), &evil, 1, STR(""), STR(""), &e),
		E_INVALID);
	http_client_free(c);
}

TEST_MAIN(cmocka_unit_test(talks_to_the_server), cmocka_unit_test(limits_answers),
	cmocka_unit_test(refuses_bad_requests))
