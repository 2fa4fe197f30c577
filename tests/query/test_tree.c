/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "query/report/report.h"
#include "query/stacks/lines.h"
#include "query/stacks/tree.h"

static struct query_shown room;

static void gathers(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena work;
	struct query_tree t;
	struct query_request plain = fake_request(CPU);
	struct query_report_request r = query_shown_request(&plain, &room);
	struct err e = { 0 };
	arena_init(&work, 16 << 20);
	fake_sample(CPU, 1, 2, PERIOD, "", "main@a;0x10@a");
	fake_pending = 1;
	CHECK_OK(query_tree_make(&t, &fake_engine, &r, &work, &e), &e);
	CHECK(t.stacks.pending == 1 && t.count == 3 && t.sum == 2 * PERIOD);
	CHECK(t.stacks.v.v[2].self == 2 * PERIOD && t.total[1] == 2 * PERIOD);
	CHECK(t.stacks.per_sample == PERIOD);
	/* What the report takes counts with the view. */
	CHECK(fake_views == 1);
	CHECK_STR(t.stacks.unit, "nanoseconds");
	query_tree_deinit(&t);
	CHECK(fake_views == 0);
}

/* Samples of two periods cannot be told in time: they stay counts. */
static void keeps_counts_of_mixed_periods(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena work;
	struct query_tree t;
	struct query_request plain = fake_request(CPU);
	struct query_report_request r = query_shown_request(&plain, &room);
	struct err e = { 0 };
	arena_init(&work, 16 << 20);
	fake_sample(CPU, 1, 2, PERIOD, "", "main@a");
	fake_sample(CPU, 1, 3, 2 * PERIOD, "", "main@a");
	CHECK_OK(query_tree_make(&t, &fake_engine, &r, &work, &e), &e);
	CHECK(t.total[0] == 5 && t.stacks.per_sample == 1);
	CHECK_STR(t.stacks.unit, "count");
	query_tree_deinit(&t);
}

static void fails_without_leaks(void **state)
{
	(void)state;
	struct query_tree t;
	struct query_request plain = fake_request(CPU);
	struct query_report_request r = query_shown_request(&plain, &room);
	struct err e = { 0 };
	fake_sample(CPU, 1, 2, PERIOD, "", "main@a;f@a;g@a");
	for (size_t limit = 100; limit < 20000; limit += 100) {
		CLEANUP(arena_deinit) struct arena work;
		arena_init(&work, limit);
		enum status s = query_tree_make(&t, &fake_engine, &r, &work, &e);
		CHECK(s == OK || s == E_LIMIT);
		if (s == OK) {
			query_tree_deinit(&t);
			CHECK(limit > 100);
			return;
		}
		CHECK(fake_views == 0);
	}
	fail_msg("never succeeded");
}

static void check_tree(const char *match, int64_t total, int64_t of_first)
{
	CLEANUP(arena_deinit) struct arena work;
	struct query_tree t;
	struct query_request plain = fake_request(CPU);
	struct query_report_request r = query_shown_request(&plain, &room);
	struct err e = { 0 };
	uint32_t end;
	plain.match = str_of(match);
	r = query_shown_request(&plain, &room);
	arena_init(&work, 16 << 20);
	CHECK_OK(query_tree_make(&t, &fake_engine, &r, &work, &e), &e);
	CHECK(t.count == 5 && t.total[0] == total * PERIOD && t.total[1] == of_first * PERIOD);
	uint32_t live = 0;
	for (uint32_t i = 0; i < t.count; i++) {
		live += i > 0 && t.live[i];
		for (uint32_t k = t.first_child[i]; k < t.first_child[i + 1]; k++)
			CHECK(t.stacks.v.v[t.child[k]].parent == i && t.live[t.child[k]]);
	}
	CHECK(t.first_child[t.count] == live);
	uint32_t first = query_tree_lines(&t, 2, &end);
	CHECK(end == first + 1);
	CHECK_STR(query_line_texts(&t.stacks.tables, &t.lines.v[first]).function, "sym_0x10");
	query_tree_deinit(&t);
}

/* Whoever indexes the nodes, and whenever: once. */
static void indexes_once(void **state)
{
	(void)state;
	fake_sample(CPU, 1, 2, PERIOD, "", "main@a;0x10@a");
	fake_sample(CPU, 1, 3, PERIOD, "", "main@a;f@a");
	fake_sample(CPU, 1, 4, PERIOD, "", "g@a");
	check_tree("", 9, 5);
	check_tree("0X1", 2, 2);
	for (int how = 0; how < FAKE_BESIDE_COUNT; how++) {
		fake_have_threads((enum fake_beside)how);
		check_tree("", 9, 5);
		check_tree("0X1", 2, 2);
	}
}

static int64_t begun_with(const struct str *calls, uint32_t count)
{
	CLEANUP(arena_deinit) struct arena work;
	struct query_tree t;
	struct query_request plain = fake_request(CPU);
	struct err e = { 0 };
	plain.calls = calls;
	plain.call_count = count;
	struct query_report_request r = query_shown_request(&plain, &room);
	arena_init(&work, 16 << 20);
	CHECK_OK(query_tree_make(&t, &fake_engine, &r, &work, &e), &e);
	int64_t sum = t.sum;
	CHECK(sum + t.filtered == 10 * PERIOD);
	query_tree_deinit(&t);
	return sum / PERIOD;
}

/* Recursion, inlined calls in one location, and places without a name count as they are shown. */
static void keeps_what_begins_with_calls(void **state)
{
	(void)state;
	fake_sample(CPU, 1, 1, PERIOD, "", "main@a");
	fake_sample(CPU, 1, 2, PERIOD, "", "main@a;main@a;f@a");
	fake_sample(CPU, 1, 3, PERIOD, "", "main@a;f>g@a;h@a");
	fake_sample(CPU, 1, 4, PERIOD, "", "f@a;main@a");
	const struct str main_f_g[] = { STR("main"), STR("f"), STR("g") };
	CHECK(begun_with(main_f_g, 0) == 10);
	CHECK(begun_with(main_f_g, 1) == 6);
	CHECK(begun_with(main_f_g, 2) == 3);
	CHECK(begun_with(main_f_g, 3) == 3);
	const struct str main_main[] = { STR("main"), STR("main"), STR("g") };
	CHECK(begun_with(main_main, 2) == 2);
	CHECK(begun_with(main_main, 3) == 0);
	CHECK(begun_with(main_f_g + 1, 1) == 4);
	CHECK(begun_with(main_f_g + 2, 1) == 0);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(gathers), WITH_STORE(keeps_counts_of_mixed_periods),
	WITH_STORE(fails_without_leaks), WITH_STORE(indexes_once),
	WITH_STORE(keeps_what_begins_with_calls))
