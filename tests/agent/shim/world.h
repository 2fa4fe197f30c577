/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world: one process for the shim: a task, its mm, files, mappings in a real tree of either kind, a
 * stack, unwind tables. Include after shim.h, once.
 */
#pragma once

#include <assert.h>

#define WORLD_VMAS_MAX 1500
#define WORLD_FILES_MAX 8
#define WORLD_STACK_WORDS 4096
#define WORLD_STACK_TOP 0x7ffd00010000ULL
#define WORLD_STACK_BASE (WORLD_STACK_TOP - WORLD_STACK_WORDS * 8)
#define WORLD_PID 4321
#define WORLD_ROWS_MAX 700

#define MM_EXEC (KERNEL_VM_EXEC | 1)
#define MM_DATA 3

/* A VMA with the node of the red-black flavour behind it (shim_field_offset). */
struct world_vma {
	struct vm_area_struct vma;
	struct rb_node rb;
};

struct world_row {
	uint32_t at; /* offset in the page */
	struct unwind_rule rule;
};

static struct {
	struct task_struct task;
	struct task_struct leader;
	struct task_struct parent;
	struct signal_struct signal;
	struct mm_struct mm;
	struct x86_regs regs;
	struct super_block super;
	struct inode inodes[WORLD_FILES_MAX];
	struct file files[WORLD_FILES_MAX];
	struct world_vma vmas[WORLD_VMAS_MAX];
	uint32_t vma_count;
	uint64_t *nodes[WORLD_VMAS_MAX];
	uint32_t node_count;
	uint64_t stack[WORLD_STACK_WORDS];
	uint32_t chunk_used;
	uint32_t pages_used;
	uint32_t slots_used;
} world;

/* ---- mappings ---- */

/* In ascending order. `file` below 0: anonymous. */
static void world_map(uint64_t start, uint64_t end, uint64_t flags, int file, uint64_t offset)
{
	assert(world.vma_count < WORLD_VMAS_MAX && start < end);
	world.vmas[world.vma_count++].vma = (struct vm_area_struct){
		.vm_start = start,
		.vm_end = end,
		.vm_mm = &world.mm,
		.vm_flags = flags,
		.vm_pgoff = offset >> KERNEL_PAGE_SHIFT,
		.vm_file = file < 0 ? NULL : &world.files[file],
	};
}

struct world_range {
	uint64_t last;  /* of the range, inclusive */
	uint64_t entry; /* VMA, node or 0 */
};

static uint64_t world_node(int type, const struct world_range *r, uint32_t count)
{
	uint32_t pivots = type == MAPLE_ARANGE64 ? MAPLE_ARANGE64_PIVOTS : MAPLE_RANGE64_PIVOTS;
	assert(count <= pivots + 1);
	uint64_t *node = aligned_alloc(MAPLE_NODE_BYTES, MAPLE_NODE_BYTES);
	assert(node && world.node_count < WORLD_VMAS_MAX);
	world.nodes[world.node_count++] = node;
	memset(node, 0, MAPLE_NODE_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		/* As in the kernel: the last range ends where its parent says, its pivot is unset
		 * unless it is the only one. */
		if (i < pivots && (i + 1 < count || i == 0))
			node[1 + i] = r[i].last;
		node[1 + pivots + i] = r[i].entry;
	}
	shim_add_kernel(node, MAPLE_NODE_BYTES);
	return (uintptr_t)node | ((uint64_t)type << MAPLE_TYPE_SHIFT) | 4;
}

/* Nodes of `fill` ranges each over `count` of them; the new level replaces them. */
static uint32_t world_level(int type, struct world_range *r, uint32_t count, uint32_t fill)
{
	uint32_t out = 0;
	for (uint32_t i = 0; i < count; i += fill) {
		uint32_t n = count - i < fill ? count - i : fill;
		uint64_t last = r[i + n - 1].last;
		uint64_t node = world_node(type, r + i, n);
		r[out++] = (struct world_range){ last, node };
	}
	return out;
}

static void world_build_maple(uint32_t fill)
{
	static struct world_range ranges[2 * WORLD_VMAS_MAX + 1];
	uint32_t n = 0;
	uint64_t next = 0;
	for (uint32_t i = 0; i < world.vma_count; i++) {
		struct vm_area_struct *v = &world.vmas[i].vma;
		if (v->vm_start > next)
			ranges[n++] = (struct world_range){ v->vm_start - 1, 0 };
		ranges[n++] = (struct world_range){ v->vm_end - 1, (uintptr_t)v };
		next = v->vm_end;
	}
	ranges[n++] = (struct world_range){ UINT64_MAX, 0 };
	n = world_level(MAPLE_LEAF64, ranges, n, fill);
	while (n > 1)
		n = world_level(MAPLE_ARANGE64, ranges, n, fill > 10 ? 10 : fill);
	world.mm.mm_mt.ma_root = (void *)((ranges[0].entry & ~4ULL) | MAPLE_ROOT_TAG_NODE);
}

static struct rb_node *world_build_rb(uint32_t from, uint32_t to)
{
	if (from >= to)
		return NULL;
	uint32_t middle = (from + to) / 2;
	struct rb_node *node = &world.vmas[middle].rb;
	node->rb_left = world_build_rb(from, middle);
	node->rb_right = world_build_rb(middle + 1, to);
	return node;
}

/* The tree of all mappings, of the kind that shim.has_maple_tree says. */
static void world_build_tree(uint32_t fill)
{
	if (shim.has_maple_tree) {
		world_build_maple(fill);
	} else {
		/* mm_struct___rb.mm_rb and mm_struct.mm_mt are the same first word here. */
		world.mm.mm_mt.ma_root = world_build_rb(0, world.vma_count);
	}
}

/* ---- tables ---- */

static bool world_same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Write a page's blob as rule.h says, dense or sparse; rows ascending, the first one at 0. */
static struct unwind_page world_blob(const struct world_row *rows, uint32_t count, bool dense)
{
	static struct unwind_rule rules[UNWIND_RULES_MAX];
	static uint8_t rule_of[WORLD_ROWS_MAX];
	uint32_t rule_count = 0;
	assert(count > 0 && count <= WORLD_ROWS_MAX && rows[0].at == 0);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = 0;
		while (k < rule_count && !world_same_rule(&rules[k], &rows[i].rule))
			k++;
		if (k == rule_count) {
			assert(rule_count < UNWIND_RULES_MAX);
			rules[rule_count++] = rows[i].rule;
		}
		rule_of[i] = (uint8_t)k;
	}
	struct unwind_page page = { 0, (uint16_t)(world.chunk_used / 8), (uint16_t)rule_count,
		(uint16_t)(dense ? 0 : count) };
	uint8_t *to = shim.inner.memory + world.chunk_used;
	uint8_t *begin = to;
	if (dense) {
		uint16_t start[UNWIND_DENSE_STARTS] = { 0 };
		for (uint32_t b = 0, row = 0; b < UNWIND_DENSE_STARTS; b++) {
			while (row < count && rows[row].at >> 8 < b)
				row++;
			start[b] = (uint16_t)row;
		}
		memcpy(to, start, sizeof(start));
		to += UNWIND_DENSE_HEAD_BYTES;
	}
	memcpy(to, rules, rule_count * sizeof(rules[0]));
	to += rule_count * sizeof(rules[0]);
	for (uint32_t i = 0; i < count; i++) {
		if (dense) {
			*to++ = (uint8_t)rows[i].at;
			*to++ = rule_of[i];
		} else {
			uint16_t at = (uint16_t)rows[i].at;
			memcpy(to, &at, sizeof(at));
			to += sizeof(at);
		}
	}
	for (uint32_t i = 0; !dense && i < count; i++)
		*to++ = rule_of[i];
	world.chunk_used += ((uint32_t)(to - begin) + 7) & ~7u;
	assert(world.chunk_used <= SLAB_CHUNK_BYTES);
	return page;
}

static struct file_slot *world_slot(uint32_t index)
{
	uint32_t i = index;
	return bpf_map_lookup_elem(&file_slots, &i);
}

/* Make world.files[file] known by `file_id` with one page of rows (none: no table). */
static struct file_slot *world_publish(int file, uint32_t file_id, uint32_t first_page,
	const struct world_row *rows, uint32_t count, bool dense)
{
	struct file_slot *slot = world_slot(++world.slots_used);
	*slot = (struct file_slot){ .value = { .file_id = file_id }, .is_live = 1 };
	if (count > 0) {
		struct unwind_page page = world_blob(rows, count, dense);
		uint32_t index = world.pages_used++;
		memcpy(bpf_map_lookup_elem(&pages, &index), &page, sizeof(page));
		slot->value.page_base = index;
		slot->value.page_count = 1;
		slot->value.first_page = first_page;
	}
	if (file_id == FRAME_FILE_VDSO) {
		settings.vdso_slot = world.slots_used;
		return slot;
	}
	slot->key.inode = world.inodes[file].i_ino;
	slot->key.dev = world.super.s_dev;
	assert(shim.file_count < 16);
	shim.files[shim.file_count++] = (struct shim_file){ slot->key, world.slots_used };
	return slot;
}

/* ---- the process ---- */

static void world_end(void)
{
	for (uint32_t i = 0; i < world.node_count; i++)
		free(world.nodes[i]);
	memset(&world, 0, sizeof(world));
	memset(&config, 0, sizeof(config));
	shim_end();
}

/* A user process, interrupted in user mode, without mappings. */
static void world_begin(void)
{
	memset(&world, 0, sizeof(world));
	shim_begin();
	world.super.s_dev = (8 << 20) | 1;
	for (uint32_t i = 0; i < WORLD_FILES_MAX; i++) {
		world.inodes[i] = (struct inode){ 1000 + i, &world.super, 50 + i };
		world.files[i] = (struct file){ &world.inodes[i] };
	}
	world.leader.start_boottime = 123456789;
	world.parent.tgid = 99;
	world.task = (struct task_struct){
		.mm = &world.mm,
		.pid = WORLD_PID,
		.tgid = WORLD_PID,
		.group_leader = &world.leader,
		.real_parent = &world.parent,
		.signal = &world.signal,
	};
	world.mm.start_stack = WORLD_STACK_TOP - 256;
	shim.task = &world.task;
	shim.task_regs = &world.regs;
	shim.pid_tgid = (uint64_t)WORLD_PID << 32 | WORLD_PID;
	shim_add_kernel(&world, sizeof(world));
	shim_add_user(WORLD_STACK_BASE, world.stack, sizeof(world.stack));
	settings.seen_enabled = 1;
	config.hash_seed = 7;
	config.wake_bytes = 1000;
	config.seen_mask = SEEN_SLOTS - 1;
	config.codes_mask = SHIM_CODES_TOLD - 1;
	config.walk_runtimes = 1;
	config.stack_interval_ns = STACK_INTERVAL_NS;
}

/* The word of the stack at a user address. */
static uint64_t *world_word(uint64_t at)
{
	assert(at >= WORLD_STACK_BASE && at < WORLD_STACK_TOP && at % 8 == 0);
	return &world.stack[(at - WORLD_STACK_BASE) / 8];
}

/* Take a sample in user mode; the event it sent, NULL when it sent none. */
static const struct event_sample *world_sample_at(const struct x86_regs *regs)
{
	struct bpf_perf_event_data *ctx = calloc(1, sizeof(*ctx));
	assert(ctx);
	ctx->regs = *regs;
	uint32_t before = shim.event_count;
	(void)sample_cpu(ctx);
	free(ctx);
	return shim.event_count > before ? (const struct event_sample *)(const void *)
						   shim.events[shim.event_count - 1]
					 : NULL;
}

static const struct event_sample *world_sample(uint64_t ip, uint64_t sp, uint64_t bp)
{
	const struct x86_regs regs = { .ip = ip, .sp = sp, .bp = bp, .cs = 0x33 };
	return world_sample_at(&regs);
}

/* The same in kernel mode, with the user's registers saved. */
static const struct event_sample *world_sample_in_kernel(const struct x86_regs *saved)
{
	struct bpf_perf_event_data *ctx = calloc(1, sizeof(*ctx));
	assert(ctx);
	ctx->regs = (struct x86_regs){ .ip = 0xffffffff81000000, .cs = 0x10 };
	world.regs = *saved;
	uint32_t before = shim.event_count;
	(void)sample_cpu(ctx);
	free(ctx);
	return shim.event_count > before ? (const struct event_sample *)(const void *)
						   shim.events[shim.event_count - 1]
					 : NULL;
}
