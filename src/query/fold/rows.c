/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one walk over the tree. A function's total is the sum at its outermost frames; a count of
 * how often it is on the path tells these from recursive ones. Totals of edges between functions
 * are found the same way; most functions have one caller, so a function's last edge is tried first.
 * Afterwards the frames of each key are compared once. With a sandwich a walk begins at each stack
 * that it cuts.
 *
 * Inverted, the outermost frame has the own value, and callers and callees change places. With a
 * sandwich it is then a single walk, from the root to the stacks that it cuts.
 */
#include "query/fold/rows.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

/* A frame on the path: remembered so that leaving it needs no search. */
struct step {
	uint32_t key;
	uint32_t edge; /* QUERY_LINE_NONE: the frame has no caller */
};

/* A stack on the way from where the walk began to where it is now. */
struct level {
	uint32_t stack;
	uint32_t next, end; /* its children that are still to be visited */
	uint32_t depth;     /* length of the path before it */
};

/* What the walk needs to know of a key at each frame; kept together for the processor's cache. */
struct seat {
	uint32_t on_path;     /* how often it is */
	uint32_t last_caller; /* of last_edge; QUERY_LINE_NONE: none yet */
	uint32_t last_edge;
};

struct walker {
	const struct query_tree *t;
	struct query_key_rows *rows;
	struct map index;   /* of edges */
	struct seat *seats; /* by key */
	uint8_t *seen;      /* by line */
	VEC(struct step) path;
	VEC(struct level) levels;
	bool edges;
	bool up; /* inverted */
	struct err *e;
};

void query_rows_deinit(struct query_key_rows *r)
{
	VEC_FREE(&r->edges);
	*r = (struct query_key_rows){ 0 };
}

static void walker_deinit(struct walker *w)
{
	map_deinit(&w->index);
	VEC_FREE(&w->path);
	VEC_FREE(&w->levels);
}

static bool edge_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_key_edge *have = &((const struct query_key_rows *)ctx)->edges.v[value];
	const struct query_key_edge *want = key;
	return have->caller == want->caller && have->callee == want->callee;
}

static enum status find_edge(struct walker *w, uint32_t caller, uint32_t callee, uint32_t *out)
{
	struct query_key_edge edge = { .caller = caller, .callee = callee };
	struct seat *seat = &w->seats[callee];
	if (seat->last_caller == caller) {
		*out = seat->last_edge;
		return OK;
	}
	uint64_t hash = hash_u64((uint64_t)caller << 32 | callee);
	/* Mostly the first slot holds the edge, and this finds it without a call of edge_equal()
	 * for each step. */
	*out = map_peek(&w->index, hash);
	if (*out == MAP_NONE || !edge_equal(w->rows, *out, &edge))
		*out = map_find(&w->index, hash, edge_equal, w->rows, &edge);
	if (*out == MAP_NONE) {
		*out = (uint32_t)w->rows->edges.len;
		if (!VEC_PUSH(&w->rows->edges, edge) || !map_insert(&w->index, hash, *out))
			return err_set(w->e, E_NOMEM, "%u callers", *out);
	}
	seat->last_caller = caller;
	seat->last_edge = *out;
	return OK;
}

static void note_frame(struct walker *w, struct query_key_row *row, uint32_t line)
{
	const struct query_line *v = w->t->lines.v;
	const struct profile_location *locations = w->t->stacks.tables.locations.v;
	if (row->line == QUERY_LINE_NONE)
		row->line = line;
	if (row->line == line)
		return;
	const struct profile_location *a = &locations[v[row->line].location];
	const struct profile_location *b = &locations[v[line].location];
	row->many |= v[row->line].line != v[line].line || a->address != b->address;
	row->many_mappings |= a->mapping != b->mapping;
	bool better = b->address < a->address || (b->address == a->address && line < row->line);
	if ((a->mapping != 0) == (b->mapping != 0) ? better : b->mapping != 0)
		row->line = line;
}

static enum status enter_frame(struct walker *w, uint32_t stack, uint32_t line)
{
	const struct query_tree *t = w->t;
	uint32_t key = t->lines.v[line].key;
	struct query_key_row *row = &w->rows->v[key];
	struct step step = { key, QUERY_LINE_NONE };
	w->seen[line] = 1;
	if (w->seats[key].on_path++ == 0) {
		row->total = query_add(row->total, t->total[stack]);
		if (t->total_diff)
			row->total_diff = query_add(row->total_diff, t->total_diff[stack]);
	}
	if (w->edges && w->path.len > 0) {
		uint32_t caller = w->path.v[w->path.len - 1].key;
		enum status s = w->up ? find_edge(w, key, caller, &step.edge)
				      : find_edge(w, caller, key, &step.edge);
		if (s != OK)
			return s;
		struct query_key_edge *edge = &w->rows->edges.v[step.edge];
		if (edge->on_path++ == 0)
			edge->total = query_add(edge->total, t->total[stack]);
	}
	return VEC_PUSH(&w->path, step) ? OK : err_set(w->e, E_NOMEM, "a path of %zu", w->path.len);
}

/* The walk goes no deeper than this stack. */
static bool is_end(const struct walker *w, uint32_t stack)
{
	return w->up && w->t->cut && w->t->cut[stack] == stack;
}

/* A stack whose frames were all left out adds its value to no row. */
static enum status enter(struct walker *w, uint32_t stack, uint32_t first, uint32_t end)
{
	const struct query_tree *t = w->t;
	bool last = is_end(w, stack);
	int64_t self = t->stacks.v.v[stack].self, diff = query_stack_diff(&t->stacks, stack);
	enum status s = OK;
	struct level level = { stack, t->first_child[last ? stack + 1 : stack],
		t->first_child[stack + 1], (uint32_t)w->path.len };
	if (!VEC_PUSH(&w->levels, level))
		return err_set(w->e, E_NOMEM, "a stack of %zu", w->levels.len);
	if (last) {
		end = query_tree_cut_line(t, first, end, true) + 1;
		self = t->total[stack];
		diff = t->total_diff ? t->total_diff[stack] : 0;
	}
	for (uint32_t i = first; s == OK && i < end; i++)
		if (t->lines.v[i].kept)
			s = enter_frame(w, stack, i);
	if (s != OK || w->path.len == 0)
		return s;
	struct query_key_row *row = &w->rows->v[w->path.v[w->up ? 0 : w->path.len - 1].key];
	row->self = query_add(row->self, self);
	row->self_diff = query_add(row->self_diff, diff);
	return OK;
}

static void leave(struct walker *w)
{
	struct level level = w->levels.v[--w->levels.len];
	while (w->path.len > level.depth) {
		struct step step = w->path.v[--w->path.len];
		w->seats[step.key].on_path--;
		if (step.edge != QUERY_LINE_NONE)
			w->rows->edges.v[step.edge].on_path--;
	}
}

/* Walks without recursion: from a stack to its next child, and back to its parent after the last.
 */
static enum status walk(struct walker *w, uint32_t from, uint32_t first, uint32_t end)
{
	const struct query_tree *t = w->t;
	enum status s = enter(w, from, first, end);
	while (s == OK && w->levels.len > 0) {
		struct level *level = &w->levels.v[w->levels.len - 1];
		if (level->next == level->end) {
			leave(w);
			continue;
		}
		uint32_t child = t->child[level->next++];
		if (t->cut && !w->up && t->cut[child] != from)
			continue;
		first = query_tree_lines(t, child, &end);
		s = enter(w, child, first, end);
	}
	return s;
}

static enum status walk_all(struct walker *w)
{
	const struct query_tree *t = w->t;
	enum status s = OK;
	if (!t->cut || w->up)
		return walk(w, 0, 0, 0);
	for (uint32_t i = 0; s == OK && i < t->count; i++) {
		if (!t->live[i] || t->cut[i] != i)
			continue;
		uint32_t end, first = query_tree_lines(t, i, &end);
		s = walk(w, i, query_tree_cut_line(t, first, end, false), end);
	}
	return s;
}

/* ---- order ---- */

static uint64_t address_of(const struct walker *w, const struct query_key_row *row)
{
	uint32_t location = w->t->lines.v[row->line].location;
	return w->t->stacks.tables.locations.v[location].address;
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
	uint32_t lines = w->t->lines.first[w->t->stacks.tables.locations.len];
	for (uint32_t i = 0; i < lines; i++)
		if (w->seen[i])
			note_frame(w, &r->v[w->t->lines.v[i].key], i);
	for (uint32_t key = 0; key < w->t->lines.key_count; key++)
		if (r->v[key].line != QUERY_LINE_NONE)
			r->order[r->count++] = key;
	if (r->count > 1)
		qsort_r(r->order, r->count, sizeof(*r->order), compare_keys, w);
	for (uint32_t i = 0; i < r->count; i++)
		r->v[r->order[i]].row = i;
	if (r->edges.len > 1)
		qsort(r->edges.v, r->edges.len, sizeof(*r->edges.v), compare_edges);
}

enum status query_rows_make(struct query_key_rows *r, const struct query_tree *t, bool invert,
	bool edges, struct arena *a, struct err *e)
{
	size_t keys = t->lines.key_count;
	CLEANUP(walker_deinit)
	struct walker w = { .t = t, .rows = r, .edges = edges, .up = invert, .e = e };
	*r = (struct query_key_rows){ 0 };
	r->v = ARENA_ARRAY(a, struct query_key_row, keys);
	r->order = ARENA_ARRAY(a, uint32_t, keys);
	w.seats = ARENA_ARRAY(a, struct seat, keys);
	w.seen = ARENA_ARRAY(a, uint8_t, t->lines.first[t->stacks.tables.locations.len]);
	if (!r->v || !r->order || !w.seats || !w.seen)
		return err_set(e, arena_status(a), "table of %zu functions", keys);
	for (size_t i = 0; i < keys; i++)
		r->v[i].line = r->v[i].row = w.seats[i].last_caller = QUERY_LINE_NONE;
	enum status s = walk_all(&w);
	if (s == OK)
		put_in_order(&w);
	else
		query_rows_deinit(r);
	return s;
}
