/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/arena.h"
#include "pyroscope/pyroscope.h"

static void writes_flamebearers(void **state)
{
	(void)state;
	static const uint32_t zero[1];
	static const int64_t none[1];
	struct pyroscope_side empty = { 1, zero, zero, NULL, none };
	struct pyroscope_flame f;
	struct arena a;
	struct err e;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(&empty, NULL, 10, &a, &f, &e), &e);
	pyroscope_flamebearer_write(&f, STR("inuse_objects"), STR("count"), NULL, &b);
	CHECK_STR(buf_view(&b),
		"{\"version\":1,\"flamebearer\":{\"names\":[\"total\"],\"levels\":[[0,0,0,0]],"
		"\"numTicks\":0,\"maxSelf\":0},\"metadata\":{\"format\":\"single\",\"spyName\":"
		"\"\","
		"\"sampleRate\":100,\"units\":\"objects\",\"name\":\"inuse_objects\"},\"timeline\":"
		"null,\"groups\":null,\"heatmap\":null,\"leftTicks\":0,\"rightTicks\":0}");
	buf_clear(&b);
	const int64_t all[] = { 5, 0, 7 }, one[] = { 5, 0, 0 };
	const struct pyroscope_timeline groups[] = { { STR("a\"b"), one }, { STR("*"), all } };
	struct pyroscope_timelines lines = { 1700000010, 15, 3, all, groups, 2 };
	pyroscope_flamebearer_write(&f, STR("cpu"), STR("nanoseconds"), &lines, &b);
	CHECK(str_ends(buf_view(&b),
		STR("\"units\":\"samples\",\"name\":\"cpu\"},\"timeline\":{\"startTime\":"
		    "1700000010,\"samples\":[5,0,7],\"durationDelta\":15,\"watermarks\":null},"
		    "\"groups\":{\"a\\\"b\":{\"startTime\":1700000010,\"samples\":[5,0,0],"
		    "\"durationDelta\":15,\"watermarks\":null},\"*\":{\"startTime\":1700000010,"
		    "\"samples\":[5,0,7],\"durationDelta\":15,\"watermarks\":null}},\"heatmap\":"
		    "null,\"leftTicks\":0,\"rightTicks\":0}")));
	arena_deinit(&a);
}

static void chooses_steps(void **state)
{
	(void)state;
	const int64_t hour = 3600000, day = 24 * hour;
	CHECK(pyroscope_timeline_step(0, 0) == 15 && pyroscope_timeline_step(5, 0) == 15);
	CHECK(pyroscope_timeline_step(0, hour) == 15);
	CHECK(pyroscope_timeline_step(0, 12 * hour) == 30);
	CHECK(pyroscope_timeline_step(day, 2 * day) == 60);
	CHECK(pyroscope_timeline_step(0, 7 * day) == 300);
	CHECK(pyroscope_timeline_step(0, INT64_MAX) == 31536000);
}

TEST_MAIN(cmocka_unit_test(writes_flamebearers), cmocka_unit_test(chooses_steps))
