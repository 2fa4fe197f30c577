/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred: keeps samples whose walk ended in an unknown file, with a copy of their stack, until
 * the file is known; then it finishes their walk by the same tables. Private to agent/. Not thread
 * safe: used by the poll thread.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"

/* Samples that may wait: as many as are taken while one waits, and at least DEFERRED_LEAST. A stack
 * has up to 148 KiB and is kept compressed. Their bytes are limited to a part of the host's memory,
 * between two bounds. Samples beyond that are delivered unfinished, and counted. */
#define DEFERRED_LEAST 256
#define DEFERRED_BYTES_LEAST ((uint64_t)64 << 20)
#define DEFERRED_BYTES_MAX ((uint64_t)512 << 20)
#define DEFERRED_HOST_PARTS 128
/* How long a sample waits for its file. */
#define DEFERRED_WAIT_NS (10 * NS_PER_SEC)
#define DEFERRED_RECORDING_WAIT_NS (60 * NS_PER_SEC)

enum deferred_file {
	DEFERRED_KNOWN,   /* id and rule are given */
	DEFERRED_NO_ROOM, /* the id is given; the file's table had no room */
	DEFERRED_NOT_YET, /* the file may be known later */
	DEFERRED_NEVER,
};

struct deferred_config {
	/* Finds the rule of a file at an offset; key.inode 0: the vDSO. */
	enum deferred_file (*find)(void *ctx, const struct file_key *key, uint64_t offset,
		uint32_t *out_file_id, struct unwind_rule *out_rule);
	void (*emit)(void *ctx, const struct event_sample *s);
	void *ctx;
	uint32_t frequency_hz; /* the most samples a second of all CPUs */
	uint64_t bytes_max;    /* below DEFERRED_BYTES_MAX; 0: DEFERRED_BYTES_MAX */
	int64_t wait_ns;       /* 0: DEFERRED_WAIT_NS */
};
/* What bytes_max should be on a host with `host_bytes` of memory, of which the agent may have
 * `limit_bytes` (0: as much as it needs). */
uint64_t deferred_bytes(uint64_t host_bytes, uint64_t limit_bytes);

#define DEFERRED_METRICS(X)                                                           \
	X(taken, COUNTER, "firn_agent_deferred_samples_total",                        \
		"Samples kept to be finished when their file is known.")              \
	X(whole, COUNTER, "firn_agent_deferred_whole_total",                          \
		"Deferred samples that became whole.")                                \
	X(longer, COUNTER, "firn_agent_deferred_longer_total",                        \
		"Deferred samples that became longer, and not whole.")                \
	X(expired, COUNTER, "firn_agent_deferred_expired_total",                      \
		"Deferred samples whose file did not become known in time.")          \
	X(refused, COUNTER, "firn_agent_deferred_refused_total",                      \
		"Samples not deferred: too many were waiting, or no memory.")         \
	X(waiting, GAUGE, "firn_agent_deferred_waiting", "Deferred samples waiting.") \
	X(bytes, GAUGE, "firn_agent_deferred_bytes",                                  \
		"Memory of deferred samples waiting, compressed.")
struct deferred_metrics {
	DEFERRED_METRICS(METRIC_FIELD)
};

struct deferred;

NODISCARD enum status deferred_new(
	const struct deferred_config *c, struct deferred **out, struct err *e);
void deferred_free(struct deferred *d);
/* Takes the stack of the next sample from its CPU. Copied. */
void deferred_stack(struct deferred *d, const struct event_stack *stack);
/* True: the sample is kept, and will be emitted. False: it need not or cannot wait; the caller
 * delivers it.
 */
bool deferred_add(struct deferred *d, const struct event_sample *s, int64_t now_ns);
/* Finishes the samples that can be finished; all of them if `all`. */
void deferred_run(struct deferred *d, int64_t now_ns, bool all);
const struct deferred_metrics *deferred_metrics(const struct deferred *d);
void deferred_write_metrics(const struct deferred *d, struct buf *out);
