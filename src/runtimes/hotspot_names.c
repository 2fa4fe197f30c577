/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "java/util/HashMap$Node.getKey" becomes "java.util.HashMap$Node.getKey". Names that a compiler
 * has made up are written as people read them, if that loses nothing: numbers of hidden classes
 * (lambdas, method handles), which differ from run to run, are left out. Two languages write the
 * names of their own functions in another way, which is undone; the file tells which language it
 * is:
 *
 *   Scala     Main$.$plus$plus        Main.++             an object, an operator
 *   Clojure   a_b/core$f_BANG_.invoke a-b.core/f!         a function is a class
 *             a/core$f$fn__42.invoke  a.core/f/fn
 *
 * Kotlin's and Groovy's stay as their own stack traces have them.
 *
 * Names are Java's modified UTF-8: NUL is two bytes, and characters beyond 16 bits are surrogates
 * of three bytes each. What is no UTF-8 becomes U+FFFD.
 *
 * Sources: Scala, reflect/NameTransformer.scala; Clojure, Compiler.java (CHAR_MAP).
 */
#include "runtimes/runtimes.h"

struct spelling {
	struct str written;
	char c;
};

static const struct spelling scala[] = {
	{ STR("$colon"), ':' },
	{ STR("$eq"), '=' },
	{ STR("$greater"), '>' },
	{ STR("$less"), '<' },
	{ STR("$plus"), '+' },
	{ STR("$minus"), '-' },
	{ STR("$times"), '*' },
	{ STR("$div"), '/' },
	{ STR("$bang"), '!' },
	{ STR("$at"), '@' },
	{ STR("$hash"), '#' },
	{ STR("$percent"), '%' },
	{ STR("$up"), '^' },
	{ STR("$amp"), '&' },
	{ STR("$tilde"), '~' },
	{ STR("$qmark"), '?' },
	{ STR("$bar"), '|' },
	{ STR("$bslash"), '\\' },
};

static const struct spelling clojure[] = {
	{ STR("_COLON_"), ':' },
	{ STR("_PLUS_"), '+' },
	{ STR("_GT_"), '>' },
	{ STR("_LT_"), '<' },
	{ STR("_EQ_"), '=' },
	{ STR("_TILDE_"), '~' },
	{ STR("_BANG_"), '!' },
	{ STR("_CIRCA_"), '@' },
	{ STR("_SHARP_"), '#' },
	{ STR("_SINGLEQUOTE_"), '\'' },
	{ STR("_PERCENT_"), '%' },
	{ STR("_CARET_"), '^' },
	{ STR("_AMPERSAND_"), '&' },
	{ STR("_STAR_"), '*' },
	{ STR("_BAR_"), '|' },
	{ STR("_SLASH_"), '/' },
	{ STR("_BSLASH_"), '\\' },
	{ STR("_QMARK_"), '?' },
	{ STR("_"), '-' },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "Main$$Lambda$14+0x0000000800c00a08", "Main$$Lambda$7/0x…", "…+0x…": without the number of the
 * hidden class. Some versions write '/' or '.' instead of '+'. */
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

/* "Main$$Lambda$14" without its number, which differs from run to run. */
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

/* Bytes that are not UTF-8 become U+FFFD, control characters '?'. */
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

/* The first spelling that `s` begins with; how long it is, 0: none. */
static size_t spelled(struct str s, const struct spelling *table, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++) {
		if (!str_starts(s, table[i].written))
			continue;
		*out = table[i].c;
		return table[i].written.len;
	}
	return 0;
}

static void put_decoded(
	struct buf *out, struct str s, bool is_class, const struct spelling *table, size_t count)
{
	size_t plain = 0, at = 0;
	while (at < s.len) {
		char c;
		size_t len = spelled(str_sub(s, at, s.len), table, count, &c);
		if (!len) {
			at++;
			continue;
		}
		put_text(out, str_sub(s, plain, at - plain), is_class);
		buf_u8(out, (uint8_t)c);
		at += len;
		plain = at;
	}
	put_text(out, str_sub(s, plain, s.len), is_class);
}

static void put_scala(struct buf *out, struct str class, struct str method)
{
	if (str_ends(class, STR("$")))
		class.len--;
	put_decoded(out, class, true, scala, ARRAY_COUNT(scala));
	put_decoded(out, method, false, scala, ARRAY_COUNT(scala));
}

/* "f", or "fn__42" without its number, of a class' name. */
static struct str without_serial(struct str part)
{
	size_t at = part.len;
	while (at > 0 && is_digit(part.p[at - 1]))
		at--;
	bool has_serial = at < part.len && at > 2 && part.p[at - 1] == '_' && part.p[at - 2] == '_';
	return has_serial ? str_sub(part, 0, at - 2) : part;
}

/* Clojure makes a class for each function, and one of these methods runs it. False: it is another
 * method. */
static bool put_clojure(struct buf *out, struct str class, struct str method)
{
	size_t dollar = str_index(class, '$');
	if (dollar >= class.len ||
		(!str_starts(method, STR(".invoke")) && !str_eq(method, STR(".doInvoke")) &&
			!str_eq(method, STR(".applyTo"))))
		return false;
	put_decoded(out, str_sub(class, 0, dollar), true, clojure, ARRAY_COUNT(clojure));
	struct str rest = str_sub(class, dollar + 1, class.len), part;
	while (str_split(&rest, '$', &part)) {
		buf_u8(out, '/');
		put_decoded(out, without_serial(part), false, clojure, ARRAY_COUNT(clojure));
	}
	return true;
}

void hotspot_name(struct buf *out, struct str name, struct str file)
{
	size_t dot = str_rindex(name, '.');
	if (dot >= name.len) {
		put_text(out, name, false);
		return;
	}
	struct str class = str_sub(name, 0, dot), method = str_sub(name, dot, name.len);
	bool is_clojure = str_ends(file, STR(".clj")) || str_ends(file, STR(".cljc"));
	if (str_ends(file, STR(".scala"))) {
		put_scala(out, class, method);
	} else if (!is_clojure || !put_clojure(out, class, method)) {
		put_text(out, without_count(without_number(class)), true);
		put_text(out, method, false);
	}
}

void hotspot_stub_name(struct buf *out, struct str name)
{
	const char *end = memchr(name.p, 0, name.len);
	put_text(out, str_make(name.p, end ? (size_t)(end - (const char *)name.p) : name.len),
		false);
}
