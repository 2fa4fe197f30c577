/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: samples come as a list of stacks, of which the tree is made here; each sample is an event of
 * the node where its stack ends. Events are sorted by time.
 */
#include "query/plan/plan.h"
#include "query/stacks/loaded.h"
#include "query/stacks/loader.h"

#include <stdlib.h>

static enum status stack_of_sample(
	struct query_loader *l, const struct profile_sample *sample, uint32_t group, uint32_t *out)
{
	const struct profile *p = &l->s->tables;
	const struct profile_stack *stack = &p->stacks.v[sample->stack];
	enum status s = OK;
	*out = 0;
	if (group)
		s = query_loader_find(l, &(struct query_stack_key){ 0, 0, group }, out);
	for (uint32_t i = stack->count; s == OK && i-- > 0;) {
		struct query_stack_key key = { *out, p->stack_locations.v[stack->first + i],
			group };
		s = query_loader_find(l, &key, out);
	}
	return s;
}

/* The factor for the samples of each head; NULL: no memory. */
static int64_t *head_factors(struct query_loader *l, bool by_period)
{
	const struct profile *p = &l->s->tables;
	int64_t *factors = ARENA_ARRAY(l->a, int64_t, p->heads.len);
	for (size_t i = 0; factors && i < p->heads.len; i++) {
		const struct profile_head *h = &p->heads.v[i];
		const struct profile_type *type = &p->types.v[h->type];
		factors[i] = 1;
		if (by_period)
			factors[i] = query_unit_of(profile_str(p, type->sample_type),
				profile_str(p, type->sample_unit),
				profile_str(p, type->period_unit), h->period)
					     .factor;
	}
	return factors;
}

static enum status add_samples(struct query_loader *l, const uint32_t *groups, bool by_period)
{
	struct query_stacks *s = l->s;
	const int64_t *factors = head_factors(l, by_period);
	if (!factors)
		return query_loader_no_room(l, arena_status(l->a));
	for (size_t i = 0; i < s->tables.samples.len; i++) {
		const struct profile_sample *sample = &s->tables.samples.v[i];
		uint32_t at = 0;
		if (i % 4096 == 0 && l->r->cancel && l->r->cancel(l->r->cancel_ctx))
			return err_set(l->e, E_CANCELED, "the caller went away");
		enum status st = stack_of_sample(
			l, sample, groups[sample->own ? sample->own : sample->resource], &at);
		if (st != OK)
			return st;
		int64_t value = query_scale(sample->value, factors[sample->head]);
		s->v.v[at].self = query_add(s->v.v[at].self, value);
		struct query_event event = { sample->time_ns, value, at };
		if (l->r->chart && !VEC_PUSH(&s->events, event))
			return query_loader_no_room(l, E_NOMEM);
	}
	return OK;
}

static int compare_events(const void *pa, const void *pb)
{
	const struct query_event *a = pa, *b = pb;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* Takes the first time, the period and the unit from the samples. *out_by_period: values are to be
 * multiplied by the periods of their heads. As in sums, the report's period is 1 if values are
 * multiplied by different periods, and 0 if periods differ and they are not. */
static void take_heads(struct query_loader *l, struct query_loader_side *side, bool *out_by_period)
{
	struct query_stacks *s = l->s;
	const struct profile *p = &s->tables;
	*out_by_period = false;
	if (p->samples.len == 0)
		return;
	const struct profile_head *first = &p->heads.v[p->samples.v[0].head];
	const struct profile_type *type = &p->types.v[first->type];
	bool differ = false, any = false, single = l->r->side.single;
	s->first_ns = first->time_ns;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_head *h = &p->heads.v[p->samples.v[i].head];
		s->first_ns = MIN(s->first_ns, h->time_ns);
		differ |= h->period != first->period;
		any |= h->period > 0;
	}
	bool several = differ && any && side->plan->store.times_period && type->delta;
	*out_by_period = !single && (several || !differ);
	query_side_unit(l, side, p, type, differ ? several : first->period, single);
}

enum status query_loader_chart(struct query_loader *l)
{
	CLEANUP(query_side_deinit) struct query_loader_side side = { .factor = 1 };
	struct query_stacks *s = l->s;
	uint32_t *groups = NULL;
	bool by_period = false;
	enum status st = query_side_open(l, &l->r->side, &side);
	if (st == OK)
		st = query_loader_begin(l);
	if (st != OK)
		return st;
	if (side.plan->empty)
		return OK;
	side.plan->store.each_time = l->r->chart;
	side.plan->store.step_ns = l->r->step_ns;
	st = side.plan->view->ops->collect(side.plan->view, &side.plan->store, l->r->labels,
		l->r->label_count, &s->tables, l->e);
	if (st != OK)
		return st;
	s->has_tables = true;
	s->sample_count = s->tables.samples.len;
	take_heads(l, &side, &by_period);
	query_side_unit_of_selector(l, &side, l->r->side.single);
	st = query_loader_groups(l, &s->tables, &groups);
	if (st == OK)
		st = add_samples(l, groups, by_period);
	if (st == OK && s->events.len > 1)
		qsort(s->events.v, s->events.len, sizeof(*s->events.v), compare_events);
	return st;
}
