/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of one and of several members come out whole, in pieces of any size. */
#include "test.h"

#include "codec/codec.h"

#define BYTES 100000

static uint8_t plain[BYTES];

static int setup(void **state)
{
	(void)state;
	uint32_t x = 7;
	for (size_t i = 0; i < BYTES; i++) {
		x = x * 1103515245 + 12345;
		plain[i] = (uint8_t)("abcdefgh"[x >> 29] + (i % 100 == 0));
	}
	return 0;
}

static void pack(bool zstd, size_t from, size_t len, struct buf *out)
{
	CHECK((zstd ? codec_zstd_compress(plain + from, len, 3, out)
		    : codec_gzip(plain + from, len, 6, out)) == OK);
}

/* All of it, `feed` bytes of input and `room` of output at a time. */
static enum status unpack(
	struct str in, size_t feed, size_t room, struct buf *out, bool *may_end, struct err *e)
{
	struct codec_unpack *u = NULL;
	uint8_t piece[4096];
	size_t at = 0;
	enum status s = codec_unpack_new(in, &u, e);
	while (s == OK) {
		struct str part = str_sub(in, at, feed);
		size_t had = part.len, n = 0;
		s = codec_unpack_step(u, &part, piece, room, &n, e);
		at += had - part.len;
		if (s == OK)
			buf_put(out, piece, n);
		if (s == OK && n == 0 && at == in.len)
			break;
	}
	if (u)
		*may_end = codec_unpack_may_end(u);
	codec_unpack_free(u);
	return s;
}

static void whole(void **state)
{
	(void)state;
	static const struct {
		size_t feed, room;
	} ways[] = { { 1, 4096 }, { 100000, 1 }, { 700, 300 }, { 100000, 4096 } };
	for (int zstd = 0; zstd < 2; zstd++)
		for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
			CLEANUP(buf_deinit) struct buf in;
			CLEANUP(buf_deinit) struct buf out;
			struct err e = { 0 };
			bool may_end = false;
			buf_init(&in, 1 << 20);
			buf_init(&out, 1 << 20);
			pack(zstd, 0, 60000, &in);
			pack(zstd, 60000, 0, &in);
			pack(zstd, 60000, BYTES - 60000, &in);
			CHECK_OK(unpack(buf_view(&in), ways[i].feed, ways[i].room, &out, &may_end,
					 &e),
				&e);
			CHECK(may_end && out.len == BYTES && memcmp(out.data, plain, BYTES) == 0);
		}
}

static void torn_and_damaged(void **state)
{
	(void)state;
	for (int zstd = 0; zstd < 2; zstd++) {
		CLEANUP(buf_deinit) struct buf in;
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		bool may_end = true;
		buf_init(&in, 1 << 20);
		buf_init(&out, 1 << 20);
		pack(zstd, 0, BYTES, &in);
		CHECK_OK(unpack(str_sub(buf_view(&in), 0, in.len / 2), 999, 4096, &out, &may_end,
				 &e),
			&e);
		CHECK(!may_end);
		in.data[in.len / 2] ^= 0xFF;
		in.data[in.len / 2 + 1] ^= 0x55;
		buf_clear(&out);
		enum status s = unpack(buf_view(&in), 999, 4096, &out, &may_end, &e);
		CHECK(s == E_INVALID || memcmp(out.data, plain, BYTES) != 0 || !may_end);
	}
}

static void refuses_others(void **state)
{
	(void)state;
	struct codec_unpack *u;
	struct err e;
	CHECK(codec_unpack_new(STR("BZh91AY"), &u, &e) == E_INVALID);
	CHECK(codec_unpack_new(STR(""), &u, &e) == E_INVALID);
}

TEST_MAIN(cmocka_unit_test_setup(whole, setup), cmocka_unit_test_setup(torn_and_damaged, setup),
	cmocka_unit_test(refuses_others))
