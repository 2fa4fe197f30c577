/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * v8_names: finds the number of a JSFunction of V8, and sends its event: its name, its script's
 * name, and its place in the script.
 */
#pragma once

#include "runtime.h"

#define V8_TAG 1        /* the low bit of a pointer to an object */
#define V8_SMI_SHIFT 32 /* shift of a small number, whose lower half is zero */
#define V8_MAP_TYPE 12  /* offset in a Map: the type of its objects, u16 */
/* Offsets in a String: its length, and its characters, or the Strings that it is made of. */
#define V8_STRING_LENGTH 12
#define V8_STRING_TEXT 16
#define V8_STRING_BYTES 32
#define V8_STRING_KIND 7 /* of its type */
#define V8_STRING_SEQUENTIAL 0
#define V8_STRING_CONS 1
#define V8_STRING_EXTERNAL 2
#define V8_STRING_THIN 5
#define V8_STRING_ONE_BYTE 8
/* How many Strings a name may be made of, and how many steps may lead to one of them. */
#define V8_NAME_PARTS_MAX 4 /* power of two */
#define V8_STRING_STEPS_MAX 4
/* From this many variables on, their names are elsewhere. */
#define V8_SCOPE_NAMES_MAX 75

/* Offset in a JSFunction, from 13 on: its number in the table of codes. */
#define V8_FUNCTION_HANDLE 24
#define V8_HANDLE_SHIFT 8
/* Offsets in DeoptimizationData: its length (0: the code is not optimized), and how many functions
 * were inlined into the code. */
#define V8_DEOPT_LENGTH 8
#define V8_DEOPT_LENGTH_LEAST 9
#define V8_DEOPT_FUNCTIONS 24
#define V8_CODE_TABLE_BYTES_MAX 2560

/* Offset in a SharedFunctionInfo: its Code, if it was compiled without optimization. */
#define V8_SHARED_DATA 8
/* A FeedbackVector: the offset of its slots, and how many of them are read; the tag of a weak
 * reference. */
#define V8_FEEDBACK_SLOTS 48
#define V8_FEEDBACK_MAX 64
#define V8_WEAK_TAG 3
#define V8_VAIN_SLOTS 8 /* power of two */

enum v8_code_kind {
	V8_CODE_UNKNOWN,
	V8_CODE_PLAIN, /* code of one function, without a table of places */
	V8_CODE_OPTIMIZED,
};

enum v8_map {
	V8_MAP_FUNCTION,
	V8_MAP_SHARED,
	V8_MAP_SCRIPT,
	V8_MAP_SCOPE,
	V8_MAP_BYTECODES,
	V8_MAP_CODE,
	V8_MAP_COUNT
};

#define V8_BLOCK_WORDS 16 /* power of two */

struct v8_scratch {
	__u64 frame[V8_BLOCK_WORDS];
	__u64 function[V8_BLOCK_WORDS]; /* JSFunction */
	__u64 shared[V8_BLOCK_WORDS];   /* SharedFunctionInfo */
	__u64 script[V8_BLOCK_WORDS];
	__u64 scope[V8_BLOCK_WORDS]; /* ScopeInfo, then its slots */
	__u64 text[V8_BLOCK_WORDS];  /* String */
	__u64 maps[V8_MAP_COUNT];    /* maps that this sample has found to be of the type */
	__u32 sample;
	__u32 has_script; /* the last function has a script: it is no builtin */
	__u64 code[V8_BLOCK_WORDS];
	__u64 deopt[V8_BLOCK_WORDS]; /* DeoptimizationData */
	__u64 inlined[V8_INLINED_MAX];
	struct v8_code_told code_told;
	__u64 loop_cell; /* a function's feedback, and the code that was last found by it */
	__u64 loop_code;
	__u64 vain[V8_VAIN_SLOTS]; /* hashes of searches that found nothing in this sample */
	__u64 code_position;       /* the current frame's position in its code, in bytes */
	__u64 head[4];             /* the head of a BytecodeArray's table */
	struct v8_told told;
	__u64 bytecodes; /* the BytecodeArray of the current frame; 0: it has none */
	__u64 last_bytecodes;
	__u64 source_at; /* the source of the current script */
	__u32 source_bytes, source_unit;
	__u64 parts[V8_NAME_PARTS_MAX]; /* right halves of a String of two */
	__u32 text_type, text_bytes;
	__u32 copied_unit; /* bytes of each character that v8_copy() has copied */
	__u64 text_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct v8_scratch);
} v8_scratches SEC(".maps");

static __always_inline struct v8_scratch *v8_scratch_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&v8_scratches, &zero);
}

static __always_inline void v8_begin_sample(const struct walk *w, struct v8_scratch *v)
{
	if (v->sample == w->sample)
		return;
	v->sample = w->sample;
	__builtin_memset(v->maps, 0, sizeof(v->maps));
	__builtin_memset(v->vain, 0, sizeof(v->vain));
}

/* These return a word, or half a word, at an offset of what was read. */
static __always_inline __u64 v8_word(const __u64 *block, __u32 offset)
{
	return *(const volatile __u64 *)&block[offset / 8 & (V8_BLOCK_WORDS - 1)];
}

static __always_inline __u32 v8_half(const __u64 *block, __u32 offset)
{
	return v8_word(block, offset) >> (offset & 4) * 8;
}

static __always_inline int v8_is_small(__u64 word)
{
	return !(__u32)word;
}

/* Reads the first bytes of an object at its present address. 0: it is no object. */
static __always_inline int v8_read(__u64 *out, __u32 bytes, __u64 object)
{
	if (!(object & V8_TAG) || !read_user(out, bytes, object - V8_TAG))
		return 0;
	__u64 moved = *(const volatile __u64 *)out;
	if (moved & V8_TAG)
		return 1;
	return moved && read_user(out, bytes, moved) && *(const volatile __u64 *)out & V8_TAG;
}

static __always_inline __u32 v8_type(__u64 map)
{
	__u16 type = 0;
	(void)read_user(&type, sizeof(type), map - V8_TAG + V8_MAP_TYPE);
	return type;
}

/* Is it the Map of objects of these types? */
static __always_inline int v8_is(
	struct v8_scratch *v, enum v8_map which, __u64 map, __u32 from, __u32 to)
{
	if (v->maps[which] == map)
		return 1;
	__u32 type = v8_type(map);
	if (type < from || type > to)
		return 0;
	v->maps[which] = map;
	return 1;
}

/* ---- strings ---- */

/* Reads the head of the String that `string` is, or stands for, to v->text. 0: it is no String. */
__noinline int v8_string(__u64 string)
{
	struct v8_scratch *v = v8_scratch_here();
	struct walk *w = walk_here();
	if (!v || !w || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return 0;
	__u32 no_string = r->layout.v8.first_no_string;
	v->text_bytes = 0;
	for (int i = 0; i < V8_STRING_STEPS_MAX; i++) {
		__u64 head[2];
		if (!v8_read(head, sizeof(head), string))
			return 0;
		__u32 type = v8_type(head[0]);
		if (type >= no_string)
			return 0;
		__u32 kind = type & V8_STRING_KIND;
		__u32 characters = head[1] >> 32;
		v->text_type = type;
		v->text_bytes = type & V8_STRING_ONE_BYTE ? characters : 2 * characters;
		v->text_at = string - V8_TAG + V8_STRING_TEXT;
		if (kind == V8_STRING_SEQUENTIAL)
			return characters < 1U << 30;
		if (!v8_read(v->text, V8_STRING_BYTES, string))
			return 0;
		if (kind == V8_STRING_EXTERNAL) {
			v->text_at = v8_word(v->text, 24);
			return characters < 1U << 30;
		}
		if (kind == V8_STRING_CONS)
			return 1;
		if (kind != V8_STRING_THIN)
			return 0;
		string = v8_word(v->text, V8_STRING_TEXT);
	}
	return 0;
}

/* Copies the text in v->text_at, which is not made of other Strings, to data[at]. All texts of a
 * name must have characters of the same size. */
static __always_inline __u32 v8_copy_flat(
	struct v8_scratch *v, struct event_code *e, __u32 at, __u32 max)
{
	__u32 unit = v->text_type & V8_STRING_ONE_BYTE ? 1 : 2;
	if (v->copied_unit != RUNTIME_TEXT_UTF8 && v->copied_unit != unit)
		return 0;
	v->copied_unit = unit;
	return code_copy(e, at, v->text_at, v->text_bytes, max);
}

/* Copies a name of at most V8_NAME_PARTS_MAX parts to data[at] of the event from code_begin(). A
 * right part that is itself made of several Strings is left out. Its unit is v->copied_unit.
 * Returns how many bytes, below 1,024. Global: verified once. */
__noinline int v8_copy(__u32 at, __u64 string, __u32 max)
{
	struct v8_scratch *v = v8_scratch_here();
	struct stack_copy *copy = stack_copy_here();
	if (!v || !copy || !config.walk_runtimes || max >= 1024)
		return 0;
	struct event_code *e = (struct event_code *)copy->event.stack;
	__u32 bytes = 0, parts = 0;
	v->copied_unit = RUNTIME_TEXT_UTF8;
	if (!v8_string(string))
		return 0;
	for (; parts < V8_NAME_PARTS_MAX; parts++) {
		if ((v->text_type & V8_STRING_KIND) != V8_STRING_CONS)
			break;
		*(volatile __u64 *)&v->parts[parts & (V8_NAME_PARTS_MAX - 1)] =
			v8_word(v->text, 24);
		if (!v8_string(v8_word(v->text, V8_STRING_TEXT)))
			return 0;
	}
	if ((v->text_type & V8_STRING_KIND) == V8_STRING_CONS)
		return 0;
	bytes = v8_copy_flat(v, e, at, max);
	for (int i = 0; i < V8_NAME_PARTS_MAX && parts; i++) {
		parts--;
		__u64 part = *(volatile __u64 *)&v->parts[parts & (V8_NAME_PARTS_MAX - 1)];
		if (bytes >= max || !v8_string(part) ||
			(v->text_type & V8_STRING_KIND) == V8_STRING_CONS)
			continue;
		bytes += v8_copy_flat(v, e, at + bytes, max / 4);
	}
	return bytes < 2048 ? bytes : 0;
}

/* The same for a function's name and its script's name; returns how many bytes, at most 1,023. */
static __always_inline __u32 v8_copy_name(struct v8_scratch *v, struct event_code *e, __u64 string)
{
	__u32 bytes = v8_copy(0, string, CODE_NAME_BYTES_MAX);
	e->name_unit = v->copied_unit;
	return bytes < 1024 ? bytes : 0;
}

static __always_inline __u32 v8_copy_file(
	struct v8_scratch *v, struct event_code *e, __u32 at, __u64 string)
{
	__u32 bytes = v8_copy(at, string, CODE_FILE_BYTES_MAX);
	e->file_unit = v->copied_unit;
	return bytes < 1024 ? bytes : 0;
}

/* ---- functions ---- */

/* Scripts are counted in each isolate, so the number is made from the thread's isolate, too. */
static __always_inline __u64 v8_script_number(
	const struct walk *w, const struct v8_layout *l, const struct v8_scratch *v)
{
	return hash_mix(code_number_begin(w, w->event.h.tid), v8_word(v->script, l->script_id));
}

/* Reads the slots with a function's name and place, which follow the names of its scope's
 * variables, to v->told. 0: there are none. */
static __always_inline int v8_read_slots(
	const struct v8_layout *l, struct v8_scratch *v, __u64 scope)
{
	if (!v8_read(v->scope, V8_SCOPE_BYTES, scope) ||
		!v8_is(v, V8_MAP_SCOPE, v->scope[0], l->type_scope, l->type_scope))
		return 0;
	if (l->scope_positions) {
		v->told.positions[0] = v8_word(v->scope, l->scope_positions);
		v->told.positions[1] = v8_word(v->scope, l->scope_positions + 8);
	}
	__u64 locals = v8_word(v->scope, l->scope_locals) >> V8_SMI_SHIFT;
	__u64 words = locals < V8_SCOPE_NAMES_MAX ? 2 * locals : 1 + locals;
	if (locals > 1 << 16)
		return 0;
	return read_user(v->told.slots, sizeof(v->told.slots),
		scope - V8_TAG + l->scope_variables + words * sizeof(__u64));
}

/* The function's name: the first slot with a text. */
static __always_inline __u32 v8_copy_scope_name(struct v8_scratch *v, struct event_code *e)
{
	__u32 bytes = 0;
	for (int i = 0; i < V8_SLOTS - 1 && !bytes; i++) {
		__u64 slot = *(const volatile __u64 *)&v->told.slots[i];
		if (slot & V8_TAG)
			bytes = v8_copy_name(v, e, slot);
	}
	return bytes;
}

/* Finds the source of v->script. 0: it is not a single text. */
static __always_inline int v8_find_source(const struct v8_layout *l, struct v8_scratch *v)
{
	v->source_bytes = 0;
	if (!v->has_script || !v8_string(v8_word(v->script, l->script_source)) ||
		(v->text_type & V8_STRING_KIND) == V8_STRING_CONS)
		return 0;
	v->source_at = v->text_at;
	v->source_bytes = v->text_bytes;
	v->source_unit = v->text_type & V8_STRING_ONE_BYTE ? 1 : 2;
	return 1;
}

/* Sends a piece of the current script's source. 1: it was sent; 0: it must be sent later; -1: the
 * process has not touched that memory, as with scripts in a snapshot. */
__noinline int v8_tell_piece(__u32 piece)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes || piece >= V8_PIECES_MAX)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	__u64 number = v8_piece_number(v->told.source, piece);
	if (!r || code_is_told(number))
		return 1;
	/* Half of what may be sent is reserved for functions. */
	if (w->runtime.code_bytes > CODE_BYTES_OF_SAMPLE_MAX / 2)
		return 0;
	struct event_code *e = code_is_due(w, number) ? code_begin() : NULL;
	if (!e)
		return 0;
	__u32 from = piece * V8_PIECE_BYTES;
	__u64 bytes = v->source_bytes - from;
	if (bytes > V8_PIECE_BYTES)
		bytes = V8_PIECE_BYTES;
	if (bytes == 0 || bytes > V8_PIECE_BYTES ||
		!read_user(e->data, bounded(bytes, 8192), v->source_at + from)) {
		code_drop();
		return -1;
	}
	e->form = RUNTIME_FORM_SOURCE;
	e->name_unit = v->source_unit;
	e->lines_bytes = bytes;
	code_end(w, r, e, number, bytes);
	return code_is_told(number);
}

/* Sends the pieces of the source that were not sent yet, as many as this sample may send. 1: all
 * are sent. */
static __always_inline int v8_tell_source(struct v8_scratch *v)
{
	for (__u32 i = 0; i < V8_PIECES_MAX; i++) {
		if (i * V8_PIECE_BYTES >= v->source_bytes)
			return 1;
		int is_told = v8_tell_piece(i);
		if (is_told <= 0)
			return is_told < 0;
	}
	return 1;
}

/* Copies the data that follow a function's texts to data[at]; returns how many bytes. */
static __always_inline __u32 v8_copy_told(
	const struct v8_layout *l, struct v8_scratch *v, struct event_code *e, __u32 at)
{
	__u64 table = 0;
	__u32 bytes = sizeof(v->told);
	v->told.table_bytes = 0;
	if (v->bytecodes && v8_read(v->scope, bounded(l->bytecodes_lines + 8, 128), v->bytecodes))
		table = v8_word(v->scope, l->bytecodes_lines);
	if (table && v8_read(v->head, 16, table))
		v->told.table_bytes = *(const volatile __u64 *)&v->head[1] >> V8_SMI_SHIFT;
	if (at >= 1024 ||
		bpf_probe_read_kernel(&e->data[bounded(at, 1024)], sizeof(v->told), &v->told))
		return 0;
	__u64 more = v->told.table_bytes;
	if (more > CODE_LINES_BYTES_MAX - sizeof(v->told))
		more = CODE_LINES_BYTES_MAX - sizeof(v->told);
	if (more && more <= CODE_LINES_BYTES_MAX && at + bytes < 2048 &&
		read_user(&e->data[bounded(at + bytes, 2048)], bounded(more, 4096),
			table - V8_TAG + 16))
		bytes += more;
	return bytes;
}

/* Sends the function of v->shared and v->script. */
static __always_inline int v8_tell(__u64 number)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	struct event_code *e = r ? code_begin() : NULL;
	if (!e)
		return 0;
	const struct v8_layout *l = &r->layout.v8;
	__u64 name = v8_word(v->shared, l->shared_name);
	__u32 at = 0;
	__builtin_memset(&v->told, 0, sizeof(v->told));
	if (v8_read_slots(l, v, name))
		at = v8_copy_scope_name(v, e);
	else
		at = v8_copy_name(v, e, name);
	e->name_bytes = at;
	int has_source = 0;
	if (v->has_script) {
		__u32 bytes = v8_copy_file(v, e, at, v8_word(v->script, l->script_name));
		e->file_bytes = bytes;
		at += bytes;
		has_source = v8_find_source(l, v);
		if (has_source)
			v->told.source = v8_script_number(w, l, v);
		v->told.first_line = v8_word(v->script, l->script_name + 8);
		bytes = v8_copy_told(l, v, e, at);
		e->lines_bytes = bytes;
		at += bytes;
	}
	code_end(w, r, e, number, at);
	if (has_source && !v8_tell_source(v))
		code_again(number);
	return 0;
}

/* The number of the function with this SharedFunctionInfo, which is sent if it is new; 0: `shared`
 * is no SharedFunctionInfo. */
__noinline __u64 v8_shared(__u64 shared)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return 0;
	const struct v8_layout *l = &r->layout.v8;
	if (shared == w->runtime.last_code && v->bytecodes == v->last_bytecodes)
		return w->runtime.last_number;
	w->runtime.last_code = 0;
	if (!v8_read(v->shared, bounded(l->shared_flags + 8, 128), shared) ||
		!v8_is(v, V8_MAP_SHARED, v->shared[0], l->type_shared, l->type_shared))
		return 0;
	__u64 number = code_number_begin(w, w->event.h.tid);
	v->has_script = v8_read(v->script, V8_SCRIPT_BYTES, v8_word(v->shared, l->shared_script)) &&
			v8_is(v, V8_MAP_SCRIPT, v->script[0], l->type_script, l->type_script);
	if (v->has_script) {
		number = hash_mix(
			v8_script_number(w, l, v), v8_half(v->shared, l->shared_flags + 4));
		number = hash_mix(number, v->bytecodes != 0);
	} else {
		number = hash_mix(number, v8_word(v->shared, l->shared_name));
		number = hash_mix(number, v8_word(v->shared, 8));
	}
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		(void)v8_tell(number);
	w->runtime.last_code = shared;
	v->last_bytecodes = v->bytecodes;
	w->runtime.last_number = number;
	return number;
}

/* The same for a JSFunction. */
static __always_inline __u64 v8_function(
	const struct v8_layout *l, struct v8_scratch *v, __u64 function)
{
	if (!v8_read(v->function, V8_FUNCTION_BYTES, function) ||
		!v8_is(v, V8_MAP_FUNCTION, v->function[0], l->type_function,
			l->type_function + V8_FUNCTION_TYPES))
		return 0;
	return v8_shared(v8_word(v->function, l->function_shared));
}

/* ---- code ---- */

/* The present Code of the JSFunction in v->function. */
static __always_inline __u64 v8_code_of(
	const struct walk *w, const struct v8_layout *l, const struct v8_scratch *v)
{
	if (l->function_code)
		return v8_word(v->function, l->function_code);
	__u64 holder = w->code.root;
	if (l->isolate_at) {
		struct task_struct *task = (void *)bpf_get_current_task();
		holder = BPF_CORE_READ(task, thread.fsbase) + (__s64)l->isolate_at;
	}
	holder = holder && l->dispatch ? runtime_word(holder) : 0;
	__u64 table = holder ? runtime_word(holder + l->dispatch) : 0;
	if (!table)
		return 0;
	__u64 entry = v8_half(v->function, V8_FUNCTION_HANDLE) >> V8_HANDLE_SHIFT;
	return runtime_word(table + entry * 16 + 8) >> 16 | V8_TAG;
}

/* Puts the numbers of the functions inlined into the code in v->code into v->inlined. It is called
 * before v8_tell_code(), and not by it: the stacks of both together are too large. */
__noinline int v8_tell_inlined(__u32 zero)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	const struct runtime_record *r = w && config.walk_runtimes ? hotspot_record(w) : NULL;
	if (!v || !r)
		return zero;
	__u64 literals = v8_word(v->deopt, r->layout.v8.deopt_literals) - V8_TAG + 16;
	__u64 count = v8_word(v->deopt, V8_DEOPT_FUNCTIONS) >> V8_SMI_SHIFT;
	for (__u32 i = 0; i < V8_INLINED_MAX; i++) {
		__u64 x = 0;
		if (i < count) /* the reference may be a weak one */
			x = v8_shared(runtime_word(literals + i * sizeof(__u64)) & ~2ULL);
		*(volatile __u64 *)&v->inlined[i & (V8_INLINED_MAX - 1)] = x;
	}
	v->code_told.functions = count > V8_INLINED_MAX ? V8_INLINED_MAX : count;
	return 0;
}

/* Sends the code in v->code, and which functions are in it. */
__noinline int v8_tell_code(__u64 number)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return 0;
	const struct v8_layout *l = &r->layout.v8;
	__u64 inlining = v8_word(v->deopt, l->deopt_inlining), bytes = 0;
	if (v8_read(v->head, 16, inlining))
		bytes = *(const volatile __u64 *)&v->head[1] >> V8_SMI_SHIFT;
	if (bytes > V8_INLINING_BYTES_MAX)
		bytes = V8_INLINING_BYTES_MAX;
	__u64 table = v8_word(v->code, l->code_table), more = 0;
	if (v8_read(v->head, 16, table))
		more = *(const volatile __u64 *)&v->head[1] >> V8_SMI_SHIFT;
	struct event_code *e = code_begin();
	if (!e)
		return 0;
	v->code_told.inlining_bytes = bytes;
	v->code_told.table_bytes = more;
	__u32 at = sizeof(v->code_told) + sizeof(v->inlined);
	(void)bpf_probe_read_kernel(e->data, sizeof(v->code_told), &v->code_told);
	(void)bpf_probe_read_kernel(e->data + sizeof(v->code_told), sizeof(v->inlined), v->inlined);
	if (bytes && !read_user(e->data + at, bounded(bytes, 2048), inlining - V8_TAG + 16)) {
		code_drop();
		return 0;
	}
	at += bytes;
	if (more > V8_CODE_TABLE_BYTES_MAX)
		more = V8_CODE_TABLE_BYTES_MAX;
	if (more && at < 2048 &&
		read_user(&e->data[bounded(at, 2048)], bounded(more, 4096), table - V8_TAG + 16))
		at += more;
	e->form = RUNTIME_FORM_CODE;
	e->lines_bytes = at;
	code_end(w, r, e, number, at);
	return 0;
}

/* Is the instruction at `address` in this Code? Reads the Code to v->code. */
static __always_inline int v8_is_in_code(
	const struct v8_layout *l, struct v8_scratch *v, __u64 code, __u64 address)
{
	if (!v8_read(v->code, V8_CODE_BYTES, code) ||
		!v8_is(v, V8_MAP_CODE, v->code[0], l->type_code, l->type_code))
		return 0;
	__u64 start =
		l->code_is_inline ? code - V8_TAG + l->code_start : v8_word(v->code, l->code_start);
	v->code_position = address - start;
	return v->code_position < v8_half(v->code, l->code_bytes);
}

/* A loop that runs for long gets code of its own, which the function's feedback leads to. Searches
 * for the code with `address`, from 11 on. 1: it was found, and is in v->code. */
__noinline int v8_find_loop_code(__u64 address)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r || r->layout.v8.code_is_inline)
		return 0;
	const struct v8_layout *l = &r->layout.v8;
	__u64 cell = v8_word(v->function, l->function_feedback);
	if (v->loop_cell == cell && v8_is_in_code(l, v, v->loop_code, address))
		return 1;
	__u64 search = hash_mix(cell, address) | 1;
	volatile __u64 *vain = &v->vain[search >> 32 & (V8_VAIN_SLOTS - 1)];
	if (*vain == search)
		return 0;
	*vain = search;
	if (!v8_read(v->head, 16, cell))
		return 0;
	__u64 vector = *(const volatile __u64 *)&v->head[1];
	if (!v8_read(v->head, 16, vector))
		return 0;
	__u32 count = *(const volatile __u64 *)&v->head[1];
	for (__u32 i = 0; i < V8_FEEDBACK_MAX; i++) {
		if (i > count) /* up to 12 there is one more word before the slots */
			return 0;
		__u64 slot = runtime_word(vector - V8_TAG + V8_FEEDBACK_SLOTS + i * sizeof(slot));
		if ((slot & 3) != V8_WEAK_TAG || (__u32)slot == V8_WEAK_TAG)
			continue;
		slot &= ~2ULL;
		/* The Code, or an object that stands for it. */
		if (!v8_is_in_code(l, v, slot, address)) {
			slot = v8_word(v->code, 8);
			if (!v8_is_in_code(l, v, slot, address))
				continue;
		}
		*vain = 0;
		v->loop_cell = cell;
		v->loop_code = slot;
		return 1;
	}
	return 0;
}

/* Is the instruction at `address` in code of this JSFunction, other than code of a long loop?
 * Global: verified once. */
__noinline int v8_runs(__u64 function, __u64 address)
{
	struct walk *w = walk_here();
	struct v8_scratch *v = v8_scratch_here();
	if (!w || !v || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r || !v8_read(v->function, V8_FUNCTION_BYTES, function))
		return 0;
	const struct v8_layout *l = &r->layout.v8;
	if (!v8_is(v, V8_MAP_FUNCTION, v->function[0], l->type_function,
		    l->type_function + V8_FUNCTION_TYPES))
		return 0;
	if (v8_is_in_code(l, v, v8_code_of(w, l, v), address))
		return 1;
	if (!v8_read(v->head, 16, v8_word(v->function, l->function_shared)))
		return 0;
	return v8_is_in_code(l, v, *(const volatile __u64 *)&v->head[1], address);
}

/* Finds which code of the function in v->function is at `address`. */
static __always_inline enum v8_code_kind v8_find_code(
	const struct walk *w, const struct v8_layout *l, struct v8_scratch *v, __u64 address)
{
	if (!v8_is_in_code(l, v, v8_code_of(w, l, v), address)) {
		if (v8_is_in_code(l, v, v8_word(v->shared, V8_SHARED_DATA), address))
			return V8_CODE_PLAIN;
		if (!v8_find_loop_code(address))
			return V8_CODE_UNKNOWN;
	}
	if (!v8_read(v->deopt, V8_DEOPT_BYTES, v8_word(v->code, l->code_deopt)) ||
		v8_word(v->deopt, V8_DEOPT_LENGTH) >> V8_SMI_SHIFT < V8_DEOPT_LENGTH_LEAST ||
		v8_is(v, V8_MAP_BYTECODES, v->deopt[0], l->type_bytecodes, l->type_bytecodes) ||
		!v8_is_small(v8_word(v->deopt, V8_DEOPT_FUNCTIONS)))
		return V8_CODE_PLAIN;
	return V8_CODE_OPTIMIZED;
}

/* The number of the code in v->code, made of the function with this number; the code is sent if it
 * is new. */
static __always_inline __u64 v8_code_number(struct walk *w, const struct v8_layout *l,
	struct v8_scratch *v, __u64 function, __u64 address)
{
	__u64 number = hash_mix(function, address - v->code_position);
	number = hash_mix(number, v8_word(v->code, l->code_table));
	number = hash_mix(number, v8_word(v->code, l->code_deopt)) | FRAME_CODE_REAL;
	v->code_told.function = (function & FRAME_CODE_MASK) | FRAME_CODE_REAL;
	if (code_is_due(w, number)) {
		(void)v8_tell_inlined(0);
		(void)v8_tell_code(number);
	}
	return number;
}
