/* SPDX-License-Identifier: Apache-2.0 */
/* Cells are the model's sums by stack and kept labels, and those of store_collect(). */
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

static int stack_of(const struct samples_tree *t, uint32_t node)
{
	CLEANUP(buf_deinit) struct buf b;
	uint32_t path[64], n = 0;
	buf_init(&b, 4096);
	for (; node && n < ARRAY_COUNT(path); node = t->nodes.v[node].parent)
		path[n++] = t->nodes.v[node].location;
	while (n-- > 0) {
		fx_location_text(&t->tables, path[n], &b);
		buf_u8(&b, ';');
	}
	return model_stack_find(buf_view(&b));
}

static void check_order(const struct samples_cells *x)
{
	for (size_t i = 0; i < x->v.len; i++) {
		const struct samples_cell *c = &x->v.v[i];
		CHECK(c->value != 0 && c->node < x->tree.nodes.len && c->group < x->groups.len);
		CHECK(!i || c[-1].node < c->node ||
			(c[-1].node == c->node && c[-1].group < c->group));
	}
	for (size_t i = 1; i < x->tree.nodes.len; i++)
		CHECK(x->tree.nodes.v[i].parent < i && x->tree.nodes.v[i].self == 0);
}

static void check_cells(const struct model *m, const struct model_query *c,
	const struct samples_cells *x, size_t keep_count)
{
	bool gauge = !model_types[c->type].delta;
	double all = 0, got = 0, weights[MODEL_SERIES];
	uint64_t samples = 0;
	if (gauge)
		model_weights(m, c, 0, INT64_MAX, 0, INT64_MAX, weights);
	check_order(x);
	for (size_t i = 0; i < x->v.len; i++) {
		const struct samples_cell *cell = &x->v.v[i];
		const struct samples_group *g = &x->groups.v[cell->group];
		int stack = stack_of(&x->tree, cell->node);
		CHECK_CASE(c, stack >= 0);
		CHECK_CASE(c, g->period == model_types[c->type].period);
		double want = 0;
		for (size_t k = 0; k < m->samples.len; k++) {
			const struct model_sample *s = &m->samples.v[k];
			if (s->stack == stack && model_picks(c, s, 0, INT64_MAX) &&
				same_labels(&x->tree.tables, g->labels, keep_count, s))
				want += (double)s->value * (gauge ? weights[series_of(s)] : 1);
		}
		CHECK_CASE(c, fabs(want - (double)cell->value) <= 0.5001);
		got += (double)cell->value;
	}
	for (size_t k = 0; k < m->samples.len; k++)
		if (model_picks(c, &m->samples.v[k], 0, INT64_MAX)) {
			samples++;
			all += (double)m->samples.v[k].value *
			       (gauge ? weights[series_of(&m->samples.v[k])] : 1);
		}
	CHECK_CASE(c, fabs(all - got) <= 0.5001 * (gauge ? (double)x->v.len + 1 : 0.01));
	CHECK_CASE(c, x->tree.sample_count == samples);
}

static void check(struct store *s, const struct model *m, size_t keep_count)
{
	FOR_EACH_CASE (c, model_queries) {
		char text[256];
		struct fx_query f;
		struct store_view *v;
		struct samples_cells x;
		struct profile p;
		struct err e = { 0 };
		model_query_text(c, text);
		struct samples_query *q = fx_query(&f, text, 0, INT64_MAX);
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_sum_cells(v, q, keep, keep_count, &x, &e), &e);
		CHECK_OK(profile_validate(&x.tree.tables, &e), &e);
		check_cells(m, c, &x, keep_count);
		CHECK_OK(store_collect(v, q, keep, keep_count, &p, &e), &e);
		if (model_types[c->type].delta)
			CHECK_CASE(c, p.samples.len == x.v.len);
		profile_deinit(&p);
		samples_cells_deinit(&x);
		store_view_close(v);
		fx_query_end(&f);
	}
}

static void cells_equal_the_model(void **state)
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

static void append(struct store *s, int64_t period, const char *comm, int64_t at, int64_t value)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t frame = fx_frame(&p, "/bin/a", 16), stack;
	const char *pairs[] = { "comm", comm, NULL };
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	fx_sample(&p, at, value, fx_head(&p, "cpu", true, period), stack, fx_labels(&p, pairs), 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

/* Groups of equal labels stay side by side, whenever their periods came. */
static void periods_stay_apart(void **state)
{
	(void)state;
	static const struct samples_cell want[] = { { 1, 0, 7 }, { 1, 1, 10 }, { 1, 2, 5 } };
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct samples_cells x;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append(s, 100, "a", T0, 3);
	append(s, 100, "b", T0, 5);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, 250, "a", T0, 10);
	append(s, 100, "a", T0 + SEC, 4);
	append(s, 0, "c", T0 + SEC, 4); /* and what is 0 in all is not there */
	append(s, 0, "c", T0 + SEC, -4);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_cells(v, q, keep, 1, &x, &e), &e);
	CHECK(x.v.len == 3 && x.groups.len == 3);
	CHECK(memcmp(x.v.v, want, sizeof(want)) == 0);
	CHECK(x.groups.v[0].labels == x.groups.v[1].labels);
	CHECK(x.groups.v[0].period == 100 && x.groups.v[1].period == 250);
	CHECK(x.groups.v[2].labels != x.groups.v[0].labels && x.groups.v[2].period == 100);
	CHECK(x.tree.first_ns == T0 && x.tree.last_ns == T0 + SEC && x.tree.period == 0);
	samples_cells_deinit(&x);
	q->from_ns = T0 + 10 * SEC;
	CHECK_OK(store_sum_cells(v, q, keep, 1, &x, &e), &e);
	CHECK(x.v.len == 0 && x.tree.nodes.len == 1 && x.tree.first_ns == 0);
	samples_cells_deinit(&x);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

static void many_periods(void **state)
{
	(void)state;
	enum { PERIODS = 4096 };
	char dir[64];
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct samples_cells x;
	struct profile p;
	struct err e = { 0 };
	uint32_t stack;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(profile_init(&p, 16 << 20) == OK);
	uint32_t frame = fx_frame(&p, "/bin/a", 16);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	for (int i = 0; i < PERIODS; i++)
		fx_sample(&p, T0, 1 + i, fx_head(&p, "cpu", true, 1 + i), stack, 0, 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", 0, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_cells(v, q, NULL, 0, &x, &e), &e);
	CHECK(x.v.len == PERIODS && x.groups.len == PERIODS);
	for (size_t i = 0; i < x.v.len; i++)
		CHECK(x.v.v[i].value == x.groups.v[x.v.v[i].group].period);
	samples_cells_deinit(&x);
	store_view_close(v);
	append(s, PERIODS + 1, "a", T0, 1);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK(store_sum_cells(v, q, NULL, 0, &x, &e) == E_LIMIT && strstr(e.text, "periods"));
	store_view_close(v);
	fx_query_end(&f);
	profile_deinit(&p);
	store_close(s);
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
	struct model m = { .random = 3 };
	struct store *s;
	struct store_view *v;
	struct fx_query f;
	struct samples_cells x;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 200, T0, 10 * SEC);
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	q->memory_bytes = 1000;
	CHECK(store_sum_cells(v, q, keep, 3, &x, &e) == E_LIMIT && strstr(e.text, "memory"));
	q->memory_bytes = 0;
	q->cancel = give_up;
	CHECK(store_sum_cells(v, q, keep, 3, &x, &e) == E_CANCELED);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(cells_equal_the_model), cmocka_unit_test(periods_stay_apart),
	cmocka_unit_test(many_periods), cmocka_unit_test(limits_and_cancellation))
