/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static struct query_report_request request(void)
{
	return (struct query_report_request){
		.side = { .selector = STR(HEAP "{comm=\"b\"}"), .to_ns = INT64_MAX },
		.base = { .selector = STR(HEAP "{comm=\"a\"}"), .to_ns = INT64_MAX },
		.diff = true,
		.absolute = true,
	};
}

static void check(double worse_above, uint32_t limit, enum query_format format, const char *want)
{
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_report_request r = request();
	buf_init(&out, 1 << 20);
	CHECK_OK(query_write_diff(&fake_engine, &r, worse_above, limit, format, &out, &e), &e);
	CHECK_STR(buf_view(&out), want);
}

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
		" CHANGE  SELF%  BASE%  SELF  BASE  BINARY  FUNCTION\n"
		"-25.00%  50.0%  75.0%   10B   30B  x       f\n"
		"+25.00%  50.0%  25.0%   10B   10B  x       g\n"
		" +0.00%   0.0%   0.0%    0B    0B  x       main\n");
	check(0.2, 1, QUERY_TEXT,
		"worse: a function's share grew beyond the limit\n\n"
		" CHANGE  SELF%  BASE%  SELF  BASE  BINARY  FUNCTION\n"
		"-25.00%  50.0%  75.0%   10B   30B  x       f\n");
}

/* So that a lone comparison is not refused for what its other side has. */
static void both_sides_are_one_question(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_report_request r = request();
	buf_init(&out, 1 << 20);
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x");
	CHECK_OK(query_write_diff(&fake_engine, &r, -1, 0, QUERY_JSON, &out, &e), &e);
	CHECK(fake_pairs == 1);
}

/* A gate that compares nothing does not let anything through. */
static void needs_two_sides_for_a_verdict(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_report_request r = request();
	struct filter_condition is_f = {
		.field = FILTER_FUNCTION, .op = FILTER_EQ, .text = STR("f")
	};
	struct frame_filter filter = {
		.of_stack = true, .conditions = &is_f, .condition_count = 1
	};
	buf_init(&out, 1 << 20);
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x");
	CHECK(query_write_diff(&fake_engine, &r, 0.5, 0, QUERY_JSON, &out, &e) == E_NOTFOUND);
	assert_string_equal(
		e.text, "nothing to compare: the selector and time range have no samples");
	struct query_side side = r.side;
	r.side = r.base;
	r.base = side;
	CHECK(query_write_diff(&fake_engine, &r, 0, 0, QUERY_TEXT, &out, &e) == E_NOTFOUND);
	assert_string_equal(e.text, "nothing to compare: the base has no samples");
	fake_sample(HEAP, 1, 3, 0, "comm=b", "main@/bin/x");
	r.filters = &filter;
	r.filter_count = 1;
	CHECK(query_write_diff(&fake_engine, &r, 0, 0, QUERY_TEXT, &out, &e) == E_NOTFOUND);
	assert_string_equal(
		e.text, "nothing to compare: both sides have no samples with such a function");
	fake_sample(HEAP, 1, 3, 0, "comm=a", "f@/bin/x"); /* it is new */
	CHECK_OK(query_write_diff(&fake_engine, &r, 0.5, 0, QUERY_JSON, &out, &e), &e);
	CHECK(str_starts(buf_view(&out), STR("{\"worse\":true")));
}

static void is_no_flame_graph(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_report_request r = request();
	buf_init(&out, 1 << 20);
	CHECK(query_write_diff(&fake_engine, &r, -1, 0, QUERY_HTML, &out, &e) == E_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(compares_shares), TEST(both_sides_are_one_question),
	TEST(needs_two_sides_for_a_verdict), TEST(is_no_flame_graph))
