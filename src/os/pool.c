/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that want more threads are in a list; an idle thread takes a place in the first one. A
 * caller that has done its own part withdraws the job, so that no further thread joins, and waits
 * for the threads that have joined.
 */
#include "os/os.h"

#include "base/lock.h"

#include <stdlib.h>

struct job {
	os_pool_fn *fn;
	void *ctx;
	unsigned next;    /* number of the next worker */
	unsigned end;     /* one more than the number of the last */
	unsigned running; /* workers that run on threads of the pool */
	struct job *after;
};

struct os_pool {
	struct lock lock;
	pthread_cond_t wanted;
	pthread_cond_t left; /* a worker has returned */
	struct job *first;   /* jobs with free places */
	bool stopping;
	unsigned count;
	pthread_t threads[OS_POOL_THREADS_MAX];
};

/* With the lock held. */
static void withdraw(struct os_pool *p, const struct job *j)
{
	struct job **at = &p->first;
	while (*at && *at != j)
		at = &(*at)->after;
	if (*at)
		*at = j->after;
}

static void *pool_main(void *ctx)
{
	struct os_pool *p = ctx;
	lock_take(&p->lock);
	while (!p->stopping) {
		struct job *j = p->first;
		if (!j) {
			lock_wait(&p->wanted, &p->lock);
			continue;
		}
		unsigned worker = j->next++;
		j->running++;
		if (j->next == j->end)
			withdraw(p, j);
		lock_release(&p->lock);
		j->fn(j->ctx, worker);
		lock_take(&p->lock);
		j->running--;
		pthread_cond_broadcast(&p->left);
	}
	lock_release(&p->lock);
	return NULL;
}

enum status os_pool_new(unsigned threads, const char *name, struct os_pool **out, struct err *e)
{
	struct os_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, E_NOMEM, "threads %s", name);
	lock_init(&p->lock, LOCK_POOL);
	pthread_cond_init(&p->wanted, NULL);
	pthread_cond_init(&p->left, NULL);
	enum status s = OK;
	while (s == OK && p->count < MIN(threads, (unsigned)OS_POOL_THREADS_MAX)) {
		s = os_thread_start(&p->threads[p->count], name, pool_main, p, e);
		p->count += s == OK;
	}
	if (s != OK) {
		os_pool_free(p);
		return s;
	}
	*out = p;
	return OK;
}

void os_pool_free(struct os_pool *p)
{
	if (!p)
		return;
	lock_take(&p->lock);
	assert(!p->first);
	p->stopping = true;
	pthread_cond_broadcast(&p->wanted);
	lock_release(&p->lock);
	for (unsigned i = 0; i < p->count; i++)
		pthread_join(p->threads[i], NULL);
	lock_destroy(&p->lock);
	pthread_cond_destroy(&p->wanted);
	pthread_cond_destroy(&p->left);
	free(p);
}

unsigned os_pool_width(const struct os_pool *p)
{
	return p ? p->count + 1 : 1;
}

void os_pool_run(struct os_pool *p, unsigned n, os_pool_fn *fn, void *ctx)
{
	struct job j = { .fn = fn, .ctx = ctx, .next = 1, .end = MIN(n, os_pool_width(p)) };
	if (j.end <= 1) {
		fn(ctx, 0);
		return;
	}
	lock_take(&p->lock);
	struct job **last = &p->first;
	while (*last)
		last = &(*last)->after;
	*last = &j;
	for (unsigned i = 1; i < j.end; i++)
		pthread_cond_signal(&p->wanted);
	lock_release(&p->lock);
	fn(ctx, 0);
	lock_take(&p->lock);
	withdraw(p, &j);
	while (j.running)
		lock_wait(&p->left, &p->lock);
	lock_release(&p->lock);
}
