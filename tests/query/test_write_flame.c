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
		"{\"unit\":\"nanoseconds\",\"total\":0,\"trimmed\":0,\"samples\":0,\"pending\":0,"
		"\"pending_files\":[],\"strings\":[\"\"],\"nodes\":{\"parent\":[0],\"name\":[0],"
		"\"file\":[0],\"line\":["
		"0],"
		"\"binary\":[0],\"kind\":[0],\"inlined\":[0],\"self\":[0],\"total\":[0]}}");
	fake_sample(CPU, 1, 2, PERIOD, "", "main@/bin/app;work>inl@/bin/app");
	fake_sample(CPU, 1, 3, PERIOD, "", "sys@[kernel]%kernel");
	fake_pending = 4;
	r.trim = 0.5;
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":50000000,\"trimmed\":20000000,\"samples\":5,"
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

/* In the order of time, each label's calls below its value; what has no label is below the root. */
static void writes_charts(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	int64_t at = 1000 * (int64_t)PERIOD;
	fake_sample(CPU, at + 3000, 1, PERIOD, "cpu=0", "main@x;f@x");
	fake_sample(CPU, at + PERIOD, 1, PERIOD, "cpu=0", "main@x;g@x");
	fake_sample(CPU, at + 2 * PERIOD, 1, PERIOD, "cpu=0", "main@x;f@x");
	fake_sample(CPU, at + 2 * PERIOD, 1, PERIOD, "", "f@x");
	r.chart = r.invert = true;
	r.trim = 0.5;
	r.depth = true;
	r.by[r.by_count++] = STR("cpu");
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":40000000,\"trimmed\":0,\"samples\":4,"
		"\"pending\":0,\"pending_files\":[],\"strings\":[\"\",\"0\",\"main\",\"/src/"
		"main.c\","
		"\"x\",\"f\",\"/src/f.c\",\"g\",\"/src/g.c\"],\"nodes\":{\"depth\":[0,1,2,3,3,3,1],"
		"\"name\":[0,1,2,5,7,5,5],\"file\":[0,0,3,6,8,6,6],\"line\":[0,0,40,10,10,10,10],"
		"\"binary\":[0,0,4,4,4,4,4],\"kind\":[0,0,1,1,1,1,1],\"inlined\":[0,0,0,0,0,0,0],"
		"\"self\":[0,0,0,10000000,10000000,10000000,10000000],"
		"\"total\":[40000000,30000000,30000000,10000000,10000000,10000000,10000000],"
		"\"time\":[0,0,3,3,10000,20000,20000]},\"begin\":10000}");
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	CHECK(query_write_flame(&fake_engine, &r, QUERY_TEXT, &out, &e) == E_INVALID);
}

/* More calls than a page can draw are refused with a way out. */
static void refuses_charts_of_too_many_calls(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	for (int64_t i = 0; i <= QUERY_CHART_NODES_MAX; i++)
		fake_sample(CPU, i * 3 * PERIOD, 1, PERIOD, "", "f@x");
	r.chart = true;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	CHECK(query_write_flame(&fake_engine, &r, QUERY_JSON, &out, &e) == E_LIMIT);
	CHECK(strstr(e.text, "choose a shorter time range"));
}

static void writes_depths(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 4, PERIOD, "", "main@/bin/app;a;b");
	fake_sample(CPU, 1, 3, PERIOD, "", "main@/bin/app;c");
	fake_sample(CPU, 1, 2, PERIOD, "", "sys@[kernel]%kernel");
	r.depth = true;
	CHECK_ANSWER(query_write_flame, &r, QUERY_JSON,
		"{\"unit\":\"nanoseconds\",\"total\":90000000,\"trimmed\":0,\"samples\":9,"
		"\"pending\":0,\"pending_files\":[],\"strings\":[\"\",\"main\",\"/src/main.c\","
		"\"app\",\"a\",\"/src/a.c\",\"b\",\"/src/b.c\",\"c\",\"/src/c.c\",\"sys\","
		"\"/src/sys.c\",\"[kernel]\"],\"nodes\":{\"depth\":[0,1,2,3,2,1],"
		"\"name\":[0,1,4,6,8,10],\"file\":[0,2,5,7,9,11],\"line\":[0,40,10,10,10,30],"
		"\"binary\":[0,3,0,0,0,12],\"kind\":[0,1,1,1,1,2],\"inlined\":[0,0,0,0,0,0],"
		"\"self\":[0,0,0,40000000,30000000,20000000],\"total\":[90000000,70000000,"
		"40000000,40000000,30000000,20000000]}}");
}

static void writes_folded(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	some_samples();
	fake_sample(CPU, 1, 3, PERIOD, "", "");
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED,
		"# unit: nanoseconds\n"
		"[no stack] 30000000\n"
		"main 50000000\n"
		"main;work;inl 20000000\n"
		"main;a;b  10000000\n");
	r.trim = 0.2;
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED,
		"# unit: nanoseconds\n[no stack] 30000000\nmain 50000000\n[trimmed] 30000000\n");
}

static void folds_no_control_bytes(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 1, PERIOD, "", "a\x1b[2J\x7f");
	CHECK_ANSWER(query_write_flame, &r, QUERY_FOLDED, "# unit: nanoseconds\na [2J  10000000\n");
}

static void writes_text(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT, "0ns in 0 samples\n");
	some_samples();
	fake_pending = 2;
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT,
		"80.0ms in 8 samples; symbols of 2 addresses are still being read\n"
		"\n"
		" SHARE   TOTAL    SELF  PLACE     FUNCTION\n"
		"100.0%  80.0ms  50.0ms  app       main\n"
		" 25.0%  20.0ms     0ns  app        ├ work\n"
		" 25.0%  20.0ms  20.0ms  app        │  inl\n"
		" 12.5%  10.0ms     0ns             └ a\n"
		" 12.5%  10.0ms  10.0ms  [kernel]      b?\n");
}

/* Samples that were taken, of what is shown: not rows, which a file has one of for each stack. */
static void counts_samples_where_values_tell(void **state)
{
	(void)state;
#define COUNTED(type, value, period, want)                                \
	do {                                                              \
		struct query_request of = fake_request(type);             \
		struct query_flame f;                                     \
		CLEANUP(arena_deinit) struct arena a;                     \
		struct err e;                                             \
		arena_init(&a, 1 << 20);                                  \
		fake_sample(type, 1, value, period, "", "main;f");        \
		of.match = STR("f");                                      \
		CHECK_OK(query_flame(&fake_engine, &of, &a, &f, &e), &e); \
		assert_int_equal(f.taken, want);                          \
	} while (0)
	fake_sample(CPU, 1, 100, PERIOD, "", "main;g");
	COUNTED(CPU, 7, PERIOD, 7);
	COUNTED("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", 5 * PERIOD, PERIOD, 5);
	COUNTED("other:samples:count:x:y:delta", 6, 0, 6);
	COUNTED("memory:alloc_space:bytes:space:bytes:delta", 4096, 512, -1);
	COUNTED("memory:space:bytes:space:bytes:delta", 4096, 512, -1);
	COUNTED(HEAP, 1000, 0, -1);
	struct query_request r = fake_request(HEAP);
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT,
		"1000B\n"
		"\n"
		" SHARE  TOTAL   SELF  PLACE  FUNCTION\n"
		"100.0%  1000B     0B         main\n"
		"100.0%  1000B  1000B          f\n");
}

/* Children stand beneath their parent, brothers beside each other, at any depth. */
static void draws_a_tree(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 8, PERIOD, "", "r;a;a1;a2;x");
	fake_sample(CPU, 1, 6, PERIOD, "", "r;a;a1;a2;y;y1");
	fake_sample(CPU, 1, 4, PERIOD, "", "r;b;b1");
	fake_sample(CPU, 1, 2, PERIOD, "", "s;t");
	CHECK_ANSWER(query_write_flame, &r, QUERY_TEXT,
		"200ms in 20 samples\n"
		"\n"
		"SHARE   TOTAL    SELF  PLACE  FUNCTION\n"
		"90.0%   180ms     0ns         r\n"
		"70.0%   140ms     0ns          ├ a\n"
		"70.0%   140ms     0ns          │  a1\n"
		"70.0%   140ms     0ns          │  a2\n"
		"40.0%  80.0ms  80.0ms          │  ├ x\n"
		"30.0%  60.0ms     0ns          │  └ y\n"
		"30.0%  60.0ms  60.0ms          │     y1\n"
		"20.0%  40.0ms     0ns          └ b\n"
		"20.0%  40.0ms  40.0ms             b1\n"
		"10.0%  20.0ms     0ns         s\n"
		"10.0%  20.0ms  20.0ms          t\n");
	r.width = 64; /* shares, values and the tree stay whole */
	fake_sample(CPU, 1, 20, PERIOD, "",
		"a_name_of_a_function_that_is_longer_than_the_line_is_wide@/bin/"
		"a-rather-long-binary");
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	struct err e;
	CHECK_OK(query_write_flame(&fake_engine, &r, QUERY_TEXT, &b, &e), &e);
	struct str text = buf_view(&b), line;
	size_t lines = 0;
	for (; str_split(&text, '\n', &line); lines++) {
		size_t width = 0;
		for (size_t i = 0; i < line.len; i++)
			width += ((uint8_t)line.p[i] & 0xC0) != 0x80;
		CHECK(width <= r.width);
	}
	assert_int_equal(lines, 15);
}

static void fails(void **state)
{
	(void)state;
	check_failures(query_write_flame, true);
}

TEST_MAIN(WITH_STORE(writes_json), WITH_STORE(writes_charts),
	WITH_STORE(refuses_charts_of_too_many_calls), WITH_STORE(writes_depths),
	WITH_STORE(writes_folded), WITH_STORE(counts_samples_where_values_tell),
	WITH_STORE(folds_no_control_bytes), WITH_STORE(writes_text), WITH_STORE(draws_a_tree),
	WITH_STORE(fails))
