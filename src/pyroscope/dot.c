/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the tree is walked, the functions on the path from the root are counted: if a node's
 * function is on the path already, the node adds nothing to the function's total, nor to an edge to
 * it, since the node above has added the same samples.
 */
#include "base/arena.h"
#include "pyroscope/tree.h"
#include "pyroscope/wrap.h"

#include <inttypes.h>
#include <stdlib.h>

#define SCALE 100 /* the largest weight; weights are shares of the total */

struct call {
	uint32_t from, to; /* names */
	int64_t value;
};

struct graph {
	const struct pyroscope_flame *f;
	int64_t *self, *total; /* by name */
	uint32_t *on_path;     /* by name: how often it is on the path */
	uint32_t *path;        /* by level: name */
	size_t depth;
	struct map index; /* of calls */
	VEC(struct call) calls;
	bool no_memory;
};

static bool call_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct call *a = &((const struct graph *)ctx)->calls.v[value], *b = key;
	return a->from == b->from && a->to == b->to;
}

static void add_call(struct graph *g, uint32_t from, uint32_t to, int64_t value)
{
	struct call call = { from, to, value };
	uint64_t hash = hash_u64((uint64_t)from << 32 | to);
	uint32_t at = map_find(&g->index, hash, call_equal, g, &call);
	if (at != MAP_NONE)
		g->calls.v[at].value = wrap_add(g->calls.v[at].value, value);
	else if (!map_insert(&g->index, hash, (uint32_t)g->calls.len) || !VEC_PUSH(&g->calls, call))
		g->no_memory = true;
}

static void add_node(void *ctx, const struct tree_node *n)
{
	struct graph *g = ctx;
	while (g->depth > n->level)
		g->on_path[g->path[--g->depth]]--;
	if (n->level > 0) {
		g->self[n->name] = wrap_add(g->self[n->name], n->self);
		if (g->on_path[n->name] == 0) {
			g->total[n->name] = wrap_add(g->total[n->name], n->total);
			if (n->level > 1)
				add_call(g, g->path[n->level - 1], n->name, n->total);
		}
	}
	g->path[g->depth++] = n->name;
	g->on_path[n->name]++;
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int64_t p = g->total[x], q = g->total[y];
	return p != q ? (p < q) - (p > q) : str_cmp(g->f->names[x], g->f->names[y]);
}

/* Writes a text for quotes. */
static void put_text(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			buf_u8(out, '\\');
		buf_u8(out, (unsigned char)text.p[i] < ' ' ? ' ' : (uint8_t)text.p[i]);
	}
}

static double share(const struct graph *g, int64_t value)
{
	return 100 * (double)value / (double)g->f->total;
}

static void put_graph(struct graph *g, struct str unit, const uint32_t *order, uint32_t count,
	const uint32_t *number, struct buf *out)
{
	buf_cstr(out, "digraph \"");
	put_text(out, unit);
	buf_cstr(out, "\" {\nnode [shape=box]\n");
	for (uint32_t i = 0; i < count; i++) {
		int64_t self = g->self[order[i]], total = g->total[order[i]];
		buf_printf(out, "N%" PRIu32 " [label=\"", i + 1);
		put_text(out, g->f->names[order[i]]);
		buf_printf(out, "\\n%" PRId64 " (%.2f%%)\\nof %" PRId64 " (%.2f%%)\"]\n", self,
			share(g, self), total, share(g, total));
	}
	for (size_t i = 0; i < g->calls.len; i++) {
		const struct call *c = &g->calls.v[i];
		if (number[c->from] && number[c->to])
			buf_printf(out,
				"N%" PRIu32 " -> N%" PRIu32 " [label=\"%" PRId64
				"\" weight=%.0f]\n",
				number[c->from], number[c->to], c->value,
				SCALE * share(g, c->value) / 100);
	}
	buf_cstr(out, "}\n");
}

static enum status make(struct graph *g, struct str unit, int64_t nodes_max, struct arena *a,
	struct buf *out, struct err *e)
{
	const struct pyroscope_flame *f = g->f;
	uint32_t *order = ARENA_ARRAY(a, uint32_t, f->name_count);
	uint32_t *number = ARENA_ARRAY(a, uint32_t, f->name_count);
	g->self = ARENA_ARRAY(a, int64_t, f->name_count);
	g->total = ARENA_ARRAY(a, int64_t, f->name_count);
	g->on_path = ARENA_ARRAY(a, uint32_t, f->name_count);
	g->path = ARENA_ARRAY(a, uint32_t, f->level_count + 1);
	if (!order || !number || !g->self || !g->total || !g->on_path || !g->path)
		return err_set(e, arena_status(a), "%zu functions", f->name_count);
	enum status s = tree_walk(f, a, add_node, g, e);
	if (s == OK && g->no_memory)
		return err_set(e, E_NOMEM, "calls");
	uint32_t count = 0;
	for (uint32_t i = 1; i < f->name_count; i++) /* [0] is the root */
		if (g->total[i])
			order[count++] = i;
	if (count > 1)
		qsort_r(order, count, sizeof(*order), by_total, g);
	if (nodes_max <= 0)
		nodes_max = PYROSCOPE_DOT_DEFAULT;
	count = (uint32_t)MIN((int64_t)count, MIN(nodes_max, (int64_t)PYROSCOPE_DOT_MAX));
	for (uint32_t i = 0; i < count; i++)
		number[order[i]] = i + 1;
	if (s == OK)
		put_graph(g, unit, order, count, number, out);
	return s;
}

enum status pyroscope_dot_write(const struct pyroscope_flame *f, struct str unit, int64_t nodes_max,
	struct arena *a, struct buf *out, struct err *e)
{
	struct graph g = { .f = f };
	enum status s = make(&g, unit, nodes_max, a, out, e);
	map_deinit(&g.index);
	VEC_FREE(&g.calls);
	return s;
}
