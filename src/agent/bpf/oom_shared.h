/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * oom_shared: structures that oom.bpf.c and user space share: known programs, the events of a
 * victim, counters.
 *
 * A victim is a process that the kernel kills because memory has run out. Its events: OOM_BEGIN, an
 * OOM_BUCKET for each place of its program that has allocated, OOM_END. If the victim's last thread
 * ended before the walk was finished, there is no OOM_END.
 */
#pragma once

#include "shared.h"

/* How many executables (of Go programs) may be known at a time, by the kernel's key. */
#define OOM_PROGRAMS_MAX 4096
/* How many victims' walks may be under way at a time. */
#define OOM_VICTIMS_MAX 256
/* Buckets of one victim; if there are more, the oldest are left out. */
#define OOM_BUCKETS_MAX 65536
/* Buckets that one thread of the victim reads, with interrupts off; the next thread that ends goes
 * on. */
#define OOM_BUCKETS_A_THREAD 16384
/* Frames of one bucket: Go records 32 before 1.23, 128 from then on, and up to 1,024 by request; if
 * there are more, those at the root are left out. */
#define OOM_STACK_MAX 128
#define OOM_GO_STACK_MAX 1024
/* Bytes of events that wait for the reader. */
#define OOM_RING_BYTES (16u << 20)
/* Bytes of the ring that buckets may not use: they are for the beginnings and ends of walks. */
#define OOM_RING_BYTES_KEPT (64u << 10)

/* A Go program, by {inode, device, 0} of its file. */
struct oom_program {
	/* Two of its segments, the first and the one of its code: one of them has the beginning of
	 * the code as the kernel knows it, which shows where the program was loaded. */
	__u64 first_offset;
	__u64 first_vaddr;
	__u64 code_offset;
	__u64 code_vaddr;
	__u64 buckets; /* address of runtime.mbuckets in the file; 0: not known */
	__u64 rate;    /* address of runtime.MemProfileRate; 0: not known */
	__u32 generation;
	__u32 id; /* a number of user space */
};

enum oom_event_type { OOM_BEGIN = 1, OOM_BUCKET = 2, OOM_END = 3 };

/* The head of every event. */
struct oom_header {
	__u16 type;
	__u16 stack_count; /* OOM_BUCKET */
	__u32 pid;
	__u64 process_start_ns; /* with pid it identifies the victim */
};

struct oom_begin {
	struct oom_header o;
	struct event_header h; /* the thread that came first */
	__u64 bias;            /* address in memory - address in the file */
	__u64 rate;            /* bytes between samples, as the program has it; 0: not known */
	__u32 program;
	__u32 pad;
};

/* The values are sums over all cycles of the garbage collector, including cycles that it has not
 * published yet. */
struct oom_bucket {
	struct oom_header o;
	__u64 allocs;
	__u64 frees;
	__u64 alloc_bytes;
	__u64 free_bytes;
	__u64 stack[OOM_STACK_MAX]; /* stack_count of it are sent: return addresses, leaf first */
};

enum oom_reason {
	OOM_WHOLE = 1,   /* the whole list was read */
	OOM_CUT = 2,     /* OOM_BUCKETS_MAX */
	OOM_DAMAGED = 3, /* memory is missing (swapped out, or freed already), or is no list */
};

struct oom_end {
	struct oom_header o;
	__u32 reason; /* enum oom_reason */
	__u32 walked;
	__u32 lost; /* of these, buckets that the ring had no room for */
	__u32 pad;
};

/* buckets = empty + sent + lost. victims = others + without_buckets + unreadable + not_profiled +
 * begun. */
/* clang-format off */
#define OOM_COUNTER_LIST(X)                                                                   \
	X(victims, "Processes that the kernel ended for want of memory.")                     \
	X(others, "Of these, no Go programs, or programs that were not known yet.")           \
	X(without_buckets, "Of these, Go programs without a symbol table.")                   \
	X(unreadable, "Of these, those of which not even the beginning could be read.")       \
	X(not_profiled, "Of these, Go programs that keep no profile of their memory.")        \
	X(begun, "Of these, those whose profile was walked.")                                 \
	X(whole, "Walks that came to the end of the list.")                                   \
	X(cut, "Walks that ended at the limit of buckets.")                                   \
	X(damaged, "Walks that ended where memory could not be read, or was no bucket.")      \
	X(buckets, "Buckets walked.")                                                         \
	X(empty, "Of these, buckets with nothing to tell.")                                   \
	X(sent, "Of these, buckets sent to the agent.")                                       \
	X(lost, "Of these, buckets lost: the ring was full, or their stack was not there.")   \
	X(torn, "Buckets of which a part was not there, and counts as zero.")                 \
	X(deep, "Buckets whose stack was cut at its root side.")                              \
	X(events_lost, "Beginnings and ends of walks that were lost: the ring was full.")
/* clang-format on */
struct oom_counters {
#define OOM_COUNTER_FIELD(name, help) __u64 name;
	OOM_COUNTER_LIST(OOM_COUNTER_FIELD)
#undef OOM_COUNTER_FIELD
};
