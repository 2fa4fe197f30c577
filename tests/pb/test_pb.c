/* SPDX-License-Identifier: Apache-2.0 */
#include "pb/pb.h"

#include "test.h"

/* clang-format off */
static const struct { const char *name; uint8_t bytes[16]; size_t len; bool fails; } messages[] = {
	{ "empty", { 0 }, 0, false },
	{ "field 1 = 150", { 0x08, 0x96, 0x01 }, 3, false },
	{ "text of 7 bytes", { 0x12, 7, 't', 'e', 's', 't', 'i', 'n', 'g' }, 9, false },
	{ "field number 0", { 0x00, 0x01 }, 2, true },
	{ "group", { 0x0B, 0x0C }, 2, true },
	{ "wire type 7", { 0x0F }, 1, true },
	{ "length beyond the end", { 0x12, 8, 't' }, 3, true },
	{ "length of 2^64 - 1", { 0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 }, 11, true },
	{ "fixed64 cut short", { 0x09, 1, 2, 3 }, 4, true },
	{ "tag alone", { 0x08 }, 1, true },
	{ "field number of 30 bits", { 0x80, 0x80, 0x80, 0x80, 0x10, 0 }, 6, true },
};
/* clang-format on */

static void reads_whole_fields_or_fails(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, messages) {
		struct reader r = reader_over(c->bytes, c->len);
		struct pb_field f;
		while (pb_next(&r, &f))
			;
		CHECK_CASE(c, r.failed == c->fails);
		CHECK_CASE(c, c->fails || r.at == r.end);
	}
}

static void patches_lengths_of_nested_messages(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	size_t outer = pb_begin(&b, 1);
	size_t inner = pb_begin(&b, 2);
	for (int i = 0; i < 100; i++)
		pb_put_str(&b, 3, STR("0123456789"));
	pb_end(&b, inner);
	pb_put_i64(&b, 4, -1);
	pb_end(&b, outer);
	pb_put_fixed64(&b, 5, 7);
	CHECK(buf_status(&b) == OK);

	struct reader r = reader_over(b.data, b.len);
	struct pb_field f;
	CHECK(pb_next(&r, &f) && f.number == 1 && f.wire == PB_BYTES);
	struct reader in = pb_message(&f);
	CHECK(pb_next(&in, &f) && f.number == 2 && f.bytes.len == 1200);
	CHECK(pb_next(&in, &f) && f.number == 4 && (int64_t)f.u64 == -1);
	CHECK(!pb_next(&in, &f) && !in.failed);
	CHECK(pb_next(&r, &f) && f.number == 5 && f.u64 == 7 && f.wire == PB_FIXED64);
	CHECK(!pb_next(&r, &f) && !r.failed);
}

static uint64_t sum_of(const uint8_t *bytes, size_t len, bool *failed)
{
	struct reader r = reader_over(bytes, len);
	struct pb_field f;
	uint64_t sum = 0, v;
	*failed = false;
	while (pb_next(&r, &f)) {
		struct pb_packed p = pb_packed(&f, PB_VARINT);
		while (pb_packed_next(&p, &v))
			sum += v;
		*failed |= p.failed;
	}
	*failed |= r.failed;
	return sum;
}

static void reads_packed_and_unpacked(void **state)
{
	(void)state;
	bool failed;
	static const uint8_t both[] = { 0x0A, 3, 1, 0xAC, 0x02, 0x08, 5 };
	CHECK(sum_of(both, sizeof(both), &failed) == 306 && !failed);
	static const uint8_t torn[] = { 0x0A, 1, 0x80 };
	(void)sum_of(torn, sizeof(torn), &failed);
	CHECK(failed);
	static const uint8_t wrong[] = { 0x0D, 1, 0, 0, 0 };
	(void)sum_of(wrong, sizeof(wrong), &failed);
	CHECK(failed);
}

static void leaves_zero_out(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	pb_put_u64(&b, 1, 0);
	pb_put_str(&b, 2, STR(""));
	pb_put_bool(&b, 3, false);
	pb_put_double(&b, 4, 0);
	pb_put_packed_u32(&b, 5, NULL, 0);
	CHECK(b.len == 0);
	pb_put_u64_always(&b, 1, 0);
	pb_put_str_always(&b, 2, STR(""));
	CHECK(b.len == 4);
}

TEST_MAIN(cmocka_unit_test(reads_whole_fields_or_fails),
	cmocka_unit_test(patches_lengths_of_nested_messages),
	cmocka_unit_test(reads_packed_and_unpacked), cmocka_unit_test(leaves_zero_out))
