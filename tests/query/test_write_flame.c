/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

static void some_samples(void)
{
	fake_sample(CPU, 1, 2, PERIOD, "", "main@/bin/app;work>inl@/bin/app");
	fake_sample(CPU, 1, 1, PERIOD, "", "main@/bin/app;a;b\n@[kernel]%kernel");
	fake_sample(CPU, 1, 5, PERIOD, "", "main@/bin/app");
}

static void writes_json(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"count\",\"total\":0,\"trimmed\":0,\"samples\":0,\"pending\":0,"
		"\"pending_files\":[],\"strings\":[\"\"],\"nodes\":{\"parent\":[0],\"name\":[0],"
		"\"file\":[0],\"line\":["
		"0],"
		"\"binary\":[0],\"kind\":[0],\"inlined\":[0],\"self\":[0],\"total\":[0]}}");
	fake_sample(CPU, 1, 2, PERIOD, "", "main@/bin/app;work>inl@/bin/app");
	fake_sample(CPU, 1, 3, PERIOD, "", "sys@[kernel]%kernel");
	fake_pending = 4;
	r.trim = 0.5;
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":50000000,\"trimmed\":20000000,\"samples\":2,"
		"\"pending\":4,\"pending_files\":[\"/bin/app\"],\"strings\":[\"\",\"sys\",\"/src/"
		"sys.c\",\"[kernel]\"],\"nodes\":{"
		"\"parent\":[0,0],\"name\":[0,1],\"file\":[0,2],\"line\":[0,30],\"binary\":[0,3],"
		"\"kind\":[0,2],\"inlined\":[0,0],\"self\":[0,30000000],\"total\":[50000000,"
		"30000000]}}");
	r.trim = 0;
	r.match = STR("inl");
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":20000000,\"trimmed\":0,\"samples\":2,"
		"\"pending\":4,\"pending_files\":[\"/bin/app\"],\"strings\":[\"\",\"main\",\"/src/"
		"main.c\",\"app\",\"work\","
		"\"/src/work.c\",\"inl\",\"/src/inl.c\"],\"nodes\":{"
		"\"parent\":[0,0,1,2],\"name\":[0,1,4,6],\"file\":[0,2,5,7],\"line\":[0,40,40,30],"
		"\"binary\":[0,3,3,3],\"kind\":[0,1,1,1],\"inlined\":[0,0,0,1],"
		"\"self\":[0,0,0,20000000],\"total\":[20000000,20000000,20000000,20000000]}}");
}

static void writes_folded(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	some_samples();
	fake_sample(CPU, 1, 3, PERIOD, "", "");
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED,
		"[no stack] 30000000\n"
		"main 50000000\n"
		"main;work;inl 20000000\n"
		"main;a;b  10000000\n");
	r.trim = 0.2;
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED,
		"[no stack] 30000000\nmain 50000000\n[trimmed] 30000000\n");
}

static void folds_no_control_bytes(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 1, PERIOD, "", "a\x1b[2J\x7f");
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED, "a [2J  10000000\n");
}

static void writes_text(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT, "0 in 0 samples\n");
	some_samples();
	fake_pending = 2;
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT,
		"80.0ms in 3 samples; symbols of 2 addresses are still being read\n"
		"\n"
		" SHARE   TOTAL    SELF  BINARY    FUNCTION\n"
		"100.0%  80.0ms  50.0ms  app       main\n"
		" 25.0%  20.0ms     0ns  app         work\n"
		" 25.0%  20.0ms  20.0ms  app         inl\n"
		" 12.5%  10.0ms     0ns              a\n"
		" 12.5%  10.0ms  10.0ms  [kernel]    b?\n");
}

static void fails(void **state)
{
	(void)state;
	check_failures(query_write_flame, true);
}

TEST_MAIN(WITH_STORE(writes_json), WITH_STORE(writes_folded), WITH_STORE(folds_no_control_bytes),
	WITH_STORE(writes_text), WITH_STORE(fails))
