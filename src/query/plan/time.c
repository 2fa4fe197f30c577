/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the first character chooses one of three forms: "now…", a number, a date. The calendar
 * (months, days, dates without a zone) is libc's, in UTC or in the local time zone. The page reads
 * the same forms (ui/src/model/instant.ts); tests/query/times.tsv holds both to it.
 */
#include "query/query.h"

#include <time.h>

#include "base/clock.h"
#include "base/units.h"

#define SHOWN_MAX 60
/* Seconds that fit in int64 nanoseconds: up to the year 2262. */
#define SECONDS_MAX (INT64_MAX / NS_PER_SEC - 1)
/* The longest shift by the calendar, so that computing with it cannot overflow. */
#define SHIFT_YEARS_MAX 73

static enum status bad_time(struct err *e, struct str s, const char *why)
{
	return err_set(e, E_INVALID,
		"'%.*s' is not a time%s: expected now, now-15m, now/d (the day's begin), "
		"2026-01-31, 2026-01-31 14:05, 2026-01-31T14:05:00Z or unix time",
		(int)MIN(s.len, (size_t)SHOWN_MAX), s.p ? s.p : "", why);
}

enum status query_parse_duration(struct str s, int64_t *out, struct err *e)
{
	return units_parse_duration(s, out, e);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 1 to 9 digits behind a decimal point; further digits are cut. */
static bool parse_fraction(struct str digits, int64_t *out_ns)
{
	int64_t ns = 0, worth = NS_PER_SEC / 10;
	for (size_t i = 0; i < digits.len; i++, worth /= 10) {
		if (!is_digit(digits.p[i]))
			return false;
		ns += (digits.p[i] - '0') * worth;
	}
	*out_ns = ns;
	return digits.len > 0;
}

/* Unix time in seconds; a number with more digits is milli-, micro- or nanoseconds. */
static enum status parse_unix(struct str s, int64_t *out, struct err *e)
{
	size_t dot = str_index(s, '.');
	struct str whole = str_sub(s, 0, dot);
	uint64_t count = 0;
	int64_t fraction_ns = 0, unit = NS_PER_SEC;
	if (!str_parse_u64(whole, 10, &count) ||
		(dot < s.len && !parse_fraction(str_sub(s, dot + 1, s.len), &fraction_ns)))
		return bad_time(e, s, "");
	if (count >= 100000000000000000)
		unit = 1;
	else if (count >= 100000000000000)
		unit = 1000;
	else if (count >= 100000000000)
		unit = NS_PER_MS;
	if (count > (uint64_t)(SECONDS_MAX * (NS_PER_SEC / unit)))
		return bad_time(e, s, " (years 1970 to 2261)");
	*out = (int64_t)count * unit + fraction_ns / (NS_PER_SEC / unit);
	return OK;
}

/* ---- the calendar ---- */

static struct tm calendar_of(int64_t ns, unsigned flags)
{
	struct tm tm = { 0 };
	time_t seconds = ns / NS_PER_SEC;
	if (flags & QUERY_TIME_LOCAL)
		(void)localtime_r(&seconds, &tm);
	else
		(void)gmtime_r(&seconds, &tm);
	tm.tm_isdst = -1;
	return tm;
}

/* Fields beyond their range are carried, as mktime() does: month 12 is January of the next year. */
static int64_t seconds_of(struct tm tm, unsigned flags)
{
	return flags & QUERY_TIME_LOCAL ? mktime(&tm) : timegm(&tm);
}

/* The same in nanoseconds, at most SECONDS_MAX seconds. */
static int64_t whole_ns(struct tm tm, unsigned flags)
{
	return MIN(seconds_of(tm, flags), SECONDS_MAX) * NS_PER_SEC;
}

static int64_t shift_months(int64_t ns, int64_t months, unsigned flags)
{
	struct tm tm = calendar_of(ns, flags);
	tm.tm_year += (int)(months / 12);
	tm.tm_mon += (int)(months % 12);
	return whole_ns(tm, flags) + ns % NS_PER_SEC;
}

/* The begin of the unit that `ns` lies in, or of the next; weeks begin on Monday. */
static int64_t round_to(int64_t ns, char unit, bool up, unsigned flags)
{
	struct tm tm = calendar_of(ns, flags);
	int one = up ? 1 : 0;
	tm.tm_sec = unit == 's' ? tm.tm_sec + one : 0;
	if (unit == 's')
		return whole_ns(tm, flags);
	tm.tm_min = unit == 'm' ? tm.tm_min + one : unit == 'h' ? 60 * one : 0;
	if (unit != 'm' && unit != 'h')
		tm.tm_hour = 0;
	if (unit == 'd')
		tm.tm_mday += one;
	else if (unit == 'w')
		tm.tm_mday += 7 * one - (tm.tm_wday + 6) % 7;
	else if (unit == 'M' || unit == 'y')
		tm.tm_mday = 1;
	if (unit == 'M')
		tm.tm_mon += one;
	if (unit == 'y') {
		tm.tm_mon = 0;
		tm.tm_year += one;
	}
	return whole_ns(tm, flags);
}

/* ---- now, with shifts and a rounding ---- */

static const struct {
	const char *name;
	int64_t ns; /* 0: the unit is `months` */
	int months;
} shifts[] = {
	{ "w", 604800 * NS_PER_SEC, 0 },
	{ "d", 86400 * NS_PER_SEC, 0 },
	{ "h", 3600 * NS_PER_SEC, 0 },
	{ "m", 60 * NS_PER_SEC, 0 },
	{ "s", NS_PER_SEC, 0 },
	{ "ms", NS_PER_MS, 0 },
	{ "us", 1000, 0 },
	{ "ns", 1, 0 },
	{ "M", 0, 1 },
	{ "y", 0, 12 },
};

static struct str cut_letters(struct str *rest)
{
	size_t len = 0;
	while (len < rest->len && (rest->p[len] | 32) >= 'a' && (rest->p[len] | 32) <= 'z')
		len++;
	struct str letters = str_sub(*rest, 0, len);
	*rest = str_sub(*rest, len, rest->len);
	return letters;
}

static struct str cut_digits(struct str *rest)
{
	size_t len = 0;
	while (len < rest->len && is_digit(rest->p[len]))
		len++;
	struct str digits = str_sub(*rest, 0, len);
	*rest = str_sub(*rest, len, rest->len);
	return digits;
}

/* Takes one shift, like "1.5h", from the front of `rest`. Times are limited to 0 and SECONDS_MAX.
 */
static bool shift_one(struct str *rest, bool back, unsigned flags, int64_t *ns)
{
	uint64_t count = 0;
	int64_t fraction_ns = 0;
	struct str digits = cut_digits(rest);
	if (!str_parse_u64(digits, 10, &count))
		return false;
	if (rest->len > 0 && rest->p[0] == '.') {
		*rest = str_sub(*rest, 1, rest->len);
		if (!parse_fraction(cut_digits(rest), &fraction_ns))
			return false;
	}
	size_t i = 0;
	struct str unit = cut_letters(rest);
	while (i < ARRAY_COUNT(shifts) && !str_eq(unit, str_of(shifts[i].name)))
		i++;
	if (i == ARRAY_COUNT(shifts))
		return false;
	if (shifts[i].months) {
		int64_t months = (int64_t)MIN(count, 12ull * SHIFT_YEARS_MAX) * shifts[i].months;
		months = MIN(months, (int64_t)12 * SHIFT_YEARS_MAX);
		*ns = shift_months(*ns, back ? -months : months, flags);
	} else {
		__int128 by = (__int128)count * shifts[i].ns +
			      (__int128)fraction_ns * shifts[i].ns / NS_PER_SEC;
		by = *ns + (back ? -by : by);
		*ns = (int64_t)MIN(MAX(by, (__int128)0), (__int128)SECONDS_MAX * NS_PER_SEC);
	}
	*ns = MIN(MAX(*ns, (int64_t)0), SECONDS_MAX * NS_PER_SEC);
	return true;
}

static enum status parse_now(
	struct str s, int64_t now_ns, unsigned flags, int64_t *out, struct err *e)
{
	struct str rest = str_sub(s, 3, s.len);
	int64_t ns = now_ns;
	while (rest.len > 0 && (rest.p[0] == '-' || rest.p[0] == '+' || rest.p[0] == ' ')) {
		/* A '+' that was not escaped in a URL arrives as a blank. */
		bool back = rest.p[0] == '-';
		rest = str_sub(rest, 1, rest.len);
		do {
			if (!shift_one(&rest, back, flags, &ns))
				return bad_time(e, s, "");
		} while (rest.len > 0 && is_digit(rest.p[0]));
	}
	if (rest.len == 2 && rest.p[0] == '/' && memchr("smhdwMy", rest.p[1], 7)) {
		bool up = flags & QUERY_TIME_END;
		ns = round_to(ns, rest.p[1], up, flags);
		ns = MAX(up ? MIN(ns, now_ns) : ns, (int64_t)0);
	} else if (rest.len > 0) {
		return bad_time(e, s, "");
	}
	*out = ns;
	return OK;
}

/* ---- dates ---- */

/* `pattern`: 'd' is a digit of the next number; anything else stands for itself, no case. */
static bool scan(struct str *s, const char *pattern, int *numbers)
{
	bool in_number = false;
	for (; *pattern; pattern++, *s = str_sub(*s, 1, s->len)) {
		if (s->len == 0)
			return false;
		if (*pattern == 'd') {
			if (!is_digit(s->p[0]))
				return false;
			*numbers = (in_number ? *numbers * 10 : 0) + (s->p[0] - '0');
		} else if (s->p[0] != *pattern &&
			   !(*pattern >= 'A' && (s->p[0] & ~0x20) == *pattern)) {
			return false;
		}
		in_number = *pattern == 'd';
		if (in_number && pattern[1] != 'd')
			numbers++;
	}
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return month == 2 && leap ? 29 : days[month - 1];
}

/* What follows the day: nothing, or hours and minutes, seconds, a fraction.
 */
static bool parse_clock(struct str *rest, int *hms, int64_t *out_ns, bool *has_clock)
{
	*has_clock = rest->len > 0;
	if (rest->len == 0)
		return true;
	if ((rest->p[0] | 32) != 't' && rest->p[0] != ' ')
		return false;
	*rest = str_sub(*rest, 1, rest->len);
	if (!scan(rest, "dd:dd", hms))
		return false;
	if (rest->len == 0 || rest->p[0] != ':')
		return true;
	if (!scan(rest, ":dd", hms + 2))
		return false;
	if (rest->len == 0 || rest->p[0] != '.')
		return true;
	*rest = str_sub(*rest, 1, rest->len);
	return parse_fraction(cut_digits(rest), out_ns);
}

/* Z, ±hh:mm or ±hhmm, as seconds east of UTC. */
static bool parse_zone(struct str rest, int *out_east)
{
	int zone[2] = { 0 };
	*out_east = 0;
	if (str_eq_nocase(rest, STR("z")))
		return true;
	/* A '+' in a URL that was not escaped arrives as a blank. */
	if (rest.p[0] != '+' && rest.p[0] != '-' && rest.p[0] != ' ')
		return false;
	bool west = rest.p[0] == '-';
	rest = str_sub(rest, 1, rest.len);
	const char *form = rest.len == 4 ? "dd" : "dd:"; /* and two more */
	if (!scan(&rest, form, zone) || !scan(&rest, "dd", zone + 1) || rest.len > 0 ||
		zone[0] > 23 || zone[1] > 59)
		return false;
	*out_east = (zone[0] * 3600 + zone[1] * 60) * (west ? -1 : 1);
	return true;
}

static enum status parse_date(struct str s, unsigned flags, int64_t *out, struct err *e)
{
	int day[3] = { 0 }, hms[3] = { 0 }, east = 0;
	int64_t ns = 0;
	bool has_clock;
	struct str rest = s;
	if (!scan(&rest, "dddd-dd-dd", day) || !parse_clock(&rest, hms, &ns, &has_clock))
		return bad_time(e, s, "");
	bool zoned = rest.len > 0;
	if (zoned && (!has_clock || !parse_zone(rest, &east)))
		return bad_time(e, s, "");
	if (day[0] < 1970 || day[0] > 2261)
		return bad_time(e, s, " (years 1970 to 2261)");
	if (day[1] < 1 || day[1] > 12 || day[2] < 1 || day[2] > days_in_month(day[0], day[1]) ||
		hms[0] > 23 || hms[1] > 59 || hms[2] > 60)
		return bad_time(e, s, " (no such day or hour)");
	struct tm tm = { .tm_year = day[0] - 1900,
		.tm_mon = day[1] - 1,
		.tm_mday = day[2],
		.tm_hour = hms[0],
		.tm_min = hms[1],
		.tm_sec = hms[2],
		.tm_isdst = -1 };
	int64_t seconds = seconds_of(tm, zoned ? 0 : flags) - east;
	if (seconds < 0)
		return bad_time(e, s, " (before 1970)");
	*out = seconds * NS_PER_SEC + ns;
	return OK;
}

enum status query_parse_time(
	struct str s, int64_t now_ns, unsigned flags, int64_t *out, struct err *e)
{
	s = str_trim(s);
	if (str_starts(s, STR("now")))
		return parse_now(s, now_ns, flags, out, e);
	if (s.len > 4 && s.p[4] == '-')
		return parse_date(s, flags, out, e);
	return parse_unix(s, out, e);
}
