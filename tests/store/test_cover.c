/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The average over time of a gauge's sum: series that live all the time count as they do alone,
 * those that follow each other share the time.
 */
#include "store/read/cover.h"

#include "base/vec.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#define SEC 1000000000LL
#define DAY (86400 * SEC)

struct points {
	VEC(struct cover_point) v;
	uint32_t series;
};

/* One more series, with points from `from` to `to` (not that one). */
static void add(struct points *p, int64_t from, int64_t to, int64_t step)
{
	for (int64_t t = from; t < to; t += step)
		CHECK(VEC_PUSH(&p->v, (struct cover_point){ t, p->series }));
	p->series++;
}

/* Of a value of 1 at each point of every series: what each counts, and the answer. */
static double answer(struct points *p, double *shares)
{
	struct cover_intervals x = { 0 };
	struct err e = { 0 };
	double weights[64] = { 0 }, sum = 0;
	CHECK(p->series <= 64);
	CHECK_OK(cover_intervals(p->v.v, p->v.len, p->series, &x, &e), &e);
	CHECK_OK(cover_weights(p->v.v, p->v.len, &x, weights, &e), &e);
	for (uint32_t s = 0; s < p->series; s++)
		shares[s] = 0;
	for (size_t i = 0; i < p->v.len; i++) {
		shares[p->v.v[i].series] += weights[p->v.v[i].series];
		sum += weights[p->v.v[i].series];
	}
	free(x.of);
	VEC_FREE(&p->v);
	*p = (struct points){ 0 };
	return sum;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.001;
}

static void series_share_the_time(void **state)
{
	(void)state;
	struct points p = { 0 };
	double s[64];
	add(&p, 0, DAY, 15 * SEC);
	CHECK(near(answer(&p, s), 1));
	/* Two all the time, asked at other seconds of the minute. */
	add(&p, 3 * SEC, DAY, 60 * SEC);
	add(&p, 41 * SEC, DAY, 60 * SEC);
	CHECK(near(answer(&p, s), 2));
	/* Pods of an hour each, one after the other. */
	for (int i = 0; i < 24; i++)
		add(&p, i * 3600 * SEC, (i + 1) * 3600 * SEC, 15 * SEC);
	CHECK(near(answer(&p, s), 1));
	CHECK(near(s[7], 1.0 / 24));
	/* One of half a day beside one of all of it. */
	add(&p, 0, DAY, 15 * SEC);
	add(&p, DAY / 2, DAY, 15 * SEC);
	CHECK(near(answer(&p, s), 1.5));
	/* Time in which there was nothing at all is no time. */
	add(&p, 0, DAY / 4, 15 * SEC);
	add(&p, DAY / 2, 3 * DAY / 4, 15 * SEC);
	CHECK(near(answer(&p, s), 1));
	/* Other intervals. */
	add(&p, 0, DAY, 15 * SEC);
	add(&p, 0, DAY, 240 * SEC);
	CHECK(near(answer(&p, s), 2));
}

static void few_points(void **state)
{
	(void)state;
	struct points p = { 0 };
	double s[64];
	/* One each: nobody knows for how long. */
	add(&p, 0, 1, SEC);
	add(&p, 7 * SEC, 7 * SEC + 1, SEC);
	CHECK(near(answer(&p, s), 2));
	/* One of a series, of others it is known. */
	add(&p, 0, DAY, 3600 * SEC);
	add(&p, DAY / 2, DAY / 2 + 1, SEC);
	CHECK(near(answer(&p, s), 1 + 1.0 / 24));
	/* A series of two points makes the time no longer than it was. */
	add(&p, 0, DAY, 15 * SEC);
	add(&p, 1, DAY, 15 * SEC);
	add(&p, DAY / 4, DAY, DAY / 2);
	(void)answer(&p, s);
	CHECK(near(s[0], 1) && near(s[1], 1));
	/* The ends of time. */
	CHECK(VEC_PUSH(&p.v, (struct cover_point){ INT64_MIN, 0 }));
	CHECK(VEC_PUSH(&p.v, (struct cover_point){ INT64_MAX, 0 }));
	p.series = 1;
	CHECK(near(answer(&p, s), 1));
	CHECK(answer(&p, s) == 0);
}

TEST_MAIN(cmocka_unit_test(series_share_the_time), cmocka_unit_test(few_points))
