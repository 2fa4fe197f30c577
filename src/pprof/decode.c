/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.proto refers to elements by ids that the writer chose (1, 2, 3, … for nearly all, any
 * distinct non-zero number for some) and to strings by index; a table may come after the fields
 * that use it. So one scan notes where each table lies and how many elements it has, and the tables
 * are then read in the order of their dependencies.
 */
#include "base/arena.h"
#include "pb/pb.h"
#include "pprof/ids.h"
#include "pprof/pprof.h"

#include <inttypes.h>
#include <stdio.h>

#define ET_DYN 3 /* elf.h */
#define FIELD(number, wire) ((uint64_t)(number) << 3 | (wire))

enum profile_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_TABLES = 7
};

static const char *const table_names[PPROF_TABLES] = { "", "sample_type", "sample", "mapping",
	"location", "function", "string_table" };

struct table_run {
	const uint8_t *first;
	const uint8_t *end;
	size_t count;
};

/* Where a mapping was in memory, by its place in the table. */
struct loaded {
	uint64_t start;
	uint64_t offset;
};

struct decoder {
	struct str message;
	const struct pprof_options *options;
	struct loaded *loaded; /* NULL: addresses stay as they are */
	struct profile *out;
	struct err *e;
	struct arena arena;
	struct table_run runs[PPROF_TABLES];
	uint32_t *strings;
	size_t string_count;
	struct id_table mappings, locations, functions;
	uint64_t *lost_ids;       /* of functions that have none; NULL: they have */
	struct profile_head head; /* of all columns, without the type */
	uint64_t period_type[2];
	uint32_t *columns; /* heads[] of each sample type */
	size_t column_count;
	int64_t *values;    /* of one sample: column_count */
	struct buf numbers; /* of one sample: PROFILE_LABEL_NUMBERS */
	VEC(uint32_t) stack;
	uint64_t
		comments[PROFILE_COMMENTS_MAX]; /* texts of the message; what is more is left out */
	size_t comment_count;
	uint32_t comment; /* all of them in one: PROFILE_LABEL_COMMENTS of each sample; 0: none */
	uint32_t comment_name;
};

/* ---- failures ---- */

static enum status torn(struct decoder *d, const struct reader *r, int table, size_t index)
{
	return err_set(d->e, E_INVALID, "%s[%zu]: malformed at byte %zu", table_names[table], index,
		(size_t)((const char *)r->at - d->message.p));
}

static enum status dangling(
	struct decoder *d, int table, size_t index, const char *field, uint64_t value)
{
	return err_set(d->e, E_INVALID, "%s[%zu]: %s %" PRIu64 " does not exist",
		table_names[table], index, field, value);
}

/* A table's limit, or memory. */
static enum status not_added(struct decoder *d, enum status s, int table, size_t index)
{
	return err_set(d->e, s, "%s[%zu]: %s", table_names[table], index, status_text(s));
}

/* ---- ids ---- */

static enum status id_add(
	struct decoder *d, struct id_table *t, int table, uint64_t id, uint32_t index)
{
	if (id == 0)
		return err_set(d->e, E_INVALID, "%s[%u]: id 0", table_names[table], t->filled);
	if (id_place(t, id) != NO_ID)
		return err_set(d->e, E_INVALID, "%s[%u]: id %" PRIu64 " is taken",
			table_names[table], t->filled, id);
	return id_append(t, id, index) ? OK : not_added(d, E_NOMEM, table, t->filled);
}

static enum status id_table_init(struct decoder *d, struct id_table *t, int table)
{
	size_t count = d->runs[table].count;
	if (count >= PROFILE_TABLE_MAX)
		return not_added(d, E_LIMIT, table, count);
	t->ids = ARENA_ARRAY(&d->arena, uint64_t, count);
	t->indices = ARENA_ARRAY(&d->arena, uint32_t, count);
	if (!t->ids || !t->indices)
		return not_added(d, arena_status(&d->arena), table, count);
	t->count = (uint32_t)count;
	return OK;
}

static uint32_t string_at(const struct decoder *d, uint64_t index)
{
	return index < d->string_count ? d->strings[index] : NO_ID;
}

/* ---- tables ---- */

typedef enum status element_fn(struct decoder *d, struct str bytes, size_t index);

static enum status each_element(struct decoder *d, int table, element_fn *fn)
{
	const struct table_run *run = &d->runs[table];
	if (run->count == 0)
		return OK;
	struct reader r = reader_over(run->first, (size_t)(run->end - run->first));
	struct pb_field f;
	for (size_t i = 0; pb_next_inline(&r, &f);) {
		if (f.number != (uint32_t)table || f.wire != PB_BYTES)
			continue;
		enum status s = fn(d, f.bytes, i++);
		if (s != OK)
			return s;
	}
	assert(!r.failed); /* find_tables() has read it */
	return OK;
}

static enum status decode_string(struct decoder *d, struct str bytes, size_t index)
{
	if (index == 0 && bytes.len)
		return err_set(d->e, E_INVALID, "string_table[0]: not empty");
	enum status s = profile_add_string(d->out, bytes, &d->strings[index]);
	return s == OK ? OK : not_added(d, s, PPROF_STRING, index);
}

static enum status decode_mapping(struct decoder *d, struct str bytes, size_t index)
{
	struct profile_mapping m = { 0 };
	uint64_t id = 0, build_id = 0, filename = 0;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next_inline(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_VARINT):
			id = f.u64;
			break;
		case FIELD(2, PB_VARINT):
			m.start = f.u64;
			break;
		case FIELD(3, PB_VARINT):
			m.limit = f.u64;
			break;
		case FIELD(4, PB_VARINT):
			m.offset = f.u64;
			break;
		case FIELD(5, PB_VARINT):
			filename = f.u64;
			break;
		case FIELD(6, PB_VARINT):
			build_id = f.u64;
			break;
		default:
			break;
		}
	}
	if (r.failed)
		return torn(d, &r, PPROF_MAPPING, index);
	m.filename = string_at(d, filename);
	uint32_t text = string_at(d, build_id), place;
	if (m.filename == NO_ID)
		return dangling(d, PPROF_MAPPING, index, "filename", filename);
	if (text == NO_ID)
		return dangling(d, PPROF_MAPPING, index, "build_id", build_id);
	enum status s = profile_add_build_id(d->out, profile_str(d->out, text), &m.build_id);
	if (d->loaded)
		d->loaded[index] = (struct loaded){ m.start, m.offset };
	if (d->loaded || d->options->is_vaddr)
		m.start = m.limit = m.offset = 0;
	if (s == OK)
		s = profile_add_mapping(d->out, &m, &place);
	if (s != OK)
		return not_added(d, s, PPROF_MAPPING, index);
	return id_add(d, &d->mappings, PPROF_MAPPING, id, place);
}

static uint32_t clamp_u32(uint64_t v)
{
	return v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* Ids of locations, where functions have lost theirs. */
static enum status read_lost_id(struct decoder *d, struct str bytes, size_t index)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_VARINT)
			d->lost_ids[index] = f.u64;
	return r.failed ? torn(d, &r, PPROF_LOCATION, index) : OK;
}

static enum status find_lost_ids(struct decoder *d)
{
	size_t count = d->runs[PPROF_FUNCTION].count;
	if (!d->options->lost_function_ids || count != d->runs[PPROF_LOCATION].count)
		return OK;
	d->lost_ids = ARENA_ARRAY(&d->arena, uint64_t, count);
	if (!d->lost_ids)
		return not_added(d, arena_status(&d->arena), PPROF_FUNCTION, count);
	return each_element(d, PPROF_LOCATION, read_lost_id);
}

/* Append `s` without its "[go.shape.…]"; one that does not end stays. */
static void put_without_shapes(struct buf *out, struct str s)
{
	const struct str shape = STR("[go.shape.");
	size_t begin = 0; /* of what is not copied yet */
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] != '[' || !str_starts(str_sub(s, i, s.len), shape))
			continue;
		size_t end = i;
		for (uint32_t depth = 0; end < s.len; end++) {
			depth += s.p[end] == '[';
			depth -= s.p[end] == ']';
			if (depth == 0)
				break;
		}
		if (end == s.len)
			break;
		buf_str(out, str_sub(s, begin, i - begin));
		begin = end + 1;
		i = end;
	}
	buf_str(out, str_sub(s, begin, s.len));
}

static enum status drop_shapes(struct decoder *d, uint32_t *name)
{
	struct str s = profile_str(d->out, *name);
	if (str_index(s, '[') == s.len)
		return OK;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, s.len);
	put_without_shapes(&text, s);
	enum status st = buf_status(&text);
	return st == OK ? profile_add_string(d->out, buf_view(&text), name) : st;
}

static enum status decode_function(struct decoder *d, struct str bytes, size_t index)
{
	uint64_t id = 0, texts[3] = { 0 };
	struct profile_function fn = { 0 };
	uint32_t *const to[3] = { &fn.name, &fn.system_name, &fn.filename };
	static const char *const fields[3] = { "name", "system_name", "filename" };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next_inline(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == 1)
			id = f.u64;
		else if (f.number >= 2 && f.number <= 4)
			texts[f.number - 2] = f.u64;
		else if (f.number == 5)
			fn.start_line = clamp_u32(f.u64);
	}
	if (r.failed)
		return torn(d, &r, PPROF_FUNCTION, index);
	if (id == 0 && d->lost_ids)
		id = d->lost_ids[index];
	for (int i = 0; i < 3; i++) {
		*to[i] = string_at(d, texts[i]);
		if (*to[i] == NO_ID)
			return dangling(d, PPROF_FUNCTION, index, fields[i], texts[i]);
	}
	if (fn.name == 0)
		fn.name = fn.system_name;
	struct str name = profile_str(d->out, fn.name);
	if (fn.system_name == 0 &&
		(str_starts(name, STR("<")) || str_starts(name, STR("function <"))))
		fn.system_name = fn.name; /* as it was before encode.c left it out */
	uint32_t place;
	enum status s = OK;
	if (d->options->without_go_shapes) {
		bool same = fn.system_name == fn.name;
		s = drop_shapes(d, &fn.name);
		if (s == OK && !same)
			s = drop_shapes(d, &fn.system_name);
		else
			fn.system_name = fn.name;
	}
	if (s == OK)
		s = profile_add_function(d->out, &fn, &place);
	if (s != OK)
		return not_added(d, s, PPROF_FUNCTION, index);
	return id_add(d, &d->functions, PPROF_FUNCTION, id, place);
}

static enum status decode_line(
	struct decoder *d, const struct pb_field *field, size_t location, struct profile_line *out)
{
	uint64_t function = 0;
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next_inline(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == 1)
			function = f.u64;
		else if (f.number == 2)
			out->line = clamp_u32(f.u64);
		else if (f.number == 3)
			out->column = clamp_u32(f.u64);
	}
	if (r.failed)
		return torn(d, &r, PPROF_LOCATION, location);
	out->function = id_index(&d->functions, function);
	if (function == 0 || out->function == NO_ID)
		return dangling(d, PPROF_LOCATION, location, "a line's function_id", function);
	return OK;
}

/* From an address in memory to one of the ELF file. */
static uint64_t to_vaddr(const struct decoder *d, uint64_t mapping, uint64_t address)
{
	uint32_t at = id_place(&d->mappings, mapping);
	if (at == NO_ID)
		return address;
	const struct pprof_segment *s = &d->options->segments[at];
	if (s->elf_type != ET_DYN)
		return address;
	return address - d->loaded[at].start + d->loaded[at].offset - s->offset + s->vaddr;
}

static enum status decode_location(struct decoder *d, struct str bytes, size_t index)
{
	struct profile_location loc = { 0 };
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t line_count = 0, place;
	uint64_t id = 0, mapping = 0;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next_inline(&r, &f)) {
		enum status s;
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_VARINT):
			id = f.u64;
			break;
		case FIELD(2, PB_VARINT):
			mapping = f.u64;
			break;
		case FIELD(3, PB_VARINT):
			loc.address = f.u64;
			break;
		case FIELD(4, PB_BYTES):
			if (line_count == PROFILE_LINES_MAX)
				return not_added(d, E_LIMIT, PPROF_LOCATION, index);
			lines[line_count] = (struct profile_line){ 0 };
			s = decode_line(d, &f, index, &lines[line_count]);
			if (s != OK)
				return s;
			/* A function without any text says nothing. */
			line_count += lines[line_count].function != 0;
			break;
		default:
			break;
		}
	}
	if (r.failed)
		return torn(d, &r, PPROF_LOCATION, index);
	loc.mapping = id_index(&d->mappings, mapping);
	if (loc.mapping == NO_ID)
		return dangling(d, PPROF_LOCATION, index, "mapping_id", mapping);
	if (d->loaded && mapping)
		loc.address = to_vaddr(d, mapping, loc.address);
	enum status s = profile_add_location(d->out, &loc, lines, line_count, &place);
	if (s != OK)
		return not_added(d, s, PPROF_LOCATION, index);
	return id_add(d, &d->locations, PPROF_LOCATION, id, place);
}

/* ---- sample types ---- */

static bool read_value_type(struct str bytes, uint64_t out[2])
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next_inline(&r, &f))
		if (f.wire == PB_VARINT && (f.number == 1 || f.number == 2))
			out[f.number - 1] = f.u64;
	return !r.failed;
}

static enum status type_part(struct decoder *d, uint64_t index, uint32_t *out)
{
	uint32_t id = string_at(d, index);
	if (id == NO_ID)
		return err_set(d->e, E_INVALID,
			"sample_type or period_type: string %" PRIu64 " does not exist", index);
	return profile_add_type_part(d->out, profile_str(d->out, id), out);
}

static enum status add_column(
	struct decoder *d, uint32_t name, const uint64_t parts[2], uint32_t *out)
{
	struct profile_type t = { .name = name, .delta = d->head.duration_ns != 0 };
	struct profile_head h = d->head;
	enum status s = type_part(d, parts[0], &t.sample_type);
	if (s == OK)
		s = type_part(d, parts[1], &t.sample_unit);
	if (s == OK)
		s = type_part(d, d->period_type[0], &t.period_type);
	if (s == OK)
		s = type_part(d, d->period_type[1], &t.period_unit);
	if (s == OK)
		s = profile_add_type(d->out, &t, &h.type);
	return s == OK ? profile_add_head(d->out, &h, out) : s;
}

static enum status decode_columns(struct decoder *d, struct str name)
{
	const struct table_run *run = &d->runs[PPROF_SAMPLE_TYPE];
	d->column_count = run->count;
	d->columns = ARENA_ARRAY(&d->arena, uint32_t, run->count);
	d->values = ARENA_ARRAY(&d->arena, int64_t, run->count);
	if (!d->columns || !d->values)
		return arena_status(&d->arena);
	if (run->count == 0) {
		if (d->runs[PPROF_SAMPLE].count)
			return err_set(d->e, E_INVALID, "samples without sample_type");
		return OK;
	}
	uint32_t name_id;
	enum status s = profile_add_name(d->out, name.len ? name : STR("unknown"), &name_id);
	struct reader r = reader_over(run->first, (size_t)(run->end - run->first));
	struct pb_field f;
	for (size_t i = 0; s == OK && pb_next_inline(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(PPROF_SAMPLE_TYPE, PB_BYTES))
			continue;
		uint64_t parts[2] = { 0 };
		if (!read_value_type(f.bytes, parts))
			return torn(d, &r, PPROF_SAMPLE_TYPE, i);
		s = add_column(d, name_id, parts, &d->columns[i++]);
	}
	return s;
}

/* ---- comments ---- */

static void note_comments(struct decoder *d, const struct pb_field *f)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t id;
	while (pb_packed_next(&p, &id))
		if (d->comment_count < PROFILE_COMMENTS_MAX)
			d->comments[d->comment_count++] = id;
}

static bool was_before(const struct decoder *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (string_at(d, d->comments[k]) == string_at(d, d->comments[i]))
			return true;
	return false;
}

/* Each once, as many as fit. */
static enum status decode_comments(struct decoder *d)
{
	CLEANUP(buf_deinit) struct buf all;
	buf_init(&all, PROFILE_COMMENTS_BYTES_MAX);
	for (size_t i = 0; i < d->comment_count; i++) {
		uint32_t id = string_at(d, d->comments[i]);
		if (id == NO_ID)
			return err_set(d->e, E_INVALID,
				"comment: string %" PRIu64 " does not exist", d->comments[i]);
		struct str text = profile_str(d->out, id);
		bool fits = text.len > 0 && all.len + 1 + text.len <= PROFILE_COMMENTS_BYTES_MAX &&
			    str_index(text, PROFILE_COMMENTS_END) == text.len;
		if (!fits || was_before(d, i))
			continue;
		if (all.len)
			buf_u8(&all, PROFILE_COMMENTS_END);
		buf_str(&all, text);
	}
	enum status s = buf_status(&all);
	if (s == OK)
		s = profile_add_string(d->out, buf_view(&all), &d->comment);
	return s == OK ? profile_add_string(d->out, STR(PROFILE_LABEL_COMMENTS), &d->comment_name)
		       : s;
}

/* ---- samples ---- */

/* A name that the resource has too becomes exported_NAME. */
static enum status export_name(struct decoder *d, uint32_t *name)
{
	const struct profile_labels *set = &d->out->label_sets.v[d->options->resource];
	bool taken = false;
	for (uint32_t i = 0; i < set->count && !taken; i++)
		taken = d->out->labels.v[set->first + i].name == *name;
	if (!taken)
		return OK;
	struct buf b;
	buf_init(&b, 2048);
	buf_cstr(&b, "exported_");
	buf_str(&b, profile_str(d->out, *name));
	enum status s = buf_status(&b);
	if (s == OK)
		s = profile_add_name(d->out, buf_view(&b), name);
	buf_deinit(&b);
	return s;
}

/* Numbers that are no sample labels are joined into one label, so that they make no series. One
 * that is too long is left out. */
static void add_number(struct decoder *d, struct str name, int64_t number, struct str unit)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "=%" PRId64, number);
	if (str_index(unit, ',') < unit.len)
		unit = STR("");
	size_t begin = d->numbers.len, more = name.len + (size_t)len + unit.len + 2;
	if (name.len == 0 || begin + more > PROFILE_NUMBERS_BYTES_MAX)
		return;
	buf_cstr(&d->numbers, begin ? "," : "");
	buf_str(&d->numbers, name);
	buf_cstr(&d->numbers, text);
	buf_cstr(&d->numbers, unit.len ? ":" : "");
	buf_str(&d->numbers, unit);
}

static enum status add_numbers(struct decoder *d, size_t sample, struct profile_label *out)
{
	enum status s = buf_status(&d->numbers);
	if (s == OK)
		s = profile_add_string(d->out, STR(PROFILE_LABEL_NUMBERS), &out->name);
	if (s == OK)
		s = profile_add_string(d->out, buf_view(&d->numbers), &out->value);
	return s == OK ? OK : not_added(d, s, PPROF_SAMPLE, sample);
}

/* *out has no name if the label went to d->numbers, or if only decoders may give its name. */
static enum status decode_label(
	struct decoder *d, const struct pb_field *field, size_t sample, struct profile_label *out)
{
	uint64_t key = 0, text = 0, unit = 0;
	int64_t number = 0;
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next_inline(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == 1)
			key = f.u64;
		else if (f.number == 2)
			text = f.u64;
		else if (f.number == 3)
			number = (int64_t)f.u64;
		else if (f.number == 4)
			unit = f.u64;
	}
	if (r.failed)
		return torn(d, &r, PPROF_SAMPLE, sample);
	uint32_t name = string_at(d, key), value = string_at(d, text);
	if (name == NO_ID)
		return dangling(d, PPROF_SAMPLE, sample, "a label's key", key);
	if (value == NO_ID)
		return dangling(d, PPROF_SAMPLE, sample, "a label's str", text);
	struct str text_name = profile_str(d->out, name);
	if (d->options->profile_id_is_span && str_eq(text_name, STR("profile_id")))
		text_name = STR("span_id");
	enum status s = profile_add_name(d->out, text_name, &out->name);
	if (s == OK && d->options->resource)
		s = export_name(d, &out->name);
	out->value = value;
	if (s == OK && text == 0 && !profile_label_is_of_sample(profile_str(d->out, out->name))) {
		uint32_t unit_id = string_at(d, unit);
		if (unit_id == NO_ID)
			return dangling(d, PPROF_SAMPLE, sample, "a label's num_unit", unit);
		add_number(d, profile_str(d->out, out->name), number, profile_str(d->out, unit_id));
		out->name = 0;
	} else if (s == OK && profile_label_is_hidden(profile_str(d->out, out->name))) {
		out->name = 0;
	} else if (s == OK && text == 0) {
		char digits[24];
		snprintf(digits, sizeof(digits), "%" PRId64, number);
		s = profile_add_string(d->out, str_of(digits), &out->value);
	}
	return s == OK ? OK : not_added(d, s, PPROF_SAMPLE, sample);
}

static enum status no_location(struct decoder *d, uint64_t id, size_t sample)
{
	return dangling(d, PPROF_SAMPLE, sample, "location_id", id);
}

static enum status add_location_id(struct decoder *d, uint64_t id, size_t sample)
{
	uint32_t location = id_index(&d->locations, id);
	if (id == 0 || location == NO_ID)
		return no_location(d, id, sample);
	if (location != 0 && !VEC_PUSH(&d->stack, location))
		return not_added(d, E_NOMEM, PPROF_SAMPLE, sample);
	return OK;
}

/* Ids of one or two bytes that are their own places, which is most of what a message has. Leaves
 * the reader at the first that is another. */
static enum status read_short_ids(struct decoder *d, struct reader *r, size_t sample)
{
	const uint8_t *p = r->at, *end = r->end;
	const uint32_t *indices = d->locations.indices, filled = d->locations.filled;
	if (!VEC_RESERVE(&d->stack, d->stack.len + (size_t)(end - p)))
		return not_added(d, E_NOMEM, PPROF_SAMPLE, sample);
	uint32_t *to = d->stack.v + d->stack.len;
	while (p < end) {
		uint32_t id = *p, more = 0;
		if (id >= 0x80) {
			if (end - p < 2 || p[1] >= 0x80)
				break;
			more = 1;
			id = (id & 0x7f) | (uint32_t)p[1] << 7;
		}
		if (id - 1 >= filled)
			return no_location(d, id, sample);
		uint32_t location = indices[id - 1];
		*to = location;
		to += location != 0;
		p += 1 + more;
	}
	r->at = p;
	d->stack.len = (size_t)(to - d->stack.v);
	return OK;
}

/* location_id, packed or not. */
static enum status read_locations(struct decoder *d, const struct pb_field *f, size_t sample)
{
	enum status s = OK;
	if (f->wire == PB_VARINT)
		return add_location_id(d, f->u64, sample);
	struct reader r = pb_message(f);
	r.failed |= f->wire != PB_BYTES;
	while (s == OK && !reader_done(&r)) {
		if (!d->locations.sparse) {
			s = read_short_ids(d, &r, sample);
			if (s != OK || reader_done(&r))
				break;
		}
		uint64_t id = reader_varint(&r);
		if (r.failed)
			break;
		s = add_location_id(d, id, sample);
	}
	return s == OK && r.failed ? torn(d, &r, PPROF_SAMPLE, sample) : s;
}

static enum status read_values(
	struct decoder *d, const struct pb_field *f, size_t sample, size_t *io_count)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t v;
	while (pb_packed_next(&p, &v)) {
		if (*io_count < d->column_count)
			d->values[*io_count] = (int64_t)v;
		(*io_count)++;
	}
	return p.failed ? torn(d, &p.r, PPROF_SAMPLE, sample) : OK;
}

static enum status add_sample(
	struct decoder *d, size_t index, const struct profile_label *labels, uint32_t label_count)
{
	struct profile_sample sample = { .time_ns = d->head.time_ns,
		.resource = d->options->resource };
	enum status s = profile_add_labels(d->out, labels, label_count, &sample.own);
	if (s == OK)
		s = profile_add_stack(d->out, d->stack.v, (uint32_t)d->stack.len, &sample.stack);
	for (size_t i = 0; s == OK && i < d->column_count; i++) {
		sample.head = d->columns[i];
		sample.value = d->values[i];
		if (sample.value)
			s = profile_add_sample(d->out, &sample);
		else
			d->out->zero_samples++;
	}
	return s == OK ? OK : not_added(d, s, PPROF_SAMPLE, index);
}

static enum status decode_sample(struct decoder *d, struct str bytes, size_t index)
{
	struct profile_label labels[PROFILE_LABELS_MAX + 2];
	uint32_t label_count = 0;
	size_t value_count = 0;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	VEC_CLEAR(&d->stack);
	buf_clear(&d->numbers);
	while (s == OK && pb_next_inline(&r, &f)) {
		if (f.number == 1) {
			s = read_locations(d, &f, index);
		} else if (f.number == 2) {
			s = read_values(d, &f, index, &value_count);
		} else if (f.number == 3 && f.wire == PB_BYTES) {
			if (label_count == PROFILE_LABELS_MAX)
				return not_added(d, E_LIMIT, PPROF_SAMPLE, index);
			s = decode_label(d, &f, index, &labels[label_count]);
			label_count += s == OK && labels[label_count].name != 0;
		}
	}
	if (s == OK && d->numbers.len)
		s = add_numbers(d, index, &labels[label_count++]);
	if (d->comment && label_count < PROFILE_LABELS_MAX)
		labels[label_count++] = (struct profile_label){ d->comment_name, d->comment };
	if (s != OK)
		return s;
	if (r.failed)
		return torn(d, &r, PPROF_SAMPLE, index);
	if (value_count != d->column_count)
		return err_set(d->e, E_INVALID, "sample[%zu]: %zu values for %zu sample types",
			index, value_count, d->column_count);
	return add_sample(d, index, labels, label_count);
}

/* ---- the message ---- */

static enum status find_tables(struct decoder *d)
{
	struct reader r = reader_over(d->message.p, d->message.len);
	struct pb_field f;
	for (const uint8_t *at = r.at; pb_next_inline(&r, &f); at = r.at) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(9, PB_VARINT):
			d->head.time_ns = (int64_t)f.u64;
			break;
		case FIELD(10, PB_VARINT):
			d->head.duration_ns = (int64_t)f.u64;
			break;
		case FIELD(11, PB_BYTES):
			if (!read_value_type(f.bytes, d->period_type))
				return err_set(d->e, E_INVALID, "period_type: malformed");
			break;
		case FIELD(12, PB_VARINT):
			d->head.period = (int64_t)f.u64;
			break;
		case FIELD(13, PB_VARINT):
		case FIELD(13, PB_BYTES):
			note_comments(d, &f);
			break;
		default:
			if (f.number >= PPROF_TABLES || f.wire != PB_BYTES)
				break;
			if (d->runs[f.number].count++ == 0)
				d->runs[f.number].first = at;
			d->runs[f.number].end = r.at;
		}
	}
	if (r.failed)
		return err_set(
			d->e, E_INVALID, "profile.proto: malformed at byte %zu", reader_offset(&r));
	if (d->head.period < 0)
		return err_set(d->e, E_INVALID, "period %" PRId64, d->head.period);
	if (d->head.time_ns == 0)
		d->head.time_ns = d->options->time_ns;
	if (d->head.time_ns < 0 || d->head.duration_ns < 0)
		return err_set(d->e, E_INVALID, "time_nanos or duration_nanos is negative");
	if (d->head.time_ns > INT64_MAX - d->head.duration_ns)
		return err_set(
			d->e, E_INVALID, "time_nanos and duration_nanos end beyond the year 2262");
	return OK;
}

static enum status init_loaded(struct decoder *d)
{
	size_t segments = d->options->segment_count, mappings = d->runs[PPROF_MAPPING].count;
	if (segments == 0)
		return OK;
	if (segments != mappings)
		return err_set(d->e, E_INVALID, "%zu mappings but %zu executable_info", mappings,
			segments);
	d->loaded = ARENA_ARRAY(&d->arena, struct loaded, mappings);
	return d->loaded ? OK : not_added(d, arena_status(&d->arena), PPROF_MAPPING, mappings);
}

/* Most ids of locations take two bytes. */
static void expect_elements(struct decoder *d)
{
	const struct table_run *samples = &d->runs[PPROF_SAMPLE];
	const struct profile_room r = {
		.strings = d->string_count,
		.functions = d->runs[PPROF_FUNCTION].count,
		.locations = d->runs[PPROF_LOCATION].count,
		.frames = samples->count ? (size_t)(samples->end - samples->first) / 2 : 0,
		.samples = samples->count,
	};
	profile_expect(d->out, &r);
}

static enum status decode_tables(struct decoder *d)
{
	enum status s = find_tables(d);
	if (s == OK)
		s = init_loaded(d);
	if (s != OK)
		return s;
	d->string_count = d->runs[PPROF_STRING].count;
	if (d->string_count == 0)
		return err_set(d->e, E_INVALID, "no string_table");
	d->strings = ARENA_ARRAY(&d->arena, uint32_t, d->string_count);
	if (!d->strings)
		return not_added(d, arena_status(&d->arena), PPROF_STRING, d->string_count);
	s = id_table_init(d, &d->mappings, PPROF_MAPPING);
	if (s == OK)
		s = id_table_init(d, &d->functions, PPROF_FUNCTION);
	if (s == OK)
		s = id_table_init(d, &d->locations, PPROF_LOCATION);
	expect_elements(d);
	if (s == OK)
		s = each_element(d, PPROF_STRING, decode_string);
	if (s == OK)
		s = decode_comments(d);
	if (s == OK)
		s = each_element(d, PPROF_MAPPING, decode_mapping);
	if (s == OK)
		s = find_lost_ids(d);
	if (s == OK)
		s = each_element(d, PPROF_FUNCTION, decode_function);
	if (s == OK)
		s = each_element(d, PPROF_LOCATION, decode_location);
	if (s == OK)
		s = decode_columns(d, d->options->name);
	if (s == OK)
		s = each_element(d, PPROF_SAMPLE, decode_sample);
	return s;
}

enum status pprof_decode(struct str message, struct str name, struct profile *out, struct err *e)
{
	return pprof_decode_with(message, &(struct pprof_options){ .name = name }, out, e);
}

enum status pprof_decode_with(
	struct str message, const struct pprof_options *options, struct profile *out, struct err *e)
{
	struct err none = { 0 };
	struct decoder d = {
		.message = message, .options = options, .out = out, .e = e ? e : &none
	};
	*d.e = (struct err){ 0 };
	/* An element has at least two bytes and asks for at most 12 of its id table, or 28 if it is
	 * a mapping. */
	arena_init(&d.arena, message.len * 14 + 4096);
	size_t samples = out->samples.len;
	buf_init(&d.numbers, PROFILE_NUMBERS_BYTES_MAX);
	enum status s = decode_tables(&d);
	if (s != OK) {
		out->samples.len = samples;
		if (!d.e->text[0])
			err_set(d.e, s, "%s", status_text(s));
	}
	arena_deinit(&d.arena);
	buf_deinit(&d.numbers);
	map_deinit(&d.mappings.map);
	map_deinit(&d.locations.map);
	map_deinit(&d.functions.map);
	VEC_FREE(&d.stack);
	return s;
}
