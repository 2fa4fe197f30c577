/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only elements that taken rows use are interned: series and sets by their marks, trie nodes by
 * their marks and those of their descendants, and the locations, functions, mappings and strings
 * that these refer to.
 */
#include "store/merge/rewrite.h"
#include "store/merge/take.h"

#include <stdlib.h>

static enum status take_nodes(struct take *m, uint8_t *used, uint32_t *out)
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
			s = tables_add_node(m->to, out[f->parent[i]], location, &out[i]);
		if (s != OK)
			return s;
	}
	return OK;
}

/* If rows are chosen by their sets, the profile stays as long as its series. */
static bool profile_taken(const struct rewrite_source *src, const struct tab_profile *x)
{
	const struct merge_filter *r = &src->rule;
	int64_t t = x->time_ns;
	if (src->from->part)
		t = part_row_time(part_meta(src->from->part), t);
	bool inside = t >= r->from_ns && t <= r->last_ns;
	bool match = r->series && r->series[x->series] && inside;
	if (!src->used_series[x->series])
		return false;
	return match == r->take_matching || (match && r->sets);
}

static enum status take_profiles(struct take *m, const struct rewrite_source *src)
{
	const struct tabs *f = m->from;
	enum status s = OK;
	for (uint32_t i = 0; i < f->profile_count && s == OK; i++) {
		struct tab_profile x = f->profiles[i];
		if (!profile_taken(src, &x))
			continue;
		x.series = src->cursor.series[x.series];
		s = tables_add_profile(m->to, &x);
	}
	return s;
}

/* ---- all of it ---- */

static enum status take_source(struct rewrite *w, struct rewrite_source *src)
{
	const struct tabs *f = &src->from->tabs;
	CLEANUP(take_deinit) struct take m = { 0 };
	enum status s = take_init(&m, &w->tables, f);
	src->cursor.series = calloc(MAX(f->series_count, 1u), sizeof(uint32_t));
	src->cursor.nodes = calloc(MAX(f->node_count, 1u), sizeof(uint32_t));
	src->cursor.sets = calloc(MAX(f->set_count, 1u), sizeof(uint32_t));
	if (!src->cursor.series || !src->cursor.nodes || !src->cursor.sets)
		s = E_NOMEM;
	for (uint32_t i = 0; i < f->series_count && s == OK; i++)
		if (src->used_series[i])
			s = take_series(&m, i, &src->cursor.series[i]);
	if (s == OK)
		s = take_profiles(&m, src);
	for (uint32_t i = 0; i < f->set_count && s == OK; i++)
		if (src->used_sets[i])
			s = take_set(&m, i, &src->cursor.sets[i]);
	if (s == OK)
		s = take_nodes(&m, src->used_nodes, src->cursor.nodes);
	if (s == E_CORRUPT)
		w->damaged = src->from->part;
	return s;
}

static void renumber(uint32_t *v, const uint8_t *used, uint32_t n, const struct renumbering *r)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = used[i] ? r->to[v[i]] : 0;
}

enum status rewrite_make_tables(struct rewrite *w, struct err *e)
{
	struct take_names names = { 0 };
	enum status s = OK;
	for (size_t i = 0; i < w->count && s == OK; i++)
		s = take_names_add(&names, &w->sources[i].from->tabs, w->drop, w->drop_count);
	if (s == OK)
		s = tables_init(&w->tables, w->s->config.memory_bytes / 2, names.v, names.count);
	w->has_tables = s == OK;
	for (size_t i = 0; i < w->count && s == OK; i++)
		s = take_source(w, &w->sources[i]);
	if (s != OK)
		return err_set(e, s, "the tables of a part that is rewritten");
	tables_view(&w->tables, &w->tabs);
	s = canon_init(&w->canon, &w->tabs);
	if (s == OK)
		s = take_rounding_init(&w->rounding, &w->tabs, &w->canon);
	for (size_t i = 0; i < w->count && s == OK; i++) {
		struct rewrite_source *src = &w->sources[i];
		const struct tabs *f = &src->from->tabs;
		renumber(src->cursor.series, src->used_series, f->series_count, &w->canon.series);
		renumber(src->cursor.nodes, src->used_nodes, f->node_count, &w->canon.nodes);
		renumber(src->cursor.sets, src->used_sets, f->set_count, &w->canon.sets);
	}
	return s == OK ? OK : err_set(e, s, "no memory for the order of a part");
}
