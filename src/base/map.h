/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map: hash tables: `map` finds an index by hash and the caller's own comparison; `strtab` gives
 * each distinct text a number.
 *
 * Layer 0. Not thread safe. Ids are dense, in order of first appearance.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"

/* A hash table with open addressing. A hash and the caller's comparison lead to a uint32 value
 * below MAP_NONE. */
#define MAP_NONE UINT32_MAX

struct map {
	struct map_slot *slots;
	uint32_t mask; /* slots - 1; 0 before the first insert */
	uint32_t count;
	uint32_t expected; /* the caller's own, 0 at first: the value that may come next */
};

typedef bool map_equal_fn(const void *ctx, uint32_t value, const void *key);

void map_deinit(struct map *m);
void map_clear(struct map *m); /* memory kept */
/* MAP_NONE when absent. */
uint32_t map_find(
	const struct map *m, uint64_t hash, map_equal_fn *equal, const void *ctx, const void *key);
/* For a caller that looks for many values. map_prefetch() brings the slot of a hash into the CPU's
 * cache. map_peek() returns the value in that slot, which may have another hash; MAP_NONE: the slot
 * is free. */
void map_prefetch(const struct map *m, uint64_t hash);
uint32_t map_peek(const struct map *m, uint64_t hash);
/* Room for `count` values in all, for a caller that knows how many will come. False: no memory. */
NODISCARD bool map_reserve(struct map *m, uint32_t count);
/* Add a value that is not there yet (the caller looked). False: no memory. */
NODISCARD bool map_insert(struct map *m, uint64_t hash, uint32_t value);
/* Forget one value. True if it was there. */
bool map_remove(struct map *m, uint64_t hash, uint32_t value);

/* Distinct texts with ids 0, 1, 2, …; id 0 is always "". */
struct strtab {
	struct str *v; /* v[id]; bytes live in the arena, NUL after each */
	uint32_t len;
	uint32_t cap;
	struct map index;
	struct arena arena;
};

/* limit: bytes of text in all. An error leaves nothing to release. */
NODISCARD enum status strtab_init(struct strtab *t, size_t limit_bytes);
void strtab_deinit(struct strtab *t);
/* Forgets all texts but "". */
NODISCARD enum status strtab_clear(struct strtab *t);
/* Room for `more` texts, without their bytes. */
NODISCARD enum status strtab_reserve(struct strtab *t, uint32_t more);
NODISCARD enum status strtab_intern(struct strtab *t, struct str s, uint32_t *out_id);
/* MAP_NONE when absent. */
uint32_t strtab_find(const struct strtab *t, struct str s);
/* Whether `s` is the text that follows the one interned last. */
static inline bool strtab_expects(const struct strtab *t, struct str s)
{
	return t->index.expected < t->len && str_eq(t->v[t->index.expected], s);
}
static inline struct str strtab_get(const struct strtab *t, uint32_t id)
{
	assert(id < t->len);
	return t->v[id];
}
