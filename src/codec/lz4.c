/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decompressor is fed whole frames; its window (64 KiB of earlier output) is its own, so that
 * `out` may move while it grows.
 */
#include "codec/codec.h"

#include <limits.h>
#include <lz4.h>
#include <lz4frame.h>

#define STEP_BYTES ((size_t)256 << 10)

enum status codec_lz4_compress(const void *bytes, size_t len, struct buf *out)
{
	LZ4F_preferences_t p = { .frameInfo = { .blockSizeID = LZ4F_max256KB,
					 .blockMode = LZ4F_blockIndependent,
					 .contentSize = len } };
	size_t bound = LZ4F_compressFrameBound(len, &p);
	uint8_t *at = buf_reserve(out, bound);
	if (!at)
		return buf_status(out);
	size_t n = LZ4F_compressFrame(at, bound, bytes, len, &p);
	if (LZ4F_isError(n))
		return E_NOMEM; /* there is room for the worst case, so nothing but memory can be
				   missing */
	out->len += n;
	return OK;
}

static void context_cleanup(LZ4F_dctx **d)
{
	LZ4F_freeDecompressionContext(*d);
}

/* Unpacks until the input is used up or `room` is full. */
static enum status step(LZ4F_dctx *d, const uint8_t *bytes, size_t len, size_t *at, uint8_t *to,
	size_t *room, size_t *hint, struct err *e)
{
	size_t in = len - *at;
	const uint8_t *from = len ? bytes + *at : (const uint8_t *)"";
	*hint = LZ4F_decompress(d, to, room, from, &in, NULL);
	if (LZ4F_isError(*hint))
		return err_set(e, E_CORRUPT, "lz4: %s at +%zu", LZ4F_getErrorName(*hint), *at);
	*at += in;
	return OK;
}

enum status codec_lz4_decompress(const void *bytes, size_t len, struct buf *out, struct err *e)
{
	CLEANUP(context_cleanup) LZ4F_dctx *d = NULL;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
		return err_set(e, E_NOMEM, "lz4");
	size_t at = 0, hint = 1;
	do {
		size_t left = out->max - out->len, room = MIN(MAX(left, 1u), STEP_BYTES);
		uint8_t extra;
		uint8_t *to = left ? buf_reserve(out, room) : &extra;
		if (!to)
			return err_set(e, buf_status(out), "lz4: out of memory");
		size_t before = at;
		enum status s = step(d, bytes, len, &at, to, &room, &hint, e);
		if (s != OK)
			return s;
		if (!left && room)
			return err_set(e, E_LIMIT, "lz4: more than %zu bytes", out->max);
		if (left)
			out->len += room;
		if (at == before && room == 0 && (at < len || hint))
			return err_set(e, E_CORRUPT, "lz4: cut short at +%zu", at);
	} while (at < len || hint);
	return OK;
}

enum status codec_lz4_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e)
{
	CLEANUP(context_cleanup) LZ4F_dctx *d = NULL;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
		return err_set(e, E_NOMEM, "lz4");
	uint8_t *to = out, extra;
	size_t at = 0, done = 0, hint = 1;
	while (at < len || hint) {
		bool full = done == out_len;
		size_t room = full ? 1 : out_len - done, before = at;
		enum status s =
			step(d, bytes, len, &at, full ? &extra : to + done, &room, &hint, e);
		if (s != OK)
			return s;
		if (full && room)
			return err_set(e, E_CORRUPT, "lz4: more than %zu bytes", out_len);
		done += full ? 0 : room;
		if (at == before && room == 0 && (at < len || hint))
			return err_set(e, E_CORRUPT, "lz4: cut short at +%zu", at);
	}
	return done == out_len
		       ? OK
		       : err_set(e, E_CORRUPT, "lz4: %zu bytes, expected %zu", done, out_len);
}

enum status codec_lz4_block_compress(const void *bytes, size_t len, struct buf *out)
{
	int bound = len <= LZ4_MAX_INPUT_SIZE ? LZ4_compressBound((int)len) : 0;
	if (bound <= 0)
		return E_LIMIT;
	uint8_t *at = buf_reserve(out, (size_t)bound);
	if (!at)
		return buf_status(out);
	int n = LZ4_compress_default(bytes, (char *)at, (int)len, bound);
	if (n <= 0)
		return E_NOMEM; /* there is room for the worst case, so nothing but memory can be
				   missing */
	out->len += (size_t)n;
	return OK;
}

enum status codec_lz4_block_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e)
{
	if (len > INT_MAX || out_len > INT_MAX)
		return err_set(e, E_LIMIT, "lz4: a block of %zu bytes", MAX(len, out_len));
	int n = LZ4_decompress_safe(bytes, out, (int)len, (int)out_len);
	if (n < 0 || (size_t)n != out_len)
		return err_set(e, E_CORRUPT, "lz4: not a block of %zu bytes", out_len);
	return OK;
}
