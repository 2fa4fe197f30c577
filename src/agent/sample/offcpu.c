/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stay off the CPU is identified by its thread and by when it began. It has its sample, or (if
 * the sample is still being finished elsewhere) its end; once it has both, it is emitted and
 * removed.
 *
 * Threads of a pool wait in the same place, so stacks are kept once, by their content, and counted.
 */
#include "agent/sample/offcpu.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

struct stack {
	uint64_t hash;
	uint32_t users; /* 0: free */
	uint32_t count; /* of frames */
	uint64_t *frames;
};

#define NO_STACK UINT32_MAX

struct stay {
	bool used;
	uint32_t tid;
	uint32_t stack; /* NO_STACK: the sample has not come yet */
	int64_t left_ns;
	int64_t told_ns;    /* up to this time pieces were emitted */
	int64_t resumed_ns; /* 0: the thread is still away */
	double probability; /* the probability with which it was sampled */
	struct event_sample sample;
};

struct offcpu {
	struct offcpu_config config;
	VEC(struct stay) stays;
	VEC(uint32_t) free_stays;
	struct map stay_index;
	VEC(struct stack) stacks;
	VEC(uint32_t) free_stacks;
	struct map stack_index;
	size_t stack_bytes;
	uint64_t resumed_lost;
	double probability, probability_before;
	int64_t probability_since_ns;
	struct event_sample *out; /* room for the longest one */
	struct offcpu_metrics metrics;
};

static const struct metric_def metric_defs[] = { OFFCPU_METRICS(METRIC_DEF) };

/* ---- stacks ---- */

struct stack_key {
	uint32_t count;
	const void *frames;
};

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct offcpu *o = ctx;
	const struct stack *s = &o->stacks.v[value];
	const struct stack_key *k = key;
	return s->count == k->count &&
	       (k->count == 0 || memcmp(s->frames, k->frames, k->count * sizeof(uint64_t)) == 0);
}

/* The index of an unused element from `free_list`, or of a new one at the end of the table. */
#define TAKE_INDEX(free_list, table) \
	((free_list)->len ? (free_list)->v[--(free_list)->len] : (uint32_t)(table)->len)

/* Returns the index of the stack. NO_STACK: there is no room. */
static uint32_t stack_take(struct offcpu *o, const void *frames, uint32_t count)
{
	const struct stack_key key = { count, frames };
	size_t bytes = count * sizeof(uint64_t);
	uint64_t hash = hash64(frames, bytes);
	uint32_t at = map_find(&o->stack_index, hash, stack_equal, o, &key);
	if (at != MAP_NONE) {
		o->stacks.v[at].users++;
		return at;
	}
	struct stack s = { .hash = hash, .users = 1, .count = count };
	/* Room is reserved now, so that giving back needs no memory. */
	if (o->stack_bytes + bytes > OFFCPU_STACK_BYTES_MAX ||
		!VEC_RESERVE(&o->stacks, o->stacks.len + 1) ||
		!VEC_RESERVE(&o->free_stacks, o->stacks.len + 1))
		return NO_STACK;
	s.frames = malloc(bytes ? bytes : 1);
	if (!s.frames)
		return NO_STACK;
	at = TAKE_INDEX(&o->free_stacks, &o->stacks);
	if (!map_insert(&o->stack_index, hash, at)) {
		free(s.frames);
		if (at < o->stacks.len)
			o->free_stacks.v[o->free_stacks.len++] = at;
		return NO_STACK;
	}
	memcpy(s.frames, frames, bytes);
	if (at == o->stacks.len)
		o->stacks.len++;
	o->stacks.v[at] = s;
	o->stack_bytes += bytes;
	return at;
}

static void stack_release(struct offcpu *o, uint32_t at)
{
	struct stack *s = &o->stacks.v[at];
	assert(s->users > 0);
	if (--s->users)
		return;
	(void)map_remove(&o->stack_index, s->hash, at);
	o->stack_bytes -= s->count * sizeof(uint64_t);
	free(s->frames);
	s->frames = NULL;
	o->free_stacks.v[o->free_stacks.len++] = at;
}

/* ---- stays ---- */

static bool stay_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct offcpu *o = ctx;
	const struct stay *s = &o->stays.v[value], *k = key;
	return s->tid == k->tid && s->left_ns == k->left_ns;
}

static uint64_t stay_hash(uint32_t tid, int64_t left_ns)
{
	return hash_u64((uint64_t)left_ns ^ (uint64_t)tid << 40);
}

/* The stay of this thread and time: the known one, or else a new one. NULL: no room. */
static struct stay *stay_get(struct offcpu *o, uint32_t tid, int64_t left_ns)
{
	struct stay new = {
		.used = true, .tid = tid, .stack = NO_STACK, .left_ns = left_ns, .told_ns = left_ns
	};
	uint64_t hash = stay_hash(tid, left_ns);
	uint32_t at = map_find(&o->stay_index, hash, stay_equal, o, &new);
	if (at != MAP_NONE)
		return &o->stays.v[at];
	uint64_t count = o->stays.len - o->free_stays.len;
	if (count >= OFFCPU_THREADS_MAX || !VEC_RESERVE(&o->stays, o->stays.len + 1) ||
		!VEC_RESERVE(&o->free_stays, o->stays.len + 1))
		return NULL;
	at = TAKE_INDEX(&o->free_stays, &o->stays);
	if (!map_insert(&o->stay_index, hash, at)) {
		if (at < o->stays.len)
			o->free_stays.v[o->free_stays.len++] = at;
		return NULL;
	}
	if (at == o->stays.len)
		o->stays.len++;
	o->stays.v[at] = new;
	metric_set(&o->metrics.waiting, count + 1);
	return &o->stays.v[at];
}

static void stay_end(struct offcpu *o, struct stay *s)
{
	uint32_t at = (uint32_t)(s - o->stays.v);
	(void)map_remove(&o->stay_index, stay_hash(s->tid, s->left_ns), at);
	if (s->stack != NO_STACK)
		stack_release(o, s->stack);
	s->used = false;
	o->free_stays.v[o->free_stays.len++] = at;
	metric_set(&o->metrics.waiting, o->stays.len - o->free_stays.len);
}

/* The time of all stays that one sampled stay stands for. */
static int64_t weighted(double probability, int64_t away_ns)
{
	return probability > 0 && probability < 1 ? (int64_t)((double)away_ns / probability)
						  : away_ns;
}

/* Emits the time of the stay up to `until_ns` that was not emitted yet. */
static void stay_emit(struct offcpu *o, struct stay *s, int64_t until_ns)
{
	const struct stack *stack = &o->stacks.v[s->stack];
	*o->out = s->sample;
	o->out->h.time_ns = (uint64_t)until_ns;
	memcpy(o->out->frames, stack->frames, stack->count * sizeof(uint64_t));
	int64_t away_ns = until_ns - s->told_ns;
	s->told_ns = until_ns;
	if (away_ns > 0)
		o->config.emit(o->config.ctx, o->out, weighted(s->probability, away_ns));
}

/* To be called when a stay has both its sample and its end. */
static void stay_finish(struct offcpu *o, struct stay *s)
{
	if (s->resumed_ns - s->left_ns < o->config.min_ns) {
		metric_add(&o->metrics.too_short, 1);
	} else {
		metric_add(&o->metrics.stays, 1);
		stay_emit(o, s, s->resumed_ns);
	}
	stay_end(o, s);
}

void offcpu_left(struct offcpu *o, const struct event_sample *sample)
{
	struct stay *s = stay_get(o, sample->h.tid, (int64_t)sample->h.time_ns);
	uint32_t count = (uint32_t)sample->kernel_count + sample->user_count;
	uint32_t stack =
		s && s->stack == NO_STACK ? stack_take(o, sample->frames, count) : NO_STACK;
	if (stack == NO_STACK) {
		metric_add(&o->metrics.lost, 1);
		if (s && s->stack == NO_STACK)
			stay_end(o, s);
		return;
	}
	s->sample = *sample;
	s->probability =
		s->left_ns < o->probability_since_ns ? o->probability_before : o->probability;
	s->stack = stack;
	if (s->resumed_ns)
		stay_finish(o, s);
}

void offcpu_set_probability(struct offcpu *o, double probability, int64_t since_ns)
{
	o->probability_before = o->probability;
	o->probability = probability;
	o->probability_since_ns = since_ns;
}

void offcpu_resume(struct offcpu *o, const struct event_resume *r)
{
	struct stay *s = stay_get(o, r->tid, (int64_t)r->left_ns);
	if (!s) /* the sample is counted when it comes, or was counted before */
		return;
	s->resumed_ns = MAX((int64_t)r->time_ns, s->told_ns);
	if (s->stack != NO_STACK)
		stay_finish(o, s);
}

void offcpu_tick(struct offcpu *o, int64_t now_ns, uint64_t resumed_lost)
{
	bool forget = resumed_lost != o->resumed_lost;
	o->resumed_lost = resumed_lost;
	for (size_t i = 0; i < o->stays.len; i++) {
		struct stay *s = &o->stays.v[i];
		if (!s->used)
			continue;
		if (s->stack == NO_STACK) {
			/* The sample was lost elsewhere, and counted there. */
			if (now_ns - s->resumed_ns > OFFCPU_WAIT_NS)
				stay_end(o, s);
		} else if (forget) {
			metric_add(&o->metrics.lost, 1);
			stay_end(o, s);
		} else if (now_ns - s->told_ns >= MAX(OFFCPU_PIECE_NS, o->config.min_ns)) {
			metric_add(&o->metrics.pieces, 1);
			stay_emit(o, s, now_ns);
		}
	}
}

void offcpu_finish(struct offcpu *o, int64_t now_ns)
{
	for (size_t i = 0; i < o->stays.len; i++) {
		struct stay *s = &o->stays.v[i];
		if (!s->used)
			continue;
		if (s->stack != NO_STACK) {
			s->resumed_ns = MAX(now_ns, s->told_ns);
			stay_finish(o, s);
		} else {
			stay_end(o, s);
		}
	}
}

/* ---- life ---- */

enum status offcpu_new(const struct offcpu_config *c, struct offcpu **out, struct err *e)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	if (o)
		o->out = calloc(
			1, sizeof(*o->out) + (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX) *
						     sizeof(uint64_t));
	if (!o || !o->out) {
		offcpu_free(o);
		return err_set(e, E_NOMEM, "off-CPU samples");
	}
	o->config = *c;
	o->probability = o->probability_before = c->probability;
	*out = o;
	return OK;
}

void offcpu_free(struct offcpu *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->stacks.len; i++)
		free(o->stacks.v[i].frames);
	VEC_FREE(&o->stays);
	VEC_FREE(&o->free_stays);
	VEC_FREE(&o->stacks);
	VEC_FREE(&o->free_stacks);
	map_deinit(&o->stay_index);
	map_deinit(&o->stack_index);
	free(o->out);
	free(o);
}

const struct offcpu_metrics *offcpu_metrics(const struct offcpu *o)
{
	return &o->metrics;
}

void offcpu_write_metrics(const struct offcpu *o, struct buf *out)
{
	metrics_write(
		out, metric_defs, (const metric_value *)&o->metrics, ARRAY_COUNT(metric_defs));
}
