/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"
#include "server/parca/parca.h"

static struct ask asked;

static struct str call(net_handler_fn *fn, const struct buf *body, enum status want)
{
	ask_deinit(&asked);
	ask_init(&asked, "/", "");
	asked.r.body = buf_view(body);
	asked.r.is_rpc = true;
	fn(&made, &asked.r, &asked.out);
	if (asked.out.status != want)
		print_error("%s: %s\n", status_name(asked.out.status), asked.out.message);
	CHECK(asked.out.status == want);
	return buf_view(&asked.out.body);
}

static void lists_what_there_is(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str types = call(server_parca_profile_types, &b, OK);
	CHECK_STR(made_find(made_find(types, 1, 0).bytes, 2, 0).bytes, "samples");
	CHECK(made_find(made_find(types, 1, 0).bytes, 6, 0).u64 == 1);
	CHECK(made_find(call(server_parca_has_profile_data, &b, OK), 1, 0).u64 == 1);
	CHECK_STR(made_find(call(server_parca_labels, &b, OK), 1, 0).bytes, "comm");
	CHECK(call(server_parca_series, &b, OK).len == 0);
	call(server_parca_values, &b, E_INVALID);
	CHECK_STR(str_of(asked.out.message), "label_name: cannot be blank.");
	pb_put_str(&b, 1, STR("comm"));
	struct str values = call(server_parca_values, &b, OK);
	CHECK_STR(made_find(values, 1, 1).bytes, "b");
	pb_put_str(&b, 2, STR("comm!=\"b\""));
	pb_put_str(&b, 5, STR(MADE_TYPE));
	values = call(server_parca_values, &b, OK);
	CHECK_STR(made_find(values, 1, 0).bytes, "a");
	CHECK(made_find(values, 1, 1).number == 0);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("comm"));
	pb_put_str(&b, 2, STR("comm=~\"(\""));
	call(server_parca_values, &b, E_INVALID);
	CHECK(str_starts(str_of(asked.out.message), STR("failed to parse query")));
	/* Another time has no types. */
	buf_clear(&b);
	made_put_time(&b, 1, MADE_NS - 100000000000);
	made_put_time(&b, 2, MADE_NS - 50000000000);
	CHECK(call(server_parca_profile_types, &b, OK).len == 0);
}

static void sums_ranges(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	pb_put_str(&b, 1, STR(MADE_TYPE "{}"));
	made_put_time(&b, 2, MADE_NS);
	made_put_time(&b, 3, MADE_NS + 1000000000); /* belongs to the range */
	size_t step = pb_begin(&b, 5);
	pb_put_u64(&b, 1, 5);
	pb_end(&b, step);
	struct str series = made_find(call(server_parca_query_range, &b, OK), 1, 0).bytes;
	struct str sample = made_find(series, 2, 0).bytes;
	CHECK(made_find(sample, 2, 0).u64 == 5 * MADE_PERIOD && made_find(sample, 5, 0).u64 == 2);
	CHECK_STR(made_find(made_find(series, 4, 0).bytes, 1, 0).bytes, "cpu");
	pb_put_str(&b, 6, STR("comm"));
	series = made_find(call(server_parca_query_range, &b, OK), 1, 1).bytes;
	struct str label = made_find(made_find(series, 1, 0).bytes, 1, 0).bytes;
	CHECK_STR(made_find(label, 1, 0).bytes, "comm");
	buf_clear(&b);
	pb_put_str(&b, 1, STR(MADE_TYPE "{comm=\"c\"}"));
	made_put_time(&b, 2, MADE_NS);
	made_put_time(&b, 3, MADE_NS + 1);
	call(server_parca_query_range, &b, E_NOTFOUND);
	CHECK(str_starts(str_of(asked.out.message), STR("No data found for the query, try")));
	buf_clear(&b);
	pb_put_str(&b, 1, STR("{comm=\"c\"}"));
	made_put_time(&b, 2, MADE_NS);
	made_put_time(&b, 3, MADE_NS + 1);
	call(server_parca_query_range, &b, E_INVALID);
	CHECK_STR(str_of(asked.out.message), "query must contain a profile-type selection");
}

static void makes_every_report(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t report;
		uint32_t field;
		uint64_t total;
	} cases[] = {
		{ "FLAMEGRAPH_UNSPECIFIED", 0, 5, 5 * MADE_PERIOD },
		{ "PPROF", 1, 6, 0 },
		{ "TOP", 2, 7, 5 * MADE_PERIOD },
		{ "CALLGRAPH", 3, 8, 5 * MADE_PERIOD },
		{ "FLAMEGRAPH_TABLE", 4, 5, 5 * MADE_PERIOD },
		{ "FLAMEGRAPH_ARROW", 5, 11, 5 * MADE_PERIOD },
		{ "TABLE_ARROW", 7, 13, 5 * MADE_PERIOD },
		{ "PROFILE_METADATA", 8, 14, 0 },
		{ "FLAMECHART", 9, 11, 5 * MADE_PERIOD },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 16);
		made_put_query(&b, MADE_TYPE "{}", c->report);
		struct str answer = call(server_parca_query, &b, OK);
		CHECK_CASE(c, made_find(answer, c->field, 0).bytes.len > 0);
		CHECK_CASE(c, made_find(answer, 9, 0).u64 == c->total);
		/* Nothing found is an empty report. */
		buf_clear(&b);
		made_put_query(&b, MADE_TYPE "{comm=\"c\"}", c->report);
		answer = call(server_parca_query, &b, OK);
		CHECK_CASE(c, made_find(answer, c->field, 0).number == c->field);
		CHECK_CASE(c, made_find(answer, 9, 0).u64 == 0);
	}
}

static void answers_sources(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	made_put_query(&b, MADE_TYPE "{}", 6);
	call(server_parca_query, &b, E_INVALID);
	size_t source = pb_begin(&b, 9);
	pb_put_str(&b, 2, STR("x.c"));
	pb_end(&b, source);
	CHECK(made_find(call(server_parca_query, &b, OK), 12, 0).bytes.len > 0);
	source = pb_begin(&b, 9);
	pb_put_bool(&b, 3, true);
	pb_end(&b, source);
	call(server_parca_query, &b, E_NOTFOUND);
	CHECK_STR(str_of(asked.out.message), "no sources for this build id have been uploaded");
}

static void put_group(struct buf *b, const char *field)
{
	size_t group = pb_begin(b, 8);
	pb_put_str(b, 1, str_of(field));
	pb_end(b, group);
}

static void groups_and_refuses(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	made_put_query(&b, MADE_TYPE "{}", 5);
	put_group(&b, "labels.comm");
	put_group(&b, "mapping_file");
	call(server_parca_query, &b, OK);
	put_group(&b, "thread");
	call(server_parca_query, &b, E_INVALID);
	CHECK_STR(str_of(asked.out.message), "invalid group by field: thread");
	buf_clear(&b);
	made_put_query(&b, "cpu{", 5);
	call(server_parca_query, &b, E_INVALID);
	CHECK(str_starts(str_of(asked.out.message), STR("failed to parse query")));
	buf_clear(&b);
	call(server_parca_query, &b, E_INVALID);
	CHECK_STR(str_of(asked.out.message), "Options: cannot be blank.");
}

static void finds_single_profiles(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	for (int there = 1; there >= 0; there--) {
		buf_clear(&b);
		size_t single = pb_begin(&b, 4);
		made_put_time(&b, 1, MADE_NS + (there ? 0 : 1000000));
		pb_put_str(&b, 2, STR(MADE_TYPE "{}"));
		pb_end(&b, single);
		pb_put_u64(&b, 5, 5);
		struct str answer = call(server_parca_query, &b, there ? OK : E_NOTFOUND);
		if (there) /* counts, not times the period */
			CHECK(made_find(answer, 9, 0).u64 == 3);
	}
	CHECK_STR(str_of(asked.out.message),
		"could not find profile at requested time and selectors");
}

static void refuses_while_it_opens(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	atomic_store(&made.ready, false);
	call(server_parca_labels, &b, E_UNAVAILABLE);
	ask_deinit(&asked);
	memset(&asked, 0, sizeof(asked));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made_setup, made_teardown)
TEST_MAIN(TEST(lists_what_there_is), TEST(sums_ranges), TEST(makes_every_report),
	TEST(answers_sources), TEST(groups_and_refuses), TEST(finds_single_profiles),
	TEST(refuses_while_it_opens))
