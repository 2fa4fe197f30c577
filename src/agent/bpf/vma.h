/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vma: finds the mapping that an address lies in, without a lock and without state per process.
 *
 * The tree of the task's own mm is read as it stands, while another thread may change it. Nothing
 * read is trusted: the result counts only if the VMA found belongs to this mm and contains the
 * address. Nodes and VMAs are freed by RCU, so memory that was unlinked a moment ago still has its
 * old content; and every read is a probe read, which fails where there is no memory.
 */
#pragma once

#include "search.h"

#define VMA_SEARCH_ATTEMPTS 2 /* a node may be replaced while we descend */

static __always_inline struct vma_search *vma_search_at(__u32 which)
{
	return bpf_map_lookup_elem(&vma_searches, &which);
}

/* Reads a field of a kernel structure, of which `copy` has the first STRUCT_COPY_BYTES: from the
 * copy if it is there, else from the structure. Whether the copy has a field is known when the
 * program is loaded. */
#define COPY_READ(copy, from, type, field)                                                    \
	(bpf_core_field_offset(type, field) + sizeof(((type *)0)->field) <= STRUCT_COPY_BYTES \
			? ((const type *)(const void *)(copy))->field                         \
			: BPF_CORE_READ((const type *)(from), field))

/* Reads all the wanted fields at once: a read costs as much as four fields. */
static __always_inline int struct_copy(__u64 *copy, __u32 type_bytes, const void *from)
{
	__u32 bytes = type_bytes < STRUCT_COPY_BYTES ? type_bytes : STRUCT_COPY_BYTES;
	return bpf_probe_read_kernel(copy, bytes, from) == 0;
}

static __always_inline int vma_copy(struct vma_search *s, const struct vm_area_struct *vma)
{
	return struct_copy(s->copy, bpf_core_type_size(struct vm_area_struct), vma);
}

#define VMA_READ(s, vma, field) COPY_READ((s)->copy, vma, struct vm_area_struct, field)

/* Does this VMA contain `address`, and belong to our mm? Then it is the result. */
static __always_inline int vma_accept(struct vma_search *s, __u64 vma_pointer, __u64 address)
{
	const struct vm_area_struct *vma = (const struct vm_area_struct *)vma_pointer;
	if (vma_pointer <= MAPLE_RESERVED_MAX || !vma_copy(s, vma))
		return 0;
	__u64 start = VMA_READ(s, vma, vm_start);
	__u64 end = VMA_READ(s, vma, vm_end);
	if (address < start || address >= end || (__u64)VMA_READ(s, vma, vm_mm) != s->mm)
		return 0;
	s->vma = vma_pointer;
	s->start = start;
	s->end = end;
	return 1;
}

/* The slot of the first pivot at or above the address. An unused pivot is 0: the slot before the
 * end of the node reaches up to the node's own maximum (lib/maple_tree.c, mtree_range_walk). */
static __always_inline __u32 maple_slot(const __u64 *node, __u32 pivots, __u64 address)
{
	__u32 i;
	for (i = 0; i < MAPLE_RANGE64_PIVOTS; i++) {
		if (i >= pivots)
			break;
		__u64 pivot = node[1 + i];
		if (pivot >= address || (i > 0 && pivot == 0))
			break;
	}
	return i;
}

enum vma_step {
	VMA_STEP_NONE = 0,
	VMA_STEP_FOUND = 1,
	VMA_STEP_DOWN = 2, /* the next node is in s->entry */
};

static __always_inline __u32 maple_pivots(__u32 type)
{
	return type == MAPLE_ARANGE64 ? MAPLE_ARANGE64_PIVOTS : MAPLE_RANGE64_PIVOTS;
}

/* Reads the node that s->entry leads to, and returns its type. 0: it leads to no node. */
static __always_inline __u32 vma_read_node(struct vma_search *s)
{
	__u32 type = (s->entry >> MAPLE_TYPE_SHIFT) & MAPLE_TYPE_MASK;
	if (s->entry <= MAPLE_RESERVED_MAX || type < MAPLE_LEAF64 || type > MAPLE_ARANGE64)
		return 0;
	const void *node = (const void *)(s->entry & MAPLE_NODE_MASK);
	return bpf_probe_read_kernel(s->node, MAPLE_NODE_BYTES, node) ? 0 : type;
}

/* Goes down by one node of the tree. The function is global, so that the verifier checks it once,
 * and not for each depth; before Linux 5.12 such functions take only numbers. */
__noinline int vma_step_maple(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	__u32 type = s ? vma_read_node(s) : 0;
	if (!type)
		return VMA_STEP_NONE;
	__u32 pivots = maple_pivots(type);
	__u32 slot = 1 + pivots + maple_slot(s->node, pivots, address);
	s->entry = s->node[slot & (MAPLE_NODE_WORDS - 1)];
	if (type == MAPLE_LEAF64)
		return vma_accept(s, s->entry, address) ? VMA_STEP_FOUND : VMA_STEP_NONE;
	return VMA_STEP_DOWN;
}

/* Goes down by one node of the tree, on the way to the leaf of `address`, and keeps s->last.
 * Global, so that the verifier checks it once. */
__noinline int vma_leaf_step(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	__u32 type = s ? vma_read_node(s) : 0;
	if (!type)
		return VMA_STEP_NONE;
	__u32 pivots = maple_pivots(type);
	if (type == MAPLE_LEAF64)
		return VMA_STEP_FOUND;
	__u32 slot = maple_slot(s->node, pivots, address);
	__u64 pivot = s->node[(1 + slot) & (MAPLE_NODE_WORDS - 1)];
	if (slot < pivots && pivot != 0)
		s->last = pivot;
	s->entry = s->node[(1 + pivots + slot) & (MAPLE_NODE_WORDS - 1)];
	return VMA_STEP_DOWN;
}

/* Reads the leaf that covers `address` to s->node, and its last address to s->last. 0: there is no
 * such leaf. It checks by itself that the kernel has the tree: a global function is verified even
 * if it is not called, and older kernels lack the field. */
__noinline int vma_leaf(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	if (!s || !bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	struct mm_struct *mm = (struct mm_struct *)s->mm;
	s->entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	s->last = ~0ULL;
	if ((s->entry & MAPLE_ROOT_TAG_MASK) != MAPLE_ROOT_TAG_NODE)
		return 0;
	int step = VMA_STEP_DOWN;
	for (int depth = 0; depth < MAPLE_DEPTH_MAX && step == VMA_STEP_DOWN; depth++)
		step = vma_leaf_step(which, address);
	return step == VMA_STEP_FOUND;
}

static __always_inline int vma_find_maple(struct vma_search *s, __u32 which, __u64 address)
{
	struct mm_struct *mm = (struct mm_struct *)s->mm;
	s->entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	if ((s->entry & MAPLE_ROOT_TAG_MASK) != MAPLE_ROOT_TAG_NODE)
		return 0;
	for (int depth = 0; depth < MAPLE_DEPTH_MAX; depth++) {
		int step = vma_step_maple(which, address);
		if (step != VMA_STEP_DOWN)
			return step == VMA_STEP_FOUND;
	}
	return 0;
}

static __always_inline int vma_find_rb(struct vma_search *s, __u64 address)
{
	struct mm_struct___rb *mm = (struct mm_struct___rb *)s->mm;
	struct rb_node *node = BPF_CORE_READ(mm, mm_rb.rb_node);
	__u64 node_offset = bpf_core_field_offset(struct vm_area_struct___rb, vm_rb);
	for (int depth = 0; depth < RB_DEPTH_MAX; depth++) {
		if (!node)
			return 0;
		struct vm_area_struct *vma = (void *)((__u64)node - node_offset);
		if (address < BPF_CORE_READ(vma, vm_start))
			node = BPF_CORE_READ(node, rb_left);
		else if (address >= BPF_CORE_READ(vma, vm_end))
			node = BPF_CORE_READ(node, rb_right);
		else
			return vma_accept(s, (__u64)vma, address);
	}
	return 0;
}

/* Searches the VMA of `address` in the mm of vma_searches[which]. 1: it was found, and is in the
 * search. Global, as above. */
__noinline int vma_find(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	if (!s)
		return 0;
	for (int attempt = 0; attempt < VMA_SEARCH_ATTEMPTS; attempt++) {
		int found;
		if (bpf_core_field_exists(struct mm_struct, mm_mt))
			found = vma_find_maple(s, which, address);
		else
			found = vma_find_rb(s, address);
		if (found)
			return 1;
	}
	return 0;
}

static __always_inline __u64 generation_mix(__u64 h, __u64 value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

#define INODE_READ(copy, from, field) COPY_READ(copy, from, struct inode, field)

static __always_inline __u64 generation_mix_time(__u64 h, const __u64 *copy, __u64 at)
{
	if (bpf_core_field_exists(struct inode, i_mtime_sec)) {
		h = generation_mix(h, (__u64)INODE_READ(copy, at, i_mtime_sec));
		return generation_mix(h, INODE_READ(copy, at, i_mtime_nsec));
	}
	if (bpf_core_field_exists(struct inode___timespec, __i_mtime)) {
		h = generation_mix(
			h, (__u64)COPY_READ(copy, at, struct inode___timespec, __i_mtime.tv_sec));
		return generation_mix(
			h, (__u64)COPY_READ(copy, at, struct inode___timespec, __i_mtime.tv_nsec));
	}
	h = generation_mix(h, (__u64)COPY_READ(copy, at, struct inode___old, i_mtime.tv_sec));
	return generation_mix(h, (__u64)COPY_READ(copy, at, struct inode___old, i_mtime.tv_nsec));
}

/* Which file the inode is now: its number may have been reused, or the file overwritten. For a file
 * in the kernel's own memory (a memfd) a random number shows the former, and nothing shows the
 * latter, since a compiler that writes its code there changes the file's time with each page. */
static __always_inline __u32 inode_generation_of(const __u64 *copy, __u64 at, int is_memory)
{
	__u64 h = generation_mix(0, INODE_READ(copy, at, i_generation));
	if (!is_memory) {
		h = generation_mix(h, (__u64)INODE_READ(copy, at, i_size));
		h = generation_mix_time(h, copy, at);
	}
	__u32 generation = (__u32)h;
	return generation ? generation : 1;
}

static __always_inline int inode_copy(__u64 *copy, __u64 inode)
{
	return struct_copy(copy, bpf_core_type_size(struct inode), (const void *)inode);
}

/* Uses s->copy. */
static __always_inline __u32 inode_generation(struct vma_search *s, __u64 inode, int is_memory)
{
	return inode_copy(s->copy, inode) ? inode_generation_of(s->copy, inode, is_memory) : 0;
}

/* The kernel's identity of a file. The generation is returned separately: it is no part of the key.
 * Uses s->copy, and sets s->is_memory. */
static __always_inline __u64 vma_file_key(
	struct vma_search *s, const struct file *file, struct file_key *key, __u32 *generation)
{
	__u64 inode = (__u64)BPF_CORE_READ(file, f_inode);
	key->inode = 0;
	key->dev = 0;
	key->generation = 0;
	*generation = 0;
	if (!inode_copy(s->copy, inode))
		return inode;
	key->inode = INODE_READ(s->copy, inode, i_ino);
	const struct super_block *super = INODE_READ(s->copy, inode, i_sb);
	key->dev = BPF_CORE_READ(super, s_dev);
	s->is_memory = (BPF_CORE_READ(super, s_flags) & KERNEL_SB_KERNMOUNT) != 0;
	*generation = inode_generation_of(s->copy, inode, s->is_memory);
	return inode;
}

static __always_inline void vma_notice(const struct vma_search *s, const struct file_key *key,
	__u64 offset, struct file_notice *notice)
{
	notice->key = *key;
	notice->vma_start = s->start;
	notice->vma_end = s->end;
	notice->offset = offset;
}
