/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring in order of arrival, so that old entries leave at one end, and an index into it. An entry
 * whose batch is being stored has the time PENDING; a batch that failed leaves an empty entry.
 */
#include "store/state/dedupe.h"

#include <stdlib.h>

#define PENDING INT64_MAX
#define RING_MIN 256

void dedupe_init(struct dedupe *d, uint64_t bytes)
{
	*d = (struct dedupe){ .max = DEDUPE_MIN };
	while (d->max < DEDUPE_MAX && d->max * 2 * DEDUPE_ENTRY_BYTES <= bytes)
		d->max *= 2;
	lock_init(&d->lock, LOCK_DEDUPE);
}

void dedupe_deinit(struct dedupe *d)
{
	free(d->v);
	map_deinit(&d->index);
	lock_destroy(&d->lock);
}

static bool is_null(struct hash128 id)
{
	return id.lo == 0 && id.hi == 0;
}

static uint64_t hash_of(struct hash128 id)
{
	return hash_u64(id.lo ^ hash_u64(id.hi));
}

static bool entry_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct dedupe *d = ctx;
	return hash128_eq(d->v[value].id, *(const struct hash128 *)key);
}

static uint32_t find(const struct dedupe *d, struct hash128 id)
{
	return map_find(&d->index, hash_of(id), entry_equal, d, &id);
}

static void drop_first(struct dedupe *d)
{
	struct batch_seen *x = &d->v[d->first];
	if (!is_null(x->id))
		map_remove(&d->index, hash_of(x->id), (uint32_t)d->first);
	d->first = (d->first + 1) % d->cap;
	d->count--;
}

/* Removes an entry anywhere in the ring: an empty one stays in its place. */
static void drop(struct dedupe *d, struct hash128 id, uint32_t at)
{
	map_remove(&d->index, hash_of(id), at);
	d->v[at] = (struct batch_seen){ .arrived_ns = INT64_MIN };
}

static bool grow(struct dedupe *d)
{
	size_t cap = d->cap ? d->cap * 2 : RING_MIN;
	struct batch_seen *v = malloc(cap * sizeof(*v));
	if (!v)
		return false;
	map_clear(&d->index);
	for (size_t i = 0; i < d->count; i++) {
		v[i] = d->v[(d->first + i) % d->cap];
		if (!is_null(v[i].id) && !map_insert(&d->index, hash_of(v[i].id), (uint32_t)i)) {
			free(v);
			return false;
		}
	}
	free(d->v);
	d->v = v;
	d->cap = cap;
	d->first = 0;
	return true;
}

static bool push(struct dedupe *d, struct hash128 id, int64_t arrived_ns)
{
	if (d->count == d->cap && d->cap < d->max && !grow(d))
		return false;
	if (d->count == d->cap)
		drop_first(d);
	uint32_t at = (uint32_t)((d->first + d->count) % d->cap);
	if (!map_insert(&d->index, hash_of(id), at))
		return false;
	d->v[at] = (struct batch_seen){ id, arrived_ns };
	d->count++;
	return true;
}

static void forget_old(struct dedupe *d, int64_t now_ns)
{
	while (d->count && d->v[d->first].arrived_ns < now_ns - DEDUPE_AGE_NS)
		drop_first(d);
}

enum dedupe_answer dedupe_begin(struct dedupe *d, struct hash128 id, int64_t now_ns)
{
	if (is_null(id))
		return DEDUPE_NEW;
	lock_take(&d->lock);
	forget_old(d, now_ns);
	enum dedupe_answer answer = DEDUPE_NEW;
	uint32_t at = find(d, id);
	if (at != MAP_NONE && d->v[at].arrived_ns < now_ns - DEDUPE_AGE_NS) {
		drop(d, id, at); /* after a start the ring is not in order */
		at = MAP_NONE;
	}
	if (at != MAP_NONE)
		answer = d->v[at].arrived_ns == PENDING ? DEDUPE_PENDING : DEDUPE_KNOWN;
	else if (!push(d, id, PENDING))
		answer = DEDUPE_NO_MEMORY;
	lock_release(&d->lock);
	return answer;
}

void dedupe_end(struct dedupe *d, struct hash128 id, int64_t arrived_ns, bool stored)
{
	if (is_null(id))
		return;
	lock_take(&d->lock);
	uint32_t at = find(d, id);
	if (at != MAP_NONE && stored) {
		d->v[at].arrived_ns = arrived_ns;
	} else if (at != MAP_NONE) {
		drop(d, id, at);
	}
	lock_release(&d->lock);
}

void dedupe_add(struct dedupe *d, struct hash128 id, int64_t arrived_ns)
{
	if (is_null(id))
		return;
	lock_take(&d->lock);
	if (find(d, id) == MAP_NONE)
		(void)!push(d, id, arrived_ns); /* without memory a retry may be stored twice */
	lock_release(&d->lock);
}
