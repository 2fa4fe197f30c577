/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory/memory_share.h"

#include "base/clock.h"
#include "tests/test.h"

#include <unistd.h>

enum { MIB = 1 << 20, THREADS = 4, ROUNDS = 300 };
#define SOON (clock_monotonic_ns() + 60 * NS_PER_SEC) /* for ever, if it does not come */

static struct memory_share share;

static int setup(void **state)
{
	(void)state;
	memory_share_init(&share, 4 * MIB);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	CHECK(memory_used(&share) == 0);
	memory_share_deinit(&share);
	return 0;
}

static void what_fits_is_given(void **state)
{
	(void)state;
	struct memory_holder a = { 0 }, b = { 0 };
	CHECK(memory_take(&share, &a, 3 * MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, 2 * MIB, false, 0) == MEMORY_WAIT);
	memory_leave(&share, &b);
	CHECK(memory_take(&share, &b, MIB, false, 0) == MEMORY_GOT);
	memory_take_anyway(&share, &a, MIB);
	CHECK(memory_used(&share) == 5 * MIB);
	memory_give(&share, &a, 4 * MIB);
	memory_give(&share, &b, MIB);
}

static void alone_is_served(void **state)
{
	(void)state;
	struct memory_holder a = { 0 }, b = { 0 };
	CHECK(memory_take(&share, &a, 5 * MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &a, 5 * MIB, true, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, 1, false, 0) == MEMORY_WAIT);
	memory_give(&share, &a, 10 * MIB);
	CHECK(memory_take(&share, &b, 1, false, 0) == MEMORY_GOT);
	memory_give(&share, &b, 1);
}

static void near_the_limit_the_oldest_gets_more(void **state)
{
	(void)state;
	struct memory_holder a = { 0 }, b = { 0 };
	CHECK(memory_take(&share, &a, MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, 1, true, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &a, 1, true, 0) == MEMORY_GOT);
	memory_give(&share, &a, MIB + 1);
	CHECK(memory_take(&share, &b, 1, true, 0) == MEMORY_GOT);
	memory_give(&share, &b, MIB + 1);
}

/* A large one that waits is not passed by small ones that come later. */
static void who_waits_goes_first(void **state)
{
	(void)state;
	struct memory_holder a = { 0 }, large = { 0 }, small = { 0 };
	CHECK(memory_take(&share, &a, MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &large, 4 * MIB, false, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &small, 1, false, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &a, MIB, false, 0) == MEMORY_GOT); /* who is in gets done */
	memory_give(&share, &a, 2 * MIB);
	CHECK(memory_take(&share, &small, 1, false, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &large, 4 * MIB, false, 0) == MEMORY_GOT);
	memory_give(&share, &large, 4 * MIB);
	CHECK(memory_take(&share, &small, 1, false, 0) == MEMORY_GOT);
	memory_give(&share, &small, 1);
}

/* Two that each hold half: the younger gives way, and comes back when the older one is done. */
static void the_youngest_yields(void **state)
{
	(void)state;
	struct memory_holder a = { 0 }, b = { 0 }, c = { 0 };
	CHECK(memory_take(&share, &a, 2 * MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, 2 * MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, MIB, false, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &a, MIB, false, 0) == MEMORY_WAIT);
	CHECK(memory_take(&share, &b, MIB, false, 0) == MEMORY_YIELD);
	memory_leave(&share, &b);
	memory_give(&share, &b, 2 * MIB);
	CHECK(memory_take(&share, &a, MIB, false, 0) == MEMORY_GOT);
	CHECK(memory_await(&share, &b, 0) == MEMORY_WAIT); /* it needed three */
	CHECK(memory_take(&share, &c, 1, false, 0) == MEMORY_WAIT);
	memory_give(&share, &a, 3 * MIB);
	CHECK(memory_await(&share, &b, SOON) == MEMORY_GOT);
	CHECK(memory_take(&share, &b, 3 * MIB, false, 0) == MEMORY_GOT);
	CHECK(b.age < c.age);
	memory_leave(&share, &c);
	memory_give(&share, &b, 3 * MIB);
}

/* Each needs more than half, in steps: all of them get it. */
static void *take_in_steps(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		struct memory_holder h = { 0 };
		uint64_t want = (uint64_t)(1 + i % 5) * MIB;
		while (h.held < want) {
			enum memory_got got = memory_take(&share, &h, MIB / 2, false, SOON);
			CHECK(got != MEMORY_WAIT);
			if (got == MEMORY_GOT)
				continue;
			memory_leave(&share, &h);
			memory_give(&share, &h, h.held);
			CHECK(memory_await(&share, &h, SOON) == MEMORY_GOT);
		}
		memory_give(&share, &h, h.held);
	}
	return NULL;
}

static void all_are_served(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, take_in_steps, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
TEST_MAIN(TEST(what_fits_is_given), TEST(alone_is_served),
	TEST(near_the_limit_the_oldest_gets_more), TEST(who_waits_goes_first),
	TEST(the_youngest_yields), TEST(all_are_served))
