/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view is one instant: whatever is appended, flushed and merged at the same time, it counts each
 * sample once. Built with -fsanitize=thread, this is the test of the locks.
 */
#include "store/merge.h"
#include "store/part_table.h"
#include "tests/store/counted.h"

enum { WRITERS = 2, BATCHES = 150 };

struct shared {
	struct store *s;
	atomic_int done;
	atomic_int written;
	atomic_int first;
};

static void *write_batches(void *ctx)
{
	struct shared *w = ctx;
	uint32_t first = (uint32_t)atomic_fetch_add(&w->first, 1) * BATCHES;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct err e = { 0 };
		CHECK_OK(counted_append(w->s, first + i, &e), &e);
		atomic_fetch_add(&w->written, 1);
	}
	atomic_fetch_add(&w->done, 1);
	return NULL;
}

static void *flush_often(void *ctx)
{
	struct shared *w = ctx;
	struct err e = { 0 };
	while (atomic_load(&w->done) < WRITERS) {
		CHECK_OK(store_flush(w->s, &e), &e);
		usleep(3000);
	}
	return NULL;
}

static void *merge_often(void *ctx)
{
	struct shared *w = ctx;
	struct err e = { 0 };
	bool merged;
	while (atomic_load(&w->done) < WRITERS) {
		CHECK_OK(store_merge_step(w->s, T0 + 90000 * SEC, &merged, &e), &e);
		usleep(1000);
	}
	return NULL;
}

static int64_t view_total(struct store_view *v)
{
	struct fx_query f;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, COUNTED_TYPE, 0, INT64_MAX);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	int64_t sum = t.total;
	CHECK((uint64_t)sum == t.sample_count);
	samples_tree_deinit(&t);
	fx_query_end(&f);
	return sum;
}

static void each_sample_once(void **state)
{
	(void)state;
	char dir[64];
	struct shared w = { 0 };
	struct err e = { 0 };
	pthread_t threads[WRITERS + 2];
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &w.s, &e), &e);
	for (int i = 0; i < WRITERS; i++)
		CHECK_OK(os_thread_start(&threads[i], "write", write_batches, &w, &e), &e);
	CHECK_OK(os_thread_start(&threads[WRITERS], "flush", flush_often, &w, &e), &e);
	CHECK_OK(os_thread_start(&threads[WRITERS + 1], "merge", merge_often, &w, &e), &e);
	int64_t last = 0;
	while (atomic_load(&w.done) < WRITERS) {
		struct store_view *v;
		int64_t before = (int64_t)atomic_load(&w.written) * COUNTED_SAMPLES;
		CHECK_OK(store_view_open(w.s, STR(""), &v, &e), &e);
		int64_t sum = view_total(v);
		CHECK(sum % COUNTED_SAMPLES == 0); /* batches are whole */
		CHECK(sum >= before && sum >= last);
		CHECK(sum <= WRITERS * BATCHES * COUNTED_SAMPLES);
		CHECK(view_total(v) == sum); /* and it stays so */
		last = sum;
		store_view_close(v);
	}
	for (int i = 0; i < WRITERS + 2; i++)
		pthread_join(threads[i], NULL);
	struct store_view *v;
	CHECK_OK(store_view_open(w.s, STR(""), &v, &e), &e);
	CHECK(view_total(v) == WRITERS * BATCHES * COUNTED_SAMPLES);
	store_view_close(v);
	store_close(w.s);
	fixture_clean(dir);
}

static void *trim(void *ctx)
{
	struct shared *w = ctx;
	store_trim_caches(w->s);
	atomic_store(&w->done, 1);
	return NULL;
}

/* A query that reads the tables of a part from a slow disk holds up no batch. */
static void loading_a_part_stops_nobody(void **state)
{
	(void)state;
	char dir[64];
	pthread_t thread;
	struct shared w = { 0 };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &w.s, &e), &e);
	CHECK_OK(counted_append(w.s, 1, &e), &e);
	CHECK_OK(store_flush(w.s, &e), &e);
	pthread_mutex_lock(&w.s->merge_lock); /* the part stays */
	struct part *p = w.s->parts.v[0];
	pthread_mutex_lock(&p->lock); /* as if it were being read */
	CHECK(pthread_create(&thread, NULL, trim, &w) == 0);
	for (int i = 0; i < 5000 && !atomic_load(&w.done); i++)
		usleep(1000);
	bool done = atomic_load(&w.done);
	pthread_mutex_unlock(&p->lock);
	CHECK(pthread_join(thread, NULL) == 0);
	pthread_mutex_unlock(&w.s->merge_lock);
	CHECK(done);
	store_close(w.s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(each_sample_once), cmocka_unit_test(loading_a_part_stops_nobody))
