/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "query/report/series.h"

static void ask(struct arena *a, const struct query_request *r, struct query_graph *g)
{
	struct err e = { 0 };
	arena_init(a, 64 << 20);
	CHECK_OK(query_series(&fake_engine, r, a, g, &e), &e);
}

static void sums_by_labels(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_graph g;
	struct query_request r = fake_request(CPU);
	r.step_ns = 10 * NS_PER_SEC;
	r.to_ns = 100 * NS_PER_SEC;
	r.by[r.by_count++] = STR("comm");
	fake_sample(CPU, 3 * NS_PER_SEC, 1, PERIOD, "comm=a", "x@x");
	fake_sample(CPU, 4 * NS_PER_SEC, 2, PERIOD, "comm=b", "x@x");
	fake_sample(CPU, 9 * NS_PER_SEC, 4, PERIOD, "comm=a", "y@x");
	fake_sample(CPU, 35 * NS_PER_SEC, 8, PERIOD, "comm=a", "x@x");
	fake_sample(CPU, 36 * NS_PER_SEC, 16, PERIOD, "pid=1", "x@x");
	fake_sample(CPU, 36 * NS_PER_SEC, 2, PERIOD, "comm=c", "x@x");
	ask(&a, &r, &g);
	CHECK(g.count == 4 && g.step_ns == 10 * NS_PER_SEC);
	CHECK_STR(g.unit, "nanoseconds");
	CHECK_STR(g.series[0].labels[0], "");
	CHECK_STR(g.series[1].labels[0], "a");
	CHECK_STR(g.series[2].labels[0], "b"); /* as large as c, and before it */
	CHECK(g.series[1].total == 13 * PERIOD && g.series[1].count == 2);
	CHECK(g.series[1].points[0].time_ns == 0 && g.series[1].points[0].value == 5 * PERIOD);
	CHECK(g.series[1].points[1].time_ns == 30 * NS_PER_SEC);
	arena_deinit(&a);

	r.limit = 1;
	ask(&a, &r, &g);
	CHECK(g.count == 2 && g.series[0].labels && !g.series[1].labels);
	CHECK(g.series[1].total == 17 * PERIOD && g.series[1].count == 2);
	CHECK(g.series[1].points[0].value == 7 * PERIOD && g.series[1].points[0].count == 3);
	CHECK(g.series[1].points[1].value == 10 * PERIOD);
	arena_deinit(&a);

	r.by_count = 0;
	ask(&a, &r, &g);
	CHECK(g.count == 1 && g.series[0].total == 33 * PERIOD && g.series[0].labels);
}

static void chooses_the_step(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t range_s, want_s;
	} cases[] = {
		{ "a minute", 60, 10 },
		{ "a quarter of an hour", 900, 10 },
		{ "an hour", 3600, 20 },
		{ "six hours", 6 * 3600, 120 },
		{ "a day", 86400, 300 },
		{ "a week", 7 * 86400, 3600 },
		{ "a year", 365 * 86400, 2 * 86400 },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct query_graph g;
		struct query_request r = fake_request(CPU);
		r.from_ns = 86400 * NS_PER_SEC;
		r.to_ns = r.from_ns + c->range_s * NS_PER_SEC;
		ask(&a, &r, &g);
		if (g.step_ns != c->want_s * NS_PER_SEC)
			print_error(
				"[%s] got %lld s\n", c->name, (long long)(g.step_ns / NS_PER_SEC));
		CHECK_CASE(c, g.step_ns == c->want_s * NS_PER_SEC);
		CHECK_CASE(c, g.count == 0);
	}
}

static void refuses_too_many_points(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_graph g;
	struct query_request r = fake_request(CPU);
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	r.to_ns = 86400 * NS_PER_SEC;
	r.step_ns = NS_PER_SEC;
	CHECK(query_series(&fake_engine, &r, &a, &g, &e) == E_INVALID);
	CHECK(strstr(e.text, "at most 20000 points"));
	r.from_ns = INT64_MIN;
	r.to_ns = INT64_MAX;
	r.step_ns = 1;
	CHECK(query_series(&fake_engine, &r, &a, &g, &e) == E_INVALID);
	r.step_ns = 0;
	r.match = STR("main");
	CHECK(query_series(&fake_engine, &r, &a, &g, &e) == E_INVALID);
	CHECK(strncmp(e.text, "match: ", 7) == 0);
	r.match = STR("");
	CHECK_OK(query_series(&fake_engine, &r, &a, &g, &e), &e);
	fake_error = E_IO;
	CHECK(query_series(&fake_engine, &r, &a, &g, &e) == E_IO);
	fake_error = OK;
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(sums_by_labels), WITH_STORE(chooses_the_step),
	WITH_STORE(refuses_too_many_points))
