/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of querier.v1 over a real store. What becomes of nodes: tests/pyroscope/test_flame.c. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

static void merges(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf both;
	buf_init(&b, 1 << 16);
	buf_init(&both, 1 << 16);
	querier_put_merge(&b, TYPE, "{}");
	struct str flame =
		made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 5);
	CHECK_STR(made_find(flame, 1, 0).bytes, "total");
	CHECK(made_find(flame, 2, 2).number == 2 && made_find(flame, 2, 3).number == 0);
	struct str profile = querier_call(server_querier_merge_profile, &b, OK);
	CHECK(made_find(profile, 2, 1).number == 2 && made_find(profile, 6, 0).number == 6);
	pb_put_u64(&b, 6, 4); /* as pprof */
	struct str pprof =
		made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 5, 0).bytes;
	CHECK(made_find(made_find(pprof, 1, 0).bytes, 2, 1).number == 2);
	pb_put_u64(&b, 6, 2); /* as a tree: root { main { f 3, g 2 } } */
	struct str tree =
		made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 2, 0).bytes;
	CHECK(str_eq(tree, STR("\0\0\1\4main\0\2\1f\3\0\1g\2\0")));
	pb_put_u64(&b, 6, 3); /* as a graph */
	struct str dot =
		made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 3, 0).bytes;
	CHECK(str_starts(dot, STR("digraph \"count\" {")) && str_ends(dot, STR("}\n")));
	pb_put_u64(&b, 6, 5);
	querier_call(server_querier_merge_stacktraces, &b, E_UNSUPPORTED);
	/* A comparison with one of them alone. */
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{}");
	pb_put_str(&both, 1, buf_view(&b));
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{comm=\"b\"}");
	pb_put_str(&both, 2, buf_view(&b));
	flame = made_find(querier_call(server_querier_diff, &both, OK), 1, 0).bytes;
	CHECK(made_find(flame, 5, 0).u64 == 5);
	CHECK(made_find(flame, 6, 0).u64 == 2);
	/* Nothing of that type, or of those labels, is an empty flame graph. */
	buf_clear(&b);
	querier_put_merge(&b, "memory:a:b:c:d", "{}");
	flame = made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 0 && made_find(flame, 2, 0).number == 2);
	CHECK(querier_call(server_querier_merge_profile, &b, OK).len == 0);
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{comm=\"c\"}");
	CHECK(querier_call(server_querier_merge_profile, &b, OK).len == 0);
	/* Spans. */
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 11, STR("beef"));
	flame = made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 0);
	pb_put_str(&b, 11, STR("be.*"));
	querier_call(server_querier_merge_stacktraces, &b, E_INVALID);
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 11, STR("be\0ef"));
	querier_call(server_querier_merge_stacktraces, &b, E_INVALID);
}

/* A request for SelectMergeProfile (selector in field 6) or SelectMergeStacktraces (7). */
static void put_calls(struct buf *b, uint32_t field, const char *const *names)
{
	buf_clear(b);
	querier_put_merge(b, TYPE, "{}");
	size_t selector = pb_begin(b, field);
	for (; *names; names++) {
		size_t call = pb_begin(b, 1);
		pb_put_str(b, 1, str_of(*names));
		pb_end(b, call);
	}
	pb_end(b, selector);
}

/* root { main { f 3, g 2 } } */
static void selects_by_calls(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	put_calls(&b, 7, (const char *const[]){ "main", "f", NULL });
	struct str flame =
		made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 3);
	put_calls(&b, 7, (const char *const[]){ "f", NULL });
	flame = made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 0);
	put_calls(&b, 6, (const char *const[]){ "main", "g", NULL });
	struct str profile = querier_call(server_querier_merge_profile, &b, OK);
	CHECK(made_find(profile, 2, 0).number == 2 && made_find(profile, 2, 1).number == 0);
	put_calls(&b, 6, (const char *const[]){ NULL });
	profile = querier_call(server_querier_merge_profile, &b, OK);
	CHECK(made_find(profile, 2, 1).number == 2);
	/* For Go's compiler: one location of each stack. */
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 6, STR("\x12\x04\x08\x01\x10\x01"));
	profile = querier_call(server_querier_merge_profile, &b, OK);
	struct str sample = made_find(profile, 2, 0).bytes;
	CHECK(made_find(sample, 1, 0).bytes.len == 1);
	/* Malformed. */
	buf_clear(&b);
	querier_put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 6, STR("\x0a"));
	querier_call(server_querier_merge_profile, &b, E_INVALID);
}

/* frame_filter, in that field: the names as one field of it. */
static void put_frames(struct buf *b, uint32_t field, uint32_t number, const char *name)
{
	buf_clear(b);
	querier_put_merge(b, TYPE, "{}");
	size_t selector = pb_begin(b, field), filter = pb_begin(b, 3);
	pb_put_str(b, number, str_of(name));
	pb_end(b, filter);
	pb_end(b, selector);
}

static void selects_by_frames(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t number; /* include, exclude, expressions of these */
		const char *text;
		uint64_t sum;
	} cases[] = {
		{ "a leaf", 1, "f", 3 },
		{ "the root", 1, "main", 5 },
		{ "another case", 1, "F", 0 },
		{ "part of a name", 1, "mai", 0 },
		{ "without", 2, "f", 2 },
		{ "without what is nowhere", 2, "x", 5 },
		{ "expression", 3, "^[fx]$", 3 },
		{ "expression, inside", 3, "ai", 5 },
		{ "without an expression", 4, "^g", 3 },
	};
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	FOR_EACH_CASE (c, cases) {
		put_frames(&b, 7, c->number, c->text);
		struct str flame =
			made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0)
				.bytes;
		CHECK_CASE(c, made_find(flame, 3, 0).u64 == c->sum);
		put_frames(&b, 6, c->number, c->text);
		struct str profile = querier_call(server_querier_merge_profile, &b, OK);
		size_t stacks = c->sum == 5 ? 2 : c->sum > 0;
		CHECK_CASE(c, made_find(profile, 2, stacks).number == 0);
		CHECK_CASE(c, stacks == 0 || made_find(profile, 2, stacks - 1).number == 2);
		put_frames(&b, 8, c->number, c->text);
		pb_put_double(&b, 6, 10);
		struct str point =
			querier_first_point(querier_call(server_querier_select_series, &b, OK));
		CHECK_CASE(c, querier_double(made_find(point, 1, 0)) == (double)c->sum);
	}
	put_frames(&b, 7, 3, "(");
	querier_call(server_querier_merge_stacktraces, &b, E_INVALID);
	put_frames(&b, 8, 3, "(");
	pb_put_double(&b, 6, 10);
	querier_call(server_querier_select_series, &b, E_INVALID);
}

/* f of comm="a", g of comm="b" a second later. */
static void sums_series_of_calls(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	put_calls(&b, 8, (const char *const[]){ "main", "g", NULL });
	pb_put_double(&b, 6, 1);
	struct str answer = querier_call(server_querier_select_series, &b, OK);
	struct str series = made_find(answer, 1, 0).bytes;
	struct str first = made_find(series, 2, 0).bytes, second = made_find(series, 2, 1).bytes;
	CHECK(querier_double(made_find(first, 1, 0)) == 0);
	CHECK(querier_double(made_find(second, 1, 0)) == 2);
	CHECK((int64_t)made_find(second, 2, 0).u64 == MS + 2000);
	pb_put_str(&b, 5, STR("comm"));
	answer = querier_call(server_querier_select_series, &b, OK);
	for (size_t i = 0; i < 2; i++) {
		series = made_find(answer, 1, i).bytes;
		struct str comm = made_find(made_find(series, 1, 0).bytes, 2, 0).bytes;
		double value = querier_double(made_find(made_find(series, 2, 0).bytes, 1, 0));
		CHECK(value == (str_eq(comm, STR("b")) ? 2 : 0));
		CHECK(made_find(series, 2, 1).number == 0);
	}
	pb_put_u64(&b, 10, 2); /* exemplars of profiles: left out */
	answer = querier_call(server_querier_select_series, &b, OK);
	CHECK(made_find(querier_first_point(answer), 4, 0).number == 0);
	pb_put_u64(&b, 7, 1);
	querier_call(server_querier_select_series, &b, E_UNSUPPORTED);
}

static void sums_series(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	querier_put_merge(&b, TYPE, "{}");
	querier_call(server_querier_select_series, &b, E_INVALID); /* no step */
	pb_put_double(&b, 6, 10);
	struct str series =
		made_find(querier_call(server_querier_select_series, &b, OK), 1, 0).bytes;
	struct str point = made_find(series, 2, 0).bytes;
	uint64_t bits = made_find(point, 1, 0).u64;
	double value;
	memcpy(&value, &bits, sizeof(value));
	CHECK(value == 5.0 && made_find(series, 1, 0).number == 0);
	CHECK((int64_t)made_find(point, 2, 0).u64 == MS + 10000);
	pb_put_str(&b, 5, STR("comm"));
	struct str answer = querier_call(server_querier_select_series, &b, OK);
	CHECK(made_find(answer, 1, 1).number == 1);
	pb_put_u64(&b, 9, 1); /* the larger one */
	answer = querier_call(server_querier_select_series, &b, OK);
	struct str label = made_find(made_find(answer, 1, 0).bytes, 1, 0).bytes;
	CHECK_STR(made_find(label, 2, 0).bytes, "a");
	CHECK(made_find(answer, 1, 1).number == 0);
	pb_put_u64(&b, 7, 0);
	querier_call(server_querier_select_series, &b, OK);
}

/* Calls of Drilldown, Alloy and profilecli that firn has nothing for. */
static void refuses_with_a_sentence(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		net_handler_fn *fn;
		const char *says;
	} cases[] = {
		{ "vcs", server_pyroscope_no_github, "GitHub" },
		{ "rules", server_pyroscope_no_rules, "no metrics" },
		{ "debuginfo", server_pyroscope_no_debuginfo, "Parca" },
	};
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	FOR_EACH_CASE (c, cases) {
		querier_call(c->fn, &b, E_UNSUPPORTED);
		CHECK_CASE(c, strstr(asked.out.message, c->says));
	}
	struct str answer = querier_call(server_pyroscope_decline, &b, OK);
	CHECK(made_find(answer, 1, 0).number == 0);
	CHECK(made_find(answer, 2, 0).bytes.len > 0);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(merges),
		cmocka_unit_test(selects_by_calls), cmocka_unit_test(selects_by_frames),
		cmocka_unit_test(sums_series), cmocka_unit_test(sums_series_of_calls),
		cmocka_unit_test(refuses_with_a_sentence) };
	return cmocka_run_group_tests(tests, made_setup, querier_teardown);
}
