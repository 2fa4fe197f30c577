/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/regex.h"
#include "test.h"

static void matches_anywhere(void **state)
{
	(void)state;
	char why[64] = "";
	struct selector_regex *r = selector_regex_new("b(c|d)+\0x", 7, why, sizeof(why));
	CHECK(r);
	CHECK(selector_regex_match(r, "abcdcd", 6));
	CHECK(!selector_regex_match(r, "abcdcd", 2));
	CHECK(!selector_regex_match(r, NULL, 0));
	selector_regex_free(r);
	selector_regex_free(NULL);
}

static void takes_the_whole_pattern(void **state)
{
	(void)state;
	char why[64] = "";
	struct selector_regex *r = selector_regex_new("^a\0b$", 5, why, sizeof(why));
	CHECK(r);
	CHECK(selector_regex_match(r, "a\0b", 3));
	CHECK(!selector_regex_match(r, "a\0c", 3));
	selector_regex_free(r);
}

static void says_why(void **state)
{
	(void)state;
	char why[12];
	CHECK(!selector_regex_new("a**", 3, why, sizeof(why)));
	CHECK_STR(str_of(why), "bad repetit");
	CHECK(!selector_regex_new("\xff", 1, why, sizeof(why)));
	CHECK_STR(str_of(why), "invalid UTF");
}

TEST_MAIN(cmocka_unit_test(matches_anywhere), cmocka_unit_test(takes_the_whole_pattern),
	cmocka_unit_test(says_why))
