/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: each group of labels gets a copy of its part of the store's tree. Its sums are taken group
 * by group. From the node of each sum the copy goes upwards, until it meets a node that the group
 * already has. If there are too many groups, the largest stay and the others become one.
 */
#include "query/plan/plan.h"
#include "query/stacks/loaded.h"
#include "query/stacks/loader.h"

#include <stdlib.h>

/* ---- groups of their own ---- */

/* A new group, named by the value of its first label. */
static uint32_t add_group(struct query_stacks *s, size_t labels, struct str name)
{
	uint32_t group = s->group_count++;
	for (size_t i = 0; i < labels; i++)
		s->groups[group * labels + i] = i ? STR("") : name;
	return group;
}

static int compare_totals(const void *pa, const void *pb, void *ctx)
{
	const int64_t *totals = ctx;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint64_t x = query_abs(totals[a]), y = query_abs(totals[b]);
	return x != y ? (x > y ? -1 : 1) : a < b ? -1 : a > b;
}

/* The largest `group_max` groups stay; samples without any of the labels are a group too. The
 * others are joined into one. */
static enum status join_groups(struct query_loader *l, const struct samples_cells *c,
	const int64_t *factors, uint32_t *group_of_set)
{
	struct query_stacks *s = l->s;
	size_t sets = s->tables.label_sets.len, labels = l->r->label_count;
	const char *none = arena_printf(l->a, "no %.*s", STR_ARG(l->r->labels[0]));
	uint32_t unnamed = none ? add_group(s, labels, str_of(none)) : 0;
	for (size_t i = 0; i < sets; i++)
		if (group_of_set[i] == 0)
			group_of_set[i] = unnamed;
	uint32_t count = s->group_count;
	int64_t *totals = ARENA_ARRAY(l->a, int64_t, count);
	uint32_t *order = ARENA_ARRAY(l->a, uint32_t, count);
	uint32_t *to = ARENA_ARRAY(l->a, uint32_t, count);
	if (!none || !totals || !order || !to)
		return err_set(l->e, arena_status(l->a), "%u groups", count);
	for (size_t i = 0; i < c->v.len; i++) {
		uint32_t group = group_of_set[c->groups.v[c->v.v[i].group].labels];
		totals[group] = query_add(
			totals[group], query_scale(c->v.v[i].value, factors[c->v.v[i].group]));
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_totals, totals);
	uint32_t rest = 0;
	for (uint32_t i = 0, kept = 0; i < count; i++) {
		uint32_t group = order[i];
		to[group] = group;
		if (totals[group] == 0 || kept++ < l->r->group_max)
			continue;
		if (!rest)
			rest = add_group(s, labels, STR("everything else"));
		to[group] = rest;
	}
	for (size_t i = 0; i < sets; i++)
		group_of_set[i] = to[group_of_set[i]];
	return OK;
}

/* ---- sums by group ---- */

struct copier {
	struct query_loader *l;
	const struct samples_node *nodes;
	uint32_t *stack_of; /* by node, for the current group */
	uint32_t *group_of; /* by node: the group for which stack_of is valid, + 1 */
	uint32_t path[PROFILE_STACK_MAX + 1];
};

/* The copy of a node in its group, below `top`. */
static enum status copy_node(
	struct copier *c, uint32_t node, uint32_t group, uint32_t top, uint32_t *out)
{
	uint32_t depth = 0, at = node;
	for (; at && c->group_of[at] != group + 1; at = c->nodes[at].parent) {
		if (depth == ARRAY_COUNT(c->path))
			return err_set(c->l->e, E_CORRUPT, "a stack of more than %zu locations",
				ARRAY_COUNT(c->path));
		c->path[depth++] = at;
	}
	*out = at ? c->stack_of[at] : top;
	while (depth > 0) {
		at = c->path[--depth];
		struct query_stack_key key = { *out, c->nodes[at].location, group };
		enum status s = query_loader_push(c->l, &key, out);
		if (s != OK)
			return s;
		c->group_of[at] = group + 1;
		c->stack_of[at] = *out;
	}
	return OK;
}

/* order[]: cells sorted by group; within a group they keep their order. */
static enum status order_cells(struct query_loader *l, const struct samples_cells *c,
	const uint32_t *group_of_set, uint32_t **out_order, uint32_t **out_begin)
{
	uint32_t count = l->s->group_count;
	uint32_t *order = ARENA_ARRAY(l->a, uint32_t, MAX(c->v.len, (size_t)1));
	uint32_t *begin = ARENA_ARRAY(l->a, uint32_t, (size_t)count + 2);
	if (!order || !begin)
		return query_loader_no_room(l, arena_status(l->a));
	/* begin[] is shifted by one while the lists are filled: each list grows up to where the
	 * next begins. */
	for (size_t i = 0; i < c->v.len; i++)
		begin[group_of_set[c->groups.v[c->v.v[i].group].labels] + 2]++;
	for (uint32_t i = 2; i < count + 2; i++)
		begin[i] += begin[i - 1];
	for (uint32_t i = 0; i < c->v.len; i++)
		order[begin[group_of_set[c->groups.v[c->v.v[i].group].labels] + 1]++] = i;
	*out_order = order;
	*out_begin = begin;
	return OK;
}

static enum status copy_groups(struct query_loader *l, const struct samples_cells *c,
	const int64_t *factors, const uint32_t *group_of_set)
{
	struct query_stacks *s = l->s;
	size_t nodes = c->tree.nodes.len;
	CLEANUP(free_cleanup) struct copier *copier = calloc(1, sizeof(*copier));
	uint32_t *order = NULL, *begin = NULL;
	enum status st = query_stacks_hold(s, (nodes * 2 + c->v.len) * sizeof(uint32_t), l->e);
	if (st == OK)
		st = order_cells(l, c, group_of_set, &order, &begin);
	if (st != OK)
		return st;
	if (copier) {
		*copier = (struct copier){ .l = l, .nodes = c->tree.nodes.v };
		copier->stack_of = ARENA_ARRAY(l->a, uint32_t, MAX(nodes, (size_t)1));
		copier->group_of = ARENA_ARRAY(l->a, uint32_t, MAX(nodes, (size_t)1));
	}
	if (!copier || !copier->stack_of || !copier->group_of)
		return query_loader_no_room(l, E_NOMEM);
	for (uint32_t group = 0; st == OK && group < s->group_count; group++) {
		uint32_t top = 0, at = 0;
		if (group && begin[group] < begin[group + 1])
			st = query_loader_push(l, &(struct query_stack_key){ 0, 0, group }, &top);
		if (st == OK)
			st = samples_stopped(&s->plan.store, l->e);
		for (uint32_t i = begin[group]; st == OK && i < begin[group + 1]; i++) {
			const struct samples_cell *cell = &c->v.v[order[i]];
			st = copy_node(copier, cell->node, group, top, &at);
			if (st == OK)
				s->v.v[at].self = query_add(s->v.v[at].self,
					query_scale(cell->value, factors[cell->group]));
		}
	}
	return st;
}

/* Finds the factor for the values of each group, and the report's unit. As in sums, the report's
 * period is 1 if values are multiplied by different periods, and 0 if periods differ and they are
 * not. */
static int64_t *take_periods(
	struct query_loader *l, struct query_loader_side *side, const struct samples_cells *c)
{
	const struct profile *p = &l->s->tables;
	const struct profile_type *type = &c->tree.type;
	bool differ = false, any = false, single = l->r->side.single;
	int64_t *factors = ARENA_ARRAY(l->a, int64_t, MAX(c->groups.len, (size_t)1));
	for (size_t i = 0; i < c->groups.len; i++) {
		differ |= c->groups.v[i].period != c->groups.v[0].period;
		any |= c->groups.v[i].period > 0;
	}
	bool several = differ && any && side->plan->store.times_period && type->delta;
	bool by_period = !single && (several || !differ);
	if (c->groups.len)
		query_side_unit(l, side, p, type, differ ? several : c->groups.v[0].period, single);
	for (size_t i = 0; factors && i < c->groups.len; i++) {
		factors[i] = 1;
		if (by_period)
			factors[i] = query_unit_of(profile_str(p, type->sample_type),
				profile_str(p, type->sample_unit),
				profile_str(p, type->period_unit), c->groups.v[i].period)
					     .factor;
	}
	return factors;
}

static enum status take_cells(
	struct query_loader *l, struct query_loader_side *side, struct samples_cells *c)
{
	struct query_stacks *s = l->s;
	uint32_t *groups = NULL;
	s->tables = c->tree.tables;
	c->tree.tables = (struct profile){ 0 };
	s->has_tables = true;
	s->sample_count = c->tree.sample_count;
	s->first_ns = c->tree.first_ns;
	const int64_t *factors = take_periods(l, side, c);
	query_side_unit_of_selector(l, side, l->r->side.single);
	enum status st = query_loader_groups(l, &s->tables, &groups);
	if (st == OK && !factors)
		st = query_loader_no_room(l, arena_status(l->a));
	if (st == OK && l->r->group_max)
		st = join_groups(l, c, factors, groups);
	return st == OK ? copy_groups(l, c, factors, groups) : st;
}

enum status query_loader_sum_groups(struct query_loader *l)
{
	CLEANUP(query_side_deinit) struct query_loader_side side = { .factor = 1 };
	struct samples_cells cells = { 0 };
	enum status st = query_side_open(l, &l->r->side, &side);
	if (st == OK)
		st = query_loader_begin(l);
	if (st != OK || side.plan->empty)
		return st;
	st = side.plan->view->ops->sum_cells(
		side.plan->view, &side.plan->store, l->r->labels, l->r->label_count, &cells, l->e);
	if (st != OK)
		return st;
	st = take_cells(l, &side, &cells);
	samples_cells_deinit(&cells);
	return st;
}
