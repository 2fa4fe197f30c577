/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "http/chunked.h"

/* clang-format off */
static const struct { const char *name, *bytes, *body; size_t left; bool bad; } cases[] = {
	{ "two chunks",            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 0, false },
	{ "nothing",               "0\r\n\r\n", "", 0, false },
	{ "leading zeros",         "003\r\nabc\r\n000\r\n\r\n", "abc", 0, false },
	{ "capital hex",           "A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0, false },
	{ "extension",             "1;a=\"b\"\r\nx\r\n0;q\r\n\r\n", "x", 0, false },
	{ "trailers",              "0\r\nA: b\r\nC:\r\n\r\n", "", 0, false },
	{ "what follows stays",    "0\r\n\r\nGET", "", 3, false },
	{ "LF in an extension",    "1;a\nb\r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "CR in an extension",    "1;a\rb\r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "no CRLF behind data",   "1\r\nxy\r\n0\r\n\r\n", "x", 0, true },
	{ "LF behind data",        "1\r\nx\n0\r\n\r\n", "x", 0, true },
	{ "bare LF behind size",   "1\nx\r\n0\r\n\r\n", "", 0, true },
	{ "space behind size",     "1 \r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "space before size",     " 1\r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "sign",                  "+1\r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "0x",                    "0x1\r\nx\r\n0\r\n\r\n", "", 0, true },
	{ "no size",               "\r\nx\r\n", "", 0, true },
	{ "no size behind a chunk", "1\r\nx\r\n\r\n0\r\n\r\n", "x", 0, true },
	{ "size with 16 digits",   "1000000000000000\r\n", "", 0, true },
	{ "folded trailer",        "0\r\nA: b\r\n c\r\n\r\n", "", 0, true },
	{ "trailer without colon", "0\r\nabc\r\n\r\n", "", 0, true },
	{ "trailer without name",  "0\r\n: b\r\n\r\n", "", 0, true },
	{ "trailer with bare LF",  "0\r\nA: b\n\r\n", "", 0, true },
	{ "end by LF",             "0\r\n\n", "", 0, true },
};
/* clang-format on */

static void reads_chunks(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		for (size_t step = 1; step <= strlen(c->bytes); step++) {
			struct http_chunked k = { 0 };
			CLEANUP(buf_deinit) struct buf body;
			buf_init(&body, 100);
			const uint8_t *at = (const uint8_t *)c->bytes, *end = at + strlen(c->bytes);
			while (at < end && k.state != HTTP_CHUNK_DONE &&
				k.state != HTTP_CHUNK_BAD) {
				struct str data;
				at += http_chunked_feed(
					&k, at, MIN(step, (size_t)(end - at)), &data);
				buf_str(&body, data);
			}
			CHECK_CASE(c, k.state == (c->bad ? HTTP_CHUNK_BAD : HTTP_CHUNK_DONE));
			CHECK_CASE(c, str_eq(buf_view(&body), str_of(c->body)));
			CHECK_CASE(c, c->bad || (size_t)(end - at) == c->left);
		}
	}
}

static void limits_what_is_no_data(void **state)
{
	(void)state;
	static const char *const begins[] = { "1;", "0\r\na: ", "0\r\n" };
	for (size_t b = 0; b < ARRAY_COUNT(begins); b++) {
		struct http_chunked k = { 0 };
		struct str data;
		(void)http_chunked_feed(&k, (const uint8_t *)begins[b], strlen(begins[b]), &data);
		size_t fed = 0;
		while (k.state != HTTP_CHUNK_BAD && fed < 10000)
			fed += http_chunked_feed(&k, (const uint8_t *)"x", 1, &data);
		CHECK(k.state == HTTP_CHUNK_BAD);
		CHECK(fed >= 4000 && fed <= 4200);
	}
}

TEST_MAIN(cmocka_unit_test(reads_chunks), cmocka_unit_test(limits_what_is_no_data))
