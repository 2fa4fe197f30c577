/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomheap: the heap of one victim, bucket by bucket, as OTLP messages. Private to agent/. Not
 * thread safe: the poll thread's.
 *
 * Types: memory:inuse_objects:count:space:bytes and memory:inuse_space:bytes:space:bytes, and with
 * `allocs` alloc_objects and alloc_space likewise: gauges, of the moment of the end. Values are
 * scaled as Go's own profiles scale them: a sample stands for all that were likely to be passed
 * over. The period is the rate that the program sampled with.
 */
#pragma once

#include "agent/bpf/oom_shared.h"
#include "agent/oom/oomprogram.h"
#include "base/buf.h"
#include "relabel/relabel.h"

/* Go's sampling rate unless the program sets another. */
#define OOMHEAP_RATE_BYTES 524288

struct oomheap_config {
	bool allocs;
	const struct oomprogram *program; /* stays the caller's */
	const char *build_id;
	const char *path;
	const struct oom_begin *begin;
	const struct relabel_label *labels; /* of the process */
	uint32_t label_count;
	int64_t time_ns; /* realtime */
	/* Takes the bytes over (buf_steal). */
	void (*emit)(void *ctx, struct buf *message, uint32_t sample_count);
	void *ctx;
};

struct oomheap;

/* All but the program is copied. */
NODISCARD enum status oomheap_new(
	const struct oomheap_config *c, struct oomheap **out, struct err *e);
void oomheap_free(struct oomheap *h); /* NULL is fine */
/* May emit a message. Not OK: the bucket is lost. */
NODISCARD enum status oomheap_add(struct oomheap *h, const struct oom_bucket *b);
/* Emits the rest. Not OK: *out_lost samples are lost. */
NODISCARD enum status oomheap_finish(struct oomheap *h, uint32_t *out_lost);
/* Scales the sampled count and bytes to the estimated true ones. */
void oomheap_scale(uint64_t rate, uint64_t *count, uint64_t *bytes);
