/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of querier.v1, by their numbers in proto/querier/v1. */
#include "test.h"

#include "base/arena.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"

static void put_merge(struct buf *b, int64_t start)
{
	pb_put_str(b, 1, STR("a:b:c:d:e"));
	pb_put_str(b, 2, STR("{x=\"y\"}"));
	pb_put_i64(b, 3, start);
	pb_put_i64(b, 4, 2000);
	pb_put_i64(b, 5, 16);
	pb_put_u64(b, 6, 4);
	pb_put_str(b, 11, STR("beef"));
	pb_put_str(b, 10, STR("cafe"));
	pb_put_u64(b, 99, 1);
}

static void reads_requests(void **state)
{
	(void)state;
	struct pyroscope_query q, left, right;
	struct err e;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf both;
	buf_init(&b, 65536);
	buf_init(&both, 65536);
	put_merge(&b, 1000);
	CHECK_OK(pyroscope_query_decode(buf_view(&b), PYROSCOPE_STACKTRACES, &q, &e), &e);
	CHECK_STR(q.type, "a:b:c:d:e");
	CHECK_STR(q.selector, "{x=\"y\"}");
	CHECK(q.start_ms == 1000 && q.end_ms == 2000 && q.nodes_max == 16 && q.format == 4);
	CHECK(q.spans.count == 1 && q.traces.count == 1 && q.profiles.count == 0);
	pb_put_str(&both, 1, buf_view(&b));
	buf_clear(&b);
	put_merge(&b, 1500);
	pb_put_str(&both, 2, buf_view(&b));
	CHECK_OK(pyroscope_diff_decode(buf_view(&both), &left, &right, &e), &e);
	CHECK(left.start_ms == 1000 && right.start_ms == 1500);
	buf_clear(&b);
	pb_put_str(&b, 5, STR("pod"));
	pb_put_double(&b, 6, 15.5);
	pb_put_u64(&b, 7, 1);
	pb_put_u64(&b, 9, 3);
	CHECK_OK(pyroscope_query_decode(buf_view(&b), PYROSCOPE_SELECT_SERIES, &q, &e), &e);
	CHECK(q.step_s == 15.5 && q.average && q.series_max == 3 && q.names.count == 1);
	CHECK(q.exemplars == PYROSCOPE_EXEMPLARS_NONE);
	buf_clear(&b);
	pb_put_double(&b, 5, 15);
	pb_put_str(&b, 6, STR("pod"));
	pb_put_u64(&b, 7, 2);
	pb_put_u64(&b, 8, 3);
	CHECK_OK(pyroscope_query_decode(buf_view(&b), PYROSCOPE_HEATMAP, &q, &e), &e);
	CHECK(q.step_s == 15 && q.by_span && q.names.count == 1);
	CHECK(q.exemplars == PYROSCOPE_EXEMPLARS_SPANS);
	CHECK_OK(pyroscope_query_decode(STR(""), PYROSCOPE_PROFILE_TYPES, &q, &e), &e);
	CHECK(q.start_ms == 0 && q.end_ms == 0);
}

static void refuses_requests(void **state)
{
	(void)state;
	struct pyroscope_query q, right;
	struct err e;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	CHECK(pyroscope_query_decode(STR("\x0a\x09x"), PYROSCOPE_STACKTRACES, &q, &e) == E_INVALID);
	CHECK(pyroscope_diff_decode(STR("\x0a\x02\x0a\x09"), &q, &right, &e) == E_INVALID);
	for (int i = 0; i <= PYROSCOPE_LIST_MAX; i++)
		pb_put_str(&b, 1, STR("{}"));
	CHECK(pyroscope_query_decode(buf_view(&b), PYROSCOPE_SERIES, &q, &e) == E_LIMIT);
}

static void reads_calls(void **state)
{
	(void)state;
	struct pyroscope_calls calls;
	struct err e;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	arena_init(&a, 1 << 20);
	buf_init(&b, 65536);
	CHECK_OK(pyroscope_calls_decode(STR(""), &a, &calls, &e), &e);
	CHECK(calls.count == 0 && calls.innermost == 0 && !calls.plain_callee);
	struct str text = STR("\x0a\x06\x0a\x04main\x0a\x00\x12\x04\x08\x05\x10\x01\x22\x01x");
	CHECK_OK(pyroscope_calls_decode(text, &a, &calls, &e), &e);
	CHECK(calls.count == 2 && calls.innermost == 5 && calls.plain_callee);
	CHECK_STR(calls.v[0], "main");
	CHECK_STR(calls.v[1], "");
	CHECK(pyroscope_calls_decode(STR("\x0a\x06\x0a"), &a, &calls, &e) == E_INVALID);
	for (int i = 0; i <= PYROSCOPE_CALLS_MAX; i++)
		pb_put_str(&b, 1, STR("\x0a\x00"));
	CHECK(pyroscope_calls_decode(buf_view(&b), &a, &calls, &e) == E_LIMIT);
}

/* StackFrameFilter: names and expressions, included and excluded. */
static void reads_frames(void **state)
{
	(void)state;
	struct pyroscope_calls calls;
	struct err e;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	arena_init(&a, 1 << 20);
	buf_init(&b, 65536);
	struct str text = STR("\x1a\x0c\x0a\x01x\x12\x01y\x1a\x01.\x22\x01z");
	CHECK_OK(pyroscope_calls_decode(text, &a, &calls, &e), &e);
	CHECK(calls.count == 0 && calls.frame_count == 4);
	CHECK(!calls.frames[0].is_regex && !calls.frames[0].excluded);
	CHECK(!calls.frames[1].is_regex && calls.frames[1].excluded);
	CHECK(calls.frames[2].is_regex && !calls.frames[2].excluded);
	CHECK(calls.frames[3].is_regex && calls.frames[3].excluded);
	CHECK_STR(calls.frames[3].name, "z");
	CHECK(pyroscope_calls_decode(STR("\x1a\x01\x0a"), &a, &calls, &e) == E_INVALID);
	size_t filter = pb_begin(&b, 3);
	for (int i = 0; i <= PYROSCOPE_FRAME_NAMES_MAX; i++)
		pb_put_str(&b, 1, STR("x"));
	pb_end(&b, filter);
	CHECK(pyroscope_calls_decode(buf_view(&b), &a, &calls, &e) == E_INVALID);
}

TEST_MAIN(cmocka_unit_test(reads_requests), cmocka_unit_test(reads_calls),
	cmocka_unit_test(reads_frames), cmocka_unit_test(refuses_requests))
