/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for people, by libiberty's demanglers for C++ (Itanium ABI) and Rust (legacy and v0).
 *
 * Mangled names are hostile input: a short one can stand for gigabytes of text. The demanglers
 * deliver their text in pieces, so the receiver can end a name that grows too long by longjmp() out
 * of the demangler, which has no memory allocated at that point (with one exception, see
 * receive()). Depth of recursion is limited by libiberty itself.
 *
 * The qualified name reads best in a flame graph: no parameters, no return type, template arguments
 * only if they are short (shorten()). Suffixes by which a compiler tells copies apart (".isra.0",
 * ".cold") are removed.
 *
 * D and Haskell: demangle_others.c.
 */
#include "symbolize/demangle.h"
#include "symbolize/symbolize.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

/* Longer mangled names stay as they are. libiberty itself gives up at about 1,024. */
#define MANGLED_MAX 8192
/* Bytes of demangled text, before it is shortened. */
#define TEXT_MAX 32768
/* Longer names are truncated. */
#define NAME_MAX_BYTES 1000
/* Longer lists of template arguments, or parameters of a lambda, become "…". */
#define LIST_MAX 32
/* The most brackets within brackets. */
#define DEPTH_MAX 64

struct text {
	jmp_buf full;
	size_t len;
	char v[TEXT_MAX];
};

static void receive(const char *bytes, size_t len, void *ctx)
{
	struct text *t = ctx;
	bool fits = len <= TEXT_MAX - t->len;
	if (fits) {
		memcpy(t->v + t->len, bytes, len);
		t->len += len;
		return;
	}
	/* Only text from Rust's punycode is not ASCII, and only that comes while the demangler has
	 * memory allocated: it is accepted, since the next piece is separate and ASCII.
	 */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)bytes[i] >= 0x80)
			return;
	longjmp(t->full, 1);
}

static bool demangle(const char *mangled, struct text *t)
{
	t->len = 0;
	if (setjmp(t->full))
		return false;
	if (rust_demangle_callback(mangled, 0, receive, t))
		return t->len > 0;
	t->len = 0;
	return mangled[1] == 'Z' && cplus_demangle_v3_callback(mangled, 0, receive, t) &&
	       t->len > 0;
}

/* ---- suffixes ---- */

static bool is_number(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.len > 0;
}

/* Suffixes that GCC and LLVM add to a name, with or without a number. */
static bool is_copy_word(struct str s, bool numbered)
{
	/* clang-format off */
	static const struct { struct str word; bool alone; } words[] = {
		{ { "isra", 4 }, false }, { { "part", 4 }, false }, { { "constprop", 9 }, false },
		{ { "cold", 4 }, true }, { { "lto_priv", 8 }, false }, { { "llvm", 4 }, false },
		{ { "localalias", 10 }, true }, { { "clone", 5 }, false }, { { "__uniq", 6 }, false },
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_eq(s, words[i].word))
			return numbered || words[i].alone;
	return false;
}

/* Whether it has characters of Go's names that names of compilers' copies never have:
 * "tls.(*Conn).clone". */
static bool is_of_go(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.p[i] == '/' || name.p[i] == '(')
			return true;
	return false;
}

/* "f.part.0.cold" is "f". A number alone stays: "helper.1" is a name of its own, as is Go's
 * "runtime.clone". */
static struct str cut_copies(struct str name)
{
	while (!is_of_go(name)) {
		size_t dot = str_rindex(name, '.');
		if (dot == name.len || dot == 0)
			return name;
		struct str last = str_sub(name, dot + 1, name.len);
		struct str rest = str_sub(name, 0, dot);
		bool numbered = is_number(last);
		if (numbered) {
			dot = str_rindex(rest, '.');
			if (dot == rest.len || dot == 0)
				return name;
			last = str_sub(rest, dot + 1, rest.len);
			rest = str_sub(rest, 0, dot);
		}
		if (!is_copy_word(last, numbered))
			return name;
		name = rest;
	}
	return name;
}

/* ---- shortening ---- */

struct shortener {
	struct str in;
	size_t at;
	char *out; /* as long as `in`, and room for an ellipsis */
	size_t len;
	struct {
		size_t at; /* position in `out` after the bracket */
		char close;
		bool list; /* may be shortened */
	} open[DEPTH_MAX];
	int depth;
};

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Copies "operator<<" and the like, whose signs are not brackets. */
static bool copy_operator(struct shortener *s)
{
	static const struct str word = { "operator", 8 };
	if (s->in.p[s->at] != 'o' || (s->at && is_name_byte(s->in.p[s->at - 1])) ||
		!str_starts(str_sub(s->in, s->at, s->in.len), word))
		return false;
	size_t end = s->at + word.len;
	static const char signs[] = "<>=!+-*/%^&|~,";
	while (end < s->in.len && end < s->at + word.len + 3 && strchr(signs, s->in.p[end])) {
		/* "operator< <int>" has a blank; "operator()<int>" and "operator-<int>" do not: a
		 * '<' counts only at the beginning or behind another '<'. */
		if (s->in.p[end] == '<' && end > s->at + word.len && s->in.p[end - 1] != '<')
			break;
		end++;
	}
	if (str_starts(str_sub(s->in, end, s->in.len), STR("()")))
		end += 2;
	memcpy(s->out + s->len, s->in.p + s->at, end - s->at);
	s->len += end - s->at;
	s->at = end;
	return true;
}

/* Where the last argument of the list out[from..len) begins, at its comma; `from` when there is
 * only one. Brackets before it are balanced: this list is closed last. */
static size_t last_argument(const char *out, size_t from, size_t len)
{
	int depth = 0;
	for (size_t i = len; i-- > from;) {
		depth += out[i] == '>' || out[i] == ')';
		depth -= out[i] == '<' || out[i] == '(';
		if (depth == 0 && out[i] == ',')
			return i;
	}
	return from;
}

/* The length without the arguments that the standard library has by default. */
static size_t cut_defaults(const char *out, size_t from, size_t len)
{
	static const char *const defaults[] = { ", std::allocator<", ", std::char_traits<",
		", std::less<", ", std::hash<", ", std::equal_to<", ", std::default_delete<" };
	for (;;) {
		size_t at = last_argument(out, from, len);
		bool found = false;
		for (size_t i = 0; at > from && !found && i < ARRAY_COUNT(defaults); i++)
			found = str_starts(str_make(out + at, len - at), str_of(defaults[i]));
		if (!found)
			return len;
		len = at;
	}
}

static bool close_bracket(struct shortener *s)
{
	if (s->depth == 0 || s->open[s->depth - 1].close != s->in.p[s->at])
		return false;
	s->depth--;
	size_t from = s->open[s->depth].at;
	if (s->in.p[s->at] == '>' && s->open[s->depth].list)
		s->len = cut_defaults(s->out, from, s->len);
	if (s->open[s->depth].list && s->len - from > LIST_MAX) {
		memcpy(s->out + from, "…", strlen("…"));
		s->len = from + strlen("…");
	}
	while (s->len > from && s->out[s->len - 1] == ' ')
		s->len--; /* "> >" */
	s->out[s->len++] = s->in.p[s->at++];
	return true;
}

static bool open_bracket(struct shortener *s)
{
	if (s->depth == DEPTH_MAX)
		return false;
	char c = s->in.p[s->at];
	char before = s->at ? s->in.p[s->at - 1] : 0;
	/* Arguments follow a name; "<T as Trait>" in Rust and "(anonymous namespace)" do not. */
	bool list = is_name_byte(before) || (c == '<' && (before == ':' || before == ')'));
	s->out[s->len++] = c;
	s->at++;
	s->open[s->depth].at = s->len;
	s->open[s->depth].close = c == '<' ? '>' : ')';
	s->open[s->depth].list = list;
	s->depth++;
	return true;
}

static bool step(struct shortener *s)
{
	char c = s->in.p[s->at];
	if (copy_operator(s))
		return true;
	if (c == '-' && s->at + 1 < s->in.len && s->in.p[s->at + 1] == '>') {
		memcpy(s->out + s->len, "->", 2);
		s->len += 2;
		s->at += 2;
		return true;
	}
	if (c == '<' || c == '(')
		return open_bracket(s);
	if (c == '>' || c == ')')
		return close_bracket(s);
	s->out[s->len++] = c;
	s->at++;
	return true;
}

/* `in` with long lists as "…", in `out` (room for in.len + 8); `in` again if its brackets do not
 * match. */
static struct str shorten(struct str in, char *out)
{
	struct shortener s = { .in = in, .out = out };
	while (s.at < in.len)
		if (!step(&s))
			return in;
	return s.depth == 0 ? str_make(s.out, s.len) : in;
}

/* Replaces types by the names of the standard library's own typedefs. */
static size_t replace_all(char *text, size_t len, struct str from, struct str to)
{
	assert(to.len <= from.len);
	size_t n = 0;
	for (size_t i = 0; i < len;) {
		if (len - i >= from.len && memcmp(text + i, from.p, from.len) == 0) {
			memcpy(text + n, to.p, to.len);
			n += to.len;
			i += from.len;
		} else {
			text[n++] = text[i++];
		}
	}
	return n;
}

static size_t use_typedefs(char *text, size_t len)
{
	/* clang-format off */
	static const struct { struct str from, to; } names[] = {
#define NAME(from, to) { { from, sizeof(from) - 1 }, { to, sizeof(to) - 1 } }
		NAME("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
			"std::string"),
		NAME("std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
			"std::string"),
		NAME("std::__1::basic_string<char, std::__1::char_traits<char>, "
			"std::__1::allocator<char> >", "std::string"),
		NAME("std::basic_string_view<char, std::char_traits<char> >", "std::string_view"),
		NAME("std::basic_ostream<char, std::char_traits<char> >", "std::ostream"),
		NAME("std::basic_istream<char, std::char_traits<char> >", "std::istream"),
		NAME("std::__cxx11::", "std::"),
		NAME("std::__1::", "std::"),
#undef NAME
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		len = replace_all(text, len, names[i].from, names[i].to);
	return len;
}

static struct str cut_long(struct str s, struct arena *a)
{
	if (s.len <= NAME_MAX_BYTES)
		return s;
	size_t len = NAME_MAX_BYTES;
	while (len && ((unsigned char)s.p[len] & 0xc0) == 0x80)
		len--; /* not within a character */
	char *copy = arena_printf(a, "%.*s…", (int)len, s.p);
	return copy ? str_of(copy) : str_sub(s, 0, len);
}

static struct str for_people(struct text *t, struct arena *a, struct str name)
{
	t->len = use_typedefs(t->v, t->len);
	char *out = arena_alloc(a, t->len + 8, 1);
	if (!out)
		return name;
	struct str s = shorten(str_make(t->v, t->len), out);
	if (s.p == t->v) { /* as it was */
		memcpy(out, t->v, t->len);
		s.p = out;
	}
	return s;
}

struct str symbolize_demangle(struct str name, struct arena *a)
{
	struct str base = cut_copies(name);
	if (str_starts(base, STR("_D")))
		return symbolize_demangle_d(base, a);
	if (str_ends(base, STR("_info")))
		return symbolize_demangle_ghc(base, a);
	if (base.len < 4 || base.p[0] != '_' || (base.p[1] != 'Z' && base.p[1] != 'R') ||
		base.len > MANGLED_MAX || memchr(base.p, 0, base.len))
		return base;
	char mangled[MANGLED_MAX + 1];
	memcpy(mangled, base.p, base.len);
	mangled[base.len] = '\0';
	struct text *t = malloc(sizeof(*t));
	if (!t)
		return base;
	struct str s = demangle(mangled, t) ? for_people(t, a, base) : base;
	free(t);
	return cut_long(s, a);
}
