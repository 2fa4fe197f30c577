/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotspot: the frames of the Java virtual machine HotSpot, 8 to 26.
 *
 * Its code lies in memory without a file, so a process is asked where: once, at its first sample
 * with such code, its mappings are searched for a library that holds HotSpot. The library leads to
 * the code heaps; what was found is kept in `hotspot_processes`.
 *
 * Java frames are frames of the machine's own stack, and nothing gives way to them. Each code heap
 * has a map that leads from an address to its CodeBlob: a compiled method, the interpreter, or a
 * stub. A compiled method has a fixed frame but where it is set up and taken down, which is told by
 * the instructions there. The interpreter's frames have a frame pointer, and Method and bytecode
 * below it.
 *
 * A compiled method holds others that were put into it: its table of places (PcDesc) leads from
 * the address to a chain of scopes, each with its Method and bytecode, and each becomes a frame.
 *
 * Source: OpenJDK, src/hotspot/share/code/{codeBlob,nmethod,pcDesc,debugInfo}.hpp,
 * memory/heap.hpp, oops/{method,constMethod,constantPool,symbol}.hpp, utilities/unsigned5.hpp,
 * cpu/x86/frame_x86.hpp.
 */
#pragma once

#include "mapping.h"
#include "runtime.h"

#define HOTSPOT_HEAPS_MAX 3
/* Steps back in a map of segments: one leads over 254 segments at most. */
#define HOTSPOT_SEGMENT_STEPS_MAX 48
#define HOTSPOT_SEGMENT_FREE 0xff
#define HOTSPOT_SEGMENT_SHIFT_MAX 16
/* A method has fewer than 2^17 places. */
#define HOTSPOT_PLACE_STEPS_MAX 18
#define HOTSPOT_PLACE_BYTES 16
#define HOTSPOT_FRAME_WORDS_MAX 65536
/* A frame of the interpreter: its words from fp - 64 on. */
#define HOTSPOT_FRAME_BELOW 64
#define HOTSPOT_FRAME_WORDS 10
enum hotspot_frame_word {
	HOTSPOT_FRAME_BYTECODE = 0,
	HOTSPOT_FRAME_BYTECODE_OLD = 1,
	HOTSPOT_FRAME_METHOD = 5,
	HOTSPOT_FRAME_SENDER_SP = 7,
	HOTSPOT_FRAME_FP = 8,
	HOTSPOT_FRAME_RETURN = 9,
};
/* A frame of the interpreter is smaller than this, and so is what a leaf has pushed. */
#define HOTSPOT_FRAME_BYTES_MAX (1 << 20)
#define HOTSPOT_HAS_LINES 1 /* of ConstMethod's flags */
/* In the frame of the stub that C++ calls Java by: where the caller's rbx is. */
#define HOTSPOT_CALL_STUB_BX (-56)
#define HOTSPOT_CLASS_BYTES_MAX 191
#define HOTSPOT_METHOD_BYTES_MAX 63
#define HOTSPOT_STUB_BYTES 48
/* The first eight bytes of a blob's name. */
#define HOTSPOT_NAME_NMETHOD 0x00646f6874656d6eULL /* "nmethod" */
#define HOTSPOT_NAME_NATIVE 0x6e2065766974616eULL  /* "native nmethod" */
/* How long a process without HotSpot is not asked again, at first and at most. */
#define HOTSPOT_WAIT_NS 20000000ULL
#define HOTSPOT_WAIT_MAX_NS 30000000000ULL
/* Registers of the interrupted frame, in w->regs. */
#define HOTSPOT_REG_BYTECODE 5 /* r13 */
#define HOTSPOT_REG_METHOD 11  /* rbx, while the interpreter begins a method */
#define HOTSPOT_REG_RETURN 13  /* rax, then, too */

struct hotspot_heap {
	__u64 low;
	__u64 high;
	__u64 segments; /* its map: a byte each */
};

/* A process, and where its code is. */
struct hotspot_process {
	__u64 key;
	__u64 record; /* 1 + index of the runtime_record; 0: it has no HotSpot */
	__u64 shift;  /* log2 of a segment's bytes */
	__u64 interpreter_from;
	__u64 interpreter_bytes;
	__u64 call_stub; /* the return address of what C++ calls */
	__u64 retry_ns;  /* without HotSpot: when it is asked again, and how long that was */
	__u64 wait_ns;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	__u64 check; /* of all before: two CPUs may have written at a time */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CODE_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct hotspot_process);
} hotspot_processes SEC(".maps");

#define HOTSPOT_BLOCK_WORDS 64 /* power of two */

struct hotspot_scratch {
	__u64 blob[HOTSPOT_BLOCK_WORDS];   /* CodeBlob or nmethod */
	__u64 method[HOTSPOT_BLOCK_WORDS]; /* ConstMethod */
	__u64 pool[HOTSPOT_BLOCK_WORDS];   /* ConstantPool */
	__u64 frame[HOTSPOT_BLOCK_WORDS];
	struct hotspot_process process; /* of the sample */
	__u64 root;
	__u64 bytecodes; /* of the method asked for last: where they are, how many bytes */
	__u64 bytecodes_bytes;
	__u64 places; /* in a search for a place */
	__u32 place_from, place_to;
	__u32 place_wanted, place_scope;
	__u8 stream[32]; /* compressed numbers, and where the next is */
	__u32 stream_at;
	__u32 stream_base; /* 1: no bytes of zero */
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

/* The word at an offset of what was read, 64, 32 and 16 bits of it. */
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

static __always_inline __u64 hotspot_process_key(const struct walk *w)
{
	struct task_struct *task = current_task();
	__u64 key = code_number_begin(w, TASK_READ(task, self_exec_id));
	return key ? key : 1;
}

/* The mapping in the search's copy: is it of HotSpot's library, with its code? */
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
	if (!runtime || !r || r->kind != RUNTIME_HOTSPOT || r->text_from - offset >= bytes)
		return 0;
	h->root = start - offset + r->delta;
	h->process.record = runtime;
	return 1;
}

/* The mapping in slot `slot` of the leaf that was read. */
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

/* 1: found in this leaf; below 0: there is none at `address`. */
__noinline int hotspot_look_at_leaf(__u64 address)
{
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	if (!s || !config.walk_runtimes || !vma_leaf(VMA_SEARCH_SAMPLE, address))
		return -1;
	for (__u32 slot = 0; slot <= MAPLE_RANGE64_PIVOTS; slot++) {
		if (hotspot_look_at_slot(slot))
			return 1;
		/* An unused pivot: the slot before it was the last. */
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

/* Before Linux 6.1 VMAs are in a list too. */
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

/* From the library's variables to the code. 0: the virtual machine is not that far yet. */
__noinline int hotspot_read_process(__u32 index)
{
	struct hotspot_scratch *h = hotspot_scratch_here();
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!h || !r || !config.walk_runtimes)
		return 0;
	const struct hotspot_layout *l = &r->layout.hotspot;
	struct hotspot_process *p = &h->process;
	__u64 heaps = runtime_word(h->root);
	__u64 queue = runtime_word(h->root + (__s64)l->interpreter);
	p->call_stub = runtime_word(h->root + (__s64)l->call_stub);
	p->interpreter_from = queue ? runtime_word(queue + l->queue_buffer) : 0;
	p->interpreter_bytes = queue ? runtime_half(queue + l->queue_bytes) : 0;
	if (!heaps || !p->call_stub || !p->interpreter_from || !p->interpreter_bytes)
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

/* What is kept of the process is used: where its code is. */
static __always_inline void hotspot_use(
	struct walk *w, struct bpf_counters *c, const struct hotspot_process *p)
{
	__u64 from = ~0ULL, to = 0;
	for (__u32 i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		if (p->heaps[i].low && p->heaps[i].low < from)
			from = p->heaps[i].low;
		if (p->heaps[i].high > to)
			to = p->heaps[i].high;
	}
	w->code.record = p->record;
	w->code.from = from;
	w->code.bytes = to - from;
	c->runtime_samples++;
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
		if (h->process.record)
			hotspot_use(w, c, &h->process);
		if (h->process.record || now < h->process.retry_ns)
			return 0;
		wait = h->process.wait_ns * 2;
		if (wait > HOTSPOT_WAIT_MAX_NS)
			wait = HOTSPOT_WAIT_MAX_NS;
	}
	__builtin_memset(&h->process, 0, sizeof(h->process));
	s->mm = w->mm;
	int found = bpf_core_field_exists(struct mm_struct, mm_mt) ? hotspot_search_tree()
								   : hotspot_search_list(0);
	/* Soon it will be that far. */
	if (found && !hotspot_read_process((__u32)h->process.record - 1)) {
		h->process.record = 0;
		wait = HOTSPOT_WAIT_NS / 4;
	}
	h->process.key = key;
	h->process.retry_ns = now + wait;
	h->process.wait_ns = wait;
	h->process.check = hotspot_check(&h->process);
	if (h->process.record)
		hotspot_use(w, c, &h->process);
	*kept = h->process;
	return 0;
}

/* ---- methods ---- */

/* Copies the text of the Symbol at `at` to data[where]: how many bytes, `max` (a constant below
 * 256) at most. */
static __always_inline __u32 hotspot_copy_symbol(
	struct event_code *e, const struct hotspot_layout *l, __u64 at, __u32 where, __u32 max)
{
	__u16 length = 0;
	if (!at || !read_user(&length, sizeof(length), at + l->symbol_length))
		return 0;
	__u32 bytes = length > max ? max : length;
	if (bytes == 0 || bytes > max || where > CODE_NAME_BYTES_MAX)
		return 0;
	return read_user(&e->data[bounded(where, 512)], bounded(bytes, 256), at + l->symbol_text)
		       ? bytes
		       : 0;
}

/* The Symbol at an index of the constant pool at `pool`. */
static __always_inline __u64 hotspot_symbol(const struct hotspot_layout *l, __u64 pool, __u32 index)
{
	return index ? runtime_word(pool + l->pool_size + (__u64)index * sizeof(__u64)) : 0;
}

/* The method whose ConstMethod was read to h->method: "class.method", file, table of lines. */
static __always_inline void hotspot_tell(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h, __u64 number)
{
	const struct hotspot_layout *l = &r->layout.hotspot;
	__u64 pool = hotspot_word(h->method, l->const_pool);
	struct event_code *e = code_begin();
	if (!e)
		return;
	if (!read_user(h->pool, HOTSPOT_POOL_BYTES, pool))
		__builtin_memset(h->pool, 0, HOTSPOT_POOL_BYTES);
	__u64 class = hotspot_word(h->pool, l->pool_class);
	__u64 name = runtime_word(class + l->class_name);
	__u32 file = l->pool_file ? hotspot_quarter(h->pool, l->pool_file)
				  : runtime_half(class + l->class_file) & 0xffff;
	__u32 at = hotspot_copy_symbol(e, l, name, 0, HOTSPOT_CLASS_BYTES_MAX);
	e->data[bounded(at, 256)] = '.';
	at++;
	at += hotspot_copy_symbol(e, l,
		hotspot_symbol(l, pool, hotspot_quarter(h->method, l->const_name)), at,
		HOTSPOT_METHOD_BYTES_MAX);
	e->name_bytes = at;
	e->name_unit = 1;
	__u32 bytes = hotspot_copy_symbol(e, l, hotspot_symbol(l, pool, file), at, 255);
	e->file_bytes = bytes;
	e->file_unit = 1;
	e->first_line = 0;
	at += bytes;
	__u64 all = (__u64)hotspot_half(h->method, l->const_words) * sizeof(__u64);
	__u64 before = l->const_size + h->bytecodes_bytes;
	__u64 left = all > before ? all - before : 0;
	bytes = left > HOTSPOT_LINES_BYTES_MAX ? HOTSPOT_LINES_BYTES_MAX : left;
	if (bytes == 0 || bytes > HOTSPOT_LINES_BYTES_MAX || at > 512 ||
		!(hotspot_quarter(h->method, l->const_flags) & HOTSPOT_HAS_LINES) ||
		!read_user(&e->data[bounded(at, 1024)], bounded(bytes, 8192),
			h->bytecodes + h->bytecodes_bytes))
		bytes = 0;
	e->lines_bytes = bytes;
	code_end(w, r, e, number, at + bytes);
}

/* The number of the Method at `method`, which is told if it is new; 0: it is none. Its bytecodes
 * are in h->bytecodes. */
__noinline __u64 hotspot_method(__u64 method)
{
	struct walk *w = walk_here();
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return 0;
	if (method && method == w->runtime.last_code)
		return w->runtime.last_number;
	const struct hotspot_layout *l = &r->layout.hotspot;
	w->runtime.last_code = 0;
	__u64 at = method && !(method & 7) ? runtime_word(method + l->method_const) : 0;
	if (!at || (at & 7) || !read_user(h->method, HOTSPOT_CONST_METHOD_BYTES, at))
		return 0;
	__u64 pool = hotspot_word(h->method, l->const_pool);
	__u32 words = hotspot_half(h->method, l->const_words);
	h->bytecodes = at + l->const_size;
	h->bytecodes_bytes = hotspot_quarter(h->method, l->const_code_bytes);
	if (!pool || (pool & 7) ||
		(__u64)words * sizeof(__u64) < l->const_size + h->bytecodes_bytes)
		return 0;
	__u64 number = hash_mix(hash_mix(code_number_begin(w, method), at), pool);
	number = hash_mix(number, hotspot_word(h->method, l->const_name));
	number = hash_mix(number, hotspot_word(h->method, l->const_words));
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		hotspot_tell(w, r, h, number);
	w->runtime.last_code = method;
	w->runtime.last_number = number;
	return number;
}

static __always_inline void hotspot_record_method(
	struct walk *w, const struct runtime_record *r, __u64 number, __u64 position)
{
	if (number)
		runtime_record_frame(w, number, position);
	else
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
}

/* ---- steps ---- */

static __always_inline int hotspot_is_code(const struct walk *w, __u64 address)
{
	return address - w->code.from < w->code.bytes;
}

static __always_inline enum stack_end hotspot_to(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	if (sp <= w->sp)
		return STACK_END_LOOP;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->pc_is_exact = 0;
	w->bx_is_known = 0;
	w->regs_are_kept = 0;
	return pc ? STACK_END_NONE : STACK_END_ZERO;
}

/* push %rbp; mov %rsp, %rbp was done. */
static __always_inline enum stack_end hotspot_by_fp(struct walk *w)
{
	__u64 fp = w->fp, next = 0, pc = 0;
	if (fp < w->sp || (fp & 7) || !read_stack(w, fp, &next) || !read_stack(w, fp + 8, &pc))
		return STACK_END_NO_TABLE;
	return hotspot_to(w, pc, fp + 16, next);
}

/* Where C++ called Java: its frame keeps the caller's rbx, too. */
static __always_inline enum stack_end hotspot_call_stub(struct walk *w)
{
	__u64 bx = 0;
	int is_known = read_stack(w, w->fp + (__s64)HOTSPOT_CALL_STUB_BX, &bx);
	enum stack_end end = hotspot_by_fp(w);
	if (end == STACK_END_NONE && is_known) {
		w->bx = bx;
		w->bx_is_known = 1;
	}
	return end;
}

static __always_inline enum stack_end hotspot_lost(struct walk *w, const struct runtime_record *r)
{
	runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
	return STACK_END_NO_TABLE;
}

/* ---- the interpreter ---- */

/* A method's frame is not there yet: the Method is in rbx, and the return address on the stack or
 * already taken from it. */
static __always_inline enum stack_end hotspot_enter(struct walk *w, const struct runtime_record *r)
{
	__u64 pc = 0, sp = w->sp;
	if (!w->pc_is_exact)
		return hotspot_lost(w, r);
	__u64 number = hotspot_method(w->regs[HOTSPOT_REG_METHOD]);
	if (read_stack(w, sp, &pc) && hotspot_is_code(w, pc))
		sp += 8;
	else
		pc = w->regs[HOTSPOT_REG_RETURN];
	if (!hotspot_is_code(w, pc))
		return hotspot_lost(w, r);
	hotspot_record_method(w, r, number, number ? 0 : FRAME_POSITION_NONE);
	w->sp--; /* which may stay */
	enum stack_end end = hotspot_to(w, pc, sp, w->fp);
	return end;
}

static __always_inline enum stack_end hotspot_interpreted(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h)
{
	__u64 fp = w->fp, number = 0;
	int is_old = r->layout.hotspot.flags & HOTSPOT_OLD_FRAMES;
	if (fp >= w->sp && fp - w->sp < HOTSPOT_FRAME_BYTES_MAX && !(fp & 7) &&
		read_user(h->frame, HOTSPOT_FRAME_WORDS * sizeof(__u64), fp - HOTSPOT_FRAME_BELOW))
		number = hotspot_method(h->frame[HOTSPOT_FRAME_METHOD]);
	__u64 at = h->frame[is_old ? HOTSPOT_FRAME_BYTECODE_OLD : HOTSPOT_FRAME_BYTECODE];
	__u64 position = at - h->bytecodes;
	if (w->pc_is_exact && number &&
		w->regs[HOTSPOT_REG_BYTECODE] - h->bytecodes < h->bytecodes_bytes)
		position = w->regs[HOTSPOT_REG_BYTECODE] - h->bytecodes;
	int is_native = h->bytecodes_bytes == 0;
	if (!number || (position >= h->bytecodes_bytes && !is_native))
		return hotspot_enter(w, r);
	hotspot_record_method(w, r, number, is_native ? FRAME_POSITION_NONE : position);
	__u64 sp = h->frame[HOTSPOT_FRAME_SENDER_SP];
	if (sp < fp + 16 || sp - fp > HOTSPOT_FRAME_BYTES_MAX)
		sp = fp + 16;
	return hotspot_to(w, h->frame[HOTSPOT_FRAME_RETURN], sp, h->frame[HOTSPOT_FRAME_FP]);
}

/* ---- compiled methods ---- */

/* The CodeBlob of an address; 0: there is none. */
__noinline __u64 hotspot_blob(__u64 address)
{
	struct walk *w = walk_here();
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	struct hotspot_process *p = &h->process;
	__u64 low = 0, segments = 0;
	for (__u32 i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		if (address >= p->heaps[i].low && address < p->heaps[i].high) {
			low = p->heaps[i].low;
			segments = p->heaps[i].segments;
		}
	}
	if (!low || !r)
		return 0;
	__u32 shift = p->shift & 31;
	__u64 segment = (address - low) >> shift;
	for (int i = 0; i < HOTSPOT_SEGMENT_STEPS_MAX; i++) {
		__u8 back = HOTSPOT_SEGMENT_FREE;
		if (!read_user(&back, sizeof(back), segments + segment) ||
			back == HOTSPOT_SEGMENT_FREE || back > segment)
			return 0;
		if (back == 0)
			return low + (segment << shift) + r->layout.hotspot.block_bytes;
		segment -= back;
	}
	return 0;
}

/* How much of the frame of a compiled method is there. */
enum hotspot_frame {
	HOTSPOT_FRAME_WHOLE,
	HOTSPOT_FRAME_NONE,     /* the return address is at sp */
	HOTSPOT_FRAME_PUSHED,   /* rbp, and behind it the return address */
	HOTSPOT_FRAME_RESERVED, /* whole, but rbp is still the caller's */
};

/* At the instruction that was interrupted: before the frame is complete, and after it was taken
 * down. `b`: the byte before the instruction, then 15 from there on. */
static __always_inline enum hotspot_frame hotspot_frame_begins(const __u8 *b)
{
	if (b[1] == 0x48 && b[2] == 0x89 && (b[3] == 0x6c || b[3] == 0xac) && b[4] == 0x24)
		return HOTSPOT_FRAME_RESERVED; /* mov %rbp, x(%rsp) */
	if (b[0] == 0x55 || b[0] == 0xec)      /* behind push %rbp, mov %rsp, %rbp */
		return HOTSPOT_FRAME_PUSHED;
	return HOTSPOT_FRAME_NONE;
}

static __always_inline enum hotspot_frame hotspot_frame_ends(const __u8 *b)
{
	if (b[1] == 0x5d) /* pop %rbp */
		return HOTSPOT_FRAME_PUSHED;
	if (b[1] == 0xc3) /* ret */
		return HOTSPOT_FRAME_NONE;
	/* The poll for a safepoint before it: cmp x(%r15), %rsp; ja; ret (17 on) */
	if (b[1] == 0x49 && b[2] == 0x3b && (b[3] == 0x67 || b[3] == 0xa7))
		return HOTSPOT_FRAME_NONE;
	if (b[1] == 0x0f && b[2] == 0x87 && b[7] == 0xc3)
		return HOTSPOT_FRAME_NONE;
	/* test %eax, x(%rip); ret (8), mov x(%r15), %r10; test %eax, (%r10); ret (11) */
	if (b[1] == 0x85 && b[2] == 0x05 && b[7] == 0xc3)
		return HOTSPOT_FRAME_NONE;
	if (b[1] == 0x41 && b[2] == 0x85 && b[3] == 0x02 && b[4] == 0xc3)
		return HOTSPOT_FRAME_NONE;
	if (b[1] == 0x4d && b[2] == 0x8b &&
		((b[3] == 0x57 && b[5] == 0x41 && b[6] == 0x85 && b[8] == 0xc3) ||
			(b[3] == 0x97 && b[8] == 0x41 && b[9] == 0x85 && b[11] == 0xc3)))
		return HOTSPOT_FRAME_NONE;
	return HOTSPOT_FRAME_WHOLE;
}

static __always_inline enum stack_end hotspot_step_compiled(
	struct walk *w, enum hotspot_frame frame, __u64 frame_bytes)
{
	__u64 pc = 0, fp = w->fp, cfa = w->sp + frame_bytes;
	if (frame == HOTSPOT_FRAME_NONE)
		cfa = w->sp + 8;
	else if (frame == HOTSPOT_FRAME_PUSHED)
		cfa = w->sp + 16;
	int has_fp = frame == HOTSPOT_FRAME_WHOLE || frame == HOTSPOT_FRAME_PUSHED;
	if (has_fp && !read_stack(w, cfa - 16, &fp))
		return STACK_END_READ_ERROR;
	if (!read_stack(w, cfa - 8, &pc))
		return STACK_END_READ_ERROR;
	return hotspot_to(w, pc, cfa, fp);
}

/* Halves what is left of the table of places. 1: there is nothing more to halve. */
__noinline int hotspot_place_step(__u32 zero)
{
	struct hotspot_scratch *h = bpf_map_lookup_elem(&hotspot_scratches, &zero);
	__u32 place[2]; /* offset of the code, of its scope */
	if (!h || !config.walk_runtimes || h->place_from >= h->place_to)
		return 1;
	__u32 middle = h->place_from + (h->place_to - h->place_from) / 2;
	if (!read_user(place, sizeof(place), h->places + (__u64)middle * HOTSPOT_PLACE_BYTES)) {
		h->place_scope = 0;
		return 1;
	}
	if ((__s32)place[0] >= (__s32)h->place_wanted) {
		h->place_to = middle;
		h->place_scope = place[1];
	} else {
		h->place_from = middle + 1;
	}
	return 0;
}

/* The scope of the code at `pc`: the first place there or behind it. */
static __always_inline void hotspot_find_scope(struct walk *w, const struct hotspot_layout *l,
	struct hotspot_scratch *h, __u64 blob, __u32 code_offset)
{
	__u64 base =
		l->flags & HOTSPOT_IMMUTABLE ? hotspot_word(h->blob, l->nmethod_immutable) : blob;
	__u32 from = hotspot_half(h->blob, l->nmethod_pcs);
	__u32 to = hotspot_half(h->blob, l->nmethod_pcs_end);
	w->code.scopes = l->flags & HOTSPOT_SCOPES_POINTER
				 ? hotspot_word(h->blob, l->nmethod_scopes)
				 : base + hotspot_half(h->blob, l->nmethod_scopes);
	if (l->flags & HOTSPOT_MUTABLE)
		w->code.metadata = hotspot_word(h->blob, l->blob_mutable) +
				   hotspot_half(h->blob, l->blob_relocation_bytes);
	else if (l->flags & HOTSPOT_METADATA_SHORT)
		w->code.metadata = blob + hotspot_half(h->blob, l->blob_data) +
				   hotspot_quarter(h->blob, l->nmethod_metadata);
	else
		w->code.metadata = blob + hotspot_half(h->blob, l->nmethod_metadata);
	h->places = base + from;
	h->place_from = 0;
	/* The last one is no place. */
	h->place_to = to > from ? (to - from) / HOTSPOT_PLACE_BYTES : 0;
	if (h->place_to)
		h->place_to--;
	h->place_wanted = code_offset;
	h->place_scope = 0;
	for (int i = 0; i < HOTSPOT_PLACE_STEPS_MAX; i++) {
		if (hotspot_place_step(0))
			break;
	}
	w->code.scope = h->place_scope;
}

/* The nmethod in h->blob, at `blob`. */
static __always_inline enum stack_end hotspot_compiled(struct walk *w,
	const struct runtime_record *r, struct hotspot_scratch *h, __u64 blob, int is_native)
{
	const struct hotspot_layout *l = &r->layout.hotspot;
	enum hotspot_frame frame = HOTSPOT_FRAME_WHOLE;
	__u8 b[16];
	__u64 pc = w->pc;
	__u64 code = l->flags & HOTSPOT_CODE_POINTER ? hotspot_word(h->blob, l->blob_code)
						     : blob + hotspot_half(h->blob, l->blob_code);
	__u64 deopt = l->flags & HOTSPOT_DEOPT_POINTER
			      ? hotspot_word(h->blob, l->nmethod_deopt)
			      : blob + hotspot_half(h->blob, l->nmethod_deopt);
	__s64 complete = l->flags & HOTSPOT_COMPLETE_SHORT
				 ? (__s16)hotspot_quarter(h->blob, l->blob_complete)
				 : (__s32)hotspot_half(h->blob, l->blob_complete);
	__u32 words = hotspot_half(h->blob, l->blob_frame_words);
	if (words < 2 || words > HOTSPOT_FRAME_WORDS_MAX)
		return hotspot_lost(w, r);
	/* It will be interpreted when it is returned to: where it was is in its frame. */
	if (pc == deopt && !w->pc_is_exact &&
		!read_stack(w, w->sp + hotspot_half(h->blob, l->nmethod_original_pc), &pc))
		return STACK_END_READ_ERROR;
	if (w->pc_is_exact && read_user(b, sizeof(b), pc - 1)) {
		frame = (__s64)(pc - code) < complete ? hotspot_frame_begins(b)
						      : hotspot_frame_ends(b);
	}
	__u64 method = hotspot_word(h->blob, l->nmethod_method);
	if (!is_native)
		hotspot_find_scope(w, l, h, blob, pc - code);
	enum stack_end end = hotspot_step_compiled(w, frame, (__u64)words * sizeof(__u64));
	if (w->code.scope)
		w->runtime.stage = RUNTIME_CODE;
	else
		hotspot_record_method(w, r, hotspot_method(method), FRAME_POSITION_NONE);
	return end;
}

/* ---- methods in methods ---- */

/* The next number of the stream: up to five bytes of six bits and more, the last below 192. */
static __always_inline __u32 hotspot_number(struct hotspot_scratch *h)
{
	__u32 sum = 0;
	for (__u32 i = 0; i < 5; i++) {
		__u8 byte = *(const volatile __u8 *)&h->stream[h->stream_at & 31];
		h->stream_at++;
		sum += (byte - h->stream_base) << 6 * i;
		if (byte < 192)
			break;
	}
	return sum;
}

/* The frame of one scope, and from it to the one around it. */
static __always_inline void hotspot_scope(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h)
{
	__u32 scope = w->code.scope;
	w->code.scope = 0;
	if (!read_user(h->stream, sizeof(h->stream), w->code.scopes + scope)) {
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return;
	}
	h->stream_at = 0;
	h->stream_base = r->layout.hotspot.flags & HOTSPOT_NO_ZEROS ? 1 : 0;
	__u32 around = hotspot_number(h);
	__u64 method = hotspot_number(h);
	__u64 position = (__u64)hotspot_number(h) - 1;
	if (method)
		method = runtime_word(w->code.metadata + (method - 1) * sizeof(__u64));
	__u64 number = hotspot_method(method);
	if (number && position >= h->bytecodes_bytes)
		position = FRAME_POSITION_NONE;
	hotspot_record_method(w, r, number, position);
	/* Those around it were written before it: so there is an end. */
	if (around && around < scope) {
		w->code.scope = around;
		w->runtime.stage = RUNTIME_CODE;
	}
}

/* ---- stubs ---- */

static __always_inline void hotspot_record_stub(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h, __u64 blob)
{
	__u64 name = hotspot_word(h->blob, r->layout.hotspot.blob_name);
	__u64 number = hash_mix(code_number_begin(w, blob), name) | FRAME_CODE_REAL;
	struct event_code *e = code_is_due(w, number) ? code_begin() : NULL;
	if (e) {
		e->name_bytes =
			read_user(e->data, HOTSPOT_STUB_BYTES, name) ? HOTSPOT_STUB_BYTES : 0;
		e->name_unit = 0;
		e->file_bytes = 0;
		e->file_unit = 1;
		e->lines_bytes = 0;
		e->first_line = 0;
		code_end(w, r, e, number, HOTSPOT_STUB_BYTES);
	}
	runtime_record_frame(w, number, FRAME_POSITION_NONE);
}

/* Stubs of all kinds: some have a frame of a size that is told, some a frame pointer, some none. */
static __always_inline enum stack_end hotspot_stub(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h, __u64 blob)
{
	__u64 pc = 0, fp = 0, sp = w->sp;
	__u32 words = hotspot_half(h->blob, r->layout.hotspot.blob_frame_words);
	hotspot_record_stub(w, r, h, blob);
	if (words >= 2 && words < HOTSPOT_FRAME_WORDS_MAX) {
		__u64 cfa = sp + (__u64)words * sizeof(__u64);
		if (read_stack(w, cfa - 16, &fp) && read_stack(w, cfa - 8, &pc) &&
			hotspot_is_code(w, pc))
			return hotspot_to(w, pc, cfa, fp);
	}
	if (w->pc_is_exact && read_stack(w, sp, &pc) && hotspot_is_code(w, pc))
		return hotspot_to(w, pc, sp + 8, w->fp);
	return hotspot_by_fp(w);
}

/* ---- */

/* The frame at (pc, sp, fp), which lies in the code; and to its caller. */
__noinline int hotspot_frame(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes)
		return STACK_END_NO_REGS;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return STACK_END_NO_REGS;
	__u64 address = w->pc_is_exact ? w->pc : w->pc - 1;
	if (address - h->process.interpreter_from < h->process.interpreter_bytes)
		return hotspot_interpreted(w, r, h);
	if (w->pc == h->process.call_stub)
		return hotspot_call_stub(w);
	__u64 name = 0, blob = hotspot_blob(address);
	/* A stub at the end of the heap may be shorter. */
	if (!blob || (!read_user(h->blob, HOTSPOT_NMETHOD_BYTES, blob) &&
			     !read_user(h->blob, HOTSPOT_BLOB_BYTES, blob)))
		return hotspot_lost(w, r);
	if (address - blob >= hotspot_half(h->blob, r->layout.hotspot.blob_bytes))
		return hotspot_lost(w, r);
	name = runtime_word(hotspot_word(h->blob, r->layout.hotspot.blob_name));
	if (name == HOTSPOT_NAME_NMETHOD || name == HOTSPOT_NAME_NATIVE)
		return hotspot_compiled(w, r, h, blob, name == HOTSPOT_NAME_NATIVE);
	return hotspot_stub(w, r, h, blob);
}

/* A step in the code of a runtime, or towards it. */
__noinline int hotspot_step(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes)
		return STACK_END_NO_REGS;
	__u32 stage = w->runtime.stage;
	w->runtime.stage = RUNTIME_NATIVE;
	if (stage == RUNTIME_FIND)
		return hotspot_find(0);
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return STACK_END_NO_REGS;
	if (!w->code.scope)
		return hotspot_frame(0);
	hotspot_scope(w, r, h);
	return STACK_END_NONE;
}
