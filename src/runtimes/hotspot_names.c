/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "java/util/HashMap$Node.getKey" becomes "java.util.HashMap$Node.getKey". What a compiler has made
 * up is written as people read it, where that loses nothing: numbers of hidden classes (lambdas,
 * method handles), which differ from run to run, are left out.
 *
 * Names are Java's modified UTF-8: NUL is two bytes, and characters beyond 16 bits are surrogates
 * of three bytes each. What is no UTF-8 becomes U+FFFD.
 */
#include "runtimes/runtimes.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "Main$$Lambda$14+0x0000000800c00a08", "Main$$Lambda$7/0x…", "…+0x…": without the number of the
 * hidden class; '+' is written as '/' or '.' by some. */
static struct str without_number(struct str class)
{
	size_t at = class.len;
	while (at > 0 &&
		(is_digit(class.p[at - 1]) || (class.p[at - 1] >= 'a' && class.p[at - 1] <= 'f')))
		at--;
	if (at >= 3 && class.p[at - 1] == 'x' && class.p[at - 2] == '0')
		at -= 2;
	bool is_hidden =
		at > 0 && at < class.len && is_digit(class.p[at]) &&
		(class.p[at - 1] == '+' || class.p[at - 1] == '/' || class.p[at - 1] == '.');
	return is_hidden ? str_sub(class, 0, at - 1) : class;
}

/* "Main$$Lambda$14": each time it runs it may be another. */
static struct str without_count(struct str class)
{
	static const struct str lambda = STR("$$Lambda$");
	size_t at = class.len;
	while (at > 0 && is_digit(class.p[at - 1]))
		at--;
	bool is_lambda = at < class.len && at >= lambda.len &&
			 str_eq(str_sub(class, at - lambda.len, lambda.len), lambda);
	return is_lambda ? str_sub(class, 0, at - 1) : class;
}

/* What is no UTF-8 becomes U+FFFD, control characters '?'. */
static void put_text(struct buf *out, struct str s, bool is_class)
{
	size_t begin = out->len;
	buf_utf8(out, s);
	for (size_t i = begin; i < out->len; i++) {
		uint8_t c = out->data[i];
		if (c < 0x20 || c == 0x7f)
			out->data[i] = '?';
		else if (is_class && c == '/')
			out->data[i] = '.';
	}
}

void hotspot_name(struct buf *out, struct str name)
{
	size_t dot = str_rindex(name, '.');
	struct str class = str_sub(name, 0, dot);
	if (dot < name.len)
		put_text(out, without_count(without_number(class)), true);
	else
		dot = 0;
	put_text(out, str_sub(name, dot, name.len), false);
}

void hotspot_stub_name(struct buf *out, struct str name)
{
	const char *end = memchr(name.p, 0, name.len);
	put_text(out, str_make(name.p, end ? (size_t)(end - (const char *)name.p) : name.len),
		false);
}
