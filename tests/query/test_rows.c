/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of random stacks with recursion, against sums that are made stack by stack. */
#include "fake.h"

#include "query/fold/rows.h"
#include "query/report/report.h"
#include "query/stacks/tree.h"

#define FUNCTIONS 12
#define DEPTH_MAX 14
#define STACKS 400

static uint32_t stacks[STACKS][DEPTH_MAX];
static uint32_t depths[STACKS];
static int64_t self[FUNCTIONS], total[FUNCTIONS], edges[FUNCTIONS][FUNCTIONS];

/* Function 0 is outermost; some stacks are many calls of few functions. */
static void make_stacks(uint32_t seed)
{
	for (uint32_t s = 0; s < STACKS; s++) {
		char text[DEPTH_MAX * 8] = "f0@a";
		uint32_t few = s % 3 ? FUNCTIONS : 3;
		depths[s] = 1;
		stacks[s][0] = 0;
		while (depths[s] < DEPTH_MAX && (depths[s] < 2 || seed % 9)) {
			seed = seed * 1664525 + 1013904223;
			uint32_t f = (seed >> 8) % few;
			stacks[s][depths[s]++] = f;
			snprintf(text + strlen(text), 8, ";f%u@a", f);
		}
		fake_sample(HEAP, 1, s + 1, 0, "", text);
	}
}

static void sum_stacks(bool invert)
{
	memset(self, 0, sizeof(self));
	memset(total, 0, sizeof(total));
	memset(edges, 0, sizeof(edges));
	for (uint32_t s = 0; s < STACKS; s++) {
		bool met[FUNCTIONS] = { 0 }, met_edge[FUNCTIONS][FUNCTIONS] = { 0 };
		int64_t value = s + 1;
		self[stacks[s][invert ? 0 : depths[s] - 1]] += value;
		for (uint32_t d = 0; d < depths[s]; d++) {
			uint32_t f = stacks[s][d];
			total[f] += met[f] ? 0 : value;
			met[f] = true;
			if (d == 0)
				continue;
			uint32_t above = stacks[s][d - 1];
			uint32_t caller = invert ? f : above, callee = invert ? above : f;
			edges[caller][callee] += met_edge[caller][callee] ? 0 : value;
			met_edge[caller][callee] = true;
		}
	}
}

static uint32_t function_of(const struct query_tree *t, uint32_t key)
{
	struct str name = profile_str(&t->stacks.tables, t->lines.keys[key].name);
	uint64_t f;
	CHECK(str_parse_u64(str_sub(name, 1, name.len - 1), 10, &f) && f < FUNCTIONS);
	return (uint32_t)f;
}

static void check_rows(const struct query_tree *t, bool invert, struct arena *a)
{
	struct query_key_rows rows;
	struct err e = { 0 };
	CHECK_OK(query_rows_make(&rows, t, invert, true, a, &e), &e);
	uint32_t functions = 0, pairs = 0;
	for (uint32_t f = 0; f < FUNCTIONS; f++) {
		functions += total[f] > 0;
		for (uint32_t g = 0; g < FUNCTIONS; g++)
			pairs += edges[f][g] > 0;
	}
	CHECK(rows.count == functions && rows.edges.len == pairs && pairs > 64);
	for (uint32_t i = 0; i < rows.count; i++) {
		uint32_t f = function_of(t, rows.order[i]);
		CHECK(rows.v[rows.order[i]].total == total[f]);
		CHECK(rows.v[rows.order[i]].self == self[f]);
	}
	for (size_t i = 0; i < rows.edges.len; i++) {
		const struct query_key_edge *edge = &rows.edges.v[i];
		CHECK(edge->total ==
			edges[function_of(t, edge->caller)][function_of(t, edge->callee)]);
	}
	query_rows_deinit(&rows);
}

static void sums_each_stack_once(void **state)
{
	(void)state;
	for (int invert = 0; invert < 2; invert++) {
		CLEANUP(arena_deinit) struct arena work;
		struct query_tree t;
		struct query_report_request r = {
			.side = { .selector = STR(HEAP), .to_ns = INT64_MAX }, .invert = invert
		};
		struct err e = { 0 };
		fake_end();
		fake_begin();
		make_stacks(invert ? 7 : 1);
		sum_stacks(invert);
		arena_init(&work, 16 << 20);
		CHECK_OK(query_tree_make(&t, &fake_engine, &r, &work, &e), &e);
		check_rows(&t, invert, &work);
		query_tree_deinit(&t);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(sums_each_stack_once))
