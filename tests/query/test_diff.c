/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static struct query_request side, base;

static int setup(void **state)
{
	side = (struct query_request){ .selector = STR(HEAP "{comm=\"b\"}"), .to_ns = NS_PER_SEC };
	base = (struct query_request){ .selector = STR(HEAP "{comm=\"a\"}"), .to_ns = NS_PER_SEC };
	return fake_setup(state);
}

static enum status diff(
	double worse_above, enum query_format format, struct buf *out, struct err *e)
{
	return query_write_diff(&fake_engine, &side, &base, worse_above, format, out, e);
}

static void check(double worse_above, uint32_t limit, enum query_format format, const char *want)
{
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	side.limit = limit;
	CHECK_OK(diff(worse_above, format, &out, &e), &e);
	CHECK_STR(buf_view(&out), want);
}

#define SIDES                                                                             \
	"      FROM                  TO                    TOTAL  SELECTOR\n"             \
	"this  1970-01-01 00:00:00Z  1970-01-01 00:00:01Z    20B  " HEAP "{comm=\"b\"}\n" \
	"base  1970-01-01 00:00:00Z  1970-01-01 00:00:01Z    40B  " HEAP "{comm=\"a\"}\n\n"

static void compares_shares(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x;f@/bin/x");
	fake_sample(HEAP, 1, 10, 0, "comm=a", "main@/bin/x;g@/bin/x");
	fake_sample(HEAP, 2, 10, 0, "comm=b", "main@/bin/x;f@/bin/x");
	fake_sample(HEAP, 2, 10, 0, "comm=b", "main@/bin/x;g@/bin/x");
	check(0.2, 1, QUERY_JSON,
		"{\"worse\":true,\"unit\":\"bytes\",\"total\":20,\"base_total\":40,\"rows\":["
		"{\"name\":\"f\",\"binary\":\"x\",\"self\":10,\"total\":10,\"base_self\":30,"
		"\"base_total\":30,\"growth\":-0.25}]}");
	check(0.3, 0, QUERY_TEXT,
		SIDES " CHANGE  SELF%  BASE%  SELF  BASE  PLACE  FUNCTION\n"
		      "-25.00%  50.0%  75.0%   10B   30B  x      f\n"
		      "+25.00%  50.0%  25.0%   10B   10B  x      g\n"
		      " +0.00%   0.0%   0.0%    0B    0B  x      main\n");
	check(0.2, 1, QUERY_TEXT,
		"worse: a function's share grew beyond the limit\n\n" SIDES
		" CHANGE  SELF%  BASE%  SELF  BASE  PLACE  FUNCTION\n"
		"-25.00%  50.0%  75.0%   10B   30B  x      f\n");
}

/* Functions of one name in two files are two, stripped code counts by what top calls it, and a name
 * that is new or gone has 0 on the other side. */
static void counts_as_top_does(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "comm=a", "main@/bin/x;realigned@/bin/x");
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x;realigned@/lib/y.so");
	fake_sample(HEAP, 2, 5, 0, "comm=b", "main@/bin/x;realigned@/bin/x");
	fake_sample(HEAP, 2, 15, 0, "comm=b", "main@/bin/x;z.so+0x20@/lib/z.so");
	check(-1, 0, QUERY_JSON,
		"{\"worse\":false,\"unit\":\"bytes\",\"total\":20,\"base_total\":40,\"rows\":["
		"{\"name\":\"z.so+0x20\",\"binary\":\"z.so\",\"self\":15,\"total\":15,"
		"\"base_self\":0,\"base_total\":0,\"growth\":0.75},"
		"{\"name\":\"realigned\",\"binary\":\"y.so\",\"self\":0,\"total\":0,"
		"\"base_self\":30,\"base_total\":30,\"growth\":-0.75},"
		"{\"name\":\"realigned\",\"binary\":\"x\",\"self\":5,\"total\":5,"
		"\"base_self\":10,\"base_total\":10,\"growth\":0},"
		"{\"name\":\"main\",\"binary\":\"x\",\"self\":0,\"total\":20,"
		"\"base_self\":0,\"base_total\":40,\"growth\":0}]}");
}

/* A gate that compares nothing does not let anything through. */
static void needs_two_sides_for_a_verdict(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x");
	CHECK(diff(0.5, QUERY_JSON, &out, &e) == E_NOTFOUND);
	assert_string_equal(e.text, "nothing to compare: the selector and time range have no "
				    "samples: no sample has comm=\"b\"; comm has 1 other value");
	struct query_request other = side;
	side = base;
	base = other;
	side.required = true; /* who only looks is told, too */
	CHECK(diff(-1, QUERY_TEXT, &out, &e) == E_NOTFOUND);
	CHECK(str_starts(str_of(e.text), STR("nothing to compare: the base has no samples: ")));
	side.required = false;
	CHECK_OK(diff(-1, QUERY_TEXT, &out, &e), &e);
	fake_sample(HEAP, 1, 3, 0, "comm=b", "main@/bin/x");
	side.match = base.match = STR("f");
	CHECK(diff(0, QUERY_TEXT, &out, &e) == E_NOTFOUND);
	CHECK(str_starts(str_of(e.text), STR("nothing to compare: both sides have no samples: ")));
	buf_clear(&out);
	fake_sample(HEAP, 1, 3, 0, "comm=a", "f@/bin/x"); /* it is new */
	CHECK_OK(diff(0.5, QUERY_JSON, &out, &e), &e);
	CHECK(str_starts(buf_view(&out), STR("{\"worse\":true")));
}

static void is_no_flame_graph(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	CHECK(diff(-1, QUERY_HTML, &out, &e) == E_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, fake_teardown)
TEST_MAIN(TEST(compares_shares), TEST(counts_as_top_does), TEST(needs_two_sides_for_a_verdict),
	TEST(is_no_flame_graph))
