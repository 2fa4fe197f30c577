/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row with the same set and node as the previous row of its series adds nothing; one array access
 * finds that. Other duplicate pairs (a series may come again in each slice of time) are removed
 * when there are many, and at the end: they are ascending stretches, which are merged. At the end
 * stacks become locations, too: from each node of a series the walk to the root is made once.
 */
#include "store/part/part_index.h"

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

/* The end of the ascending stretch that begins at `from`. */
static size_t stretch(const uint64_t *v, size_t from, size_t n)
{
	size_t i = from + 1;
	while (i < n && v[i - 1] < v[i])
		i++;
	return MIN(i, n);
}

/* Merges two ascending stretches into one, with each number once; returns how many. */
static size_t merge_stretches(const uint64_t *a, const uint64_t *a_end, const uint64_t *b,
	const uint64_t *b_end, uint64_t *to)
{
	uint64_t *begin = to;
	while (a < a_end && b < b_end) {
		uint64_t x = *a, y = *b;
		*to++ = MIN(x, y);
		a += x <= y;
		b += y <= x;
	}
	for (; a < a_end; a++)
		*to++ = *a;
	for (; b < b_end; b++)
		*to++ = *b;
	return (size_t)(to - begin);
}

/* Sorts the pairs, and keeps each once. */
static enum status sort_pairs(uint64_t *v, size_t *count)
{
	size_t n = *count;
	if (n == 0 || stretch(v, 0, n) == n)
		return OK;
	CLEANUP(free_cleanup) uint64_t *scratch = malloc(n * sizeof(*scratch));
	if (!scratch)
		return E_NOMEM;
	uint64_t *from = v, *to = scratch;
	while (stretch(from, 0, n) < n) {
		size_t kept = 0;
		for (size_t i = 0; i < n;) {
			size_t middle = stretch(from, i, n);
			size_t end = middle < n ? stretch(from, middle, n) : n;
			kept += merge_stretches(
				from + i, from + middle, from + middle, from + end, to + kept);
			i = end;
		}
		uint64_t *t = from;
		from = to;
		to = t;
		n = kept;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	*count = n;
	return OK;
}

/* Makes room for one more pair by removing duplicate pairs; *none: there are too many. */
static enum status make_room(uint64_t *v, size_t *count, bool *none)
{
	if (*count < PART_INDEX_PAIRS_MAX)
		return OK;
	enum status s = sort_pairs(v, count);
	*none = *count > PART_INDEX_PAIRS_MAX / 4 * 3;
	return s;
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

enum status part_index_node(struct part_index *x, uint32_t series, uint32_t node)
{
	uint32_t *seen = x->no_nodes ? NULL : seen_at(&x->node_seen, node);
	if (!seen)
		return x->no_nodes ? OK : E_NOMEM;
	if (*seen == series + 1)
		return OK;
	*seen = series + 1;
	if (make_room(x->nodes.v, &x->nodes.len, &x->no_nodes) != OK ||
		!VEC_PUSH(&x->nodes, (uint64_t)series << 32 | node))
		return E_NOMEM;
	return OK;
}

enum status part_index_set(struct part_index *x, uint32_t series, uint32_t set)
{
	uint32_t *seen = x->no_sets ? NULL : seen_at(&x->set_seen, set);
	if (!seen)
		return x->no_sets ? OK : E_NOMEM;
	if (*seen == series + 1)
		return OK;
	*seen = series + 1;
	if (make_room(x->sets.v, &x->sets.len, &x->no_sets) != OK ||
		!VEC_PUSH(&x->sets, (uint64_t)series << 32 | set))
		return E_NOMEM;
	return OK;
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
	enum status s = sort_pairs(x->sets.v, &x->sets.len);
	return s == OK ? make_lists(x->sets.v, x->sets.len, series_count, out) : s;
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
	enum status s = sort_pairs(x->nodes.v, &x->nodes.len);
	if (s != OK)
		return s;
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
	s = sort_pairs(w.pairs.v, &w.pairs.len);
	return s == OK ? make_lists(w.pairs.v, w.pairs.len, t->location_count, out) : s;
}
