/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "query/query.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOW (1767323045 * NS_PER_SEC + 5)

/* clang-format off */
static const struct {
	const char *name, *in;
	int64_t want; /* -1: refused */
	const char *why;
} cases[] = {
	{ "zero", "0", 0, NULL },
	{ "seconds", "1767323045", 1767323045 * NS_PER_SEC, NULL },
	{ "fraction", "1767323045.25", 1767323045 * NS_PER_SEC + 250000000, NULL },
	{ "nanoseconds", "1.123456789", 1123456789, NULL },
	{ "more digits than that", "1.1234567899", 1123456789, NULL },
	{ "largest", "9223372035.999999999", 9223372035999999999, NULL },
	{ "now", "now", NOW, NULL },
	{ "ago", "now-15m", NOW - 900 * NS_PER_SEC, NULL },
	{ "long ago", "now-1d12h", NOW - 129600 * NS_PER_SEC, NULL },
	{ "RFC 3339", "2026-01-02T03:04:05Z", 1767323045 * NS_PER_SEC, NULL },
	{ "lower case", "2026-01-02t03:04:05z", 1767323045 * NS_PER_SEC, NULL },
	{ "with a fraction", "2026-01-02T03:04:05.5Z", 1767323045 * NS_PER_SEC + 500000000, NULL },
	{ "east", "2026-01-02T05:34:05+02:30", 1767323045 * NS_PER_SEC, NULL },
	{ "west", "2026-01-01T19:04:05-08:00", 1767323045 * NS_PER_SEC, NULL },
	{ "a plus that became a blank", "2026-01-02T05:34:05 02:30", 1767323045 * NS_PER_SEC, NULL },
	{ "leap day", "2024-02-29T00:00:00Z", 1709164800 * NS_PER_SEC, NULL },
	{ "leap second", "2016-12-31T23:59:60Z", 1483228800 * NS_PER_SEC, NULL },
	{ "first", "1970-01-01T00:00:00Z", 0, NULL },
	{ "milliseconds", "1767323045000", 1767323045 * NS_PER_SEC, NULL },
	{ "microseconds", "1767323045000000.5", 1767323045 * NS_PER_SEC + 500, NULL },
	{ "nanoseconds of today", "1767323045000000001", 1767323045 * NS_PER_SEC + 1, NULL },
	{ "a blank for T, and a zone", "2026-01-02 03:04:05Z", 1767323045 * NS_PER_SEC, NULL },
	{ "units that are small", "now-1ms2us3ns", NOW - 1002003, NULL },
	{ "before 1970", "now-3000w", 0, NULL },
	{ "long before 1970", "now-99999999999w", 0, NULL },
	{ "years before 1970", "now-100y", 0, NULL },
	{ "after 2261", "now+999y+999y+999y+999y+999y", 9223372035 * NS_PER_SEC, NULL },
	{ "far ahead, by weeks", "now+73y+73y+73y+73y+99999999999w", 9223372035 * NS_PER_SEC, NULL },
	{ "far ahead, to the year", "now+73y+73y+73y+73y/y", 9214646400 * NS_PER_SEC, NULL },
	{ "seconds and more", "99999999999", -1, "years 1970 to 2261" },
	{ "nanoseconds and more", "9999999999999999999", -1, "years 1970 to 2261" },
	{ "more than a number", "99999999999999999999999", -1, "is not a time" },
	{ "a shift without a unit", "now-1.5", -1, "is not a time" },
	{ "a fraction without digits", "now-1.h", -1, "is not a time" },
	{ "two units in one", "now-1hm", -1, "is not a time" },
	{ "rounded to nothing", "now/", -1, "is not a time" },
	{ "rounded twice", "now/d/h", -1, "is not a time" },
	{ "rounded to no unit", "now/x", -1, "is not a time" },
	{ "a zone without seconds", "2026-01-02T03:04Z", 1767323040 * NS_PER_SEC, NULL },
	{ "a zone without a time of day", "2026-01-02Z", -1, "is not a time" },
	{ "an hour alone", "2026-01-02 03", -1, "is not a time" },
	{ "empty", "", -1, "'' is not a time: expected now, now-15m" },
	{ "negative", "-5", -1, "is not a time" },
	{ "no fraction", "5.", -1, "is not a time" },
	{ "no seconds", ".5", -1, "is not a time" },
	{ "letters", "5x", -1, "is not a time" },
	{ "blanks around", " 5 ", 5 * NS_PER_SEC, NULL },
	{ "a blank within", "5 5", -1, "is not a time" },
	{ "hexadecimal", "0x5", -1, "is not a time" },
	{ "exponent", "1e9", -1, "is not a time" },
	{ "now and nothing", "now-", -1, "is not a time" },
	{ "now and a number", "now-5", -1, "is not a time" },
	{ "nowhere", "nowhere", -1, "is not a time" },
	{ "a control byte for -", "2026\r01-02T03:04:05Z", -1, "is not a time" },
	{ "a control byte for :", "2026-01-02T03\x1A" "04:05Z", -1, "is not a time" },
	{ "month 13", "2026-13-02T03:04:05Z", -1, "no such day or hour" },
	{ "month 0", "2026-00-02T03:04:05Z", -1, "no such day or hour" },
	{ "no leap year", "2025-02-29T03:04:05Z", -1, "no such day or hour" },
	{ "no leap century", "2100-02-29T03:04:05Z", -1, "no such day or hour" },
	{ "April 31", "2026-04-31T03:04:05Z", -1, "no such day or hour" },
	{ "day 0", "2026-01-00T03:04:05Z", -1, "no such day or hour" },
	{ "hour 24", "2026-01-02T24:04:05Z", -1, "no such day or hour" },
	{ "minute 60", "2026-01-02T03:60:05Z", -1, "no such day or hour" },
	{ "second 61", "2026-01-02T03:04:61Z", -1, "no such day or hour" },
	{ "year 1969", "1969-12-31T23:59:59Z", -1, "years 1970 to 2261" },
	{ "year 2262", "2262-01-01T00:00:00Z", -1, "years 1970 to 2261" },
	{ "before 1970 by its zone", "1970-01-01T00:00:00+01:00", -1, "before 1970" },
	{ "zone too large", "2026-01-02T03:04:05+24:00", -1, "is not a time" },
	{ "zone without colon", "2026-01-02T03:04:05+0230", 1767314045 * NS_PER_SEC, NULL },
	{ "zone of three digits", "2026-01-02T03:04:05+023", -1, "is not a time" },
	{ "behind the zone", "2026-01-02T03:04:05Zx", -1, "is not a time" },
	{ "digit too few", "2026-1-02T03:04:05Z", -1, "is not a time" },
};
/* clang-format on */

static void parses_times(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		int64_t got = -1;
		struct err e = { 0 };
		enum status s = query_parse_time(str_of(c->in), NOW, 0, &got, &e);
		if (got != c->want)
			print_error("[%s] got %lld %s\n", c->name, (long long)got, e.text);
		CHECK_CASE(c, got == c->want && s == (c->want < 0 ? E_INVALID : OK));
		CHECK_CASE(c, !c->why || strstr(e.text, c->why));
	}
}

/* Every day of the range, against the C library. */
static void counts_days(void **state)
{
	(void)state;
	for (time_t day = 0; day < 106000; day += 7) {
		time_t seconds = day * 86400 + 3661;
		struct tm tm;
		char text[64];
		int64_t got = -1;
		struct err e = { 0 };
		CHECK(gmtime_r(&seconds, &tm));
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		CHECK_OK(query_parse_time(str_of(text), 0, 0, &got, &e), &e);
		CHECK(got == seconds * NS_PER_SEC);
	}
}

/* One column of a line, up to the next tab. */
static struct str column(struct str *line)
{
	struct str text = STR("");
	(void)str_split(line, '\t', &text);
	return text;
}

/* The forms that the page reads too, by its own reader: in a time zone with summer time. */
static void reads_what_the_page_reads(void **state)
{
	(void)state;
	struct err e = { 0 };
	char typed[256];
	int64_t now = 0, want = 0, got = 0;
	size_t read = 0;
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	time_t summer = 1751328000;
	struct tm tm;
	if (!localtime_r(&summer, &tm) || tm.tm_gmtoff != 7200) {
		print_message("no time zone Europe/Berlin (tzdata) on this host\n");
		skip();
	}
	FILE *file = fopen(TIMES_FILE, "re");
	CHECK(file);
	while (fgets(typed, sizeof(typed), file)) {
		struct str line = str_make(typed, strcspn(typed, "\n"));
		if (line.p[0] == '#')
			continue;
		struct str text = column(&line), at = column(&line), end = column(&line);
		struct str instant = column(&line);
		CHECK_OK(query_parse_time(at, 0, 0, &now, &e), &e);
		enum status s = query_parse_time(text, now,
			QUERY_TIME_LOCAL | (str_eq(end, STR("to")) ? QUERY_TIME_END : 0), &got, &e);
		if (str_eq(instant, STR("-"))) {
			if (s != E_INVALID)
				fail_msg("%.*s is read", STR_ARG(text));
		} else {
			CHECK_OK(query_parse_time(instant, 0, 0, &want, NULL), &e);
			if (s != OK || got != want)
				fail_msg("%.*s is %lld, not %lld", STR_ARG(text), (long long)got,
					(long long)want);
		}
		read++;
	}
	fclose(file);
	CHECK(read > 40);
	unsetenv("TZ");
	tzset();
}

static void parses_durations(void **state)
{
	(void)state;
	int64_t ns = 0;
	struct err e = { 0 };
	CHECK_OK(query_parse_duration(STR("1h30m"), &ns, &e), &e);
	CHECK(ns == 5400 * NS_PER_SEC);
	CHECK(query_parse_duration(STR("15"), &ns, &e) == E_INVALID);
	CHECK(strstr(e.text, "is not a duration"));
}

TEST_MAIN(cmocka_unit_test(parses_times), cmocka_unit_test(counts_days),
	cmocka_unit_test(reads_what_the_page_reads), cmocka_unit_test(parses_durations))
