/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is published bottom up: blobs into the slabs, their places into `pages`, the slot, and at
 * last its number into `files`, from which the BPF program finds it. All but the last are plain
 * stores into memory shared with the kernel.
 *
 * What a program may still be reading is not written again: a file that is replaced, retracted or
 * evicted leaves `files` at once and becomes RETIRED, its room kept; reclaim() frees that after a
 * grace period. An update of an array of maps waits until all programs that run have ended (Linux
 * commit 1ae80cf31938, "bpf: wait for running BPF programs when updating map-in-map", 4.20), which
 * is exactly that.
 *
 *	FREE -> publish -> LIVE -> replace, retract, evict -> RETIRED -> reclaim -> FREE
 */
#include "agent/tables.h"

#include "agent/broker.h"
#include "agent/runs.h"
#include "base/map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOB_UNIT_BYTES 8
#define CHUNK_UNITS (SLAB_CHUNK_BYTES / BLOB_UNIT_BYTES)
/* Reclaim at the latest then, and before memory is added or a table evicted: a grace period takes
 * some ten milliseconds on busy CPUs. */
#define RETIRED_MAX 1024

enum slot_state {
	SLOT_FREE = 0,
	SLOT_LIVE,
	SLOT_RETIRED,
};

struct blob {
	uint32_t chunk; /* RUNS_NONE: a page without rows */
	uint16_t start; /* units in the chunk */
	uint16_t units; /* 0: 65536 bytes */
};

struct slot {
	enum slot_state state;
	uint32_t page_base;
	uint32_t page_count;
	uint64_t bytes;
	struct blob *blobs; /* one for each page */
};

struct tables {
	pthread_mutex_t lock;
	struct tables_maps maps;
	uint32_t slabs_max;
	uint32_t slab_count;
	int slab_fds[SLABS_MAX];
	uint8_t *slab_memory[SLABS_MAX];
	struct runs *chunks; /* of all slabs there may be; SLAB_CHUNKS each */
	uint32_t chunk_hint; /* where the last blob went */
	struct runs pages;
	uint64_t *page_memory;         /* struct unwind_page each */
	struct file_slot *slot_memory; /* [FILES_MAX] */
	struct slot slots[FILES_MAX];
	struct map index; /* key to slot, LIVE ones but the vDSO */
	uint32_t retired_count;
	uint32_t live_count;
	uint32_t slot_hint;
	uint64_t bytes;
	uint64_t evicted;
};

static_assert(sizeof(struct unwind_page) == sizeof(uint64_t), "one store");
static_assert(sizeof(struct file_slot) == 40, "shared with the BPF program");

uint32_t tables_slabs_max(uint32_t bytes_max)
{
	uint32_t slabs = bytes_max / SLAB_BYTES;
	return MIN(MAX(slabs, 1u), (uint32_t)SLABS_MAX);
}

/* ---- memory ---- */

static enum status map_memory(int fd, size_t bytes, void *out, struct err *e)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_os(e, "cannot share the memory of an eBPF map");
	memcpy(out, &p, sizeof(p));
	return OK;
}

/* Without libbpf, which would try first what the kernel can: the broker may do nothing else. */
int tables_open_slab(void)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = SLAB_CHUNK_BYTES;
	attr.max_entries = SLAB_CHUNKS;
	attr.map_flags = BPF_F_MMAPABLE;
	memcpy(attr.map_name, "firn_slab", sizeof("firn_slab"));
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)); /* close-on-exec */
}

static enum status slab_add(struct tables *t, struct err *e)
{
	uint32_t i = t->slab_count;
	assert(i < t->slabs_max);
	int fd = broker_slab();
	if (fd < 0 && errno == ENOSYS) /* there is none: we may do it ourselves */
		fd = tables_open_slab();
	if (fd < 0)
		return err_os(e, "cannot allocate 2 MiB of kernel memory for unwind tables");
	enum status s = OK;
	if (bpf_map_update_elem(t->maps.slabs, &i, &fd, BPF_ANY) != 0)
		s = err_os(e, "cannot add kernel memory for unwind tables");
	for (uint32_t c = 0; s == OK && c < SLAB_CHUNKS; c++)
		s = runs_init(&t->chunks[i * SLAB_CHUNKS + c], CHUNK_UNITS);
	if (s != OK) {
		fd_cleanup(&fd);
		return s;
	}
	t->slab_fds[i] = fd;
	t->slab_count++;
	return OK;
}

/* Slabs are in our address space only while tables are written or read, until tables_rest(): their
 * pages are the kernel's memory, and would count as ours too. */
static enum status slab_map(struct tables *t, uint32_t i, struct err *e)
{
	if (t->slab_memory[i])
		return OK;
	return map_memory(t->slab_fds[i], SLAB_BYTES, &t->slab_memory[i], e);
}

static void slabs_unmap(struct tables *t)
{
	for (uint32_t i = 0; i < t->slab_count; i++) {
		if (t->slab_memory[i])
			(void)munmap(t->slab_memory[i], SLAB_BYTES);
		t->slab_memory[i] = NULL;
	}
}

static size_t page_aligned(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

static void tables_cleanup(struct tables **t)
{
	tables_free(*t);
}

enum status tables_new(
	const struct tables_maps *maps, uint32_t slabs_max, struct tables **out, struct err *e)
{
	assert(slabs_max >= 1 && slabs_max <= SLABS_MAX);
	CLEANUP(tables_cleanup) struct tables *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "tables");
	(void)pthread_mutex_init(&t->lock, NULL);
	t->maps = *maps;
	t->slabs_max = slabs_max;
	t->slot_hint = 1;
	t->chunks = calloc((size_t)slabs_max * SLAB_CHUNKS, sizeof(*t->chunks));
	if (!t->chunks || runs_init(&t->pages, TABLE_PAGES_MAX) != OK)
		return err_set(e, E_NOMEM, "tables");
	enum status s =
		map_memory(maps->pages, TABLE_PAGES_MAX * sizeof(uint64_t), &t->page_memory, e);
	if (s != OK)
		return s;
	s = map_memory(maps->file_slots, page_aligned(FILES_MAX * sizeof(struct file_slot)),
		&t->slot_memory, e);
	if (s != OK)
		return s;
	s = slab_add(t, e);
	if (s != OK)
		return s;
	*out = STEAL_PTR(t);
	return OK;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	slabs_unmap(t);
	for (uint32_t i = 0; i < t->slab_count; i++)
		fd_cleanup(&t->slab_fds[i]);
	for (uint32_t i = 0; t->chunks && i < t->slabs_max * SLAB_CHUNKS; i++)
		runs_deinit(&t->chunks[i]);
	free(t->chunks);
	runs_deinit(&t->pages);
	if (t->page_memory)
		(void)munmap(t->page_memory, TABLE_PAGES_MAX * sizeof(uint64_t));
	if (t->slot_memory)
		(void)munmap(t->slot_memory, page_aligned(FILES_MAX * sizeof(struct file_slot)));
	for (uint32_t i = 0; i < FILES_MAX; i++)
		free(t->slots[i].blobs);
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
	for (uint32_t n = 1; n < FILES_MAX; n++) {
		uint32_t i = t->slot_hint;
		t->slot_hint = i + 1 < FILES_MAX ? i + 1 : 1;
		if (t->slots[i].state == SLOT_FREE)
			return i;
	}
	return 0;
}

/* Give the room back; the slot stays, without a table. */
static void table_unplace(struct tables *t, struct slot *slot)
{
	for (uint32_t i = 0; i < slot->page_count; i++) {
		const struct blob *b = &slot->blobs[i];
		if (b->chunk != RUNS_NONE)
			runs_release(
				&t->chunks[b->chunk], b->start, b->units ? b->units : CHUNK_UNITS);
	}
	if (slot->page_count)
		runs_release(&t->pages, slot->page_base, slot->page_count);
	slot->page_base = 0;
	slot->page_count = 0;
	slot->bytes = 0;
}

static void slot_clear(struct tables *t, struct slot *slot)
{
	table_unplace(t, slot);
	free(slot->blobs);
	*slot = (struct slot){ 0 };
}

/* Nothing that is RETIRED is read any more after the wait: free it. */
static void reclaim(struct tables *t)
{
	if (t->retired_count == 0)
		return;
	uint32_t zero = 0;
	if (bpf_map_update_elem(t->maps.slabs, &zero, &t->slab_fds[0], BPF_ANY) != 0)
		return; /* no grace period: keep what is retired, and try again next time */
	for (uint32_t i = 0; i < FILES_MAX && t->retired_count > 0; i++) {
		if (t->slots[i].state != SLOT_RETIRED)
			continue;
		slot_clear(t, &t->slots[i]);
		t->retired_count--;
	}
}

static void retire(struct tables *t, uint32_t i)
{
	struct slot *slot = &t->slots[i];
	assert(i > 0 && slot->state == SLOT_LIVE);
	slot->state = SLOT_RETIRED;
	__atomic_store_n(&t->slot_memory[i].is_live, 0, __ATOMIC_RELAXED);
	t->bytes -= slot->bytes;
	t->live_count--;
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

/* Of the LIVE files (with a table, if asked for) the one that was not used for longest; 0: all of
 * them were in use lately. */
static uint32_t coldest(const struct tables *t, bool with_table)
{
	uint32_t epoch = __atomic_load_n(&t->maps.settings->epoch, __ATOMIC_RELAXED);
	uint32_t best = 0;
	uint32_t best_age = TABLES_EVICT_AGE_EPOCHS - 1;
	for (uint32_t i = 1; i < FILES_MAX; i++) {
		const struct slot *slot = &t->slots[i];
		if (slot->state != SLOT_LIVE || i == t->maps.settings->vdso_slot ||
			(with_table && slot->bytes == 0))
			continue;
		uint32_t hit = __atomic_load_n(&t->slot_memory[i].last_hit, __ATOMIC_RELAXED);
		uint32_t age = epoch - hit;
		if (age > best_age) {
			best_age = age;
			best = i;
		}
	}
	return best;
}

/* Make room for `bytes` of tables (0: for one more slot). False: nothing more to evict. */
static bool evict(struct tables *t, uint64_t bytes)
{
	uint64_t freed = 0;
	uint32_t count = 0;
	while (count == 0 || (freed < bytes && count < RETIRED_MAX)) {
		uint32_t i = coldest(t, bytes > 0);
		if (i == 0)
			break;
		freed += t->slots[i].bytes;
		t->evicted++;
		unpublish(t, i);
		count++;
	}
	reclaim(t);
	return count > 0;
}

/* ---- room for a table ---- */

static bool blob_place_in(struct tables *t, uint32_t chunk, uint32_t units, struct blob *out)
{
	uint32_t start = runs_take(&t->chunks[chunk], units);
	if (start == RUNS_NONE)
		return false;
	*out = (struct blob){ chunk, (uint16_t)start,
		(uint16_t)(units == CHUNK_UNITS ? 0 : units) };
	t->chunk_hint = chunk;
	return true;
}

static bool blob_place(struct tables *t, uint32_t units, struct blob *out)
{
	uint32_t chunks = t->slab_count * SLAB_CHUNKS;
	if (blob_place_in(t, t->chunk_hint, units, out))
		return true;
	for (uint32_t i = 0; i < chunks; i++) {
		if (blob_place_in(t, i, units, out))
			return true;
	}
	return false;
}

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
	uint32_t base = runs_take(&t->pages, table->page_count);
	if (base == RUNS_NONE)
		return NO_PAGES;
	slot->page_base = base;
	slot->page_count = table->page_count;
	for (uint32_t i = 0; i < table->page_count; i++)
		slot->blobs[i].chunk = RUNS_NONE;
	for (uint32_t i = 0; i < table->page_count; i++) {
		uint32_t units = blob_units(&table->pages[i]);
		if (units == 0)
			continue;
		if (!blob_place(t, units, &slot->blobs[i])) {
			table_unplace(t, slot);
			return NO_CHUNK;
		}
		slot->bytes += (uint64_t)units * BLOB_UNIT_BYTES;
	}
	return PLACED;
}

/* The same, making room: what is retired, another slab, what is cold. */
static enum status table_place_hard(
	struct tables *t, const struct unwind_table *table, struct slot *slot, struct err *e)
{
	enum placed placed = table_place(t, table, slot);
	if (placed == PLACED)
		return OK;
	reclaim(t);
	for (;;) {
		placed = table_place(t, table, slot);
		if (placed == PLACED)
			return OK;
		if (placed == NO_CHUNK && t->slab_count < t->slabs_max) {
			enum status s = slab_add(t, e);
			if (s != OK)
				return s;
			continue;
		}
		if (table->blob_bytes > (uint64_t)t->slabs_max * SLAB_BYTES ||
			!evict(t, table->blob_bytes))
			return err_set(e, E_LIMIT,
				"an unwind table of %llu bytes does not fit: %llu of %u MiB are "
				"taken by tables in use",
				(unsigned long long)table->blob_bytes, (unsigned long long)t->bytes,
				t->slabs_max * (SLAB_BYTES >> 20));
	}
}

/* Map the slabs that the placed table lies in. */
static enum status table_map(struct tables *t, const struct slot *slot, struct err *e)
{
	for (uint32_t i = 0; i < slot->page_count; i++) {
		const struct blob *b = &slot->blobs[i];
		if (b->chunk == RUNS_NONE)
			continue;
		enum status s = slab_map(t, b->chunk >> SLAB_CHUNK_SHIFT, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static void table_write(struct tables *t, const struct unwind_table *table, const struct slot *slot)
{
	for (uint32_t i = 0; i < table->page_count; i++) {
		const struct unwind_table_page *page = &table->pages[i];
		const struct blob *b = &slot->blobs[i];
		struct unwind_page entry = { 0 };
		if (b->chunk != RUNS_NONE) {
			uint8_t *to = t->slab_memory[b->chunk >> SLAB_CHUNK_SHIFT] +
				      (size_t)(b->chunk % SLAB_CHUNKS) * SLAB_CHUNK_BYTES +
				      (size_t)b->start * BLOB_UNIT_BYTES;
			memcpy(to, page->blob, page->blob_len);
			entry = (struct unwind_page){ (uint16_t)b->chunk, b->start,
				page->rule_count, page->row_count };
		}
		uint64_t raw;
		memcpy(&raw, &entry, sizeof(raw));
		__atomic_store_n(&t->page_memory[slot->page_base + i], raw, __ATOMIC_RELAXED);
	}
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
	if (old != 0)
		retire(t, old);
	if (t->retired_count >= RETIRED_MAX)
		reclaim(t);
	return OK;
}

static enum status publish_locked(struct tables *t, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *table, struct err *e)
{
	uint32_t i = slot_unused(t);
	if (i == 0) {
		reclaim(t);
		i = slot_unused(t);
	}
	if (i == 0 && evict(t, 0))
		i = slot_unused(t);
	if (i == 0)
		return err_set(e, E_UNAVAILABLE, "more than %d files in use", FILES_MAX - 1);

	struct slot *slot = &t->slots[i];
	enum status placed = OK;
	if (table) {
		slot->blobs = calloc(table->page_count, sizeof(*slot->blobs));
		if (!slot->blobs)
			return err_set(e, E_NOMEM, "tables: %u pages", table->page_count);
		placed = table_place_hard(t, table, slot, e);
		if (placed == OK)
			placed = table_map(t, slot, e);
		if (placed == OK)
			table_write(t, table, slot);
		else
			table_unplace(t, slot);
	}
	t->slot_memory[i] = (struct file_slot){
		.key = *key,
		.value = { file_id, slot->page_base, slot->page_count,
			placed == OK && table ? table->first_page : 0 },
		.last_hit = __atomic_load_n(&t->maps.settings->epoch, __ATOMIC_RELAXED),
	};
	enum status s = slot_publish(t, i, key, file_id == FRAME_FILE_VDSO, e);
	if (s != OK) {
		slot_clear(t, slot);
		return s;
	}
	return placed;
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
	(void)pthread_mutex_lock(&t->lock);
	enum status s = publish_locked(t, key, file_id, table, e);
	(void)pthread_mutex_unlock(&t->lock);
	return s;
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
	if (entry.rule_count == 0 || slab_map(t, entry.chunk >> SLAB_CHUNK_SHIFT, NULL) != OK)
		return none;
	const struct unwind_table_page blob = {
		.blob = t->slab_memory[entry.chunk >> SLAB_CHUNK_SHIFT] +
			(size_t)(entry.chunk % SLAB_CHUNKS) * SLAB_CHUNK_BYTES +
			(size_t)entry.off8 * BLOB_UNIT_BYTES,
		.rule_count = entry.rule_count,
		.row_count = entry.row_count,
	};
	return unwind_page_find(&blob, file_offset & (UNWIND_BLOB_BYTES_MAX - 1));
}

bool tables_find_rule(
	struct tables *t, const struct file_key *key, uint64_t file_offset, struct unwind_rule *out)
{
	(void)pthread_mutex_lock(&t->lock);
	uint32_t i = key->inode ? slot_find(t, key) : t->maps.settings->vdso_slot;
	if (i != 0 && key->generation) {
		/* The program writes it. */
		uint32_t g = __atomic_load_n(&t->slot_memory[i].key.generation, __ATOMIC_RELAXED);
		i = !g || g == key->generation ? i : 0;
	}
	if (i != 0)
		*out = slot_find_rule(t, &t->slot_memory[i].value, file_offset);
	(void)pthread_mutex_unlock(&t->lock);
	return i != 0;
}

void tables_rest(struct tables *t)
{
	(void)pthread_mutex_lock(&t->lock);
	slabs_unmap(t);
	(void)pthread_mutex_unlock(&t->lock);
}

void tables_read_stats(struct tables *t, struct tables_stats *out)
{
	(void)pthread_mutex_lock(&t->lock);
	*out = (struct tables_stats){ t->live_count, t->slab_count, t->bytes, t->evicted };
	(void)pthread_mutex_unlock(&t->lock);
}
