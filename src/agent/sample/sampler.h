/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler: loads the BPF program into the kernel, attaches it to every CPU (also to CPUs that come
 * online later), fills its maps, and delivers its events. Private to agent/.
 *
 * Thread safety: sampler_start(), _stop(), _poll() and _next_epoch() from one thread;
 * sampler_publish(), sampler_retract() and the counters from any.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/tables/tables.h"
#include "base/err.h"
#include "unwind/unwind.h"

struct sampler_config {
	uint32_t frequency_hz;    /* samples a second and CPU; 1 to 10000 */
	uint32_t ring_bytes;      /* power of two; 0: chosen by CPUs and frequency */
	uint32_t table_bytes_max; /* kernel memory for unwind tables in use, in slabs of 2 MiB */
	bool stats;               /* measure the program's run time (needs CAP_SYS_ADMIN) */
	/* Unless 0: only this process and its descendants are sampled (pid as the initial pid
	 * namespace has it). */
	int only_pid;
	/* The share of threads leaving their CPU that is sampled at first; 0: none, and no program
	 * is attached to the scheduler. */
	double off_cpu_probability;
	/* Also show the native frames of an interpreter's loop, before the frames that they run. */
	bool keep_interpreters;
};

struct sampler;

/* Memory that the kernel will charge for all maps but unwind tables, on a host of so many possible
 * CPUs. */
NODISCARD enum status sampler_kernel_bytes(
	const struct sampler_config *c, uint32_t cpus, uint64_t *out, struct err *e);
/* The part of `table_bytes_max` that unused tables may keep, so that all maps together take at most
 * 18 MiB on up to KERNEL_CPUS_MAX possible CPUs (mapsizes.h); 12 MiB if there is room for them,
 * never less than 8. */
uint32_t sampler_idle_table_bytes(const struct sampler_config *c);

/* Loads the programs of a skeleton. It was opened with `log`, zeroed, for the verifier's messages:
 * Linux 5.10 logs each step, and only written pages take memory. */
#define SAMPLER_LOG_BYTES (64u << 20)
struct bpf_object_skeleton;
NODISCARD enum status sampler_load(
	struct bpf_object_skeleton *skeleton, const char *log, struct err *e);

/* `frames` as in event_sample; for EVENT_SAMPLE_SEEN the sampler has put the frames of the earlier
 * event back, so the receiver never sees the difference. The event is valid during the call. */
struct sampler_events {
	void *ctx;
	void (*sample)(void *ctx, const struct event_sample *s);
	void (*process)(void *ctx, const struct event_process *p);
	/* The stack of the next sample from its CPU, which has EVENT_FLAG_STACK. NULL: stacks are
	 * not copied. */
	void (*stack)(void *ctx, const struct event_stack *s);
	/* A thread runs again; its sample, whose state is not ON_CPU, came before. NULL with
	 * off_cpu_probability 0. */
	void (*resume)(void *ctx, const struct event_resume *r);
	/* A function of a runtime, before the first sample that has it. NULL: runtimes are not
	 * walked. */
	void (*code)(void *ctx, const struct event_code *c);
};

/* On failure `e` says what is missing, as probe_sampling() does. */
NODISCARD enum status sampler_open(const struct sampler_config *c,
	const struct sampler_events *events, struct sampler **out, struct err *e);
void sampler_close(struct sampler *s);
/* Begins sampling. */
NODISCARD enum status sampler_start(struct sampler *s, struct err *e);
/* Stops the perf events; what is in the ring can still be polled. */
void sampler_stop(struct sampler *s);
/* While paused nothing is sampled; may be called before sampler_start(). */
void sampler_pause(struct sampler *s, bool paused);
/* Sets how many samples a second a CPU takes, from 1 to what the kernel allows. */
NODISCARD enum status sampler_set_frequency(
	struct sampler *s, uint32_t frequency_hz, struct err *e);
/* Sets the share of the threads leaving their CPU that is sampled, if any are. */
void sampler_set_off_cpu(struct sampler *s, double probability);
/* Can its maps be read and changed with the remaining privileges? */
bool sampler_works(struct sampler *s);
/* Waits up to timeout_ms for events and delivers them; 0: only what is there. Also notices CPUs
 * that came online. */
NODISCARD enum status sampler_poll(struct sampler *s, int timeout_ms, struct err *e);
/* From now on sampler_poll() also reads another ring, and passes its events to `handle`, which must
 * return 0. */
NODISCARD enum status sampler_read_too(struct sampler *s, int ring_fd,
	int (*handle)(void *ctx, void *data, size_t size), void *ctx, struct err *e);
/* Has all functions of runtimes sent again, since some were forgotten here, or lost on the way. */
void sampler_ask_codes(struct sampler *s);
/* To be called at the end of an interval: stacks are sent with their frames again, and the room for
 * tables is divided anew. */
void sampler_next_epoch(struct sampler *s);

/* Makes a file known: from now on its frames carry `file_id`, and `t` (NULL: none, frame pointers)
 * unwinds them. Replaces an earlier one of the same inode and device. `t` is copied.
 * FRAME_FILE_VDSO: key is ignored, `t` is the vDSO's, by offset in its image. E_LIMIT: over
 * table_bytes_max after the coldest tables were evicted; then the file is known, and stacks end in
 * it with NO_ROOM, until it becomes hotter than others and is evicted for that. E_UNAVAILABLE: too
 * many files are in use; then it is not known. A file that was evicted is no longer known: its next
 * sample gives a notice as for a new file, and it must be published again. */
NODISCARD enum status sampler_publish(struct sampler *s, const struct file_key *key,
	uint32_t file_id, const struct unwind_table *t, struct err *e);
void sampler_retract(struct sampler *s, const struct file_key *key);
/* False: walking runtimes was not asked for, or the kernel has refused it. */
bool sampler_walks_runtimes(const struct sampler *s);
/* Sets where the threads of this process say which span they work for: from now on its samples have
 * the span. NULL: they do not say it any more. E_LIMIT: there are THREAD_CONTEXTS_MAX such
 * processes already. */
NODISCARD enum status sampler_set_thread_context(
	struct sampler *s, uint32_t pid, const struct thread_context_place *place);
/* Says that a published file holds a language runtime: from now on its frames are walked, too,
 * until the file is published again. E_LIMIT: RUNTIME_RECORDS_MAX builds are in use. */
NODISCARD enum status sampler_set_runtime(struct sampler *s, const struct file_key *key,
	const struct runtime_record *r, struct err *e);
/* Is this file published, and was not evicted since? */
bool sampler_knows(struct sampler *s, const struct file_key *key);

/* The rule in force at an offset of a published file (key.inode 0: the vDSO), as the program finds
 * it; FRAME_POINTER for one without a table. sampler_rest() gives back the memory that this maps.
 */
enum tables_found sampler_find_rule(struct sampler *s, const struct file_key *key,
	uint64_t file_offset, struct unwind_rule *out);
void sampler_rest(struct sampler *s);

#define SAMPLER_PROGRAMS_MAX 8

struct sampler_program {
	char name[16];
	uint32_t verified_insns; /* 0: the kernel does not say (5.16) */
	uint64_t run_count;      /* with config.stats */
	uint64_t run_ns;
};

/* bpf.samples = bpf.delivered + bpf.seen + the bpf.lost_…; once the ring is empty, bpf.delivered +
 * bpf.seen - lost_seen samples were passed on. */
struct sampler_stats {
	struct bpf_counters bpf; /* summed over CPUs */
	uint64_t lost_seen;      /* samples sent by a hash whose frames were not kept */
	uint32_t cpus;           /* CPUs with a perf event */
	uint64_t cpus_renewed;   /* events that had died, and were made anew */
	uint32_t files;          /* published */
	uint32_t without_room;   /* of these, files whose tables had no room */
	uint64_t table_bytes;    /* bytes of slabs in use */
	uint64_t kernel_bytes;   /* all maps and programs, as the kernel accounts them */
	uint64_t slab_bytes;     /* of these, bytes for unwind tables */
	uint64_t evicted_tables;
	uint64_t run_count; /* of the program that the timer runs, with config.stats */
	uint64_t run_ns;
	struct sampler_program programs[SAMPLER_PROGRAMS_MAX];
	uint32_t program_count;
};
void sampler_read_stats(struct sampler *s, struct sampler_stats *out);
