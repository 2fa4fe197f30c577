/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#define STEP (10 * NS_PER_SEC)

static void chooses_by_calls_and_frames(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	const struct str by[] = { STR("comm") }, calls[] = { STR("main"), STR("work") };
	struct filter_condition without = {
		.field = FILTER_SHOWN, .op = FILTER_IS_NOT, .text = STR("slow")
	};
	const struct frame_filter frames = {
		.of_stack = true, .conditions = &without, .condition_count = 1, .some_frame = true
	};
	fake_sample(CPU, 10 * NS_PER_SEC, 2, PERIOD, "comm=a", "main@x;work@x");
	fake_sample(CPU, 12 * NS_PER_SEC, 3, PERIOD, "comm=a", "main@x;work@x;slow@x");
	fake_sample(CPU, 12 * NS_PER_SEC, 7, PERIOD, "comm=a", "main@x;idle@x");
	fake_sample(CPU, 30 * NS_PER_SEC, 1, PERIOD, "comm=a", "main@x");
	fake_sample(CPU, 30 * NS_PER_SEC, 4, PERIOD, "comm=b", "main@x;work@x");
	fake_sample(CPU, 30 * NS_PER_SEC, 5, PERIOD, "", "main@x;work@x");
	struct query_request r = fake_request(CPU);
	r.to_ns = 100 * NS_PER_SEC;
	r.step_ns = STEP;
	r.counts = true;
	r.calls = calls;
	r.call_count = 2;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range_chosen(&fake_engine, &r, by, 1, &a, &range, &e), &e);
	CHECK(range.count == 3);
	for (size_t i = 0; i < range.count; i++) {
		const struct query_range_series *s = &range.series[i];
		bool is_a = str_eq(s->values[0], STR("a")), is_b = str_eq(s->values[0], STR("b"));
		CHECK(s->point_count == (is_a ? 2 : 1));
		CHECK(s->points[0].value == (is_a ? 5 : is_b ? 4 : 5));
		CHECK(!is_a ||
			(s->points[1].value == 0 && s->points[1].time_ns == 30 * NS_PER_SEC));
	}
	r.frames = &frames;
	const struct str none[] = { STR("none") };
	CHECK_OK(query_range_chosen(&fake_engine, &r, none, 1, &a, &range, &e), &e);
	CHECK(range.count == 1 && range.series[0].point_count == 2);
	CHECK(range.series[0].points[0].value == 2 && range.series[0].points[1].value == 9);
}

/* What one step of one program has by itself, as a flame graph. */
static int64_t alone(const struct query_request *all, const char *comm, int64_t begin_ns)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_flame flame;
	struct err e = { 0 };
	char selector[128];
	struct query_request r = *all;
	snprintf(selector, sizeof(selector), CPU "{comm=\"%s\"}", comm);
	r.selector = str_of(selector);
	r.from_ns = begin_ns;
	r.to_ns = begin_ns + STEP;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_flame(&fake_engine, &r, &a, &flame, &e), &e);
	return flame.total[0];
}

/* A report of its own for each step gives the same, also of values below zero. */
static void steps_are_as_each_by_itself(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	const struct str by[] = { STR("comm") }, calls[] = { STR("main"), STR("work") };
	const char *comms[] = { "a", "b", "" };
	const char *stacks[] = { "main@x", "main@x;work@x", "main@x;work@x;slow@x", "main@x;idle@x",
		"other@x;main@x;work@x", "main>work>deep@x" };
	uint64_t random = 3;
	for (int i = 0; i < 60; i++) {
		char labels[32];
		random = hash_u64(random + 1);
		int64_t value = (int64_t)(random >> 16 & 7) - 2;
		snprintf(labels, sizeof(labels), "comm=%s", comms[random % 3]);
		fake_sample(CPU, i * NS_PER_SEC, value, PERIOD, random % 3 == 2 ? "" : labels,
			stacks[random / 3 % ARRAY_COUNT(stacks)]);
	}
	struct query_request r = fake_request(CPU);
	r.to_ns = 100 * NS_PER_SEC;
	r.step_ns = STEP;
	r.counts = true;
	r.calls = calls;
	r.call_count = ARRAY_COUNT(calls);
	arena_init(&a, 1 << 20);
	CHECK_OK(query_range_chosen(&fake_engine, &r, by, 1, &a, &range, &e), &e);
	int64_t sum = 0;
	size_t points = 0;
	for (size_t i = 0; i < range.count; i++)
		for (size_t k = 0; k < range.series[i].point_count; k++) {
			const struct query_range_point *p = &range.series[i].points[k];
			char comm[16];
			snprintf(comm, sizeof(comm), "%.*s", STR_ARG(range.series[i].values[0]));
			CHECK(p->value == alone(&r, comm, p->time_ns));
			sum += p->value;
			points++;
		}
	CHECK(points > 12 && sum != 0);
}

static void has_limits(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_range range;
	struct err e = { 0 };
	struct str by[QUERY_LABELS_MAX + 1];
	for (size_t i = 0; i < ARRAY_COUNT(by); i++)
		by[i] = STR("comm");
	for (int i = 0; i < 20; i++)
		fake_sample(CPU, i * NS_PER_SEC, 1, PERIOD, "comm=a", "main@x");
	struct query_request r = fake_request(CPU);
	r.to_ns = 100 * NS_PER_SEC;
	r.step_ns = STEP;
	arena_init(&a, 1 << 20);
	CHECK(query_range_chosen(&fake_engine, &r, by, ARRAY_COUNT(by), &a, &range, &e) == E_LIMIT);
	CHECK(query_range_chosen(&fake_engine, &r, NULL, 0, &a, &range, &e) == E_INVALID);
	CHECK_OK(query_range_chosen(&fake_engine, &r, by, 1, &a, &range, &e), &e);
	CHECK(range.series[0].points[0].value == 10 * PERIOD);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(chooses_by_calls_and_frames), WITH_STORE(steps_are_as_each_by_itself),
	WITH_STORE(has_limits))
