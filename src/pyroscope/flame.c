/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays a flame graph out as Pyroscope does. Nodes with the same parent and name are one, also those
 * of both sides; children are sorted by name, after the space of the parent's own value. Children
 * below the smallest of the nodes_max largest totals become one last child, "other"; a heap of that
 * many totals has this smallest on top. A child is searched for by its name among the first
 * WALK_MAX siblings, and then in a map, as most nodes have few children. Walking depth first gives
 * each level's tuples from left to right.
 */
#include "base/arena.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"
#include "pyroscope/wrap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIDES 2
#define WALK_MAX 4
#define NAMES_BYTES_MAX ((size_t)256 << 20)

struct node {
	uint32_t parent, name; /* names */
	uint32_t first, next;  /* child, sibling; 0: none */
	int64_t self[SIDES], total[SIDES];
	int64_t rest[SIDES]; /* total of children that are missing on this side */
};
struct level {
	VEC(int64_t) v;
	VEC(uint32_t) children; /* number of children of each tuple */
	int64_t end[SIDES];     /* end of the tuple before */
};
struct maker {
	struct arena *a;
	struct strtab names;
	VEC(struct node) nodes;
	struct map index; /* by parent and name, for children after the first WALK_MAX siblings */
	VEC(struct level) levels;
	VEC(uint32_t) children; /* of one node, while they are sorted */
	int64_t smallest;
	int64_t max_self;
	uint32_t other; /* index of "other" in the names; MAP_NONE: not added yet */
	int sides;
};

/* ---- one tree of both sides ---- */

struct node_key {
	uint32_t parent, name;
};

static bool node_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct node *n = &((const struct maker *)ctx)->nodes.v[value];
	const struct node_key *k = key;
	return n->parent == k->parent && n->name == k->name;
}

static enum status node_of(struct maker *m, uint32_t parent, uint32_t name, uint32_t *out)
{
	struct node_key k = { parent, name };
	uint64_t hash = hash_u64((uint64_t)parent << 32 | name);
	uint32_t before = 0, next = m->nodes.v[parent].first;
	int walked = 0;
	for (; next && walked < WALK_MAX; walked++) {
		*out = next;
		if (m->nodes.v[next].name == name)
			return OK;
		before = next;
		next = m->nodes.v[next].next;
	}
	*out = next ? map_find(&m->index, hash, node_equal, m, &k) : MAP_NONE;
	if (*out != MAP_NONE)
		return OK;
	*out = (uint32_t)m->nodes.len;
	struct node n = { .parent = parent, .name = name, .next = next };
	if ((walked == WALK_MAX && !map_insert(&m->index, hash, *out)) || !VEC_PUSH(&m->nodes, n))
		return E_NOMEM;
	*(before ? &m->nodes.v[before].next : &m->nodes.v[parent].first) = *out;
	return OK;
}

static void add_to(int64_t *sum, int64_t value)
{
	*sum = wrap_add(*sum, value);
}

/* Adds a node's own value and missing part, computed from its total and those of its children. */
static void add_values(struct maker *m, const struct pyroscope_side *from, int side, uint32_t i,
	const uint32_t *to)
{
	struct node *n = &m->nodes.v[to[i]];
	add_to(&n->self[side], from->self[i]);
	if (!from->total)
		return;
	add_to(&n->rest[side], wrap_sub(from->total[i], from->self[i]));
	if (i > 0) {
		int64_t *above = &m->nodes.v[to[from->parent[i]]].rest[side];
		*above = wrap_sub(*above, from->total[i]);
	}
}

static enum status add_side(struct maker *m, const struct pyroscope_side *from, int side)
{
	size_t strings = 1;
	for (uint32_t i = 0; i < from->count; i++)
		strings = MAX(strings, (size_t)from->name[i] + 1);
	CLEANUP(free_cleanup) uint32_t *to = malloc(((size_t)from->count + 1) * sizeof(*to));
	/* By string: its name; 0: not interned yet, or empty. */
	CLEANUP(free_cleanup) uint32_t *names = calloc(strings, sizeof(*names));
	enum status s = to && names ? OK : E_NOMEM;
	for (uint32_t i = 0; s == OK && i < from->count; i++) {
		uint32_t *name = &names[from->name[i]];
		to[i] = 0;
		if (i > 0 && *name == 0)
			s = strtab_intern(&m->names, from->strings[from->name[i]], name);
		if (s == OK && i > 0)
			s = node_of(m, to[from->parent[i]], *name, &to[i]);
		if (s == OK)
			add_values(m, from, side, i, to);
	}
	return s;
}

/* Sums from the last node to the first, as every node comes after its parent. */
static void sum_totals(struct maker *m)
{
	for (size_t i = m->nodes.len; i-- > 0;) {
		struct node *n = &m->nodes.v[i];
		for (int side = 0; side < SIDES; side++) {
			add_to(&n->total[side], wrap_add(n->self[side], n->rest[side]));
			if (i > 0)
				add_to(&m->nodes.v[n->parent].total[side], n->total[side]);
		}
	}
}

static int64_t larger(const struct node *n)
{
	return MAX(n->total[0], n->total[1]);
}

/* Puts the value at or below `at`; smaller values move up. */
static void sink(int64_t *heap, size_t count, size_t at, int64_t value)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= value)
			break;
		heap[at] = heap[child];
	}
	heap[at] = value;
}

static enum status find_smallest(struct maker *m, int64_t nodes_max)
{
	m->smallest = INT64_MIN;
	if (nodes_max <= 0 || (size_t)nodes_max >= m->nodes.len)
		return OK;
	size_t count = (size_t)nodes_max;
	CLEANUP(free_cleanup) int64_t *heap = malloc(count * sizeof(*heap));
	if (!heap)
		return E_NOMEM;
	for (size_t i = 0; i < count; i++)
		heap[i] = larger(&m->nodes.v[i]);
	for (size_t i = count / 2; i-- > 0;)
		sink(heap, count, i, heap[i]);
	for (size_t i = count; i < m->nodes.len; i++)
		if (larger(&m->nodes.v[i]) > heap[0])
			sink(heap, count, 0, larger(&m->nodes.v[i]));
	m->smallest = heap[0];
	return OK;
}

/* ---- levels ---- */

/* A node that has still to be laid out, and its place. */
struct place {
	uint32_t node;
	uint32_t level;
	int64_t x[SIDES];
};
struct places {
	VEC(struct place) v;
};

static enum status put_tuple(struct maker *m, const struct node *n, const struct place *p)
{
	while (m->levels.len <= p->level)
		if (!VEC_PUSH(&m->levels, ((struct level){ 0 })))
			return E_NOMEM;
	struct level *l = &m->levels.v[p->level];
	for (int side = 0; side < m->sides; side++) {
		if (!VEC_PUSH(&l->v, wrap_sub(p->x[side], l->end[side])) ||
			!VEC_PUSH(&l->v, n->total[side]) || !VEC_PUSH(&l->v, n->self[side]))
			return E_NOMEM;
		l->end[side] = wrap_add(p->x[side], n->total[side]);
		m->max_self = MAX(m->max_self, n->self[side]);
	}
	return VEC_PUSH(&l->v, n->name) ? OK : E_NOMEM;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct maker *m = ctx;
	return str_cmp(strtab_get(&m->names, m->nodes.v[*(const uint32_t *)a].name),
		strtab_get(&m->names, m->nodes.v[*(const uint32_t *)b].name));
}

static bool is_small(const struct maker *m, const struct node *n)
{
	return larger(n) < m->smallest || n->name == m->other;
}

/* Pushes the children onto `todo`, the last one first. Those that are not shown become one node
 * without children. */
static enum status lay_children(struct maker *m, const struct place *p, struct places *todo)
{
	struct node other = { .parent = p->node };
	struct place at = { .level = p->level + 1 };
	bool any = false;
	for (int side = 0; side < SIDES; side++) {
		const struct node *n = &m->nodes.v[p->node];
		at.x[side] = wrap_add(p->x[side], n->self[side]);
		other.self[side] = other.total[side] = n->rest[side];
		any |= n->rest[side] != 0;
	}
	VEC_CLEAR(&m->children);
	for (uint32_t c = m->nodes.v[p->node].first; c; c = m->nodes.v[c].next) {
		const struct node *child = &m->nodes.v[c];
		if (!is_small(m, child)) {
			if (!VEC_PUSH(&m->children, c))
				return E_NOMEM;
			continue;
		}
		any = true;
		for (int side = 0; side < SIDES; side++)
			other.self[side] = other.total[side] =
				wrap_add(other.total[side], child->total[side]);
	}
	if (m->children.len > 1)
		qsort_r(m->children.v, m->children.len, sizeof(*m->children.v), by_name, m);
	if (any && m->other == MAP_NONE && strtab_intern(&m->names, STR("other"), &m->other) != OK)
		return E_NOMEM;
	other.name = m->other;
	if (any && (!VEC_PUSH(&m->children, (uint32_t)m->nodes.len) || !VEC_PUSH(&m->nodes, other)))
		return E_NOMEM;
	size_t first = todo->v.len;
	for (size_t i = 0; i < m->children.len; i++) {
		at.node = m->children.v[i];
		if (!VEC_PUSH(&todo->v, at))
			return E_NOMEM;
		for (int side = 0; side < SIDES; side++)
			add_to(&at.x[side], m->nodes.v[at.node].total[side]);
	}
	for (size_t i = first, k = todo->v.len; i + 1 < k; i++) {
		struct place swap = todo->v.v[i];
		todo->v.v[i] = todo->v.v[--k];
		todo->v.v[k] = swap;
	}
	return OK;
}

static enum status lay_all(struct maker *m)
{
	struct places todo = { 0 };
	enum status s = VEC_PUSH(&todo.v, ((struct place){ 0 })) ? OK : E_NOMEM;
	while (s == OK && todo.v.len) {
		struct place p = todo.v.v[--todo.v.len];
		s = put_tuple(m, &m->nodes.v[p.node], &p);
		if (s == OK)
			s = lay_children(m, &p, &todo);
		struct level *l = &m->levels.v[p.level];
		if (s == OK && !VEC_PUSH(&l->children, (uint32_t)m->children.len))
			s = E_NOMEM;
	}
	VEC_FREE(&todo.v);
	return s;
}

/* ---- the whole ---- */

static enum status hand_over(struct maker *m, struct pyroscope_flame *out)
{
	const struct node *root = &m->nodes.v[0];
	*out = (struct pyroscope_flame){ .names = ARENA_ARRAY(m->a, struct str, m->names.len),
		.name_count = m->names.len,
		.levels = ARENA_ARRAY(m->a, struct pyroscope_level, m->levels.len),
		.level_count = m->levels.len,
		.max_self = m->max_self,
		.sides = m->sides };
	if (!out->names || !out->levels)
		return arena_status(m->a);
	for (int side = 0; side < m->sides; side++) {
		out->side_totals[side] = root->total[side];
		add_to(&out->total, root->total[side]);
	}
	for (uint32_t i = 0; i < m->names.len; i++) {
		struct str name = i ? strtab_get(&m->names, i) : STR("total");
		char *copy = arena_copy(m->a, name.p, name.len);
		if (!copy)
			return arena_status(m->a);
		out->names[i] = str_make(copy, name.len);
	}
	for (size_t i = 0; i < m->levels.len; i++) {
		struct pyroscope_level *l = &out->levels[i];
		l->count = m->levels.v[i].v.len;
		size_t nodes = m->levels.v[i].children.len;
		l->v = ARENA_ARRAY(m->a, int64_t, l->count);
		l->children = ARENA_ARRAY(m->a, uint32_t, nodes);
		if (!l->v || !l->children)
			return arena_status(m->a);
		memcpy(l->v, m->levels.v[i].v.v, l->count * sizeof(*l->v));
		memcpy(l->children, m->levels.v[i].children.v, nodes * sizeof(*l->children));
	}
	return OK;
}

static enum status make(struct maker *m, const struct pyroscope_side *left,
	const struct pyroscope_side *right, int64_t nodes_max)
{
	enum status s = VEC_PUSH(&m->nodes, ((struct node){ 0 })) ? OK : E_NOMEM;
	if (s == OK)
		s = add_side(m, left, 0);
	if (s == OK && right)
		s = add_side(m, right, 1);
	if (s != OK)
		return s;
	m->other = strtab_find(&m->names, STR("other"));
	sum_totals(m);
	s = find_smallest(m, nodes_max);
	return s == OK ? lay_all(m) : s;
}

enum status pyroscope_flame_make(const struct pyroscope_side *left,
	const struct pyroscope_side *right, int64_t nodes_max, struct arena *a,
	struct pyroscope_flame *out, struct err *e)
{
	struct maker m = { .a = a, .sides = right ? 2 : 1 };
	enum status s = strtab_init(&m.names, NAMES_BYTES_MAX);
	if (s != OK)
		return err_set(e, s, "flame graph");
	s = make(&m, left, right, nodes_max);
	if (s == OK)
		s = hand_over(&m, out);
	for (size_t i = 0; i < m.levels.len; i++) {
		VEC_FREE(&m.levels.v[i].v);
		VEC_FREE(&m.levels.v[i].children);
	}
	VEC_FREE(&m.levels);
	VEC_FREE(&m.nodes);
	VEC_FREE(&m.children);
	map_deinit(&m.index);
	strtab_deinit(&m.names);
	return s == OK ? OK : err_set(e, s, "flame graph: %s", status_text(s));
}

/* ---- as messages ---- */

void pyroscope_flame_encode(const struct pyroscope_flame *f, uint32_t field, struct buf *out)
{
	size_t begun = pb_begin(out, field);
	for (size_t i = 0; i < f->name_count; i++)
		pb_put_str_always(out, 1, f->names[i]);
	for (size_t i = 0; i < f->level_count; i++) {
		size_t level = pb_begin(out, 2);
		pb_put_packed_u64(out, 1, (const uint64_t *)f->levels[i].v, f->levels[i].count);
		pb_end(out, level);
	}
	pb_put_i64(out, 3, f->total);
	pb_put_i64(out, 4, f->max_self);
	if (f->sides == 2) {
		pb_put_i64(out, 5, f->side_totals[0]);
		pb_put_i64(out, 6, f->side_totals[1]);
	}
	pb_end(out, begun);
}
