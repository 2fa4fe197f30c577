/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: tables of units, largest first. The parser goes down the table and never back up, so the
 * units of a duration must descend.
 */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"

#define SHOWN_MAX 80

/* clang-format off */
static const struct {
	const char *name;
	int64_t ns;
} durations[] = {
	{ "w",  7 * 24 * 3600 * NS_PER_SEC },
	{ "d",  24 * 3600 * NS_PER_SEC },
	{ "h",  3600 * NS_PER_SEC },
	{ "m",  60 * NS_PER_SEC },
	{ "s",  NS_PER_SEC },
	{ "ms", NS_PER_MS },
	{ "us", 1000 },
	{ "ns", 1 },
};

static const struct {
	const char *name;
	uint64_t bytes;
} sizes[] = {
	{ "TiB", 1ULL << 40 }, { "GiB", 1ULL << 30 }, { "MiB", 1ULL << 20 }, { "KiB", 1ULL << 10 },
	{ "TB", 1000000000000ULL }, { "GB", 1000000000ULL }, { "MB", 1000000ULL },
	{ "kB", 1000ULL }, { "KB", 1000ULL },
	{ "T", 1000000000000ULL }, { "G", 1000000000ULL }, { "M", 1000000ULL },
	{ "k", 1000ULL }, { "K", 1000ULL },
	{ "B", 1 }, { "", 1 },
};
/* clang-format on */

static struct str cut_while(struct str *s, bool digits)
{
	size_t len = 0;
	while (len < s->len && (s->p[len] >= '0' && s->p[len] <= '9') == digits)
		len++;
	struct str head = str_sub(*s, 0, len);
	*s = str_sub(*s, len, s->len);
	return head;
}

static enum status bad_duration(struct err *e, struct str s)
{
	return err_set(e, E_INVALID,
		"'%.*s' is not a duration: expected numbers with units from large to small "
		"(w d h m s ms us ns), like 15m or 1h30m",
		(int)MIN(s.len, (size_t)SHOWN_MAX), s.p ? s.p : "");
}

enum status units_parse_duration(struct str s, int64_t *out_ns, struct err *e)
{
	struct str rest = s;
	int64_t total = 0;
	size_t next = 0; /* the largest unit that may still come */
	if (s.len == 0)
		return bad_duration(e, s);
	while (rest.len > 0) {
		uint64_t count = 0;
		struct str number = cut_while(&rest, true), unit = cut_while(&rest, false);
		size_t i = next;
		while (i < ARRAY_COUNT(durations) && !str_eq(unit, str_of(durations[i].name)))
			i++;
		if (number.len == 0 || i == ARRAY_COUNT(durations))
			return bad_duration(e, s);
		int64_t part = 0;
		if (!str_parse_u64(number, 10, &count) || count > INT64_MAX ||
			__builtin_mul_overflow((int64_t)count, durations[i].ns, &part) ||
			__builtin_add_overflow(total, part, &total))
			return err_set(e, E_INVALID, "'%.*s' is too long: at most 292 years",
				(int)MIN(s.len, (size_t)SHOWN_MAX), s.p);
		next = i + 1;
	}
	*out_ns = total;
	return OK;
}

enum status units_parse_bytes(struct str s, uint64_t *out_bytes, struct err *e)
{
	struct str unit = s;
	struct str number = cut_while(&unit, true);
	uint64_t count = 0, bytes = 0;
	size_t i = 0;
	while (i < ARRAY_COUNT(sizes) && !str_eq(unit, str_of(sizes[i].name)))
		i++;
	if (number.len == 0 || i == ARRAY_COUNT(sizes))
		return err_set(e, E_INVALID,
			"'%.*s' is not a size: expected a whole number with a unit, like 512MB or "
			"10GiB",
			(int)MIN(s.len, (size_t)SHOWN_MAX), s.p ? s.p : "");
	if (!str_parse_u64(number, 10, &count) ||
		__builtin_mul_overflow(count, sizes[i].bytes, &bytes))
		return err_set(e, E_INVALID, "'%.*s' is too large: at most 16 EiB",
			(int)MIN(s.len, (size_t)SHOWN_MAX), s.p);
	*out_bytes = bytes;
	return OK;
}

/* ---- writing ---- */

struct scale {
	double from; /* least absolute value for this unit */
	double divisor;
	const char *suffix;
};

/* clang-format off */
static const struct scale time_scales[] = {
	{ 3600e9, 3600e9, "h" }, { 60e9, 60e9, "min" }, { 1e9, 1e9, "s" }, { 1e6, 1e6, "ms" },
	{ 1e3, 1e3, "us" }, { 0, 1, "ns" },
};
static const struct scale byte_scales[] = {
	{ 0x1p40, 0x1p40, "TiB" }, { 0x1p30, 0x1p30, "GiB" }, { 0x1p20, 0x1p20, "MiB" },
	{ 0x1p10, 0x1p10, "KiB" }, { 0, 1, "B" },
};
static const struct scale count_scales[] = {
	{ 1e12, 1e12, "T" }, { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" }, { 1e4, 1e3, "k" }, { 0, 1, "" },
};
/* clang-format on */

static double unit_in_ns(struct str unit)
{
	static const struct {
		const char *name;
		double ns;
	} names[] = { { "nanoseconds", 1 }, { "microseconds", 1e3 }, { "milliseconds", 1e6 },
		{ "seconds", 1e9 } };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(unit, str_of(names[i].name)))
			return names[i].ns;
	return 0;
}

const char *units_format(int64_t value, struct str unit, char out[UNITS_TEXT_MAX])
{
	double v = (double)value;
	const struct scale *scale = count_scales;
	struct str tail = unit;
	if (unit_in_ns(unit) > 0) {
		v *= unit_in_ns(unit);
		scale = time_scales;
		tail = STR("");
	} else if (str_eq(unit, STR("bytes"))) {
		scale = byte_scales;
		tail = STR("");
	} else if (str_eq(unit, STR("count"))) {
		tail = STR("");
	}
	double size = fabs(v);
	while (size < scale->from)
		scale++;
	size /= scale->divisor;
	int decimals = scale->divisor == 1 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
	snprintf(out, UNITS_TEXT_MAX, "%.*f%s%s%.*s", decimals, v / scale->divisor, scale->suffix,
		tail.len ? " " : "", (int)MIN(tail.len, (size_t)15), tail.p ? tail.p : "");
	return out;
}

const char *units_format_duration(int64_t ns, char out[UNITS_TEXT_MAX])
{
	assert(ns >= 0);
	size_t len = 0;
	for (size_t i = 0; i < ARRAY_COUNT(durations); i++) {
		if (ns >= durations[i].ns)
			len += (size_t)snprintf(out + len, UNITS_TEXT_MAX - len, "%" PRId64 "%s",
				ns / durations[i].ns, durations[i].name);
		ns %= durations[i].ns;
	}
	if (len == 0)
		snprintf(out, UNITS_TEXT_MAX, "0s");
	return out;
}

const char *units_format_bytes(uint64_t bytes, char out[UNITS_TEXT_MAX])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;
	for (; i + 1 < ARRAY_COUNT(names) && bytes && bytes % 1024 == 0; i++)
		bytes /= 1024;
	snprintf(out, UNITS_TEXT_MAX, "%" PRIu64 "%s", bytes, names[i]);
	return out;
}
