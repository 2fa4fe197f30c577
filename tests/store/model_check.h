/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_check: every query of model.h asked of a store, the sums by stack compared with the
 * model's.
 */
#pragma once

#include "tests/store/model.h"

#include <math.h>

static inline void node_text(const struct samples_tree *t, uint32_t node, struct buf *out)
{
	if (node == 0)
		return;
	node_text(t, t->nodes.v[node].parent, out);
	fx_location_text(&t->tables, t->nodes.v[node].location, out);
	buf_u8(out, ';');
}

static inline void check_tree(const struct model_query *c, const struct samples_tree *t,
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

static inline void model_check(struct store *s, const struct model *m, int64_t from, int64_t to)
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
