/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timestamp and Duration as text. Days are counted in 400-year eras that begin on 1 March, so that
 * the leap day is the last of its year (Howard Hinnant's civil calendar).
 */
#include "pb/internal.h"

#define DAY_SECONDS 86400
#define DURATION_SECONDS_MAX INT64_C(315576000000) /* 10,000 years */

static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
	y -= m <= 2;
	int64_t era = y / 400; /* years are 1 to 9999 */
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int64_t days_in_month(int64_t y, int64_t m)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	return m == 2 && leap ? 29 : days[m - 1];
}

/* Reads `count` digits; false: there are fewer. */
static bool digits(struct reader *r, size_t count, int64_t *out)
{
	struct str s = reader_str(r, count);
	uint64_t v;
	if (r->failed || !str_parse_u64(s, 10, &v))
		return false;
	*out = (int64_t)v;
	return true;
}

static bool letter(struct reader *r, char a, char b)
{
	char c = (char)reader_u8(r);
	return !r->failed && (c == a || c == b);
}

/* Reads ".5" as 500,000,000; no fraction is 0. At most nine digits. */
static bool fraction(struct reader *r, int64_t *out)
{
	*out = 0;
	if (reader_done(r) || *r->at != '.')
		return true;
	reader_skip(r, 1);
	int64_t scale = 1000000000;
	while (!reader_done(r) && *r->at >= '0' && *r->at <= '9') {
		scale /= 10;
		if (scale == 0)
			return false;
		*out += (reader_u8(r) - '0') * scale;
	}
	return scale < 1000000000;
}

/* Reads "Z" or "+01:30", in seconds. */
static bool zone(struct reader *r, int64_t *out)
{
	int64_t h, m;
	char c = (char)reader_u8(r);
	*out = 0;
	if (r->failed || c == 'Z' || c == 'z')
		return !r->failed;
	if ((c != '+' && c != '-') || !digits(r, 2, &h) || !letter(r, ':', ':') ||
		!digits(r, 2, &m) || h > 23 || m > 59)
		return false;
	*out = (h * 3600 + m * 60) * (c == '-' ? -1 : 1);
	return true;
}

static bool read_rfc3339(struct str text, int64_t *out_seconds, int64_t *out_nanos)
{
	struct reader r = reader_over(text.p, text.len);
	int64_t y, mo, d, h, mi, s, off;
	if (!digits(&r, 4, &y) || !letter(&r, '-', '-') || !digits(&r, 2, &mo) ||
		!letter(&r, '-', '-') || !digits(&r, 2, &d) || !letter(&r, 'T', 't') ||
		!digits(&r, 2, &h) || !letter(&r, ':', ':') || !digits(&r, 2, &mi) ||
		!letter(&r, ':', ':') || !digits(&r, 2, &s) || !fraction(&r, out_nanos) ||
		!zone(&r, &off) || r.at != r.end)
		return false;
	if (y < 1 || mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo) || h > 23 || mi > 59 ||
		s > 59)
		return false;
	*out_seconds = days_of(y, mo, d) * DAY_SECONDS + h * 3600 + mi * 60 + s - off;
	return *out_seconds >= days_of(1, 1, 1) * DAY_SECONDS &&
	       *out_seconds < days_of(10000, 1, 1) * DAY_SECONDS;
}

enum status pb_timestamp_read(struct str text, struct buf *out, struct err *e)
{
	int64_t seconds, nanos;
	if (!read_rfc3339(text, &seconds, &nanos))
		return err_set(e, E_INVALID,
			"\"%.*s\" is not a time such as \"2026-11-21T17:00:00Z\"",
			STR_ARG(str_sub(text, 0, 40)));
	pb_put_i64(out, 1, seconds);
	pb_put_i64(out, 2, nanos);
	return OK;
}

/* Writes 3, 6 or 9 digits, as protobuf's own writers do. */
static void put_fraction(struct buf *out, int64_t nanos)
{
	if (nanos == 0)
		return;
	if (nanos % 1000000 == 0)
		buf_printf(out, ".%03lld", (long long)(nanos / 1000000));
	else if (nanos % 1000 == 0)
		buf_printf(out, ".%06lld", (long long)(nanos / 1000));
	else
		buf_printf(out, ".%09lld", (long long)nanos);
}

void pb_timestamp_write(struct buf *out, int64_t seconds, int32_t nanos)
{
	int64_t first = days_of(1, 1, 1) * DAY_SECONDS, last = days_of(10000, 1, 1) * DAY_SECONDS;
	/* A time that JSON cannot express becomes the nearest that it can. */
	seconds = MIN(MAX(seconds, first), last - 1);
	nanos = MIN(MAX(nanos, 0), 999999999);
	int64_t z = (seconds - first) / DAY_SECONDS + days_of(1, 1, 1) + 719468;
	int64_t rest = (seconds - first) % DAY_SECONDS;
	int64_t era = z / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153, d = doy - (153 * mp + 2) / 5 + 1;
	int64_t m = mp < 10 ? mp + 3 : mp - 9;
	buf_printf(out, "\"%04lld-%02lld-%02lldT%02lld:%02lld:%02lld",
		(long long)(yoe + era * 400 + (m <= 2)), (long long)m, (long long)d,
		(long long)(rest / 3600), (long long)(rest / 60 % 60), (long long)(rest % 60));
	put_fraction(out, nanos);
	buf_cstr(out, "Z\"");
}

enum status pb_duration_read(struct str text, struct buf *out, struct err *e)
{
	bool minus = text.len && text.p[0] == '-';
	struct reader r = reader_over(text.p, text.len);
	reader_skip(&r, minus);
	const uint8_t *begin = r.at;
	while (!reader_done(&r) && *r.at >= '0' && *r.at <= '9')
		reader_skip(&r, 1);
	uint64_t seconds;
	int64_t nanos;
	if (!str_parse_u64(str_make(begin, (size_t)(r.at - begin)), 10, &seconds) ||
		seconds > (uint64_t)DURATION_SECONDS_MAX || !fraction(&r, &nanos) ||
		!letter(&r, 's', 's') || r.at != r.end)
		return err_set(e, E_INVALID, "\"%.*s\" is not a duration such as \"1.5s\"",
			STR_ARG(str_sub(text, 0, 40)));
	pb_put_i64(out, 1, minus ? -(int64_t)seconds : (int64_t)seconds);
	pb_put_i64(out, 2, minus ? -nanos : nanos);
	return OK;
}

void pb_duration_write(struct buf *out, int64_t seconds, int32_t nanos)
{
	seconds = MIN(MAX(seconds, -DURATION_SECONDS_MAX), DURATION_SECONDS_MAX);
	bool minus = seconds < 0 || (seconds == 0 && nanos < 0);
	int64_t n = nanos < 0 ? -(int64_t)nanos : nanos;
	buf_printf(
		out, "\"%s%lld", minus ? "-" : "", (long long)(seconds < 0 ? -seconds : seconds));
	put_fraction(out, MIN(n, INT64_C(999999999)));
	buf_cstr(out, "s\"");
}
