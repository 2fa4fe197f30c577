/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The points in time of a series lie in several sources, so series get common numbers first; then
 * one pass collects (series, time) pairs, which are sorted, each once. They give the share of the
 * whole time that each series covers (cover.h).
 */
#include "store/read/gauge.h"
#include "store/read/cover.h"
#include "store/read/durations.h"
#include "store/read/scan.h"

#include <stdlib.h>

#define KEYS_BYTES_MAX ((size_t)256 << 20)
#define KEY_BYTES_MAX ((size_t)1 << 20)
#define POINTS_MIN 4096

static void key_text(struct buf *key, struct str s)
{
	buf_varint(key, s.len);
	buf_str(key, s);
}

/* Writes everything that identifies a series but tenant and period: one view has one tenant. */
static void write_key(struct buf *key, const struct tabs *t, const struct tab_series *s)
{
	buf_clear(key);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		key_text(key, t->label_strings[s->type[k]]);
	buf_u8(key, s->delta != 0);
	for (uint32_t i = 0; i < s->label_count; i++) {
		const struct profile_label *l = &t->labels[s->label_first + i];
		key_text(key, t->label_strings[l->name]);
		key_text(key, t->label_strings[l->value]);
	}
}

enum status common_series_init(struct common_series *c, struct store_view *v,
	const struct pick *picks, struct budget *b, struct err *e)
{
	*c = (struct common_series){ 0 };
	CLEANUP(buf_deinit) struct buf key;
	buf_init(&key, KEY_BYTES_MAX);
	enum status s = strtab_init(&c->keys, KEYS_BYTES_MAX);
	if (s == OK)
		s = budget_array(b, v->source_count, sizeof(*c->ids), &c->ids, e);
	c->source_count = v->source_count;
	for (size_t i = 0; s == OK && i < v->source_count; i++) {
		uint32_t n = picks[i].series_count;
		s = budget_array(b, n, sizeof(uint32_t), &c->ids[i], e);
		if (s == OK && picks[i].wanted)
			s = source_load(v, &v->sources[i], PART_LOAD_LABELS, b, e);
		for (uint32_t k = 0; s == OK && k < n; k++) {
			if (!picks[i].series[k])
				continue;
			write_key(&key, &v->sources[i].tabs, &v->sources[i].tabs.series[k]);
			s = buf_status(&key);
			if (s == OK)
				s = strtab_intern(&c->keys, buf_view(&key), &c->ids[i][k]);
			if (s != OK)
				err_set(e, s, "too many series");
		}
		source_rest(v, &v->sources[i]);
	}
	if (s != OK)
		common_series_deinit(c);
	return s;
}

void common_series_deinit(struct common_series *c)
{
	strtab_deinit(&c->keys);
	for (size_t i = 0; c->ids && i < c->source_count; i++)
		free(c->ids[i]);
	free(c->ids);
	*c = (struct common_series){ 0 };
}

struct gathering {
	const uint32_t *ids;
	VEC(struct cover_point) points;
	struct budget *budget;
};

static int by_series_time(const void *a, const void *b)
{
	const struct cover_point *x = a, *y = b;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static void sort_out(struct gathering *g)
{
	struct cover_point *p = g->points.v;
	size_t n = 0;
	if (g->points.len)
		qsort(p, g->points.len, sizeof(*p), by_series_time);
	for (size_t i = 0; i < g->points.len; i++)
		if (n == 0 || by_series_time(&p[n - 1], &p[i]) != 0)
			p[n++] = p[i];
	g->points.len = n;
}

/* Stacks of one point in time come one after the other, or all times of each stack: memory is for
 * points, not for rows. */
static enum status make_room(struct gathering *g, struct err *e)
{
	size_t cap = g->points.cap;
	if (g->points.len < cap)
		return OK;
	sort_out(g);
	if (cap && g->points.len <= cap / 2)
		return OK;
	if (!VEC_RESERVE(&g->points, MAX(2 * cap, (size_t)POINTS_MIN)))
		return err_set(e, E_NOMEM, "points in time of gauges");
	return budget_take(g->budget, (g->points.cap - cap) * sizeof(struct cover_point), e);
}

static enum status gather(void *ctx, const struct scan_rows *r, struct err *e)
{
	struct gathering *g = ctx;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		struct cover_point p = { r->time_ns[i], g->ids[r->series[i]] };
		struct cover_point *last = g->points.len ? &g->points.v[g->points.len - 1] : NULL;
		if (last && last->time_ns == p.time_ns && last->series == p.series)
			continue;
		enum status s = make_room(g, e);
		if (s != OK)
			return s;
		g->points.v[g->points.len++] = p;
	}
	return OK;
}

static enum status weigh_points(
	struct gathering *g, uint32_t series_count, struct budget *b, double **out, struct err *e)
{
	struct cover_intervals x = { 0 };
	sort_out(g);
	uint64_t room = g->points.len * COVER_POINT_BYTES;
	enum status s = budget_array(b, series_count, sizeof(**out), out, e);
	if (s == OK)
		s = budget_take(b, room, e);
	if (s != OK)
		return s;
	s = cover_intervals(g->points.v, g->points.len, series_count, &x, e);
	if (s == OK)
		s = cover_weights(g->points.v, g->points.len, &x, *out, e);
	free(x.of);
	budget_give(b, room);
	return s;
}

/* ---- by step ---- */

static int by_step(const void *a, const void *b, void *ctx)
{
	int64_t step_ns = *(const int64_t *)ctx;
	int64_t x = durations_step(((const struct cover_point *)a)->time_ns, step_ns);
	int64_t y = durations_step(((const struct cover_point *)b)->time_ns, step_ns);
	if (x != y)
		return x < y ? -1 : 1;
	return by_series_time(a, b);
}

/* Finds the weight of each point of one step; the points ascend by series. */
static enum status weigh_step(struct gauge *g, const struct cover_point *p, size_t n,
	const struct cover_intervals *x, double *weights, struct err *e)
{
	int64_t step = durations_step(p->time_ns, g->step_ns);
	enum status s = cover_weights(p, n, x, weights, e);
	for (size_t i = 0; s == OK && i < n; i++)
		if (i == 0 || p[i].series != p[i - 1].series)
			g->of_step.v[g->of_step.len++] =
				(struct gauge_weight){ step, p[i].series, weights[p[i].series] };
	return s;
}

static enum status weigh_steps(
	struct gauge *g, struct gathering *ga, struct budget *b, struct err *e)
{
	CLEANUP(free_cleanup) double *weights = NULL;
	struct cover_intervals x = { 0 };
	sort_out(ga);
	struct cover_point *p = ga->points.v;
	size_t n = ga->points.len;
	uint64_t room = n * COVER_POINT_BYTES;
	enum status s = budget_array(b, g->common.keys.len, sizeof(*weights), &weights, e);
	if (s == OK)
		s = budget_take(b, room + n * sizeof(struct gauge_weight), e);
	if (s == OK && !VEC_RESERVE(&g->of_step, n))
		s = err_set(e, E_NOMEM, "%zu points in time of gauges", n);
	if (s != OK)
		return s;
	s = cover_intervals(p, n, g->common.keys.len, &x, e);
	if (s == OK && n)
		qsort_r(p, n, sizeof(*p), by_step, &g->step_ns);
	for (size_t i = 0, end; s == OK && i < n; i = end) {
		int64_t step = durations_step(p[i].time_ns, g->step_ns);
		for (end = i + 1; end < n && durations_step(p[end].time_ns, g->step_ns) == step;)
			end++;
		s = weigh_step(g, p + i, end - i, &x, weights, e);
	}
	free(x.of);
	budget_give(b, room);
	return s;
}

static int compare_weights(const struct gauge_weight *w, int64_t step, uint32_t series)
{
	if (w->step != step)
		return w->step < step ? -1 : 1;
	return (w->series > series) - (w->series < series);
}

double gauge_step_weight(struct gauge *g, size_t i, uint32_t series, int64_t time_ns)
{
	int64_t step = durations_step(time_ns, g->step_ns);
	uint32_t common = g->common.ids[i][series];
	const struct gauge_weight *v = g->of_step.v;
	if (g->last < g->of_step.len && compare_weights(&v[g->last], step, common) == 0)
		return v[g->last].weight;
	size_t from = 0, to = g->of_step.len;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (compare_weights(&v[middle], step, common) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	assert(from < g->of_step.len && compare_weights(&v[from], step, common) == 0);
	g->last = from;
	return v[from].weight;
}

/* ---- the whole ---- */

static enum status make_weights(struct gauge *g, struct store_view *v, const struct pick *picks,
	const struct common_series *c, const double *weights, struct budget *b, struct err *e)
{
	enum status s = budget_array(b, v->source_count, sizeof(*g->weights), &g->weights, e);
	g->source_count = v->source_count;
	for (size_t i = 0; s == OK && i < v->source_count; i++) {
		uint32_t n = picks[i].series_count;
		s = budget_array(b, n, sizeof(double), &g->weights[i], e);
		for (uint32_t k = 0; s == OK && k < n; k++)
			g->weights[i][k] = weights[c->ids[i][k]];
	}
	return s;
}

enum status gauge_init(struct gauge *g, struct store_view *v, const struct pick *picks,
	const struct samples_query *q, struct budget *b, struct err *e)
{
	*g = (struct gauge){ 0 };
	CLEANUP(common_series_deinit) struct common_series c;
	CLEANUP(free_cleanup) double *weights = NULL;
	enum status s = common_series_init(&c, v, picks, b, e);
	if (s != OK)
		return s;
	struct gathering ga = { .budget = b };
	for (size_t i = 0; s == OK && i < v->source_count; i++) {
		struct scan scan = { v, &v->sources[i], &picks[i], q,
			1u << ROW_SERIES | 1u << ROW_TIME };
		ga.ids = c.ids[i];
		s = scan_run(&scan, gather, &ga, b, e);
	}
	if (s == OK && q->step_ns) {
		g->step_ns = q->step_ns;
		g->common = c;
		c = (struct common_series){ 0 };
		s = weigh_steps(g, &ga, b, e);
	} else if (s == OK) {
		s = weigh_points(&ga, c.keys.len, b, &weights, e);
	}
	size_t room = ga.points.cap;
	VEC_FREE(&ga.points);
	if (s == OK)
		budget_give(b, room * sizeof(struct cover_point));
	if (s == OK && weights)
		s = make_weights(g, v, picks, &c, weights, b, e);
	if (s != OK)
		gauge_deinit(g);
	return s;
}

void gauge_deinit(struct gauge *g)
{
	for (size_t i = 0; g->weights && i < g->source_count; i++)
		free(g->weights[i]);
	free(g->weights);
	common_series_deinit(&g->common);
	VEC_FREE(&g->of_step);
	*g = (struct gauge){ 0 };
}
