/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one walk over the tree. A function's total is the sum at its outermost frames; the path
 * links the steps of each function, which tells these from recursive ones. Totals of edges between
 * functions are found the same way; most functions have one caller, so a function's last edge is
 * tried first. Afterwards the frames of each key are compared once. With a sandwich a walk begins
 * at each stack that it cuts.
 *
 * The walk waits for memory more than it computes: what it needs at each frame lies together, a
 * stack with one child is left with the next one above it, and edges are looked for when their
 * slots have come.
 *
 * Inverted, the outermost frame has the own value, and callers and callees change places. With a
 * sandwich it is then a single walk, from the root to the stacks that it cuts.
 */
#include "query/fold/rows.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

/* Edges that were met, and are not yet looked for. */
#define MET_COUNT 16 /* a power of two */

/* A frame on the path. */
struct step {
	uint32_t key;
	uint32_t before; /* path index + 1 of the last step above with the same key; 0: none */
};

/* A stack on the way from where the walk began that has more children to be visited. */
struct level {
	uint32_t next, end; /* these */
	uint32_t depth;     /* length of the path with its frames */
};

/* What the walk needs of a key at each frame; kept together for the processor's cache. */
struct seat {
	uint32_t step;        /* its last step, path index + 1; 0: it is not on the path */
	uint32_t last_caller; /* of last_edge; QUERY_LINE_NONE: none yet */
	uint32_t last_edge;
	int64_t total, self;
};

struct met {
	uint32_t caller, callee;
	int64_t total;
	uint64_t hash;
};

struct walker {
	const struct query_tree *t;
	struct query_key_rows *rows;
	struct map index;   /* of edges */
	struct seat *seats; /* by key */
	uint32_t *keys;     /* by line; QUERY_LINE_NONE: a filter leaves the frame out */
	uint8_t *seen;      /* by line */
	struct met met[MET_COUNT];
	uint64_t met_count; /* since the beginning; the last MET_COUNT wait */
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

static uint32_t line_count(const struct query_tree *t)
{
	return t->lines.first[t->stacks.tables.locations.len];
}

static bool edge_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_key_edge *have = &((const struct query_key_rows *)ctx)->edges.v[value];
	const struct query_key_edge *want = key;
	return have->caller == want->caller && have->callee == want->callee;
}

static enum status find_edge(struct walker *w, const struct met *m)
{
	struct query_key_edge edge = { .caller = m->caller, .callee = m->callee };
	/* Mostly the first slot holds the edge, and this finds it without a call of edge_equal()
	 * for each step. */
	uint32_t at = map_peek(&w->index, m->hash);
	if (at == MAP_NONE || !edge_equal(w->rows, at, &edge))
		at = map_find(&w->index, m->hash, edge_equal, w->rows, &edge);
	if (at == MAP_NONE) {
		at = (uint32_t)w->rows->edges.len;
		if (!VEC_PUSH(&w->rows->edges, edge) || !map_insert(&w->index, m->hash, at))
			return err_set(w->e, E_NOMEM, "%u callers", at);
	}
	struct query_key_edge *found = &w->rows->edges.v[at];
	found->total = query_add(found->total, m->total);
	w->seats[m->callee].last_caller = m->caller;
	w->seats[m->callee].last_edge = at;
	return OK;
}

/* Looking for an edge waits for memory, so it is done a few edges later, when its slot has come. */
static enum status meet_edge(struct walker *w, uint32_t caller, uint32_t callee, int64_t total)
{
	const struct seat *seat = &w->seats[callee];
	if (seat->last_caller == caller) {
		struct query_key_edge *edge = &w->rows->edges.v[seat->last_edge];
		edge->total = query_add(edge->total, total);
		return OK;
	}
	struct met *m = &w->met[w->met_count % MET_COUNT];
	enum status s = w->met_count >= MET_COUNT ? find_edge(w, m) : OK;
	*m = (struct met){ caller, callee, total, hash_u64((uint64_t)caller << 32 | callee) };
	map_prefetch(&w->index, m->hash);
	w->met_count++;
	return s;
}

static enum status find_last_edges(struct walker *w)
{
	enum status s = OK;
	uint64_t first = w->met_count - MIN(w->met_count, (uint64_t)MET_COUNT);
	for (uint64_t i = first; s == OK && i < w->met_count; i++)
		s = find_edge(w, &w->met[i % MET_COUNT]);
	return s;
}

/* Whether the seat's key follows `above` somewhere on the path, as it will at its end. */
static bool is_repeated(const struct walker *w, const struct seat *seat, uint32_t above)
{
	for (uint32_t at = seat->step; at > 1; at = w->path.v[at - 1].before)
		if (w->path.v[at - 2].key == above)
			return true;
	return false;
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
	uint32_t key = w->keys[line];
	if (key == QUERY_LINE_NONE)
		return OK;
	struct seat *seat = &w->seats[key];
	enum status s = OK;
	w->seen[line] = 1;
	if (seat->step == 0) {
		seat->total = query_add(seat->total, t->total[stack]);
		if (t->total_diff) {
			struct query_key_row *row = &w->rows->v[key];
			row->total_diff = query_add(row->total_diff, t->total_diff[stack]);
		}
	}
	if (w->edges && w->path.len > 0) {
		uint32_t above = w->path.v[w->path.len - 1].key;
		if (!is_repeated(w, seat, above))
			s = meet_edge(w, w->up ? key : above, w->up ? above : key, t->total[stack]);
	}
	struct step step = { key, seat->step };
	if (s != OK || !VEC_PUSH(&w->path, step))
		return s != OK ? s : err_set(w->e, E_NOMEM, "a path of %zu", w->path.len);
	seat->step = (uint32_t)w->path.len;
	return OK;
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
	int64_t self = t->stacks.v.v[stack].self, diff = query_stack_diff(&t->stacks, stack);
	enum status s = OK;
	if (is_end(w, stack)) {
		end = query_tree_cut_line(t, first, end, true) + 1;
		self = t->total[stack];
		diff = t->total_diff ? t->total_diff[stack] : 0;
	}
	for (uint32_t i = first; s == OK && i < end; i++)
		s = enter_frame(w, stack, i);
	if (s != OK || w->path.len == 0)
		return s;
	uint32_t key = w->path.v[w->up ? 0 : w->path.len - 1].key;
	if (self)
		w->seats[key].self = query_add(w->seats[key].self, self);
	if (diff)
		w->rows->v[key].self_diff = query_add(w->rows->v[key].self_diff, diff);
	return OK;
}

static void leave(struct walker *w, uint32_t depth)
{
	while (w->path.len > depth) {
		struct step step = w->path.v[--w->path.len];
		w->seats[step.key].step = step.before;
	}
}

/* The next stack: a child, or one of the nearest stack above that has more. QUERY_LINE_NONE: there
 * is none. */
static enum status go_on(struct walker *w, uint32_t from, struct level l, uint32_t *out)
{
	const struct query_tree *t = w->t;
	for (;;) {
		if (l.next == l.end) {
			if (w->levels.len == 0)
				break;
			l = w->levels.v[--w->levels.len];
			continue;
		}
		uint32_t child = t->child[l.next++];
		if (t->cut && !w->up && t->cut[child] != from)
			continue;
		leave(w, l.depth);
		*out = child;
		return l.next == l.end || VEC_PUSH(&w->levels, l)
			       ? OK
			       : err_set(w->e, E_NOMEM, "a stack of %zu", w->levels.len);
	}
	leave(w, 0);
	*out = QUERY_LINE_NONE;
	return OK;
}

/* Walks without recursion: from a stack to its first child, and after a stack without children to
 * the next child of the nearest one above. */
static enum status walk(struct walker *w, uint32_t from, uint32_t first, uint32_t end)
{
	const struct query_tree *t = w->t;
	for (uint32_t stack = from;;) {
		enum status s = enter(w, stack, first, end);
		struct level below = { t->first_child[stack], t->first_child[stack + 1],
			(uint32_t)w->path.len };
		if (is_end(w, stack))
			below.next = below.end;
		if (s == OK)
			s = go_on(w, from, below, &stack);
		if (s != OK || stack == QUERY_LINE_NONE)
			return s;
		first = query_tree_lines(t, stack, &end);
	}
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
	for (uint32_t i = 0; i < line_count(w->t); i++)
		if (w->seen[i])
			note_frame(w, &r->v[w->t->lines.v[i].key], i);
	for (uint32_t key = 0; key < w->t->lines.key_count; key++) {
		r->v[key].total = w->seats[key].total;
		r->v[key].self = w->seats[key].self;
		if (r->v[key].line != QUERY_LINE_NONE)
			r->order[r->count++] = key;
	}
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
	w.keys = ARENA_ARRAY(a, uint32_t, line_count(t));
	w.seen = ARENA_ARRAY(a, uint8_t, line_count(t));
	if (!r->v || !r->order || !w.seats || !w.keys || !w.seen)
		return err_set(e, arena_status(a), "table of %zu functions", keys);
	for (size_t i = 0; i < keys; i++)
		r->v[i].line = r->v[i].row = w.seats[i].last_caller = QUERY_LINE_NONE;
	for (uint32_t i = 0; i < line_count(t); i++)
		w.keys[i] = t->lines.v[i].kept ? t->lines.v[i].key : QUERY_LINE_NONE;
	enum status s = walk_all(&w);
	if (s == OK)
		s = find_last_edges(&w);
	if (s == OK)
		put_in_order(&w);
	else
		query_rows_deinit(r);
	return s;
}
