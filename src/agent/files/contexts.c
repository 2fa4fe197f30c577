/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two queues, of requests and of answers. No more is asked than the second one has room for, so
 * that the thread never waits for the caller. A context that is being changed is read again at
 * once, a few times, and then when the process is looked at again.
 */
#include "agent/files/contexts.h"

#include "base/clock.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define READ_TRIES 3

struct request {
	uint32_t pid;
	uint64_t start_ns;
};

struct contexts {
	struct os_queue *requests, *answers;
	_Atomic uint32_t asked; /* not taken yet */
	pthread_t thread;
	bool has_thread;
	_Atomic bool is_over;
	struct code_files_memory known; /* the thread's, as the buffer */
	uint8_t buffer[CONTEXT_MEMORY_BYTES_MAX];
	struct contexts_metrics metrics;
};

/* The bytes of the context; -1: it cannot be read. */
static ssize_t read_context(struct contexts *c, uint32_t pid, uint64_t head)
{
	ssize_t n = -1;
	errno = EAGAIN;
	for (int i = 0; i < READ_TRIES && n < 0 && errno == EAGAIN; i++)
		n = broker_context((int)pid, head, c->buffer);
	metric_add(&c->metrics.failed, n < 0);
	return n;
}

static struct contexts_answer *look(struct contexts *c, const struct request *q)
{
	struct thread_contexts_found found = { .place.process_start_ns = q->start_ns };
	bool is_known = thread_contexts_find(&c->known, (int)q->pid, &found) == OK;
	ssize_t n = is_known && found.head ? read_context(c, q->pid, found.head) : 0;
	size_t bytes = n > 0 ? (size_t)n : 0;
	struct contexts_answer *a = malloc(sizeof(*a) + bytes);
	metric_add(&c->metrics.looks, 1);
	if (!a)
		return NULL;
	*a = (struct contexts_answer){
		.pid = q->pid,
		.place = found.place,
		.is_known = is_known && n >= 0,
		.bytes = (uint32_t)bytes,
	};
	memcpy(a->context, c->buffer, bytes);
	return a;
}

static void *run(void *ctx)
{
	struct contexts *c = ctx;
	struct request *q;
	while ((q = os_queue_pop(c->requests, INT64_MAX))) {
		struct contexts_answer *a = atomic_load(&c->is_over) ? NULL : look(c, q);
		free(q);
		if (a && os_queue_try_push(c->answers, a))
			continue;
		free(a);
		c->asked--;
	}
	return NULL;
}

enum status contexts_new(struct contexts **out, struct err *e)
{
	struct contexts *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "contexts of processes");
	enum status s = os_queue_new(CONTEXTS_ASKED_MAX, &c->requests);
	if (s == OK)
		s = os_queue_new(CONTEXTS_ASKED_MAX, &c->answers);
	if (s == OK)
		s = os_thread_start(&c->thread, "contexts", run, c, e);
	c->has_thread = s == OK;
	if (s != OK) {
		contexts_free(c);
		return err_set(e, s, "contexts of processes");
	}
	*out = c;
	return OK;
}

void contexts_free(struct contexts *c)
{
	if (!c)
		return;
	atomic_store(&c->is_over, true);
	if (c->requests)
		os_queue_close(c->requests);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	struct contexts_answer *a;
	while (c->answers && (a = os_queue_pop(c->answers, 0)))
		free(a);
	os_queue_free(c->requests);
	os_queue_free(c->answers);
	free(c);
}

uint32_t contexts_room(const struct contexts *c)
{
	return CONTEXTS_ASKED_MAX - c->asked;
}

bool contexts_ask(struct contexts *c, uint32_t pid, uint64_t start_ns)
{
	struct request *q = contexts_room(c) ? malloc(sizeof(*q)) : NULL;
	if (!q)
		return false;
	*q = (struct request){ pid, start_ns };
	c->asked++; /* before it can be answered */
	if (!os_queue_try_push(c->requests, q)) {
		c->asked--;
		free(q);
		return false;
	}
	return true;
}

struct contexts_answer *contexts_take(struct contexts *c)
{
	struct contexts_answer *a = os_queue_pop(c->answers, 0);
	c->asked -= a != NULL;
	metric_set(&c->metrics.waiting, c->asked);
	return a;
}

void contexts_write_metrics(const struct contexts *c, struct buf *out)
{
	static const struct metric_def defs[] = { CONTEXTS_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &c->metrics.looks, ARRAY_COUNT(defs));
}
