/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes senders' texts fit for the tables. Nearly all are valid and are interned unchanged; the
 * others are corrected in a buffer first.
 */
#include "profile/profile.h"

#include <stdlib.h>

#define TEXT_BYTES_MAX ((size_t)1 << 30)
#define NAME_BYTES_MAX 1024
#define TYPE_PART_BYTES_MAX 256
#define REPLACEMENT STR("\xEF\xBF\xBD") /* U+FFFD */

static enum status intern_buf(struct profile *p, const struct buf *b, uint32_t *out)
{
	enum status s = buf_status(b);
	return s == OK ? strtab_intern(&p->strings, buf_view(b), out) : s;
}

/* The length of the longest valid UTF-8 at the front; a sequence has at most 4 bytes. */
static size_t sound_length(struct str s)
{
	size_t at = 0;
	while (at < s.len) {
		size_t n = 1, left = s.len - at;
		while (n <= 4 && n <= left && !str_is_utf8(str_make(s.p + at, n)))
			n++;
		if (n > 4 || n > left)
			break;
		at += n;
	}
	return at;
}

enum status profile_add_string(struct profile *p, struct str s, uint32_t *out)
{
	/* A string that is in the table was checked when it was added. */
	if (strtab_expects(&p->strings, s) || str_is_utf8(s))
		return strtab_intern(&p->strings, s, out);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	while (s.len) {
		size_t sound = sound_length(s);
		buf_put(&b, s.p, sound);
		if (sound == s.len)
			break;
		buf_str(&b, REPLACEMENT);
		s = str_sub(s, sound + 1, s.len);
	}
	return intern_buf(p, &b, out);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(struct str s)
{
	bool fits = s.len == 0 || !is_digit(s.p[0]);
	for (size_t i = 0; i < s.len && fits; i++)
		fits = is_name_char(s.p[i]);
	return fits;
}

enum status profile_add_name(struct profile *p, struct str s, uint32_t *out)
{
	s = str_sub(s, 0, NAME_BYTES_MAX);
	if (is_name(s))
		return strtab_intern(&p->strings, s, out);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	if (is_digit(s.p[0]))
		buf_u8(&b, '_');
	for (size_t i = 0; i < s.len; i++)
		buf_u8(&b, is_name_char(s.p[i]) ? (uint8_t)s.p[i] : '_');
	return intern_buf(p, &b, out);
}

static bool is_type_char(char c)
{
	return (unsigned char)c > ' ' && c != 0x7F && !strchr(":{}\"'`,\\", c);
}

enum status profile_add_type_part(struct profile *p, struct str s, uint32_t *out)
{
	s = str_sub(s, 0, TYPE_PART_BYTES_MAX);
	bool fits = true;
	for (size_t i = 0; i < s.len && fits; i++)
		fits = is_type_char(s.p[i]);
	if (fits)
		return profile_add_string(p, s, out);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	for (size_t i = 0; i < s.len; i++)
		buf_u8(&b, is_type_char(s.p[i]) ? (uint8_t)s.p[i] : '_');
	enum status st = buf_status(&b);
	return st == OK ? profile_add_string(p, buf_view(&b), out) : st;
}

bool profile_label_is_of_sample(struct str name)
{
	static const char *const names[] = { PROFILE_SAMPLE_LABELS };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

bool profile_label_is_hidden(struct str name)
{
	return str_eq(name, STR(PROFILE_LABEL_NUMBERS)) ||
	       str_eq(name, STR(PROFILE_LABEL_COMMENTS));
}

enum status profile_add_build_id(struct profile *p, struct str s, uint32_t *out)
{
	*out = 0;
	return s.len <= PROFILE_BUILD_ID_MAX ? profile_add_string(p, s, out) : OK;
}
