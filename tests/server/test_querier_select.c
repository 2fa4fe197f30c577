/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors of querier.v1: by Prometheus' rules, with the labels of types. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

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
		struct str values = querier_call(server_querier_label_values, &b, c->want);
		if (c->want != OK)
			continue;
		CHECK_STR(made_find(values, 1, 0).bytes, c->first ? c->first : "");
	}
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str names = querier_call(server_querier_label_names, &b, OK);
	CHECK_STR(made_find(names, 1, 0).bytes, "__name__");
	CHECK_STR(made_find(names, 1, 6).bytes, "comm");
	CHECK(made_find(names, 1, 7).number == 0);
}

/* A type of OTLP by the name that Pyroscope gives it. */
static void finds_types_by_sample_type(void **state)
{
	(void)state;
	static const struct {
		const char *name; /* of the type */
		bool found;
	} cases[] = {
		{ TYPE, true },
		{ "samples:samples:count:cpu:nanoseconds", true },
		{ "samples:samples:count:cpu:nanoseconds:delta", true },
		{ "other:samples:count:cpu:nanoseconds", false },
		{ "samples:samples:count:wall:nanoseconds", false },
		{ "other:other:count:cpu:nanoseconds", false },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 16);
		querier_put_merge(&b, c->name, "{}");
		struct str answer = querier_call(server_querier_merge_stacktraces, &b, OK);
		struct str flame = made_find(answer, 1, 0).bytes;
		CHECK_CASE(c, (made_find(flame, 3, 0).u64 > 0) == c->found);
	}
}

/* The CPU profile of an SDK is found by its name alone: "cpu:cpu:…" would be another one. */
static void finds_types_of_sdks_by_name(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool found;
	} cases[] = {
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds", true },
		{ "cpu:cpu:nanoseconds:cpu:nanoseconds", false },
		{ "goroutines:goroutine:nanoseconds:cpu:nanoseconds", true },
		{ "goroutine:goroutine:nanoseconds:cpu:nanoseconds", false },
	};
	CLEANUP(profile_deinit) struct profile p = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 24) == OK);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i += 2) {
		uint32_t head = 0;
		struct profile_type t = { made_text(&p, i ? "goroutines" : "process_cpu"),
			made_text(&p, i ? "goroutine" : "cpu"), made_text(&p, "nanoseconds"),
			made_text(&p, "cpu"), made_text(&p, "nanoseconds"), true };
		struct profile_head h = { .time_ns = MADE_NS, .duration_ns = 1000 };
		CHECK(profile_add_type(&p, &t, &h.type) == OK);
		CHECK(profile_add_head(&p, &h, &head) == OK);
		made_sample(&p, head, MADE_NS, 7, "a", "main;f");
	}
	CHECK_OK(store_append(made_store, STR(""), &p, hash128("sdks", 4), &e), &e);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 16);
		querier_put_merge(&b, c->name, "{}");
		struct str answer = querier_call(server_querier_merge_stacktraces, &b, OK);
		struct str flame = made_find(answer, 1, 0).bytes;
		CHECK_CASE(c, made_find(flame, 3, 0).u64 == (c->found ? 7u : 0u));
	}
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(selects_by_prometheus_rules),
		cmocka_unit_test(finds_types_by_sample_type),
		cmocka_unit_test(finds_types_of_sdks_by_name) };
	return cmocka_run_group_tests(tests, made_setup, querier_teardown);
}
