/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str: a piece of text that another object owns: pointer and length, no NUL promised.
 *
 * Layer 0. Pure functions.
 */
#pragma once

#include "base/status.h"

#include <string.h>

struct str {
	const char *p;
	size_t len;
};

#define STR(literal) ((struct str){ "" literal "", sizeof(literal) - 1 })
/* For printf: "%.*s", STR_ARG(s) */
#define STR_ARG(s) (int)MIN((s).len, (size_t)INT32_MAX), (s).p ? (s).p : ""

static inline struct str str_of(const char *cstr)
{
	return (struct str){ cstr, cstr ? strlen(cstr) : 0 };
}

static inline struct str str_make(const void *p, size_t len)
{
	return (struct str){ (const char *)p, len };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* Order of bytes, shorter first on a tie: <0, 0, >0. */
int str_cmp(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Index of the first `c`, or s.len. */
size_t str_index(struct str s, char c);
size_t str_rindex(struct str s, char c);                   /* the last one, or s.len */
struct str str_trim(struct str s);                         /* ASCII white space at both ends */
struct str str_sub(struct str s, size_t from, size_t len); /* clamped to s */
struct str str_base_name(struct str path);                 /* without its folders */
/* Cuts the part before the first `c`, and that `c`, off the front of *s; false when *s is empty. */
bool str_split(struct str *s, char c, struct str *out_part);

/* The whole of `s` is the number, no white space, no sign for unsigned; false otherwise and on
 * overflow. base 10 or 16 (without 0x). */
NODISCARD bool str_parse_u64(struct str s, int base, uint64_t *out);
NODISCARD bool str_parse_i64(struct str s, int64_t *out);
NODISCARD bool str_parse_double(struct str s, double *out);

/* Well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool str_is_utf8(struct str s);
