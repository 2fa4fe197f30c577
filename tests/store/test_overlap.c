/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports that have samples in common: each sample is stored once, or the import is refused and
 * says what is there already.
 */
#include "store/admin/overlap.h"
#include "tests/store/model_check.h"

static const struct store_import_wish everything_again = { true, INT64_MIN, INT64_MAX };

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

static struct buf export_of(struct store *s, const char *selector, int64_t from, int64_t to)
{
	struct buf out;
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	buf_init(&out, 16 << 20);
	struct samples_query *q = fx_query(&f, selector, from, to);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, q, &out, &e), &e);
	CHECK(out.len > 0);
	store_view_close(v);
	fx_query_end(&f);
	return out;
}

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged = true;
	while (merged)
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
}

static uint64_t take(struct store *s, const struct buf *b, const struct store_import_wish *wish)
{
	struct store_imported done;
	struct err e = { 0 };
	CHECK_OK(store_import(s, buf_view(b), wish, &done, &e), &e);
	return done.samples;
}

static void is_refused(struct store *s, const struct buf *b, const struct store_import_wish *wish)
{
	struct store_imported done;
	struct err e = { 0 };
	uint64_t before = metric_get(&s->metrics.imported_rows);
	CHECK(store_import(s, buf_view(b), wish, &done, &e) == E_EXISTS);
	CHECK(strstr(e.text, "from 2023-11-14T22:1") != NULL);
	CHECK(strstr(e.text, "were imported before") != NULL);
	CHECK(metric_get(&s->metrics.imported_rows) == before);
}

/* A store with `minutes` of samples; merged ones lie at whole 10 s. */
static struct store *make_source(const char *dir, struct model *m, int minutes, bool merged)
{
	struct err e = { 0 };
	struct store *s = open_store(dir);
	for (int i = 0; i < minutes; i++)
		model_append(m, s, 200, T0 + i * 60 * SEC, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	if (merged)
		merge_all(s);
	return s;
}

static void the_rest_is_taken(void **state)
{
	(void)state;
	const int64_t minute = 60 * SEC;
	for (int merged = 0; merged < 2; merged++) {
		char dir[2][64];
		struct model m = { .random = 11 };
		struct store_import_wish later = { false, T0 + minute, INT64_MAX };
		struct store_import_wish sooner = { false, T0 + minute - 10 * SEC, INT64_MAX };
		fixture_dir(dir[0]);
		fixture_dir(dir[1]);
		struct store *s = make_source(dir[0], &m, 3, merged), *other = open_store(dir[1]);
		struct buf first = export_of(s, "{}", T0, T0 + minute);
		struct buf all = export_of(s, "{}", T0, T0 + 3 * minute);
		struct buf last = export_of(s, "{}", T0 + 2 * minute, T0 + 3 * minute);
		CHECK(take(other, &first, NULL) == 200);
		is_refused(other, &all, NULL);
		is_refused(other, &all, &sooner);
		merge_all(other); /* the origin goes on */
		is_refused(other, &all, NULL);
		store_close(other);
		other = open_store(dir[1]);
		is_refused(other, &all, NULL);
		CHECK(take(other, &all, &later) == 400);
		CHECK(take(other, &all, &later) == 0); /* known */
		model_check(other, &m, INT64_MIN, INT64_MAX);
		is_refused(other, &last, NULL);
		merge_all(other);
		is_refused(other, &last, NULL);
		CHECK(take(other, &first, NULL) == 0);
		model_check(other, &m, INT64_MIN, INT64_MAX);
		CHECK(take(other, &last, &everything_again) == 200); /* who insists */
		store_close(other);
		store_close(s);
		buf_deinit(&first);
		buf_deinit(&all);
		buf_deinit(&last);
		VEC_FREE(&m.samples);
		fixture_clean(dir[0]);
		fixture_clean(dir[1]);
	}
}

static void neighbours_are_taken(void **state)
{
	(void)state;
	char dir[2][64];
	struct model m = { .random = 12 };
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = make_source(dir[0], &m, 3, true), *other = open_store(dir[1]);
	for (int i = 2; i >= 0; i--) {
		struct buf b = export_of(s, "{}", T0 + i * 60 * SEC, T0 + (i + 1) * 60 * SEC);
		CHECK(take(other, &b, NULL) == 200);
		buf_deinit(&b);
	}
	model_check(other, &m, INT64_MIN, INT64_MAX);
	store_close(other);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

static void other_series_are_taken(void **state)
{
	(void)state;
	char dir[2][64];
	struct model m = { .random = 13 };
	static const char *const each[] = { "{comm=\"c1\"}", "{comm=\"c2\"}", "{comm!~\"c[12]\"}" };
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = make_source(dir[0], &m, 1, false), *other = open_store(dir[1]);
	struct buf all = export_of(s, "{}", INT64_MIN, INT64_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(each); i++) {
		struct buf b = export_of(s, each[i], INT64_MIN, INT64_MAX);
		CHECK(take(other, &b, NULL) > 0);
		is_refused(other, &all, NULL);
		buf_deinit(&b);
	}
	model_check(other, &m, INT64_MIN, INT64_MAX);
	store_close(other);
	store_close(s);
	buf_deinit(&all);
	VEC_FREE(&m.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

/* From a to b, from b on to c: c knows that these are a's. */
static void origins_travel(void **state)
{
	(void)state;
	char dir[3][64];
	struct model m = { .random = 14 };
	for (int i = 0; i < 3; i++)
		fixture_dir(dir[i]);
	struct store *a = make_source(dir[0], &m, 2, false);
	struct store *b = open_store(dir[1]), *c = open_store(dir[2]);
	struct buf first = export_of(a, "{}", T0, T0 + 60 * SEC);
	struct buf all = export_of(a, "{}", INT64_MIN, INT64_MAX);
	CHECK(take(b, &first, NULL) == 200);
	struct buf on = export_of(b, "{}", INT64_MIN, INT64_MAX);
	CHECK(take(c, &on, NULL) == 200);
	is_refused(c, &all, NULL);
	store_close(a);
	store_close(b);
	store_close(c);
	buf_deinit(&first);
	buf_deinit(&all);
	buf_deinit(&on);
	VEC_FREE(&m.samples);
	for (int i = 0; i < 3; i++)
		fixture_clean(dir[i]);
}

/* From a to b, and back to a. */
static void own_samples_do_not_come_back(void **state)
{
	(void)state;
	const int64_t minute = 60 * SEC;
	char dir[2][64];
	struct model m = { .random = 15 };
	struct store_imported done;
	struct err e = { 0 };
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *a = make_source(dir[0], &m, 2, false), *b = open_store(dir[1]);
	struct buf there = export_of(a, "{}", T0, T0 + minute);
	CHECK(take(b, &there, NULL) == 200);
	struct model of_b = { .random = 16 };
	model_append(&of_b, b, 100, T0 + 5 * minute, minute);
	CHECK_OK(store_flush(b, &e), &e);
	merge_all(b);
	struct buf back = export_of(b, "{}", INT64_MIN, INT64_MAX);
	uint64_t before = metric_get(&a->metrics.imported_rows);
	CHECK(store_import(a, buf_view(&back), NULL, &done, &e) == E_EXISTS);
	CHECK(strstr(e.text, "from 2023-11-14T22:1") && strstr(e.text, "this very store"));
	CHECK(metric_get(&a->metrics.imported_rows) == before);
	model_check(a, &m, INT64_MIN, INT64_MAX);
	struct store_import_wish own = { false, T0 + 5 * minute, INT64_MAX };
	CHECK(take(a, &back, &own) == 100); /* what is b's alone */
	CHECK(take(a, &back, &everything_again) == 300);
	store_close(a);
	store_close(b);
	buf_deinit(&there);
	buf_deinit(&back);
	VEC_FREE(&m.samples);
	VEC_FREE(&of_b.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

static void neighbours_become_one(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t v[4][2];
		size_t count, want;
	} cases[] = {
		{ "apart", { { 0, 9 }, { 11, 19 } }, 2, 2 },
		{ "they follow each other", { { 0, 9 }, { 10, 19 } }, 2, 1 },
		{ "the other way round", { { 10, 19 }, { 0, 9 } }, 2, 1 },
		{ "one between two", { { 0, 9 }, { 20, 29 }, { 10, 19 } }, 3, 1 },
		{ "one over all", { { 0, 1 }, { 4, 5 }, { 8, 9 }, { 1, 8 } }, 4, 1 },
		{ "the ends of time", { { INT64_MIN, 0 }, { 2, INT64_MAX } }, 2, 2 },
		{ "all of time", { { INT64_MIN, 0 }, { 1, INT64_MAX } }, 2, 1 },
	};
	FOR_EACH_CASE (c, cases) {
		struct part_meta m = { 0 };
		for (size_t i = 0; i < c->count; i++)
			CHECK(part_meta_add_origin(&m, (struct part_origin){ { 1, 2 }, c->v[i][0],
							       c->v[i][1] }) == OK);
		CHECK_CASE(c, m.origins.len == c->want);
		CHECK(part_meta_add_origin(&m, (struct part_origin){ { 7, 7 }, 0, 99 }) == OK);
		CHECK_CASE(c, m.origins.len == c->want + 1);
		part_meta_deinit(&m);
	}
}

/* What a reader of parts refuses is not written. */
static void there_are_not_too_many(void **state)
{
	(void)state;
	struct part_meta m = { 0 }, more = { 0 };
	for (uint64_t i = 0; i < PART_ORIGINS_MAX; i++)
		CHECK(VEC_PUSH(&m.origins, ((struct part_origin){ { i, 2 }, 0, 9 })));
	CHECK(part_meta_add_origin(&m, (struct part_origin){ { 5, 2 }, 10, 12 }) == OK);
	CHECK(part_meta_add_origin(&m, (struct part_origin){ { 5, 3 }, 0, 9 }) == E_LIMIT);
	for (uint64_t i = 0; i < PART_IMPORTS_MAX; i++)
		CHECK(VEC_PUSH(&more.imports, ((struct hash128){ i, 4 })));
	CHECK(part_meta_inherit(&m, &more) == OK);
	CHECK(part_meta_inherit(&m, &more) == E_LIMIT);
	CHECK(m.imports.len == PART_IMPORTS_MAX);
	part_meta_deinit(&m);
	part_meta_deinit(&more);
}

/* What a row's time was before it was rounded. */
static void steps_widen(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t resolution_ns, step_ns, last_ns, want_ns, slice_ns;
	} cases[] = {
		{ "exact", 0, 0, 100, 100 },
		{ "merged", 10, 0, 100, 109 },
		{ "exact ones beside merged ones", 0, 10, 105, 109 },
		{ "some are coarser", 0, 300, 600, 899 },
		{ "the coarser counts", 10, 300, 610, 899 },
		{ "the end of time", 10, 0, INT64_MAX - 3, INT64_MAX },
		{ "a step of more than a slice ends with it", 86400, 0, 3600, 7199, 3600 },
		{ "one that does not divide a slice too", 5400, 0, 9000, 10799, 3600 },
		{ "one that does", 1800, 0, 3600, 5399, 3600 },
	};
	FOR_EACH_CASE (c, cases) {
		struct part_meta m = { .store_id = { 1, 2 },
			.resolution_ns = c->resolution_ns,
			.slice_ns = c->slice_ns,
			.step_ns = c->step_ns };
		struct part_origin o = overlap_origin(&m, 50, c->last_ns);
		CHECK_CASE(c, o.first_ns == 50 && o.last_ns == c->want_ns);
		CHECK_CASE(c, hash128_eq(o.store_id, m.store_id));
	}
}

TEST_MAIN(cmocka_unit_test(the_rest_is_taken), cmocka_unit_test(neighbours_are_taken),
	cmocka_unit_test(other_series_are_taken), cmocka_unit_test(origins_travel),
	cmocka_unit_test(own_samples_do_not_come_back), cmocka_unit_test(neighbours_become_one),
	cmocka_unit_test(there_are_not_too_many), cmocka_unit_test(steps_widen))
