/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts texts (a JSON number, a JSON string or a parameter) to scalars of each kind of field,
 * and checks the range of the type. Integers may be written as 1.0 or 1e3, as protobuf's JSON
 * allows.
 */
#include "pb/internal.h"

#include <float.h>
#include <math.h>

static enum status bad(struct err *e, const char *what, struct str text)
{
	return err_set(e, E_INVALID, "\"%.*s\" is not %s", STR_ARG(str_sub(text, 0, 40)), what);
}

/* Whether the text is a number of JSON; "0x10", " 1" and "+1" are not. */
static bool is_number(struct str t)
{
	size_t i = 0, digits = 0;
	if (i < t.len && t.p[i] == '-')
		i++;
	for (; i < t.len && t.p[i] >= '0' && t.p[i] <= '9'; i++)
		digits++;
	if (digits == 0 || (digits > 1 && t.p[i - digits] == '0'))
		return false;
	if (i < t.len && t.p[i] == '.') {
		for (i++, digits = 0; i < t.len && t.p[i] >= '0' && t.p[i] <= '9'; i++)
			digits++;
		if (digits == 0)
			return false;
	}
	if (i < t.len && (t.p[i] | 0x20) == 'e') {
		i++;
		if (i < t.len && (t.p[i] == '+' || t.p[i] == '-'))
			i++;
		for (digits = 0; i < t.len && t.p[i] >= '0' && t.p[i] <= '9'; i++)
			digits++;
		if (digits == 0)
			return false;
	}
	return i == t.len;
}

/* "1.0", "1e3": exact up to 2^53. */
static bool whole_double(struct str text, double *out)
{
	return str_parse_double(text, out) && *out == floor(*out) &&
	       fabs(*out) <= 9007199254740992.0;
}

static enum status read_signed(struct str text, int bits, uint64_t *out, struct err *e)
{
	int64_t v;
	double d;
	const char *what = bits == 32 ? "a 32 bit number" : "a 64 bit number";
	if (!is_number(text))
		return bad(e, what, text);
	if (!str_parse_i64(text, &v)) {
		if (!whole_double(text, &d))
			return bad(e, what, text);
		v = (int64_t)d;
	}
	if (bits == 32 && (v < INT32_MIN || v > INT32_MAX))
		return bad(e, what, text);
	*out = (uint64_t)v;
	return OK;
}

static enum status read_unsigned(struct str text, int bits, uint64_t *out, struct err *e)
{
	uint64_t v;
	double d;
	const char *what = bits == 32 ? "an unsigned 32 bit number" : "an unsigned 64 bit number";
	if (!is_number(text))
		return bad(e, what, text);
	if (!str_parse_u64(text, 10, &v)) {
		if (!whole_double(text, &d) || d < 0)
			return bad(e, what, text);
		v = (uint64_t)d;
	}
	if (bits == 32 && v > UINT32_MAX)
		return bad(e, what, text);
	*out = v;
	return OK;
}

static bool special(struct str text, double *out)
{
	if (str_eq(text, STR("NaN")))
		*out = NAN;
	else if (str_eq(text, STR("Infinity")))
		*out = INFINITY;
	else if (str_eq(text, STR("-Infinity")))
		*out = -INFINITY;
	else
		return false;
	return true;
}

static enum status read_float(struct str text, bool single, uint64_t *out, struct err *e)
{
	double d;
	if (!special(text, &d)) {
		if (!is_number(text) || !str_parse_double(text, &d) || !isfinite(d))
			return bad(e, "a number", text);
		if (single && fabs(d) > (double)FLT_MAX)
			return bad(e, "within a float's range", text);
	}
	*out = 0;
	if (single) {
		float f = (float)d;
		memcpy(out, &f, sizeof(f));
	} else {
		memcpy(out, &d, sizeof(d));
	}
	return OK;
}

static enum status read_enum(
	const struct pb_member *m, struct str text, uint64_t *out, struct err *e)
{
	for (size_t i = 0; i < m->values->count; i++)
		if (str_eq(text, str_of(m->values->values[i].name))) {
			*out = (uint64_t)(int64_t)m->values->values[i].number;
			return OK;
		}
	if (read_signed(text, 32, out, NULL) == OK)
		return OK;
	return err_set(e, E_INVALID, "\"%.*s\" is not a value of %s", STR_ARG(str_sub(text, 0, 40)),
		m->values->name);
}

enum status pb_scalar_read(
	const struct pb_member *m, struct str text, uint64_t *out_bits, struct err *e)
{
	switch (m->kind) {
	case PB_KIND_DOUBLE:
		return read_float(text, false, out_bits, e);
	case PB_KIND_FLOAT:
		return read_float(text, true, out_bits, e);
	case PB_KIND_INT64:
	case PB_KIND_SINT64:
	case PB_KIND_SFIXED64:
		return read_signed(text, 64, out_bits, e);
	case PB_KIND_INT32:
	case PB_KIND_SINT32:
	case PB_KIND_SFIXED32:
		return read_signed(text, 32, out_bits, e);
	case PB_KIND_UINT64:
	case PB_KIND_FIXED64:
		return read_unsigned(text, 64, out_bits, e);
	case PB_KIND_UINT32:
	case PB_KIND_FIXED32:
		return read_unsigned(text, 32, out_bits, e);
	case PB_KIND_ENUM:
		return read_enum(m, text, out_bits, e);
	case PB_KIND_BOOL:
		*out_bits = str_eq(text, STR("true"));
		return *out_bits || str_eq(text, STR("false")) ? OK : bad(e, "true or false", text);
	case PB_KIND_STRING:
	case PB_KIND_BYTES:
	case PB_KIND_MESSAGE:
		break;
	}
	UNREACHABLE();
}

void pb_put_tag(struct buf *out, uint32_t number, enum pb_wire wire)
{
	buf_varint(out, (uint64_t)number << 3 | wire);
}

void pb_scalar_write(struct buf *out, enum pb_kind kind, uint64_t bits)
{
	switch (pb_kind_wire(kind)) {
	case PB_FIXED64:
		buf_u64(out, bits);
		break;
	case PB_FIXED32:
		buf_u32(out, (uint32_t)bits);
		break;
	case PB_VARINT:
		if (kind == PB_KIND_SINT32 || kind == PB_KIND_SINT64)
			buf_zigzag(out, (int64_t)bits);
		else
			buf_varint(out, bits);
		break;
	case PB_BYTES:
		UNREACHABLE();
	}
}

void pb_scalar_put(struct buf *out, const struct pb_member *m, uint64_t bits)
{
	if (bits == 0 && !(m->flags & (PB_OPTIONAL | PB_REPEATED)) && m->oneof == 0)
		return;
	pb_put_tag(out, m->number, pb_kind_wire(m->kind));
	pb_scalar_write(out, m->kind, bits);
}

/* ---- bytes ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_read(struct buf *out, struct str text)
{
	if (text.len % 2)
		return false;
	for (size_t i = 0; i < text.len; i += 2) {
		int high = hex_value(text.p[i]), low = hex_value(text.p[i + 1]);
		if (high < 0 || low < 0)
			return false;
		buf_u8(out, (uint8_t)(high << 4 | low));
	}
	return true;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool pb_bytes_read(struct buf *out, const struct pb_member *m, struct str text)
{
	if (m->flags & PB_HEX)
		return hex_read(out, text);
	size_t pad = 0;
	while (pad < 2 && text.len && text.p[text.len - 1] == '=') {
		text.len--;
		pad++;
	}
	if (text.len % 4 == 1 || (pad && (text.len + pad) % 4))
		return false;
	uint8_t *to = text.len ? buf_reserve(out, text.len / 4 * 3 + 3) : NULL;
	if (!to)
		return text.len == 0;
	uint32_t v = 0;
	size_t n = 0;
	for (size_t i = 0; i < text.len; i++) {
		int x = base64_value(text.p[i]);
		if (x < 0)
			return false;
		v = v << 6 | (uint32_t)x;
		/* The first of four characters completes no byte. */
		if (i % 4)
			to[n++] = (uint8_t)(v >> (6 - 2 * (i % 4)));
	}
	out->len += n;
	return true;
}

void pb_bytes_write(struct buf *out, const struct pb_member *m, struct str bytes)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = (const uint8_t *)bytes.p;
	if (m->flags & PB_HEX) {
		uint8_t *to = bytes.len ? buf_extend(out, bytes.len * 2) : NULL;
		for (size_t i = 0; to && i < bytes.len; i++) {
			*to++ = (uint8_t)hex[p[i] >> 4];
			*to++ = (uint8_t)hex[p[i] & 15];
		}
		return;
	}
	uint8_t *to = bytes.len ? buf_extend(out, (bytes.len + 2) / 3 * 4) : NULL;
	for (size_t i = 0; to && i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t v = (uint32_t)p[i] << 16;
		v |= left > 1 ? (uint32_t)p[i + 1] << 8 : 0;
		v |= left > 2 ? p[i + 2] : 0;
		*to++ = (uint8_t)alphabet[v >> 18];
		*to++ = (uint8_t)alphabet[v >> 12 & 63];
		*to++ = left > 1 ? (uint8_t)alphabet[v >> 6 & 63] : '=';
		*to++ = left > 2 ? (uint8_t)alphabet[v & 63] : '=';
	}
}
