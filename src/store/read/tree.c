/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources have mostly the same stacks in the same order. So each node remembers which one came
 * after it the last time (`next`, a list of all nodes in the order of their first source): the node
 * that is looked for is nearly always one of the next few there, and they lie side by side. Only
 * when it is not, a hash table by (parent, location) is asked, which is made when it is first
 * needed.
 */
#include "store/read/tree.h"
#include "store/read/remap.h"

#include <stdlib.h>

#define GUESSES_MAX 6
#define NODE_BYTES (sizeof(struct samples_node) + sizeof(uint32_t))
#define NODES_MIN 1024
#define PREFETCH 12
#define PLENTY 8 /* there is plenty of memory if this many times the need is left */

enum status tree_init(struct tree *t, bool is_gauge, struct budget *b, struct err *e)
{
	*t = (struct tree){ .is_gauge = is_gauge, .budget = b };
	enum status s = profile_init(&t->tables, b->limit);
	if (s != OK)
		return budget_fail(b, s, e);
	return OK;
}

void tree_deinit(struct tree *t)
{
	profile_deinit(&t->tables);
	VEC_FREE(&t->nodes);
	free(t->averages);
	free(t->next);
	free(t->slots);
}

/* ---- memory ---- */

static enum status grow_array(void *array_ptr, size_t n, size_t size)
{
	void *p;
	memcpy(&p, array_ptr, sizeof(p));
	p = realloc(p, n * size);
	if (!p)
		return E_NOMEM;
	memcpy(array_ptr, &p, sizeof(p));
	return OK;
}

/* Room for `need` nodes. */
static enum status reserve(struct tree *t, size_t need, struct err *e)
{
	if (need <= t->cap)
		return OK;
	if (need > SAMPLES_TREE_NODES_MAX)
		return err_set(e, E_LIMIT, "a tree of more than %u nodes", SAMPLES_TREE_NODES_MAX);
	size_t cap = MIN(MAX(need, MAX(t->cap + t->cap / 2, (size_t)NODES_MIN)),
		(size_t)SAMPLES_TREE_NODES_MAX);
	size_t each = NODE_BYTES + (t->is_gauge ? sizeof(*t->averages) : 0);
	enum status s = budget_take(t->budget, (cap - t->cap) * each, e);
	if (s != OK)
		return s;
	if (VEC_RESERVE(&t->nodes, cap) && grow_array(&t->next, cap, sizeof(*t->next)) == OK &&
		(!t->is_gauge || grow_array(&t->averages, cap, sizeof(*t->averages)) == OK)) {
		t->cap = cap;
		return OK;
	}
	budget_give(t->budget, (cap - t->cap) * each);
	return err_set(e, E_NOMEM, "a tree of %zu nodes", cap);
}

/* ---- finding by hash ---- */

static uint32_t slot_of(const struct tree *t, uint32_t parent, uint32_t location)
{
	return (uint32_t)hash_u64((uint64_t)parent << 32 | location) & t->slot_mask;
}

static void place(struct tree *t, uint32_t node)
{
	const struct samples_node *n = &t->nodes.v[node];
	uint32_t i = slot_of(t, n->parent, n->location);
	while (t->slots[i])
		i = (i + 1) & t->slot_mask;
	t->slots[i] = node;
}

/* The table has at least twice as many slots as there is room for nodes. */
static enum status make_index(struct tree *t, struct err *e)
{
	size_t size = t->slots ? (size_t)t->slot_mask + 1 : 0, want = MAX(size, (size_t)NODES_MIN);
	while (want < 2 * t->cap)
		want *= 2;
	if (t->indexed && want == size)
		return OK;
	enum status s = budget_take(t->budget, (want - size) * sizeof(*t->slots), e);
	if (s != OK)
		return s;
	uint32_t *slots = calloc(want, sizeof(*slots));
	if (!slots) {
		budget_give(t->budget, (want - size) * sizeof(*t->slots));
		return err_set(e, E_NOMEM, "a tree of %zu nodes", t->nodes.len);
	}
	free(t->slots);
	t->slots = slots;
	t->slot_mask = (uint32_t)(want - 1);
	t->indexed = true;
	const struct samples_node *v = t->nodes.v;
	for (uint32_t i = 1; i < t->nodes.len; i++) {
		uint32_t ahead = i + PREFETCH;
		if (ahead < t->nodes.len)
			__builtin_prefetch(
				&t->slots[slot_of(t, v[ahead].parent, v[ahead].location)], 1);
		place(t, i);
	}
	return OK;
}

static uint32_t find(const struct tree *t, uint32_t parent, uint32_t location)
{
	for (uint32_t i = slot_of(t, parent, location); t->slots[i]; i = (i + 1) & t->slot_mask) {
		const struct samples_node *n = &t->nodes.v[t->slots[i]];
		if (n->parent == parent && n->location == location)
			return t->slots[i];
	}
	return 0;
}

/* ---- adding ---- */

static enum status append(struct tree *t, uint32_t parent, uint32_t location, uint32_t after,
	uint32_t *out, struct err *e)
{
	size_t cap = t->cap;
	enum status s = reserve(t, t->nodes.len + 1, e);
	if (s == OK && t->indexed && t->cap != cap)
		s = make_index(t, e);
	if (s != OK)
		return s;
	uint32_t at = (uint32_t)t->nodes.len++;
	t->nodes.v[at] = (struct samples_node){ parent, location, 0 };
	if (t->is_gauge)
		t->averages[at] = 0;
	t->next[at] = t->next[after];
	t->next[after] = at;
	if (t->indexed)
		place(t, at);
	*out = at;
	return OK;
}

/* The child of `parent`, where `after` is the node that was added to before. */
static enum status child(struct tree *t, uint32_t parent, uint32_t location, uint32_t after,
	uint32_t *out, struct err *e)
{
	uint32_t guess = t->next[after];
	for (int i = 0; i < GUESSES_MAX && guess; i++, guess = t->next[guess]) {
		const struct samples_node *n = &t->nodes.v[guess];
		if (n->parent == parent && n->location == location) {
			*out = guess;
			return OK;
		}
	}
	enum status s = t->indexed ? OK : make_index(t, e);
	if (s != OK)
		return s;
	*out = find(t, parent, location);
	return *out ? OK : append(t, parent, location, after, out, e);
}

struct adding {
	struct tree *t;
	const struct tabs *from;
	const int64_t *sums; /* NULL: nothing is added */
	const double *averages;
	struct remap remap;
	uint8_t *used; /* by node: it or one below has a sum */
	uint8_t *here; /* by location: a used node has it */
	uint32_t *to;  /* by node: node of the tree */
};

static void adding_deinit(struct adding *a)
{
	remap_deinit(&a->remap);
	free(a->here);
}

/* Marks used nodes and their locations, and counts the nodes. The loop reads from locals, since for
 * the compiler the bytes that it writes may alias anything. */
static enum status mark(struct adding *a, size_t *count, struct err *e)
{
	const struct tabs *f = a->from;
	const uint32_t *parent = f->parent, *node_location = f->node_location;
	uint32_t locations = f->location_count;
	uint8_t *used = a->used, *here = a->here;
	const double *averages = a->averages;
	const int64_t *sums = a->sums;
	size_t n = 0;
	for (uint32_t i = f->node_count; i-- > 1;) {
		bool has_sum = averages ? averages[i] != 0 : sums && sums[i] != 0;
		if (!used[i] && !has_sum)
			continue;
		uint32_t location = node_location[i];
		if (location >= locations)
			return err_set(e, E_CORRUPT,
				"trie node %u refers to location %u, which is not there", i,
				location);
		used[i] = 1;
		used[parent[i]] = 1;
		here[location] = 1;
		n++;
	}
	*count = n;
	return OK;
}

/* Adds locations in the order of the source, since sources mostly have the same order. */
static enum status add_locations(struct adding *a, struct err *e)
{
	for (uint32_t i = 0; i < a->from->location_count; i++) {
		uint32_t ignored;
		enum status s = a->here[i] ? remap_location(&a->remap, i, &ignored) : OK;
		if (s == E_CORRUPT)
			return err_set(e, s, "location %u, which is not there", i);
		if (s != OK)
			return budget_fail(a->t->budget, s, e);
	}
	return OK;
}

static void add_sum(struct adding *a, uint32_t i, uint32_t to)
{
	struct tree *t = a->t;
	if (a->averages)
		t->averages[to] += a->averages[i];
	else if (a->sums)
		t->nodes.v[to].self = wrap_add(t->nodes.v[to].self, a->sums[i]);
}

/* Adds nodes to an empty tree: the nodes of one source are distinct, and follow each other. */
static enum status take_nodes(struct adding *a, size_t count, struct err *e)
{
	struct tree *t = a->t;
	const struct tabs *f = a->from;
	enum status s = reserve(t, count + 1, e);
	if (s != OK)
		return s;
	struct samples_node *nodes = t->nodes.v;
	const uint32_t *parent = f->parent, *node_location = f->node_location;
	const uint32_t *locations = a->remap.symbols.locations;
	const int64_t *sums = a->averages ? NULL : a->sums;
	const uint8_t *used = a->used;
	uint32_t at = 0, *to = a->to, *next = t->next, count_of = f->node_count;
	for (uint32_t i = 0; i < count_of; i++) {
		if (i && !used[i])
			continue;
		nodes[at] = (struct samples_node){ to[parent[i]],
			i ? locations[node_location[i]] : 0, sums ? sums[i] : 0 };
		if (a->averages)
			t->averages[at] = a->averages[i];
		next[at] = at + 1;
		to[i] = at++;
	}
	assert(at == count + 1);
	t->next[at - 1] = 0;
	t->nodes.len = at;
	return OK;
}

/* Reserves room for all possible new nodes if there is plenty of memory: the index is then made
 * only once. */
static enum status reserve_plenty(struct tree *t, size_t count, struct err *e)
{
	size_t need = t->nodes.len + count;
	uint64_t bytes = (uint64_t)need * (NODE_BYTES + sizeof(double) + 4 * sizeof(uint32_t));
	if (need > SAMPLES_TREE_NODES_MAX || bytes > budget_left(t->budget) / PLENTY)
		return OK;
	enum status s = reserve(t, need, e);
	return s == OK && t->indexed ? make_index(t, e) : s;
}

static enum status add_nodes(struct adding *a, size_t count, struct err *e)
{
	struct tree *t = a->t;
	const struct tabs *f = a->from;
	uint32_t last = 0;
	if (t->nodes.len == 0)
		return take_nodes(a, count, e);
	enum status s = reserve_plenty(t, count, e);
	if (s != OK)
		return s;
	add_sum(a, 0, 0);
	for (uint32_t i = 1; i < f->node_count; i++) {
		if (!a->used[i])
			continue;
		uint32_t parent = a->to[f->parent[i]];
		uint32_t location = a->remap.symbols.locations[f->node_location[i]];
		s = child(t, parent, location, last, &a->to[i], e);
		if (s != OK)
			return s;
		last = a->to[i];
		add_sum(a, i, last);
	}
	return OK;
}

static enum status add(struct adding *a, struct err *e)
{
	struct tree *t = a->t;
	size_t count = 0;
	enum status s = remap_init(&a->remap, a->from, &t->tables, t->budget, e);
	if (s == OK)
		s = budget_array(t->budget, a->from->location_count, 1, &a->here, e);
	if (s == OK)
		s = mark(a, &count, e);
	if (s == OK)
		s = add_locations(a, e);
	if (s == OK)
		s = add_nodes(a, count, e);
	if (s == OK)
		budget_give(t->budget, remap_bytes(a->from) + a->from->location_count);
	return s;
}

enum status tree_add(struct tree *t, const struct tabs *from, const int64_t *sums,
	const double *averages, struct err *e)
{
	CLEANUP(free_cleanup) uint8_t *used = NULL;
	CLEANUP(free_cleanup) uint32_t *to = NULL;
	enum status s = budget_array(t->budget, from->node_count, sizeof(*used), &used, e);
	if (s == OK)
		s = budget_array(t->budget, from->node_count, sizeof(*to), &to, e);
	if (s != OK)
		return s;
	CLEANUP(adding_deinit)
	struct adding a = { t, from, sums, averages, .used = used, .to = to };
	s = add(&a, e);
	if (s == OK)
		budget_give(t->budget, (uint64_t)from->node_count * (sizeof(*used) + sizeof(*to)));
	return s;
}

enum status tree_add_used(
	struct tree *t, const struct tabs *from, uint8_t *used, uint32_t *to, struct err *e)
{
	CLEANUP(adding_deinit) struct adding a = { .t = t, .from = from, .used = used, .to = to };
	return add(&a, e);
}

enum status tree_add_tree(struct tree *t, const struct tree *from, struct err *e)
{
	const struct profile *p = &from->tables;
	size_t n = from->nodes.len;
	CLEANUP(free_cleanup) uint32_t *parent = NULL;
	CLEANUP(free_cleanup) uint32_t *location = NULL;
	CLEANUP(free_cleanup) int64_t *sums = NULL;
	enum status s = n ? budget_array(t->budget, n, sizeof(*parent), &parent, e) : OK;
	if (s == OK && n)
		s = budget_array(t->budget, n, sizeof(*location), &location, e);
	if (s == OK && n)
		s = budget_array(t->budget, n, sizeof(*sums), &sums, e);
	if (s != OK || !n)
		return s;
	for (size_t i = 0; i < n; i++) {
		parent[i] = from->nodes.v[i].parent;
		location[i] = from->nodes.v[i].location;
		sums[i] = from->nodes.v[i].self;
	}
	struct tabs tabs = {
		.symbol_strings = p->strings.v,
		.functions = p->functions.v,
		.mappings = p->mappings.v,
		.locations = p->locations.v,
		.lines = p->lines.v,
		.parent = parent,
		.node_location = location,
		.symbol_string_count = p->strings.len,
		.function_count = (uint32_t)p->functions.len,
		.mapping_count = (uint32_t)p->mappings.len,
		.location_count = (uint32_t)p->locations.len,
		.line_count = (uint32_t)p->lines.len,
		.node_count = (uint32_t)n,
	};
	s = tree_add(t, &tabs, sums, from->averages, e);
	budget_give(t->budget, n * (sizeof(*parent) + sizeof(*location) + sizeof(*sums)));
	return s;
}
