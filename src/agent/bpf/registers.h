/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * registers: the registers that the user program had when it was interrupted, also when that was
 * in the kernel: then the entry code has saved them at the top of the task's kernel stack.
 */
#pragma once

#include "maps.h"

/* One structure at the top of the kernel stack of `task`. TOP_OF_KERNEL_STACK_PADDING is 0 on
 * x86-64 but with FRED (Linux 6.9), where bpf_task_pt_regs() exists and knows. */
static __always_inline __u64 saved_registers_at(struct task_struct *task, __u64 thread_size)
{
	return (__u64)BPF_CORE_READ(task, stack) + thread_size - sizeof(struct x86_regs);
}

/* 0 when they could not be read. */
static __always_inline int saved_registers(struct task_struct *task, struct x86_regs *out)
{
	__u64 at;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) /* Linux 5.15 */
		at = (__u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		at = saved_registers_at(task, settings.thread_size);
	return at && bpf_probe_read_kernel(out, sizeof(*out), (const void *)at) == 0;
}

/* Fill the walk from the registers. STACK_END_NONE: go on; else why there is no stack to walk. */
static __always_inline enum stack_end registers_begin(
	const struct bpf_perf_event_data *ctx, struct task_struct *task, struct walk *w)
{
	__u64 cs = ctx->regs.cs;
	if ((cs & X86_RPL_MASK) == X86_RPL_USER) {
		w->pc = ctx->regs.ip;
		w->sp = ctx->regs.sp;
		w->fp = ctx->regs.bp;
	} else {
		struct x86_regs regs;
		if (!saved_registers(task, &regs))
			return STACK_END_NO_REGS;
		cs = regs.cs;
		if (regs.ip && (cs & X86_RPL_MASK) != X86_RPL_USER)
			return STACK_END_NO_REGS;
		w->pc = regs.ip;
		w->sp = regs.sp;
		w->fp = regs.bp;
		w->in_exec = regs.orig_ax == X86_NR_EXECVE || regs.orig_ax == X86_NR_EXECVEAT;
	}
	w->compat = (__u16)cs == X86_USER32_CS;
	w->pc_is_exact = 1;
	return STACK_END_NONE;
}

/* A sample of a thread without user registers: a kernel thread, a worker of io_uring (whose saved
 * registers are zero), or a process that has given its memory back on its way out. */
static __always_inline int has_user_stack(const struct walk *w, unsigned int task_flags)
{
	return w->mm && !(task_flags & KERNEL_PF_KTHREAD);
}
