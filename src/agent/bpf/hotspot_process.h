/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotspot_process: finds where the code of the Java virtual machine lies in a process.
 *
 * The process' mappings are searched once for a library that contains HotSpot. The library's
 * variables lead to the code heaps and to the interpreter, which never move, so their places are
 * kept in `hotspot_processes`. If a process has no HotSpot, that is remembered for a while, too;
 * then the process is searched again.
 */
#pragma once

#include "mapping.h"
#include "runtime.h"

#define HOTSPOT_HEAPS_MAX 3
#define HOTSPOT_SEGMENT_SHIFT_MAX 16
/* How long a process without HotSpot is not searched again, at first and at most. */
#define HOTSPOT_WAIT_NS 20000000ULL
#define HOTSPOT_WAIT_MAX_NS 30000000000ULL

struct hotspot_heap {
	__u64 low;
	__u64 high;
	__u64 segments; /* its map of segments: a byte for each */
};

/* A process, and where its runtime's code lies. */
struct hotspot_process {
	__u64 key;
	__u64 record; /* 1 + index of the runtime_record; 0: it has no HotSpot */
	__u64 build;  /* hash of that record, since its slot may be reused for another runtime */
	__u64 shift;  /* log2 of a segment's bytes */
	__u64 interpreter_from;
	__u64 interpreter_bytes;
	union {
		__u64 call_stub_return; /* HotSpot: the return address in the stub by which C++
					   calls Java */
		__u64 v8_root;          /* V8: the address of its root variable */
	};
	/* The address of the variable with the address to which a virtual thread's first frame
	 * returns, once there has been such a thread; 0: not known. */
	__u64 entry;
	__u64 retry_ns; /* without HotSpot: when the process is searched again, and how long the
			   wait is */
	__u64 wait_ns;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	__u64 check; /* hash of all before: two CPUs may write at a time */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CODE_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct hotspot_process);
} hotspot_processes SEC(".maps");

/* The frames of a return address in a compiled method, and the distance of its caller's frame. They
 * are kept, because finding the place and following its scopes costs ten reads and more. */
#define HOTSPOT_KEPT_FRAMES_MAX 12
struct hotspot_kept {
	__u64 key;  /* hash of the process and the address; 0: nothing is kept */
	__u64 blob; /* the nmethod, which is the same as long as it has this number */
	__u32 compile_id;
	__u32 frame_words;
	__u64 count;
	__u64 frames[HOTSPOT_KEPT_FRAMES_MAX];
	__u64 check; /* hash of all before: two CPUs may write at a time */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* by the frequency, before loading, where runtimes are walked */
	__type(key, __u32);
	__type(value, struct hotspot_kept);
} hotspot_kept_places SEC(".maps");

#define HOTSPOT_BLOCK_WORDS 64 /* power of two */

struct hotspot_scratch {
	__u64 blob[HOTSPOT_BLOCK_WORDS];   /* CodeBlob or nmethod */
	__u64 method[HOTSPOT_BLOCK_WORDS]; /* ConstMethod */
	__u64 pool[HOTSPOT_BLOCK_WORDS];   /* ConstantPool */
	__u64 frame[HOTSPOT_BLOCK_WORDS];
	struct hotspot_process process; /* of the sample */
	__u64 root;
	__u64 bytecodes; /* bytecodes of the last method that was looked up: their address, and how
			    many bytes */
	__u64 bytecodes_bytes;
	__u64 places; /* the search for a place */
	__u32 place_from, place_to;
	__u32 place_wanted, place_scope;
	__u8 stream[32]; /* compressed numbers, and the position of the next one */
	__u32 stream_at;
	__u32 stream_base;        /* 1: the stream has no bytes of zero */
	struct hotspot_kept kept; /* the kept frames that were found, or frames that are to be kept
				     (then its key is not 0) */
	__u64 kept_from;          /* how many user frames there were before it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hotspot_scratch);
} hotspot_scratches SEC(".maps");

static __always_inline struct hotspot_scratch *hotspot_scratch_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&hotspot_scratches, &zero);
}

static __always_inline const struct runtime_record *hotspot_record(const struct walk *w)
{
	__u32 index = w->code.record - 1;
	return bpf_map_lookup_elem(&runtime_records, &index);
}

/* These return 64, 32 or 16 bits at an offset of what was read. */
static __always_inline __u64 hotspot_word(const __u64 *block, __u32 offset)
{
	return *(const volatile __u64 *)&block[offset / 8 & (HOTSPOT_BLOCK_WORDS - 1)];
}

static __always_inline __u32 hotspot_half(const __u64 *block, __u32 offset)
{
	return hotspot_word(block, offset) >> (offset & 4) * 8;
}

static __always_inline __u32 hotspot_quarter(const __u64 *block, __u32 offset)
{
	return hotspot_word(block, offset) >> (offset & 6) * 8 & 0xffff;
}

static __always_inline __u32 runtime_half(__u64 address)
{
	__u32 half = 0;
	(void)read_user(&half, sizeof(half), address);
	return half;
}

/* ---- the process ---- */

static __always_inline __u64 hotspot_check(const struct hotspot_process *p)
{
	const __u64 *words = (const __u64 *)p;
	__u64 hash = config.hash_seed;
	for (__u32 i = 0; i < sizeof(*p) / sizeof(__u64) - 1; i++)
		hash = hash_mix(hash, *(const volatile __u64 *)&words[i]);
	return hash;
}

/* Does this runtime's code lie in memory without a file? */
static __always_inline int runtime_makes_code(const struct runtime_record *r)
{
	return r->kind == RUNTIME_HOTSPOT || r->kind == RUNTIME_V8 || r->kind == RUNTIME_BEAM;
}

/* The hash of a runtime_record; 0: the record is of no such runtime. */
static __always_inline __u64 hotspot_build(__u64 record)
{
	__u32 index = record - 1;
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!r || !runtime_makes_code(r))
		return 0;
	const __u64 *words = (const __u64 *)r;
	__u64 hash = config.hash_seed;
	for (__u32 i = 0; i < sizeof(*r) / sizeof(__u64); i++)
		hash = hash_mix(hash, *(const volatile __u64 *)&words[i]);
	return hash ? hash : 1;
}

static __always_inline __u64 hotspot_process_key(const struct walk *w)
{
	struct task_struct *task = current_task();
	__u64 key = code_number_begin(w, TASK_READ(task, self_exec_id));
	return key ? key : 1;
}

/* Is the mapping in the search's copy the code of HotSpot's library? */
static __always_inline int hotspot_is_library(
	struct vma_search *s, struct hotspot_scratch *h, const struct vm_area_struct *vma)
{
	struct file_key key;
	__u32 generation = 0, index = 0;
	if (!vma_copy(s, vma) || !(VMA_READ(s, vma, vm_flags) & KERNEL_VM_EXEC) ||
		(__u64)VMA_READ(s, vma, vm_mm) != s->mm)
		return 0;
	__u64 start = VMA_READ(s, vma, vm_start);
	__u64 bytes = VMA_READ(s, vma, vm_end) - start;
	__u64 offset = (__u64)VMA_READ(s, vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
	const struct file *file = VMA_READ(s, vma, vm_file);
	if (!file)
		return 0;
	(void)vma_file_key(s, file, &key, &generation);
	const struct file_slot *slot = file_slot_find(&key, generation, &index);
	__u32 runtime = slot ? slot->value.runtime : 0;
	index = runtime - 1;
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!runtime || !r || !runtime_makes_code(r) || r->text_from - offset >= bytes)
		return 0;
	h->root = start - offset + r->delta;
	h->process.record = runtime;
	return 1;
}

/* Looks at the mapping in slot `slot` of the leaf that was read. */
__noinline int hotspot_look_at_slot(__u32 slot)
{
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!s || !h || !config.walk_runtimes)
		return 0;
	__u64 entry = s->node[(1 + MAPLE_RANGE64_PIVOTS + slot) & (MAPLE_NODE_WORDS - 1)];
	return entry > MAPLE_RESERVED_MAX &&
	       hotspot_is_library(s, h, (const struct vm_area_struct *)entry);
}

/* Looks at a leaf's mappings. 1: the library was found in this leaf; below 0: there is no leaf at
 * `address`. */
__noinline int hotspot_look_at_leaf(__u64 address)
{
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	if (!s || !config.walk_runtimes || !vma_leaf(VMA_SEARCH_SAMPLE, address))
		return -1;
	for (__u32 slot = 0; slot <= MAPLE_RANGE64_PIVOTS; slot++) {
		if (hotspot_look_at_slot(slot))
			return 1;
		/* At an unused pivot the slot before it was the last. */
		if (slot < MAPLE_RANGE64_PIVOTS && s->node[1 + slot] == 0 && slot > 0)
			break;
	}
	return 0;
}

static __always_inline int hotspot_search_tree(void)
{
	__u64 address = 0;
	for (int i = 0; i < STACK_LEAVES_MAX; i++) {
		int found = hotspot_look_at_leaf(address);
		struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
		if (found || !s || s->last == ~0ULL)
			return found > 0;
		address = s->last + 1;
	}
	return 0;
}

/* Searches the library before Linux 6.1, where VMAs are in a list, too. */
__noinline int hotspot_search_list(__u32 zero)
{
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	struct hotspot_scratch *h = bpf_map_lookup_elem(&hotspot_scratches, &zero);
	if (!s || !h || !config.walk_runtimes || bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	struct mm_struct___rb *mm = (struct mm_struct___rb *)s->mm;
	struct vm_area_struct___rb *vma = BPF_CORE_READ(mm, mmap);
	for (int i = 0; i < STACK_LIST_MAX; i++) {
		if (!vma)
			return 0;
		if (hotspot_is_library(s, h, (const struct vm_area_struct *)vma))
			return 1;
		vma = BPF_CORE_READ(vma, vm_next);
	}
	return 0;
}

static __always_inline int hotspot_read_heap(const struct hotspot_layout *l,
	struct hotspot_process *p, struct hotspot_heap *out, __u64 heap)
{
	out->low = runtime_word(heap + l->heap_low);
	out->high = runtime_word(heap + l->heap_high);
	out->segments = runtime_word(heap + l->heap_segments);
	p->shift = runtime_half(heap + l->heap_shift);
	return out->low && out->high > out->low && out->segments &&
	       p->shift <= HOTSPOT_SEGMENT_SHIFT_MAX;
}

/* Finds the code from the library's variables. 0: the virtual machine has not set them yet. */
__noinline int hotspot_read_process(__u32 index)
{
	struct hotspot_scratch *h = hotspot_scratch_here();
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!h || !r || !config.walk_runtimes)
		return 0;
	if (r->kind != RUNTIME_HOTSPOT) {
		h->process.v8_root = h->root;
		return 1;
	}
	const struct hotspot_layout *l = &r->layout.hotspot;
	struct hotspot_process *p = &h->process;
	__u64 heaps = runtime_word(h->root);
	__u64 queue = runtime_word(h->root + (__s64)l->interpreter);
	p->call_stub_return = runtime_word(h->root + (__s64)l->call_stub_return);
	p->entry = l->entry ? h->root + (__s64)l->entry : 0;
	p->interpreter_from = queue ? runtime_word(queue + l->queue_buffer) : 0;
	p->interpreter_bytes = queue ? runtime_half(queue + l->queue_bytes) : 0;
	if (!heaps || !p->call_stub_return || !p->interpreter_from || !p->interpreter_bytes)
		return 0;
	if (l->flags & HOTSPOT_ONE_HEAP)
		return hotspot_read_heap(l, p, &p->heaps[0], heaps);
	__u32 count = runtime_half(heaps + l->array_length);
	__u64 data = runtime_word(heaps + l->array_data);
	if (count > HOTSPOT_HEAPS_MAX)
		count = HOTSPOT_HEAPS_MAX;
	for (__u32 i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		if (i < count && !hotspot_read_heap(l, p, &p->heaps[i],
					 runtime_word(data + i * sizeof(__u64))))
			return 0;
	}
	return count > 0;
}

/* To be called when the runtime was found; `bytes` is ~0 if all memory without a file counts as its
 * code. */
static __always_inline void code_walk_use(struct walk *w, __u64 record, __u64 from, __u64 bytes)
{
	struct bpf_counters *c = counters_here();
	if (c && !w->code.record)
		c->runtime_samples++;
	w->code.record = record;
	w->code.from = from;
	w->code.bytes = bytes;
	w->code.is_anywhere = bytes == ~0ULL;
}

/* Uses the known places of the process' code. */
static __always_inline void hotspot_use(struct walk *w, const struct hotspot_process *p)
{
	__u64 from = ~0ULL, to = 0;
	if (!p->heaps[0].low) {
		code_walk_use(w, p->record, 0, ~0ULL);
		w->code.root = p->v8_root;
		return;
	}
	for (__u32 i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		if (p->heaps[i].low && p->heaps[i].low < from)
			from = p->heaps[i].low;
		if (p->heaps[i].high > to)
			to = p->heaps[i].high;
	}
	code_walk_use(w, p->record, from, to - from);
}

/* Does the process have a HotSpot, and where is its code? */
__noinline int hotspot_find(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct hotspot_scratch *h = hotspot_scratch_here();
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	struct bpf_counters *c = counters_here();
	if (!w || !h || !s || !c || !config.walk_runtimes)
		return 0;
	__u64 key = hotspot_process_key(w), now = w->event.h.time_ns, wait = HOTSPOT_WAIT_NS;
	__u32 place = key & (CODE_PROCESSES_MAX - 1);
	struct hotspot_process *kept = bpf_map_lookup_elem(&hotspot_processes, &place);
	if (!kept)
		return 0;
	h->process = *kept;
	if (h->process.key == key && h->process.check == hotspot_check(&h->process)) {
		if (h->process.record && h->process.build == hotspot_build(h->process.record)) {
			hotspot_use(w, &h->process);
			return 0;
		}
		if (!h->process.record && now < h->process.retry_ns)
			return 0;
		wait = h->process.wait_ns * 2;
		if (wait > HOTSPOT_WAIT_MAX_NS)
			wait = HOTSPOT_WAIT_MAX_NS;
	}
	__builtin_memset(&h->process, 0, sizeof(h->process));
	s->mm = w->mm;
	int found = bpf_core_field_exists(struct mm_struct, mm_mt) ? hotspot_search_tree()
								   : hotspot_search_list(0);
	/* The virtual machine will set its variables soon. */
	if (found && !hotspot_read_process((__u32)h->process.record - 1)) {
		h->process.record = 0;
		wait = HOTSPOT_WAIT_NS / 4;
	}
	if (h->process.record)
		h->process.build = hotspot_build(h->process.record);
	h->process.key = key;
	h->process.retry_ns = now + wait;
	h->process.wait_ns = wait;
	h->process.check = hotspot_check(&h->process);
	if (h->process.record)
		hotspot_use(w, &h->process);
	*kept = h->process;
	return 0;
}

/* To be called at a frame of V8 in a process that seemed to have no such runtime, since its file
 * was not known at that time. The next sample searches again. */
static __always_inline void code_find_again(const struct walk *w)
{
	__u64 key = hotspot_process_key(w);
	__u32 place = key & (CODE_PROCESSES_MAX - 1);
	struct hotspot_process *kept = bpf_map_lookup_elem(&hotspot_processes, &place);
	if (kept && kept->key == key)
		kept->key = 0;
}
