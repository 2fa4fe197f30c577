/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf: a growing byte buffer with a maximum; what every encoder writes into.
 *
 * Layer 0. Failure is sticky: the first write that passes the maximum, or finds no memory, sets
 * `failed` and writes nothing more, so that an encoder checks once at its end (buf_status()).
 * Numbers are little endian.
 */
#pragma once

#include "base/str.h"

struct buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max; /* of len; 0 means that buf_init() was forgotten, and nothing fits */
	bool failed;
	bool no_memory; /* it failed for lack of memory, not at the maximum */
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_deinit(struct buf *b);
/* Makes it empty; keeps its memory, and forgets a failure. */
void buf_clear(struct buf *b);
/* Hand the bytes over: the caller free()s them; the buffer is empty and may be used again. */
NODISCARD uint8_t *buf_steal(struct buf *b, size_t *out_len);
/* OK, E_LIMIT or E_NOMEM. */
NODISCARD enum status buf_status(const struct buf *b);

/* Room for `len` more bytes at data + len, uninitialised; NULL on failure. The caller adds the
 * bytes that it wrote to b->len. */
NODISCARD uint8_t *buf_reserve(struct buf *b, size_t len);
/* The same, and adds `len` to b->len at once. */
NODISCARD uint8_t *buf_extend(struct buf *b, size_t len);

void buf_put(struct buf *b, const void *bytes, size_t len);
void buf_str(struct buf *b, struct str s);
void buf_cstr(struct buf *b, const char *s);
void buf_zero(struct buf *b, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_u8(struct buf *b, uint8_t v);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_varint(struct buf *b, uint64_t v);
void buf_zigzag(struct buf *b, int64_t v);
/* Appends the bytes of `more`, which is empty then. The memory of the larger buffer is kept, so a
 * long answer gets a short head in front without a second copy of the answer. */
void buf_join(struct buf *b, struct buf *more);
/* Zero bytes up to a multiple of `align`. */
void buf_align(struct buf *b, size_t align);

/* Text; each byte that is not UTF-8 becomes U+FFFD. */
void buf_utf8(struct buf *b, struct str s);

/* JSON pieces. buf_json_str writes the quotes too; bytes that are not UTF-8 become U+FFFD. */
void buf_json_str(struct buf *b, struct str s);
void buf_json_double(
	struct buf *b, double v); /* shortest form that reads back equal; null if not finite */

static inline struct str buf_view(const struct buf *b)
{
	return str_make(b->data, b->len);
}
