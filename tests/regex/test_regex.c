/* SPDX-License-Identifier: Apache-2.0 */
#include "regex/regex.h"
#include "test.h"

#include <string.h>

static void matches_anywhere(void **state)
{
	(void)state;
	char why[64] = "";
	struct regex *r = regex_new("b(c|d)+\0x", 7, why, sizeof(why));
	CHECK(r);
	CHECK(regex_match(r, "abcdcd", 6));
	CHECK(!regex_match(r, "abcdcd", 2));
	CHECK(!regex_match(r, NULL, 0));
	regex_free(r);
	regex_free(NULL);
}

static void takes_the_whole_pattern(void **state)
{
	(void)state;
	char why[64] = "";
	struct regex *r = regex_new("^a\0b$", 5, why, sizeof(why));
	CHECK(r);
	CHECK(regex_match(r, "a\0b", 3));
	CHECK(!regex_match(r, "a\0c", 3));
	regex_free(r);
}

static void says_why(void **state)
{
	(void)state;
	char why[12];
	CHECK(!regex_new("a**", 3, why, sizeof(why)));
	CHECK_STR(str_of(why), "bad repetit");
	CHECK(!regex_new("\xff", 1, why, sizeof(why)));
	CHECK_STR(str_of(why), "invalid UTF");
}

static void tells_the_groups(void **state)
{
	(void)state;
	char why[64] = "";
	struct regex_span spans[REGEX_GROUPS_MAX];
	size_t count = 0;
	struct regex *r = regex_new_capturing("(?P<head>a)(x)?(.*)", 19, why, sizeof(why));
	CHECK(r);
	CHECK(regex_capture(r, "ab\nc", 4, spans, &count));
	assert_int_equal(count, 4);
	CHECK(spans[0].begin == 0 && spans[0].end == 4);
	CHECK(spans[1].begin == 0 && spans[1].end == 1);
	CHECK(spans[2].begin > spans[2].end);
	CHECK(spans[3].begin == 1 && spans[3].end == 4);
	CHECK(regex_capture(r, "a", 1, spans, &count));
	CHECK(spans[3].begin == 1 && spans[3].end == 1);
	CHECK(!regex_capture(r, "ba", 2, spans, &count)); /* the whole, or nothing */
	CHECK(!regex_capture(r, NULL, 0, spans, &count));
	assert_int_equal(regex_find_group(r, "head", 4), 1);
	assert_int_equal(regex_find_group(r, "tail", 4), -1);
	regex_free(r);
	/* More groups than are told. */
	char many[4 * REGEX_GROUPS_MAX + 1] = "";
	for (int i = 0; i < REGEX_GROUPS_MAX; i++)
		strcat(many, "(a)");
	r = regex_new_capturing(many, strlen(many), why, sizeof(why));
	CHECK(r);
	char text[REGEX_GROUPS_MAX + 1];
	memset(text, 'a', sizeof(text));
	CHECK(regex_capture(r, text, REGEX_GROUPS_MAX, spans, &count));
	assert_int_equal(count, REGEX_GROUPS_MAX);
	regex_free(r);
}

TEST_MAIN(cmocka_unit_test(tells_the_groups), cmocka_unit_test(matches_anywhere),
	cmocka_unit_test(takes_the_whole_pattern), cmocka_unit_test(says_why))
