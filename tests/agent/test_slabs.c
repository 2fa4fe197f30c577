/* SPDX-License-Identifier: Apache-2.0 */
/* How many slabs are given out in which time. What lies in them is in test_tables.c. */
#include "agent/slabs.h"
#include "test.h"

static void follows_the_budget(void **state)
{
	(void)state;
	CHECK(slabs_of_bytes(0) == 1 && slabs_of_bytes(SLAB_BYTES - 1) == 1);
	CHECK(slabs_of_bytes(64u << 20) == 32);
	CHECK(slabs_of_bytes((uint64_t)1 << 40) == SLABS_MAX);
	CHECK(slabs_turn_ns(1) == 60 * NS_PER_SEC && slabs_turn_ns(32) == 60 * NS_PER_SEC);
	CHECK(slabs_turn_ns(64) == 30 * NS_PER_SEC);
}

static uint32_t give_all(struct slabs_given *g, uint32_t max, int64_t now_ns)
{
	uint32_t count = 0;
	while (slabs_give(g, max, now_ns))
		count++;
	return count;
}

static void gives_out_again_what_may_have_come_back(void **state)
{
	(void)state;
	const uint32_t sizes[] = { 1, 4, 32, 320 };
	FOR_EACH_CASE (max, sizes) {
		struct slabs_given g = { 0 };
		int64_t turn_ns = slabs_turn_ns(*max), now = 12345 * NS_PER_SEC;
		CHECK(give_all(&g, *max, now) == *max);
		CHECK(give_all(&g, *max, now + turn_ns - 1) == 0);
		CHECK(give_all(&g, *max, now + turn_ns) == 1);
		CHECK(give_all(&g, *max, now + turn_ns * 2 - 1) == 0);
		CHECK(give_all(&g, *max, now + turn_ns * 2) == 1);
		/* Never more than the budget, however long nobody asked. */
		CHECK(give_all(&g, *max, now + turn_ns * 100000) == *max);
		CHECK(give_all(&g, *max, now) == 0); /* a clock that goes back */
	}
	struct slabs_given none = { 0 };
	CHECK(give_all(&none, 0, NS_PER_SEC) == 0);
}

TEST_MAIN(cmocka_unit_test(follows_the_budget),
	cmocka_unit_test(gives_out_again_what_may_have_come_back))
