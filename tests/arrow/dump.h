/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump: a stream as text, a line of JSON for each row, with every dictionary, run and view
 * followed. arrow_maker.py writes the same text for what it put into the stream. Bytes are
 * hexadecimal.
 */
#pragma once

#include "arrow/arrow.h"

#include <inttypes.h>

static inline void dump_bytes(struct buf *b, const struct arrow_field *f, struct str s)
{
	if (f->is_text) {
		buf_json_str(b, s);
		return;
	}
	buf_u8(b, '"');
	for (size_t i = 0; i < s.len; i++)
		buf_printf(b, "%02x", (uint8_t)s.p[i]);
	buf_u8(b, '"');
}

static inline void dump_float(struct buf *b, const struct arrow_value *v)
{
	const uint8_t *at = v->array->data + v->index * (v->array->field->bits / 8u);
	float f;
	double d;
	if (v->array->field->bits == 32) {
		memcpy(&f, at, sizeof(f));
		d = (double)f;
	} else {
		memcpy(&d, at, sizeof(d));
	}
	buf_json_double(b, v->array->field->bits == 16 ? 0.0 : d);
}

static inline void dump_value(struct buf *b, const struct arrow_array *a, uint64_t index);

static inline void dump_list(struct buf *b, const struct arrow_value *v)
{
	uint64_t first, count;
	arrow_list(v, &first, &count);
	buf_u8(b, '[');
	for (uint64_t i = 0; i < count && !b->failed; i++) {
		if (i)
			buf_u8(b, ',');
		dump_value(b, &v->array->children[0], first + i);
	}
	buf_u8(b, ']');
}

static inline void dump_members(struct buf *b, const struct arrow_array *a, uint64_t index)
{
	buf_u8(b, '{');
	for (uint32_t i = 0; i < a->child_count && !b->failed; i++) {
		if (i)
			buf_u8(b, ',');
		buf_json_str(b, a->field->children[i].name);
		buf_u8(b, ':');
		dump_value(b, &a->children[i], index);
	}
	buf_u8(b, '}');
}

static inline void dump_value(struct buf *b, const struct arrow_array *a, uint64_t index)
{
	struct arrow_value v = arrow_at(a, index);
	if (!v.array) {
		buf_cstr(b, "null");
		return;
	}
	const struct arrow_field *f = v.array->field;
	switch (f->type) {
	case ARROW_BOOL:
		buf_cstr(b, arrow_bool(&v) ? "true" : "false");
		return;
	case ARROW_INT:
		if (f->is_signed)
			buf_printf(b, "%" PRId64, arrow_int(&v));
		else
			buf_printf(b, "%" PRIu64, (uint64_t)arrow_int(&v));
		return;
	case ARROW_FLOAT:
		dump_float(b, &v);
		return;
	case ARROW_BINARY:
	case ARROW_VIEW:
	case ARROW_FIXED:
		dump_bytes(b, f, arrow_bytes(&v));
		return;
	case ARROW_LIST:
	case ARROW_LIST_VIEW:
	case ARROW_FIXED_LIST:
		dump_list(b, &v);
		return;
	case ARROW_STRUCT:
		dump_members(b, v.array, v.index);
		return;
	default:
		UNREACHABLE();
	}
}

static inline enum status arrow_dump(
	struct str bytes, size_t limit_bytes, struct buf *out, struct err *e)
{
	struct arrow_stream s;
	struct arrow_array batch;
	bool more = true;
	enum status st = arrow_stream_open(&s, bytes, limit_bytes, e);
	if (st != OK)
		return st;
	while (st == OK && more) {
		st = arrow_stream_next(&s, &batch, &more, e);
		for (uint64_t i = 0; st == OK && more && i < batch.length && !out->failed; i++) {
			dump_members(out, &batch, i);
			buf_u8(out, '\n');
		}
	}
	arrow_stream_close(&s);
	return st == OK ? buf_status(out) : st;
}
