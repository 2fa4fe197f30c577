/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is at most one request that no thread has taken yet. Each thread takes it, reads without
 * the lock, and then either gives the answer to the caller that still waits, or throws it away.
 * Threads are started when all there are wait for a process, and are not joined, since one may wait
 * for ever: the last one, or procread_free() where there is none, frees what they share.
 *
 * The start time is read last: if it is another process' by then, all that was read is dropped.
 */
#include "agent/process/procread.h"

#include "base/lock.h"
#include "os/os.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define USER_UNKNOWN UINT32_MAX

struct request {
	struct procread_wish wish;
	struct procread_answer *answer;
	uint32_t user; /* of the process; read when one keeps a thread waiting */
	bool is_answered;
	bool is_given_up; /* the thread that answers it frees it */
};

struct procread {
	struct lock lock;
	pthread_cond_t asked, answered; /* the second when a thread ends, too */
	struct request *request;        /* not taken yet */
	uint32_t threads;               /* that are there, */
	uint32_t busy;                  /* that read, */
	uint32_t late;                  /* and that the caller has given up: */
	struct request *given_up[PROCREAD_THREADS_MAX];
	int64_t patience_ns;
	int64_t vain_since_ns, vain_ns; /* waited in vain in this second */
	bool is_over;                   /* the last thread frees it */
	struct str variables;           /* its own, as nothing else outlives the agent */
};

/* ---- reading ---- */

static bool is_wanted(const void *ctx, struct str name)
{
	struct str left = *(const struct str *)ctx, one;
	while (str_split(&left, 0, &one))
		if (str_eq(one, name))
			return true;
	return false;
}

static enum status read_texts(
	const struct procread_wish *w, const struct str *variables, struct procread_answer *out)
{
	struct arena *a = &out->arena;
	enum status s = procfs_comm(w->pid, w->pid, out->comm, NULL);
	if (s != OK)
		return s;
	/* A kernel thread has no executable, and that is no error. */
	s = procfs_exe(w->pid, a, &out->executable, NULL);
	if (s == E_TIMEOUT)
		return s;
	if (s != OK)
		out->executable = STR("");
	if (procfs_cgroup(w->pid, a, &out->cgroup, NULL) != OK)
		out->cgroup = STR("");
	if (!w->command_line || procfs_arguments(w->pid, PROCREAD_COMMAND_LINE_BYTES_MAX, a,
					&out->command_line, NULL) != OK)
		out->command_line = STR("");
	if (!w->environment ||
		procfs_environment(w->pid, is_wanted, variables, a, &out->environment, NULL) != OK)
		out->environment = STR("");
	return OK;
}

/* NULL: there is no answer yet; its process is not asked now (broker.h), or there is no memory. */
static struct procread_answer *read_process(
	const struct procread_wish *w, const struct str *variables)
{
	struct procfs_stat stat;
	struct procread_answer *out = calloc(1, sizeof(*out));
	if (!out)
		return NULL;
	arena_init(&out->arena, PROCREAD_ARENA_BYTES);
	enum status s = read_texts(w, variables, out);
	if (s == E_TIMEOUT) {
		procread_answer_free(out);
		return NULL;
	}
	out->is_it = s == OK && procfs_stat(w->pid, &stat, NULL) == OK &&
		     stat.start_ticks == w->start_ticks;
	out->ppid = out->is_it ? (uint32_t)stat.ppid : 0;
	return out;
}

void procread_answer_free(struct procread_answer *a)
{
	if (!a)
		return;
	arena_deinit(&a->arena);
	free(a);
}

/* ---- threads ---- */

static void request_free(struct request *q)
{
	procread_answer_free(q->answer);
	free(q);
}

static void destroy(struct procread *p)
{
	pthread_cond_destroy(&p->answered);
	pthread_cond_destroy(&p->asked);
	lock_destroy(&p->lock);
	free((void *)(uintptr_t)p->variables.p);
	free(p);
}

static void remove_late(struct procread *p, const struct request *q)
{
	uint32_t at = 0;
	while (p->given_up[at] != q)
		at++;
	p->given_up[at] = p->given_up[--p->late];
}

/* Takes the request; `lock` is held, but not while it reads. */
static void answer_one(struct procread *p)
{
	struct request *q = STEAL_PTR(p->request);
	p->busy++;
	lock_release(&p->lock);
	struct procread_answer *answer = read_process(&q->wish, &p->variables);
	lock_take(&p->lock);
	p->busy--;
	q->answer = answer;
	q->is_answered = true;
	if (q->is_given_up) {
		remove_late(p, q);
		request_free(q);
	}
	pthread_cond_signal(&p->answered);
}

static void *run(void *ctx)
{
	struct procread *p = ctx;
	lock_take(&p->lock);
	while (!p->is_over) {
		if (p->request)
			answer_one(p);
		else
			lock_wait(&p->asked, &p->lock);
	}
	bool is_last = --p->threads == 0;
	lock_release(&p->lock);
	if (is_last)
		destroy(p);
	return NULL;
}

/* False: all that there may be are busy. */
static bool has_thread(struct procread *p)
{
	pthread_t thread;
	if (p->busy < p->threads)
		return true;
	if (p->threads == PROCREAD_THREADS_MAX ||
		os_thread_start(&thread, "procread", run, p, NULL) != OK)
		return false;
	pthread_detach(thread);
	p->threads++;
	return true;
}

/* ---- requests ---- */

/* `lock` is held, but not while the file is read. That waits for nothing. */
static void read_user(struct procread *p, struct request *q)
{
	uint32_t user;
	lock_release(&p->lock);
	bool is_read = procfs_user(q->wish.pid, &user, NULL) == OK;
	lock_take(&p->lock);
	q->user = is_read ? user : USER_UNKNOWN;
}

/* The user has not as many processes that do not answer as it may have. */
static bool may_ask(const struct procread *p, const struct request *asked)
{
	uint32_t late = 0;
	for (uint32_t i = 0; i < p->late; i++)
		late += p->given_up[i]->user == asked->user;
	return late < PROCREAD_USER_THREADS_MAX;
}

/* `lock` is held. */
static bool wait_for(struct procread *p, const struct request *q, int64_t deadline_ns)
{
	const struct timespec at = { deadline_ns / NS_PER_SEC, deadline_ns % NS_PER_SEC };
	int error = 0;
	while (!q->is_answered && error == 0)
		error = lock_wait_until(&p->answered, &p->lock, &at);
	return q->is_answered;
}

/* False: it is still the caller's, answered or not. */
static bool give_up(struct procread *p, struct request *q)
{
	if (p->request == q) { /* the host is so busy that no thread has run */
		p->request = NULL;
		return false;
	}
	read_user(p, q);
	if (q->is_answered)
		return false;
	q->is_given_up = true;
	p->given_up[p->late++] = q;
	return true;
}

/* How long an answer is waited for now; 0: it is not asked. */
static int64_t patience_now(struct procread *p)
{
	int64_t now = clock_monotonic_ns();
	if (now - p->vain_since_ns >= PROCREAD_VAIN_EACH_NS) {
		p->vain_since_ns = now;
		p->vain_ns = 0;
	}
	if (p->vain_ns >= PROCREAD_VAIN_NS)
		return 0;
	return p->late || p->vain_ns ? PROCREAD_IMPATIENCE_NS : p->patience_ns;
}

static struct procread_answer *ask(struct procread *p, const struct procread_wish *wish)
{
	struct request *q = calloc(1, sizeof(*q));
	struct procread_answer *answer = NULL;
	if (!q)
		return NULL;
	q->wish = *wish;
	lock_take(&p->lock);
	int64_t patience = patience_now(p);
	if (p->late && patience)
		read_user(p, q);
	bool is_asked = patience && may_ask(p, q) && has_thread(p), is_given_up = false;
	if (is_asked) {
		p->request = q;
		pthread_cond_signal(&p->asked);
	}
	if (is_asked && !wait_for(p, q, clock_monotonic_ns() + patience)) {
		p->vain_ns += patience;
		is_given_up = give_up(p, q);
	}
	if (!is_given_up) {
		answer = STEAL_PTR(q->answer);
		request_free(q);
	}
	lock_release(&p->lock);
	return answer;
}

struct procread_answer *procread_ask(struct procread *p, const struct procread_wish *wish)
{
	/* Of the programs that a host starts most live for milliseconds; a thread costs more. */
	if (!procfs_exists(wish->pid))
		return calloc(1, sizeof(struct procread_answer));
	return ask(p, wish);
}

/* ---- life ---- */

enum status procread_new(
	int64_t patience_ns, struct str variables, struct procread **out, struct err *e)
{
	struct procread *p = calloc(1, sizeof(*p));
	char *copy = malloc(variables.len + 1);
	if (!p || !copy) {
		free(p);
		free(copy);
		return err_set(e, E_NOMEM, "procread");
	}
	p->patience_ns = patience_ns ? patience_ns : PROCREAD_PATIENCE_NS;
	memcpy(copy, variables.len ? variables.p : "", variables.len);
	p->variables = str_make(copy, variables.len);
	lock_init(&p->lock, LOCK_PROCREAD);
	pthread_cond_init(&p->asked, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = p;
	return OK;
}

void procread_free(struct procread *p)
{
	if (!p)
		return;
	lock_take(&p->lock);
	p->is_over = true;
	pthread_cond_broadcast(&p->asked);
	bool is_last = p->threads == 0;
	lock_release(&p->lock);
	if (is_last)
		destroy(p);
}
