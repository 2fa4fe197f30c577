/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one pass over the text with one byte of lookahead, no token list. `struct parser` has the
 * position; every error goes through expected(), which names the expected text and the column.
 * Columns count characters, from 1.
 *
 * 	selector = [ type ] [ "{" [ item { "," item } [ "," ] ] "}" ]
 * 	item     = name op string | string op string | string      (the last one: the type, quoted)
 * 	type     = part ":" part ":" part ":" part ":" part [ ":delta" ]
 *
 * Quoted names are those of Prometheus 3; `__name__="…"` gives the type too, or repeats the first
 * part of a type before it.
 */
#include "selector/selector.h"

#include <stdio.h>

#include "base/buf.h"
#include "regex/regex.h"

#define TYPE_PARTS 5
/* Characters shown of RE2's reason, and of quoted parts of the text. */
#define SHOWN_MAX 60

struct parser {
	struct str text;
	size_t at;
	struct arena *a;
	char *room; /* where the next text is written: unescaping makes no text longer, so text.len
		       bytes are enough */
	struct selector sel;
	struct err *e;
};

static size_t column_of(const struct parser *p, size_t at)
{
	size_t column = 1;
	for (size_t i = 0; i < at && i < p->text.len; i++)
		column += ((uint8_t)p->text.p[i] & 0xC0) != 0x80;
	return column;
}

/* The character at `at`, in the form for messages. */
static const char *shown(const struct parser *p, size_t at, char out[16])
{
	if (at >= p->text.len)
		return "the end";
	uint8_t c = (uint8_t)p->text.p[at];
	size_t len = 1;
	while (c >= 0xC0 && len < 4 && at + len < p->text.len &&
		((uint8_t)p->text.p[at + len] & 0xC0) == 0x80)
		len++;
	if (c < 0x20 || c == 0x7F || !str_is_utf8(str_sub(p->text, at, len)))
		snprintf(out, 16, "byte 0x%02x", c);
	else
		snprintf(out, 16, "'%.*s'", (int)len, p->text.p + at);
	return out;
}

static enum status expected(struct parser *p, size_t at, const char *what)
{
	char got[16];
	return err_set(p->e, E_INVALID, "selector: expected %s at column %zu, got %s", what,
		column_of(p, at), shown(p, at, got));
}

static enum status no_memory(struct parser *p)
{
	return err_set(
		p->e, arena_status(p->a), "selector: no memory for %zu bytes of text", p->text.len);
}

static int peek(const struct parser *p)
{
	return p->at < p->text.len ? (uint8_t)p->text.p[p->at] : -1;
}

static void skip_blanks(struct parser *p)
{
	for (int c = peek(p); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(p))
		p->at++;
}

static bool is_name_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(int c)
{
	return is_name_start(c) || (c >= '0' && c <= '9');
}

bool selector_label_name_ok(struct str name)
{
	if (name.len == 0 || !is_name_start((uint8_t)name.p[0]))
		return false;
	for (size_t i = 1; i < name.len; i++)
		if (!is_name_char((uint8_t)name.p[i]))
			return false;
	return true;
}

/* ---- strings ---- */

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads `count` digits of base 8 or 16; false: another character, at the position. */
static bool digits(struct parser *p, int base, int count, uint32_t *out)
{
	uint32_t v = 0;
	for (int i = 0; i < count; i++, p->at++) {
		int d = hex_digit(peek(p));
		if (d < 0 || d >= base)
			return false;
		v = v * (uint32_t)base + (uint32_t)d;
	}
	*out = v;
	return true;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3F));
	out[0] = (char)((0xF00 >> len) | c);
	return len;
}

/* Reads a character after \u or \U. */
static enum status parse_unicode(struct parser *p, char *out, size_t *len, int count)
{
	uint32_t v = 0;
	size_t from = p->at;
	if (!digits(p, 16, count, &v))
		return expected(p, p->at, "a hexadecimal digit");
	if (v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF))
		return expected(p, from, "the number of a Unicode character");
	*len += put_utf8(out + *len, v);
	return OK;
}

/* Reads an escape, after its backslash, in a text quoted by `quote`; an escape never gives more
 * bytes than it takes. */
static enum status parse_escape(struct parser *p, int quote, char *out, size_t *len)
{
	static const char names[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
	int c = peek(p);
	const char *named = c > 0 ? strchr(names, c) : NULL;
	uint32_t v = 0;
	if (c == quote || named) {
		out[(*len)++] = named ? values[named - names] : (char)quote;
		p->at++;
		return OK;
	}
	if (c == 'u' || c == 'U') {
		p->at++;
		return parse_unicode(p, out, len, c == 'u' ? 4 : 8);
	}
	if (c == 'x') {
		p->at++;
		if (!digits(p, 16, 2, &v))
			return expected(p, p->at, "a hexadecimal digit");
		out[(*len)++] = (char)v;
		return OK;
	}
	if (c < '0' || c > '7')
		return expected(p, p->at, "an escape (\\n \\t \\\\ \\\" \\x41 \\u00e4, …)");
	size_t from = p->at;
	if (!digits(p, 8, 3, &v))
		return expected(p, p->at, "an octal digit");
	if (v > 255)
		return expected(p, from, "an octal number of at most 377");
	out[(*len)++] = (char)v;
	return OK;
}

/* Reads "…" and '…' with Go's escapes, and `…` without any. */
static enum status parse_string(struct parser *p, struct str *out)
{
	int quote = peek(p);
	if (quote != '"' && quote != '\'' && quote != '`')
		return expected(p, p->at, "a quoted value");
	size_t opened = p->at++;
	char *text = p->room;
	size_t len = 0;
	for (int c; (c = peek(p)) != quote;) {
		if (c < 0 || (c == '\n' && quote != '`')) {
			char what[48];
			snprintf(what, sizeof(what), "the %c that ends the value of column %zu",
				quote, column_of(p, opened));
			return expected(p, p->at, what);
		}
		p->at++;
		if (c != '\\' || quote == '`') {
			text[len++] = (char)c;
			continue;
		}
		enum status s = parse_escape(p, quote, text, &len);
		if (s != OK)
			return s;
	}
	p->at++;
	p->room += len;
	*out = str_make(text, len);
	return OK;
}

/* Keeps the text from `from` to the position. */
static struct str keep(struct parser *p, size_t from)
{
	struct str kept = str_make(p->room, p->at - from);
	memcpy(p->room, p->text.p + from, kept.len);
	p->room += kept.len;
	return kept;
}

/* ---- the type ---- */

static enum status set_type(struct parser *p, struct str text, size_t at)
{
	if (p->sel.has_type)
		return err_set(p->e, E_INVALID,
			"selector: a second profile type at column %zu: one is enough",
			column_of(p, at));
	struct str rest = text;
	size_t count = 1;
	for (size_t i = 0; i < text.len; i++)
		count += text.p[i] == ':';
	for (size_t i = 0; i < TYPE_PARTS && count >= TYPE_PARTS; i++) {
		size_t len = str_index(rest, ':');
		p->sel.type[i] = str_sub(rest, 0, len);
		rest = str_sub(rest, len + 1, rest.len);
	}
	if (count == TYPE_PARTS + 1 && str_eq(rest, STR("delta")))
		p->sel.delta = true;
	else if (count != TYPE_PARTS)
		return err_set(p->e, E_INVALID,
			"selector: expected a profile type "
			"(name:sample_type:sample_unit:period_type:period_unit, then :delta or "
			"nothing) at column %zu, got '%.*s'",
			column_of(p, at), (int)MIN(text.len, (size_t)SHOWN_MAX), text.p);
	p->sel.has_type = true;
	return OK;
}

/* ---- matchers ---- */

static enum status parse_op(struct parser *p, enum selector_op *out)
{
	static const struct {
		char text[3];
		enum selector_op op;
	} ops[] = { { "=~", SELECTOR_RE }, { "!~", SELECTOR_NRE }, { "!=", SELECTOR_NE },
		{ "=", SELECTOR_EQ } };
	struct str rest = str_sub(p->text, p->at, 2);
	for (size_t i = 0; i < ARRAY_COUNT(ops); i++)
		if (str_starts(rest, str_of(ops[i].text))) {
			*out = ops[i].op;
			p->at += strlen(ops[i].text);
			return OK;
		}
	return expected(p, p->at, "one of = != =~ !~");
}

static enum status compile(struct parser *p, struct selector_matcher *m, size_t at)
{
	char why[SHOWN_MAX];
	m->regex = regex_new(m->value.p, m->value.len, why, sizeof(why));
	if (m->regex)
		return OK;
	if (!why[0])
		return no_memory(p);
	return err_set(p->e, E_INVALID,
		"selector: expected a regular expression (RE2) at column %zu: %s", column_of(p, at),
		why);
}

static enum status add_matcher(struct parser *p, struct selector_matcher *m, size_t at)
{
	if (str_eq(m->name, STR("__name__"))) {
		/* After a type it must be equal to its name; else it is a condition on a label that
		 * no sample has. */
		bool beside = m->op == SELECTOR_EQ && p->sel.has_type && m->value.len > 0 &&
			      str_index(m->value, ':') == m->value.len;
		if (beside && str_eq(m->value, p->sel.type[0]))
			return OK;
		if (m->op == SELECTOR_EQ && !beside)
			return set_type(p, m->value, at);
	}
	if (str_eq(m->name, STR("__name__")) && m->op != SELECTOR_EQ) {
		return err_set(p->e, E_INVALID,
			"selector: __name__ is the profile type and takes only =, at column %zu",
			column_of(p, at));
	}
	if (p->sel.matcher_count == SELECTOR_MATCHERS_MAX)
		return err_set(p->e, E_LIMIT,
			"selector: more than %d conditions, from column %zu on",
			SELECTOR_MATCHERS_MAX, column_of(p, at));
	if (!p->sel.matchers) {
		p->sel.matchers = ARENA_ARRAY(p->a, struct selector_matcher, SELECTOR_MATCHERS_MAX);
		if (!p->sel.matchers)
			return no_memory(p);
	}
	if (m->op == SELECTOR_RE || m->op == SELECTOR_NRE) {
		enum status s = compile(p, m, at);
		if (s != OK)
			return s;
	}
	p->sel.matchers[p->sel.matcher_count++] = *m;
	return OK;
}

static enum status parse_label_name(struct parser *p, struct str *out)
{
	size_t from = p->at;
	if (!is_name_start(peek(p)))
		return expected(p, p->at, "a label name or }");
	while (is_name_char(peek(p)))
		p->at++;
	*out = keep(p, from);
	return OK;
}

static enum status parse_item(struct parser *p)
{
	size_t from = p->at;
	struct selector_matcher m = { 0 };
	int c = peek(p);
	bool quoted = c == '"' || c == '\'' || c == '`';
	enum status s = quoted ? parse_string(p, &m.name) : parse_label_name(p, &m.name);
	if (s != OK)
		return s;
	skip_blanks(p);
	if (quoted && (peek(p) == ',' || peek(p) == '}'))
		return set_type(p, m.name, from);
	if (m.name.len == 0)
		return expected(p, from, "a label name");
	s = parse_op(p, &m.op);
	if (s != OK)
		return s;
	skip_blanks(p);
	from = p->at;
	s = parse_string(p, &m.value);
	return s == OK ? add_matcher(p, &m, from) : s;
}

/* Reads the items after the opening brace, up to and with the closing one. */
static enum status parse_items(struct parser *p)
{
	for (;;) {
		skip_blanks(p);
		if (peek(p) == '}') {
			p->at++;
			return OK;
		}
		enum status s = parse_item(p);
		if (s != OK)
			return s;
		skip_blanks(p);
		if (peek(p) == ',')
			p->at++;
		else if (peek(p) != '}')
			return expected(p, p->at, "',' or '}'");
	}
}

/* Characters that profile_add_type_part() keeps in a type, but quotes of all kinds, braces and
 * commas: units like "By/s" need no quotes. */
static bool is_bare_type_char(int c)
{
	return c > ' ' && c != 0x7F && !strchr("{}\"'`,\\", c);
}

static enum status parse(struct parser *p)
{
	enum status s = OK;
	skip_blanks(p);
	size_t from = p->at;
	if (is_name_start(peek(p)) || peek(p) == ':') {
		while (is_bare_type_char(peek(p)))
			p->at++;
		s = set_type(p, keep(p, from), from);
		if (s != OK)
			return s;
		skip_blanks(p);
	}
	if (peek(p) == '{') {
		p->at++;
		s = parse_items(p);
		if (s != OK)
			return s;
		skip_blanks(p);
	}
	if (p->at == p->text.len)
		return OK;
	return expected(p, p->at, from == p->at ? "a profile type or '{'" : "the end");
}

enum status selector_parse(struct str text, struct arena *a, struct selector *out, struct err *e)
{
	if (text.len > SELECTOR_BYTES_MAX)
		return err_set(e, E_INVALID, "selector: %zu bytes, at most %d are taken", text.len,
			SELECTOR_BYTES_MAX);
	struct parser p = { .text = text, .a = a, .e = e };
	p.room = arena_alloc(a, text.len + 1, 1);
	if (!p.room)
		return no_memory(&p);
	enum status s = parse(&p);
	if (s != OK) {
		selector_deinit(&p.sel);
		return s;
	}
	*out = p.sel;
	return OK;
}

void selector_deinit(struct selector *s)
{
	for (uint32_t i = 0; i < s->matcher_count; i++)
		regex_free(s->matchers[i].regex);
	*s = (struct selector){ 0 };
}

bool selector_matches(const struct selector_matcher *m, struct str value)
{
	switch (m->op) {
	case SELECTOR_EQ:
		return str_eq(value, m->value);
	case SELECTOR_NE:
		return !str_eq(value, m->value);
	case SELECTOR_RE:
		return regex_match(m->regex, value.p, value.len);
	case SELECTOR_NRE:
		return !regex_match(m->regex, value.p, value.len);
	}
	UNREACHABLE();
}

/* ---- text again ---- */

static void write_quoted(struct buf *out, struct str s)
{
	static const char named[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
	bool utf8 = str_is_utf8(s);
	buf_u8(out, '"');
	for (size_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.p[i];
		const char *at = c ? strchr(named, c) : NULL;
		if (at)
			buf_printf(out, "\\%c", letters[at - named]);
		else if (c < 0x20 || c == 0x7F || (c >= 0x80 && !utf8))
			buf_printf(out, "\\x%02x", c);
		else
			buf_u8(out, c);
	}
	buf_u8(out, '"');
}

static bool type_is_plain(const struct selector *s)
{
	for (size_t i = 0; i < TYPE_PARTS; i++)
		for (size_t k = 0; k < s->type[i].len; k++)
			if (!is_name_char((uint8_t)s->type[i].p[k]))
				return false;
	return s->type[0].len == 0 || is_name_start((uint8_t)s->type[0].p[0]);
}

/* Writes the type; quoted as a whole if a part has characters that need quotes. */
static void write_type(struct buf *out, const struct selector *s, bool plain)
{
	struct buf text;
	buf_init(&text, SELECTOR_BYTES_MAX);
	for (size_t i = 0; i < TYPE_PARTS; i++) {
		if (i > 0)
			buf_u8(&text, ':');
		buf_str(&text, s->type[i]);
	}
	if (s->delta)
		buf_cstr(&text, ":delta");
	if (text.failed)
		out->failed = true;
	else if (plain)
		buf_str(out, buf_view(&text));
	else
		write_quoted(out, buf_view(&text));
	buf_deinit(&text);
}

void selector_write(struct buf *out, const struct selector *s)
{
	static const char *const ops[] = { [SELECTOR_EQ] = "=",
		[SELECTOR_NE] = "!=",
		[SELECTOR_RE] = "=~",
		[SELECTOR_NRE] = "!~" };
	bool plain = s->has_type && type_is_plain(s);
	if (plain)
		write_type(out, s, true);
	if (plain && s->matcher_count == 0)
		return;
	buf_u8(out, '{');
	if (s->has_type && !plain)
		write_type(out, s, false);
	for (uint32_t i = 0; i < s->matcher_count; i++) {
		const struct selector_matcher *m = &s->matchers[i];
		if (i > 0 || (s->has_type && !plain))
			buf_u8(out, ',');
		if (selector_label_name_ok(m->name))
			buf_str(out, m->name);
		else
			write_quoted(out, m->name);
		buf_cstr(out, ops[m->op]);
		write_quoted(out, m->value);
	}
	buf_u8(out, '}');
}
