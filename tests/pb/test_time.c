/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text, both ways, over all years: against the C library's calendar. */
#include "test.h"

#include "pb/internal.h"

#include <time.h>

static void agrees_with_the_calendar(void **state)
{
	(void)state;
	/* 97 days and some: every weekday, leap years, centuries. */
	for (int64_t t = INT64_C(-62135596800); t <= INT64_C(253402300799); t += 8395201) {
		CLEANUP(buf_deinit) struct buf text;
		CLEANUP(buf_deinit) struct buf bytes;
		CLEANUP(buf_deinit) struct buf want;
		buf_init(&text, 100);
		buf_init(&bytes, 100);
		buf_init(&want, 100);
		pb_timestamp_write(&text, t, 0);
		struct tm tm;
		time_t tt = (time_t)t;
		gmtime_r(&tt, &tm);
		buf_printf(&want, "\"%04d-%02d-%02dT%02d:%02d:%02dZ\"", tm.tm_year + 1900,
			tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
		CHECK(str_eq(buf_view(&text), buf_view(&want)));
		struct err e = { 0 };
		struct str bare = str_sub(buf_view(&text), 1, text.len - 2);
		CHECK_OK(pb_timestamp_read(bare, &bytes, &e), &e);
		struct reader r = reader_over(bytes.data, bytes.len);
		struct pb_field f = { 0 };
		(void)pb_next(&r, &f);
		CHECK((int64_t)f.u64 == t);
	}
}

static void keeps_what_cannot_be_said_in_bounds(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1000);
	pb_timestamp_write(&text, INT64_MAX, INT32_MAX);
	pb_timestamp_write(&text, INT64_MIN, INT32_MIN);
	pb_duration_write(&text, INT64_MIN, INT32_MIN);
	CHECK_STR(buf_view(&text), "\"9999-12-31T23:59:59.999999999Z\"\"0001-01-01T00:00:00Z\""
				   "\"-315576000000.999999999s\"");
}

TEST_MAIN(cmocka_unit_test(agrees_with_the_calendar),
	cmocka_unit_test(keeps_what_cannot_be_said_in_bounds))
