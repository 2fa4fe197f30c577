/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time is cut into windows of an hour, six hours and a day; a part belongs to the window of its
 * last sample. Within the current hour, young parts are merged six at a time, so that their tries
 * are not written many times. When a window has closed, its parts become one, unless one of them is
 * so much larger than the others that rewriting it is not worth it yet.
 */
#include "store/merge/merge_choose.h"

#include "base/clock.h"

#define YOUNG_MIN 6
#define SMALL_MIN 8                        /* small parts beside a large one */
#define LATE_NS (5 * 60 * NS_PER_SEC)      /* a window closes this long after its end */
#define PART_BYTES_MAX ((uint64_t)2 << 30) /* larger parts are left alone */

static const int64_t windows_ns[] = { 3600 * NS_PER_SEC, 6 * 3600 * NS_PER_SEC,
	24 * 3600 * NS_PER_SEC };

static int64_t window_of(int64_t t, int64_t size)
{
	int64_t k = t / size;
	return k - (t % size < 0);
}

static bool worth_it(const struct merge_candidate *v, const size_t *set, size_t n)
{
	uint64_t sum = 0, largest = 0;
	for (size_t i = 0; i < n; i++) {
		sum += v[set[i]].bytes;
		largest = MAX(largest, v[set[i]].bytes);
	}
	return n >= 2 && (largest <= (sum - largest) * 3 || n >= SMALL_MIN);
}

/* The parts of the window `w`, at most MERGE_SOURCES_MAX. */
static size_t gather(const struct merge_candidate *v, size_t n, int64_t w, int64_t size,
	bool young_only, size_t *set)
{
	size_t count = 0;
	for (size_t i = 0; i < n && count < MERGE_SOURCES_MAX; i++)
		if (window_of(v[i].last_ns, size) == w && v[i].bytes <= PART_BYTES_MAX &&
			(!young_only || v[i].level == 0))
			set[count++] = i;
	return count;
}

static bool closed(int64_t w, int64_t size, int64_t now_ns)
{
	return window_of(now_ns - LATE_NS, size) > w;
}

size_t merge_choose(
	const struct merge_candidate *v, size_t n, int64_t now_ns, size_t chosen[MERGE_SOURCES_MAX])
{
	for (size_t k = 0; k < ARRAY_COUNT(windows_ns); k++) {
		int64_t size = windows_ns[k];
		for (size_t i = 0; i < n; i++) {
			int64_t w = window_of(v[i].last_ns, size);
			size_t young = k ? 0 : gather(v, n, w, size, true, chosen);
			if (young >= YOUNG_MIN)
				return young;
			if (!closed(w, size, now_ns))
				continue;
			size_t all = gather(v, n, w, size, false, chosen);
			if (worth_it(v, chosen, all))
				return all;
			if (k == 0 && (young = gather(v, n, w, size, true, chosen)) > 0)
				return young; /* at least it gets sorted and rounded */
		}
	}
	return 0;
}
