/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static void sums_by_step(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	const struct str by[] = { STR("comm") };
	fake_sample(CPU, 10 * NS_PER_SEC, 2, PERIOD, "comm=a", "main@x");
	fake_sample(CPU, 12 * NS_PER_SEC, 3, PERIOD, "comm=a", "main@x");
	fake_sample(CPU, 30 * NS_PER_SEC, 1, PERIOD, "comm=a", "main@x");
	fake_sample(CPU, 30 * NS_PER_SEC, 4, PERIOD, "comm=b", "main@x");
	struct query_request r = fake_request(CPU);
	r.to_ns = 100 * NS_PER_SEC;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, by, 1, &a, &range, &e), &e);
	CHECK(range.count == 2 && range.delta && range.name_count == 1);
	CHECK_STR(range.sample_type, "cpu");
	CHECK_STR(range.unit, "nanoseconds");
	const struct query_range_series *s = &range.series[0];
	CHECK_STR(s->values[0], "a");
	CHECK(s->point_count == 2 && s->points[0].value == 5 * PERIOD);
	CHECK(s->points[0].time_ns == 10 * NS_PER_SEC && s->points[0].count == 2);
	CHECK(s->points[0].duration_ns == 10 * NS_PER_SEC);
	CHECK(s->points[0].per_second == 5.0 * PERIOD / 1e10); /* cores */
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.count == 1 && range.series[0].points[1].value == 5 * PERIOD);
}

/* Three profiles of ten seconds in a step of a minute: half of it was covered. */
static void divides_by_what_was_covered(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	for (int i = 0; i < 3; i++)
		fake_sample(CPU, i * 20 * NS_PER_SEC, 1000, PERIOD, "comm=a", "main@x");
	struct query_request r = fake_request(CPU);
	r.to_ns = 60 * NS_PER_SEC;
	r.step_ns = 60 * NS_PER_SEC;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.series[0].points[0].duration_ns == 60 * NS_PER_SEC);
	CHECK(range.series[0].points[0].per_second == 0.5);
	fake_covered_ns = 30 * NS_PER_SEC;
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.series[0].points[0].duration_ns == 30 * NS_PER_SEC);
	CHECK(range.series[0].points[0].per_second == 1.0);
}

static void derives_the_step(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	fake_sample(CPU, 1000 * NS_PER_SEC, 2, PERIOD, "", "main@x");
	struct query_request r = fake_request(CPU);
	r.to_ns = 90000 * NS_PER_SEC;
	r.limit = 100;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	/* As of our own series: 1,200 s is the first of the steps with at most 100 points. */
	CHECK(range.series[0].points[0].time_ns == 0);
	CHECK(range.series[0].points[0].duration_ns == 1200 * NS_PER_SEC);
	r.step_ns = 7 * NS_PER_SEC;
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.series[0].points[0].time_ns == 994 * NS_PER_SEC);
	r.step_ns = 1;
	CHECK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e) == E_INVALID);
	r.selector = STR("{}");
	CHECK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e) == E_INVALID);
}

static void gives_a_gauge_by_all_its_labels(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	fake_sample(HEAP, 10 * NS_PER_SEC, 2, 0, "comm=a,node=n,pid=7", "main@x");
	fake_sample(HEAP, 10 * NS_PER_SEC, 3, 0, "comm=b,node=n,pid=8", "main@x");
	struct query_request r = fake_request(HEAP);
	r.to_ns = 100 * NS_PER_SEC;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.count == 2 && !range.delta && range.name_count == 2);
	CHECK(range.series[0].points[0].per_second == 2 &&
		range.series[0].points[0].duration_ns == 0);
	const struct str by[] = { STR("node") };
	CHECK_OK(query_range(&fake_engine, &r, by, 1, &a, &range, &e), &e);
	CHECK(range.count == 1 && range.series[0].points[0].value == 5);
	CHECK_STR(range.series[0].values[0], "n");
}

static void keeps_a_gauge_whole(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct str *names = NULL;
	size_t count = 0;
	struct err e = { 0 };
	fake_sample(HEAP, 10 * NS_PER_SEC, 2, 0, "comm=a,bytes=16", "main@x");
	fake_sample(HEAP, 10 * NS_PER_SEC, 3, 0, "comm=a,bytes=32", "main@x");
	struct query_request r = fake_request(HEAP);
	r.to_ns = 100 * NS_PER_SEC;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.count == 1 && range.name_count == 1 && range.series[0].points[0].value == 5);
	CHECK_OK(query_list_labels(&fake_engine, &r, &a, &names, &count, &e), &e);
	CHECK(count == 1);
	CHECK_STR(names[0], "comm");
}

static void is_empty_without_samples(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	struct query_request r = fake_request(CPU);
	r.to_ns = 100 * NS_PER_SEC;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range(&fake_engine, &r, NULL, 0, &a, &range, &e), &e);
	CHECK(range.count == 0);
}

static void lists_names(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct samples_type *types = NULL;
	struct str *names = NULL;
	size_t count = 0;
	struct err e = { 0 };
	fake_sample(CPU, 1, 1, PERIOD, "comm=a", "main@x");
	fake_sample(HEAP, 1, 1, 0, "comm=b", "main@x");
	struct query_request r = fake_request("{}");
	arena_init(&a, 1 << 20);
	CHECK_OK(query_list_types(&fake_engine, &r, &a, &types, &count, &e), &e);
	CHECK(count == 2);
	CHECK_OK(query_list_labels(&fake_engine, &r, &a, &names, &count, &e), &e);
	CHECK(count == 1);
	r.selector = STR(HEAP);
	CHECK_OK(query_list_values(&fake_engine, &r, STR("comm"), &a, &names, &count, &e), &e);
	CHECK(count == 1);
	CHECK_STR(names[0], "b");
	r.selector = STR("{");
	CHECK(query_list_values(&fake_engine, &r, STR("comm"), &a, &names, &count, &e) ==
		E_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(sums_by_step), TEST(divides_by_what_was_covered), TEST(derives_the_step),
	TEST(gives_a_gauge_by_all_its_labels), TEST(keeps_a_gauge_whole),
	TEST(is_empty_without_samples), TEST(lists_names))
