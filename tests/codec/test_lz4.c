/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"
#include "test.h"
#include "test_compress.h"

static void compress(struct buf *out, const struct buf *in)
{
	enum status s = codec_lz4_compress(in->data, in->len, out);
	CHECK(s == OK);
}

static void gives_back_what_went_in(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 100, 65536, 1 << 20 };
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		CLEANUP(buf_deinit) struct buf in, packed, out;
		buf_init(&in, 2 << 20);
		buf_init(&packed, 2 << 20);
		buf_init(&out, MAX(sizes[i], (size_t)1));
		fill_sample(&in, sizes[i]);
		compress(&packed, &in);
		/* Two frames after each other are one text. */
		struct err e;
		CHECK_OK(codec_lz4_decompress(packed.data, packed.len, &out, &e), &e);
		CHECK(str_eq(buf_view(&in), buf_view(&out)));
		size_t once = packed.len;
		compress(&packed, &in);
		out.max = MAX(2 * sizes[i], (size_t)1);
		buf_clear(&out);
		CHECK_OK(codec_lz4_decompress(packed.data, packed.len, &out, &e), &e);
		CHECK(out.len == 2 * sizes[i] && packed.len > once);
	}
}

static void ends_a_bomb_at_the_limit(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in, packed, out;
	buf_init(&in, 4 << 20);
	buf_init(&packed, 8 << 20);
	buf_init(&out, 100000);
	buf_zero(&in, 4 << 20);
	compress(&packed, &in);
	CHECK(packed.len < 65536);
	struct err e;
	CHECK(codec_lz4_decompress(packed.data, packed.len, &out, &e) == E_LIMIT);
	CHECK(out.cap <= 100000);
}

static void refuses_damage(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in, packed, out;
	buf_init(&in, 1 << 20);
	buf_init(&packed, 1 << 20);
	buf_init(&out, 1 << 20);
	fill_sample(&in, 3000);
	compress(&packed, &in);
	struct err e;
	for (size_t cut = 0; cut < packed.len; cut += 13) {
		buf_clear(&out);
		CHECK(codec_lz4_decompress(packed.data, cut, &out, &e) == E_CORRUPT);
	}
	packed.data[0] ^= 0x40;
	buf_clear(&out);
	CHECK(codec_lz4_decompress(packed.data, packed.len, &out, &e) == E_CORRUPT);
	CHECK(codec_lz4_decompress(NULL, 0, &out, &e) == E_CORRUPT);
}

static void fills_exactly(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in, packed;
	buf_init(&in, 1 << 20);
	buf_init(&packed, 1 << 20);
	fill_sample(&in, 3000);
	compress(&packed, &in);
	uint8_t out[3001];
	struct err e;
	CHECK_OK(codec_lz4_decompress_exact(packed.data, packed.len, out, 3000, &e), &e);
	CHECK(memcmp(out, in.data, 3000) == 0);
	CHECK(codec_lz4_decompress_exact(packed.data, packed.len, out, 3001, &e) == E_CORRUPT);
	CHECK(codec_lz4_decompress_exact(packed.data, packed.len, out, 2999, &e) == E_CORRUPT);
}

static void packs_a_block(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 3000, 100000 };
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		CLEANUP(buf_deinit) struct buf in, packed;
		buf_init(&in, 1 << 20);
		buf_init(&packed, 1 << 20);
		fill_sample(&in, sizes[i]);
		CHECK(codec_lz4_block_compress(in.data, in.len, &packed) == OK);
		CHECK(sizes[i] < 1000 || packed.len < sizes[i]);
		char *out = malloc(sizes[i] + 1);
		CHECK(out != NULL);
		struct err e;
		CHECK_OK(codec_lz4_block_decompress_exact(
				 packed.data, packed.len, out, sizes[i], &e),
			&e);
		CHECK(sizes[i] == 0 || memcmp(out, in.data, sizes[i]) == 0);
		CHECK(codec_lz4_block_decompress_exact(
			      packed.data, packed.len, out, sizes[i] + 1, &e) == E_CORRUPT);
		CHECK(codec_lz4_block_decompress_exact(
			      packed.data, packed.len - 1, out, sizes[i], &e) == E_CORRUPT);
		free(out);
		packed.max = packed.len;
		CHECK(codec_lz4_block_compress(in.data, in.len, &packed) == E_LIMIT);
	}
}

TEST_MAIN(cmocka_unit_test(gives_back_what_went_in), cmocka_unit_test(ends_a_bomb_at_the_limit),
	cmocka_unit_test(refuses_damage), cmocka_unit_test(fills_exactly),
	cmocka_unit_test(packs_a_block))
