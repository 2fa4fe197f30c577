/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue is a ring under one mutex with a condition on the monotonic clock. Waiters re-check
 * after every wake-up, so spurious ones do no harm. Waking a thread costs more than the work of a
 * small item: a signal is sent only if a thread waits and no other signal is pending. The woken
 * thread signals the next if there are more items.
 */
#include "os/os.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct start {
	void *(*fn)(void *);
	void *ctx;
	char name[16];
};

static void *thread_main(void *arg)
{
	struct start s = *(struct start *)arg;
	free(arg);
	pthread_setname_np(pthread_self(), s.name);
	return s.fn(s.ctx);
}

enum status os_thread_start(
	pthread_t *out, const char *name, void *(*fn)(void *), void *ctx, struct err *e)
{
	struct start *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "thread %s", name);
	s->fn = fn;
	s->ctx = ctx;
	struct str cut = str_sub(str_of(name), 0, sizeof(s->name) - 1);
	memcpy(s->name, cut.p, cut.len);
	/* A new thread inherits the signal mask: all signals are blocked while it is created. */
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* used by the thread's own timer, if one was set (self) */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(out, NULL, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		free(s);
		errno = rc;
		return err_os(e, "start thread %s", name);
	}
	return OK;
}

struct os_queue {
	struct lock lock;
	pthread_cond_t not_empty;
	size_t capacity;
	size_t head; /* index of the oldest */
	size_t len;
	size_t waiting; /* for an item */
	bool waking;    /* a waiting thread was signalled, and is not awake yet */
	bool closed;
	void *items[];
};

enum status os_queue_new(size_t capacity, struct os_queue **out)
{
	assert(capacity > 0);
	size_t bytes;
	if (__builtin_mul_overflow(capacity, sizeof(void *), &bytes) ||
		__builtin_add_overflow(bytes, sizeof(struct os_queue), &bytes))
		return E_LIMIT;
	struct os_queue *q = calloc(1, bytes);
	if (!q)
		return E_NOMEM;
	q->capacity = capacity;
	lock_init(&q->lock, LOCK_QUEUE);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->not_empty, &attr);
	pthread_condattr_destroy(&attr);
	*out = q;
	return OK;
}

void os_queue_free(struct os_queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->not_empty);
	lock_destroy(&q->lock);
	free(q);
}

/* Waits; false: the deadline has passed. */
static bool wait_until(pthread_cond_t *cond, struct lock *lock, int64_t deadline_ns)
{
	if (deadline_ns == INT64_MAX) {
		lock_wait(cond, lock);
		return true;
	}
	struct timespec t = { .tv_sec = deadline_ns / NS_PER_SEC,
		.tv_nsec = deadline_ns % NS_PER_SEC };
	return lock_wait_until(cond, lock, &t) != ETIMEDOUT;
}

static void put(struct os_queue *q, void *item)
{
	assert(q->len < q->capacity);
	q->items[(q->head + q->len) % q->capacity] = item;
	q->len++;
}

/* Whether the caller must signal one more thread after it has released the lock. A thread that
 * wakes up calls this too: many items put at once wake one thread after the other, and not more
 * than needed. */
static bool begin_waking(struct os_queue *q)
{
	bool wake = q->len > 0 && q->waiting > 0 && !q->waking;
	q->waking |= wake;
	return wake;
}

static void unlock_and_wake(struct os_queue *q)
{
	bool wake = begin_waking(q);
	lock_release(&q->lock);
	if (wake)
		pthread_cond_signal(&q->not_empty);
}

bool os_queue_try_push(struct os_queue *q, void *item)
{
	assert(item);
	lock_take(&q->lock);
	bool ok = !q->closed && q->len < q->capacity;
	if (ok)
		put(q, item);
	unlock_and_wake(q);
	return ok;
}

void *os_queue_pop(struct os_queue *q, int64_t deadline_ns)
{
	lock_take(&q->lock);
	bool in_time = true;
	while (in_time && !q->closed && q->len == 0) {
		q->waiting++;
		in_time = wait_until(&q->not_empty, &q->lock, deadline_ns);
		q->waiting--;
		q->waking = false;
	}
	void *item = NULL;
	if (q->len) {
		item = q->items[q->head];
		q->head = (q->head + 1) % q->capacity;
		q->len--;
	}
	unlock_and_wake(q);
	return item;
}

void os_queue_close(struct os_queue *q)
{
	lock_take(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->not_empty);
	lock_release(&q->lock);
}
