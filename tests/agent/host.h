/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: the agent without its output: sampler, files and deferred samples work together as in
 * agent.c, and each sample is counted when it is as whole as it gets. Include once, after test.h.
 */
#pragma once

#include "agent/files/files.h"
#include "agent/sample/deferred.h"
#include "agent/sample/sampler.h"
#include "base/clock.h"

/* On a busy machine it takes its time. */
#define HOST_PRELOAD_NS (120 * NS_PER_SEC)

struct host {
	struct sampler *sampler;
	struct files *files;
	struct deferred *deferred;
	void *ctx;
	void (*count)(void *ctx, const struct event_sample *s);
	void (*process)(void *ctx, const struct event_process *p); /* NULL: not asked for */
};

static inline void host_count(void *ctx, const struct event_sample *s)
{
	struct host *h = ctx;
	h->count(h->ctx, s);
}

static inline void host_on_sample(void *ctx, const struct event_sample *s)
{
	struct host *h = ctx;
	if (s->notice.key.inode)
		files_notice(h->files, &s->notice, (int)s->h.pid);
	if (!deferred_add(h->deferred, s, clock_monotonic_ns()))
		host_count(h, s);
}

static inline void host_on_stack(void *ctx, const struct event_stack *s)
{
	struct host *h = ctx;
	for (uint32_t i = 0; i < s->mapping_count; i++) {
		const struct stack_mapping *m = &s->mappings[i];
		const struct file_notice n = { m->key, m->start, m->end, m->offset };
		if (m->key.inode && files_find(h->files, &m->key) == 0)
			files_notice(h->files, &n, (int)s->h.pid);
	}
	deferred_stack(h->deferred, s);
}

static inline void host_on_process(void *ctx, const struct event_process *p)
{
	struct host *h = ctx;
	if (h->process)
		h->process(h->ctx, p);
	if (p->h.type == EVENT_EXEC && p->notice.key.inode)
		files_notice(h->files, &p->notice, (int)p->h.pid);
}

static inline enum deferred_file host_find(void *ctx, const struct file_key *key, uint64_t offset,
	uint32_t *out_id, struct unwind_rule *out)
{
	struct host *h = ctx;
	enum files_state state = FILES_KNOWN;
	*out_id = FRAME_FILE_VDSO;
	if (key->inode)
		state = files_look_up(h->files, key, out_id);
	if (state == FILES_KNOWN && sampler_find_rule(h->sampler, key, offset, out))
		return DEFERRED_KNOWN;
	return state == FILES_FAILED ? DEFERRED_NEVER : DEFERRED_NOT_YET;
}

/* `count` and `ctx` are set. */
static inline void host_begin(struct host *h, uint32_t frequency_hz)
{
	struct err e = { 0 };
	const struct sampler_config config = { .frequency_hz = frequency_hz,
		.table_bytes_max = 64u << 20 };
	const struct sampler_events events = { h, host_on_sample, host_on_process, host_on_stack };
	const struct deferred_config deferred = { host_find, host_count, h };
	CHECK_OK(deferred_new(&deferred, &h->deferred, &e), &e);
	CHECK_OK(sampler_open(&config, &events, &h->sampler, &e), &e);
	CHECK_OK(files_new(&(struct files_config){ 0 }, h->sampler, &h->files, &e), &e);
	CHECK_OK(files_preload(h->files, HOST_PRELOAD_NS, &e), &e);
	CHECK_OK(sampler_start(h->sampler, &e), &e);
}

static inline void host_poll(struct host *h, bool is_end)
{
	struct err e = { 0 };
	CHECK_OK(sampler_poll(h->sampler, is_end ? 0 : 50, &e), &e);
	deferred_run(h->deferred, clock_monotonic_ns(), is_end);
	sampler_rest(h->sampler);
}

/* Samples that could not be finished, of any process: counted losses. */
static inline uint64_t host_not_copied(const struct host *h)
{
	struct sampler_stats s;
	sampler_read_stats(h->sampler, &s);
	return s.bpf.stacks_lost + s.bpf.stacks_refused +
	       metric_get(&deferred_metrics(h->deferred)->refused);
}

static inline void host_end(struct host *h)
{
	files_free(h->files);
	sampler_close(h->sampler);
	deferred_free(h->deferred);
}
