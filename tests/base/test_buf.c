/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/reader.h"

#include "test.h"

static void reads_back_what_it_wrote(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	for (unsigned shift = 0; shift < 64; shift++) {
		buf_varint(&b, (uint64_t)1 << shift);
		buf_zigzag(&b, (int64_t)((uint64_t)-1 << shift));
	}
	struct reader r = reader_over(b.data, b.len);
	for (unsigned shift = 0; shift < 64; shift++) {
		CHECK(reader_varint(&r) == (uint64_t)1 << shift);
		CHECK(reader_zigzag(&r) == (int64_t)((uint64_t)-1 << shift));
	}
	CHECK(reader_done(&r) && !r.failed);
}

static void fails_once_and_for_good(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 10);
	buf_cstr(&b, "123456789");
	CHECK(buf_status(&b) == OK);
	buf_u16(&b, 1);
	CHECK(buf_status(&b) == E_LIMIT && b.len == 9);
	buf_u8(&b, 1);
	CHECK(b.len == 9);
	buf_clear(&b);
	buf_cstr(&b, "1234567890");
	CHECK(buf_status(&b) == OK && b.len == 10);
}

/* The larger one is first or last, one of both is empty, both do not fit. */
static void joins_two(void **state)
{
	(void)state;
	static const char *const texts[][2] = { { "ab", "cdefgh" }, { "abcdef", "gh" },
		{ "", "abcdefgh" }, { "abcdefgh", "" }, { "abcd", "efgh" } };
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		CLEANUP(buf_deinit) struct buf b, more;
		buf_init(&b, 100);
		buf_init(&more, 8);
		buf_cstr(&b, texts[i][0]);
		buf_cstr(&more, texts[i][1]);
		buf_join(&b, &more);
		CHECK(str_eq(buf_view(&b), STR("abcdefgh")) && more.len == 0);
		CHECK(b.max == 100 && more.max > 0 && buf_status(&b) == OK);
	}
	static const size_t lengths[][2] = { { 0, 9 }, { 4, 5 }, { 5, 4 }, { 9, 0 } };
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		CLEANUP(buf_deinit) struct buf b, more;
		buf_init(&b, 8);
		buf_init(&more, 100);
		buf_zero(&b, lengths[i][0]);
		buf_zero(&more, lengths[i][1]);
		buf_join(&b, &more);
		CHECK(buf_status(&b) == E_LIMIT);
	}
}

/* clang-format off */
static const struct { const char *name; struct str in; const char *want; } texts[] = {
	{ "plain",        { "abc", 3 },               "\"abc\"" },
	{ "escapes",      { "a\"\\\n\t\x01", 6 },     "\"a\\\"\\\\\\n\\t\\u0001\"" },
	{ "nul",          { "a\0b", 3 },              "\"a\\u0000b\"" },
	{ "utf-8",        { "\xC3\xA9\xF0\x9F\x98\x80", 6 }, "\"\xC3\xA9\xF0\x9F\x98\x80\"" },
	{ "not utf-8",    { "\xFFx\xC3", 3 },         "\"\xEF\xBF\xBDx\xEF\xBF\xBD\"" },
	{ "surrogate",    { "\xED\xA0\x80", 3 },      "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
	{ "empty",        { "", 0 },                  "\"\"" },
};
/* clang-format on */

static void writes_json_text(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, texts) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1000);
		buf_json_str(&b, c->in);
		CHECK_CASE(c, str_eq(buf_view(&b), str_of(c->want)));
	}
}

static void writes_json_numbers(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	buf_json_double(&b, 0.1);
	buf_cstr(&b, " ");
	buf_json_double(&b, 1.0 / 3);
	buf_cstr(&b, " ");
	buf_json_double(&b, 0.0 / 0.0);
	CHECK_STR(buf_view(&b), "0.1 0.3333333333333333 null");
}

TEST_MAIN(cmocka_unit_test(reads_back_what_it_wrote), cmocka_unit_test(fails_once_and_for_good),
	cmocka_unit_test(joins_two), cmocka_unit_test(writes_json_text),
	cmocka_unit_test(writes_json_numbers))
