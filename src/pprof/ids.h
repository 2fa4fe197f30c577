/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids: maps the ids that a writer of profile.proto chose to indices. Private to pprof/.
 *
 * It is an array as long as ids are 1, 2, 3, … (nearly all writers). The first other id turns it
 * into a hash table.
 */
#pragma once

#include "base/map.h"

#define NO_ID UINT32_MAX

struct id_table {
	uint64_t *ids;     /* as the writer gave them */
	uint32_t *indices; /* in the profile's table */
	uint32_t count;    /* room in both */
	uint32_t filled;
	bool sparse; /* `map` is in use */
	bool moved;  /* some index is not the same number as its id */
	struct map map;
};

static inline bool id_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct id_table *t = ctx;
	return t->ids[value] == *(const uint64_t *)key;
}

/* The place of an id in the table; NO_ID when there is none. */
static inline uint32_t id_place(const struct id_table *t, uint64_t id)
{
	if (t->sparse)
		return map_find(&t->map, hash_u64(id), id_equal, t, &id);
	return id - 1 < t->filled ? (uint32_t)(id - 1) : NO_ID;
}

/* The profile's index of an id: 0 for 0, NO_ID when there is none. */
static inline uint32_t id_index(const struct id_table *t, uint64_t id)
{
	if (id == 0)
		return 0;
	uint32_t place = id_place(t, id);
	return place == NO_ID ? NO_ID : t->indices[place];
}

/* Adds a new id if its place is the next one; false: it is not. */
static inline bool id_append_next(struct id_table *t, uint64_t id, uint32_t index)
{
	uint32_t at = t->filled;
	if (t->sparse || id != (uint64_t)at + 1 || at >= t->count)
		return false;
	t->ids[at] = id;
	t->indices[at] = index;
	t->moved |= index != id;
	t->filled++;
	return true;
}

/* Adds a new id; false: no memory. */
static inline bool id_append(struct id_table *t, uint64_t id, uint32_t index)
{
	uint32_t at = t->filled;
	assert(at < t->count && id != 0);
	if (!t->sparse && id != (uint64_t)at + 1) {
		for (uint32_t i = 0; i < at; i++)
			if (!map_insert(&t->map, hash_u64(t->ids[i]), i))
				return false;
		t->sparse = true;
	}
	if (t->sparse && !map_insert(&t->map, hash_u64(id), at))
		return false;
	t->ids[at] = id;
	t->indices[at] = index;
	t->moved |= index != id;
	t->filled++;
	return true;
}
