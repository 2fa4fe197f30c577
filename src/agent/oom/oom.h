/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom: the heaps of Go programs that the kernel ends for want of memory (--enable-oom-prof).
 * Private to agent/.
 *
 * The program in the kernel (bpf/oom.bpf.c) looks at each signal that is delivered, and reads a
 * victim's heap as it ends. It knows the Go programs that oom_know() was told of. Without the flag
 * nothing of this is loaded.
 *
 * Thread safety: oom_know() from any thread, the rest from the poll thread's; metrics from any.
 */
#pragma once

#include "agent/oom/oomheap.h"
#include "agent/process/process.h"
#include "agent/sample/sample.h"
#include "base/metrics.h"

/* Go executables that are known. If there are more, the one that was seen least recently is
 * forgotten. */
#define OOM_CONTENTS_MAX 1024
/* Bytes that the places of all their functions take. */
#define OOM_CONTENTS_BYTES_MAX ((uint64_t)32 << 20)
/* Victims whose buckets are being received. */
#define OOM_HEAPS_MAX 16
/* A victim of which nothing has come for so long ended before its heap was read. */
#define OOM_PATIENCE_NS (2 * NS_PER_SEC)
/* The agent's own score, as parca-agent's: the kernel ends other programs first, so that their
 * heaps can be sent. */
#define OOM_SCORE_ADJ "-100"

#define OOM_METRICS(X)                                                                           \
	X(programs, GAUGE, "firn_agent_oom_programs", "Go executables whose heaps can be read.") \
	X(stripped, GAUGE, "firn_agent_oom_programs_stripped",                                   \
		"Go executables without a symbol table: their heaps cannot be read.")            \
	X(refused, COUNTER, "firn_agent_oom_programs_refused_total",                             \
		"Go executables that are damaged, or too many.")                                 \
	X(profiles, COUNTER, "firn_agent_oom_profiles_total", "Heaps of victims sent.")          \
	X(partial, COUNTER, "firn_agent_oom_profiles_partial_total",                             \
		"Of these, heaps of which a part is missing.")                                   \
	X(samples, COUNTER, "firn_agent_oom_samples_total", "Samples put into their messages.")  \
	X(dropped, COUNTER, "firn_agent_oom_profiles_dropped_total",                             \
		"Heaps that a relabelling rule wants none of.")                                  \
	X(heaps_lost, COUNTER, "firn_agent_oom_profiles_lost_total",                             \
		"Heaps lost: too many victims at a time, or no memory.")                         \
	X(buckets_lost, COUNTER, "firn_agent_oom_buckets_unused_total",                          \
		"Buckets that came, and are in no message.")
struct oom_metrics {
	OOM_METRICS(METRIC_FIELD)
};

struct oom;

struct oom_config {
	bool allocs;
	struct processes *processes;
	void (*emit)(void *ctx, struct buf *message, uint32_t sample_count);
	void *ctx;
};

/* Needs the privileges of sampler_open(); its events come in the sampler's ring. `e` says why it
 * fails. */
NODISCARD enum status oom_open(
	struct sampler *sampler, bool allocs, struct oom **out, struct err *e);
/* Before the first sampler_poll(). */
void oom_configure(struct oom *o, const struct oom_config *c);
/* After the sampler. NULL is fine. */
void oom_close(struct oom *o);
/* To be called for each new executable. If it is a Go program, it is remembered where its heap is.
 */
void oom_know(struct oom *o, const struct file_key *key, const struct objfile *obj,
	const char *build_id, const char *path);
/* To be called now and then. Sends heaps that are complete, or that will not become so. */
void oom_tick(struct oom *o, int64_t now_ns);
/* To be called at the end. Sends all heaps as they are. */
void oom_finish(struct oom *o);
const struct oom_metrics *oom_metrics(const struct oom *o);
/* Of the programs in the kernel. */
void oom_read_counters(const struct oom *o, struct oom_counters *out);
/* Instructions that the kernel's verifier went through; 0: it does not say (5.16). */
uint32_t oom_verified_insns(const struct oom *o);
/* Kernel memory of its maps and programs. NULL: none. */
uint64_t oom_kernel_bytes(const struct oom *o);
void oom_write_metrics(const struct oom *o, struct buf *out);
/* Makes the kernel end other programs before the agent, if it allows that. */
void oom_protect(void);
