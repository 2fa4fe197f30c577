/* SPDX-License-Identifier: Apache-2.0 */
#include "store/retain/rules.h"

#include "tests/store/fixture.h"

static void patterns(void **state)
{
	(void)state;
	static const struct {
		const char *name, *pattern, *text;
		bool match;
	} cases[] = {
		{ "equal", "abc", "abc", true },
		{ "longer", "abc", "abcd", false },
		{ "shorter", "abc", "ab", false },
		{ "empty", "", "", true },
		{ "nothing fits empty", "", "a", false },
		{ "any", "*", "a:b", true },
		{ "any of nothing", "*", "", true },
		{ "begin", "cpu:*", "cpu:samples", true },
		{ "not the begin", "cpu:*", "wall:samples", false },
		{ "end", "*:delta", "cpu:x:delta", true },
		{ "middle", "a*c*e", "abcde", true },
		{ "the last of several", "*ab", "aabab", true },
		{ "stars", "**a**", "bab", true },
		{ "not found", "*x*", "abc", false },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, rules_match(str_of(c->pattern), str_of(c->text)) == c->match);
}

static void retention_rules(void **state)
{
	(void)state;
	struct store_retention_rule r;
	struct err e = { 0 };
	CHECK_OK(store_retention_parse(STR("tenant=\"a\",type=\"cpu:*\"=7d/10GB"), &r, &e), &e);
	CHECK(r.has_tenant && r.has_type && r.time_ns == 7 * 86400 * SEC);
	CHECK(r.bytes == 10000000000);
	CHECK_STR(r.tenant, "a");
	CHECK_STR(r.type, "cpu:*");
	CHECK_OK(store_retention_parse(STR("type=\"x\"=0s"), &r, &e), &e);
	CHECK(!r.has_tenant && r.time_ns == 0 && r.bytes == 0);
	CHECK_OK(store_retention_parse(STR("tenant=\"\"=5GiB"), &r, &e), &e);
	CHECK(r.has_tenant && r.tenant.len == 0 && r.time_ns == 0 && r.bytes == 5ULL << 30);
	static const struct {
		const char *name, *text, *says;
	} bad[] = {
		{ "nothing", "", "expected tenant" },
		{ "no condition", "=7d", "expected tenant" },
		{ "unknown", "node=\"a\"=7d", "expected tenant" },
		{ "no quotes", "tenant=a=7d", "expected tenant" },
		{ "not closed", "tenant=\"a=7d", "expected tenant" },
		{ "twice", "tenant=\"a\",tenant=\"b\"=7d", "expected tenant" },
		{ "no limit", "tenant=\"a\"", "expected =DURATION" },
		{ "empty limit", "tenant=\"a\"=", "expected a duration" },
		{ "bad duration", "tenant=\"a\"=7x/1GB", "7x" },
		{ "bad size", "tenant=\"a\"=7d/1XB", "1XB" },
	};
	FOR_EACH_CASE (c, bad) {
		CHECK_CASE(c, store_retention_parse(str_of(c->text), &r, &e) == E_INVALID);
		CHECK_CASE(c, strstr(e.text, c->says) != NULL);
	}
}

static void thin_rules(void **state)
{
	(void)state;
	struct store_thin_rule r[3];
	struct thinning t;
	struct err e = { 0 };
	CHECK_OK(store_thin_parse(STR("1d=10s"), &r[0], &e), &e);
	CHECK_OK(store_thin_parse(STR("7d=5m/thread_id+cpu"), &r[1], &e), &e);
	CHECK_OK(store_thin_parse(STR("30d=0s/*"), &r[2], &e), &e);
	CHECK(r[1].age_ns == 7 * 86400 * SEC && r[1].resolution_ns == 300 * SEC);
	CHECK(r[1].name_count == 2 && !r[1].all_names && r[2].all_names);
	rules_thin(r, 3, 86400 * SEC, &t);
	CHECK(t.resolution_ns == 0 && t.name_count == 0 && t.rules == 0);
	rules_thin(r, 3, 86400 * SEC + 1, &t);
	CHECK(t.resolution_ns == 10 * SEC && t.rules == 1);
	rules_thin(r, 3, 8 * 86400 * SEC, &t);
	CHECK(t.resolution_ns == 300 * SEC && t.name_count == 2 && !t.all_names);
	rules_thin(r, 3, 31 * 86400 * SEC, &t);
	CHECK(t.resolution_ns == 300 * SEC && t.all_names && t.rules == 7);
	static const char *const bad[] = { "", "7d", "7d=", "x=5m", "7d=5m/", "7d=5m/a-b", "=5m" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(store_thin_parse(str_of(bad[i]), &r[0], &e) == E_INVALID);
}

/* A rule may keep some types for longer than the others. */
static void finds_the_longest_retention(void **state)
{
	(void)state;
	const struct store_retention_rule rules[] = { { .time_ns = 50 }, { .time_ns = 20 },
		{ .time_ns = 0 } };
	CHECK(store_retention_longest(10, NULL, 0) == 10);
	CHECK(store_retention_longest(10, rules, 2) == 50);
	CHECK(store_retention_longest(60, rules, 2) == 60);
	CHECK(store_retention_longest(10, rules, 3) == 0); /* 0: for ever */
	CHECK(store_retention_longest(0, rules, 2) == 0);
}

TEST_MAIN(cmocka_unit_test(patterns), cmocka_unit_test(retention_rules),
	cmocka_unit_test(thin_rules), cmocka_unit_test(finds_the_longest_retention))
