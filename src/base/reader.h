/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: the one way to read bytes of other programs.
 *
 * Layer 0. A reader never passes its end. The first read that does not fit sets `failed`; from
 * then on every read returns zero and the position stays where the failing read began, so that a
 * parser may check once after several reads and still say where it went wrong. Numbers are little
 * endian. Inline: these are the inner loops of the decoders.
 */
#pragma once

#include "base/str.h"

#include <string.h>

struct reader {
	const uint8_t *begin;
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

static inline struct reader reader_over(const void *bytes, size_t len)
{
	const uint8_t *p = (const uint8_t *)bytes;
	return (struct reader){ p, p, p ? p + len : p, false };
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

/* Offset of the next byte from the beginning. */
static inline size_t reader_offset(const struct reader *r)
{
	return (size_t)(r->at - r->begin);
}

static inline bool reader_done(const struct reader *r)
{
	return r->failed || r->at == r->end;
}

static inline void reader_seek(struct reader *r, size_t offset)
{
	if (r->failed)
		return;
	if (offset > (size_t)(r->end - r->begin))
		r->failed = true;
	else
		r->at = offset ? r->begin + offset
			       : r->begin; /* nothing is added to NULL, not even 0 */
}

/* `len` bytes in place; NULL when there are fewer. */
static inline const void *reader_bytes(struct reader *r, size_t len)
{
	if (r->failed || len > reader_left(r)) {
		r->failed = true;
		return NULL;
	}
	const uint8_t *p = r->at;
	r->at += len;
	return p;
}

static inline void reader_skip(struct reader *r, size_t len)
{
	(void)reader_bytes(r, len);
}

static inline struct str reader_str(struct reader *r, size_t len)
{
	const void *p = reader_bytes(r, len);
	return str_make(p, p ? len : 0);
}

/* Text up to a NUL, which is consumed and not part of it. */
static inline struct str reader_cstr(struct reader *r)
{
	size_t left = reader_left(r);
	const void *nul = r->failed || left == 0 ? NULL : memchr(r->at, 0, left);
	if (!nul) {
		r->failed = true;
		return str_make(NULL, 0);
	}
	struct str s = str_make(r->at, (size_t)((const uint8_t *)nul - r->at));
	r->at += s.len + 1;
	return s;
}

/* A reader over the next `len` bytes, which this one skips. Offsets count from its own start. */
static inline struct reader reader_sub(struct reader *r, size_t len)
{
	const void *p = reader_bytes(r, len);
	struct reader sub = reader_over(p, p ? len : 0);
	sub.failed = p == NULL;
	return sub;
}

#define READER_FIXED(name, type)                               \
	static inline type name(struct reader *r)              \
	{                                                      \
		type v = 0;                                    \
		const void *p = reader_bytes(r, sizeof(type)); \
		if (p)                                         \
			memcpy(&v, p, sizeof(v));              \
		return v;                                      \
	}

READER_FIXED(reader_u8, uint8_t)
READER_FIXED(reader_u16, uint16_t)
READER_FIXED(reader_u32, uint32_t)
READER_FIXED(reader_u64, uint64_t)
READER_FIXED(reader_i8, int8_t)
READER_FIXED(reader_i16, int16_t)
READER_FIXED(reader_i32, int32_t)
READER_FIXED(reader_i64, int64_t)
#undef READER_FIXED

/* A varint of three bytes or more. Returns where it ends; NULL: it does not end, or has a 65th bit.
 * It is a function of its own, so that reader_varint(), which is inlined everywhere, stays small.
 */
const uint8_t *reader_varint_long(const uint8_t *p, const uint8_t *end, uint64_t *out);

/* Protobuf varint: 1 to 10 bytes; a 65th bit fails. */
__attribute__((always_inline)) static inline uint64_t reader_varint(struct reader *r)
{
	if (r->failed || r->at == r->end) {
		r->failed = true;
		return 0;
	}
	const uint8_t *p = r->at;
	if (__builtin_expect(*p < 0x80, 1)) {
		r->at = p + 1;
		return *p;
	}
	if (r->end - p > 1 && p[1] < 0x80) {
		r->at = p + 2;
		return (uint64_t)p[1] << 7 | (p[0] & 0x7Fu);
	}
	uint64_t v = 0;
	p = reader_varint_long(p, r->end, &v);
	r->failed = p == NULL;
	r->at = p ? p : r->at;
	return v;
}

/* Zigzag, as protobuf's sint64. */
static inline int64_t reader_zigzag(struct reader *r)
{
	uint64_t v = reader_varint(r);
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* DWARF's LEB128. Unlike a varint it may be padded; bits beyond the 64th must be zero (or the
 * sign); more than 16 bytes fail. */
static inline uint64_t reader_uleb(struct reader *r)
{
	const uint8_t *p = r->at;
	uint64_t v = 0;
	for (unsigned n = 0; !r->failed && n < 16 && p < r->end; n++) {
		uint8_t byte = *p++;
		unsigned shift = n * 7;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7F) << shift;
		if ((shift >= 64 && (byte & 0x7F)) || (shift == 63 && (byte & 0x7E)))
			break;
		if (byte < 0x80) {
			r->at = p;
			return v;
		}
	}
	r->failed = true;
	return 0;
}

static inline int64_t reader_sleb(struct reader *r)
{
	const uint8_t *p = r->at;
	uint64_t v = 0;
	for (unsigned n = 0; !r->failed && n < 16 && p < r->end; n++) {
		uint8_t byte = *p++;
		unsigned shift = n * 7;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80) {
			if (shift + 7 < 64 && (byte & 0x40))
				v |= ~(uint64_t)0 << (shift + 7);
			r->at = p;
			return (int64_t)v;
		}
	}
	r->failed = true;
	return 0;
}
