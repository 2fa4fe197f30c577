/* SPDX-License-Identifier: Apache-2.0 */
/* Which protocol a connection speaks, and how much it takes. */
#include "test.h"

#include "peer.h"

static void tells_protocols_apart(void **state)
{
	(void)state;
	static const uint8_t settings[9] = { 0, 0, 0, 4 };
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	for (size_t step = 1; step < 40; step += 38) {
		struct peer p;
		peer_init(&p);
		CHECK(http_conn_phase(p.c) == HTTP_HEAD);
		peer_feed(&p, preface, sizeof(preface) - 1, step);
		peer_feed(&p, settings, sizeof(settings), step);
		/* SETTINGS is the first frame of HTTP/2. */
		CHECK(p.out.len > 9 && p.out.data[3] == 4);
		CHECK(http_conn_phase(p.c) == HTTP_IDLE);
		peer_deinit(&p);
	}
	/* clang-format off */
	static const struct { const char *name; } methods[] = { { "POST" }, { "PUT" }, { "PATCH" }, { "PRI" }, { "P" } };
	/* clang-format on */
	FOR_EACH_CASE (c, methods) {
		struct peer p;
		char text[100];
		int n = snprintf(text, sizeof(text),
			"%s / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n", c->name);
		peer_init(&p);
		peer_feed(&p, text, (size_t)n, 1);
		CHECK_CASE(c, p.ends == 1);
		peer_deinit(&p);
	}
	struct peer p;
	peer_init(&p);
	peer_feed(&p, "PRI", 3, 1);
	CHECK(http_conn_phase(p.c) == HTTP_HEAD);
	assert_int_equal(p.out.len, 0);
	peer_deinit(&p);
}

static struct http_stream *kept;

static void keep(struct peer *p, struct http_stream *s, struct str body)
{
	(void)p;
	(void)body;
	http_stream_ref(s);
	kept = s;
}

/* Whoever feeds on although nothing is wanted ends the connection, not the memory. */
static void bounds_what_is_fed(void **state)
{
	(void)state;
	static char junk[HTTP_FEED_MAX];
	struct peer p;
	peer_init(&p);
	p.answer = keep;
	peer_feed(&p, "GET / HTTP/1.1\r\nhost: h\r\n\r\n", 27, 100);
	for (int i = 0; i < 100 && !http_conn_done(p.c); i++)
		http_conn_feed(p.c, junk, sizeof(junk));
	CHECK(http_conn_done(p.c));
	http_stream_unref(kept);
	peer_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(tells_protocols_apart), cmocka_unit_test(bounds_what_is_fed))
