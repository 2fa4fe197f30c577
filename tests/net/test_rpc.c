/* SPDX-License-Identifier: Apache-2.0 */
/* The framings of a unary call: decoding, encoding, and both over the wire. */
#include "test.h"

#include "codec/codec.h"
#include "net/state.h"

#include "peer.h"

#include <stdio.h>

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
		{ "application/connect+proto", NET_CONNECT_STREAM },
		{ "application/connect+json", NET_CONNECT_STREAM_JSON },
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
	struct http_header body_gzip = { STR("content-encoding"), STR("GZIP") };
	struct http_header body_lz = { STR("content-encoding"), STR("lz4") };
	struct http_header body_identity = { STR("content-encoding"), STR("identity") };
	struct http_request h_gzip = { .headers = &body_gzip, .header_count = 1 };
	struct http_request h_lz = { .headers = &body_lz, .header_count = 1 };
	struct http_request h_identity = { .headers = &body_identity, .header_count = 1 };
	static const char zeros[100000];
	CLEANUP(buf_deinit) struct buf bomb, text;
	buf_init(&bomb, 200000);
	buf_init(&text, 1000);
	CHECK(codec_gzip(zeros, sizeof(zeros), 9, &bomb) == OK);
	CLEANUP(buf_deinit) struct buf zip;
	buf_init(&zip, 1000);
	http_grpc_put_prefix(&zip, HTTP_GRPC_COMPRESSED, 0);
	CHECK(codec_gzip("hello", 5, 1, &zip) == OK);
	zip.data[4] = (uint8_t)(zip.len - 5);
	http_base64_encode(&text, buf_view(&zip));
	struct str gzip_body = str_sub(buf_view(&zip), 5, zip.len);
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
		{ "connect, gzip", NET_CONNECT, &h_gzip, gzip_body, OK, "hello" },
		{ "connect, empty gzip", NET_CONNECT, &h_gzip, B(""), OK, "" },
		{ "json, gzip", NET_CONNECT_JSON, &h_gzip, gzip_body, OK, "hello" },
		{ "rest, identity", NET_REST, &h_identity, B("abc"), OK, "abc" },
		{ "plain, torn gzip", NET_PLAIN, &h_gzip, str_sub(gzip_body, 0, 12), E_INVALID,
			NULL },
		{ "plain, no gzip", NET_PLAIN, &h_gzip, B("abcdefgh"), E_INVALID, NULL },
		{ "plain, a bomb", NET_PLAIN, &h_gzip, buf_view(&bomb), E_LIMIT, NULL },
		{ "plain, unknown coding", NET_PLAIN, &h_lz, B("a"), E_UNSUPPORTED, NULL },
		{ "web text, compressed", NET_GRPC_WEB_TEXT, &gzipped, buf_view(&text), OK,
			"hello" },
		{ "web text, two", NET_GRPC_WEB_TEXT, &plain, B("AAAAAAFhAAAAAAFi"), E_INVALID,
			NULL },
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
		{ "gRPC over HTTP/1.1", "/t.Test/Echo", "application/grpc", "\0\0\0\0\3abc", 8, "content-type: application/grpc\r\n", "\r\n\r\n8\r\n\0\0\0\0\3abc\r\n0\r\ngrpc-status: 0\r\n\r\n", 38 },
		{ "its error", "/t.Test/Fail", "application/grpc", "\0\0\0\0\0", 5, "grpc-status: 8\r\ngrpc-message: too much of \"it\" %C3%A9\r\n", "content-length: 0\r\nconnection: close\r\n\r\n", 0 },
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

static struct str header_of(const struct net_answer *a, const char *name)
{
	for (size_t i = 0; i < a->header_count; i++)
		if (str_eq(a->headers[i].name, str_of(name)))
			return a->headers[i].value;
	return STR("(none)");
}

static void makes_plain_answers(void **state)
{
	(void)state;
	struct http_header accept = { STR("accept-encoding"), STR("br, gzip") };
	struct http_request r = { .headers = &accept, .header_count = 1 }, plain = { 0 };
	static struct net_answer a;
	static struct net_response response;

	/* Headers of the handler: names in lower case, up to a malformed line. */
	net_response_init(&response);
	snprintf(response.headers, sizeof(response.headers),
		"X-One:  1 \r\nno colon\r\nX-Two: 2\r\n");
	net_answer_make(&a, NET_PLAIN, &r, &response);
	CHECK_STR(header_of(&a, "x-one"), "1");
	CHECK_STR(header_of(&a, "x-two"), "(none)");
	CHECK_STR(header_of(&a, "content-type"), "application/octet-stream");
	CHECK(a.http_status == 200 && !a.no_body && header_of(&a, "date").len == 29);
	buf_deinit(&a.body);

	net_response_init(&response);
	response.http_status = 304;
	net_answer_make(&a, NET_PLAIN, &r, &response);
	CHECK(a.no_body && a.http_status == 304);
	CHECK_STR(header_of(&a, "content-type"), "(none)");
	buf_deinit(&a.body);

	/* A status without a word gets one. */
	net_response_init(&response);
	response.status = E_UNAVAILABLE;
	net_answer_make(&a, NET_PLAIN, &r, &response);
	CHECK(a.http_status == 503 && str_starts(buf_view(&a.body), STR("{\"error\":\"")));
	CHECK_STR(header_of(&a, "retry-after"), "5");
	buf_deinit(&a.body);

	/* Text is compressed for those who take it, where that makes it shorter. */
	for (int takes = 0; takes < 2; takes++) {
		net_response_init(&response);
		peer_text(NULL, NULL, &response);
		net_answer_make(&a, NET_PLAIN, takes ? &r : &plain, &response);
		CHECK_STR(header_of(&a, "content-encoding"), takes ? "gzip" : "(none)");
		CHECK_STR(header_of(&a, "vary"), "accept-encoding");
		CHECK(takes ? a.body.len < 500 : a.body.len == 12000);
		buf_deinit(&a.body);
	}
	net_response_init(&response);
	uint64_t x = 1;
	for (int i = 0; i < 1000; i++)
		buf_u64(&response.body, x = x * 6364136223846793005ULL + 1442695040888963407ULL);
	response.content_type = "text/plain";
	net_answer_make(&a, NET_PLAIN, &r, &response);
	CHECK_STR(header_of(&a, "content-encoding"), "(none)");
	assert_int_equal(a.body.len, 8000);
	buf_deinit(&a.body);
}

/* An answer that grew beyond its limit is none, in each framing. */
static void refuses_answers_without_end(void **state)
{
	(void)state;
	struct http_request r = { 0 };
	static const struct {
		const char *name;
		enum net_framing f;
		int http_status;
		bool no_body;
		const char *says;
	} cases[] = {
		{ "plain", NET_PLAIN, 422, false, "\"code\":\"LIMIT\"" },
		{ "grpc", NET_GRPC, 200, true, "" },
		{ "web", NET_GRPC_WEB, 200, false, "grpc-status: 8\r\n" },
		{ "connect", NET_CONNECT, 400, false, "\"invalid_argument\"" },
		{ "rest", NET_REST, 422, false, "{\"code\":8," },
	};
	FOR_EACH_CASE (c, cases) {
		static struct net_answer a;
		static struct net_response response;
		net_response_init(&response);
		buf_deinit(&response.body);
		buf_init(&response.body, 1000);
		buf_zero(&response.body, 900);
		buf_zero(&response.body, 900);
		CHECK(response.body.failed);
		net_answer_make(&a, c->f, &r, &response);
		if (a.http_status != c->http_status)
			print_error("[%s] %d %.*s\n", c->name, a.http_status,
				STR_ARG(buf_view(&a.body)));
		CHECK_CASE(c, a.http_status == c->http_status && a.no_body == c->no_body);
		buf_u8(&a.body, 0);
		CHECK_CASE(c, memmem(a.body.data, a.body.len, c->says, strlen(c->says)));
		if (c->f == NET_GRPC)
			CHECK_STR(header_of(&a, "grpc-status"), "8");
		buf_deinit(&a.body);
	}
}

/* Connect's clients send again after resource_exhausted: not what is too large. */
static void says_in_connect_what_may_be_sent_again(void **state)
{
	(void)state;
	struct http_request r = { 0 };
	static const struct {
		const char *name;
		enum status status;
		int http_status;
		const char *says;
	} cases[] = {
		{ "too large", E_LIMIT, 400, "{\"code\":\"invalid_argument\",\"message\":\"x\"}" },
		{ "no memory", E_NOMEM, 429,
			"{\"code\":\"resource_exhausted\",\"message\":\"x\"}" },
		{ "a quota", E_QUOTA, 429, "{\"code\":\"resource_exhausted\",\"message\":\"x\"}" },
		{ "a full disk", E_NOSPACE, 503, "{\"code\":\"unavailable\",\"message\":\"x\"}" },
	};
	FOR_EACH_CASE (c, cases) {
		static struct net_answer a;
		static struct net_response response;
		struct err e;
		net_response_init(&response);
		net_fail(&response, err_set(&e, c->status, "x"), &e);
		net_answer_make(&a, NET_CONNECT, &r, &response);
		CHECK_CASE(c, a.http_status == c->http_status);
		CHECK_CASE(c, str_eq(buf_view(&a.body), str_of(c->says)));
		buf_deinit(&a.body);
	}
}

/* How a stream begins and ends, well and not. */
static void begins_and_ends_streams(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum net_framing f;
		const char *type, *good, *bad;
		size_t good_trailers, bad_trailers;
	} cases[] = {
		{ "grpc", NET_GRPC, "application/grpc", "", "", 1, 2 },
		{ "web", NET_GRPC_WEB, "application/grpc-web+proto", "grpc-status: 0\r\n",
			"grpc-status: 5\r\ngrpc-message: not there\r\n", 0, 0 },
		{ "web text", NET_GRPC_WEB_TEXT, "application/grpc-web-text+proto",
			"gAAAABBncnBjLXN0YXR1czogMA0K", "gAAAACln", 0, 0 },
		{ "rest", NET_REST, "application/json", "",
			"{\"error\":{\"code\":5,\"message\":\"not there\",\"details\":[]}}\n", 0,
			0 },
	};
	FOR_EACH_CASE (c, cases) {
		for (int bad = 0; bad < 2; bad++) {
			static struct net_answer a;
			static struct net_response response;
			struct err e;
			net_response_init(&response);
			if (bad)
				net_fail(&response, err_set(&e, E_NOTFOUND, "not there"), &e);
			net_answer_begin(&a, c->f, bad);
			CHECK_CASE(c, str_eq(header_of(&a, "content-type"), str_of(c->type)));
			CHECK_CASE(c, str_eq(header_of(&a, "grpc-encoding"),
					      str_of(bad ? "gzip" : "(none)")));
			net_answer_end(&a, &response);
			CHECK_CASE(
				c, a.trailer_count == (bad ? c->bad_trailers : c->good_trailers));
			const char *want = bad ? c->bad : c->good;
			buf_u8(&a.body, 0);
			if (!memmem(a.body.data, a.body.len, want, strlen(want)))
				print_error("[%s] %.*s\n", c->name, STR_ARG(buf_view(&a.body)));
			CHECK_CASE(c, memmem(a.body.data, a.body.len, want, strlen(want)));
			buf_deinit(&a.body);
			buf_deinit(&response.body);
		}
	}
}

TEST_MAIN(cmocka_unit_test(knows_content_types), cmocka_unit_test(decodes),
	cmocka_unit_test(frames_answers), cmocka_unit_test(makes_grpc_answers),
	cmocka_unit_test(makes_plain_answers), cmocka_unit_test(refuses_answers_without_end),
	cmocka_unit_test(says_in_connect_what_may_be_sent_again),
	cmocka_unit_test(begins_and_ends_streams))
