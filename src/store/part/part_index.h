/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_index: the index of a part, gathered while its rows are written: the sets of each
 * series, and the series of each location (docs/formats/part.md section 3).
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

/* Most pairs of one kind. With more, that index is left out, and readers scan the rows. */
#define PART_INDEX_PAIRS_MAX ((size_t)8 << 20)

/* The series of the last row with each element, + 1. */
struct part_seen {
	uint32_t *v;
	size_t cap;
};

struct part_index {
	VEC(uint64_t) sets;  /* series << 32 | set */
	VEC(uint64_t) nodes; /* series << 32 | node */
	struct part_seen set_seen;
	struct part_seen node_seen;
	bool no_sets, no_nodes; /* too many */
};
void part_index_deinit(struct part_index *x);
/* Notes that the series occurs with the node, or with the set. */
NODISCARD enum status part_index_node(struct part_index *x, uint32_t series, uint32_t node);
NODISCARD enum status part_index_set(struct part_index *x, uint32_t series, uint32_t set);
/* Notes a row. This is cheapest when the rows of a series follow each other, since most of them
 * then add no pair. */
NODISCARD static inline enum status part_index_row(
	struct part_index *x, uint32_t series, uint32_t node, uint32_t set)
{
	enum status s = OK;
	if (node >= x->node_seen.cap || x->node_seen.v[node] != series + 1)
		s = part_index_node(x, series, node);
	if (s == OK && (set >= x->set_seen.cap || x->set_seen.v[set] != series + 1))
		s = part_index_set(x, series, set);
	return s;
}

/* Lists by key: counts[key] items of each, ascending, one list after the other. */
struct part_lists {
	bool found; /* false: too many pairs */
	uint32_t *counts;
	uint32_t *items;
	size_t item_count;
};
void part_lists_deinit(struct part_lists *l);
NODISCARD enum status part_index_sets(
	struct part_index *x, uint32_t series_count, struct part_lists *out);
/* The trie in canonical numbers. `most`: the limit of pairs. */
struct part_trie {
	const uint32_t *parent, *location;
	uint32_t node_count, location_count;
};
NODISCARD enum status part_index_locations(
	struct part_index *x, const struct part_trie *t, size_t most, struct part_lists *out);
