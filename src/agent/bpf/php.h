/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * php: the frames of PHP, 7.4 to 8.4.
 *
 * executor_globals is at a fixed distance from the code; in a build with threads it is in memory
 * that a thread-local variable points to. It has the innermost zend_execute_data; each one leads to
 * its caller's. A run is what one native frame of execute_ex executes: functions of PHP up to the
 * one with CALL_TOP. Functions of the engine and of extensions have a zend_execute_data, too: each
 * is shown next to its caller, and its native frames are kept, too.
 *
 * The line is that of the current instruction. execute_ex keeps the instruction's address in r15,
 * and stores it in the frame only before calls that may need it.
 */
#pragma once

#include "mapping.h"
#include "runtime.h"

/* struct _zend_execute_data */
#define PHP_FRAME_BYTES 56
#define PHP_FRAME_WORDS (PHP_FRAME_BYTES / 8)
#define PHP_FRAME_INSTR 0
#define PHP_FRAME_FUNCTION 24
#define PHP_FRAME_INFO 40
#define PHP_FRAME_PREVIOUS 48
#define PHP_CALL_CODE 0x10000
#define PHP_CALL_TOP 0x20000
#define PHP_CALL_GENERATOR 0x1000000
/* struct _zend_op */
#define PHP_INSTR_BYTES 32
#define PHP_INSTR_LINE 24
/* union _zend_function, as far as it is the same in all versions */
#define PHP_FUNCTION_WORDS (PHP_FUNCTION_BYTES / 8)
#define PHP_FUNCTION_NAME 8
#define PHP_FUNCTION_CLASS 16
#define PHP_FUNCTION_HEAD_BYTES 24
#define PHP_CLASS_NAME 8
/* its type */
#define PHP_INTERNAL 1
#define PHP_USER 2
#define PHP_EVAL 4
/* struct _zend_string */
#define PHP_TEXT_LENGTH 16
#define PHP_TEXT_DATA 24
/* arch/x86/include/uapi/asm/sigcontext.h */
#define PHP_INSTR_REGISTER 7 /* r15 */

static __always_inline __u32 php_copy_text(struct event_code *e, __u32 at, __u64 text, __u32 max)
{
	__u64 length = text ? runtime_word(text + PHP_TEXT_LENGTH) : 0;
	return code_copy(e, at, text + PHP_TEXT_DATA, length, max);
}

/* Sends the function in s->code. */
static __always_inline void php_tell(struct walk *w, const struct runtime_record *r,
	const struct runtime_scratch *s, __u32 info, __u64 number)
{
	const struct php_layout *l = &r->layout.php;
	struct event_code *e = code_begin();
	if (!e)
		return;
	__u32 type = block_byte(s->code, PHP_FUNCTION_WORDS, 0);
	__u64 name = block_word(s->code, PHP_FUNCTION_WORDS, PHP_FUNCTION_NAME);
	__u64 class = block_word(s->code, PHP_FUNCTION_WORDS, PHP_FUNCTION_CLASS);
	__u32 at = 0;
	if (class && name)
		at = php_copy_text(
			e, 0, runtime_word(class + PHP_CLASS_NAME), CODE_OWNER_BYTES_MAX);
	e->owner_bytes = at;
	e->name_bytes = at + php_copy_text(e, at, name, CODE_NAME_BYTES_MAX);
	if (name && (e->name_bytes == at || (class && !at))) {
		code_drop();
		return;
	}
	at = e->name_bytes;
	if (type == PHP_EVAL)
		e->form = RUNTIME_FORM_EVAL;
	else if (info & PHP_CALL_CODE)
		e->form = info & PHP_CALL_TOP ? RUNTIME_FORM_MAIN : RUNTIME_FORM_FILE;
	if (type != PHP_INTERNAL) {
		__u64 file = block_word(s->code, PHP_FUNCTION_WORDS, l->function_file);
		e->first_line = block_half(s->code, PHP_FUNCTION_WORDS, l->function_line);
		e->file_bytes = php_copy_text(e, at, file, CODE_FILE_BYTES_MAX);
		at += e->file_bytes;
	}
	code_end(w, r, e, number, at);
}

/* Reads the function at `function` to s->code; returns its number. 0: it cannot be read. A closure
 * is a copy of its function, so its address does not identify it. */
static __always_inline __u64 php_function(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s, __u64 function)
{
	const struct php_layout *l = &r->layout.php;
	/* An internal function is shorter, and the memory behind it may be missing. */
	int is_whole = read_user(s->code, PHP_FUNCTION_BYTES, function);
	if (!is_whole && !read_user(s->code, PHP_FUNCTION_HEAD_BYTES, function))
		return 0;
	__u32 type = block_byte(s->code, PHP_FUNCTION_WORDS, 0);
	if (!is_whole && type != PHP_INTERNAL)
		return 0;
	if (type != PHP_INTERNAL && type != PHP_USER && type != PHP_EVAL)
		return 0;
	__u64 name = block_word(s->code, PHP_FUNCTION_WORDS, PHP_FUNCTION_NAME);
	__u64 number = code_number_begin(w, name);
	number = hash_mix(number, block_word(s->code, PHP_FUNCTION_WORDS, PHP_FUNCTION_CLASS));
	if (type == PHP_INTERNAL)
		return number | FRAME_CODE_REAL;
	number = hash_mix(number, block_half(s->code, PHP_FUNCTION_WORDS, l->function_count));
	number = hash_mix(number, block_word(s->code, PHP_FUNCTION_WORDS, l->function_code));
	number = hash_mix(number, block_word(s->code, PHP_FUNCTION_WORDS, l->function_file));
	number = hash_mix(number, block_half(s->code, PHP_FUNCTION_WORDS, l->function_line));
	return number | FRAME_CODE_REAL;
}

static __always_inline int php_is_instr(
	const struct php_layout *l, const struct runtime_scratch *s, __u64 instr)
{
	__u64 first = block_word(s->code, PHP_FUNCTION_WORDS, l->function_code);
	__u64 count = block_half(s->code, PHP_FUNCTION_WORDS, l->function_count);
	return instr >= first && instr - first < count * PHP_INSTR_BYTES;
}

/* The current line of the frame in s->block, which is of the function in s->code. */
static __always_inline __u64 php_line(
	const struct walk *w, const struct php_layout *l, const struct runtime_scratch *s)
{
	__u64 instr = w->regs[PHP_INSTR_REGISTER];
	__u32 line = 0;
	if (w->runtime.count || !php_is_instr(l, s, instr))
		instr = block_word(s->block, PHP_FRAME_WORDS, PHP_FRAME_INSTR);
	if (!php_is_instr(l, s, instr) || !read_user(&line, sizeof(line), instr + PHP_INSTR_LINE) ||
		!line)
		return FRAME_POSITION_NONE;
	return line;
}

/* Records the next frame of the run. */
static __always_inline void php_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	__u64 frame = w->runtime.frame;
	w->runtime.frame = 0;
	if (!frame)
		return;
	if (!read_user(s->block, PHP_FRAME_BYTES, frame)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		return;
	}
	w->runtime.frame = block_word(s->block, PHP_FRAME_WORDS, PHP_FRAME_PREVIOUS);
	w->runtime.stage = RUNTIME_FRAMES;
	__u64 function = block_word(s->block, PHP_FRAME_WORDS, PHP_FRAME_FUNCTION);
	if (!function) /* an include or a generator adds such frames: no calls */
		return;
	__u32 info = block_half(s->block, PHP_FRAME_WORDS, PHP_FRAME_INFO);
	__u64 number = php_function(w, r, s, function);
	if (!number) {
		w->runtime.stage = info & PHP_CALL_TOP ? RUNTIME_NATIVE : RUNTIME_FRAMES;
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return;
	}
	if (code_is_due(w, number))
		php_tell(w, r, s, info, number);
	if (block_byte(s->code, PHP_FUNCTION_WORDS, 0) == PHP_INTERNAL) {
		runtime_record_frame(w, number, FRAME_POSITION_NONE);
		return;
	}
	if (info & PHP_CALL_TOP)
		w->runtime.stage = RUNTIME_NATIVE;
	runtime_record_frame(w, number, php_line(w, &r->layout.php, s));
}

/* Does the native frame at `offset` execute the next run? Before a generator resumes, and after it
 * has stopped, its frame is the innermost one, but the loop does not run it. */
static __always_inline int php_owned(const struct walk *w, const struct php_layout *l, __u64 offset)
{
	__u32 info = 0;
	if (is_in_loop(l->loop, offset))
		return 1;
	if (w->runtime.count || offset < l->resume[0] || offset >= l->resume[1])
		return 0;
	return read_user(&info, sizeof(info), w->runtime.frame + PHP_FRAME_INFO) &&
	       info & PHP_CALL_GENERATOR;
}

/* The address of executor_globals; 0: this thread has none. */
static __always_inline __u64 php_globals(const struct walk *w, const struct php_layout *l)
{
	if (l->root == PHP_ROOT_PROGRAM)
		return w->runtime.root;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 at = (__u64)(__s64)l->thread_at;
	if (l->root == PHP_ROOT_OFFSET)
		at = runtime_word(w->runtime.root + at);
	__u64 cache = runtime_word(BPF_CORE_READ(task, thread.fsbase) + at);
	__u64 offset = runtime_word(w->runtime.root);
	return cache && offset ? cache + offset : 0;
}

/* Global: verified by itself. The stage that is next is native, unless this sets another. */
__noinline int php_step(__u32 stage)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	struct bpf_counters *c = counters_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !c || !r)
		return 0;
	if (stage != RUNTIME_ENTER) {
		php_frame(w, r, s);
		return 0;
	}
	c->runtime_samples++;
	__u64 globals = php_globals(w, &r->layout.php);
	c->runtime_threads += !globals;
	if (globals)
		w->runtime.frame = runtime_word(globals + r->layout.php.globals_frame);
	return 0;
}

/* Code that opcache's JIT has generated executes functions in the loop's own native frame. So the
 * frame counts as one of the loop, somewhere in its middle. The program must be PHP, or a frame of
 * PHP must have come before. 0: it is no code of PHP. Global: verified by itself. */
__noinline int php_enter_loop(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	if (!w || !config.walk_runtimes)
		return 0;
	__u32 record = w->runtime.record;
	__u64 from = 0;
	if (!record) {
		const struct mm_struct *mm = (const struct mm_struct *)w->mm;
		const struct mapping *m = mapping_at(w, BPF_CORE_READ(mm, start_code));
		if (!m)
			return 0;
		record = m->runtime;
		from = m->start - m->offset;
	}
	__u32 index = record - 1;
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!record || !r || r->kind != RUNTIME_PHP)
		return 0;
	if (!w->runtime.record) {
		w->runtime.record = record;
		w->runtime.root = from + r->delta;
		w->runtime.stage = RUNTIME_ENTER;
	}
	const __u32 *loop = r->layout.php.loop;
	w->pc = w->runtime.root - r->delta + loop[0] + (loop[1] - loop[0]) / 2;
	return 1;
}
