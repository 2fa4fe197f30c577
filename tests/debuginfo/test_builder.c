/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces in any order become a table that a slow search agrees with. */
#include "known.h"

/* Which node is at an address, one piece after the other. */
static uint32_t slow_find(const struct debuginfo_piece *v, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		if (at >= v[i].start && at < v[i].end)
			return v[i].line;
	return 0;
}

static void agrees_with_a_slow_search(void **state)
{
	(void)state;
	enum { COUNT = 1500 };
	static struct debuginfo_piece v[COUNT];
	uint32_t id = node("f", "f.c", 0, 0);
	uint64_t at = 0x400000, seed = 1;
	for (uint32_t i = 0; i < COUNT; i++) {
		seed = hash_u64(seed + i);
		at += seed % 3 == 0 ? seed % 64 : 0;
		if (i % 500 == 499)
			at += (uint64_t)5 << 30; /* another region */
		v[i] = (struct debuginfo_piece){ at, at + 1 + (seed >> 32) % 300, id, i + 1 };
		at = v[i].end;
	}
	/* In another order than they are stored. */
	for (uint32_t i = 0; i < COUNT; i++)
		add(v[(i * 7) % COUNT].start, v[(i * 7) % COUNT].end, id, v[(i * 7) % COUNT].line);
	struct debuginfo_table *t = finish();
	for (uint32_t i = 0; i < COUNT; i++)
		for (int d = -2; d <= 2; d++) {
			uint64_t probe = (d < 0 ? v[i].start : v[i].end) + (uint64_t)d;
			struct debuginfo_frame f[2];
			uint32_t n = debuginfo_table_find(t, probe, f, 2);
			uint32_t want = slow_find(v, COUNT, probe);
			CHECK(n == (want != 0));
			CHECK(n == 0 || f[0].line == want);
		}
	debuginfo_table_close(t);
}

static void reaches_both_ends_of_the_address_space(void **state)
{
	(void)state;
	uint32_t id = node("f", "", 0, 0);
	add(0, 16, id, 1);
	add(UINT64_MAX - 16, UINT64_MAX, id, 2);
	add((uint64_t)1 << 33, (uint64_t)1 << 40, id, 3); /* wider than a region can be */
	struct debuginfo_table *t = finish();
	check_frame(t, 0, 0, "f", "", 1);
	check_frame(t, UINT64_MAX - 1, 0, "f", "", 2);
	check_frame(t, (uint64_t)1 << 33, 0, "f", "", 3);
	struct debuginfo_frame f[1];
	CHECK(debuginfo_table_find(t, UINT64_MAX, f, 1) == 0);
	debuginfo_table_close(t);
}

static void an_empty_table_is_one(void **state)
{
	(void)state;
	struct debuginfo_table *t = finish();
	struct debuginfo_frame f[1];
	CHECK(debuginfo_table_find(t, 0, f, 1) == 0);
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	CHECK(info.ranges == 0 && info.functions == 0);
	debuginfo_table_close(t);
}

static void refuses_a_table_beyond_its_limit(void **state)
{
	(void)state;
	add(0x1000, 0x1010, node("f", "f.c", 0, 0), 1);
	CHECK(debuginfo_builder_settle(&b) == OK);
	int fd = memfd_create("table", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(debuginfo_builder_write(&b, fd, 300, NULL) == E_LIMIT);
	close(fd);
}

TEST_MAIN(KNOWN(agrees_with_a_slow_search), KNOWN(reaches_both_ends_of_the_address_space),
	KNOWN(an_empty_table_is_one), KNOWN(refuses_a_table_beyond_its_limit))
