/* SPDX-License-Identifier: Apache-2.0 */
/* References of streams. */
#include "test.h"

#include "peer.h"

static struct http_stream *kept;

static void keep(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	(void)body;
	http_stream_ref(s);
	kept = s;
}

static void references_keep_requests(void **state)
{
	(void)state;
	struct peer p;
	peer_init(&p);
	p.answer = keep;
	peer_feed(&p, "GET /kept HTTP/1.1\r\nhost: h\r\nx: y\r\n\r\n", 38, 100);
	peer_end(&p);
	assert_int_equal(p.closes, 1);
	CHECK_STR(http_stream_request(kept)->target, "/kept");
	CHECK_STR(http_request_header(http_stream_request(kept), "x"), "y");
	CHECK_STR(http_request_header(http_stream_request(kept), "z"), "");
	http_stream_unref(kept);
	peer_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(references_keep_requests))
