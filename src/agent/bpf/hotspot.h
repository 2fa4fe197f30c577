/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotspot: the frames of the Java virtual machine HotSpot, 8 to 26.
 *
 * Its code lies in memory without a file; hotspot_process.h finds it. hotspot_method.h finds the
 * names of methods.
 *
 * Java frames are frames of the machine's own stack, and replace no native frames. Each code heap
 * has a map that leads from an address to its CodeBlob: a compiled method, the interpreter, or a
 * stub. A compiled method has a frame of fixed size, except where it is set up and taken down; the
 * instructions there show how much of it exists. The interpreter's frames have a frame pointer,
 * with the Method and the current bytecode below it.
 *
 * A compiled method may have others inlined into it: its table of places (PcDesc) leads from the
 * address to a chain of scopes, each with its Method and bytecode, and each becomes a frame. The
 * frames of a return address are kept, by process and address.
 *
 * Source: OpenJDK, src/hotspot/share/code/{codeBlob,nmethod,pcDesc,debugInfo}.hpp, memory/heap.hpp,
 * oops/{method,constMethod,constantPool,symbol}.hpp, utilities/unsigned5.hpp,
 * cpu/x86/frame_x86.hpp.
 */
#pragma once

#include "hotspot_method.h"

/* How many steps back in a map of segments are made; one step leads over 254 segments at most. */
#define HOTSPOT_SEGMENT_STEPS_MAX 48
#define HOTSPOT_SEGMENT_FREE 0xff
/* A method has fewer than 2^17 places. */
#define HOTSPOT_PLACE_STEPS_MAX 18
#define HOTSPOT_PLACE_BYTES 16
#define HOTSPOT_FRAME_WORDS_MAX 65536
/* A frame of the interpreter is read from fp - 64 on, in words. */
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
/* A frame of the interpreter is smaller than this, and so are the bytes that a leaf has pushed. */
#define HOTSPOT_FRAME_BYTES_MAX (1 << 20)
/* In the frame of the stub by which C++ calls Java: where the caller's rbx is. */
#define HOTSPOT_CALL_STUB_BX (-56)
#define HOTSPOT_STUB_BYTES 48
/* The first eight bytes of a blob's name. */
#define HOTSPOT_NAME_NMETHOD 0x00646f6874656d6eULL /* "nmethod" */
#define HOTSPOT_NAME_NATIVE 0x6e2065766974616eULL  /* "native nmethod" */
/* The offset of the part of "StubRoutines (continuation stubs)" that is compared. */
#define HOTSPOT_NAME_CONTINUATION_AT 13
#define HOTSPOT_NAME_CONTINUATION 0x756e69746e6f6328ULL
/* Registers of the interrupted frame, in w->regs. */
#define HOTSPOT_REG_BYTECODE 5 /* r13 */
#define HOTSPOT_REG_METHOD 11  /* rbx, while the interpreter begins a method */
#define HOTSPOT_REG_RETURN 13  /* rax; while the interpreter begins a method, too */

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

/* Goes to the caller of a frame that has done push %rbp; mov %rsp, %rbp. */
static __always_inline enum stack_end hotspot_by_fp(struct walk *w)
{
	__u64 fp = w->fp, next = 0, pc = 0;
	if (fp < w->sp || (fp & 7) || !read_stack(w, fp, &next) || !read_stack(w, fp + 8, &pc))
		return STACK_END_NO_TABLE;
	return hotspot_to(w, pc, fp + 16, next);
}

/* Goes from the stub by which C++ calls Java to its caller. The stub's frame has the caller's rbx,
 * too. */
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

/* For a method whose frame is not there yet: the Method is in rbx, and the return address on the
 * stack or already taken from it. */
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
	w->sp--; /* sp may stay the same, and must count as advanced */
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

/* How much of the frame of a compiled method exists. */
enum hotspot_frame {
	HOTSPOT_FRAME_WHOLE,
	HOTSPOT_FRAME_NONE,     /* the return address is at sp */
	HOTSPOT_FRAME_PUSHED,   /* rbp is at sp, and the return address behind it */
	HOTSPOT_FRAME_RESERVED, /* the frame has its size, but rbp is still the caller's */
};

/* How much of the frame exists at the interrupted instruction, in code that makes the frame or
 * takes it down. `b`: the byte before the instruction, then 15 from the instruction on. */
static __always_inline enum hotspot_frame hotspot_frame_begins(const __u8 *b)
{
	if (b[1] == 0x48 && b[2] == 0x89 && (b[3] == 0x6c || b[3] == 0xac) && b[4] == 0x24)
		return HOTSPOT_FRAME_RESERVED; /* mov %rbp, x(%rsp) */
	if (b[0] == 0x55 || b[0] == 0xec)      /* behind push %rbp or mov %rsp, %rbp */
		return HOTSPOT_FRAME_PUSHED;
	return HOTSPOT_FRAME_NONE;
}

static __always_inline enum hotspot_frame hotspot_frame_ends(const __u8 *b)
{
	if (b[1] == 0x5d) /* pop %rbp */
		return HOTSPOT_FRAME_PUSHED;
	if (b[1] == 0xc3) /* ret */
		return HOTSPOT_FRAME_NONE;
	/* Before the return: the poll for a safepoint, cmp x(%r15), %rsp; ja; ret (from 17 on) */
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

/* One step of a binary search in the table of places. 1: the search is done. */
__noinline int hotspot_place_step(__u32 zero)
{
	struct hotspot_scratch *h = bpf_map_lookup_elem(&hotspot_scratches, &zero);
	__u32 place[2]; /* offset of the code, and of its scope */
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

/* Finds the scope of the code at an offset: that of the first place there or behind it. */
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
	/* The table's last entry is no place. */
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

/* ---- frames kept for return addresses ---- */

static __always_inline __u64 hotspot_kept_check(const struct hotspot_kept *k)
{
	__u64 hash = hash_mix(hash_mix(config.hash_seed, k->key), k->blob);
	hash = hash_mix(hash, (__u64)k->compile_id << 32 | k->frame_words);
	hash = hash_mix(hash, k->count);
	for (__u32 i = 0; i < HOTSPOT_KEPT_FRAMES_MAX; i++)
		hash = hash_mix(hash, *(const volatile __u64 *)&k->frames[i]);
	return hash;
}

static __always_inline __u64 hotspot_kept_key(const struct walk *w, const struct hotspot_scratch *h)
{
	/* With another epoch, when all functions are to be sent again, kept frames are not
	 * found. */
	return hash_mix(hash_mix(h->process.key, settings.codes_epoch), w->pc) | 1;
}

static __always_inline struct hotspot_kept *hotspot_kept_place(__u64 key)
{
	__u32 place = key >> 32 & config.codes_mask >> KEPT_PLACES_SHIFT;
	return bpf_map_lookup_elem(&hotspot_kept_places, &place);
}

/* Records the kept frames of the current return address, and goes to the caller. 0: none are kept.
 * Global: verified once. */
__noinline int hotspot_use_kept(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct hotspot_scratch *h = hotspot_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? hotspot_record(w) : NULL;
	if (!h || !r)
		return 0;
	__u64 key = hotspot_kept_key(w, h);
	const struct hotspot_kept *kept = hotspot_kept_place(key);
	if (!kept || *(const volatile __u64 *)&kept->key != key)
		return 0;
	h->kept = *kept;
	int is_whole = h->kept.key == key && h->kept.check == hotspot_kept_check(&h->kept);
	h->kept.key = 0;
	if (!is_whole || runtime_half(h->kept.blob + r->layout.hotspot.nmethod_compile_id) !=
				 h->kept.compile_id)
		return 0;
	for (__u32 i = 0; i < HOTSPOT_KEPT_FRAMES_MAX; i++) {
		if (i >= h->kept.count)
			break;
		runtime_record_native(w, *(const volatile __u64 *)&h->kept.frames[i]);
		w->runtime.count++;
	}
	return h->kept.frame_words;
}

/* Notes that the frames of the nmethod in h->blob, at `blob`, which follow will be kept. */
static __always_inline void hotspot_begin_kept(const struct walk *w, const struct hotspot_layout *l,
	struct hotspot_scratch *h, __u64 blob, __u32 frame_words)
{
	h->kept.key = hotspot_kept_key(w, h);
	h->kept.blob = blob;
	h->kept.compile_id = hotspot_half(h->blob, l->nmethod_compile_id);
	h->kept.frame_words = frame_words;
	h->kept_from = w->user_count;
}

/* Keeps the frames, once all are recorded. The function is global, so that the verifier checks it
 * once. */
__noinline int hotspot_end_kept(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes || !h->kept.key)
		return 0;
	__u64 count = w->user_count - h->kept_from;
	__u32 from = w->kernel_count + (__u32)h->kept_from;
	struct hotspot_kept *place = hotspot_kept_place(h->kept.key);
	if (place && count - 1 < HOTSPOT_KEPT_FRAMES_MAX &&
		w->user_count < SAMPLE_USER_FRAMES_MAX) {
		h->kept.count = count;
		for (__u32 i = 0; i < HOTSPOT_KEPT_FRAMES_MAX; i++) {
			__u32 at = from + i;
			*(volatile __u64 *)&h->kept.frames[i] =
				i < count && at < SAMPLE_FRAMES_MAX ? w->frames[at] : 0;
		}
		h->kept.check = hotspot_kept_check(&h->kept);
		*place = h->kept;
	}
	h->kept.key = 0;
	return 0;
}

/* ---- compiled methods as they are ---- */

/* Records the frame of the nmethod in h->blob, at `blob`, and goes to its caller. */
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
	/* The method will be interpreted when the callee returns to it; its frame has the original
	 * address. */
	if (pc == deopt && !w->pc_is_exact &&
		!read_stack(w, w->sp + hotspot_half(h->blob, l->nmethod_original_pc), &pc))
		return STACK_END_READ_ERROR;
	if (w->pc_is_exact && read_user(b, sizeof(b), pc - 1)) {
		frame = (__s64)(pc - code) < complete ? hotspot_frame_begins(b)
						      : hotspot_frame_ends(b);
	}
	__u64 method = hotspot_word(h->blob, l->nmethod_method);
	if (!w->pc_is_exact && pc == w->pc)
		hotspot_begin_kept(w, l, h, blob, words);
	/* The address in a place is the end of its instruction. */
	if (!is_native)
		hotspot_find_scope(w, l, h, blob, pc - code + w->pc_is_exact);
	enum stack_end end = hotspot_step_compiled(w, frame, (__u64)words * sizeof(__u64));
	if (w->code.scope) {
		w->runtime.stage = RUNTIME_CODE;
	} else {
		hotspot_record_method(w, r, hotspot_method(method), FRAME_POSITION_NONE);
		(void)hotspot_end_kept(0);
	}
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

/* Records the frame of one scope, and goes to the scope around it. */
static __always_inline void hotspot_scope(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h)
{
	__u32 scope = w->code.scope;
	w->code.scope = 0;
	if (!read_user(h->stream, sizeof(h->stream), w->code.scopes + scope)) {
		h->kept.key = 0;
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
	/* An outer scope was written before its inner one, so its offset is smaller, and the loop
	 * ends. */
	if (around && around < scope) {
		w->code.scope = around;
		w->runtime.stage = RUNTIME_CODE;
		return;
	}
	(void)hotspot_end_kept(0);
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

/* A virtual thread's frames are brought back from the heap some at a time: the last of them returns
 * to the stub that brings more. Behind it lies the frame of the method that entered the thread. */
static __always_inline enum stack_end hotspot_barrier(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h)
{
	runtime_record_gap(w, r, RUNTIME_GAP_FROZEN);
	__u64 entry = h->process.entry ? runtime_word(h->process.entry) : 0;
	if (!hotspot_is_code(w, entry))
		return hotspot_by_fp(w);
	w->pc = entry;
	return STACK_END_NONE;
}

/* Goes from a stub to its caller. Some stubs have a frame of known size, some a frame pointer, some
 * no frame. */
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

/* Records the frame at (pc, sp, fp), which lies in HotSpot's code, and goes to its caller. */
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
	if (w->pc == h->process.call_stub_return)
		return hotspot_call_stub(w);
	h->kept.key = 0;
	__u32 words = w->pc_is_exact ? 0 : hotspot_use_kept(0);
	if (words)
		return hotspot_step_compiled(w, HOTSPOT_FRAME_WHOLE, (__u64)words * sizeof(__u64));
	__u64 name = 0, blob = hotspot_blob(address);
	/* A stub at the end of the heap may be shorter than an nmethod. */
	if (!blob || (!read_user(h->blob, HOTSPOT_NMETHOD_BYTES, blob) &&
			     !read_user(h->blob, HOTSPOT_BLOB_BYTES, blob)))
		return hotspot_lost(w, r);
	if (address - blob >= hotspot_half(h->blob, r->layout.hotspot.blob_bytes))
		return hotspot_lost(w, r);
	name = runtime_word(hotspot_word(h->blob, r->layout.hotspot.blob_name));
	if (name == HOTSPOT_NAME_NMETHOD || name == HOTSPOT_NAME_NATIVE)
		return hotspot_compiled(w, r, h, blob, name == HOTSPOT_NAME_NATIVE);
	name = runtime_word(
		hotspot_word(h->blob, r->layout.hotspot.blob_name) + HOTSPOT_NAME_CONTINUATION_AT);
	if (name == HOTSPOT_NAME_CONTINUATION && !w->pc_is_exact)
		return hotspot_barrier(w, r, h);
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
