/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * luajit: the frames of LuaJIT 2.1 with 64-bit references, interpreted and in traces.
 *
 * Its interpreter, and the machine code that it makes of traces, run in a frame on the machine's
 * stack (C frame) whose layout is fixed: it has the lua_State, the instruction of a call, the
 * previous C frame of the same state, the caller's registers, and the return address. The state
 * points to its innermost C frame. So the C frame is the first place from the stack pointer on
 * which has a state that points to this place. Nothing else of the process is needed; nor do
 * traces, which have frames of any size below the C frame, need a table.
 *
 * The state's own stack has a slot for the function and one for how it was called before the
 * variables of each call. A run is what one C frame executes: it ends at a function that C code has
 * called. In assembly the innermost frame is in rdx and its instruction in rbx. A trace has no
 * frames for the functions inlined into it: the function from which it was entered is shown,
 * without a line.
 */
#pragma once

#include "mapping.h"
#include "runtime.h"

/* lua_State */
#define LUAJIT_STATE_BYTES 88
#define LUAJIT_STATE_WORDS (LUAJIT_STATE_BYTES / 8)
#define LUAJIT_STATE_TYPE 9
#define LUAJIT_TYPE_STATE 6
#define LUAJIT_STATE_GLOBAL 16
#define LUAJIT_STATE_BASE 32
#define LUAJIT_STATE_END 48
#define LUAJIT_STATE_STACK 56
#define LUAJIT_STATE_CFRAME 80
#define LUAJIT_CFRAME_FLAGS 3ULL
/* global_State: cur_L, and behind it jit_base, at one of these words */
#define LUAJIT_GLOBAL_CURRENT 344
#define LUAJIT_GLOBAL_WORDS 6
/* a C frame */
#define LUAJIT_CFRAME_RESULTS \
	8 /* i32; below 0: the C frame is that of a protected call of C code */
#define LUAJIT_CFRAME_STATE 16
#define LUAJIT_CFRAME_PC 24
#define LUAJIT_CFRAME_BEFORE 32
#define LUAJIT_CFRAME_SAVED 56 /* rbx, rbp, the return address */
#define LUAJIT_CFRAME_BYTES 80
/* GCfunc, GCproto, GCstr */
#define LUAJIT_VALUE_MASK ((1ULL << 47) - 1)
#define LUAJIT_VALUE_FUNCTION 0x1fff7ULL
#define LUAJIT_FUNCTION_WORDS 5
#define LUAJIT_FUNCTION_KIND 10 /* 0: in Lua */
#define LUAJIT_FUNCTION_CODE 32
#define LUAJIT_PROTO_BYTES 104
#define LUAJIT_PROTO_WORDS (LUAJIT_PROTO_BYTES / 8)
#define LUAJIT_PROTO_COUNT 12
#define LUAJIT_PROTO_CHUNK 64
#define LUAJIT_PROTO_FIRST 72
#define LUAJIT_PROTO_LINES_COUNT 76
#define LUAJIT_PROTO_LINES 80
#define LUAJIT_TEXT_DATA 24
/* The low bits of the second slot say how a function was called. */
#define LUAJIT_CALL_LUA 0
#define LUAJIT_CALL_C 1
#define LUAJIT_CALL_CONTINUED 2
#define LUAJIT_CALL_VARARG 3
#define LUAJIT_CALL_MASK 3
#define LUAJIT_CALL_BITS 7ULL
/* Registers of the interpreter, as in a signal frame. */
#define LUAJIT_REGISTER_BASE 12 /* rdx */
#define LUAJIT_REGISTER_PC 11   /* rbx */
/* How many words of the stack a step searches for a C frame, and how many steps there are. */
#define LUAJIT_SEARCH_WORDS 16
#define LUAJIT_SEARCH_STEPS 12

/* In w->runtime: `root` is the C frame whose functions are shown (0: not found yet); `owner` its
 * state; `frame` the next function's second slot; `last_code` that function's next instruction;
 * `looks` the next C frame of this state; `look` the number of search steps so far; `last_number`
 * the sp where nothing was found. */

static __always_inline int luajit_is_at(__u64 word)
{
	return word > 0xffff && !(word & 7) && word >> 47 == 0;
}

/* Is `at` a C frame of the state that it names? */
static __always_inline int luajit_is_cframe(
	struct walk *w, struct runtime_scratch *s, __u64 at, __u64 state)
{
	if (!luajit_is_at(state) || !read_user(s->code, LUAJIT_STATE_BYTES, state) ||
		block_byte(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_TYPE) != LUAJIT_TYPE_STATE)
		return 0;
	__u64 innermost = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_CFRAME);
	return (innermost & ~LUAJIT_CFRAME_FLAGS) == at ||
	       (at == w->runtime.looks && state == w->runtime.owner);
}

/* The function at whose second slot `frame` is; 0: there is none. */
static __always_inline __u64 luajit_function(__u64 frame)
{
	__u64 value = runtime_word(frame - 8);
	return value & LUAJIT_VALUE_MASK;
}

/* The base of the function from which the running trace was entered; 0: no trace runs. */
static __always_inline __u64 luajit_trace_base(struct walk *w, struct runtime_scratch *s)
{
	__u64 global = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_GLOBAL);
	if (!read_user(s->block, LUAJIT_GLOBAL_WORDS * 8, global + LUAJIT_GLOBAL_CURRENT))
		return 0;
	for (__u32 i = 0; i + 1 < LUAJIT_GLOBAL_WORDS; i++) {
		if (s->block[i] == w->runtime.owner)
			return s->block[i + 1];
	}
	return 0;
}

static __always_inline int luajit_is_base(const struct runtime_scratch *s, __u64 base)
{
	__u64 stack = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_STACK);
	__u64 end = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_END);
	return !(base & 7) && base > stack + 8 && base <= end &&
	       runtime_word(base - 16) >> 47 == LUAJIT_VALUE_FUNCTION;
}

/* Begins with the innermost frame of the state in s->code. */
static __always_inline void luajit_begin(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u64 cframe)
{
	__u64 base = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_BASE);
	w->runtime.last_code = runtime_word(cframe + LUAJIT_CFRAME_PC);
	__u64 other = w->code.is_trace ? luajit_trace_base(w, s) : w->regs[LUAJIT_REGISTER_BASE];
	if ((w->code.is_trace || w->pc_is_exact) && luajit_is_base(s, other)) {
		base = other;
		w->runtime.last_code = w->code.is_trace ? 0 : w->regs[LUAJIT_REGISTER_PC];
	}
	w->runtime.frame = luajit_is_base(s, base) ? base - 8 : 0;
	if (!w->runtime.frame)
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
}

/* Do all remaining frames belong to C frames further out? A protected call of C code, such as the
 * parser, has a C frame but no frame of its own: it has only what lies above the top of the stack
 * at that time. */
static __always_inline int luajit_is_empty(const struct walk *w, const struct runtime_scratch *s)
{
	__s32 results = 0;
	__u64 stack = block_word(s->code, LUAJIT_STATE_WORDS, LUAJIT_STATE_STACK);
	return read_user(&results, sizeof(results), w->runtime.root + LUAJIT_CFRAME_RESULTS) &&
	       results < 0 && w->runtime.frame < stack - results;
}

/* Goes from the C frame to its caller. */
static __always_inline void luajit_leave(struct walk *w)
{
	__u64 cframe = w->runtime.root, saved[3];
	w->runtime.root = 0;
	w->runtime.last_code = 0;
	w->runtime.stage = RUNTIME_NATIVE;
	w->runtime.looks = runtime_word(cframe + LUAJIT_CFRAME_BEFORE) & ~LUAJIT_CFRAME_FLAGS;
	if (!w->runtime.looks)
		w->runtime.frame = 0;
	if (!read_user(saved, sizeof(saved), cframe + LUAJIT_CFRAME_SAVED)) {
		w->runtime.last_number = w->sp;
		return;
	}
	w->bx = saved[0];
	w->bx_is_known = 1;
	w->fp = saved[1];
	w->pc = saved[2];
	w->sp = cframe + LUAJIT_CFRAME_BYTES;
	w->pc_is_exact = 0;
	w->regs_are_kept = 0;
}

/* A step of the search for the C frame of the code that the walk has reached. */
static __always_inline void luajit_search(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	__u64 at = w->sp + w->runtime.look * LUAJIT_SEARCH_WORDS * 8;
	w->runtime.stage = RUNTIME_FRAMES;
	if (w->runtime.look++ >= (w->code.is_trace ? LUAJIT_SEARCH_STEPS : 1) ||
		!read_user(s->block, LUAJIT_SEARCH_WORDS * 8, at + LUAJIT_CFRAME_STATE)) {
		w->runtime.look = 0;
		w->runtime.last_number = w->sp; /* a native frame */
		w->runtime.stage = RUNTIME_NATIVE;
		if (!w->code.is_trace)
			runtime_record_gap(w, r, RUNTIME_GAP_STATE);
		else if (!w->runtime.owner)
			w->runtime.record = 0;
		w->code.is_no_trace |= w->code.is_trace;
		return;
	}
	for (__u32 i = 0; i < LUAJIT_SEARCH_WORDS; i++) {
		__u64 state = s->block[i];
		if (!luajit_is_cframe(w, s, at + 8 * i, state))
			continue;
		struct bpf_counters *c = counters_here();
		if (c && !w->runtime.owner)
			c->runtime_samples++;
		int is_same = state == w->runtime.owner && at + 8 * i == w->runtime.looks;
		w->runtime.owner = state;
		w->runtime.root = at + 8 * i;
		if (!is_same)
			luajit_begin(w, r, s, at + 8 * i);
		else if (!w->runtime.last_code)
			w->runtime.last_code = runtime_word(at + 8 * i + LUAJIT_CFRAME_PC);
		w->runtime.look = 0;
		if (w->runtime.frame && luajit_is_empty(w, s))
			luajit_leave(w);
		return;
	}
}

static __always_inline void luajit_tell(struct walk *w, const struct runtime_record *r,
	const struct runtime_scratch *s, __u64 number)
{
	struct event_code *e = code_begin();
	if (!e)
		return;
	__u64 chunk = block_word(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_CHUNK);
	__u8 kind = 0;
	if (chunk && !read_user(&kind, sizeof(kind), chunk + LUAJIT_TEXT_DATA)) {
		code_drop();
		return;
	}
	e->first_line = block_half(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_FIRST);
	e->form = e->first_line ? RUNTIME_FORM_NAMED : RUNTIME_FORM_MAIN;
	if (kind == '@' || kind == '=')
		e->file_bytes =
			code_copy_string(e, 0, chunk + LUAJIT_TEXT_DATA + 1, CODE_FILE_BYTES_MAX);
	else if (!e->first_line)
		e->form = RUNTIME_FORM_EVAL;
	code_end(w, r, e, number, e->file_bytes);
}

/* The line before instruction `next` of the function in s->code, whose code begins at `code`. */
static __always_inline __u64 luajit_line(const struct runtime_scratch *s, __u64 code, __u64 next)
{
	__u64 at = (next - code) / 4;
	__u32 first = block_half(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_FIRST);
	__u32 lines = block_half(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_LINES_COUNT);
	__u64 table = block_word(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_LINES);
	__u32 unit = lines < 256 ? 1 : lines < 65536 ? 2 : 4;
	__u32 line = 0;
	if (next <= code || at > block_half(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_COUNT) ||
		!table)
		return FRAME_POSITION_NONE;
	if (at > 1 && !read_user(&line, unit, table + (at - 2) * unit))
		return FRAME_POSITION_NONE;
	line += first;
	return line && line < FRAME_POSITION_NONE ? line : FRAME_POSITION_NONE;
}

/* Records the function, if it is written in Lua. 0: it cannot be read. */
static __always_inline int luajit_record(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u64 function)
{
	if (!read_user(s->block, LUAJIT_FUNCTION_WORDS * 8, function))
		return 0;
	if (block_byte(s->block, LUAJIT_FUNCTION_WORDS, LUAJIT_FUNCTION_KIND))
		return 1;
	__u64 code = block_word(s->block, LUAJIT_FUNCTION_WORDS, LUAJIT_FUNCTION_CODE);
	if (!read_user(s->code, LUAJIT_PROTO_BYTES, code - LUAJIT_PROTO_BYTES))
		return 0;
	__u64 number = code_number_begin(w, code);
	number = hash_mix(number, block_word(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_CHUNK));
	number = hash_mix(number, block_word(s->code, LUAJIT_PROTO_WORDS, LUAJIT_PROTO_FIRST));
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		luajit_tell(w, r, s, number);
	runtime_record_frame(w, number, luajit_line(s, code, w->runtime.last_code));
	return 1;
}

/* The next frame of the run. */
static __always_inline void luajit_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	__u64 slot[2]; /* the function, how it was called */
	__u64 frame = w->runtime.frame;
	__u32 instr = 0;
	w->runtime.stage = RUNTIME_FRAMES;
	if (!frame) {
		luajit_leave(w);
		return;
	}
	w->runtime.frame = 0;
	if (!read_user(slot, sizeof(slot), frame - 8)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		return;
	}
	__u64 function = slot[0] & LUAJIT_VALUE_MASK;
	if (function != w->runtime.owner && !luajit_record(w, r, s, function)) {
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return;
	}
	__u64 call = slot[1], kind = call & LUAJIT_CALL_MASK;
	if (kind == LUAJIT_CALL_VARARG) { /* the same function is below, where its slot says how it
					     was called */
		frame -= call & ~LUAJIT_CALL_BITS;
		call = runtime_word(frame);
		kind = call & LUAJIT_CALL_MASK;
	}
	w->runtime.last_code = 0;
	if (kind == LUAJIT_CALL_LUA) {
		(void)read_user(&instr, sizeof(instr), call - 4);
		w->runtime.last_code = call;
		w->runtime.frame = frame - 8 * (2 + (instr >> 8 & 0xff));
		return;
	}
	if (kind == LUAJIT_CALL_CONTINUED)
		w->runtime.last_code = runtime_word(frame - 16);
	if (call & ~LUAJIT_CALL_BITS)
		w->runtime.frame = frame - (call & ~LUAJIT_CALL_BITS);
	else
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
	if (kind == LUAJIT_CALL_C)
		luajit_leave(w);
}

/* Global: verified by itself. The stage that is next is native, unless this sets another. */
__noinline int luajit_step(__u32 stage)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !r || r->kind != RUNTIME_LUAJIT || stage != RUNTIME_FRAMES)
		return 0;
	if (!w->runtime.root)
		luajit_search(w, r, s);
	else
		luajit_frame(w, r, s);
	return 0;
}
