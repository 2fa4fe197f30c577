/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static void ask(const char *match, enum query_format format, struct buf *out)
{
	struct query_request r = fake_request("");
	struct err e = { 0 };
	r.match = str_of(match);
	buf_clear(out);
	CHECK_OK(query_write_functions(&fake_engine, &r, format, out, &e), &e);
}

static void lists_series_and_times(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	fake_sample(CPU, 10 * NS_PER_SEC, 1, PERIOD, "comm=a,node=x", "main@app;work>Inner@app");
	fake_sample(CPU, 20 * NS_PER_SEC, 1, PERIOD, "comm=b", "main@app;0x12@lib");
	fake_sample(HEAP, 30 * NS_PER_SEC, 1, 0, "comm=c", "main@app;work@app");
	ask("inner", QUERY_JSON, &b);
	CHECK_STR(buf_view(&b),
		"{\"matched\":1,\"pending\":0,\"functions\":[\"Inner\"],\"series\":[{\"type\":"
		"\"" CPU
		"\",\"labels\":{\"comm\":\"a\",\"node\":\"x\"},\"spans\":[[10000,10000]]}]}");
	ask("SYM_", QUERY_JSON, &b); /* names that came from the symbolizer */
	CHECK_STR(buf_view(&b),
		"{\"matched\":1,\"pending\":0,\"functions\":[\"sym_0x12\"],\"series\":[{\"type\":"
		"\"" CPU "\",\"labels\":{\"comm\":\"b\"},\"spans\":[[20000,20000]]}]}");
	ask("nowhere", QUERY_JSON, &b);
	CHECK_STR(buf_view(&b), "{\"matched\":0,\"pending\":0,\"functions\":[],\"series\":[]}");
	ask("0x0", QUERY_JSON, &b); /* of the location that stands for none */
	CHECK_STR(buf_view(&b), "{\"matched\":0,\"pending\":0,\"functions\":[],\"series\":[]}");
	ask("work", QUERY_TEXT, &b);
	buf_u8(&b, 0);
	CHECK(strstr((const char *)b.data, "1970-01-01 00:00:10Z"));
	CHECK(strstr((const char *)b.data, CPU " comm=a,node=x"));
	CHECK(strstr((const char *)b.data, HEAP " comm=c"));
	ask("nowhere", QUERY_TEXT, &b);
	CHECK(b.len > 0);
}

static void says_what_is_missing(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct query_request r = fake_request("");
	struct err e = { 0 };
	buf_init(&b, 1 << 20);
	CHECK(query_write_functions(&fake_engine, &r, QUERY_JSON, &b, &e) == E_INVALID);
	CHECK(strstr(e.text, "match"));
	r.match = STR("x");
	CHECK(query_write_functions(&fake_engine, &r, QUERY_FOLDED, &b, &e) == E_INVALID);
	CHECK(b.len == 0);
}

#define FAKED(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(FAKED(lists_series_and_times), FAKED(says_what_is_missing))
