/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * thread_context: the trace and the span that the interrupted thread works for, from a tracing
 * library (OpenTelemetry's thread context).
 *
 * A thread-local variable points to the record. User space finds out where the variable is in each
 * process (`thread_contexts`): at an offset from the thread pointer, or in the block of a library,
 * which a word or a pair in the library's data names. The record is sent like a function of a
 * runtime: with the first sample that has it, by its hash.
 *
 * Source: OpenTelemetry, OTEP 4947 (thread context); System V ABI, thread-local storage, "ELF
 * Handling For Thread-Local Storage" (Drepper) and "Thread-Local Storage Descriptors" (Oliva).
 */
#pragma once

#include "runtime.h"

/* By pid, as the initial pid namespace has it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREAD_CONTEXTS_MAX);
	__type(key, __u32);
	__type(value, struct thread_context_place);
} thread_contexts SEC(".maps");

/* Offset from the thread pointer to the address of the dynamic thread vector, which has the
 * libraries' blocks by number. */
#define THREAD_MODULES 8
/* The second word of a descriptor is a distance from the thread pointer if its amount is below
 * this, else an address. */
#define THREAD_STATIC_BYTES_MAX (1 << 20)

struct thread_context_event {
	__u64 words[(__builtin_offsetof(struct event_code, data) + THREAD_CONTEXT_BYTES + 7) / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_context_event);
} thread_context_events SEC(".maps");

/* The address of the variable in a library's block; 0: this thread has no such block. */
static __always_inline __u64 thread_variable(
	const struct thread_context_place *p, __u64 pointer, const __u64 pair[2])
{
	__u64 modules = runtime_word(pointer + THREAD_MODULES);
	__u64 block = modules ? runtime_word(modules + pair[0] * (p->is_musl ? 8 : 16)) : 0;
	return block && block != ~0ULL ? block + pair[1] : 0;
}

/* The address of the variable; 0: this thread has none. */
static __always_inline __u64 thread_context_at(const struct thread_context_place *p, __u64 pointer)
{
	__u64 pair[2];
	if (p->form == THREAD_CONTEXT_FIXED)
		return pointer + p->at;
	if (!read_user(pair, sizeof(pair), p->at))
		return 0;
	if (p->form == THREAD_CONTEXT_OFFSET)
		return pointer + pair[0];
	if (p->form == THREAD_CONTEXT_DESCRIPTOR) {
		if (pair[1] + THREAD_STATIC_BYTES_MAX < 2 * THREAD_STATIC_BYTES_MAX)
			return pointer + pair[1];
		if (!read_user(pair, sizeof(pair), pair[1]))
			return 0;
	}
	return thread_variable(p, pointer, pair);
}

/* Sets w->event.labels, if this thread has a context. Global: verified by itself. */
__noinline int thread_context(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct thread_context_event *s = bpf_map_lookup_elem(&thread_context_events, &zero);
	if (!w || !s || !config.walk_runtimes)
		return 0;
	__u32 pid = w->event.h.pid;
	const struct thread_context_place *p = bpf_map_lookup_elem(&thread_contexts, &pid);
	if (!p || p->process_start_ns != w->event.h.process_start_ns)
		return 0;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 at = thread_context_at(p, BPF_CORE_READ(task, thread.fsbase));
	__u64 record = at ? runtime_word(at) : 0;
	__u64 head[4]; /* 28 bytes; the rest of the last word is unused */
	head[3] = 0;
	if (!record || !read_user(head, THREAD_CONTEXT_BYTES, record) ||
		(head[3] & 0xff) != THREAD_CONTEXT_IS_VALID)
		return 0;
	__u64 number = code_number_begin(w, head[0]);
	number = hash_mix(hash_mix(number, head[1]), head[2]);
	number = (number & FRAME_CODE_MASK) | FRAME_CODE_REAL;
	w->event.labels = number;
	if (!code_is_due(w, number))
		return 0;
	struct event_code *e = (struct event_code *)s->words;
	__builtin_memset(s, 0, sizeof(*s));
	__builtin_memcpy(e->data, head, THREAD_CONTEXT_BYTES);
	e->name_unit = RUNTIME_TEXT_UTF8;
	e->file_unit = RUNTIME_TEXT_UTF8;
	e->form = RUNTIME_FORM_CONTEXT;
	e->lines_bytes = THREAD_CONTEXT_BYTES;
	code_send_as(w, RUNTIME_NONE, 0, e, number, THREAD_CONTEXT_BYTES, 256);
	return 0;
}
