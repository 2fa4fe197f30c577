/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * layout: what only the BPF program and sampler.c share: sizes of maps, the values of the maps that
 * user space writes through shared memory, and the program's configuration.
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
#define FILES_MAX 16384       /* files known at a time */

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

/* The most hashes of sent stacks that a CPU remembers; the number is a power of two. */
#define SEEN_SLOTS 1024

/* How many builds of language runtimes may be in use at a time. */
#define RUNTIME_RECORDS_MAX 64
/* The most pairs of functions that are remembered as sent, of all processes; the number is a power
 * of two. */
#define CODES_TOLD_MAX 32768
/* The frames of compiled Java are kept for one return address for each 2^KEPT_PLACES_SHIFT of these
 * pairs. */
#define KEPT_PLACES_SHIFT 3
/* Bytes of new functions that one sample sends; later samples send the rest. This limits the cost
 * of a program that generates ever new functions. */
#define CODE_BYTES_OF_SAMPLE_MAX 32768

/* Slots for processes in which the place of the runtime's code is known; a power of two. Two
 * processes with the same slot replace each other. */
#define CODE_PROCESSES_MAX 512

/* How many processes may have threads with a trace context (thread_context.h). */
#define THREAD_CONTEXTS_MAX 256
struct thread_context_place {
	__u64 process_start_ns;
	__u64 at;   /* an address; with FIXED a distance from the thread pointer */
	__u32 form; /* enum thread_context_form */
	__u32 is_musl;
};

/* How many sampled threads may be off their CPUs at a time. */
#define OFF_CPU_THREADS_MAX 32768

/* One known file. `files` maps {inode, dev, 0} to an index here; index 0 is no file. A slot is
 * reused only after all runs of the program that could have seen the old file have ended. It has
 * the file's key, so that a hash table element that was recycled during the lookup is noticed. */
struct file_slot {
	struct file_key key; /* generation 0: not known yet, taken from the first inode seen */
	struct file_value value;
	__u32 hits; /* samples with a frame in the file; BPF adds without a lock, so that a few are
		       lost */
	/* Cleared before the slot may be used again, and set when its other fields are written:
	 * while it is set, what an earlier sample found in the slot is still valid. */
	__u32 is_live;
};

/* Fixed while the program is loaded (.rodata). */
struct profiler_config {
	__u64 hash_seed;
	__u32 only_pid;    /* and its descendants; 0: all */
	__u32 wake_bytes;  /* wake the reader when more than this waits in the ring */
	__u32 copy_stacks; /* whether copies of stacks are sent, so that a walk can be finished
			      later */
	__u32 seen_mask;   /* number of slots in seen_hashes (a power of two) - 1 */
	__u32 stack_mask;  /* the same for stack_copies */
	__u32 codes_mask;  /* the same for codes_told */
	__u32 keep_interpreters; /* whether the native frames that execute a runtime's frames are
				    shown, too */
	__u32 walk_runtimes;     /* 0: the verifier removes all code for runtimes */
	__u64 stack_interval_ns; /* STACK_INTERVAL_NS, or shorter */
};

/* Settings that user space changes while the program runs (.bss, shared memory). */
struct profiler_settings {
	__u32 epoch;
	__u32 seen_enabled;
	__u32 vdso_slot;   /* index of the vDSO's slot; 0: it has no table */
	__u32 thread_size; /* bytes of a kernel stack, if the kernel has no bpf_task_pt_regs() */
	__u32 off_cpu_enabled;
	__u32 off_cpu_last;      /* a switch is sampled for 32-bit random numbers up to this */
	__u32 codes_epoch;       /* when it changes, all functions are sent again */
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
