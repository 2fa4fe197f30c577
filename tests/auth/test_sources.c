/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses are counted by source and minute, and told of once a minute. */
#include "test.h"

#include "auth/internal.h"

static void names_a_source(void **state)
{
	(void)state;
	static const struct {
		const char *name, *peer, *want;
	} cases[] = {
		{ "IPv4", "192.0.2.1:4711", "192.0.2.1" },
		{ "IPv6", "[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::" },
		{ "loopback", "[::1]:1", "::" },
		{ "mapped", "[::ffff:192.0.2.1]:4711", "192.0.2.1" },
		{ "socket", "unix", "unix" },
	};
	FOR_EACH_CASE (c, cases) {
		char got[48];
		auth_source_name(c->peer, got, sizeof(got));
		CHECK_CASE(c, strcmp(got, c->want) == 0);
	}
}

static void counts_by_the_minute(void **state)
{
	(void)state;
	struct auth_sources *s = calloc(1, sizeof(*s));
	CHECK(s);
	lock_init(&s->lock, LOCK_AUTH_SOURCES);
	const int64_t minute = 60 * NS_PER_SEC;
	int64_t now = 1000 * NS_PER_SEC;
	CHECK(auth_sources_add(s, "1.2.3.4:5", true, now) == 1);
	for (int i = 1; i < AUTH_GUESSES_MAX; i++) {
		CHECK(!auth_sources_over(s, "1.2.3.4:5", now));
		CHECK(auth_sources_add(s, "1.2.3.4:6", true, now) == 0);
	}
	CHECK(auth_sources_over(s, "1.2.3.4:7", now));
	CHECK(!auth_sources_over(s, "1.2.3.5:7", now));
	/* What was no guess is told of, and does not lock out. */
	for (int i = 0; i < 2 * AUTH_GUESSES_MAX; i++)
		(void)auth_sources_add(s, "1.2.3.5:7", false, now);
	CHECK(!auth_sources_over(s, "1.2.3.5:7", now));
	CHECK(!auth_sources_over(s, "1.2.3.4:7", now + minute));
	CHECK(auth_sources_add(s, "1.2.3.4:5", true, now + minute) == AUTH_GUESSES_MAX);
	/* More sources than there is room for: the oldest is forgotten. */
	for (int i = 0; i < 2 * AUTH_SOURCES_MAX; i++) {
		char peer[32];
		snprintf(peer, sizeof(peer), "10.0.%d.%d:1", i / 256, i % 256);
		CHECK(auth_sources_add(s, peer, true, now + 2 * minute + i) == 1);
	}
	CHECK(s->count == AUTH_SOURCES_MAX);
	CHECK(!auth_sources_over(s, "1.2.3.4:7", now + 2 * minute));
	lock_destroy(&s->lock);
	free(s);
}

TEST_MAIN(cmocka_unit_test(names_a_source), cmocka_unit_test(counts_by_the_minute))
