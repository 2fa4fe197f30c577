/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel: the few fields of kernel structures that the BPF program reads, written by hand.
 *
 * Offsets are filled in at load time from the running kernel's BTF (CO-RE), so order and size here
 * mean nothing, and no vmlinux.h is needed to build. A structure that changed its shape has a
 * second form with a `___suffix`, which CO-RE ignores when it looks the name up.
 *
 * Some are not relocated, because they are fixed by the ABI or the hardware: struct x86_regs
 * (struct pt_regs of x86-64, as user space sees it in ptrace) and the context of a perf_event
 * program.
 */
#pragma once

#include <linux/types.h>

#include "shared.h"

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

/* lib/maple_tree.c, Linux 6.1 */
struct maple_tree {
	void *ma_root;
};

/* Before Linux 6.1 (commit 524e00b36e8c, "mm: remove rb tree") VMAs hang in a red-black tree. */
struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct vm_area_struct___rb {
	struct rb_node vm_rb;
	struct vm_area_struct___rb *vm_next;
};

struct mm_struct___rb {
	struct rb_root mm_rb;
	struct vm_area_struct___rb *mmap;
};

/* include/linux/seqlock_types.h */
struct seqcount {
	unsigned int sequence;
};

struct mm_struct {
	struct maple_tree mm_mt;
	/* Odd while a thread may change the tree and the mappings in it, and a new number after
	 * each change: since Linux 6.13 (commit eb449bd96954, "mm: convert mm_lock_seq to a proper
	 * seqcount"), with CONFIG_PER_VMA_LOCK. */
	struct seqcount mm_lock_seq;
	unsigned long start_code;
	unsigned long start_stack; /* sp as execve set it */
	struct {
		void *vdso;
	} context;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_flags;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	__u32 i_generation;
	long long i_size;
	__s64 i_mtime_sec;
	__u32 i_mtime_nsec;
};

/* One structure before Linux 6.11 (commit 3aa63a569c64), called __i_mtime from 6.7 on. */
struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode___timespec {
	struct timespec64 __i_mtime;
};

struct inode___old {
	struct timespec64 i_mtime;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct signal_struct {
	struct {
		int counter;
	} live;                   /* number of threads that have not begun to exit */
	struct mm_struct *oom_mm; /* set if the OOM killer has chosen the process: the memory that
				     it had then */
};

/* Renamed in Linux 5.14 (commit 2f064a59a11f). */
struct task_struct___state {
	long state;
};

struct task_struct {
	unsigned int __state;
	void *stack;
	unsigned int flags;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	__u64 self_exec_id; /* changes with each exec() */
	struct signal_struct *signal;
	struct {
		unsigned long fsbase; /* arch/x86: the thread pointer */
	} thread;
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* From Linux 5.11 on the verifier knows the type of the current task and of all that it points to:
 * reading a field is a load, and not a call (which costs as much as twenty loads).
 */
#define TASK_IS_TYPED() bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)
/* To be used only for fields of current_task() and of structures that it points to. */
#define TASK_READ(task, field) (TASK_IS_TYPED() ? (task)->field : BPF_CORE_READ(task, field))
#define TASK_READ_2(task, field, next) \
	(TASK_IS_TYPED() ? (task)->field->next : BPF_CORE_READ(task, field, next))

/* struct pt_regs, arch/x86/include/asm/ptrace.h. With FRED (Linux 6.9) the upper 48 bits of the
 * cs and ss slots carry event data: only the low 16 are the selector. */
struct x86_regs {
	__u64 r15;
	__u64 r14;
	__u64 r13;
	__u64 r12;
	__u64 bp;
	__u64 bx;
	__u64 r11;
	__u64 r10;
	__u64 r9;
	__u64 r8;
	__u64 ax;
	__u64 cx;
	__u64 dx;
	__u64 si;
	__u64 di;
	__u64 orig_ax; /* number of the system call; -1 when entered otherwise */
	__u64 ip;
	__u64 cs;
	__u64 flags;
	__u64 sp;
	__u64 ss;
};

/* include/uapi/linux/bpf_perf_event.h */
struct bpf_perf_event_data {
	struct x86_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#define X86_USER32_CS 0x23 /* __USER32_CS, arch/x86/include/asm/segment.h */
#define X86_RPL_MASK 3
#define X86_RPL_USER 3
#define X86_NR_CLONE 56 /* system calls, ABI */
#define X86_NR_EXECVE 59
#define X86_NR_BPF 321
#define X86_NR_EXECVEAT 322
#define X86_NR_CLONE3 435
#define CLONE_ARGS_STACK 40 /* include/uapi/linux/sched.h, struct clone_args: stack, stack_size */

/* VSYSCALL_ADDR, arch/x86/include/uapi/asm/vsyscall.h: outside every mm. */
#define X86_VSYSCALL_START 0xffffffffff600000ULL
#define X86_VSYSCALL_BYTES 0x1000

#define KERNEL_PF_KTHREAD 0x00200000 /* include/linux/sched.h; the same since 2.6.27 */
/* Bits of __state, the same since 4.14; 0: the thread runs or could run. */
#define KERNEL_TASK_INTERRUPTIBLE 0x0001
#define KERNEL_TASK_UNINTERRUPTIBLE 0x0002
#define KERNEL_TASK_DEAD 0x0080
#define KERNEL_TASK_WAKING 0x0200
#define KERNEL_VM_EXEC 0x00000004 /* include/linux/mm.h */
/* include/linux/fs.h: a file system that only the kernel mounts. */
#define KERNEL_SB_KERNMOUNT (1 << 22)
#define KERNEL_PAGE_SHIFT 12

/* Maple tree nodes, include/linux/maple_tree.h: 256 bytes, the type in bits 3 to 6 of the pointer
 * to it. Words: parent | pivot[15] | slot[16], or parent | pivot[9] | slot[10] | gap[10]. */
#define MAPLE_NODE_BYTES 256
#define MAPLE_NODE_WORDS (MAPLE_NODE_BYTES / 8)
#define MAPLE_NODE_MASK (~(__u64)(MAPLE_NODE_BYTES - 1))
#define MAPLE_TYPE_SHIFT 3
#define MAPLE_TYPE_MASK 0xf
#define MAPLE_ROOT_TAG_MASK 3
#define MAPLE_ROOT_TAG_NODE 2   /* xa_is_node() */
#define MAPLE_RESERVED_MAX 4096 /* values up to here are no pointers */
#define MAPLE_RANGE64_PIVOTS 15
#define MAPLE_ARANGE64_PIVOTS 9
enum maple_node_type {
	MAPLE_LEAF64 = 1,
	MAPLE_RANGE64 = 2,
	MAPLE_ARANGE64 = 3,
};
/* Depth of a tree with MAX_MAP_COUNT entries: fan-out is at least 5. */
#define MAPLE_DEPTH_MAX 10
/* A red-black tree of 65,530 nodes (vm.max_map_count) is at most 2 log2(n + 1) deep. */
#define RB_DEPTH_MAX 33
