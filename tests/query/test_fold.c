/* SPDX-License-Identifier: Apache-2.0 */
/* Folds as text: "name total self" a node, children in brackets. */
#include "fake.h"

#include "query/fold/fold.h"
#include "query/stacks/lines.h"
#include "query/stacks/loaded.h"
#include "query/stacks/tree.h"

#include <stdio.h>

static struct query_report_request request(const char *selector)
{
	return (struct query_report_request){
		.side = { .selector = str_of(selector), .to_ns = INT64_MAX },
	};
}

struct made {
	struct arena a;
	struct query_tree t;
	struct query_fold f;
};

static enum status make(struct made *m, const struct query_engine *q,
	const struct query_report_request *r, size_t limit, struct err *e)
{
	*m = (struct made){ 0 };
	arena_init(&m->a, limit);
	enum status s = query_tree_make(&m->t, q, r, &m->a, e);
	return s == OK ? query_fold_make(&m->f, &m->t, r, QUERY_TRIM_LEAST, 0, limit, e) : s;
}

static void made_deinit(struct made *m)
{
	query_fold_deinit(&m->f);
	query_tree_deinit(&m->t);
	arena_deinit(&m->a);
}

static void put_node(struct buf *b, const struct made *m, uint32_t i, bool diff)
{
	const struct query_fold_node *call = &m->f.nodes.v[i];
	const struct query_stacks *stacks = &m->t.stacks;
	if (call->line == QUERY_LINE_NONE) {
		struct str value = call->group ? stacks->groups[call->group] : STR("root");
		buf_printf(b, "<%.*s>", STR_ARG(value));
	} else {
		struct query_line_texts t =
			query_line_texts(&stacks->tables, &m->t.lines.v[call->line]);
		if (t.has_function)
			buf_str(b, t.function);
		else
			buf_printf(b, "0x%llx", (unsigned long long)t.address);
	}
	buf_printf(b, " %lld", (long long)call->total);
	if (diff)
		buf_printf(b, "%+lld", (long long)query_fold_diff(&m->f, i));
	if (call->self)
		buf_printf(b, " %lld", (long long)call->self);
	if (m->f.time_ns.len && m->f.time_ns.v[i])
		buf_printf(b, " @%lld", (long long)m->f.time_ns.v[i]);
	bool any = false;
	for (uint32_t k = i + 1; k < m->f.nodes.len; k++) {
		if (m->f.nodes.v[k].parent != i)
			continue;
		buf_cstr(b, any ? ", " : " [");
		any = true;
		put_node(b, m, k, diff);
	}
	buf_cstr(b, any ? "]" : "");
}

static void check_tree(const struct query_report_request *r, const char *want, int64_t filtered)
{
	CLEANUP(made_deinit) struct made m;
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	buf_init(&b, 1 << 16);
	const struct query_engine unnamed = { .samples = fake_engine.samples };
	CHECK_OK(make(&m, &unnamed, r, 64 << 20, &e), &e);
	put_node(&b, &m, 0, r->diff);
	CHECK_STR(buf_view(&b), want);
	CHECK(m.t.sum == m.f.nodes.v[0].total && m.t.filtered == filtered);
}

static void three_stacks(void)
{
	fake_sample(HEAP, 1, 10, 0, "comm=a", "main@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 5, 0, "comm=b", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 1, 0, "", "main@/bin/x;0x12@/lib/y");
}

static void sums_by_function(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP);
	check_tree(&r, "<root> 16 [main 16 [f 15 [g 10 10, inner 5 5], 0x12 1 1]]", 0);
	r.invert = true;
	check_tree(&r,
		"<root> 16 [g 10 [f 10 [main 10 10]], inner 5 [f 5 [main 5 5]], 0x12 1 [main 1 1]]",
		0);
}

static void groups_by_labels(void **state)
{
	(void)state;
	three_stacks();
	struct query_report_request r = request(HEAP);
	r.labels[r.label_count++] = STR("comm");
	check_tree(&r,
		"<root> 16 [<a> 10 [main 10 [f 10 [g 10 10]]], <b> 5 [main 5 [f 5 [inner 5 5]]], "
		"main 1 [0x12 1 1]]",
		0);
	r.invert = true;
	check_tree(&r,
		"<root> 16 [<a> 10 [g 10 [f 10 [main 10 10]]], <b> 5 [inner 5 [f 5 [main 5 5]]], "
		"0x12 1 [main 1 1]]",
		0);
}

static struct filter_condition condition(
	enum filter_field field, enum filter_op op, const char *text, uint64_t number)
{
	return (struct filter_condition){ field, op, str_of(text), number };
}

static void filters_stacks(void **state)
{
	(void)state;
	three_stacks();
	static const struct {
		const char *name;
		enum filter_field field;
		enum filter_op op;
		const char *text;
		uint64_t number;
		int64_t kept;
	} cases[] = {
		{ "some function", FILTER_FUNCTION, FILTER_EQ, "G", 0, 10 },
		{ "no function", FILTER_FUNCTION, FILTER_NE, "g", 0, 6 },
		{ "inlined one", FILTER_FUNCTION, FILTER_CONTAINS, "nne", 0, 5 },
		{ "some binary", FILTER_BINARY, FILTER_EQ, "y", 0, 11 },
		{ "no such binary", FILTER_BINARY, FILTER_NOT_STARTS, "y", 0, 5 },
		{ "file", FILTER_FILE, FILTER_EQ, "/src/g.c", 0, 10 },
		{ "address", FILTER_ADDRESS, FILTER_EQ, "", 0x12, 1 },
		{ "not that address", FILTER_ADDRESS, FILTER_NE, "", 0x12, 15 },
		{ "shown by its function", FILTER_SHOWN, FILTER_CONTAINS, "NNE", 0, 5 },
		{ "shown by neither", FILTER_SHOWN, FILTER_CONTAINS, "+0x13", 0, 0 },
	};
	FOR_EACH_CASE (c, cases) {
		struct filter_condition one = condition(c->field, c->op, c->text, c->number);
		struct frame_filter f = { true, false, &one, 1 };
		struct query_report_request r = request(HEAP);
		CLEANUP(made_deinit) struct made m;
		struct err e = { 0 };
		r.filters = &f;
		r.filter_count = 1;
		CHECK_OK(make(&m, &fake_engine, &r, 64 << 20, &e), &e);
		CHECK_CASE(c, m.t.sum == c->kept && m.t.filtered == 16 - c->kept);
	}
}

/* What was not asked for by a filter of Parca's is not kept without a frame. */
static void filters_stacks_of_no_frames(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "", "main@/bin/x");
	fake_sample(HEAP, 2, 5, 0, "", "");
	fake_sample(HEAP, 3, 1, 0, "", "0x12@/lib/y");
	struct filter_condition one = condition(FILTER_SHOWN, FILTER_CONTAINS, "MAI", 0);
	struct frame_filter f = { .of_stack = true, .conditions = &one, .condition_count = 1 };
	struct query_report_request r = request(HEAP);
	r.filters = &f;
	r.filter_count = 1;
	check_tree(&r, "<root> 15 5 [main 10 10]", 1);
	f.some_frame = true;
	check_tree(&r, "<root> 10 [main 10 10]", 6);
	one.text = STR("Y+0x12");
	check_tree(&r, "<root> 1 [0x12 1 1]", 15);
}

static void filters_frames(void **state)
{
	(void)state;
	three_stacks();
	struct filter_condition not_f = condition(FILTER_FUNCTION, FILTER_NE, "f", 0);
	struct filter_condition in_y = condition(FILTER_BINARY, FILTER_EQ, "y", 0);
	struct frame_filter f[] = { { false, false, &not_f, 1 }, { false, false, &in_y, 1 } };
	struct query_report_request r = request(HEAP);
	r.filters = f;
	r.filter_count = 1;
	/* What has no function passes a condition on its name. */
	check_tree(&r, "<root> 16 [main 16 [g 10 10, inner 5 5, 0x12 1 1]]", 0);
	r.filter_count = 2;
	check_tree(&r, "<root> 16 5 [g 10 10, 0x12 1 1]", 0);
	struct filter_condition any[] = { condition(FILTER_BINARY, FILTER_CONTAINS, "z", 0),
		condition(FILTER_BINARY, FILTER_CONTAINS, "y", 0) };
	f[0] = (struct frame_filter){ false, true, any, 2 };
	r.filter_count = 1;
	check_tree(&r, "<root> 16 5 [g 10 10, 0x12 1 1]", 0);
	/* What has no binary passes negative conditions on it. */
	fake_sample(HEAP, 4, 2, 0, "", "script");
	check_tree(&r, "<root> 18 7 [g 10 10, 0x12 1 1]", 0);
	f[0] = (struct frame_filter){ false, false, any, 1 };
	check_tree(&r, "<root> 18 18", 0);
	any[0].op = FILTER_NOT_CONTAINS;
	check_tree(&r, "<root> 18 [main 16 [f 15 [g 10 10, inner 5 5], 0x12 1 1], script 2 2]", 0);
}

static void cuts_at_the_sandwich(void **state)
{
	(void)state;
	three_stacks();
	fake_sample(HEAP, 4, 100, 0, "", "main@/bin/x;f@/bin/x;g@/lib/y;f@/bin/x;h@/bin/x");
	struct query_report_request r = request(HEAP);
	r.sandwich = STR("f");
	/* Of a recursion: below the innermost, above the outermost. */
	check_tree(&r, "<root> 115 [f 115 [h 100 100, g 10 10, inner 5 5]]", 1);
	r.invert = true;
	check_tree(&r, "<root> 115 [f 115 [main 115 115]]", 1);
	r.sandwich = STR("absent");
	check_tree(&r, "<root> 0", 116);
	/* A part of the name is enough, as in Parca; what has none contains nothing. */
	r.sandwich = STR("NNE");
	check_tree(&r, "<root> 5 [inner 5 [f 5 [main 5 5]]]", 111);
	r.sandwich = STR("0x");
	check_tree(&r, "<root> 0", 116);
}

static void compares(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "comm=a", "main@/bin/x;f@/bin/x");
	fake_sample(HEAP, 1, 30, 0, "comm=a", "main@/bin/x;g@/bin/x");
	fake_sample(HEAP, 2, 20, 0, "comm=b", "main@/bin/x;f@/bin/x");
	struct query_report_request r = request(HEAP "{comm=\"b\"}");
	r.diff = r.absolute = true;
	r.base = (struct query_side){ .selector = STR(HEAP "{comm=\"a\"}"), .to_ns = INT64_MAX };
	check_tree(&r, "<root> 20-20 [main 20-20 [f 20+10 20, g 0-30]]", 0);
	r.absolute = false; /* 20 is half of 40 */
	check_tree(&r, "<root> 40+0 [main 40+0 [f 40+30 40, g 0-30]]", 0);
	struct query_side side = r.side;
	r.side = r.base;
	r.base = side;
	check_tree(&r, "<root> 40+0 [main 40+0 [g 30+30 30, f 10-30 10]]", 0);
	r.base.selector = STR(HEAP "{comm=\"c\"}");
	check_tree(&r, "<root> 40+40 [main 40+40 [g 30+30 30, f 10+10 10]]", 0);
}

static void charts_in_the_order_of_time(void **state)
{
	(void)state;
	int64_t at = 1000 * (int64_t)PERIOD;
	fake_sample(CPU, at, 1, PERIOD, "", "main@x;f@x");
	fake_sample(CPU, at + PERIOD, 1, PERIOD, "", "main@x;f@x");
	fake_sample(CPU, at + 2 * PERIOD, 1, PERIOD, "", "main@x;g@x");
	fake_sample(CPU, at + 3 * PERIOD, 1, PERIOD, "", "main@x;f@x");
	fake_sample(CPU, at + 9 * PERIOD, 1, PERIOD, "", "main@x;f@x");
	struct query_report_request r = request(CPU);
	r.chart = true;
	check_tree(&r,
		"<root> 50000000 [main 40000000 @10000000000 "
		"[f 20000000 20000000 @10000000000, g 10000000 10000000 @10020000000, "
		"f 10000000 10000000 @10030000000], "
		"main 10000000 @10090000000 [f 10000000 10000000 @10090000000]]",
		0);
}

/* As far from each other as times can be: the gap does not wrap. */
static void charts_times_of_any_size(void **state)
{
	(void)state;
	fake_sample(CPU, INT64_MIN, 1, PERIOD, "", "f@x");
	fake_sample(CPU, INT64_MAX - 1, 1, PERIOD, "", "f@x");
	struct query_report_request r = request(CPU);
	r.side.from_ns = INT64_MIN;
	r.chart = true;
	check_tree(&r,
		"<root> 20000000 [f 10000000 10000000 @-9223372036854775808, "
		"f 10000000 10000000 @9223372036854775806]",
		0);
}

/* Each sample by its own period, whether samples are grouped or not. */
static void heeds_the_period_of_each_sample(void **state)
{
	(void)state;
	int64_t at = 1000 * (int64_t)PERIOD;
	fake_sample(CPU, at, 2, PERIOD, "job=a", "main@x;f@x");
	fake_sample(CPU, at + PERIOD, 3, PERIOD / 10, "job=b", "main@x;g@x");
	fake_sample(CPU, at + 2 * PERIOD, 5, 1, "job=c", "main@x;g@x");
	struct query_report_request r = request(CPU);
	r.labels[r.label_count++] = STR("job");
	check_tree(&r,
		"<root> 23000005 [<a> 20000000 [main 20000000 [f 20000000 20000000]], "
		"<b> 3000000 [main 3000000 [g 3000000 3000000]], <c> 5 [main 5 [g 5 5]]]",
		0);
	r.side.single = true; /* counts, as they came */
	check_tree(&r,
		"<root> 10 [<c> 5 [main 5 [g 5 5]], <b> 3 [main 3 [g 3 3]], "
		"<a> 2 [main 2 [f 2 2]]]",
		0);
	r.side.single = false;
	r.label_count = 0;
	r.chart = true;
	check_tree(&r,
		"<root> 23000005 [main 23000005 @10000000000 [f 20000000 20000000 @10000000000, "
		"g 3000000 3000000 @10010000000, g 5 5 @10020000000]]",
		0);
}

static void tells_what_differs(void **state)
{
	(void)state;
	struct made m;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 1, 0, "", "main@/bin/x");
	fake_sample(HEAP, 1, 2, 0, "", "main@/bin/y");
	struct query_report_request r = request(HEAP);
	CHECK_OK(make(&m, &fake_engine, &r, 64 << 20, &e), &e);
	CHECK(m.f.nodes.len == 2 && m.f.nodes.v[1].mixed & QUERY_MIXED_MAPPING);
	CHECK(!(m.f.nodes.v[1].mixed & (QUERY_MIXED_FILE | QUERY_MIXED_INLINED)));
	made_deinit(&m);
	r.by = QUERY_BY_MAPPING;
	CHECK_OK(make(&m, &fake_engine, &r, 64 << 20, &e), &e);
	CHECK(m.f.nodes.len == 3 && !m.f.nodes.v[1].mixed && !m.f.nodes.v[2].mixed);
	made_deinit(&m);
}

static bool yes(void *ctx)
{
	(void)ctx;
	return true;
}

static void fails_without_a_trace(void **state)
{
	(void)state;
	struct made m;
	struct err e = { 0 };
	three_stacks();
	struct query_report_request r = request("{}");
	CHECK(make(&m, &fake_engine, &r, 64 << 20, &e) == E_INVALID);
	CHECK_STR(str_of(e.text), "query must contain a profile-type selection");
	made_deinit(&m);
	r.any_type = true;
	CHECK_OK(make(&m, &fake_engine, &r, 64 << 20, &e), &e);
	made_deinit(&m);
	r.cancel = yes;
	CHECK(make(&m, &fake_engine, &r, 64 << 20, &e) == E_CANCELED);
	made_deinit(&m);
	r.cancel = NULL;
	fake_error = E_CORRUPT;
	CHECK(make(&m, &fake_engine, &r, 64 << 20, &e) == E_CORRUPT);
	made_deinit(&m);
	fake_error = OK;
	r = request(HEAP);
	for (size_t limit = 0; limit < 3000; limit += 10) {
		enum status s = make(&m, &fake_engine, &r, limit, &e);
		CHECK(s == OK || (s == E_LIMIT && e.text[0]));
		made_deinit(&m);
	}
}

static void begin(struct made *x)
{
	struct query_report_request r = request(HEAP);
	struct err e = { 0 };
	*x = (struct made){ 0 };
	arena_init(&x->a, 64 << 20);
	CHECK_OK(query_tree_make(&x->t, &fake_engine, &r, &x->a, &e), &e);
}

/* As our own flame graphs are: from the root down, or from the leaves up. */
static enum status fold(struct made *x, bool up, uint64_t least, size_t memory_max, struct err *e)
{
	struct query_report_request r = request(HEAP);
	r.invert = up;
	query_fold_deinit(&x->f);
	return query_fold_make(&x->f, &x->t, &r, QUERY_TRIM_WHOLE, least, memory_max, e);
}

/* A parent comes first, then its children by descending total, each with all that is below it. */
static void check_order(const struct query_fold *f)
{
	int64_t *last = calloc(f->nodes.len, sizeof(*last)); /* total of the last child so far */
	int64_t *sum = calloc(f->nodes.len, sizeof(*sum));
	CHECK(last && sum);
	for (uint32_t i = 1; i < f->nodes.len; i++) {
		const struct query_fold_node *n = &f->nodes.v[i];
		uint32_t before = i - 1;
		while (before > n->parent)
			before = f->nodes.v[before].parent;
		CHECK(before == n->parent);
		CHECK(last[n->parent] == 0 || last[n->parent] >= n->total);
		last[n->parent] = n->total;
		sum[n->parent] += n->total;
	}
	for (uint32_t i = 0; i < f->nodes.len; i++)
		CHECK(sum[i] + f->nodes.v[i].self <= f->nodes.v[i].total);
	free(last);
	free(sum);
}

/* One chain of 1,000 frames, one node with 3,000 children. */
static void is_deep_and_wide(void **state)
{
	(void)state;
	struct made x;
	struct err e = { 0 };
	char stack[16000] = "";
	size_t len = 0;
	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(stack + len, sizeof(stack) - len, "f%d@x;", i);
	fake_sample(HEAP, 1, 10, 0, "", stack);
	for (int i = 0; i < 3000; i++) {
		snprintf(stack, sizeof(stack), "f0@x;g%d@x", i);
		fake_sample(HEAP, 1, 1 + i % 7, 0, "", stack);
	}
	begin(&x);
	CHECK_OK(fold(&x, false, 1, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4001 && x.f.nodes.v[0].total == x.t.sum);
	CHECK(x.f.nodes.v[2].total == 10 && x.f.nodes.v[1000].self == 10);
	check_order(&x.f);
	CHECK_OK(fold(&x, true, 1, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 1 + 1000 + 2 * 3000);
	check_order(&x.f);
	/* Only what is large enough is opened. */
	CHECK_OK(fold(&x, false, 8, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 1001);
	x.t.stacks.plan.store.cancel = yes;
	CHECK(fold(&x, false, 1, 64 << 20, &e) == E_CANCELED);
	CHECK(fold(&x, true, 1, 64 << 20, &e) == E_CANCELED);
	x.t.stacks.plan.store.cancel = NULL;
	x.t.stacks.plan.store.deadline_ns = 1;
	CHECK(fold(&x, false, 1, 64 << 20, &e) == E_TIMEOUT);
	x.t.stacks.plan.store.deadline_ns = 0;
	CHECK(fold(&x, false, 1, 100000, &e) == E_LIMIT);
	CHECK(strstr(e.text, "choose a shorter time range"));
	CHECK(fold(&x, true, 1, 100000, &e) == E_LIMIT);
	made_deinit(&x);
}

/* The same frames by other addresses, called or inlined: one node each. */
static void joins_places(void **state)
{
	(void)state;
	struct made x;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 1, 0, "", "a@x;b@x;c@x");
	fake_sample(HEAP, 1, 2, 0, "", "a>b@x;c@x");
	fake_sample(HEAP, 1, 4, 0, "", "a>b>c@x");
	fake_sample(HEAP, 1, 8, 0, "", "a@x;b>c@x");
	begin(&x);
	CHECK_OK(fold(&x, false, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4);
	CHECK(x.f.nodes.v[3].self == 15 && x.f.nodes.v[1].self == 0);
	CHECK(x.f.nodes.v[2].mixed & x.f.nodes.v[3].mixed & QUERY_MIXED_INLINED);
	CHECK_OK(fold(&x, true, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4);
	CHECK(x.f.nodes.v[3].self == 15 && x.f.nodes.v[1].total == 15);
	made_deinit(&x);
}

static void leaves_out_what_sums_to_nothing(void **state)
{
	(void)state;
	struct made x;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 5, 0, "", "a@x;b@x");
	fake_sample(HEAP, 1, -5, 0, "", "a@x;c@x");
	fake_sample(HEAP, 1, -3, 0, "", "d@x");
	fake_sample(HEAP, 1, 9, 0, "", "");
	begin(&x);
	CHECK_OK(fold(&x, false, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 2 && x.f.nodes.v[0].self == 9 && x.f.nodes.v[0].total == 6);
	CHECK(x.f.nodes.v[1].total == -3);
	CHECK_OK(fold(&x, true, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.v[0].self == 9 && x.f.nodes.v[1].total == 5);
	CHECK(x.f.nodes.len == 6);
	made_deinit(&x);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(sums_by_function), TEST(groups_by_labels), TEST(filters_stacks),
	TEST(filters_stacks_of_no_frames), TEST(filters_frames), TEST(cuts_at_the_sandwich),
	TEST(compares), TEST(charts_in_the_order_of_time), TEST(charts_times_of_any_size),
	TEST(heeds_the_period_of_each_sample), TEST(tells_what_differs),
	TEST(fails_without_a_trace), TEST(is_deep_and_wide), TEST(joins_places),
	TEST(leaves_out_what_sums_to_nothing))
