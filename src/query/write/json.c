/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: integers are most of a flame graph's bytes, so they are written without printf, and room in
 * the buffer is reserved for many numbers of a column at once.
 */
#include "query/write/json.h"
#include "query/plan/plan.h"

#define I64_DIGITS_MAX 20
/* Numbers of a column that are written at once. */
#define COLUMN_STEP 256

/* Writes the digits at `out`, which has room for I64_DIGITS_MAX; returns their count. */
static size_t put_i64(uint8_t *out, int64_t v)
{
	uint64_t rest = query_abs(v), power = 10;
	size_t sign = v < 0, digits = 1;
	if (sign)
		out[0] = '-';
	for (; digits < I64_DIGITS_MAX - 1 && rest >= power; power *= 10)
		digits++;
	for (size_t i = digits; i-- > 0; rest /= 10)
		out[sign + i] = (uint8_t)('0' + rest % 10);
	return sign + digits;
}

void query_json_i64(struct buf *b, int64_t v)
{
	uint8_t text[I64_DIGITS_MAX];
	buf_put(b, text, put_i64(text, v));
}

static inline int64_t value_at(const void *v, size_t size, size_t i)
{
	return size == 1   ? ((const uint8_t *)v)[i]
	       : size == 4 ? ((const uint32_t *)v)[i]
			   : ((const int64_t *)v)[i];
}

void query_json_column(struct buf *b, const char *key, const void *v, size_t size, size_t count)
{
	query_json_key(b, key);
	buf_u8(b, '[');
	for (size_t first = 0; first < count; first += COLUMN_STEP) {
		size_t end = MIN(first + COLUMN_STEP, count), at = 0;
		uint8_t *out = buf_reserve(b, (end - first) * (I64_DIGITS_MAX + 1));
		for (size_t i = first; out && i < end; i++) {
			if (i > 0)
				out[at++] = ',';
			at += put_i64(out + at, value_at(v, size, i));
		}
		b->len += at;
	}
	buf_u8(b, ']');
}

void query_json_key(struct buf *b, const char *key)
{
	if (b->len > 0 && b->data[b->len - 1] != '{' && b->data[b->len - 1] != '[')
		buf_u8(b, ',');
	buf_json_str(b, str_of(key));
	buf_u8(b, ':');
}

void query_json_pair_i64(struct buf *b, const char *key, int64_t v)
{
	query_json_key(b, key);
	query_json_i64(b, v);
}

void query_json_pair_str(struct buf *b, const char *key, struct str v)
{
	query_json_key(b, key);
	buf_json_str(b, v);
}
