/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ruby: the frames of Ruby, 2.7 to 3.4.
 *
 * The thread-local variable ruby_current_ec has the execution context of the fiber that runs;
 * before 3.0 one global variable has the context of the thread that holds the lock. The context
 * leads to the innermost control frame. The control frames of its callers lie behind it, up to the
 * end of the stack of values. A run is what one native frame of vm_exec executes: control frames up
 * to the one with FINISH. Functions in C have a control frame, too: each is shown next to its
 * caller, and its native frames are kept, too.
 *
 * A frame's environment begins with three words: the last one has the frame's flags; the first one
 * has the method, if the environment is that of a method. Lines are looked up when the sample is
 * taken: an instruction sequence has a list of lines, and a table of bits that says which of them
 * an instruction has.
 *
 * Code of YJIT keeps no frame pointer, but has little on the stack: registers and a return address,
 * since Ruby's functions in it call each other without the machine's stack. So the first word on
 * the stack that lies in the file's code is the return address into the native frame that has
 * called all this code.
 */
#pragma once

#include "mapping.h"
#include "runtime.h"

/* rb_execution_context_t */
#define RUBY_CONTEXT_BYTES 24
#define RUBY_CONTEXT_SIZE 1 /* word: size of the stack, in words */
#define RUBY_CONTEXT_FRAME 2
/* rb_control_frame_t */
#define RUBY_FRAME_BYTES 40
#define RUBY_FRAME_PC 0
#define RUBY_FRAME_SEQUENCE 2
#define RUBY_FRAME_ENVIRONMENT 4
/* The words of an environment, whose address is that of its flags. */
#define RUBY_ENVIRONMENT_BYTES 24
#define RUBY_ENVIRONMENT_BELOW 16
#define RUBY_FLAG_LOCAL 2
#define RUBY_FLAG_FINISH 0x20
#define RUBY_FLAG_C 0x80
#define RUBY_TYPE_MASK 0x7fff0001
#define RUBY_TYPE_C 0x55550001
#define RUBY_TYPE_DUMMY 0x79990001
/* rb_iseq_t, rb_iseq_constant_body, rb_iseq_location_t */
#define RUBY_SEQUENCE_BODY 16
#define RUBY_BODY_WORDS (RUBY_BODY_BYTES / 8)
#define RUBY_BODY_SIZE 4
#define RUBY_BODY_CODE 8
#define RUBY_BODY_PATH 64
#define RUBY_BODY_LABEL 80
#define RUBY_BODY_FIRST_LINE 88
/* In body_lines: the lines; how many; the table of bits. */
#define RUBY_LINES_COUNT 16
#define RUBY_LINES_TABLE 24
/* struct succ_index_table: for the first instructions ranks of 7 bits, then blocks of 512 bits. */
#define RUBY_TABLE_RANKS 54
#define RUBY_TABLE_RANKS_OF_WORD 9
#define RUBY_TABLE_RANK_BITS 7
#define RUBY_TABLE_BLOCKS 48
#define RUBY_TABLE_BLOCK_BYTES 80
#define RUBY_TABLE_BLOCK_BITS 512
#define RUBY_TABLE_BLOCK_WORD 2 /* the bits; before them are the rank, and 9 bits for each word */
/* Objects: the type is in the flags. */
#define RUBY_OBJECT_TYPE 0x1f
#define RUBY_OBJECT_CLASS 2
#define RUBY_OBJECT_MODULE 3
#define RUBY_OBJECT_TEXT 5
#define RUBY_OBJECT_ARRAY 7
#define RUBY_OBJECT_INTERNAL 0x1a
#define RUBY_INTERNAL_SHIFT 12 /* shift of an internal object's type */
#define RUBY_INTERNAL_VARIABLES 2
#define RUBY_INTERNAL_METHOD 6
#define RUBY_VARIABLES_METHOD 8
/* RString, RArray: with the flag 1 << 13 a text is outside of the object, but an array is inside of
 * it. */
#define RUBY_FLAG_TEXT_APART 0x2000
#define RUBY_FLAG_ARRAY_INSIDE 0x2000
#define RUBY_TEXT_LENGTH_SHIFT 14 /* shift of a short text's length, up to 3.1 */
#define RUBY_ARRAY_LENGTH_SHIFT 15
#define RUBY_ARRAY_DATA 16
/* rb_method_entry_t, rb_method_definition_t */
#define RUBY_METHOD_BYTES 40
#define RUBY_METHOD_DEFINITION 2 /* word */
#define RUBY_METHOD_ID 3
#define RUBY_METHOD_OWNER 4
#define RUBY_DEFINITION_TYPE 15
#define RUBY_DEFINITION_BLOCK 4 /* define_method */
#define RUBY_METHOD_LEVELS_MAX 10
/* IDs, and the list of names: arrays of 512 pairs. */
#define RUBY_ID_SHIFT 4
#define RUBY_ID_SCOPE 0xe /* 0: the name of a local variable */
#define RUBY_NAMES_SHIFT 9
#define RUBY_NAMES_MASK 511
/* RClass to 3.1: its extension's table of variables, st_table. */
#define RUBY_CLASS_EXTENSION 24
#define RUBY_EXTENSION_VARIABLES 8
#define RUBY_TABLE_START 32
#define RUBY_TABLE_ENTRIES 48
#define RUBY_ENTRY_BYTES 24
#define RUBY_ENTRIES_MAX 8 /* the class' name is among this many first variables */
/* Offset from the thread pointer to the address of the C library's vector of modules. */
#define RUBY_THREAD_MODULES 8
#define RUBY_CALLERS_MAX 4
#define RUBY_CODE_WORDS_MAX 16 /* words that code of YJIT may have on the stack */

/* Is it a frame of Ruby code? The first frame of a program has a sequence, too, but does not
 * execute it. */
static __always_inline int ruby_is_shown(__u64 flags)
{
	return !(flags & RUBY_FLAG_C) && (flags & RUBY_TYPE_MASK) != RUBY_TYPE_DUMMY;
}

/* ---- objects ---- */

/* An object's flags; 0: it is no object in memory. */
static __always_inline __u64 ruby_flags(__u64 object)
{
	return object && !(object & 7) ? runtime_word(object) : 0;
}

static __always_inline int ruby_is(__u64 flags, __u32 type)
{
	return (flags & RUBY_OBJECT_TYPE) == type;
}

/* An element of an array; 0: the array has no such element. */
static __always_inline __u64 ruby_element(struct runtime_scratch *s, __u64 array, __u64 i)
{
	if (!array || (array & 7) || !read_user(s->block, 40, array) ||
		!ruby_is(s->block[0], RUBY_OBJECT_ARRAY))
		return 0;
	if (s->block[0] & RUBY_FLAG_ARRAY_INSIDE) {
		if (i >= (s->block[0] >> RUBY_ARRAY_LENGTH_SHIFT & 0x7f))
			return 0;
		return runtime_word(array + RUBY_ARRAY_DATA + 8 * i);
	}
	return i < s->block[2] ? runtime_word(s->block[4] + 8 * i) : 0;
}

/* Copies a text into the event, at byte `at`, `max` bytes at most; returns how many. Global:
 * verified once. */
__noinline int ruby_put_text(__u64 text, __u32 at, __u32 max)
{
	const struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	struct stack_copy *copy = stack_copy_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !copy || !r || !text || (text & 7))
		return 0;
	struct event_code *e = (struct event_code *)copy->event.stack;
	if (!read_user(s->block, 32, text) || !ruby_is(s->block[0], RUBY_OBJECT_TEXT))
		return 0;
	__u64 data = r->layout.ruby.text_data;
	__u64 length = s->block[2], from = text + data;
	if (s->block[0] & RUBY_FLAG_TEXT_APART)
		from = s->block[3];
	else if (data == 16)
		length = s->block[0] >> RUBY_TEXT_LENGTH_SHIFT & 0x1f;
	if (max > CODE_FILE_BYTES_MAX)
		max = CODE_FILE_BYTES_MAX;
	return code_copy(e, at, from, length, max);
}

/* ---- methods ---- */

static __always_inline __u64 ruby_method_of(__u64 word)
{
	__u64 flags = ruby_flags(word);
	if (!ruby_is(flags, RUBY_OBJECT_INTERNAL))
		return 0;
	if ((flags >> RUBY_INTERNAL_SHIFT & 15) == RUBY_INTERNAL_VARIABLES) {
		word = runtime_word(word + RUBY_VARIABLES_METHOD);
		flags = ruby_flags(word);
	}
	return ruby_is(flags, RUBY_OBJECT_INTERNAL) &&
			       (flags >> RUBY_INTERNAL_SHIFT & 15) == RUBY_INTERNAL_METHOD
		       ? word
		       : 0;
}

/* Finds the method of the environment at `at`, or of those around it, and sets s->thread to it. */
__noinline int ruby_find_method(__u64 at)
{
	struct runtime_scratch *s = runtime_scratch_here();
	if (!s || !config.walk_runtimes)
		return 0;
	s->thread = 0;
	for (int i = 0; i < RUBY_METHOD_LEVELS_MAX; i++) {
		if (!read_user(s->block, RUBY_ENVIRONMENT_BYTES, at - RUBY_ENVIRONMENT_BELOW))
			return 0;
		s->thread = ruby_method_of(s->block[0]);
		if (s->thread || (s->block[2] & RUBY_FLAG_LOCAL))
			return 0;
		at = s->block[1] & ~3ULL;
	}
	return 0;
}

/* Up to 3.1: finds a variable of a class that has a text or a class, and that programs cannot write
 * (its name does not begin with @), and sets s->threads_of to its value. */
__noinline int ruby_find_variable(__u64 class, __u32 is_text)
{
	struct runtime_scratch *s = runtime_scratch_here();
	if (!s || !config.walk_runtimes)
		return 0;
	s->threads_of = 0;
	__u64 extension = runtime_word(class + RUBY_CLASS_EXTENSION);
	__u64 table = extension ? runtime_word(extension + RUBY_EXTENSION_VARIABLES) : 0;
	if (!table || !read_user(s->block, RUBY_TABLE_ENTRIES + 8, table))
		return 0;
	__u64 at = s->block[RUBY_TABLE_ENTRIES / 8] +
		   RUBY_ENTRY_BYTES * s->block[RUBY_TABLE_START / 8];
	for (int i = 0; i < RUBY_ENTRIES_MAX; i++, at += RUBY_ENTRY_BYTES) {
		if (!read_user(s->block, RUBY_ENTRY_BYTES, at))
			return 0;
		__u64 value = s->block[2];
		if (s->block[1] & RUBY_ID_SCOPE)
			continue;
		__u64 flags = ruby_flags(value);
		int is_class =
			ruby_is(flags, RUBY_OBJECT_CLASS) || ruby_is(flags, RUBY_OBJECT_MODULE);
		if (is_text ? ruby_is(flags, RUBY_OBJECT_TEXT) : is_class) {
			s->threads_of = value;
			return 0;
		}
	}
	return 0;
}

static __always_inline __u64 ruby_class_field(
	const struct ruby_layout *l, struct runtime_scratch *s, __u64 class, __u32 is_text)
{
	if (l->class_kind == RUBY_CLASS_FIELD)
		return runtime_word(class + (is_text ? l->class_name : l->class_attached));
	if (l->class_kind != RUBY_CLASS_TABLE)
		return 0;
	(void)ruby_find_variable(class, is_text);
	return s->threads_of;
}

/* Puts the name of a method's class into the event; returns how many bytes. */
static __always_inline __u32 ruby_put_class(
	const struct ruby_layout *l, struct runtime_scratch *s, struct event_code *e, __u64 class)
{
	__u64 flags = ruby_flags(class);
	if (ruby_is(flags, RUBY_OBJECT_CLASS) && (flags & l->singleton_flag)) {
		class = ruby_class_field(l, s, class, 0);
		flags = ruby_flags(class);
		e->form = RUNTIME_FORM_CLASS;
		if (flags & l->singleton_flag)
			return 0;
	}
	if (!ruby_is(flags, RUBY_OBJECT_CLASS) && !ruby_is(flags, RUBY_OBJECT_MODULE))
		return 0;
	__u64 name = ruby_class_field(l, s, class, 1);
	return name ? ruby_put_text(name, 0, CODE_OWNER_BYTES_MAX) : 0;
}

/* ---- functions ---- */

static __always_inline __u64 ruby_path(struct runtime_scratch *s, __u64 path)
{
	if (!ruby_is(ruby_flags(path), RUBY_OBJECT_ARRAY))
		return path;
	__u64 real = ruby_element(s, path, 1);
	return ruby_is(ruby_flags(real), RUBY_OBJECT_TEXT) ? real : ruby_element(s, path, 0);
}

/* Sends the instruction sequence whose body is in s->code, and whose frame has this environment. */
__noinline int ruby_tell_sequence(__u64 number, __u64 environment)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	struct event_code *e = w && s && r ? code_begin() : NULL;
	if (!w || !s || !r || !e)
		return 0;
	const struct ruby_layout *l = &r->layout.ruby;
	__u32 at = 0;
	(void)ruby_find_method(environment);
	if (s->thread && read_user(s->block, RUBY_METHOD_BYTES, s->thread)) {
		__u64 owner = s->block[RUBY_METHOD_OWNER];
		__u64 type = runtime_word(s->block[RUBY_METHOD_DEFINITION]) & RUBY_DEFINITION_TYPE;
		if (type != RUBY_DEFINITION_BLOCK)
			at = ruby_put_class(l, s, e, owner);
	}
	e->owner_bytes = at;
	at += ruby_put_text(
		block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_LABEL), at, CODE_NAME_BYTES_MAX);
	if (at == e->owner_bytes) {
		code_drop();
		return 0;
	}
	e->name_bytes = at;
	__u64 first = block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_FIRST_LINE);
	e->first_line = l->line_is_value ? first >> 1 : first;
	__u64 path = ruby_path(s, block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_PATH));
	e->file_bytes = ruby_put_text(path, at, CODE_FILE_BYTES_MAX);
	code_end(w, r, e, number, at + e->file_bytes);
	return 0;
}

/* Sends a function in C by its method's ID and owner. */
__noinline int ruby_tell_native(__u64 number, __u64 id, __u64 owner)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	struct event_code *e = w && s && r ? code_begin() : NULL;
	if (!w || !s || !r || !e)
		return 0;
	const struct ruby_layout *l = &r->layout.ruby;
	__u64 serial = id > l->last_operator ? id >> RUBY_ID_SHIFT : id;
	__u64 names = runtime_word(w->runtime.root + l->symbols_at);
	names = ruby_element(s, names, serial >> RUBY_NAMES_SHIFT);
	__u64 name = ruby_element(s, names, (serial & RUBY_NAMES_MASK) * 2);
	__u32 at = ruby_put_class(l, s, e, owner);
	e->owner_bytes = at;
	e->name_bytes = at + ruby_put_text(name, at, CODE_NAME_BYTES_MAX);
	if (e->name_bytes == at) {
		code_drop();
		return 0;
	}
	code_end(w, r, e, number, e->name_bytes);
	return 0;
}

/* ---- lines ---- */

static __always_inline __u64 ruby_bits(__u64 x)
{
	x -= x >> 1 & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return x * 0x0101010101010101ULL >> 56;
}

/* The number in the list of lines that an instruction has, counted from 1; 0: it cannot be read. */
static __always_inline __u64 ruby_line_index(
	struct runtime_scratch *s, __u64 table, __u64 instruction)
{
	if (instruction < RUBY_TABLE_RANKS) {
		__u64 ranks = runtime_word(table + instruction / RUBY_TABLE_RANKS_OF_WORD * 8);
		return ranks >> instruction % RUBY_TABLE_RANKS_OF_WORD * RUBY_TABLE_RANK_BITS &
		       0x7f;
	}
	instruction -= RUBY_TABLE_RANKS;
	__u64 block = table + RUBY_TABLE_BLOCKS +
		      instruction / RUBY_TABLE_BLOCK_BITS * RUBY_TABLE_BLOCK_BYTES;
	if (!read_user(s->block, RUBY_TABLE_BLOCK_BYTES, block))
		return 0;
	__u32 word = instruction / 64 & 7;
	__u64 before = word ? s->block[1] >> (word - 1) * 9 & 0x1ff : 0;
	__u64 bits = block_word(
		s->block, RUBY_TABLE_BLOCK_BYTES / 8, (RUBY_TABLE_BLOCK_WORD + word) * 8);
	return (__u32)s->block[0] + before + ruby_bits(bits << (63 - (instruction & 63)));
}

/* The line of a frame, from its program counter (which is at the next instruction) in the sequence
 * whose body is in s->code. */
static __always_inline __u64 ruby_line(
	const struct ruby_layout *l, struct runtime_scratch *s, __u64 pc)
{
	__u64 instruction = (pc - block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_CODE)) / 8;
	__u32 lines = l->body_lines;
	__u64 count = block_half(s->code, RUBY_BODY_WORDS, lines + RUBY_LINES_COUNT);
	__u64 table = block_word(s->code, RUBY_BODY_WORDS, lines + RUBY_LINES_TABLE);
	__u64 index = 1;
	__u32 line = 0;
	if (instruction > block_half(s->code, RUBY_BODY_WORDS, RUBY_BODY_SIZE))
		return FRAME_POSITION_NONE;
	if (instruction)
		instruction--;
	if (count > 1)
		index = ruby_line_index(s, table, instruction);
	if (index - 1 >= count)
		return FRAME_POSITION_NONE;
	__u64 at = block_word(s->code, RUBY_BODY_WORDS, lines) + (index - 1) * l->line_bytes;
	return read_user(&line, sizeof(line), at) && line ? line : FRAME_POSITION_NONE;
}

/* ---- frames ---- */

/* Reads a sequence's body to s->code. 0: it cannot be read. */
static __always_inline int ruby_read_sequence(
	struct walk *w, struct runtime_scratch *s, __u64 sequence)
{
	if (sequence == w->runtime.last_code)
		return 1;
	w->runtime.last_code = 0;
	__u64 body = runtime_word(sequence + RUBY_SEQUENCE_BODY);
	if (!body || !read_user(s->code, RUBY_BODY_BYTES, body))
		return 0;
	__u64 number = code_number_begin(w, body);
	number = hash_mix(number, block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_CODE));
	number = hash_mix(number, block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_LABEL));
	number = hash_mix(number, block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_PATH));
	w->runtime.last_code = sequence;
	w->runtime.last_number = number | FRAME_CODE_REAL;
	return 1;
}

/* Records a frame of an instruction sequence. 1: it has executed nothing yet. */
static __always_inline int ruby_sequence(struct walk *w, const struct runtime_record *r,
	struct runtime_scratch *s, __u64 sequence, __u64 pc, __u64 environment)
{
	if (!ruby_read_sequence(w, s, sequence)) {
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return 0;
	}
	__u64 number = w->runtime.last_number;
	if (code_is_due(w, number))
		(void)ruby_tell_sequence(number, environment);
	runtime_record_frame(w, number, ruby_line(&r->layout.ruby, s, pc));
	return pc == block_word(s->code, RUBY_BODY_WORDS, RUBY_BODY_CODE);
}

/* Records a frame of a function in C. */
static __always_inline void ruby_native(struct walk *w, const struct runtime_record *r,
	struct runtime_scratch *s, __u64 environment)
{
	__u64 method = ruby_method_of(runtime_word(environment - RUBY_ENVIRONMENT_BELOW));
	if (!method || !read_user(s->block, RUBY_METHOD_BYTES, method)) {
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
		return;
	}
	__u64 id = s->block[RUBY_METHOD_ID], owner = s->block[RUBY_METHOD_OWNER];
	__u64 number = hash_mix(code_number_begin(w, s->block[RUBY_METHOD_DEFINITION]), id);
	number = hash_mix(number, owner) | FRAME_CODE_REAL;
	if (code_is_due(w, number))
		(void)ruby_tell_native(number, id, owner);
	runtime_record_frame(w, number, FRAME_POSITION_NONE);
}

/* Records the next frame of the run. If C code calls a block, the block's frame exists before
 * vm_exec is called for it: such a run has no native frame yet. */
static __always_inline void ruby_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct ruby_layout *l = &r->layout.ruby;
	__u64 frame = w->runtime.frame;
	__u32 natives = config.keep_interpreters ? 1 : 0;
	int is_entered = w->runtime.count || w->user_count <= natives;
	w->runtime.frame = 0;
	if (!frame)
		return;
	if (!read_user(s->block, RUBY_FRAME_BYTES, frame)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		return;
	}
	__u64 pc = s->block[RUBY_FRAME_PC];
	__u64 sequence = s->block[RUBY_FRAME_SEQUENCE];
	__u64 environment = s->block[RUBY_FRAME_ENVIRONMENT];
	__u64 flags = runtime_word(environment);
	if (!flags) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		return;
	}
	frame += l->frame_bytes;
	w->runtime.frame = frame < w->runtime.owner ? frame : 0;
	w->runtime.stage = flags & RUBY_FLAG_FINISH ? RUNTIME_NATIVE : RUNTIME_FRAMES;
	if ((flags & RUBY_TYPE_MASK) == RUBY_TYPE_C && l->symbols_at)
		ruby_native(w, r, s, environment);
	else if (ruby_is_shown(flags) && sequence &&
		 ruby_sequence(w, r, s, sequence, pc, environment) && !is_entered)
		w->runtime.stage = RUNTIME_FRAMES;
}

/* ---- the thread ---- */

static __always_inline __u64 ruby_context(const struct walk *w, const struct ruby_layout *l)
{
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 pointer = BPF_CORE_READ(task, thread.fsbase);
	__u64 pair[2];
	if (l->root == RUBY_ROOT_POINTER) {
		__u64 context = runtime_word(w->runtime.root);
		__u64 thread = context ? runtime_word(context + l->context_thread) : 0;
		return thread && runtime_word(thread + l->thread_id) == pointer ? context : 0;
	}
	if (l->root == RUBY_ROOT_FIXED)
		return runtime_word(pointer + l->root_at);
	if (!read_user(pair, sizeof(pair), w->runtime.root))
		return 0;
	if (l->root == RUBY_ROOT_OFFSET)
		return runtime_word(pointer + pair[0]);
	__u64 modules = runtime_word(pointer + RUBY_THREAD_MODULES);
	__u64 block = modules ? runtime_word(modules + pair[0] * (l->is_musl ? 8 : 16)) : 0;
	if (!block || block == ~0ULL) /* this thread has not used the library's variables */
		return 0;
	return runtime_word(block + pair[1] + l->root_at);
}

static __always_inline void ruby_begin(struct walk *w, const struct ruby_layout *l,
	struct runtime_scratch *s, struct bpf_counters *c)
{
	__u64 context = ruby_context(w, l);
	if (!context || !read_user(s->block, RUBY_CONTEXT_BYTES, context)) {
		c->runtime_threads++;
		return;
	}
	__u64 stack = s->block[0], end = stack + 8 * s->block[RUBY_CONTEXT_SIZE];
	__u64 frame = s->block[RUBY_CONTEXT_FRAME];
	if (frame <= stack || frame >= end)
		return;
	w->runtime.frame = frame;
	w->runtime.owner = end;
}

/* Must a native frame execute the remaining frames? No, if they are functions in C that no Ruby
 * code has called, or a thread's first frame. */
static __always_inline int ruby_misses_owner(
	const struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	__u64 frame = w->runtime.frame;
	for (int i = 0; i < RUBY_CALLERS_MAX && frame < w->runtime.owner; i++) {
		if (!read_user(s->block, RUBY_FRAME_BYTES, frame))
			return 0;
		if (ruby_is_shown(runtime_word(s->block[RUBY_FRAME_ENVIRONMENT])))
			return 1;
		frame += r->layout.ruby.frame_bytes;
	}
	return 0;
}

/* Global: verified by itself. The stage that is next is native, unless this sets another. With
 * RUNTIME_NATIVE, at the end of the stack: the remaining frames are dropped if none needs a native
 * frame. */
__noinline int ruby_step(__u32 stage)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	struct bpf_counters *c = counters_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !c || !r)
		return 0;
	if (stage == RUNTIME_ENTER) {
		c->runtime_samples++;
		ruby_begin(w, &r->layout.ruby, s, c);
	} else if (stage == RUNTIME_NATIVE) {
		if (!ruby_misses_owner(w, r, s))
			w->runtime.frame = 0;
	} else {
		ruby_frame(w, r, s);
	}
	return 0;
}

/* ---- code of YJIT ---- */

/* Is `address` the return address of a call in Ruby's own code? */
__noinline int ruby_is_return(__u64 address)
{
	struct walk *w = walk_here();
	if (!w || !config.walk_runtimes || address < 4096)
		return 0;
	if (w->runtime.record) {
		const struct runtime_record *r = runtime_record_of(w);
		return r && r->kind == RUNTIME_RUBY &&
		       address - 1 - (w->runtime.root - r->delta) - r->text_from < r->text_bytes;
	}
	const struct mapping *m = mapping_at(w, address - 1);
	if (!m)
		return 0;
	__u32 index = m->runtime - 1;
	const struct runtime_record *r =
		m->runtime ? bpf_map_lookup_elem(&runtime_records, &index) : NULL;
	return r && r->kind == RUNTIME_RUBY &&
	       address - 1 - m->start + m->offset - r->text_from < r->text_bytes;
}

/* Goes from generated code to its caller. 1: the walk is there. */
__noinline int ruby_leave_code(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	if (!w || !config.walk_runtimes)
		return 0;
	for (int i = 0; i < RUBY_CODE_WORDS_MAX; i++) {
		__u64 at = w->sp + 8 * i, word;
		if (!read_stack(w, at, &word))
			return 0;
		if (!ruby_is_return(word))
			continue;
		if (!w->code.left) {
			w->code.left = w->user_count + 1;
			w->code.left_hash = w->hash;
		}
		w->pc = word;
		w->sp = at + 8;
		w->pc_is_exact = 0;
		w->bx_is_known = 0;
		w->regs_are_kept = 0;
		return 1;
	}
	return 0;
}
