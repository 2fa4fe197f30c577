/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points are found by (group, step) in a hash table; a row mostly goes to the point of the row
 * before it. A gauge takes its points by (common series, time) first, and each step's sum is
 * averaged over the time of the step (cover.h).
 */
#include "store/read/cover.h"
#include "store/read/durations.h"
#include "store/read/gauge.h"
#include "store/read/groups.h"
#include "store/read/queries.h"
#include "store/read/scan.h"

#include <math.h>
#include <stdlib.h>

#define POINTS_MAX (1u << 24)
#define INSTANTS_MIN 4096

struct point {
	uint32_t group;
	int64_t step;
	int64_t value;
	double average;
	uint64_t count;
	int64_t time_ns; /* of the first sample */
	bool many;       /* times */
	int64_t covered_ns;
};

/* One series at one instant of a gauge. */
struct instant {
	uint32_t series; /* common number */
	uint32_t group;
	int64_t time_ns;
	int64_t value;
	uint64_t count;
};

struct adding {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct groups groups;
	struct common_series common;
	bool is_gauge;
	int64_t step_ns;
	VEC(struct point) points;
	struct map index;
	uint32_t last; /* point of the row before */
	VEC(struct instant) instants;
	struct durations durations;
	const uint32_t *ids;              /* common numbers of the source at hand */
	const struct tab_series *periods; /* of that source; NULL: values count as they are */
	bool by_period;
	struct samples_type type; /* of what was found */
};

static void adding_deinit(struct adding *a)
{
	view_picks_free(a->v, a->picks);
	groups_deinit(&a->groups);
	common_series_deinit(&a->common);
	VEC_FREE(&a->points);
	VEC_FREE(&a->instants);
	durations_deinit(&a->durations);
	map_deinit(&a->index);
	view_release(a->v);
}

static bool point_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct adding *a = ctx;
	const struct point *x = &a->points.v[value], *y = key;
	return x->group == y->group && x->step == y->step;
}

static uint64_t point_hash(const struct point *p)
{
	return hash_u64((uint64_t)p->step * 0x9E3779B97F4A7C15ull + p->group);
}

static enum status find_point(
	struct adding *a, uint32_t group, int64_t step, struct point **out, struct err *e)
{
	if (a->last < a->points.len) {
		struct point *p = &a->points.v[a->last];
		if (p->group == group && p->step == step) {
			*out = p;
			return OK;
		}
	}
	struct point key = { .group = group, .step = step };
	uint64_t h = point_hash(&key);
	uint32_t at = map_find(&a->index, h, point_equal, a, &key);
	if (at == MAP_NONE) {
		at = (uint32_t)a->points.len;
		if (at >= POINTS_MAX)
			return err_set(e, E_LIMIT,
				"more than %u points: a longer step or fewer "
				"groups are needed",
				POINTS_MAX);
		size_t cap = a->points.cap;
		if (!VEC_PUSH(&a->points, key) || !map_insert(&a->index, h, at))
			return err_set(e, E_NOMEM, "points");
		enum status s =
			budget_take(&a->budget, (a->points.cap - cap) * (sizeof(key) + 16), e);
		if (s != OK)
			return s;
	}
	a->last = at;
	*out = &a->points.v[at];
	return OK;
}

static void add_time(struct point *p, int64_t time_ns)
{
	if (p->count == 0)
		p->time_ns = time_ns;
	p->many |= p->time_ns != time_ns;
}

static int by_series_time_group(const void *a, const void *b)
{
	const struct instant *x = a, *y = b;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

/* Rows of one instant become one. */
static void sort_out(struct adding *a)
{
	struct instant *v = a->instants.v;
	size_t n = 0;
	if (a->instants.len)
		qsort(v, a->instants.len, sizeof(*v), by_series_time_group);
	for (size_t i = 0; i < a->instants.len; i++) {
		if (n == 0 || by_series_time_group(&v[n - 1], &v[i]) != 0) {
			v[n++] = v[i];
			continue;
		}
		v[n - 1].value = wrap_add(v[n - 1].value, v[i].value);
		v[n - 1].count += v[i].count;
	}
	a->instants.len = n;
}

/* All times of a stack may come one after the other, so memory is reserved for instants, not for
 * rows. */
static enum status make_room(struct adding *a, struct err *e)
{
	size_t cap = a->instants.cap;
	if (a->instants.len < cap)
		return OK;
	sort_out(a);
	if (cap && a->instants.len <= cap / 2)
		return OK;
	if (!VEC_RESERVE(&a->instants, MAX(2 * cap, (size_t)INSTANTS_MIN)))
		return err_set(e, E_NOMEM, "points of gauges");
	return budget_take(&a->budget, (a->instants.cap - cap) * sizeof(struct instant), e);
}

static enum status add_instant(
	struct adding *a, uint32_t group, const struct scan_rows *r, size_t i, struct err *e)
{
	struct instant x = {
		.series = a->ids[r->series[i]],
		.group = group,
		.time_ns = r->time_ns[i],
		.value = r->value[i],
		.count = r->count ? (uint64_t)r->count[i] : 1,
	};
	struct instant *last = a->instants.len ? &a->instants.v[a->instants.len - 1] : NULL;
	if (last && last->series == x.series && last->group == group &&
		last->time_ns == x.time_ns) {
		last->value = wrap_add(last->value, x.value);
		last->count += x.count;
		return OK;
	}
	enum status s = make_room(a, e);
	if (s == OK)
		a->instants.v[a->instants.len++] = x;
	return s;
}

static enum status add_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	struct adding *a = ctx;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		uint32_t group;
		enum status s = groups_find(
			&a->groups, r->series[i], a->groups.by_set ? r->set[i] : 0, &group, e);
		if (s == OK && a->is_gauge)
			s = add_instant(a, group, r, i, e);
		if (s != OK)
			return s;
		if (a->is_gauge)
			continue;
		struct point *p;
		s = find_point(a, group, durations_step(r->time_ns[i], a->step_ns), &p, e);
		if (s != OK)
			return s;
		int64_t value = r->value[i];
		if (a->periods)
			value = wrap_mul(value, period_factor(&a->periods[r->series[i]]));
		p->value = wrap_add(p->value, value);
		add_time(p, r->time_ns[i]);
		p->count += r->count ? (uint64_t)r->count[i] : 1;
	}
	return OK;
}

/* ---- gauges ---- */

struct averaging {
	struct adding *a;
	struct cover_point *points; /* room for one each instant */
	struct cover_intervals intervals;
	double *weights; /* by common series */
};

static void averaging_deinit(struct averaging *x)
{
	free(x->points);
	free(x->intervals.of);
	free(x->weights);
}

/* The distinct points of v[0 .. n), which is sorted by series and time; returns their number. */
static size_t make_points(struct averaging *x, const struct instant *v, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || v[i].series != v[i - 1].series || v[i].time_ns != v[i - 1].time_ns)
			x->points[count++] = (struct cover_point){ v[i].time_ns, v[i].series };
	return count;
}

/* The instants of one step: v[0 .. n), by series and time. */
static enum status average_step(
	struct averaging *x, const struct instant *v, size_t n, int64_t step, struct err *e)
{
	size_t points = make_points(x, v, n);
	enum status s = cover_weights(x->points, points, &x->intervals, x->weights, e);
	for (size_t i = 0; i < n && s == OK; i++) {
		struct point *p;
		s = find_point(x->a, v[i].group, step, &p, e);
		if (s != OK)
			break;
		p->average += (double)v[i].value * x->weights[v[i].series];
		add_time(p, v[i].time_ns);
		p->count += v[i].count;
	}
	return s;
}

static int by_step(const void *pa, const void *pb, void *ctx)
{
	const struct instant *a = pa, *b = pb;
	int64_t step_ns = *(const int64_t *)ctx;
	int64_t x = durations_step(a->time_ns, step_ns), y = durations_step(b->time_ns, step_ns);
	if (x != y)
		return x < y ? -1 : 1;
	return by_series_time_group(a, b);
}

static enum status average(struct adding *a, struct err *e)
{
	CLEANUP(averaging_deinit) struct averaging x = { .a = a };
	sort_out(a);
	struct instant *v = a->instants.v;
	size_t n = a->instants.len;
	enum status s = budget_array(&a->budget, n, sizeof(*x.points), &x.points, e);
	if (s == OK)
		s = budget_array(&a->budget, a->common.keys.len, sizeof(*x.weights), &x.weights, e);
	if (s == OK)
		s = budget_take(&a->budget, n * COVER_POINT_BYTES, e);
	if (s == OK)
		s = cover_intervals(
			x.points, make_points(&x, v, n), a->common.keys.len, &x.intervals, e);
	if (s == OK && n)
		qsort_r(v, n, sizeof(*v), by_step, &a->step_ns);
	for (size_t i = 0, j; i < n && s == OK; i = j) {
		int64_t step = durations_step(v[i].time_ns, a->step_ns);
		for (j = i + 1; j < n && durations_step(v[j].time_ns, a->step_ns) == step;)
			j++;
		s = average_step(&x, v + i, j - i, step, e);
	}
	for (size_t i = 0; i < a->points.len; i++)
		a->points.v[i].value = (int64_t)llround(a->points.v[i].average);
	return s;
}

/* ---- the result ---- */

static int by_group_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

static int by_values(const void *a, const void *b, void *ctx)
{
	const struct samples_series *x = a, *y = b;
	size_t n = *(const size_t *)ctx;
	for (size_t i = 0; i < n; i++) {
		int c = str_cmp(x->values[i], y->values[i]);
		if (c)
			return c;
	}
	return 0;
}

static enum status fill_series(struct adding *a, const struct point *v, size_t n,
	struct arena *arena, struct samples_series *out)
{
	uint32_t names = a->groups.name_count;
	out->values = ARENA_ARRAY(arena, struct str, MAX(names, 1u));
	out->points = ARENA_ARRAY(arena, struct samples_point, n);
	if (!out->values || !out->points)
		return arena_status(arena);
	for (uint32_t i = 0; i < names; i++) {
		struct str value = groups_value(&a->groups, v[0].group, i);
		out->values[i].len = value.len;
		out->values[i].p = arena_copy(arena, value.p, value.len);
		if (!out->values[i].p)
			return arena_status(arena);
	}
	out->point_count = n;
	for (size_t i = 0; i < n; i++) {
		int64_t begin;
		if (__builtin_mul_overflow(v[i].step, a->step_ns, &begin))
			begin = INT64_MIN;
		out->points[i] = (struct samples_point){ begin, v[i].value, v[i].count, !v[i].many,
			v[i].covered_ns };
	}
	return OK;
}

static enum status make_series(struct adding *a, struct arena *arena, struct samples_series **out,
	size_t *out_count, struct err *e)
{
	struct point *v = a->points.v;
	size_t n = a->points.len, names = a->groups.name_count, count = 0;
	if (n)
		qsort(v, n, sizeof(*v), by_group_step);
	struct samples_series *series =
		ARENA_ARRAY(arena, struct samples_series, MAX(groups_count(&a->groups), 1u));
	if (!series)
		return err_set(e, arena_status(arena), "%u series", groups_count(&a->groups));
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].group == v[i].group;)
			j++;
		enum status s = fill_series(a, v + i, j - i, arena, &series[count++]);
		if (s != OK)
			return err_set(e, s, "%zu points", n);
	}
	qsort_r(series, count, sizeof(*series), by_values, &names);
	*out = series;
	*out_count = count;
	return OK;
}

static enum status copy_type(
	const struct found_type *f, struct arena *a, struct samples_type *out, struct err *e)
{
	struct samples_type t = { .delta = f->delta };
	struct str *texts[] = { &t.name, &t.sample_type, &t.sample_unit, &t.period_type,
		&t.period_unit };
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		texts[i]->len = f->text[i].len;
		texts[i]->p = arena_copy(a, f->text[i].p, f->text[i].len);
		if (!texts[i]->p)
			return err_set(e, arena_status(a), "a profile type");
	}
	*out = t;
	return OK;
}

/* Of the source at hand. */
static void take_span(struct adding *a, size_t i)
{
	struct samples_type *t = &a->type;
	for (uint32_t k = 0; k < a->picks[i].series_count; k++) {
		if (!a->picks[i].series[k])
			continue;
		const struct tab_series *s = &a->v->sources[i].tabs.series[k];
		int64_t first = tab_series_first_ns(s);
		int64_t last = tab_series_last_ns(s);
		t->first_ns = t->first_ns ? MIN(t->first_ns, first) : first;
		t->last_ns = MAX(t->last_ns, last);
	}
}

/* Adds durations to the points whose samples all have profiles with a duration. A profile whose
 * rows are gone makes no point. */
static enum status put_durations(struct adding *a, struct err *e)
{
	CLEANUP(free_cleanup) struct step_duration *v = NULL;
	size_t n = 0;
	enum status s = durations_finish(&a->durations, &v, &n, e);
	for (size_t i = 0; i < n && s == OK; i++) {
		const struct point key = { .group = v[i].group, .step = v[i].step };
		uint32_t at = map_find(&a->index, point_hash(&key), point_equal, a, &key);
		if (at != MAP_NONE && a->points.v[at].count == v[i].samples)
			a->points.v[at].covered_ns = v[i].ns;
	}
	return s;
}

static enum status scan_sources(struct adding *a, struct err *e)
{
	enum status s = OK;
	if (a->is_gauge)
		s = common_series_init(&a->common, a->v, a->picks, &a->budget, e);
	for (size_t i = 0; s == OK && i < a->v->source_count; i++) {
		struct source *src = &a->v->sources[i];
		if (a->picks[i].wanted == 0)
			continue;
		s = source_load(a->v, src, PART_LOAD_LABELS, &a->budget, e);
		if (s == OK)
			s = groups_source(&a->groups, a->v, src, e);
		if (s != OK)
			return s;
		take_span(a, i);
		if (a->q->durations && !a->is_gauge && !a->groups.by_set)
			s = durations_add(&a->durations, src, &a->picks[i], e);
		if (s != OK)
			return s;
		a->ids = a->is_gauge ? a->common.ids[i] : NULL;
		a->periods = a->by_period ? src->tabs.series : NULL;
		struct scan scan = { a->v, src, &a->picks[i], a->q,
			1u << ROW_TIME | 1u << ROW_VALUE | 1u << ROW_COUNT |
				groups_columns(&a->groups) };
		s = scan_run(&scan, add_rows, a, &a->budget, e);
		source_done(a->v, src);
	}
	if (s == OK && a->is_gauge)
		return average(a, e);
	return s == OK ? put_durations(a, e) : s;
}

static enum status sum_series(struct store_view *v, const struct samples_query *q,
	const struct str *by, size_t by_count, int64_t step_ns, struct arena *arena,
	struct samples_series **out, size_t *out_count, struct samples_type *out_type,
	int64_t *out_period, struct err *e)
{
	CLEANUP(adding_deinit)
	struct adding a = { .v = v, .q = q, .budget = query_budget(v, q), .step_ns = step_ns };
	struct found_type found;
	a.durations = (struct durations){ v, q, &a.budget, &a.groups, step_ns, { 0 } };
	enum status s = groups_init(&a.groups, by, (uint32_t)by_count, &a.budget, e);
	a.picks = view_picks_new(v);
	if (s == OK && !a.picks)
		s = err_set(e, E_NOMEM, "a view");
	if (s == OK)
		s = view_pick(v, q, NULL, &a.budget, a.picks, e);
	if (s == OK)
		s = picks_type(v, a.picks, q->times_period, &found, e);
	if (s == OK)
		s = copy_type(&found, arena, &a.type, e);
	if (s == OK) {
		a.is_gauge = found.found && !found.delta;
		a.by_period = found.by_period;
		s = scan_sources(&a, e);
	}
	if (s == OK)
		s = make_series(&a, arena, out, out_count, e);
	if (s != OK)
		return s;
	if (out_type)
		*out_type = a.type;
	if (out_period)
		*out_period = found.period;
	return OK;
}

enum status store_sum_series(struct store_view *v, const struct samples_query *q,
	const struct str *by, size_t by_count, int64_t step_ns, struct arena *a,
	struct samples_series **out, size_t *out_count, struct samples_type *out_type,
	int64_t *out_period, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s == OK && step_ns <= 0)
		s = err_set(e, E_INVALID, "a step of %lld ns", (long long)step_ns);
	if (s != OK)
		return s;
	do
		s = sum_series(
			v, q, by, by_count, step_ns, a, out, out_count, out_type, out_period, e);
	while (view_heal(v, s, e));
	return s;
}
