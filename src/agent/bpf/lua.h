/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lua: the frames of Lua, 5.1 to 5.5.
 *
 * Nothing leads from a thread of the system to its lua_State. A native frame of the interpreter's
 * loop, luaV_execute, has it in a register that its callees have saved, or on its stack. So
 * registers and the stack from the leaf to the end of that frame are searched for a word that
 * points to one: its type is right, it has begun and has not yielded, its innermost frame lies
 * below the top of its stack, and its protection (errorJmp) lies further up on the machine's stack.
 * If there are several, the one whose protection is furthest down runs, and the others have resumed
 * it. A state that yields is protected until its native frames have been left. While Lua moves a
 * state's stack, its frames point to the new stack, or hold distances from its beginning.
 *
 * The state leads to its innermost CallInfo, and each to the one before. A run is what one native
 * frame of the loop executes: it ends at a frame with a flag for that; up to 5.1, which has no such
 * flag, at a frame of a function in C. Functions in C have a CallInfo, too, but their native frames
 * are shown instead.
 *
 * A coroutine is a state of its own. When its frames have ended, the walk looks for the state that
 * resumed it: in the same way, from the last native frame that it passed on, and not before it has
 * left the coroutine's protection, below which nothing belongs to the state that resumed it. A
 * coroutine that has yielded, or has caught an error in a protected call, has fewer native frames
 * than runs: the rest of its frames is shown at the first native frame outside of it.
 *
 * Up to 5.1 and from 5.4 on the loop keeps the current instruction's address in a register, and
 * stores it in the frame only before instructions that may fail. So for the innermost function a
 * register that points into its code is preferred.
 */
#pragma once

#include "runtime.h"

#define LUA_TYPE_THREAD 8
#define LUA_TYPE_FUNCTION 6
#define LUA_TYPE_MASK 0x3f /* without the bit that says that the object may be collected */
#define LUA_TYPE_AT 8      /* offset of the type in a value and in an object */
#define LUA_FUNCTION_IS_C 10
#define LUA_TEXT_DATA 24
#define LUA_INSTR_BYTES 4
/* The part of a lua_State that is read. */
#define LUA_THREAD_BYTES 176
#define LUA_THREAD_TOP 16
#define LUA_THREAD_WORDS (LUA_THREAD_BYTES / 8)
#define LUA_FRAME_WORDS (LUA_FRAME_BYTES / 8)
#define LUA_PROTO_WORDS (LUA_PROTO_BYTES / 8)
#define LUA_STACK_MORE 1024 /* bytes behind stack_last that may be used */
/* The search for a state reads LUA_SEARCH_WORDS words in a step. How many bytes below the first
 * native frame of Lua's file it begins, and after how many bytes it ends. */
#define LUA_SEARCH_WORDS 16
#define LUA_SEARCH_BEFORE 1024
#define LUA_SEARCH_BYTES 16384
/* Words that point into the machine's stack this near are no states. */
#define LUA_SEARCH_NEAR 65536
#define LUA_STACK_MAX (1 << 30) /* a smaller value is a distance in bytes, not an address */
#define LUA_PROTECTED_MAX 8
#define LUA_UNPROTECTED (~1ULL) /* stands for the main thread's protection, if it has none */
/* The status of a state that yields, set before its native frames are left. */
#define LUA_YIELDS 1
#define LUA_MAY_BE_LEFT 2
#define LUA_SKIPPED_MAX 8
/* From 5.4 on lines are stored as differences; LUA_MARK says that another table has the whole
 * number, which is so at least every LUA_MARKS_EVERY instructions. */
#define LUA_MARK (-128)
#define LUA_MARKS_EVERY 128
#define LUA_MARKS_LOOKED_AT 32

/* In w->runtime: `frame` is a CallInfo, or LUA_UNKNOWN; `owner` its state; `root` its outermost
 * CallInfo; `looks` where on the stack the search for a state goes on; `look` one of these;
 * `last_code`: functions were shown in this run. In a search `root` is the state that was found, or
 * 0, and `last_number` where its protection is. */
#define LUA_UNKNOWN 1
#define LUA_REGISTERS 0 /* the registers are searched next */
#define LUA_STACK 1
#define LUA_DRAIN 2 /* all remaining frames are shown */

static __always_inline int lua_is_at(__u64 word)
{
	return word > 0xffff && !(word & 7) && word >> 47 == 0;
}

static __always_inline __u64 lua_main(const struct lua_layout *l, __u64 thread)
{
	__u64 main = runtime_word(thread + l->thread_global) + l->global_main;
	return l->holds_main ? main : runtime_word(main);
}

/* Is there a state at `address` that runs, has begun above `above`, and is protected further down
 * than the one that was found before? Global: verified by itself, and not for each word. */
__noinline int lua_look_at(__u64 address, __u64 above)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = w ? runtime_record_of(w) : NULL;
	if (!w || !s || !r || !read_user(s->code, LUA_THREAD_BYTES, address) ||
		block_byte(s->code, LUA_THREAD_WORDS, LUA_TYPE_AT) != LUA_TYPE_THREAD)
		return 0;
	const struct lua_layout *l = &r->layout.lua;
	__u64 frame = block_word(s->code, LUA_THREAD_WORDS, l->thread_frame);
	__u64 stack = block_word(s->code, LUA_THREAD_WORDS, l->thread_stack);
	__u64 last = block_word(s->code, LUA_THREAD_WORDS, l->thread_stack - 8);
	__u64 top = block_word(s->code, LUA_THREAD_WORDS, LUA_THREAD_TOP);
	__u64 jump = block_word(s->code, LUA_THREAD_WORDS, l->thread_protected);
	__u32 status = block_byte(s->code, LUA_THREAD_WORDS, l->thread_status);
	__u64 base = l->thread_pc ? block_word(s->code, LUA_THREAD_WORDS, l->thread_base)
				  : address + l->thread_base;
	if ((status && (status != LUA_YIELDS || !jump)) || frame == base || !lua_is_at(frame) ||
		(jump && jump <= above) ||
		top - runtime_word(frame + l->frame_function) > last - stack + LUA_STACK_MORE)
		return 0;
	if (!jump && lua_main(l, address) == address)
		jump = LUA_UNPROTECTED;
	if (jump >= w->runtime.last_number)
		return 0;
	w->runtime.last_number = jump;
	w->runtime.root = address;
	return 0;
}

/* Begins a search. */
static __always_inline void lua_forget(struct walk *w)
{
	w->runtime.frame = LUA_UNKNOWN;
	w->runtime.root = 0;
	w->runtime.last_number = ~0ULL;
}

/* Where the search for the state of the native frame that ends at w->sp begins. */
static __always_inline __u64 lua_from(const struct walk *w)
{
	__u64 from = w->regs[SIGCONTEXT_SP];
	if (w->sp - from > LUA_SEARCH_BEFORE)
		from = w->sp - LUA_SEARCH_BEFORE;
	return from & ~7ULL;
}

/* The search has ended: takes the state that it found. If the walk has left that state's
 * protection, the native frame belongs to a state that has resumed it, which is searched for from
 * there on. */
static __always_inline int lua_take(struct walk *w, const struct lua_layout *l)
{
	__u64 address = w->runtime.root, jump = w->runtime.last_number & ~7ULL;
	__u64 from = lua_from(w);
	if (!address)
		return 0;
	w->runtime.looks = jump >= w->sp ? w->sp : jump > from ? jump : from;
	w->runtime.owner = address;
	w->runtime.root =
		l->thread_pc ? runtime_word(address + l->thread_base) : address + l->thread_base;
	w->runtime.frame = runtime_word(address + l->thread_frame);
	w->runtime.last_code = 0;
	return 1;
}

/* A step of the search for the state of the native frame that ends at w->sp. */
static __always_inline void lua_search(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct lua_layout *l = &r->layout.lua;
	__u64 at = w->runtime.looks, above = at;
	w->runtime.stage = RUNTIME_FRAMES;
	if (w->runtime.look == LUA_REGISTERS) {
		w->runtime.look = LUA_STACK;
		above = w->regs[SIGCONTEXT_SP];
		for (__u32 i = 0; i < LUA_SEARCH_WORDS; i++)
			s->block[i] = w->regs[i];
	} else if (at >= w->sp || !read_user(s->block, LUA_SEARCH_WORDS * 8, at)) {
		if (lua_take(w, l))
			return;
		w->runtime.looks = w->sp;
		w->runtime.stage = RUNTIME_NATIVE;
		if (!l->thread_pc || !w->runtime.owner)
			runtime_record_gap(w, r, RUNTIME_GAP_STATE);
		return;
	} else {
		w->runtime.looks = at + LUA_SEARCH_WORDS * 8;
	}
	for (__u32 i = 0; i < LUA_SEARCH_WORDS; i++) {
		__u64 word = s->block[i];
		if (lua_is_at(word) && word != w->runtime.owner && word != w->runtime.root &&
			word + LUA_SEARCH_NEAR - w->sp >= 2 * LUA_SEARCH_NEAR)
			(void)lua_look_at(word, above);
	}
}

/* ---- functions ---- */

/* The address of a string's text. From 5.5 on a long string has a pointer to it. */
static __always_inline __u64 lua_text(const struct lua_layout *l, __u64 string)
{
	__s8 length = 0;
	if (l->text_length && !read_user(&length, sizeof(length), string + l->text_length))
		return 0;
	return length < 0 ? runtime_word(string + LUA_TEXT_DATA) : string + LUA_TEXT_DATA;
}

static __always_inline void lua_tell(struct walk *w, const struct runtime_record *r,
	const struct runtime_scratch *s, __u64 number)
{
	const struct lua_layout *l = &r->layout.lua;
	struct event_code *e = code_begin();
	if (!e)
		return;
	__u64 source = block_word(s->block, LUA_PROTO_WORDS, l->proto_source);
	__u32 first = block_half(s->block, LUA_PROTO_WORDS, l->proto_first_line);
	__u64 text = source ? lua_text(l, source) : 0;
	__u8 kind = 0; /* '@': a file; '=': a name; else the loaded text itself */
	if (source && !read_user(&kind, sizeof(kind), text)) {
		code_drop();
		return;
	}
	e->first_line = first;
	e->form = first ? RUNTIME_FORM_NAMED : RUNTIME_FORM_MAIN;
	if (kind == '@' || kind == '=')
		e->file_bytes = code_copy_string(e, 0, text + 1, CODE_FILE_BYTES_MAX);
	else if (!first)
		e->form = RUNTIME_FORM_EVAL;
	code_end(w, r, e, number, e->file_bytes);
}

/* The line of instruction `at` if lines are stored as differences. Global: verified by itself. */
__noinline int lua_marked_line(__u32 at)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !r)
		return 0;
	const struct lua_layout *l = &r->layout.lua;
	__u64 lines = block_word(s->block, LUA_PROTO_WORDS, l->proto_lines);
	__u64 marks = block_word(s->block, LUA_PROTO_WORDS, l->proto_marks);
	__u32 line = block_half(s->block, LUA_PROTO_WORDS, l->proto_first_line);
	__u32 from = at >= LUA_MARKS_EVERY ? at - (LUA_MARKS_EVERY - 1) : 0;
	__u64 count = bounded(at - from, LUA_MARKS_EVERY) + 1;
	__s32 sum = 0, mark = -1;
	if (!read_user(s->block, bounded(count, 256), lines + from))
		return 0;
	for (__u32 i = 0; i < LUA_MARKS_EVERY; i++) {
		__s8 step = block_byte(s->block, RUNTIME_BLOCK_WORDS, i);
		if (i >= count)
			break;
		sum = step == LUA_MARK ? 0 : sum + step;
		mark = step == LUA_MARK ? (__s32)(from + i) : mark;
	}
	if (mark < 0)
		return from ? 0 : line + sum;
	__u32 first = mark / LUA_MARKS_EVERY;
	marks += 8 * (__u64)(first ? first - 1 : 0);
	for (__u32 i = 0; i < LUA_MARKS_LOOKED_AT; i++) {
		__u32 pair[2];
		if (!read_user(pair, sizeof(pair), marks + 8 * i))
			return 0;
		if (pair[0] == (__u32)mark)
			return pair[1] + sum;
	}
	return 0;
}

/* The line before instruction `next` of the function in s->block. */
static __always_inline __u64 lua_line(
	const struct lua_layout *l, const struct runtime_scratch *s, __u64 next)
{
	__u64 code = block_word(s->block, LUA_PROTO_WORDS, l->proto_code);
	__u64 at = (next - code) / LUA_INSTR_BYTES;
	__u32 line = 0;
	at -= at > 0;
	if (next < code || at >= block_half(s->block, LUA_PROTO_WORDS, l->proto_lines_count))
		return FRAME_POSITION_NONE;
	if (l->proto_marks)
		line = lua_marked_line(at);
	else
		(void)read_user(&line, sizeof(line),
			block_word(s->block, LUA_PROTO_WORDS, l->proto_lines) + 4 * at);
	return line && line < FRAME_POSITION_NONE ? line : FRAME_POSITION_NONE;
}

/* The instruction that is next in the frame in s->code, of the function in s->block. */
static __always_inline __u64 lua_next(
	struct walk *w, const struct lua_layout *l, const struct runtime_scratch *s, __u64 frame)
{
	__u64 code = block_word(s->block, LUA_PROTO_WORDS, l->proto_code);
	__u64 bytes =
		(__u64)block_half(s->block, LUA_PROTO_WORDS, l->proto_code_count) * LUA_INSTR_BYTES;
	__u64 next = block_word(s->code, LUA_FRAME_WORDS, l->frame_pc);
	int is_innermost = runtime_word(w->runtime.owner + l->thread_frame) == frame;
	if (is_innermost && l->thread_pc)
		next = runtime_word(w->runtime.owner + l->thread_pc);
	if (!is_innermost || w->runtime.count || !(l->thread_pc || l->proto_marks))
		return next;
	for (__u32 i = 0; i < SIGCONTEXT_SP; i++) {
		__u64 word = w->regs[(i + 4) & 15];
		if (word - code - 1 < bytes && !(word & (LUA_INSTR_BYTES - 1)))
			return word;
	}
	return next;
}

/* The prototype of the function of the frame in s->code. 0: the function is in C. */
static __always_inline __u64 lua_function(
	const struct walk *w, const struct lua_layout *l, const struct runtime_scratch *s)
{
	__u64 value[2] = { 0 }; /* the object and its type */
	__u64 at = block_word(s->code, LUA_FRAME_WORDS, l->frame_function);
	__u8 is_c = 0;
	if (at < LUA_STACK_MAX) /* the stack is being moved */
		at += runtime_word(w->runtime.owner + l->thread_stack);
	if (!read_user(value, sizeof(value), at) || (value[1] & LUA_TYPE_MASK) != LUA_TYPE_FUNCTION)
		return 0;
	if (l->thread_pc && (!read_user(&is_c, sizeof(is_c), value[0] + LUA_FUNCTION_IS_C) || is_c))
		return 0;
	return runtime_word(value[0] + l->function_proto);
}

/* ---- frames ---- */

/* Has the walk left the state of these frames? The walk's place on the machine's stack shows it.
 * LUA_MAY_BE_LEFT: that place does not show it. */
static __always_inline int lua_is_left(const struct walk *w, const struct lua_layout *l)
{
	__u64 at = runtime_word(w->runtime.owner + l->thread_protected);
	if (!at) /* a coroutine that is about to end, or to catch an error */
		return lua_main(l, w->runtime.owner) != w->runtime.owner;
	for (int i = 0; i < LUA_PROTECTED_MAX; i++) {
		__u64 before = at < w->sp ? runtime_word(at) : 1;
		if (before <= 1)
			return !before;
		at = before;
	}
	return LUA_MAY_BE_LEFT;
}

static __always_inline __u64 lua_previous(
	const struct walk *w, const struct lua_layout *l, const struct runtime_scratch *s)
{
	__u64 frame = w->runtime.frame;
	__u64 previous = l->thread_pc ? frame - l->frame_bytes
				      : block_word(s->code, LUA_FRAME_WORDS, l->frame_previous);
	return previous && previous != w->runtime.root ? previous : LUA_UNKNOWN;
}

/* Reads the frame to s->code. */
static __always_inline int lua_read_frame(
	const struct walk *w, const struct lua_layout *l, struct runtime_scratch *s)
{
	return read_user(s->code, bounded(l->frame_bytes, 128), w->runtime.frame);
}

/* The run has ended. */
static __always_inline void lua_end_run(struct walk *w)
{
	w->runtime.last_code = 0;
	w->runtime.looks = w->sp;
	w->runtime.stage = RUNTIME_NATIVE;
}

/* Has the loop not been called yet for the innermost frame, which is in s->code? */
static __always_inline int lua_begins(const struct walk *w, const struct lua_layout *l,
	const struct runtime_scratch *s, __u64 next)
{
	return !w->runtime.count && w->user_count > config.keep_interpreters &&
	       next == block_word(s->block, LUA_PROTO_WORDS, l->proto_code);
}

/* Is the frame in s->code the last one of its run? */
static __always_inline int lua_is_last(
	const struct walk *w, const struct lua_layout *l, const struct runtime_scratch *s)
{
	__u32 status = block_byte(s->code, LUA_FRAME_WORDS, l->frame_status);
	if (w->runtime.look == LUA_DRAIN || l->thread_pc)
		return 0;
	return (status & l->status_last[0]) == l->status_last[1];
}

/* Adds the next frame of the run, or an empty frame at its end. */
static __always_inline void lua_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct lua_layout *l = &r->layout.lua;
	__u64 frame = w->runtime.frame;
	if (!w->runtime.last_code && w->runtime.look != LUA_DRAIN && lua_is_left(w, l) == 1)
		w->runtime.look = LUA_DRAIN;
	if (!lua_read_frame(w, l, s)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		w->runtime.frame = 0;
		return;
	}
	__u64 proto = lua_function(w, l, s);
	w->runtime.frame = lua_previous(w, l, s);
	w->runtime.stage = RUNTIME_FRAMES;
	if (w->runtime.frame == LUA_UNKNOWN)
		lua_forget(w);
	if (!proto) {
		if (l->thread_pc && w->runtime.last_code)
			lua_end_run(w);
		return;
	}
	if (!read_user(s->block, LUA_PROTO_BYTES - 8, proto)) {
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		w->runtime.frame = 0;
		w->runtime.stage = RUNTIME_NATIVE;
		return;
	}
	__u64 number = code_number_begin(w, proto);
	number = hash_mix(number, block_word(s->block, LUA_PROTO_WORDS, l->proto_code));
	number = hash_mix(number, block_word(s->block, LUA_PROTO_WORDS, l->proto_source));
	number = hash_mix(number, block_half(s->block, LUA_PROTO_WORDS, l->proto_first_line));
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		lua_tell(w, r, s, number);
	__u64 next = lua_next(w, l, s, frame);
	int begins = lua_begins(w, l, s, next);
	int is_last = !begins && lua_is_last(w, l, s);
	runtime_record_frame(w, number, lua_line(l, s, next));
	w->runtime.last_code = !begins;
	if (is_last)
		lua_end_run(w);
}

/* To be called at the end: if only frames of functions in C remain, no frame is missing. */
static __always_inline void lua_finish(
	struct walk *w, const struct lua_layout *l, struct runtime_scratch *s)
{
	for (int i = 0; i < LUA_SKIPPED_MAX && w->runtime.frame > LUA_UNKNOWN; i++) {
		if (!lua_read_frame(w, l, s) || lua_function(w, l, s))
			return;
		w->runtime.frame = lua_previous(w, l, s);
	}
	if (w->runtime.frame == LUA_UNKNOWN)
		w->runtime.frame = 0;
}

static __always_inline void lua_begin(struct walk *w)
{
	w->runtime.looks = lua_from(w);
	w->runtime.look = LUA_REGISTERS;
	lua_forget(w);
}

/* Global: verified by itself. The stage that is next is native, unless this sets another. */
__noinline int lua_step(__u32 stage)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	struct bpf_counters *c = counters_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !c || !r)
		return 0;
	if (stage == RUNTIME_ENTER) {
		c->runtime_samples++;
		lua_begin(w);
	} else if (stage == RUNTIME_NATIVE) {
		lua_finish(w, &r->layout.lua, s);
	} else if (w->runtime.frame == LUA_UNKNOWN) {
		if (w->runtime.look == LUA_DRAIN)
			w->runtime.look = LUA_STACK;
		if (w->runtime.owner && !lua_is_left(w, &r->layout.lua)) {
			w->runtime.looks = w->sp;
			return 0;
		}
		if (w->runtime.looks + LUA_SEARCH_BYTES < w->sp)
			w->runtime.looks = (w->sp - LUA_SEARCH_BYTES) & ~7ULL;
		lua_search(w, r, s);
	} else if (w->runtime.frame) {
		lua_frame(w, r, s);
	}
	return 0;
}
