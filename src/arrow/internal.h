/* SPDX-License-Identifier: Apache-2.0 */
/* arrow's own: what the files of the reading half share. */
#pragma once

#include "arrow/arrow.h"
#include "arrow/fb.h"
#include "arrow/format.h"

/* The dictionary that fields with one id share. */
struct arrow_dictionary_slot {
	int64_t id;
	const struct arrow_field *values; /* the field whose values these are */
	struct arrow_dictionary *now;     /* NULL: no batch yet */
};

/* schema.c: the Schema message; fields, metadata and slots of `s`. */
NODISCARD enum status arrow_schema_read(
	struct arrow_stream *s, const struct fb_table *schema, struct err *e);

/* array.c: reads the columns of a RecordBatch table as an array. With `values` the batch is a
 * dictionary's: its one column has the field's values. */
NODISCARD enum status arrow_array_read(struct arrow_stream *s, const struct fb_table *record,
	struct str body, const struct arrow_field *field, bool values, struct arrow_array *out,
	struct err *e);

static inline uint64_t arrow_load(const uint8_t *p, uint64_t index, unsigned bytes)
{
	uint64_t v = 0;
	switch (bytes) {
	case 1:
		return p[index];
	case 2:
		memcpy(&v, p + 2 * index, 2);
		return v;
	case 4:
		memcpy(&v, p + 4 * index, 4);
		return v;
	default:
		memcpy(&v, p + 8 * index, 8);
		return v;
	}
}

static inline int64_t arrow_load_signed(const uint8_t *p, uint64_t index, unsigned bytes)
{
	unsigned shift = 64 - 8 * bytes;
	return (int64_t)(arrow_load(p, index, bytes) << shift) >> shift;
}

static inline bool arrow_bit(const uint8_t *bits, uint64_t index)
{
	return bits[index / 8] >> (index % 8) & 1;
}

static inline bool arrow_is_null(const struct arrow_array *a, uint64_t index)
{
	return a->validity && !arrow_bit(a->validity, index);
}
