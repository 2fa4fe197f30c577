/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "arrow_text.h"

static char text[1 << 20];

static struct query_report_request request(const char *selector)
{
	return (struct query_report_request){
		.side = { .selector = str_of(selector), .to_ns = INT64_MAX },
	};
}

static void answer(const struct query_report_request *r, struct buf *out, struct query_report *info)
{
	const struct query_engine unnamed = { .samples = fake_engine.samples,
		.pool = fake_engine.pool };
	struct err e = { 0 };
	buf_init(out, 1 << 20);
	CHECK_OK(query_flame_arrow(&unnamed, r, out, info, &e), &e);
}

/* Two threads write the same bytes as one. */
static struct query_report ask(const struct query_report_request *r)
{
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	fake_engine.pool = NULL;
	answer(r, &out, &info);
	for (int how = 0; how < FAKE_BESIDE_COUNT; how++) {
		CLEANUP(buf_deinit) struct buf again;
		struct query_report other;
		fake_have_threads((enum fake_beside)how);
		answer(r, &again, &other);
		CHECK(str_eq(buf_view(&again), buf_view(&out)));
	}
	arrow_text(&out, text, sizeof(text));
	return info;
}

static void three_stacks(void)
{
	fake_sample(HEAP, 1, 300, 0, "comm=a", "main@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 50, 0, "comm=b", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 1, 0, "", "main@/bin/z;0x12@/lib/y");
}

/* Order and types are Parca's: docs/clients.md names what was compared. */
static void has_the_columns(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP);
	struct query_report info = ask(&r);
	CHECK(info.total == 351 && info.filtered == 0 && info.trimmed == 0 && info.found);
	CHECK(info.height == 4);
	CHECK_STR(str_of(info.unit), "bytes");
	/* Rows: root, main, f, 0x12, g, inner. */
	static const char *const columns[] = {
		"[\"labels_only\", \"bool\", false, [null, false, false, false, false, false]]",
		"[\"mapping_file\", \"dictionary<uint8,binary>\", false, [null, null, \"/bin/x\", "
		"\"/lib/y\", \"/lib/y\", \"/bin/x\"]]",
		"[\"mapping_build_id\", \"dictionary<uint8,binary>\", false, [null, \"\", \"\", "
		"\"\", "
		"\"\", \"\"]]",
		"[\"location_line\", \"uint8\", false, [null, 41, 11, null, 11, 51]]",
		"[\"inlined\", \"bool\", true, [false, false, false, false, false, true]]",
		"[\"function_startline\", \"uint8\", false, [null, 40, 10, null, 10, 50]]",
		"[\"function_name\", \"dictionary<uint8,binary>\", false, [null, \"main\", \"f\", "
		"null, "
		"\"g\", \"inner\"]]",
		"[\"function_system_name\", \"dictionary<uint8,binary>\", false, [null, null, "
		"null, "
		"null, null, null]]",
		"[\"function_file_name\", \"dictionary<uint8,binary>\", false, [null, "
		"\"/src/main.c\", "
		"\"/src/f.c\", null, \"/src/g.c\", \"/src/inner.c\"]]",
		"[\"children\", \"list<uint32>\", false, [[1], [2, 3], [4, 5], null, null, null]]",
		"[\"parent\", \"int32\", false, [-1, 0, 1, 1, 2, 2]]",
		"[\"cumulative\", \"uint16\", false, [351, 351, 350, 1, 300, 50]]",
		"[\"flat\", \"uint16\", false, [0, 0, 0, 1, 300, 50]]",
		"[\"diff\", \"int8\", false, [0, 0, 0, 0, 0, 0]]",
		"[\"timestamp\", \"int64\", false, [0, 0, 0, 0, 0, 0]]",
		"[\"depth\", \"uint8\", false, [0, 1, 2, 2, 3, 3]]",
		"[\"value_offset\", \"uint16\", false, [0, 0, 0, 350, 0, 300]]",
	};
	const char *last = text;
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		check_column(last, columns[i]);
		last = strstr(text, columns[i]);
	}
	CHECK(strstr(text, "[\"location_address\", \"uint64\", false, [null, "));
	CHECK(!strstr(text, "labels."));
}

static void trims_and_keeps_the_sums(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP);
	r.trim = 0.2;
	struct query_report info = ask(&r);
	CHECK(info.total == 351 && info.trimmed == 51 && info.height == 4);
	check_column(text, "[\"cumulative\", \"uint16\", false, [351, 351, 350, 300]]");
	check_column(text, "[\"flat\", \"uint16\", false, [0, 0, 0, 300]]");
}

/* What is left without a frame is no part of the root's value either. */
static void gives_the_root_nothing_of_its_own(void **state)
{
	(void)state;
	three_stacks();
	struct filter_condition in_z = {
		.field = FILTER_BINARY, .op = FILTER_EQ, .text = STR("z")
	};
	struct frame_filter f = { .conditions = &in_z, .condition_count = 1 };
	struct query_report_request r = request(HEAP);
	r.filters = &f;
	r.filter_count = 1;
	ask(&r);
	check_column(text, "[\"cumulative\", \"uint8\", false, [1, 1]]");
	check_column(text, "[\"flat\", \"uint8\", false, [0, 1]]");
}

static void shows_labels_as_rows(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP);
	r.labels[r.label_count++] = STR("comm");
	r.labels[r.label_count++] = STR("absent");
	ask(&r);
	check_column(text, "[\"labels_only\", \"bool\", false, [null, true, true, false, false, ");
	check_column(text, "[\"labels.comm\", \"dictionary<uint8,binary>\", false, [null, \"a\", "
			   "\"b\", null, \"a\", \"b\", null, ");
	check_column(text, "[\"inlined\", \"bool\", true, [false, null, null, false, ");
	CHECK(!strstr(text, "labels.absent"));
}

/* Two groups of labels take turns: their rows lie side by side, and each has its time. */
static void charts_by_labels(void **state)
{
	(void)state;
	int64_t at = 1000 * (int64_t)PERIOD;
	fake_sample(CPU, at, 1, PERIOD, "comm=a", "main@x;f@x");
	fake_sample(CPU, at + 1, 1, PERIOD, "comm=b", "main@x;g@x");
	fake_sample(CPU, at + PERIOD, 1, PERIOD, "comm=a", "main@x;h@x");
	fake_sample(CPU, at + PERIOD + 1, 2, PERIOD, "comm=b", "main@x;f@x;g@x");
	struct query_report_request r = request(CPU);
	r.chart = true;
	r.labels[r.label_count++] = STR("comm");
	CHECK(ask(&r).height == 5);
	static const char *const columns[] = {
		"[\"children\", \"list<uint32>\", false, [[1, 2], [3], [4], [5, 6], [7, 8], null, "
		"null, null, [9], null]]",
		"[\"parent\", \"int32\", false, [-1, 0, 0, 1, 2, 3, 3, 4, 4, 8]]",
		"[\"cumulative\", \"uint32\", false, [50000000, 20000000, 30000000, 20000000, "
		"30000000, 10000000, 10000000, 10000000, 20000000, 20000000]]",
		"[\"flat\", \"uint32\", false, [0, 0, 0, 0, 0, 10000000, 10000000, 10000000, 0, "
		"20000000]]",
		"[\"timestamp\", \"int64\", false, [0, 0, 0, 10000000000, 10000000001, "
		"10000000000, 10010000000, 10000000001, 10010000001, 10010000001]]",
		"[\"depth\", \"uint8\", false, [0, 1, 1, 2, 2, 3, 3, 3, 3, 4]]",
		"[\"value_offset\", \"uint32\", false, [0, 0, 20000000, 0, 20000000, 0, "
		"10000000, 20000000, 30000000, 30000000]]",
		"[\"labels.comm\", \"dictionary<uint8,binary>\", false, [null, \"a\", \"b\", "
		"\"a\", \"b\", \"a\", \"a\", \"b\", \"b\", \"b\"]]",
	};
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		check_column(text, columns[i]);
}

static void compares(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP "{comm=\"b\"}");
	r.base = (struct query_side){ .selector = STR(HEAP "{comm=\"a\"}"), .to_ns = INT64_MAX };
	r.diff = r.absolute = true;
	CHECK(ask(&r).total == 50);
	/* What only the base had has no width, and is no row, as in Parca. */
	check_column(text, "[\"cumulative\", \"uint8\", false, [50, 50, 50, 50]]");
	check_column(text, "[\"diff\", \"int16\", false, [-250, -250, -250, 50]]");
}

static void is_one_row_when_empty(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP "{comm=\"c\"}");
	struct query_report info = ask(&r);
	CHECK(info.total == 0 && info.height == 1 && !info.found);
	check_column(text, "[\"children\", \"list<uint32>\", false, [null]]");
	check_column(text, "[\"parent\", \"int32\", false, [-1]]");
	check_column(text, "[\"cumulative\", \"uint64\", false, [null]]");
	check_column(text, "[\"value_offset\", \"uint8\", false, [0]]");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(has_the_columns), TEST(trims_and_keeps_the_sums),
	TEST(gives_the_root_nothing_of_its_own), TEST(shows_labels_as_rows), TEST(charts_by_labels),
	TEST(compares), TEST(is_one_row_when_empty))
