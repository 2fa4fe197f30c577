/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

static void writes_json(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	CHECK_ANSWER(query_write_top, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":0,\"rows\":[]}");
	fake_sample(CPU, 1, 2, PERIOD, "", "main@/bin/app;sys@[kernel]%kernel");
	CHECK_ANSWER(query_write_top, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":20000000,\"rows\":["
		"{\"name\":\"sys\",\"binary\":\"[kernel]\",\"file\":\"/src/"
		"sys.c\",\"line\":30,\"kind\":\"kernel\","
		"\"self\":20000000,\"total\":20000000},"
		"{\"name\":\"main\",\"binary\":\"app\",\"file\":\"/src/"
		"main.c\",\"line\":40,\"kind\":\"native\","
		"\"self\":0,\"total\":20000000}]}");
}

static void writes_text(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	CHECK_ANSWER(query_write_top, &r, QUERY_TEXT, "0ns in 0 functions\n");
	fake_sample(CPU, 1, 123, PERIOD, "", "main@/bin/app;sys@[kernel]%kernel");
	fake_sample(CPU, 1, 1, PERIOD, "", "main@/bin/app");
	CHECK_ANSWER(query_write_top, &r, QUERY_TEXT,
		"1.24s in 2 functions\n"
		"\n"
		"  SELF  SELF%  TOTAL  TOTAL%  PLACE     FUNCTION\n"
		" 1.23s  99.2%  1.23s   99.2%  [kernel]  sys\n"
		"10.0ms   0.8%  1.24s  100.0%  app       main\n");
	r.limit = 1;
	CHECK_ANSWER(query_write_top, &r, QUERY_TEXT,
		"1.24s in 2 functions, 1 shown\n"
		"\n"
		" SELF  SELF%  TOTAL  TOTAL%  PLACE     FUNCTION\n"
		"1.23s  99.2%  1.23s   99.2%  [kernel]  sys\n");
}

/* One file has many functions of a name. */
static void tells_where_code_without_a_binary_is(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 100, PERIOD, "", "run%cpython");
	CHECK_ANSWER(query_write_top, &r, QUERY_TEXT,
		"1.00s in 1 functions\n"
		"\n"
		" SELF   SELF%  TOTAL  TOTAL%  PLACE     FUNCTION\n"
		"1.00s  100.0%  1.00s  100.0%  run.c:30  run\n");
}

static void fails(void **state)
{
	(void)state;
	check_failures(query_write_top, false);
}

TEST_MAIN(WITH_STORE(writes_json), WITH_STORE(writes_text),
	WITH_STORE(tells_where_code_without_a_binary_is), WITH_STORE(fails))
