/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single profiles and spans: averages over profiles, exemplars, heat maps.
 *
 * firn keeps samples, and no profiles. Here a profile is the samples of one series (all labels
 * except those of samples) in one short step, of a second if the range allows it: clients send a
 * profile about every ten seconds. A span is the samples of one series with one span_id in a step
 * of the request.
 *
 * All of them are one query_range(), by all labels; sorted by the labels of the request and by
 * time, those of one point of the answer follow each other, the largest first.
 */
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/querier.h"

#include "base/clock.h"

#include <stdlib.h>

/* The most short steps in a range; query_range() allows some more. */
#define STEPS_MAX 16000
#define SPAN_LABELS 2
#define HEATMAP_ROWS 20 /* as in Pyroscope */

/* A short step that divides the request's step. */
static int64_t short_step(const struct query_request *q)
{
	uint64_t range = (uint64_t)q->to_ns - (uint64_t)q->from_ns;
	int64_t parts = MIN(q->step_ns / NS_PER_SEC, (int64_t)STEPS_MAX);
	while (parts > 1 && (q->step_ns / NS_PER_MS % parts != 0 ||
				    range / (uint64_t)(q->step_ns / parts) > STEPS_MAX))
		parts--;
	return q->step_ns / MAX(parts, INT64_C(1));
}

static int compare_groups(const struct querier_point *a, const struct str *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int order = str_cmp(a->values[i], values[i]);
		if (order)
			return order;
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct querier_point *x = a, *y = b;
	int order = compare_groups(x, y->values, x->group_count);
	if (order == 0)
		order = (x->bucket_ns > y->bucket_ns) - (x->bucket_ns < y->bucket_ns);
	if (order == 0)
		order = (x->value < y->value) - (x->value > y->value);
	return order ? order : (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static enum status take_points(struct server_call *c, const struct query_range *r, int64_t step_ns,
	struct querier_points *out)
{
	size_t count = 0;
	for (size_t i = 0; i < r->count; i++)
		count += r->series[i].point_count;
	out->v = ARENA_ARRAY(&c->a, struct querier_point, count);
	if (!out->v)
		return server_call_no_memory(c);
	for (size_t i = 0; i < r->count; i++) {
		const struct query_range_series *series = &r->series[i];
		if (out->of_spans && series->values[out->span_at].len == 0)
			continue;
		for (size_t k = 0; k < series->point_count; k++) {
			const struct query_range_point *p = &series->points[k];
			out->v[out->count++] = (struct querier_point){ .values = series->values,
				.group_count = (uint32_t)out->group_count,
				.bucket_ns = p->time_ns / step_ns * step_ns,
				.time_ns = p->time_ns,
				.value = p->value };
		}
	}
	qsort(out->v, out->count, sizeof(*out->v), by_place);
	return OK;
}

enum status querier_points_find(struct server_call *c, const struct query_request *q,
	const struct str *groups, size_t group_count, bool of_spans, struct querier_points *out)
{
	struct query_request each = *q;
	struct query_range range = { 0 };
	struct str *labels = NULL;
	size_t label_count = 0;
	*out = (struct querier_points){ .of_spans = of_spans, .group_count = group_count };
	enum status s = querier_series_labels(c, q, &labels, &label_count);
	if (s != OK)
		return s;
	out->name_count = group_count + label_count + (of_spans ? SPAN_LABELS : 0);
	out->names = ARENA_ARRAY(&c->a, struct str, out->name_count + 1);
	if (!out->names)
		return server_call_no_memory(c);
	if (group_count)
		memcpy(out->names, groups, group_count * sizeof(*groups));
	if (label_count)
		memcpy(out->names + group_count, labels, label_count * sizeof(*labels));
	out->span_at = group_count + label_count;
	if (of_spans) {
		out->names[out->span_at] = STR("span_id");
		out->names[out->span_at + 1] = STR("trace_id");
	}
	if (out->name_count == 0) /* a label that no series has, so that all are summed */
		out->names[out->name_count++] = STR("__none__");
	if (!of_spans)
		each.step_ns = short_step(q);
	out->step_ns = each.step_ns;
	s = query_range(c->engine, &each, out->names, out->name_count, &c->a, &range, c->e);
	return s == OK ? take_points(c, &range, q->step_ns, out) : s;
}

size_t querier_points_of(const struct querier_points *p, const struct str *values,
	int64_t bucket_ns, size_t *out_first)
{
	size_t low = 0, high = p->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct querier_point *x = &p->v[middle];
		int order = compare_groups(x, values, p->group_count);
		if (order < 0 || (order == 0 && x->bucket_ns < bucket_ns))
			low = middle + 1;
		else
			high = middle;
	}
	*out_first = low;
	for (high = low; high < p->count && p->v[high].bucket_ns == bucket_ns &&
			 compare_groups(&p->v[high], values, p->group_count) == 0;)
		high++;
	return high - low;
}

static bool is_grouped(const struct querier_points *p, struct str name)
{
	for (size_t i = 0; i < p->group_count; i++)
		if (str_eq(p->names[i], name))
			return true;
	return false;
}

void querier_put_exemplar(
	struct server_call *c, const struct querier_points *p, size_t at, uint32_t field)
{
	const struct querier_point *x = &p->v[at];
	size_t first = p->group_count, labels = p->span_at - first;
	size_t begun = pb_begin(c->out, field);
	pb_put_i64(c->out, 1, x->time_ns / NS_PER_MS);
	if (p->of_spans)
		pb_put_str(c->out, 3, x->values[p->span_at]);
	else
		pb_put_str(c->out, 2,
			querier_id_write(c, x->time_ns, p->step_ns,
				querier_series_hash(p->names + first, x->values + first, labels)));
	pb_put_i64(c->out, 4, x->value);
	for (size_t i = first; i < p->span_at; i++) {
		if (x->values[i].len == 0 || is_grouped(p, p->names[i]))
			continue;
		size_t label = pb_begin(c->out, 5);
		pb_put_str(c->out, 1, p->names[i]);
		pb_put_str(c->out, 2, x->values[i]);
		pb_end(c->out, label);
	}
	if (p->of_spans)
		pb_put_str(c->out, 6, x->values[p->span_at + 1]);
	pb_end(c->out, begun);
}

/* ---- SelectHeatmap ---- */

struct scale {
	int64_t least, most;
};

static int64_t row_min(const struct scale *s, size_t row)
{
	double height = ((double)s->most - (double)s->least) / HEATMAP_ROWS;
	return (int64_t)((uint64_t)s->least + (uint64_t)(height * (double)row));
}

static size_t row_of(const struct scale *s, int64_t value)
{
	size_t row = HEATMAP_ROWS - 1;
	while (row > 0 && value < row_min(s, row))
		row--;
	return row;
}

/* Writes points [first, first + count), which have the same time: the number in each row, and the
 * largest of each. */
static void put_slot(struct server_call *c, const struct pyroscope_query *in,
	const struct querier_points *p, const struct scale *scale, size_t first, size_t count,
	int64_t step_ns)
{
	uint32_t counts[HEATMAP_ROWS] = { 0 };
	size_t slot = pb_begin(c->out, 2);
	pb_put_i64(c->out, 1, (p->v[first].bucket_ns + step_ns) / NS_PER_MS);
	size_t mins = pb_begin(c->out, 2);
	for (size_t i = 0; i < HEATMAP_ROWS; i++) {
		double least = (double)row_min(scale, i);
		uint64_t bits;
		memcpy(&bits, &least, sizeof(bits));
		buf_u64(c->out, bits);
	}
	pb_end(c->out, mins);
	for (size_t i = 0; i < count; i++)
		counts[row_of(scale, p->v[first + i].value)]++;
	pb_put_packed_u32(c->out, 3, counts, HEATMAP_ROWS);
	memset(counts, 0, sizeof(counts));
	for (size_t i = first; i < first + count && in->exemplars; i++)
		if (counts[row_of(scale, p->v[i].value)]++ == 0)
			querier_put_exemplar(c, p, i, 4);
	pb_end(c->out, slot);
}

static bool same_group(const struct querier_points *p, size_t a, size_t b)
{
	return compare_groups(&p->v[a], p->v[b].values, p->group_count) == 0;
}

static void put_heatmap(struct server_call *c, const struct pyroscope_query *in,
	const struct querier_points *p, int64_t step_ns)
{
	struct scale scale = { INT64_MAX, 0 };
	for (size_t i = 0; i < p->count; i++) {
		scale.least = MIN(scale.least, p->v[i].value);
		scale.most = MAX(scale.most, p->v[i].value);
	}
	if (scale.least == scale.most && scale.most < INT64_MAX)
		scale.most++;
	int64_t series_left = in->series_max > 0 ? in->series_max : INT64_MAX;
	for (size_t i = 0; i < p->count && series_left-- > 0;) {
		size_t first = i, series = pb_begin(c->out, 1);
		for (uint32_t k = 0; k < in->names.count; k++)
			if (p->v[i].values[k].len)
				querier_put_pair(c->out, in->names.v[k], p->v[i].values[k]);
		while (i < p->count && same_group(p, first, i)) {
			size_t slot = i;
			while (i < p->count && same_group(p, first, i) &&
				p->v[i].bucket_ns == p->v[slot].bucket_ns)
				i++;
			put_slot(c, in, p, &scale, slot, i - slot, step_ns);
		}
		pb_end(c->out, series);
	}
}

static enum status select_heatmap(struct server_call *c)
{
	CLEANUP(querier_selection_deinit) struct querier_selection x = { 0 };
	struct pyroscope_query in;
	struct querier_points points;
	struct str by[PYROSCOPE_LIST_MAX];
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_HEATMAP, &in, c->e);
	if (s == OK)
		s = querier_select_steps(c, &in, &x);
	if (s != OK || !x.found)
		return s;
	for (uint32_t i = 0; i < in.names.count; i++)
		by[i] = querier_plain_name(c, in.names.v[i]);
	s = querier_points_find(c, &x.q, by, in.names.count, in.by_span, &points);
	if (s == OK)
		put_heatmap(c, &in, &points, x.q.step_ns);
	return s;
}

SERVER_CALL_HANDLER(server_querier_select_heatmap, select_heatmap)
