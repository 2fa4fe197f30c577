/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "query/plan/plan.h"

#include <math.h>
#include <stdio.h>

static enum status open_plan(const struct query_request *r, bool need_type, struct arena *a,
	struct query_plan *p, struct err *e)
{
	arena_init(a, 1 << 20);
	*p = (struct query_plan){ 0 };
	return query_plan_open(&fake_engine, r, need_type, a, p, e);
}

static void takes_the_only_type(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("{comm=\"a\"}");
	r.from_ns = 100;
	fake_sample(CPU, 5, 1, PERIOD, "", "a@a"); /* not in the time range: still the only type */
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK(!p.empty && p.selector.has_type && p.selector.delta);
	CHECK_STR(p.selector.type[0], "parca_agent");
	CHECK_STR(p.selector.type[4], "nanoseconds");
	CHECK(p.store.selector == &p.selector && p.selector.matcher_count == 1);
	CHECK(p.store.from_ns == 100 && p.store.to_ns == INT64_MAX && fake_views == 1);
	query_plan_close(&p);
	query_plan_close(&p);
	CHECK(fake_views == 0);
}

/* What most look for, not the first by the alphabet; and it is said. */
static void chooses_of_several(void **state)
{
	(void)state;
	static const struct {
		const char *type, *want;
	} more[] = {
		{ "aaa:b:c:d:e", "aaa:b:c:d:e" },
		{ "bbb:wall:nanoseconds:d:e", "aaa:b:c:d:e" },
		{ "bbb:wall:nanoseconds:d:e:delta", "bbb:wall:nanoseconds:d:e:delta" },
		{ "go:samples:count:cpu:nanoseconds:delta",
			"go:samples:count:cpu:nanoseconds:delta" },
		{ "go:cpu:nanoseconds:cpu:nanoseconds:delta",
			"go:cpu:nanoseconds:cpu:nanoseconds:delta" },
		{ "parca_agent:wallclock:nanoseconds:samples:count:delta",
			"go:cpu:nanoseconds:cpu:nanoseconds:delta" },
		{ CPU, CPU },
	};
	for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
		CLEANUP(arena_deinit) struct arena a;
		CLEANUP(buf_deinit) struct buf chosen;
		struct query_plan p;
		struct err e = { 0 };
		struct query_request r = fake_request("{comm=\"a\"}");
		char want[256] = "";
		buf_init(&chosen, 1000);
		r.chosen = &chosen;
		fake_sample(more[i].type, 5, 1, PERIOD, "", "a@a");
		CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
		if (i > 0)
			snprintf(want, sizeof(want),
				"%s, one of %zu profile types (`firn types` lists them)\n",
				more[i].want, i + 1);
		CHECK_STR(buf_view(&chosen), want);
		CHECK(p.selector.has_type && p.selector.matcher_count == 1);
		query_plan_close(&p);
	}
}

/* The one fits better, but is as old as times can be. */
static void prefers_what_is_sent_now_at_any_time(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("{comm=\"a\"}");
	r.from_ns = INT64_MIN;
	fake_sample(CPU, INT64_MIN, 1, PERIOD, "comm=a", "a@a");
	fake_sample(HEAP, INT64_MAX - 1, 1, 0, "comm=a", "a@a");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK_STR(p.selector.type[0], "memory");
	query_plan_close(&p);
}

/* A file that was pushed beside an agent is found by its labels. */
static void chooses_what_has_the_labels(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("{job=\"api\"}");
	fake_sample(CPU, 5, 1, PERIOD, "comm=a", "a@a");
	fake_sample("go:cpu:nanoseconds:cpu:nanoseconds:delta", 5, 1, 0, "job=api", "a@a");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK_STR(p.selector.type[0], "go");
	query_plan_close(&p);
	arena_deinit(&a);
	r = fake_request("{job=\"none\"}");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK_STR(p.selector.type[0], "parca_agent");
	query_plan_close(&p);
}

/* An agent that was there a week ago does not hide what is sent now. */
static void prefers_what_is_sent_now(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("");
	fake_sample(CPU, 5, 1, PERIOD, "", "a@a");
	fake_sample("go:a:b:c:d", 5 + 7200 * NS_PER_SEC, 1, 0, "", "a@a");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK_STR(p.selector.type[0], "go");
	query_plan_close(&p);
}

/* One pushed file does not change what `firn top` means on a host that is sampled. */
static void prefers_the_agents_cpu_time(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("{comm=\"a\"}");
	fake_sample(HEAP, 5, 1, 0, "", "a@a");
	fake_sample(CPU, 5, 1, PERIOD, "", "a@a");
	fake_sample("go:samples:count:cpu:nanoseconds:delta", 5, 1, PERIOD, "", "a@a");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK_STR(p.selector.type[0], "parca_agent");
	query_plan_close(&p);
}

static void is_empty_with_an_empty_store(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("");
	CHECK_OK(open_plan(&r, true, &a, &p, &e), &e);
	CHECK(p.empty);
	query_plan_close(&p);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *selector;
		int64_t from, to, step;
		double trim;
		uint32_t by;
		const char *want;
	} bad[] = {
		{ "selector", "{a}", 0, 1, 0, 0, 0, "expected one of" },
		{ "empty range", CPU, 5, 5, 0, 0, 0, "from must be before to" },
		{ "range turned round", CPU, 6, 5, 0, 0, 0, "from must be before to" },
		{ "trim", CPU, 0, 1, 0, 1.5, 0, "got 1.5" },
		{ "trim that is no number", CPU, 0, 1, 0, NAN, 0, "got " },
		{ "step", CPU, 0, 1, -1, 0, 0, "step must not be negative" },
		{ "labels", CPU, 0, 1, 0, 0, 9, "at most 8 labels" },
	};
	FOR_EACH_CASE (c, bad) {
		CLEANUP(arena_deinit) struct arena a;
		struct query_plan p;
		struct err e = { 0 };
		struct query_request r = { .selector = str_of(c->selector),
			.from_ns = c->from,
			.to_ns = c->to,
			.step_ns = c->step,
			.trim = c->trim,
			.by_count = c->by };
		CHECK_CASE(c, open_plan(&r, true, &a, &p, &e) == E_INVALID);
		if (!strstr(e.text, c->want))
			print_error("[%s] got: %s\n", c->name, e.text);
		CHECK_CASE(c, strstr(e.text, c->want));
	}
	CLEANUP(arena_deinit) struct arena a;
	struct query_plan p;
	struct err e = { 0 };
	struct query_request r = fake_request("{a=~\"x\"}");
	r.tenant = STR("nobody");
	CHECK(open_plan(&r, true, &a, &p, &e) == E_DENIED);
	arena_deinit(&a);
	r.tenant = STR("");
	fake_error = E_IO;
	CHECK(open_plan(&r, true, &a, &p, &e) == E_IO);
	fake_error = OK;
}

static void scales_counted_samples(void **state)
{
	(void)state;
	struct query_unit u =
		query_unit_of(STR("samples"), STR("count"), STR("nanoseconds"), PERIOD);
	CHECK_STR(u.name, "nanoseconds");
	CHECK(u.factor == PERIOD);
	u = query_unit_of(STR("samples"), STR("count"), STR("nanoseconds"), 0);
	CHECK_STR(u.name, "count");
	CHECK(u.factor == 1);
	u = query_unit_of(STR("samples"), STR("count"), STR(""), PERIOD);
	CHECK_STR(u.name, "count");
	u = query_unit_of(STR("alloc_space"), STR("bytes"), STR("bytes"), 524288);
	CHECK_STR(u.name, "bytes");
	CHECK(u.factor == 1);
}

static enum status hold_answer;
static uint64_t hold_asked;

static enum status hold(struct samples_view *v, uint64_t bytes, struct err *e)
{
	(void)v;
	hold_asked = bytes;
	return hold_answer == OK ? OK : err_set(e, hold_answer, "no room");
}

/* What has a limit of its own goes on beyond that of a question, but not where others have it. */
static void counts_memory(void **state)
{
	(void)state;
	static const struct samples_ops ops = { .hold = hold }, none = { 0 };
	struct samples_view view = { &ops }, uncounted = { &none };
	struct query_plan p = { .view = &view }, q = { .view = &uncounted }, closed = { 0 };
	static const enum status answers[] = { OK, E_LIMIT, E_UNAVAILABLE };
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
		struct err e = { 0 };
		hold_answer = answers[i];
		CHECK(query_hold(&p, 10 + i, &e) == answers[i] && hold_asked == 10 + i);
		e = (struct err){ 0 };
		CHECK(query_count(&p, 20 + i, &e) == (i == 1 ? OK : answers[i]));
		CHECK(hold_asked == 20 + i && (i == 2) == (strcmp(e.text, "no room") == 0));
		CHECK_OK(query_count(&q, 1, &e), &e);
		CHECK_OK(query_hold(&closed, 1, &e), &e);
	}
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(prefers_what_is_sent_now_at_any_time), WITH_STORE(takes_the_only_type),
	WITH_STORE(chooses_of_several), WITH_STORE(chooses_what_has_the_labels),
	WITH_STORE(prefers_what_is_sent_now), WITH_STORE(prefers_the_agents_cpu_time),
	WITH_STORE(is_empty_with_an_empty_store), WITH_STORE(refuses),
	cmocka_unit_test(scales_counted_samples), cmocka_unit_test(counts_memory))
