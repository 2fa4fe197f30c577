/* SPDX-License-Identifier: Apache-2.0 */
/* How many slabs a budget has. What lies in them is in test_tables.c. */
#include "agent/tables/slabs.h"
#include "test.h"

static void follows_the_budget(void **state)
{
	(void)state;
	CHECK(slabs_of_bytes(0) == 1 && slabs_of_bytes(SLAB_BYTES - 1) == 1);
	CHECK(slabs_of_bytes(64u << 20) == 32);
	CHECK(slabs_of_bytes((uint64_t)1 << 40) == SLABS_MAX);
}

TEST_MAIN(cmocka_unit_test(follows_the_budget))
