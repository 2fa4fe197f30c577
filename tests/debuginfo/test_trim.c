/* SPDX-License-Identifier: Apache-2.0 */
/* A trimmed table says of each kept address what the whole one says, and of others that it lacks
 * them. */
#include "known.h"

#include <stdlib.h>

static char trimmed_path[64];

/* The trimmed table of `t`, with these addresses. */
static struct debuginfo_table *trim(
	const struct debuginfo_table *t, const uint64_t *keep, size_t count)
{
	struct debuginfo_trim *x;
	struct debuginfo_table *out;
	struct err e = { 0 };
	snprintf(trimmed_path, sizeof(trimmed_path), "/tmp/firn-test-trim-XXXXXX");
	int fd = mkstemp(trimmed_path);
	CHECK(fd >= 0);
	close(fd);
	CHECK_OK(debuginfo_trim_new(t, &x, &e), &e);
	for (size_t i = 0; i < count; i++)
		debuginfo_trim_keep(x, keep[i]);
	CHECK(debuginfo_trim_count(x) <= count);
	CHECK_OK(debuginfo_trim_write(x, trimmed_path, &e), &e);
	debuginfo_trim_free(x);
	CHECK_OK(debuginfo_table_open(trimmed_path, &out, &e), &e);
	unlink(trimmed_path);
	return out;
}

static void check_same(
	const struct debuginfo_table *t, const struct debuginfo_table *whole, uint64_t at)
{
	struct debuginfo_frame a[8], b_[8];
	uint32_t n = debuginfo_table_find(whole, at, a, 8);
	CHECK(debuginfo_table_find(t, at, b_, 8) == n);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(str_eq(a[i].name, b_[i].name) && str_eq(a[i].file, b_[i].file));
		CHECK(a[i].line == b_[i].line && a[i].start_line == b_[i].start_line);
		CHECK(a[i].inlined == b_[i].inlined);
	}
	CHECK(!debuginfo_table_lacks(t, at));
}

static void keeps_what_addresses_need(void **state)
{
	(void)state;
	uint32_t hot = node("hot", "a.c", 0, 0), cold = node("cold", "a.c", 0, 0);
	uint32_t inlined = node("inlined", "b.h", 11, hot);
	node("never", "b.h", 12, cold);
	add(0x1000, 0x1010, hot, 1);
	add(0x1010, 0x1020, inlined, 33);
	add(0x1020, 0x1030, hot, UINT32_MAX); /* what a file may say */
	add(0x1030, 0x1040, hot, 3);
	add(0x1050, 0x1060, cold, 4);
	add(0x9000000, 0x9000010, cold, 5);
	CHECK(VEC_PUSH(&b.segments, (struct symtab_segment){ 0x10, 0x1000, 0x100 }));
	b.flags = SYMTAB_DWARF;
	struct debuginfo_table *whole = finish();
	/* One of the hole between two functions, and one of no region, where nothing is known. */
	static const uint64_t keep[] = { 0x1015, 0x1011, 0x1025, 0x1045, 0x5000000 };
	struct debuginfo_table *t = trim(whole, keep, ARRAY_COUNT(keep));
	struct debuginfo_frame f[8];
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	CHECK(info.trimmed && info.has_dwarf && info.functions == 2);
	debuginfo_table_describe(whole, &info);
	CHECK(!info.trimmed);
	check_same(t, whole, 0x1010);
	check_same(t, whole, 0x1045);
	check_same(t, whole, 0x5000000);
	check_same(t, whole, 0xfff);
	check_frame(t, 0x1020, 0, "hot", "a.c", 0);
	CHECK(!debuginfo_table_lacks(t, 0x1020) && !debuginfo_table_lacks(whole, 0x1020));
	/* The rest of the function is known as such. */
	check_frame(t, 0x1030, 0, "hot", "a.c", 0);
	CHECK(debuginfo_table_lacks(t, 0x1030) && debuginfo_table_lacks(t, 0x1000));
	CHECK(debuginfo_table_find(t, 0x1050, f, 8) == 0 && debuginfo_table_lacks(t, 0x1050));
	CHECK(debuginfo_table_lacks(t, 0x9000000));
	uint64_t begin_at, end_at, vaddr;
	CHECK(debuginfo_table_bounds(t, 0x1015, &begin_at, &end_at));
	CHECK(begin_at == 0x1000 && end_at == 0x1040);
	CHECK(debuginfo_table_vaddr(t, 0x15, &vaddr) && vaddr == 0x1005);
	/* Once more, of what is trimmed: what it lacks stays so. */
	static const uint64_t again[] = { 0x1011, 0x1030 };
	struct debuginfo_table *twice = trim(t, again, ARRAY_COUNT(again));
	check_same(twice, whole, 0x1011);
	check_frame(twice, 0x1030, 0, "hot", "a.c", 0);
	CHECK(debuginfo_table_lacks(twice, 0x1030));
	debuginfo_table_close(twice);
	debuginfo_table_close(t);
	debuginfo_table_close(whole);
}

/* Of thousands of functions in several regions: what is kept is the same, and the size goes with
 * it. */
static void is_as_large_as_what_is_kept(void **state)
{
	(void)state;
	enum { FUNCTIONS = 400, EACH = 6 };
	static uint64_t keep[FUNCTIONS];
	size_t kept = 0;
	uint64_t at = 0x400000;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "function_number_%u", i);
		uint32_t outer = node(name, "a.c", 0, 0),
			 inner = node("inner", "b.h", i + 1, outer);
		at += i % 100 == 99 ? (uint64_t)5 << 30 : i % 7;
		for (uint32_t j = 0; j < EACH; j++, at += 9) {
			add(at, at + 9, j % 2 ? inner : outer, j + 1);
			if (i % 20 == 3 && j == 3)
				keep[kept++] = at + 4;
		}
	}
	struct debuginfo_table *whole = finish(), *t = trim(whole, keep, kept);
	struct debuginfo_table_info all, some;
	debuginfo_table_describe(whole, &all);
	debuginfo_table_describe(t, &some);
	CHECK(some.bytes * 5 < all.bytes && some.functions == kept + 1);
	for (size_t i = 0; i < kept; i++)
		check_same(t, whole, keep[i]);
	struct debuginfo_table *none = trim(whole, NULL, 0);
	CHECK(debuginfo_table_lacks(none, keep[0]));
	debuginfo_table_close(none);
	debuginfo_table_close(t);
	debuginfo_table_close(whole);
}

TEST_MAIN(KNOWN(keeps_what_addresses_need), KNOWN(is_as_large_as_what_is_kept))
