/* SPDX-License-Identifier: Apache-2.0 */
/* Each item is done once, by at most as many threads as there are, whoever else asks. */
#include "os/os.h"

#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

enum { ITEMS = 500 };

struct work {
	atomic_int next;
	atomic_int done[ITEMS];
	atomic_int workers[OS_POOL_THREADS_MAX + 1];
	unsigned width;
};

static void work(void *ctx, unsigned worker)
{
	struct work *w = ctx;
	CHECK(worker < w->width);
	CHECK(atomic_fetch_add(&w->workers[worker], 1) == 0); /* each number once */
	for (int i; (i = atomic_fetch_add(&w->next, 1)) < ITEMS;) {
		if (i % 100 == 0)
			usleep(100);
		atomic_fetch_add(&w->done[i], 1);
	}
}

static void run(struct os_pool *p, unsigned n)
{
	struct work w = { .width = MIN(n, os_pool_width(p)) };
	os_pool_run(p, n, work, &w);
	for (int i = 0; i < ITEMS; i++)
		CHECK(atomic_load(&w.done[i]) == 1);
	CHECK(atomic_load(&w.workers[0]) == 1);
}

static void *run_often(void *ctx)
{
	for (int i = 0; i < 50; i++)
		run(ctx, 1 + (unsigned)i % 5);
	return NULL;
}

static void each_item_once(void **state)
{
	(void)state;
	static const unsigned sizes[] = { 0, 1, 3, OS_POOL_THREADS_MAX + 5 };
	for (size_t k = 0; k < ARRAY_COUNT(sizes); k++) {
		struct os_pool *p;
		struct err e = { 0 };
		pthread_t threads[3];
		CHECK_OK(os_pool_new(sizes[k], "pool", &p, &e), &e);
		CHECK(os_pool_width(p) == MIN(sizes[k], (unsigned)OS_POOL_THREADS_MAX) + 1);
		for (int i = 0; i < 3; i++)
			CHECK_OK(os_thread_start(&threads[i], "runs", run_often, p, &e), &e);
		run_often(p);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		os_pool_free(p);
	}
	os_pool_free(NULL);
}

static void without_a_pool(void **state)
{
	(void)state;
	CHECK(os_pool_width(NULL) == 1);
	run(NULL, 7);
}

TEST_MAIN(cmocka_unit_test(each_item_once), cmocka_unit_test(without_a_pool))
