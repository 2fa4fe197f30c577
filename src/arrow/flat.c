/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow/flat.h"

static void pad_to(struct buf *b, size_t base, size_t align)
{
	while (!b->failed && (b->len - base) % align)
		buf_u8(b, 0);
}

void flat_u32(struct buf *b, size_t place, uint32_t v)
{
	if (!b->failed)
		memcpy(b->data + place, &v, sizeof(v));
}

void flat_u64(struct buf *b, size_t place, uint64_t v)
{
	if (!b->failed)
		memcpy(b->data + place, &v, sizeof(v));
}

void flat_link(struct buf *b, size_t place, size_t target)
{
	assert(b->failed || target > place);
	flat_u32(b, place, (uint32_t)(target - place));
}

size_t flat_begin(struct buf *b)
{
	size_t base = b->len;
	buf_u32(b, 0);
	return base;
}

/* Larger fields first, so that none needs padding: 8 bytes at +8 (the reference to the vtable takes
 * the first four), the smaller ones after them. */
size_t flat_table(
	struct buf *b, size_t base, const struct flat_field *fields, uint32_t count, size_t *at)
{
	uint16_t offsets[32] = { 0 }, end = 4, slots = 0;
	assert(count <= FLAT_FIELDS_MAX);
	for (uint32_t size = 8; size > 0; size /= 2)
		for (uint32_t i = 0; i < count; i++) {
			if (fields[i].size != size)
				continue;
			assert(fields[i].slot < ARRAY_COUNT(offsets));
			end = (uint16_t)((end + size - 1) / size * size);
			offsets[fields[i].slot] = end;
			end = (uint16_t)(end + size);
			if (fields[i].slot >= slots)
				slots = (uint16_t)(fields[i].slot + 1);
		}
	pad_to(b, base, 2);
	size_t vtable = b->len;
	buf_u16(b, (uint16_t)(4 + 2 * slots));
	buf_u16(b, end);
	for (uint16_t i = 0; i < slots; i++)
		buf_u16(b, offsets[i]);
	pad_to(b, base, 8);
	size_t table = b->len;
	buf_zero(b, end);
	flat_u32(b, table, (uint32_t)(table - vtable));
	for (uint32_t i = 0; i < count; i++) {
		size_t place = table + offsets[fields[i].slot];
		if (!b->failed)
			memcpy(b->data + place, &fields[i].value, fields[i].size);
		if (at)
			at[i] = place;
	}
	return table;
}

size_t flat_string(struct buf *b, size_t base, struct str s)
{
	pad_to(b, base, 4);
	size_t at = b->len;
	buf_u32(b, (uint32_t)s.len);
	buf_str(b, s);
	buf_u8(b, 0);
	return at;
}

size_t flat_vector(struct buf *b, size_t base, size_t count, size_t element_size, size_t align,
	size_t *out_first)
{
	/* The count (four bytes) is directly before the first element. */
	while (!b->failed && (b->len + 4 - base) % MAX(align, (size_t)4))
		buf_u8(b, 0);
	size_t at = b->len;
	buf_u32(b, (uint32_t)count);
	*out_first = b->len;
	buf_zero(b, count * element_size);
	return at;
}
