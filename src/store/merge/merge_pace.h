/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/merge_pace: how fast merging goes in the background.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/state/state.h"

/* Background merging takes at most this share of one processor and writes at most so many bytes a
 * second; it waits when it was faster. It does not wait when it is far behind ingest, since each
 * additional part makes every query slower. */
#define MERGE_CPU_PERCENT 50
#define MERGE_BEHIND_PARTS 48 /* of level 0 */
#define MERGE_BYTES_PER_SECOND (64.0 * (1 << 20))
#define MERGE_PAUSE_NS_MAX (5LL * 1000000000LL) /* of one wait */
struct merge_pace {
	int64_t wall_ns;
	int64_t cpu_ns;
};
void merge_pace_begin(struct merge_pace *p);
/* How long to wait after work that took `wall_ns` of time and `cpu_ns` of processor time, and wrote
 * `bytes`.
 * */
int64_t merge_pace_delay_ns(int64_t wall_ns, int64_t cpu_ns, uint64_t bytes);
/* Waits on the store's merging thread only; on any other thread it returns at once. False: the
 * store is closing. */
bool merge_pace_wait(struct merge_pace *p, struct store *s, uint64_t bytes);
