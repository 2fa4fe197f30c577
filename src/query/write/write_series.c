/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: JSON as docs/api.md says. For a terminal each series is one row with its total, its rate and
 * a line of block characters, each character the sum of the points in its part of the range, or
 * their mean for a gauge.
 */
#include "query/plan/plan.h"
#include "query/report/report.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"

#define SPARK_WIDTH 40

static void json_labels(const struct query_request *r, const struct query_points *p, struct buf *b)
{
	if (!p->labels) {
		buf_cstr(b, "\"other\":true,\"labels\":{}");
		return;
	}
	query_json_key(b, "labels");
	buf_u8(b, '{');
	for (uint32_t i = 0; i < r->by_count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		buf_json_str(b, r->by[i]);
		buf_u8(b, ':');
		buf_json_str(b, p->labels[i]);
	}
	buf_u8(b, '}');
}

static void write_json(const struct query_graph *g, const struct query_request *r, struct buf *b)
{
	buf_u8(b, '{');
	query_json_pair_str(b, "unit", g->unit);
	query_json_key(b, "step");
	if (g->step_ns % NS_PER_MS == 0)
		query_json_i64(b, g->step_ns / NS_PER_MS);
	else
		buf_json_double(b, (double)g->step_ns / NS_PER_MS);
	query_json_key(b, "by");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < r->by_count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		buf_json_str(b, r->by[i]);
	}
	buf_u8(b, ']');
	query_json_key(b, "series");
	buf_u8(b, '[');
	for (size_t i = 0; i < g->count; i++) {
		const struct query_points *p = &g->series[i];
		buf_cstr(b, i ? ",{" : "{");
		json_labels(r, p, b);
		query_json_key(b, "points");
		buf_u8(b, '[');
		for (size_t k = 0; k < p->count; k++) {
			buf_cstr(b, k ? ",[" : "[");
			query_json_i64(b, p->points[k].time_ns / NS_PER_MS);
			buf_u8(b, ',');
			query_json_i64(b, p->points[k].value);
			buf_u8(b, ']');
		}
		buf_cstr(b, "]}");
	}
	buf_cstr(b, "]}");
}

/* The line's columns: each the sum, for a gauge the mean, of the points in its part of the range.
 */
static void spark_columns(const struct query_points *p, bool gauge, const struct query_request *r,
	double columns[SPARK_WIDTH])
{
	double range = (double)r->to_ns - (double)r->from_ns;
	uint32_t counts[SPARK_WIDTH] = { 0 };
	memset(columns, 0, SPARK_WIDTH * sizeof(*columns));
	for (size_t i = 0; i < p->count; i++) {
		double at = ((double)p->points[i].time_ns - (double)r->from_ns) / range;
		int column = at < 0 ? 0 : (int)(at * SPARK_WIDTH);
		column = MIN(column, SPARK_WIDTH - 1);
		columns[column] += (double)p->points[i].value;
		counts[column]++;
	}
	for (int i = 0; gauge && i < SPARK_WIDTH; i++)
		columns[i] /= MAX(counts[i], 1u);
}

static void spark_text(
	const double columns[SPARK_WIDTH], double most, char out[SPARK_WIDTH * 3 + 1])
{
	static const char blocks[][4] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	size_t len = 0;
	for (int i = 0; i < SPARK_WIDTH; i++) {
		int level = most > 0 ? (int)(columns[i] / most * 7.999) : 0;
		const char *block = columns[i] > 0 ? blocks[MIN(level, 7)] : " ";
		memcpy(out + len, block, strlen(block));
		len += strlen(block);
	}
	out[len] = 0;
}

static double largest_column(const struct query_graph *g, const struct query_request *r)
{
	double most = 0, columns[SPARK_WIDTH];
	for (size_t i = 0; i < g->count; i++) {
		spark_columns(&g->series[i], g->gauge, r, columns);
		for (int k = 0; k < SPARK_WIDTH; k++)
			most = MAX(most, columns[k]);
	}
	return most;
}

/* The rate over the requested time: CPU cores for nanoseconds, else the value per second. */
static void rate_cell(struct query_text *t, const struct query_points *p,
	const struct query_graph *g, const struct query_request *r)
{
	char text[UNITS_TEXT_MAX + 8], value[UNITS_TEXT_MAX];
	double seconds = ((double)r->to_ns - (double)r->from_ns) / NS_PER_SEC;
	if (str_eq(g->unit, STR("nanoseconds")))
		snprintf(text, sizeof(text), "%.3f", (double)p->total / 1e9 / seconds);
	else
		snprintf(text, sizeof(text), "%s/s",
			units_format((int64_t)((double)p->total / seconds), g->unit, value));
	query_text_cell(t, str_of(text));
}

static void write_text(const struct query_graph *g, const struct query_request *r, struct buf *b)
{
	if (g->count == 0) {
		buf_cstr(b, "no samples in this time range\n");
		return;
	}
	CLEANUP(query_text_deinit) struct query_text t;
	uint32_t labels = MAX(r->by_count, 1u);
	query_text_begin(&t, labels + 3 - g->gauge, b->max);
	for (uint32_t i = 0; i < 2u - g->gauge; i++)
		query_text_right(&t, i);
	query_text_fit(&t, 0, r->width);
	query_text_cell(&t, g->gauge ? STR("MEAN") : STR("TOTAL"));
	if (!g->gauge)
		query_text_cell(
			&t, str_eq(g->unit, STR("nanoseconds")) ? STR("CORES") : STR("RATE"));
	query_text_cell(&t, STR("OVER TIME"));
	if (r->by_count == 0)
		query_text_cell(&t, STR("SERIES"));
	for (uint32_t i = 0; i < r->by_count; i++)
		query_text_cell(&t, r->by[i]);
	double most = largest_column(g, r), columns[SPARK_WIDTH];
	for (size_t i = 0; i < g->count; i++) {
		const struct query_points *p = &g->series[i];
		char spark[SPARK_WIDTH * 3 + 1];
		query_text_value(&t, p->total, g->unit);
		if (!g->gauge)
			rate_cell(&t, p, g, r);
		spark_columns(p, g->gauge, r, columns);
		spark_text(columns, most, spark);
		query_text_cell(&t, str_of(spark));
		if (r->by_count == 0)
			query_text_cell(&t, STR("all"));
		for (uint32_t k = 0; k < r->by_count; k++)
			query_text_cell(&t, p->labels ? p->labels[k]
					    : k == 0  ? STR("(all others)")
						      : STR(""));
	}
	query_text_end(&t, b);
}

enum status query_write_series(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	struct query_graph g;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_series(q, r, &a, &g, e);
	if (s == OK && r->required && g.count == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	if (format == QUERY_JSON)
		write_json(&g, r, out);
	else
		write_text(&g, r, out);
	return query_written(out, e);
}
