/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts: looks for the contexts that processes publish. It has a thread of its own, since a
 * process whose files or memory map do not answer makes it wait (BROKER_PATIENCE_NS). Private to
 * agent/. One caller's: the poll thread's.
 */
#pragma once

#include "agent/files/thread_contexts.h"
#include "base/buf.h"
#include "base/metrics.h"

/* Processes that are asked for and not answered yet. */
#define CONTEXTS_ASKED_MAX 16

struct contexts_answer {
	uint32_t pid;
	struct thread_context_place place; /* form THREAD_CONTEXT_NONE: it has no variable */
	bool is_known; /* false: its context cannot be read now; it may have ended */
	uint32_t bytes;
	char context[]; /* of them: its process context; 0: it has none */
};

#define CONTEXTS_METRICS(X)                                                                    \
	X(looks, COUNTER, "firn_agent_context_looks_total",                                    \
		"Processes looked at for a trace context or a process context.")               \
	X(failed, COUNTER, "firn_agent_context_failures_total",                                \
		"Process contexts that were too large, of another version, or being changed.") \
	X(waiting, GAUGE, "firn_agent_context_looks_waiting", "Processes still to be looked at.")
struct contexts_metrics {
	CONTEXTS_METRICS(METRIC_FIELD)
};

struct contexts;

NODISCARD enum status contexts_new(struct contexts **out, struct err *e);
/* After broker_hang_up(): the thread may wait for the broker. */
void contexts_free(struct contexts *c);
/* How many processes may be asked for now. */
uint32_t contexts_room(const struct contexts *c);
/* False: there is no room, or no memory. */
NODISCARD bool contexts_ask(struct contexts *c, uint32_t pid, uint64_t start_ns);
/* The next answer, to be freed by the caller; NULL: there is none now. */
struct contexts_answer *contexts_take(struct contexts *c);
void contexts_write_metrics(const struct contexts *c, struct buf *out);
