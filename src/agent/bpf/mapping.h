/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mapping: finds the executable mapping that an address lies in, its file and its unwind table.
 *
 * The result is kept on this CPU, for the next sample too (Linux 6.13, mm_lock_seq): a search in
 * the tree and for the file costs as much as ten frames. Only what changes together with the
 * kernel's own structures is kept: bounds, the file, the offset. Each sample checks everything else
 * again: whether the slot is still this file's (is_live; a slot is not reused while a program that
 * saw it runs), and whether the file was overwritten.
 */
#pragma once

#include "maps.h"
#include "vma.h"

static __always_inline void mapping_use_slot(struct mapping *m, struct file_slot *slot)
{
	m->page_base = slot->value.page_base;
	m->page_count = slot->value.page_count;
	m->first_page = slot->value.first_page;
	m->runtime = slot->value.runtime;
	slot->hits++;
}

/* Finds the slot of a file. NULL: user space has not published it, or has published only an earlier
 * file with the same inode number. `key` has no generation. */
static __always_inline struct file_slot *file_slot_find(
	const struct file_key *key, __u32 generation, __u32 *out_index)
{
	const __u32 *index = bpf_map_lookup_elem(&files, key);
	if (!index)
		return NULL;
	__u32 i = *(const volatile __u32 *)index;
	*out_index = i;
	struct file_slot *slot = bpf_map_lookup_elem(&file_slots, &i);
	if (!slot || slot->key.inode != key->inode || slot->key.dev != key->dev)
		return NULL;
	if (slot->key.generation == 0)
		slot->key.generation = generation;
	else if (slot->key.generation != generation)
		return NULL;
	return slot;
}

static __always_inline void mapping_bind_vdso(struct mapping *m)
{
	m->kind = MAPPING_VDSO;
	m->file_id = FRAME_FILE_VDSO;
	m->page_count = 0;
	__u32 index = settings.vdso_slot;
	struct file_slot *slot = bpf_map_lookup_elem(&file_slots, &index);
	if (index && slot)
		mapping_use_slot(m, slot);
}

static __always_inline void mapping_bind(struct walk *w, struct vma_search *s, struct mapping *m)
{
	const struct vm_area_struct *vma = (const struct vm_area_struct *)s->vma;
	const struct file *file = VMA_READ(s, vma, vm_file);
	__u64 offset = (__u64)VMA_READ(s, vma, vm_pgoff) << KERNEL_PAGE_SHIFT;
	struct file_key key;
	__u32 generation = 0;
	if (!file) {
		if (w->vdso && s->start == w->vdso)
			mapping_bind_vdso(m);
		return;
	}
	m->inode = vma_file_key(s, file, &key, &generation);
	m->is_memory = s->is_memory;
	struct file_slot *slot = file_slot_find(&key, generation, &m->slot);
	key.generation = generation;
	if (!slot) {
		m->kind = MAPPING_UNKNOWN_FILE;
		vma_notice(s, &key, offset, &w->event.notice);
		return;
	}
	m->kind = MAPPING_FILE;
	m->file_id = slot->value.file_id;
	m->offset = offset;
	m->key = key;
	mapping_use_slot(m, slot);
}

/* Is the file of a mapping, which an earlier sample found in a mm that has not changed since, still
 * known, and the same? The inode exists as long as the mapping does. */
static __always_inline int mapping_renew(struct walk *w, struct mapping *m)
{
	m->sample = w->sample;
	if (m->kind == MAPPING_ANONYMOUS)
		return 1;
	if (m->kind == MAPPING_VDSO) {
		mapping_bind_vdso(m);
		return 1;
	}
	__u32 index = m->slot;
	struct file_slot *slot = bpf_map_lookup_elem(&file_slots, &index);
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	if (m->kind != MAPPING_FILE || !s || !slot || !*(const volatile __u32 *)&slot->is_live ||
		slot->key.inode != m->key.inode || slot->key.dev != m->key.dev ||
		slot->key.generation != m->key.generation ||
		inode_generation(s, m->inode, (int)m->is_memory) != m->key.generation)
		return 0;
	m->file_id = slot->value.file_id;
	mapping_use_slot(m, slot);
	return 1;
}

/* To be called at the beginning of a sample: keeps the mappings known on this CPU, if they are the
 * interrupted process' and its mm has not changed. */
static __always_inline void mappings_begin(
	struct walk *w, const struct task_struct *task, const struct mm_struct *mm)
{
	w->sample++;
	if (bpf_core_field_exists(struct mm_struct, mm_lock_seq.sequence)) {
		__u32 sequence = mm ? TASK_READ(mm, mm_lock_seq.sequence) : 1;
		__u64 exec_id = TASK_READ(task, self_exec_id);
		struct mapping_owner *o = &w->owner;
		if (!(sequence & 1) && o->sequence == sequence && o->mm == w->mm &&
			o->exec_id == exec_id && o->pid == w->event.h.pid &&
			o->process_start_ns == w->event.h.process_start_ns)
			return;
		o->mm = w->mm;
		o->process_start_ns = w->event.h.process_start_ns;
		o->exec_id = exec_id;
		o->pid = w->event.h.pid;
		o->sequence = sequence;
	}
	w->mapping_last = 0;
	w->mapping_next = 0;
	for (int i = 0; i < MAPPING_CACHE_SIZE; i++) {
		w->mappings[i].start = 0;
		w->mappings[i].end = 0;
	}
}

/* The mapping that was found last. Its number is read from memory, so that the verifier does not
 * know it: it would verify all that follows once for each of the eight. */
static __always_inline const struct mapping *mapping_last(const struct walk *w)
{
	__u32 last = *(const volatile __u32 *)&w->mapping_last;
	const struct mapping *m = &w->mappings[last & (MAPPING_CACHE_SIZE - 1)];
	asm volatile("" : "+r"(m)); /* or the compiler computes it for each use */
	return m;
}

static __always_inline int mapping_find_cached(struct walk *w, __u64 address)
{
	__u32 i;
	for (i = 0; i < MAPPING_CACHE_SIZE; i++) {
		if (address >= w->mappings[i].start && address < w->mappings[i].end)
			break;
	}
	if (i == MAPPING_CACHE_SIZE)
		return 0;
	w->mapping_last = i;
	struct mapping *m = &w->mappings[i & (MAPPING_CACHE_SIZE - 1)];
	if (m->sample == w->sample || mapping_renew(w, m))
		return 1;
	m->start = 0;
	m->end = 0;
	return 0;
}

/* Makes the executable mapping of `address` the last one. 0: there is none. */
static __always_inline int mapping_find(struct walk *w, __u64 address)
{
	if (mapping_find_cached(w, address))
		return 1;
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	struct bpf_counters *c = counters_here();
	if (!s || !c)
		return 0;
	c->vma_walks++;
	s->mm = w->mm;
	if (!vma_find(VMA_SEARCH_SAMPLE, address))
		return 0;
	const struct vm_area_struct *vma = (const struct vm_area_struct *)s->vma;
	if (!(VMA_READ(s, vma, vm_flags) & KERNEL_VM_EXEC))
		return 0;
	__u32 index = w->mapping_next++ & (MAPPING_CACHE_SIZE - 1);
	if (index == w->mapping_last) /* the caller may be using it */
		index = w->mapping_next++ & (MAPPING_CACHE_SIZE - 1);
	struct mapping *m = &w->mappings[index];
	__builtin_memset(m, 0, sizeof(*m));
	m->start = s->start;
	m->end = s->end;
	m->sample = w->sample;
	mapping_bind(w, s, m);
	w->mapping_last = index;
	return 1;
}

/* The executable mapping of `address`; NULL: there is none. */
static __always_inline const struct mapping *mapping_at(struct walk *w, __u64 address)
{
	const struct mapping *m = mapping_last(w);
	if (address >= m->start && address < m->end && m->sample == w->sample)
		return m;
	return mapping_find(w, address) ? mapping_last(w) : NULL;
}
