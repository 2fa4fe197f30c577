/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "arrow_text.h"

static char text[1 << 20];

static void samples(void)
{
	fake_sample(HEAP, 1, 300, 0, "comm=a", "main@/bin/x;f@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 50, 0, "comm=b", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 1, 0, "", "main@/bin/x;0x12@/lib/y");
}

static struct query_report_request request(const char *selector)
{
	return (struct query_report_request){
		.side = { .selector = str_of(selector), .to_ns = INT64_MAX },
	};
}

static void lists_functions(void **state)
{
	(void)state;
	const struct query_engine unnamed = { .samples = fake_engine.samples };
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	samples();
	struct query_report_request r = request(HEAP);
	CHECK_OK(query_table_arrow(&unnamed, &r, &out, &info, &e), &e);
	CHECK(info.total == 351);
	arrow_text(&out, text, sizeof(text));
	/* By own value; f counts once in a stack. Rows: g, inner, 0x12, f and main by address. */
	CHECK(strstr(text, "[\"function_name\", \"dictionary<uint32,utf8>\", false, [\"g\", "
			   "\"inner\", null, "));
	static const char *const columns[] = {
		"[\"mapping_file\", \"dictionary<uint16,utf8>\", false, [\"/lib/y\", \"/bin/x\", ",
		"[\"mapping_build_id\", \"dictionary<uint16,utf8>\", false, [null, ",
		"[\"location_address\", \"uint64\", false, [",
		"[\"location_line\", \"int64\", false, [11, 51, null, ",
		"[\"function_startline\", \"int64\", false, [10, 50, null, ",
		"[\"function_system_name\", \"dictionary<uint16,utf8>\", false, [null, null, ",
		"[\"function_file_name\", \"dictionary<uint32,utf8>\", false, [\"/src/g.c\", ",
		"[\"cumulative\", \"int64\", false, [300, 50, 1, 35",
		"[\"cumulative_diff\", \"int64\", true, [null, null, null, null, null]]",
		"[\"flat\", \"int64\", false, [300, 50, 1, 0, 0]]",
		"[\"flat_diff\", \"int64\", false, [0, 0, 0, 0, 0]]",
		"[\"callers\", \"list<int64>\", false, [",
		"[\"callees\", \"list<int64>\", false, [null, null, null, ",
	};
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		check_column(text, columns[i]);
}

/* Inverted, a stack ends with its outermost frame; a sandwich's with the function, from outside. */
static void turns_round(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	samples();
	struct query_report_request r = request(HEAP);
	r.invert = true;
	CHECK_OK(query_table_arrow(&fake_engine, &r, &out, &info, &e), &e);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"function_name\", \"dictionary<uint32,utf8>\", false, [\"main\", ");
	check_column(text, "[\"flat\", \"int64\", false, [351, 0, 0, 0, 0]]");
	check_column(text, "[\"cumulative\", \"int64\", false, [351, ");
	check_column(text, "[\"callees\", \"list<int64>\", false, [null, ");
	r.sandwich = STR("inner");
	buf_clear(&out);
	CHECK_OK(query_table_arrow(&fake_engine, &r, &out, &info, &e), &e);
	CHECK(info.total == 50 && info.filtered == 301);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"flat\", \"int64\", false, [50, 0, 0]]");
	check_column(text, "[\"cumulative\", \"int64\", false, [50, 50, 50]]");
}

static void lists_lines_of_a_source(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	samples();
	struct query_report_request r = request(HEAP);
	CHECK_OK(query_source_arrow(&fake_engine, &r, STR(""), STR("f.c"), &out, &info, &e), &e);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"filename\", \"dictionary<int32,utf8>\", false, [\"/src/f.c\"]]");
	check_column(text, "[\"line_number\", \"int64\", false, [11]]");
	check_column(text, "[\"cumulative\", \"int64\", false, [350]]");
	check_column(text, "[\"flat\", \"int64\", false, [0]]");
	buf_clear(&out); /* not the end of a name, nor of another build id */
	CHECK_OK(query_source_arrow(&fake_engine, &r, STR(""), STR(".c"), &out, &info, &e), &e);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"line_number\", \"int64\", false, []]");
	buf_clear(&out);
	CHECK_OK(
		query_source_arrow(&fake_engine, &r, STR("abcd"), STR("f.c"), &out, &info, &e), &e);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"line_number\", \"int64\", false, []]");
}

static void compares(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	samples();
	struct query_report_request r = request(HEAP "{comm=\"b\"}");
	r.base = (struct query_side){ .selector = STR(HEAP "{comm=\"a\"}"), .to_ns = INT64_MAX };
	r.diff = r.absolute = true;
	CHECK_OK(query_table_arrow(&fake_engine, &r, &out, &info, &e), &e);
	arrow_text(&out, text, sizeof(text));
	check_column(text, "[\"flat\", \"int64\", false, [50, 0, 0, 0]]");
	check_column(text, "[\"cumulative_diff\", \"int64\", true, [50, -");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(lists_functions), TEST(turns_round), TEST(lists_lines_of_a_source), TEST(compares))
