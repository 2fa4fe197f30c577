/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is published bottom up: blobs into the slabs, their places into `pages`, the slot, and at
 * last its number into `files`, from which the BPF program finds it. All but the last are plain
 * stores into memory shared with the kernel.
 *
 * What a program may still be reading is not written again: a file that is replaced, retracted or
 * evicted leaves `files` at once and becomes RETIRED, its room kept; reclaim() frees that after a
 * grace period (slabs_wait()).
 *
 *	FREE -> publish -> LIVE -> replace, retract, evict -> RETIRED -> reclaim -> FREE
 *
 * What is evicted is met again as a file not known yet, its stack copied and its table loaded anew:
 * that costs some work and no stack. A table without room costs stacks. So memory is added as long
 * as there may be more, only what is cold makes room for a new file, and a file that stayed without
 * its table has its samples counted like all others: each epoch those that are hotter than the
 * coldest tables they need the room of are evicted together with these, and come again.
 *
 * Tables that nobody used for a while are evicted too, above what an idle host may take; what is
 * left moves to the lower slabs, and the last slab is given back.
 */
#include "agent/tables/tables.h"

#include "agent/broker/broker.h"
#include "agent/tables/slabs.h"
#include "base/map.h"
#include "base/vec.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Reclaim at the latest then, and before memory is added or a table evicted: a grace period takes
 * some ten milliseconds on busy CPUs. */
#define RETIRED_MAX 1024
/* While more are in our address space than so many they leave it before the next is. */
#define SLABS_MAPPED_MAX 8
/* A file that just came counts as hot as with so many samples. */
#define HITS_NEW 2
#define HEAT_OF_HIT 16u
#define HEAT_DECAY_SHIFT 2 /* a quarter each epoch */
/* After the kernel or the broker refused a slab: so long tables count on those that are there. */
#define REFUSED_EPOCHS 60u
#define PROMOTED_MAX 16     /* in an epoch */
#define IDLE_EVICTED_MAX 64 /* likewise */
/* Holes between blobs: what is kept free by those that wait for room. */
#define SPARE_SHIFT 4
/* And so much more when a slab is given back, so that the next table does not ask for one again. */
#define SLAB_SPARE_BYTES (SLAB_BYTES / 4)

enum slot_state {
	SLOT_FREE = 0,
	SLOT_LIVE,
	SLOT_RETIRED,
};

struct slot {
	enum slot_state state;
	uint32_t page_base;
	uint32_t page_count;
	uint64_t bytes;
	uint64_t wanted_bytes; /* of its table, which had no room; 0: it has it, or there is none */
	uint32_t wanted_pages; /* likewise */
	struct blob *blobs;    /* one for each page */
	uint32_t hits;         /* file_slot.hits an epoch ago */
	uint32_t heat;         /* its samples, those of long ago for less */
	uint32_t hit_epoch;    /* in which it had samples last, or was published */
	uint32_t runtime;      /* 1 + index in the records; 0: none */
};

/* A runtime's record, of all files that hold the same build of it. */
struct kept_record {
	struct runtime_record record;
	uint32_t users; /* slots, also RETIRED ones; 0: free */
};

struct tables {
	pthread_mutex_t lock;
	struct tables_maps maps;
	struct slabs slabs;
	uint32_t slabs_idle;
	int64_t given_back_ns;
	struct bitmap pages;
	uint64_t *page_memory;         /* struct unwind_page each */
	struct file_slot *slot_memory; /* [FILES_MAX] */
	struct slot slots[FILES_MAX];
	uint32_t slot_end;  /* behind the last that was ever used */
	uint32_t slot_hint; /* none below is FREE */
	struct map index;   /* key to slot, LIVE ones but the vDSO */
	uint32_t retired_count;
	VEC(struct blob) left; /* that were copied elsewhere, to be freed like what is RETIRED */
	uint32_t live_count;
	uint32_t wanted_count;
	uint32_t refused_epoch; /* in which a slab was refused last; 0: never */
	uint64_t bytes;
	uint64_t evicted;
	struct kept_record records[RUNTIME_RECORDS_MAX];
};

static_assert(sizeof(struct unwind_page) == sizeof(uint64_t), "one store");
static_assert(sizeof(struct file_slot) == 40, "shared with the BPF program");

/* One more slab for a table that is published. It is asked for without the lock, since the broker
 * may take its time; then the table is placed once more. */
struct slab_offer {
	bool is_wanted;
	bool is_refused; /* the kernel or the broker has no more */
	int fd;          /* it is here; -1 */
};

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
	(void)pthread_mutex_init(&t->lock, NULL);
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
	(void)pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- slots ---- */

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

/* The slot of a published key; 0: none. */
static uint32_t slot_find(const struct tables *t, const struct file_key *key)
{
	uint32_t i = map_find(&t->index, key_hash(key), key_equal, t, key);
	return i == MAP_NONE ? 0 : i;
}

static uint32_t slot_unused(struct tables *t)
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

/* Give the room back; the slot stays, without a table. */
static void table_unplace(struct tables *t, struct slot *slot)
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

static void slot_clear(struct tables *t, struct slot *slot)
{
	table_unplace(t, slot);
	free(slot->blobs);
	if (slot->runtime)
		t->records[slot->runtime - 1].users--;
	*slot = (struct slot){ 0 };
	t->slot_hint = MIN(t->slot_hint, (uint32_t)(slot - t->slots));
}

/* Nothing that is RETIRED or left is read any more after the wait: free it. */
static void reclaim(struct tables *t)
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

/* Out of `files` and the index, so that no new lookup finds it. */
static void unpublish(struct tables *t, uint32_t i)
{
	struct file_key key = t->slot_memory[i].key;
	key.generation = 0;
	(void)bpf_map_delete_elem(t->maps.files, &key);
	(void)map_remove(&t->index, key_hash(&key), i);
	retire(t, i);
}

/* ---- eviction ---- */

static uint32_t epoch_now(const struct tables *t)
{
	return __atomic_load_n(&t->maps.settings->epoch, __ATOMIC_RELAXED);
}

/* Of the LIVE files (with a table, if asked for) the one that was not used for longest; 0: all of
 * them were in use within the last `epochs`. */
static uint32_t coldest(const struct tables *t, bool with_table, uint32_t epochs)
{
	uint32_t epoch = epoch_now(t);
	uint32_t best = 0;
	uint32_t best_age = epochs - 1;
	for (uint32_t i = 1; i < t->slot_end; i++) {
		const struct slot *slot = &t->slots[i];
		if (slot->state != SLOT_LIVE || i == t->maps.settings->vdso_slot ||
			(with_table && slot->bytes == 0))
			continue;
		uint32_t age = epoch - slot->hit_epoch;
		if (age > best_age && t->slot_memory[i].hits == slot->hits) {
			best_age = age;
			best = i;
		}
	}
	return best;
}

static void evict(struct tables *t, uint32_t i)
{
	t->evicted++;
	unpublish(t, i);
}

/* Make room for `bytes` of tables (0: for one more slot). False: nothing is cold. */
static bool evict_cold(struct tables *t, uint64_t bytes)
{
	uint64_t freed = 0;
	uint32_t count = 0;
	while (count == 0 || (freed < bytes && count < RETIRED_MAX)) {
		uint32_t i = coldest(t, bytes > 0, TABLES_EVICT_AGE_EPOCHS);
		if (i == 0)
			break;
		freed += t->slots[i].bytes;
		evict(t, i);
		count++;
	}
	reclaim(t);
	return count > 0;
}

/* ---- room for a table ---- */

static uint32_t blob_units(const struct unwind_table_page *page)
{
	return (page->blob_len + BLOB_UNIT_BYTES - 1) / BLOB_UNIT_BYTES;
}

enum placed {
	PLACED,
	NO_PAGES,
	NO_CHUNK,
};

/* All of the table's pages and blobs, or nothing. */
static enum placed table_place(
	struct tables *t, const struct unwind_table *table, struct slot *slot)
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
			table_unplace(t, slot);
			return NO_CHUNK;
		}
		slot->bytes += (uint64_t)units * BLOB_UNIT_BYTES;
	}
	return PLACED;
}

static void take_offer(struct tables *t, struct slab_offer *offer)
{
	if (offer->fd >= 0 && t->slabs.count < t->slabs.max)
		offer->is_refused = slabs_add(&t->slabs, STEAL_FD(offer->fd), NULL) != OK;
	if (offer->is_refused)
		t->refused_epoch = MAX(epoch_now(t), 1u);
}

/* The same, but makes room: by freeing retired tables, then by another slab, then by evicting cold
 * tables. E_LIMIT: there is none, or a slab is wanted. */
static enum status table_place_hard(struct tables *t, const struct unwind_table *table,
	struct slot *slot, struct slab_offer *offer, struct err *e)
{
	enum placed placed = table_place(t, table, slot);
	if (placed == PLACED)
		return OK;
	reclaim(t);
	uint32_t slabs_max = offer->is_refused ? t->slabs.count : t->slabs.max;
	for (;;) {
		placed = table_place(t, table, slot);
		if (placed == PLACED)
			return OK;
		if (placed == NO_CHUNK && t->slabs.count < slabs_max) {
			offer->is_wanted = true;
			return err_set(e, E_LIMIT, "another slab is needed");
		}
		if (table->blob_bytes > (uint64_t)slabs_max * SLAB_BYTES ||
			!evict_cold(t, table->blob_bytes))
			return err_set(e, E_LIMIT,
				"an unwind table of %llu bytes does not fit: %llu of %u MiB are "
				"taken by tables in use",
				(unsigned long long)table->blob_bytes, (unsigned long long)t->bytes,
				slabs_max * (SLAB_BYTES >> 20));
	}
}

static void page_store(
	struct tables *t, uint32_t page, const struct blob *b, uint16_t rules, uint16_t rows)
{
	struct unwind_page entry = { (uint16_t)b->chunk, b->start, rules, rows };
	uint64_t raw;
	memcpy(&raw, &entry, sizeof(raw));
	__atomic_store_n(&t->page_memory[page], raw, __ATOMIC_RELEASE);
}

static enum status table_write(
	struct tables *t, const struct unwind_table *table, const struct slot *slot, struct err *e)
{
	if (t->slabs.mapped > SLABS_MAPPED_MAX)
		slabs_rest(&t->slabs);
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
		page_store(t, slot->page_base + i, b, page->rule_count, page->row_count);
	}
	return OK;
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

/* Fill the free slot `i` and let the program find it. */
static enum status slot_publish(
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
		reclaim(t);
	return OK;
}

static enum status publish_locked(struct tables *t, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *table, struct slab_offer *offer, struct err *e)
{
	take_offer(t, offer);
	uint32_t i = slot_unused(t);
	if (i == 0) {
		reclaim(t);
		i = slot_unused(t);
	}
	if (i == 0 && evict_cold(t, 0))
		i = slot_unused(t);
	if (i == 0)
		return err_set(e, E_UNAVAILABLE, "more than %d files in use", FILES_MAX - 1);

	struct slot *slot = &t->slots[i];
	enum status placed = OK;
	if (table) {
		slot->blobs = calloc(table->page_count, sizeof(*slot->blobs));
		if (!slot->blobs)
			return err_set(e, E_NOMEM, "tables: %u pages", table->page_count);
		placed = table_place_hard(t, table, slot, offer, e);
		if (offer->is_wanted) {
			slot_clear(t, slot);
			return placed;
		}
		if (placed == OK)
			placed = table_write(t, table, slot, e);
		if (placed != OK)
			table_unplace(t, slot);
		slot->wanted_bytes = placed != OK ? MAX(table->blob_bytes, 1u) : 0;
		slot->wanted_pages = table->page_count;
	}
	slot->hits = 0;
	slot->heat = HITS_NEW * HEAT_OF_HIT;
	slot->hit_epoch = epoch_now(t);
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
		(void)pthread_mutex_lock(&t->lock);
		enum status s = publish_locked(t, key, file_id, table, &offer, e);
		(void)pthread_mutex_unlock(&t->lock);
		if (!offer.is_wanted)
			return s;
		offer.is_wanted = false;
		offer.is_refused = slabs_ask(&offer.fd, e) != OK;
	}
}

void tables_retract(struct tables *t, const struct file_key *key)
{
	(void)pthread_mutex_lock(&t->lock);
	uint32_t i = slot_find(t, key);
	if (i != 0)
		unpublish(t, i);
	if (t->retired_count >= RETIRED_MAX)
		reclaim(t);
	(void)pthread_mutex_unlock(&t->lock);
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
	(void)pthread_mutex_lock(&t->lock);
	enum status s = set_runtime_locked(t, key, r, e);
	(void)pthread_mutex_unlock(&t->lock);
	return s;
}

/* ---- each epoch ---- */

static void measure_heat(struct tables *t)
{
	uint32_t epoch = epoch_now(t);
	for (uint32_t i = 1; i < t->slot_end; i++) {
		struct slot *slot = &t->slots[i];
		if (slot->state != SLOT_LIVE)
			continue;
		uint32_t hits = __atomic_load_n(&t->slot_memory[i].hits, __ATOMIC_RELAXED);
		uint32_t added = hits - slot->hits;
		slot->hits = hits;
		slot->heat -= (slot->heat + (1u << HEAT_DECAY_SHIFT) - 1) >> HEAT_DECAY_SHIFT;
		slot->heat += MIN(added, UINT32_MAX / 16 / HEAT_OF_HIT) * HEAT_OF_HIT;
		if (added)
			slot->hit_epoch = epoch;
	}
}

/* The least heat for the most room first. */
static int by_heat(const void *a, const void *b, void *ctx)
{
	const struct tables *t = ctx;
	const struct slot *x = &t->slots[*(const uint32_t *)a];
	const struct slot *y = &t->slots[*(const uint32_t *)b];
	uint64_t left = x->heat * y->bytes, right = y->heat * x->bytes;
	if (left != right)
		return left < right ? -1 : 1;
	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static uint32_t list_tables(const struct tables *t, uint32_t *out)
{
	uint32_t count = 0;
	for (uint32_t i = 1; i < t->slot_end; i++) {
		const struct slot *slot = &t->slots[i];
		if (slot->state == SLOT_LIVE && slot->bytes && i != t->maps.settings->vdso_slot)
			out[count++] = i;
	}
	qsort_r(out, count, sizeof(*out), by_heat, (void *)(uintptr_t)t);
	return count;
}

static int by_heat_falling(const void *a, const void *b, void *ctx)
{
	const struct tables *t = ctx;
	uint32_t x = t->slots[*(const uint32_t *)a].heat, y = t->slots[*(const uint32_t *)b].heat;
	return x > y ? -1 : x < y;
}

/* Those without their tables that were met since. */
static uint32_t list_wanted(const struct tables *t, uint32_t *out)
{
	uint32_t count = 0;
	for (uint32_t i = 1; i < t->slot_end; i++) {
		const struct slot *slot = &t->slots[i];
		if (slot->state == SLOT_LIVE && slot->wanted_bytes && slot->hits &&
			i != t->maps.settings->vdso_slot)
			out[count++] = i;
	}
	qsort_r(out, count, sizeof(*out), by_heat_falling, (void *)(uintptr_t)t);
	return count;
}

static uint64_t bytes_within(uint32_t slab_count)
{
	uint64_t bytes = (uint64_t)slab_count * SLAB_BYTES;
	return bytes - (bytes >> SPARE_SHIFT);
}

static uint32_t slabs_to_be_had(const struct tables *t)
{
	bool refused = t->refused_epoch && epoch_now(t) - t->refused_epoch < REFUSED_EPOCHS;
	return refused ? t->slabs.count : t->slabs.max;
}

/* Evict what was hot and had no room, so that it comes again, with the coldest tables whose room it
 * needs, as long as these are not half as hot together. */
static void promote(struct tables *t)
{
	if (t->wanted_count == 0)
		return;
	CLEANUP(free_cleanup) uint32_t *wanted = calloc(t->live_count, sizeof(*wanted));
	CLEANUP(free_cleanup) uint32_t *cold = calloc(t->live_count, sizeof(*cold));
	if (!wanted || !cold)
		return;
	reclaim(t);
	uint32_t wanted_count = list_wanted(t, wanted);
	uint32_t cold_count = wanted_count ? list_tables(t, cold) : 0;
	int64_t room = (int64_t)bytes_within(slabs_to_be_had(t)) - (int64_t)t->bytes;
	int64_t pages = t->pages.count - t->pages.used;
	uint32_t next = 0;
	for (uint32_t k = 0; k < MIN(wanted_count, (uint32_t)PROMOTED_MAX); k++) {
		const struct slot *slot = &t->slots[wanted[k]];
		int64_t left = room - (int64_t)slot->wanted_bytes;
		int64_t left_pages = pages - slot->wanted_pages;
		uint64_t lost = 0;
		uint32_t n = next;
		for (; (left < 0 || left_pages < 0) && n < cold_count; n++) {
			left += (int64_t)t->slots[cold[n]].bytes;
			left_pages += t->slots[cold[n]].page_count;
			lost += t->slots[cold[n]].heat;
		}
		if (left < 0 || left_pages < 0 || lost * 2 > slot->heat)
			continue;
		for (; next < n; next++)
			evict(t, cold[next]);
		evict(t, wanted[k]);
		room = left;
		pages = left_pages;
	}
	reclaim(t);
}

/* Moves tables of the last slab to the others, as far as there is room. */
static void empty_last_slab(struct tables *t)
{
	uint32_t last = t->slabs.count - 1;
	for (uint32_t i = 1; i < t->slot_end; i++) {
		struct slot *slot = &t->slots[i];
		for (uint32_t k = 0; slot->state == SLOT_LIVE && k < slot->page_count; k++) {
			struct blob *b = &slot->blobs[k];
			struct blob to;
			uint8_t *from_bytes, *to_bytes;
			if (b->chunk == BITMAP_NONE || blob_slab(b) != last)
				continue;
			if (!VEC_RESERVE(&t->left, t->left.len + 1) ||
				!slabs_take(&t->slabs, last, blob_bytes(b) / BLOB_UNIT_BYTES, &to))
				return;
			if (slabs_map(&t->slabs, b, &from_bytes, NULL) != OK ||
				slabs_map(&t->slabs, &to, &to_bytes, NULL) != OK) {
				slabs_release(&t->slabs, &to);
				return;
			}
			struct unwind_page page;
			memcpy(&page, &t->page_memory[slot->page_base + k], sizeof(page));
			memcpy(to_bytes, from_bytes, blob_bytes(b));
			page_store(t, slot->page_base + k, &to, page.rule_count, page.row_count);
			t->left.v[t->left.len++] = *b;
			*b = to;
		}
	}
}

/* Evicts unused tables above the size that may stay, then gives back a slab at a time. */
static void give_back(struct tables *t, int64_t now_ns)
{
	uint32_t i, count = 0;
	while (t->bytes + SLAB_SPARE_BYTES > bytes_within(t->slabs_idle) &&
		count < IDLE_EVICTED_MAX && (i = coldest(t, true, TABLES_IDLE_EPOCHS))) {
		evict(t, i);
		count++;
	}
	if (count)
		reclaim(t);
	if (t->slabs.count <= t->slabs_idle ||
		t->bytes + SLAB_SPARE_BYTES > bytes_within(t->slabs.count - 1) ||
		now_ns - t->given_back_ns < slab_grants_turn_ns(t->slabs.max))
		return;
	reclaim(t);
	empty_last_slab(t);
	reclaim(t);
	if (slabs_used_bytes(&t->slabs, t->slabs.count - 1) > 0)
		return;
	slabs_drop(&t->slabs);
	t->given_back_ns = now_ns;
}

void tables_next_epoch(struct tables *t, int64_t now_ns)
{
	(void)pthread_mutex_lock(&t->lock);
	measure_heat(t);
	promote(t);
	give_back(t, now_ns);
	(void)pthread_mutex_unlock(&t->lock);
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

/* The slot of a file, not of another one that has its inode now. */
static uint32_t slot_of(const struct tables *t, const struct file_key *key)
{
	uint32_t i = key->inode ? slot_find(t, key) : t->maps.settings->vdso_slot;
	/* The program writes it. */
	uint32_t g = __atomic_load_n(&t->slot_memory[i].key.generation, __ATOMIC_RELAXED);
	return !g || !key->generation || g == key->generation ? i : 0;
}

bool tables_know(struct tables *t, const struct file_key *key)
{
	(void)pthread_mutex_lock(&t->lock);
	bool knows = slot_of(t, key) != 0;
	(void)pthread_mutex_unlock(&t->lock);
	return knows;
}

enum tables_found tables_find_rule(
	struct tables *t, const struct file_key *key, uint64_t file_offset, struct unwind_rule *out)
{
	enum tables_found found = TABLES_NOT_FOUND;
	(void)pthread_mutex_lock(&t->lock);
	uint32_t i = slot_of(t, key);
	if (i != 0) {
		*out = slot_find_rule(t, &t->slot_memory[i].value, file_offset);
		found = t->slots[i].wanted_bytes ? TABLES_NO_ROOM : TABLES_FOUND;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return found;
}

void tables_rest(struct tables *t)
{
	(void)pthread_mutex_lock(&t->lock);
	slabs_rest(&t->slabs);
	(void)pthread_mutex_unlock(&t->lock);
}

void tables_read_stats(struct tables *t, struct tables_stats *out)
{
	(void)pthread_mutex_lock(&t->lock);
	*out = (struct tables_stats){ t->live_count, t->slabs.count, t->wanted_count, t->bytes,
		t->evicted };
	(void)pthread_mutex_unlock(&t->lock);
}
