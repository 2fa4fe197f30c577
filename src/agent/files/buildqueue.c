/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits are CPU time: they grow with the clock up to the burst, and are below zero in debt. They
 * are reckoned when they are asked for.
 */
#include "agent/files/buildqueue.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct credit {
	int64_t ns;
	int64_t since_ns;
};

struct owner {
	uint64_t id;
	bool is_there;
	struct credit credit;
};

struct entry {
	void *item;
	struct build_ticket ticket;
};

struct buildqueue {
	struct lock lock;
	pthread_cond_t changed;
	uint32_t cpu_percent;
	bool keeps_shares;
	bool is_closed;
	size_t len;
	struct entry entries[BUILDQUEUE_MAX]; /* in order of arrival */
	struct credit all;
	int64_t rest_until_ns;
	struct owner owners[BUILDQUEUE_OWNERS_MAX];
};

static int64_t credit_at(const struct buildqueue *q, struct credit *c, int64_t now)
{
	int64_t passed = MAX(now - c->since_ns, (int64_t)0);
	c->ns = MIN(c->ns + passed / 100 * q->cpu_percent, (int64_t)BUILDQUEUE_BURST_NS);
	c->since_ns = now;
	return c->ns;
}

/* How long it takes until the share has paid for so much CPU time. */
static int64_t paid_after(const struct buildqueue *q, int64_t cpu_ns)
{
	return cpu_ns / q->cpu_percent * 100 + 100;
}

static struct owner *owner_find(struct buildqueue *q, uint64_t id)
{
	for (size_t i = 0; i < BUILDQUEUE_OWNERS_MAX; i++) {
		if (q->owners[i].is_there && q->owners[i].id == id)
			return &q->owners[i];
	}
	return NULL;
}

static struct owner *owner_add(struct buildqueue *q, uint64_t id, int64_t now)
{
	struct owner *best = &q->owners[0];
	for (size_t i = 0; i < BUILDQUEUE_OWNERS_MAX && best->is_there; i++) {
		struct owner *o = &q->owners[i];
		if (!o->is_there ||
			credit_at(q, &o->credit, now) > credit_at(q, &best->credit, now))
			best = o;
	}
	*best = (struct owner){ id, true, { BUILDQUEUE_BURST_NS, now } };
	return best;
}

static void *take(struct buildqueue *q, size_t i, struct build_ticket *out)
{
	void *item = q->entries[i].item;
	*out = q->entries[i].ticket;
	q->len--;
	memmove(q->entries + i, q->entries + i + 1, (q->len - i) * sizeof(q->entries[0]));
	pthread_cond_broadcast(&q->changed);
	return item;
}

static int64_t debt_at(struct buildqueue *q, uint64_t owner, int64_t now)
{
	struct owner *o = owner_find(q, owner);
	return o ? MAX(-credit_at(q, &o->credit, now), (int64_t)0) : 0;
}

/* The first is of the owner whose turn it is. */
static size_t most_wanted(const struct buildqueue *q, size_t first)
{
	size_t best = first;
	for (size_t i = first + 1; i < q->len; i++) {
		const struct build_ticket *t = &q->entries[i].ticket;
		if (t->owner == q->entries[first].ticket.owner &&
			t->wanted > q->entries[best].ticket.wanted)
			best = i;
	}
	return best;
}

static void *take_turn(
	struct buildqueue *q, int64_t now, struct build_ticket *out, int64_t *out_wait)
{
	*out_wait = INT64_MAX;
	if (q->len == 0)
		return NULL;
	if (!q->keeps_shares || q->is_closed || q->cpu_percent == 0)
		return take(q, 0, out);
	for (size_t i = 0; i < q->len; i++) {
		int64_t debt = debt_at(q, q->entries[i].ticket.owner, now);
		if (debt == 0 && now >= q->rest_until_ns)
			return take(q, most_wanted(q, i), out);
		int64_t wait = debt ? now + paid_after(q, debt) : q->rest_until_ns;
		*out_wait = MIN(*out_wait, wait);
	}
	return NULL;
}

void *buildqueue_take_at(
	struct buildqueue *q, int64_t now, struct build_ticket *out, int64_t *out_wait)
{
	lock_take(&q->lock);
	void *item = take_turn(q, now, out, out_wait);
	lock_release(&q->lock);
	return item;
}

/* Until something changes, or it is time; `lock` is held. */
static bool wait_until(struct buildqueue *q, int64_t deadline)
{
	struct timespec at = { deadline / NS_PER_SEC, deadline % NS_PER_SEC };
	if (deadline == INT64_MAX) {
		lock_wait(&q->changed, &q->lock);
		return true;
	}
	return lock_wait_until(&q->changed, &q->lock, &at) == 0;
}

void buildqueue_want(struct buildqueue *q, uint32_t id)
{
	lock_take(&q->lock);
	for (size_t i = 0; i < q->len; i++)
		q->entries[i].ticket.wanted += q->entries[i].ticket.id == id;
	lock_release(&q->lock);
}

void *buildqueue_pop(struct buildqueue *q, struct build_ticket *out)
{
	int64_t wait;
	void *item;
	lock_take(&q->lock);
	while (!(item = take_turn(q, clock_monotonic_ns(), out, &wait)) && !q->is_closed)
		(void)wait_until(q, wait);
	lock_release(&q->lock);
	return item;
}

void *buildqueue_try_pop_small(struct buildqueue *q, uint64_t bytes_max, struct build_ticket *out)
{
	void *item = NULL;
	int64_t now = clock_monotonic_ns();
	lock_take(&q->lock);
	for (size_t i = 0; i < q->len && !item; i++) {
		const struct build_ticket *t = &q->entries[i].ticket;
		if (t->bytes <= bytes_max && debt_at(q, t->owner, now) == 0)
			item = take(q, i, out);
	}
	lock_release(&q->lock);
	return item;
}

static size_t waiting_of(const struct buildqueue *q, uint64_t owner)
{
	size_t n = 0;
	for (size_t i = 0; i < q->len; i++)
		n += q->entries[i].ticket.owner == owner;
	return n;
}

bool buildqueue_push(
	struct buildqueue *q, void *item, const struct build_ticket *ticket, int64_t deadline)
{
	lock_take(&q->lock);
	bool has_time = true;
	while (q->len == BUILDQUEUE_MAX && has_time && !q->is_closed)
		has_time = wait_until(q, deadline);
	bool has_room = !q->is_closed && q->len < BUILDQUEUE_MAX &&
			waiting_of(q, ticket->owner) < BUILDQUEUE_OWNER_MAX;
	if (has_room) {
		q->entries[q->len++] = (struct entry){ item, *ticket };
		pthread_cond_broadcast(&q->changed);
	}
	lock_release(&q->lock);
	return has_room;
}

void buildqueue_charge_at(struct buildqueue *q, uint64_t owner, int64_t cpu_ns, int64_t now)
{
	lock_take(&q->lock);
	if (q->keeps_shares && q->cpu_percent) {
		struct owner *o = owner_find(q, owner);
		if (!o)
			o = owner_add(q, owner, now);
		credit_at(q, &o->credit, now);
		o->credit.ns -= cpu_ns;
		credit_at(q, &q->all, now);
		q->all.ns -= cpu_ns;
		int64_t rest = MIN(paid_after(q, cpu_ns), (int64_t)BUILDQUEUE_REST_MAX_NS);
		q->rest_until_ns = q->all.ns < 0 ? now + rest : now;
	}
	lock_release(&q->lock);
}

void buildqueue_charge(struct buildqueue *q, uint64_t owner, int64_t cpu_ns)
{
	buildqueue_charge_at(q, owner, cpu_ns, clock_monotonic_ns());
}

void buildqueue_keep_shares(struct buildqueue *q, bool keep)
{
	lock_take(&q->lock);
	q->keeps_shares = keep;
	pthread_cond_broadcast(&q->changed);
	lock_release(&q->lock);
}

void buildqueue_close(struct buildqueue *q)
{
	lock_take(&q->lock);
	q->is_closed = true;
	pthread_cond_broadcast(&q->changed);
	lock_release(&q->lock);
}

size_t buildqueue_len(struct buildqueue *q)
{
	lock_take(&q->lock);
	size_t len = q->len;
	lock_release(&q->lock);
	return len;
}

enum status buildqueue_new(uint32_t cpu_percent, struct buildqueue **out)
{
	struct buildqueue *q = calloc(1, sizeof(*q));
	if (!q)
		return E_NOMEM;
	q->cpu_percent = cpu_percent;
	q->keeps_shares = true;
	q->all = (struct credit){ BUILDQUEUE_BURST_NS, clock_monotonic_ns() };
	lock_init(&q->lock, LOCK_BUILDQUEUE);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = q;
	return OK;
}

void buildqueue_free(struct buildqueue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->changed);
	lock_destroy(&q->lock);
	free(q);
}
