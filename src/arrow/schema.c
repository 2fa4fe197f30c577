/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes fields of a Schema message. Flatbuffers may share tables, so that few bytes can describe a
 * tree of any size: depth and number of fields are limited. Fields with the same dictionary id
 * share a slot; the first of them gives the type of its values.
 */
#include "arrow/internal.h"

#include <inttypes.h>

#define EXTENSION_NAME "ARROW:extension:name"

static enum status no_memory(struct arrow_stream *s, struct err *e)
{
	enum status st = arena_status(&s->arena);
	return err_set(e, st, "schema: %s", status_text(st));
}

static bool bits_are_known(int32_t bits)
{
	return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/* Reads an integer type, also for indices of a dictionary. False: an invalid width. */
static bool read_int(const struct fb_table *type, uint8_t *out_bits, bool *out_signed)
{
	int32_t bits = fb_i32(type, INT_BITS, 0);
	*out_bits = (uint8_t)bits;
	*out_signed = fb_u8(type, INT_SIGNED, 0) != 0;
	return bits_are_known(bits);
}

static enum status set_int(struct arrow_field *f, unsigned bits, uint8_t unit)
{
	f->type = ARROW_INT;
	f->bits = (uint8_t)bits;
	f->is_signed = true;
	f->unit = unit;
	return OK;
}

static enum status set_fixed(struct arrow_field *f, int32_t bytes)
{
	f->type = ARROW_FIXED;
	f->width = (uint32_t)bytes;
	return bytes >= 0 ? OK : E_INVALID;
}

static enum status set_variable(struct arrow_field *f, enum arrow_type t, bool text, bool large)
{
	f->type = t;
	f->is_text = text;
	f->is_large = large;
	return OK;
}

/* Reads a type of times; the default unit of a timestamp is the second, that of others the
 * millisecond. */
static enum status read_time_type(
	enum arrow_logical logical, const struct fb_table *t, struct arrow_field *f)
{
	int16_t unit = fb_i16(t, TYPE_FIRST, logical == LOGICAL_TIMESTAMP ? 0 : 1);
	unsigned bits = 64;
	if (unit < 0 || unit > 3)
		return E_INVALID;
	if (logical == LOGICAL_DATE)
		bits = unit == 0 ? 32 : 64;
	if (logical == LOGICAL_TIME) {
		bits = (unsigned)fb_i32(t, TIME_BITS, 32);
		if (bits != 32 && bits != 64)
			return E_INVALID;
	}
	f->is_time = logical == LOGICAL_TIMESTAMP;
	return set_int(f, bits, (uint8_t)unit);
}

static enum status read_fixed_type(
	enum arrow_logical logical, const struct fb_table *t, struct arrow_field *f)
{
	static const int32_t interval_bytes[] = { 4, 8, 16 };
	int16_t unit;
	int32_t bits;
	switch (logical) {
	case LOGICAL_DECIMAL:
		bits = fb_i32(t, DECIMAL_BITS, 128);
		return bits % 8 ? E_INVALID : set_fixed(f, bits / 8);
	case LOGICAL_INTERVAL:
		unit = fb_i16(t, TYPE_FIRST, 0);
		return unit < 0 || unit > 2 ? E_INVALID : set_fixed(f, interval_bytes[unit]);
	default:
		return set_fixed(f, fb_i32(t, TYPE_FIRST, 0));
	}
}

static enum status read_type(
	enum arrow_logical logical, const struct fb_table *t, struct arrow_field *f)
{
	int16_t precision;
	switch (logical) {
	case LOGICAL_NULL:
		f->type = ARROW_NULL;
		return OK;
	case LOGICAL_INT:
		f->type = ARROW_INT;
		return read_int(t, &f->bits, &f->is_signed) ? OK : E_INVALID;
	case LOGICAL_FLOAT:
		f->type = ARROW_FLOAT;
		precision = fb_i16(t, TYPE_FIRST, 0);
		f->bits = (uint8_t)(16 << (precision & 3));
		return precision < 0 || precision > 2 ? E_INVALID : OK;
	case LOGICAL_BOOL:
		f->type = ARROW_BOOL;
		return OK;
	case LOGICAL_DATE:
	case LOGICAL_TIME:
	case LOGICAL_TIMESTAMP:
	case LOGICAL_DURATION:
		return read_time_type(logical, t, f);
	case LOGICAL_DECIMAL:
	case LOGICAL_INTERVAL:
	case LOGICAL_FIXED_BINARY:
		return read_fixed_type(logical, t, f);
	case LOGICAL_BINARY:
	case LOGICAL_UTF8:
		return set_variable(f, ARROW_BINARY, logical == LOGICAL_UTF8, false);
	case LOGICAL_LARGE_BINARY:
	case LOGICAL_LARGE_UTF8:
		return set_variable(f, ARROW_BINARY, logical == LOGICAL_LARGE_UTF8, true);
	case LOGICAL_BINARY_VIEW:
	case LOGICAL_UTF8_VIEW:
		return set_variable(f, ARROW_VIEW, logical == LOGICAL_UTF8_VIEW, false);
	case LOGICAL_LIST:
	case LOGICAL_MAP:
	case LOGICAL_LARGE_LIST:
		return set_variable(f, ARROW_LIST, false, logical == LOGICAL_LARGE_LIST);
	case LOGICAL_LIST_VIEW:
	case LOGICAL_LARGE_LIST_VIEW:
		return set_variable(f, ARROW_LIST_VIEW, false, logical == LOGICAL_LARGE_LIST_VIEW);
	case LOGICAL_FIXED_LIST:
		f->type = ARROW_FIXED_LIST;
		f->width = (uint32_t)fb_i32(t, TYPE_FIRST, 0);
		return f->width > INT32_MAX ? E_INVALID : OK;
	case LOGICAL_STRUCT:
		f->type = ARROW_STRUCT;
		return OK;
	case LOGICAL_UNION:
		f->type = ARROW_UNION;
		f->is_dense = fb_i16(t, TYPE_FIRST, 0) == 1;
		return OK;
	case LOGICAL_RUNS:
		f->type = ARROW_RUNS;
		return OK;
	case LOGICAL_NONE:
	default:
		return E_UNSUPPORTED;
	}
}

/* Checks the number and form of the children that the type needs. */
static const char *wrong_children(const struct arrow_field *f)
{
	const struct arrow_field *ends = f->children;
	switch (f->type) {
	case ARROW_LIST:
	case ARROW_LIST_VIEW:
	case ARROW_FIXED_LIST:
		return f->child_count == 1 ? NULL : "a list must have one child";
	case ARROW_RUNS:
		if (f->child_count != 2)
			return "run ends and values are needed";
		if (ends->type != ARROW_INT || !ends->is_signed || ends->bits < 16 ||
			ends->has_dictionary)
			return "run ends must be int16, int32 or int64";
		return NULL;
	case ARROW_STRUCT:
	case ARROW_UNION:
		return NULL;
	default:
		return f->child_count == 0 ? NULL : "this type has no children";
	}
}

/* ---- dictionaries ---- */

static enum status add_dictionary(struct arrow_stream *s, struct arrow_field *f,
	const struct fb_table *encoding, struct err *e)
{
	struct fb_table index = fb_sub(encoding, ENCODING_INDEX_TYPE);
	int64_t id = fb_i64(encoding, ENCODING_ID, 0);
	f->has_dictionary = true;
	f->index_bits = 32;
	f->index_signed = true;
	if (index.r && !read_int(&index, &f->index_bits, &f->index_signed))
		return err_set(e, E_INVALID, "dictionary indices of %u bits", f->index_bits);
	if (f->type == ARROW_RUNS)
		return err_set(e, E_UNSUPPORTED, "a dictionary of run-end encoded values");
	uint32_t i = 0;
	while (i < s->dictionary_count && s->dictionaries[i].id != id)
		i++;
	if (i == s->dictionary_count) {
		if (i == ARROW_DICTIONARIES_MAX)
			return err_set(
				e, E_LIMIT, "more than %d dictionaries", ARROW_DICTIONARIES_MAX);
		s->dictionaries[i] = (struct arrow_dictionary_slot){ .id = id, .values = f };
		s->dictionary_count++;
	} else if (s->dictionaries[i].values->type != f->type ||
		   s->dictionaries[i].values->child_count != f->child_count) {
		return err_set(e, E_INVALID, "dictionary %" PRId64 " has values of two types", id);
	}
	f->dictionary = i;
	return OK;
}

/* ---- fields ---- */

static void read_extension(const struct fb_table *t, struct arrow_field *f)
{
	uint32_t count;
	size_t first = fb_vector(t, FIELD_METADATA, 4, &count);
	for (uint32_t i = 0; i < count && !t->r->failed; i++) {
		struct fb_table pair = fb_table_at(t->r, fb_follow(t->r, first + (size_t)4 * i));
		if (str_eq(fb_str(&pair, PAIR_KEY), STR(EXTENSION_NAME)))
			f->extension = fb_str(&pair, PAIR_VALUE);
	}
}

static enum status read_fields(struct arrow_stream *s, const struct fb_table *parent, unsigned id,
	int depth, struct arrow_field *out, struct err *e);

static enum status read_field(struct arrow_stream *s, const struct fb_table *t, int depth,
	struct arrow_field *f, struct err *e)
{
	f->name = fb_str(t, FIELD_NAME);
	f->nullable = fb_u8(t, FIELD_NULLABLE, 0) != 0;
	uint8_t logical = fb_u8(t, FIELD_TYPE_TYPE, 0);
	struct fb_table type = fb_sub(t, FIELD_TYPE);
	enum status st = read_type((enum arrow_logical)logical, &type, f);
	if (st != OK)
		return err_set(e, st,
			st == E_UNSUPPORTED ? "type %u is not known" : "type %u is malformed",
			logical);
	read_extension(t, f);
	st = read_fields(s, t, FIELD_CHILDREN, depth + 1, f, e);
	if (st != OK)
		return st;
	const char *wrong = wrong_children(f);
	if (wrong)
		return err_set(e, E_INVALID, "%s", wrong);
	struct fb_table encoding = fb_sub(t, FIELD_DICTIONARY);
	return encoding.r ? add_dictionary(s, f, &encoding, e) : OK;
}

/* Reads a vector of Field as the children of `out`. */
static enum status read_fields(struct arrow_stream *s, const struct fb_table *parent, unsigned id,
	int depth, struct arrow_field *out, struct err *e)
{
	uint32_t count;
	size_t first = fb_vector(parent, id, 4, &count);
	if (count > ARROW_FIELDS_MAX - s->field_count)
		return err_set(e, E_LIMIT, "more than %d fields", ARROW_FIELDS_MAX);
	if (count && depth > ARROW_DEPTH_MAX)
		return err_set(e, E_LIMIT, "fields nested deeper than %d", ARROW_DEPTH_MAX);
	s->field_count += count;
	struct arrow_field *fields = ARENA_ARRAY(&s->arena, struct arrow_field, count);
	if (!fields && count)
		return no_memory(s, e);
	out->children = fields;
	out->child_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct fb_table t =
			fb_table_at(parent->r, fb_follow(parent->r, first + (size_t)4 * i));
		enum status st = read_field(s, &t, depth, &fields[i], e);
		if (st != OK)
			return err_prefix(e, st, "%.*s", STR_ARG(str_sub(fields[i].name, 0, 64)));
		if (parent->r->failed)
			return err_set(e, E_INVALID, "malformed at byte %zu of the metadata",
				reader_offset(parent->r));
	}
	return OK;
}

static enum status read_metadata(
	struct arrow_stream *s, const struct fb_table *schema, struct err *e)
{
	uint32_t count;
	size_t first = fb_vector(schema, SCHEMA_METADATA, 4, &count);
	if (count > ARROW_FIELDS_MAX)
		return err_set(e, E_LIMIT, "more than %d entries of metadata", ARROW_FIELDS_MAX);
	s->metadata = ARENA_ARRAY(&s->arena, struct str, (size_t)2 * count);
	if (!s->metadata && count)
		return no_memory(s, e);
	for (uint32_t i = 0; i < count; i++) {
		struct fb_table pair =
			fb_table_at(schema->r, fb_follow(schema->r, first + (size_t)4 * i));
		s->metadata[2 * i] = fb_str(&pair, PAIR_KEY);
		s->metadata[2 * i + 1] = fb_str(&pair, PAIR_VALUE);
	}
	s->metadata_count = count;
	return OK;
}

enum status arrow_schema_read(struct arrow_stream *s, const struct fb_table *schema, struct err *e)
{
	if (fb_i16(schema, SCHEMA_ENDIANNESS, 0) != 0)
		return err_set(e, E_UNSUPPORTED, "schema: big endian");
	s->root = (struct arrow_field){ .type = ARROW_STRUCT };
	s->dictionaries =
		ARENA_ARRAY(&s->arena, struct arrow_dictionary_slot, ARROW_DICTIONARIES_MAX);
	if (!s->dictionaries)
		return no_memory(s, e);
	enum status st = read_fields(s, schema, SCHEMA_FIELDS, 1, &s->root, e);
	if (st == OK)
		st = read_metadata(s, schema, e);
	if (st == OK && schema->r->failed)
		st = err_set(e, E_INVALID, "malformed at byte %zu of the metadata",
			reader_offset(schema->r));
	return st == OK ? OK : err_prefix(e, st, "schema");
}
