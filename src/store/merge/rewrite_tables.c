/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only what taken rows use is interned: series and sets by their marks, trie nodes by theirs and
 * those of their descendants, and of locations, functions, mappings and strings what is met on the
 * way.
 */
#include "store/merge/rewrite.h"

#include <stdlib.h>

#define UNSET UINT32_MAX

struct taking {
	struct tables *t;
	const struct tabs *from;
	uint32_t *label_strings;
	uint32_t *sample_strings;
	uint32_t *symbol_strings;
	uint32_t *functions;
	uint32_t *mappings;
	uint32_t *locations;
};

static void taking_deinit(struct taking *m)
{
	free(m->label_strings);
	free(m->sample_strings);
	free(m->symbol_strings);
	free(m->functions);
	free(m->mappings);
	free(m->locations);
}

static uint32_t *unset_array(size_t n)
{
	uint32_t *v = malloc(MAX(n, (size_t)1) * sizeof(*v));
	for (size_t i = 0; v && i < n; i++)
		v[i] = UNSET;
	return v;
}

static enum status taking_init(struct taking *m)
{
	const struct tabs *f = m->from;
	m->label_strings = unset_array(f->label_string_count);
	m->sample_strings = unset_array(f->sample_string_count);
	m->symbol_strings = unset_array(f->symbol_string_count);
	m->functions = unset_array(f->function_count);
	m->mappings = unset_array(f->mapping_count);
	m->locations = unset_array(f->location_count);
	return m->label_strings && m->sample_strings && m->symbol_strings && m->functions &&
			       m->mappings && m->locations
		       ? OK
		       : E_NOMEM;
}

static enum status take_string(
	struct taking *m, const struct str *texts, uint32_t *map, uint32_t *id)
{
	if (map[*id] == UNSET) {
		uint32_t out;
		enum status s = tables_add_string(m->t, texts[*id], &out);
		if (s != OK)
			return s;
		map[*id] = out;
	}
	*id = map[*id];
	return OK;
}

/* ---- series and sets ---- */

static enum status take_series(struct taking *m, uint32_t i, uint32_t *out)
{
	const struct tabs *f = m->from;
	struct tab_series key = f->series[i];
	struct profile_label labels[2 * PROFILE_LABELS_MAX];
	if (key.label_count > ARRAY_COUNT(labels))
		return E_CORRUPT;
	enum status s = take_string(m, f->label_strings, m->label_strings, &key.tenant);
	for (int k = 0; k < TABLES_TYPE_PARTS && s == OK; k++)
		s = take_string(m, f->label_strings, m->label_strings, &key.type[k]);
	for (uint32_t k = 0; k < key.label_count && s == OK; k++) {
		labels[k] = f->labels[key.label_first + k];
		s = take_string(m, f->label_strings, m->label_strings, &labels[k].name);
		if (s == OK)
			s = take_string(m, f->label_strings, m->label_strings, &labels[k].value);
	}
	return s == OK ? tables_add_series(m->t, &key, labels, key.label_count, out) : s;
}

/* Names that the new tables do not have are left out. */
static enum status take_set(struct taking *m, uint32_t i, const int *to, uint32_t *out)
{
	const struct tabs *f = m->from;
	const uint32_t *set = &f->sets[(size_t)i * (1 + f->name_count)];
	uint32_t values[1 + TABLES_NAMES_MAX] = { set[0] };
	enum status s = take_string(m, f->sample_strings, m->sample_strings, &values[0]);
	for (uint32_t k = 0; k < f->name_count && s == OK; k++) {
		uint32_t value = set[1 + k];
		if (to[k] < 0 || value == 0)
			continue;
		s = take_string(m, f->sample_strings, m->sample_strings, &value);
		values[1 + to[k]] = value;
	}
	return s == OK ? tables_add_set(m->t, values, out) : s;
}

/* ---- stacks ---- */

static enum status take_function(struct taking *m, uint32_t *id)
{
	const struct tabs *f = m->from;
	if (m->functions[*id] == UNSET) {
		struct profile_function x = f->functions[*id];
		uint32_t out;
		enum status s = take_string(m, f->symbol_strings, m->symbol_strings, &x.name);
		if (s == OK)
			s = take_string(m, f->symbol_strings, m->symbol_strings, &x.system_name);
		if (s == OK)
			s = take_string(m, f->symbol_strings, m->symbol_strings, &x.filename);
		if (s == OK)
			s = tables_add_function(m->t, &x, &out);
		if (s != OK)
			return s;
		m->functions[*id] = out;
	}
	*id = m->functions[*id];
	return OK;
}

static enum status take_mapping(struct taking *m, uint32_t *id)
{
	const struct tabs *f = m->from;
	if (m->mappings[*id] == UNSET) {
		struct profile_mapping x = f->mappings[*id];
		uint32_t out;
		enum status s = take_string(m, f->symbol_strings, m->symbol_strings, &x.filename);
		if (s == OK)
			s = take_string(m, f->symbol_strings, m->symbol_strings, &x.build_id);
		if (s == OK)
			s = tables_add_mapping(m->t, &x, &out);
		if (s != OK)
			return s;
		m->mappings[*id] = out;
	}
	*id = m->mappings[*id];
	return OK;
}

static enum status take_location(struct taking *m, uint32_t id, uint32_t *out)
{
	const struct tabs *f = m->from;
	if (id >= f->location_count)
		return E_CORRUPT;
	if (m->locations[id] == UNSET) {
		struct profile_location x = f->locations[id];
		struct profile_line lines[PROFILE_LINES_MAX];
		uint32_t added;
		assert(x.line_count <= PROFILE_LINES_MAX);
		enum status s = take_mapping(m, &x.mapping);
		for (uint32_t k = 0; k < x.line_count && s == OK; k++) {
			lines[k] = f->lines[x.line_first + k];
			s = take_function(m, &lines[k].function);
		}
		if (s == OK)
			s = tables_add_location(m->t, &x, lines, x.line_count, &added);
		if (s != OK)
			return s;
		m->locations[id] = added;
	}
	*out = m->locations[id];
	return OK;
}

static enum status take_nodes(struct taking *m, uint8_t *used, uint32_t *out)
{
	const struct tabs *f = m->from;
	for (uint32_t i = f->node_count; i-- > 1;)
		if (used[i])
			used[f->parent[i]] = 1; /* a smaller number */
	for (uint32_t i = 1; i < f->node_count; i++) {
		uint32_t location;
		if (!used[i])
			continue;
		enum status s = take_location(m, f->node_location[i], &location);
		if (s == OK)
			s = tables_add_node(m->t, out[f->parent[i]], location, &out[i]);
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- profiles ---- */

/* Where rows are told apart by their sets, the profile stays as long as its series. */
static bool profile_taken(const struct rewrite_source *src, const struct tab_profile *x)
{
	const struct rewrite_rule *r = &src->rule;
	int64_t t = x->time_ns;
	if (src->from->part)
		t = part_row_time(part_meta(src->from->part), t);
	bool inside = t >= r->from_ns && t <= r->last_ns;
	bool match = r->series && r->series[x->series] && inside;
	if (!src->used_series[x->series])
		return false;
	return match == r->take_matching || (match && r->sets);
}

static enum status take_profiles(struct taking *m, const struct rewrite_source *src)
{
	const struct tabs *f = m->from;
	enum status s = OK;
	for (uint32_t i = 0; i < f->profile_count && s == OK; i++) {
		struct tab_profile x = f->profiles[i];
		if (!profile_taken(src, &x))
			continue;
		x.series = src->series[x.series];
		s = tables_add_profile(m->t, &x);
	}
	return s;
}

/* ---- all of it ---- */

static enum status take_source(struct rewrite *w, struct rewrite_source *src)
{
	const struct tabs *f = &src->from->tabs;
	CLEANUP(taking_deinit) struct taking m = { .t = &w->tables, .from = f };
	int to[TABLES_NAMES_MAX];
	for (uint32_t k = 0; k < f->name_count; k++) {
		to[k] = -1;
		for (uint32_t j = 0; j < w->tables.name_count; j++)
			if (str_eq(f->names[k], w->tables.names[j]))
				to[k] = (int)j;
	}
	src->series = calloc(MAX(f->series_count, 1u), sizeof(uint32_t));
	src->nodes = calloc(MAX(f->node_count, 1u), sizeof(uint32_t));
	src->sets = calloc(MAX(f->set_count, 1u), sizeof(uint32_t));
	enum status s = src->series && src->nodes && src->sets ? taking_init(&m) : E_NOMEM;
	for (uint32_t i = 0; i < f->series_count && s == OK; i++)
		if (src->used_series[i])
			s = take_series(&m, i, &src->series[i]);
	if (s == OK)
		s = take_profiles(&m, src);
	for (uint32_t i = 0; i < f->set_count && s == OK; i++)
		if (src->used_sets[i])
			s = take_set(&m, i, to, &src->sets[i]);
	if (s == OK)
		s = take_nodes(&m, src->used_nodes, src->nodes);
	if (s == E_CORRUPT)
		w->damaged = src->from->part;
	return s;
}

static bool dropped(const struct rewrite *w, struct str name)
{
	for (size_t i = 0; i < w->drop_count; i++)
		if (str_eq(w->drop[i], name))
			return true;
	return false;
}

/* Sorted, each once. */
static enum status gather_names(const struct rewrite *w, struct str *names, uint32_t *count)
{
	*count = 0;
	for (size_t i = 0; i < w->count; i++) {
		const struct tabs *t = &w->sources[i].from->tabs;
		for (uint32_t k = 0; k < t->name_count; k++) {
			uint32_t at = 0;
			while (at < *count && str_cmp(names[at], t->names[k]) < 0)
				at++;
			if ((at < *count && str_eq(names[at], t->names[k])) ||
				dropped(w, t->names[k]))
				continue;
			if (*count == TABLES_NAMES_MAX)
				return E_LIMIT;
			for (uint32_t j = (*count)++; j > at; j--)
				names[j] = names[j - 1];
			names[at] = t->names[k];
		}
	}
	return OK;
}

static enum status what_rows_keep(struct rewrite *w)
{
	const struct tabs *t = &w->tabs;
	w->delta = calloc(MAX(t->series_count, 1u), 1);
	w->keep_time = calloc(MAX(t->set_count, 1u), 1);
	if (!w->delta || !w->keep_time)
		return E_NOMEM;
	for (uint32_t i = 0; i < t->series_count; i++)
		w->delta[w->canon.series.to[i]] = t->series[i].delta != 0;
	size_t width = 1 + t->name_count;
	for (uint32_t k = 0; k < t->name_count; k++) {
		if (!str_eq(t->names[k], STR("trace_id")) && !str_eq(t->names[k], STR("span_id")))
			continue;
		for (uint32_t i = 0; i < t->set_count; i++)
			w->keep_time[w->canon.sets.to[i]] |= t->sets[i * width + 1 + k] != 0;
	}
	return OK;
}

static void renumber(uint32_t *v, const uint8_t *used, uint32_t n, const struct renumbering *r)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = used[i] ? r->to[v[i]] : 0;
}

enum status rewrite_make_tables(struct rewrite *w, struct err *e)
{
	struct str names[TABLES_NAMES_MAX];
	uint32_t name_count;
	enum status s = gather_names(w, names, &name_count);
	if (s == OK)
		s = tables_init(&w->tables, w->s->config.memory_bytes / 2, names, name_count);
	w->has_tables = s == OK;
	for (size_t i = 0; i < w->count && s == OK; i++)
		s = take_source(w, &w->sources[i]);
	if (s != OK)
		return err_set(e, s, "the tables of a part that is rewritten");
	tables_view(&w->tables, &w->tabs);
	s = canon_init(&w->canon, &w->tabs);
	if (s == OK)
		s = what_rows_keep(w);
	for (size_t i = 0; i < w->count && s == OK; i++) {
		struct rewrite_source *src = &w->sources[i];
		const struct tabs *f = &src->from->tabs;
		renumber(src->series, src->used_series, f->series_count, &w->canon.series);
		renumber(src->nodes, src->used_nodes, f->node_count, &w->canon.nodes);
		renumber(src->sets, src->used_sets, f->set_count, &w->canon.sets);
	}
	return s == OK ? OK : err_set(e, s, "no memory for the order of a part");
}
