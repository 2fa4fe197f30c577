/* SPDX-License-Identifier: Apache-2.0 */
/* The heads that other parsers let through (request smuggling), and those that must pass. */
#include "test.h"

#include "http/head.h"

#define H "host: a\r\n"

/* clang-format off */
static const struct { const char *name; const char *head; int refused; } cases[] = {
	{ "plain",                   "GET / HTTP/1.1\r\n" H "\r\n", 0 },
	{ "1.0 without host",        "GET / HTTP/1.0\r\n\r\n", 0 },
	{ "empty host",              "GET / HTTP/1.1\r\nhost:\r\n\r\n", 0 },
	{ "absolute form",           "GET http://b:80/x HTTP/1.1\r\n" H "\r\n", 0 },
	{ "asterisk",                "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0 },
	{ "bytes above 127 in value", "GET / HTTP/1.1\r\n" H "x: \xC3\xA9\r\n\r\n", 0 },
	{ "tab in value",            "GET / HTTP/1.1\r\n" H "x: a\tb\r\n\r\n", 0 },
	{ "missing host",            "GET / HTTP/1.1\r\n\r\n", 400 },
	{ "two hosts",               "GET / HTTP/1.1\r\n" H H "\r\n", 400 },
	{ "two hosts in 1.0",        "GET / HTTP/1.0\r\n" H H "\r\n", 400 },
	{ "host with user",          "GET / HTTP/1.1\r\nhost: u@a\r\n\r\n", 400 },
	{ "host with path",          "GET / HTTP/1.1\r\nhost: a/b\r\n\r\n", 400 },
	{ "host list",               "GET / HTTP/1.1\r\nhost: a b\r\n\r\n", 400 },
	{ "CVE-2023-30589",          "GET / HTTP/1.1\r\n" H "X-Abc:\rxTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "CVE-2024-27982",          "GET / HTTP/1.1\r\n" H " Content-Length: 5\r\n\r\n", 400 },
	{ "first line folded",       "GET / HTTP/1.1\r\n Content-Length: 5\r\n" H "\r\n", 400 },
	{ "obs-fold",                "GET / HTTP/1.1\r\n" H "x: a\r\n b\r\n\r\n", 400 },
	{ "obs-fold by tab",         "GET / HTTP/1.1\r\n" H "x: a\r\n\tb\r\n\r\n", 400 },
	{ "space before colon",      "GET / HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\n", 400 },
	{ "tab before colon",        "GET / HTTP/1.1\r\n" H "Transfer-Encoding\t: chunked\r\n\r\n", 400 },
	{ "no colon",                "GET / HTTP/1.1\r\n" H "abc\r\n\r\n", 400 },
	{ "empty name",              "GET / HTTP/1.1\r\n" H ": x\r\n\r\n", 400 },
	{ "NUL in name",             "GET / HTTP/1.1\r\n" H "a\x01: x\r\n\r\n", 400 },
	{ "control in value",        "GET / HTTP/1.1\r\n" H "a: x\x01\r\n\r\n", 400 },
	{ "DEL in value",            "GET / HTTP/1.1\r\n" H "a: x\x7F\r\n\r\n", 400 },
	{ "CR in value",             "GET / HTTP/1.1\r\n" H "a: x\ry\r\n\r\n", 400 },
	{ "CL and TE",               "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "TE and CL",               "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400 },
	{ "two CL",                  "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400 },
	{ "CL list",                 "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n", 400 },
	{ "CL plus",                 "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", 400 },
	{ "CL minus",                "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n", 400 },
	{ "CL hex",                  "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n", 400 },
	{ "CL empty",                "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400 },
	{ "CL inner space",          "POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\n", 400 },
	{ "CL too large",            "POST / HTTP/1.1\r\n" H "Content-Length: 9999999999999999999\r\n\r\n", 400 },
	{ "TE twice",                "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "TE chunked, x",           "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, x\r\n\r\n", 501 },
	{ "TE x, chunked",           "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ "TE identity",             "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", 501 },
	{ "TE quoted",               "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n", 501 },
	{ "TE vertical tab",         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0B" "chunked\r\n\r\n", 400 },
	{ "TE in 1.0",               "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ "expectation",             "POST / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n", 417 },
	{ "two spaces",              "GET  / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "two spaces behind",       "GET /  HTTP/1.1\r\n" H "\r\n", 400 },
	{ "tab as separator",        "GET\t/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "leading space",           " GET / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "no version",              "GET /\r\n" H "\r\n", 400 },
	{ "version 2",               "GET / HTTP/2.0\r\n" H "\r\n", 505 },
	{ "version 1.2",             "GET / HTTP/1.2\r\n" H "\r\n", 505 },
	{ "version 1.10",            "GET / HTTP/1.10\r\n" H "\r\n", 505 },
	{ "version lower case",      "GET / http/1.1\r\n" H "\r\n", 400 },
	{ "trailing space",          "GET / HTTP/1.1 \r\n" H "\r\n", 505 },
	{ "empty method",            " / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "method too long",         "AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDD / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "method with bracket",     "G[T / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "relative target",         "GET x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "authority form",          "CONNECT a:1 HTTP/1.1\r\n" H "\r\n", 400 },
	{ "other scheme",            "GET ftp://a/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "absolute without host",   "GET http:///x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "absolute with user",      "GET http://u@b/x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "fragment",                "GET /#x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "raw UTF-8 in target",     "GET /\xC3\xA9 HTTP/1.1\r\n" H "\r\n", 400 },
	{ "only a blank line",       "\r\n", 400 },
};
/* clang-format on */

static void judges_heads(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct http_head h;
		const char *why = NULL;
		int got = http_head_parse_request(
			(const uint8_t *)c->head, strlen(c->head), &h, &why);
		if (got != c->refused)
			print_error("[%s] got %d, want %d (%s)\n", c->name, got, c->refused,
				why ? why : "");
		CHECK_CASE(c, got == c->refused);
		CHECK_CASE(c, (got == 0) == (why == NULL));
	}
}

static void reads_all_of_a_head(void **state)
{
	(void)state;
	static const char text[] = "POST http://example.com:80/a?b=c HTTP/1.1\r\nHost: other\r\n"
				   "Content-Length:  12 \r\nEmpty:\r\nExpect: 100-Continue\r\n"
				   "Connection: foo, CLOSE\r\n\r\n";
	struct http_head h;
	const char *why;
	assert_int_equal(
		http_head_parse_request((const uint8_t *)text, sizeof(text) - 1, &h, &why), 0);
	CHECK_STR(h.method, "POST");
	CHECK_STR(h.target, "/a?b=c");
	CHECK_STR(h.authority, "example.com:80");
	assert_int_equal(h.content_length, 12);
	assert_int_equal(h.header_count, 5);
	CHECK_STR(h.headers[1].value, "12");
	CHECK_STR(h.headers[2].value, "");
	CHECK(h.expect_continue && !h.keep_alive && !h.chunked);
}

static void keeps_alive_by_version(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *head; bool keep; } heads[] = {
		{ "1.1",            "GET / HTTP/1.1\r\n" H "\r\n", true },
		{ "1.1 close",      "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false },
		{ "1.0",            "GET / HTTP/1.0\r\n\r\n", false },
		{ "1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
		{ "both",           "GET / HTTP/1.1\r\n" H "Connection: keep-alive, close\r\n\r\n", false },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, heads) {
		struct http_head h;
		const char *why;
		CHECK_CASE(c, http_head_parse_request(
				      (const uint8_t *)c->head, strlen(c->head), &h, &why) == 0);
		CHECK_CASE(c, h.keep_alive == c->keep);
	}
}

static void finds_the_end(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *bytes; size_t end; int refused; } heads[] = {
		{ "whole",        "A\r\n\r\nB", 5, 0 },
		{ "not yet",      "A\r\nB: c\r\n\r", 0, 0 },
		{ "blank only",   "\r\nA", 2, 0 },
		{ "bare LF",      "A\nB\r\n\r\n", 0, 400 },
		{ "bare LF end",  "A\r\n\nB", 0, 400 },
		{ "LF first",     "\nA", 0, 400 },
		{ "CR CR LF",     "A\r\r\n\r\n", 6, 0 }, /* refused by the parser */
	};
	/* clang-format on */
	FOR_EACH_CASE (c, heads) {
		for (size_t step = 1; step <= strlen(c->bytes); step++) {
			size_t scanned = 0, end = 0, len = 0;
			int refused = 0;
			while (!end && !refused && len < strlen(c->bytes)) {
				len = MIN(len + step, strlen(c->bytes));
				end = http_head_find_end(
					(const uint8_t *)c->bytes, len, &scanned, &refused);
			}
			CHECK_CASE(c, end == c->end);
			CHECK_CASE(c, refused == c->refused);
		}
	}
}

static void limits_headers(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	buf_cstr(&b, "GET / HTTP/1.1\r\nhost: a\r\n");
	for (int i = 0; i < HTTP_HEADERS_MAX - 1; i++)
		buf_printf(&b, "x%d: y\r\n", i);
	size_t fits = b.len;
	buf_cstr(&b, "\r\n");
	struct http_head h;
	const char *why;
	assert_int_equal(http_head_parse_request(b.data, b.len, &h, &why), 0);
	b.len = fits;
	buf_cstr(&b, "more: z\r\n\r\n");
	assert_int_equal(http_head_parse_request(b.data, b.len, &h, &why), 431);
}

TEST_MAIN(cmocka_unit_test(judges_heads), cmocka_unit_test(reads_all_of_a_head),
	cmocka_unit_test(keeps_alive_by_version), cmocka_unit_test(finds_the_end),
	cmocka_unit_test(limits_headers))
