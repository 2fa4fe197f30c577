/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: texts are interned, so a frame is three small numbers: (name, binary, kind). Each location
 * gets the run of its frames, outermost call first, ready to be walked on the way down the tree; no
 * text is looked at after this.
 */
#include "query/internal.h"

#include <inttypes.h>
#include <stdio.h>

struct maker {
	struct profile *tables;
	struct query_frames *out;
	struct map *index;
	struct arena *a;
	uint32_t *binaries; /* base name of each mapping */
	struct err *e;
};

static bool frame_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_frame *have = &((const struct query_frames *)ctx)->v[value];
	const struct query_frame *want = key;
	return have->name == want->name && have->binary == want->binary && have->kind == want->kind;
}

static uint64_t frame_hash(const struct query_frame *f)
{
	return hash_u64(((uint64_t)f->name << 32 | f->binary) ^ (uint64_t)f->kind << 27);
}

static uint32_t smaller_line(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The number of `f`, which may be new. */
static enum status frame_number(struct maker *m, const struct query_frame *f, uint32_t *out)
{
	uint64_t hash = frame_hash(f);
	uint32_t id = map_find(m->index, hash, frame_equal, m->out, f);
	if (id != MAP_NONE) {
		struct query_frame *have = &m->out->v[id];
		if (have->file == 0)
			have->file = f->file;
		have->line = smaller_line(have->line, f->line);
	} else {
		id = m->out->count++;
		m->out->v[id] = *f;
		if (!map_insert(m->index, hash, id))
			return err_set(m->e, E_NOMEM, "%u frames", id);
	}
	*out = id;
	return OK;
}

struct str query_address_name(
	struct str binary, uint64_t address, char text[QUERY_ADDRESS_NAME_MAX])
{
	int len = snprintf(text, QUERY_ADDRESS_NAME_MAX, "%.*s%s0x%" PRIx64,
		(int)MIN(binary.len, 256u), binary.p, binary.len ? "+" : "", address);
	return str_make(text, (size_t)len);
}

/* A location without lines, or with a nameless function. */
static enum status name_by_address(
	struct maker *m, const struct profile_location *l, uint32_t *out_name)
{
	char text[QUERY_ADDRESS_NAME_MAX];
	struct str binary = profile_str(m->tables, m->binaries[l->mapping]);
	return profile_add_string(
		m->tables, query_address_name(binary, l->address, text), out_name);
}

/* Code without a binary, as that of an interpreter, goes by the name of its source file: two
 * functions of one name are two where they stand in two files. "requests/__init__.py", for there
 * are many of these. */
static enum status name_by_source(struct maker *m, uint32_t filename, uint32_t *out_binary)
{
	struct str path = profile_str(m->tables, filename), name = str_base_name(path);
	if (str_eq(name, STR("__init__.py")) && path.len > name.len) {
		struct str folder = str_sub(path, 0, path.len - name.len - 1);
		size_t from = folder.len - str_base_name(folder).len;
		name = str_sub(path, from, path.len);
	}
	return profile_add_string(m->tables, name, out_binary);
}

static enum status line_frame(struct maker *m, const struct profile_location *l,
	const struct profile_line *line, struct query_frame *out)
{
	const struct profile_function *fn = &m->tables->functions.v[line ? line->function : 0];
	*out = (struct query_frame){
		.name = fn->name ? fn->name : fn->system_name,
		.binary = m->binaries[l->mapping],
		.file = fn->filename,
		.line = fn->start_line ? fn->start_line
			: line         ? line->line
				       : 0,
		.kind = l->kind,
	};
	enum status s = out->name ? OK : name_by_address(m, l, &out->name);
	bool machine_code = l->kind == FRAME_NATIVE || l->kind == FRAME_KERNEL;
	if (s == OK && !out->binary && out->file && !machine_code)
		s = name_by_source(m, out->file, &out->binary);
	return s;
}

static enum status add_location(struct maker *m, uint32_t number, uint32_t *at)
{
	/* A copy: naming may move no location, but tables are not ours to hold pointers into. */
	struct profile_location l = m->tables->locations.v[number];
	uint32_t count = MAX(l.line_count, 1u);
	m->out->first[number] = *at;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_line *line =
			l.line_count ? &m->tables->lines.v[l.line_first + count - 1 - i] : NULL;
		struct query_frame f;
		uint32_t id = 0;
		enum status s = line_frame(m, &l, line, &f);
		if (s == OK)
			s = frame_number(m, &f, &id);
		if (s != OK)
			return s;
		m->out->ids[(*at)++] = id | (i > 0 ? QUERY_FRAME_INLINED : 0);
	}
	return OK;
}

static enum status find_binaries(struct maker *m)
{
	m->binaries = ARENA_ARRAY(m->a, uint32_t, m->tables->mappings.len);
	if (!m->binaries)
		return err_set(m->e, arena_status(m->a), "%zu mappings", m->tables->mappings.len);
	for (size_t i = 0; i < m->tables->mappings.len; i++) {
		struct str path = profile_str(m->tables, m->tables->mappings.v[i].filename);
		enum status s = profile_add_string(m->tables, str_base_name(path), &m->binaries[i]);
		if (s != OK)
			return err_set(m->e, s, "name of mapping %zu", i);
	}
	return OK;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool contains_nocase(struct str text, struct str part)
{
	for (size_t at = 0; at + part.len <= text.len; at++) {
		size_t i = 0;
		while (i < part.len && lower(text.p[at + i]) == lower(part.p[i]))
			i++;
		if (i == part.len)
			return true;
	}
	return false;
}

static enum status match_frames(struct maker *m, struct str match)
{
	m->out->matched = ARENA_ARRAY(m->a, uint8_t, m->out->count);
	if (!m->out->matched)
		return err_set(m->e, arena_status(m->a), "%u frames", m->out->count);
	for (uint32_t i = 0; i < m->out->count; i++)
		m->out->matched[i] =
			contains_nocase(profile_str(m->tables, m->out->v[i].name), match);
	return OK;
}

enum status query_frames_make(struct profile *tables, struct str match, struct arena *a,
	struct query_frames *out, struct err *e)
{
	struct query_frames made = { 0 };
	CLEANUP(map_deinit) struct map index = { 0 };
	size_t locations = tables->locations.len, frames = 0;
	for (size_t i = 0; i < locations; i++)
		frames += MAX(tables->locations.v[i].line_count, 1u);
	if (frames >= QUERY_FRAME_INLINED)
		return err_set(e, E_LIMIT, "%zu frames in %zu locations", frames, locations);
	made.v = ARENA_ARRAY(a, struct query_frame, frames);
	made.ids = ARENA_ARRAY(a, uint32_t, frames);
	made.first = ARENA_ARRAY(a, uint32_t, locations + 1);
	if (!made.v || !made.ids || !made.first)
		return err_set(
			e, arena_status(a), "%zu frames in %zu locations", frames, locations);

	struct maker m = { .tables = tables, .out = &made, .index = &index, .a = a, .e = e };
	enum status s = find_binaries(&m);
	uint32_t at = 0;
	for (uint32_t i = 0; s == OK && i < locations; i++)
		s = add_location(&m, i, &at);
	made.first[locations] = at;
	if (s == OK && match.len > 0)
		s = match_frames(&m, match);
	if (s == OK)
		*out = made;
	return s;
}
