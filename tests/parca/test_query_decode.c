/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "parca/parca.h"
#include "pb/pb.h"
#include "test.h"

static void put_time(struct buf *b, uint32_t field, int64_t seconds, int64_t nanos)
{
	size_t begun = pb_begin(b, field);
	pb_put_i64(b, 1, seconds);
	pb_put_i64(b, 2, nanos);
	pb_end(b, begun);
}

static void put_merge(struct buf *b, uint32_t field, const char *query, int64_t from, int64_t to)
{
	size_t begun = pb_begin(b, field);
	pb_put_str(b, 1, str_of(query));
	put_time(b, 2, from, 5);
	put_time(b, 3, to, 0);
	pb_end(b, begun);
}

static void put_condition(
	struct buf *b, uint32_t kind, uint32_t field, uint32_t op, const char *text)
{
	size_t filter = pb_begin(b, 12), stack = pb_begin(b, kind), criteria = pb_begin(b, 2);
	size_t condition = pb_begin(b, field);
	if (field >= 5)
		pb_put_u64_always(b, op, 77);
	else
		pb_put_str_always(b, op, str_of(text));
	pb_end(b, condition);
	pb_end(b, criteria);
	pb_end(b, stack);
	pb_end(b, filter);
}

static void reads_a_merge_with_everything(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct parca_query_request q;
	struct err e = { 0 };
	float trim = 0.5f;
	uint32_t bits;
	memcpy(&bits, &trim, 4);
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 20);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "cpu{}", 10, 20);
	pb_put_u64(&b, 5, 5);
	buf_varint(&b, 7 << 3 | 5);
	buf_u32(&b, bits);
	size_t group = pb_begin(&b, 8);
	pb_put_str(&b, 1, STR("labels.comm"));
	pb_put_str(&b, 1, STR("mapping_file"));
	pb_end(&b, group);
	size_t source = pb_begin(&b, 9);
	pb_put_str(&b, 1, STR("abcd"));
	pb_put_str(&b, 2, STR("main.c"));
	pb_put_bool(&b, 3, true);
	pb_end(&b, source);
	pb_put_bool(&b, 11, true);
	put_condition(&b, 1, 1, 4, "runtime.");
	put_condition(&b, 2, 5, 2, NULL);
	put_condition(&b, 2, 3, 5, "lib");
	pb_put_str(&b, 13, STR("main"));
	pb_put_str(&b, 99, STR("not known"));
	CHECK_OK(parca_query_decode(buf_view(&b), &a, &q, &e), &e);
	CHECK(q.mode == PARCA_MERGE && q.report == PARCA_FLAMEGRAPH_ARROW && q.invert);
	CHECK_STR(q.side.query, "cpu{}");
	CHECK(q.side.start.ns == 10 * NS_PER_SEC + 5 && q.side.end.ns == 20 * NS_PER_SEC);
	CHECK(q.trim_percent == 0.5 && q.group_by.count == 2);
	CHECK_STR(q.group_by.v[1], "mapping_file");
	CHECK(q.has_source && q.source_only);
	CHECK_STR(q.source_filename, "main.c");
	CHECK_STR(q.sandwich, "main");
	CHECK(q.filter_count == 3);
	CHECK(q.filters[0].of_stack && q.filters[0].condition_count == 1);
	CHECK(q.filters[0].conditions[0].field == FILTER_FUNCTION &&
		q.filters[0].conditions[0].op == FILTER_NOT_CONTAINS);
	CHECK_STR(q.filters[0].conditions[0].text, "runtime.");
	CHECK(!q.filters[1].of_stack && q.filters[1].conditions[0].field == FILTER_ADDRESS &&
		q.filters[1].conditions[0].op == FILTER_NE &&
		q.filters[1].conditions[0].number == 77);
	CHECK(q.filters[2].conditions[0].field == FILTER_BINARY &&
		q.filters[2].conditions[0].op == FILTER_STARTS);
}

static void reads_the_old_filters(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct parca_query_request q;
	struct err e = { 0 };
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 20);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "cpu{}", 10, 20);
	size_t filter = pb_begin(&b, 12), stack = pb_begin(&b, 1), old = pb_begin(&b, 1);
	pb_put_str(&b, 1, STR("malloc"));
	pb_put_bool(&b, 2, true);
	pb_end(&b, old);
	pb_end(&b, stack);
	pb_end(&b, filter);
	filter = pb_begin(&b, 12), stack = pb_begin(&b, 2), old = pb_begin(&b, 1);
	pb_put_str(&b, 1, STR("libc"));
	pb_put_str(&b, 1, STR("libm"));
	pb_end(&b, old);
	pb_end(&b, stack);
	pb_end(&b, filter);
	CHECK_OK(parca_query_decode(buf_view(&b), &a, &q, &e), &e);
	CHECK(q.filter_count == 2 && q.report == PARCA_FLAMEGRAPH_FLAT);
	CHECK(q.filters[0].of_stack && q.filters[0].conditions[0].op == FILTER_NOT_CONTAINS);
	CHECK(!q.filters[1].of_stack && q.filters[1].any && q.filters[1].condition_count == 2);
	CHECK_STR(q.filters[1].conditions[1].text, "libm");
}

static void put_side(struct buf *b, uint32_t field, uint64_t mode, const char *query)
{
	size_t side = pb_begin(b, field);
	pb_put_u64(b, 1, mode);
	if (mode == 1) {
		put_merge(b, 2, query, 1, 2);
	} else {
		size_t single = pb_begin(b, 3);
		put_time(b, 1, 7, 0);
		pb_put_str(b, 2, str_of(query));
		pb_end(b, single);
	}
	pb_end(b, side);
}

static void reads_a_diff(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct parca_query_request q;
	struct err e = { 0 };
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 20);
	pb_put_u64(&b, 1, 1);
	size_t diff = pb_begin(&b, 2);
	put_side(&b, 1, 1, "base");
	put_side(&b, 2, 0, "compare");
	pb_put_bool(&b, 3, true);
	pb_end(&b, diff);
	CHECK_OK(parca_query_decode(buf_view(&b), &a, &q, &e), &e);
	CHECK(q.mode == PARCA_DIFF && q.absolute && !q.base.single && q.side.single);
	CHECK_STR(q.base.query, "base");
	CHECK_STR(q.side.query, "compare");
	CHECK(q.side.start.ns == 7 * NS_PER_SEC);
}

static enum status refuse(struct buf *b, const char *sentence)
{
	CLEANUP(arena_deinit) struct arena a;
	struct parca_query_request q;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	enum status s = parca_query_decode(buf_view(b), &a, &q, &e);
	CHECK_STR(str_of(e.text), sentence);
	return s;
}

static void says_what_parca_says(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	CHECK(refuse(&b, "Options: cannot be blank.") == E_INVALID);
	pb_put_u64(&b, 1, 2);
	size_t merge = pb_begin(&b, 3);
	pb_end(&b, merge);
	CHECK(refuse(&b, "end: cannot be blank; query: cannot be blank; start: cannot be blank.") ==
		E_INVALID);
	buf_clear(&b);
	put_merge(&b, 3, "x", 1, 2); /* mode SINGLE */
	CHECK(refuse(&b, "Options: invalid option for mode.") == E_INVALID);
	buf_clear(&b);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "x", 3, 2);
	CHECK(refuse(&b, "end: start timestamp must be before end.") == E_INVALID);
	buf_clear(&b);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "x", 1, 2);
	pb_put_u64(&b, 5, 10);
	CHECK(refuse(&b, "report_type: invalid report type.") == E_INVALID);
	buf_clear(&b);
	pb_put_u64(&b, 1, 1);
	size_t diff = pb_begin(&b, 2);
	put_side(&b, 2, 1, "b");
	pb_end(&b, diff);
	CHECK(refuse(&b, "a: cannot be blank.") == E_INVALID);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("?"));
	CHECK(refuse(&b, "mode is not a number") == E_INVALID);
	buf_clear(&b);
	buf_u8(&b, 0x1A);
	CHECK(refuse(&b, "QueryRequest: malformed at +1") == E_INVALID);
	buf_clear(&b);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "\xff", 1, 2);
	CHECK(refuse(&b, "query is not UTF-8 text") == E_INVALID);
	buf_clear(&b);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "x", 1, 2);
	for (int i = 0; i < 65; i++)
		put_condition(&b, 1, 1, 1, "a");
	CHECK(refuse(&b, "filter: more than 64 conditions") == E_INVALID);
}

static void reads_ranges_and_names(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct parca_range_request range;
	struct parca_index_request index;
	struct parca_share_request share;
	struct err e = { 0 };
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 20);
	CHECK(parca_range_decode(buf_view(&b), &a, &range, &e) == E_INVALID);
	CHECK_STR(str_of(e.text),
		"end: cannot be blank; query: cannot be blank; start: cannot be blank.");
	pb_put_str(&b, 1, STR("cpu{}"));
	put_time(&b, 2, 100, 0);
	put_time(&b, 3, INT64_MAX, 0);
	pb_put_u64(&b, 4, 300);
	put_time(&b, 5, 2, 500000000);
	pb_put_str(&b, 6, STR("comm"));
	CHECK_OK(parca_range_decode(buf_view(&b), &a, &range, &e), &e);
	CHECK(range.end_ns == INT64_MAX && range.limit == 300 && range.step_ns == 2500000000);
	CHECK(range.sum_by.count == 1);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("comm"));
	pb_put_str(&b, 2, STR("node=\"a\""));
	put_time(&b, 3, 1, 0);
	pb_put_str(&b, 5, STR("cpu"));
	CHECK_OK(parca_index_decode(buf_view(&b), PARCA_VALUES, &a, &index, &e), &e);
	CHECK_STR(index.label_name, "comm");
	CHECK_STR(index.match.v[0], "node=\"a\"");
	CHECK(index.start.set && !index.end.set);
	CHECK_STR(index.profile_type, "cpu");
	buf_clear(&b);
	CHECK_OK(parca_index_decode(buf_view(&b), PARCA_PROFILE_TYPES, &a, &index, &e), &e);
	CHECK(parca_share_decode(buf_view(&b), &a, &share, &e) == E_INVALID);
	size_t query = pb_begin(&b, 1);
	pb_put_u64(&b, 1, 2);
	put_merge(&b, 3, "x", 1, 2);
	pb_end(&b, query);
	CHECK_OK(parca_share_decode(buf_view(&b), &a, &share, &e), &e);
	CHECK(share.query.report == PARCA_PPROF && share.description.len == 0);
}

TEST_MAIN(cmocka_unit_test(reads_a_merge_with_everything), cmocka_unit_test(reads_the_old_filters),
	cmocka_unit_test(reads_a_diff), cmocka_unit_test(says_what_parca_says),
	cmocka_unit_test(reads_ranges_and_names))
