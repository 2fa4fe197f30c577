/* SPDX-License-Identifier: Apache-2.0 */
#include "store/merge/merge_choose.h"
#include "tests/store/fixture.h"

#define MINUTE (60 * SEC)
#define HOUR (60 * MINUTE)
/* A day's beginning. */
#define DAY0 (19000LL * 24 * HOUR)

static struct merge_candidate part(int64_t last_ns, uint64_t kib, uint32_t level)
{
	return (struct merge_candidate){ NULL, kib << 10, level, last_ns };
}

static size_t choose(const struct merge_candidate *v, size_t n, int64_t now_ns)
{
	size_t chosen[MERGE_SOURCES_MAX];
	return merge_choose(v, n, now_ns, chosen);
}

static void young_parts_by_sixes(void **state)
{
	(void)state;
	struct merge_candidate v[8];
	int64_t now = DAY0 + 30 * MINUTE;
	for (int i = 0; i < 8; i++)
		v[i] = part(now - i * MINUTE, 100, 0);
	CHECK(choose(v, 5, now) == 0);
	CHECK(choose(v, 6, now) == 6);
	CHECK(choose(v, 8, now) == 8);
	v[0].level = 1;
	CHECK(choose(v, 6, now) == 0); /* five young ones */
}

static void a_closed_hour_becomes_one(void **state)
{
	(void)state;
	struct merge_candidate v[] = { part(DAY0 + 10 * MINUTE, 300, 1),
		part(DAY0 + 40 * MINUTE, 300, 1), part(DAY0 + 59 * MINUTE, 100, 0),
		part(DAY0 + 61 * MINUTE, 100, 0) };
	CHECK(choose(v, 4, DAY0 + 62 * MINUTE) == 0); /* late samples may come */
	CHECK(choose(v, 4, DAY0 + 66 * MINUTE) == 3);
	CHECK(choose(v + 2, 1, DAY0 + 66 * MINUTE) == 1); /* a young one is sorted at least */
	CHECK(choose(v, 1, DAY0 + 66 * MINUTE) == 0);
}

static void a_large_one_waits_for_company(void **state)
{
	(void)state;
	struct merge_candidate v[9] = { part(DAY0 + 10 * MINUTE, 100000, 1) };
	for (int i = 1; i < 9; i++)
		v[i] = part(DAY0 + 20 * MINUTE, 10, 1);
	CHECK(choose(v, 3, DAY0 + 3 * HOUR) == 0);
	CHECK(choose(v, 9, DAY0 + 3 * HOUR) == 9);
	v[0].bytes = (uint64_t)3 << 30; /* beyond the maximum: only the others */
	CHECK(choose(v, 9, DAY0 + 3 * HOUR) == 8);
}

static void hours_become_days(void **state)
{
	(void)state;
	struct merge_candidate v[24];
	for (int i = 0; i < 24; i++)
		v[i] = part(DAY0 + i * HOUR + 59 * MINUTE, 1000, 2);
	CHECK(choose(v, 6, DAY0 + 5 * HOUR) == 0);
	CHECK(choose(v, 6, DAY0 + 6 * HOUR + 10 * MINUTE) == 6);
	struct merge_candidate q[4];
	for (int i = 0; i < 4; i++)
		q[i] = part(DAY0 + i * 6 * HOUR + HOUR, 6000, 3);
	CHECK(choose(q, 4, DAY0 + 23 * HOUR) == 0);
	CHECK(choose(q, 4, DAY0 + 25 * HOUR) == 4);
	CHECK(choose(q, 0, DAY0) == 0);
}

TEST_MAIN(cmocka_unit_test(young_parts_by_sixes), cmocka_unit_test(a_closed_hour_becomes_one),
	cmocka_unit_test(a_large_one_waits_for_company), cmocka_unit_test(hours_become_days))
