/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps: the maps and variables of the BPF program, and the state of one walk.
 */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"
#include "layout.h"
#include "search.h"

/* ---- unwind tables: user space writes, we read ---- */

struct slab {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLAB_CHUNKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SLAB_CHUNK_BYTES);
	__uint(map_flags, BPF_F_MMAPABLE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set by the memory budget before loading */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__array(values, struct slab);
} slabs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_PAGES_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64); /* struct unwind_page, read and written as one number */
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILES_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct file_slot);
} file_slots SEC(".maps");

/* Preallocated: a perf_event program may not use another kind before Linux 6.1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FILES_MAX);
	__type(key, struct file_key);
	__type(value, __u32); /* index in file_slots */
} files SEC(".maps");

/* Records of language runtimes, made from their files. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_RECORDS_MAX);
	__type(key, __u32);
	__type(value, struct runtime_record);
} runtime_records SEC(".maps");

/* ---- to user space ---- */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024); /* set by CPUs and frequency before loading */
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_counters);
} counters SEC(".maps");

/* ---- our own state, each CPU its own ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SEEN_SLOTS); /* by the frequency, before loading */
	__type(key, __u32);
	__type(value, __u64);
} seen_hashes SEC(".maps");

/* Functions of runtimes that were sent: a slot holds the marks of the last two, 32 bits each. All
 * CPUs share it without a lock: after a lost race a function is sent twice. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* if runtimes are walked, set by the frequency before loading */
	__type(key, __u32);
	__type(value, __u64);
} codes_told SEC(".maps");

/* By thread: when it left its CPU. Only threads that were sampled when they left are here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set to OFF_CPU_THREADS_MAX before loading if threads off their
				   CPUs are sampled */
	__type(key, __u32);
	__type(value, __u64);
} off_cpu SEC(".maps");

/* What is known about the mapping that an address lies in. */
enum mapping_kind {
	MAPPING_ANONYMOUS = 0, /* JIT code: frame pointers */
	MAPPING_FILE = 1,
	MAPPING_UNKNOWN_FILE = 2, /* no such file in `files` yet */
	MAPPING_VDSO = 3,
};

struct mapping {
	__u64 start;
	__u64 end;
	__u64 offset; /* file offset of `start` */
	__u32 file_id;
	__u32 page_base;
	__u32 page_count;
	__u32 first_page;
	__u32 kind;      /* enum mapping_kind */
	__u32 slot;      /* MAPPING_FILE: its index in file_slots */
	__u32 sample;    /* the last sample that checked slot and inode */
	__u32 runtime;   /* 1 + index of the runtime_record; 0: it holds no runtime */
	__u64 inode;     /* MAPPING_FILE: its struct inode */
	__u64 is_memory; /* MAPPING_FILE: the file is in the kernel's own memory (a memfd), in no
			    mounted file system */
	struct file_key key; /* as in the slot */
};

/* The process that has these mappings, and the state of its mappings: they are valid as long as no
 * field has changed. The mm's address alone does not tell: by now it may be another process' mm. */
struct mapping_owner {
	__u64 mm;
	__u64 process_start_ns;
	__u64 exec_id;
	__u32 pid;
	__u32 sequence; /* mm_lock_seq */
};

#define MAPPING_CACHE_SIZE 8  /* power of two */
#define STACK_WINDOW_WORDS 32 /* power of two, less than a page */
#define STACK_WINDOW_BYTES (STACK_WINDOW_WORDS * 8)
#define SAMPLE_FRAMES_MAX (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX)

/* arch/x86/include/uapi/asm/sigcontext.h: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip. */
#define SIGCONTEXT_REGS 17
#define SIGCONTEXT_R14 6
#define SIGCONTEXT_BP 10
#define SIGCONTEXT_BX 11
#define SIGCONTEXT_SP 15
#define SIGCONTEXT_IP 16

#define WINDOW_NONE 1 /* no word has this address, which is not aligned */

/* What the next step looks for. */
enum runtime_stage {
	RUNTIME_NATIVE = 0, /* a native frame */
	/* No frame: the runtime looks for the native frame that executes its next run. */
	RUNTIME_LOOK = 1,
	RUNTIME_FRAMES = 2, /* a frame of the runtime */
	/* No frame: a runtime was met, and its state of this thread is looked for. */
	RUNTIME_ENTER = 3,
	RUNTIME_FIND = 4, /* no frame: memory without a file was met, and the runtime whose code it
			     is is looked for */
	RUNTIME_CODE = 5, /* a frame of code that a runtime has generated */
	/* No frame: if that memory is code of Ruby, the walk goes to its caller. */
	RUNTIME_LEAVE = 6,
};

/* The runtime whose code lies in memory without a file. */
struct code_walk {
	__u32 record;     /* 1 + its index in runtime_records; 0: none, or not looked for */
	__u16 is_asked;   /* it was looked for in this sample */
	__u16 is_no_ruby; /* memory without a file was found not to be Ruby's */
	__u64 from;       /* where its code lies */
	__u64 bytes;
	/* Offset in `scopes` of the inlined function to record next, of the compiled function met
	 * last; 0: there is none. */
	__u32 scope;
	__u32 is_anywhere; /* all memory without a file counts as its code (V8) */
	__u64 scopes;
	__u64 metadata;
	__u64 root;   /* address of its root variable; 0: not known (V8) */
	__u64 native; /* the frame in a file that the runtime is asked about; 0: in no file */
	/* 1 + the number of user frames, and their hash, when the walk left code of Ruby; 0: it has
	 * left none. */
	__u64 left;
	__u64 left_hash;
	__u32 is_trace;    /* the walk has met a LuaJIT trace, not its interpreter */
	__u32 is_no_trace; /* memory without a file was found not to be LuaJIT's */
	__u32 is_in_beam;  /* the walk is on the stack of an Erlang process, whose frame it has
			      recorded */
	__u32 is_no_beam;  /* the process that the stack belongs to was not found */
};

/* The language runtime of this stack. If a stack has several runtimes, it shows the frames of the
 * first one met. */
struct runtime_walk {
	__u32 record;     /* 1 + its index in runtime_records; 0: none was met */
	__u32 stage;      /* enum runtime_stage */
	__u32 code_bytes; /* bytes of functions that this sample has sent */
	__u32 count;      /* frames recorded */
	__u64 root;       /* address of its root variable */
	__u64 frame;      /* the next frame of the runtime; 0: there are no more */
	__u64 owner;      /* an address on the stack of the native frame that executes `frame` */
	__u64 look;       /* how far the search has come */
	__u64 looks;      /* frames that the search has looked at */
	__u64 last_code;  /* address and number of the function recorded last */
	__u64 last_number;
};

/* The native frame of a runtime's file that is stepped over, as it was before. */
struct native_walk {
	__u64 sp;
	__u64 hash; /* without it */
};

/* The walk of one user stack and the event that it fills. */
struct walk {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 mm;
	__u64 vdso;        /* where the vDSO is mapped; 0: nowhere */
	__u64 stack_start; /* sp as execve set it */
	__u64 hash;
	__u32 kernel_count;
	__u32 user_count;
	__u32 pc_is_exact; /* pc was interrupted here: no return address, look up pc, not pc - 1 */
	__u32 pc_is_guess; /* pc comes from a frame pointer: it must lie in executable memory */
	__u32 compat;      /* a 32-bit process */
	__u32 in_exec;     /* the saved registers show that the thread is in execve() */
	__u32 is_new; /* a thread that has not left clone() yet, and has a stack of its own with
			 nothing on it */
	__u32 mapping_last;
	__u32 mapping_next;
	__u32 sample; /* number of this sample */
	__u32 busy;
	__u32 bx_is_known;
	__u32 may_be_new;     /* counts as is_new if the stack cannot be walked in another way */
	__u64 stacks_paid_ns; /* a time; each sent stack adds config.stack_interval_ns */
	__u64 bx;             /* rbx of this frame, if known */
	/* The callee was the interrupted frame and had pushed nothing on the stack, so this frame
	 * has the interrupted registers. Some assembly calls its own helpers in this way, and finds
	 * its frame by a register that they do not change (OpenSSL's AES-GCM). */
	__u64 regs_are_kept;
	__u64 go_g; /* r14 of the interrupted frame, which is g in Go's code */
	/* Registers of the interrupted frame (valid while pc_is_exact), in the order of a signal
	 * frame. */
	__u64 regs[SIGCONTEXT_REGS];
	struct mapping_owner owner; /* owner of the mappings */
	struct mapping mappings[MAPPING_CACHE_SIZE];
	__u64 window_start; /* user address of window[0]; WINDOW_NONE: nothing read yet */
	__u64 window[STACK_WINDOW_WORDS];
	struct runtime_walk runtime;
	struct native_walk native;
	struct code_walk code;
	__u64 go_record;           /* 1 + index of the Go program's runtime_record; 0: none */
	struct event_sample event; /* its frames[] are the next member */
	__u64 frames[SAMPLE_FRAMES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* The stack that a CPU is about to send. On hosts with many CPUs several of them share one: a copy
 * is rare and large, and takes some microseconds. */
struct stack_copy {
	__u64 users; /* CPUs inside or trying to enter; one that counts 1 owns the copy */
	struct event_stack event;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the number of CPUs before loading */
	__type(key, __u32);
	__type(value, struct stack_copy);
} stack_copies SEC(".maps");

#ifndef PROFILER_RODATA /* a test writes it */
#define PROFILER_RODATA const volatile
#endif
PROFILER_RODATA struct profiler_config config = { 0 };
struct profiler_settings settings = { 0 };
struct profiler_check check = { 0 };

static __always_inline struct walk *walk_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline __u64 hash_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	return hash ^ (hash >> 32);
}

static __always_inline int read_user(void *out, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(out, bytes, (const void *)address) == 0;
}

/* Reads a word of the user's stack; returns 0 if it cannot be read. One read of user memory costs
 * as much as all the rest of a step (33 ns of 60), and frames lie close together, so the aligned
 * block around the word is read. A block never crosses a page, so it can be read if the word
 * can. */
static __always_inline int read_stack(struct walk *w, __u64 at, __u64 *out)
{
	if (at & (sizeof(__u64) - 1)) /* the stack is not aligned */
		return read_user(out, sizeof(*out), at);
	__u64 start = at & ~(__u64)(STACK_WINDOW_BYTES - 1);
	if (start != w->window_start) {
		w->window_start = WINDOW_NONE;
		if (!read_user(w->window, STACK_WINDOW_BYTES, start))
			return 0;
		w->window_start = start;
	}
	*out = w->window[(at - start) / sizeof(__u64) & (STACK_WINDOW_WORDS - 1)];
	return 1;
}

static __always_inline struct task_struct *current_task(void)
{
	if (TASK_IS_TYPED())
		return (struct task_struct *)bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline struct bpf_counters *counters_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&counters, &zero);
}

/* Wakes the reader only if the ring fills faster than the reader's timer empties it. */
static __always_inline __u64 ring_flags(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > config.wake_bytes
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

/* ---- the memory for what is rare and large ---- */

static __always_inline struct stack_copy *stack_copy_here(void)
{
	__u32 i = bpf_get_smp_processor_id() & config.stack_mask;
	return bpf_map_lookup_elem(&stack_copies, &i);
}

/* 1: this CPU owns the copy until stack_copy_leave(). Linux 5.10 has no atomic exchange, so two
 * CPUs that come at the same time may both fail to enter. */
static __always_inline int stack_copy_enter(struct stack_copy *copy)
{
	(void)__sync_fetch_and_add(&copy->users, 1);
	return *(volatile __u64 *)&copy->users == 1;
}

static __always_inline void stack_copy_leave(struct stack_copy *copy)
{
	(void)__sync_fetch_and_add(&copy->users, -1);
}
