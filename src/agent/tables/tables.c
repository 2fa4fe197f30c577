/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock, and one call after the other under it. A slab is asked for without it: a publication
 * that needs one is begun anew when it is there.
 */
#include "agent/tables/internal.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A new file is as hot as one with so many samples. */
#define HITS_NEW 2

/* ---- memory ---- */

static enum status map_memory(int fd, size_t bytes, void *out, struct err *e)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_os(e, "cannot share the memory of an eBPF map");
	memcpy(out, &p, sizeof(p));
	return OK;
}

static size_t page_aligned(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

static void tables_cleanup(struct tables **t)
{
	tables_free(*t);
}

enum status tables_new(const struct tables_maps *maps, uint32_t slabs_idle, uint32_t slabs_max,
	struct tables **out, struct err *e)
{
	CLEANUP(tables_cleanup) struct tables *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "tables");
	lock_init(&t->lock, LOCK_TABLES);
	t->maps = *maps;
	t->slabs_idle = slabs_idle;
	t->slot_hint = t->slot_end = 1;
	if (bitmap_init(&t->pages, TABLE_PAGES_MAX) != OK)
		return err_set(e, E_NOMEM, "tables");
	enum status s =
		map_memory(maps->pages, TABLE_PAGES_MAX * sizeof(uint64_t), &t->page_memory, e);
	if (s != OK)
		return s;
	s = map_memory(maps->file_slots, page_aligned(FILES_MAX * sizeof(struct file_slot)),
		&t->slot_memory, e);
	if (s == OK)
		s = slabs_init(&t->slabs, maps->slabs, slabs_max, e);
	if (s == OK)
		*out = STEAL_PTR(t);
	return s;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	slabs_deinit(&t->slabs);
	bitmap_deinit(&t->pages);
	if (t->page_memory)
		(void)munmap(t->page_memory, TABLE_PAGES_MAX * sizeof(uint64_t));
	if (t->slot_memory)
		(void)munmap(t->slot_memory, page_aligned(FILES_MAX * sizeof(struct file_slot)));
	for (uint32_t i = 0; i < t->slot_end; i++)
		free(t->slots[i].blobs);
	VEC_FREE(&t->left);
	map_deinit(&t->index);
	lock_destroy(&t->lock);
	free(t);
}

/* ---- publication ---- */

static bool table_is_sound(const struct unwind_table *table)
{
	for (uint32_t i = 0; i < table->page_count; i++) {
		const struct unwind_table_page *p = &table->pages[i];
		if (p->blob_len > UNWIND_BLOB_BYTES_MAX || (p->blob_len > 0 && !p->blob) ||
			(p->blob_len > 0 && p->rule_count == 0))
			return false;
	}
	return table->page_count > 0 && table->page_count <= TABLE_PAGES_MAX;
}

static enum status publish_locked(struct tables *t, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *table, struct slab_offer *offer, struct err *e)
{
	room_take_offer(t, offer);
	uint32_t i = slot_unused(t);
	if (i == 0) {
		slots_reclaim(t);
		i = slot_unused(t);
	}
	if (i == 0 && room_evict_cold(t, 0))
		i = slot_unused(t);
	if (i == 0)
		return err_set(e, E_UNAVAILABLE, "more than %d files in use", FILES_MAX - 1);

	struct slot *slot = &t->slots[i];
	enum status placed = OK;
	if (table) {
		slot->blobs = calloc(table->page_count, sizeof(*slot->blobs));
		if (!slot->blobs)
			return err_set(e, E_NOMEM, "tables: %u pages", table->page_count);
		placed = room_place(t, table, slot, offer, e);
		if (offer->is_wanted) {
			slot_clear(t, slot);
			return placed;
		}
		if (placed == OK)
			placed = slot_write(t, table, slot, e);
		if (placed != OK)
			slot_unplace(t, slot);
		slot->wanted_bytes = placed != OK ? MAX(table->blob_bytes, 1u) : 0;
		slot->wanted_pages = table->page_count;
	}
	slot->hits = 0;
	slot->heat = HITS_NEW * HEAT_OF_HIT;
	slot->hit_epoch = tables_epoch(t);
	t->slot_memory[i] = (struct file_slot){
		.key = *key,
		.value = { (uint16_t)file_id, 0, placed == OK ? slot->page_base : FILE_NO_ROOM,
			slot->page_count, placed == OK && table ? table->first_page : 0 },
	};
	enum status s = slot_publish(t, i, key, file_id == FRAME_FILE_VDSO, e);
	if (s != OK) {
		slot_clear(t, slot);
		return s;
	}
	return placed;
}

static void offer_close(struct slab_offer *offer)
{
	fd_cleanup(&offer->fd);
}

enum status tables_publish(struct tables *t, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *table, struct err *e)
{
	static const struct file_key no_key;
	if (file_id == FRAME_FILE_VDSO)
		key = &no_key;
	else if (file_id < FRAME_FILE_FIRST || file_id > FRAME_FILE_MAX || key->inode == 0)
		return err_set(e, E_INVALID, "file id %u of inode %llu", file_id,
			(unsigned long long)key->inode);
	if (table && !table_is_sound(table))
		return err_set(e, E_INVALID, "unwind table of file %u is not sound", file_id);
	CLEANUP(offer_close) struct slab_offer offer = { .fd = -1 };
	for (;;) {
		lock_take(&t->lock);
		enum status s = publish_locked(t, key, file_id, table, &offer, e);
		lock_release(&t->lock);
		if (!offer.is_wanted)
			return s;
		offer.is_wanted = false;
		offer.is_refused = slabs_ask(&offer.fd, e) != OK;
	}
}

void tables_retract(struct tables *t, const struct file_key *key)
{
	lock_take(&t->lock);
	uint32_t i = slot_find(t, key);
	if (i != 0)
		slot_unpublish(t, i);
	if (t->retired_count >= RETIRED_MAX)
		slots_reclaim(t);
	lock_release(&t->lock);
}

/* ---- runtimes ---- */

/* Where the record is, or may be put; RUNTIME_RECORDS_MAX: nowhere. */
static uint32_t record_place(const struct tables *t, const struct runtime_record *r)
{
	uint32_t place = RUNTIME_RECORDS_MAX;
	for (uint32_t i = 0; i < RUNTIME_RECORDS_MAX; i++) {
		const struct kept_record *k = &t->records[i];
		if (k->users && memcmp(&k->record, r, sizeof(*r)) == 0)
			return i;
		if (!k->users && place == RUNTIME_RECORDS_MAX)
			place = i;
	}
	return place;
}

static enum status set_runtime_locked(
	struct tables *t, const struct file_key *key, const struct runtime_record *r, struct err *e)
{
	uint32_t i = slot_find(t, key);
	if (i == 0 || t->slots[i].runtime)
		return OK; /* evicted meanwhile; or it has it */
	uint32_t at = record_place(t, r);
	if (at == RUNTIME_RECORDS_MAX) {
		slots_reclaim(t);
		at = record_place(t, r);
	}
	while (at == RUNTIME_RECORDS_MAX && room_evict_cold_runtime(t))
		at = record_place(t, r);
	if (at == RUNTIME_RECORDS_MAX)
		return err_set(e, E_LIMIT, "more than %d builds of language runtimes in use",
			RUNTIME_RECORDS_MAX);
	struct kept_record *k = &t->records[at];
	if (!k->users && bpf_map_update_elem(t->maps.runtime_records, &at, r, BPF_ANY) != 0)
		return err_os(e, "cannot make a runtime known to the eBPF program");
	k->record = *r;
	k->users++;
	t->slots[i].runtime = at + 1;
	__atomic_store_n(&t->slot_memory[i].value.runtime, (uint16_t)(at + 1), __ATOMIC_RELEASE);
	return OK;
}

enum status tables_set_runtime(
	struct tables *t, const struct file_key *key, const struct runtime_record *r, struct err *e)
{
	lock_take(&t->lock);
	enum status s = set_runtime_locked(t, key, r, e);
	lock_release(&t->lock);
	return s;
}

void tables_next_epoch(struct tables *t, int64_t now_ns)
{
	lock_take(&t->lock);
	room_next_epoch(t, now_ns);
	lock_release(&t->lock);
}

/* ---- reading back ---- */

static struct unwind_rule slot_find_rule(
	struct tables *t, const struct file_value *file, uint64_t file_offset)
{
	struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
	uint64_t page = (file_offset >> UNWIND_PAGE_SHIFT) - file->first_page;
	if (file->page_count == 0)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_FRAME_POINTER };
	if (page >= file->page_count)
		return none;
	struct unwind_page entry;
	memcpy(&entry, &t->page_memory[file->page_base + page], sizeof(entry));
	const struct blob at = { .chunk = entry.chunk, .start = entry.off8 };
	uint8_t *bytes;
	if (entry.rule_count == 0 || slabs_map(&t->slabs, &at, &bytes, NULL) != OK)
		return none;
	const struct unwind_table_page blob = {
		.blob = bytes,
		.rule_count = entry.rule_count,
		.row_count = entry.row_count,
	};
	return unwind_page_find(&blob, file_offset & (UNWIND_BLOB_BYTES_MAX - 1));
}

/* The slot of exactly this file: another file may have its inode by now. */
static uint32_t slot_of(const struct tables *t, const struct file_key *key)
{
	uint32_t i = key->inode ? slot_find(t, key) : t->maps.settings->vdso_slot;
	/* The program writes it. */
	uint32_t g = __atomic_load_n(&t->slot_memory[i].key.generation, __ATOMIC_RELAXED);
	return !g || !key->generation || g == key->generation ? i : 0;
}

bool tables_know(struct tables *t, const struct file_key *key)
{
	lock_take(&t->lock);
	bool knows = slot_of(t, key) != 0;
	lock_release(&t->lock);
	return knows;
}

enum tables_found tables_find_rule(
	struct tables *t, const struct file_key *key, uint64_t file_offset, struct unwind_rule *out)
{
	enum tables_found found = TABLES_NOT_FOUND;
	lock_take(&t->lock);
	uint32_t i = slot_of(t, key);
	if (i != 0) {
		*out = slot_find_rule(t, &t->slot_memory[i].value, file_offset);
		found = t->slots[i].wanted_bytes ? TABLES_NO_ROOM : TABLES_FOUND;
	}
	lock_release(&t->lock);
	return found;
}

void tables_rest(struct tables *t)
{
	lock_take(&t->lock);
	slabs_rest(&t->slabs);
	lock_release(&t->lock);
}

void tables_read_stats(struct tables *t, struct tables_stats *out)
{
	lock_take(&t->lock);
	*out = (struct tables_stats){ t->live_count, t->slabs.count, t->wanted_count, t->bytes,
		t->evicted };
	lock_release(&t->lock);
}
