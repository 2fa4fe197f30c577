/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each source: values are added to a dense array by node number; one pass from the last node to
 * the first marks the nodes with something below them; one pass from the first to the last gives
 * those a node in the result. In the result a node is found by (parent, location).
 */
#include "store/view.h"

#include <math.h>
#include <stdlib.h>

struct summing {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct gauge gauge;
	bool is_gauge;
	int64_t first_ns, last_ns;
	struct samples_tree tree;
	struct map index; /* of tree.nodes, from the second source on */
	bool indexed;
	VEC(double) node_averages; /* of tree.nodes, of a gauge */
	/* of the source at hand */
	bool by_time; /* first and last are taken from rows */
	int64_t *sums;
	double *averages;
	const double *weights;
	const struct tab_series *periods; /* NULL: values count as they are */
	bool by_period;
};

static void summing_deinit(struct summing *s)
{
	view_picks_free(s->v, s->picks);
	gauge_deinit(&s->gauge);
	samples_tree_deinit(&s->tree);
	map_deinit(&s->index);
	VEC_FREE(&s->node_averages);
	free(s->sums);
	free(s->averages);
	view_release(s->v);
}

/* ---- adding ---- */

static void take_times(struct summing *s, int64_t first_ns, int64_t last_ns)
{
	s->first_ns = MIN(s->first_ns, first_ns);
	s->last_ns = MAX(s->last_ns, last_ns);
}

/* Every sample of the wanted series counts: then nobody needs to look at times. */
static bool takes_all(const struct source *src, const struct pick *p, const struct samples_query *q)
{
	return src->part && !p->sets && src->first_ns >= q->from_ns && src->last_ns < q->to_ns;
}

static void take_series_times(struct summing *s, const struct source *src, const struct pick *p)
{
	for (uint32_t i = 0; i < p->series_count; i++)
		if (p->series[i])
			take_times(s, src->tabs.series[i].first_ns, src->tabs.series[i].last_ns);
}

/* The inner loop of a flame graph: all rows count. */
static void add_all(struct summing *s, const struct scan_rows *r)
{
	uint64_t *sums = (uint64_t *)s->sums, count = r->n;
	const uint32_t *node = r->node;
	const int64_t *value = r->value;
	for (size_t i = 0; i < r->n; i++)
		sums[node[i]] += (uint64_t)value[i];
	if (r->count) {
		count = 0;
		for (size_t i = 0; i < r->n; i++)
			count += (uint64_t)r->count[i];
	}
	s->tree.sample_count += count;
}

static enum status add_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	struct summing *s = ctx;
	uint64_t count = 0;
	if (!r->sel && !s->weights && !s->periods && !s->by_time) {
		add_all(s, r);
		return OK;
	}
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		if (s->weights)
			s->averages[r->node[i]] += (double)r->value[i] * s->weights[r->series[i]];
		else if (s->periods)
			s->sums[r->node[i]] = wrap_add(s->sums[r->node[i]],
				wrap_mul(r->value[i], s->periods[r->series[i]].period));
		else
			s->sums[r->node[i]] = wrap_add(s->sums[r->node[i]], r->value[i]);
		count += r->count ? (uint64_t)r->count[i] : 1;
		if (s->by_time)
			take_times(s, r->time_ns[i], r->time_ns[i]);
	}
	s->tree.sample_count += count;
	return OK;
}

/* ---- folding a source into the result ---- */

struct node_key {
	uint32_t parent;
	uint32_t location;
};

static bool node_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct samples_tree *t = ctx;
	const struct node_key *k = key;
	return t->nodes.v[value].parent == k->parent && t->nodes.v[value].location == k->location;
}

static uint64_t node_hash(uint32_t parent, uint32_t location)
{
	return hash_u64((uint64_t)parent << 32 | location);
}

static enum status add_child(
	struct summing *s, uint32_t parent, uint32_t location, uint32_t *out, struct err *e)
{
	struct samples_tree *t = &s->tree;
	uint32_t at = (uint32_t)t->nodes.len;
	if (at >= SAMPLES_TREE_NODES_MAX)
		return err_set(e, E_LIMIT, "a tree of more than %u nodes", SAMPLES_TREE_NODES_MAX);
	size_t cap = t->nodes.cap;
	if (!VEC_RESERVE(&t->nodes, t->nodes.len + 1) ||
		(s->is_gauge && !VEC_PUSH(&s->node_averages, 0)) ||
		(s->indexed && !map_insert(&s->index, node_hash(parent, location), at)))
		return err_set(e, E_NOMEM, "a tree of %u nodes", at);
	enum status st =
		budget_take(&s->budget, (t->nodes.cap - cap) * (sizeof(*t->nodes.v) + 16), e);
	if (st != OK)
		return st;
	t->nodes.v[t->nodes.len++] = (struct samples_node){ parent, location, 0 };
	*out = at;
	return OK;
}

/* The nodes of one source are distinct, so the first needs no search. */
static enum status make_index(struct summing *s, struct err *e)
{
	const struct samples_tree *t = &s->tree;
	if (s->indexed || t->nodes.len == 1)
		return OK;
	for (uint32_t i = 1; i < t->nodes.len; i++)
		if (!map_insert(
			    &s->index, node_hash(t->nodes.v[i].parent, t->nodes.v[i].location), i))
			return err_set(e, E_NOMEM, "a tree of %zu nodes", t->nodes.len);
	s->indexed = true;
	return OK;
}

static enum status tree_child(
	struct summing *s, uint32_t parent, uint32_t location, uint32_t *out, struct err *e)
{
	if (s->indexed) {
		struct node_key key = { parent, location };
		uint32_t at = map_find(
			&s->index, node_hash(parent, location), node_equal, &s->tree, &key);
		if (at != MAP_NONE) {
			*out = at;
			return OK;
		}
	}
	return add_child(s, parent, location, out, e);
}

static void add_self(struct summing *s, uint32_t to, uint32_t from)
{
	int64_t *self = &s->tree.nodes.v[to].self;
	if (s->is_gauge)
		s->node_averages.v[to] += s->averages[from];
	else
		*self = wrap_add(*self, s->sums[from]);
}

static enum status fold_nodes(struct summing *s, const struct tabs *t, struct remap *r,
	uint8_t *used, uint32_t *to, struct err *e)
{
	uint32_t n = t->node_count;
	for (uint32_t i = n; i-- > 1;) {
		used[i] |= s->is_gauge ? s->averages[i] != 0 : s->sums[i] != 0;
		used[t->parent[i]] |= used[i];
	}
	for (uint32_t i = 1; i < n; i++) {
		if (!used[i])
			continue;
		uint32_t location;
		enum status st = remap_location(r, t->node_location[i], &location);
		if (st != OK)
			return err_set(e, st,
				st == E_CORRUPT
					? "trie node %u refers to location %u, which is not there"
					: "the symbols of the result need more than the query's "
					  "memory "
					  "(node %u, location %u)",
				i, t->node_location[i]);
		st = tree_child(s, to[t->parent[i]], location, &to[i], e);
		if (st != OK)
			return st;
		add_self(s, to[i], i);
	}
	add_self(s, 0, 0);
	return OK;
}

static enum status fold_source(struct summing *s, struct source *src, struct err *e)
{
	const struct tabs *t = &src->tabs;
	CLEANUP(remap_deinit) struct remap r = { 0 };
	CLEANUP(free_cleanup) uint8_t *used = NULL;
	CLEANUP(free_cleanup) uint32_t *to = NULL;
	uint64_t before = s->budget.used;
	enum status st = make_index(s, e);
	if (st != OK)
		return st;
	st = remap_init(&r, t, &s->tree.tables, &s->budget, e);
	if (st == OK)
		st = budget_array(&s->budget, t->node_count, 1, &used, e);
	if (st == OK)
		st = budget_array(&s->budget, t->node_count, sizeof(*to), &to, e);
	uint64_t scratch = s->budget.used - before;
	if (st == OK)
		st = fold_nodes(s, t, &r, used, to, e);
	if (st == E_CORRUPT)
		s->v->damaged = src->part;
	s->budget.used -= scratch;
	return st;
}

static enum status sum_source(struct summing *s, size_t i, struct err *e)
{
	struct source *src = &s->v->sources[i];
	if (s->picks[i].wanted == 0)
		return OK;
	enum status st =
		source_load(s->v, src, PART_LOAD_STACKS | PART_LOAD_SYMBOLS, &s->budget, e);
	if (st != OK)
		return st;
	uint32_t n = src->tabs.node_count;
	uint64_t before = s->budget.used;
	st = budget_array(&s->budget, n, sizeof(*s->sums), &s->sums, e);
	if (st == OK && s->is_gauge)
		st = budget_array(&s->budget, n, sizeof(*s->averages), &s->averages, e);
	uint64_t scratch = s->budget.used - before;
	s->weights = s->is_gauge ? s->gauge.weights[i] : NULL;
	s->periods = s->by_period ? src->tabs.series : NULL;
	s->by_time = !takes_all(src, &s->picks[i], s->q);
	if (!s->by_time)
		take_series_times(s, src, &s->picks[i]);
	struct scan scan = { s->v, src, &s->picks[i], s->q,
		1u << ROW_NODE | 1u << ROW_VALUE | 1u << ROW_COUNT |
			(s->by_time ? 1u << ROW_TIME : 0) |
			(s->is_gauge || s->by_period ? 1u << ROW_SERIES : 0) };
	if (st == OK)
		st = scan_run(&scan, add_rows, s, &s->budget, e);
	if (st == OK)
		st = fold_source(s, src, e);
	free(s->sums);
	free(s->averages);
	s->sums = NULL;
	s->averages = NULL;
	s->budget.used -= scratch;
	source_done(s->v, src);
	return st;
}

/* ---- the whole ---- */

static enum status set_type(struct samples_tree *t, const struct found_type *f)
{
	uint32_t *parts[] = { &t->type.name, &t->type.sample_type, &t->type.sample_unit,
		&t->type.period_type, &t->type.period_unit };
	for (size_t k = 0; k < ARRAY_COUNT(parts); k++) {
		enum status s = profile_add_string(&t->tables, f->text[k], parts[k]);
		if (s != OK)
			return s;
	}
	t->type.delta = f->delta;
	t->period = f->period;
	return OK;
}

static enum status sum_stacks(struct store_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e)
{
	CLEANUP(summing_deinit)
	struct summing s = { .v = v,
		.q = q,
		.budget = query_budget(v, q),
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN };
	struct found_type type;
	s.picks = view_picks_new(v);
	enum status st = s.picks ? profile_init(&s.tree.tables, s.budget.limit) : E_NOMEM;
	if (st == OK && !VEC_PUSH(&s.tree.nodes, (struct samples_node){ 0 }))
		st = E_NOMEM;
	if (st != OK)
		return err_set(e, st, "no memory for a tree");
	st = view_pick(v, q, &s.budget, s.picks, e);
	if (st == OK)
		st = picks_type(v, s.picks, q->times_period, &type, e);
	if (st == OK && type.found) {
		s.is_gauge = !type.delta;
		s.by_period = type.by_period;
		st = set_type(&s.tree, &type);
		if (st == OK && !VEC_PUSH(&s.node_averages, 0))
			st = err_set(e, E_NOMEM, "a tree");
		if (st == OK && s.is_gauge)
			st = gauge_init(&s.gauge, v, s.picks, q, &s.budget, e);
	}
	for (size_t i = 0; st == OK && i < v->source_count; i++)
		st = sum_source(&s, i, e);
	if (st != OK)
		return st;
	for (size_t i = 0; s.is_gauge && i < s.tree.nodes.len; i++)
		s.tree.nodes.v[i].self = (int64_t)llround(s.node_averages.v[i]);
	for (size_t i = 0; i < s.tree.nodes.len; i++)
		s.tree.total = wrap_add(s.tree.total, s.tree.nodes.v[i].self);
	if (s.first_ns <= s.last_ns) {
		s.tree.first_ns = s.first_ns;
		s.tree.last_ns = s.last_ns;
	}
	*out = s.tree;
	s.tree = (struct samples_tree){ 0 };
	return OK;
}

enum status store_sum_stacks(struct store_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do
		s = sum_stacks(v, q, out, e);
	while (view_heal(v, s, e));
	return s;
}
