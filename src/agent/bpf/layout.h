/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * layout: what only the BPF program and sampler.c share: sizes of the maps, the values in those
 * that user space writes through shared memory, the program's configuration.
 */
#pragma once

#include "shared.h"

/* Unwind tables: slabs of 32 chunks of 64 KiB; a page's blob lies in one chunk. */
#define SLAB_CHUNKS 32
#define SLAB_CHUNK_SHIFT 5
#define SLAB_CHUNK_BYTES 65536
#define SLAB_BYTES (SLAB_CHUNKS * SLAB_CHUNK_BYTES)
#define SLABS_MAX 2048 /* what 16 bits of unwind_page.chunk can name: 4 GiB */

#define TABLE_PAGES_MAX 65536 /* of 64 KiB: tables for 4 GiB of text */
#define FILES_MAX 16384       /* known at a time */

/* Each CPU copies a stack at most once in STACK_INTERVAL_NS on average, or as often as it takes
 * samples, if that is more often. After a late timer the next one comes sooner, so as many copies
 * as fit in STACK_BURST_NS may be made at once. */
#define STACK_INTERVAL_NS 5000000
#define STACK_BURST_NS (16 * STACK_INTERVAL_NS)
/* Leaves of the VMA tree that are read for executable mappings: a browser's process has 900
 * mappings in 80 leaves. Before there was a tree, VMAs: with twice as many Linux 5.10's verifier
 * refuses the program (8,192 jumps). */
#define STACK_LEAVES_MAX 192
#define STACK_LIST_MAX 480

/* Hashes of sent stacks that a CPU remembers: a power of two up to this. */
#define SEEN_SLOTS 1024

/* Builds of language runtimes that are in use at a time. */
#define RUNTIME_RECORDS_MAX 64
/* Functions of all processes that were sent already: a power of two of pairs up to this. */
#define CODES_TOLD_MAX 32768
/* Return addresses of compiled Java that are kept: one for 2^KEPT_PLACES_SHIFT of these pairs. */
#define KEPT_PLACES_SHIFT 3
/* Bytes of new functions that one sample sends; later samples send the rest. Limits the cost of a
 * program that makes up functions. */
#define CODE_BYTES_OF_SAMPLE_MAX 32768

/* Processes for which the place of their runtime's code is kept: a power of two. If two have the
 * same slot, each replaces the other. */
#define CODE_PROCESSES_MAX 512

/* Processes whose threads have a trace context (thread_context.h). */
#define THREAD_CONTEXTS_MAX 256
struct thread_context_place {
	__u64 process_start_ns;
	__u64 at;   /* an address, or of FIXED a distance */
	__u32 form; /* enum thread_context_form */
	__u32 is_musl;
};

/* Threads that are off their CPUs and were sampled then. */
#define OFF_CPU_THREADS_MAX 32768

/* One known file. `files` maps {inode, dev, 0} to an index here; index 0 is no file. A slot is
 * reused only after all programs that could have seen the old one have ended, and has its key, so
 * that a hash table element that was recycled during the lookup is noticed. */
struct file_slot {
	struct file_key key; /* generation 0: not known yet, taken from the first inode seen */
	struct file_value value;
	__u32 hits; /* samples with a frame in it; BPF adds, now and then one is lost */
	/* Cleared before the slot may be used again, and set when its other fields are written:
	 * while it is set, what an earlier sample found in the slot is still valid. */
	__u32 is_live;
};

/* Fixed while the program is loaded (.rodata). */
struct profiler_config {
	__u64 hash_seed;
	__u32 only_pid;          /* and its descendants; 0: all */
	__u32 wake_bytes;        /* wake the reader when more than this waits in the ring */
	__u32 copy_stacks;       /* send copies of stacks, so that a walk can be finished later */
	__u32 seen_mask;         /* of the slots in seen_hashes, a power of two */
	__u32 stack_mask;        /* of those in stack_copies, too */
	__u32 codes_mask;        /* of those in codes_told, too */
	__u32 keep_interpreters; /* also show the native frames that run a runtime's frames */
	__u32 walk_runtimes;     /* 0: the verifier removes all code for runtimes */
	__u64 stack_interval_ns; /* STACK_INTERVAL_NS, or shorter */
};

/* Changed while it runs (.bss, shared memory). */
struct profiler_settings {
	__u32 epoch;
	__u32 seen_enabled;
	__u32 vdso_slot;   /* index of the vDSO in the slots; 0: no table for it */
	__u32 thread_size; /* bytes of a kernel stack, where bpf_task_pt_regs() is missing */
	__u32 off_cpu_enabled;
	__u32 off_cpu_last; /* the largest of the 2^32 random numbers for which a switch is sampled
			     */
	__u32 codes_epoch;  /* when it changes, all functions are sent again */
	__u32 has_code_runtimes; /* a runtime with code outside of files was published */
	__u32 has_ruby;          /* a Ruby was published */
	__u32 has_php;           /* a PHP was published */
	__u32 has_contexts;      /* a process is in thread_contexts */
	__u32 luajit; /* 1 + index of the record of the LuaJIT that was found; 0: none. BPF writes
			 it */
};

/* Input and output of the `check_kernel` program, which sampler_open() runs in its own thread. It
 * checks the layouts that no BTF describes. */
struct profiler_check {
	__u64 address;   /* in: somewhere in our own memory */
	__u64 vma_start; /* out: bounds of its mapping; both 0: not found */
	__u64 vma_end;
	__u64 thread_size; /* out: 0: the saved registers were not found */
	__u64 user_sp;     /* out: our stack pointer in the system call that runs this */
};

#define THREAD_SIZE_KNOWN 1 /* the kernel itself says where registers are saved */
#define THREAD_SIZE_MIN 8192
#define THREAD_SIZE_MAX 65536
