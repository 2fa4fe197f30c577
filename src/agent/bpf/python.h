/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python: the frames of CPython, 3.7 to 3.15, found from the mapping of its code alone.
 *
 * _PyRuntime is at a fixed distance from the code; it leads to the interpreters, and these to their
 * threads. This thread's state is the one whose thread_id is the thread pointer: the state of the
 * global lock's holder is tried first, then the list. A thread leads to its innermost frame, and
 * each frame to the one before.
 *
 * Native and Python frames are matched by the stack: the interpreter's loop has a _PyCFrame, or the
 * frame that begins a run, on its own stack, between sp and the CFA of its native frame, however
 * the compiler has compiled the loop. The run of Python frames that it executes replaces that
 * native frame. Up to 3.10 nothing lies there; then, and if the end of a run was not found, the
 * code of the native frame shows whether it is the loop.
 */
#pragma once

#include "runtime.h"

/* How many threads of a process are searched. */
#define PYTHON_THREADS_MAX 256
#define PYTHON_THREAD_WORDS (CPYTHON_THREAD_BYTES / 8)
#define PYTHON_FRAME_WORDS (CPYTHON_FRAME_OBJECT_BYTES / 8)
/* Offset of the bytes in a bytes object, behind its head and its length. */
#define PYTHON_BYTES_DATA 16
/* The state of a text, without `interned`: bytes a character in three bits, then these bits. */
#define PYTHON_TEXT_STATE_SHIFT 2
#define PYTHON_TEXT_UNIT 7
#define PYTHON_TEXT_COMPACT 8
#define PYTHON_TEXT_ASCII 16
#define PYTHON_CODE_TAG 7 /* bits of f_executable that are no address (3.14) */
/* In place of an owner's address (which is aligned): the owner is the next native frame of the
 * loop's code. */
#define PYTHON_OWNER_IS_LOOP 1

/* ---- the thread ---- */

/* Looks at one thread of the list. 1: it is the interrupted thread; below 0: the list has ended, or
 * (if s->thread is not 0) cannot be read. */
__noinline int python_thread_step(__u32 index)
{
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!s || !r || !config.walk_runtimes)
		return -1;
	const struct cpython_layout *l = &r->layout.cpython;
	if (!s->thread) {
		s->threads_of = runtime_word(s->threads_of + l->interp_next);
		if (!s->threads_of)
			return -1;
		s->thread = runtime_word(s->threads_of + l->interp_threads);
		return 0;
	}
	if (!read_user(s->block, CPYTHON_THREAD_BYTES, s->thread))
		return -1;
	if (block_word(s->block, PYTHON_THREAD_WORDS, l->thread_id) == s->thread_pointer)
		return 1;
	s->thread = block_word(s->block, PYTHON_THREAD_WORDS, l->thread_next);
	return 0;
}

/* The thread that holds the lock of the first interpreter, or held it last. */
static __always_inline __u64 python_lock_holder(
	const struct cpython_layout *l, __u64 root, __u64 interp)
{
	if (l->runtime_current)
		return runtime_word(root + l->runtime_current);
	__u64 gil = l->interp_gil ? runtime_word(interp + l->interp_gil) : 0;
	return gil ? runtime_word(gil + l->gil_holder) : 0;
}

/* The state of the thread that was interrupted. 0: Python does not know it (yet, or any more). */
static __always_inline __u64 python_thread(struct walk *w, const struct runtime_record *r,
	struct runtime_scratch *s, struct bpf_counters *c)
{
	const struct cpython_layout *l = &r->layout.cpython;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 pointer = BPF_CORE_READ(task, thread.fsbase);
	__u64 interp = runtime_word(w->runtime.root + l->runtime_head);
	__u64 thread = interp ? python_lock_holder(l, w->runtime.root, interp) : 0;
	if (thread && runtime_word(thread + l->thread_id) == pointer)
		return thread;
	s->thread = interp ? runtime_word(interp + l->interp_threads) : 0;
	s->threads_of = interp;
	s->thread_pointer = pointer;
	int found = interp ? 0 : -1;
	for (int i = 0; i < PYTHON_THREADS_MAX && !found; i++)
		found = python_thread_step(w->runtime.record - 1);
	if (found > 0)
		return s->thread;
	c->runtime_threads++;
	if (!found)
		runtime_record_gap(w, r, RUNTIME_GAP_THREADS);
	else if (s->thread)
		runtime_record_gap(w, r, RUNTIME_GAP_THREAD);
	return 0;
}

/* ---- runs ---- */

/* 3.11, 3.12: the frames that the _PyCFrame at `cframe` leads to. */
static __always_inline void python_use_cframe(
	struct walk *w, const struct runtime_record *r, __u64 cframe)
{
	w->runtime.owner = cframe;
	w->runtime.frame = 0;
	if (cframe && !read_user(&w->runtime.frame, sizeof(w->runtime.frame),
			      cframe + r->layout.cpython.cframe_frame))
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
}

/* 3.13 on: begins the search for the end of the run that begins with `frame`. */
static __always_inline void python_look_from(struct walk *w, __u64 frame)
{
	w->runtime.frame = frame;
	w->runtime.look = frame;
	w->runtime.looks = 0;
	w->runtime.owner = 0;
	w->runtime.stage = frame ? RUNTIME_LOOK : RUNTIME_NATIVE;
}

static __always_inline void python_begin(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct cpython_layout *l = &r->layout.cpython;
	struct bpf_counters *c = counters_here();
	if (!c)
		return;
	c->runtime_samples++;
	__u64 thread = python_thread(w, r, s, c);
	__u64 frame = thread ? runtime_word(thread + l->thread_frame) : 0;
	if (l->frames == CPYTHON_ENTRIES || l->frames == CPYTHON_CFRAMES)
		python_use_cframe(w, r, frame);
	else if (l->frames == CPYTHON_OWNED)
		python_look_from(w, frame);
	else
		w->runtime.frame = frame;
}

/* Does the native frame from sp to cfa, at `offset` of the runtime's file, execute the next run? */
static __always_inline int python_owned(
	const struct walk *w, const struct cpython_layout *l, __u64 offset, __u64 sp, __u64 cfa)
{
	if (l->frames != CPYTHON_OBJECTS && w->runtime.owner != PYTHON_OWNER_IS_LOOP)
		return w->runtime.owner >= sp && w->runtime.owner < cfa;
	return is_in_loop(l->loop, offset);
}

/* Goes one frame towards the end of the run. If the run has too many frames for the stack, or a
 * frame cannot be read, the frames before it are kept, and a marker after them says why. */
static __always_inline void python_look(
	struct walk *w, const struct cpython_layout *l, struct runtime_scratch *s)
{
	__u64 frame = w->runtime.look;
	if (w->user_count + w->runtime.looks++ >= SAMPLE_USER_FRAMES_MAX || !frame ||
		!read_user(s->block, CPYTHON_FRAME_BYTES, frame)) {
		w->runtime.owner = PYTHON_OWNER_IS_LOOP;
		return;
	}
	__u64 previous = block_word(s->block, PYTHON_FRAME_WORDS, l->frame_previous);
	if (block_byte(s->block, PYTHON_FRAME_WORDS, l->frame_owner) >= l->owner_loop) {
		w->runtime.owner = frame;
		/* From 3.15 on the outermost frame is in the thread's state, and belongs to no
		 * loop. */
		if (!previous && frame == w->runtime.frame)
			w->runtime.frame = 0;
		return;
	}
	w->runtime.look = previous;
	w->runtime.stage = RUNTIME_LOOK;
}

/* ---- functions ---- */

struct python_text {
	__u64 length;
	__u64 hash;
	__u32 state;
};

/* Copies the characters of the text at `at` to data[where]; their bytes, at most `max` (a constant,
 * below 1,024). 0: there are none. */
static __always_inline __u32 python_copy_text(struct event_code *e, const struct cpython_layout *l,
	__u64 at, __u32 where, __u32 max, __u8 *unit)
{
	struct python_text text = { 0 };
	*unit = 1;
	if (!read_user(&text, sizeof(text), at + l->object_head))
		return 0;
	__u32 state = text.state >> PYTHON_TEXT_STATE_SHIFT;
	if (l->text_shift)
		state = text.state >> (l->text_shift & 31);
	if (!(state & PYTHON_TEXT_COMPACT) || text.length == 0)
		return 0;
	*unit = state & PYTHON_TEXT_UNIT;
	__u64 bytes = text.length > max ? max : text.length;
	bytes *= *unit;
	if (bytes > max)
		bytes = max;
	if (bytes == 0 || bytes > max || where > CODE_NAME_BYTES_MAX)
		return 0;
	__u64 from = at + (state & PYTHON_TEXT_ASCII ? l->text_ascii : l->text_compact);
	return read_user(&e->data[bounded(where, 1024)], bounded(bytes, 1024), from) ? bytes : 0;
}

/* Sends the function whose code object was read to s->code. */
static __always_inline void python_tell(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u64 number)
{
	const struct cpython_layout *l = &r->layout.cpython;
	struct event_code *e = code_begin();
	if (!e)
		return;
	__u64 name = block_word(s->code, RUNTIME_CODE_WORDS, l->code_name);
	__u64 file = block_word(s->code, RUNTIME_CODE_WORDS, l->code_file);
	__u64 lines = block_word(s->code, RUNTIME_CODE_WORDS, l->code_lines);
	e->first_line = block_half(s->code, RUNTIME_CODE_WORDS, l->code_first_line);
	__u32 at = python_copy_text(e, l, name, 0, CODE_NAME_BYTES_MAX, &e->name_unit);
	e->name_bytes = at;
	__u32 bytes = python_copy_text(e, l, file, at, CODE_FILE_BYTES_MAX, &e->file_unit);
	e->file_bytes = bytes;
	at += bytes;
	__u64 length = runtime_word(lines + l->object_head);
	bytes = length > CODE_LINES_BYTES_MAX ? CODE_LINES_BYTES_MAX : length;
	if (bytes == 0 || bytes > CODE_LINES_BYTES_MAX ||
		at > CODE_NAME_BYTES_MAX + CODE_FILE_BYTES_MAX ||
		!read_user(&e->data[bounded(at, 1024)], bounded(bytes, 8192),
			lines + l->object_head + PYTHON_BYTES_DATA))
		bytes = 0;
	e->lines_bytes = bytes;
	code_end(w, r, e, number, at + bytes);
}

/* The number of the function at `code`, which is sent if it is new; 0: it cannot be read. */
static __always_inline __u64 python_code(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u64 code)
{
	const struct cpython_layout *l = &r->layout.cpython;
	if (code == w->runtime.last_code)
		return w->runtime.last_number;
	w->runtime.last_code = 0;
	w->runtime.last_number = 0; /* the number of code 0, which is no code */
	if (l->object_head == CPYTHON_HEAD_BYTES
			? !read_user(s->code, CPYTHON_CODE_BYTES, code)
			: !read_user(s->code, CPYTHON_CODE_FREE_BYTES, code))
		return 0;
	/* The code object has the number of its instructions (from 3.11 on) or of its arguments
	 * behind its head. The memory of a freed module may be reused for another module's code, so
	 * the number is made from everything that is sent about a function. */
	__u64 number = code_number_begin(w, code);
	number = hash_mix(number, block_word(s->code, RUNTIME_CODE_WORDS, l->object_head));
	number = hash_mix(number, block_word(s->code, RUNTIME_CODE_WORDS, l->code_file));
	number = hash_mix(number, block_word(s->code, RUNTIME_CODE_WORDS, l->code_name));
	number = hash_mix(number, block_word(s->code, RUNTIME_CODE_WORDS, l->code_lines));
	number = hash_mix(number, block_half(s->code, RUNTIME_CODE_WORDS, l->code_first_line));
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		python_tell(w, r, s, number);
	w->runtime.last_code = code;
	w->runtime.last_number = number;
	return number;
}

/* ---- frames ---- */

/* The position in its code of the frame in s->block. */
static __always_inline __u64 python_position(
	const struct cpython_layout *l, const struct runtime_scratch *s, __u64 code)
{
	if (l->frames == CPYTHON_OBJECTS)
		return (__u64)block_half(s->block, PYTHON_FRAME_WORDS, l->frame_instr) *
		       l->instr_unit / 2;
	__u64 at = block_word(s->block, PYTHON_FRAME_WORDS, l->frame_instr);
	__u64 begin = code + l->code_instr;
	if (l->code_copies) {
		__u32 copy = block_half(s->block, PYTHON_FRAME_WORDS, l->frame_copy);
		__u64 copies = runtime_word(code + l->code_copies);
		begin = runtime_word(copies + 8 + (__u64)copy * sizeof(__u64));
	}
	return (at - begin) >> 1;
}

/* Ends the run if the frame in s->block is its last. 1: the frame is the loop's own, and is not
 * shown. */
static __always_inline int python_end_run(
	struct walk *w, const struct runtime_record *r, __u64 previous, __u32 owner)
{
	const struct cpython_layout *l = &r->layout.cpython;
	if (l->frames == CPYTHON_OBJECTS)
		return 0;
	if (owner < l->owner_loop) {
		w->runtime.stage = RUNTIME_FRAMES;
		return 0;
	}
	if (l->frames == CPYTHON_OWNED)
		python_look_from(w, previous);
	else
		python_use_cframe(w, r, runtime_word(w->runtime.owner + l->cframe_previous));
	return l->frames != CPYTHON_ENTRIES;
}

static __always_inline int python_read_frame(
	const struct cpython_layout *l, struct runtime_scratch *s, __u64 frame)
{
	return l->frames == CPYTHON_OBJECTS ? read_user(s->block, CPYTHON_FRAME_OBJECT_BYTES, frame)
					    : read_user(s->block, CPYTHON_FRAME_BYTES, frame);
}

/* The next frame of the run. */
static __always_inline void python_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct cpython_layout *l = &r->layout.cpython;
	__u64 frame = w->runtime.frame;
	if (!frame || !python_read_frame(l, s, frame)) {
		if (frame)
			runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		w->runtime.frame = 0;
		return;
	}
	__u64 previous = block_word(s->block, PYTHON_FRAME_WORDS, l->frame_previous);
	__u32 owner = block_byte(s->block, PYTHON_FRAME_WORDS, l->frame_owner);
	w->runtime.frame = previous;
	if (python_end_run(w, r, previous, owner))
		return;
	__u64 code =
		block_word(s->block, PYTHON_FRAME_WORDS, l->frame_code) & ~(__u64)PYTHON_CODE_TAG;
	__u64 number = python_code(w, r, s, code);
	if (number)
		runtime_record_frame(w, number, python_position(l, s, code));
	else
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
}

/* The stage that is next is native, unless this sets another. */
static __always_inline void python_step(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u32 stage)
{
	if (stage == RUNTIME_ENTER)
		python_begin(w, r, s);
	else if (stage == RUNTIME_LOOK)
		python_look(w, &r->layout.cpython, s);
	else
		python_frame(w, r, s);
}
