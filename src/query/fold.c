/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the store's tree comes parents first, so one pass with an array "node of the store -> node
 * of the fold" suffices: each node steps from its parent's fold node down the frames of its own
 * location. A step is one probe of an open hash table whose slots are node numbers; its keys are
 * the nodes themselves. New nodes are appended, so parents stay smaller than children, and totals
 * are one pass from the last node to the first.
 */
#include "query/internal.h"

#define SLOTS_MIN 512
#define NODES_MAX (1u << 30)

void query_fold_deinit(struct query_fold *f)
{
	VEC_FREE(&f->nodes);
	free(f->slots);
	*f = (struct query_fold){ 0 };
}

static enum status too_large(const struct query_fold *f, struct err *e)
{
	return err_set(e, E_LIMIT,
		"the flame graph has more than %zu nodes and would pass %zu MiB: choose a shorter "
		"time range or a narrower selector",
		f->nodes.len, f->memory_max >> 20);
}

static uint32_t slot_of(const struct query_fold *f, uint32_t parent, uint32_t frame)
{
	return (uint32_t)hash_u64((uint64_t)parent << 32 | frame) & f->mask;
}

static void place(struct query_fold *f, uint32_t node)
{
	uint32_t at = slot_of(f, f->nodes.v[node].parent, f->nodes.v[node].frame);
	while (f->slots[at] != MAP_NONE)
		at = (at + 1) & f->mask;
	f->slots[at] = node;
}

/* Room for twice the nodes, table at most half full. */
static enum status grow(struct query_fold *f, struct err *e)
{
	size_t slots = f->mask ? ((size_t)f->mask + 1) * 2 : SLOTS_MIN, nodes = slots / 2;
	static_assert((SLOTS_MIN & (SLOTS_MIN - 1)) == 0, "slots are found by a mask");
	if (nodes > NODES_MAX ||
		nodes * sizeof(struct query_fold_node) + slots * sizeof(uint32_t) > f->memory_max)
		return too_large(f, e);
	uint32_t *table = malloc(slots * sizeof(*table));
	if (!table || !VEC_RESERVE(&f->nodes, nodes)) {
		free(table);
		return err_set(e, E_NOMEM, "flame graph of %zu nodes", nodes);
	}
	memset(table, 0xFF, slots * sizeof(*table));
	free(f->slots);
	f->slots = table;
	f->mask = (uint32_t)slots - 1;
	for (uint32_t i = 1; i < f->nodes.len; i++)
		place(f, i);
	return OK;
}

static enum status begin(struct query_fold *f, size_t memory_max, struct err *e)
{
	*f = (struct query_fold){ .memory_max = memory_max };
	enum status s = grow(f, e);
	if (s != OK)
		return s;
	f->nodes.v[0] = (struct query_fold_node){ 0 };
	f->nodes.len = 1;
	return OK;
}

/* The child of *node with that frame, made where there is none, becomes *node. */
static enum status step(
	struct query_fold *f, uint32_t *node, uint32_t frame, bool inlined, struct err *e)
{
	uint32_t at = slot_of(f, *node, frame);
	for (uint32_t i; (i = f->slots[at]) != MAP_NONE; at = (at + 1) & f->mask) {
		struct query_fold_node *n = &f->nodes.v[i];
		if (n->parent == *node && n->frame == frame) {
			n->inlined &= inlined;
			*node = i;
			return OK;
		}
	}
	uint32_t made = (uint32_t)f->nodes.len;
	if (f->nodes.len * 2 > f->mask) {
		enum status s = grow(f, e);
		if (s != OK)
			return s;
		at = slot_of(f, *node, frame);
		while (f->slots[at] != MAP_NONE)
			at = (at + 1) & f->mask;
	}
	f->nodes.v[made] = (struct query_fold_node){
		.parent = *node,
		.frame = frame,
		.inlined = inlined,
	};
	f->nodes.len++;
	f->slots[at] = made;
	*node = made;
	return OK;
}

static void sum_up(struct query_fold *f)
{
	for (size_t i = 0; i < f->nodes.len; i++)
		f->nodes.v[i].total = f->nodes.v[i].self;
	for (size_t i = f->nodes.len; i-- > 1;) {
		struct query_fold_node *parent = &f->nodes.v[f->nodes.v[i].parent];
		parent->total = query_add(parent->total, f->nodes.v[i].total);
	}
}

/* Where each node of the store's tree lies in the fold, and whether its stack matches. */
struct place {
	uint32_t node;
	bool matched;
};

static enum status fold_node(struct query_fold *f, const struct store_tree_node *n,
	const struct query_frames *frames, int64_t factor, struct place *places, struct place *out,
	struct err *e)
{
	struct place at = places[n->parent];
	for (uint32_t k = frames->first[n->location]; k < frames->first[n->location + 1]; k++) {
		uint32_t frame = frames->ids[k] & ~QUERY_FRAME_INLINED;
		enum status s = step(f, &at.node, frame, frames->ids[k] & QUERY_FRAME_INLINED, e);
		if (s != OK)
			return s;
		at.matched |= frames->matched && frames->matched[frame];
	}
	if (at.matched) {
		int64_t *self = &f->nodes.v[at.node].self;
		*self = query_add(*self, query_scale(n->self, factor));
	}
	*out = at;
	return OK;
}

enum status query_fold_make(struct query_fold *f, const struct store_tree *tree,
	const struct query_frames *frames, int64_t factor, size_t memory_max, struct err *e)
{
	enum status s = begin(f, memory_max, e);
	if (s != OK || tree->nodes.len == 0)
		return s;
	CLEANUP(free_cleanup) struct place *places = calloc(tree->nodes.len, sizeof(*places));
	if (!places)
		return err_set(e, E_NOMEM, "tree of %zu nodes", tree->nodes.len);
	places[0].matched = frames->matched == NULL;
	if (places[0].matched)
		f->nodes.v[0].self = query_scale(tree->nodes.v[0].self, factor);
	for (size_t i = 1; i < tree->nodes.len; i++) {
		assert(tree->nodes.v[i].parent < i);
		s = fold_node(f, &tree->nodes.v[i], frames, factor, places, &places[i], e);
		if (s != OK)
			return s;
	}
	sum_up(f);
	return OK;
}

/* ---- from the leaves up ---- */

/* A stack on its way up: the node of `f` it has reached, and the inverted node for it. */
struct climber {
	uint32_t at;
	uint32_t node;
	int64_t value;
};

/* One frame further for all that are worth it; the others stay where they are. */
static enum status climb(struct query_fold *out, const struct query_fold *f, uint64_t least,
	struct climber *c, size_t *count, struct err *e)
{
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		struct climber one = c[i];
		const struct query_fold_node *n = &f->nodes.v[one.at];
		if (query_abs(out->nodes.v[one.node].total) < least)
			continue;
		if (one.at == 0) {
			int64_t *self = &out->nodes.v[one.node].self;
			*self = query_add(*self, one.value);
			continue;
		}
		enum status s = step(out, &one.node, n->frame, n->inlined, e);
		if (s != OK)
			return s;
		one.at = n->parent;
		c[kept++] = one;
	}
	for (size_t i = 0; i < kept; i++) {
		int64_t *total = &out->nodes.v[c[i].node].total;
		*total = query_add(*total, c[i].value);
	}
	*count = kept;
	return OK;
}

enum status query_fold_invert(struct query_fold *out, const struct query_fold *f, uint64_t least,
	size_t memory_max, struct err *e)
{
	enum status s = begin(out, memory_max, e);
	if (s != OK)
		return s;
	CLEANUP(free_cleanup) struct climber *climbers = calloc(f->nodes.len, sizeof(*climbers));
	if (!climbers)
		return err_set(e, E_NOMEM, "tree of %zu nodes", f->nodes.len);
	size_t count = 0;
	for (uint32_t i = 0; i < f->nodes.len; i++)
		if (f->nodes.v[i].self != 0)
			climbers[count++] = (struct climber){ i, 0, f->nodes.v[i].self };
	out->nodes.v[0].total = f->nodes.v[0].total;
	while (s == OK && count > 0)
		s = climb(out, f, least, climbers, &count, e);
	return s;
}

enum status query_fold_children(const struct query_fold *f, struct arena *a, uint32_t **out_first,
	uint32_t **out_list, struct err *e)
{
	size_t count = f->nodes.len;
	uint32_t *first = ARENA_ARRAY(a, uint32_t, count + 2);
	uint32_t *list = ARENA_ARRAY(a, uint32_t, count);
	if (!first || !list)
		return err_set(e, arena_status(a), "tree of %zu nodes", count);
	/* first[] is one ahead while the list is filled: each slot ends where the next begins. */
	for (size_t i = 1; i < count; i++)
		first[f->nodes.v[i].parent + 2]++;
	for (size_t i = 2; i < count + 2; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 1; i < count; i++)
		list[first[f->nodes.v[i].parent + 1]++] = i;
	*out_first = first;
	*out_list = list;
	return OK;
}
