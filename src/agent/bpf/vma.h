/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vma: from an address to the mapping it lies in, without a lock and without state per process.
 *
 * The tree of the task's own mm is read as it stands, while another thread may change it. Nothing
 * read is trusted: the result counts only if the VMA found belongs to this mm and contains the
 * address. Nodes and VMAs are freed by RCU, so memory that was unlinked a moment ago still has its
 * old content; and every read is a probe read, which fails where there is no memory.
 */
#pragma once

#include "maps.h"

#define VMA_SEARCH_ATTEMPTS 2 /* a node may be replaced while we descend */

static __always_inline struct vma_search *vma_search_at(__u32 which)
{
	return bpf_map_lookup_elem(&vma_searches, &which);
}

/* Does this VMA hold `address`, and is it of our mm? Then it is the result. */
static __always_inline int vma_accept(struct vma_search *s, __u64 vma_pointer, __u64 address)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)vma_pointer;
	if (vma_pointer <= MAPLE_RESERVED_MAX)
		return 0;
	__u64 start = BPF_CORE_READ(vma, vm_start);
	__u64 end = BPF_CORE_READ(vma, vm_end);
	if (address < start || address >= end || (__u64)BPF_CORE_READ(vma, vm_mm) != s->mm)
		return 0;
	s->vma = vma_pointer;
	s->start = start;
	s->end = end;
	return 1;
}

/* Slot of the first pivot at or above the address. An unused pivot is 0: the slot before the
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

/* One node of the tree. A global function, so that it is verified once, and not for each depth;
 * those take only numbers before Linux 5.12. */
__noinline int vma_step_maple(__u32 which, __u64 address)
{
	struct vma_search *s = vma_search_at(which);
	if (!s || s->entry <= MAPLE_RESERVED_MAX)
		return VMA_STEP_NONE;
	__u32 type = (s->entry >> MAPLE_TYPE_SHIFT) & MAPLE_TYPE_MASK;
	__u32 pivots = type == MAPLE_ARANGE64 ? MAPLE_ARANGE64_PIVOTS : MAPLE_RANGE64_PIVOTS;
	if (type < MAPLE_LEAF64 || type > MAPLE_ARANGE64)
		return VMA_STEP_NONE;
	if (bpf_probe_read_kernel(
		    s->node, MAPLE_NODE_BYTES, (const void *)(s->entry & MAPLE_NODE_MASK)))
		return VMA_STEP_NONE;
	__u32 slot = 1 + pivots + maple_slot(s->node, pivots, address);
	s->entry = s->node[slot & (MAPLE_NODE_WORDS - 1)];
	if (type == MAPLE_LEAF64)
		return vma_accept(s, s->entry, address) ? VMA_STEP_FOUND : VMA_STEP_NONE;
	return VMA_STEP_DOWN;
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

/* 1 when vma_searches[which] (whose mm is set) holds the VMA of `address`. Global as above. */
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

/* Whose the inode is now: its number may have been given again, and a file written over. */
static __always_inline __u32 inode_generation(const struct inode *inode)
{
	__u64 h = generation_mix(
		BPF_CORE_READ(inode, i_generation), (__u64)BPF_CORE_READ(inode, i_size));
	const struct inode___timespec *named = (const void *)inode;
	const struct inode___old *old = (const void *)inode;
	if (bpf_core_field_exists(struct inode, i_mtime_sec)) {
		h = generation_mix(h, (__u64)BPF_CORE_READ(inode, i_mtime_sec));
		h = generation_mix(h, BPF_CORE_READ(inode, i_mtime_nsec));
	} else if (bpf_core_field_exists(struct inode___timespec, __i_mtime)) {
		h = generation_mix(h, (__u64)BPF_CORE_READ(named, __i_mtime.tv_sec));
		h = generation_mix(h, (__u64)BPF_CORE_READ(named, __i_mtime.tv_nsec));
	} else {
		h = generation_mix(h, (__u64)BPF_CORE_READ(old, i_mtime.tv_sec));
		h = generation_mix(h, (__u64)BPF_CORE_READ(old, i_mtime.tv_nsec));
	}
	__u32 generation = (__u32)h;
	return generation ? generation : 1;
}

/* The kernel's identity of the file behind a VMA. 0: it has none. The generation is returned
 * apart: it is no part of the key. */
static __always_inline int vma_file_key(
	const struct vm_area_struct *vma, struct file_key *key, __u32 *generation)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->generation = 0;
	*generation = inode_generation(inode);
	return 1;
}

static __always_inline void vma_notice(
	const struct vma_search *s, const struct file_key *key, struct file_notice *notice)
{
	const struct vm_area_struct *vma = (const struct vm_area_struct *)s->vma;
	notice->key = *key;
	notice->vma_start = s->start;
	notice->vma_end = s->end;
	notice->offset = (__u64)BPF_CORE_READ(vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
}
