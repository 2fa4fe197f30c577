/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tables/bitmap.h"
#include "test.h"

static void takes_the_first_run_that_fits(void **state)
{
	(void)state;
	struct bitmap r;
	CHECK(bitmap_init(&r, 200) == OK);
	CHECK(bitmap_take(&r, 10) == 0);
	CHECK(bitmap_take(&r, 100) == 10);
	CHECK(bitmap_take(&r, 90) == 110);
	CHECK(bitmap_take(&r, 1) == BITMAP_NONE);
	bitmap_release(&r, 60, 70); /* across words */
	CHECK(bitmap_take(&r, 71) == BITMAP_NONE);
	CHECK(bitmap_take(&r, 70) == 60);
	CHECK(r.used == 200);
	bitmap_deinit(&r);
}

/* Against a plain array of bytes. */
static void agrees_with_a_plain_search(void **state)
{
	(void)state;
	enum { COUNT = 517, STEPS = 20000, HELD = 64 };
	struct bitmap r;
	static bool taken[COUNT];
	uint32_t held[HELD][2] = { { 0 } };
	uint32_t seed = 9;
	CHECK(bitmap_init(&r, COUNT) == OK);
	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1664525u + 1013904223u;
		uint32_t i = seed >> 26;
		if (held[i][1]) {
			bitmap_release(&r, held[i][0], held[i][1]);
			memset(taken + held[i][0], 0, held[i][1]);
			held[i][1] = 0;
			continue;
		}
		uint32_t len = 1 + ((seed >> 8) & 31);
		uint32_t want = BITMAP_NONE;
		for (uint32_t at = 0, free_here = 0; at < COUNT && want == BITMAP_NONE; at++) {
			free_here = taken[at] ? 0 : free_here + 1;
			if (free_here == len)
				want = at + 1 - len;
		}
		uint32_t got = bitmap_take(&r, len);
		CHECK(got == want);
		if (got == BITMAP_NONE)
			continue;
		memset(taken + got, 1, len);
		held[i][0] = got;
		held[i][1] = len;
	}
	bitmap_deinit(&r);
}

TEST_MAIN(cmocka_unit_test(takes_the_first_run_that_fits),
	cmocka_unit_test(agrees_with_a_plain_search))
