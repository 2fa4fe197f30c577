/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offcpu: measures how long threads were off their CPUs. It keeps the sample that was taken when a
 * thread left its CPU until the thread runs again, and then emits it with the time in between.
 * Private to agent/. Not thread safe: used by the poll thread.
 *
 * For a thread that stays away, the time since the last piece is emitted as a piece once a minute,
 * and at the end.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"

/* Threads that are away, and bytes of their stacks (each stack once). Samples beyond that are lost.
 */
#define OFFCPU_THREADS_MAX 32768
#define OFFCPU_STACK_BYTES_MAX ((size_t)16 << 20)
#define OFFCPU_PIECE_NS (60 * NS_PER_SEC)
/* How long the end of a stay waits for its sample, which may be a deferred one. */
#define OFFCPU_WAIT_NS (20 * NS_PER_SEC)

struct offcpu_config {
	int64_t min_ns;     /* shorter stays are left out */
	double probability; /* of sampling a thread that leaves its CPU, at first */
	/* `s->h.time_ns` is the end of the stay, or of the piece; `away_ns` is the time that it
	 * stands for: its length divided by the probability with which it was sampled. */
	void (*emit)(void *ctx, const struct event_sample *s, int64_t away_ns);
	void *ctx;
};

#define OFFCPU_METRICS(X)                                                                     \
	X(stays, COUNTER, "firn_agent_off_cpu_stays_total",                                   \
		"Threads that were sampled when they left a CPU, and ran again.")             \
	X(pieces, COUNTER, "firn_agent_off_cpu_pieces_total",                                 \
		"Pieces of stays that were not over yet.")                                    \
	X(too_short, COUNTER, "firn_agent_off_cpu_short_total",                               \
		"Stays that were shorter than what is asked for.")                            \
	X(lost, COUNTER, "firn_agent_off_cpu_lost_total",                                     \
		"Samples lost: too many threads were away, or the end of their stay was not " \
		"told.")                                                                      \
	X(waiting, GAUGE, "firn_agent_off_cpu_threads", "Threads that are away.")
struct offcpu_metrics {
	OFFCPU_METRICS(METRIC_FIELD)
};

struct offcpu;

NODISCARD enum status offcpu_new(const struct offcpu_config *c, struct offcpu **out, struct err *e);
void offcpu_free(struct offcpu *o);
/* Threads that leave from `since_ns` (as event_header.time_ns) on are sampled with this
 * probability. The previous probability is remembered, older ones are not. */
void offcpu_set_probability(struct offcpu *o, double probability, int64_t since_ns);
/* A thread left its CPU (event_state() is not ON_CPU). Copied. May emit. */
void offcpu_left(struct offcpu *o, const struct event_sample *s);
/* A thread runs again. May come before its sample. May emit. */
void offcpu_resume(struct offcpu *o, const struct event_resume *r);
/* To be called now and then: emits pieces of long stays. `resumed_lost`: how many ends of stays
 * were lost so far. When it grew, all threads that are off their CPUs are forgotten, since any of
 * them may be running. */
void offcpu_tick(struct offcpu *o, int64_t now_ns, uint64_t resumed_lost);
/* To be called at the end: emits the remaining stays, up to now. */
void offcpu_finish(struct offcpu *o, int64_t now_ns);
const struct offcpu_metrics *offcpu_metrics(const struct offcpu *o);
void offcpu_write_metrics(const struct offcpu *o, struct buf *out);
