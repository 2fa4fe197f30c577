/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process: the known facts about each sampled process, by pid and start time, so that a reused pid
 * is another process. Private to agent/. Not thread safe: the poll thread's.
 *
 * /proc is read for a process at its first sample or soon after exec, again when its labels are
 * old, and believed only if its start time agrees afterwards. When more becomes known of its
 * container, it is labelled anew. A process that is dead by then keeps what the kernel's event
 * said: its name, and its control group by id.
 */
#pragma once

#include "agent/process/metadata.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"

/* Processes remembered at a time; the longest unused go first. */
#define PROCESSES_MAX 32768
/* Bytes of all their texts; at the limit everything is forgotten and read again. */
#define PROCESS_TEXT_BYTES_MAX ((size_t)8 << 20)

struct process {
	uint32_t pid;
	uint32_t ppid;           /* 0 when not known */
	uint64_t start_ns;       /* boot time clock */
	struct str comm;         /* of the main thread */
	struct str executable;   /* base name; of a process that died unseen: its comm */
	struct str cgroup;       /* path, "" when not known */
	struct str container_id; /* "" when in none */
	/* Labels of its samples, but for those of threads and CPUs. */
	struct relabel_label *labels;
	uint32_t label_count;
	bool dropped; /* the rules want none of its samples */
};

#define PROCESS_METRICS(X)                                                                     \
	X(known, GAUGE, "firn_agent_processes", "Processes remembered.")                       \
	X(read, COUNTER, "firn_agent_processes_read_total", "Processes looked up in /proc.")   \
	X(relabelled, COUNTER, "firn_agent_processes_relabelled_total",                        \
		"Processes labelled anew, since more is known of their container.")            \
	X(gone, COUNTER, "firn_agent_processes_gone_total",                                    \
		"Processes that had died before /proc was read: labels from the event alone.") \
	X(late, COUNTER, "firn_agent_processes_late_total",                                    \
		"Processes that /proc did not tell of in time: named by the event, and asked " \
		"for again.")                                                                  \
	X(evicted, COUNTER, "firn_agent_processes_evicted_total", "Forgotten for room.")       \
	X(contexts_bad, COUNTER, "firn_agent_process_contexts_malformed_total",                \
		"Process contexts that cannot be read: malformed.")                            \
	X(cgroup_unknown, COUNTER, "firn_agent_cgroups_unknown_total",                         \
		"Control groups that were gone before their path was read.")
struct process_metrics {
	PROCESS_METRICS(METRIC_FIELD)
};

struct processes;

struct processes_config {
	struct metadata *metadata;     /* gives the labels */
	struct containers *containers; /* knows containers; NULL: only their paths are known */
	/* /proc is read again for the labels of a process when they are as old; 0: never. */
	int64_t label_ttl_ns;
	/* How long /proc is waited for; 0: PROCREAD_PATIENCE_NS. */
	int64_t patience_ns;
};

/* All that `c` points to stays the caller's. */
NODISCARD enum status processes_new(
	const struct processes_config *c, struct processes **out, struct err *e);
void processes_free(struct processes *p);
/* The process of an event (sample or exec), looked up or read now. NULL: out of memory. Valid until
 * the next call; its texts until the next processes_tick(). */
const struct process *processes_find(struct processes *p, const struct event_header *h);
/* It executes another program now: comm and executable are read again, with its next sample or by
 * processes_settle(). */
void processes_exec(struct processes *p, const struct event_header *h);
/* To be called when all pending events have been handled. Reads /proc for processes that began
 * another program and have not ended. */
void processes_settle(struct processes *p);
/* Its last thread ended: forgotten soon. */
void processes_exit(struct processes *p, const struct event_header *h);
/* Calls `fn` for at most `most` processes that the caller should look at. They had samples in this
 * interval or the last. The same process comes again after a while, and then each time after twice
 * as long, up to PROCESSES_LOOK_TICKS_MAX intervals. */
typedef void processes_look_fn(void *ctx, uint32_t pid, uint64_t start_ns);
void processes_look(struct processes *p, uint32_t most, processes_look_fn *fn, void *ctx);
#define PROCESSES_LOOK_TICKS_MAX 128
/* Does a look at the process still hold? False: it has ended since, or runs another program. */
NODISCARD bool processes_look_holds(struct processes *p, uint32_t pid, uint64_t start_ns);
/* Sets the context that the process publishes, as otlp_decode_process_context() reads it; "": none.
 * Its labels change from then on. */
void processes_set_context(
	struct processes *p, uint32_t pid, uint64_t start_ns, struct str context);
/* Once an interval: forgets the dead and the unused. */
void processes_tick(struct processes *p);
/* Notices of execve() may have been lost: /proc is read again with each process' next sample. */
void processes_doubt(struct processes *p);
/* The rules changed: all are read and labelled again. */
void processes_forget(struct processes *p);
const struct process_metrics *processes_metrics(const struct processes *p);
void processes_write_metrics(const struct processes *p, struct buf *out);
