/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/units.h"
#include "test.h"

/* clang-format off */
static const struct {
	const char *name, *in;
	int64_t want; /* -1: refused */
} durations[] = {
	{ "minutes", "15m", 900 * NS_PER_SEC },
	{ "two units", "1h30m", 5400 * NS_PER_SEC },
	{ "all", "1w1d1h1m1s1ms1us1ns", 694861001001001 },
	{ "days", "14d", 14 * 86400 * NS_PER_SEC },
	{ "milliseconds", "250ms", 250 * NS_PER_MS },
	{ "zero", "0s", 0 },
	{ "largest", "9223372036854775807ns", INT64_MAX },
	{ "empty", "", -1 },
	{ "no unit", "15", -1 },
	{ "no number", "m", -1 },
	{ "unknown unit", "15y", -1 },
	{ "wrong order", "30m1h", -1 },
	{ "twice", "1m1m", -1 },
	{ "sign", "-1m", -1 },
	{ "blank", "1h 30m", -1 },
	{ "fraction", "1.5h", -1 },
	{ "too long", "9223372036854775808ns", -1 },
	{ "product too long", "20000w", -1 },
	{ "sum too long", "15250w1w", -1 },
	{ "number at the end", "1h30", -1 },
};

static const struct {
	const char *name, *in;
	uint64_t want;
	bool fails;
} sizes[] = {
	{ "plain", "4096", 4096, false },
	{ "bytes", "7B", 7, false },
	{ "megabytes", "512MB", 512000000, false },
	{ "short", "2G", 2000000000, false },
	{ "binary", "1GiB", 1 << 30, false },
	{ "zero", "0", 0, false },
	{ "largest", "18446744073709551615", UINT64_MAX, false },
	{ "empty", "", 0, true },
	{ "no number", "MB", 0, true },
	{ "unknown", "5XB", 0, true },
	{ "blank", "5 MB", 0, true },
	{ "fraction", "1.5GB", 0, true },
	{ "negative", "-1", 0, true },
	{ "too large", "18446744073709551616", 0, true },
	{ "product too large", "16777216TiB", 0, true },
};

static const struct {
	const char *name;
	int64_t value;
	const char *unit, *want;
} texts[] = {
	{ "zero", 0, "nanoseconds", "0ns" },
	{ "nanoseconds", 999, "nanoseconds", "999ns" },
	{ "seconds", 1230000000, "nanoseconds", "1.23s" },
	{ "three digits", 45600000, "nanoseconds", "45.6ms" },
	{ "no more digits", 123400000, "nanoseconds", "123ms" },
	{ "rounded up", 9999999, "nanoseconds", "10.0ms" },
	{ "minutes", 90000000000, "nanoseconds", "1.50min" },
	{ "hours", 7560000000000, "nanoseconds", "2.10h" },
	{ "negative", -1230000000, "nanoseconds", "-1.23s" },
	{ "other units of time", 1500, "microseconds", "1.50ms" },
	{ "bytes", 512, "bytes", "512B" },
	{ "mebibytes", 47815066, "bytes", "45.6MiB" },
	{ "count", 1234, "count", "1234" },
	{ "large count", 12345, "count", "12.3k" },
	{ "own unit", 12, "objects", "12 objects" },
	{ "smallest", INT64_MIN, "count", "-9223372T" },
};
/* clang-format on */

static void parses_durations(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, durations) {
		int64_t got = -1;
		struct err e = { 0 };
		enum status s = units_parse_duration(str_of(c->in), &got, &e);
		CHECK_CASE(c, s == (c->want < 0 ? E_INVALID : OK));
		CHECK_CASE(c, got == c->want);
		CHECK_CASE(c, s == OK || strstr(e.text, c->in));
	}
}

static void parses_sizes(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, sizes) {
		uint64_t got = 0;
		struct err e = { 0 };
		enum status s = units_parse_bytes(str_of(c->in), &got, &e);
		CHECK_CASE(c, s == (c->fails ? E_INVALID : OK));
		CHECK_CASE(c, got == c->want);
	}
}

static void formats_values(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, texts) {
		char text[UNITS_TEXT_MAX];
		if (strcmp(units_format(c->value, str_of(c->unit), text), c->want) != 0)
			print_error("[%s] got %s\n", c->name, text);
		CHECK_CASE(c, strcmp(text, c->want) == 0);
	}
}

static void formats_what_it_parses(void **state)
{
	(void)state;
	static const int64_t ns[] = { 0, 1, 999, 90 * NS_PER_SEC, 14 * 86400 * NS_PER_SEC,
		INT64_MAX };
	for (size_t i = 0; i < ARRAY_COUNT(ns); i++) {
		char text[UNITS_TEXT_MAX];
		int64_t got = -1;
		struct err e = { 0 };
		CHECK_OK(units_parse_duration(str_of(units_format_duration(ns[i], text)), &got, &e),
			&e);
		CHECK(got == ns[i]);
	}
	static const uint64_t bytes[] = { 0, 1, 1000, 1024, 256 << 20, 10ULL << 30, UINT64_MAX };
	for (size_t i = 0; i < ARRAY_COUNT(bytes); i++) {
		char text[UNITS_TEXT_MAX];
		uint64_t got = 1;
		struct err e = { 0 };
		CHECK_OK(units_parse_bytes(str_of(units_format_bytes(bytes[i], text)), &got, &e),
			&e);
		CHECK(got == bytes[i]);
	}
	char text[UNITS_TEXT_MAX];
	CHECK_STR(str_of(units_format_duration(5400 * NS_PER_SEC, text)), "1h30m");
	CHECK_STR(str_of(units_format_duration(14 * 86400 * NS_PER_SEC, text)), "2w");
	CHECK_STR(str_of(units_format_bytes(10ULL << 30, text)), "10GiB");
}

TEST_MAIN(cmocka_unit_test(parses_durations), cmocka_unit_test(parses_sizes),
	cmocka_unit_test(formats_values), cmocka_unit_test(formats_what_it_parses))
