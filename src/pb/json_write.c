/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a message's bytes to JSON. Fields may come in any order and lists in pieces, so for each
 * member that occurs the message is searched for its values; pb_next() skips nested messages
 * without reading them.
 */
#include "pb/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct writer {
	struct buf *out;
	unsigned flags;
	uint32_t depth;
	struct err *e;
};

static enum status write_message(struct writer *w, const struct pb_desc *d, struct str bytes);

static void put_float(struct buf *out, uint64_t bits, bool single)
{
	float f;
	double d;
	memcpy(&d, &bits, sizeof(d));
	memcpy(&f, &bits, sizeof(f));
	double v = single ? (double)f : d;
	if (isnan(v)) {
		buf_cstr(out, "\"NaN\"");
	} else if (isinf(v)) {
		buf_cstr(out, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	} else if (!single) {
		buf_json_double(out, v);
	} else {
		char text[32];
		for (int digits = 6; digits <= 9; digits++) {
			snprintf(text, sizeof(text), "%.*g", digits, v);
			if (strtof(text, NULL) == f)
				break;
		}
		buf_cstr(out, text);
	}
}

static void put_enum(struct writer *w, const struct pb_member *m, int32_t number)
{
	for (size_t i = 0; i < m->values->count && !(w->flags & PB_ENUM_NUMBERS); i++)
		if (m->values->values[i].number == number) {
			buf_printf(w->out, "\"%s\"", m->values->values[i].name);
			return;
		}
	buf_printf(w->out, "%d", number);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void put_bits(struct writer *w, const struct pb_member *m, uint64_t bits)
{
	switch (m->kind) {
	case PB_KIND_DOUBLE:
	case PB_KIND_FLOAT:
		put_float(w->out, bits, m->kind == PB_KIND_FLOAT);
		break;
	case PB_KIND_INT64:
	case PB_KIND_SFIXED64:
		buf_printf(w->out, "\"%lld\"", (long long)bits);
		break;
	case PB_KIND_SINT64:
		buf_printf(w->out, "\"%lld\"", (long long)unzigzag(bits));
		break;
	case PB_KIND_UINT64:
	case PB_KIND_FIXED64:
		buf_printf(w->out, "\"%llu\"", (unsigned long long)bits);
		break;
	case PB_KIND_INT32:
	case PB_KIND_SFIXED32:
		buf_printf(w->out, "%d", (int32_t)bits);
		break;
	case PB_KIND_SINT32:
		buf_printf(w->out, "%d", (int32_t)unzigzag(bits));
		break;
	case PB_KIND_UINT32:
	case PB_KIND_FIXED32:
		buf_printf(w->out, "%u", (uint32_t)bits);
		break;
	case PB_KIND_BOOL:
		buf_cstr(w->out, bits ? "true" : "false");
		break;
	case PB_KIND_ENUM:
		put_enum(w, m, (int32_t)bits);
		break;
	case PB_KIND_STRING:
	case PB_KIND_BYTES:
	case PB_KIND_MESSAGE:
		UNREACHABLE();
	}
}

static enum status write_value(
	struct writer *w, const struct pb_member *m, const struct pb_field *f)
{
	if (m->kind == PB_KIND_MESSAGE)
		return write_message(w, m->message, f->bytes);
	if (m->kind == PB_KIND_STRING) {
		buf_json_str(w->out, f->bytes);
	} else if (m->kind == PB_KIND_BYTES) {
		buf_u8(w->out, '"');
		pb_bytes_write(w->out, m, f->bytes);
		buf_u8(w->out, '"');
	} else {
		put_bits(w, m, f->u64);
	}
	return OK;
}

static void put_name(struct writer *w, const struct pb_member *m, bool *first)
{
	if (!*first)
		buf_u8(w->out, ',');
	*first = false;
	buf_u8(w->out, '"');
	pb_put_camel(w->out, m->name);
	buf_cstr(w->out, "\":");
}

/* Finds the last value of a field, which is the valid one; false: there is none. */
static bool find_last(struct str bytes, const struct pb_member *m, struct pb_field *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool found = false;
	while (pb_next(&r, &f))
		if (f.number == m->number && f.wire == pb_kind_wire(m->kind)) {
			*out = f;
			found = true;
		}
	return found;
}

static enum status write_list(struct writer *w, const struct pb_member *m, struct str bytes)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool first = true, numeric = pb_is_numeric(m->kind);
	buf_u8(w->out, '[');
	while (pb_next(&r, &f)) {
		if (f.number != m->number)
			continue;
		struct pb_packed p = pb_packed(&f, pb_kind_wire(m->kind));
		uint64_t bits;
		while (numeric && pb_packed_next(&p, &bits)) {
			buf_cstr(w->out, first ? "" : ",");
			first = false;
			put_bits(w, m, bits);
		}
		if (numeric && p.failed)
			return err_set(w->e, E_INVALID, "%s: torn list", m->name);
		if (numeric || f.wire != PB_BYTES)
			continue;
		buf_cstr(w->out, first ? "" : ",");
		first = false;
		enum status s = write_value(w, m, &f);
		if (s != OK)
			return s;
	}
	buf_u8(w->out, ']');
	return OK;
}

static enum status write_entry(struct writer *w, const struct pb_member *m, struct str entry)
{
	const struct pb_member *key = pb_desc_find(m->message, 1);
	const struct pb_member *value = pb_desc_find(m->message, 2);
	struct pb_field k = { .bytes = STR("") }, v = { .bytes = STR("") };
	assert(key && value);
	(void)find_last(entry, key, &k);
	(void)find_last(entry, value, &v);
	bool bare = key->kind != PB_KIND_STRING;
	size_t begun = w->out->len;
	if (bare)
		buf_u8(w->out, '"');
	enum status s = write_value(w, key, &k);
	/* Keys of 64 bits are quoted already. */
	if (bare && w->out->len > begun + 1 && w->out->data[begun + 1] == '"') {
		memmove(w->out->data + begun, w->out->data + begun + 1, w->out->len - begun - 1);
		w->out->len--;
	} else if (bare) {
		buf_u8(w->out, '"');
	}
	buf_u8(w->out, ':');
	return s == OK ? write_value(w, value, &v) : s;
}

static enum status write_map(struct writer *w, const struct pb_member *m, struct str bytes)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool first = true;
	buf_u8(w->out, '{');
	while (pb_next(&r, &f)) {
		if (f.number != m->number || f.wire != PB_BYTES)
			continue;
		buf_cstr(w->out, first ? "" : ",");
		first = false;
		enum status s = write_entry(w, m, f.bytes);
		if (s != OK)
			return s;
	}
	buf_u8(w->out, '}');
	return OK;
}

static enum status write_member(
	struct writer *w, const struct pb_member *m, struct str bytes, bool present, bool *first)
{
	if (m->flags & PB_REPEATED) {
		if (!present && !(w->flags & PB_EMIT_ZERO))
			return OK;
		put_name(w, m, first);
		return m->flags & PB_MAP ? write_map(w, m, bytes) : write_list(w, m, bytes);
	}
	bool told = m->oneof || m->flags & PB_OPTIONAL;
	struct pb_field f = { .bytes = STR("") };
	if (present)
		present = find_last(bytes, m, &f);
	bool zero = f.u64 == 0 && f.bytes.len == 0;
	bool message = m->kind == PB_KIND_MESSAGE;
	if (present && zero && !told && !message)
		present = false;
	if (!present && (told || !(w->flags & PB_EMIT_ZERO)))
		return OK;
	put_name(w, m, first);
	if (!present && message) {
		buf_cstr(w->out, "null");
		return OK;
	}
	return write_value(w, m, &f);
}

/* *out, bit i: member i occurs. */
static enum status find_present(
	struct writer *w, const struct pb_desc *d, struct str bytes, uint64_t *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint32_t one_at[sizeof(d->oneofs) / sizeof(d->oneofs[0]) + 1] = { 0 };
	*out = 0;
	while (pb_next(&r, &f)) {
		const struct pb_member *m = pb_desc_find(d, f.number);
		if (!m)
			continue;
		/* In a oneof the last member wins. */
		if (m->oneof && one_at[m->oneof])
			*out &= ~(UINT64_C(1) << (one_at[m->oneof] - 1));
		if (m->oneof)
			one_at[m->oneof] = (uint32_t)(m - d->members) + 1;
		*out |= UINT64_C(1) << (m - d->members);
	}
	if (r.failed)
		return err_set(w->e, E_INVALID, "%s: malformed field at byte %zu", d->name,
			reader_offset(&r));
	return OK;
}

static enum status write_plain(struct writer *w, const struct pb_desc *d, struct str bytes)
{
	uint64_t present;
	bool first = true;
	enum status s = find_present(w, d, bytes, &present);
	if (s != OK)
		return s;
	buf_u8(w->out, '{');
	for (size_t i = 0; i < d->count; i++) {
		s = write_member(w, &d->members[i], bytes, present >> i & 1, &first);
		if (s != OK)
			return s;
	}
	buf_u8(w->out, '}');
	return OK;
}

static enum status write_message(struct writer *w, const struct pb_desc *d, struct str bytes)
{
	struct pb_field seconds = { 0 }, nanos = { 0 };
	if (w->depth == PB_JSON_WRITE_DEPTH_MAX)
		return err_set(w->e, E_LIMIT, "JSON of more than %d levels; ask for protobuf",
			PB_JSON_WRITE_DEPTH_MAX);
	if (d->form == PB_PLAIN) {
		w->depth++;
		enum status s = write_plain(w, d, bytes);
		w->depth--;
		return s;
	}
	(void)find_last(bytes, &d->members[0], &seconds);
	(void)find_last(bytes, &d->members[1], &nanos);
	if (d->form == PB_TIMESTAMP)
		pb_timestamp_write(w->out, (int64_t)seconds.u64, (int32_t)nanos.u64);
	else
		pb_duration_write(w->out, (int64_t)seconds.u64, (int32_t)nanos.u64);
	return OK;
}

enum status pb_json_encode(
	const struct pb_desc *d, struct str bytes, unsigned flags, struct buf *out, struct err *e)
{
	struct writer w = { .out = out, .flags = flags, .e = e };
	enum status s = write_message(&w, d, bytes);
	if (s == OK && out->failed)
		s = err_set(e, buf_status(out), "the JSON");
	return s;
}
