/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * search: the state of a search in a VMA tree (vma.h).
 */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"

/* A search in a VMA tree and its result. There are two, because a sample may interrupt an exec
 * hook. */
enum vma_search_user {
	VMA_SEARCH_SAMPLE = 0,
	VMA_SEARCH_PROCESS = 1,
	VMA_SEARCH_USERS,
};

#define STRUCT_COPY_BYTES 128

struct vma_search {
	__u64 mm;
	__u64 vma; /* the vm_area_struct that was found, and its bounds */
	__u64 start;
	__u64 end;
	__u64 busy;
	__u64 is_memory; /* the last file is in the kernel's own memory (a memfd), in no mounted
			    file system */
	__u64 entry;     /* the tree's node to read next */
	__u64 last;      /* the last address that this node covers */
	__u64 copy[STRUCT_COPY_BYTES /
		   8]; /* first a copy of the VMA that was found, then of its inode */
	__u64 node[MAPLE_NODE_WORDS]; /* a copy of the tree's node */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VMA_SEARCH_USERS);
	__type(key, __u32);
	__type(value, struct vma_search);
} vma_searches SEC(".maps");
