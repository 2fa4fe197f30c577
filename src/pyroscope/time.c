/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in Pyroscope's parameters ("attime", from Graphite): the unit of a number follows from its
 * length, "now" may be followed by an offset into the past or the future.
 */
#include "base/clock.h"
#include "pyroscope/pyroscope.h"

#include <time.h>

/* Reads "3h" or "30min" in nanoseconds; false: other words. A month has 30 days. */
static bool read_offset(struct str text, int64_t *out)
{
	static const struct {
		const char *unit;
		int64_t seconds;
	} units[] = { { "s", 1 }, { "sec", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 },
		{ "hour", 3600 }, { "d", 86400 }, { "day", 86400 }, { "w", 604800 },
		{ "week", 604800 }, { "M", 2592000 }, { "mon", 2592000 }, { "y", 31536000 },
		{ "year", 31536000 } };
	size_t digits = 0;
	uint64_t n;
	while (digits < text.len && text.p[digits] >= '0' && text.p[digits] <= '9')
		digits++;
	if (!str_parse_u64(str_sub(text, 0, digits), 10, &n) || n > 1000000)
		return false;
	struct str unit = str_sub(text, digits, text.len);
	for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
		struct str u = str_of(units[i].unit);
		/* "hours" too */
		if (!str_eq(unit, u) && !(u.len > 2 && unit.len == u.len + 1 &&
						str_starts(unit, u) && unit.p[u.len] == 's'))
			continue;
		if ((int64_t)n > INT64_MAX / NS_PER_SEC / 4 / units[i].seconds)
			return false;
		*out = (int64_t)n * units[i].seconds * NS_PER_SEC;
		return true;
	}
	return false;
}

static bool read_day(uint64_t n, int64_t *out)
{
	struct tm t = { .tm_year = (int)(n / 10000) - 1900,
		.tm_mon = (int)(n / 100 % 100) - 1,
		.tm_mday = (int)(n % 100) };
	if (t.tm_year < 70 || t.tm_year > 300 || t.tm_mon < 0 || t.tm_mon > 11 || t.tm_mday < 1 ||
		t.tm_mday > 31)
		return false;
	*out = (int64_t)timegm(&t) * NS_PER_SEC;
	return true;
}

bool pyroscope_time(struct str text, int64_t now_ns, int64_t *out)
{
	static const int64_t units[] = { NS_PER_SEC, NS_PER_SEC / 1000, NS_PER_SEC / 1000000, 1 };
	uint64_t n;
	int64_t ns = 0;
	text = str_trim(text);
	if (str_parse_u64(text, 10, &n)) {
		if (text.len == 8 && read_day(n, out))
			return true;
		/* Up to 10 digits are seconds, up to 13 milliseconds, up to 16 microseconds. */
		int64_t unit = units[text.len <= 10   ? 0
				     : text.len <= 13 ? 1
				     : text.len <= 16 ? 2
						      : 3];
		if (n > (uint64_t)(INT64_MAX / unit))
			return false;
		*out = (int64_t)n * unit;
		return true;
	}
	if (text.len == 0 || str_eq(text, STR("now"))) {
		*out = now_ns;
		return true;
	}
	bool back = str_starts(text, STR("now-"));
	if (!back && !str_starts(text, STR("now+")))
		return false;
	if (!read_offset(str_sub(text, 4, text.len), &ns))
		return false;
	*out = back ? now_ns - ns : now_ns + ns;
	return true;
}
