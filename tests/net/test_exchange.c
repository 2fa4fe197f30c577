/* SPDX-License-Identifier: Apache-2.0 */
/* Answers, refusals and the end of a request, over raw sockets. */
#include "test.h"

#include "codec/codec.h"

#include "peer.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n"

/* clang-format off */
static const struct { const char *name, *request, *status, *contains; } cases[] = {
	{ "get", HEAD("GET /show/a%20b?c=d") "\r\n", "200", "\r\n\r\nGET /show/a b?c=d" },
	{ "own headers", HEAD("GET /show/x") "\r\n", "200", "x-shown: yes\r\nx-two: 2\r\n" },
	{ "nosniff", HEAD("GET /show/x") "\r\n", "200", "x-content-type-options: nosniff\r\n" },
	{ "date", HEAD("GET /show/x") "\r\n", "200", " GMT\r\n" },
	{ "on the loop", HEAD("GET /fast?x") "\r\n", "200", "\r\n\r\nGET /fast?x" },
	{ "head", HEAD("HEAD /show/x") "\r\n", "200", "content-length: 13\r\n" },
	{ "echo", HEAD("POST /echo") "content-length: 3\r\n\r\nabc", "200", "\r\n\r\nabc" },
	{ "chunked echo", HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200", "\r\n\r\nabc" },
	{ "continue", HEAD("POST /echo") "expect: 100-continue\r\ncontent-length: 3\r\n\r\nabc", "100", "HTTP/1.1 200 OK" },
	{ "not found", HEAD("GET /nothing") "\r\n", "404", "{\"error\":\"nothing at /nothing\",\"code\":\"NOTFOUND\"}" },
	{ "prefix is no match", HEAD("GET /show") "\r\n", "404", "" },
	{ "wrong method", HEAD("DELETE /echo") "\r\n", "405", "allow: POST, OPTIONS\r\n" },
	{ "options", HEAD("OPTIONS /fast") "\r\n", "204", "allow: GET, HEAD, OPTIONS\r\n" },
	{ "unknown method", HEAD("BREW /fast") "\r\n", "501", "\"code\":\"UNSUPPORTED\"" },
	{ "traversal", HEAD("GET /show/../fast") "\r\n", "400", "\"code\":\"INVALID\"" },
	{ "escaped traversal", HEAD("GET /show/%2e%2e/fast") "\r\n", "400", "" },
	{ "bad escape", HEAD("GET /show/%zz") "\r\n", "400", "" },
	{ "unknown coding", HEAD("POST /echo") "content-encoding: br\r\ncontent-length: 1\r\n\r\nx", "415", "content-encoding" },
	{ "no gzip", HEAD("POST /echo") "content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc", "400", "\"code\":\"INVALID\"" },
	{ "too long by its length", HEAD("POST /echo") "content-length: 100001\r\n\r\n", "413", "\"code\":\"LIMIT\"" },
	{ "handler's error", HEAD("GET /fail") "\r\n", "429", "{\"error\":\"too much of \\\"it\\\" \xC3\xA9\",\"code\":\"QUOTA\"}" },
	{ "retry after", HEAD("GET /fail") "\r\n", "429", "retry-after: 5\r\n" },
	{ "malformed", "GET / HTTP/1.1\nhost: h\n\n", "400", "connection: close\r\n" },
	{ "rpc without a framing", HEAD("POST /t.Test/Echo") "content-length: 0\r\n\r\n", "415", "application/grpc-web" },
	{ "gRPC over HTTP/1.1", HEAD("POST /t.Test/Echo") "content-type: application/grpc\r\ncontent-length: 0\r\n\r\n", "200", "grpc-status: 3\r\n" },
	{ "gRPC over HTTP/1.0", "POST /t.Test/Echo HTTP/1.0\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n", "415", "HTTP/2" },
	{ "plain route as an rpc", HEAD("POST /echo") "content-type: application/grpc-web\r\ncontent-length: 0\r\n\r\n", "200", "grpc-status: 12\r\n" },
};
/* clang-format on */

static void answers(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.body_max = 100000;
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 20);
		peer_exchange(s, c->request, strlen(c->request), &out);
		buf_u8(&out, 0);
		char begin[32];
		snprintf(begin, sizeof(begin), "HTTP/1.1 %s ", c->status);
		bool ok = str_starts(buf_view(&out), str_of(begin)) &&
			  memmem(out.data, out.len, c->contains, strlen(c->contains));
		if (!ok)
			print_error("[%s]\n%s\n", c->name, (const char *)out.data);
		CHECK_CASE(c, ok);
	}
	net_server_stop(s);
}

static void compresses(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out, plain;
	buf_init(&out, 1 << 20);
	buf_init(&plain, 1 << 20);
	static const char with[] = HEAD("GET /text") "accept-encoding: br, gzip\r\n\r\n";
	static const char without[] = HEAD("GET /text") "accept-encoding: gzip;q=0\r\n\r\n";
	peer_exchange(s, with, sizeof(with) - 1, &out);
	CHECK(memmem(out.data, out.len, "content-encoding: gzip\r\n", 24));
	CHECK(memmem(out.data, out.len, "vary: accept-encoding\r\n", 23));
	const uint8_t *body = memmem(out.data, out.len, "\r\n\r\n", 4);
	struct err e;
	size_t head = (size_t)(body + 4 - out.data);
	CHECK(out.len - head < 500);
	CHECK_OK(codec_gunzip(body + 4, out.len - head, &plain, &e), &e);
	assert_int_equal(plain.len, 12000);
	buf_clear(&out);
	peer_exchange(s, without, sizeof(without) - 1, &out);
	CHECK(!memmem(out.data, out.len, "content-encoding", 16));
	CHECK(out.len > 12000);
	net_server_stop(s);
}

static void keeps_connections_and_pipelines(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf in, out;
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 300; i++)
		buf_printf(&in, "GET /%s%d HTTP/1.1\r\nhost: h\r\n%s\r\n",
			i % 3 ? "show/" : "fast?", i, i == 299 ? "connection: close\r\n" : "");
	peer_exchange(s, in.data, in.len, &out);
	struct str rest = buf_view(&out);
	for (int i = 0; i < 300; i++) {
		char want[64];
		snprintf(want, sizeof(want), i % 3 ? "GET /show/%d?" : "GET /fast?%d", i);
		const char *at = memmem(rest.p, rest.len, want, strlen(want));
		CHECK(at != NULL);
		rest = str_sub(rest, (size_t)(at - rest.p) + strlen(want), rest.len);
	}
	assert_int_equal(rest.len, 0);
	assert_int_equal(peer_metric(s, "firn_net_requests_total"), 300);
	assert_int_equal(peer_metric(s, "firn_net_connections_accepted_total"), 1);
	net_server_stop(s);
}

/* gRPC's answer without a body has an end on HTTP/1 too: the next one is not taken for it. */
static void says_that_there_is_no_body(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	static const char two[] = "GET /nothing HTTP/1.1\r\nhost: h\r\n"
				  "content-type: application/grpc\r\n\r\n" HEAD("GET /fast") "\r\n";
	peer_exchange(s, two, sizeof(two) - 1, &out);
	const char *end = memmem(out.data, out.len, "\r\n\r\n", 4);
	CHECK(end && memmem(out.data, (size_t)(end - (char *)out.data), "grpc-status: 12", 15));
	CHECK(memmem(out.data, (size_t)(end - (char *)out.data), "\r\ncontent-length: 0", 19));
	CHECK(strncmp(end + 4, "HTTP/1.1 200 ", 13) == 0);
	net_server_stop(s);
}

static void notices_clients_that_go(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, HEAD("GET /wait") "\r\n"));
	PEER_UNTIL(atomic_load(&peer_calls) == 1);
	close(fd);
	PEER_UNTIL(atomic_load(&peer_canceled) == 1);
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 0);
	/* Half closed by one who still reads: a short answer comes all the same. */
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /show/half HTTP/1.1\r\nhost: h\r\n\r\n"));
	(void)shutdown(fd, SHUT_WR);
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 200 ")));
	CHECK(str_ends(buf_view(&out), STR("GET /show/half?")));
	close(fd);
	/* In the middle of a body. */
	fd = peer_connect(s);
	CHECK(peer_send_text(fd, HEAD("POST /echo") "content-length: 100\r\n\r\nabc"));
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 3);
	close(fd);
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 0);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(answers), cmocka_unit_test(compresses),
	cmocka_unit_test(keeps_connections_and_pipelines),
	cmocka_unit_test(says_that_there_is_no_body), cmocka_unit_test(notices_clients_that_go))
