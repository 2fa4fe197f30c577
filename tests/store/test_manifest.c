/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/fixture.h"

#include "codec/codec.h"

static void make(struct buf *out)
{
	struct manifest m = {
		.store_id = { 3, 4 }, .next_part = 9, .next_segment = 8, .next_sequence = 7
	};
	struct manifest_part a = { .id = 5,
		.bytes = 100,
		.rows = 10,
		.samples = 12,
		.first_ns = -1,
		.last_ns = T0,
		.resolution_ns = SEC,
		.level = 2 };
	CHECK(VEC_PUSH(&m.parts, a));
	a.id = 6;
	CHECK(VEC_PUSH(&m.parts, a));
	buf_init(out, 1 << 16);
	manifest_encode(&m, out);
	CHECK(buf_status(out) == OK && out->len == 64 + 2 * 64 + 4);
	manifest_deinit(&m);
}

static void round_trips(void **state)
{
	(void)state;
	struct buf b;
	struct manifest m;
	struct err e = { 0 };
	make(&b);
	CHECK_OK(manifest_parse(buf_view(&b), &m, &e), &e);
	CHECK(m.store_id.hi == 4 && m.next_part == 9 && m.next_segment == 8);
	CHECK(m.next_sequence == 7 && m.parts.len == 2);
	CHECK(m.parts.v[1].id == 6 && m.parts.v[1].first_ns == -1 && m.parts.v[1].level == 2);
	manifest_deinit(&m);
	buf_deinit(&b);
}

static void refuses_damage(void **state)
{
	(void)state;
	struct buf b;
	struct manifest m;
	make(&b);
	for (size_t i = 0; i < b.len; i++) {
		CHECK(manifest_parse(str_make(b.data, i), &m, NULL) == E_CORRUPT);
		b.data[i] ^= 0x10;
		enum status s = manifest_parse(buf_view(&b), &m, NULL);
		CHECK(s == (i == 8 || i == 9 ? E_UNSUPPORTED : E_CORRUPT));
		b.data[i] ^= 0x10;
	}
	buf_deinit(&b);
}

/* A later minor version: longer entries, something behind them. */
static void reads_later_minor_versions(void **state)
{
	(void)state;
	struct buf b, c;
	struct manifest m;
	struct err e = { 0 };
	make(&b);
	buf_init(&c, 1 << 16);
	b.data[10] = 3;
	b.data[60] = 72;
	buf_put(&c, b.data, 64);
	for (int i = 0; i < 2; i++) {
		buf_put(&c, b.data + 64 + i * 64, 64);
		buf_u64(&c, 4711);
	}
	buf_cstr(&c, "more");
	uint32_t len = (uint32_t)c.len + 4;
	memcpy(c.data + 12, &len, 4);
	buf_u32(&c, codec_crc32c(0, c.data, c.len));
	CHECK_OK(manifest_parse(buf_view(&c), &m, &e), &e);
	CHECK(m.parts.len == 2 && m.parts.v[1].id == 6);
	manifest_deinit(&m);
	buf_deinit(&b);
	buf_deinit(&c);
}

TEST_MAIN(cmocka_unit_test(round_trips), cmocka_unit_test(refuses_damage),
	cmocka_unit_test(reads_later_minor_versions))
