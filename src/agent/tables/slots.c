/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is published bottom up: blobs into the slabs, their places into `pages`, the slot, and at
 * last its number into `files`, from which the BPF program finds it. All but the last are plain
 * stores into memory shared with the kernel.
 *
 * What a program may still be reading is not written again: a file that is replaced, retracted or
 * evicted leaves `files` at once and becomes RETIRED, its room kept; slots_reclaim() frees that
 * after a grace period (slabs_wait()).
 *
 *	FREE -> publish -> LIVE -> replace, retract, evict -> RETIRED -> reclaim -> FREE
 */
#include "agent/tables/internal.h"

#include <bpf/bpf.h>
#include <stdlib.h>

static uint64_t key_hash(const struct file_key *key)
{
	return hash_u64(key->inode ^ ((uint64_t)key->dev << 32));
}

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	const struct file_key *a = &t->slot_memory[value].key;
	const struct file_key *b = key;
	return a->inode == b->inode && a->dev == b->dev;
}

uint32_t slot_find(const struct tables *t, const struct file_key *key)
{
	uint32_t i = map_find(&t->index, key_hash(key), key_equal, t, key);
	return i == MAP_NONE ? 0 : i;
}

uint32_t slot_unused(struct tables *t)
{
	uint32_t i = t->slot_hint;
	while (i < FILES_MAX && t->slots[i].state != SLOT_FREE)
		i++;
	t->slot_hint = i;
	if (i == FILES_MAX)
		return 0;
	t->slot_end = MAX(t->slot_end, i + 1);
	return i;
}

void slot_unplace(struct tables *t, struct slot *slot)
{
	for (uint32_t i = 0; i < slot->page_count; i++) {
		if (slot->blobs[i].chunk != BITMAP_NONE)
			slabs_release(&t->slabs, &slot->blobs[i]);
	}
	if (slot->page_count)
		bitmap_release(&t->pages, slot->page_base, slot->page_count);
	slot->page_base = 0;
	slot->page_count = 0;
	slot->bytes = 0;
}

void slot_clear(struct tables *t, struct slot *slot)
{
	slot_unplace(t, slot);
	free(slot->blobs);
	if (slot->runtime)
		t->records[slot->runtime - 1].users--;
	*slot = (struct slot){ 0 };
	t->slot_hint = MIN(t->slot_hint, (uint32_t)(slot - t->slots));
}

void slots_reclaim(struct tables *t)
{
	if (t->retired_count == 0 && t->left.len == 0)
		return;
	if (!slabs_wait(&t->slabs))
		return; /* no grace period: keep what is retired, and try again next time */
	for (uint32_t i = 0; i < t->slot_end && t->retired_count > 0; i++) {
		if (t->slots[i].state != SLOT_RETIRED)
			continue;
		slot_clear(t, &t->slots[i]);
		t->retired_count--;
	}
	for (size_t i = 0; i < t->left.len; i++)
		slabs_release(&t->slabs, &t->left.v[i]);
	VEC_CLEAR(&t->left);
}

static void retire(struct tables *t, uint32_t i)
{
	struct slot *slot = &t->slots[i];
	assert(i > 0 && slot->state == SLOT_LIVE);
	slot->state = SLOT_RETIRED;
	__atomic_store_n(&t->slot_memory[i].is_live, 0, __ATOMIC_RELAXED);
	t->bytes -= slot->bytes;
	t->live_count--;
	t->wanted_count -= slot->wanted_bytes > 0;
	t->retired_count++;
}

void slot_unpublish(struct tables *t, uint32_t i)
{
	struct file_key key = t->slot_memory[i].key;
	key.generation = 0;
	(void)bpf_map_delete_elem(t->maps.files, &key);
	(void)map_remove(&t->index, key_hash(&key), i);
	retire(t, i);
}

/* ---- a table in its place ---- */

static uint32_t blob_units(const struct unwind_table_page *page)
{
	return (page->blob_len + BLOB_UNIT_BYTES - 1) / BLOB_UNIT_BYTES;
}

enum placed slot_place(struct tables *t, const struct unwind_table *table, struct slot *slot)
{
	uint32_t base = bitmap_take(&t->pages, table->page_count);
	if (base == BITMAP_NONE)
		return NO_PAGES;
	slot->page_base = base;
	slot->page_count = table->page_count;
	for (uint32_t i = 0; i < table->page_count; i++)
		slot->blobs[i].chunk = BITMAP_NONE;
	for (uint32_t i = 0; i < table->page_count; i++) {
		uint32_t units = blob_units(&table->pages[i]);
		if (units == 0)
			continue;
		if (!slabs_take(&t->slabs, t->slabs.count, units, &slot->blobs[i])) {
			slot_unplace(t, slot);
			return NO_CHUNK;
		}
		slot->bytes += (uint64_t)units * BLOB_UNIT_BYTES;
	}
	return PLACED;
}

void slot_store_page(
	struct tables *t, uint32_t page, const struct blob *b, uint16_t rules, uint16_t rows)
{
	struct unwind_page entry = { (uint16_t)b->chunk, b->start, rules, rows };
	uint64_t raw;
	memcpy(&raw, &entry, sizeof(raw));
	__atomic_store_n(&t->page_memory[page], raw, __ATOMIC_RELEASE);
}

enum status slot_write(
	struct tables *t, const struct unwind_table *table, const struct slot *slot, struct err *e)
{
	for (uint32_t i = 0; i < table->page_count; i++) {
		const struct unwind_table_page *page = &table->pages[i];
		const struct blob *b = &slot->blobs[i];
		uint8_t *to;
		if (b->chunk == BITMAP_NONE) {
			__atomic_store_n(&t->page_memory[slot->page_base + i], 0, __ATOMIC_RELAXED);
			continue;
		}
		enum status s = slabs_map(&t->slabs, b, &to, e);
		if (s != OK)
			return s;
		memcpy(to, page->blob, page->blob_len);
		slot_store_page(t, slot->page_base + i, b, page->rule_count, page->row_count);
	}
	return OK;
}

/* ---- publication ---- */

enum status slot_publish(
	struct tables *t, uint32_t i, const struct file_key *key, bool is_vdso, struct err *e)
{
	struct file_key plain = { .inode = key->inode, .dev = key->dev };
	uint32_t old = is_vdso ? t->maps.settings->vdso_slot : slot_find(t, key);
	if (is_vdso) {
		__atomic_store_n(&t->maps.settings->vdso_slot, i, __ATOMIC_RELEASE);
	} else {
		if (old == 0 && !map_insert(&t->index, key_hash(&plain), i))
			return err_set(e, E_NOMEM, "tables: index");
		__atomic_thread_fence(__ATOMIC_RELEASE);
		if (bpf_map_update_elem(t->maps.files, &plain, &i, BPF_ANY) != 0) {
			enum status s = err_os(e, "cannot make a file known to the eBPF program");
			if (old == 0)
				(void)map_remove(&t->index, key_hash(&plain), i);
			return s;
		}
		if (old != 0) {
			(void)map_remove(&t->index, key_hash(&plain), old);
			/* The slot just freed in the index is enough for the new value. */
			bool inserted = map_insert(&t->index, key_hash(&plain), i);
			assert(inserted);
		}
	}
	__atomic_store_n(&t->slot_memory[i].is_live, 1, __ATOMIC_RELEASE);
	t->slots[i].state = SLOT_LIVE;
	t->bytes += t->slots[i].bytes;
	t->live_count++;
	t->wanted_count += t->slots[i].wanted_bytes > 0;
	if (old != 0)
		retire(t, old);
	if (t->retired_count >= RETIRED_MAX)
		slots_reclaim(t);
	return OK;
}
