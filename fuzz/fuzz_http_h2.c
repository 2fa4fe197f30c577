/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a session of HTTP/2 sees the same requests whether its bytes come whole or one at a
 * time, closes every stream it opened, and holds no more than its windows allow. */
#include "fuzz/fuzz.h"

#include <stdio.h>

#include "tests/http/peer.h"

#define LARGE_BYTES 20000

/* What comes behind is refused, and what is behind depends on when it is read. */
static bool drained;

/* By the request's path: short; with trailers; long, in two writes; none; without a body; the last
 * one of the connection. */
static void answer(struct peer *p, struct http_stream *s, struct str body)
{
	static const struct http_header fields[] = { { STR("content-type"), STR("a/b") },
		{ STR("x-a"), STR("1") } };
	static const struct http_header trailers[] = { { STR("grpc-status"), STR("0") } };
	static uint8_t large[LARGE_BYTES];
	struct str target = http_stream_request(s)->target;
	struct buf b;
	switch (target.len ? target.p[target.len - 1] % 6 : 0) {
	case 1:
		http_respond(s, 200, fields, 2, HTTP_LENGTH_UNKNOWN);
		http_write(s, "12345", 5);
		http_finish(s, trailers, 1);
		break;
	case 2:
		buf_init(&b, LARGE_BYTES);
		buf_put(&b, large, LARGE_BYTES);
		http_respond(s, 200, fields, 1, 2 * LARGE_BYTES);
		http_write(s, large, LARGE_BYTES);
		http_write_buf(s, &b);
		http_finish(s, NULL, 0);
		buf_deinit(&b);
		break;
	case 3:
		http_abort(s);
		break;
	case 4:
		http_respond(s, 304, NULL, 0, HTTP_NO_BODY);
		http_finish(s, trailers, 1);
		break;
	case 5:
		http_conn_drain(p->c);
		drained = true;
		FUZZ_CHECK(http_conn_phase(p->c) != HTTP_IDLE);
		__attribute__((fallthrough));
	default:
		http_respond(s, 200, NULL, 0, (int64_t)body.len);
		http_write(s, body.p ? body.p : "", body.len);
		http_finish(s, NULL, 0);
	}
}

static void run(struct peer *p, const uint8_t *data, size_t size, size_t step)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t settings[9] = { 0, 0, 0, 4 };
	peer_init(p);
	/* Whether an answer is out when the connection breaks depends on when it is read. */
	p->closes_unsaid = true;
	p->answer = answer;
	p->holds = size > 0 && data[0] & 1;
	peer_feed(p, preface, sizeof(preface) - 1, step);
	peer_feed(p, settings, sizeof(settings), step);
	peer_feed(p, data, size, step);
	FUZZ_CHECK(http_conn_unsent(p->c) <= 8 << 20);
	peer_end(p);
}

/* nghttp2 counts CONTINUATION frames by the pieces in which they come, and after the peer's GOAWAY
 * it stops reading once its own output is gone. */
static bool depends_on_pieces(const uint8_t *data, size_t size)
{
	while (size >= 9) {
		size_t frame = 9 + ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]);
		if (data[3] == 7 || data[3] == 9)
			return true;
		if (frame > size)
			return false;
		data += frame;
		size -= frame;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Below this no limit that counts by the clock is reached. */
	if (size > 4096)
		return 0;
	struct peer whole, cut;
	drained = false;
	run(&whole, data, size, HTTP_FEED_MAX);
	FUZZ_CHECK(whole.closes == whole.heads);
	if (fuzz_thorough(data, size)) {
		run(&cut, data, size, 1);
		if (!drained && !depends_on_pieces(data, size))
			FUZZ_CHECK(str_eq(buf_view(&whole.log), buf_view(&cut.log)));
		FUZZ_CHECK(cut.closes == cut.heads);
		peer_deinit(&cut);
	}
	peer_deinit(&whole);
	return 0;
}
