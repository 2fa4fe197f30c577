/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * oom: reads the profile of its memory out of a Go program that the kernel ends for want of it.
 *
 * Go's runtime keeps a list of buckets, one for each stack that has allocated (a sample of them,
 * one in runtime.MemProfileRate bytes), in memory that it never moves or frees. The kernel notes
 * its victim in signal->oom_mm and sends SIGKILL; each thread comes by signal_deliver as it ends,
 * with its memory still there. The first one finds the program and begins the walk, the next ones
 * go on where one had to stop. The kernel holds the siglock of the process there, so they come one
 * at a time.
 *
 * Nothing in the victim's memory is trusted: reads that fail end the walk, and it is bounded
 * whatever the list looks like. Loops are calls of global functions, which are verified once:
 * Linux 5.10 has no bpf_loop().
 *
 * Source: Go, src/runtime/mprof.go: the same in all versions from 1.9 to 1.26.
 */
#include "oom_shared.h"
#include "vma.h"

char LICENSE[] SEC("license") = "GPL";

#define SIGNAL_KILL 9
#define GO_MEM_PROFILE 1 /* bucketType: memProfile */
#define GO_CYCLES 4      /* memRecord: active, future[3] */
#define GO_CYCLE_WORDS (GO_CYCLES * 4)

struct go_bucket {
	__u64 next;
	__u64 allnext;
	__u64 type;
	__u64 hash;
	__u64 size;
	__u64 stack_count;
	/* stack[stack_count], then struct go_cycle[GO_CYCLES] */
};

struct go_cycle {
	__u64 allocs;
	__u64 frees;
	__u64 alloc_bytes;
	__u64 free_bytes;
};

#ifndef OOM_RODATA /* a test writes it */
#define OOM_RODATA const volatile
#endif
OOM_RODATA __u32 config_allocs = 0; /* send what was freed again, too */
struct oom_counters counters = { 0 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OOM_PROGRAMS_MAX);
	__type(key, struct file_key);
	__type(value, struct oom_program);
} oom_programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OOM_RING_BYTES);
} oom_events SEC(".maps");

struct oom_victim_key {
	__u64 pid;
	__u64 start_ns;
};

struct oom_victim {
	__u64 next;   /* bucket; 0: the walk is over, or there is none */
	__u32 walked; /* buckets so far */
	__u32 lost;   /* of these */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, OOM_VICTIMS_MAX);
	__type(key, struct oom_victim_key);
	__type(value, struct oom_victim);
} oom_victims SEC(".maps");

/* Of the thread that walks on this CPU. */
struct oom_walk {
	__u64 busy;
	__u64 next;
	__u32 walked;
	__u32 lost;
	__u32 reason; /* enum oom_reason, when it is over */
	__u32 pad;
	struct go_bucket bucket;
	struct go_cycle cycles[GO_CYCLES];
	struct oom_bucket event;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct oom_walk);
} oom_walks SEC(".maps");

static __always_inline struct oom_walk *oom_walk_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&oom_walks, &zero);
}

#define COUNT(name, n) ((void)__sync_fetch_and_add(&counters.name, (n)))

/* ---- one bucket ---- */

static __always_inline int oom_read(void *out, __u32 bytes, __u64 at)
{
	return bpf_probe_read_user(out, bytes, (const void *)at) == 0;
}

static __always_inline void oom_sum(struct oom_walk *w)
{
	struct oom_bucket *e = &w->event;
	e->allocs = e->frees = e->alloc_bytes = e->free_bytes = 0;
	for (int i = 0; i < GO_CYCLES; i++) {
		e->allocs += w->cycles[i].allocs;
		e->frees += w->cycles[i].frees;
		e->alloc_bytes += w->cycles[i].alloc_bytes;
		e->free_bytes += w->cycles[i].free_bytes;
	}
}

/* A page that was never written to is not there: what is on it is zero. The newest bucket may end
 * on one. */
static __always_inline void oom_read_cycles(struct oom_walk *w, __u64 at)
{
	__u64 *words = (__u64 *)w->cycles;
	if (oom_read(w->cycles, sizeof(w->cycles), at))
		return;
	COUNT(torn, 1);
	for (__u32 i = 0; i < GO_CYCLE_WORDS; i++)
		if (!oom_read(&words[i], sizeof(*words), at + i * sizeof(*words)))
			words[i] = 0;
}

static __always_inline void oom_send(struct oom_walk *w, __u64 at)
{
	__u64 count = w->bucket.stack_count;
	if (count > OOM_STACK_MAX) {
		count = OOM_STACK_MAX;
		COUNT(deep, 1);
	}
	int is_there = oom_read(w->event.stack, count * sizeof(__u64), at + sizeof(w->bucket));
	w->event.o.stack_count = count;
	/* Wakes the reader as the ring fills, not with each bucket. */
	__u64 waiting = bpf_ringbuf_query(&oom_events, BPF_RB_AVAIL_DATA);
	__u64 flags = waiting > OOM_RING_BYTES / 8 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	__u64 bytes = offsetof(struct oom_bucket, stack) + count * sizeof(__u64);
	if (!is_there || waiting > OOM_RING_BYTES - OOM_RING_BYTES_KEPT ||
		bpf_ringbuf_output(&oom_events, &w->event, bytes, flags)) {
		COUNT(lost, 1);
		w->lost++;
	} else {
		COUNT(sent, 1);
	}
}

/* The bucket w->next. A global function, so that it is verified once; those take no pointers before
 * Linux 5.12. 0: the walk is over. */
__noinline int oom_step(void)
{
	struct oom_walk *w = oom_walk_here();
	if (!w)
		return 0;
	__u64 at = w->next;
	if (!oom_read(&w->bucket, sizeof(w->bucket), at) || w->bucket.type != GO_MEM_PROFILE ||
		w->bucket.stack_count > OOM_GO_STACK_MAX) {
		w->reason = OOM_DAMAGED;
		return 0;
	}
	oom_read_cycles(w, at + sizeof(w->bucket) + w->bucket.stack_count * sizeof(__u64));
	oom_sum(w);
	int tells = w->event.allocs != w->event.frees || (config_allocs && w->event.allocs);
	if (tells)
		oom_send(w, at);
	COUNT(buckets, 1);
	if (!tells)
		COUNT(empty, 1);
	w->walked++;
	w->next = w->bucket.allnext;
	if (w->next == 0)
		w->reason = OOM_WHOLE;
	else if (w->walked >= OOM_BUCKETS_MAX)
		w->reason = OOM_CUT;
	return w->reason == 0;
}

/* The verifier follows no more than 8,192 jumps at a time: so there are two loops. */
#define OOM_STEPS 128

__noinline int oom_steps(void)
{
	for (int i = 0; i < OOM_STEPS; i++)
		if (!oom_step())
			return 0;
	return 1;
}

/* ---- one thread ---- */

static __always_inline void oom_end(struct oom_walk *w)
{
	struct oom_end e;
	__builtin_memset(&e, 0, sizeof(e));
	e.o = w->event.o;
	e.o.type = OOM_END;
	e.o.stack_count = 0;
	e.reason = w->reason;
	e.walked = w->walked;
	e.lost = w->lost;
	if (w->reason == OOM_WHOLE)
		COUNT(whole, 1);
	else if (w->reason == OOM_CUT)
		COUNT(cut, 1);
	else
		COUNT(damaged, 1);
	if (bpf_ringbuf_output(&oom_events, &e, sizeof(e), BPF_RB_FORCE_WAKEUP))
		COUNT(events_lost, 1);
}

/* The last thread of the process goes on to the end. */
static __always_inline int oom_is_last(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, live.counter) <= 1;
}

static __always_inline void oom_visit(struct task_struct *task, struct oom_walk *w,
	struct oom_victim *v, const struct oom_victim_key *key)
{
	w->next = v->next;
	w->walked = v->walked;
	w->lost = v->lost;
	w->reason = 0;
	w->event.o.type = OOM_BUCKET;
	w->event.o.pid = key->pid;
	w->event.o.process_start_ns = key->start_ns;
	int is_last = oom_is_last(task);
	for (int i = 0; i < OOM_BUCKETS_MAX / OOM_STEPS; i++)
		if ((i >= OOM_BUCKETS_A_THREAD / OOM_STEPS && !is_last) || !oom_steps())
			break;
	v->next = w->reason ? 0 : w->next;
	v->walked = w->walked;
	v->lost = w->lost;
	if (w->reason)
		oom_end(w);
}

/* ---- a new victim ---- */

/* Its program, and where it was loaded. */
static __always_inline const struct oom_program *oom_program_of(
	struct task_struct *task, __u64 *out_bias)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct vma_search *s = vma_search_at(VMA_SEARCH_PROCESS);
	if (!mm || !s)
		return NULL;
	s->mm = (__u64)mm;
	if (!vma_find(VMA_SEARCH_PROCESS, BPF_CORE_READ(mm, start_code)))
		return NULL;
	const struct vm_area_struct *vma = (const struct vm_area_struct *)s->vma;
	const struct file *file = VMA_READ(s, vma, vm_file);
	__u64 offset = (__u64)VMA_READ(s, vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
	struct file_key key;
	__u32 generation = 0;
	if (!file || !vma_file_key(s, file, &key, &generation))
		return NULL;
	const struct oom_program *p = bpf_map_lookup_elem(&oom_programs, &key);
	if (!p || (p->generation && p->generation != generation))
		return NULL;
	__u64 page = ~(((__u64)1 << KERNEL_PAGE_SHIFT) - 1);
	__u64 vaddr = (p->code_offset & page) == offset ? p->code_vaddr - p->code_offset
							: p->first_vaddr - p->first_offset;
	*out_bias = s->start - (offset + vaddr);
	return p;
}

static __always_inline void oom_header_fill(struct event_header *h, __u64 start_ns)
{
	__u64 id = bpf_get_current_pid_tgid();
	h->cpu = bpf_get_smp_processor_id();
	h->pid = id >> 32;
	h->tid = (__u32)id;
	h->process_start_ns = start_ns;
	h->time_ns = bpf_ktime_get_ns();
	h->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(h->comm, sizeof(h->comm));
}

/* The first bucket; 0: there is none to walk, which is counted. */
static __always_inline __u64 oom_begin(struct task_struct *task, const struct oom_victim_key *key)
{
	struct oom_begin e;
	__builtin_memset(&e, 0, sizeof(e));
	COUNT(victims, 1);
	const struct oom_program *p = oom_program_of(task, &e.bias);
	if (!p) {
		COUNT(others, 1);
		return 0;
	}
	if (!p->buckets) {
		COUNT(without_buckets, 1);
		return 0;
	}
	__u64 first = 0;
	if (!oom_read(&first, sizeof(first), p->buckets + e.bias)) {
		COUNT(unreadable, 1);
		return 0;
	}
	if (!first) {
		COUNT(not_profiled, 1);
		return 0;
	}
	COUNT(begun, 1);
	if (p->rate && !oom_read(&e.rate, sizeof(e.rate), p->rate + e.bias))
		e.rate = 0;
	e.o.type = OOM_BEGIN;
	e.o.pid = key->pid;
	e.o.process_start_ns = key->start_ns;
	e.program = p->id;
	oom_header_fill(&e.h, key->start_ns);
	if (bpf_ringbuf_output(&oom_events, &e, sizeof(e), BPF_RB_FORCE_WAKEUP)) {
		COUNT(events_lost, 1);
		return 0;
	}
	return first;
}

/* Arguments: signal, info, action. */
SEC("raw_tp/signal_deliver")
int oom_signal(struct bpf_raw_tracepoint_args *ctx)
{
	if ((int)ctx->args[0] != SIGNAL_KILL)
		return 0;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	if (!BPF_CORE_READ(task, signal, oom_mm))
		return 0;
	struct oom_walk *w = oom_walk_here();
	if (!w || w->busy)
		return 0;
	w->busy = 1;
	struct oom_victim_key key = { bpf_get_current_pid_tgid() >> 32,
		BPF_CORE_READ(task, group_leader, start_boottime) };
	struct oom_victim *v = bpf_map_lookup_elem(&oom_victims, &key);
	if (!v) {
		struct oom_victim begun = { 0 };
		begun.next = oom_begin(task, &key);
		(void)bpf_map_update_elem(&oom_victims, &key, &begun, BPF_ANY);
		v = bpf_map_lookup_elem(&oom_victims, &key);
	}
	if (v && v->next)
		oom_visit(task, w, v, &key);
	w->busy = 0;
	return 0;
}
