/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "pyroscope/pyroscope.h"

#define NOW INT64_C(1700000000000000000)
#define NONE INT64_C(-1) /* refused */
#define S INT64_C(1000000000)

static const struct {
	const char *name;
	int64_t want;
} cases[] = {
	{ "", NOW },
	{ "now", NOW },
	{ "now-1h", NOW - 3600 * S },
	{ "now-30min", NOW - 1800 * S },
	{ "now-2hours", NOW - 7200 * S },
	{ "now+5s", NOW + 5 * S },
	{ "now-1M", NOW - INT64_C(2592000) * S },
	{ "now-1parsec", NONE },
	{ "now-h", NONE },
	{ "now-99999999999h", NONE },
	{ "nowadays", NONE },
	{ "20260131", INT64_C(1769817600) * S },
	{ "20261331", INT64_C(20261331) * S }, /* no month: seconds */
	{ "1769817600", INT64_C(1769817600) * S },
	{ "1769817600123", INT64_C(1769817600123) * 1000000 },
	{ "1769817600123456", INT64_C(1769817600123456) * 1000 },
	{ "1769817600123456789", INT64_C(1769817600123456789) },
	{ "99999999999999999999", NONE },
	{ "yesterday", NONE },
	{ "-1", NONE },
};

static void reads_times(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		int64_t found = NONE;
		bool good = pyroscope_time(str_of(c->name), NOW, &found);
		CHECK_CASE(c, found == c->want && good == (c->want != NONE));
	}
}

TEST_MAIN(cmocka_unit_test(reads_times))
