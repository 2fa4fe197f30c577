/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

static void writes_types(void **state)
{
	(void)state;
	struct query_request r = fake_request("");
	CHECK_ANSWER(query_write_types, &r, QUERY_JSON, "{\"types\":[]}");
	CHECK_ANSWER(query_write_types, &r, QUERY_TEXT, "no profiles in this time range\n");
	fake_sample(CPU, 5 * NS_PER_SEC, 1, PERIOD, "", "x@x");
	fake_sample(CPU, 7 * NS_PER_SEC, 1, PERIOD, "", "x@x");
	fake_sample(HEAP, 9 * NS_PER_SEC, 1, 0, "", "x@x");
	CHECK_ANSWER(query_write_types, &r, QUERY_JSON,
		"{\"types\":[{\"type\":\"" CPU "\",\"unit\":\"nanoseconds\",\"delta\":true,"
		"\"first\":5000,\"last\":7000},{\"type\":\"" HEAP "\",\"unit\":\"bytes\","
		"\"delta\":false,\"first\":9000,\"last\":9000}]}");
	r.to_ns = 8 * NS_PER_SEC;
	CHECK_ANSWER(query_write_types, &r, QUERY_TEXT,
		"UNIT         FIRST                 LAST                  TYPE\n"
		"nanoseconds  1970-01-01 00:00:05Z  1970-01-01 00:00:07Z  " CPU "\n");
	/* Of a selector those that have what it asks for. */
	r = fake_request("{node=\"n\"}");
	CHECK_ANSWER(query_write_types, &r, QUERY_JSON, "{\"types\":[]}");
	fake_sample(HEAP, 9 * NS_PER_SEC, 1, 0, "node=n", "x@x");
	CHECK_ANSWER(query_write_types, &r, QUERY_JSON,
		"{\"types\":[{\"type\":\"" HEAP "\",\"unit\":\"bytes\","
		"\"delta\":false,\"first\":9000,\"last\":9000}]}");
}

static void writes_labels(void **state)
{
	(void)state;
	struct query_request r = fake_request("");
	CHECK_ANSWER(query_write_labels, &r, QUERY_JSON, "{\"labels\":[]}");
	CHECK_ANSWER(query_write_labels, &r, QUERY_TEXT, "");
	fake_sample(CPU, 5, 1, PERIOD, "comm=a,pid=1", "x@x");
	fake_sample(HEAP, 5, 1, 0, "node=n\x1b", "x@x");
	CHECK_ANSWER(
		query_write_labels, &r, QUERY_JSON, "{\"labels\":[\"comm\",\"node\",\"pid\"]}");
	CHECK_ANSWER(query_write_labels, &r, QUERY_TEXT, "comm\nnode\npid\n");
	r = fake_request("{comm=\"a\"}");
	CHECK_ANSWER(query_write_labels, &r, QUERY_JSON, "{\"labels\":[\"comm\",\"pid\"]}");
}

static enum status write_comm(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e)
{
	return query_write_label_values(q, r, STR("comm"), f, out, e);
}

static enum status write_absent(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e)
{
	return query_write_label_values(q, r, STR("no such label"), f, out, e);
}

static void writes_values(void **state)
{
	(void)state;
	struct query_request r = fake_request("");
	fake_sample(CPU, 5, 1, PERIOD, "comm=b", "x@x");
	fake_sample(CPU, 5, 1, PERIOD, "comm=a\x1b", "x@x");
	fake_sample(CPU, 6, 1, PERIOD, "comm=b", "x@x");
	CHECK_ANSWER(write_comm, &r, QUERY_JSON, "{\"values\":[\"a\\u001b\",\"b\"]}");
	CHECK_ANSWER(write_comm, &r, QUERY_TEXT, "a?\nb\n");
	CHECK_ANSWER(write_absent, &r, QUERY_JSON, "{\"values\":[]}");
}

static void fails(void **state)
{
	(void)state;
	fake_sample(CPU, 5, 1, PERIOD, "comm=b", "x@x");
	check_failures(query_write_types, false);
	check_failures(query_write_labels, false);
	check_failures(write_comm, false);
}

TEST_MAIN(WITH_STORE(writes_types), WITH_STORE(writes_labels), WITH_STORE(writes_values),
	WITH_STORE(fails))
