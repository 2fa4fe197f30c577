/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

static void tells_changes_once_a_minute(void **state)
{
	(void)state;
	struct scrape_target t = { 0 };
	int64_t now = 5 * NS_PER_SEC;
	CHECK(!scrape_is_news(&t, false, now)); /* that it works is expected */
	CHECK(scrape_is_news(&t, true, now) && !scrape_is_news(&t, true, now + 1));
	CHECK(!scrape_is_news(&t, true, now + 10 * SCRAPE_TOLD_NS));
	now += SCRAPE_TOLD_NS;
	CHECK(!scrape_is_news(&t, false, now - 1));
	CHECK(scrape_is_news(&t, false, now) && !scrape_is_news(&t, true, now + 1));
	CHECK(scrape_is_news(&t, true, now + SCRAPE_TOLD_NS));
}

static void keeps_its_moments(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t last, now, want;
	} cases[] = {
		{ "the first", 0, 1005, 1007 },
		{ "the first, later", 0, 1008, 1017 },
		{ "at the first itself", 0, 1007, 1017 },
		{ "in time", 1007, 1009, 1017 },
		{ "a whole interval", 1007, 1018, 1017 },
		{ "nearly two", 1007, 1026, 1017 },
		{ "two", 1007, 1027, 1037 },
		{ "many", 1007, 1041, 1047 },
		{ "set back a little", 1007, 1007, 1017 },
		{ "set back", 1007, 905, 907 },
		{ "set forward", 1007, 5005, 5007 },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, scrape_moment(27, 10, c->last, c->now) == c->want);
	/* Each of a hundred windows, when every scrape takes a bit more than one. */
	int64_t at = 0, now = 2000000;
	at = scrape_moment(5, 1000, 0, now);
	for (int64_t first = at, i = 1; i < 100; i++) {
		now = MAX(now, at) + 1002;
		at = scrape_moment(5, 1000, at, now);
		CHECK(at == first + i * 1000);
	}
}

/* A server that is down fails with all its profiles, which is told once; and so is its return. */
static void tells_of_a_server_once(void **state)
{
	(void)state;
	const struct scrape_job job = { .name = "a", .interval_ns = NS_PER_SEC };
	struct scrape x = { 0 };
	static const char *const urls[] = { "http://h:1/debug/pprof/heap",
		"http://h:1/debug/pprof/mutex", "http://h:12/debug/pprof/heap" };
	struct scrape_target t[3];
	for (size_t i = 0; i < 3; i++) {
		t[i] = (struct scrape_target){ .pool = &x, .job = &job, .url = urls[i] };
		CHECK(VEC_PUSH(&x.targets, &t[i]));
	}
	int64_t now = 10 * SCRAPE_TOLD_NS;
	for (int bad = 1; bad >= 0; bad--, now += 2 * SCRAPE_TOLD_NS)
		for (size_t i = 0; i < 3; i++) {
			CHECK(scrape_is_news(&t[i], bad, now + (int64_t)i));
			CHECK(scrape_is_told_of_another(&t[i]) == (i == 1));
		}
	/* What another profile told long ago is old. */
	CHECK(scrape_is_news(&t[1], true, now) && !scrape_is_told_of_another(&t[1]));
	now += 2 * SCRAPE_TOLD_NS;
	CHECK(scrape_is_news(&t[0], true, now) && !scrape_is_told_of_another(&t[0]));
	VEC_FREE(&x.targets);
}

TEST_MAIN(cmocka_unit_test(tells_of_a_server_once), cmocka_unit_test(keeps_its_moments),
	cmocka_unit_test(tells_changes_once_a_minute))
