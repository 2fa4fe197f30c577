/* SPDX-License-Identifier: Apache-2.0 */
/* The answer read by our own decoder; tests/golden reads it with others. */
#include "fake.h"

#include "codec/codec.h"
#include "pprof/pprof.h"

static struct query_report_request request(const char *selector)
{
	return (struct query_report_request){
		.side = { .selector = str_of(selector), .to_ns = INT64_MAX },
	};
}

static void read_back(const struct query_report_request *r, struct profile *p)
{
	CLEANUP(buf_deinit) struct buf packed, plain;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&packed, 1 << 20);
	buf_init(&plain, 1 << 20);
	CHECK_OK(query_report_pprof(&fake_engine, r, &packed, &info, &e), &e);
	CHECK_OK(codec_gunzip(packed.data, packed.len, &plain, &e), &e);
	CHECK(profile_init(p, 1 << 24) == OK);
	CHECK_OK(pprof_decode(buf_view(&plain), STR("p"), p, &e), &e);
}

/* "f;g 5" a sample, leaf first, in any order of the samples: sorted by the caller's words. */
static void ask(const struct query_report_request *r, struct buf *text)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	buf_init(text, 1 << 20);
	read_back(r, &p);
	for (size_t i = 0; i < p.samples.len; i++) {
		const struct profile_sample *s = &p.samples.v[i];
		const struct profile_stack *stack = &p.stacks.v[s->stack];
		buf_cstr(text, i ? " | " : "");
		for (uint32_t k = 0; k < stack->count; k++) {
			const struct profile_location *l =
				&p.locations.v[p.stack_locations.v[stack->first + k]];
			for (uint32_t j = 0; j < l->line_count; j++) {
				uint32_t f = p.lines.v[l->line_first + j].function;
				buf_cstr(text, k || j ? ";" : "");
				buf_str(text, profile_str(&p, p.functions.v[f].name));
			}
		}
		buf_printf(text, " %lld", (long long)s->value);
	}
}

static void check(const struct query_report_request *r, const char *want)
{
	struct buf text;
	ask(r, &text);
	CHECK_STR(buf_view(&text), want);
	buf_deinit(&text);
}

static void keeps_what_is_asked_for(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "comm=a", "main@/bin/x;f>inner@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 5, 0, "comm=b", "main@/bin/x;h@/bin/x");
	struct query_report_request r = request(HEAP);
	check(&r, "g;inner;f;main 10 | h;main 5");
	r.invert = true;
	check(&r, "main;f;inner;g 10 | main;h 5");
	r.sandwich = STR("inner");
	check(&r, "main;f;inner 10");
	r.invert = false;
	check(&r, "g;inner 10");
	r.sandwich = STR("");
	struct filter_condition c = { FILTER_FUNCTION, FILTER_NE, STR("inner"), 0 };
	struct frame_filter f = { false, false, &c, 1 };
	r.filters = &f;
	r.filter_count = 1;
	check(&r, "g;f;main 10 | h;main 5");
	f.of_stack = true;
	check(&r, "h;main 5");
	r.filter_count = 0;
	r.labels[r.label_count++] = STR("comm");
	check(&r, "g;inner;f;main 10 | h;main 5");
}

/* As Go's compiler wants it: the innermost calls, each pair once. */
static void cuts_to_the_innermost(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "", "main@/bin/x;a@/bin/x;f>inner@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 5, 0, "", "main@/bin/x;b@/bin/x;f>inner@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 1, 0, "", "main@/bin/x");
	struct query_report_request r = request(HEAP);
	check(&r, "main 1 | g;inner;f;a;main 10 | g;inner;f;b;main 5");
	r.innermost = 2;
	check(&r, "main 1 | g;inner;f 15");
	r.plain_callee = true;
	check(&r, "main 1 | g;inner;f 15");
	r.innermost = 1;
	check(&r, "main 1 | g 15");
	r.innermost = 0;
	check(&r, "main 1 | g;inner;f;a;main 10 | g;inner;f;b;main 5");
	CLEANUP(profile_deinit) struct profile p = { 0 };
	read_back(&r, &p);
	for (size_t i = 0; i < p.samples.len; i++) {
		uint32_t leaf = p.stack_locations.v[p.stacks.v[p.samples.v[i].stack].first];
		CHECK(p.locations.v[leaf].address == 0);
		CHECK(p.lines.v[p.locations.v[leaf].line_first].line == 0);
	}
	r.innermost = QUERY_INNERMOST_MAX + 1;
	CLEANUP(buf_deinit) struct buf packed;
	struct query_report info;
	struct err e = { 0 };
	buf_init(&packed, 1 << 20);
	CHECK(query_report_pprof(&fake_engine, &r, &packed, &info, &e) == E_INVALID);
}

static void tells_when_and_how_long(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	struct query_report_request r = request(HEAP);
	fake_sample(HEAP, 5 * NS_PER_MS + 3, 10, 0, "", "main@/bin/x");
	fake_sample(HEAP, 9 * NS_PER_SEC, 10, 0, "", "main@/bin/x");
	r.side.to_ns = 60 * NS_PER_SEC;
	read_back(&r, &p);
	CHECK(p.heads.v[1].time_ns == 5 * NS_PER_MS + 3 && p.heads.v[1].duration_ns == 0);
	profile_deinit(&p);
	fake_covered_ns = 10 * NS_PER_SEC;
	read_back(&r, &p);
	CHECK(p.heads.v[1].duration_ns == 0); /* nobody asked */
	profile_deinit(&p);
	r.durations = true;
	read_back(&r, &p);
	CHECK(p.heads.v[1].time_ns == 5 * NS_PER_MS + 3);
	CHECK(p.heads.v[1].duration_ns == 10 * NS_PER_SEC);
}

static void scales_and_compares(void **state)
{
	(void)state;
	fake_sample(CPU, 1, 2, PERIOD, "comm=a", "main@x;f@x");
	fake_sample(CPU, 1, 3, PERIOD, "comm=b", "main@x;f@x");
	struct query_report_request r = request(CPU);
	check(&r, "f;main 50000000");
	r.side.selector = STR(CPU "{comm=\"b\"}");
	r.base = (struct query_side){ .selector = STR(CPU "{comm=\"a\"}"), .to_ns = INT64_MAX };
	r.diff = r.absolute = true;
	check(&r, "f;main 10000000");
	r.diff = false;
	r.side.single = true;
	check(&r, "f;main 3");
	r.side.selector = STR(CPU "{comm=\"c\"}");
	check(&r, "");
}

static void lists_mapped_files(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct str *files = NULL;
	size_t count = 0;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 10, 0, "", "main@/bin/x;f@/bin/x;g@/a/y");
	struct query_report_request r = request(HEAP);
	arena_init(&a, 1 << 20);
	CHECK_OK(query_mapping_files(&fake_engine, &r, &a, &files, &count, &e), &e);
	CHECK(count == 2);
	CHECK_STR(files[0], "/a/y");
	CHECK_STR(files[1], "/bin/x");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(keeps_what_is_asked_for), TEST(cuts_to_the_innermost), TEST(tells_when_and_how_long),
	TEST(scales_and_compares), TEST(lists_mapped_files))
