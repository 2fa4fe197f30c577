/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory: who may hold how much of the memory budget (--storage-memory), so that all together
 * stay within it, whatever the load. In sixteenths:
 *
 *   2  the memtable that is being filled (store.c reserves)   1  batches on their way in
 *   2  the one that is being written                          4  questions, all together
 *   2  what writing it takes                                  1  tables of parts that are kept
 *   4  merging (merge.c)
 *
 * Batches on their way in and questions take from here before they allocate, and give back after
 * they have freed; the others are bounded where they are used. What nobody counts (free pieces of
 * the heap, the program) is measured: near the limit of the process as a whole (store_relieve())
 * free pieces go back to the system, and who comes is let in one at a time.
 *
 * Layer 3, private to store/. Thread safe.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>

enum memory_share { MEMORY_INGEST, MEMORY_QUERIES, MEMORY_SHARES };

struct memory_shares {
	uint64_t limit[MEMORY_SHARES];
	atomic_uint_fast64_t used[MEMORY_SHARES];
	atomic_uint_fast64_t refused[MEMORY_SHARES];
};

void memory_init(struct memory_shares *m, uint64_t budget_bytes);
/* E_UNAVAILABLE: others hold too much of the share now; counted. Who is alone may have all that is
 * asked for: a single batch or question has limits of its own. */
NODISCARD enum status memory_take(
	struct memory_shares *m, enum memory_share share, uint64_t bytes, struct err *e);
/* More for one who holds `held` bytes already. */
NODISCARD enum status memory_take_more(struct memory_shares *m, enum memory_share share,
	uint64_t held, uint64_t bytes, struct err *e);
/* What is there already, whatever the others hold. */
void memory_take_anyway(struct memory_shares *m, enum memory_share share, uint64_t bytes);
void memory_give(struct memory_shares *m, enum memory_share share, uint64_t bytes);
uint64_t memory_used(const struct memory_shares *m, enum memory_share share);
