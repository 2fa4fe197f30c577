/* SPDX-License-Identifier: Apache-2.0 */
/* Overlapping symbols become disjoint ranges with the best names. */
#include "known.h"

static void symbol(const char *name, uint64_t start, uint64_t size, bool typed, bool local)
{
	struct debuginfo_symbol s = {
		.start = start,
		.end = start + size,
		.name = name,
		.rank = (uint8_t)((typed ? 0 : 4) | (size ? 0 : 2) | (local ? 1 : 0)),
		.local = local,
		.sized = size != 0,
		.typed = typed,
	};
	CHECK(VEC_PUSH(&b.symbols, s));
}

static void settles_symbols(void **state)
{
	(void)state;
	struct debuginfo_span code = { 0x1000, 0x2000 };
	CHECK(VEC_PUSH(&b.code, code));
	symbol("outer", 0x1000, 0x100, true, false);
	symbol("inner", 0x1040, 0x10, true, false); /* within outer, which goes on behind it */
	symbol("label", 0x1048, 0, false, true);    /* in a sized function: not a name */
	symbol("__write", 0x1100, 0x10, true, false);
	symbol("write", 0x1100, 0x10, true, false); /* fewer underscores */
	symbol("local", 0x1100, 0x10, true, true);
	symbol("old@@V1", 0x1110, 8, true, false);
	/* Crystal's name, and what a linker made of it */
	symbol("*A(I)", 0x1118, 8, true, false);
	symbol("*A(I)@A(T)#push<I>:A(I)", 0x1118, 8, true, false);
	symbol("assembly", 0x1200, 0, false, false); /* to the next one */
	symbol("next", 0x1280, 0, true, false);      /* to the end of the section */
	uint32_t id = node("dwarf", "d.c", 0, 0);
	add(0x1050, 0x1060, id, 9);
	struct debuginfo_table *t = finish();
	/* clang-format off */
	static const struct { uint64_t at; const char *want; } cases[] = {
		{ 0x1000, "outer" }, { 0x103f, "outer" }, { 0x1040, "inner" }, { 0x1048, "inner" },
		{ 0x104f, "inner" }, { 0x1050, "dwarf" }, { 0x1060, "outer" }, { 0x10ff, "outer" },
		{ 0x1100, "write" }, { 0x1110, "old" },
		{ 0x1118, "*A(I)@A(T)#push<I>:A(I)" }, { 0x1120, "" }, { 0x1200, "assembly" },
		{ 0x127f, "assembly" }, { 0x1280, "next" }, { 0x1fff, "next" }, { 0x2000, "" },
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct debuginfo_frame f[2] = { 0 };
		uint32_t n = debuginfo_table_find(t, cases[i].at, f, 2);
		CHECK(n == (cases[i].want[0] != '\0'));
		CHECK_STR(f[0].name, cases[i].want);
	}
	debuginfo_table_close(t);
}

TEST_MAIN(KNOWN(settles_symbols))
