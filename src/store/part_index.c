/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row whose set and node were in the row of the same series before adds nothing: one look at an
 * array. Pairs that come again (a part whose rows are in slices of time) are sorted out at the end.
 * Stacks become locations at the end as well: each node of a series is walked up from once.
 */
#include "store/part_index.h"

#include <stdlib.h>
#include <string.h>

void part_index_deinit(struct part_index *x)
{
	VEC_FREE(&x->sets);
	VEC_FREE(&x->nodes);
	free(x->set_seen.v);
	free(x->node_seen.v);
}

void part_lists_deinit(struct part_lists *l)
{
	free(l->counts);
	free(l->items);
	*l = (struct part_lists){ 0 };
}

/* NULL: no memory. */
static uint32_t *seen_at(struct part_seen *s, uint32_t id)
{
	size_t cap = s->cap;
	if (id >= cap) {
		if (!vec_grow(&s->v, &s->cap, (size_t)id + 1, sizeof(*s->v)))
			return NULL;
		memset(s->v + cap, 0, (s->cap - cap) * sizeof(*s->v));
	}
	return &s->v[id];
}

enum status part_index_row(struct part_index *x, uint32_t series, uint32_t node, uint32_t set)
{
	uint32_t *n = x->no_nodes ? NULL : seen_at(&x->node_seen, node);
	uint32_t *s = x->no_sets ? NULL : seen_at(&x->set_seen, set);
	if ((!n && !x->no_nodes) || (!s && !x->no_sets))
		return E_NOMEM;
	if (n && *n != series + 1) {
		*n = series + 1;
		x->no_nodes = x->nodes.len >= PART_INDEX_PAIRS_MAX;
		if (!VEC_PUSH(&x->nodes, (uint64_t)series << 32 | node))
			return E_NOMEM;
	}
	if (s && *s != series + 1) {
		*s = series + 1;
		x->no_sets = x->sets.len >= PART_INDEX_PAIRS_MAX;
		if (!VEC_PUSH(&x->sets, (uint64_t)series << 32 | set))
			return E_NOMEM;
	}
	return OK;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* Ascending, each once; returns how many. */
static size_t sort_pairs(uint64_t *v, size_t n)
{
	bool sorted = true;
	for (size_t i = 1; i < n && sorted; i++)
		sorted = v[i - 1] < v[i];
	if (sorted)
		return n;
	qsort(v, n, sizeof(*v), by_number);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (!kept || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}

/* Sorted pairs (key, item) as lists. */
static enum status make_lists(
	const uint64_t *v, size_t n, uint32_t key_count, struct part_lists *out)
{
	struct part_lists l = { .found = true, .item_count = n };
	l.counts = calloc((size_t)key_count + 1, sizeof(*l.counts));
	l.items = calloc(n + 1, sizeof(*l.items));
	if (!l.counts || !l.items) {
		part_lists_deinit(&l);
		return E_NOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		assert(v[i] >> 32 < key_count);
		l.counts[v[i] >> 32]++;
		l.items[i] = (uint32_t)v[i];
	}
	*out = l;
	return OK;
}

enum status part_index_sets(struct part_index *x, uint32_t series_count, struct part_lists *out)
{
	*out = (struct part_lists){ 0 };
	if (x->no_sets)
		return OK;
	x->sets.len = sort_pairs(x->sets.v, x->sets.len);
	return make_lists(x->sets.v, x->sets.len, series_count, out);
}

struct walking {
	const struct part_trie *t;
	uint32_t *node; /* the last series that came by, + 1 */
	uint32_t *location;
	VEC(uint64_t) pairs; /* location << 32 | series */
};

static void walking_deinit(struct walking *w)
{
	free(w->node);
	free(w->location);
	VEC_FREE(&w->pairs);
}

enum status part_index_locations(
	struct part_index *x, const struct part_trie *t, size_t most, struct part_lists *out)
{
	*out = (struct part_lists){ 0 };
	if (x->no_nodes)
		return OK;
	CLEANUP(walking_deinit) struct walking w = { .t = t };
	w.node = calloc((size_t)t->node_count + 1, sizeof(*w.node));
	w.location = calloc((size_t)t->location_count + 1, sizeof(*w.location));
	if (!w.node || !w.location)
		return E_NOMEM;
	x->nodes.len = sort_pairs(x->nodes.v, x->nodes.len);
	for (size_t i = 0; i < x->nodes.len; i++) {
		uint32_t series = (uint32_t)(x->nodes.v[i] >> 32);
		for (uint32_t n = (uint32_t)x->nodes.v[i]; n && w.node[n] != series + 1;
			n = t->parent[n]) {
			uint32_t l = t->location[n];
			w.node[n] = series + 1;
			if (w.location[l] == series + 1)
				continue;
			w.location[l] = series + 1;
			if (!VEC_PUSH(&w.pairs, (uint64_t)l << 32 | series))
				return E_NOMEM;
		}
		if (w.pairs.len > most)
			return OK;
	}
	size_t n = sort_pairs(w.pairs.v, w.pairs.len);
	return make_lists(w.pairs.v, n, t->location_count, out);
}
