/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

static struct query_request by_comm(void)
{
	struct query_request r = fake_request(CPU);
	r.to_ns = 40 * NS_PER_SEC;
	r.step_ns = 10 * NS_PER_SEC;
	r.by[r.by_count++] = STR("comm");
	return r;
}

static void some_samples(void)
{
	fake_sample(CPU, 1 * NS_PER_SEC, 100, PERIOD, "comm=a\"", "x@x");
	fake_sample(CPU, 12 * NS_PER_SEC, 200, PERIOD, "comm=b", "x@x");
	fake_sample(CPU, 31 * NS_PER_SEC, 300, PERIOD, "comm=b", "x@x");
}

static void writes_json(void **state)
{
	(void)state;
	struct query_request r = by_comm();
	CHECK_ANSWER(query_write_series, &r, QUERY_JSON,
		"{\"unit\":\"count\",\"step\":10000,\"by\":[\"comm\"],\"series\":[]}");
	some_samples();
	CHECK_ANSWER(query_write_series, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"step\":10000,\"by\":[\"comm\"],\"series\":["
		"{\"labels\":{\"comm\":\"b\"},\"points\":[[10000,2000000000],[30000,3000000000]]},"
		"{\"labels\":{\"comm\":\"a\\\"\"},\"points\":[[0,1000000000]]}]}");
	r.limit = 1;
	r.by[r.by_count++] = STR("pid");
	CHECK_ANSWER(query_write_series, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"step\":10000,\"by\":[\"comm\",\"pid\"],\"series\":["
		"{\"labels\":{\"comm\":\"b\",\"pid\":\"\"},\"points\":[[10000,2000000000],"
		"[30000,3000000000]]},{\"other\":true,\"labels\":{},\"points\":[[0,1000000000]]}]"
		"}");
	r.by_count = 0;
	r.limit = 0;
	r.step_ns = 40 * NS_PER_SEC + 1000;
	CHECK_ANSWER(query_write_series, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"step\":40000.001,\"by\":[],\"series\":[{\"labels\":{},"
		"\"points\":[[0,6000000000]]}]}");
}

static void writes_text(void **state)
{
	(void)state;
	struct query_request r = by_comm();
	CHECK_ANSWER(query_write_series, &r, QUERY_TEXT, "no samples in this time range\n");
	some_samples();
	r.limit = 1;
	CHECK_ANSWER(query_write_series, &r, QUERY_TEXT,
		"TOTAL  CORES  OVER TIME                                 comm\n"
		"5.00s  0.125            ▆                   █           b\n"
		"1.00s  0.025  ▃                                         (all others)\n");
	r.by_count = 0;
	CHECK_ANSWER(query_write_series, &r, QUERY_TEXT,
		"TOTAL  CORES  OVER TIME                                 SERIES\n"
		"6.00s  0.150  ▃         ▆                   █           all\n");
}

/* A gauge is not added up over time: its mean is what a table of the same time says. */
static void averages_gauges(void **state)
{
	(void)state;
	struct query_request r = fake_request(HEAP);
	r.to_ns = 40 * NS_PER_SEC;
	r.step_ns = 10 * NS_PER_SEC;
	fake_sample(HEAP, 1 * NS_PER_SEC, 100, 0, "comm=a", "x@x");
	fake_sample(HEAP, 12 * NS_PER_SEC, 200, 0, "comm=a", "x@x");
	fake_sample(HEAP, 31 * NS_PER_SEC, 600, 0, "comm=a", "x@x");
	CHECK_ANSWER(query_write_series, &r, QUERY_TEXT,
		"MEAN  OVER TIME                                 SERIES\n"
		"300B  ▂         ▃                   █           all\n");
}

static void fails(void **state)
{
	(void)state;
	check_failures(query_write_series, false);
}

TEST_MAIN(WITH_STORE(writes_json), WITH_STORE(writes_text), WITH_STORE(averages_gauges),
	WITH_STORE(fails))
