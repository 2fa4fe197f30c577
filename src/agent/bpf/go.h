/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go: the labels of the goroutine that was interrupted (runtime/pprof: Do, SetGoroutineLabels).
 *
 * A thread's g is that of the running goroutine, or the scheduler's; from either one m leads to the
 * goroutine. In Go's own code g is in r14, too. The goroutine's labels are a slice of pairs of
 * strings from Go 1.24 on, and a map before. The texts are copied, and their hash is the number of
 * the set. The set is sent like a function of a runtime, before the first sample that has it.
 */
#pragma once

#include "runtime.h"

/* struct g, struct m */
#define GO_G_M 48
#define GO_M_G0 0
/* A string is an address and a length. */
#define GO_STRING_BYTES 16
/* runtime.hmap, a map to 1.23: buckets of 8, each with a byte for each key, the keys, the values.
 */
#define GO_MAP_BUCKETS_LOG2 9
#define GO_MAP_BUCKETS 16
#define GO_MAP_BYTES 24
#define GO_BUCKET_BYTES 272
#define GO_BUCKET_KEYS 8
#define GO_BUCKET_VALUES 136
#define GO_BUCKET_TOP_LEAST 5 /* smaller values say that there is no key */
#define GO_BUCKETS_MAX 4

#define GO_LABEL_WORDS (sizeof(struct runtime_label) / 8)
#define GO_EVENT_BYTES 2048 /* room for all labels; a power of two */
#define GO_EVENT_HEAD __builtin_offsetof(struct event_code, data)

/* Slots for labels. It is a power of two, for verifiers that forget the bounds of a number that is
 * kept on the stack. */
#define GO_LABEL_SLOTS 16

struct go_scratch {
	__u64 count;
	__u64 event[(GO_EVENT_HEAD + GO_LABEL_SLOTS * sizeof(struct runtime_label) + 7) / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct go_scratch);
} go_scratches SEC(".maps");

static __always_inline struct go_scratch *go_scratch_here(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&go_scratches, &zero);
}

/* Adds a label, from the addresses of its two strings. 0: there is no room. */
__noinline int go_add_label(__u64 key, __u64 value)
{
	struct go_scratch *s = go_scratch_here();
	__u64 strings[2];
	if (!s || !config.walk_runtimes || s->count >= RUNTIME_LABELS_MAX)
		return 0;
	__u64 i = *(const volatile __u64 *)&s->count;
	if (i >= RUNTIME_LABELS_MAX)
		return 0;
	struct runtime_label *l = (struct runtime_label *)((__u8 *)s->event + GO_EVENT_HEAD +
							   bounded(i, GO_LABEL_SLOTS) * sizeof(*l));
	__builtin_memset(l, 0, sizeof(*l));
	if (!read_user(strings, sizeof(strings), key) || !strings[1])
		return 1;
	__u64 bytes = strings[1] > sizeof(l->key) ? sizeof(l->key) : strings[1];
	if (!read_user(l->key, bounded(bytes, 64), strings[0]))
		return 1;
	l->key_bytes = bytes;
	if (!read_user(strings, sizeof(strings), value) || !strings[1])
		return 1;
	bytes = strings[1] > sizeof(l->value) ? sizeof(l->value) : strings[1];
	if (!read_user(l->value, bounded(bytes, 128), strings[0]))
		return 1;
	l->value_bytes = bytes;
	s->count = i + 1;
	return 1;
}

static __always_inline void go_add_slice(__u64 labels)
{
	__u64 slice[2];
	if (!read_user(slice, sizeof(slice), labels))
		return;
	for (__u32 i = 0; i < RUNTIME_LABELS_MAX; i++) {
		__u64 at = slice[0] + i * 2 * GO_STRING_BYTES;
		if (i >= slice[1] || !go_add_label(at, at + GO_STRING_BYTES))
			return;
	}
}

/* Adds the labels in a bucket of a map. */
__noinline int go_add_bucket(__u64 at)
{
	__u64 tops = runtime_word(at);
	if (!config.walk_runtimes)
		return 0;
	for (__u32 i = 0; i < 8; i++) {
		if ((tops >> i * 8 & 0xff) < GO_BUCKET_TOP_LEAST)
			continue;
		if (!go_add_label(at + GO_BUCKET_KEYS + i * GO_STRING_BYTES,
			    at + GO_BUCKET_VALUES + i * GO_STRING_BYTES))
			return 0;
	}
	return 1;
}

static __always_inline void go_add_map(__u64 labels)
{
	__u64 map[GO_MAP_BYTES / 8];
	__u64 at = runtime_word(labels);
	if (!at || !read_user(map, sizeof(map), at) || !map[0])
		return;
	__u32 log2 = map[GO_MAP_BUCKETS_LOG2 / 8] >> GO_MAP_BUCKETS_LOG2 % 8 * 8 & 0xff;
	for (__u32 i = 0; i < GO_BUCKETS_MAX; i++) {
		if ((log2 < 2 && i >> log2) ||
			!go_add_bucket(map[GO_MAP_BUCKETS / 8] + i * GO_BUCKET_BYTES))
			return;
	}
}

/* The goroutine that runs on this thread; 0: none does, or `g` is no g. */
static __always_inline __u64 go_current(const struct go_layout *l, __u64 g)
{
	__u64 m = g ? runtime_word(g + GO_G_M) : 0;
	__u64 current = m ? runtime_word(m + l->m_curg) : 0;
	return current == g || (m && runtime_word(m + GO_M_G0) == g) ? current : 0;
}

static __always_inline __u64 go_goroutine(const struct walk *w, const struct go_layout *l)
{
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 pointer = BPF_CORE_READ(task, thread.fsbase);
	__u64 found = l->g_at ? go_current(l, runtime_word(pointer + l->g_at)) : 0;
	return found ? found : go_current(l, w->go_g);
}

/* Sends the collected labels, unless they were sent before. */
static __always_inline void go_tell(
	struct walk *w, const struct runtime_record *r, struct go_scratch *s, __u64 count)
{
	struct event_code *e = (struct event_code *)s->event;
	__u64 number = code_number_begin(w, count);
	for (__u32 i = 0; i < RUNTIME_LABELS_MAX * GO_LABEL_WORDS; i++) {
		if (i >= count * GO_LABEL_WORDS)
			break;
		__u64 word;
		__builtin_memcpy(&word, (const __u8 *)e + GO_EVENT_HEAD + i * 8, sizeof(word));
		number = hash_mix(number, word);
	}
	number = (number & FRAME_CODE_MASK) | FRAME_CODE_REAL;
	w->event.labels = number;
	if (!code_is_due(w, number))
		return;
	__builtin_memset(e, 0, GO_EVENT_HEAD);
	e->name_unit = RUNTIME_TEXT_UTF8;
	e->file_unit = RUNTIME_TEXT_UTF8;
	e->lines_bytes = count * sizeof(struct runtime_label);
	code_send(w, r, e, number, e->lines_bytes, GO_EVENT_BYTES);
}

/* Sets w->event.labels to the goroutine's labels. Global: verified by itself. */
__noinline int go_labels(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct go_scratch *s = go_scratch_here();
	if (!w || !s || !config.walk_runtimes)
		return 0;
	__u32 index = w->go_record - 1;
	const struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &index);
	if (!r)
		return 0;
	__u64 goroutine = go_goroutine(w, &r->layout.go);
	__u64 labels = goroutine ? runtime_word(goroutine + r->layout.go.g_labels) : 0;
	s->count = 0;
	if (!labels)
		return 0;
	if (r->layout.go.is_slice)
		go_add_slice(labels);
	else
		go_add_map(labels);
	__u64 count = *(const volatile __u64 *)&s->count;
	if (count && count <= RUNTIME_LABELS_MAX)
		go_tell(w, r, s, count);
	return 0;
}
