/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * offcpu: samples threads when they leave their CPU, and measures for how long.
 *
 * The scheduler's tracepoint runs in the thread that leaves, with interrupts off: its memory can be
 * read, and no timer's sample can come in between. The sample is sent at once, and the map
 * `off_cpu` keeps its time. When the thread gets a CPU again, another event says how long it was
 * away. User space puts the two together.
 *
 * A thread that is not in the map costs one lookup when it gets a CPU, and a random number when it
 * leaves.
 */
#pragma once

#include "maps.h"

/* Another CPU may wake the thread while it is leaving; then its state already says that it can run,
 * which is right. */
static __always_inline enum thread_state off_cpu_state(__u64 kernel_state, int is_preempted)
{
	if (is_preempted || kernel_state == 0 || (kernel_state & KERNEL_TASK_WAKING))
		return THREAD_RUNNABLE;
	if (kernel_state & KERNEL_TASK_INTERRUPTIBLE)
		return THREAD_SLEEPING;
	if (kernel_state & KERNEL_TASK_UNINTERRUPTIBLE)
		return THREAD_BLOCKED;
	return THREAD_OFF_CPU;
}

static __always_inline __u64 off_cpu_kernel_state(struct task_struct *task)
{
	if (bpf_core_field_exists(struct task_struct, __state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((struct task_struct___state *)task, state);
}

/* Whether the switch of this thread is sampled. Kernel threads are not, since they mostly wait for
 * work; nor are threads that have ended. */
static __always_inline int off_cpu_is_chosen(struct task_struct *task, __u64 kernel_state)
{
	if (!settings.off_cpu_enabled || bpf_get_prandom_u32() > settings.off_cpu_last)
		return 0;
	return !(kernel_state & KERNEL_TASK_DEAD) &&
	       !(BPF_CORE_READ(task, flags) & KERNEL_PF_KTHREAD);
}

/* To be called when `task` is about to run. */
static __always_inline void off_cpu_resume(struct task_struct *task, struct bpf_counters *c)
{
	struct event_resume e = { .type = EVENT_RESUME };
	__u32 tid = BPF_CORE_READ(task, pid);
	const __u64 *left = tid ? bpf_map_lookup_elem(&off_cpu, &tid) : NULL;
	if (!left)
		return;
	e.tid = tid;
	e.left_ns = *left;
	e.time_ns = bpf_ktime_get_ns();
	(void)bpf_map_delete_elem(&off_cpu, &tid);
	c->resumed++;
	if (bpf_ringbuf_output(&events, &e, sizeof(e), ring_flags()))
		c->resumed_lost++;
}
