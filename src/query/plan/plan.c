/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: parse the selector into the caller's arena, open the store's snapshot, and choose a default
 * type if one is needed and none is named.
 */
#include "query/plan/plan.h"

#include <stdio.h>

/* Most steps of one series. */
#define POINTS_MAX 20000

static enum status check(const struct query_request *r, struct err *e)
{
	if (r->from_ns >= r->to_ns)
		return err_set(e, E_INVALID, "the time range is empty: from must be before to");
	if (!(r->trim >= 0 && r->trim <= 1))
		return err_set(e, E_INVALID,
			"trim is a share of the total: expected 0 to 1, got %g", r->trim);
	if (r->step_ns < 0)
		return err_set(e, E_INVALID, "step must not be negative");
	if (r->by_count > ARRAY_COUNT(r->by))
		return err_set(e, E_INVALID, "at most %zu labels to sum by, got %u",
			ARRAY_COUNT(r->by), r->by_count);
	return OK;
}

static void use_type(struct selector *s, const struct samples_type *t)
{
	s->type[0] = t->name;
	s->type[1] = t->sample_type;
	s->type[2] = t->sample_unit;
	s->type[3] = t->period_type;
	s->type[4] = t->period_unit;
	s->delta = t->delta;
	s->has_type = true;
}

/* A type whose newest sample is at most this much older than the newest of all is still being sent.
 */
#define NOW_NS (3600 * NS_PER_SEC)

/* The default type, as on the page (ui/src/model/types.ts): CPU time of firn's agent, CPU time,
 * other times, anything else; types that are still being sent come before all others. */
static int fit_of(const struct samples_type *t, int64_t newest_ns)
{
	bool period = str_eq(t->period_type, STR("cpu"));
	bool cpu = str_eq(t->sample_type, STR("cpu")) || period;
	bool time = str_eq(t->sample_unit, STR("nanoseconds")) || period;
	bool agent = str_eq(t->name, STR("parca_agent")) &&
		     str_eq(t->sample_type, STR("samples")) && period;
	int fit = agent ? 6 : t->delta * (str_eq(t->sample_type, STR("cpu")) + cpu + time) + cpu;
	return fit + ((uint64_t)newest_ns - (uint64_t)t->last_ns < NOW_NS ? 8 : 0);
}

static void tell_type(const struct query_plan *p, size_t count, struct buf *out)
{
	if (!out)
		return;
	buf_clear(out);
	if (count < 2)
		return;
	struct selector s = p->selector;
	s.matcher_count = 0;
	selector_write(out, &s);
	buf_printf(out, ", one of %zu profile types (`firn types` lists them)\n", count);
}

enum status query_type_has(const struct query_plan *p, const struct query_request *r,
	const struct samples_type *t, struct arena *a, bool *out, struct err *e)
{
	struct selector with_type = p->selector;
	struct str *names = NULL;
	size_t count = 0;
	use_type(&with_type, t);
	const struct samples_query q = {
		.selector = &with_type, .from_ns = r->from_ns, .to_ns = r->to_ns
	};
	enum status s = p->view->ops->label_names(p->view, &q, a, &names, &count, e);
	*out = count > 0;
	return s;
}

/* The best fitting type with samples of the selector; if none has any, the best fitting one. */
static enum status best_type(const struct query_plan *p, const struct query_request *r,
	const struct samples_type *types, size_t count, struct arena *a,
	const struct samples_type **out, struct err *e)
{
	int64_t newest_ns = types[0].last_ns;
	for (size_t i = 1; i < count; i++)
		newest_ns = MAX(newest_ns, types[i].last_ns);
	bool *seen = ARENA_ARRAY(a, bool, count);
	bool met = count == 1 || p->selector.matcher_count == 0;
	if (!seen)
		return err_set(e, arena_status(a), "%zu profile types", count);
	*out = NULL;
	for (size_t tried = 0; tried < count; tried++) {
		size_t best = count;
		for (size_t i = 0; i < count; i++)
			if (!seen[i] && (best == count || fit_of(&types[i], newest_ns) >
								  fit_of(&types[best], newest_ns)))
				best = i;
		seen[best] = true;
		if (!*out)
			*out = &types[best];
		enum status s = met ? OK : query_type_has(p, r, &types[best], a, &met, e);
		if (s != OK)
			return s;
		if (met) {
			*out = &types[best];
			break;
		}
	}
	return OK;
}

/* Chooses the type if the selector names none. */
static enum status find_type(
	struct query_plan *p, const struct query_request *r, struct arena *a, struct err *e)
{
	struct samples_type *types = NULL;
	size_t count = 0;
	enum status s = p->view->ops->types(p->view, INT64_MIN, INT64_MAX, a, &types, &count, e);
	if (s != OK)
		return s;
	p->empty = count == 0;
	if (count == 0)
		return OK;
	const struct samples_type *best = NULL;
	s = best_type(p, r, types, count, a, &best, e);
	if (s != OK)
		return s;
	use_type(&p->selector, best);
	tell_type(p, count, r->chosen);
	return OK;
}

enum status query_plan_open(const struct query_engine *q, const struct query_request *r,
	bool need_type, struct arena *a, struct query_plan *out, struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan p = { 0 };
	enum status s = check(r, e);
	if (s == OK)
		s = selector_parse(r->selector, a, &p.selector, e);
	if (s == OK)
		s = q->samples->ops->view_open(q->samples, r->tenant, &p.view, e);
	if (s == OK && need_type && !p.selector.has_type)
		s = find_type(&p, r, a, e);
	if (s != OK)
		return s;
	p.store = (struct samples_query){
		.from_ns = r->from_ns,
		.to_ns = r->to_ns,
		.cancel = r->cancel,
		.cancel_ctx = r->cancel_ctx,
		.deadline_ns =
			r->deadline_ns ? r->deadline_ns : clock_monotonic_ns() + QUERY_TIME_MAX_NS,
		.times_period = !r->counts && query_unit_of(p.selector.type[1], p.selector.type[2],
						      p.selector.type[4], 2)
							      .factor == 2,
	};
	*out = p;
	out->store.selector = &out->selector;
	p = (struct query_plan){ 0 };
	return OK;
}

enum status query_hold(const struct query_plan *p, uint64_t bytes, struct err *e)
{
	bool counts = p->view && p->view->ops->hold;
	return counts ? p->view->ops->hold(p->view, bytes, e) : OK;
}

enum status query_count(const struct query_plan *p, uint64_t bytes, struct err *e)
{
	struct err own = { 0 };
	enum status s = query_hold(p, bytes, &own);
	if (s == OK || s == E_LIMIT)
		return OK;
	return err_set(e, s, "%s", own.text);
}

void query_plan_close(struct query_plan *p)
{
	if (p->view)
		p->view->ops->view_close(p->view);
	selector_deinit(&p->selector);
	*p = (struct query_plan){ 0 };
}

struct query_unit query_unit_of(
	struct str sample_type, struct str sample_unit, struct str period_unit, int64_t period)
{
	if (period > 0 && period_unit.len > 0 && str_eq(sample_type, STR("samples")) &&
		str_eq(sample_unit, STR("count")))
		return (struct query_unit){ period_unit, period };
	return (struct query_unit){ sample_unit, 1 };
}

/* The steps to choose from: multiples of ten seconds, the resolution of merged parts, so that no
 * step falls between two of them. */
static const int64_t nice_steps_s[] = { 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
	10800, 21600, 43200, 86400 };

enum status query_choose_step(
	const struct query_request *r, uint32_t wanted, int64_t *out_ns, struct err *e)
{
	uint64_t range_ns = (uint64_t)r->to_ns - (uint64_t)r->from_ns;
	if (r->step_ns > 0) {
		if (range_ns / (uint64_t)r->step_ns >= POINTS_MAX)
			return err_set(e, E_INVALID,
				"step: at most %d points are answered: choose a longer step, or a "
				"shorter time range",
				POINTS_MAX);
		*out_ns = r->step_ns;
		return OK;
	}
	size_t i = 0;
	wanted = MIN(MAX(wanted, 1u), (uint32_t)POINTS_MAX - 1);
	while (i < ARRAY_COUNT(nice_steps_s) &&
		range_ns / (uint64_t)(nice_steps_s[i] * NS_PER_SEC) > wanted)
		i++;
	int64_t day_ns = 86400 * NS_PER_SEC;
	*out_ns = i < ARRAY_COUNT(nice_steps_s)
			  ? nice_steps_s[i] * NS_PER_SEC
			  : (int64_t)(range_ns / wanted / (uint64_t)day_ns + 1) * day_ns;
	return OK;
}
