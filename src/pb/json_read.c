/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts JSON to a message's bytes in one pass: each key is looked up in the table and its value
 * is written at once, nested messages between pb_begin() and pb_end(). A key, or a member of a
 * oneof, that comes twice in an object is refused. Depth is bounded by PB_JSON_DEPTH_MAX, in
 * skipped values too.
 */
#include "pb/internal.h"

struct json {
	struct reader r;
	unsigned flags;
	uint32_t depth;
	struct buf text; /* the string or number read last */
	bool quoted;     /* it was a string */
	struct err *e;
};

static enum status fail(struct json *j, const char *what)
{
	return err_set(j->e, E_INVALID, "%s at byte %zu of the JSON", what, reader_offset(&j->r));
}

/* The next byte that is no white space; -1 at the end. */
static int peek(struct json *j)
{
	while (j->r.at < j->r.end &&
		(*j->r.at == ' ' || *j->r.at == '\n' || *j->r.at == '\r' || *j->r.at == '\t'))
		j->r.at++;
	return j->r.at < j->r.end ? *j->r.at : -1;
}

static bool take(struct json *j, char c)
{
	if (peek(j) != c)
		return false;
	j->r.at++;
	return true;
}

/* ---- strings ---- */

static bool hex4(struct json *j, uint32_t *out)
{
	struct str s = reader_str(&j->r, 4);
	uint64_t v;
	if (j->r.failed || !str_parse_u64(s, 16, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_u8(b, (uint8_t)c);
		return;
	}
	if (c < 0x800) {
		buf_u8(b, (uint8_t)(0xC0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_u8(b, (uint8_t)(0xE0 | c >> 12));
		} else {
			buf_u8(b, (uint8_t)(0xF0 | c >> 18));
			buf_u8(b, (uint8_t)(0x80 | (c >> 12 & 0x3F)));
		}
		buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
	}
	buf_u8(b, (uint8_t)(0x80 | (c & 0x3F)));
}

/* Decodes a character after "\u". */
static bool unicode(struct json *j)
{
	uint32_t c, low;
	if (!hex4(j, &c))
		return false;
	if (c >= 0xDC00 && c <= 0xDFFF)
		return false;
	if (c >= 0xD800 && c <= 0xDBFF) {
		if (reader_u8(&j->r) != '\\' || reader_u8(&j->r) != 'u' || !hex4(j, &low) ||
			low < 0xDC00 || low > 0xDFFF)
			return false;
		c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
	}
	put_utf8(&j->text, c);
	return true;
}

static bool escape(struct json *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = (char)reader_u8(&j->r);
	if (j->r.failed)
		return false;
	if (c == 'u')
		return unicode(j);
	const char *at = c ? strchr(from, c) : NULL;
	if (!at)
		return false;
	buf_u8(&j->text, (uint8_t)to[at - from]);
	return true;
}

/* Reads a string into j->text; the cursor is at its first quote. */
static enum status read_string(struct json *j)
{
	buf_clear(&j->text);
	j->quoted = true;
	if (!take(j, '"'))
		return fail(j, "a string is expected");
	for (;;) {
		const uint8_t *p = j->r.at;
		while (p < j->r.end && *p != '"' && *p != '\\' && *p >= 0x20)
			p++;
		buf_put(&j->text, j->r.at, (size_t)(p - j->r.at));
		j->r.at = p;
		if (p == j->r.end)
			return fail(j, "a string that does not end");
		if (*p < 0x20)
			return fail(j, "a control character in a string");
		j->r.at++;
		if (*p == '"')
			break;
		if (!escape(j))
			return fail(j, "a bad escape");
	}
	if (j->text.failed)
		return err_set(j->e, buf_status(&j->text), "a string of the JSON");
	if (!str_is_utf8(buf_view(&j->text)))
		return fail(j, "a string that is not UTF-8 ends");
	return OK;
}

/* Reads a number, true, false, null or a string. */
static enum status read_scalar(struct json *j)
{
	int c = peek(j);
	if (c == '"')
		return read_string(j);
	buf_clear(&j->text);
	j->quoted = false;
	const uint8_t *begin = j->r.at;
	while (j->r.at < j->r.end && !strchr(" \n\r\t,]}{[:\"", (char)*j->r.at))
		j->r.at++;
	if (j->r.at == begin)
		return fail(j, "a value is expected");
	buf_put(&j->text, begin, (size_t)(j->r.at - begin));
	return OK;
}

static bool text_is(const struct json *j, const char *word)
{
	return !j->quoted && str_eq(buf_view(&j->text), str_of(word));
}

static bool take_null(struct json *j)
{
	(void)peek(j);
	if (reader_left(&j->r) < 4 || memcmp(j->r.at, "null", 4) != 0)
		return false;
	j->r.at += 4;
	return true;
}

/* ---- what is not wanted ---- */

static enum status skip_value(struct json *j);

static enum status skip_list(struct json *j, char close)
{
	if (take(j, close))
		return OK;
	do {
		enum status s = OK;
		if (close == '}') {
			s = read_string(j);
			if (s == OK && !take(j, ':'))
				s = fail(j, "':' is expected");
		}
		if (s == OK)
			s = skip_value(j);
		if (s != OK)
			return s;
	} while (take(j, ','));
	return take(j, close) ? OK : fail(j, "',' or the end of a list is expected");
}

static enum status skip_value(struct json *j)
{
	static const struct pb_member number = { .kind = PB_KIND_DOUBLE };
	uint64_t bits;
	if (j->depth == PB_JSON_DEPTH_MAX)
		return fail(j, "too many levels");
	enum status s = OK;
	j->depth++;
	if (take(j, '{')) {
		s = skip_list(j, '}');
	} else if (take(j, '[')) {
		s = skip_list(j, ']');
	} else {
		s = read_scalar(j);
		bool known = text_is(j, "true") || text_is(j, "false") || text_is(j, "null");
		if (s == OK && !j->quoted && !known &&
			pb_scalar_read(&number, buf_view(&j->text), &bits, NULL) != OK)
			s = fail(j, "a value that is none ends");
	}
	j->depth--;
	return s;
}

/* ---- values ---- */

static enum status read_message(struct json *j, const struct pb_desc *d, struct buf *out);

/* Converts j->text to the scalar's bits. */
static enum status scalar_bits(struct json *j, const struct pb_member *m, uint64_t *out)
{
	struct str text = buf_view(&j->text);
	/* true is not a number, and "true" not a bool; numbers may be quoted. */
	if (m->kind == PB_KIND_BOOL && j->quoted)
		return err_set(j->e, E_INVALID, "true or false is expected, not a string");
	return pb_scalar_read(m, text, out, j->e);
}

static enum status put_text(struct json *j, const struct pb_member *m, struct buf *out)
{
	struct str text = buf_view(&j->text);
	if (!j->quoted)
		return err_set(j->e, E_INVALID, "a string is expected, not %.*s",
			STR_ARG(str_sub(text, 0, 20)));
	bool always = m->oneof || m->flags & (PB_OPTIONAL | PB_REPEATED);
	if (text.len == 0 && !always)
		return OK;
	size_t begun = pb_begin(out, m->number);
	if (m->kind == PB_KIND_STRING)
		buf_str(out, text);
	else if (!pb_bytes_read(out, m, text))
		return err_set(
			j->e, E_INVALID, m->flags & PB_HEX ? "not hexadecimal" : "not base64");
	pb_end(out, begun);
	return OK;
}

static enum status read_value(struct json *j, const struct pb_member *m, struct buf *out)
{
	uint64_t bits = 0;
	if (m->kind == PB_KIND_MESSAGE) {
		size_t begun = pb_begin(out, m->number);
		enum status s = read_message(j, m->message, out);
		if (s == OK)
			pb_end(out, begun);
		return s;
	}
	enum status s = read_scalar(j);
	if (s == OK && !pb_is_numeric(m->kind))
		return put_text(j, m, out);
	if (s == OK)
		s = scalar_bits(j, m, &bits);
	if (s == OK)
		pb_scalar_put(out, m, bits);
	return s;
}

/* Reads a list like [1, 2, 3]; numbers are packed. */
static enum status read_list(struct json *j, const struct pb_member *m, struct buf *out)
{
	if (!take(j, '['))
		return fail(j, "a list is expected");
	if (take(j, ']'))
		return OK;
	bool packed = pb_is_numeric(m->kind);
	size_t begun = packed ? pb_begin(out, m->number) : 0;
	do {
		uint64_t bits;
		enum status s = OK;
		if (!packed) {
			s = read_value(j, m, out);
		} else {
			s = read_scalar(j);
			if (s == OK)
				s = scalar_bits(j, m, &bits);
			if (s == OK)
				pb_scalar_write(out, m->kind, bits);
		}
		if (s != OK)
			return s;
	} while (take(j, ','));
	if (packed)
		pb_end(out, begun);
	return take(j, ']') ? OK : fail(j, "',' or ']' is expected");
}

/* Reads a map {"key": value}; each pair is a message of key and value. */
static enum status read_map(struct json *j, const struct pb_member *m, struct buf *out)
{
	const struct pb_member *key = pb_desc_find(m->message, 1);
	const struct pb_member *value = pb_desc_find(m->message, 2);
	assert(key && value);
	if (!take(j, '{'))
		return fail(j, "an object is expected");
	if (take(j, '}'))
		return OK;
	do {
		uint64_t bits = 0;
		size_t begun = pb_begin(out, m->number);
		enum status s = read_string(j);
		if (s == OK && key->kind == PB_KIND_STRING)
			s = put_text(j, key, out);
		else if (s == OK)
			s = pb_scalar_read(key, buf_view(&j->text), &bits, j->e);
		if (s == OK && key->kind != PB_KIND_STRING)
			pb_scalar_put(out, key, bits);
		if (s == OK && !take(j, ':'))
			s = fail(j, "':' is expected");
		if (s == OK)
			s = read_value(j, value, out);
		if (s != OK)
			return s;
		pb_end(out, begun);
	} while (take(j, ','));
	return take(j, '}') ? OK : fail(j, "',' or '}' is expected");
}

static enum status read_member(struct json *j, const struct pb_member *m, struct buf *out)
{
	enum status s;
	if (take_null(j))
		return OK;
	if (m->flags & PB_MAP)
		s = read_map(j, m, out);
	else if (m->flags & PB_REPEATED)
		s = read_list(j, m, out);
	else
		s = read_value(j, m, out);
	return s == OK ? OK : err_prefix(j->e, s, "%s", m->name);
}

/* Finds the key's member (NULL: skip it); the sets are those of this object. */
static enum status find_key(struct json *j, const struct pb_desc *d, uint64_t *seen,
	uint64_t *oneofs, const struct pb_member **out_member)
{
	enum status s = read_string(j);
	if (s != OK)
		return s;
	struct str name = buf_view(&j->text);
	const struct pb_member *m = pb_desc_find_name(d, name);
	*out_member = m;
	if (!m && j->flags & PB_IGNORE_UNKNOWN)
		return OK;
	if (!m)
		return err_set(j->e, E_INVALID, "unknown field \"%.*s\" of %s",
			STR_ARG(str_sub(name, 0, 60)), d->name);
	uint64_t bit = UINT64_C(1) << (m - d->members);
	if (*seen & bit)
		return err_set(j->e, E_INVALID, "%s: given twice", m->name);
	*seen |= bit;
	if (m->oneof && *oneofs & UINT64_C(1) << m->oneof)
		return err_set(
			j->e, E_INVALID, "%s: another of the same choice is given too", m->name);
	if (m->oneof)
		*oneofs |= UINT64_C(1) << m->oneof;
	return OK;
}

static enum status read_object(struct json *j, const struct pb_desc *d, struct buf *out)
{
	uint64_t seen = 0, oneofs = 0;
	assert(d->count <= PB_MEMBERS_MAX);
	if (!take(j, '{'))
		return fail(j, "an object is expected");
	if (take(j, '}'))
		return OK;
	do {
		const struct pb_member *m;
		enum status s = find_key(j, d, &seen, &oneofs, &m);
		if (s == OK && !take(j, ':'))
			s = fail(j, "':' is expected");
		if (s == OK)
			s = m ? read_member(j, m, out) : skip_value(j);
		if (s != OK)
			return s;
	} while (take(j, ','));
	return take(j, '}') ? OK : fail(j, "',' or '}' is expected");
}

static enum status read_message(struct json *j, const struct pb_desc *d, struct buf *out)
{
	if (j->depth == PB_JSON_DEPTH_MAX)
		return fail(j, "too many levels");
	j->depth++;
	enum status s;
	if (d->form == PB_PLAIN) {
		s = read_object(j, d, out);
	} else {
		s = read_string(j);
		if (s == OK && d->form == PB_TIMESTAMP)
			s = pb_timestamp_read(buf_view(&j->text), out, j->e);
		else if (s == OK)
			s = pb_duration_read(buf_view(&j->text), out, j->e);
	}
	j->depth--;
	return s;
}

enum status pb_json_decode(
	const struct pb_desc *d, struct str json, unsigned flags, struct buf *out, struct err *e)
{
	struct json j = { .r = reader_over(json.p, json.len), .flags = flags, .e = e };
	buf_init(&j.text, json.len + 1);
	enum status s = read_message(&j, d, out);
	if (s == OK && peek(&j) >= 0)
		s = fail(&j, "more than one value");
	if (s == OK && out->failed)
		s = err_set(e, buf_status(out), "the message");
	buf_deinit(&j.text);
	return s;
}
