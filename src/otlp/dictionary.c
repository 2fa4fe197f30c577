/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary's tables may come in any order, so one scan notes the place and length of each,
 * and then the tables are read in the order of their references: strings; attributes and functions;
 * mappings; locations; stacks; links. Writers keep a table's elements together, so each byte is
 * read about twice.
 *
 * From 1.8 on element 0 of each table is its null element, whatever it contains. An element with a
 * reference out of range becomes BAD: only samples that use it are refused. An element that is not
 * a message ends the decoding.
 */
#include "otlp/decoder.h"

#include <inttypes.h>
#include <stdio.h>

enum status otlp_torn(struct decoder *d, const struct reader *r, const char *what, size_t index)
{
	return err_set(d->e, E_INVALID, "%s[%zu]: malformed at byte %zu", what, index,
		(size_t)((const char *)r->at - d->message.p));
}

static void note_defect(struct decoder *d, const char *table, size_t index, const char *field)
{
	if (!d->defect[0])
		snprintf(d->defect, sizeof(d->defect), "%s[%zu]: %s", table, index, field);
}

static uint32_t clamp_u32(uint64_t v)
{
	return v > UINT32_MAX ? 0 : (uint32_t)v;
}

enum status otlp_any_value(struct decoder *d, struct str bytes, uint32_t *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint32_t id = 0;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f)) {
		buf_clear(&d->text);
		double number;
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_BYTES):
			s = profile_add_string(d->out, str_trim(f.bytes), &id);
			continue;
		case FIELD(2, PB_VARINT):
			buf_cstr(&d->text, f.u64 ? "true" : "false");
			break;
		case FIELD(3, PB_VARINT):
			buf_printf(&d->text, "%" PRId64, (int64_t)f.u64);
			break;
		case FIELD(4, PB_FIXED64):
			memcpy(&number, &f.u64, sizeof(number));
			buf_json_double(&d->text, number);
			break;
		case FIELD(8, PB_VARINT):
			id = id_at(&d->strings, f.u64);
			if (id != BAD)
				s = profile_add_string(
					d->out, str_trim(profile_str(d->out, id)), &id);
			continue;
		default:
			continue;
		}
		s = buf_status(&d->text);
		if (s == OK)
			s = profile_add_string(d->out, buf_view(&d->text), &id);
	}
	if (s == OK && r.failed)
		return otlp_torn(d, &r, "value", 0);
	if (s == OK)
		*out = id;
	return s;
}

/* ---- where the tables lie ---- */

static enum status find_tables(struct decoder *d, struct str bytes)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	size_t n = 0;
	for (const uint8_t *at = r.at; pb_next(&r, &f); at = r.at, n++) {
		if (f.number >= DICT_FIELDS || f.wire != PB_BYTES)
			continue;
		struct table_run *run = &d->runs[f.number];
		if (run->count++ == 0)
			run->first = at;
		run->end = r.at;
	}
	return r.failed ? otlp_torn(d, &r, "dictionary", n) : OK;
}

/* Reads the elements of one table; *io_index counts from 0. */
static struct reader table_reader(const struct decoder *d, enum dictionary_field field)
{
	const struct table_run *run = &d->runs[field];
	return reader_over(run->first, run->first ? (size_t)(run->end - run->first) : 0);
}

static bool table_next(struct reader *r, enum dictionary_field field, struct str *out)
{
	struct pb_field f;
	while (pb_next(r, &f)) {
		if (f.number == field && f.wire == PB_BYTES) {
			*out = f.bytes;
			return true;
		}
	}
	assert(!r->failed); /* find_tables() has read it */
	return false;
}

/* ---- elements ---- */

typedef enum status element_fn(struct decoder *d, struct str bytes, size_t index, uint32_t *out);

static enum status decode_table(
	struct decoder *d, enum dictionary_field field, struct id_table *t, element_fn *fn)
{
	size_t count = d->runs[field].count;
	if (count == 0)
		return OK;
	t->ids = ARENA_ARRAY(&d->arena, uint32_t, count);
	if (!t->ids)
		return err_set(d->e, arena_status(&d->arena), "%zu elements", count);
	t->count = count;
	struct reader r = table_reader(d, field);
	struct str bytes;
	for (size_t i = 0; table_next(&r, field, &bytes); i++) {
		/* Arena memory is zero. Some writers begin their locations at 0. */
		if (i == 0 && d->schema != SCHEMA_1_7 && field != DICT_LOCATION)
			continue;
		enum status s = fn(d, bytes, i, &t->ids[i]);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status decode_string(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	enum status s = profile_add_string(d->out, bytes, out);
	return s == OK ? OK : err_set(d->e, s, "string_table[%zu]: %s", index, status_text(s));
}

static enum status decode_function(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	struct profile_function fn = { 0 };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_VARINT):
			fn.name = id_at(&d->strings, f.u64);
			break;
		case FIELD(2, PB_VARINT):
			fn.system_name = id_at(&d->strings, f.u64);
			break;
		case FIELD(3, PB_VARINT):
			fn.filename = id_at(&d->strings, f.u64);
			break;
		case FIELD(4, PB_VARINT):
			fn.start_line = clamp_u32(f.u64);
			break;
		default:
			break;
		}
	}
	if (r.failed)
		return otlp_torn(d, &r, "function_table", index);
	if (fn.name == BAD || fn.system_name == BAD || fn.filename == BAD) {
		note_defect(d, "function_table", index, "a string index is out of range");
		*out = BAD;
		return OK;
	}
	if (fn.name == 0)
		fn.name = fn.system_name;
	return profile_add_function(d->out, &fn, out);
}

/* Finds out by its key what an attribute means besides a label. */
static enum status interpret_attribute(struct decoder *d, struct str key, struct attribute *a)
{
	struct str value = profile_str(d->out, a->value);
	a->is_gnu = str_eq(key, STR(ATTRIBUTE_BUILD_ID));
	a->is_build_id = a->is_gnu || str_eq(key, STR(ATTRIBUTE_CONTENT_ID));
	a->is_frame_kind = str_eq(key, STR(ATTRIBUTE_FRAME_TYPE));
	if (a->is_frame_kind)
		a->frame_kind = (uint8_t)frame_kind_parse(value);
	if (a->is_build_id)
		return profile_add_build_id(d->out, value, &a->build_id);
	return profile_add_name(d->out, otlp_label_of_attribute(key), &a->name);
}

static enum status decode_attribute(struct decoder *d, struct str bytes, size_t index)
{
	struct attribute *a = &d->attributes[index];
	struct str text = STR(""); /* 1.7: the key itself */
	uint32_t key = 0;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(1, PB_VARINT))
			key = id_at(&d->strings, f.u64);
		else if (FIELD(f.number, f.wire) == FIELD(2, PB_BYTES))
			s = otlp_any_value(d, f.bytes, &a->value);
		else if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			text = f.bytes;
	}
	if (s != OK)
		return err_prefix(d->e, s, "attribute_table[%zu]", index);
	if (r.failed)
		return otlp_torn(d, &r, "attribute_table", index);
	if (key == BAD || a->value == BAD) {
		note_defect(d, "attribute_table", index, "a string index is out of range");
		*a = (struct attribute){ .name = BAD };
		return OK;
	}
	return interpret_attribute(d, text.len ? text : profile_str(d->out, key), a);
}

static enum status decode_attributes(struct decoder *d)
{
	size_t count = d->runs[DICT_ATTRIBUTE].count;
	if (count == 0)
		return OK;
	d->attributes = ARENA_ARRAY(&d->arena, struct attribute, count);
	if (!d->attributes)
		return err_set(d->e, arena_status(&d->arena), "%zu attributes", count);
	d->attribute_count = count;
	struct reader r = table_reader(d, DICT_ATTRIBUTE);
	struct str bytes;
	for (size_t i = 0; table_next(&r, DICT_ATTRIBUTE, &bytes); i++) {
		enum status s = i || d->schema == SCHEMA_1_7 ? decode_attribute(d, bytes, i) : OK;
		if (s != OK)
			return s;
	}
	return OK;
}

/* A mapping's or location's attribute_indices. False: truncated, or an index is out of range (then
 * *bad). */
static bool read_attributes(struct decoder *d, const struct pb_field *f,
	void (*use)(void *element, const struct attribute *a), void *element, bool *bad)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (i == 0 && d->schema != SCHEMA_1_7)
			continue;
		if (i < d->attribute_count && d->attributes[i].name != BAD)
			use(element, &d->attributes[i]);
		else
			*bad = true;
	}
	return !p.failed;
}

struct mapping_element {
	struct profile_mapping m;
	bool is_gnu;
};

static void use_in_mapping(void *element, const struct attribute *a)
{
	struct mapping_element *m = element;
	if (a->is_build_id && a->build_id && (a->is_gnu || !m->is_gnu)) {
		m->m.build_id = a->build_id;
		m->is_gnu = a->is_gnu;
	}
}

static enum status decode_mapping(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	struct mapping_element m = { 0 };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool sound = true, bad = false;
	while (sound && pb_next(&r, &f)) {
		switch (f.number) {
		case 1:
			m.m.start = f.u64;
			break;
		case 2:
			m.m.limit = f.u64;
			break;
		case 3:
			m.m.offset = f.u64;
			break;
		case 4:
			m.m.filename = id_at(&d->strings, f.u64);
			break;
		case 5:
			sound = read_attributes(d, &f, use_in_mapping, &m, &bad);
			break;
		default:
			break;
		}
	}
	if (r.failed || !sound)
		return otlp_torn(d, &r, "mapping_table", index);
	if (bad || m.m.filename == BAD) {
		note_defect(d, "mapping_table", index, "an index is out of range");
		*out = BAD;
		return OK;
	}
	return profile_add_mapping(d->out, &m.m, out);
}

struct location_element {
	struct profile_location loc;
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t line_count;
	const char *defect; /* NULL: none */
};

static void use_in_location(void *element, const struct attribute *a)
{
	struct location_element *l = element;
	if (a->is_frame_kind)
		l->loc.kind = a->frame_kind;
}

/* Reads a line. False: truncated. */
static bool read_line(struct decoder *d, const struct pb_field *field, struct location_element *l)
{
	struct profile_line line = { 0 };
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_VARINT):
			line.function = id_at(&d->functions, f.u64);
			break;
		case FIELD(2, PB_VARINT):
			line.line = clamp_u32(f.u64);
			break;
		case FIELD(3, PB_VARINT):
			line.column = clamp_u32(f.u64);
			break;
		default:
			break;
		}
	}
	if (line.function == BAD)
		l->defect = "a line's function_index is out of range";
	else if (l->line_count == PROFILE_LINES_MAX)
		l->defect = "too many lines";
	else if (line.function != 0) /* a line without a function is dropped */
		l->lines[l->line_count++] = line;
	return !r.failed;
}

static enum status decode_location(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	struct location_element l;
	l.loc = (struct profile_location){ 0 };
	l.line_count = 0;
	l.defect = NULL;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool sound = true, bad = false;
	while (sound && pb_next(&r, &f)) {
		if (f.number == 1)
			l.loc.mapping = id_at(&d->mappings, f.u64);
		else if (f.number == 2)
			l.loc.address = f.u64;
		else if (FIELD(f.number, f.wire) == FIELD(3, PB_BYTES))
			sound = read_line(d, &f, &l);
		else if (f.number == (d->schema == SCHEMA_1_7 ? 5 : 4))
			sound = read_attributes(d, &f, use_in_location, &l, &bad);
	}
	if (r.failed || !sound)
		return otlp_torn(d, &r, "location_table", index);
	if (l.loc.mapping == BAD)
		l.defect = "mapping_index is out of range";
	else if (bad)
		l.defect = "an attribute index is out of range";
	if (l.defect) {
		note_defect(d, "location_table", index, l.defect);
		*out = BAD;
		return OK;
	}
	if (index == 0 && d->schema != SCHEMA_1_7 && l.line_count == 0)
		return OK; /* the null element */
	return profile_add_location(d->out, &l.loc, l.lines, l.line_count, out);
}

static enum status decode_stack(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool sound = true, bad = false;
	VEC_CLEAR(&d->stack);
	while (sound && pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		struct pb_packed p = pb_packed(&f, PB_VARINT);
		uint64_t i;
		while (pb_packed_next(&p, &i)) {
			uint32_t id = id_at(&d->locations, i);
			bad |= id == BAD;
			if (id != 0 && !VEC_PUSH(&d->stack, id))
				return E_NOMEM;
		}
		sound = !p.failed;
	}
	if (r.failed || !sound)
		return otlp_torn(d, &r, "stack_table", index);
	if (bad) {
		note_defect(d, "stack_table", index, "a location index is out of range");
		*out = BAD;
		return OK;
	}
	return profile_add_stack(d->out, d->stack.v, (uint32_t)d->stack.len, out);
}

static enum status decode_link(struct decoder *d, struct str bytes, size_t index, uint32_t *out)
{
	struct profile_link link = { 0 };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool bad = false, any = false;
	while (pb_next(&r, &f)) {
		if (f.wire != PB_BYTES || f.bytes.len == 0 || f.number > 2)
			continue;
		uint8_t *to = f.number == 1 ? link.trace_id : link.span_id;
		size_t size = f.number == 1 ? sizeof(link.trace_id) : sizeof(link.span_id);
		bad |= f.bytes.len != size;
		memcpy(to, f.bytes.p, MIN(size, f.bytes.len));
		for (size_t i = 0; i < size; i++)
			any |= to[i] != 0;
	}
	if (r.failed)
		return otlp_torn(d, &r, "link_table", index);
	if (bad) {
		note_defect(d, "link_table", index, "an id is not of 16 or 8 bytes");
		*out = BAD;
		return OK;
	}
	*out = 0;
	return any ? profile_add_link(d->out, &link, out) : OK;
}

enum status otlp_decode_dictionary(struct decoder *d, struct str bytes)
{
	enum status s = find_tables(d, bytes);
	if (s == OK)
		s = decode_table(d, DICT_STRING, &d->strings, decode_string);
	if (s == OK)
		s = decode_attributes(d);
	if (s == OK)
		s = decode_table(d, DICT_FUNCTION, &d->functions, decode_function);
	if (s == OK)
		s = decode_table(d, DICT_MAPPING, &d->mappings, decode_mapping);
	if (s == OK)
		s = decode_table(d, DICT_LOCATION, &d->locations, decode_location);
	if (s == OK && d->schema != SCHEMA_1_7)
		s = decode_table(d, DICT_STACK, &d->stacks, decode_stack);
	if (s == OK)
		s = decode_table(d, DICT_LINK, &d->links, decode_link);
	return s;
}
