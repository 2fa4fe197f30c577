/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the levels of a flame graph as a tree, in preorder. Nodes of a level are ordered from left
 * to right, and so is the walk: each level has a cursor and is read once, since a node's children
 * are the next ones of the level below.
 */
#include "pyroscope/tree.h"
#include "base/arena.h"

#define TUPLE 4 /* x after the node before, total, self, name */

struct cursor {
	size_t at;     /* the next tuple of the level */
	uint64_t left; /* children of the open node one level above */
};

struct walk {
	const struct pyroscope_flame *f;
	struct cursor *levels; /* one more than the levels of the flame graph */
	tree_visit_fn *visit;
	void *ctx;
};

/* Visits the next node of a level. */
static void visit_node(struct walk *w, size_t level)
{
	const struct pyroscope_level *l = &w->f->levels[level];
	size_t at = w->levels[level].at++;
	const int64_t *v = l->v + at * TUPLE;
	uint64_t count = l->children[at];
	w->levels[level + 1].left = count;
	const struct tree_node n = { .level = level,
		.name = level ? (uint32_t)v[3] : 0,
		.total = v[1],
		.self = v[2],
		.children = count };
	w->visit(w->ctx, &n);
}

enum status tree_walk(const struct pyroscope_flame *f, struct arena *a, tree_visit_fn *visit,
	void *ctx, struct err *e)
{
	struct walk w = { f, ARENA_ARRAY(a, struct cursor, f->level_count + 1), visit, ctx };
	if (!w.levels)
		return err_set(e, arena_status(a), "%zu levels", f->level_count);
	if (f->total == 0)
		return OK;
	visit_node(&w, 0);
	for (size_t level = 1; level > 0;) {
		if (w.levels[level].left == 0) {
			level--;
			continue;
		}
		w.levels[level].left--;
		visit_node(&w, level++);
	}
	return OK;
}

/* ---- as Pyroscope's tree ---- */

struct writer {
	const struct pyroscope_flame *f;
	struct buf *out;
};

static void put_node(void *ctx, const struct tree_node *n)
{
	const struct writer *w = ctx;
	struct str name = n->level ? w->f->names[n->name] : STR("");
	buf_varint(w->out, name.len);
	buf_str(w->out, name);
	buf_varint(w->out, (uint64_t)n->self);
	buf_varint(w->out, n->children);
}

enum status pyroscope_tree_write(
	const struct pyroscope_flame *f, struct arena *a, struct buf *out, struct err *e)
{
	struct writer w = { f, out };
	return tree_walk(f, a, put_node, &w, e);
}
