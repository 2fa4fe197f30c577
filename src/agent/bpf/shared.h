/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * shared: structures that the BPF program and user space exchange: the maps' keys and values, and
 * the events of the ring buffer. Plain integers, native byte order.
 */
#pragma once

#include "runtimes/record.h"
#include "unwind/rule.h"

#define SAMPLE_USER_FRAMES_MAX 1024
#define SAMPLE_KERNEL_FRAMES_MAX 127 /* PERF_MAX_STACK_DEPTH */

/* A user frame is one u64: file id << 48 | file offset (or address, for the ids that are no file).
 * It names the byte that was looked up: for the leaf, and for a frame that a signal interrupted,
 * the interrupted instruction; for all others return address - 1, which lies in the call. So it is
 * symbolized without a change. Kernel addresses are as the kernel gives them: the leaf, then return
 * addresses. */
#define FRAME_FILE_SHIFT 48
#define FRAME_OFFSET_MASK 0x0000ffffffffffffULL
enum frame_file {
	FRAME_FILE_ADDRESS =
		0,            /* anonymous memory (JIT code) or a file not known yet: an address */
	FRAME_FILE_VDSO = 1,  /* offset into the vDSO */
	FRAME_FILE_FIRST = 2, /* ids of files from here on, given out by user space */
	FRAME_FILE_MAX = 0xefff,
};

/* A frame of a language runtime: 0xf << 60 | code << 16 | position. `code` is the function's number
 * in its process, which an EVENT_CODE names; `position` is the place in it (CPython: instructions
 * of two bytes), FRAME_POSITION_NONE: not known, or too far. */
#define FRAME_RUNTIME (0xfULL << 60)
#define FRAME_CODE_SHIFT 16
#define FRAME_CODE_MASK ((1ULL << 44) - 1)
#define FRAME_CODE_REAL (1ULL << 43)
#define FRAME_POSITION_NONE 0xffff
/* Without FRAME_CODE_REAL it is no frame: frames of a runtime are missing here. `code` is kind <<
 * 16 | version, `position` one of these. */
/* clang-format off */
#define RUNTIME_GAP_LIST(X)                                                              \
	X(THREADS, 1, "more threads than are searched for the one that was sampled")     \
	X(FRAME, 2, "a frame could not be read")                                         \
	X(CODE, 3, "the function of a frame could not be read")                          \
	X(OWNER, 4, "no native frame was found that runs these frames")                  \
	X(THREAD, 5, "the list of threads could not be read")                            \
	X(FROZEN, 6, "the frames of a virtual thread that lie on the heap")              \
	X(INLINED, 7, "which functions were put into this code is not known") \
	X(STATE, 8, "the interpreter's state was not found")
/* clang-format on */
enum runtime_gap {
#define RUNTIME_GAP_ENUM(name, number, text) RUNTIME_GAP_##name = number,
	RUNTIME_GAP_LIST(RUNTIME_GAP_ENUM)
#undef RUNTIME_GAP_ENUM
		RUNTIME_GAP_COUNT
};

/* The number of a piece of a script's source, by that of the first one. */
static inline __u64 v8_piece_number(__u64 first, __u64 piece)
{
	return ((first + piece) & FRAME_CODE_MASK) | FRAME_CODE_REAL;
}

static inline int frame_is_runtime(__u64 frame)
{
	return (frame & FRAME_RUNTIME) == FRAME_RUNTIME;
}

static inline __u64 frame_code(__u64 frame)
{
	return frame >> FRAME_CODE_SHIFT & FRAME_CODE_MASK;
}

/* The kernel's identity of a mapped file: inode and device. Inode numbers are reused, and files are
 * overwritten: `generation` (a hash of the inode's generation, its size and the time it was
 * written) tells which file it is now. 0: not known. A notice has it, and the file is published
 * with it. If the inode is published with another generation, that entry must be replaced. */
struct file_key {
	__u64 inode;
	__u32 dev; /* super block's dev_t as the kernel holds it: major << 20 | minor */
	__u32 generation;
};

struct file_value {
	__u16 file_id;
	__u16 runtime;    /* 1 + index of its runtime_record; 0: it holds none */
	__u32 page_base;  /* index of the first page in the pages array */
	__u32 page_count; /* 0: no table: frame pointers are used, except with FILE_NO_ROOM */
	__u32 first_page; /* file offset >> UNWIND_PAGE_SHIFT of page_base */
};

#define FILE_NO_ROOM 0xffffffffu /* page_base: it has a table, for which there is no room */

/* Why a user stack ends where it does. stack_end_is_whole() says which stacks are whole. */
/* clang-format off */
#define STACK_END_LIST(X)                                                                    \
	X(NONE, 0, "no user stack: a kernel thread")                                         \
	X(ROOT, 1, "outermost frame by unwind information")                                  \
	X(ROOT_NO_INFO, 2, "outermost frame: entry code without unwind information")         \
	X(ROOT_ZERO, 3, "outermost frame: return address and frame pointer are zero")        \
	X(NO_VMA, 4, "address in no mapping")                                                \
	X(NO_FILE, 5, "this file's table is not loaded yet")                                 \
	X(NO_TABLE, 6, "no unwind information, and the frame pointer leads nowhere")         \
	X(UNSUPPORTED, 7, "unwind information of a form that is not supported")              \
	X(READ_ERROR, 8, "stack memory could not be read")                                   \
	X(DEPTH, 9, "deeper than the limit: cut at the root side")                           \
	X(LOOP, 10, "stack pointer did not advance")                                         \
	X(NO_REGS, 11, "user registers could not be found")                                  \
	X(EXEC, 12, "in the middle of exec: the new program has not run yet")                \
	X(COPY, 13, "beyond the copy of the stack: deeper, or on another stack")             \
	X(NO_ROOM, 14, "no room for this file's table: --bpf-table-memory") \
	X(ZERO, 15, "return address or frame pointer is zero, and this is no outermost frame")
/* clang-format on */
enum stack_end {
#define STACK_END_ENUM(name, number, text) STACK_END_##name = number,
	STACK_END_LIST(STACK_END_ENUM)
#undef STACK_END_ENUM
		STACK_END_COUNT
};

/* Every frame of the user stack is there (or there is none to show). */
static inline int stack_end_is_whole(unsigned end)
{
	return end <= STACK_END_ROOT_ZERO || end == STACK_END_EXEC;
}

enum event_type {
	EVENT_SAMPLE = 1,
	EVENT_SAMPLE_SEEN = 2, /* as SAMPLE, no frames: this hash was sent before in this epoch */
	EVENT_EXEC = 3,        /* a process executed another program */
	EVENT_EXIT = 4,        /* the last thread of a process ended */
	EVENT_STACK = 5,       /* the stack of the sample that this CPU sends next */
	EVENT_RESUME = 6,      /* a thread that was sampled when it left its CPU runs again */
	EVENT_CODE = 7,        /* a function of a runtime, before the first sample that has it */
};

/* Private to the sampler: the frames will be asked for again by their hash. */
#define EVENT_FLAG_KEEP 1
/* An EVENT_STACK of the same CPU came before: the walk can be finished from it. */
#define EVENT_FLAG_STACK 2
/* The upper half of the flags is the thread's state when the sample was taken. */
#define EVENT_STATE_SHIFT 4
#define EVENT_STATE_MASK 0xf0

/* As the label `state` has them. All but ON_CPU are for threads that leave their CPU: they will go
 * on at this stack, and an EVENT_RESUME says how long they were away. */
/* clang-format off */
#define THREAD_STATE_LIST(X)                                                             \
	X(ON_CPU, 0, "on-cpu")     /* interrupted by the timer */                        \
	X(RUNNABLE, 1, "runnable") /* it could run, and another one does */              \
	X(SLEEPING, 2, "sleeping") /* waits, and a signal would wake it */               \
	X(BLOCKED, 3, "blocked")   /* waits for a disk and such: no signal wakes it */   \
	X(OFF_CPU, 4, "off-cpu")   /* stopped, traced, frozen */
/* clang-format on */
enum thread_state {
#define THREAD_STATE_ENUM(name, number, text) THREAD_##name = number,
	THREAD_STATE_LIST(THREAD_STATE_ENUM)
#undef THREAD_STATE_ENUM
		THREAD_STATE_COUNT
};

struct event_header {
	__u16 type;     /* enum event_type */
	__u8 stack_end; /* enum stack_end */
	__u8 flags;     /* EVENT_FLAG_… */
	__u32 cpu;
	__u32 pid; /* thread group, initial pid namespace */
	__u32 tid;
	__u64 process_start_ns; /* group leader's start_boottime: with pid, the process' identity */
	__u64 time_ns;          /* ktime_get_ns (CLOCK_MONOTONIC) */
	__u64 cgroup_id;        /* inode of the cgroup v2 directory */
	char comm[16];          /* of the thread */
};

static inline enum thread_state event_state(const struct event_header *h)
{
	unsigned state = (h->flags & EVENT_STATE_MASK) >> EVENT_STATE_SHIFT;
	return state < THREAD_STATE_COUNT ? (enum thread_state)state : THREAD_OFF_CPU;
}

/* The file in which a stack ended with NO_FILE, or the executable of an EXEC event, so that user
 * space can bind it: open /proc/PID/map_files/start-end and it is this key. */
struct file_notice {
	struct file_key key;
	__u64 vma_start;
	__u64 vma_end;
	__u64 offset; /* file offset of vma_start, bytes */
};

struct event_sample {
	struct event_header h;
	__u64 stack_hash; /* of all frames, kernel and user */
	__u16 kernel_count;
	__u16 user_count;
	__u32 ppid;
	struct file_notice notice; /* key.inode 0: none */
	__u64 labels;              /* of its goroutine, as an EVENT_CODE has sent them; 0: none */
	__u64 frames[]; /* kernel_count addresses, leaf first, then user_count user frames */
};

/* All that is needed to finish a walk that ended with NO_FILE, once the file is known: the frame
 * there, the executable mappings, and both ends of the stack: the memory from sp on, and, where the
 * stack goes on behind it, the memory below its upper end, where the outermost frames are. One
 * frame between the two may have any size. Both are copied in aligned chunks, so that none lies in
 * two pages, since pages of a large frame that was never filled may be missing. */
#define STACK_PART_BYTES 65536 /* of each end; 28 KiB of a thread's of rustc are no frames */
#define STACK_PARTS 2
#define STACK_BYTES_MAX (STACK_PARTS * STACK_PART_BYTES)
#define STACK_CHUNK_BYTES 2048
#define STACK_PART_CHUNKS (STACK_PART_BYTES / STACK_CHUNK_BYTES)
#define STACK_SPAN_MAX (64u << 20) /* more is no stack, but two */
#define STACK_MAPPINGS_MAX 128     /* a browser has 112, most programs a dozen */
#define STACK_REGISTERS 17

struct stack_mapping {
	struct file_key key; /* inode 0: anonymous */
	__u64 start;
	__u64 end;
	__u64 offset; /* of `start` in the file */
};

struct stack_part {
	__u64 at;      /* the address of its first chunk; of parts[0]: sp, aligned down */
	__u32 missing; /* chunks that are missing: a bit each, the first one lowest */
	__u32 pad;
};

struct event_stack {
	struct event_header h;
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 bx;
	__u64 vdso;                  /* where the vDSO is mapped; 0: nowhere */
	__u64 stack_start;           /* sp as execve left it */
	__u64 regs[STACK_REGISTERS]; /* with pc_is_exact: r8 to r15, di, si, bp, bx, dx, ax, cx, sp,
					ip */
	__u32 pc_is_exact;
	__u32 bx_is_known;
	__u32 mapping_count;
	__u32 stack_bytes;
	struct stack_part parts[STACK_PARTS];
	struct stack_mapping mappings[STACK_MAPPINGS_MAX]; /* ascending */
	__u8 stack[STACK_BYTES_MAX];                       /* stack_bytes of it are sent */
};

struct event_process {
	struct event_header h;
	__u32 ppid;
	__u32 pad;
	struct file_notice notice; /* EXEC: the new executable, vma_start 0 when not mapped yet */
};

/* Has no event_header. */
struct event_resume {
	__u16 type;
	__u16 pad;
	__u32 tid;
	__u64 left_ns; /* time_ns of the sample that was taken then */
	__u64 time_ns;
};

/* Name, file and table of lines of a function, as they are in the process' memory: texts of 1, 2 or
 * 4 bytes a character, and the table from which the runtime finds lines. Each is cut at its limit.
 */
#define CODE_NAME_BYTES_MAX 256
#define CODE_OWNER_BYTES_MAX 255 /* of a class or module in front of it */
#define CODE_FILE_BYTES_MAX 512
#define CODE_LINES_BYTES_MAX CPYTHON_LINES_BYTES_MAX

/* Has no event_header. */
struct event_code {
	__u16 type;
	__u16 kind;       /* enum runtime_kind */
	__u16 version;    /* as in runtime_record */
	__u16 name_bytes; /* with the owner's */
	__u16 file_bytes;
	__u16 lines_bytes;
	__u8 name_unit; /* bytes a character */
	__u8 file_unit;
	__u8 owner_bytes; /* the first of name_bytes: the class or module that it belongs to */
	__u8 form;        /* enum runtime_form */
	__u32 pid;
	__u32 first_line;
	__u64 process_start_ns;
	__u64 code; /* as in frames, in this process */
	__u8 data[CODE_OWNER_BYTES_MAX + CODE_NAME_BYTES_MAX + CODE_FILE_BYTES_MAX +
		  CODE_LINES_BYTES_MAX]; /* in this order, without gaps */
};

/* Per-CPU counters of the BPF program. samples = delivered + seen + Σ lost. */
/* clang-format off */
#define BPF_COUNTER_LIST(X)                                                        \
	X(samples, "timer interrupts in a task, and threads that left a CPU")      \
	X(off_cpu, "samples of threads that left a CPU")                           \
	X(idle, "timer interrupts in the idle task (not samples)")                 \
	X(delivered, "samples written to the ring with their frames")              \
	X(seen, "samples written to the ring by their hash")                       \
	X(lost_ring, "samples lost: the ring was full")                            \
	X(lost_busy, "samples lost: this CPU was inside the program already")      \
	X(lost_excluded, "samples of tasks that are not profiled")                 \
	X(lost_off_cpu, "samples lost: too many threads were off their CPUs")      \
	X(resumed, "threads that ran again after such a sample")                   \
	X(resumed_lost, "of these, not told: the ring was full")                   \
	X(user_frames, "user frames walked")                                       \
	X(kernel_frames, "kernel frames walked")                                   \
	X(vma_walks, "searches in a VMA tree")                                     \
	X(stacks, "stacks copied, to finish a walk later")                         \
	X(stacks_lost, "stacks not copied: the ring was too full")                 \
	X(stacks_refused, "stacks not copied: too many in a short time")           \
	X(notices_lost, "process events lost: the ring was full")                  \
	X(runtime_samples, "samples with a frame in a language runtime")           \
	X(runtime_threads, "of these, in threads that the runtime does not know")  \
	X(runtime_frames, "frames of language runtimes walked")                    \
	X(codes, "functions of runtimes told")                                     \
	X(codes_lost, "of these, not told: the ring was full")                     \
	X(codes_put_off, "functions left to later samples: many are new at once")  \
	X(run_ns, "nanoseconds from the beginning of a sample to its end")
/* clang-format on */
struct bpf_counters {
#define BPF_COUNTER_FIELD(name, help) __u64 name;
	BPF_COUNTER_LIST(BPF_COUNTER_FIELD)
#undef BPF_COUNTER_FIELD
	__u64 stack_end[16]; /* by enum stack_end */
};
