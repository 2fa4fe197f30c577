/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitnames: names of the code that processes make while they run, from the perf maps and jitdump
 * files that their runtimes write, and from what they register for debuggers. Private to agent/.
 *
 * A thread of its own finds and reads the files, since a file system may hang: first soon after the
 * first sample of such code, then what was added, at most each JITNAMES_LOOK_NS. Files stay open,
 * so that they can still be read when the process has ended. A process that forges its files spoils
 * its own names and spends its own share of reading and of memory; there is no share of the number
 * of processes. Thread safety: all functions from one thread, but for jitnames_write_metrics().
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"
#include "jit/jit.h"

/* Processes known at the same time. Beyond that the least recently used are removed. */
#define JITNAMES_PROCESSES_MAX 256
/* Memory of all tables. Beyond it processes lose their tables, the least recently used first; one
 * that has no more than an equal share keeps its table. */
#define JITNAMES_BYTES_MAX ((size_t)48 << 20)
/* Their files that stay open in the broker, which has 256 places for all files. Beyond that the
 * files of the least recently used process are closed. */
#define JITNAMES_PINNED_MAX 64
/* While there are samples, a file is checked for additions at this interval. */
#define JITNAMES_LOOK_NS (200 * NS_PER_MS)
/* A process without files is asked again after so long, then after twice as long each time. */
#define JITNAMES_OPEN_NS (2 * NS_PER_SEC)
#define JITNAMES_OPEN_MAX_NS (60 * NS_PER_SEC)
/* For a process so many bytes are read at first, and so many more each second; for all processes
 * together four times as many. */
#define JITNAMES_BURST_BYTES ((uint64_t)32 << 20)
#define JITNAMES_BYTES_PER_SECOND ((uint64_t)512 << 10)

/* Where a frame is. */
struct jitnames_place {
	int pid;
	uint64_t start_ns;   /* of the process; boot time clock */
	struct file_key key; /* of a file that is mapped there, and no program; inode 0: none */
	uint64_t at;         /* offset in it; else the address */
	uint64_t time_ns;    /* of the sample; monotonic */
};

struct jitnames_name {
	enum frame_kind kind;
	char function[JIT_NAME_BYTES_MAX + 1];
	char file[JIT_NAME_BYTES_MAX + 1]; /* ""; 0: not known */
	uint32_t function_line;            /* where the function begins */
	uint32_t line;
};

/* clang-format off */
#define JITNAMES_METRICS(X)                                                                    \
	X(processes, GAUGE, "firn_agent_jit_processes", "Processes that have run code without a file.") \
	X(with_names, GAUGE, "firn_agent_jit_processes_with_names", "Of these, with a perf map, a jitdump, or a descriptor for debuggers.") \
	X(codes, GAUGE, "firn_agent_jit_codes", "Pieces of code with a name.")                 \
	X(bytes, GAUGE, "firn_agent_jit_bytes", "Memory of these names.")                      \
	X(found, COUNTER, "firn_agent_jit_frames_named_total", "Frames of such code that got a name.") \
	X(missed, COUNTER, "firn_agent_jit_frames_unnamed_total", "Frames of such code without a name, so far.") \
	X(read, COUNTER, "firn_agent_jit_read_bytes_total", "Bytes of perf maps, jitdumps and objects for debuggers read.") \
	X(bad, COUNTER, "firn_agent_jit_bad_total", "Lines and records that say nothing.")     \
	X(refused, COUNTER, "firn_agent_jit_refused_total", "Names left out because a process has too many.") \
	X(evicted, COUNTER, "firn_agent_jit_evicted_total", "Processes forgotten for room.")
/* clang-format on */
struct jitnames_metrics {
	JITNAMES_METRICS(METRIC_FIELD)
};

struct jitnames;

NODISCARD enum status jitnames_new(struct jitnames **out, struct err *e);
void jitnames_free(struct jitnames *j);
enum jitnames_answer {
	JITNAMES_NONE, /* no name is known now; the files of the process are read soon */
	JITNAMES_FOUND,
	JITNAMES_LATER, /* the files have grown and may name it otherwise: ask again */
};
/* `last`: answer with what is known by now, never JITNAMES_LATER. Never waits for a file. */
enum jitnames_answer jitnames_find(
	struct jitnames *j, const struct jitnames_place *p, bool last, struct jitnames_name *out);
/* Lets the thread read the files of each process that jitnames_find() had no name of, and waits for
 * it, at most so long. */
void jitnames_settle(struct jitnames *j, int64_t patience_ns);
/* The process has ended: its names stay for a while. */
void jitnames_ended(struct jitnames *j, int pid, uint64_t start_ns);
/* It runs another program now. */
void jitnames_forget(struct jitnames *j, int pid, uint64_t start_ns);
/* Once an interval: forgets the ended and the unused. */
void jitnames_tick(struct jitnames *j);
void jitnames_write_metrics(struct jitnames *j, struct buf *out);
