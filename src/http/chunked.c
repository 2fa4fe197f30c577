/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine that takes one byte at a time, except for data, which it passes on in pieces.
 * Extensions and trailers are checked, counted and dropped. Source: RFC 9112 section 7.1. */
#include "http/chunked.h"

#define SIZE_DIGITS_MAX 15
#define EXTRA_BYTES_MAX 4096 /* extensions and trailers of one message */

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool token_byte(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

static bool text_byte(uint8_t c)
{
	return c >= 0x20 ? c != 0x7F : c == '\t';
}

static enum http_chunk_state size_byte(struct http_chunked *c, uint8_t byte)
{
	int digit = hex_value(byte);
	if (digit >= 0) {
		if (++c->digits > SIZE_DIGITS_MAX)
			return HTTP_CHUNK_BAD;
		c->left = c->left << 4 | (uint64_t)digit;
		return HTTP_CHUNK_SIZE;
	}
	if (c->digits == 0)
		return HTTP_CHUNK_BAD;
	if (byte == '\r')
		return HTTP_CHUNK_SIZE_LF;
	return byte == ';' ? HTTP_CHUNK_EXTENSION : HTTP_CHUNK_BAD;
}

/* Takes a byte of an extension or of a trailer's value; CR leads to the state `lf`. */
static enum http_chunk_state extra_byte(
	struct http_chunked *c, uint8_t byte, enum http_chunk_state lf)
{
	if (byte == '\r')
		return lf;
	if (!text_byte(byte) || ++c->extra > EXTRA_BYTES_MAX)
		return HTTP_CHUNK_BAD;
	return c->state;
}

static enum http_chunk_state name_byte(struct http_chunked *c, uint8_t byte)
{
	if (byte == ':')
		return HTTP_CHUNK_FIELD_VALUE;
	if (!token_byte(byte) || ++c->extra > EXTRA_BYTES_MAX)
		return HTTP_CHUNK_BAD;
	return HTTP_CHUNK_FIELD_NAME;
}

static enum http_chunk_state next_state(struct http_chunked *c, uint8_t byte)
{
	switch (c->state) {
	case HTTP_CHUNK_SIZE:
		return size_byte(c, byte);
	case HTTP_CHUNK_EXTENSION:
		return extra_byte(c, byte, HTTP_CHUNK_SIZE_LF);
	case HTTP_CHUNK_SIZE_LF:
		if (byte != '\n')
			return HTTP_CHUNK_BAD;
		return c->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_LINE;
	case HTTP_CHUNK_DATA_CR:
		return byte == '\r' ? HTTP_CHUNK_DATA_LF : HTTP_CHUNK_BAD;
	case HTTP_CHUNK_DATA_LF:
		c->digits = 0;
		return byte == '\n' ? HTTP_CHUNK_SIZE : HTTP_CHUNK_BAD;
	case HTTP_CHUNK_LINE:
		if (byte == '\r')
			return HTTP_CHUNK_END_LF;
		return byte == ':' ? HTTP_CHUNK_BAD : name_byte(c, byte);
	case HTTP_CHUNK_FIELD_NAME:
		return name_byte(c, byte);
	case HTTP_CHUNK_FIELD_VALUE:
		return extra_byte(c, byte, HTTP_CHUNK_FIELD_LF);
	case HTTP_CHUNK_FIELD_LF:
		return byte == '\n' ? HTTP_CHUNK_LINE : HTTP_CHUNK_BAD;
	case HTTP_CHUNK_END_LF:
		return byte == '\n' ? HTTP_CHUNK_DONE : HTTP_CHUNK_BAD;
	case HTTP_CHUNK_DATA:
	case HTTP_CHUNK_DONE:
	case HTTP_CHUNK_BAD:
		break;
	}
	return HTTP_CHUNK_BAD;
}

size_t http_chunked_feed(struct http_chunked *c, const uint8_t *p, size_t len, struct str *out_data)
{
	*out_data = str_make(NULL, 0);
	size_t used = 0;
	while (used < len && c->state != HTTP_CHUNK_DONE && c->state != HTTP_CHUNK_BAD) {
		if (c->state == HTTP_CHUNK_DATA) {
			size_t n = (size_t)MIN((uint64_t)(len - used), c->left);
			*out_data = str_make(p + used, n);
			c->left -= n;
			if (c->left == 0)
				c->state = HTTP_CHUNK_DATA_CR;
			return used + n;
		}
		c->state = next_state(c, p[used++]);
	}
	return used;
}
