/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: samples come in the order of time. A call of the chart lasts as long as each next sample has
 * the frame too and comes at most a tenth of a period after the end of the one before. Nodes are
 * made in the order in which calls begin, so the nodes of different label groups are mixed: at the
 * end they are put depth first, and nodes that are too small are left out.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

#define STOP_CHECK_EVENTS 8192u
/* Of a node, its time and its last child; and of put_in_order(): the first two again, and four
 * arrays by node. */
#define NODE_BYTES \
	(2 * (sizeof(struct query_fold_node) + sizeof(int64_t)) + 4 * sizeof(uint32_t) + 1)

struct charter {
	const struct query_tree *t;
	VEC(struct query_fold_node) nodes; /* in the order in which calls begin */
	VEC(int64_t) time_ns;              /* by node */
	VEC(uint32_t) last;                /* by node: its last child; 0: none */
	uint32_t *group_node;              /* by group */
	uint32_t path[PROFILE_STACK_MAX + 2];
	size_t memory_max; /* bytes of the nodes */
	struct err *e;
};

static void charter_free(struct charter **p)
{
	struct charter *c = *p;
	if (!c)
		return;
	VEC_FREE(&c->nodes);
	VEC_FREE(&c->time_ns);
	VEC_FREE(&c->last);
	free(c->group_node);
	free(c);
}

static enum status no_room(const struct charter *c, enum status s)
{
	return err_set(c->e, s, "%zu calls: choose a shorter time range or a narrower selector",
		c->nodes.len);
}

static enum status push(
	struct charter *c, const struct query_fold_node *n, int64_t time_ns, uint32_t *out)
{
	*out = (uint32_t)c->nodes.len;
	if (c->nodes.len == c->nodes.cap) {
		uint64_t bytes = (c->nodes.cap + c->nodes.cap / 2 + 8) * NODE_BYTES;
		if (bytes > c->memory_max)
			return no_room(c, E_LIMIT);
		enum status s = query_count(&c->t->stacks.plan, c->t->stacks.held + bytes, c->e);
		if (s != OK)
			return s;
	}
	if (!VEC_PUSH(&c->nodes, *n) || !VEC_PUSH(&c->time_ns, time_ns) || !VEC_PUSH(&c->last, 0))
		return no_room(c, E_NOMEM);
	return OK;
}

static enum status find_group(struct charter *c, uint32_t group, uint32_t *out)
{
	struct query_fold_node n = { .line = QUERY_LINE_NONE, .group = group };
	*out = c->group_node[group];
	if (group == 0 || *out)
		return OK;
	enum status s = push(c, &n, 0, out);
	c->group_node[group] = *out;
	return s;
}

static bool goes_on(const struct charter *c, uint32_t node, uint32_t line, int64_t time_ns)
{
	const struct query_fold_node *n = &c->nodes.v[node];
	if (c->t->lines.v[n->line].key != c->t->lines.v[line].key)
		return false;
	/* 128 bits: the times of samples may be any int64. */
	__int128 gap = (__int128)time_ns - c->time_ns.v[node] - n->total;
	return gap <= c->t->stacks.period / 10;
}

static enum status add_frame(
	struct charter *c, uint32_t *at, uint32_t line, const struct query_event *event)
{
	const struct query_tree *t = c->t;
	uint32_t parent = *at, last = c->last.v[parent];
	if (last && goes_on(c, last, line, event->time_ns)) {
		struct query_fold_node *n = &c->nodes.v[last];
		if (n->line != line)
			n->mixed |= query_lines_differ(
				&t->stacks.tables, &t->lines.v[n->line], &t->lines.v[line]);
		*at = last;
	} else {
		struct query_fold_node n = { .parent = parent,
			.line = line,
			.group = c->nodes.v[parent].group,
			.inlined = t->lines.v[line].inlined };
		enum status s = push(c, &n, event->time_ns, at);
		if (s != OK)
			return s;
		c->last.v[parent] = *at;
	}
	c->nodes.v[*at].total = query_add(c->nodes.v[*at].total, event->value);
	return OK;
}

static enum status add_event(struct charter *c, const struct query_event *event)
{
	const struct query_tree *t = c->t;
	uint32_t depth = PROFILE_STACK_MAX + 2, at;
	enum status s = find_group(c, query_stack_group(&t->stacks, event->stack), &at);
	bool in = !t->cut;
	for (uint32_t i = event->stack; i > 0 && depth > 0; i = t->stacks.v.v[i].parent)
		c->path[--depth] = i;
	for (; s == OK && depth < PROFILE_STACK_MAX + 2; depth++) {
		uint32_t end, first = query_tree_lines(t, c->path[depth], &end);
		bool cuts = t->cut && t->cut[event->stack] == c->path[depth];
		for (uint32_t k = first; s == OK && k < end; k++) {
			in = in || (cuts && t->lines.v[k].sandwich);
			if (in && t->lines.v[k].kept)
				s = add_frame(c, &at, k, event);
		}
	}
	if (s == OK)
		c->nodes.v[at].self = query_add(c->nodes.v[at].self, event->value);
	return s;
}

static enum status add_events(struct charter *c)
{
	const struct query_stacks *stacks = &c->t->stacks;
	enum status s = OK;
	for (size_t i = 0; s == OK && i < stacks->events.len; i++) {
		const struct query_event *event = &stacks->events.v[i];
		if (i % STOP_CHECK_EVENTS == 0)
			s = samples_stopped(&stacks->plan.store, c->e);
		if (s == OK && stacks->v.v[event->stack].self != 0)
			s = add_event(c, event);
	}
	return s;
}

/* Until here `total` was a length of time; now it becomes the sum of the values. */
static void sum_up(struct charter *c)
{
	for (size_t i = 0; i < c->nodes.len; i++)
		c->nodes.v[i].total = c->nodes.v[i].self;
	for (size_t i = c->nodes.len; i-- > 1;) {
		struct query_fold_node *n = &c->nodes.v[i], *parent = &c->nodes.v[n->parent];
		parent->total = query_add(parent->total, n->total);
	}
}

/* Depth first: a pass from the last node to the first counts the nodes below each; a pass from the
 * first to the last gives each node the next free place of its parent. */
static enum status put_in_order(
	struct charter *c, struct query_fold *f, enum query_trim trim, double share)
{
	size_t count = c->nodes.len;
	CLEANUP(free_cleanup) uint32_t *size = calloc(count, sizeof(*size));
	CLEANUP(free_cleanup) uint32_t *next = calloc(count, sizeof(*next));
	CLEANUP(free_cleanup) uint32_t *to = calloc(count, sizeof(*to));
	CLEANUP(free_cleanup) uint8_t *kept = calloc(count, 1);
	if (!size || !next || !to || !kept || !VEC_RESERVE(&f->nodes, count) ||
		!VEC_RESERVE(&f->time_ns, count))
		return no_room(c, E_NOMEM);
	for (size_t i = 0; i < count; i++) {
		const struct query_fold_node *n = &c->nodes.v[i];
		bool keeps = i == 0 || query_trim_keeps(trim, share, 1, c->nodes.v[n->parent].total,
					       n->total, 0);
		kept[i] = keeps && (i == 0 || kept[n->parent]);
		if (!keeps && kept[n->parent])
			f->trimmed = query_add(f->trimmed, n->total);
	}
	for (size_t i = count; i-- > 0;) {
		size[i] += kept[i];
		if (i > 0)
			size[c->nodes.v[i].parent] += size[i];
	}
	for (size_t i = 0; i < count; i++) {
		struct query_fold_node n = c->nodes.v[i];
		if (!kept[i])
			continue;
		if (i > 0) {
			to[i] = next[n.parent];
			next[n.parent] += size[i];
			n.parent = to[n.parent];
		}
		next[i] = to[i] + 1;
		f->nodes.v[to[i]] = n;
		f->nodes.len++;
		f->time_ns.v[to[i]] = c->time_ns.v[i];
		f->time_ns.len++;
	}
	return OK;
}

enum status query_chart_make(struct query_fold *f, const struct query_tree *t, enum query_trim trim,
	double share, struct err *e)
{
	CLEANUP(charter_free) struct charter *c = calloc(1, sizeof(*c));
	struct query_fold_node root = { .line = QUERY_LINE_NONE };
	uint32_t number;
	if (!c || !(c->group_node = calloc(t->stacks.group_count, sizeof(*c->group_node))))
		return err_set(e, E_NOMEM, "a flame chart");
	c->t = t;
	c->memory_max = f->memory_max;
	c->e = e;
	enum status s = push(c, &root, 0, &number);
	if (s == OK)
		s = add_events(c);
	if (s != OK)
		return s;
	sum_up(c);
	return put_in_order(c, f, trim, share);
}
