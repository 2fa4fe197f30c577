/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of parts stay loaded while queries use them: tables that no query used for a minute are
 * freed, and others too (labels last) if all together take too much. After a start the labels of
 * the newest parts are loaded before a query asks for them.
 */
#include "store/read/caches.h"
#include "base/clock.h"

#include <stdlib.h>

#define CACHE_AGE_NS (60 * NS_PER_SEC)
#define WARM_WAIT_NS (2 * NS_PER_SEC) /* in all */
#define WARM_STEP_NS (20 * NS_PER_MS)

void store_trim_caches(struct store *s)
{
	static const unsigned in_turn[] = { ~(unsigned)PART_KEEP, ~0u };
	int64_t now = clock_monotonic_ns();
	uint64_t loaded = 0;
	lock_take(&s->lock);
	uint64_t most = s->config.memory_bytes / CACHE_SHARE;
	for (size_t i = 0; i < s->parts.len; i++)
		loaded += part_trim(s->parts.v[i], in_turn[0], now - CACHE_AGE_NS);
	for (size_t k = 0; k < ARRAY_COUNT(in_turn); k++)
		for (size_t i = 0; i < s->parts.len && loaded > most; i++) {
			uint64_t before = part_trim(s->parts.v[i], 0, INT64_MIN);
			uint64_t after = part_trim(s->parts.v[i], in_turn[k], INT64_MAX);
			loaded -= MIN(loaded, before > after ? before - after : 0);
		}
	lock_release(&s->lock);
}

static int newest_first(const void *a, const void *b)
{
	struct part *const *x = a, *const *y = b;
	int64_t tx = part_meta(*x)->last_ns, ty = part_meta(*y)->last_ns;
	return tx > ty ? -1 : tx < ty;
}

/* Loads tables of a part ahead of queries and returns the bytes it keeps. A failure is left to the
 * query that needs them. */
static uint64_t warm_part(
	struct part *p, unsigned groups, struct dictionary *d, uint64_t limit_bytes)
{
	struct tabs t;
	struct label_ids *ids;
	if (part_pin(p, groups, limit_bytes, &t, NULL) != OK)
		return 0;
	if (d && part_label_ids(p, d, &ids) == OK)
		label_ids_unref(ids);
	uint64_t bytes = part_forget(p, 0);
	part_unpin(p, groups);
	return bytes;
}

/* Waits for running queries, for a while, since they load the tables that they need. True: go on.
 */
static bool may_warm(struct store *s, int64_t deadline_ns)
{
	lock_take(&s->lock);
	while (s->views && !s->stopping && clock_monotonic_ns() < deadline_ns) {
		int64_t until = clock_monotonic_ns() + WARM_STEP_NS;
		struct timespec t = { until / NS_PER_SEC, until % NS_PER_SEC };
		(void)lock_wait_until(&s->merge_wake, &s->lock, &t);
	}
	bool stopping = s->stopping;
	lock_release(&s->lock);
	return !stopping;
}

void store_warm(struct store *s)
{
	/* First the tables with values of labels, then those that selectors need. */
	static const unsigned in_turn[] = { PART_LOAD_TEXTS | PART_LOAD_KINDS, PART_KEEP };
	int64_t deadline = clock_monotonic_ns() + WARM_WAIT_NS;
	lock_take(&s->lock);
	uint64_t most = s->config.memory_bytes / CACHE_SHARE;
	size_t n = s->parts.len, count = 0;
	CLEANUP(free_cleanup) struct part **v = calloc(MAX(n, (size_t)1), sizeof(struct part *));
	struct dictionary *d = s->dictionary ? dictionary_ref(s->dictionary) : NULL;
	for (size_t i = 0; v && i < n; i++)
		v[count++] = part_ref(s->parts.v[i]);
	lock_release(&s->lock);
	if (count)
		qsort(v, count, sizeof(struct part *), newest_first);
	for (size_t k = 0; k < ARRAY_COUNT(in_turn); k++) {
		uint64_t loaded = 0; /* bytes loaded of the parts so far */
		for (size_t i = 0; i < count && loaded < most && may_warm(s, deadline); i++)
			loaded += warm_part(v[i], in_turn[k], k ? d : NULL, most - loaded);
	}
	for (size_t i = 0; i < count; i++)
		part_unref(v[i]);
	dictionary_unref(d);
}
