/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * runtimes: how the walk of native frames (walk.h) and the walks of the language runtimes take
 * turns.
 *
 * At the first frame in a runtime's file, the runtime's state of this thread is looked for. From
 * then on a native frame that was stepped over is asked whether it runs the runtime's next frames:
 * if so, these are recorded in its place, and after them the walk goes on with its native caller.
 *
 * Go has only native frames; at the end of its stack the labels of the goroutine are sent.
 *
 * A new runtime needs a case in each of two switches here, and nothing in walk.h:
 *   owned   does a native frame execute the next frames?
 *   step    RUNTIME_ENTER: from w->runtime.root to this thread's innermost frame; RUNTIME_LOOK: a
 * step of a search; RUNTIME_FRAMES: one frame. It sets the stage that is next: native otherwise.
 */
#pragma once

#include "beam.h"
#include "go.h"
#include "hotspot.h"
#include "lua.h"
#include "luajit.h"
#include "perl.h"
#include "php.h"
#include "python.h"
#include "ruby.h"
#include "runtime.h"
#include "thread_context.h"
#include "v8.h"

/* The frame at `address` lies in a runtime's file, whose mapping was found last. 1: the runtime is
 * asked before the frame can be recorded; not from here, where the stacks of the functions that
 * call one another would add up to more than the 512 bytes that the kernel allows. Global, as
 * runtime_leave() is: native frames of other files are walked with fewer registers spilled. */
__noinline int runtime_begin(__u64 address)
{
	struct walk *w = walk_here();
	if (!w)
		return 0;
	const struct mapping *m = &w->mappings[w->mapping_last & (MAPPING_CACHE_SIZE - 1)];
	__u64 offset = address - m->start + m->offset;
	__u32 index = m->runtime - 1;
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!config.walk_runtimes || !r || r->kind == RUNTIME_HOTSPOT || r->kind == RUNTIME_BEAM ||
		offset - r->text_from >= r->text_bytes)
		return 0;
	if (r->kind == RUNTIME_V8) {
		if (offset - r->layout.v8.builtins[0] >=
			r->layout.v8.builtins[1] - r->layout.v8.builtins[0])
			return 0;
		if (!w->code.record && !w->code.is_asked && settings.has_code_runtimes) {
			w->code.is_asked = 1; /* the code's place in the process is used, since
						 builtins may be copied */
			w->runtime.stage = RUNTIME_FIND;
			return 1;
		}
		if (!w->code.record) {
			code_find_again(w);
			code_walk_use(w, m->runtime, 0, ~0ULL);
		}
		w->code.native =
			(__u64)m->file_id << FRAME_FILE_SHIFT | (offset & FRAME_OFFSET_MASK);
		w->runtime.stage = RUNTIME_CODE;
		return 1;
	}
	if (r->kind == RUNTIME_LUAJIT) {
		if (settings.luajit != m->runtime)
			settings.luajit = m->runtime;
		if (w->runtime.record && w->runtime.record != m->runtime)
			return 0;
		if (offset - r->layout.luajit.vm[0] >=
				r->layout.luajit.vm[1] - r->layout.luajit.vm[0] ||
			w->runtime.last_number == w->sp)
			return 0;
		w->runtime.record = m->runtime;
		w->runtime.stage = RUNTIME_FRAMES;
		w->code.is_trace = 0;
		return 1;
	}
	if (r->kind == RUNTIME_GO)
		w->go_record = m->runtime;
	if (r->kind == RUNTIME_GO || w->runtime.record)
		return 0;
	w->runtime.record = m->runtime;
	w->runtime.root = m->start - m->offset + r->delta;
	w->runtime.stage = RUNTIME_ENTER;
	return 1;
}

/* For memory without a file: is the code at `address` of a runtime that can be walked? */
static __always_inline int runtime_has_code(struct walk *w, const struct mapping *m, __u64 address)
{
	if (!config.walk_runtimes || !settings.has_code_runtimes)
		return 0;
	if (beam_is_met(w))
		return beam_begin(w, m, address);
	if (w->code.is_anywhere && m->kind != MAPPING_ANONYMOUS)
		return 0;
	w->code.native = 0;
	if (address - w->code.from < w->code.bytes) {
		w->runtime.stage = RUNTIME_CODE;
		return 1;
	}
	if (w->code.is_asked)
		return 0;
	w->code.is_asked = 1;
	w->runtime.stage = RUNTIME_FIND;
	return 1;
}

/* opcache generates code in memory that processes share, which is a file to the kernel. */
static __always_inline int runtime_is_php_code(const struct mapping *m)
{
	return config.walk_runtimes && settings.has_php && m->kind == MAPPING_FILE &&
	       m->page_base != FILE_NO_ROOM;
}

/* For memory without a file: may it be code of Ruby? Then the next step examines it, and the walk
 * comes back to this frame or is at its caller. If it is not the innermost frame, it must have
 * called a function in Ruby's file. If the process has another runtime with code in such memory, it
 * cannot be Ruby's. */
static __always_inline int runtime_leaves_code(struct walk *w, const struct mapping *m)
{
	if (!config.walk_runtimes || !settings.has_ruby || m->kind != MAPPING_ANONYMOUS ||
		w->code.is_no_ruby || (w->user_count && !w->runtime.record))
		return 0;
	if (settings.has_code_runtimes && !w->code.is_asked) {
		w->code.is_asked = 1;
		w->runtime.stage = RUNTIME_FIND;
		return 1;
	}
	if (w->code.record)
		return 0;
	w->runtime.stage = RUNTIME_LEAVE;
	return 1;
}

/* For memory without a file: may it be a trace of LuaJIT? Then the next step looks for its
 * frame. */
static __always_inline int runtime_is_trace(struct walk *w, const struct mapping *m)
{
	if (!config.walk_runtimes || !settings.luajit || m->kind != MAPPING_ANONYMOUS ||
		w->code.is_no_trace || w->code.record || w->runtime.last_number == w->sp ||
		(w->runtime.record && w->runtime.record != settings.luajit))
		return 0;
	w->runtime.record = settings.luajit;
	w->runtime.stage = RUNTIME_FRAMES;
	w->code.is_trace = 1;
	return 1;
}

/* The native frame at `offset` of the runtime's file, from w->native.sp on, was stepped over: does
 * it execute frames of the runtime? */
static __always_inline int runtime_owned(
	const struct walk *w, const struct runtime_record *r, __u64 offset)
{
	switch (r->kind) {
	case RUNTIME_CPYTHON:
		return python_owned(w, &r->layout.cpython, offset, w->native.sp, w->sp);
	case RUNTIME_PERL:
		return perl_owned(w, &r->layout.perl, offset);
	case RUNTIME_PHP:
		return php_owned(w, &r->layout.php, offset);
	case RUNTIME_RUBY:
		return is_in_loop(r->layout.ruby.loop, offset);
	case RUNTIME_LUA:
		return is_in_loop(r->layout.lua.loop, offset);
	default:
		return 0;
	}
}

/* The native frame recorded last gives way to those that it runs. Those between it and code of
 * Ruby's that it has called go, too. */
static __always_inline void runtime_replace(struct walk *w)
{
	if (!config.keep_interpreters) {
		w->user_count = w->code.left ? w->code.left - 1 : w->user_count - 1;
		w->hash = w->code.left ? w->code.left_hash : w->native.hash;
	}
	w->code.left = 0;
	w->runtime.stage = RUNTIME_FRAMES;
}

/* Is this native frame one of the interpreter's own that another frame of the interpreter has
 * called? */
static __always_inline int runtime_hides(const struct runtime_record *r, __u64 offset)
{
	return !config.keep_interpreters && r->kind == RUNTIME_RUBY &&
	       offset - r->layout.ruby.core[0] < r->layout.ruby.core[1] - r->layout.ruby.core[0];
}

/* The native frame w->native, at `offset` of the file of the runtime that still has frames, was
 * recorded and stepped over. 1: it is recorded no longer, or the runtime's frames are next. */
__noinline int runtime_leave(__u64 offset)
{
	struct walk *w = walk_here();
	const struct runtime_record *r = w ? runtime_record_of(w) : NULL;
	if (!w || !r || !config.walk_runtimes)
		return 0;
	if (runtime_owned(w, r, offset)) {
		runtime_replace(w);
		return 1;
	}
	if (runtime_hides(r, offset)) {
		w->user_count--;
		w->hash = w->native.hash;
		return 1;
	}
	return 0;
}

/* A step in the code of a runtime, or towards it. It is not part of runtime_step(), whose stack
 * would exceed the kernel's limit together with the stacks of the functions that send a name. */
static __always_inline int runtime_code_step(struct walk *w)
{
	if (!config.walk_runtimes)
		return STACK_END_NO_REGS;
	if (w->user_count >= SAMPLE_USER_FRAMES_MAX)
		return STACK_END_DEPTH;
	if (w->runtime.stage == RUNTIME_LEAVE) {
		w->runtime.stage = RUNTIME_NATIVE;
		w->code.is_no_ruby = !ruby_leave_code(0);
		return STACK_END_NONE;
	}
	const struct runtime_record *r = hotspot_record(w);
	if (w->runtime.stage == RUNTIME_CODE && r && r->kind == RUNTIME_BEAM)
		return beam_step(0);
	if (w->runtime.stage == RUNTIME_FIND || !r || r->kind != RUNTIME_V8)
		return hotspot_step(0);
	w->runtime.stage = RUNTIME_NATIVE;
	return v8_frame(0);
}

/* A step of the other stages. The function is global, so that the verifier checks it once. */
__noinline int runtime_step(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct runtime_scratch *s = runtime_scratch_here();
	if (!w || !s || !config.walk_runtimes)
		return STACK_END_NO_REGS;
	if (w->user_count >= SAMPLE_USER_FRAMES_MAX)
		return STACK_END_DEPTH;
	const struct runtime_record *r = runtime_record_of(w);
	if (!r)
		return STACK_END_NO_REGS;
	__u32 stage = w->runtime.stage;
	w->runtime.stage = RUNTIME_NATIVE;
	switch (r->kind) {
	case RUNTIME_CPYTHON:
		python_step(w, r, s, stage);
		break;
	case RUNTIME_PERL:
		(void)perl_step(stage);
		break;
	case RUNTIME_PHP:
		(void)php_step(stage);
		break;
	case RUNTIME_RUBY:
		(void)ruby_step(stage);
		break;
	case RUNTIME_LUA:
		(void)lua_step(stage);
		break;
	case RUNTIME_LUAJIT:
		(void)luajit_step(stage);
		break;
	default:
		break;
	}
	return STACK_END_NONE;
}

/* To be called when the stack has ended. A whole stack has shown all frames of its runtime. If the
 * stack ended in an unknown file, user space continues it, but only by native frames. */
static __always_inline void runtime_finish(struct walk *w, enum stack_end end)
{
	struct bpf_counters *c = counters_here();
	if (!c)
		return;
	c->runtime_frames += w->runtime.count;
	if (w->go_record)
		(void)go_labels(0);
	if (config.walk_runtimes && settings.has_contexts && !w->event.labels)
		(void)thread_context(0);
	if (!w->runtime.record)
		return;
	const struct runtime_record *r = runtime_record_of(w);
	if (r && r->kind == RUNTIME_PERL && !perl_misses_owner(w))
		return;
	if (r && r->kind == RUNTIME_RUBY && w->runtime.frame)
		(void)ruby_step(RUNTIME_NATIVE);
	if (r && r->kind == RUNTIME_LUA && w->runtime.frame)
		(void)lua_step(RUNTIME_NATIVE);
	int is_last = stack_end_is_whole(end) || end == STACK_END_NO_FILE;
	if (w->runtime.frame && is_last && r && w->user_count < SAMPLE_USER_FRAMES_MAX)
		runtime_record_gap(w, r, RUNTIME_GAP_OWNER);
}
