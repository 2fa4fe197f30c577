/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * runtime: what the walks of all language runtimes have in common: they record frames and gaps, and
 * send functions to user space before the first sample that has them.
 *
 * A function's number is a hash of its address and of its contents, so that another function in the
 * same memory has another number. The name is sent in the interrupt that found the function, since
 * the process certainly exists then.
 */
#pragma once

#include "maps.h"

/* Where structures of a process are read to. */
#define RUNTIME_BLOCK_WORDS 32 /* power of two */
#define RUNTIME_CODE_WORDS 24

struct runtime_scratch {
	__u64 block[RUNTIME_BLOCK_WORDS];
	__u64 code[RUNTIME_CODE_WORDS];
	__u64 thread; /* the thread read last in the list of threads, and the list */
	__u64 threads_of;
	__u64 thread_pointer;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runtime_scratch);
} runtime_scratches SEC(".maps");

static __always_inline struct runtime_scratch *runtime_scratch_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&runtime_scratches, &zero);
}

static __always_inline const struct runtime_record *runtime_record_of(const struct walk *w)
{
	__u32 index = w->runtime.record - 1;
	return bpf_map_lookup_elem(&runtime_records, &index);
}

/* A word of the process' memory; 0: it is zero, or cannot be read. */
static __always_inline __u64 runtime_word(__u64 address)
{
	__u64 word = 0;
	(void)read_user(&word, sizeof(word), address);
	return word;
}

/* The word at an offset of what was read; 0 behind its end. */
static __always_inline __u64 block_word(const __u64 *block, __u32 words, __u32 offset)
{
	__u32 i = offset / 8;
	if (i >= words)
		return 0;
	return *(const volatile __u64 *)&block[i & (RUNTIME_BLOCK_WORDS - 1)];
}

static __always_inline __u32 block_half(const __u64 *block, __u32 words, __u32 offset)
{
	__u64 word = block_word(block, words, offset);
	return offset & 4 ? word >> 32 : (__u32)word;
}

static __always_inline __u32 block_byte(const __u64 *block, __u32 words, __u32 offset)
{
	return block_word(block, words, offset) >> (offset & 7) * 8 & 0xff;
}

/* A length that is known to be below `limit`, a power of two, masked for Linux 5.10's verifier. The
 * compiler must not know the bound, or it removes the mask. */
static __always_inline __u64 bounded(__u64 length, __u64 limit)
{
	asm volatile("" : "+r"(length));
	return length & (limit - 1);
}

/* Is the byte at `offset` of the file in the interpreter's loop, or in its cold part? */
static __always_inline int is_in_loop(const __u32 loop[4], __u64 offset)
{
	return (offset >= loop[0] && offset < loop[1]) || (offset >= loop[2] && offset < loop[3]);
}

/* ---- frames ---- */

/* Records a frame of any kind. A step may record several: those beyond the limit are left out, and
 * the next step says so (STACK_END_DEPTH). */
static __always_inline void runtime_record_native(struct walk *w, __u64 frame)
{
	__u32 at = w->kernel_count + w->user_count;
	if (w->user_count >= SAMPLE_USER_FRAMES_MAX || at >= SAMPLE_FRAMES_MAX)
		return;
	w->frames[at] = frame;
	w->user_count++;
	w->hash = hash_mix(w->hash, frame);
}

static __always_inline void runtime_record_word(struct walk *w, __u64 code, __u64 position)
{
	runtime_record_native(
		w, FRAME_RUNTIME | (code & FRAME_CODE_MASK) << FRAME_CODE_SHIFT | position);
}

static __always_inline void runtime_record_frame(struct walk *w, __u64 code, __u64 position)
{
	if (position > FRAME_POSITION_NONE)
		position = FRAME_POSITION_NONE;
	runtime_record_word(w, code | FRAME_CODE_REAL, position);
	w->runtime.count++;
}

/* Records that frames are missing here. */
static __always_inline void runtime_record_gap(
	struct walk *w, const struct runtime_record *r, enum runtime_gap why)
{
	runtime_record_word(w, (__u64)r->kind << 16 | r->version, why);
}

/* ---- functions ---- */

static __always_inline __u64 code_number_begin(const struct walk *w, __u64 address)
{
	__u64 process = hash_mix(config.hash_seed, w->event.h.pid);
	return hash_mix(hash_mix(process, w->event.h.process_start_ns), address);
}

static __always_inline __u64 *codes_told_pair(__u64 number)
{
	__u32 pair = number & config.codes_mask;
	return bpf_map_lookup_elem(&codes_told, &pair);
}

static __always_inline __u32 code_mark(__u64 number)
{
	return hash_mix(number, settings.codes_epoch) >> 32;
}

static __always_inline int code_is_told(__u64 number)
{
	const __u64 *pair = codes_told_pair(number);
	if (!pair)
		return 1;
	__u64 marks = *(const volatile __u64 *)pair;
	__u32 mark = code_mark(number);
	return (__u32)marks == mark || marks >> 32 == mark;
}

/* Must this function still be sent, and may this sample send it? */
static __always_inline int code_is_due(const struct walk *w, __u64 number)
{
	struct bpf_counters *c = counters_here();
	if (!c || code_is_told(number))
		return 0;
	if (w->runtime.code_bytes < CODE_BYTES_OF_SAMPLE_MAX)
		return 1;
	c->codes_put_off++;
	return 0;
}

/* Memory for an event, which code_end() or code_drop() gives back; NULL: another CPU uses it. */
static __always_inline struct event_code *code_begin(void)
{
	struct stack_copy *copy = stack_copy_here();
	struct bpf_counters *c = counters_here();
	if (!copy || !c)
		return NULL;
	if (stack_copy_enter(copy)) {
		struct event_code *e = (struct event_code *)copy->event.stack;
		e->name_bytes = 0;
		e->file_bytes = 0;
		e->lines_bytes = 0;
		e->name_unit = RUNTIME_TEXT_UTF8;
		e->file_unit = RUNTIME_TEXT_UTF8;
		e->owner_bytes = 0;
		e->form = RUNTIME_FORM_NAMED;
		e->first_line = 0;
		return e;
	}
	stack_copy_leave(copy);
	c->codes_put_off++;
	return NULL;
}

/* Gives the memory back without sending, if the name could not be read (in a page that the process
 * has not touched yet, for example). A later sample sends the function. */
static __always_inline void code_drop(void)
{
	struct stack_copy *copy = stack_copy_here();
	struct bpf_counters *c = counters_here();
	if (!copy || !c)
		return;
	stack_copy_leave(copy);
	c->codes_put_off++;
}

/* Copies `length` bytes of the process to data[at], at most `max` (a constant below 1,024); returns
 * how many. 0: there are none, or they cannot be read. */
static __always_inline __u32 code_copy(
	struct event_code *e, __u32 at, __u64 from, __u64 length, __u32 max)
{
	__u64 bytes = length > max ? max : length;
	if (bytes == 0 || at >= 1024)
		return 0;
	return read_user(&e->data[bounded(at, 1024)], bounded(bytes, 1024), from) ? bytes : 0;
}

/* The same for a text that ends with a zero byte. */
static __always_inline __u32 code_copy_string(struct event_code *e, __u32 at, __u64 from, __u32 max)
{
	if (!from || at >= 1024)
		return 0;
	long bytes = bpf_probe_read_user_str(&e->data[bounded(at, 1024)], max, (const void *)from);
	return bytes > 1 && bytes <= max ? bytes - 1 : 0;
}

/* Sends the event, with `bytes` of data; all of it must be shorter than `limit` bytes, a power of
 * two. */
static __always_inline void code_send_as(struct walk *w, __u16 kind, __u16 version,
	struct event_code *e, __u64 number, __u32 bytes, __u64 limit)
{
	struct bpf_counters *c = counters_here();
	__u64 *pair = codes_told_pair(number);
	if (!c || !pair)
		return;
	e->type = EVENT_CODE;
	e->kind = kind;
	e->version = version;
	e->pid = w->event.h.pid;
	e->process_start_ns = w->event.h.process_start_ns;
	e->code = (number & FRAME_CODE_MASK) | FRAME_CODE_REAL;
	__u64 size = __builtin_offsetof(struct event_code, data) + bytes;
	w->runtime.code_bytes += size;
	if (bpf_ringbuf_output(&events, e, bounded(size, limit), BPF_RB_NO_WAKEUP)) {
		c->codes_lost++;
		return;
	}
	c->codes++;
	*pair = *(const volatile __u64 *)pair << 32 | code_mark(number);
}

static __always_inline void code_send(struct walk *w, const struct runtime_record *r,
	struct event_code *e, __u64 number, __u32 bytes, __u64 limit)
{
	code_send_as(w, r->kind, r->version, e, number, bytes, limit);
}

/* Has a function sent again later, since something that belongs to it was not sent yet. */
static __always_inline void code_again(__u64 number)
{
	__u64 *pair = codes_told_pair(number);
	if (pair && (__u32) * (const volatile __u64 *)pair == code_mark(number))
		*pair = *(const volatile __u64 *)pair >> 32;
}

/* Sends the function; `bytes` bytes of texts are in place. */
static __always_inline void code_end(struct walk *w, const struct runtime_record *r,
	struct event_code *e, __u64 number, __u32 bytes)
{
	struct stack_copy *copy = stack_copy_here();
	if (!copy)
		return;
	if (bytes > sizeof(e->data))
		bytes = sizeof(e->data);
	code_send(w, r, e, number, bytes, 8192);
	stack_copy_leave(copy);
}
