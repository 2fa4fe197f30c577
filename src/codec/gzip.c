/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate works on whole buffers. It needs to be told the size of the output: the member's own
 * trailer (ISIZE, modulo 2^32) is the first guess, clamped to the limit and to what DEFLATE can
 * reach (1032:1); on "not enough room" the guess doubles up to the limit.
 */
#include "codec/codec.h"

#include "base/reader.h"

#include <libdeflate.h>

#define GZIP_MEMBER_BYTES_MIN 18
#define DEFLATE_RATIO_MAX 1032

bool codec_is_gzip(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	return len >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

static void compressor_free(struct libdeflate_compressor **c)
{
	if (*c)
		libdeflate_free_compressor(*c);
}

static void decompressor_free(struct libdeflate_decompressor **d)
{
	if (*d)
		libdeflate_free_decompressor(*d);
}

enum status codec_gzip(const void *bytes, size_t len, int level, struct buf *out)
{
	CLEANUP(compressor_free)
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
	if (!c)
		return E_NOMEM;
	size_t bound = libdeflate_gzip_compress_bound(c, len);
	uint8_t *p = buf_reserve(out, bound);
	if (!p)
		return buf_status(out);
	size_t n = libdeflate_gzip_compress(c, bytes, len, p, bound);
	assert(n > 0);
	out->len += n;
	return OK;
}

static size_t first_guess(const uint8_t *bytes, size_t len)
{
	uint32_t isize;
	memcpy(&isize, bytes + len - sizeof(isize), sizeof(isize));
	size_t most;
	if (__builtin_mul_overflow(len, (size_t)DEFLATE_RATIO_MAX, &most))
		most = SIZE_MAX;
	return MAX(MIN((size_t)isize, most), (size_t)64);
}

/* Unpacks one member at `r`, and moves `r` behind it. */
static enum status gunzip_member(
	struct libdeflate_decompressor *d, struct reader *r, struct buf *out, struct err *e)
{
	size_t left = reader_left(r);
	if (left < GZIP_MEMBER_BYTES_MIN)
		return err_set(e, E_INVALID, "gzip: cut short at +%zu", reader_offset(r));
	size_t limit = out->max - out->len;
	size_t guess = MIN(first_guess(r->at, left), limit);
	for (;;) {
		uint8_t *p = buf_reserve(out, guess);
		if (!p)
			return err_set(e, buf_status(out), "gzip: no memory for %zu bytes", guess);
		size_t in_used, out_used;
		enum libdeflate_result rc = libdeflate_gzip_decompress_ex(
			d, r->at, left, p, guess, &in_used, &out_used);
		if (rc == LIBDEFLATE_SUCCESS) {
			out->len += out_used;
			reader_skip(r, in_used);
			return OK;
		}
		if (rc != LIBDEFLATE_INSUFFICIENT_SPACE)
			return err_set(
				e, E_INVALID, "gzip: damaged member at +%zu", reader_offset(r));
		if (guess == limit)
			return err_set(e, E_LIMIT, "gzip: more than %zu bytes", out->max);
		guess = guess > limit / 2 ? limit : guess * 2;
	}
}

enum status codec_gunzip(const void *bytes, size_t len, struct buf *out, struct err *e)
{
	if (!codec_is_gzip(bytes, len))
		return err_set(e, E_INVALID, "gzip: no gzip header");
	CLEANUP(decompressor_free)
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	if (!d)
		return err_set(e, E_NOMEM, "gzip");
	struct reader r = reader_over(bytes, len);
	while (!reader_done(&r)) {
		enum status s = gunzip_member(d, &r, out, e);
		if (s != OK)
			return s;
	}
	return OK;
}
