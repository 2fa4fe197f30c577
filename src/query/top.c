/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: self is one add a node. A function's total is the sum of its topmost nodes: those with no
 * node of the same function above them. A walk down the tree counts, for each function, how often
 * it is on the path; the count tells topmost nodes from recursion.
 */
#include "query/internal.h"

struct walker {
	const struct query_tree *t;
	struct query_row *rows; /* by frame */
	uint32_t *on_path;      /* by frame */
	uint32_t *next;         /* by node: which of its children comes next */
};

static void enter(struct walker *w, uint32_t node)
{
	uint32_t count = 0;
	const uint32_t *ids = query_tree_frames(w->t, node, &count);
	struct query_row *row = NULL;
	for (uint32_t k = 0; k < count; k++) {
		uint32_t frame = ids[k] & ~QUERY_FRAME_INLINED;
		row = &w->rows[frame];
		if (w->on_path[frame]++ == 0)
			row->total = query_add(row->total, w->t->total[node]);
	}
	if (row)
		row->self = query_add(row->self, w->t->self[node]);
}

static void leave(struct walker *w, uint32_t node)
{
	uint32_t count = 0;
	const uint32_t *ids = query_tree_frames(w->t, node, &count);
	for (uint32_t k = 0; k < count; k++)
		w->on_path[ids[k] & ~QUERY_FRAME_INLINED]--;
}

/* No recursion: from a node to its next child, and back to its parent when there is none. */
static void walk(struct walker *w)
{
	const struct query_tree *t = w->t;
	for (uint32_t node = 0;;) {
		if (w->next[node] < t->first_child[node + 1]) {
			node = t->child[w->next[node]++];
			enter(w, node);
			continue;
		}
		if (node == 0)
			return;
		leave(w, node);
		node = t->store.nodes.v[node].parent;
	}
}

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct query_row *a = pa, *b = pb;
	bool by_total = ((const struct query_request *)ctx)->by_total;
	int64_t x = by_total ? a->total : a->self, y = by_total ? b->total : b->self;
	if (x == y) {
		x = by_total ? a->self : a->total;
		y = by_total ? b->self : b->total;
	}
	if (x != y)
		return x > y ? -1 : 1;
	int by_text = str_cmp(a->name, b->name);
	if (by_text == 0)
		by_text = str_cmp(a->binary, b->binary);
	return by_text ? by_text : (int)a->kind - (int)b->kind;
}

static enum status count_rows(
	const struct query_tree *t, struct arena *work, struct query_row *rows, struct err *e)
{
	struct walker w = { .t = t, .rows = rows };
	w.next = ARENA_ARRAY(work, uint32_t, t->count);
	w.on_path = ARENA_ARRAY(work, uint32_t, t->frames.count);
	if (!w.next || !w.on_path)
		return err_set(e, arena_status(work), "table of %u functions", t->frames.count);
	memcpy(w.next, t->first_child, t->count * sizeof(*w.next));
	walk(&w);
	return OK;
}

static bool keep_text(struct arena *a, struct str *s)
{
	char *copy = arena_copy(a, s->p, s->len);
	*s = str_make(copy, s->len);
	return copy;
}

static enum status table_of(const struct query_tree *t, const struct query_request *r,
	struct arena *work, struct arena *a, struct query_table *out, struct err *e)
{
	const struct profile *tables = &t->store.tables;
	struct query_row *rows = ARENA_ARRAY(work, struct query_row, t->frames.count);
	if (!rows)
		return err_set(e, arena_status(work), "table of %u functions", t->frames.count);
	enum status s = count_rows(t, work, rows, e);
	if (s != OK)
		return s;
	uint32_t count = 0;
	for (uint32_t i = 0; i < t->frames.count; i++) {
		const struct query_frame *f = &t->frames.v[i];
		struct query_row row = rows[i];
		if (row.self == 0 && row.total == 0)
			continue;
		row.name = profile_str(tables, f->name);
		row.binary = profile_str(tables, f->binary);
		row.file = profile_str(tables, f->file);
		row.line = f->line;
		row.kind = f->kind;
		row.self = query_scale(row.self, t->unit.factor);
		row.total = query_scale(row.total, t->unit.factor);
		rows[count++] = row;
	}
	qsort_r(rows, count, sizeof(*rows), compare_rows, (void *)(uintptr_t)r);
	out->functions = count;
	if (r->limit && count > r->limit)
		count = r->limit;
	out->rows = ARENA_ARRAY(a, struct query_row, count);
	if (!out->rows)
		return err_set(e, arena_status(a), "table of %u functions", count);
	for (out->count = 0; out->count < count; out->count++) {
		struct query_row *row = &out->rows[out->count];
		*row = rows[out->count];
		if (!keep_text(a, &row->name) || !keep_text(a, &row->binary) ||
			!keep_text(a, &row->file))
			return err_set(e, arena_status(a), "table of %u functions", count);
	}
	out->total = query_scale(t->total[0], t->unit.factor);
	return OK;
}

enum status query_top(const struct query_engine *q, const struct query_request *r, struct arena *a,
	struct query_table *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena work;
	arena_init(&work, a->limit - a->used);
	struct query_tree t;
	enum status s = query_tree_make(&t, q, r, &work, e);
	if (s != OK)
		return s;
	struct query_table made = { .unit = t.unit.name };
	if (t.has_store)
		s = table_of(&t, r, &work, a, &made, e);
	if (s == OK && !keep_text(a, &made.unit))
		s = err_set(e, arena_status(a), "unit");
	if (s == OK)
		*out = made;
	query_tree_deinit(&t);
	return s;
}
