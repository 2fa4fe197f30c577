/* SPDX-License-Identifier: Apache-2.0 */
/* The collected profile holds the model's sums by stack and kept labels. */
#include "tests/store/model.h"

#include <math.h>

static const struct str keep[] = { { "comm", 4 }, { "pid", 3 }, { "cpu", 3 } };

static struct str label_of(const struct profile *p, uint32_t set, struct str name)
{
	const struct profile_labels *l = &p->label_sets.v[set];
	for (uint32_t i = 0; i < l->count; i++)
		if (str_eq(profile_str(p, p->labels.v[l->first + i].name), name))
			return profile_str(p, p->labels.v[l->first + i].value);
	return STR("");
}

static bool same_labels(
	const struct profile *p, uint32_t set, size_t keep_count, const struct model_sample *s)
{
	if (keep_count == 0)
		return p->label_sets.v[set].count == 0;
	return str_eq(label_of(p, set, keep[0]), str_of(model_text("c", s->comm))) &&
	       str_eq(label_of(p, set, keep[1]), str_of(model_text("", s->pid))) &&
	       str_eq(label_of(p, set, keep[2]), str_of(model_text("", s->cpu)));
}

static int series_of(const struct model_sample *s)
{
	return s->comm * MODEL_NODES + s->node;
}

static int stack_of(const struct profile *p, const struct profile_sample *x)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	const struct profile_stack *st = &p->stacks.v[x->stack];
	for (uint32_t k = st->count; k-- > 0;) {
		fx_location_text(p, p->stack_locations.v[st->first + k], &b);
		buf_u8(&b, ';');
	}
	int stack = model_stack_find(buf_view(&b));
	CHECK(stack >= 0);
	return stack;
}

static void check_profile(const struct model *m, const struct model_query *c,
	const struct profile *p, size_t keep_count)
{
	bool gauge = !model_types[c->type].delta;
	double all = 0, got = 0, weights[MODEL_SERIES];
	if (gauge)
		model_weights(m, c, 0, INT64_MAX, 0, INT64_MAX, weights);
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		int stack = stack_of(p, x);
		double want = 0;
		for (size_t k = 0; k < m->samples.len; k++) {
			const struct model_sample *s = &m->samples.v[k];
			if (s->stack == stack && model_picks(c, s, 0, INT64_MAX) &&
				same_labels(p, x->own, keep_count, s))
				want += (double)s->value * (gauge ? weights[series_of(s)] : 1);
		}
		CHECK_CASE(c, fabs(want - (double)x->value) <= 0.5001);
		got += (double)x->value;
	}
	for (size_t k = 0; k < m->samples.len; k++)
		if (model_picks(c, &m->samples.v[k], 0, INT64_MAX))
			all += (double)m->samples.v[k].value *
			       (gauge ? weights[series_of(&m->samples.v[k])] : 1);
	CHECK_CASE(c, fabs(all - got) <= 0.5001 * (gauge ? (double)p->samples.len : 0.01));
}

/* Of each stack and step, in which a gauge is averaged by itself. */
static void check_steps(
	const struct model *m, const struct model_query *c, const struct profile *p, int64_t step)
{
	bool gauge = !model_types[c->type].delta;
	double all = 0, got = 0, weights[MODEL_SERIES];
	int64_t weighed = -1;
	for (size_t i = 0; i < p->samples.len; i++)
		got += (double)p->samples.v[i].value;
	for (size_t i = 0; i < p->samples.len; i++)
		CHECK_CASE(c, p->samples.v[i].time_ns % step == 0);
	for (int64_t begin = T0 - T0 % step; begin < T0 + 100 * SEC; begin += step) {
		double want[MODEL_STACKS] = { 0 };
		for (size_t k = 0; k < m->samples.len; k++) {
			const struct model_sample *s = &m->samples.v[k];
			if (!model_picks(c, s, begin, begin + step))
				continue;
			if (gauge && weighed != begin)
				model_weights(m, c, 0, INT64_MAX, begin, begin + step, weights);
			weighed = begin;
			double value = (double)s->value * (gauge ? weights[series_of(s)] : 1);
			want[s->stack] += value;
			all += value;
		}
		for (size_t i = 0; i < p->samples.len; i++)
			if (p->samples.v[i].time_ns == begin)
				CHECK_CASE(c, fabs(want[stack_of(p, &p->samples.v[i])] -
						      (double)p->samples.v[i].value) <= 0.5001);
	}
	CHECK_CASE(c, fabs(all - got) <= 0.5001 * (gauge ? (double)p->samples.len : 0.01));
}

static void check(struct store *s, const struct model *m, size_t keep_count)
{
	FOR_EACH_CASE (c, model_queries) {
		char text[256];
		struct fx_query f;
		struct store_view *v;
		struct profile p;
		struct err e = { 0 };
		model_query_text(c, text);
		struct samples_query *q = fx_query(&f, text, 0, INT64_MAX);
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_collect(v, q, keep, keep_count, &p, &e), &e);
		CHECK_OK(profile_validate(&p, &e), &e);
		check_profile(m, c, &p, keep_count);
		profile_deinit(&p);
		q->step_ns = 10 * SEC; /* no finer than times that are merged */
		CHECK_OK(store_collect(v, q, NULL, 0, &p, &e), &e);
		check_steps(m, c, &p, q->step_ns);
		profile_deinit(&p);
		store_view_close(v);
		fx_query_end(&f);
	}
}

static void profiles_equal_the_model(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 9 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int round = 0; round < 3; round++) {
		model_append(&m, s, 120, T0 + round * 10 * SEC, 20 * SEC);
		if (round < 2)
			CHECK_OK(store_flush(s, &e), &e);
		check(s, &m, 0);
		check(s, &m, 3);
	}
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static void append(struct store *s, int64_t period, int64_t at, int64_t value)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t frame = fx_frame(&p, "/bin/a", 16), stack;
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	fx_sample(&p, at, value, fx_head(&p, "cpu", true, period), stack, 0, 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

/* Value by period and time; -1: there is no such sample. */
static int64_t value_of(const struct profile *p, int64_t period, int64_t time_ns)
{
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->heads.v[p->samples.v[i].head].period == period &&
			(!time_ns || p->samples.v[i].time_ns == time_ns))
			return p->samples.v[i].value;
	return -1;
}

static void periods_and_times_stay_apart(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct profile p;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append(s, 100, T0, 3);
	append(s, 250, T0, 10);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, 100, T0 + SEC, 4);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_collect(v, q, NULL, 0, &p, &e), &e);
	CHECK(p.samples.len == 2);
	CHECK(value_of(&p, 100, 0) == 7 && value_of(&p, 250, 0) == 10);
	profile_deinit(&p);
	q->each_time = true;
	CHECK_OK(store_collect(v, q, NULL, 0, &p, &e), &e);
	CHECK(p.samples.len == 3);
	CHECK(value_of(&p, 100, T0) == 3 && value_of(&p, 100, T0 + SEC) == 4);
	CHECK(value_of(&p, 250, T0) == 10);
	profile_deinit(&p);
	q->from_ns = T0 + 10 * SEC;
	CHECK_OK(store_collect(v, q, NULL, 0, &p, &e), &e);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

/* Where periods differ, values of a series without one count as they are. */
static void no_period_counts_once(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct samples_tree t;
	struct samples_series *series;
	struct samples_type type;
	struct err e = { 0 };
	size_t n;
	int64_t period;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append(s, 100, T0, 3);
	append(s, 0, T0, 10);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	q->times_period = true;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK(t.total == 310 && t.period == 1);
	samples_tree_deinit(&t);
	CHECK_OK(store_sum_series(
			 v, q, NULL, 0, 3600 * SEC, &f.arena, &series, &n, &type, &period, &e),
		&e);
	CHECK(n == 1 && series[0].points[0].value == 310 && period == 1);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

/* Whoever has samples of very many periods spoils his own answers only. */
static void other_types_may_have_any_periods(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct profile p;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(profile_init(&p, 16 << 20) == OK);
	uint32_t frame = fx_frame(&p, "/bin/a", 16), stack;
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	for (int64_t i = 1; i <= 5000; i++)
		fx_sample(&p, T0, 1, fx_head(&p, "other", true, i), stack, 0, 0);
	fx_sample(&p, T0, 7, fx_head(&p, "cpu", true, 100), stack, 0, 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	CHECK_OK(store_collect(v, q, NULL, 0, &p, &e), &e);
	CHECK(p.samples.len == 1 && value_of(&p, 100, 0) == 7);
	profile_deinit(&p);
	fx_query_end(&f);
	q = fx_query(&f, "other:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	CHECK(store_collect(v, q, NULL, 0, &p, &e) == E_LIMIT);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(profiles_equal_the_model),
	cmocka_unit_test(periods_and_times_stay_apart), cmocka_unit_test(no_period_counts_once),
	cmocka_unit_test(other_types_may_have_any_periods))
