/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: the samples of one interval, with their labels, as OTLP messages. Private to agent/. Not
 * thread safe: the poll thread's.
 *
 * Labels: those of the process (metadata.h) are the resource's; pid, thread_id, thread_name and cpu
 * the sample's own. Frames of files become ELF virtual addresses in a build id, kernel frames carry
 * their name already. A user stack that is not whole ends at its root side in a marker frame that
 * says why, so that what is missing is seen.
 *
 * Types: parca_agent:samples:count:cpu:nanoseconds:delta, a sample each; and
 * parca_agent:wallclock:nanoseconds:samples:count:delta, time off the CPU, with the label `state`
 * (shared.h). If only a share of the switches is sampled, each sample is scaled up accordingly.
 * With `wall_clock` the samples of the CPU are in the second type too, as time with state="on-cpu".
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/files/files.h"
#include "agent/names/names.h"
#include "agent/process/process.h"
#include "agent/send/runtimes_met.h"
#include "base/buf.h"

/* A batch is sent when it holds so many samples, or about so many bytes, even if the interval is
 * not over: other servers of OTLP take 4 MiB at most. */
#define BATCH_SAMPLES_MAX 20000
#define BATCH_BYTES_SOFT ((size_t)3 << 20)
/* Bytes of one message, at most. */
#define BATCH_MESSAGE_BYTES_MAX ((size_t)16 << 20)

/* clang-format off */
#define BATCH_METRICS(X)                                                                  \
	X(samples, COUNTER, "firn_agent_samples_total", "Samples put into batches.")      \
	X(off_cpu, COUNTER, "firn_agent_off_cpu_samples_total",                           \
		"Of these, stays off a CPU and pieces of such.")                          \
	X(unnamed_kernel, COUNTER, "firn_agent_kernel_frames_unnamed_total",              \
		"Kernel addresses without a symbol.")                                     \
	X(messages, COUNTER, "firn_agent_messages_total", "OTLP messages made.")          \
	X(message_bytes, COUNTER, "firn_agent_message_bytes_total", "Their bytes.")       \
	X(labels_left_out, COUNTER, "firn_agent_goroutine_labels_left_out_total",         \
		"Labels of goroutines that have too many values.")                        \
	X(clock_steps, COUNTER, "firn_agent_clock_steps_total",                           \
		"Times that the wall clock was set, or the host had slept.")
/* clang-format on */
struct batch_metrics {
	BATCH_METRICS(METRIC_FIELD)
	metric_value lost;    /* samples; written by agent.c with the other losses */
	metric_value dropped; /* samples, by a relabelling rule; likewise */
	metric_value stack_end[STACK_END_COUNT];
};

struct batch_config {
	bool no_thread_id, no_thread_name, no_cpu; /* labels that are left out */
	uint32_t frequency_hz;
	bool wall_clock;
	/* Native frames in an interpreter's own file that lead to a frame of its language stay. */
	bool keep_interpreters;
	struct files *files;
	struct kallsyms *kallsyms; /* NULL: kernel frames are "[kernel]+0x…" */
	struct codes *codes;       /* NULL: there are no frames of runtimes */
	struct processes *processes;
	struct jitnames *jitnames; /* NULL: JIT code is addresses */
	/* A finished message; takes the bytes over (buf_steal). */
	void (*emit)(void *ctx, struct buf *message, uint32_t sample_count);
	/* An ELF file that a sample of `pid` has (0: not known), once a batch; NULL: no callback.
	 */
	void (*met)(void *ctx, uint32_t file_id, const struct file_info *file, int pid);
	void *ctx;
	struct problems *problems;    /* may be NULL */
	int64_t (*realtime_ns)(void); /* NULL: the system's clock */
};

struct batch;

NODISCARD enum status batch_new(const struct batch_config *c, struct batch **out, struct err *e);
void batch_free(struct batch *b);
/* Never fails: what cannot be kept is counted. May emit. */
void batch_add(struct batch *b, const struct event_sample *s);
/* The thread was off its CPU for `away_ns`, up to the sample's time. Likewise. */
void batch_add_off_cpu(struct batch *b, const struct event_sample *s, int64_t away_ns);
/* Tells by the monotonic clock whether the wall clock was set or the host slept since: then the
 * batch ends here, and samples get the time that held when they were taken. To be called between
 * looks at the ring. */
void batch_look_at_clocks(struct batch *b);
/* To be called right after batch_finish(). The following samples were taken at this rate. */
void batch_set_frequency(struct batch *b, uint32_t frequency_hz);
/* End of the interval: what was added is emitted, if anything was. True when a kernel address had
 * no name (kallsyms_refresh). */
bool batch_finish(struct batch *b);
const struct batch_metrics *batch_metrics(const struct batch *b);
/* The language runtimes that samples had frames of so far. */
const struct runtimes_met *batch_runtimes_met(const struct batch *b);
void batch_write_metrics(const struct batch *b, struct buf *out);
