/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one walk over the tree of calls. A function's total is the sum of its topmost calls: a count
 * of how often it is on the path tells those from recursion. The same for the edges between
 * functions.
 */
#include "query/report.h"

struct walker {
	const struct query_calls *c;
	struct query_key_rows *rows;
	struct map index;  /* of edges */
	uint32_t *on_path; /* by key */
	uint32_t *edge_of; /* by call */
	VEC(uint32_t) edge_on_path;
	uint32_t *next; /* by call: which of its children comes next */
	struct err *e;
};

void query_rows_deinit(struct query_key_rows *r)
{
	VEC_FREE(&r->edges);
	*r = (struct query_key_rows){ 0 };
}

static bool edge_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_key_edge *have = &((const struct query_key_rows *)ctx)->edges.v[value];
	const struct query_key_edge *want = key;
	return have->caller == want->caller && have->callee == want->callee;
}

/* Between the call and the one above it; groups of labels and the root are no callers. */
static enum status find_edge(struct walker *w, uint32_t call, uint32_t *out)
{
	const struct query_call *at = &w->c->v.v[call];
	struct query_key_edge edge = { w->c->v.v[at->parent].key, at->key, 0 };
	*out = QUERY_LINE_NONE;
	if (edge.caller == QUERY_LINE_NONE || edge.callee == QUERY_LINE_NONE)
		return OK;
	uint64_t hash = hash_u64((uint64_t)edge.caller << 32 | edge.callee);
	*out = map_find(&w->index, hash, edge_equal, w->rows, &edge);
	if (*out != MAP_NONE)
		return OK;
	*out = (uint32_t)w->rows->edges.len;
	if (VEC_PUSH(&w->rows->edges, edge) && VEC_PUSH(&w->edge_on_path, 0) &&
		map_insert(&w->index, hash, *out))
		return OK;
	return err_set(w->e, E_NOMEM, "%u callers", *out);
}

static void note_difference(struct walker *w, struct query_key_row *row, uint32_t call)
{
	const struct query_call *a = &w->c->v.v[row->call], *b = &w->c->v.v[call];
	const struct profile *p = &w->c->stacks.tables;
	row->many |= a->line != b->line || (b->mixed & (QUERY_MIXED_LINE | QUERY_MIXED_ADDRESS));
	row->many_mappings |=
		p->locations.v[a->location].mapping != p->locations.v[b->location].mapping ||
		(b->mixed & (QUERY_MIXED_MAPPING | QUERY_MIXED_BUILD_ID));
}

static enum status enter(struct walker *w, uint32_t call)
{
	const struct query_call *at = &w->c->v.v[call];
	if (at->key == QUERY_LINE_NONE)
		return OK;
	struct query_key_row *row = &w->rows->v[at->key];
	if (row->call == 0)
		row->call = call;
	note_difference(w, row, call);
	row->self = query_add(row->self, at->self);
	row->self_diff = query_add(row->self_diff, at->self_diff);
	if (w->on_path[at->key]++ == 0) {
		row->total = query_add(row->total, at->total);
		row->total_diff = query_add(row->total_diff, at->total_diff);
	}
	enum status s = find_edge(w, call, &w->edge_of[call]);
	uint32_t edge = w->edge_of[call];
	if (s == OK && edge != QUERY_LINE_NONE && w->edge_on_path.v[edge]++ == 0)
		w->rows->edges.v[edge].total = query_add(w->rows->edges.v[edge].total, at->total);
	return s;
}

static void leave(struct walker *w, uint32_t call)
{
	const struct query_call *at = &w->c->v.v[call];
	if (at->key == QUERY_LINE_NONE)
		return;
	w->on_path[at->key]--;
	if (w->edge_of[call] != QUERY_LINE_NONE)
		w->edge_on_path.v[w->edge_of[call]]--;
}

/* No recursion: from a call to its next child, and back to its parent when there is none. */
static enum status walk(struct walker *w)
{
	const struct query_calls *c = w->c;
	for (uint32_t at = 0;;) {
		if (w->next[at] < c->first_child[at + 1]) {
			at = c->child[w->next[at]++];
			enum status s = enter(w, at);
			if (s != OK)
				return s;
			continue;
		}
		if (at == 0)
			return OK;
		leave(w, at);
		at = c->v.v[at].parent;
	}
}

/* ---- order ---- */

static uint64_t address_of(const struct walker *w, const struct query_key_row *row)
{
	return w->c->stacks.tables.locations.v[w->c->v.v[row->call].location].address;
}

static int compare_keys(const void *pa, const void *pb, void *ctx)
{
	const struct walker *w = ctx;
	uint32_t ka = *(const uint32_t *)pa, kb = *(const uint32_t *)pb;
	const struct query_key_row *a = &w->rows->v[ka], *b = &w->rows->v[kb];
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	uint64_t x = address_of(w, a), y = address_of(w, b);
	return x != y ? (x < y ? -1 : 1) : ka < kb ? -1 : ka > kb;
}

static int compare_edges(const void *pa, const void *pb)
{
	const struct query_key_edge *a = pa, *b = pb;
	if (a->caller != b->caller)
		return a->caller < b->caller ? -1 : 1;
	return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static void put_in_order(struct walker *w)
{
	struct query_key_rows *r = w->rows;
	for (uint32_t key = 0; key < w->c->lines.key_count; key++) {
		r->v[key].row = QUERY_LINE_NONE;
		if (r->v[key].call)
			r->order[r->count++] = key;
	}
	if (r->count > 1)
		qsort_r(r->order, r->count, sizeof(*r->order), compare_keys, w);
	for (uint32_t i = 0; i < r->count; i++)
		r->v[r->order[i]].row = i;
	if (r->edges.len > 1)
		qsort(r->edges.v, r->edges.len, sizeof(*r->edges.v), compare_edges);
}

enum status query_rows_make(
	struct query_key_rows *r, const struct query_calls *c, struct arena *a, struct err *e)
{
	size_t keys = c->lines.key_count, calls = c->v.len;
	struct walker w = { .c = c, .rows = r, .e = e };
	*r = (struct query_key_rows){ 0 };
	r->v = ARENA_ARRAY(a, struct query_key_row, keys);
	r->order = ARENA_ARRAY(a, uint32_t, keys);
	w.on_path = ARENA_ARRAY(a, uint32_t, keys);
	w.edge_of = ARENA_ARRAY(a, uint32_t, calls);
	w.next = ARENA_ARRAY(a, uint32_t, calls);
	if (!r->v || !r->order || !w.on_path || !w.edge_of || !w.next)
		return err_set(e, arena_status(a), "table of %zu functions", keys);
	memcpy(w.next, c->first_child, calls * sizeof(*w.next));
	enum status s = walk(&w);
	if (s == OK)
		put_in_order(&w);
	map_deinit(&w.index);
	VEC_FREE(&w.edge_on_path);
	if (s != OK)
		query_rows_deinit(r);
	return s;
}
