/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget counts what one operation of a query takes, by atomic additions: several threads take
 * from it. It takes as much from the memory of all queries (memory_share), in steps of
 * HOLD_STEP_BYTES, so that the share's lock is seldom taken. A query that waits for others asks
 * again every HOLD_STEP_NS: the process may have left its limit meanwhile, or the client may be
 * gone.
 */
#include "store/read/budget.h"

#include "base/clock.h"
#include "os/os.h"

#include <stdlib.h>

#define HOLD_STEP_BYTES ((uint64_t)1 << 20)
#define HOLD_STEP_NS (50 * NS_PER_MS)
#define PRESSED_WAIT_NS NS_PER_SEC

uint64_t budget_left(const struct budget *b)
{
	uint64_t used = atomic_load(&b->used);
	return used < b->limit ? b->limit - used : 0;
}

void budget_give(struct budget *b, uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub(&b->used, bytes);
	assert(before >= bytes);
}

static enum status stopped_waiting(const struct store_query *q, uint64_t bytes, struct err *e)
{
	struct memory_share *m = &q->store->queries_memory;
	if (q->cancel && q->cancel(q->cancel_ctx))
		return err_set(e, E_CANCELED, "the caller went away");
	if (clock_monotonic_ns() < q->until_ns && !atomic_load(&q->store->stopping))
		return OK;
	return err_set(e, E_UNAVAILABLE,
		"other queries hold %llu of the %llu MiB of memory that queries have, and %llu "
		"more "
		"were not free in time: try again, or raise --storage-memory",
		(unsigned long long)(memory_used(m) >> 20), (unsigned long long)(m->limit >> 20),
		(unsigned long long)(bytes >> 20));
}

/* Near the limit of the process each query waits once, until a memtable is written or memory given
 * back. */
static bool waits_for_room(struct store_query *q)
{
	int64_t now = clock_monotonic_ns();
	if (!q->pressed_ns)
		q->pressed_ns = now;
	return now < q->pressed_ns + PRESSED_WAIT_NS;
}

static void sleep_until(int64_t at_ns)
{
	struct timespec t = { at_ns / NS_PER_SEC, at_ns % NS_PER_SEC };
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Waits a little: other queries are mostly done soon. */
static enum status take_or_wait(struct store_query *q, uint64_t bytes, struct err *e)
{
	struct memory_share *m = &q->store->queries_memory;
	enum status s = OK;
	int64_t until = 0;
	for (;;) {
		bool pressed = store_relieve(q->store);
		enum memory_got got = MEMORY_WAIT;
		if (pressed && q->until_ns && waits_for_room(q))
			sleep_until(until);
		else
			got = memory_take(m, q->holder, bytes, pressed, until);
		if (got == MEMORY_GOT)
			return OK;
		if (got == MEMORY_YIELD) {
			q->again = true;
			s = err_set(e, E_UNAVAILABLE,
				"an older query needs the memory of this one: try again");
		} else {
			s = stopped_waiting(q, bytes, e);
		}
		if (s != OK)
			break;
		until = MIN(clock_monotonic_ns() + HOLD_STEP_NS, q->until_ns);
	}
	memory_leave(m, q->holder);
	return s;
}

void query_memory_init(struct query_memory *m, struct store *s)
{
	*m = (struct query_memory){ .store = s, .query = &m->own };
	m->own.store = s;
	m->own.holder = &m->own_holder;
	lock_init(&m->lock, LOCK_QUERY_MEMORY);
}

void query_memory_deinit(struct query_memory *m)
{
	query_memory_release(m);
	memory_give(&m->store->queries_memory, m->query->holder, m->kept);
	lock_destroy(&m->lock);
}

void query_memory_release(struct query_memory *m)
{
	memory_give(&m->store->queries_memory, m->query->holder, m->held);
	m->held = 0;
}

void query_memory_keep(struct query_memory *m, uint64_t bytes)
{
	memory_take_anyway(&m->store->queries_memory, m->query->holder, bytes);
	m->kept += bytes;
}

enum status query_memory_hold(struct query_memory *m, uint64_t bytes, struct err *e)
{
	if (bytes <= atomic_load(&m->held))
		return OK;
	enum status s = OK;
	lock_take(&m->lock);
	uint64_t held = m->held, want = (bytes / HOLD_STEP_BYTES + 1) * HOLD_STEP_BYTES;
	if (want > held)
		s = take_or_wait(m->query, want - held, e);
	if (s == OK && want > held)
		atomic_store(&m->held, want);
	lock_release(&m->lock);
	return s;
}

enum status budget_fail(const struct budget *b, enum status s, struct err *e)
{
	if (s == E_LIMIT)
		return err_set(e, s,
			"the query needs more than the %llu MiB of memory that queries have: a "
			"shorter time range or a narrower selector fits, or a larger "
			"--storage-memory",
			(unsigned long long)(b->limit >> 20));
	return s == E_NOMEM ? err_set(e, s, "there is no memory for the answer") : s;
}

enum status budget_take(struct budget *b, uint64_t bytes, struct err *e)
{
	uint64_t used = atomic_load(&b->used), sum;
	do
		if (__builtin_add_overflow(used, bytes, &sum) || sum > b->limit)
			return budget_fail(b, E_LIMIT, e);
	while (!atomic_compare_exchange_weak(&b->used, &used, sum));
	enum status s = b->memory ? query_memory_hold(b->memory, sum, e) : OK;
	if (s != OK)
		budget_give(b, bytes);
	return s;
}

enum status budget_array(struct budget *b, size_t count, size_t size, void *out_ptr, struct err *e)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return budget_fail(b, E_LIMIT, e);
	enum status s = budget_take(b, bytes, e);
	if (s != OK)
		return s;
	void *p = calloc(MAX(count, (size_t)1), size);
	if (!p)
		return budget_fail(b, E_NOMEM, e);
	memcpy(out_ptr, &p, sizeof(p));
	return OK;
}

bool query_memory_again(struct store_query *q)
{
	bool again = q->again;
	q->again = false;
	if (!again)
		return false;
	metric_add(&q->store->metrics.query_restarts, 1);
	while (stopped_waiting(q, 0, NULL) == OK) {
		int64_t until = MIN(clock_monotonic_ns() + HOLD_STEP_NS, q->until_ns);
		if (memory_await(&q->store->queries_memory, q->holder, until) == MEMORY_GOT)
			return true;
	}
	return false;
}

unsigned query_memory_width(const struct query_memory *m)
{
	struct memory_share *all = &m->store->queries_memory;
	return memory_used(all) > all->limit / 2 ? 1 : os_pool_width(m->store->config.pool);
}
