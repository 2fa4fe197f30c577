/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed in pieces is what codec_gunzip() reads. */
#include "codec/codec.h"
#include "test.h"
#include "test_compress.h"

static void pack_in_pieces(const struct buf *in, size_t piece, struct buf *out)
{
	struct codec_pack *p;
	CHECK(codec_pack_new(3, &p) == OK);
	struct str rest = buf_view(in);
	for (; rest.len > piece; rest = str_sub(rest, piece, rest.len))
		CHECK(codec_pack_step(p, str_sub(rest, 0, piece), false, out) == OK);
	CHECK(codec_pack_step(p, rest, true, out) == OK);
	codec_pack_free(p);
}

static void gives_back_what_went_in(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 100, 65536, 3 << 20 };
	static const size_t pieces[] = { 1000, 65536, 1 << 20, 8 << 20 };
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
		for (size_t k = 0; k < ARRAY_COUNT(pieces); k++) {
			CLEANUP(buf_deinit) struct buf in, packed, out;
			struct err e;
			buf_init(&in, 4 << 20);
			buf_init(&packed, 4 << 20);
			buf_init(&out, MAX(sizes[i], (size_t)1));
			fill_sample(&in, sizes[i]);
			pack_in_pieces(&in, pieces[k], &packed);
			CHECK_OK(codec_gunzip(packed.data, packed.len, &out, &e), &e);
			CHECK(str_eq(buf_view(&in), buf_view(&out)));
		}
}

/* What does not compress passes the buffer of one step many times over. */
static void packs_noise(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in, packed, out;
	struct err e;
	uint32_t x = 1;
	buf_init(&in, 2 << 20);
	buf_init(&packed, 4 << 20);
	buf_init(&out, 2 << 20);
	while (in.len < 2 << 20) {
		x = x * 1664525 + 1013904223;
		buf_u8(&in, (uint8_t)(x >> 24));
	}
	pack_in_pieces(&in, 1 << 20, &packed);
	CHECK(packed.len > 1 << 20);
	CHECK_OK(codec_gunzip(packed.data, packed.len, &out, &e), &e);
	CHECK(str_eq(buf_view(&in), buf_view(&out)));
}

static void ends_at_the_limit(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf in, packed;
	struct codec_pack *p;
	buf_init(&in, 1 << 20);
	buf_init(&packed, 100);
	fill_sample(&in, 1 << 20);
	CHECK(codec_pack_new(3, &p) == OK);
	CHECK(codec_pack_step(p, buf_view(&in), true, &packed) == E_LIMIT);
	codec_pack_free(p);
	codec_pack_free(NULL);
}

TEST_MAIN(cmocka_unit_test(gives_back_what_went_in), cmocka_unit_test(packs_noise),
	cmocka_unit_test(ends_at_the_limit))
