/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * beam: the stacks of Erlang's processes, whose code the emulator's JIT compiler has generated
 * (from OTP 25 on). The frames are those of code without a table; names come from what the emulator
 * registers for debuggers.
 *
 * An Erlang process has a stack of its own, at the end of its heap, which grows down. In generated
 * code the stack pointer is in it. Functions in C run on the stack of their thread; when they
 * return, the code that has called them takes the process' stack pointer from the process'
 * structure. Each word of such a stack says by its two low bits what it is: 0 is a return address,
 * or a saved frame pointer (+JPperf true), which lies in the same stack. So it is read word by
 * word, with frame pointers or without.
 *
 * The structure is in r13, which functions in C save. It is accepted if it has a heap: the words
 * for its beginning and its end, another word, and its size, which must be the distance between the
 * two.
 *
 * Source: Erlang/OTP, erts/emulator/beam/erl_process.h, jit/x86/beam_asm.hpp.
 */
#pragma once

#include "hotspot.h"

#define BEAM_REG_PROCESS 5 /* r13 */
/* Which words of a process' structure may be its heap's beginning, end and size. */
#define BEAM_PROCESS_WORDS 32
#define BEAM_HEAP_FIRST 8
#define BEAM_HEAP_END 1
#define BEAM_HEAP_SIZE 3
#define BEAM_HEAP_WORDS_MAX (1ULL << 36)
/* How many words of the stack a step reads. */
#define BEAM_STACK_WORDS 16
#define BEAM_TAG 3
/* Bytes of code behind a call of a function in C, within which the stack pointer is restored from
 * r12 or by r13. */
#define BEAM_RETURN_BYTES 64
#define BEAM_MOV_FROM_PROCESS 0x658b49 /* mov x(%r13), %rsp */
#define BEAM_MOV_FROM_R12 0xe4894c     /* mov %r12, %rsp */
/* How many words below that call's return address may be registers that the function has saved. */
#define BEAM_SAVED_WORDS 20

/* In w->code: `scopes` is where the process' heap begins, `metadata` where it ends (0: not known);
 * `root` added to an address in this mapping, which begins at `from`, makes its frame. */

static __always_inline int beam_is_met(const struct walk *w)
{
	const struct runtime_record *r = w->code.record ? hotspot_record(w) : NULL;
	return r && r->kind == RUNTIME_BEAM;
}

/* The walk has reached generated code: the next stage is RUNTIME_CODE. */
static __always_inline int beam_begin(struct walk *w, const struct mapping *m, __u64 address)
{
	__u64 frame = (__u64)FRAME_FILE_ADDRESS << FRAME_FILE_SHIFT | (address & FRAME_OFFSET_MASK);
	if (w->code.is_no_beam || m->kind == MAPPING_VDSO)
		return 0;
	if (m->kind == MAPPING_FILE)
		frame = (__u64)m->file_id << FRAME_FILE_SHIFT |
			((address - m->start + m->offset) & FRAME_OFFSET_MASK);
	w->code.from = m->start;
	w->code.bytes = m->end - m->start;
	w->code.root = frame - address;
	w->code.is_in_beam = 0;
	w->runtime.stage = RUNTIME_CODE;
	return 1;
}

static __always_inline void beam_record(struct walk *w, __u64 address)
{
	runtime_record_native(w, w->code.root + address);
	w->runtime.count++;
}

/* 1: a process' structure is at `process`: it has a heap. */
__noinline int beam_process(__u64 process)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	if (!w || !s || !config.walk_runtimes || (process & 7) || process >> 47 ||
		process < 0x10000 || !read_user(s->block, BEAM_PROCESS_WORDS * 8, process))
		return 0;
	for (__u32 i = BEAM_HEAP_FIRST; i + BEAM_HEAP_SIZE < BEAM_PROCESS_WORDS; i++) {
		__u64 heap = s->block[i], end = s->block[i + BEAM_HEAP_END];
		__u64 words = s->block[i + BEAM_HEAP_SIZE];
		if (!heap || (heap & 7) || words < BEAM_STACK_WORDS ||
			words > BEAM_HEAP_WORDS_MAX || end - heap != words * 8)
			continue;
		w->code.scopes = heap;
		w->code.metadata = end;
		return 1;
	}
	return 0;
}

/* The process for which a function in C was called from here: the function has saved it, or it is
 * still in the register. If the two differ, there is none. */
__noinline __u64 beam_caller(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct runtime_scratch *s = runtime_scratch_here();
	__u64 found = 0;
	if (!w || !s || !config.walk_runtimes ||
		!read_user(s->code, BEAM_SAVED_WORDS * 8, w->sp - 8 - BEAM_SAVED_WORDS * 8))
		return 0;
	s->code[BEAM_SAVED_WORDS] = w->regs[BEAM_REG_PROCESS];
	for (__u32 i = 0; i <= BEAM_SAVED_WORDS; i++) {
		__u64 process = s->code[i];
		if (process == found || !beam_process(process))
			continue;
		if (found)
			return 0;
		found = process;
	}
	return found;
}

/* At which offset in the structure the code behind `pc` reads the stack pointer; 0: it does not. */
static __always_inline __u32 beam_stop_at(struct runtime_scratch *s, __u64 pc)
{
	__u8 *b = (__u8 *)s->block;
	if (!read_user(b, BEAM_RETURN_BYTES, pc))
		return 0;
	for (__u32 i = 0; i + 4 <= BEAM_RETURN_BYTES; i++) {
		__u32 word = b[i] | b[i + 1] << 8 | b[i + 2] << 16;
		if (word == BEAM_MOV_FROM_R12)
			return 0;
		if (word == BEAM_MOV_FROM_PROCESS)
			return b[i + 3];
	}
	return 0;
}

static __always_inline int beam_is_on_stack(const struct walk *w, __u64 at)
{
	return !(at & 7) && at - w->code.scopes <= w->code.metadata - w->code.scopes;
}

/* At the innermost code of the process: finds the process' stack. 0: it was not found. */
__noinline int beam_enter(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct runtime_scratch *s = runtime_scratch_here();
	if (!w || !s || !config.walk_runtimes)
		return 0;
	__u64 process = w->pc_is_exact ? w->regs[BEAM_REG_PROCESS] : beam_caller(0);
	if (!beam_process(process))
		return 0;
	if (w->pc_is_exact && beam_is_on_stack(w, w->sp))
		return 1;
	__u32 stop_at = beam_stop_at(s, w->pc);
	__u64 sp = stop_at ? runtime_word(process + stop_at) : 0;
	if (!beam_is_on_stack(w, sp))
		return 0;
	w->sp = sp;
	return 1;
}

/* Goes to the next return address; one in another mapping is looked up. */
static __always_inline int beam_next(struct walk *w, struct runtime_scratch *s)
{
	__u64 end = w->code.metadata, at = w->sp;
	if (at >= end)
		return STACK_END_ROOT;
	if (end - at < BEAM_STACK_WORDS * 8)
		at = end - BEAM_STACK_WORDS * 8;
	if (!read_user(s->block, BEAM_STACK_WORDS * 8, at))
		return STACK_END_READ_ERROR;
	w->runtime.stage = RUNTIME_CODE;
	for (__u32 i = 0; i < BEAM_STACK_WORDS; i++) {
		__u64 word = s->block[i], place = at + 8 * i;
		if (place < w->sp || (word & BEAM_TAG) || word < 0x10000 ||
			beam_is_on_stack(w, word))
			continue;
		w->sp = place + 8;
		w->pc = word;
		w->pc_is_exact = 0;
		if (word - 1 - w->code.from < w->code.bytes) {
			beam_record(w, word - 1);
			return STACK_END_NONE;
		}
		w->pc_is_guess = 1;
		w->runtime.stage = RUNTIME_NATIVE;
		return STACK_END_NONE;
	}
	w->sp = at + BEAM_STACK_WORDS * 8;
	w->pc = 0;
	return STACK_END_NONE;
}

/* A step in generated code. Global: verified by itself. */
__noinline int beam_step(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct runtime_scratch *s = runtime_scratch_here();
	if (!w || !s || !config.walk_runtimes)
		return STACK_END_NO_REGS;
	w->runtime.stage = RUNTIME_NATIVE;
	if (!w->code.is_in_beam) {
		if (!w->code.metadata && !beam_enter(0)) {
			w->code.is_no_beam = 1; /* the frame pointer is used */
			return STACK_END_NONE;
		}
		beam_record(w, w->pc_is_exact ? w->pc : w->pc - 1);
		w->code.is_in_beam = 1;
		w->bx_is_known = 0;
		w->regs_are_kept = 0;
	}
	return beam_next(w, s);
}
