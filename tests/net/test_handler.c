/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler gets of a compressed body or message: no more than the limit. */
#include "test.h"

#include "codec/codec.h"

#include "peer.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n"

static void decompresses_within_the_limit(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.body_max = 1 << 20;
	struct net_server *s = peer_start(&config);
	char *zeros = calloc(1, 100 << 20);
	for (int i = 0; i < 2; i++) {
		CLEANUP(buf_deinit) struct buf zip, request, out;
		buf_init(&zip, 200 << 20);
		buf_init(&request, 1 << 20);
		buf_init(&out, 4 << 20);
		/* A million bytes pass; 100 million, in as few, do not. */
		CHECK(codec_gzip(zeros, i ? 100 << 20 : 1000000, 6, &zip) == OK);
		buf_printf(&request,
			HEAD("POST /echo") "content-encoding: gzip\r\n"
					   "content-length: %zu\r\n\r\n",
			zip.len);
		buf_str(&request, buf_view(&zip));
		peer_exchange(s, request.data, request.len, &out);
		CHECK(str_starts(buf_view(&out), i ? STR("HTTP/1.1 413 ") : STR("HTTP/1.1 200 ")));
		CHECK(out.len > (i ? 0 : 1000000) && out.len < 1100000);
	}
	free(zeros);
	net_server_stop(s);
}

/* A bomb inside a message of an RPC: the framing's own error, and no more memory than the limit. */
static void decompresses_messages_within_the_limit(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.body_max = 1 << 20;
	struct net_server *s = peer_start(&config);
	char *zeros = calloc(1, 100 << 20);
	CLEANUP(buf_deinit) struct buf zip, request, out;
	buf_init(&zip, 200 << 20);
	buf_init(&request, 1 << 20);
	buf_init(&out, 4 << 20);
	CHECK(zeros && codec_gzip(zeros, 100 << 20, 6, &zip) == OK);
	free(zeros);
	buf_printf(&request,
		HEAD("POST /t.Test/Echo") "content-type: application/grpc-web\r\n"
					  "grpc-encoding: gzip\r\ncontent-length: %zu\r\n\r\n",
		zip.len + HTTP_GRPC_PREFIX_BYTES);
	http_grpc_put(&request, HTTP_GRPC_COMPRESSED, buf_view(&zip));
	peer_exchange(s, request.data, request.len, &out);
	CHECK(memmem(out.data, out.len, "grpc-status: 8\r\n", 16));
	assert_int_equal(atomic_load(&peer_calls), 0);
	net_server_stop(s);
}

/* clang-format off */
static const struct { const char *name, *query, *method, *contains; size_t bytes; } pieces[] = {
	{ "known length", "known", "GET", "content-length: 300000\r\n", 300000 },
	{ "in chunks", "unknown", "GET", "transfer-encoding: chunked\r\n", 300000 },
	{ "head alone", "known", "HEAD", "content-length: 300000\r\n", 0 },
	{ "no piece", "whole", "GET", "\r\n\r\nwhole", 0 },
	{ "broken off", "fail", "GET", "content-length: 300000\r\n", 100000 },
};
/* clang-format on */

static void sends_piece_by_piece(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, pieces) {
		CLEANUP(buf_deinit) struct buf out;
		char request[256];
		size_t count = 0;
		buf_init(&out, 1 << 20);
		int n = snprintf(request, sizeof(request),
			"%s /pieces?%s HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", c->method,
			c->query);
		peer_exchange(s, request, (size_t)n, &out);
		bool fails = strcmp(c->query, "fail") == 0;
		const char *body = memmem(out.data, out.len, "\r\n\r\n", 4);
		if (!body && fails)
			continue; /* before the first piece was written */
		CHECK_CASE(c, body && str_starts(buf_view(&out), STR("HTTP/1.1 200 ")));
		CHECK_CASE(c, memmem(out.data, out.len, c->contains, strlen(c->contains)));
		for (size_t i = (size_t)(body - (char *)out.data); i < out.len; i++)
			count += out.data[i] == 'x';
		CHECK_CASE(c, count <= c->bytes && (count == c->bytes || fails));
	}
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(sends_piece_by_piece), cmocka_unit_test(decompresses_within_the_limit),
	cmocka_unit_test(decompresses_messages_within_the_limit))
