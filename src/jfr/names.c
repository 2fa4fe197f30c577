/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that differ at each start of a virtual machine: classes of lambdas, of reflection and of
 * Spring, and libraries that Java programs unpack into /tmp. Their random part becomes "_", so that
 * the same code is one frame in all processes. The forms are those that grafana/jfr-parser names.
 */
#include "jfr/internal.h"

#include <string.h>

static const struct str digits = { "0123456789", 10 };
static const struct str hexadecimal = { "0123456789abcdef", 16 };

static size_t span(struct str s, size_t from, struct str of)
{
	size_t at = from;
	while (at < s.len && str_index(of, s.p[at]) < of.len)
		at++;
	return at;
}

/* The end of the last `part` in s; 0: s does not contain it, or only at its begin. */
static size_t end_of_last(struct str s, struct str part)
{
	for (size_t at = s.len >= part.len ? s.len - part.len : 0; at > 0; at--)
		if (str_eq(str_sub(s, at, part.len), part))
			return at + part.len;
	return 0;
}

/* "$669.0x0000000800fd7318", ".0x00007ffa600c4da0", "$12/800fd7318", "7" */
static bool is_lambda_number(struct str s)
{
	size_t at = span(s, 0, digits);
	if (at > 0 && at == s.len)
		return true;
	at = span(s, str_starts(s, STR("$")) ? 1 : 0, digits);
	if (at == s.len || (s.p[at] != '.' && s.p[at] != '/'))
		return false;
	at += str_starts(str_sub(s, at + 1, s.len), STR("0x")) ? 3 : 1;
	return at < s.len && span(s, at, hexadecimal) == s.len;
}

static bool is_accessor(struct str s, size_t *kept)
{
	const struct str prefix = STR("jdk/internal/reflect/GeneratedMethodAccessor");
	*kept = prefix.len;
	return str_starts(s, prefix) && s.len > prefix.len && span(s, prefix.len, digits) == s.len;
}

/* The library's name without its random part; "": it has none. */
static struct str library(struct str s)
{
	if (str_ends(s, STR(" (deleted)")))
		s.len -= strlen(" (deleted)");
	if (!str_ends(s, STR(".so")))
		return STR("");
	if (end_of_last(s, STR("amazonCorrettoCryptoProvider")))
		return STR("libamazonCorrettoCryptoProvider_.so");
	s = str_base_name(s);
	if (str_starts(s, STR("libzstd-jni-")))
		return STR("libzstd-jni-_.so");
	return str_starts(s, STR("libasyncProfiler-")) ? STR("libasyncProfiler-_.so") : STR("");
}

enum status jfr_stable_name(struct jfr_chunk *c, struct str *io)
{
	size_t kept = end_of_last(*io, STR("$$Lambda"));
	bool made = kept && is_lambda_number(str_sub(*io, kept, io->len));
	if (!made)
		made = (kept = end_of_last(*io, STR("$$EnhancerBySpringCGLIB$$"))) > 0;
	if (!made)
		made = is_accessor(*io, &kept);
	if (!made) {
		struct str name = library(*io);
		*io = name.len ? name : *io;
		return OK;
	}
	char *copy = arena_alloc(&c->arena, kept + 1, 1);
	if (!copy)
		return err_set(c->e, arena_status(&c->arena), "names of classes");
	memcpy(copy, io->p, kept);
	copy[kept] = '_';
	*io = str_make(copy, kept + 1);
	return OK;
}
