/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory.h"

#include "tests/test.h"

#include <pthread.h>

enum { BUDGET = 16 << 20, THREADS = 4, ROUNDS = 20000, PIECE = 300 << 10 };

static void shares_have_limits(void **state)
{
	(void)state;
	struct memory_shares m;
	struct err e = { 0 };
	memory_init(&m, BUDGET);
	CHECK_OK(memory_take(&m, MEMORY_INGEST, 600 << 10, &e), &e);
	CHECK(memory_take(&m, MEMORY_INGEST, 600 << 10, &e) == E_UNAVAILABLE);
	CHECK(strstr(e.text, "batches on their way in") != NULL);
	CHECK_OK(memory_take(&m, MEMORY_INGEST, 400 << 10, &e), &e);
	CHECK_OK(memory_take(&m, MEMORY_QUERIES, 4 << 20, &e), &e); /* a share of its own */
	CHECK(memory_take(&m, MEMORY_QUERIES, 1, &e) == E_UNAVAILABLE);
	CHECK(atomic_load(&m.refused[MEMORY_QUERIES]) == 1);
	memory_give(&m, MEMORY_QUERIES, 4 << 20);
	CHECK(memory_used(&m, MEMORY_QUERIES) == 0);
	CHECK(memory_take(&m, MEMORY_INGEST, UINT64_MAX, &e) == E_UNAVAILABLE);
}

static void alone_is_served(void **state)
{
	(void)state;
	struct memory_shares m;
	struct err e = { 0 };
	memory_init(&m, BUDGET);
	CHECK_OK(memory_take(&m, MEMORY_QUERIES, 5 << 20, &e), &e);
	CHECK_OK(memory_take_more(&m, MEMORY_QUERIES, 5 << 20, 5 << 20, &e), &e);
	CHECK(memory_take(&m, MEMORY_QUERIES, 1, &e) == E_UNAVAILABLE);
	memory_give(&m, MEMORY_QUERIES, 10 << 20);
	CHECK_OK(memory_take(&m, MEMORY_QUERIES, 1, &e), &e);
	CHECK(memory_take_more(&m, MEMORY_QUERIES, 0, 5 << 20, &e) == E_UNAVAILABLE);
}

static void *take_and_give(void *ctx)
{
	struct memory_shares *m = ctx;
	for (int i = 0; i < ROUNDS; i++) {
		if (memory_take(m, MEMORY_INGEST, PIECE, NULL) != OK)
			continue;
		uint64_t used = memory_used(m, MEMORY_INGEST);
		if (used > m->limit[MEMORY_INGEST])
			return m;
		memory_give(m, MEMORY_INGEST, PIECE);
	}
	return NULL;
}

static void many_stay_within(void **state)
{
	(void)state;
	struct memory_shares m;
	pthread_t threads[THREADS];
	memory_init(&m, BUDGET);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, take_and_give, &m) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;
		CHECK(pthread_join(threads[i], &wrong) == 0);
		CHECK(wrong == NULL);
	}
	CHECK(memory_used(&m, MEMORY_INGEST) == 0);
}

TEST_MAIN(cmocka_unit_test(shares_have_limits), cmocka_unit_test(alone_is_served),
	cmocka_unit_test(many_stay_within))
