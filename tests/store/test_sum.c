/* SPDX-License-Identifier: Apache-2.0 */
/*
 * However samples came to lie (memtable, young parts, merged parts, after a restart), sums by stack
 * equal the model's.
 */
#include "tests/store/model.h"

#include <math.h>

static void node_text(const struct samples_tree *t, uint32_t node, struct buf *out)
{
	if (node == 0)
		return;
	node_text(t, t->nodes.v[node].parent, out);
	fx_location_text(&t->tables, t->nodes.v[node].location, out);
	buf_u8(out, ';');
}

static void check_tree(const struct model_query *c, const struct samples_tree *t,
	const double want[MODEL_STACKS], uint64_t count)
{
	int64_t total = 0;
	double all = 0;
	bool seen[MODEL_STACKS] = { 0 };
	for (uint32_t i = 0; i < t->nodes.len; i++) {
		CHECK_CASE(c, i == 0 || t->nodes.v[i].parent < i);
		total += t->nodes.v[i].self;
		if (t->nodes.v[i].self == 0)
			continue;
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 4096);
		node_text(t, i, &b);
		int stack = model_stack_find(buf_view(&b));
		CHECK_CASE(c, stack >= 0);
		CHECK_CASE(c, !seen[stack]);
		seen[stack] = true;
		CHECK_CASE(c, fabs((double)t->nodes.v[i].self - want[stack]) <= 0.5001);
	}
	for (int i = 0; i < MODEL_STACKS; i++) {
		all += want[i];
		CHECK_CASE(c, seen[i] || want[i] < 0.5001);
	}
	CHECK_CASE(c, total == t->total);
	CHECK_CASE(c, fabs((double)total - all) <= MODEL_STACKS);
	CHECK_CASE(c, t->sample_count == count);
}

static void check(struct store *s, const struct model *m, int64_t from, int64_t to)
{
	FOR_EACH_CASE (c, model_queries) {
		char text[256];
		struct fx_query f;
		struct store_view *v;
		struct samples_tree t;
		struct err e = { 0 };
		double want[MODEL_STACKS];
		uint64_t count;
		model_query_text(c, text);
		struct samples_query *q = fx_query(&f, text, from, to);
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
		model_sum(m, c, from, to, want, &count);
		check_tree(c, &t, want, count);
		if (count)
			CHECK_CASE(c, t.period == model_types[c->type].period);
		samples_tree_deinit(&t);
		store_view_close(v);
		fx_query_end(&f);
	}
}

static void check_ranges(struct store *s, const struct model *m)
{
	check(s, m, INT64_MIN, INT64_MAX);
	check(s, m, T0 + 20 * SEC, T0 + 50 * SEC);
	check(s, m, T0 - 100 * SEC, T0 - 50 * SEC);
}

static void sums_equal_the_model(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 42 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int round = 0; round < 6; round++) {
		model_append(&m, s, 100, T0 + round * 10 * SEC, 10 * SEC);
		model_append(&m, s, 37, T0, 60 * SEC); /* late ones */
		if (round == 0)
			check_ranges(s, &m);
		if (round % 2)
			CHECK_OK(store_flush(s, &e), &e);
	}
	check_ranges(s, &m);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_ranges(s, &m);
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK(s->parts.len == 1);
	check_ranges(s, &m); /* the bounds are multiples of the resolution */
	model_append(&m, s, 50, T0 + 30 * SEC, 10 * SEC);
	check_ranges(s, &m);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_ranges(s, &m);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static bool give_up(void *ctx)
{
	(void)ctx;
	return true;
}

static void limits_and_cancellation(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 1 };
	struct store *s;
	struct store_view *v;
	struct samples_tree t = { .total = 77 };
	struct fx_query f;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 500, T0, 10 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	q->cancel = give_up;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_CANCELED);
	q->cancel = NULL;
	q->memory_bytes = 1000;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_LIMIT);
	CHECK(strstr(e.text, "memory") != NULL);
	q->memory_bytes = 0;
	q->to_ns = q->from_ns;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_INVALID);
	q->to_ns = INT64_MAX;
	f.selector.has_type = false;
	CHECK(store_sum_stacks(v, q, &t, &e) == E_INVALID);
	CHECK(strstr(e.text, "names no profile type") != NULL);
	CHECK(t.total == 77); /* untouched by failures */
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(sums_equal_the_model), cmocka_unit_test(limits_and_cancellation))
