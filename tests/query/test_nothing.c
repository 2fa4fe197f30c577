/* SPDX-License-Identifier: Apache-2.0 */
/* An empty answer says what of the question nothing met; unasked it stays empty. */
#include "fake.h"

static enum status flame(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_flame(q, r, QUERY_TEXT, out, e);
}

static enum status top(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_top(q, r, QUERY_TEXT, out, e);
}

static enum status series(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_series(q, r, QUERY_TEXT, out, e);
}

static enum status functions(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_functions(q, r, QUERY_TEXT, out, e);
}

static enum status labels(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_labels(q, r, QUERY_TEXT, out, e);
}

static enum status values(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_label_values(q, r, STR("nosuch"), QUERY_TEXT, out, e);
}

static void says_why(void **state)
{
	(void)state;
	typedef enum status ask_fn(const struct query_engine *q, const struct query_request *r,
		struct buf *out, struct err *e);
	static const struct {
		const char *name;
		ask_fn *ask;
		const char *selector, *match;
		int64_t from_ns;
		const char *says;
	} cases[] = {
		{ "a type", flame, "a:b:c:d:e", "", 0,
			"there is no profile type a:b:c:d:e; there is " CPU },
		{ "a label", top, CPU "{nolabel=\"x\"}", "", 0, "no sample has a label nolabel" },
		{ "a value", top, CPU "{comm=\"x\"}", "", 0,
			"no sample has comm=\"x\"; comm has 2 other values" },
		{ "a pattern", series, CPU "{comm=~\"x.\"}", "", 0,
			"no sample has comm=~\"x.\"; comm has 2 other values" },
		{ "both", query_pprof, CPU "{comm=\"a\",node=\"m\"}", "", 0,
			"no sample of parca_agent:samples in this time range meets the selector; a "
			"longer range (--from) or another profile type (`firn types`) may help" },
		{ "a time", flame, CPU, "", 5 * NS_PER_SEC,
			"no samples in this time range: there are some from 1970-01-01 00:00:01Z "
			"to 1970-01-01 00:00:01Z" },
		{ "a function", top, CPU, "zzz", 0,
			"no stack in this time range has a function whose name contains \"zzz\"" },
		{ "a function of no series", functions, CPU, "zzz", 0,
			"no stack in this time range has a function whose name contains \"zzz\"" },
		{ "labels", labels, "{comm=\"x\"}", "", 0,
			"no sample has comm=\"x\"; comm has 2 other values" },
		{ "values", values, "", "", 0, "no sample has a label nosuch" },
	};
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "comm=a,node=n", "f@/bin/x");
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "comm=b,node=m", "f@/bin/x");
	FOR_EACH_CASE (k, cases) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		struct query_request r = fake_request(k->selector);
		buf_init(&out, 1 << 20);
		r.match = str_of(k->match);
		r.from_ns = k->from_ns;
		r.to_ns = 10 * NS_PER_SEC;
		if (k->ask == series)
			r.match = STR("");
		CHECK_CASE(k, k->ask(&fake_engine, &r, &out, &e) == OK);
		r.required = true;
		buf_clear(&out);
		CHECK_CASE(k, k->ask(&fake_engine, &r, &out, &e) == E_NOTFOUND);
		CHECK_STR(str_of(e.text), k->says);
	}
}

static void says_that_there_is_nothing(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_request r = fake_request("{}");
	buf_init(&out, 1 << 20);
	r.required = true;
	CHECK(query_write_types(&fake_engine, &r, QUERY_TEXT, &out, &e) == E_NOTFOUND);
	CHECK_STR(str_of(e.text), "there are no samples at all yet");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(says_why), TEST(says_that_there_is_nothing))
