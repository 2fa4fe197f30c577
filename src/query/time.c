/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: three readers tried by the first character: "now…", a number that ends there, a date. Dates
 * are counted with Hinnant's days-from-civil (proleptic Gregorian), without libc's time zones.
 */
#include "query/query.h"

#include "base/clock.h"
#include "base/units.h"

#define SHOWN_MAX 60
/* Seconds that fit in int64 nanoseconds: up to the year 2262. */
#define SECONDS_MAX (INT64_MAX / NS_PER_SEC - 1)

static enum status bad_time(struct err *e, struct str s, const char *why)
{
	return err_set(e, E_INVALID,
		"'%.*s' is not a time%s: expected unix seconds, RFC 3339 "
		"(2026-01-02T03:04:05Z), now, or now-15m",
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

static enum status parse_seconds(struct str s, int64_t *out, struct err *e)
{
	size_t dot = str_index(s, '.');
	uint64_t seconds = 0;
	int64_t ns = 0;
	if (!str_parse_u64(str_sub(s, 0, dot), 10, &seconds) ||
		(dot < s.len && !parse_fraction(str_sub(s, dot + 1, s.len), &ns)))
		return bad_time(e, s, "");
	if (seconds > (uint64_t)SECONDS_MAX)
		return bad_time(e, s, " (too large; are these milliseconds?)");
	*out = (int64_t)seconds * NS_PER_SEC + ns;
	return OK;
}

static enum status parse_now(struct str s, int64_t now_ns, int64_t *out, struct err *e)
{
	struct str rest = str_sub(s, 3, s.len);
	if (rest.len == 0) {
		*out = now_ns;
		return OK;
	}
	int64_t ago = 0;
	if (rest.p[0] != '-' || units_parse_duration(str_sub(rest, 1, rest.len), &ago, NULL) != OK)
		return bad_time(e, s, "");
	if (ago > now_ns)
		return bad_time(e, s, " (before 1970)");
	*out = now_ns - ago;
	return OK;
}

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

static int64_t days_since_1970(int year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = y / 400, yoe = y - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* What follows the seconds: a fraction, then Z or ±hh:mm, as seconds east of UTC. */
static bool parse_tail(struct str rest, int64_t *out_ns, int *out_east)
{
	*out_ns = 0;
	*out_east = 0;
	if (rest.len > 0 && rest.p[0] == '.') {
		size_t len = 1;
		while (len < rest.len && is_digit(rest.p[len]))
			len++;
		if (!parse_fraction(str_sub(rest, 1, len - 1), out_ns))
			return false;
		rest = str_sub(rest, len, rest.len);
	}
	if (str_eq_nocase(rest, STR("z")))
		return true;
	/* A '+' in a URL that was not escaped arrives as a blank. */
	if (rest.len == 0 || (rest.p[0] != '+' && rest.p[0] != '-' && rest.p[0] != ' '))
		return false;
	bool west = rest.p[0] == '-';
	int zone[2] = { 0 };
	rest = str_sub(rest, 1, rest.len);
	if (!scan(&rest, "dd:dd", zone) || rest.len > 0 || zone[0] > 23 || zone[1] > 59)
		return false;
	*out_east = (zone[0] * 3600 + zone[1] * 60) * (west ? -1 : 1);
	return true;
}

static enum status parse_date(struct str s, int64_t *out, struct err *e)
{
	int n[6] = { 0 }, east = 0;
	int64_t ns = 0;
	struct str rest = s;
	if (!scan(&rest, "dddd-dd-ddTdd:dd:dd", n) || !parse_tail(rest, &ns, &east))
		return bad_time(e, s, "");
	if (n[0] < 1970 || n[0] > 2261)
		return bad_time(e, s, " (years 1970 to 2261)");
	if (n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > days_in_month(n[0], n[1]) || n[3] > 23 ||
		n[4] > 59 || n[5] > 60)
		return bad_time(e, s, " (no such day or hour)");
	int64_t seconds =
		days_since_1970(n[0], n[1], n[2]) * 86400 + n[3] * 3600 + n[4] * 60 + n[5] - east;
	if (seconds < 0)
		return bad_time(e, s, " (before 1970)");
	*out = seconds * NS_PER_SEC + ns;
	return OK;
}

enum status query_parse_time(struct str s, int64_t now_ns, int64_t *out, struct err *e)
{
	if (str_starts(s, STR("now")))
		return parse_now(s, now_ns, out, e);
	if (s.len > 4 && s.p[4] == '-')
		return parse_date(s, out, e);
	return parse_seconds(s, out, e);
}
