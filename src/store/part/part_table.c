/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each group of sections becomes arrays. Every index is checked against the table it points into
 * when it is read, so that queries need no checks of their own.
 */
#include "store/part/part_table.h"
#include "store/part/part_blocks.h"

#include <stdlib.h>

#define TABLE_BYTES_MAX ((size_t)2 << 30)
/* A column without streams costs nothing on disk, so its rows are limited to this many for each
 * byte of the section. */
#define ROWS_PER_BYTE_MAX 65536u

void *part_group_alloc(struct group *g, size_t count, size_t size)
{
	assert(g->count < ARRAY_COUNT(g->memory));
	void *p = calloc(MAX(count, (size_t)1), size);
	if (!p)
		return NULL;
	g->memory[g->count++] = p;
	g->bytes += count * size;
	return p;
}

enum status part_table_read(
	struct part *p, enum part_section kind, struct part_table *t, struct err *e)
{
	buf_init(&t->bytes, TABLE_BYTES_MAX);
	t->column_count = 0;
	enum status s = part_section_read(p, kind, &t->bytes, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(t->bytes.data, t->bytes.len);
	uint64_t rows = reader_varint(&r), columns = reader_varint(&r);
	if (r.failed || rows > COLUMN_ROWS_MAX || columns > COLUMN_COUNT_MAX ||
		rows > (uint64_t)t->bytes.len * ROWS_PER_BYTE_MAX)
		return err_set(e, E_CORRUPT, "%s: section %d of %llu rows", p->path, kind,
			(unsigned long long)rows);
	t->rows = (uint32_t)rows;
	uint64_t need = rows * (columns + 1) * sizeof(int64_t);
	for (uint64_t i = 0; i < columns; i++) {
		s = column_parse_header(&r, &t->columns[i], e);
		if (s != OK)
			return err_prefix(e, s, "%s: section %d", p->path, kind);
		for (unsigned k = 0; k < t->columns[i].stream_count; k++)
			need += MIN(t->columns[i].raw_len[k], (uint64_t)TABLE_BYTES_MAX);
	}
	if (need > p->load_limit)
		return err_set(e, E_LIMIT,
			"%s: section %d takes %llu bytes of memory, %llu are allowed", p->path,
			kind, (unsigned long long)need, (unsigned long long)p->load_limit);
	t->column_count = (uint32_t)columns;
	t->data = str_make(r.at, reader_left(&r));
	return OK;
}

void part_table_deinit(struct part_table *t)
{
	buf_deinit(&t->bytes);
}

static const struct column *column_find(const struct part_table *t, uint8_t id)
{
	for (uint32_t i = 0; i < t->column_count; i++)
		if (t->columns[i].id == id)
			return &t->columns[i];
	return NULL;
}

static enum status unpack(const struct part_table *t, const struct column *c,
	struct column_streams *out, struct err *e)
{
	uint64_t len = column_stored_len(c);
	if (c->offset > t->data.len || len > t->data.len - c->offset)
		return err_set(e, E_CORRUPT, "column %u lies beyond its section", c->id);
	return column_unpack(c, str_make(t->data.p + c->offset, (size_t)len), t->rows, out, e);
}

enum status part_table_u32(
	const struct part_table *t, uint8_t id, uint64_t limit, uint32_t *out, struct err *e)
{
	const struct column *c = column_find(t, id);
	if (!c) {
		memset(out, 0, t->rows * sizeof(*out));
		return t->rows && limit == 0 ? err_set(e, E_CORRUPT, "column %u points nowhere", id)
					     : OK;
	}
	CLEANUP(column_streams_free) struct column_streams streams = { 0 };
	enum status s = unpack(t, c, &streams, e);
	return s == OK ? column_decode_u32(c, &streams, t->rows, limit, out, e) : s;
}

enum status part_table_i64(const struct part_table *t, uint8_t id, int64_t *out, struct err *e)
{
	const struct column *c = column_find(t, id);
	if (!c) {
		memset(out, 0, t->rows * sizeof(*out));
		return OK;
	}
	CLEANUP(column_streams_free) struct column_streams streams = { 0 };
	enum status s = unpack(t, c, &streams, e);
	return s == OK ? column_decode(c, &streams, t->rows, out, e) : s;
}

/* Sums the lengths of all texts; false: they do not fit each other or the bytes. `shared` NULL: no
 * text shares bytes with the one before. */
static bool sum_lengths(
	const int64_t *lens, const int64_t *shared, uint32_t n, uint64_t there, uint64_t *out)
{
	uint64_t all = 0, rest = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t most = i ? MIN(lens[i], lens[i - 1]) : 0;
		int64_t in_common = shared ? shared[i] : 0;
		if (lens[i] < 0 || in_common < 0 || in_common > most ||
			__builtin_add_overflow(all, (uint64_t)lens[i], &all))
			return false;
		rest += (uint64_t)(lens[i] - in_common);
	}
	*out = all;
	return rest == there && lens[0] == 0 && all / PART_SHARED_GAIN_MAX <= there;
}

enum status part_table_strings(struct part *p, enum part_section kind, struct group *g,
	const struct str **out, uint32_t *count, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	CLEANUP(column_streams_free) struct column_streams streams = { 0 };
	enum status s = part_table_read(p, kind, &t, e);
	if (s != OK)
		return s;
	const struct column *bytes = column_find(&t, 2);
	if (!bytes || bytes->encoding != COLUMN_BYTES || t.rows == 0)
		return err_set(e, E_CORRUPT, "%s: section %d holds no strings", p->path, kind);
	s = unpack(&t, bytes, &streams, e);
	if (s != OK)
		return err_prefix(e, s, "%s: section %d", p->path, kind);
	bool shares = column_find(&t, 3) != NULL;
	CLEANUP(free_cleanup) int64_t *lens = malloc(t.rows * sizeof(*lens));
	CLEANUP(free_cleanup) int64_t *shared = shares ? malloc(t.rows * sizeof(*shared)) : NULL;
	if (!lens || (shares && !shared))
		return err_set(e, E_NOMEM, "%s: section %d", p->path, kind);
	s = part_table_i64(&t, 1, lens, e);
	if (s == OK && shares)
		s = part_table_i64(&t, 3, shared, e);
	if (s != OK)
		return err_prefix(e, s, "%s: section %d", p->path, kind);
	uint64_t all;
	if (!sum_lengths(lens, shared, t.rows, streams.len[0], &all))
		return err_set(
			e, E_CORRUPT, "%s: lengths of the strings in section %d", p->path, kind);
	if (all > p->load_limit)
		return err_set(e, E_LIMIT, "%s: section %d takes %llu bytes of memory", p->path,
			kind, (unsigned long long)all);
	struct str *v = part_group_alloc(g, t.rows, sizeof(*v));
	char *text = part_group_alloc(g, (size_t)all, 1);
	if (!v || !text)
		return err_set(e, E_NOMEM, "%s: section %d", p->path, kind);
	const char *rest = (const char *)streams.p[0];
	for (uint32_t i = 0; i < t.rows; i++) {
		size_t len = (size_t)lens[i], common = shares ? (size_t)shared[i] : 0;
		if (common)
			memcpy(text, v[i - 1].p, common);
		memcpy(text + common, rest, len - common);
		v[i] = str_make(text, len);
		text += len;
		rest += len - common;
	}
	*out = v;
	*count = t.rows;
	return OK;
}

/* ---- groups ---- */

static enum status load_series_labels(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_SERIES_LABELS, &t, e);
	if (s != OK)
		return s;
	struct profile_label *labels = part_group_alloc(g, t.rows, sizeof(*labels));
	CLEANUP(free_cleanup) uint32_t *name = calloc(MAX(t.rows, 1u), sizeof(*name));
	CLEANUP(free_cleanup) uint32_t *value = calloc(MAX(t.rows, 1u), sizeof(*value));
	if (!labels || !name || !value)
		return err_set(e, E_NOMEM, "%s: labels", p->path);
	s = part_table_u32(&t, 1, p->tabs.label_string_count, name, e);
	if (s == OK)
		s = part_table_u32(&t, 2, p->tabs.label_string_count, value, e);
	for (uint32_t i = 0; i < t.rows && s == OK; i++)
		labels[i] = (struct profile_label){ name[i], value[i] };
	p->tabs.labels = labels;
	p->tabs.label_count = t.rows;
	return s;
}

static enum status series_column(const struct part_table *t, unsigned id, uint32_t strings,
	struct tab_series *out, int64_t *values, struct err *e)
{
	enum status s = part_table_i64(t, (uint8_t)id, values, e);
	if (s != OK)
		return s;
	for (uint32_t i = 0; i < t->rows; i++) {
		int64_t v = values[i];
		if (id <= 6 && (uint64_t)v >= strings)
			return err_set(e, E_CORRUPT, "series %u: string %lld", i, (long long)v);
		if (id == 1)
			out[i].tenant = (uint32_t)v;
		else if (id <= 6)
			out[i].type[id - 2] = (uint32_t)v;
		else if (id == 7)
			out[i].delta = v != 0;
		else if (id == 8)
			out[i].period = v;
		else if (id == 9)
			out[i].label_count = (uint32_t)MIN((uint64_t)v, (uint64_t)UINT32_MAX);
		else if (id == 10)
			out[i].first_ns = v;
		else if (id == 11)
			out[i].last_ns = v;
		else
			out[i].rows = (uint64_t)v;
	}
	return OK;
}

static enum status load_series(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_SERIES, &t, e);
	if (s != OK)
		return s;
	struct tab_series *series = part_group_alloc(g, t.rows, sizeof(*series));
	CLEANUP(free_cleanup) int64_t *values = calloc(MAX(t.rows, 1u), sizeof(*values));
	if (!series || !values)
		return err_set(e, E_NOMEM, "%s: series", p->path);
	for (unsigned id = 1; id <= 12 && s == OK; id++)
		s = series_column(&t, id, p->tabs.label_string_count, series, values, e);
	uint64_t at = 0;
	for (uint32_t i = 0; i < t.rows && s == OK; i++) {
		series[i].label_first = (uint32_t)at;
		at += series[i].label_count;
		if (at > p->tabs.label_count)
			s = err_set(e, E_CORRUPT, "series %u: labels beyond their table", i);
	}
	p->tabs.series = series;
	p->tabs.series_count = t.rows;
	return s;
}

static enum status load_texts(struct part *p, struct group *g, struct err *e)
{
	struct tabs *t = &p->tabs;
	const struct str *names;
	uint32_t count;
	enum status s = part_table_strings(
		p, PART_LABEL_STRINGS, g, &t->label_strings, &t->label_string_count, e);
	if (s == OK)
		s = part_table_strings(p, PART_SAMPLE_NAMES, g, &names, &count, e);
	if (s == OK && count - 1 > TABLES_NAMES_MAX)
		s = err_set(e, E_CORRUPT, "%s: %u sample labels", p->path, count - 1);
	if (s == OK) {
		t->names = names + 1;
		t->name_count = count - 1;
	}
	return s;
}

static enum status load_labels(struct part *p, struct group *g, struct err *e)
{
	enum status s = load_series_labels(p, g, e);
	return s == OK ? load_series(p, g, e) : s;
}

/* ---- kinds ---- */

static enum status kind_column(const struct part_table *t, unsigned id, uint32_t strings,
	struct tab_kind *out, int64_t *values, struct err *e)
{
	enum status s = part_table_i64(t, (uint8_t)id, values, e);
	for (uint32_t i = 0; i < t->rows && s == OK; i++) {
		int64_t v = values[i];
		if (id <= 6 && (uint64_t)v >= strings)
			s = err_set(e, E_CORRUPT, "kind %u: string %lld", i, (long long)v);
		else if (id == 1)
			out[i].tenant = (uint32_t)v;
		else if (id <= 6)
			out[i].type[id - 2] = (uint32_t)v;
		else if (id == 7)
			out[i].delta = v != 0;
		else if (id == 8)
			out[i].name_count = (uint32_t)MIN((uint64_t)v, (uint64_t)UINT32_MAX);
		else if (id == 10)
			out[i].first_ns = v;
		else if (id == 11)
			out[i].last_ns = v;
	}
	return s;
}

static enum status load_kind_names(
	struct part *p, struct group *g, uint32_t value_count, uint32_t *out_count, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_KIND_NAMES, &t, e);
	if (s != OK)
		return s;
	struct tab_kind_name *names = part_group_alloc(g, t.rows, sizeof(*names));
	CLEANUP(free_cleanup) uint32_t *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	if (!names || !v)
		return err_set(e, E_NOMEM, "%s: names of labels", p->path);
	s = part_table_u32(&t, 1, p->tabs.label_string_count, v, e);
	for (uint32_t i = 0; i < t.rows && s == OK; i++)
		names[i].name = v[i];
	if (s == OK)
		s = part_table_u32(&t, 2, (uint64_t)value_count + 1, v, e);
	uint32_t at = 0;
	for (uint32_t i = 0; i < t.rows && s == OK; i++) {
		if (v[i] > value_count - at)
			s = err_set(e, E_CORRUPT, "label %u of a kind: %u values", i, v[i]);
		names[i].value_first = at;
		names[i].value_count = v[i];
		at += v[i];
	}
	p->tabs.kind_names = names;
	*out_count = t.rows;
	return s;
}

/* Needs texts to be loaded. */
static enum status load_kinds(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t = { 0 };
	CLEANUP(part_table_deinit) struct part_table u = { 0 };
	uint32_t names = 0;
	enum status s = part_table_read(p, PART_KIND_VALUES, &u, e);
	if (s == OK)
		s = load_kind_names(p, g, u.rows, &names, e);
	if (s == OK)
		s = part_table_read(p, PART_KINDS, &t, e);
	if (s != OK)
		return s;
	uint32_t *values = part_group_alloc(g, u.rows, sizeof(*values));
	struct tab_kind *kinds = part_group_alloc(g, t.rows, sizeof(*kinds));
	CLEANUP(free_cleanup) int64_t *column = calloc(MAX(t.rows, 1u), sizeof(*column));
	if (!values || !kinds || !column)
		return err_set(e, E_NOMEM, "%s: values of labels", p->path);
	s = part_table_u32(&u, 1, p->tabs.label_string_count, values, e);
	for (unsigned id = 1; id <= 11 && s == OK; id++)
		s = kind_column(&t, id, p->tabs.label_string_count, kinds, column, e);
	uint32_t at = 0;
	for (uint32_t i = 0; i < t.rows && s == OK; i++) {
		if (kinds[i].name_count > names - at)
			s = err_set(e, E_CORRUPT, "kind %u: names beyond their table", i);
		kinds[i].name_first = at;
		at += kinds[i].name_count;
	}
	p->tabs.kind_values = values;
	p->tabs.kinds = kinds;
	p->tabs.kind_count = t.rows;
	return s;
}

static enum status load_sets(struct part *p, struct group *g, struct err *e)
{
	struct tabs *t = &p->tabs;
	const struct str *names;
	struct group scratch = { 0 };
	uint32_t names_count = 0;
	enum status s = part_table_strings(
		p, PART_SAMPLE_STRINGS, g, &t->sample_strings, &t->sample_string_count, e);
	if (s == OK)
		s = part_table_strings(p, PART_SAMPLE_NAMES, &scratch, &names, &names_count, e);
	for (unsigned i = 0; i < scratch.count; i++)
		free(scratch.memory[i]);
	if (s != OK)
		return s;
	size_t width = names_count;
	CLEANUP(part_table_deinit) struct part_table tab;
	s = part_table_read(p, PART_SAMPLE_SETS, &tab, e);
	if (s != OK)
		return s;
	if (tab.rows == 0 || width > 1 + TABLES_NAMES_MAX)
		return err_set(e, E_CORRUPT, "%s: sets of sample labels", p->path);
	uint32_t *sets = part_group_alloc(g, tab.rows * width, sizeof(*sets));
	CLEANUP(free_cleanup) uint32_t *column = calloc(tab.rows, sizeof(*column));
	if (!sets || !column)
		return err_set(e, E_NOMEM, "%s: sets of sample labels", p->path);
	for (size_t k = 0; k < width && s == OK; k++) {
		s = part_table_u32(
			&tab, (uint8_t)(k ? 16 + k : 1), t->sample_string_count, column, e);
		for (uint32_t i = 0; i < tab.rows && s == OK; i++)
			sets[i * width + k] = column[i];
	}
	t->sets = sets;
	t->set_count = tab.rows;
	return s;
}

/* A node has the number of levels up to its parent; a stack with the last node of each depth turns
 * that into the parent itself. */
static enum status load_stacks(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_TRIE, &t, e);
	if (s != OK)
		return s;
	if (t.rows == 0)
		return err_set(e, E_CORRUPT, "%s: a trie without a root", p->path);
	uint32_t *parent = part_group_alloc(g, t.rows, sizeof(*parent));
	uint32_t *location = part_group_alloc(g, t.rows, sizeof(*location));
	CLEANUP(free_cleanup) uint32_t *up = calloc(t.rows, sizeof(*up));
	if (!parent || !location || !up)
		return err_set(e, E_NOMEM, "%s: a trie of %u nodes", p->path, t.rows);
	s = part_table_u32(&t, 1, PROFILE_STACK_MAX + 1, up, e);
	if (s == OK)
		s = part_table_u32(&t, 2, PROFILE_TABLE_MAX, location, e);
	uint32_t last[PROFILE_STACK_MAX + 2] = { 0 };
	uint32_t depth = 0;
	for (uint32_t i = 1; i < t.rows && s == OK; i++) {
		if (up[i] > depth || depth + 1 - up[i] > PROFILE_STACK_MAX)
			return err_set(e, E_CORRUPT, "%s: trie node %u goes %u up from depth %u",
				p->path, i, up[i], depth);
		depth = depth + 1 - up[i];
		parent[i] = last[depth - 1];
		last[depth] = i;
	}
	p->tabs.parent = parent;
	p->tabs.node_location = location;
	p->tabs.node_count = t.rows;
	return s;
}

static enum status load_functions(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_FUNCTIONS, &t, e);
	if (s != OK)
		return s;
	struct profile_function *f = part_group_alloc(g, MAX(t.rows, 1u), sizeof(*f));
	CLEANUP(free_cleanup) uint32_t *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	if (!f || !v)
		return err_set(e, E_NOMEM, "%s: functions", p->path);
	for (uint8_t id = 1; id <= 4 && s == OK; id++) {
		uint64_t limit = id == 4 ? (uint64_t)UINT32_MAX + 1 : p->tabs.symbol_string_count;
		s = part_table_u32(&t, id, limit, v, e);
		for (uint32_t i = 0; i < t.rows && s == OK; i++)
			*(id == 1         ? &f[i].name
				: id == 2 ? &f[i].system_name
				: id == 3 ? &f[i].filename
					  : &f[i].start_line) = v[i];
	}
	p->tabs.functions = f;
	p->tabs.function_count = MAX(t.rows, 1u);
	return s;
}

static enum status load_mappings(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_MAPPINGS, &t, e);
	if (s != OK)
		return s;
	struct profile_mapping *m = part_group_alloc(g, MAX(t.rows, 1u), sizeof(*m));
	CLEANUP(free_cleanup) int64_t *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	if (!m || !v)
		return err_set(e, E_NOMEM, "%s: mappings", p->path);
	for (uint8_t id = 1; id <= 5 && s == OK; id++) {
		s = part_table_i64(&t, id, v, e);
		for (uint32_t i = 0; i < t.rows && s == OK; i++) {
			if (id <= 2 && (uint64_t)v[i] >= p->tabs.symbol_string_count)
				s = err_set(e, E_CORRUPT, "mapping %u: string %lld", i,
					(long long)v[i]);
			else if (id <= 2)
				*(id == 1 ? &m[i].filename : &m[i].build_id) = (uint32_t)v[i];
			else
				*(id == 3         ? &m[i].start
					: id == 4 ? &m[i].limit
						  : &m[i].offset) = (uint64_t)v[i];
		}
	}
	p->tabs.mappings = m;
	p->tabs.mapping_count = MAX(t.rows, 1u);
	return s;
}

static enum status load_lines(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_LINES, &t, e);
	if (s != OK)
		return s;
	struct profile_line *l = part_group_alloc(g, t.rows, sizeof(*l));
	CLEANUP(free_cleanup) uint32_t *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	if (!l || !v)
		return err_set(e, E_NOMEM, "%s: lines", p->path);
	for (uint8_t id = 1; id <= 3 && s == OK; id++) {
		uint64_t limit = id == 1 ? p->tabs.function_count : (uint64_t)UINT32_MAX + 1;
		s = part_table_u32(&t, id, limit, v, e);
		for (uint32_t i = 0; i < t.rows && s == OK; i++)
			*(id == 1 ? &l[i].function : id == 2 ? &l[i].line : &l[i].column) = v[i];
	}
	p->tabs.lines = l;
	p->tabs.line_count = t.rows;
	return s;
}

static enum status load_locations(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t;
	enum status s = part_table_read(p, PART_LOCATIONS, &t, e);
	if (s != OK)
		return s;
	struct profile_location *l = part_group_alloc(g, MAX(t.rows, 1u), sizeof(*l));
	CLEANUP(free_cleanup) int64_t *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	if (!l || !v)
		return err_set(e, E_NOMEM, "%s: locations", p->path);
	uint64_t at = 0;
	for (uint8_t id = 1; id <= 4 && s == OK; id++) {
		s = part_table_i64(&t, id, v, e);
		for (uint32_t i = 0; i < t.rows && s == OK; i++) {
			uint64_t x = (uint64_t)v[i];
			if ((id == 1 && x >= p->tabs.mapping_count) ||
				(id == 4 && (x > PROFILE_LINES_MAX || x > p->tabs.line_count - at)))
				s = err_set(e, E_CORRUPT, "location %u: column %u", i, id);
			else if (id == 1)
				l[i].mapping = (uint32_t)x;
			else if (id == 2)
				l[i].address = x;
			else if (id == 3)
				l[i].kind = (uint8_t)(x < FRAME_KIND_COUNT ? x : 0);
			else {
				l[i].line_first = (uint32_t)at;
				l[i].line_count = (uint32_t)x;
				at += x;
			}
		}
	}
	p->tabs.locations = l;
	p->tabs.location_count = MAX(t.rows, 1u);
	return s;
}

static enum status load_symbols(struct part *p, struct group *g, struct err *e)
{
	enum status s = part_table_strings(p, PART_SYMBOL_STRINGS, g, &p->tabs.symbol_strings,
		&p->tabs.symbol_string_count, e);
	if (s == OK)
		s = load_functions(p, g, e);
	if (s == OK)
		s = load_mappings(p, g, e);
	if (s == OK)
		s = load_lines(p, g, e);
	return s == OK ? load_locations(p, g, e) : s;
}

static enum status load_blocks(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, TABLE_BYTES_MAX);
	enum status s = part_section_read(p, PART_BLOCKS, &b, e);
	if (s == OK)
		s = part_blocks_parse(buf_view(&b), &p->blocks, &p->block_count, e);
	if (s != OK)
		return err_prefix(e, s, "%s: index of blocks", p->path);
	g->memory[g->count++] = p->blocks;
	g->bytes += p->block_count * sizeof(*p->blocks);
	p->totals = NULL;
	p->total_count = 0;
	if (!part_section_has(p, PART_TOTALS))
		return OK;
	buf_clear(&b);
	s = part_section_read(p, PART_TOTALS, &b, e);
	if (s == OK)
		s = part_totals_parse(buf_view(&b), p->block_count, &p->totals, &p->total_count, e);
	if (s != OK)
		return err_prefix(e, s, "%s: totals", p->path);
	g->memory[g->count++] = p->totals;
	g->bytes += p->total_count * sizeof(*p->totals);
	return OK;
}

/* Lists of items below `limit`, of `keys` keys. */
static enum status load_lists(struct part *p, struct group *g, enum part_section counts,
	uint32_t keys, uint32_t limit, const uint32_t **out_first, const uint32_t **out_items,
	struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t = { 0 };
	CLEANUP(part_table_deinit) struct part_table u = { 0 };
	if (!part_section_has(p, counts) || !part_section_has(p, counts + 1))
		return OK;
	enum status s = part_table_read(p, counts, &t, e);
	if (s == OK)
		s = part_table_read(p, counts + 1, &u, e);
	if (s == OK && t.rows != keys)
		return err_set(e, E_CORRUPT, "section %d: lists of %u keys, there are %u", counts,
			t.rows, keys);
	if (s != OK)
		return s;
	uint32_t *first = part_group_alloc(g, (size_t)keys + 1, sizeof(*first));
	uint32_t *items = part_group_alloc(g, u.rows, sizeof(*items));
	CLEANUP(free_cleanup) uint32_t *n = calloc((size_t)keys + 1, sizeof(*n));
	if (!first || !items || !n)
		return err_set(e, E_NOMEM, "%s: an index", p->path);
	s = part_table_u32(&t, 1, (uint64_t)u.rows + 1, n, e);
	for (uint32_t i = 0; i < keys && s == OK; i++) {
		if (n[i] > u.rows - first[i])
			return err_set(e, E_CORRUPT, "section %d: key %u", counts, i);
		first[i + 1] = first[i] + n[i];
	}
	if (s == OK)
		s = part_table_u32(&u, 1, limit, items, e);
	if (s != OK)
		return s;
	*out_first = first;
	*out_items = items;
	return OK;
}

/* Needs labels, sets and symbols to be loaded. */
static enum status load_index(struct part *p, struct group *g, struct err *e)
{
	struct tabs *t = &p->tabs;
	t->set_first = t->series_sets = t->location_first = t->location_series = NULL;
	enum status s = load_lists(p, g, PART_SERIES_SET_COUNTS, t->series_count, t->set_count,
		&t->set_first, &t->series_sets, e);
	return s == OK ? load_lists(p, g, PART_LOCATION_COUNTS, t->location_count, t->series_count,
				 &t->location_first, &t->location_series, e)
		       : s;
}

static enum status profile_column(const struct part_table *t, unsigned id, uint32_t series,
	struct tab_profile *out, int64_t *values, struct err *e)
{
	enum status s = part_table_i64(t, (uint8_t)id, values, e);
	for (uint32_t i = 0; i < t->rows && s == OK; i++) {
		int64_t v = values[i];
		if ((id == 1 && (uint64_t)v >= series) || (id >= 3 && v < 1))
			s = err_set(
				e, E_CORRUPT, "profile %u: column %u is %lld", i, id, (long long)v);
		else if (id == 1)
			out[i].series = (uint32_t)v;
		else if (id == 2)
			out[i].time_ns = v;
		else if (id == 3)
			out[i].duration_ns = v;
		else
			out[i].samples = v;
	}
	return s;
}

/* Needs series to be loaded. */
static enum status load_profiles(struct part *p, struct group *g, struct err *e)
{
	CLEANUP(part_table_deinit) struct part_table t = { 0 };
	p->tabs.profiles = NULL;
	p->tabs.profile_count = 0;
	if (!part_section_has(p, PART_PROFILES))
		return OK;
	enum status s = part_table_read(p, PART_PROFILES, &t, e);
	if (s != OK)
		return s;
	struct tab_profile *v = part_group_alloc(g, t.rows, sizeof(*v));
	CLEANUP(free_cleanup) int64_t *column = calloc(MAX(t.rows, 1u), sizeof(*column));
	if (!v || !column)
		return err_set(e, E_NOMEM, "%s: profiles", p->path);
	for (unsigned id = 1; id <= 4 && s == OK; id++)
		s = profile_column(&t, id, p->tabs.series_count, v, column, e);
	p->tabs.profiles = v;
	p->tabs.profile_count = t.rows;
	return s;
}

enum status part_load_group(struct part *p, unsigned group, struct err *e)
{
	static enum status (*const loaders[PART_GROUPS])(
		struct part *, struct group *, struct err *) = { load_texts, load_sets, load_stacks,
		load_symbols, load_blocks, load_labels, load_index, load_kinds, load_profiles };
	struct err err = { 0 };
	enum status s = loaders[group](p, &p->groups[group], &err);
	if (s == OK)
		return OK;
	if (!str_starts(str_of(err.text), str_of(p->path)))
		return err_set(e, s, "%s: %s", p->path, err_text(&err, s));
	if (e)
		*e = err;
	return s;
}
