/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim: the kernel as the BPF program sees it, made of plain memory: maps, a task with its mm and
 * a tree of mappings, user memory, a ring. Include after agent/bpf/profiler.bpf.c, once.
 *
 * Kernel and user memory are lists of regions; a read outside of them fails as it would there.
 * Everything lives in malloc'd blocks of exact size, so that a sanitizer sees each step too far.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHIM_REGIONS_MAX 4096
#define SHIM_EVENTS_MAX 64
#define SHIM_CODES_TOLD 64 /* of pairs */

struct shim_region {
	uint64_t start;
	uint64_t bytes;
	const uint8_t *memory;
};

struct shim_map {
	void *map; /* address of the program's variable; of this structure itself for inner maps */
	uint32_t value_bytes;
	uint32_t entries;
	uint8_t *memory;
};

struct shim_file {
	struct file_key key;
	uint32_t slot;
};

struct shim_left {
	uint32_t tid;
	uint64_t time_ns;
};

static struct {
	bool has_maple_tree;
	bool has_task_pt_regs;
	bool has_typed_task;
	bool has_mm_sequence;
	bool ring_is_full;
	uint64_t ring_waiting;
	uint64_t pid_tgid;
	uint64_t clock_ns, clock_step_ns; /* how far the clock goes with each look */
	struct task_struct *task;
	struct x86_regs *task_regs;
	uint64_t kernel_stack[SAMPLE_KERNEL_FRAMES_MAX];
	uint32_t kernel_stack_count;
	struct shim_region kernel[SHIM_REGIONS_MAX];
	uint32_t kernel_count;
	struct shim_region user[SHIM_REGIONS_MAX];
	uint32_t user_count;
	uint64_t user_reads;
	void (*before_read)(uint64_t address); /* of user memory: another thread changes it */
	struct shim_file files[16];
	uint32_t file_count;
	struct shim_map inner;
	uint32_t random; /* the next random number */
	bool has_new_state;
	struct shim_left left[4]; /* the map `off_cpu`, full with so many */
	uint32_t left_count;
	uint8_t *events[SHIM_EVENTS_MAX]; /* exact size each */
	size_t event_bytes[SHIM_EVENTS_MAX];
	uint64_t event_flags[SHIM_EVENTS_MAX];
	uint32_t event_count;
} shim;

/* The maps that are arrays; `slabs` and `files` are handled apart. */
static struct shim_map shim_arrays[] = {
	{ &pages, sizeof(uint64_t), TABLE_PAGES_MAX, NULL },
	{ &file_slots, sizeof(struct file_slot), FILES_MAX, NULL },
	{ &counters, sizeof(struct bpf_counters), 1, NULL },
	{ &seen_hashes, sizeof(uint64_t), SEEN_SLOTS, NULL },
	{ &vma_searches, sizeof(struct vma_search), VMA_SEARCH_USERS, NULL },
	{ &stack_copies, sizeof(struct stack_copy), 1, NULL },
	{ &runtime_records, sizeof(struct runtime_record), RUNTIME_RECORDS_MAX, NULL },
	{ &codes_told, sizeof(uint64_t), SHIM_CODES_TOLD, NULL },
	{ &hotspot_kept_places, sizeof(struct hotspot_kept), SHIM_CODES_TOLD >> KEPT_PLACES_SHIFT,
		NULL },
	{ &go_scratches, sizeof(struct go_scratch), 1, NULL },
	{ &runtime_scratches, sizeof(struct runtime_scratch), 1, NULL },
	{ &hotspot_scratches, sizeof(struct hotspot_scratch), 1, NULL },
	{ &v8_scratches, sizeof(struct v8_scratch), 1, NULL },
	{ &thread_contexts, sizeof(struct thread_context_place), 1, NULL }, /* of WORLD_PID */
	{ &thread_context_events, sizeof(struct thread_context_event), 1, NULL },
	{ &hotspot_processes, sizeof(struct hotspot_process), CODE_PROCESSES_MAX, NULL },
	{ &walks, sizeof(struct walk), 1, NULL },
};

static void *shim_at(const struct shim_map *m, uint32_t index)
{
	return index < m->entries ? m->memory + (size_t)index * m->value_bytes : NULL;
}

static void *shim_value(void *map, uint32_t index)
{
	for (size_t i = 0; i < sizeof(shim_arrays) / sizeof(shim_arrays[0]); i++) {
		if (shim_arrays[i].map == map)
			return shim_at(&shim_arrays[i], index);
	}
	abort();
}

static struct shim_left *shim_left_find(const void *key)
{
	for (uint32_t i = 0; i < shim.left_count; i++) {
		if (memcmp(&shim.left[i].tid, key, sizeof(uint32_t)) == 0)
			return &shim.left[i];
	}
	return NULL;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags)
{
	struct shim_left *at = shim_left_find(key);
	if (map != (void *)&off_cpu || flags != BPF_ANY)
		abort();
	if (!at && shim.left_count == sizeof(shim.left) / sizeof(shim.left[0]))
		return -7; /* E2BIG */
	if (!at)
		at = &shim.left[shim.left_count++];
	memcpy(&at->tid, key, sizeof(at->tid));
	memcpy(&at->time_ns, value, sizeof(at->time_ns));
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	struct shim_left *at = shim_left_find(key);
	if (map != (void *)&off_cpu)
		abort();
	if (!at)
		return -2; /* ENOENT */
	*at = shim.left[--shim.left_count];
	return 0;
}

uint32_t bpf_get_prandom_u32(void)
{
	return shim.random;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == (void *)&off_cpu) {
		struct shim_left *at = shim_left_find(key);
		return at ? &at->time_ns : NULL;
	}
	if (map == (void *)&files) {
		for (uint32_t i = 0; i < shim.file_count; i++) {
			if (memcmp(&shim.files[i].key, key, sizeof(struct file_key)) == 0)
				return &shim.files[i].slot;
		}
		return NULL;
	}
	uint32_t index;
	memcpy(&index, key, sizeof(index));
	if (map == (void *)&thread_contexts)
		index = 0;
	if (map == (void *)&slabs)
		return index == 0 ? &shim.inner : NULL;
	if (map == (void *)&shim.inner)
		return shim_at(&shim.inner, index);
	return shim_value(map, index);
}

static long shim_read(
	const struct shim_region *regions, uint32_t count, void *out, uint32_t bytes, uint64_t from)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct shim_region *r = &regions[i];
		if (from >= r->start && from - r->start <= r->bytes &&
			bytes <= r->bytes - (from - r->start)) {
			memcpy(out, r->memory + (from - r->start), bytes);
			return 0;
		}
	}
	memset(out, 0, bytes);
	return -14; /* EFAULT */
}

long bpf_probe_read_kernel(void *out, uint32_t bytes, const void *from)
{
	return shim_read(shim.kernel, shim.kernel_count, out, bytes, (uintptr_t)from);
}

long bpf_probe_read_user(void *out, uint32_t bytes, const void *from)
{
	shim.user_reads++;
	if (shim.before_read)
		shim.before_read((uintptr_t)from);
	return shim_read(shim.user, shim.user_count, out, bytes, (uintptr_t)from);
}

long bpf_probe_read_user_str(void *out, uint32_t bytes, const void *from)
{
	char *to = out;
	for (uint32_t i = 0; i < bytes; i++) {
		if (bpf_probe_read_user(to + i, 1, (const char *)from + i) != 0)
			return -14; /* EFAULT */
		if (!to[i])
			return i + 1;
	}
	if (bytes)
		to[bytes - 1] = 0;
	return bytes;
}

uint64_t bpf_ktime_get_ns(void)
{
	shim.clock_ns += shim.clock_step_ns;
	return 1000 + shim.clock_ns;
}

uint64_t bpf_get_current_pid_tgid(void)
{
	return shim.pid_tgid;
}

uint32_t bpf_get_smp_processor_id(void)
{
	return 3;
}

uint64_t bpf_get_current_cgroup_id(void)
{
	return 77;
}

uint64_t bpf_get_current_task(void)
{
	return (uintptr_t)shim.task;
}

void *bpf_get_current_task_btf(void)
{
	return shim.task;
}

long bpf_task_pt_regs(void *task)
{
	(void)task;
	return (long)(uintptr_t)shim.task_regs;
}

long bpf_get_current_comm(void *out, uint32_t bytes)
{
	memset(out, 0, bytes);
	memcpy(out, "shim", 5);
	return 0;
}

long bpf_get_stack(void *ctx, void *out, uint32_t bytes, uint64_t flags)
{
	(void)ctx;
	(void)flags;
	uint32_t have = shim.kernel_stack_count * (uint32_t)sizeof(uint64_t);
	if (have > bytes)
		have = bytes;
	memcpy(out, shim.kernel_stack, have);
	return have;
}

long bpf_ringbuf_output(void *ring, void *data, uint64_t bytes, uint64_t flags)
{
	(void)ring;
	if (shim.ring_is_full || shim.event_count == SHIM_EVENTS_MAX)
		return -11; /* EAGAIN */
	uint8_t *copy = malloc(bytes);
	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	shim.events[shim.event_count] = copy;
	shim.event_bytes[shim.event_count] = bytes;
	shim.event_flags[shim.event_count] = flags;
	shim.event_count++;
	return 0;
}

uint64_t bpf_ringbuf_query(void *ring, uint64_t flags)
{
	(void)ring;
	return flags == BPF_RB_AVAIL_DATA ? shim.ring_waiting : 0;
}

int shim_field_exists(const char *field)
{
	if (strcmp(field, "mm_mt") == 0)
		return shim.has_maple_tree;
	if (strcmp(field, "__state") == 0)
		return shim.has_new_state;
	if (strcmp(field, "mm_lock_seq.sequence") == 0)
		return shim.has_mm_sequence;
	if (strcmp(field, "i_mtime_sec") == 0)
		return 1;
	abort();
}

/* In the shim's rb flavour, the tree's node follows the VMA. */
size_t shim_field_offset(const char *field, size_t in_shim)
{
	return strcmp(field, "vm_rb") == 0 ? sizeof(struct vm_area_struct) : in_shim;
}

int shim_helper_exists(const char *helper)
{
	if (strcmp(helper, "BPF_FUNC_task_pt_regs") == 0)
		return shim.has_task_pt_regs;
	if (strcmp(helper, "BPF_FUNC_get_current_task_btf") == 0)
		return shim.has_typed_task;
	abort();
}

/* ---- for tests ---- */

static void shim_add_kernel(const void *memory, size_t bytes)
{
	if (shim.kernel_count == SHIM_REGIONS_MAX)
		abort();
	shim.kernel[shim.kernel_count++] = (struct shim_region){ (uintptr_t)memory, bytes, memory };
}

static void shim_add_user(uint64_t at, const void *memory, size_t bytes)
{
	if (shim.user_count == SHIM_REGIONS_MAX)
		abort();
	shim.user[shim.user_count++] = (struct shim_region){ at, bytes, memory };
}

static void shim_drop_events(void)
{
	for (uint32_t i = 0; i < shim.event_count; i++)
		free(shim.events[i]);
	shim.event_count = 0;
}

static void shim_end(void)
{
	shim_drop_events();
	for (size_t i = 0; i < sizeof(shim_arrays) / sizeof(shim_arrays[0]); i++) {
		free(shim_arrays[i].memory);
		shim_arrays[i].memory = NULL;
	}
	free(shim.inner.memory);
	memset(&shim, 0, sizeof(shim));
	memset(&settings, 0, sizeof(settings));
	memset(&check, 0, sizeof(check));
}

static void shim_begin(void)
{
	memset(&shim, 0, sizeof(shim));
	for (size_t i = 0; i < sizeof(shim_arrays) / sizeof(shim_arrays[0]); i++) {
		struct shim_map *m = &shim_arrays[i];
		m->memory = calloc(m->entries, m->value_bytes);
		if (!m->memory)
			abort();
	}
	shim.inner = (struct shim_map){ &shim.inner, SLAB_CHUNK_BYTES, 2, NULL };
	shim.inner.memory = calloc(shim.inner.entries, shim.inner.value_bytes);
	if (!shim.inner.memory)
		abort();
	shim.has_maple_tree = true;
	shim.has_task_pt_regs = true;
	shim.has_mm_sequence = true;
	shim.has_typed_task = true;
	shim.has_new_state = true;
}
