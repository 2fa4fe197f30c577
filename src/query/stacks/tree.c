/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: facts about the frames above a stack (conditions met, where the sandwich's function is) are
 * passed down from the root; totals are summed from the last stack to the first; lists of children
 * are made by counting. Without filters totals and lists do not depend on the frames: if another
 * thread is idle, it makes them at the same time.
 *
 * Stacks that filters leave out get the value 0, so that later steps need not check.
 */
#include "query/stacks/tree.h"
#include "query/plan/plan.h"
#include "query/stacks/lines.h"
#include "query/stacks/loaded.h"

#include "os/os.h"

#include <stdatomic.h>

struct maker {
	struct query_tree *t;
	const struct query_report_request *r;
	struct os_pool *pool;
	struct arena *a;
	uint64_t *seen;       /* by stack; NULL: no filter of stacks, no sandwich, no calls */
	uint32_t *begun;      /* by stack: how many of the request's calls it begins with,
				 QUERY_LINE_NONE: with others; NULL: the request has no calls */
	atomic_bool indexing; /* a thread runs or ran index_stacks() */
	enum status status;   /* of the frames */
	struct err *e;
};

void query_tree_deinit(struct query_tree *t)
{
	query_stacks_deinit(&t->stacks);
	*t = (struct query_tree){ 0 };
}

/* ---- which stacks ---- */

/* The number of the request's calls that a stack begins with, if its parent begins with `begun` and
 * this frame follows. */
static uint32_t begin_with(const struct maker *m, uint32_t begun, const struct query_line *line)
{
	char text[QUERY_ADDRESS_NAME_MAX];
	if (begun >= m->r->call_count) /* all, or QUERY_LINE_NONE */
		return begun;
	struct query_line_texts t = query_line_texts(&m->t->stacks.tables, line);
	bool fits = str_eq(query_line_name(&t, text), m->r->calls[begun]);
	return fits ? begun + 1 : QUERY_LINE_NONE;
}

/* Fills seen[], begun[] and cut[], from the root down. */
static void look_down(struct maker *m)
{
	struct query_tree *t = m->t;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t end, parent = t->stacks.v.v[i].parent;
		uint32_t first = query_tree_lines(t, i, &end);
		m->seen[i] = i > 0 ? m->seen[parent] : 0;
		for (uint32_t k = first; k < end; k++)
			m->seen[i] |= t->lines.v[k].seen;
		if (m->begun) {
			m->begun[i] = i > 0 ? m->begun[parent] : 0;
			for (uint32_t k = first; k < end; k++)
				m->begun[i] = begin_with(m, m->begun[i], &t->lines.v[k]);
		}
		if (!t->cut)
			continue;
		/* If the function is recursive, inverted graphs (callers) cut at its outermost
		 * frame, others at its innermost. */
		t->cut[i] = i > 0 ? t->cut[parent] : QUERY_LINE_NONE;
		if ((!m->r->invert || t->cut[i] == QUERY_LINE_NONE) &&
			query_tree_cut_line(t, first, end, true) != end)
			t->cut[i] = i;
	}
}

static bool passes(const struct maker *m, uint32_t i)
{
	const struct query_lines *l = &m->t->lines;
	/* A stack of no frames passes Parca's filters. */
	bool no_frames = m->t->stacks.v.v[i].location == 0;
	if (no_frames && l->some_frame)
		return false;
	if (!no_frames && ((m->seen[i] & l->must) != l->must || (m->seen[i] & l->must_not) != 0))
		return false;
	if (m->begun && m->begun[i] != m->r->call_count)
		return false;
	return !m->t->cut || m->t->cut[i] != QUERY_LINE_NONE;
}

static void choose_stacks(struct maker *m)
{
	struct query_stacks *s = &m->t->stacks;
	for (uint32_t i = 0; i < m->t->count; i++) {
		if (passes(m, i))
			continue;
		m->t->left_out[i] = 1;
		m->t->filtered = query_add(m->t->filtered, s->v.v[i].self);
		s->v.v[i].self = 0;
		if (s->diff.len)
			s->diff.v[i] = 0;
	}
}

/* ---- sums and children ---- */

static void sum_up(struct maker *m)
{
	struct query_tree *t = m->t;
	const struct samples_node *v = t->stacks.v.v;
	/* Frames above the sandwich's function do not take part in its total. */
	bool down = t->cut && !m->r->invert;
	for (uint32_t i = 0; i < t->count; i++) {
		t->total[i] = v[i].self;
		t->live[i] = v[i].self != 0 || query_stack_diff(&t->stacks, i) != 0;
		t->sum = query_add(t->sum, v[i].self);
	}
	for (uint32_t i = t->count; i-- > 1;) {
		uint32_t parent = v[i].parent;
		assert(parent < i);
		if (down && t->cut[parent] != t->cut[i])
			continue;
		t->total[parent] = query_add(t->total[parent], t->total[i]);
		t->live[parent] |= t->live[i];
	}
	if (!t->total_diff)
		return;
	memcpy(t->total_diff, t->stacks.diff.v, t->count * sizeof(*t->total_diff));
	for (uint32_t i = t->count; i-- > 0;) {
		uint32_t parent = v[i].parent;
		t->sum_diff = query_add(t->sum_diff, t->stacks.diff.v[i]);
		if (i > 0 && !(down && t->cut[parent] != t->cut[i]))
			t->total_diff[parent] = query_add(t->total_diff[parent], t->total_diff[i]);
	}
}

/* Lists the children of each live node. first_child[] is one ahead while the lists are filled: each
 * ends where the next begins. */
static void list_children(struct query_tree *t)
{
	const struct samples_node *v = t->stacks.v.v;
	for (uint32_t i = 1; i < t->count; i++)
		t->first_child[v[i].parent + 2] += t->live[i];
	for (uint32_t i = 2; i < t->count + 2; i++)
		t->first_child[i] += t->first_child[i - 1];
	for (uint32_t i = 1; i < t->count; i++)
		if (t->live[i])
			t->child[t->first_child[v[i].parent + 1]++] = i;
}

static void index_stacks(struct maker *m)
{
	sum_up(m);
	list_children(m->t);
}

/* ---- the making ---- */

static enum status reserve(struct maker *m)
{
	struct query_tree *t = m->t;
	bool cut = m->r->sandwich.len > 0, calls = m->r->call_count > 0;
	bool judged = cut || calls || m->r->filter_count > 0;
	t->count = (uint32_t)t->stacks.v.len;
	uint64_t each = 2 * sizeof(int64_t) + 2 * sizeof(uint32_t) + 1 + (judged ? 17 : 0);
	uint64_t lines = t->stacks.tables.locations.len + t->stacks.tables.lines.len;
	enum status s = query_stacks_hold(&t->stacks,
		t->count * each + lines * (sizeof(struct query_line) + sizeof(struct query_key)),
		m->e);
	if (s != OK)
		return s;
	t->total = ARENA_ARRAY(m->a, int64_t, t->count);
	t->live = ARENA_ARRAY(m->a, uint8_t, t->count);
	t->first_child = ARENA_ARRAY(m->a, uint32_t, (size_t)t->count + 2);
	t->child = ARENA_ARRAY(m->a, uint32_t, t->count);
	bool good = t->total && t->live && t->first_child && t->child;
	if (good && m->r->diff)
		good = (t->total_diff = ARENA_ARRAY(m->a, int64_t, t->count)) != NULL;
	if (good && judged)
		good = (m->seen = ARENA_ARRAY(m->a, uint64_t, t->count)) != NULL &&
		       (t->left_out = ARENA_ARRAY(m->a, uint8_t, t->count)) != NULL;
	if (good && calls)
		good = (m->begun = ARENA_ARRAY(m->a, uint32_t, t->count)) != NULL;
	if (good && cut)
		good = (t->cut = ARENA_ARRAY(m->a, uint32_t, t->count)) != NULL;
	return good ? OK
		    : err_set(m->e, arena_status(m->a),
			      "a tree of %u locations: choose a shorter time range or a narrower "
			      "selector",
			      t->count);
}

static void frame_or_index(void *ctx, unsigned worker)
{
	struct maker *m = ctx;
	if (worker == 0)
		m->status = query_lines_make(&m->t->stacks.tables, m->r, m->a, &m->t->lines, m->e);
	if (!m->seen && !atomic_exchange(&m->indexing, true))
		index_stacks(m);
}

static enum status fill(struct maker *m)
{
	enum status s = reserve(m);
	if (s != OK)
		return s;
	os_pool_run(m->pool, 2, frame_or_index, m);
	if (m->status == OK)
		m->status = samples_stopped(&m->t->stacks.plan.store, m->e);
	if (m->status != OK || !m->seen)
		return m->status;
	look_down(m);
	choose_stacks(m);
	index_stacks(m);
	return samples_stopped(&m->t->stacks.plan.store, m->e);
}

enum status query_tree_make(struct query_tree *t, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e)
{
	*t = (struct query_tree){ 0 };
	enum status s = query_stacks_load(&t->stacks, q, r, a, e);
	if (s != OK)
		return s;
	struct maker m = { .t = t, .r = r, .pool = q->pool, .a = a, .e = e };
	s = fill(&m);
	if (s != OK)
		query_tree_deinit(t);
	return s;
}

void query_tree_info(const struct query_tree *t, struct query_report *info)
{
	struct str unit = str_sub(t->stacks.unit, 0, sizeof(info->unit) - 1);
	*info = (struct query_report){
		.total = t->sum, .filtered = t->filtered, .found = t->stacks.sample_count > 0
	};
	if (unit.len)
		memcpy(info->unit, unit.p, unit.len);
}

bool query_trim_keeps(enum query_trim trim, double share, uint64_t least, int64_t parent,
	int64_t total, int64_t total_diff)
{
	float part = (float)parent * (float)share;
	switch (trim) {
	case QUERY_TRIM_WHOLE:
		return query_abs(total) >= least;
	case QUERY_TRIM_ABOVE:
		return total > (part >= 0x1p63f ? INT64_MAX : (int64_t)part);
	case QUERY_TRIM_LEAST:
		return (float)total >= part && (total != 0 || total_diff != 0);
	}
	UNREACHABLE();
}
