/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal: what the files of agent/tables share: the slots of published files (slots.c), and room
 * for their tables (room.c). All functions are called with the lock of the tables.
 */
#pragma once

#include "agent/tables/slabs.h"
#include "agent/tables/tables.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/vec.h"

#include <pthread.h>

/* Retired slots are reclaimed together: when there are so many, and before memory is added or a
 * table is evicted. A grace period takes some ten milliseconds on busy CPUs. */
#define RETIRED_MAX 1024
#define HEAT_OF_HIT 16u

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
	uint64_t wanted_bytes; /* of its table, if that found no room; else 0 */
	uint32_t wanted_pages; /* likewise */
	struct blob *blobs;    /* one for each page */
	uint32_t hits;         /* file_slot.hits an epoch ago */
	uint32_t heat;         /* a count of its samples in which older ones count less */
	uint32_t hit_epoch;    /* epoch in which it last had samples, or was published */
	uint32_t runtime;      /* 1 + index in the records; 0: none */
};

/* A runtime's record, of all files that hold the same build of it. */
struct kept_record {
	struct runtime_record record;
	uint32_t users; /* slots, also RETIRED ones; 0: free */
};

struct tables {
	struct lock lock;
	struct tables_maps maps;
	struct slabs slabs;
	uint32_t slabs_idle;
	int64_t given_back_ns;
	struct bitmap pages;
	uint64_t *page_memory;         /* struct unwind_page each */
	struct file_slot *slot_memory; /* [FILES_MAX] */
	struct slot slots[FILES_MAX];
	uint32_t slot_end;  /* one more than the last slot that was ever used */
	uint32_t slot_hint; /* none below is FREE */
	struct map index;   /* from key to slot, of LIVE slots other than the vDSO's */
	uint32_t retired_count;
	VEC(struct blob)
	left; /* old copies of moved blobs, to be freed as those of RETIRED slots */
	uint32_t live_count;
	uint32_t wanted_count;
	uint32_t refused_epoch; /* in which a slab was refused last; 0: never */
	uint64_t bytes;
	uint64_t evicted;
	struct kept_record records[RUNTIME_RECORDS_MAX];
};

/* One more slab for a table that is published. It is asked for without the lock, since the broker
 * may take its time; then the table is placed once more. */
struct slab_offer {
	bool is_wanted;
	bool is_refused; /* the kernel or the broker has no more */
	int fd;          /* it is here; -1 */
};

static_assert(sizeof(struct unwind_page) == sizeof(uint64_t), "one store");
static_assert(sizeof(struct file_slot) == 40, "shared with the BPF program");

static inline uint32_t tables_epoch(const struct tables *t)
{
	return __atomic_load_n(&t->maps.settings->epoch, __ATOMIC_RELAXED);
}

/* ---- slots.c ---- */

/* The slot of a published key; 0: none. */
uint32_t slot_find(const struct tables *t, const struct file_key *key);
/* A FREE one; 0: none. */
uint32_t slot_unused(struct tables *t);
/* Makes it FREE: its room is given back. */
void slot_clear(struct tables *t, struct slot *slot);
enum placed {
	PLACED,
	NO_PAGES,
	NO_CHUNK,
};
/* Room for all of the table's pages and blobs, or for none. */
enum placed slot_place(struct tables *t, const struct unwind_table *table, struct slot *slot);
/* Gives the room back; the slot stays, without a table. */
void slot_unplace(struct tables *t, struct slot *slot);
/* Writes the table into its place. */
NODISCARD enum status slot_write(
	struct tables *t, const struct unwind_table *table, const struct slot *slot, struct err *e);
/* A page is found at this blob from now on. */
void slot_store_page(
	struct tables *t, uint32_t page, const struct blob *b, uint16_t rules, uint16_t rows);
/* Fills the free slot `i` and lets the program find it. */
NODISCARD enum status slot_publish(
	struct tables *t, uint32_t i, const struct file_key *key, bool is_vdso, struct err *e);
/* Takes it out of `files` and the index, so that no new lookup finds it: RETIRED. */
void slot_unpublish(struct tables *t, uint32_t i);
/* Frees what is RETIRED or left, once nothing reads it any more. */
void slots_reclaim(struct tables *t);

/* ---- room.c ---- */

/* Takes the slab of an offer, or notes that there is none. */
void room_take_offer(struct tables *t, struct slab_offer *offer);
/* As slot_place(), but makes room: by freeing retired tables, then by another slab, then by
 * evicting cold tables. E_LIMIT: there is none, or a slab is wanted. */
NODISCARD enum status room_place(struct tables *t, const struct unwind_table *table,
	struct slot *slot, struct slab_offer *offer, struct err *e);
/* Makes room for `bytes` of tables (0: for one more slot). False: nothing is cold. */
bool room_evict_cold(struct tables *t, uint64_t bytes);
/* Makes room for a runtime's record, unless other files have the same. False: nothing is cold. */
bool room_evict_cold_runtime(struct tables *t);
void room_next_epoch(struct tables *t, int64_t now_ns);
