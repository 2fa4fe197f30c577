/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reader.h"

#include "test.h"

/* clang-format off */
static const struct {
	const char *name; uint8_t bytes[12]; size_t len; uint64_t want; bool fails;
} varints[] = {
	{ "zero",                         { 0x00 },       1, 0,   false },
	{ "150, from the protobuf guide", { 0x96, 0x01 }, 2, 150, false },
	{ "not the shortest form",        { 0x80, 0x00 }, 2, 0,   false },
	{ "all 64 bits", { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 }, 10, UINT64_MAX, false },
	{ "empty",                        { 0 },          0, 0,   true  },
	{ "cut short",                    { 0x96 },       1, 0,   true  },
	{ "a 65th bit", { 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 }, 10, 0, true },
	{ "eleven bytes", { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1 }, 11, 0, true },
};

static const struct {
	const char *name; uint8_t bytes[12]; size_t len; int64_t want; bool fails;
} slebs[] = {
	{ "2, from the DWARF standard",    { 2 },          1, 2,    false },
	{ "-2",                            { 0x7e },       1, -2,   false },
	{ "127",                           { 0xff, 0x00 }, 2, 127,  false },
	{ "-127",                          { 0x81, 0x7f }, 2, -127, false },
	{ "-129",                          { 0xff, 0x7e }, 2, -129, false },
	{ "padded",                        { 0x82, 0x80, 0x00 }, 3, 2, false },
	{ "cut short",                     { 0x80 },       1, 0,    true },
};
/* clang-format on */

static void reads_varints(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, varints) {
		struct reader r = reader_over(c->bytes, c->len);
		uint64_t got = reader_varint(&r);
		CHECK_CASE(c, r.failed == c->fails);
		CHECK_CASE(c, got == c->want);
		CHECK_CASE(c, reader_offset(&r) == (c->fails ? 0 : c->len));
	}
}

static void reads_slebs(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, slebs) {
		struct reader r = reader_over(c->bytes, c->len);
		int64_t got = reader_sleb(&r);
		CHECK_CASE(c, r.failed == c->fails);
		CHECK_CASE(c, got == c->want);
	}
}

static void uleb_refuses_a_65th_bit(void **state)
{
	(void)state;
	static const uint8_t most[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
	struct reader r = reader_over(most, sizeof(most));
	CHECK(reader_uleb(&r) == UINT64_MAX && !r.failed);
	static const uint8_t more[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 3 };
	r = reader_over(more, sizeof(more));
	(void)reader_uleb(&r);
	CHECK(r.failed);
}

static void never_passes_its_end(void **state)
{
	(void)state;
	static const uint8_t bytes[] = { 1, 2, 3, 'a', 0, 'b' };
	struct reader r = reader_over(bytes, sizeof(bytes));
	CHECK(reader_u16(&r) == 0x0201);
	CHECK(reader_u32(&r) == 0x62006103);
	CHECK(!r.failed && reader_done(&r));
	CHECK(reader_u8(&r) == 0 && r.failed);

	r = reader_over(bytes, sizeof(bytes));
	reader_seek(&r, 3);
	CHECK(str_eq(reader_cstr(&r), STR("a")));
	CHECK(reader_cstr(&r).len == 0 && r.failed);
	CHECK(reader_offset(&r) == 5);

	r = reader_over(bytes, sizeof(bytes));
	CHECK(reader_bytes(&r, SIZE_MAX) == NULL && r.failed);
	struct reader sub = reader_sub(&r, 1);
	CHECK(sub.failed);
	r = reader_over(NULL, 0);
	CHECK(reader_done(&r) && !r.failed);
	reader_seek(&r, 0);
	CHECK(reader_done(&r) && !r.failed);
	CHECK(reader_cstr(&r).len == 0 && r.failed);
}

TEST_MAIN(cmocka_unit_test(reads_varints), cmocka_unit_test(reads_slebs),
	cmocka_unit_test(uleb_refuses_a_65th_bit), cmocka_unit_test(never_passes_its_end))
