/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb: protobuf's wire format, read from a bounded reader and written into a buf.
 *
 * Layer 1 (may use base). No descriptors: a message is a loop over pb_next() with a switch on the
 * field number. Unknown fields are skipped by the caller's `default:` (pb_next() has consumed them
 * whole). Groups (wire types 3 and 4) are refused. Source:
 * protobuf.dev/programming-guides/encoding.
 */
#pragma once

#include "base/buf.h"
#include "base/reader.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;     /* varint, fixed64 and fixed32 */
	struct str bytes; /* PB_BYTES, in place */
};

/* The next field; false at the end and on malformed bytes (then r->failed). */
bool pb_next(struct reader *r, struct pb_field *out);

static inline struct reader pb_message(const struct pb_field *f)
{
	return reader_over(f->bytes.p, f->bytes.len);
}

/* A repeated scalar arrives packed or not. Start `r` with pb_packed(); while pb_packed_next()
 * gives values, the field goes on. `wire` is the scalar's own wire type. */
struct pb_packed {
	struct reader r;
	struct pb_field single;
	enum pb_wire wire;
	bool packed;
	bool done;
	bool failed; /* wrong wire type or torn element */
};
struct pb_packed pb_packed(const struct pb_field *f, enum pb_wire wire);
bool pb_packed_next(struct pb_packed *p, uint64_t *out);

/* Writers leave out zero values and empty bytes, as proto3 does; the _always forms do not. */
void pb_put_u64(struct buf *b, uint32_t field, uint64_t v);
void pb_put_i64(struct buf *b, uint32_t field, int64_t v); /* int64: negative takes ten bytes */
void pb_put_bool(struct buf *b, uint32_t field, bool v);
void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v);
void pb_put_double(struct buf *b, uint32_t field, double v);
void pb_put_str(struct buf *b, uint32_t field, struct str s);
void pb_put_u64_always(struct buf *b, uint32_t field, uint64_t v);
void pb_put_str_always(struct buf *b, uint32_t field, struct str s);
void pb_put_packed_u64(struct buf *b, uint32_t field, const uint64_t *v, size_t count);
void pb_put_packed_u32(struct buf *b, uint32_t field, const uint32_t *v, size_t count);

/* A message inside a message: begin, write its fields, end. Nested as deep as needed. The length
 * is patched in afterwards: the bytes move by the size of the length less one. */
size_t pb_begin(struct buf *b, uint32_t field);
void pb_end(struct buf *b, size_t begun);
