/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries in preorder with children by location are sorted lists of paths, and so are merged like
 * sorted lists: no hash, no search, every array from its beginning to its end. The parents of the
 * next nodes of all tries lie on the path to the last node. So the deepest of them is next, and
 * among equally deep ones the one with the least location.
 */
#include "store/merge/merge_choose.h"
#include "store/merge/merge_cursor.h"

#include <stdlib.h>

_Static_assert(PROFILE_STACK_MAX < UINT16_MAX, "depths are of 16 bits");

struct front {
	const struct canon *canon;
	struct merge_cursor *cursors;
	size_t count;
	uint32_t at[MERGE_SOURCES_MAX];
	uint64_t next[MERGE_SOURCES_MAX]; /* the deeper the less, then by location; DONE */
};
#define DONE UINT64_MAX

static void look_at(struct front *f, size_t k, uint32_t node)
{
	const struct merge_cursor *c = &f->cursors[k];
	f->at[k] = node;
	f->next[k] = node >= c->tabs.node_count ? DONE
						: (uint64_t)(UINT16_MAX - c->depths[node]) << 32 |
							  f->canon->locations.to[c->nodes[node]];
}

static size_t find_next(const struct front *f)
{
	size_t least = 0;
	for (size_t k = 1; k < f->count; k++)
		if (f->next[k] < f->next[least])
			least = k;
	return least;
}

enum status merge_tries(struct tables *t, struct canon *canon, struct merge_cursor *cursors,
	size_t count, size_t *out_unfit)
{
	struct front f = { .canon = canon, .cursors = cursors, .count = count };
	uint32_t path[PROFILE_STACK_MAX + 1] = { 0 }, locations[PROFILE_STACK_MAX + 1] = { 0 };
	uint32_t depth = 0;
	assert(count > 0 && count <= MERGE_SOURCES_MAX);
	*out_unfit = count;
	for (size_t k = 0; k < count; k++)
		look_at(&f, k, 1);
	for (size_t first; f.next[first = find_next(&f)] != DONE;) {
		uint64_t next = f.next[first];
		uint32_t location = (uint32_t)next, node = (uint32_t)t->parent.len;
		uint32_t deep = UINT16_MAX - (uint32_t)(next >> 32);
		if (deep <= depth && location <= locations[deep]) {
			*out_unfit = first;
			return E_UNSUPPORTED;
		}
		enum status s =
			tables_append_node(t, path[deep - 1], canon->locations.order[location]);
		if (s != OK)
			return s;
		path[depth = deep] = node;
		locations[deep] = location;
		for (size_t k = first; k < count; k++) {
			if (f.next[k] != next)
				continue;
			cursors[k].nodes[f.at[k]] = node;
			look_at(&f, k, f.at[k] + 1);
		}
	}
	return canon_keep_nodes(canon, (uint32_t)t->parent.len);
}
