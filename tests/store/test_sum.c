/* SPDX-License-Identifier: Apache-2.0 */
/*
 * However samples came to lie (memtable, young parts, merged parts, after a restart), sums by stack
 * equal the model's.
 */
#include "tests/store/model_check.h"

static void check_ranges(struct store *s, const struct model *m)
{
	model_check(s, m, INT64_MIN, INT64_MAX);
	model_check(s, m, T0 + 20 * SEC, T0 + 50 * SEC);
	model_check(s, m, T0 - 100 * SEC, T0 - 50 * SEC);
}

static void sums_equal_the_model(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 42 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int round = 0; round < 6; round++) {
		model_append(&m, s, 100, T0 + round * 10 * SEC, 10 * SEC);
		model_append(&m, s, 37, T0, 60 * SEC); /* late ones */
		if (round == 0)
			check_ranges(s, &m);
		if (round % 2)
			CHECK_OK(store_flush(s, &e), &e);
	}
	check_ranges(s, &m);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_ranges(s, &m);
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK(s->parts.len == 1);
	check_ranges(s, &m); /* the bounds are multiples of the resolution */
	model_append(&m, s, 50, T0 + 30 * SEC, 10 * SEC);
	check_ranges(s, &m);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_ranges(s, &m);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static bool give_up(void *ctx)
{
	(void)ctx;
	return true;
}

static void limits_and_cancellation(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 1 };
	struct store *s;
	struct store_view *v;
	struct samples_tree t = { .total = 77 };
	struct fx_query f;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 500, T0, 10 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	q->cancel = give_up;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_CANCELED);
	q->cancel = NULL;
	q->deadline_ns = 1;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_TIMEOUT);
	q->deadline_ns = 0;
	q->memory_bytes = 1000;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_LIMIT);
	CHECK(strstr(e.text, "memory") != NULL);
	q->memory_bytes = 0;
	q->to_ns = q->from_ns;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_INVALID);
	q->to_ns = INT64_MAX;
	f.selector.has_type = false;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_INVALID);
	CHECK(strstr(e.text, "names no profile type") != NULL);
	CHECK(t.total == 77); /* untouched by failures */
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* The points in time of a gauge are gathered while memory lasts. */
static void many_points_of_a_gauge(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct samples_tree t;
	struct fx_query f;
	struct profile p;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(profile_init(&p, 64 << 20) == OK);
	uint32_t head = fx_head(&p, "inuse", false, 1), stack, frame = fx_frame(&p, "/bin/x", 1);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	for (int i = 0; i < 100000; i++)
		fx_sample(&p, T0 + i, 7, head, stack, 0, 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, "inuse:samples:count:cpu:nanoseconds", 0, INT64_MAX);
	const uint64_t step = (TEST_TSAN ? 256 : 64) << 10; /* one thread asks */
	for (q->memory_bytes = 64 << 10; q->memory_bytes < 4 << 20; q->memory_bytes += step) {
		enum status st = store_sum_stacks(v, q, &t, &e);
		CHECK(st == OK || st == E_LIMIT);
		if (st == OK) {
			CHECK(t.total == 7);
			samples_tree_deinit(&t);
		}
	}
	CHECK(memory_used(&s->queries_memory) == 0);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

/* Threads that help each other with one source lose nothing: the same question again and again. */
static void helpers_lose_nothing(void **state)
{
	(void)state;
	enum { SAMPLES = 400000, STACKS = 20000, BATCH = 50000, TIMES = 120 };
	char dir[64];
	struct store *s;
	struct fx_query f;
	struct err e = { 0 };
	int64_t want = 0;
	uint64_t random = 3;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int at = 0; at < SAMPLES; at += BATCH) {
		struct profile p;
		uint32_t stack;
		CHECK(profile_init(&p, 64 << 20) == OK);
		uint32_t head = fx_head(&p, "cpu", true, 1);
		for (int i = at; i < at + BATCH; i++) {
			uint32_t frame = fx_frame(&p, "/bin/x", rnd_below(&random, STACKS));
			CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
			fx_sample(&p, T0 + i, 1 + i % 7, head, stack, 0, 0);
			want += 1 + i % 7;
		}
		CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
		profile_deinit(&p);
	}
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	for (int i = 0; i < TIMES; i++) {
		struct store_view *v;
		struct samples_tree t;
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
		CHECK(t.total == want);
		CHECK(t.sample_count == SAMPLES);
		samples_tree_deinit(&t);
		store_view_close(v);
	}
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

/* Many stacks of few points, as merged parts have them: all times of a stack, then the next one.
 * Memory is for the points. */
static void many_stacks_of_a_gauge(void **state)
{
	(void)state;
	enum { STACKS = 400, TIMES = 300, BYTES = 1 << 20 };
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct samples_tree t;
	struct samples_series *series;
	struct samples_type type;
	struct fx_query f;
	struct profile p;
	struct err e = { 0 };
	bool merged;
	size_t n;
	int64_t period;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(profile_init(&p, 64 << 20) == OK);
	uint32_t head = fx_head(&p, "inuse", false, 1), stack;
	for (int i = 0; i < STACKS * TIMES; i++) {
		uint32_t frame = fx_frame(&p, "/bin/x", 1 + (uint64_t)(i % STACKS));
		CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
		fx_sample(&p, T0 + i / STACKS * SEC, 7, head, stack, 0, 0);
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_flush(s, &e), &e);
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, "inuse:samples:count:cpu:nanoseconds", 0, INT64_MAX);
	q->memory_bytes = BYTES; /* of rows there are almost twice as many bytes */
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK(t.total == 7 * STACKS);
	samples_tree_deinit(&t);
	CHECK_OK(store_sum_series(
			 v, q, NULL, 0, 3600 * SEC, &f.arena, &series, &n, &type, &period, &e),
		&e);
	CHECK(n == 1 && series[0].point_count > 0 && series[0].points[0].value == 7 * STACKS);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(sums_equal_the_model), cmocka_unit_test(limits_and_cancellation),
	cmocka_unit_test(many_points_of_a_gauge), cmocka_unit_test(many_stacks_of_a_gauge),
	cmocka_unit_test(helpers_lose_nothing))
