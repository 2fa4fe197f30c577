/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: self is one add a node. A function's total is the sum of its topmost nodes: those with no
 * node of the same function above them. A walk down the fold counts, for each function, how often
 * it is on the path; the count tells topmost nodes from recursion.
 */
#include "query/internal.h"

struct walker {
	const struct query_fold *fold;
	struct query_row *rows; /* by frame */
	uint32_t *on_path;      /* by frame */
	uint32_t *first;
	uint32_t *list;
};

static void enter(struct walker *w, uint32_t node)
{
	const struct query_fold_node *n = &w->fold->nodes.v[node];
	struct query_row *row = &w->rows[n->frame];
	row->self = query_add(row->self, n->self);
	if (w->on_path[n->frame]++ == 0)
		row->total = query_add(row->total, n->total);
}

/* No recursion: from a node to its next child, and back to its parent when there is none; first[]
 * is used up on the way. */
static void walk(struct walker *w, const uint32_t *end)
{
	uint32_t node = 0;
	for (;;) {
		if (w->first[node] < end[node]) {
			node = w->list[w->first[node]++];
			enter(w, node);
			continue;
		}
		if (node == 0)
			return;
		w->on_path[w->fold->nodes.v[node].frame]--;
		node = w->fold->nodes.v[node].parent;
	}
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct query_row *a = pa, *b = pb;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	int by_text = str_cmp(a->name, b->name);
	if (by_text == 0)
		by_text = str_cmp(a->binary, b->binary);
	return by_text ? by_text : (int)a->kind - (int)b->kind;
}

static enum status count_rows(
	struct query_tree *t, struct arena *work, struct query_row *rows, struct err *e)
{
	struct walker w = { .fold = &t->fold, .rows = rows };
	enum status s = query_fold_children(&t->fold, work, &w.first, &w.list, e);
	if (s != OK)
		return s;
	uint32_t *end = ARENA_ARRAY(work, uint32_t, t->fold.nodes.len);
	w.on_path = ARENA_ARRAY(work, uint32_t, t->frames.count);
	if (!end || !w.on_path)
		return err_set(e, arena_status(work), "table of %u functions", t->frames.count);
	memcpy(end, w.first + 1, t->fold.nodes.len * sizeof(*end));
	walk(&w, end);
	return OK;
}

static bool keep_text(struct arena *a, struct str *s)
{
	char *copy = arena_copy(a, s->p, s->len);
	*s = str_make(copy, s->len);
	return copy;
}

static enum status table_of(struct query_tree *t, const struct query_request *r, struct arena *work,
	struct arena *a, struct query_table *out, struct err *e)
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
		row.kind = f->kind;
		rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
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
	out->total = t->total;
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
