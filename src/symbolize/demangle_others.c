/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of D, by libiberty, and of Haskell (GHC).
 *
 * libiberty's demangler for D builds its text on the heap, and a back reference ('Q') may stand for
 * text with further ones, so that the text of a long name may grow without bound. Names with more
 * than a few references are left unchanged.
 *
 * Of D's text the qualified name is kept: no parameters, and "toChars!(int)" for the template
 * "toChars!(int).toChars(int)" of one function.
 */
#include "symbolize/demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>

#define D_MANGLED_MAX 1024
/* 3^(24 / 3) times the name at worst. */
#define D_REFERENCES_MAX 24
/* Longer lists of template arguments become "…". */
#define D_LIST_MAX 32

/* ---- D ---- */

static bool is_d(struct str s)
{
	if (s.len <= 3 || s.len > D_MANGLED_MAX || memcmp(s.p, "_D", 2) != 0)
		return false;
	size_t references = 0;
	for (size_t i = 0; i < s.len; i++)
		references += s.p[i] == 'Q';
	return references <= D_REFERENCES_MAX;
}

/* The end, after the bracket, of the list that begins at in[at]; 0: none. Arguments may be
 * texts. */
static size_t list_end(struct str in, size_t at)
{
	int depth = 0;
	bool quoted = false;
	for (size_t i = at; i < in.len; i++) {
		char c = in.p[i];
		if (c == '\\' && quoted)
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == '(')
			depth++;
		else if (!quoted && c == ')' && --depth == 0)
			return i + 1;
	}
	return 0;
}

struct d_text {
	char *out;
	size_t len;
	size_t last; /* where the last part of the name begins in `out` */
};

static void put(struct d_text *t, struct str s)
{
	memcpy(t->out + t->len, s.p, s.len);
	t->len += s.len;
}

/* Length of the function name at the beginning of `rest`, if it is that of the template t->last. */
static size_t same_name(const struct d_text *t, struct str rest)
{
	struct str name = str_make(t->out + t->last, t->len - 1 - t->last); /* without the '!' */
	if (rest.len <= name.len || rest.p[0] != '.' ||
		!str_starts(str_sub(rest, 1, rest.len), name))
		return 0;
	size_t end = name.len + 1;
	return end == rest.len || rest.p[end] == '.' || rest.p[end] == '(' ? end : 0;
}

/* Takes the list of arguments or parameters at in[at]. Returns where to go on; 0: its brackets do
 * not match. */
static size_t take_list(struct d_text *t, struct str in, size_t at)
{
	size_t end = list_end(in, at);
	if (end && t->len && t->out[t->len - 1] == '!') {
		size_t again = same_name(t, str_sub(in, end, in.len));
		put(t, end - at > D_LIST_MAX + 2 ? STR("(…)") : str_sub(in, at, end - at));
		return end + again;
	}
	while (end && end < in.len && in.p[end] != '.')
		end++; /* " const" */
	return end;
}

/* Makes the qualified name. False: the name stays as it is. */
static bool qualify(struct d_text *t, struct str in)
{
	for (size_t i = 0; i < in.len;) {
		if (in.p[i] == '(') {
			i = take_list(t, in, i);
			if (i == 0)
				return false;
			continue;
		}
		put(t, str_sub(in, i, 1));
		if (in.p[i++] == '.')
			t->last = t->len;
	}
	return true;
}

struct str symbolize_demangle_d(struct str name, struct arena *a)
{
	char mangled[D_MANGLED_MAX + 1];
	if (!is_d(name))
		return name;
	memcpy(mangled, name.p, name.len);
	mangled[name.len] = '\0';
	CLEANUP(free_cleanup) char *text = dlang_demangle(mangled, 0);
	struct str in = str_of(text ? text : "");
	struct d_text t = { .out = in.len ? arena_alloc(a, in.len, 1) : NULL };
	return t.out && qualify(&t, in) ? str_make(t.out, t.len) : name;
}

/* ---- Haskell ---- */

/* Whether it is a name of GHC's code: "GHCziBase" has a module, "_zdwfib" is a worker. Otherwise
 * 'z' is an ordinary letter. */
static bool is_ghc(struct str s)
{
	if (!str_ends(s, STR("_info")))
		return false;
	for (size_t i = 0; i + 3 < s.len; i++) {
		bool module = s.p[i] == 'z' && s.p[i + 1] == 'i' && s.p[i + 2] >= 'A' &&
			      s.p[i + 2] <= 'Z';
		if (module || memcmp(s.p + i, "_zd", 3) == 0)
			return true;
	}
	return false;
}

/* The character that an escape stands for; 0: none. Source: GHC, GHC.Utils.Encoding
 * (z-encoding). */
static char unescape(const char *pairs, char c)
{
	for (; *pairs; pairs += 2)
		if (*pairs == c)
			return pairs[1];
	return '\0';
}

struct str symbolize_demangle_ghc(struct str name, struct arena *a)
{
	char *out = is_ghc(name) ? arena_alloc(a, name.len, 1) : NULL;
	size_t len = 0;
	for (size_t i = 0; out && i < name.len; i++) {
		char c = name.p[i];
		if (c == 'z' || c == 'Z') {
			char next = ++i < name.len ? name.p[i] : '\0';
			c = unescape(c == 'z' ? "zza&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%"
					      : "ZZL(R)M[N]C:",
				next);
		}
		if (!c)
			return name; /* a tuple, a character by its number, or no name of GHC's */
		out[len++] = c;
	}
	return out ? str_make(out, len) : name;
}
