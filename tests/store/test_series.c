/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by step and labels equal the model's. */
#include "tests/store/model.h"

#include <math.h>

/* Group by comm (a series label) and thread_name (a sample label), or by nothing. */
static const struct str by[] = { { "comm", 4 }, { "thread_name", 11 } };

struct want {
	double value;
	uint64_t count;
};

static int64_t floor_to(int64_t t, int64_t step)
{
	return t - t % step;
}

static struct want model_point(const struct model *m, const struct model_query *q, int64_t from,
	int64_t to, int64_t step, int64_t begin, struct str comm, struct str thread, bool grouped)
{
	struct want w = { 0 };
	bool gauge = !model_types[q->type].delta;
	double weights[MODEL_SERIES];
	if (gauge)
		model_weights(m, q, from, to, MAX(from, begin), MIN(to, begin + step), weights);
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *s = &m->samples.v[i];
		if (!model_picks(q, s, from, to) || floor_to(s->time_ns, step) != begin)
			continue;
		if (grouped && (!str_eq(comm, str_of(model_text("c", s->comm))) ||
				       !str_eq(thread, str_of(model_text("t", s->thread)))))
			continue;
		w.value +=
			(double)s->value * (gauge ? weights[s->comm * MODEL_NODES + s->node] : 1);
		w.count++;
	}
	return w;
}

static void check_query(struct store *s, const struct model *m, const struct model_query *c,
	int64_t from, int64_t to, int64_t step, size_t by_count)
{
	char text[256];
	struct fx_query f;
	struct store_view *v;
	struct samples_series *series;
	struct samples_type type;
	size_t n;
	int64_t period;
	struct err e = { 0 };
	model_query_text(c, text);
	struct samples_query *q = fx_query(&f, text, from, to);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_series(
			 v, q, by, by_count, step, &f.arena, &series, &n, &type, &period, &e),
		&e);
	uint64_t count = 0, want = 0;
	for (size_t i = 0; i < n; i++) {
		CHECK_CASE(c, series[i].point_count > 0);
		for (size_t k = 0; k < series[i].point_count; k++) {
			const struct samples_point *p = &series[i].points[k];
			struct want w = model_point(m, c, from, to, step, p->time_ns,
				by_count ? series[i].values[0] : STR(""),
				by_count ? series[i].values[1] : STR(""), by_count > 0);
			CHECK_CASE(c, p->time_ns % step == 0);
			CHECK_CASE(c, k == 0 || p->time_ns > p[-1].time_ns);
			CHECK_CASE(c, p->count == w.count);
			CHECK_CASE(c, fabs((double)p->value - w.value) <= 0.5001);
			count += p->count;
		}
	}
	for (size_t i = 0; i < m->samples.len; i++)
		want += model_picks(c, &m->samples.v[i], from, to);
	CHECK_CASE(c, count == want);
	if (want) {
		CHECK_CASE(c, str_eq(type.name, str_of(model_types[c->type].name)));
		CHECK_CASE(c, period == model_types[c->type].period);
	}
	store_view_close(v);
	fx_query_end(&f);
}

static void check(struct store *s, const struct model *m)
{
	FOR_EACH_CASE (c, model_queries) {
		check_query(s, m, c, 0, INT64_MAX, 10 * SEC, 2);
		check_query(s, m, c, 0, INT64_MAX, 60 * SEC, 0);
		check_query(s, m, c, T0 + 10 * SEC, T0 + 40 * SEC, 20 * SEC, 2);
	}
}

static void sums_equal_the_model(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 5 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int round = 0; round < 4; round++) {
		model_append(&m, s, 80, T0 + round * 10 * SEC, 20 * SEC);
		if (round < 3)
			CHECK_OK(store_flush(s, &e), &e);
		check(s, &m);
	}
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static void refuses_nonsense(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct samples_series *series;
	size_t n;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, "{}", 0, 10);
	CHECK(store_sum_series(v, q, by, 2, 0, &f.arena, &series, &n, NULL, NULL, &e) == E_INVALID);
	CHECK_OK(store_sum_series(v, q, by, 2, 1, &f.arena, &series, &n, NULL, NULL, &e), &e);
	CHECK(n == 0);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(sums_equal_the_model), cmocka_unit_test(refuses_nonsense))
