/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "test.h"

static void hands_out_zeroed_aligned_memory(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	for (int i = 1; i < 2000; i++) {
		unsigned char *byte = arena_alloc(&a, (size_t)i % 37 + 1, 1);
		uint64_t *word = ARENA_NEW(&a, uint64_t);
		CHECK(byte && word && ((uintptr_t)word & 7) == 0);
		CHECK(*word == 0 && *byte == 0);
		*word = UINT64_MAX;
		memset(byte, 0xFF, (size_t)i % 37 + 1);
	}
}

static void stops_at_its_limit(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1000);
	CHECK(arena_alloc(&a, 600, 1));
	CHECK(!arena_alloc(&a, 600, 1));
	CHECK(a.full && arena_status(&a) == E_LIMIT);
	CHECK(arena_alloc(&a, 400, 1));
	CHECK(!arena_alloc(&a, 1, 1));
	arena_clear(&a);
	CHECK(!a.full && arena_alloc(&a, 1000, 1));
}

static void refuses_products_that_overflow(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, SIZE_MAX);
	CHECK(!ARENA_ARRAY(&a, uint64_t, SIZE_MAX / 4));
	CHECK(!arena_copy(&a, "", SIZE_MAX));
}

static void prints_and_copies(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 16);
	CHECK_STR(str_of(arena_printf(&a, "%s-%d", "part", 7)), "part-7");
	char *copy = arena_copy(&a, "abc", 2);
	CHECK_STR(str_of(copy), "ab");
	char *large = arena_alloc(&a, 40000, 1);
	CHECK(large && large[39999] == 0);
}

TEST_MAIN(cmocka_unit_test(hands_out_zeroed_aligned_memory), cmocka_unit_test(stops_at_its_limit),
	cmocka_unit_test(refuses_products_that_overflow), cmocka_unit_test(prints_and_copies))
