/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of runtimes come as they are in memory, cut at any character; each character is turned into
 * UTF-8 by itself. A UCS-2 text of CPython has no surrogate pairs, so half a pair is no character.
 */
#include "runtimes/runtimes.h"

#define REPLACEMENT 0xfffd

static void put(struct buf *out, uint32_t c)
{
	if (c < 0x20 || c == 0x7f)
		c = '?';
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = REPLACEMENT;
	if (c < 0x80) {
		buf_u8(out, (uint8_t)c);
	} else if (c < 0x800) {
		buf_u8(out, (uint8_t)(0xc0 | c >> 6));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_u8(out, (uint8_t)(0xe0 | c >> 12));
		buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	} else {
		buf_u8(out, (uint8_t)(0xf0 | c >> 18));
		buf_u8(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
	}
}

static void put_utf8(struct buf *out, struct str bytes)
{
	size_t from = out->len;
	buf_utf8(out, bytes);
	for (size_t i = from; i < out->len; i++) {
		if (out->data[i] < 0x20 || out->data[i] == 0x7f)
			out->data[i] = '?';
	}
}

bool runtimes_text(struct buf *out, struct str bytes, unsigned character_bytes)
{
	if (character_bytes == RUNTIME_TEXT_UTF8) {
		put_utf8(out, bytes);
		return true;
	}
	if (character_bytes != 1 && character_bytes != 2 && character_bytes != 4)
		return false;
	for (size_t at = 0; at + character_bytes <= bytes.len; at += character_bytes) {
		uint32_t c = 0;
		memcpy(&c, bytes.p + at, character_bytes);
		put(out, c);
	}
	return true;
}
