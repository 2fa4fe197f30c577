/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message inside another is written in place: pb_begin() leaves one byte for its length, and
 * pb_end() moves the message if the length needs more.
 */
#include "pb/pb.h"

bool pb_next(struct reader *r, struct pb_field *out)
{
	return pb_next_inline(r, out);
}

struct pb_packed pb_packed(const struct pb_field *f, enum pb_wire wire)
{
	struct pb_packed p = { .wire = wire, .single = *f };
	if (f->wire == PB_BYTES) {
		p.packed = true;
		p.r = reader_over(f->bytes.p, f->bytes.len);
	} else if (f->wire != wire) {
		p.failed = true;
	}
	return p;
}

bool pb_packed_next(struct pb_packed *p, uint64_t *out)
{
	if (p->failed || p->done)
		return false;
	if (!p->packed) {
		p->done = true;
		*out = p->single.u64;
		return true;
	}
	if (p->r.at == p->r.end)
		return false;
	switch (p->wire) {
	case PB_VARINT:
		*out = reader_varint(&p->r);
		break;
	case PB_FIXED64:
		*out = reader_u64(&p->r);
		break;
	case PB_FIXED32:
		*out = reader_u32(&p->r);
		break;
	case PB_BYTES:
	default:
		p->r.failed = true;
	}
	p->failed = p->r.failed;
	return !p->failed;
}

static void put_tag(struct buf *b, uint32_t field, enum pb_wire wire)
{
	assert(field > 0 && field <= PB_FIELD_MAX);
	buf_varint(b, (uint64_t)field << 3 | wire);
}

void pb_put_u64_always(struct buf *b, uint32_t field, uint64_t v)
{
	put_tag(b, field, PB_VARINT);
	buf_varint(b, v);
}

void pb_put_u64(struct buf *b, uint32_t field, uint64_t v)
{
	if (v)
		pb_put_u64_always(b, field, v);
}

void pb_put_i64(struct buf *b, uint32_t field, int64_t v)
{
	pb_put_u64(b, field, (uint64_t)v);
}

void pb_put_bool(struct buf *b, uint32_t field, bool v)
{
	pb_put_u64(b, field, v);
}

void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v)
{
	if (!v)
		return;
	put_tag(b, field, PB_FIXED64);
	buf_u64(b, v);
}

void pb_put_double(struct buf *b, uint32_t field, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof(bits));
	pb_put_fixed64(b, field, bits);
}

void pb_put_str_always(struct buf *b, uint32_t field, struct str s)
{
	put_tag(b, field, PB_BYTES);
	buf_varint(b, s.len);
	buf_str(b, s);
}

void pb_put_str(struct buf *b, uint32_t field, struct str s)
{
	if (s.len)
		pb_put_str_always(b, field, s);
}

void pb_put_packed_u64(struct buf *b, uint32_t field, const uint64_t *v, size_t count)
{
	if (!count)
		return;
	size_t begun = pb_begin(b, field);
	for (size_t i = 0; i < count; i++)
		buf_varint(b, v[i]);
	pb_end(b, begun);
}

void pb_put_packed_u32(struct buf *b, uint32_t field, const uint32_t *v, size_t count)
{
	if (!count)
		return;
	size_t begun = pb_begin(b, field);
	for (size_t i = 0; i < count; i++)
		buf_varint(b, v[i]);
	pb_end(b, begun);
}

size_t pb_begin(struct buf *b, uint32_t field)
{
	put_tag(b, field, PB_BYTES);
	buf_u8(b, 0);
	return b->len;
}

void pb_end(struct buf *b, size_t begun)
{
	if (b->failed)
		return;
	assert(begun >= 1 && begun <= b->len);
	uint64_t len = b->len - begun;
	size_t more = 0;
	for (uint64_t v = len; v >= 0x80; v >>= 7)
		more++;
	if (more) {
		if (!buf_extend(b, more))
			return;
		memmove(b->data + begun + more, b->data + begun, (size_t)len);
	}
	uint8_t *p = b->data + begun - 1;
	while (len >= 0x80) {
		*p++ = (uint8_t)(len | 0x80);
		len >>= 7;
	}
	*p = (uint8_t)len;
}
