/* SPDX-License-Identifier: Apache-2.0 */
/* Types, names and values: from memory and parts, by tenant, time and selector. */
#include "tests/store/model.h"

static void join(const struct str *v, size_t n, char out[1024])
{
	size_t at = 0;
	out[0] = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, 1024 - at, "%s%.*s", i ? " " : "", STR_ARG(v[i]));
}

static void check_texts(struct store *s, const char *selector, const char *name, const char *tenant,
	int64_t to, const char *want)
{
	struct fx_query f;
	struct store_view *v;
	struct str *texts;
	size_t n;
	struct err e = { 0 };
	char got[1024];
	struct samples_query *q = fx_query(&f, selector, 0, to);
	CHECK_OK(store_view_open(s, str_of(tenant), &v, &e), &e);
	if (name)
		CHECK_OK(store_label_values(v, q, str_of(name), &f.arena, &texts, &n, &e), &e);
	else
		CHECK_OK(store_label_names(v, q, &f.arena, &texts, &n, &e), &e);
	join(texts, n, got);
	CHECK_STR(str_of(got), want);
	store_view_close(v);
	fx_query_end(&f);
}

static void check_types(struct store *s, const char *tenant, int64_t from, size_t want)
{
	struct store_view *v;
	struct samples_type *types;
	struct arena a;
	size_t n;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	CHECK_OK(store_view_open(s, str_of(tenant), &v, &e), &e);
	CHECK_OK(store_types(v, from, INT64_MAX, &a, &types, &n, &e), &e);
	CHECK(n == want);
	if (n == 3) {
		CHECK_STR(types[0].name, "cpu");
		CHECK(types[0].delta);
		CHECK_STR(types[1].name, "inuse");
		CHECK(!types[1].delta);
		CHECK(types[0].first_ns >= T0 && types[0].last_ns < T0 + 100 * SEC);
		CHECK(types[0].first_ns <= types[0].last_ns);
	}
	store_view_close(v);
	arena_deinit(&a);
}

static void check(struct store *s)
{
	check_types(s, "", 0, 3);
	check_types(s, "", T0 + 1000 * SEC, 0);
	check_types(s, "other", 0, 1);
	check_types(s, "nobody", 0, 0);
	check_texts(s, "{}", NULL, "", INT64_MAX, "comm cpu node pid thread_name");
	check_texts(s, "{}", NULL, "other", INT64_MAX, "comm pid");
	check_texts(s, "{}", NULL, "", T0 - SEC, "");
	check_texts(s, "{}", "comm", "", INT64_MAX, "c1 c2 c3");
	check_texts(s, "{comm=~\"c[12]\"}", "comm", "", INT64_MAX, "c1 c2");
	check_texts(s, "cpu:samples:count:cpu:nanoseconds:delta{comm=\"nope\"}", "comm", "",
		INT64_MAX, "");
	check_texts(s, "{}", "thread_name", "", INT64_MAX, "t1 t2 t3");
	check_texts(s, "{}", "pid", "", INT64_MAX, "1 2");
	check_texts(s, "{}", "pid", "other", INT64_MAX, "4711"); /* nobody else's values */
	check_texts(s, "{pid=\"2\"}", "pid", "", INT64_MAX, "2");
	check_texts(s, "{}", "absent", "", INT64_MAX, "");
}

static void append_other(struct store *s)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "secret", true, 1);
	const char *const labels[] = { "comm", "hidden", "pid", "4711", NULL };
	fx_sample(&p, T0, 1, head, 0, fx_labels(&p, labels), 0);
	CHECK_OK(store_append(s, STR("other"), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void index_answers(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 3 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 200, T0, 30 * SEC);
	append_other(s);
	check(s);
	CHECK_OK(store_flush(s, &e), &e);
	check(s);
	model_append(&m, s, 200, T0, 30 * SEC);
	append_other(s);
	check(s);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check(s);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(index_answers))
