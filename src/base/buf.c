/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capacity grows by half. The first append that fails marks the buffer, and later ones do
 * nothing, so a writer checks the status once, at the end.
 */
#include "base/buf.h"

#include "base/pages.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_CAP_MIN 256
#define VARINT_BYTES_MAX 10

void buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){ .max = max_bytes };
}

void buf_deinit(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	b->no_memory = false;
}

uint8_t *buf_steal(struct buf *b, size_t *out_len)
{
	uint8_t *data = b->data;
	*out_len = b->len;
	*b = (struct buf){ .max = b->max };
	return data;
}

enum status buf_status(const struct buf *b)
{
	if (!b->failed)
		return OK;
	return b->no_memory ? E_NOMEM : E_LIMIT;
}

/* Out of line, so that code which writes byte by byte has only the comparison inline. */
static __attribute__((noinline)) bool grow(struct buf *b, size_t need)
{
	size_t cap = MAX(b->cap + b->cap / 2, (size_t)BUF_CAP_MIN);
	cap = MIN(MAX(cap, need), MAX(b->max, (size_t)1));
	uint8_t *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		b->no_memory = true;
		return false;
	}
	pages_prefer_large(data, cap);
	b->data = data;
	b->cap = cap;
	return true;
}

uint8_t *buf_reserve(struct buf *b, size_t len)
{
	if (b->failed)
		return NULL;
	if (len > b->max || b->len > b->max - len) {
		b->failed = true;
		return NULL;
	}
	size_t need = b->len + len;
	if ((need > b->cap || !b->data) && !grow(b, need))
		return NULL;
	return b->data + b->len;
}

uint8_t *buf_extend(struct buf *b, size_t len)
{
	uint8_t *p = buf_reserve(b, len);
	if (p)
		b->len += len;
	return p;
}

void buf_put(struct buf *b, const void *bytes, size_t len)
{
	uint8_t *p = len ? buf_extend(b, len) : NULL;
	if (p)
		memcpy(p, bytes, len);
}

void buf_str(struct buf *b, struct str s)
{
	buf_put(b, s.p, s.len);
}

void buf_cstr(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_zero(struct buf *b, size_t len)
{
	uint8_t *p = len ? buf_extend(b, len) : NULL;
	if (p)
		memset(p, 0, len);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	/* One more than needed is reserved: vsnprintf writes a NUL. */
	uint8_t *p = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
	if (!p) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf((char *)p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_u16(struct buf *b, uint16_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_u32(struct buf *b, uint32_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_u64(struct buf *b, uint64_t v)
{
	buf_put(b, &v, sizeof(v));
}

void buf_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_BYTES_MAX];
	if (!b->failed && b->cap - b->len >= VARINT_BYTES_MAX) { /* the common way, in place */
		uint8_t *p = b->data + b->len;
		for (; v >= 0x80; v >>= 7)
			*p++ = (uint8_t)(v | 0x80);
		*p++ = (uint8_t)v;
		b->len = (size_t)(p - b->data);
		return;
	}
	size_t n = 0;
	while (v >= 0x80) {
		bytes[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	bytes[n++] = (uint8_t)v;
	buf_put(b, bytes, n);
}

void buf_zigzag(struct buf *b, int64_t v)
{
	buf_varint(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

void buf_join(struct buf *b, struct buf *more)
{
	size_t head = b->len, tail = more->len;
	if (b->failed || tail <= head) {
		buf_str(b, buf_view(more));
		buf_clear(more);
		return;
	}
	more->max = b->max;
	if (head && buf_extend(more, head)) {
		memmove(more->data + head, more->data, tail);
		memcpy(more->data, b->data, head);
	}
	more->failed |= more->len > b->max;
	struct buf joined = *more;
	*more = *b;
	*b = joined;
	buf_clear(more);
}

void buf_align(struct buf *b, size_t align)
{
	size_t over = b->len % align;
	if (over)
		buf_zero(b, align - over);
}

/* The length of the text from i on that needs no escape. */
static size_t plain_run(struct str s, size_t i)
{
	size_t n = 0;
	while (i + n < s.len) {
		unsigned char c = (unsigned char)s.p[i + n];
		if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7F)
			break;
		n++;
	}
	return n;
}

/* Bytes of the well-formed UTF-8 character at i, 0 if there is none. */
static size_t utf8_at(struct str s, size_t i)
{
	for (size_t n = 2; n <= 4 && i + n <= s.len; n++)
		if (str_is_utf8(str_sub(s, i, n)))
			return n;
	return 0;
}

static void json_escape(struct buf *b, unsigned char c)
{
	switch (c) {
	case '"':
		buf_cstr(b, "\\\"");
		return;
	case '\\':
		buf_cstr(b, "\\\\");
		return;
	case '\n':
		buf_cstr(b, "\\n");
		return;
	case '\t':
		buf_cstr(b, "\\t");
		return;
	default:
		buf_printf(b, "\\u%04x", c);
	}
}

void buf_utf8(struct buf *b, struct str s)
{
	if (str_is_utf8(s)) {
		buf_str(b, s);
		return;
	}
	for (size_t i = 0; i < s.len && !b->failed;) {
		size_t n = (unsigned char)s.p[i] < 0x80 ? 1 : utf8_at(s, i);
		if (n)
			buf_put(b, s.p + i, n);
		else
			buf_cstr(b, "\xEF\xBF\xBD");
		i += n ? n : 1;
	}
}

void buf_json_str(struct buf *b, struct str s)
{
	buf_u8(b, '"');
	for (size_t i = 0; i < s.len;) {
		size_t n = plain_run(s, i);
		buf_put(b, s.p + i, n);
		i += n;
		if (i == s.len)
			break;
		unsigned char c = (unsigned char)s.p[i];
		if (c < 0x80) {
			json_escape(b, c);
			i++;
			continue;
		}
		n = utf8_at(s, i);
		if (n)
			buf_put(b, s.p + i, n);
		else
			buf_cstr(b, "\xEF\xBF\xBD");
		i += n ? n : 1;
	}
	buf_u8(b, '"');
}

void buf_json_double(struct buf *b, double v)
{
	if (!isfinite(v)) {
		buf_cstr(b, "null");
		return;
	}
	char text[32];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (digits == 17 || strtod(text, NULL) == v)
			break;
	}
	buf_cstr(b, text);
}
