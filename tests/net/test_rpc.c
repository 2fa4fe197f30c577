/* SPDX-License-Identifier: Apache-2.0 */
/* The framings of a unary call: decoding, encoding, and both over the wire. */
#include "test.h"

#include "codec/codec.h"
#include "net/internal.h"

#include "peer.h"

static void knows_content_types(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; enum net_framing f; } types[] = {
		{ "application/grpc", NET_GRPC },           { "application/grpc+proto", NET_GRPC },
		{ "Application/GRPC;x=y", NET_GRPC },       { "application/grpc+json", NET_PLAIN },
		{ "application/grpc-web", NET_GRPC_WEB },   { "application/grpc-web+proto", NET_GRPC_WEB },
		{ "application/grpc-web-text", NET_GRPC_WEB_TEXT },
		{ "application/grpc-web-text+proto", NET_GRPC_WEB_TEXT },
		{ "application/proto", NET_CONNECT },       { "application/json", NET_CONNECT_JSON },
		{ "application/x-protobuf", NET_PLAIN },    { "", NET_PLAIN },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, types)
		CHECK_CASE(c, net_framing_of(str_of(c->name)) == c->f);
}

static struct str bytes(const char *p, size_t len)
{
	return str_make(p, len);
}
#define B(text) bytes(text, sizeof(text) - 1)

static void decodes(void **state)
{
	(void)state;
	struct http_header gzip = { STR("grpc-encoding"), STR("gzip") };
	struct http_header lz = { STR("grpc-encoding"), STR("lz4") };
	struct http_request plain = { 0 }, gzipped = { .headers = &gzip, .header_count = 1 };
	struct http_request other = { .headers = &lz, .header_count = 1 };
	CLEANUP(buf_deinit) struct buf zip;
	buf_init(&zip, 1000);
	http_grpc_put_prefix(&zip, HTTP_GRPC_COMPRESSED, 0);
	CHECK(codec_gzip("hello", 5, 1, &zip) == OK);
	zip.data[4] = (uint8_t)(zip.len - 5);
	const struct {
		const char *name;
		enum net_framing f;
		const struct http_request *r;
		struct str body;
		enum status status;
		const char *message;
	} cases[] = {
		{ "grpc", NET_GRPC, &plain, B("\0\0\0\0\3abc"), OK, "abc" },
		{ "empty message", NET_GRPC, &plain, B("\0\0\0\0\0"), OK, "" },
		{ "no message", NET_GRPC, &plain, B(""), E_INVALID, NULL },
		{ "cut", NET_GRPC, &plain, B("\0\0\0\0\3ab"), E_INVALID, NULL },
		{ "two messages", NET_GRPC, &plain, B("\0\0\0\0\1a\0\0\0\0\1b"), E_INVALID, NULL },
		{ "over the limit", NET_GRPC, &plain, B("\0\0\0\1\0"), E_LIMIT, NULL },
		{ "unknown flag", NET_GRPC, &plain, B("\4\0\0\0\1a"), E_INVALID, NULL },
		{ "compressed without saying", NET_GRPC, &plain, buf_view(&zip), E_INVALID, NULL },
		{ "compressed", NET_GRPC, &gzipped, buf_view(&zip), OK, "hello" },
		{ "gzip, not compressed", NET_GRPC, &gzipped, B("\0\0\0\0\1a"), OK, "a" },
		{ "unknown coding", NET_GRPC, &other, B("\0\0\0\0\1a"), E_UNSUPPORTED, NULL },
		{ "web", NET_GRPC_WEB, &plain, B("\0\0\0\0\3abc"), OK, "abc" },
		{ "web text", NET_GRPC_WEB_TEXT, &plain, B("AAAAAANhYmM="), OK, "abc" },
		{ "web text in pieces", NET_GRPC_WEB_TEXT, &plain, B("AAAAAAM=YWJj"), OK, "abc" },
		{ "web text, no base64", NET_GRPC_WEB_TEXT, &plain, B("AAAA?AAA"), E_INVALID,
			NULL },
		{ "connect", NET_CONNECT, &plain, B("abc"), OK, "abc" },
		{ "connect, empty", NET_CONNECT, &plain, B(""), OK, "" },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e;
		struct str message;
		CLEANUP(buf_deinit) struct buf scratch;
		buf_init(&scratch, 200);
		enum status s = net_rpc_decode(c->f, c->r, c->body, 200, &scratch, &message, &e);
		CHECK_CASE(c, s == c->status);
		CHECK_CASE(c, s != OK || str_eq(message, str_of(c->message)));
	}
}

/* A POST with this content type over HTTP/1; the body of the answer. */
static void post(const struct net_server *s, const char *path, const char *type, struct str body,
	struct buf *out)
{
	CLEANUP(buf_deinit) struct buf request;
	buf_init(&request, 1 << 20);
	buf_printf(&request,
		"POST %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: %s\r\n"
		"content-length: %zu\r\n\r\n",
		path, type, body.len);
	buf_str(&request, body);
	peer_exchange(s, request.data, request.len, out);
	buf_u8(out, 0);
	out->len--;
}

static void frames_answers(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	/* clang-format off */
	static const struct { const char *name, *path, *type; const char *body; size_t len; const char *want, *end; size_t end_len; } cases[] = {
		{ "web", "/t.Test/Echo", "application/grpc-web", "\0\0\0\0\3abc", 8, "content-type: application/grpc-web+proto\r\n", "\0\0\0\0\3abc\200\0\0\0\20grpc-status: 0\r\n", 29 },
		{ "web at a prefix", "/api/x/t.Test/Echo", "application/grpc-web+proto", "\0\0\0\0\0", 5, "HTTP/1.1 200 ", "\0\0\0\0\0\200\0\0\0\20grpc-status: 0\r\n", 26 },
		{ "web text", "/t.Test/Echo", "application/grpc-web-text", "AAAAAANhYmM=", 12, "content-type: application/grpc-web-text+proto\r\n", "AAAAAANhYmOAAAAAEGdycGMtc3RhdHVzOiAwDQo=", 40 },
		{ "web error", "/t.Test/Fail", "application/grpc-web", "\0\0\0\0\0", 5, "HTTP/1.1 200 ", "grpc-status: 8\r\ngrpc-message: too much of \"it\" %C3%A9\r\n", 0 },
		{ "web unknown", "/t.Test/None", "application/grpc-web", "\0\0\0\0\0", 5, "HTTP/1.1 200 ", "grpc-status: 12\r\ngrpc-message: unknown method /t.Test/None\r\n", 0 },
		{ "web bad", "/t.Test/Echo", "application/grpc-web", "", 0, "HTTP/1.1 200 ", "grpc-status: 3\r\ngrpc-message: the request has no whole message\r\n", 0 },
		{ "connect", "/t.Test/Echo", "application/proto", "abc", 3, "content-type: application/proto\r\n", "\r\n\r\nabc", 7 },
		{ "connect error", "/t.Test/Fail", "application/proto", "", 0, "HTTP/1.1 429 ", "{\"code\":\"resource_exhausted\",\"message\":\"too much of \\\"it\\\" \xC3\xA9\"}", 0 },
		{ "connect unknown", "/t.Test/None", "application/proto", "", 0, "HTTP/1.1 501 ", "{\"code\":\"unimplemented\",\"message\":\"unknown method /t.Test/None\"}", 0 },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 20);
		post(s, c->path, c->type, str_make(c->body, c->len), &out);
		bool ok = memmem(out.data, out.len, c->want, strlen(c->want)) &&
			  str_ends(buf_view(&out),
				  c->end_len ? str_make(c->end, c->end_len) : str_of(c->end));
		if (!ok)
			print_error("[%s]\n%.*s\n", c->name, STR_ARG(buf_view(&out)));
		CHECK_CASE(c, ok);
	}
	net_server_stop(s);
}

static void makes_grpc_answers(void **state)
{
	(void)state;
	struct http_header accept = { STR("grpc-accept-encoding"), STR("identity,gzip") };
	struct http_request r = { .headers = &accept, .header_count = 1 }, plain = { 0 };
	static struct net_answer a;
	static struct net_response response;

	net_response_init(&response);
	buf_cstr(&response.body, "abc");
	net_answer_make(&a, NET_GRPC, &r, &response);
	CHECK(str_eq(buf_view(&a.body), B("\0\0\0\0\3abc")));
	assert_int_equal(a.trailer_count, 1);
	CHECK_STR(a.trailers[0].value, "0");
	CHECK(!a.no_body && a.http_status == 200);
	buf_deinit(&a.body);

	/* Trailers only. */
	net_response_init(&response);
	net_fail(&response, E_NOTFOUND, NULL);
	net_answer_make(&a, NET_GRPC, &r, &response);
	CHECK(a.no_body && a.trailer_count == 0 && a.http_status == 200);
	struct http_request as_request = { .headers = a.headers,
		.header_count = (uint32_t)a.header_count };
	CHECK_STR(http_request_header(&as_request, "grpc-status"), "5");
	CHECK_STR(http_request_header(&as_request, "grpc-message"), "no such object");
	buf_deinit(&a.body);

	/* Compressed only for those who take it. */
	for (int takes = 0; takes < 2; takes++) {
		net_response_init(&response);
		peer_text(NULL, NULL, &response);
		net_answer_make(&a, NET_GRPC, takes ? &r : &plain, &response);
		assert_int_equal(a.body.data[0], takes ? HTTP_GRPC_COMPRESSED : 0);
		CHECK(takes ? a.body.len < 500 : a.body.len == 12005);
		buf_deinit(&a.body);
	}
}

TEST_MAIN(cmocka_unit_test(knows_content_types), cmocka_unit_test(decodes),
	cmocka_unit_test(frames_answers), cmocka_unit_test(makes_grpc_answers))
