/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings, functions and locations: what is known about the code that samples lie in. */
#include "pprof/decode.h"

#include <inttypes.h>

#define ET_DYN 3 /* elf.h */

/* ---- ids ---- */

static enum status id_add(
	struct decoder *d, struct id_table *t, int table, uint64_t id, uint32_t index)
{
	if (id_append_next(t, id, index))
		return OK;
	if (id == 0)
		return err_set(
			d->e, E_INVALID, "%s[%u]: id 0", pprof_table_names[table], t->filled);
	if (id_place(t, id) != NO_ID)
		return err_set(d->e, E_INVALID, "%s[%u]: id %" PRIu64 " is taken",
			pprof_table_names[table], t->filled, id);
	return id_append(t, id, index) ? OK : pprof_not_added(d, E_NOMEM, table, t->filled);
}

static enum status id_table_init(struct decoder *d, struct id_table *t, int table)
{
	size_t count = d->runs[table].count;
	if (count >= PROFILE_TABLE_MAX)
		return pprof_not_added(d, E_LIMIT, table, count);
	t->ids = ARENA_ARRAY(&d->arena, uint64_t, count);
	t->indices = ARENA_ARRAY(&d->arena, uint32_t, count);
	if (!t->ids || !t->indices)
		return pprof_not_added(d, arena_status(&d->arena), table, count);
	t->count = (uint32_t)count;
	return OK;
}

/* ---- mappings ---- */

static enum status decode_mapping(struct decoder *d, struct str bytes, size_t index)
{
	struct profile_mapping m = { 0 };
	uint64_t v[7] = { 0 }; /* by field */
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (next_other(&r, v, 6, &f))
		;
	if (r.failed)
		return pprof_torn(d, &r, PPROF_MAPPING, index);
	m.start = v[2];
	m.limit = v[3];
	m.offset = v[4];
	uint64_t id = v[1], filename = v[5], build_id = v[6];
	m.filename = string_at(d, filename);
	uint32_t text = string_at(d, build_id), place;
	if (m.filename == NO_ID)
		return pprof_dangling(d, PPROF_MAPPING, index, "filename", filename);
	if (text == NO_ID)
		return pprof_dangling(d, PPROF_MAPPING, index, "build_id", build_id);
	enum status s = profile_add_build_id(d->out, profile_str(d->out, text), &m.build_id);
	if (d->loaded)
		d->loaded[index] = (struct loaded){ m.start, m.offset };
	if (d->loaded || d->options->is_vaddr)
		m.start = m.limit = m.offset = 0;
	if (s == OK)
		s = profile_add_mapping(d->out, &m, &place);
	if (s != OK)
		return pprof_not_added(d, s, PPROF_MAPPING, index);
	return id_add(d, &d->mappings, PPROF_MAPPING, id, place);
}

/* ---- functions ---- */

static uint32_t clamp_u32(uint64_t v)
{
	return v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* Reads the id of a location, in a profile whose functions have lost their ids. */
static enum status read_lost_id(struct decoder *d, struct str bytes, size_t index)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_VARINT)
			d->lost_ids[index] = f.u64;
	return r.failed ? pprof_torn(d, &r, PPROF_LOCATION, index) : OK;
}

static enum status find_lost_ids(struct decoder *d)
{
	size_t count = d->runs[PPROF_FUNCTION].count;
	if (!d->options->lost_function_ids || count != d->runs[PPROF_LOCATION].count)
		return OK;
	d->lost_ids = ARENA_ARRAY(&d->arena, uint64_t, count);
	if (!d->lost_ids)
		return pprof_not_added(d, arena_status(&d->arena), PPROF_FUNCTION, count);
	return each_element(d, PPROF_LOCATION, read_lost_id);
}

/* Appends `s` without its "[go.shape.…]"; one without an end is kept. */
static void put_without_shapes(struct buf *out, struct str s)
{
	const struct str shape = STR("[go.shape.");
	size_t begin = 0; /* begin of what is not copied yet */
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
	uint64_t v[6] = { 0 }; /* by field */
	struct profile_function fn = { 0 };
	uint32_t *const to[3] = { &fn.name, &fn.system_name, &fn.filename };
	static const char *const fields[3] = { "name", "system_name", "filename" };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (next_other(&r, v, 5, &f))
		;
	if (r.failed)
		return pprof_torn(d, &r, PPROF_FUNCTION, index);
	fn.start_line = clamp_u32(v[5]);
	uint64_t id = v[1] || !d->lost_ids ? v[1] : d->lost_ids[index];
	for (int i = 0; i < 3; i++) {
		*to[i] = string_at(d, v[2 + i]);
		if (*to[i] == NO_ID)
			return pprof_dangling(d, PPROF_FUNCTION, index, fields[i], v[2 + i]);
	}
	if (fn.name == 0)
		fn.name = fn.system_name;
	struct str name = profile_str(d->out, fn.name);
	if (fn.system_name == 0 &&
		(str_starts(name, STR("<")) || str_starts(name, STR("function <"))))
		fn.system_name = fn.name; /* as it was before encode.c omitted it */
	uint32_t place;
	enum status s = OK;
	if (d->has_shapes) {
		s = drop_shapes(d, &fn.name);
		if (s == OK)
			s = drop_shapes(d, &fn.system_name);
	}
	if (s == OK)
		s = profile_add_function(d->out, &fn, &place);
	if (s != OK)
		return pprof_not_added(d, s, PPROF_FUNCTION, index);
	return id_add(d, &d->functions, PPROF_FUNCTION, id, place);
}

/* ---- locations ---- */

static enum status decode_line(
	struct decoder *d, const struct pb_field *field, size_t location, struct profile_line *out)
{
	uint64_t v[4] = { 0 }; /* by field */
	struct reader r = pb_message(field);
	struct pb_field f;
	while (next_other(&r, v, 3, &f))
		;
	if (r.failed)
		return pprof_torn(d, &r, PPROF_LOCATION, location);
	out->function = id_index(&d->functions, v[1]);
	out->line = clamp_u32(v[2]);
	out->column = clamp_u32(v[3]);
	if (v[1] == 0 || out->function == NO_ID)
		return pprof_dangling(d, PPROF_LOCATION, location, "a line's function_id", v[1]);
	return OK;
}

/* Translates an address in memory to one of the ELF file. */
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
	uint64_t v[4] = { 0 }; /* by field */
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (next_other(&r, v, 3, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(4, PB_BYTES))
			continue;
		if (line_count == PROFILE_LINES_MAX)
			return pprof_not_added(d, E_LIMIT, PPROF_LOCATION, index);
		enum status s = decode_line(d, &f, index, &lines[line_count]);
		if (s != OK)
			return s;
		/* A function without any text says nothing. */
		line_count += lines[line_count].function != 0;
	}
	if (r.failed)
		return pprof_torn(d, &r, PPROF_LOCATION, index);
	uint64_t id = v[1], mapping = v[2];
	loc.address = v[3];
	loc.mapping = id_index(&d->mappings, mapping);
	if (loc.mapping == NO_ID)
		return pprof_dangling(d, PPROF_LOCATION, index, "mapping_id", mapping);
	if (d->loaded && mapping)
		loc.address = to_vaddr(d, mapping, loc.address);
	enum status s = profile_add_location(d->out, &loc, lines, line_count, &place);
	if (s != OK)
		return pprof_not_added(d, s, PPROF_LOCATION, index);
	return id_add(d, &d->locations, PPROF_LOCATION, id, place);
}

/* ---- all of them ---- */

static enum status init_loaded(struct decoder *d)
{
	size_t segments = d->options->segment_count, mappings = d->runs[PPROF_MAPPING].count;
	if (segments == 0)
		return OK;
	if (segments != mappings)
		return err_set(d->e, E_INVALID, "%zu mappings but %zu executable_info", mappings,
			segments);
	d->loaded = ARENA_ARRAY(&d->arena, struct loaded, mappings);
	return d->loaded ? OK
			 : pprof_not_added(d, arena_status(&d->arena), PPROF_MAPPING, mappings);
}

enum status pprof_code_begin(struct decoder *d)
{
	enum status s = init_loaded(d);
	if (s == OK)
		s = id_table_init(d, &d->mappings, PPROF_MAPPING);
	if (s == OK)
		s = id_table_init(d, &d->functions, PPROF_FUNCTION);
	if (s == OK)
		s = id_table_init(d, &d->locations, PPROF_LOCATION);
	return s;
}

enum status pprof_code_read(struct decoder *d)
{
	enum status s = each_element(d, PPROF_MAPPING, decode_mapping);
	if (s == OK)
		s = find_lost_ids(d);
	if (s == OK)
		s = each_element(d, PPROF_FUNCTION, decode_function);
	if (s == OK)
		s = each_element(d, PPROF_LOCATION, decode_location);
	return s;
}
