/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fb: reading flatbuffers of other programs.
 *
 * Private to arrow/. Every access is checked against the bytes; a bad one sets r->failed and gives
 * 0, as reader.h does. A table has two positions: its own and that of its vtable. Source:
 * flatbuffers.dev/internals.
 */
#pragma once

#include "base/reader.h"

struct fb_table {
	struct reader *r; /* over the whole flatbuffer; NULL: the field was absent */
	size_t at;
	size_t vtable;
	uint16_t vtable_bytes;
};

static inline struct fb_table fb_table_at(struct reader *r, size_t at)
{
	struct fb_table t = { .r = r, .at = at };
	reader_seek(r, at);
	int64_t vtable = (int64_t)at - reader_i32(r);
	if (vtable < 0)
		r->failed = true;
	t.vtable = (size_t)vtable;
	reader_seek(r, t.vtable);
	t.vtable_bytes = reader_u16(r);
	if (t.vtable_bytes < 4)
		r->failed = true;
	if (r->failed)
		t.vtable_bytes = 0;
	return t;
}

static inline struct fb_table fb_root(struct reader *r)
{
	reader_seek(r, 0);
	return fb_table_at(r, reader_u32(r));
}

/* Where field `id` lies; 0 when it is absent. */
static inline size_t fb_field(const struct fb_table *t, unsigned id)
{
	if (!t->r || 4 + 2 * id + 2 > t->vtable_bytes)
		return 0;
	reader_seek(t->r, t->vtable + 4 + (size_t)2 * id);
	uint16_t offset = reader_u16(t->r);
	return offset ? t->at + offset : 0;
}

#define FB_SCALAR(name, type)                                                            \
	static inline type fb_##name(const struct fb_table *t, unsigned id, type absent) \
	{                                                                                \
		size_t at = fb_field(t, id);                                             \
		if (!at)                                                                 \
			return absent;                                                   \
		reader_seek(t->r, at);                                                   \
		return reader_##name(t->r);                                              \
	}

FB_SCALAR(u8, uint8_t)
FB_SCALAR(i8, int8_t)
FB_SCALAR(i16, int16_t)
FB_SCALAR(i32, int32_t)
FB_SCALAR(i64, int64_t)
#undef FB_SCALAR

/* The position that the reference at `at` points to. */
static inline size_t fb_follow(struct reader *r, size_t at)
{
	reader_seek(r, at);
	return at + reader_u32(r);
}

/* A table in field `id`; its r is NULL when the field is absent. */
static inline struct fb_table fb_sub(const struct fb_table *t, unsigned id)
{
	size_t at = fb_field(t, id);
	if (!at)
		return (struct fb_table){ 0 };
	return fb_table_at(t->r, fb_follow(t->r, at));
}

/* A vector of `elem_bytes` each: where its first element lies, and how many there are. */
static inline size_t fb_vector(
	const struct fb_table *t, unsigned id, size_t elem_bytes, uint32_t *out_count)
{
	*out_count = 0;
	size_t at = fb_field(t, id);
	if (!at)
		return 0;
	reader_seek(t->r, fb_follow(t->r, at));
	uint32_t count = reader_u32(t->r);
	size_t first = reader_offset(t->r);
	if (t->r->failed || count > reader_left(t->r) / elem_bytes) {
		t->r->failed = true;
		return 0;
	}
	*out_count = count;
	return first;
}

static inline struct str fb_str(const struct fb_table *t, unsigned id)
{
	uint32_t len;
	size_t first = fb_vector(t, id, 1, &len);
	if (!len)
		return str_make("", 0);
	reader_seek(t->r, first);
	return reader_str(t->r, len);
}
