/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static void ask(struct arena *a, const struct query_request *r, struct query_table *t)
{
	struct err e = { 0 };
	arena_init(a, 64 << 20);
	CHECK_OK(query_top(&fake_engine, r, a, t, &e), &e);
}

static void check_row(
	const struct query_table *t, uint32_t i, const char *name, int64_t self, int64_t total)
{
	CHECK(i < t->count);
	CHECK_STR(t->rows[i].name, name);
	assert_int_equal(t->rows[i].self, self);
	assert_int_equal(t->rows[i].total, total);
}

static void counts_recursion_once(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_table t;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 10, 0, "", "main@/bin/x;f@/bin/x;f@/bin/x;f@/bin/x");
	fake_sample(HEAP, 1, 5, 0, "", "main@/bin/x;f@/bin/x;g@/bin/x;f@/bin/x");
	fake_sample(HEAP, 1, 1, 0, "", "main@/bin/x;g@/bin/x");
	fake_sample(HEAP, 1, 2, 0, "", "f@/bin/y");
	ask(&a, &r, &t);
	CHECK(t.total == 18 && t.count == 4 && t.functions == 4);
	CHECK_STR(t.unit, "bytes");
	check_row(&t, 0, "f", 15, 15);
	check_row(&t, 1, "f", 2, 2);
	check_row(&t, 2, "g", 1, 6);
	check_row(&t, 3, "main", 0, 16);
	CHECK_STR(t.rows[0].binary, "x");
	CHECK_STR(t.rows[1].binary, "y");
	CHECK_STR(t.rows[0].file, "/src/f.c");
	CHECK(t.rows[0].kind == FRAME_NATIVE);
	arena_deinit(&a);
	r.limit = 2;
	ask(&a, &r, &t);
	CHECK(t.count == 2 && t.functions == 4 && t.total == 18);
	check_row(&t, 1, "f", 2, 2);
	arena_deinit(&a);
	r.by_total = true;
	ask(&a, &r, &t);
	check_row(&t, 0, "main", 0, 16);
	check_row(&t, 1, "f", 15, 15);
	arena_deinit(&a);
	r.by_total = false;
	r.match = STR("G");
	ask(&a, &r, &t);
	CHECK(t.total == 6);
	check_row(&t, 0, "f", 5, 5);
	check_row(&t, 1, "g", 1, 6);
}

static void orders_ties(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_table t;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 1, 0, "", "z@a;b@b");
	fake_sample(HEAP, 1, 1, 0, "", "z@a;a@a");
	fake_sample(HEAP, 1, 1, 0, "", "z@a;b@a");
	fake_sample(HEAP, 1, 1, 0, "", "z@a;a@a%kernel");
	ask(&a, &r, &t);
	CHECK(t.count == 5);
	check_row(&t, 0, "a", 1, 1);
	check_row(&t, 1, "a", 1, 1);
	CHECK(t.rows[0].kind == FRAME_NATIVE && t.rows[1].kind == FRAME_KERNEL);
	CHECK_STR(t.rows[2].binary, "a");
	CHECK_STR(t.rows[3].binary, "b");
	check_row(&t, 4, "z", 0, 4);
}

static void is_empty_without_samples(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_table t;
	struct query_request r = fake_request("");
	ask(&a, &r, &t);
	CHECK(t.count == 0 && t.total == 0 && t.functions == 0);
	arena_deinit(&a);
	r = fake_request(CPU "{comm=\"nobody\"}");
	fake_sample(CPU, 1, 1, PERIOD, "comm=a", "a@a");
	ask(&a, &r, &t);
	CHECK(t.count == 0 && t.total == 0);
}

static void passes_failures_on(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_table t = { .count = 77 };
	struct query_request r = fake_request(CPU);
	struct err e = { 0 };
	arena_init(&a, 64 << 20);
	fake_error = E_TIMEOUT;
	CHECK(query_top(&fake_engine, &r, &a, &t, &e) == E_TIMEOUT && t.count == 77);
	fake_error = OK;
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(counts_recursion_once), WITH_STORE(orders_ties),
	WITH_STORE(is_empty_without_samples), WITH_STORE(passes_failures_on))
