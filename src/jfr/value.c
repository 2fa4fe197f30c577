/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values follow each other in the order of their class's fields: integers packed, constants as
 * keys, other objects inline. Fields that were requested by name are kept, those between are
 * skipped, and those after the last are not read. An inline object has at least one field, so it
 * takes at least a byte: as the depth is limited, the bytes bound the work. A constant is read each
 * time it is referred to, so its bytes are counted each time.
 */
#include "jfr/internal.h"

#include <string.h>

uint64_t jfr_varint_long(struct reader *r)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < 8; i++) {
		uint8_t byte = reader_u8(r);
		v |= (uint64_t)(byte & 0x7F) << (7 * i);
		if (byte < 0x80)
			return v;
	}
	return v | (uint64_t)reader_u8(r) << 56;
}

struct reader jfr_at(const struct jfr_chunk *c, size_t offset)
{
	struct reader r = reader_over(c->bytes.p, c->bytes.len);
	reader_seek(&r, offset);
	return r;
}

enum status jfr_torn(struct jfr_chunk *c, const struct reader *r, const char *what)
{
	return err_set(c->e, E_INVALID, "%s: malformed at byte %zu", what,
		(size_t)((const char *)r->at - c->bytes.p));
}

/* ---- texts ---- */

enum { TEXT_NULL, TEXT_EMPTY, TEXT_CONSTANT, TEXT_UTF8, TEXT_CHARS, TEXT_LATIN1 };

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_u8(b, (uint8_t)c);
	} else if (c < 0x800) {
		buf_u8(b, (uint8_t)(0xC0 | c >> 6));
		buf_u8(b, (uint8_t)(0x80 | (c & 0x3F)));
	} else if (c < 0x10000) {
		buf_u8(b, (uint8_t)(0xE0 | c >> 12));
		buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
		buf_u8(b, (uint8_t)(0x80 | (c & 0x3F)));
	} else {
		buf_u8(b, (uint8_t)(0xF0 | c >> 18));
		buf_u8(b, (uint8_t)(0x80 | (c >> 12 & 0x3F)));
		buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
		buf_u8(b, (uint8_t)(0x80 | (c & 0x3F)));
	}
}

static enum status keep(struct jfr_chunk *c, struct buf *b, struct str *out)
{
	enum status s = buf_status(b);
	char *copy = s == OK ? arena_copy(&c->arena, b->data, b->len) : NULL;
	if (!copy && b->len)
		return err_set(c->e, s == OK ? arena_status(&c->arena) : s, "texts");
	*out = str_make(copy, b->len);
	return OK;
}

/* Whether all bytes are ASCII. */
static bool is_plain(struct str s)
{
	uint8_t all = 0;
	for (size_t i = 0; i < s.len; i++) /* no branch, so that the compiler vectorizes it */
		all |= (uint8_t)s.p[i];
	return all < 0x80;
}

/* Reads UTF-16, each unit packed: ASCII is then the same as plain text. */
static enum status read_chars(struct jfr_chunk *c, struct reader *r, size_t count, struct str *out)
{
	struct str plain = str_make(r->at, count);
	if (count <= reader_left(r) && is_plain(plain)) {
		reader_skip(r, count);
		*out = plain;
		return OK;
	}
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 3 * JFR_TEXT_MAX);
	for (size_t i = 0; i < count && !r->failed; i++) {
		uint32_t unit = (uint32_t)jfr_varint(r) & 0xFFFF;
		if ((unit & 0xFC00) == 0xD800 && i + 1 < count) {
			uint32_t low = (uint32_t)jfr_varint(r) & 0xFFFF;
			unit = 0x10000 + ((unit & 0x3FF) << 10) + (low & 0x3FF);
			i++;
		}
		put_utf8(&b, unit);
	}
	return r->failed ? jfr_torn(c, r, "text") : keep(c, &b, out);
}

static enum status read_latin1(struct jfr_chunk *c, struct str bytes, struct str *out)
{
	*out = bytes;
	if (is_plain(bytes))
		return OK;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 3 * JFR_TEXT_MAX);
	for (size_t i = 0; i < bytes.len; i++)
		put_utf8(&b, (uint8_t)bytes.p[i]);
	return keep(c, &b, out);
}

static enum status read_constant_text(struct jfr_chunk *c, uint64_t key, struct str *out)
{
	struct jfr_constant *k =
		c->string_class == MAP_NONE ? NULL : jfr_constant_find(c, c->string_class, key);
	*out = STR("");
	if (!k)
		return OK;
	struct reader r = jfr_at(c, k->offset);
	if (r.at < r.end && *r.at == TEXT_CONSTANT)
		return jfr_torn(c, &r, "a text that names another");
	return jfr_constant_text(c, k, out);
}

enum status jfr_text(struct jfr_chunk *c, struct reader *r, struct str *out)
{
	uint8_t form = reader_u8(r);
	uint64_t n = form < TEXT_CONSTANT ? 0 : jfr_varint(r);
	*out = STR("");
	if (r->failed || form > TEXT_LATIN1)
		return jfr_torn(c, r, "text");
	if (form < TEXT_CONSTANT)
		return OK;
	if (form == TEXT_CONSTANT)
		return read_constant_text(c, n, out);
	if (n > JFR_TEXT_MAX)
		return err_set(c->e, E_LIMIT, "a text of %llu bytes", (unsigned long long)n);
	if (form == TEXT_CHARS)
		return read_chars(c, r, (size_t)n, out);
	struct str bytes = reader_str(r, (size_t)n);
	if (r->failed)
		return jfr_torn(c, r, "text");
	if (form == TEXT_LATIN1)
		return read_latin1(c, bytes, out);
	*out = bytes;
	return OK;
}

static void skip_text(struct reader *r)
{
	uint8_t form = reader_u8(r);
	uint64_t n = form < TEXT_CONSTANT ? 0 : jfr_varint(r);
	if (form > TEXT_LATIN1)
		r->failed = true;
	else if (form == TEXT_CHARS)
		for (uint64_t i = 0; i < n && !r->failed; i++)
			jfr_varint(r);
	else if (form > TEXT_CONSTANT)
		reader_skip(r, (size_t)n);
}

/* ---- objects ---- */

static bool skip_object(struct jfr_chunk *c, struct reader *r, uint32_t class, int depth);

/* Skips a word at a time: each integer ends with its first byte below 0x80. An integer of nine
 * bytes may end with any byte; it begins with a word of eight bytes of 0x80 or more, and is read by
 * itself. */
bool jfr_skip_varints(struct reader *r, uint64_t count)
{
	const uint64_t high = 0x8080808080808080;
	const uint8_t *p = r->at, *end = r->end;
	while (count && !r->failed) {
		uint64_t word = high;
		if (end - p >= 8)
			memcpy(&word, p, 8);
		uint64_t ends = ~word & high;
		uint64_t n = (ends >> 7) * 0x0101010101010101 >> 56;
		if (end - p < 8 || n == 0) {
			r->at = p;
			jfr_varint(r);
			p = r->at;
			count--;
		} else if (n <= count) {
			p += 8 - __builtin_clzll(ends) / 8;
			count -= n;
		} else {
			for (; count > 1; count--)
				ends &= ends - 1;
			p += __builtin_ctzll(ends) / 8 + 1;
			count = 0;
		}
	}
	r->at = p;
	return !r->failed;
}

static bool skip_field(struct jfr_chunk *c, struct reader *r, const struct jfr_field *f, int depth)
{
	const struct jfr_class *k = &c->classes.v[f->class];
	uint64_t count = f->is_array ? jfr_varint(r) : 1, all;
	uint64_t flat = f->is_constant ? 1 : depth < JFR_DEPTH_MAX ? k->varints : 0;
	if (flat)
		return !__builtin_mul_overflow(count, flat, &all) && jfr_skip_varints(r, all);
	for (uint64_t i = 0; i < count; i++)
		if (!skip_object(c, r, f->class, depth))
			return false;
	return !r->failed;
}

/* False: truncated, an object without fields, or too deep. */
static bool skip_object(struct jfr_chunk *c, struct reader *r, uint32_t class, int depth)
{
	const struct jfr_class *k = &c->classes.v[class];
	switch (k->kind) {
	case JFR_INTEGER:
		jfr_varint(r);
		return !r->failed;
	case JFR_BYTE:
		reader_skip(r, 1);
		return !r->failed;
	case JFR_FLOAT:
		reader_skip(r, 4);
		return !r->failed;
	case JFR_DOUBLE:
		reader_skip(r, 8);
		return !r->failed;
	case JFR_STRING:
		skip_text(r);
		return !r->failed;
	case JFR_OBJECT:
		break;
	}
	if (k->field_count == 0 || depth == JFR_DEPTH_MAX)
		return false;
	if (k->varints)
		return jfr_skip_varints(r, k->varints);
	for (uint32_t i = 0; i < k->field_count; i++)
		if (!skip_field(c, r, &c->fields.v[k->first_field + i], depth + 1))
			return false;
	return true;
}

enum status jfr_skip(struct jfr_chunk *c, struct reader *r, uint32_t class)
{
	return skip_object(c, r, class, 0) ? OK : jfr_torn(c, r, "an object");
}

static void plan(struct jfr_chunk *c, struct jfr_class *k, const char *const *names)
{
	k->asked = names;
	k->asked_end = 0;
	for (uint32_t i = 0; i < k->field_count; i++) {
		struct jfr_field *f = &c->fields.v[k->first_field + i];
		f->slot = -1;
		for (int8_t n = 0; names[n]; n++)
			if (str_eq(f->name, str_of(names[n])))
				f->slot = n;
		if (f->slot >= 0)
			k->asked_end = i + 1;
	}
}

static enum status read_value(struct jfr_chunk *c, struct reader *r, const struct jfr_field *f,
	bool is_last, struct jfr_value *out)
{
	enum jfr_kind kind = c->classes.v[f->class].kind;
	*out = (struct jfr_value){ .class = f->class, .is_constant = f->is_constant };
	if (f->is_array) {
		struct reader begin = *r;
		out->kind = JFR_LIST;
		out->number = jfr_varint(&begin);
		out->at = (size_t)((const char *)begin.at - c->bytes.p);
		bool whole = is_last ? !begin.failed : skip_field(c, r, f, 0);
		return whole ? OK : jfr_torn(c, r, "a list");
	}
	out->kind = JFR_NUMBER;
	if (f->is_constant || kind == JFR_INTEGER) {
		out->number = jfr_varint(r);
	} else if (kind == JFR_BYTE) {
		out->number = reader_u8(r);
	} else if (kind == JFR_STRING) {
		out->kind = JFR_TEXT;
		return jfr_text(c, r, &out->text);
	} else {
		out->kind = JFR_ABSENT;
		return jfr_skip(c, r, f->class);
	}
	return r->failed ? jfr_torn(c, r, "a field") : OK;
}

/* jfr_read() for a class of only integers, which reads all of them. */
static enum status read_flat(
	struct jfr_chunk *c, struct reader *r, const struct jfr_class *k, struct jfr_value *out)
{
	for (uint32_t i = 0; i < k->asked_end; i++) {
		const struct jfr_field *f = &c->fields.v[k->first_field + i];
		uint64_t number = jfr_varint(r);
		if (f->slot >= 0)
			out[f->slot] = (struct jfr_value){ .kind = JFR_NUMBER,
				.is_constant = f->is_constant,
				.class = f->class,
				.number = number };
	}
	return r->failed ? jfr_torn(c, r, "a field") : OK;
}

enum status jfr_read(struct jfr_chunk *c, struct reader *r, uint32_t class,
	const char *const *names, struct jfr_value *out)
{
	struct jfr_class *k = &c->classes.v[class];
	enum status s = OK;
	for (size_t i = 0; names[i]; i++)
		out[i] = (struct jfr_value){ .kind = JFR_ABSENT };
	if (k->kind != JFR_OBJECT)
		return jfr_torn(c, r, "an object that is none");
	if (k->asked != names)
		plan(c, k, names);
	if (k->varints)
		return read_flat(c, r, k, out);
	for (uint32_t i = 0; s == OK && i < k->asked_end; i++) {
		const struct jfr_field *f = &c->fields.v[k->first_field + i];
		if (f->slot >= 0)
			s = read_value(c, r, f, i + 1 == k->asked_end, &out[f->slot]);
		else if (!skip_field(c, r, f, 0))
			s = jfr_torn(c, r, "a field");
	}
	return s;
}

bool jfr_read_numbers(struct jfr_chunk *c, struct reader *r, uint32_t class,
	const char *const *names, uint64_t *out)
{
	struct jfr_class *k = &c->classes.v[class];
	struct reader at = *r;
	uint64_t n[JFR_VALUES_MAX + 1] = {
		0
	}; /* the first is for fields that were not requested */
	if (k->kind != JFR_OBJECT || !k->varints)
		return false;
	if (k->asked != names)
		plan(c, k, names);
	const struct jfr_field *f = &c->fields.v[k->first_field];
	for (uint32_t i = 0; i < k->field_count; i++)
		n[f[i].slot + 1] = jfr_varint(&at);
	if (at.failed)
		return false;
	for (size_t i = 0; names[i]; i++)
		out[i] = n[i + 1];
	*r = at;
	return true;
}

enum status jfr_skip_rest(struct jfr_chunk *c, struct reader *r, uint32_t class)
{
	const struct jfr_class *k = &c->classes.v[class];
	for (uint32_t i = k->asked_end; i < k->field_count; i++)
		if (!skip_field(c, r, &c->fields.v[k->first_field + i], 0))
			return jfr_torn(c, r, "a field");
	return OK;
}

/* ---- constants ---- */

struct constant_key {
	uint32_t class;
	uint64_t key;
};

static bool constant_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct constant_key *k = key;
	const struct jfr_constant *found = &((const struct jfr_chunk *)ctx)->constants.v[value];
	return found->class == k->class && found->key == k->key;
}

struct jfr_constant *jfr_constant_find(struct jfr_chunk *c, uint32_t class, uint64_t key)
{
	struct constant_key k = { class, key };
	uint32_t at = map_find(
		&c->constant_index, hash_u64(key ^ (uint64_t) class << 48), constant_equal, c, &k);
	return at == MAP_NONE ? NULL : &c->constants.v[at];
}

enum status jfr_spend(struct jfr_chunk *c, size_t bytes)
{
	if (bytes > c->reread_bytes)
		return err_set(c->e, E_LIMIT, "constants are read more than %d times over",
			JFR_REREAD_FACTOR);
	c->reread_bytes -= bytes;
	return OK;
}

enum status jfr_constant_read(struct jfr_chunk *c, const struct jfr_constant *k,
	const char *const *names, struct jfr_value *out)
{
	struct reader r = jfr_at(c, k->offset);
	enum status s = jfr_spend(c, k->bytes);
	return s == OK ? jfr_read(c, &r, k->class, names, out) : s;
}

enum status jfr_constant_text(struct jfr_chunk *c, const struct jfr_constant *k, struct str *out)
{
	struct reader r = jfr_at(c, k->offset);
	enum status s = jfr_spend(c, k->bytes);
	return s == OK ? jfr_text(c, &r, out) : s;
}
