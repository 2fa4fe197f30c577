/* SPDX-License-Identifier: Apache-2.0 */
/* Tables written by hand, after the descriptions that come with CPython. */
#include "runtimes/runtimes.h"
#include "test.h"

#define NONE 0

static const struct {
	const char *name;
	uint16_t version;
	struct str table;
	uint32_t index;
	uint32_t want; /* NONE: it is not said */
} cases[] = {
	/* 3.9: line 10 for 6 bytes, then 12, 4 bytes later 9. */
	{ "3.9: first", 0x309, STR("\x06\x02\x04\xfd"), 0, 10 },
	{ "3.9: before the change", 0x309, STR("\x06\x02\x04\xfd"), 2, 10 },
	{ "3.9: at the change", 0x309, STR("\x06\x02\x04\xfd"), 3, 12 },
	{ "3.9: back", 0x309, STR("\x06\x02\x04\xfd"), 5, 9 },
	{ "3.9: far behind", 0x309, STR("\x06\x02\x04\xfd"), 9000, 9 },
	{ "3.9: no table", 0x309, STR(""), 3, 10 },
	/* 3.10: 4 bytes of line 10, 2 of line 11, 2 without one, 2 of line 11. */
	{ "3.10: first", 0x30a, STR("\x04\x00\x02\x01\x02\x80\x02\x00"), 1, 10 },
	{ "3.10: second", 0x30a, STR("\x04\x00\x02\x01\x02\x80\x02\x00"), 2, 11 },
	{ "3.10: none", 0x30a, STR("\x04\x00\x02\x01\x02\x80\x02\x00"), 3, NONE },
	{ "3.10: after none", 0x30a, STR("\x04\x00\x02\x01\x02\x80\x02\x00"), 4, 11 },
	{ "3.10: behind the end", 0x30a, STR("\x04\x00\x02\x01\x02\x80\x02\x00"), 5, NONE },
	/* 3.11: short (2 units), one line further (1), without columns +3 (8), long -2 (1), none.
	 */
	{ "3.11: short", 0x30b, STR("\x81\x12"), 1, 10 },
	{ "3.11: behind a cut table", 0x30b, STR("\x81\x12"), 2, NONE },
	{ "3.11: a line on", 0x30b, STR("\x81\x12\xd8\x01\x02"), 2, 11 },
	{ "3.11: no columns", 0x30b, STR("\x81\x12\xd8\x01\x02\xef\x06"), 10, 14 },
	{ "3.11: long", 0x30b, STR("\x81\x12\xf0\x05\x00\x01\x02"), 2, 8 },
	{ "3.11: varint of two bytes", 0x30b, STR("\xe8\x48\x01"), 0, 10 + 36 },
	{ "3.11: without a position", 0x30b, STR("\x81\x12\xf8"), 2, NONE },
	{ "3.11: cut in an entry", 0x30b, STR("\x81\x12\xf0\x05\x00"), 2, NONE },
	{ "3.11: no entry", 0x30b, STR("\x01\x12"), 0, NONE },
	{ "3.14: as 3.11", 0x30e, STR("\x81\x12\xd8\x01\x02"), 2, 11 },
};

static void finds_lines(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		uint32_t line = NONE;
		CHECK_CASE(c, cpython_line(c->version, 10, c->table, c->index, &line) ==
				      (c->want != NONE));
		CHECK_CASE(c, line == c->want);
	}
}

static void says_no_line_below_one(void **state)
{
	(void)state;
	uint32_t line = 77;
	CHECK(!cpython_line(0x309, 10, STR("\x00\x80"), 0, &line) && line == 77);
}

/* To 3.9 the last line goes on to the end of the code: not where the table was cut. */
static void ends_where_a_table_was_cut(void **state)
{
	(void)state;
	static uint8_t table[CPYTHON_LINES_BYTES_MAX];
	for (size_t i = 0; i < sizeof(table); i++)
		table[i] = i % 2 ? 1 : 2; /* each instruction a line */
	uint32_t line = 77, entries = sizeof(table) / 2;
	CHECK(cpython_line(0x309, 10, str_make(table, sizeof(table)), entries - 1, &line));
	CHECK(line == 10 + entries - 1);
	line = 77;
	CHECK(!cpython_line(0x309, 10, str_make(table, sizeof(table)), entries, &line));
	CHECK(line == 77);
	CHECK(cpython_line(0x309, 10, str_make(table, sizeof(table) - 2), entries, &line));
	CHECK(line == 10 + entries - 1);
}

TEST_MAIN(cmocka_unit_test(finds_lines), cmocka_unit_test(says_no_line_below_one),
	cmocka_unit_test(ends_where_a_table_was_cut))
