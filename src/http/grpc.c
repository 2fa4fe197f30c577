/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Length-prefixed messages, as gRPC sends them over HTTP/2, and gRPC-Web over any version.
 * Source: grpc/doc/PROTOCOL-HTTP2.md and PROTOCOL-WEB.md.
 */
#include "base/clock.h"
#include "codec/codec.h"
#include "http/http.h"

enum status http_grpc_next(struct str *in, size_t max, struct http_grpc_frame *out, struct err *e)
{
	if (in->len < HTTP_GRPC_PREFIX_BYTES)
		return E_UNAVAILABLE;
	const uint8_t *p = (const uint8_t *)in->p;
	size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
	if (len > max)
		return err_set(e, E_LIMIT, "message of %zu bytes; the limit is %zu", len, max);
	if (in->len - HTTP_GRPC_PREFIX_BYTES < len)
		return E_UNAVAILABLE;
	*out = (struct http_grpc_frame){ p[0], str_make(p + HTTP_GRPC_PREFIX_BYTES, len) };
	*in = str_sub(*in, HTTP_GRPC_PREFIX_BYTES + len, in->len);
	return OK;
}

enum status http_grpc_message(const struct http_grpc_frame *f, struct str encoding,
	struct buf *scratch, struct str *out, struct err *e)
{
	if (f->flags & ~HTTP_GRPC_COMPRESSED)
		return err_set(e, E_INVALID, "unknown flags 0x%02x of a message", f->flags);
	bool identity = encoding.len == 0 || str_eq(encoding, STR("identity"));
	if (!identity && !str_eq(encoding, STR("gzip")))
		return err_set(e, E_UNSUPPORTED,
			"grpc-encoding \"%.*s\"; identity and gzip are known",
			STR_ARG(str_sub(encoding, 0, 32)));
	if (!(f->flags & HTTP_GRPC_COMPRESSED)) {
		*out = f->bytes;
		return OK;
	}
	if (identity)
		return err_set(e, E_INVALID, "compressed message without a grpc-encoding");
	size_t begin = scratch->len;
	enum status s = codec_gunzip(f->bytes.p, f->bytes.len, scratch, e);
	if (s != OK)
		return s == E_CORRUPT ? err_prefix(e, E_INVALID, "gzip") : s;
	*out = str_make(scratch->data + begin, scratch->len - begin);
	return OK;
}

void http_grpc_put_prefix(struct buf *out, uint8_t flags, size_t len)
{
	assert(len <= UINT32_MAX);
	const uint8_t prefix[HTTP_GRPC_PREFIX_BYTES] = { flags, (uint8_t)(len >> 24),
		(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len };
	buf_put(out, prefix, sizeof(prefix));
}

void http_grpc_put(struct buf *out, uint8_t flags, struct str message)
{
	http_grpc_put_prefix(out, flags, message.len);
	buf_str(out, message);
}

void http_grpc_put_trailers(struct buf *out, int grpc_status, struct str message)
{
	size_t begin = out->len;
	http_grpc_put_prefix(out, HTTP_GRPC_TRAILER, 0);
	buf_printf(out, "grpc-status: %d\r\n", grpc_status);
	if (message.len) {
		buf_cstr(out, "grpc-message: ");
		http_grpc_put_text(out, message);
		buf_cstr(out, "\r\n");
	}
	if (out->failed)
		return;
	size_t len = out->len - begin - HTTP_GRPC_PREFIX_BYTES;
	for (int i = 0; i < 4; i++)
		out->data[begin + 1 + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
}

void http_grpc_put_text(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = (uint8_t)text.p[i];
		if (c >= 0x20 && c <= 0x7E && c != '%')
			buf_u8(out, c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void http_grpc_get_text(struct buf *out, struct str encoded)
{
	for (size_t i = 0; i < encoded.len; i++) {
		if (encoded.p[i] == '%' && encoded.len - i >= 3) {
			int high = hex_value(encoded.p[i + 1]), low = hex_value(encoded.p[i + 2]);
			if (high >= 0 && low >= 0) {
				buf_u8(out, (uint8_t)(high << 4 | low));
				i += 2;
				continue;
			}
		}
		buf_u8(out, (uint8_t)encoded.p[i]);
	}
}

bool http_grpc_parse_timeout(struct str s, int64_t *out_ns)
{
	uint64_t n;
	if (s.len < 2 || s.len > 9 || !str_parse_u64(str_sub(s, 0, s.len - 1), 10, &n))
		return false;
	int64_t unit;
	switch (s.p[s.len - 1]) {
	case 'H':
		unit = 3600 * NS_PER_SEC;
		break;
	case 'M':
		unit = 60 * NS_PER_SEC;
		break;
	case 'S':
		unit = NS_PER_SEC;
		break;
	case 'm':
		unit = NS_PER_MS;
		break;
	case 'u':
		unit = 1000;
		break;
	case 'n':
		unit = 1;
		break;
	default:
		return false;
	}
	/* 99,999,999 hours do not fit in int64 nanoseconds. */
	if (__builtin_mul_overflow((int64_t)n, unit, out_ns))
		*out_ns = INT64_MAX;
	return true;
}

/* ---- base64 (RFC 4648 section 4) ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void http_base64_encode(struct buf *out, struct str bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	uint8_t *to = bytes.len ? buf_extend(out, (bytes.len + 2) / 3 * 4) : NULL;
	if (!to)
		return;
	for (size_t i = 0; i < bytes.len; i += 3) {
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

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes four characters into 1 to 3 bytes; false if they are not base64. */
static bool decode_group(const char *p, uint8_t out[3], size_t *out_len)
{
	size_t pad = p[3] == '=' ? (p[2] == '=' ? 2 : 1) : 0;
	uint32_t v = 0;
	for (size_t i = 0; i < 4; i++) {
		int x = i < 4 - pad ? base64_value(p[i]) : 0;
		if (x < 0)
			return false;
		v = v << 6 | (uint32_t)x;
	}
	out[0] = (uint8_t)(v >> 16);
	out[1] = (uint8_t)(v >> 8);
	out[2] = (uint8_t)v;
	*out_len = 3 - pad;
	/* Bits that padding cuts off must be zero, so that one text has one meaning. */
	return pad == 0 || (pad == 1 ? out[2] == 0 : out[1] == 0 && out[2] == 0);
}

bool http_base64_decode(struct buf *out, struct str text)
{
	if (text.len % 4 != 0)
		return false;
	uint8_t *to = text.len ? buf_reserve(out, text.len / 4 * 3) : NULL;
	if (!to)
		return text.len == 0;
	size_t len = 0;
	for (size_t i = 0; i < text.len; i += 4) {
		uint8_t bytes[3];
		size_t n;
		if (!decode_group(text.p + i, bytes, &n))
			return false;
		memcpy(to + len, bytes, n);
		len += n;
	}
	out->len += len;
	return true;
}
