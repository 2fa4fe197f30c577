/* SPDX-License-Identifier: Apache-2.0 */
/* querier.v1 over a real store: selectors by Prometheus' rules, labels of types, reports. What
 * becomes of nodes: tests/pyroscope/test_flame.c. */
#include "made.h"

#define TYPE "cpu:samples:count:cpu:nanoseconds"
#define MS (MADE_NS / 1000000)

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

static struct str get(net_handler_fn *fn, const char *query, enum status want)
{
	ask_deinit(&asked);
	ask_init(&asked, "/pyroscope/render", query);
	fn(&made, &asked.r, &asked.out);
	CHECK(asked.out.status == want);
	buf_u8(&asked.out.body, 0);
	return buf_view(&asked.out.body);
}

static void lists_types(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str type = made_find(call(server_querier_profile_types, &b, OK), 1, 0).bytes;
	CHECK_STR(made_find(type, 1, 0).bytes, TYPE);
	CHECK_STR(made_find(type, 4, 0).bytes, "samples");
	struct str stats = call(server_querier_profile_stats, &b, OK);
	CHECK(made_find(stats, 1, 0).u64 == 1 && (int64_t)made_find(stats, 2, 0).u64 == MS);
	CHECK((int64_t)made_find(stats, 3, 0).u64 == MS + 1000);
	/* Another time has none. */
	pb_put_i64(&b, 1, MS - 5000);
	pb_put_i64(&b, 2, MS - 1);
	CHECK(call(server_querier_profile_types, &b, OK).len == 0);
}

static void selects_by_prometheus_rules(void **state)
{
	(void)state;
	static const struct {
		const char *name; /* the selector */
		const char *label, *first;
		enum status want;
	} cases[] = {
		{ "", "comm", "a", OK },
		{ "{}", "comm", "a", OK },
		{ "{comm=\"b\",}", "comm", "b", OK },
		{ "{comm=~\"b|x\"}", "comm", "b", OK },
		{ "{comm=~\"\"}", "comm", NULL, OK },
		{ "{comm!~\"a\"}", "comm", "b", OK },
		{ "{__profile_type__=\"" TYPE "\"}", "comm", "a", OK },
		{ "{__profile_type__=\"cpu:other:count:cpu:nanoseconds\"}", "comm", NULL, OK },
		{ "{__name__=~\"c.u\", __unit__=\"count\"}", "comm", "a", OK },
		{ "{__name__=~\"pu\"}", "comm", NULL, OK }, /* anchored */
		{ "{__type__!=\"samples\"}", "comm", NULL, OK },
		{ "{\"process.name\"=\"\"}", "comm", "a", OK },
		{ "{}", "__profile_type__", TYPE, OK },
		{ "{}", "__period_unit__", "nanoseconds", OK },
		{ "{}", "service.name", NULL, OK },
		{ "{comm=\"b\"", "comm", NULL, E_INVALID },
		{ "{comm=~\"(\"}", "comm", NULL, E_INVALID },
		{ "{}", "", NULL, E_INVALID },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 16);
		pb_put_str(&b, 1, str_of(c->label));
		if (c->name[0])
			pb_put_str(&b, 2, str_of(c->name));
		struct str values = call(server_querier_label_values, &b, c->want);
		if (c->want != OK)
			continue;
		CHECK_STR(made_find(values, 1, 0).bytes, c->first ? c->first : "");
	}
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str names = call(server_querier_label_names, &b, OK);
	CHECK_STR(made_find(names, 1, 0).bytes, "__name__");
	CHECK_STR(made_find(names, 1, 6).bytes, "comm");
	CHECK(made_find(names, 1, 7).number == 0);
}

static void lists_sets(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	call(server_querier_series, &b, E_UNSUPPORTED);
	pb_put_str(&b, 2, STR("service_name"));
	pb_put_str(&b, 2, STR("comm"));
	pb_put_str(&b, 2, STR("__profile_type__"));
	struct str sets = call(server_querier_series, &b, OK);
	/* No service_name: left out. */
	struct str set = made_find(sets, 2, 1).bytes;
	CHECK_STR(made_find(made_find(set, 1, 0).bytes, 2, 0).bytes, "b");
	CHECK_STR(made_find(made_find(set, 1, 1).bytes, 2, 0).bytes, TYPE);
	CHECK(made_find(sets, 2, 2).number == 0);
	ask_gone_value = true;
	call(server_querier_series, &b, E_CANCELED);
	ask_gone_value = false;
}

static void put_merge(struct buf *b, const char *type, const char *selector)
{
	pb_put_str(b, 1, str_of(type));
	pb_put_str(b, 2, str_of(selector));
	pb_put_i64(b, 3, MS);
	pb_put_i64(b, 4, MS + 1000); /* belongs to the range */
}

static void merges(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf both;
	buf_init(&b, 1 << 16);
	buf_init(&both, 1 << 16);
	put_merge(&b, TYPE, "{}");
	struct str flame = made_find(call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 5);
	CHECK_STR(made_find(flame, 1, 0).bytes, "total");
	CHECK(made_find(flame, 2, 2).number == 2 && made_find(flame, 2, 3).number == 0);
	struct str profile = call(server_querier_merge_profile, &b, OK);
	CHECK(made_find(profile, 2, 1).number == 2 && made_find(profile, 6, 0).number == 6);
	pb_put_u64(&b, 6, 4); /* as pprof */
	struct str pprof = made_find(call(server_querier_merge_stacktraces, &b, OK), 5, 0).bytes;
	CHECK(made_find(made_find(pprof, 1, 0).bytes, 2, 1).number == 2);
	pb_put_u64(&b, 6, 2);
	call(server_querier_merge_stacktraces, &b, E_UNSUPPORTED);
	/* A comparison with one of them alone. */
	buf_clear(&b);
	put_merge(&b, TYPE, "{}");
	pb_put_str(&both, 1, buf_view(&b));
	buf_clear(&b);
	put_merge(&b, TYPE, "{comm=\"b\"}");
	pb_put_str(&both, 2, buf_view(&b));
	flame = made_find(call(server_querier_diff, &both, OK), 1, 0).bytes;
	CHECK(made_find(flame, 5, 0).u64 == 5);
	CHECK(made_find(flame, 6, 0).u64 == 2);
	/* Nothing of that type, or of those labels, is an empty flame graph. */
	buf_clear(&b);
	put_merge(&b, "memory:a:b:c:d", "{}");
	flame = made_find(call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 0 && made_find(flame, 2, 0).number == 2);
	CHECK(call(server_querier_merge_profile, &b, OK).len == 0);
	buf_clear(&b);
	put_merge(&b, TYPE, "{comm=\"c\"}");
	CHECK(call(server_querier_merge_profile, &b, OK).len == 0);
	/* Spans. */
	buf_clear(&b);
	put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 11, STR("beef"));
	flame = made_find(call(server_querier_merge_stacktraces, &b, OK), 1, 0).bytes;
	CHECK(made_find(flame, 3, 0).u64 == 0);
	pb_put_str(&b, 11, STR("be.*"));
	call(server_querier_merge_stacktraces, &b, E_INVALID);
	/* A selector of calls, which says nothing or something. */
	buf_clear(&b);
	put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 6, STR(""));
	call(server_querier_merge_profile, &b, OK);
	pb_put_str(&b, 6, STR("\x0a\x00"));
	call(server_querier_merge_profile, &b, E_UNSUPPORTED);
	buf_clear(&b);
	put_merge(&b, TYPE, "{}");
	pb_put_str(&b, 7, STR("\x0a\x00"));
	call(server_querier_merge_stacktraces, &b, E_UNSUPPORTED);
}

static void sums_series(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	put_merge(&b, TYPE, "{}");
	call(server_querier_select_series, &b, E_INVALID); /* no step */
	pb_put_double(&b, 6, 10);
	struct str series = made_find(call(server_querier_select_series, &b, OK), 1, 0).bytes;
	struct str point = made_find(series, 2, 0).bytes;
	uint64_t bits = made_find(point, 1, 0).u64;
	double value;
	memcpy(&value, &bits, sizeof(value));
	CHECK(value == 5.0 && made_find(series, 1, 0).number == 0);
	CHECK((int64_t)made_find(point, 2, 0).u64 == MS + 10000);
	pb_put_str(&b, 5, STR("comm"));
	struct str answer = call(server_querier_select_series, &b, OK);
	CHECK(made_find(answer, 1, 1).number == 1);
	pb_put_u64(&b, 9, 1); /* the larger one */
	answer = call(server_querier_select_series, &b, OK);
	struct str label = made_find(made_find(answer, 1, 0).bytes, 1, 0).bytes;
	CHECK_STR(made_find(label, 2, 0).bytes, "a");
	CHECK(made_find(answer, 1, 1).number == 0);
	pb_put_u64(&b, 7, 0);
	call(server_querier_select_series, &b, OK);
	pb_put_u64(&b, 7, 1);
	call(server_querier_select_series, &b, E_UNSUPPORTED);
}

static void renders(void **state)
{
	(void)state;
	struct str text = get(server_pyroscope_render,
		"query=" TYPE "%7Bcomm%3D%22a%22%7D&from=1767323040&until=1767323050", OK);
	CHECK(strstr(text.p, "\"names\":[\"total\",\"main\",\"f\"]"));
	CHECK(strstr(text.p, "\"levels\":[[0,3,0,0],[0,3,0,1],"));
	text = get(server_pyroscope_render_diff,
		"leftQuery=" TYPE "&leftFrom=1767323040&leftUntil=1767323050&rightQuery=" TYPE
		"%7Bcomm%3D%22a%22%7D&rightFrom=1767323040000&rightUntil=1767323050000",
		OK);
	CHECK(strstr(text.p, "\"format\":\"double\""));
	CHECK(strstr(text.p, "\"leftTicks\":5,\"rightTicks\":3"));
	CHECK(str_starts(
		get(server_pyroscope_label_values, "label=comm", OK), STR("[\"a\",\"b\"]")));
	get(server_pyroscope_label_values, "", E_INVALID);
	CLEANUP(buf_deinit) struct buf none;
	buf_init(&none, 16);
	CHECK(made_find(call(server_pyroscope_version, &none, OK), 1, 0).u64 == 1);
	CHECK(call(server_pyroscope_nothing, &none, OK).len == 0);
	get(server_pyroscope_render, "from=now-1h", E_INVALID);
	get(server_pyroscope_render, "query=" TYPE "&format=dot", E_UNSUPPORTED);
}

static int teardown(void **state)
{
	ask_deinit(&asked);
	return made_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lists_types),
		cmocka_unit_test(selects_by_prometheus_rules), cmocka_unit_test(lists_sets),
		cmocka_unit_test(merges), cmocka_unit_test(sums_series),
		cmocka_unit_test(renders) };
	return cmocka_run_group_tests(tests, made_setup, teardown);
}
