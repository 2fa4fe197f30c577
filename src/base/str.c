/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is allocated: results point into the arguments.
 */
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

int str_cmp(struct str a, struct str b)
{
	size_t n = MIN(a.len, b.len);
	int c = n ? memcmp(a.p, b.p, n) : 0;
	if (c)
		return c;
	return (a.len > b.len) - (a.len < b.len);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_eq(str_make(s.p, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
	       str_eq(str_make(s.p + s.len - suffix.len, suffix.len), suffix);
}

size_t str_index(struct str s, char c)
{
	const char *at = s.len ? memchr(s.p, c, s.len) : NULL;
	return at ? (size_t)(at - s.p) : s.len;
}

size_t str_rindex(struct str s, char c)
{
	const char *at = s.len ? memrchr(s.p, c, s.len) : NULL;
	return at ? (size_t)(at - s.p) : s.len;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.len && is_space(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len && is_space(s.p[s.len - 1]))
		s.len--;
	return s;
}

struct str str_sub(struct str s, size_t from, size_t len)
{
	from = MIN(from, s.len);
	return str_make(s.p ? s.p + from : s.p, MIN(len, s.len - from));
}

struct str str_base_name(struct str path)
{
	size_t slash = str_rindex(path, '/');
	return slash < path.len ? str_sub(path, slash + 1, path.len) : path;
}

bool str_split(struct str *s, char c, struct str *out_part)
{
	if (s->len == 0)
		return false;
	size_t at = str_index(*s, c);
	*out_part = str_make(s->p, at);
	size_t cut = at < s->len ? at + 1 : at;
	s->p += cut;
	s->len -= cut;
	return true;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

bool str_parse_u64(struct str s, int base, uint64_t *out)
{
	assert(base == 10 || base == 16);
	uint64_t v = 0;
	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int d = digit_value(s.p[i]);
		if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
			__builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	*out = v;
	return true;
}

bool str_parse_i64(struct str s, int64_t *out)
{
	bool negative = s.len && s.p[0] == '-';
	uint64_t v;
	if (!str_parse_u64(negative ? str_sub(s, 1, s.len) : s, 10, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + negative)
		return false;
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool str_parse_double(struct str s, double *out)
{
	char text[64];
	if (s.len == 0 || s.len >= sizeof(text) || is_space(s.p[0]))
		return false;
	memcpy(text, s.p, s.len);
	text[s.len] = 0;
	char *end;
	double v = strtod(text, &end);
	/* Too large numbers give infinity; too small ones (ERANGE as well) the nearest possible
	 * number. */
	if (*end || end != text + s.len || !isfinite(v))
		return false;
	*out = v;
	return true;
}

/* The length of the well-formed sequence at p; 0: there is none. Table 3-7 of Unicode 15. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	unsigned char low = 0x80, high = 0xBF;
	size_t n;
	if (p[0] >= 0xC2 && p[0] <= 0xDF) {
		n = 2;
	} else if ((p[0] & 0xF0) == 0xE0) {
		n = 3;
		low = p[0] == 0xE0 ? 0xA0 : 0x80;
		high = p[0] == 0xED ? 0x9F : 0xBF;
	} else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
		n = 4;
		low = p[0] == 0xF0 ? 0x90 : 0x80;
		high = p[0] == 0xF4 ? 0x8F : 0xBF;
	} else {
		return 0;
	}
	if (left < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	return n;
}

bool str_is_utf8(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t plain = 0; /* most texts are ASCII: a word at a time */
	for (uint64_t w; s.len - plain >= sizeof(w); plain += sizeof(w)) {
		memcpy(&w, p + plain, sizeof(w));
		if (w & 0x8080808080808080)
			break;
	}
	for (size_t i = plain; i < s.len;) {
		size_t n = utf8_length(p + i, s.len - i);
		if (!n)
			return false;
		i += n;
	}
	return true;
}
