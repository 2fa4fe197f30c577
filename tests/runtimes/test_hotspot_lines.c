/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes.h"
#include "test.h"

#define OLD (17 << 8)
#define NEW (21 << 8)

static uint32_t line(uint16_t version, const char *table, size_t len, uint32_t index)
{
	uint32_t out = 0;
	return hotspot_line(version, str_make(table, len), index, &out) ? out : 0;
}
#define LINE(version, table, index) line(version, table, sizeof(table) - 1, index)

/* Line 12 from byte 0, 13 from byte 4, 15 from byte 10: the first one is too far for one byte. */
static const char old[] = "\xff\x00\x18\x21\x32\x00";
static const char new[] = "\xff\x01\x19\x21\x32\x00";

static void reads_pairs_in_both_forms(void **state)
{
	(void)state;
	CHECK(LINE(OLD, old, 0) == 12 && LINE(OLD, old, 3) == 12 && LINE(OLD, old, 4) == 13);
	CHECK(LINE(OLD, old, 9) == 13 && LINE(OLD, old, 10) == 15 && LINE(OLD, old, 9999) == 15);
	CHECK(LINE(NEW, new, 0) == 12 && LINE(NEW, new, 4) == 13 && LINE(NEW, new, 10) == 15);
}

static void reads_numbers_of_several_bytes_and_back_steps(void **state)
{
	(void)state;
	/* 1,000 is 2,000 as a signed number: 192 + 16, then 28: 208 + 28 * 64; then 3 lines back
	 * after 2 bytes: 4, 5 */
	static const char old_long[] = "\xff\x00\xd0\x1c\xff\x04\x05\x00";
	static const char new_long[] = "\xff\x01\xd1\x1d\xff\x05\x06\x00";
	CHECK(LINE(OLD, old_long, 0) == 1000 && LINE(OLD, old_long, 2) == 997);
	CHECK(LINE(NEW, new_long, 0) == 1000 && LINE(NEW, new_long, 2) == 997);
}

static void says_nothing_where_the_table_does_not(void **state)
{
	(void)state;
	CHECK(LINE(OLD, "", 0) == 0 && LINE(OLD, "\0", 0) == 0);
	CHECK(LINE(OLD, "\xff", 0) == 0 && LINE(OLD, "\xff\x00", 0) == 0);
	CHECK(LINE(OLD, "\x21\x00", 3) == 0);         /* begins behind it */
	CHECK(LINE(OLD, "\xff\x00\x19\x00", 0) == 0); /* line -13 */
	/* What follows the end is not looked at. */
	CHECK(LINE(OLD, "\xff\x00\x18\x00\x0f\x0f", 50) == 12);
}

TEST_MAIN(cmocka_unit_test(reads_pairs_in_both_forms),
	cmocka_unit_test(reads_numbers_of_several_bytes_and_back_steps),
	cmocka_unit_test(says_nothing_where_the_table_does_not))
