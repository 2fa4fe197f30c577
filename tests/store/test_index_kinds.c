/* SPDX-License-Identifier: Apache-2.0 */
/* What parts' lists of labels answer is what a look at every series answers. */
#include "store/read/index_kinds.h"

#include "tests/store/model.h"

#define CPU "cpu:samples:count:cpu:nanoseconds:delta"
/* Every series passes, but not without being looked at. */
#define EACH "{comm=~\".*\"}"

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sums of sorted lists, against one that is sorted as a whole. */
static void texts_are_put_in(void **state)
{
	(void)state;
	enum { TEXTS = 400, ROUNDS = 60 };
	char texts[TEXTS][8];
	struct budget b = { .limit = 1 << 20 };
	struct kinds_texts t = { 0 };
	struct err e = { 0 };
	uint64_t random = 9;
	bool have[TEXTS] = { false };
	for (int i = 0; i < TEXTS; i++)
		snprintf(texts[i], sizeof(texts[i]), "%d", i);
	for (int round = 0; round < ROUNDS; round++) {
		struct str some[TEXTS];
		size_t n = 0, want = 0;
		uint64_t one_in = 1 + rnd_below(&random, 50);
		for (int i = 0; i < TEXTS; i++)
			if (rnd_below(&random, one_in) == 0 && rnd_below(&random, 9)) {
				some[n++] = str_of(texts[i]);
				have[i] = true;
			}
		qsort(some, n, sizeof(some[0]), by_text);
		CHECK_OK(kinds_texts_add(&t, some, n, &b, &e), &e);
		for (int i = 0; i < TEXTS; i++)
			want += have[i];
		CHECK(t.len == want);
		for (size_t i = 1; i < t.len; i++)
			CHECK(str_cmp(t.v[i - 1], t.v[i]) < 0);
	}
	kinds_texts_deinit(&t, &b);
	CHECK(b.used == 0);
}

static size_t ask(struct store *s, const char *selector, const char *name, const char *tenant,
	int64_t from, int64_t to, char out[1024])
{
	struct fx_query f;
	struct store_view *v;
	struct str *texts;
	size_t n, at = 0;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, selector, from, to);
	CHECK_OK(store_view_open(s, str_of(tenant), &v, &e), &e);
	if (name)
		CHECK_OK(store_label_values(v, q, str_of(name), &f.arena, &texts, &n, &e), &e);
	else
		CHECK_OK(store_label_names(v, q, &f.arena, &texts, &n, &e), &e);
	out[0] = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, 1024 - at, "%.*s ", STR_ARG(texts[i]));
	store_view_close(v);
	fx_query_end(&f);
	return n;
}

static void compare(struct store *s, int64_t from, int64_t to, size_t *answers)
{
	static const char *const names[] = { "comm", "node", "pid", "extra", "absent", NULL };
	static const char *const types[] = { "", CPU, "wall:samples:count:cpu:nanoseconds:delta" };
	static const char *const tenants[] = { "", "other" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		for (size_t k = 0; k < ARRAY_COUNT(types) * ARRAY_COUNT(tenants); k++) {
			const char *tenant = tenants[k / ARRAY_COUNT(types)];
			char all[64], each[80], got[1024], want[1024];
			snprintf(all, sizeof(all), "%s{}", types[k % ARRAY_COUNT(types)]);
			snprintf(each, sizeof(each), "%s" EACH, types[k % ARRAY_COUNT(types)]);
			*answers += ask(s, all, names[i], tenant, from, to, got);
			(void)ask(s, each, names[i], tenant, from, to, want);
			CHECK_STR(str_of(got), want);
		}
}

static void append_more(struct store *s, const char *tenant, int i)
{
	char value[16];
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 52631578);
	snprintf(value, sizeof(value), "x%d", i);
	const char *const labels[] = { "comm", value, "extra", "", tenant[0] ? "node" : "extra2",
		value, NULL };
	fx_sample(&p, T0 + i * 100 * SEC, 1, head, 0, fx_labels(&p, labels), 0);
	CHECK_OK(store_append(s, str_of(tenant), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void has_lists(struct store *s)
{
	CHECK(s->parts.len > 0);
	for (size_t i = 0; i < s->parts.len; i++) {
		struct tabs t;
		struct err e = { 0 };
		unsigned groups = PART_LOAD_TEXTS | PART_LOAD_KINDS;
		CHECK_OK(part_pin(s->parts.v[i], groups, UINT64_MAX, &t, &e), &e);
		CHECK(t.kinds && t.kind_count > 0);
		part_unpin(s->parts.v[i], groups);
	}
}

static void same_as_series(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 31 };
	struct store *s;
	struct err e = { 0 };
	size_t answers = 0;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < 6; i++) {
		model_append(&m, s, 60, T0 + i * 100 * SEC, 90 * SEC);
		append_more(s, i % 2 ? "other" : "", i);
		if (i < 5)
			CHECK_OK(store_flush(s, &e), &e);
	}
	for (int round = 0; round < 2; round++) {
		lock_take(&s->merge_lock); /* two questions, of the same parts */
		has_lists(s);
		compare(s, INT64_MIN, INT64_MAX, &answers);
		compare(s, T0, T0 + 700 * SEC, &answers);
		compare(s, T0 + 150 * SEC, T0 + 420 * SEC, &answers);
		compare(s, T0 + 100 * SEC, T0 + 101 * SEC, &answers);
		compare(s, 0, T0, &answers);
		lock_release(&s->merge_lock);
		store_close(s); /* what is in memory is written; and nothing is loaded */
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	}
	CHECK(answers > 100);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(texts_are_put_in), cmocka_unit_test(same_as_series))
