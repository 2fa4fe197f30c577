/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: integers are most of a flame graph's bytes, so they are written without printf.
 */
#include "query/internal.h"

#define I64_DIGITS_MAX 20

void query_json_i64(struct buf *b, int64_t v)
{
	char digits[I64_DIGITS_MAX];
	size_t at = sizeof(digits);
	uint64_t rest = query_abs(v);
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (v < 0)
		digits[--at] = '-';
	buf_put(b, digits + at, sizeof(digits) - at);
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
