/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the store sums by step and labels; here the values are scaled and the series ordered by
 * their totals; those beyond the limit become one series.
 */
#include "query/report/series.h"
#include "query/plan/plan.h"

static int compare_series(const void *pa, const void *pb, void *ctx)
{
	const struct query_points *a = pa, *b = pb;
	uint32_t labels = *(const uint32_t *)ctx;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	for (uint32_t i = 0; i < labels; i++) {
		int by_text = str_cmp(a->labels[i], b->labels[i]);
		if (by_text)
			return by_text;
	}
	return 0;
}

static void scale_points(struct query_points *p, int64_t factor)
{
	for (size_t i = 0; i < p->count; i++) {
		p->points[i].value = query_scale(p->points[i].value, factor);
		p->total = query_add(p->total, p->points[i].value);
	}
}

static int compare_points(const void *pa, const void *pb)
{
	const struct samples_point *a = pa, *b = pb;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* Sums the series of `from` into one: all points are sorted by time, and those of equal times
 * added. */
static enum status sum_rest(const struct query_points *from, size_t count, struct arena *a,
	struct query_points *out, struct err *e)
{
	struct query_points rest = { 0 };
	size_t points = 0;
	for (size_t i = 0; i < count; i++)
		points += from[i].count;
	rest.points = ARENA_ARRAY(a, struct samples_point, points);
	if (!rest.points)
		return err_set(e, arena_status(a), "%zu points of %zu series", points, count);
	points = 0;
	for (size_t i = 0; i < count; i++) {
		rest.total = query_add(rest.total, from[i].total);
		if (from[i].count > 0)
			memcpy(rest.points + points, from[i].points,
				from[i].count * sizeof(*rest.points));
		points += from[i].count;
	}
	qsort(rest.points, points, sizeof(*rest.points), compare_points);
	for (size_t i = 0; i < points; i++) {
		struct samples_point *last = rest.count ? &rest.points[rest.count - 1] : NULL;
		const struct samples_point *p = &rest.points[i];
		if (last && last->time_ns == p->time_ns) {
			last->value = query_add(last->value, p->value);
			last->count += p->count;
		} else {
			rest.points[rest.count++] = *p;
		}
	}
	*out = rest;
	return OK;
}

/* `means`: for a gauge the averages over the whole time, in the order of `found`; else NULL. */
static enum status take(struct query_graph *g, const struct samples_series *found, size_t count,
	const struct samples_series *means, const struct query_request *r, int64_t factor,
	struct arena *a, struct err *e)
{
	g->series = ARENA_ARRAY(a, struct query_points, count);
	if (!g->series)
		return err_set(e, arena_status(a), "%zu series", count);
	for (size_t i = 0; i < count; i++) {
		g->series[i] = (struct query_points){
			.labels = found[i].values,
			.points = found[i].points,
			.count = found[i].point_count,
		};
		scale_points(&g->series[i], factor);
		if (means)
			g->series[i].total = query_scale(means[i].points[0].value, factor);
	}
	uint32_t labels = r->by_count;
	qsort_r(g->series, count, sizeof(*g->series), compare_series, &labels);
	g->count = count;
	if (r->limit == 0 || count <= r->limit)
		return OK;
	g->count = (size_t)r->limit + 1;
	return sum_rest(g->series + r->limit, count - r->limit, a, &g->series[r->limit], e);
}

/* The total of a gauge is not the sum over its steps: one step over the whole time gives the
 * average that other reports show. Groups come in the same order, as the view is the same. */
static enum status sum_means(const struct query_plan *plan, const struct query_request *r,
	size_t count, struct arena *a, struct samples_series **out, struct err *e)
{
	size_t found = 0;
	enum status s = plan->view->ops->sum_series(plan->view, &plan->store, r->by, r->by_count,
		INT64_MAX, a, out, &found, NULL, NULL, e);
	if (s == OK && found != count)
		return err_set(e, E_UNAVAILABLE, "the samples changed meanwhile: try again");
	return s;
}

enum status query_series(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_graph *out, struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	struct query_graph made = { .unit = STR("count") };
	if (r->match.len > 0)
		return err_set(e, E_INVALID,
			"match: a series is summed without looking at stacks; leave it out, or ask "
			"for a flame graph");
	enum status s = query_plan_open(q, r, true, a, &plan, e);
	if (s == OK)
		s = query_choose_step(r, QUERY_POINTS_WANTED, &made.step_ns, e);
	if (s != OK)
		return s;
	if (!plan.empty) {
		struct samples_series *found = NULL;
		size_t count = 0;
		struct samples_type type = { 0 };
		int64_t period = 0;
		s = plan.view->ops->sum_series(plan.view, &plan.store, r->by, r->by_count,
			made.step_ns, a, &found, &count, &type, &period, e);
		if (s != OK)
			return s;
		struct samples_series *means = NULL;
		made.gauge = count > 0 && !type.delta;
		if (made.gauge)
			s = sum_means(&plan, r, count, a, &means, e);
		if (s != OK)
			return s;
		struct query_unit unit =
			query_unit_of(type.sample_type, type.sample_unit, type.period_unit, period);
		made.unit = unit.name;
		s = take(&made, found, count, means, r, unit.factor, a, e);
	}
	if (s == OK)
		*out = made;
	return s;
}
