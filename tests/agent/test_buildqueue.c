/* SPDX-License-Identifier: Apache-2.0 */
/* Turns and debts at made-up times; and that waiting ends. */
#include "test.h"

#include "agent/files/buildqueue.h"

#include <pthread.h>

#define PERCENT 5
#define MS NS_PER_MS

static struct buildqueue *make(uint32_t percent)
{
	struct buildqueue *q = NULL;
	CHECK(buildqueue_new(percent, &q) == OK);
	return q;
}

static bool push(struct buildqueue *q, const char *item, uint64_t owner, uint64_t bytes)
{
	const struct build_ticket t = { owner, bytes, (uint32_t)item[0], 0 };
	return buildqueue_push(q, (char *)(uintptr_t)item, &t, 0);
}

static const char *take(struct buildqueue *q, int64_t now, int64_t *out_wait)
{
	struct build_ticket t;
	const char *item = buildqueue_take_at(q, now, &t, out_wait);
	return item ? item : "";
}

static void in_order_of_arrival(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	int64_t wait, now = clock_monotonic_ns();
	CHECK_STR(str_of(take(q, now, &wait)), "");
	CHECK(wait == INT64_MAX);
	CHECK(push(q, "a", 1, 1) && push(q, "b", 2, 1) && push(q, "c", 1, 1));
	CHECK(buildqueue_len(q) == 3);
	CHECK_STR(str_of(take(q, now, &wait)), "a");
	CHECK_STR(str_of(take(q, now, &wait)), "b");
	CHECK_STR(str_of(take(q, now, &wait)), "c");
	buildqueue_free(q);
	buildqueue_free(NULL);
}

static void the_most_wanted_of_an_owner_first(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	int64_t wait, now = clock_monotonic_ns();
	CHECK(push(q, "a", 1, 1) && push(q, "b", 2, 1) && push(q, "c", 1, 1) && push(q, "d", 1, 1));
	for (int i = 0; i < 9; i++)
		buildqueue_want(q, 'b'); /* another's turn is not taken */
	buildqueue_want(q, 'd');
	buildqueue_want(q, 'd');
	buildqueue_want(q, 'c');
	buildqueue_want(q, 'x'); /* does not wait here */
	CHECK_STR(str_of(take(q, now, &wait)), "d");
	CHECK_STR(str_of(take(q, now, &wait)), "c");
	const struct build_ticket t = { 1, 1, 'e', 5 }; /* wanted before it came */
	CHECK(buildqueue_push(q, (char *)(uintptr_t) "e", &t, 0));
	CHECK_STR(str_of(take(q, now, &wait)), "e");
	CHECK_STR(str_of(take(q, now, &wait)), "a");
	CHECK_STR(str_of(take(q, now, &wait)), "b");
	/* An owner in debt does not come first by being wanted. */
	buildqueue_charge_at(q, 1, BUILDQUEUE_BURST_NS + NS_PER_SEC, now);
	CHECK(push(q, "a", 1, 1) && push(q, "b", 2, 1) && push(q, "c", 2, 1));
	buildqueue_want(q, 'a');
	buildqueue_want(q, 'c');
	now += BUILDQUEUE_REST_MAX_NS;
	CHECK_STR(str_of(take(q, now, &wait)), "c");
	CHECK_STR(str_of(take(q, now, &wait)), "b");
	CHECK_STR(str_of(take(q, now, &wait)), "");
	buildqueue_free(q);
}

/* Hundreds of programs that are started at once: each table is made as it comes. */
static void a_burst_does_not_wait(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	int64_t wait, now = clock_monotonic_ns();
	int64_t each = BUILDQUEUE_BURST_NS / BUILDQUEUE_OWNER_MAX;
	for (int i = 0; i < BUILDQUEUE_OWNER_MAX; i++)
		CHECK(push(q, "a", 1, 1));
	for (int i = 0; i < BUILDQUEUE_OWNER_MAX; i++) {
		CHECK_STR(str_of(take(q, now, &wait)), "a");
		now += each;
		buildqueue_charge_at(q, 1, each, now);
	}
	/* Then only what the share earns. */
	int64_t hour = 3600 * NS_PER_SEC;
	buildqueue_charge_at(q, 1, BUILDQUEUE_BURST_NS, now);
	CHECK(push(q, "b", 1, 1));
	CHECK_STR(str_of(take(q, now, &wait)), "");
	CHECK_STR(str_of(take(q, now + hour, &wait)), "b");
	buildqueue_free(q);
}

/* One whose file costs ten seconds beyond its burst waits for minutes, others for a second. */
static void who_has_a_debt_waits_alone(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	int64_t wait, now = clock_monotonic_ns();
	buildqueue_charge_at(q, 1, BUILDQUEUE_BURST_NS + 9 * NS_PER_SEC, now);
	CHECK(push(q, "hog", 1, 1) && push(q, "other", 2, 1));
	CHECK_STR(str_of(take(q, now, &wait)), "");
	CHECK(wait > now && wait <= now + BUILDQUEUE_REST_MAX_NS);
	now = wait;
	CHECK_STR(str_of(take(q, now, &wait)), "other");
	/* What it has cost, and no more, is waited for: 20 times 5 ms. */
	buildqueue_charge_at(q, 2, 5 * MS, now);
	CHECK(push(q, "another", 3, 1));
	CHECK_STR(str_of(take(q, now, &wait)), "");
	CHECK(wait > now + 99 * MS && wait < now + 101 * MS);
	now = wait;
	CHECK_STR(str_of(take(q, now, &wait)), "another");
	CHECK_STR(str_of(take(q, now, &wait)), "");
	CHECK(wait > now + 170 * NS_PER_SEC && wait < now + 180 * NS_PER_SEC);
	CHECK_STR(str_of(take(q, wait, &wait)), "hog");
	buildqueue_free(q);
}

static void small_ones_go_between(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	struct build_ticket t;
	int64_t now = clock_monotonic_ns();
	buildqueue_charge_at(q, 1, BUILDQUEUE_BURST_NS + NS_PER_SEC, now);
	CHECK(push(q, "hog", 1, 1) && push(q, "large", 2, 1000) && push(q, "small", 2, 10));
	const char *item = buildqueue_try_pop_small(q, 10, &t);
	CHECK(item && item[0] == 's' && t.owner == 2 && t.bytes == 10);
	CHECK(!buildqueue_try_pop_small(q, 10, &t) && buildqueue_len(q) == 2);
	buildqueue_free(q);
}

static void one_owner_cannot_fill_it(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	for (uint32_t i = 0; i < BUILDQUEUE_OWNER_MAX; i++)
		CHECK(push(q, "hog", 1, 1));
	CHECK(!push(q, "hog", 1, 1));
	for (uint32_t i = BUILDQUEUE_OWNER_MAX; i < BUILDQUEUE_MAX; i++)
		CHECK(push(q, "other", 100 + i, 1));
	CHECK(!push(q, "other", 2, 1)); /* full, and the deadline has passed */
	CHECK(buildqueue_len(q) == BUILDQUEUE_MAX);
	buildqueue_free(q);
}

static void without_shares_nobody_waits(void **state)
{
	(void)state;
	int64_t wait, now = clock_monotonic_ns();
	struct buildqueue *q[] = { make(0), make(PERCENT) };
	buildqueue_keep_shares(q[1], false);
	for (size_t i = 0; i < ARRAY_COUNT(q); i++) {
		buildqueue_charge_at(q[i], 1, BUILDQUEUE_BURST_NS + NS_PER_SEC, now);
		CHECK(push(q[i], "a", 1, 1));
		CHECK_STR(str_of(take(q[i], now, &wait)), "a");
		buildqueue_free(q[i]);
	}
}

/* More debtors than are known: the smallest debt is forgotten, not the largest. */
static void large_debts_are_kept(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	int64_t wait, now = clock_monotonic_ns();
	buildqueue_charge_at(q, 1, 1000 * NS_PER_SEC, now);
	for (uint64_t i = 0; i < 2 * BUILDQUEUE_OWNERS_MAX; i++)
		buildqueue_charge_at(q, 100 + i, BUILDQUEUE_BURST_NS + NS_PER_SEC, now);
	CHECK(push(q, "hog", 1, 1));
	CHECK_STR(str_of(take(q, now + 100 * NS_PER_SEC, &wait)), "");
	buildqueue_free(q);
}

static void *pop_later(void *ctx)
{
	struct build_ticket t;
	return buildqueue_pop(ctx, &t);
}

static void waiting_ends(void **state)
{
	(void)state;
	struct buildqueue *q = make(PERCENT);
	pthread_t thread;
	void *item = NULL;
	CHECK(pthread_create(&thread, NULL, pop_later, q) == 0);
	CHECK(push(q, "a", 1, 1));
	CHECK(pthread_join(thread, &item) == 0 && item && *(char *)item == 'a');
	/* A debt of hours: what waits comes all the same when it is closed. */
	buildqueue_charge(q, 1, 1000 * NS_PER_SEC);
	CHECK(push(q, "b", 1, 1));
	CHECK(pthread_create(&thread, NULL, pop_later, q) == 0);
	buildqueue_close(q);
	CHECK(pthread_join(thread, &item) == 0 && item && *(char *)item == 'b');
	struct build_ticket t;
	CHECK(!buildqueue_pop(q, &t) && !push(q, "c", 2, 1));
	buildqueue_free(q);
}

TEST_MAIN(cmocka_unit_test(in_order_of_arrival),
	cmocka_unit_test(the_most_wanted_of_an_owner_first),
	cmocka_unit_test(a_burst_does_not_wait), cmocka_unit_test(who_has_a_debt_waits_alone),
	cmocka_unit_test(small_ones_go_between), cmocka_unit_test(one_owner_cannot_fill_it),
	cmocka_unit_test(without_shares_nobody_waits), cmocka_unit_test(large_debts_are_kept),
	cmocka_unit_test(waiting_ends))
