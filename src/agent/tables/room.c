/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that was evicted is met again as one not known yet: its stack is copied and its table
 * loaded anew. That costs some work and no stack; a table without room costs stacks. So memory is
 * added first, as far as the budget goes; then cold tables make room for a new file. Where none is
 * cold the new file is published without its table. Its samples are counted as those of all files.
 * Each epoch, a file without its table that is hotter than the coldest tables is evicted together
 * with as many of these as it needs the room of: it comes again, and finds that room.
 *
 * Tables that were not used for a while are evicted too, above the size that an idle host may take.
 * The others then move to the lower slabs, and the last slab is given back.
 */
#include "agent/tables/internal.h"

#include "agent/broker/broker.h"

#include <stdlib.h>

#define HEAT_DECAY_SHIFT 2 /* a quarter each epoch */
/* After the kernel or the broker refused a slab, no further slab is counted on for so long. */
#define REFUSED_EPOCHS 60u
#define PROMOTED_MAX 16     /* in an epoch */
#define IDLE_EVICTED_MAX 64 /* likewise */
/* A table that waits for room leaves this share of it free: blobs have holes between them. */
#define SPARE_SHIFT 4
/* A slab is given back only if so much more stays free, so that the next table does not ask for one
 * again. */
#define SLAB_SPARE_BYTES (SLAB_BYTES / 4)

/* ---- eviction ---- */

enum which {
	ANY,
	WITH_TABLE,
	WITH_RUNTIME,
};

static bool is_of(const struct slot *slot, enum which which)
{
	return which == WITH_TABLE ? slot->bytes > 0 : which == ANY || slot->runtime;
}

/* The least recently used of these LIVE files; 0: all were used within the last `epochs`. */
static uint32_t coldest(const struct tables *t, enum which which, uint32_t epochs)
{
	uint32_t epoch = tables_epoch(t);
	uint32_t best = 0;
	uint32_t best_age = epochs - 1;
	for (uint32_t i = 1; i < t->slot_end; i++) {
		const struct slot *slot = &t->slots[i];
		if (slot->state != SLOT_LIVE || i == t->maps.settings->vdso_slot ||
			!is_of(slot, which))
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
	slot_unpublish(t, i);
}

bool room_evict_cold(struct tables *t, uint64_t bytes)
{
	uint64_t freed = 0;
	uint32_t count = 0;
	while (count == 0 || (freed < bytes && count < RETIRED_MAX)) {
		uint32_t i = coldest(t, bytes ? WITH_TABLE : ANY, TABLES_EVICT_AGE_EPOCHS);
		if (i == 0)
			break;
		freed += t->slots[i].bytes;
		evict(t, i);
		count++;
	}
	slots_reclaim(t);
	return count > 0;
}

bool room_evict_cold_runtime(struct tables *t)
{
	uint32_t i = coldest(t, WITH_RUNTIME, TABLES_EVICT_AGE_EPOCHS);
	if (i)
		evict(t, i);
	slots_reclaim(t);
	return i != 0;
}

/* ---- room for a table ---- */

void room_take_offer(struct tables *t, struct slab_offer *offer)
{
	if (offer->fd >= 0 && t->slabs.count < t->slabs.max)
		offer->is_refused = slabs_add(&t->slabs, STEAL_FD(offer->fd), NULL) != OK;
	if (offer->is_refused)
		t->refused_epoch = MAX(tables_epoch(t), 1u);
}

enum status room_place(struct tables *t, const struct unwind_table *table, struct slot *slot,
	struct slab_offer *offer, struct err *e)
{
	enum placed placed = slot_place(t, table, slot);
	if (placed == PLACED)
		return OK;
	slots_reclaim(t);
	uint32_t slabs_max = offer->is_refused ? t->slabs.count : t->slabs.max;
	for (;;) {
		placed = slot_place(t, table, slot);
		if (placed == PLACED)
			return OK;
		if (placed == NO_CHUNK && t->slabs.count < slabs_max) {
			offer->is_wanted = true;
			return err_set(e, E_LIMIT, "another slab is needed");
		}
		if (table->blob_bytes > (uint64_t)slabs_max * SLAB_BYTES ||
			!room_evict_cold(t, table->blob_bytes))
			return err_set(e, E_LIMIT,
				"an unwind table of %llu bytes does not fit: %llu of %u MiB are "
				"taken by tables in use",
				(unsigned long long)table->blob_bytes, (unsigned long long)t->bytes,
				slabs_max * (SLAB_BYTES >> 20));
	}
}

/* ---- each epoch ---- */

static void measure_heat(struct tables *t)
{
	uint32_t epoch = tables_epoch(t);
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

/* Files that have no room for their tables, and had samples. */
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
	bool refused = t->refused_epoch && tables_epoch(t) - t->refused_epoch < REFUSED_EPOCHS;
	return refused ? t->slabs.count : t->slabs.max;
}

/* Evicts hot files without their tables, so that they come again, and for each the coldest tables
 * that it needs the room of: if all of these together are less than half as hot. */
static void promote(struct tables *t)
{
	if (t->wanted_count == 0)
		return;
	CLEANUP(free_cleanup) uint32_t *wanted = calloc(t->live_count, sizeof(*wanted));
	CLEANUP(free_cleanup) uint32_t *cold = calloc(t->live_count, sizeof(*cold));
	if (!wanted || !cold)
		return;
	slots_reclaim(t);
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
	slots_reclaim(t);
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
			slot_store_page(
				t, slot->page_base + k, &to, page.rule_count, page.row_count);
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
		count < IDLE_EVICTED_MAX && (i = coldest(t, WITH_TABLE, TABLES_IDLE_EPOCHS))) {
		evict(t, i);
		count++;
	}
	if (count)
		slots_reclaim(t);
	if (t->slabs.count <= t->slabs_idle ||
		t->bytes + SLAB_SPARE_BYTES > bytes_within(t->slabs.count - 1) ||
		now_ns - t->given_back_ns < slab_grants_turn_ns(t->slabs.max))
		return;
	slots_reclaim(t);
	empty_last_slab(t);
	slots_reclaim(t);
	if (slabs_used_bytes(&t->slabs, t->slabs.count - 1) > 0)
		return;
	slabs_drop(&t->slabs);
	t->given_back_ns = now_ns;
}

void room_next_epoch(struct tables *t, int64_t now_ns)
{
	measure_heat(t);
	promote(t);
	give_back(t, now_ns);
}
