/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a session of HTTP/2 sees the same requests whether its bytes come whole or one at a
 * time, closes every stream it opened, and holds no more than its windows allow. */
#include "fuzz/fuzz.h"

#include <stdio.h>

#include "tests/http/peer.h"

static void run(struct peer *p, const uint8_t *data, size_t size, size_t step)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t settings[9] = { 0, 0, 0, 4 };
	peer_init(p);
	/* Whether an answer is out when the connection breaks depends on when it is read. */
	p->closes_unsaid = true;
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
	run(&whole, data, size, HTTP_FEED_MAX);
	run(&cut, data, size, 1);
	if (!depends_on_pieces(data, size))
		FUZZ_CHECK(str_eq(buf_view(&whole.log), buf_view(&cut.log)));
	FUZZ_CHECK(whole.closes == whole.heads && cut.closes == cut.heads);
	peer_deinit(&whole);
	peer_deinit(&cut);
	return 0;
}
