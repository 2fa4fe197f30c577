/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "os/os.h"

#include "test.h"

#include <sched.h>
#include <signal.h>

#define ITEMS 20000

static void *push_all(void *ctx)
{
	struct os_queue *q = ctx;
	for (uintptr_t i = 1; i <= ITEMS; i++)
		while (!os_queue_try_push(q, (void *)i))
			sched_yield();
	return q;
}

static void passes_everything_once(void **state)
{
	(void)state;
	struct os_queue *q;
	struct err e;
	CHECK(os_queue_new(7, &q) == OK);
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		CHECK_OK(os_thread_start(&threads[i], "a long thread name", push_all, q, &e), &e);
	uint64_t sum = 0;
	for (int i = 0; i < 3 * ITEMS; i++)
		sum += (uintptr_t)os_queue_pop(q, INT64_MAX);
	CHECK(sum == 3ull * ITEMS * (ITEMS + 1) / 2);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(!os_queue_pop(q, 0));
	os_queue_free(q);
}

static void has_bounds_and_deadlines(void **state)
{
	(void)state;
	struct os_queue *q;
	CHECK(os_queue_new(2, &q) == OK);
	int item;
	CHECK(os_queue_try_push(q, &item) && os_queue_try_push(q, &item));
	CHECK(!os_queue_try_push(q, &item));
	CHECK(os_queue_pop(q, 0) && os_queue_pop(q, 0));
	int64_t before = clock_monotonic_ns();
	CHECK(!os_queue_pop(q, before + 5 * NS_PER_MS));
	CHECK(clock_monotonic_ns() - before >= 5 * NS_PER_MS);
	CHECK(os_queue_try_push(q, &item));
	os_queue_close(q);
	CHECK(!os_queue_try_push(q, &item));
	CHECK(os_queue_pop(q, INT64_MAX) == &item && !os_queue_pop(q, INT64_MAX));
	os_queue_free(q);
	CHECK(os_queue_new(SIZE_MAX / 4, &q) == E_LIMIT);
}

#define CONSUMERS 4
#define ROUNDS 300

struct meeting {
	struct os_queue *q;
	pthread_barrier_t all; /* of the consumers, and the producer */
};

/* Holds its item until everybody has one. */
static void *meet(void *ctx)
{
	struct meeting *m = ctx;
	while (os_queue_pop(m->q, INT64_MAX))
		pthread_barrier_wait(&m->all);
	return NULL;
}

static void wakes_as_many_as_there_are_items(void **state)
{
	(void)state;
	struct meeting m;
	struct err e;
	pthread_t threads[CONSUMERS];
	int item;
	CHECK(os_queue_new(CONSUMERS, &m.q) == OK);
	CHECK(pthread_barrier_init(&m.all, NULL, CONSUMERS + 1) == 0);
	for (int i = 0; i < CONSUMERS; i++)
		CHECK_OK(os_thread_start(&threads[i], "meets", meet, &m, &e), &e);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CONSUMERS; i++)
			CHECK(os_queue_try_push(m.q, &item));
		pthread_barrier_wait(&m.all);
	}
	os_queue_close(m.q);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&m.all);
	os_queue_free(m.q);
}

static void *blocked_signals(void *ctx)
{
	sigset_t *mask = ctx;
	pthread_sigmask(SIG_BLOCK, NULL, mask);
	return NULL;
}

static void threads_take_no_signals(void **state)
{
	(void)state;
	sigset_t mask;
	pthread_t t;
	struct err e;
	CHECK_OK(os_thread_start(&t, "t", blocked_signals, &mask, &e), &e);
	pthread_join(t, NULL);
	CHECK(sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM));
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	CHECK(!sigismember(&mask, SIGINT));
}

TEST_MAIN(cmocka_unit_test(passes_everything_once), cmocka_unit_test(has_bounds_and_deadlines),
	cmocka_unit_test(wakes_as_many_as_there_are_items),
	cmocka_unit_test(threads_take_no_signals))
