/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The points in time of a series lie in several sources, so series get common numbers first; then
 * one pass gathers (series, time) pairs, which are sorted, each once, and say what time the series
 * covers of that of all (cover.h).
 */
#include "store/read/gauge.h"
#include "store/read/cover.h"
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

/* Everything that makes a series but tenant and period: one view has one tenant. */
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
	if (s == OK)
		s = weigh_points(&ga, c.keys.len, b, &weights, e);
	size_t room = ga.points.cap;
	VEC_FREE(&ga.points);
	if (s == OK)
		budget_give(b, room * sizeof(struct cover_point));
	if (s == OK)
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
	*g = (struct gauge){ 0 };
}
