/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * v8: the frames of JavaScript in V8 (Node.js), from 8.4 on.
 *
 * All of V8's code keeps the frame pointer: its builtins, which lie in the program's file, and the
 * code that its compilers generate, which lies in memory without a file. The word below the saved
 * frame pointer shows the kind of a frame: in V8's own frames a small number, the type; else the
 * context of a JavaScript function, and the function is in the next word. So JavaScript needs no
 * state of the process. The interpreter's own frames have that function too, and the function's
 * frame replaces them.
 *
 * The garbage collector may be moving objects while the sampled thread waits in it: then the first
 * word of an object is its new address in place of its map. An object is used for a name only if it
 * has the map of its type. A function is identified by the number of its script and its own number
 * in the script, which do not change when it is moved.
 *
 * Source: V8, src/execution/frame-constants.h, frames.h, src/objects/{js-function,
 * shared-function-info,scope-info,script,string}.h, map-word.h.
 */
#pragma once

#include "hotspot.h"
#include "v8_names.h"

/* A frame's words are read from fp - 64 on. */
#define V8_FRAME_BELOW 64
#define V8_FRAME_BYTES 80
#define V8_FRAME_BYTES_MAX (8 << 20)
/* Words below the frame pointer. */
#define V8_FRAME_CONTEXT (-8)
#define V8_FRAME_FUNCTION (-16)
/* Where the function of a frame is that was taken down: its distance from sp, where the return
 * address is. */
#define V8_GONE_FUNCTION (-8 + V8_FRAME_FUNCTION)
/* Registers of the interpreter, in w->regs. */
#define V8_REG_OFFSET 1    /* r9 */
#define V8_REG_BYTECODES 4 /* r12 */
/* The register that has a function when it begins. */
#define V8_REG_FUNCTION 8 /* rdi */

enum v8_frame_part {
	V8_FRAME_WHOLE,
	V8_FRAME_NONE,
	V8_FRAME_PUSHED, /* only the caller's rbp */
	V8_FRAME_EMPTY,  /* rbp is set; the rest is still in registers */
	V8_FRAME_GONE,   /* its former content lies below sp */
};

static __always_inline __u64 v8_frame_word(const struct v8_scratch *v, __s32 from_fp)
{
	return v8_word(v->frame, V8_FRAME_BELOW + from_fp);
}

/* Is the current frame one of the interpreter's own? */
static __always_inline int v8_is_interpreter(const struct walk *w, const struct v8_layout *l)
{
	__u64 offset = w->code.native & FRAME_OFFSET_MASK;
	return w->code.native && ((offset >= l->entry[0] && offset < l->entry[1]) ||
					 (offset >= l->handlers[0] && offset < l->handlers[1]));
}

static __always_inline void v8_record_native(struct walk *w)
{
	__u64 address = w->pc_is_exact ? w->pc : w->pc - 1;
	runtime_record_native(w, w->code.native ? w->code.native : address & FRAME_OFFSET_MASK);
}

/* The BytecodeArray of an interpreted function; 0: the frame does not have it yet. */
static __always_inline __u64 v8_bytecodes(const struct v8_layout *l, struct v8_scratch *v)
{
	__u64 head[1], bytecodes = v8_frame_word(v, l->frame_bytecodes);
	if (!v8_read(head, sizeof(head), bytecodes) ||
		!v8_is(v, V8_MAP_BYTECODES, head[0], l->type_bytecodes, l->type_bytecodes))
		return 0;
	return bytecodes;
}

/* The position in an interpreted function: the offset of the current bytecode. */
static __always_inline __u64 v8_position(
	const struct walk *w, const struct v8_layout *l, const struct v8_scratch *v)
{
	__u64 offset = (__s64)v8_frame_word(v, l->frame_bytecodes - 8) >> V8_SMI_SHIFT;
	if (w->pc_is_exact && w->regs[V8_REG_BYTECODES] == v->bytecodes)
		offset = (__u32)w->regs[V8_REG_OFFSET];
	__u64 position = offset - (l->bytecodes_data - V8_TAG);
	return position < FRAME_POSITION_NONE ? position : FRAME_POSITION_NONE;
}

/* Records a frame of compiled code of the function in v->function, whose number is `number`. */
static __always_inline void v8_record_code(
	struct walk *w, const struct runtime_record *r, struct v8_scratch *v, __u64 number)
{
	const struct v8_layout *l = &r->layout.v8;
	__u64 address = w->pc_is_exact ? w->pc : w->pc - 1;
	enum v8_code_kind kind = v8_find_code(w, l, v, address);
	if (kind == V8_CODE_UNKNOWN)
		runtime_record_gap(w, r, RUNTIME_GAP_INLINED);
	if (kind == V8_CODE_OPTIMIZED && v->code_position < FRAME_POSITION_NONE)
		runtime_record_frame(w, v8_code_number(w, l, v, number, address), v->code_position);
	else
		runtime_record_frame(w, number, FRAME_POSITION_NONE);
}

/* Records a frame of JavaScript: of the interpreter, of a compiled function, or of a builtin. */
static __always_inline void v8_record_function(
	struct walk *w, const struct runtime_record *r, struct v8_scratch *v, int is_interpreter)
{
	v->bytecodes = is_interpreter ? v8_bytecodes(&r->layout.v8, v) : 0;
	__u64 number = v8_function(&r->layout.v8, v, v8_frame_word(v, V8_FRAME_FUNCTION));
	if (!number) {
		v8_record_native(w);
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return;
	}
	/* A builtin in whose frame a script's function stands is recorded in front of that
	 * function. If the function is the builtin itself, it is recorded only once. */
	if (w->code.native && (config.keep_interpreters || (!is_interpreter && v->has_script)))
		v8_record_native(w);
	__u64 position = FRAME_POSITION_NONE;
	if (v->bytecodes && v->has_script)
		position = v8_position(w, &r->layout.v8, v);
	if (w->code.native || !v->has_script)
		runtime_record_frame(w, number, position);
	else
		v8_record_code(w, r, v, number);
}

/* How much of the frame exists at the interrupted instruction. `b`: the byte before it, then the
 * bytes from there on. */
static __always_inline enum v8_frame_part v8_frame_part(const __u8 *b)
{
	if (b[1] == 0x55 && b[2] == 0x48 && b[3] == 0x89 && b[4] == 0xe5)
		return V8_FRAME_NONE; /* at push %rbp; mov %rsp, %rbp */
	if (b[0] == 0x55 && b[1] == 0x48 && b[2] == 0x89 && b[3] == 0xe5)
		return V8_FRAME_PUSHED;
	if ((b[0] == 0xe5 && b[1] == 0x56) || (b[0] == 0x56 && b[1] == 0x57))
		return V8_FRAME_EMPTY; /* at push %rsi; push %rdi */
	if (b[1] == 0xc3 || b[1] == 0xc2)
		return V8_FRAME_GONE; /* at ret */
	return V8_FRAME_WHOLE;
}

/* Finds the function that the code at pc belongs to: the function of the frame at the frame
 * pointer, a function that is about to make its frame, or a function that has left its frame. */
static __always_inline enum v8_frame_part v8_frame_of_code(const struct walk *w)
{
	__u64 pc = w->pc;
	if (v8_runs(runtime_word(w->fp + (__s64)V8_FRAME_FUNCTION), pc))
		return V8_FRAME_WHOLE;
	if (v8_runs(w->regs[V8_REG_FUNCTION], pc))
		return V8_FRAME_NONE;
	if (v8_runs(runtime_word(w->sp + (__s64)V8_GONE_FUNCTION), pc))
		return V8_FRAME_GONE;
	return V8_FRAME_WHOLE;
}

/* Records the innermost function, which has no frame yet, or has one no longer. */
static __always_inline enum stack_end v8_frameless(struct walk *w, const struct runtime_record *r,
	struct v8_scratch *v, enum v8_frame_part part)
{
	__u64 pc = 0, fp = w->fp, function = w->regs[V8_REG_FUNCTION];
	__u64 ra_at = w->sp + (part == V8_FRAME_PUSHED ? 8 : 0);
	if (!read_stack(w, ra_at, &pc) || (part == V8_FRAME_PUSHED && !read_stack(w, w->sp, &fp)))
		return STACK_END_READ_ERROR;
	if (part == V8_FRAME_GONE)
		function = runtime_word(w->sp + (__s64)V8_GONE_FUNCTION);
	v->bytecodes = 0;
	__u64 number = v8_runs(function, w->pc) ? v8_function(&r->layout.v8, v, function) : 0;
	if (number)
		v8_record_code(w, r, v, number);
	w->pc_is_guess = 1;
	return hotspot_to(w, pc, ra_at + 8, fp);
}

/* Records the frame at (pc, sp, fp), and goes to its caller. Global: verified by itself. */
__noinline int v8_frame(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return STACK_END_NO_REGS;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return STACK_END_NO_REGS;
	__u64 fp = w->fp;
	__u8 b[8];
	enum v8_frame_part part = V8_FRAME_WHOLE;
	int is_interpreter = v8_is_interpreter(w, &r->layout.v8);
	v8_begin_sample(w, v);
	if (w->pc_is_exact && !w->code.native && read_user(b, sizeof(b), w->pc - 1))
		part = v8_frame_part(b);
	if (part == V8_FRAME_WHOLE && w->pc_is_exact && !w->code.native)
		part = v8_frame_of_code(w);
	if (part == V8_FRAME_NONE || part == V8_FRAME_PUSHED || part == V8_FRAME_GONE)
		return v8_frameless(w, r, v, part);
	if (fp < w->sp || fp - w->sp > V8_FRAME_BYTES_MAX || (fp & 7) ||
		!read_user(v->frame, V8_FRAME_BYTES, fp - V8_FRAME_BELOW)) {
		v8_record_native(w);
		return STACK_END_NO_TABLE;
	}
	if (part == V8_FRAME_EMPTY)
		v->frame[(V8_FRAME_BELOW + V8_FRAME_FUNCTION) / 8] = w->regs[V8_REG_FUNCTION];
	if (part == V8_FRAME_EMPTY || v8_frame_word(v, V8_FRAME_CONTEXT) & V8_TAG)
		v8_record_function(w, r, v, is_interpreter);
	else if (!is_interpreter || config.keep_interpreters)
		v8_record_native(w);
	w->pc_is_guess = 1;
	return hotspot_to(w, v8_frame_word(v, 8), fp + 16, v8_frame_word(v, 0));
}
