/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders are in a list by age. When the memory of one changes, all waiting holders wake up, and
 * each checks again whether it may have what it wants.
 */
#include "store/memory/memory_share.h"

#include "base/clock.h"

void memory_share_init(struct memory_share *m, uint64_t limit_bytes)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	*m = (struct memory_share){ .limit = limit_bytes, .next_age = 1 };
	lock_init(&m->lock, LOCK_MEMORY_SHARE);
	pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	TAILQ_INIT(&m->holders);
}

void memory_share_deinit(struct memory_share *m)
{
	assert(TAILQ_EMPTY(&m->holders));
	lock_destroy(&m->lock);
	pthread_cond_destroy(&m->changed);
}

/* ---- with the lock held ---- */

static bool is_listed(const struct memory_holder *h)
{
	return h->held || h->wants;
}

/* Changes what it holds and wants, and with that whether it is in the list. */
static void set(struct memory_share *m, struct memory_holder *h, uint64_t held, uint64_t wants)
{
	bool was = is_listed(h);
	m->used = m->used - h->held + held;
	h->held = held;
	h->wants = wants;
	if (was && !is_listed(h))
		TAILQ_REMOVE(&m->holders, h, link);
	if (was || !is_listed(h))
		return;
	if (!h->age)
		h->age = m->next_age++;
	struct memory_holder *before = TAILQ_LAST(&m->holders, memory_holders);
	while (before && before->age > h->age)
		before = TAILQ_PREV(before, memory_holders, link);
	if (before)
		TAILQ_INSERT_AFTER(&m->holders, before, h, link);
	else
		TAILQ_INSERT_HEAD(&m->holders, h, link);
}

static bool fits(const struct memory_share *m, uint64_t bytes)
{
	uint64_t sum;
	return !__builtin_add_overflow(m->used, bytes, &sum) && sum <= m->limit;
}

static bool may_have(
	const struct memory_share *m, const struct memory_holder *h, uint64_t bytes, bool pressed)
{
	const struct memory_holder *other = TAILQ_FIRST(&m->holders);
	if (m->used == h->held) /* no other holder has any: the first in turn */
		return h->held || !other || (h->age && other->age >= h->age);
	bool oldest = true, others_wait = false;
	TAILQ_FOREACH(other, &m->holders, link)
	{
		oldest &= other->held == 0 || other == h || other->age > h->age;
		others_wait |= other != h && other->wants && (h->age == 0 || other->age < h->age);
	}
	if (pressed && !(oldest && h->held))
		return false;
	return fits(m, bytes) && (h->held || !others_wait);
}

/* All holders wait: if there are several, the youngest is refused. */
static void resolve(struct memory_share *m)
{
	struct memory_holder *h, *youngest = NULL;
	size_t holding = 0;
	TAILQ_FOREACH(h, &m->holders, link)
	{
		if (h->held == 0)
			continue;
		if (h->wants == 0 || h->yields)
			return;
		holding++;
		youngest = h;
	}
	if (holding < 2)
		return;
	youngest->yields = true;
	youngest->needs = youngest->held + youngest->wants;
	pthread_cond_broadcast(&m->changed);
}

/* False: the deadline has passed. */
static bool wait_until(struct memory_share *m, int64_t until_ns)
{
	struct timespec t = { until_ns / NS_PER_SEC, until_ns % NS_PER_SEC };
	if (clock_monotonic_ns() >= until_ns)
		return false;
	(void)lock_wait_until(&m->changed, &m->lock, &t);
	return true;
}

/* ---- the rest ---- */

enum memory_got memory_take(struct memory_share *m, struct memory_holder *h, uint64_t bytes,
	bool pressed, int64_t until_ns)
{
	enum memory_got got = MEMORY_WAIT;
	lock_take(&m->lock);
	do {
		if (h->yields) {
			got = MEMORY_YIELD;
		} else if (may_have(m, h, bytes, pressed)) {
			set(m, h, h->held + bytes, 0);
			pthread_cond_broadcast(&m->changed); /* it waits no longer */
			got = MEMORY_GOT;
		} else {
			set(m, h, h->held, bytes);
			resolve(m);
			got = h->yields ? MEMORY_YIELD : MEMORY_WAIT;
		}
	} while (got == MEMORY_WAIT && wait_until(m, until_ns));
	lock_release(&m->lock);
	return got;
}

void memory_leave(struct memory_share *m, struct memory_holder *h)
{
	lock_take(&m->lock);
	set(m, h, h->held, 0);
	pthread_cond_broadcast(&m->changed);
	lock_release(&m->lock);
}

void memory_take_anyway(struct memory_share *m, struct memory_holder *h, uint64_t bytes)
{
	lock_take(&m->lock);
	set(m, h, h->held + bytes, h->wants);
	lock_release(&m->lock);
}

void memory_give(struct memory_share *m, struct memory_holder *h, uint64_t bytes)
{
	if (bytes == 0)
		return;
	lock_take(&m->lock);
	assert(h->held >= bytes);
	set(m, h, h->held - bytes, h->wants);
	h->yields &= h->held > 0;
	pthread_cond_broadcast(&m->changed);
	lock_release(&m->lock);
}

enum memory_got memory_await(struct memory_share *m, struct memory_holder *h, int64_t until_ns)
{
	bool there = true;
	lock_take(&m->lock);
	assert(h->held == 0);
	set(m, h, 0, MAX(h->needs, (uint64_t)1));
	while (!may_have(m, h, h->wants, false) && there)
		there = wait_until(m, until_ns);
	if (there)
		set(m, h, 0, 0);
	lock_release(&m->lock);
	return there ? MEMORY_GOT : MEMORY_WAIT;
}

uint64_t memory_used(struct memory_share *m)
{
	lock_take(&m->lock);
	uint64_t used = m->used;
	lock_release(&m->lock);
	return used;
}
