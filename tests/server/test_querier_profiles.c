/* SPDX-License-Identifier: Apache-2.0 */
/* Averages over profiles, and heat maps. made.h's store has a profile of 3 of
 * comm="a", one of 2 of comm="b" a second later; here also two spans of comm="c" of 7 and 4. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

static void averages(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	querier_put_steps(&b, "{comm=~\"a|b\"}", 10);
	pb_put_u64(&b, 7, 1);
	struct str point = querier_first_point(querier_call(server_querier_select_series, &b, OK));
	CHECK(querier_double(made_find(point, 1, 0)) == 2.5);
	CHECK(made_find(point, 4, 0).number == 0);
	pb_put_str(&b, 5, STR("comm"));
	point = querier_first_point(querier_call(server_querier_select_series, &b, OK));
	CHECK(querier_double(made_find(point, 1, 0)) == 3);
	pb_put_u64(&b, 10, 3);
	querier_call(server_querier_select_series, &b, E_UNSUPPORTED);
}

static struct str ask_heatmap(
	struct buf *b, const char *selector, uint64_t of, uint64_t exemplars, bool by_comm)
{
	buf_clear(b);
	querier_put_merge(b, TYPE, selector);
	pb_put_double(b, 5, 10);
	if (by_comm)
		pb_put_str(b, 6, STR("comm"));
	pb_put_u64(b, 7, of);
	pb_put_u64(b, 8, exemplars);
	return querier_call(server_querier_select_heatmap, b, OK);
}

static void draws_heatmaps(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str answer = ask_heatmap(&b, "{}", 1, 2, false);
	struct str series = made_find(answer, 1, 0).bytes;
	CHECK(made_find(answer, 1, 1).number == 0 && made_find(series, 1, 0).number == 0);
	struct str slot = made_find(series, 2, 0).bytes;
	CHECK((int64_t)made_find(slot, 1, 0).u64 == MS + 10000);
	CHECK(made_find(slot, 2, 0).bytes.len == 20 * sizeof(double));
	/* Rows of 0.45 from 2 to 11, their borders rounded down as in Pyroscope: 2, 3 and 11. */
	struct str counts = made_find(slot, 3, 0).bytes;
	CHECK(counts.len == 20 && counts.p[2] == 1 && counts.p[4] == 1 && counts.p[19] == 1);
	CHECK(made_find(slot, 4, 2).number == 4 && made_find(slot, 4, 3).number == 0);
	answer = ask_heatmap(&b, "{comm=~\"a|b\"}", 1, 1, true);
	slot = made_find(made_find(answer, 1, 1).bytes, 2, 0).bytes;
	CHECK(made_find(slot, 1, 0).number == 1 && made_find(slot, 4, 0).number == 0);
	/* No spans, then two. */
	CHECK(ask_heatmap(&b, "{comm=~\"a|b\"}", 2, 3, false).len == 0);
	answer = ask_heatmap(&b, "{}", 2, 3, false);
	slot = made_find(made_find(answer, 1, 0).bytes, 2, 0).bytes;
	struct str exemplar = made_find(slot, 4, 0).bytes;
	CHECK_STR(made_find(exemplar, 3, 0).bytes, "00000000000000aa");
	CHECK(made_find(exemplar, 4, 0).u64 == 7 && made_find(slot, 4, 2).number == 0);
	CHECK_STR(made_find(exemplar, 6, 0).bytes, "cafe");
	CHECK(made_find(exemplar, 2, 0).number == 0);
	querier_put_merge(&b, TYPE, "{}"); /* without a step */
	buf_clear(&b);
	querier_call(server_querier_select_heatmap, &b, E_INVALID);
}

static void add_span(const char *span, int64_t value, const char *id)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 24) == OK);
	struct profile_type type = { made_text(&p, "cpu"), made_text(&p, "samples"),
		made_text(&p, "count"), made_text(&p, "cpu"), made_text(&p, "nanoseconds"), true };
	struct profile_head h = { .period = MADE_PERIOD, .time_ns = MADE_NS, .duration_ns = 1000 };
	struct profile_sample s = { .time_ns = MADE_NS + 500000000, .value = value };
	const struct profile_label labels[] = { { made_text(&p, "comm"), made_text(&p, "c") },
		{ made_text(&p, "span_id"), made_text(&p, span) },
		{ made_text(&p, "trace_id"), made_text(&p, "cafe") } };
	CHECK(profile_add_type(&p, &type, &h.type) == OK);
	CHECK(profile_add_head(&p, &h, &s.head) == OK);
	CHECK(profile_add_labels(&p, labels, ARRAY_COUNT(labels), &s.resource) == OK);
	CHECK(profile_add_sample(&p, &s) == OK);
	CHECK_OK(store_append(made_store, STR(""), &p, hash128(id, 4), &e), &e);
}

static int setup(void **state)
{
	made_setup(state);
	add_span("00000000000000aa", 7, "one ");
	add_span("00000000000000bb", 4, "two ");
	return 0;
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(averages),
		cmocka_unit_test(draws_heatmaps) };
	return cmocka_run_group_tests(tests, setup, querier_teardown);
}
