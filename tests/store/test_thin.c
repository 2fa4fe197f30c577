/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinned samples have the model's sums by series and stack, coarser times, and fewer labels.
 */
#define FIXTURE_FORKS
#include "tests/store/countdown.h"
#include "tests/store/forker.h"
#include "tests/store/model_check.h"
#include "tests/store/sweep.h"

#include <sys/wait.h>

#define DAY (24 * 3600 * SEC)

static struct store_thin_rule rules[2];

static struct store *open_thin(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_thin_parse(STR("1d=5m/thread_name+cpu"), &rules[0], &e), &e);
	CHECK_OK(store_thin_parse(STR("10d=1h/*"), &rules[1], &e), &e);
	c.thin = rules;
	c.thin_count = 2;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

/* A multiple of an hour, so that nothing crosses the bounds that are asked for; of today, so that
 * the store's own thread, which goes by the real clock, thins nothing yet. */
static int64_t begin(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
	return t.tv_sec / 3600 * 3600 * SEC - DAY / 4;
}

static int thin_all(struct store *s, int64_t now)
{
	struct err e = { 0 };
	bool more = true;
	int n = 0;
	while (more) {
		CHECK_OK(store_thin_step(s, now, &more, &e), &e);
		n += more;
	}
	return n;
}

/* The model's samples lose what was dropped, too. */
static void model_thin(struct model *m, bool all)
{
	for (size_t i = 0; i < m->samples.len; i++) {
		m->samples.v[i].thread = m->samples.v[i].cpu = 0;
		if (all)
			m->samples.v[i].pid = 0;
	}
}

static bool has_name(struct store *s, const char *name)
{
	bool has = false;
	lock_take(&s->merge_lock);
	for (size_t i = 0; i < s->parts.len; i++) {
		struct tabs t;
		struct err e = { 0 };
		CHECK_OK(part_pin(s->parts.v[i], PART_LOAD_LABELS, UINT64_MAX, &t, &e), &e);
		for (uint32_t k = 0; k < t.name_count; k++)
			has |= str_eq(t.names[k], str_of(name));
		part_unpin(s->parts.v[i], PART_LOAD_LABELS);
	}
	lock_release(&s->merge_lock);
	return has;
}

/* Times of delta types are multiples; returns the rows. */
static uint64_t check_times(struct store *s, int64_t unit)
{
	uint64_t rows = 0;
	lock_take(&s->merge_lock); /* the merging thread waits */
	for (size_t i = 0; i < s->parts.len; i++) {
		struct tabs t;
		struct part_rows r;
		struct err e = { 0 };
		size_t n;
		part_rows_init(&r);
		CHECK_OK(part_pin(s->parts.v[i], PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
		const struct part_block *b = part_blocks(s->parts.v[i], &n);
		for (size_t k = 0; k < n; k++) {
			CHECK_OK(part_read_block(s->parts.v[i], &t, &b[k], ~0u, &r, &e), &e);
			for (size_t j = 0; j < r.count; j++)
				CHECK(!t.series[r.series[j]].delta || r.time_ns[j] % unit == 0);
			rows += r.count;
		}
		CHECK(part_meta(s->parts.v[i])->resolution_ns == unit);
		CHECK_OK(part_verify(s->parts.v[i], &e), &e);
		part_unpin(s->parts.v[i], PART_LOAD_ALL);
		part_rows_deinit(&r);
	}
	lock_release(&s->merge_lock);
	return rows;
}

static void sums_stay(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		char dir[64];
		struct model m = { .random = seed };
		struct err e = { 0 };
		int64_t t0 = begin(), hour = 3600 * SEC;
		fixture_dir(dir);
		struct store *s = open_thin(dir);
		lock_take(&s->merge_lock); /* the merging thread waits */
		for (int i = 0; i < 4; i++) {
			model_append(&m, s, 150, t0 + i * hour, 2 * hour);
			CHECK_OK(store_flush(s, &e), &e);
		}
		lock_release(&s->merge_lock);
		if (seed % 2) {
			bool merged = true;
			while (merged)
				CHECK_OK(store_merge_step(s, t0 + DAY, &merged, &e), &e);
		}
		CHECK(thin_all(s, t0 + DAY / 2) == 0); /* too young */
		CHECK(thin_all(s, AGE_UNKNOWN) == 0);
		CHECK(has_name(s, "cpu"));
		CHECK(thin_all(s, t0 + 2 * DAY) > 0);
		CHECK(thin_all(s, t0 + 2 * DAY) == 0); /* once */
		model_thin(&m, false);
		uint64_t fine = check_times(s, 300 * SEC);
		CHECK(!has_name(s, "cpu") && !has_name(s, "thread_name") && has_name(s, "pid"));
		model_check(s, &m, INT64_MIN, INT64_MAX);
		model_check(s, &m, t0 + hour, t0 + 2 * hour);
		CHECK(thin_all(s, t0 + 12 * DAY) > 0);
		model_thin(&m, true);
		CHECK(check_times(s, hour) < fine);
		CHECK(!has_name(s, "pid"));
		model_check(s, &m, t0 + hour, t0 + 2 * hour);
		store_close(s);
		s = open_thin(dir);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
	}
}

/* A part that takes more memory than there is stays as it is, is said to, and is not in the way of
 * anything else; it is not tried again until the next start. */
static void what_does_not_fit_is_left(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 3 };
	struct err e = { 0 };
	int64_t t0 = begin();
	fixture_dir(dir);
	struct store *s = open_thin(dir);
	lock_take(&s->merge_lock); /* the merging thread waits */
	for (int i = 0; i < 2; i++) {
		model_append(&m, s, 150, t0, 3600 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
	}
	s->merge_retry_ns = INT64_MAX; /* they stay two */
	uint64_t memory = s->config.memory_bytes;
	lock_take(&s->lock);
	s->config.memory_bytes = 4096;
	lock_release(&s->lock);
	lock_release(&s->merge_lock);
	for (int i = 0; i < 2; i++) {
		CHECK(thin_all(s, t0 + 2 * DAY) == 0);
		CHECK(metric_get(&s->metrics.unthinned) == 2);
		CHECK(s->rewrite_retry_ns == 0);
	}
	CHECK(has_name(s, "cpu"));
	lock_take(&s->merge_lock);
	lock_take(&s->lock);
	s->config.memory_bytes = memory;
	lock_release(&s->lock);
	lock_release(&s->merge_lock);
	CHECK(thin_all(s, t0 + 2 * DAY) == 0);
	store_close(s);
	s = open_thin(dir);
	CHECK(thin_all(s, t0 + 2 * DAY) > 0);
	CHECK(!has_name(s, "cpu"));
	model_thin(&m, false);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* ---- traces ---- */

static void append_traced(struct store *s, int64_t at)
{
	static const char *const threads[] = { "c", "b", "a" };
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		const char *const own[] = { "thread_id", threads[i], "trace_id", "0102", NULL };
		fx_sample(&p, at + (int64_t)(i + 1) * SEC, 1, head, 0, 0, fx_labels(&p, own));
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_flush(s, &e), &e);
}

static void merge_all(struct store *s, int64_t now)
{
	struct err e = { 0 };
	bool merged = true;
	while (merged)
		CHECK_OK(store_merge_step(s, now, &merged, &e), &e);
}

/* A sample with a trace keeps its time through merging. Once the trace is dropped, it has the time
 * of the others: rows lie in the order of META, through later merges and deletions too. */
static void without_traces_times_are_rounded(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	struct store_deleted gone;
	struct fx_query f;
	struct store *s;
	int64_t t0 = begin();
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_thin_parse(STR("1d=0s/trace_id"), &rules[0], &e), &e);
	c.thin = rules;
	c.thin_count = 1;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < 3; i++) {
		append_traced(s, t0 + i * 3600 * SEC);
		merge_all(s, t0 + (i + 1) * 3600 * SEC + 600 * SEC);
		CHECK(thin_all(s, t0 + 2 * DAY) > 0);
		CHECK(!has_name(s, "trace_id"));
	}
	CHECK(check_times(s, c.resolution_ns) == 9);
	merge_all(s, t0 + 3 * DAY);
	CHECK(check_times(s, c.resolution_ns) == 9);
	struct samples_query *q = fx_query(&f, "{thread_id=\"b\"}", 0, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK(gone.samples == 3);
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

/* ---- an exit at each operation ---- */

static void thin_and_exit(struct forked *child)
{
	store_io_hook = (struct store_io_hook){ countdown_exit, NULL };
	struct store *s = open_thin(child->dir);
	atomic_store(&countdown, child->at);
	thin_all(s, child->now_ns);
	countdown_survive();
	_exit(0);
}

static void exit_at_each_operation(void **state)
{
	(void)state;
	struct err e = { 0 };
	int rc = 9, at;
	struct forker f;
	forker_start(&f, thin_and_exit);
	char *dir = f.child->dir;
	for (at = 1; rc == 9; at += sweep_each()) {
		struct model m = { .random = 8 };
		int64_t t0 = begin();
		fixture_dir(dir);
		struct store *s = open_thin(dir);
		for (int i = 0; i < 2; i++) {
			model_append(&m, s, 60, t0, 3600 * SEC);
			CHECK_OK(store_flush(s, &e), &e);
		}
		store_close(s);
		f.child->now_ns = t0 + 2 * DAY;
		rc = forker_run(&f, at);
		CHECK(rc == 0 || rc == 9);
		s = open_thin(dir);
		thin_all(s, t0 + 2 * DAY);
		model_thin(&m, false);
		check_times(s, 300 * SEC);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
	}
	print_message("%d operations\n", at - 1);
	CHECK(at > 10);
	forker_stop(&f);
}

/* The process is small as long as it starts a forker. */
TEST_MAIN(cmocka_unit_test(exit_at_each_operation), cmocka_unit_test(sums_stay),
	cmocka_unit_test(what_does_not_fit_is_left),
	cmocka_unit_test(without_traces_times_are_rounded))
