/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table: from an offset in a file to the rule in force there (the layout is in unwind/rule.h).
 *
 * No byte of a table is trusted: each index into the 64 KiB chunk is masked to lie in it, so that a
 * wrong table can cause wrong stacks, and nothing else.
 */
#pragma once

#include "maps.h"

#define CHUNK_MASK_U16 0xfffe /* a u16 at an offset with this mask lies in the chunk */
#define CHUNK_MASK_U8 0xffff
#define CHUNK_MASK_RULE 0xfff8

#define DENSE_BUCKET_SHIFT 8
#define DENSE_ROW_BYTES 2
#define DENSE_SEARCH_STEPS 9  /* at most 256 rows in a bucket */
#define SPARSE_SEARCH_STEPS 7 /* at most UNWIND_SPARSE_ROWS_MAX */
#define RULE_BYTES 8

static __always_inline __u32 chunk_u8(const __u8 *chunk, __u32 at)
{
	return *(const volatile __u8 *)(chunk + (at & CHUNK_MASK_U8));
}

static __always_inline __u32 chunk_u16(const __u8 *chunk, __u32 at)
{
	return *(const volatile __u16 *)(chunk + (at & CHUNK_MASK_U16));
}

/* Rule number `index` of the dictionary that begins at `rules`, as it lies there. */
static __always_inline __u64 chunk_rule(const __u8 *chunk, __u32 rules, __u32 index)
{
	return *(const volatile __u64 *)(chunk + ((rules + index * RULE_BYTES) & CHUNK_MASK_RULE));
}

/* Splits the word of chunk_rule(). The compiler must not know where it comes from, or it would
 * split it there and keep each part on the stack for every frame. */
static __always_inline struct unwind_rule rule_of(__u64 raw)
{
	asm volatile("" : "+r"(raw));
	return (struct unwind_rule){ .cfa = (__u8)raw,
		.fp = (__u8)(raw >> 8),
		.cfa_off = (__s16)(raw >> 16),
		.fp_off = (__s16)(raw >> 32),
		.ra_off = (__s16)(raw >> 48) };
}

/* Searches a dense blob: each bucket has the rows of 256 bytes of text, { u8 low, u8 rule }. */
static __always_inline __u64 dense_find(
	const __u8 *chunk, __u32 blob, __u32 rule_count, __u32 offset_in_page)
{
	__u32 bucket = offset_in_page >> DENSE_BUCKET_SHIFT;
	__u32 low = offset_in_page & 0xff;
	__u32 from = chunk_u16(chunk, blob + bucket * 2);
	__u32 to = chunk_u16(chunk, blob + bucket * 2 + 2);
	__u32 rules = blob + UNWIND_DENSE_HEAD_BYTES;
	__u32 rows = rules + rule_count * RULE_BYTES;
	for (int i = 0; i < DENSE_SEARCH_STEPS; i++) {
		if (from >= to)
			break;
		__u32 middle = (from + to) >> 1;
		if (chunk_u8(chunk, rows + middle * DENSE_ROW_BYTES) <= low)
			from = middle + 1;
		else
			to = middle;
	}
	/* `from` is the first row behind the offset; the row before it may be in an earlier
	 * bucket. */
	__u32 index = chunk_u8(chunk, rows + (from - 1) * DENSE_ROW_BYTES + 1);
	return chunk_rule(chunk, rules, index);
}

static __always_inline __u64 sparse_find(
	const __u8 *chunk, __u32 blob, __u32 rule_count, __u32 row_count, __u32 offset_in_page)
{
	__u32 pcs = blob + rule_count * RULE_BYTES;
	__u32 from = 0;
	__u32 to = row_count;
	for (int i = 0; i < SPARSE_SEARCH_STEPS; i++) {
		if (from >= to)
			break;
		__u32 middle = (from + to) >> 1;
		if (chunk_u16(chunk, pcs + middle * 2) <= offset_in_page)
			from = middle + 1;
		else
			to = middle;
	}
	__u32 index = chunk_u8(chunk, pcs + row_count * 2 + from - 1);
	return chunk_rule(chunk, blob, index);
}

/* For rule_of(). 0, which is UNWIND_CFA_NONE, where nothing is known. */
static __always_inline __u64 table_find(const struct mapping *m, __u64 file_offset)
{
	__u32 page = (__u32)(file_offset >> UNWIND_PAGE_SHIFT) - m->first_page;
	if (page >= m->page_count)
		return 0;
	__u32 page_index = m->page_base + page;
	const __u64 *entry = bpf_map_lookup_elem(&pages, &page_index);
	if (!entry)
		return 0;
	/* The entry must be read with one load: user space may be writing it. */
	__u64 raw = *(const volatile __u64 *)entry;
	__u32 slab_index = (raw & 0xffff) >> SLAB_CHUNK_SHIFT;
	__u32 chunk_index = raw & (SLAB_CHUNKS - 1);
	__u32 blob = ((raw >> 16) & 0xffff) * 8;
	__u32 rule_count = (raw >> 32) & 0xffff;
	__u32 row_count = raw >> 48;
	if (rule_count == 0)
		return 0;
	void *slab = bpf_map_lookup_elem(&slabs, &slab_index);
	if (!slab)
		return 0;
	const __u8 *chunk = bpf_map_lookup_elem(slab, &chunk_index);
	if (!chunk)
		return 0;
	__u32 offset_in_page = file_offset & (UNWIND_BLOB_BYTES_MAX - 1);
	return row_count ? sparse_find(chunk, blob, rule_count, row_count, offset_in_page)
			 : dense_find(chunk, blob, rule_count, offset_in_page);
}
