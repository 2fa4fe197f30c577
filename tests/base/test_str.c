/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "test.h"

/* clang-format off */
static const struct { const char *name; const char *text; int base; bool ok; uint64_t want; } u64s[] = {
	{ "zero", "0", 10, true, 0 },
	{ "most", "18446744073709551615", 10, true, UINT64_MAX },
	{ "one more", "18446744073709551616", 10, false, 0 },
	{ "hex", "ffffffffffffffff", 16, true, UINT64_MAX },
	{ "hex, one digit more", "10000000000000000", 16, false, 0 },
	{ "empty", "", 10, false, 0 },
	{ "sign", "+1", 10, false, 0 },
	{ "blank", " 1", 10, false, 0 },
	{ "rest", "1x", 10, false, 0 },
	{ "hex digit in decimal", "1a", 10, false, 0 },
};
static const struct { const char *name; const char *text; bool ok; int64_t want; } i64s[] = {
	{ "least", "-9223372036854775808", true, INT64_MIN },
	{ "one less", "-9223372036854775809", false, 0 },
	{ "most", "9223372036854775807", true, INT64_MAX },
	{ "one more", "9223372036854775808", false, 0 },
	{ "only a sign", "-", false, 0 },
};
static const struct { const char *name; struct str s; bool ok; } utf8s[] = {
	{ "ascii", { "abc", 3 }, true },
	{ "two bytes", { "\xC3\xA9", 2 }, true },
	{ "overlong", { "\xC0\x80", 2 }, false },
	{ "overlong three", { "\xE0\x80\x80", 3 }, false },
	{ "surrogate", { "\xED\xA0\x80", 3 }, false },
	{ "U+10FFFF", { "\xF4\x8F\xBF\xBF", 4 }, true },
	{ "U+110000", { "\xF4\x90\x80\x80", 4 }, false },
	{ "cut", { "\xE2\x82", 2 }, false },
	{ "lone continuation", { "\x80", 1 }, false },
};
/* clang-format on */

static void parses_numbers(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, u64s) {
		uint64_t got = 7;
		CHECK_CASE(c, str_parse_u64(str_of(c->text), c->base, &got) == c->ok);
		CHECK_CASE(c, got == (c->ok ? c->want : 7));
	}
	FOR_EACH_CASE (c, i64s) {
		int64_t got = 7;
		CHECK_CASE(c, str_parse_i64(str_of(c->text), &got) == c->ok);
		CHECK_CASE(c, got == (c->ok ? c->want : 7));
	}
	double d;
	CHECK(str_parse_double(STR("1.5e3"), &d) && d == 1500);
	CHECK(!str_parse_double(STR("1e999"), &d) && !str_parse_double(STR("nan"), &d));
	CHECK(!str_parse_double(STR(" 1"), &d) && !str_parse_double(STR("1 "), &d));
}

static void knows_utf8(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, utf8s)
		CHECK_CASE(c, str_is_utf8(c->s) == c->ok);
}

static void cuts_and_compares(void **state)
{
	(void)state;
	struct str rest = STR("a::b:"), part;
	CHECK(str_split(&rest, ':', &part));
	CHECK_STR(part, "a");
	CHECK(str_split(&rest, ':', &part) && part.len == 0);
	CHECK(str_split(&rest, ':', &part));
	CHECK_STR(part, "b");
	CHECK(!str_split(&rest, ':', &part));
	CHECK(str_cmp(STR("a"), STR("ab")) < 0 && str_cmp(STR("b"), STR("ab")) > 0);
	CHECK(str_cmp(STR(""), STR("")) == 0 && str_eq(str_of(NULL), STR("")));
	CHECK(str_starts(STR("abc"), STR("ab")) && !str_starts(STR("a"), STR("ab")));
	CHECK(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
	CHECK_STR(str_trim(STR(" \t x y \n")), "x y");
	CHECK_STR(str_sub(STR("abc"), 1, 100), "bc");
	CHECK(str_sub(STR("abc"), 9, 1).len == 0);
	CHECK_STR(str_base_name(STR("/usr/bin/x")), "x");
	CHECK_STR(str_base_name(STR("x")), "x");
	CHECK_STR(str_base_name(STR("/usr/")), "");
	CHECK(str_eq_nocase(STR("GET"), STR("get")) && !str_eq_nocase(STR("GET"), STR("ge")));
}

TEST_MAIN(cmocka_unit_test(parses_numbers), cmocka_unit_test(knows_utf8),
	cmocka_unit_test(cuts_and_compares))
