/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profiler: takes a sample at each timer interrupt of each CPU (and, where it is asked for, of
 * threads that leave their CPU), and tells of programs that begin and processes that end.
 *
 * Needs Linux 5.10 or later with BTF, x86-64. One object for all of them: what differs between
 * kernels is decided while loading, by what their BTF says.
 *
 * No state is kept for a process: every sample finds its way from the registers alone (walk.h), but
 * for mappings that have not changed since the CPU's last sample (mapping.h).
 * The programs that sample run in the timer's hard interrupt, or in the scheduler with interrupts
 * off, so on one CPU they never nest; the `busy` flags hold that also where it is not so
 * (PREEMPT_RT, other events), and count.
 */
#include "maps.h"
#include "offcpu.h"
#include "registers.h"
#include "stack.h"
#include "vma.h"
#include "walk.h"

char LICENSE[] SEC("license") = "GPL";

#define KERNEL_STACK_BYTES (SAMPLE_KERNEL_FRAMES_MAX * sizeof(__u64))

static __always_inline void header_fill(
	struct event_header *h, enum event_type type, const struct task_struct *task)
{
	__u64 id = bpf_get_current_pid_tgid();
	h->type = type;
	h->stack_end = STACK_END_NONE;
	h->flags = 0;
	h->cpu = bpf_get_smp_processor_id();
	h->pid = id >> 32;
	h->tid = (__u32)id;
	h->process_start_ns = TASK_READ_2(task, group_leader, start_boottime);
	h->time_ns = bpf_ktime_get_ns();
	h->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(h->comm, sizeof(h->comm));
}

/* Deeper trees of processes than any shell or build makes. */
#define ANCESTORS_MAX 64

/* All processes, or one and its descendants: what it leaves behind when it has ended goes to init,
 * unless it is a subreaper. */
static __always_inline int is_profiled(void)
{
	if (config.only_pid == 0)
		return 1;
	if (bpf_get_current_pid_tgid() >> 32 == config.only_pid)
		return 1;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		__u32 pid = BPF_CORE_READ(task, tgid);
		if (pid == config.only_pid)
			return 1;
		if (pid <= 1)
			return 0;
		task = BPF_CORE_READ(task, real_parent);
	}
	return 0;
}

/* ---- samples ---- */

static __always_inline void sample_reset(struct walk *w, struct task_struct *task)
{
	w->hash = config.hash_seed;
	w->kernel_count = 0;
	w->user_count = 0;
	w->pc_is_guess = 0;
	w->in_exec = 0;
	w->is_new = 0;
	w->may_be_new = 0;
	w->window_start = WINDOW_NONE;
	__builtin_memset(&w->runtime, 0, sizeof(w->runtime));
	__builtin_memset(&w->code, 0, sizeof(w->code));
	w->go_record = 0;
	w->event.labels = 0;
	const struct mm_struct *mm = TASK_READ(task, mm);
	w->mm = (__u64)mm;
	w->vdso = mm ? (__u64)TASK_READ(mm, context.vdso) : 0;
	w->stack_start = mm ? TASK_READ(mm, start_stack) : 0;
	header_fill(&w->event.h, EVENT_SAMPLE, task);
	mappings_begin(w, task, mm);
	w->event.ppid = TASK_READ_2(task, real_parent, tgid);
	__builtin_memset(&w->event.notice, 0, sizeof(w->event.notice));
}

static __always_inline void sample_kernel_stack(void *ctx, struct walk *w)
{
	long bytes = bpf_get_stack(ctx, w->frames, KERNEL_STACK_BYTES, 0);
	if (bytes <= 0)
		return;
	__u32 count = (__u32)bytes / sizeof(__u64);
	__u64 hash = w->hash;
	for (__u32 i = 0; i < SAMPLE_KERNEL_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		hash = hash_mix(hash, w->frames[i]);
	}
	w->hash = hash_mix(hash, count);
	w->kernel_count = count;
}

/* `regs`: those that were interrupted. */
static __always_inline enum stack_end sample_user_stack(
	const struct x86_regs *regs, struct walk *w, struct task_struct *task)
{
	if (!has_user_stack(w, TASK_READ(task, flags)))
		return STACK_END_NONE;
	enum stack_end end = registers_begin(regs, task, w);
	if (end != STACK_END_NONE)
		return end;
	if (w->pc == 0 && w->sp == 0) /* a worker of io_uring: has an mm, never ran in user mode */
		return STACK_END_NONE;
	if (w->in_exec && !stack_is_there(w))
		return STACK_END_EXEC;
	end = walk_user_stack(w);
	return w->may_be_new && w->user_count == 1 && end == STACK_END_NO_VMA ? STACK_END_ROOT
									      : end;
}

/* 0: it is lost, and counted. */
static __always_inline int sample_send(struct walk *w, struct bpf_counters *c)
{
	__u32 frames = w->kernel_count + w->user_count;
	w->event.stack_hash = w->hash;
	w->event.kernel_count = w->kernel_count;
	w->event.user_count = w->user_count;

	__u32 slot = w->hash & config.seen_mask;
	int has_stack = w->event.h.stack_end == STACK_END_NO_FILE && stack_send(w, c);
	if (has_stack)
		w->event.h.flags |= EVENT_FLAG_STACK;
	__u64 *sent = settings.seen_enabled && !has_stack ? bpf_map_lookup_elem(&seen_hashes, &slot)
							  : NULL;
	__u64 mark = hash_mix(w->hash, settings.epoch);
	if (sent && *sent == mark) {
		w->event.h.type = EVENT_SAMPLE_SEEN;
		if (bpf_ringbuf_output(&events, &w->event, sizeof(w->event), ring_flags())) {
			c->lost_ring++;
			return 0;
		}
		c->seen++;
		return 1;
	}
	if (sent)
		w->event.h.flags |= EVENT_FLAG_KEEP;
	if (frames > SAMPLE_FRAMES_MAX)
		frames = SAMPLE_FRAMES_MAX;
	__u64 bytes = sizeof(w->event) + frames * sizeof(__u64);
	/* A file not met before is to be opened while its process lives: at once. */
	__u64 flags = has_stack ? BPF_RB_FORCE_WAKEUP : ring_flags();
	if (bpf_ringbuf_output(&events, &w->event, bytes, flags)) {
		c->lost_ring++;
		return 0;
	}
	c->delivered++;
	if (sent)
		*sent = mark;
	return 1;
}

/* Why the user stack ended is known: note it. */
static __always_inline void sample_finish(
	struct walk *w, struct bpf_counters *c, enum stack_end end)
{
	w->event.h.stack_end = end;
	c->stack_end[end & 15]++;
	c->user_frames += w->user_count;
	c->kernel_frames += w->kernel_count;
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *ctx)
{
	struct bpf_counters *c = counters_here();
	struct walk *w = walk_here();
	if (!c || !w)
		return 0;
	if ((__u32)bpf_get_current_pid_tgid() == 0) {
		c->idle++;
		return 0;
	}
	c->samples++;
	if (!is_profiled()) {
		c->lost_excluded++;
		return 0;
	}
	if (w->busy) {
		c->lost_busy++;
		return 0;
	}
	w->busy = 1;
	struct task_struct *task = current_task();
	sample_reset(w, task);
	if ((ctx->regs.cs & X86_RPL_MASK) != X86_RPL_USER)
		sample_kernel_stack(ctx, w);
	sample_finish(w, c, sample_user_stack(&ctx->regs, w, task));
	(void)sample_send(w, c);
	c->run_ns += bpf_ktime_get_ns() - w->event.h.time_ns;
	w->busy = 0;
	return 0;
}

/* ---- threads that leave their CPU ---- */

static __always_inline void sample_off_cpu(struct bpf_raw_tracepoint_args *ctx, struct walk *w,
	struct bpf_counters *c, enum thread_state state)
{
	struct task_struct *task = current_task();
	sample_reset(w, task);
	__u32 tid = w->event.h.tid;
	w->event.h.flags = state << EVENT_STATE_SHIFT;
	/* First the note that ends it: a sample without would never end. */
	if (bpf_map_update_elem(&off_cpu, &tid, &w->event.h.time_ns, BPF_ANY)) {
		c->lost_off_cpu++;
		return;
	}
	sample_kernel_stack(ctx, w);
	sample_finish(w, c, sample_user_stack(NULL, w, task));
	if (!sample_send(w, c))
		(void)bpf_map_delete_elem(&off_cpu, &tid);
	c->run_ns += bpf_ktime_get_ns() - w->event.h.time_ns;
}

/* Loaded only with --off-cpu-threshold. Arguments: whether the thread was preempted, the thread
 * that leaves the CPU, the thread that gets it. */
SEC("raw_tp/sched_switch")
int thread_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct bpf_counters *c = counters_here();
	struct walk *w = walk_here();
	if (!c || !w)
		return 0;
	off_cpu_resume((struct task_struct *)ctx->args[2], c);
	struct task_struct *task = current_task();
	__u64 kernel_state = off_cpu_kernel_state(task);
	if ((__u32)bpf_get_current_pid_tgid() == 0 || !off_cpu_is_chosen(task, kernel_state) ||
		!is_profiled())
		return 0;
	c->samples++;
	c->off_cpu++;
	if (w->busy) {
		c->lost_busy++;
		return 0;
	}
	w->busy = 1;
	sample_off_cpu(ctx, w, c, off_cpu_state(kernel_state, ctx->args[0] != 0));
	w->busy = 0;
	return 0;
}

/* ---- processes ---- */

static __always_inline void process_send(struct event_process *e, __u64 flags)
{
	struct bpf_counters *c = counters_here();
	if (bpf_ringbuf_output(&events, e, sizeof(*e), flags) && c)
		c->notices_lost++;
}

/* The mapping of the new program's text. Its file is the file that frames will name. On an overlay
 * file system bprm->file is another one. */
static __always_inline void process_text(struct task_struct *task, struct file_notice *notice)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct vma_search *s = vma_search_at(VMA_SEARCH_PROCESS);
	if (!mm || !s || s->busy)
		return;
	s->busy = 1;
	s->mm = (__u64)mm;
	if (vma_find(VMA_SEARCH_PROCESS, BPF_CORE_READ(mm, start_code))) {
		const struct vm_area_struct *vma = (const struct vm_area_struct *)s->vma;
		const struct file *file = VMA_READ(s, vma, vm_file);
		__u64 offset = (__u64)VMA_READ(s, vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
		struct file_key key;
		__u32 generation = 0;
		if (file && vma_file_key(s, file, &key, &generation)) {
			key.generation = generation;
			vma_notice(s, &key, offset, notice);
		}
	}
	s->busy = 0;
}

/* User space does not know it, or another file with its inode. */
static __always_inline int is_new_file(const struct file_key *of)
{
	struct file_key key = *of;
	key.generation = 0;
	const __u32 *index = of->inode ? bpf_map_lookup_elem(&files, &key) : NULL;
	if (!index)
		return of->inode != 0;
	__u32 i = *(const volatile __u32 *)index;
	const struct file_slot *slot = bpf_map_lookup_elem(&file_slots, &i);
	return slot && slot->key.generation && slot->key.generation != of->generation;
}

/* The program is loaded and mapped, and has not run. */
SEC("raw_tp/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	if (!is_profiled())
		return 0;
	struct task_struct *task = current_task();
	struct event_process e;
	__builtin_memset(&e, 0, sizeof(e));
	header_fill(&e.h, EVENT_EXEC, task);
	e.ppid = TASK_READ_2(task, real_parent, tgid);
	process_text(task, &e.notice);
	/* A program not met before is to be opened while it lives: at once. */
	process_send(&e, is_new_file(&e.notice.key) ? BPF_RB_FORCE_WAKEUP : ring_flags());
	return 0;
}

/* Runs for each thread; signal->live counts the threads that have not come here yet. Two
 * threads that end at the same moment may both see zero: then the event is sent twice. */
SEC("raw_tp/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = current_task();
	if (!is_profiled() || BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	struct event_process e;
	__builtin_memset(&e, 0, sizeof(e));
	header_fill(&e.h, EVENT_EXIT, task);
	e.ppid = TASK_READ_2(task, real_parent, tgid);
	process_send(&e, ring_flags());
	return 0;
}

/* ---- the self test ---- */

static __always_inline int is_own_system_call(const struct x86_regs *r)
{
	return r->orig_ax == X86_NR_BPF && (r->cs & X86_RPL_MASK) == X86_RPL_USER;
}

/* Where the saved registers lie below bpf_task_pt_regs(): kernel stacks are 16 KiB, 32 KiB with
 * KASAN. We are in our own bpf() system call: the registers must say so. */
static __always_inline void check_registers(struct task_struct *task)
{
	struct x86_regs regs;
	check.thread_size = 0;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		if (saved_registers(task, &regs) && is_own_system_call(&regs))
			check.thread_size = THREAD_SIZE_KNOWN;
	}
	for (__u64 size = THREAD_SIZE_MIN; size <= THREAD_SIZE_MAX && !check.thread_size;
		size *= 2) {
		const void *at = (const void *)saved_registers_at(task, size);
		if (bpf_probe_read_kernel(&regs, sizeof(regs), at) == 0 &&
			is_own_system_call(&regs))
			check.thread_size = size;
	}
	check.user_sp = regs.sp;
}

/* Run by sampler_open() in its own thread (BPF_PROG_TEST_RUN, Linux 5.10). */
SEC("raw_tp")
int check_kernel(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = current_task();
	struct vma_search *s = vma_search_at(VMA_SEARCH_PROCESS);
	check.vma_start = 0;
	check.vma_end = 0;
	check_registers(task);
	if (!s)
		return 0;
	s->mm = (__u64)BPF_CORE_READ(task, mm);
	if (vma_find(VMA_SEARCH_PROCESS, check.address)) {
		check.vma_start = s->start;
		check.vma_end = s->end;
	}
	return 0;
}
