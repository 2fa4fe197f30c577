/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run is a time in which a series is there. It goes from each point to the next one, if that is
 * at most two intervals away, and an interval (at most the usual one) past the last point. The
 * union of all series' runs is the time that the sum is divided by. Series are not scraped at the
 * same moment. So a series that began within an interval of the first one counts from the beginning
 * on, and likewise at the end.
 */
#include "store/read/cover.h"

#include <stdlib.h>

struct run {
	int64_t from, to;
};

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_number);
	return v[(n - 1) / 2];
}

static uint64_t distance(int64_t from, int64_t to)
{
	return (uint64_t)to - (uint64_t)from;
}

static size_t series_end(const struct cover_point *p, size_t from, size_t n)
{
	size_t i = from + 1;
	while (i < n && p[i].series == p[from].series)
		i++;
	return i;
}

enum status cover_intervals(const struct cover_point *p, size_t n, uint32_t series_count,
	struct cover_intervals *x, struct err *e)
{
	CLEANUP(free_cleanup) uint64_t *out = calloc((size_t)series_count + 1, sizeof(*out));
	CLEANUP(free_cleanup) uint64_t *v = calloc(n + series_count + 1, sizeof(*v));
	size_t known_count = 0;
	if (!v || !out)
		return err_set(e, E_NOMEM, "intervals of %zu points", n);
	for (size_t i = 0, end; i < n; i = end) {
		end = series_end(p, i, n);
		if (end == i + 1)
			continue;
		for (size_t k = i + 1; k < end; k++)
			v[k - i - 1] = distance(p[k - 1].time_ns, p[k].time_ns);
		v[n + known_count++] = out[p[i].series] = median(v, end - i - 1);
	}
	x->usual = known_count ? median(v + n, known_count) : 0;
	for (size_t i = 0; i < n; i++)
		if (out[p[i].series] == 0)
			out[p[i].series] = x->usual;
	x->of = STEAL_PTR(out);
	return OK;
}

/* The runs of p[0 .. n), one series; returns how many. */
static size_t make_runs(
	const struct cover_point *p, size_t n, uint64_t interval, uint64_t past, struct run *out)
{
	size_t runs = 0;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || (distance(p[i - 1].time_ns, p[i].time_ns) - 1) / 2 >= interval)
			out[runs++].from = p[i].time_ns;
		int64_t *to = &out[runs - 1].to;
		if (past > INT64_MAX || __builtin_add_overflow(p[i].time_ns, (int64_t)past, to))
			*to = INT64_MAX;
	}
	return runs;
}

static int by_from(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts them. */
static double length_together(struct run *v, size_t n)
{
	double sum = 0;
	int64_t to = INT64_MIN;
	qsort(v, n, sizeof(*v), by_from);
	for (size_t i = 0; i < n; i++) {
		int64_t from = MAX(v[i].from, to);
		if (v[i].to > from)
			sum += (double)distance(from, v[i].to);
		to = MAX(to, v[i].to);
	}
	return sum;
}

/* Without an interval, each series counts as there all the time. */
static void plain_weights(const struct cover_point *p, size_t n, double *out)
{
	for (size_t i = 0, end; i < n; i = end) {
		end = series_end(p, i, n);
		out[p[i].series] = 1.0 / (double)(end - i);
	}
}

static void make_ends_meet(struct run *r, size_t n, uint64_t interval, struct run all)
{
	for (size_t i = 0; i < n; i++) {
		if (distance(all.from, r[i].from) <= interval)
			r[i].from = all.from;
		if (distance(r[i].to, all.to) <= interval)
			r[i].to = all.to;
	}
}

enum status cover_weights(const struct cover_point *p, size_t n, const struct cover_intervals *x,
	double *out, struct err *e)
{
	CLEANUP(free_cleanup) struct run *v = calloc(n + 1, sizeof(*v));
	CLEANUP(free_cleanup) size_t *ends = calloc(n + 1, sizeof(*ends));
	struct run all = { INT64_MAX, INT64_MIN };
	size_t runs = 0, series = 0;
	if (!v || !ends)
		return err_set(e, E_NOMEM, "weights of %zu points", n);
	for (size_t i = 0, end; i < n; i = end) {
		uint64_t interval = x->of[p[i].series];
		end = series_end(p, i, n);
		runs += make_runs(p + i, end - i, interval, MIN(interval, x->usual), v + runs);
		ends[series++] = runs;
	}
	for (size_t i = 0; i < runs; i++) {
		all.from = MIN(all.from, v[i].from);
		all.to = MAX(all.to, v[i].to);
	}
	size_t at = 0, s = 0;
	for (size_t i = 0, end; i < n; i = end, at = ends[s++]) {
		double sum = 0;
		end = series_end(p, i, n);
		make_ends_meet(v + at, ends[s] - at, x->of[p[i].series], all);
		for (size_t k = at; k < ends[s]; k++)
			sum += (double)distance(v[k].from, v[k].to);
		out[p[i].series] = sum / (double)(end - i);
	}
	double together = length_together(v, runs);
	if (together <= 0)
		plain_weights(p, n, out);
	if (together <= 0)
		return OK;
	for (size_t i = 0, end; i < n; i = end) {
		end = series_end(p, i, n);
		out[p[i].series] /= together;
	}
	return OK;
}
