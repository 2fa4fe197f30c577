/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/varints: varints of a stream, one after the other, where reader.h's one at a time is
 * too slow: the inner loops of columns.
 *
 * Layer 3, private to store/. Nothing is read behind the end. A varint that does not fit, or is
 * none, reads as 0 and sets `bad` for good.
 */
#pragma once

#include "base/reader.h"

struct varints {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct varints varints_over(const uint8_t *bytes, size_t len)
{
	return (struct varints){ bytes, bytes ? bytes + len : bytes, false };
}

/* All bytes were read, and no varint was bad. */
static inline bool varints_done(const struct varints *v)
{
	return !v->bad && v->at == v->end;
}

static inline uint64_t varints_any(struct varints *v)
{
	struct reader r = reader_over(v->at, (size_t)(v->end - v->at));
	uint64_t x = reader_varint(&r);
	v->bad |= r.failed;
	v->at += reader_offset(&r);
	return x;
}

/* Mostly of one byte. */
static inline uint64_t varints_short(struct varints *v)
{
	if (v->at < v->end && *v->at < 0x80)
		return *v->at++;
	return varints_any(v);
}

/* Seven bits of each of four bytes. */
static inline uint64_t varints_squeeze(uint64_t x)
{
	return (x & 0x7F) | (x >> 1 & 0x3F80) | (x >> 2 & 0x1FC000) | (x >> 3 & 0xFE00000);
}

/* Two varints, in their order. If each has one to four bytes, no branch depends on their lengths.
 */
static inline void varints_two(struct varints *v, uint64_t *a, uint64_t *b)
{
	uint64_t x;
	if (v->end - v->at >= (ptrdiff_t)sizeof(x)) {
		memcpy(&x, v->at, sizeof(x));
		uint64_t ends = ~x & 0x8080808080808080u, after = ends & (ends - 1);
		uint64_t first = x & (ends ^ (ends - 1)), second = x & (after ^ (after - 1));
		if (after) /* so the first ends before the last byte */
			second >>= ((unsigned)__builtin_ctzll(ends) & 56) + 8;
		if (after && (first | second) <= UINT32_MAX) {
			v->at += ((unsigned)__builtin_ctzll(after) >> 3) + 1;
			*a = varints_squeeze(first);
			*b = varints_squeeze(second);
			return;
		}
	}
	*a = varints_any(v);
	*b = varints_any(v);
}

static inline int64_t varints_unzigzag(uint64_t u)
{
	return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}
