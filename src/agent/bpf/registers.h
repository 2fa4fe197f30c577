/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * registers: the registers that the user program had when it was interrupted. If the kernel was
 * interrupted, its entry code has saved them at the top of the task's kernel stack.
 */
#pragma once

#include "maps.h"

/* The saved registers are at the very top of the kernel stack of `task`:
 * TOP_OF_KERNEL_STACK_PADDING is 0 on x86-64, except with FRED (Linux 6.9); there
 * bpf_task_pt_regs() exists, and is used instead. */
static __always_inline __u64 saved_registers_at(struct task_struct *task, __u64 thread_size)
{
	return (__u64)BPF_CORE_READ(task, stack) + thread_size - sizeof(struct x86_regs);
}

/* 0: they could not be read. */
static __always_inline int saved_registers(struct task_struct *task, struct x86_regs *out)
{
	__u64 at;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) /* Linux 5.15 */
		at = (__u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		at = saved_registers_at(task, settings.thread_size);
	return at && bpf_probe_read_kernel(out, sizeof(*out), (const void *)at) == 0;
}

#define REGISTERS_FILL(w, r)            \
	do {                            \
		(w)->regs[0] = (r).r8;  \
		(w)->regs[1] = (r).r9;  \
		(w)->regs[2] = (r).r10; \
		(w)->regs[3] = (r).r11; \
		(w)->regs[4] = (r).r12; \
		(w)->regs[5] = (r).r13; \
		(w)->regs[6] = (r).r14; \
		(w)->regs[7] = (r).r15; \
		(w)->regs[8] = (r).di;  \
		(w)->regs[9] = (r).si;  \
		(w)->regs[10] = (r).bp; \
		(w)->regs[11] = (r).bx; \
		(w)->regs[12] = (r).dx; \
		(w)->regs[13] = (r).ax; \
		(w)->regs[14] = (r).cx; \
		(w)->regs[15] = (r).sp; \
		(w)->regs[16] = (r).ip; \
	} while (0)

/* Begins the walk at the frame whose registers are in w->regs. */
static __always_inline void walk_begin_at_registers(struct walk *w)
{
	w->pc = w->regs[SIGCONTEXT_IP];
	w->sp = w->regs[SIGCONTEXT_SP];
	w->fp = w->regs[SIGCONTEXT_BP];
	w->bx = w->regs[SIGCONTEXT_BX];
	w->bx_is_known = 1;
	w->regs_are_kept = 0;
	w->go_g = w->regs[SIGCONTEXT_R14];
	w->pc_is_exact = 1;
}

/* Are these the registers of a new thread in the clone() that made it (ax is 0), with its new
 * stack? Then there is no caller's frame: the memory where it would be may have any content, or be
 * missing. */
static __always_inline int has_new_stack(const struct x86_regs *r)
{
	__u64 stack[2]; /* lowest byte, size */
	if (r->ax != 0)
		return 0;
	return r->si == r->sp || (bpf_probe_read_user(stack, sizeof(stack),
					  (const void *)(r->di + CLONE_ARGS_STACK)) == 0 &&
					 stack[0] + stack[1] == r->sp);
}

/* Fills the walk from the interrupted registers, or, if these are the kernel's or NULL, from the
 * saved ones. STACK_END_NONE: go on; else why there is no stack to walk. */
static __always_inline enum stack_end registers_begin(
	const struct x86_regs *interrupted, struct task_struct *task, struct walk *w)
{
	__u64 cs = interrupted ? interrupted->cs : 0;
	if (interrupted && (cs & X86_RPL_MASK) == X86_RPL_USER) {
		REGISTERS_FILL(w, *interrupted);
		/* sysret has set cx to ip: the system call has just returned, and the timer expired
		 * in it. */
		w->may_be_new = interrupted->cx == interrupted->ip && has_new_stack(interrupted);
	} else {
		/* The window is used as a buffer, since it is still empty, and our own stack is
		 * short. */
		struct x86_regs *regs = (struct x86_regs *)w->window;
		if (!saved_registers(task, regs))
			return STACK_END_NO_REGS;
		cs = regs->cs;
		if (regs->ip && (cs & X86_RPL_MASK) != X86_RPL_USER)
			return STACK_END_NO_REGS;
		REGISTERS_FILL(w, *regs);
		w->in_exec = regs->orig_ax == X86_NR_EXECVE || regs->orig_ax == X86_NR_EXECVEAT;
		w->is_new = (regs->orig_ax == X86_NR_CLONE || regs->orig_ax == X86_NR_CLONE3) &&
			    has_new_stack(regs);
	}
	w->compat = (__u16)cs == X86_USER32_CS;
	walk_begin_at_registers(w);
	return STACK_END_NONE;
}

/* False for a thread without user registers: a kernel thread, a worker of io_uring (whose saved
 * registers are zero), or a process that has freed its memory on exit. */
static __always_inline int has_user_stack(const struct walk *w, unsigned int task_flags)
{
	return w->mm && !(task_flags & KERNEL_PF_KTHREAD);
}
