/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca's QueryRange (pkg/parcacol/querier.go): for a delta type, sums by step and by the named
 * labels; for a gauge without named labels, one series for each label set.
 */
#include "query/plan/plan.h"

#include "base/clock.h"

static enum status choose_labels(const struct query_plan *p, const struct str *by, size_t by_count,
	struct arena *a, struct query_range *out, struct err *e)
{
	struct str *names = NULL;
	size_t count = 0;
	if (p->selector.delta || by_count > 0) {
		out->names = by;
		out->name_count = by_count;
		return OK;
	}
	enum status s = p->view->ops->label_names(p->view, &p->store, a, &names, &count, e);
	if (s != OK)
		return s;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (!profile_label_is_of_sample(names[i]))
			names[kept++] = names[i];
	out->names = names;
	out->name_count = MIN(kept, (size_t)PROFILE_LABELS_MAX);
	return OK;
}

static bool is_cpu_time(struct str type, struct str unit)
{
	return str_eq(type, STR("cpu")) && str_eq(unit, STR("nanoseconds"));
}

/* The duration of the step's profiles, if they all state one. Else several samples of one time come
 * from one profile, which may have lasted longer than the step: its duration is taken to be the
 * time to its nearest neighbour. */
static int64_t duration_of(const struct samples_series *s, size_t i, int64_t step_ns)
{
	const struct samples_point *p = &s->points[i];
	int64_t gap = INT64_MAX;
	if (p->covered_ns)
		return p->covered_ns;
	if (!p->one_time || p->count < 2)
		return step_ns;
	if (i > 0)
		gap = query_sub(p->time_ns, s->points[i - 1].time_ns);
	if (i + 1 < s->point_count)
		gap = MIN(gap, query_sub(s->points[i + 1].time_ns, p->time_ns));
	return gap == INT64_MAX ? step_ns : MAX(gap, step_ns);
}

static void take_points(struct query_range_series *s, const struct samples_series *from,
	struct query_range_point *points, const struct query_range *range, int64_t step_ns,
	int64_t factor)
{
	bool cores = is_cpu_time(range->sample_type, range->unit);
	s->values = from->values;
	s->points = points;
	s->point_count = from->point_count;
	for (size_t i = 0; i < from->point_count; i++) {
		const struct samples_point *p = &from->points[i];
		int64_t value = query_scale(p->value, factor);
		int64_t duration_ns = duration_of(from, i, step_ns);
		double seconds = (double)duration_ns / (cores ? 1.0 : (double)NS_PER_SEC);
		points[i] = (struct query_range_point){ .time_ns = p->time_ns,
			.value = value,
			.duration_ns = range->delta ? duration_ns : 0,
			.per_second = range->delta ? (double)value / seconds : (double)value,
			.count = (uint32_t)MIN(p->count, (uint64_t)INT32_MAX) };
	}
}

static enum status take(struct query_range *out, const struct samples_series *found, size_t count,
	int64_t step_ns, int64_t factor, struct arena *a, struct err *e)
{
	size_t points = 0, at = 0;
	for (size_t i = 0; i < count; i++)
		points += found[i].point_count;
	out->series = ARENA_ARRAY(a, struct query_range_series, count);
	struct query_range_point *room = ARENA_ARRAY(a, struct query_range_point, points);
	if (!out->series || !room)
		return err_set(e, arena_status(a), "%zu points of %zu series", points, count);
	for (size_t i = 0; i < count; i++) {
		if (found[i].point_count == 0)
			continue;
		take_points(&out->series[out->count++], &found[i], room + at, out, step_ns, factor);
		at += found[i].point_count;
	}
	return OK;
}

enum status query_range(const struct query_engine *q, const struct query_request *r,
	const struct str *by, size_t by_count, struct arena *a, struct query_range *out,
	struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	struct query_range made = { 0 };
	struct samples_series *found = NULL;
	struct samples_type type = { 0 };
	size_t count = 0;
	int64_t step_ns = 0, period = 0;
	enum status s = query_plan_open(q, r, false, a, &plan, e);
	if (s == OK && !plan.selector.has_type)
		s = err_set(e, E_INVALID, "query must contain a profile-type selection");
	if (s == OK)
		s = query_choose_step(r, r->limit ? r->limit : QUERY_POINTS_WANTED, &step_ns, e);
	plan.store.durations = true;
	if (s == OK)
		s = choose_labels(&plan, by, by_count, a, &made, e);
	if (s == OK)
		s = plan.view->ops->sum_series(plan.view, &plan.store, made.names, made.name_count,
			step_ns, a, &found, &count, &type, &period, e);
	if (s != OK)
		return s;
	struct query_unit unit = query_unit_of(
		type.sample_type, type.sample_unit, type.period_unit, r->counts ? 0 : period);
	bool scaled = !str_eq(unit.name, type.sample_unit);
	made.delta = plan.selector.delta;
	made.unit = unit.name;
	made.sample_type = scaled ? type.period_type : type.sample_type;
	made.period_type = type.period_type;
	made.period_unit = type.period_unit;
	s = take(&made, found, count, step_ns, unit.factor, a, e);
	if (s == OK)
		*out = made;
	return s;
}
