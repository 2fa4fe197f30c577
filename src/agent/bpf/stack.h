/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack: copies a stack whose walk ended in a file that user space has not published yet. User
 * space finishes the walk when it knows the file, so that even the first sample of a program is
 * whole.
 *
 * The copy is made in a map and sent before the sample. Copies are rare (config.stack_interval_ns,
 * STACK_BURST_NS), and leave the last part of the ring to samples.
 */
#pragma once

#include "maps.h"
#include "vma.h"
#include "walk.h"

/* Adds a VMA if it is executable, and belongs to our mm. */
static __always_inline void stack_add_mapping(
	struct event_stack *e, struct vma_search *s, const struct vm_area_struct *vma)
{
	if (!vma_copy(s, vma) || !(VMA_READ(s, vma, vm_flags) & KERNEL_VM_EXEC) ||
		(__u64)VMA_READ(s, vma, vm_mm) != s->mm)
		return;
	__u32 i = e->mapping_count;
	if (i >= STACK_MAPPINGS_MAX)
		return;
	struct stack_mapping *m = &e->mappings[i];
	__u32 generation = 0;
	m->key.inode = 0;
	m->key.dev = 0;
	m->key.generation = 0;
	m->start = VMA_READ(s, vma, vm_start);
	m->end = VMA_READ(s, vma, vm_end);
	m->offset = (__u64)VMA_READ(s, vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
	const struct file *file = VMA_READ(s, vma, vm_file);
	if (file && vma_file_key(s, file, &m->key, &generation))
		m->key.generation = generation;
	e->mapping_count = i + 1;
}

/* Adds the mapping in slot `slot` of the leaf in vma_searches[which]. */
__noinline int stack_add_slot(__u32 which, __u32 slot)
{
	struct vma_search *s = vma_search_at(which);
	struct stack_copy *copy = stack_copy_here();
	if (!s || !copy)
		return 0;
	__u64 entry = s->node[(1 + MAPLE_RANGE64_PIVOTS + slot) & (MAPLE_NODE_WORDS - 1)];
	if (entry > MAPLE_RESERVED_MAX)
		stack_add_mapping(&copy->event, s, (const struct vm_area_struct *)entry);
	return 0;
}

/* Adds the executable mappings of the leaf that covers `address`; s->last is its last address. 0:
 * there is no such leaf. */
__noinline int stack_add_leaf(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	if (!s || !vma_leaf(which, address))
		return 0;
	for (__u32 slot = 0; slot <= MAPLE_RANGE64_PIVOTS; slot++) {
		(void)stack_add_slot(which, slot);
		/* At an unused pivot the slot before it was the last. */
		if (slot < MAPLE_RANGE64_PIVOTS && s->node[1 + slot] == 0 && slot > 0)
			break;
	}
	return 1;
}

static __always_inline void stack_add_maple(__u32 which)
{
	__u64 address = 0;
	for (int i = 0; i < STACK_LEAVES_MAX; i++) {
		struct vma_search *s = vma_search_at(which);
		if (!s || !stack_add_leaf(which, address) || s->last == ~0ULL)
			return;
		address = s->last + 1;
	}
}

/* Adds the executable mappings before Linux 6.1, where VMAs are in a list, too. */
static __always_inline void stack_add_list(struct vma_search *s, struct event_stack *e)
{
	struct mm_struct___rb *mm = (struct mm_struct___rb *)s->mm;
	struct vm_area_struct___rb *vma = BPF_CORE_READ(mm, mmap);
	for (int i = 0; i < STACK_LIST_MAX; i++) {
		if (!vma)
			return;
		stack_add_mapping(e, s, (const struct vm_area_struct *)vma);
		vma = BPF_CORE_READ(vma, vm_next);
	}
}

/* The upper end of the stack that `at` lies on, or close above it: the first thread's is where
 * execve left sp, and another's is below what its libc keeps of the thread, to which the thread
 * pointer points. 0: neither. */
static __always_inline __u64 stack_upper_end(const struct walk *w, __u64 at)
{
	if (w->stack_start - at <= STACK_SPAN_MAX)
		return w->stack_start;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 end = BPF_CORE_READ(task, thread.fsbase);
	return end - at <= STACK_SPAN_MAX ? end : 0;
}

/* Copies a part of the stack, from `from` on, without the pages that are missing, and at most to
 * `end`. What it found is kept in the event, since values in registers are paths for the verifier
 * of Linux 5.10. */
__noinline int stack_copy_part(__u32 part, __u64 from, __u64 end)
{
	struct stack_copy *copy = stack_copy_here();
	if (!copy || part >= STACK_PARTS)
		return 0;
	struct event_stack *e = &copy->event;
	struct stack_part *p = &e->parts[part];
	__u64 absent = ~0ULL; /* the last missing page; at first no page of user space */
	p->at = from;
	p->missing = ~0U;
	for (__u32 i = 0; i < STACK_PART_CHUNKS; i++) {
		__u64 at = from + i * STACK_CHUNK_BYTES;
		__u64 page = at >> KERNEL_PAGE_SHIFT;
		__u32 place = part * STACK_PART_BYTES + i * STACK_CHUNK_BYTES;
		if (at >= end)
			break;
		if (page == absent)
			continue;
		if (read_user(e->stack + place, STACK_CHUNK_BYTES, at)) {
			p->missing &= ~(1U << i);
			e->stack_bytes = place + STACK_CHUNK_BYTES;
		} else {
			absent = page;
		}
	}
	return 0;
}

/* Copies the memory from sp on, and below the upper end of the stack. */
static __always_inline void stack_copy_memory(struct event_stack *e, const struct walk *w)
{
	__u64 from = w->sp & ~(__u64)(STACK_CHUNK_BYTES - 1);
	__u64 end = stack_upper_end(w, from);
	__u64 upper = ((end + STACK_CHUNK_BYTES - 1) & ~(__u64)(STACK_CHUNK_BYTES - 1)) -
		      STACK_PART_BYTES;
	if (upper < from + STACK_PART_BYTES)
		upper = from + STACK_PART_BYTES;
	e->stack_bytes = 0;
	(void)stack_copy_part(0, from, ~0ULL);
	(void)stack_copy_part(1, upper, end);
}

/* The function is global, so that the verifier checks it once; `unused` as in walk_frame(). */
__noinline int stack_fill(__u32 unused)
{
	struct stack_copy *copy = stack_copy_here();
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	const struct walk *w = walk_here();
	if (!copy || !s || !w)
		return 0;
	struct event_stack *e = &copy->event;
	s->mm = w->mm;
	e->mapping_count = 0;
	if (bpf_core_field_exists(struct mm_struct, mm_mt))
		stack_add_maple(VMA_SEARCH_SAMPLE);
	else
		stack_add_list(s, e);
	stack_copy_memory(e, w);
	return 0;
}

/* Fills the copy, which no other CPU uses meanwhile, and sends it. 1: it was sent. */
static __always_inline int stack_fill_and_send(
	const struct walk *w, struct event_stack *e, struct bpf_counters *c)
{
	e->h = w->event.h;
	e->h.type = EVENT_STACK;
	e->pc = w->pc;
	e->sp = w->sp;
	e->fp = w->fp;
	e->bx = w->bx;
	e->vdso = w->vdso;
	e->stack_start = w->stack_start;
	e->pc_is_exact = w->pc_is_exact;
	e->bx_is_known = w->bx_is_known;
	__builtin_memcpy(e->regs, w->regs, sizeof(e->regs));
	(void)stack_fill(0);
	__u64 bytes = e->stack_bytes;
	if (bytes > STACK_BYTES_MAX)
		bytes = STACK_BYTES_MAX;
	if (bpf_ringbuf_output(&events, e, __builtin_offsetof(struct event_stack, stack) + bytes,
		    BPF_RB_NO_WAKEUP)) {
		c->stacks_lost++;
		return 0;
	}
	c->stacks++;
	return 1;
}

/* Sends a copy of the stack, if one may be made now. 1: it was sent. */
static __always_inline int stack_send(struct walk *w, struct bpf_counters *c)
{
	struct stack_copy *copy = stack_copy_here();
	__u64 now = w->event.h.time_ns;
	if (!copy || !config.copy_stacks)
		return 0;
	if (w->stacks_paid_ns + config.stack_interval_ns > now + STACK_BURST_NS) {
		c->stacks_refused++;
		return 0;
	}
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > config.wake_bytes) {
		c->stacks_lost++;
		return 0;
	}
	int sent = 0;
	if (stack_copy_enter(copy)) {
		w->stacks_paid_ns = (w->stacks_paid_ns > now ? w->stacks_paid_ns : now) +
				    config.stack_interval_ns;
		sent = stack_fill_and_send(w, &copy->event, c);
	} else {
		c->stacks_refused++;
	}
	stack_copy_leave(copy);
	return sent;
}
