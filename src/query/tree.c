/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the path that flame graph and table share: sum by stack in the store, names, frames; then
 * totals by one pass from the last node to the first, and lists of children by counting. These need
 * no frames, unless only some stacks count (`match`): another thread makes them beside the frames,
 * where one is idle.
 */
#include "query/internal.h"

#include <stdatomic.h>

void query_tree_deinit(struct query_tree *t)
{
	if (t->has_store)
		samples_tree_deinit(&t->store);
	query_plan_close(&t->plan);
}

/* A stack matches when a frame of it does: from the root down. */
static void keep_matches(struct query_tree *t, uint8_t *matched)
{
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t count = 0;
		const uint32_t *ids = query_tree_frames(t, i, &count);
		matched[i] = matched[t->store.nodes.v[i].parent];
		for (uint32_t k = 0; k < count && !matched[i]; k++)
			matched[i] = t->frames.matched[ids[k] & ~QUERY_FRAME_INLINED];
		if (!matched[i])
			t->self[i] = 0;
	}
	t->self[0] = 0;
}

static void sum_up(struct query_tree *t)
{
	const struct samples_node *nodes = t->store.nodes.v;
	memcpy(t->total, t->self, t->count * sizeof(*t->total));
	for (uint32_t i = t->count; i-- > 1;) {
		assert(nodes[i].parent < i);
		t->total[nodes[i].parent] = query_add(t->total[nodes[i].parent], t->total[i]);
	}
}

/* first_child[] is one ahead while the lists are filled: each ends where the next begins. */
static void list_children(struct query_tree *t)
{
	const struct samples_node *nodes = t->store.nodes.v;
	for (uint32_t i = 1; i < t->count; i++)
		t->first_child[nodes[i].parent + 2]++;
	for (uint32_t i = 2; i < t->count + 2; i++)
		t->first_child[i] += t->first_child[i - 1];
	for (uint32_t i = 1; i < t->count; i++)
		t->child[t->first_child[nodes[i].parent + 1]++] = i;
}

/* Room for what index_nodes() makes. */
static enum status reserve_nodes(
	struct query_tree *t, bool match, uint8_t **out_matched, struct arena *work, struct err *e)
{
	uint8_t *matched = NULL;
	t->count = (uint32_t)t->store.nodes.len;
	t->self = ARENA_ARRAY(work, int64_t, t->count);
	t->total = ARENA_ARRAY(work, int64_t, t->count);
	t->first_child = ARENA_ARRAY(work, uint32_t, (size_t)t->count + 2);
	t->child = ARENA_ARRAY(work, uint32_t, t->count);
	if (match)
		matched = ARENA_ARRAY(work, uint8_t, t->count);
	if (!t->self || !t->total || !t->first_child || !t->child || (match && !matched))
		return err_set(e, arena_status(work),
			"a tree of %u locations: choose a shorter time range or a narrower "
			"selector",
			t->count);
	*out_matched = matched;
	return OK;
}

/* matched: NULL, or scratch for which nodes do; then frames are there. */
static void index_nodes(struct query_tree *t, uint8_t *matched)
{
	for (uint32_t i = 0; i < t->count; i++)
		t->self[i] = t->store.nodes.v[i].self;
	if (matched)
		keep_matches(t, matched);
	sum_up(t);
	list_children(t);
}

/* What frames and sums take, about: frames of each line, and their rows in a table. */
static uint64_t own_bytes(const struct samples_tree *store)
{
	const struct profile *p = &store->tables;
	uint64_t frames = p->locations.len + p->lines.len;
	return store->nodes.len * (2 * sizeof(int64_t) + 2 * sizeof(uint32_t) + 1) +
	       frames * (sizeof(struct query_frame) + 2 * sizeof(uint32_t) +
				sizeof(struct query_row)) +
	       p->strings.len * sizeof(uint32_t);
}

/* What two threads may do at the same time. */
struct filling {
	struct query_tree *t;
	struct arena *work;
	struct str match;     /* not empty: nodes are indexed later */
	atomic_bool indexing; /* somebody does, or did */
	enum status status;   /* of the frames */
	struct err *e;
};

static void frame_or_index(void *ctx, unsigned worker)
{
	struct filling *f = ctx;
	struct query_tree *t = f->t;
	if (worker == 0)
		f->status =
			query_frames_make(&t->store.tables, f->match, f->work, &t->frames, f->e);
	if (!f->match.len && !atomic_exchange(&f->indexing, true))
		index_nodes(t, NULL);
}

static enum status fill(struct query_tree *t, const struct query_engine *q,
	const struct query_request *r, struct arena *work, struct err *e)
{
	const struct samples_ops *ops = t->plan.view->ops;
	struct profile *tables = &t->store.tables;
	struct filling f = { .t = t, .work = work, .match = r->match, .e = e };
	struct symbolizer_beside beside = query_beside(&t->plan);
	uint8_t *matched = NULL;
	enum status s = ops->sum_stacks(t->plan.view, &t->plan.store, &t->store, e);
	if (s != OK)
		return s;
	t->has_store = true;
	t->held = own_bytes(&t->store);
	s = query_count(&t->plan, t->held, e);
	if (s == OK)
		s = reserve_nodes(t, r->match.len > 0, &matched, work, e);
	if (s == OK && q->symbolizer)
		s = symbolizer_resolve(
			q->symbolizer, tables, QUERY_WAIT_MS, &beside, &t->pending, e);
	if (s != OK)
		return s;
	const struct profile_type *type = &t->store.type;
	t->unit = query_unit_of(profile_str(tables, type->sample_type),
		profile_str(tables, type->sample_unit), profile_str(tables, type->period_unit),
		r->counts ? 0 : t->store.period);
	if (ops->beside)
		ops->beside(t->plan.view, frame_or_index, &f);
	else
		frame_or_index(&f, 0);
	if (f.status == OK && matched)
		index_nodes(t, matched);
	return f.status;
}

enum status query_tree_make(struct query_tree *t, const struct query_engine *q,
	const struct query_request *r, struct arena *work, struct err *e)
{
	*t = (struct query_tree){ .unit = { STR("count"), 1 } };
	enum status s = query_plan_open(q, r, true, work, &t->plan, e);
	if (s != OK)
		return s;
	if (t->plan.empty)
		return OK;
	t->stop = t->plan.store;
	t->stop.selector = NULL;
	s = fill(t, q, r, work, e);
	if (s != OK)
		query_tree_deinit(t);
	return s;
}
