/* SPDX-License-Identifier: Apache-2.0 */
/* How many slabs are given out in which time. */
#include "agent/broker/slab_grants.h"
#include "test.h"

static void takes_turns_by_the_budget(void **state)
{
	(void)state;
	CHECK(slab_grants_turn_ns(1) == 60 * NS_PER_SEC &&
		slab_grants_turn_ns(32) == 60 * NS_PER_SEC);
	CHECK(slab_grants_turn_ns(64) == 30 * NS_PER_SEC);
}

static uint32_t give_all(struct slab_grants *g, uint32_t max, int64_t now_ns)
{
	uint32_t count = 0;
	while (slab_grants_take(g, max, now_ns))
		count++;
	return count;
}

static void gives_out_again_what_may_have_come_back(void **state)
{
	(void)state;
	const uint32_t sizes[] = { 1, 4, 32, 320 };
	FOR_EACH_CASE (max, sizes) {
		struct slab_grants g = { 0 };
		int64_t turn_ns = slab_grants_turn_ns(*max), now = 12345 * NS_PER_SEC;
		CHECK(give_all(&g, *max, now) == *max);
		CHECK(give_all(&g, *max, now + turn_ns - 1) == 0);
		CHECK(give_all(&g, *max, now + turn_ns) == 1);
		CHECK(give_all(&g, *max, now + turn_ns * 2 - 1) == 0);
		CHECK(give_all(&g, *max, now + turn_ns * 2) == 1);
		/* Never more than the budget, however long nobody asked. */
		CHECK(give_all(&g, *max, now + turn_ns * 100000) == *max);
		CHECK(give_all(&g, *max, now) == 0); /* a clock that goes back */
	}
	struct slab_grants none = { 0 };
	CHECK(give_all(&none, 0, NS_PER_SEC) == 0);
}

TEST_MAIN(cmocka_unit_test(takes_turns_by_the_budget),
	cmocka_unit_test(gives_out_again_what_may_have_come_back))
