/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/memory_share: the quotas of the memory budget, whatever the load. In sixteenths of
 * store_config.memory_bytes:
 *
 *   2  the memtable that is being filled (store.c reserves)   1  batches on their way in
 *   2  the memtable that is being written                     4  queries, all together
 *   2  what writing it takes                                  2  tables of parts (CACHE_SHARE)
 *   4  merging (merge.c)                                      1  label texts (DICTIONARY_SHARE)
 *                                                            ½  identities of batches (dedupe.h)
 *
 * That is 18½: the limits are upper bounds, each on its own. The caller that opens the store leaves
 * room for it (server.c gives it 11 sixteenths of --storage-memory).
 *
 * Batches on their way in and queries take from here before they allocate, and give back after
 * they have freed; the others are bounded where they are used. Memory that is not counted (free
 * pieces of the heap, the program) is measured: near the limit of the process (store_relieve())
 * free pieces go back to the system, and batches and queries are let in one at a time.
 *
 * Layer 3, private to store/. Thread safe.
 */
#pragma once

#include "base/err.h"
#include "base/lock.h"

#include <sys/queue.h>

/* One batch or query. Its first bytes make it a holder; it keeps all it holds until it is done. */
struct memory_holder {
	uint64_t age;   /* smaller in holders that came earlier; 0: not known yet */
	uint64_t held;  /* bytes */
	uint64_t wants; /* how many more bytes it waits for; 0: it does not wait */
	uint64_t needs; /* bytes that it was known to need when it had to give way */
	bool yields;    /* all holders wait: this one gives its memory back, and begins anew */
	TAILQ_ENTRY(memory_holder) link;
};

/* A quota, and the batches or queries that hold some of it or wait for it, the oldest first.
 *
 * - A holder gets what fits. While one waits, newcomers get nothing, so that the others get done.
 * - A holder that is alone gets all it asks for: a single batch or query has limits of its own.
 * - When all holders wait for more, the youngest yields. So the oldest is always served, and each
 *   becomes the oldest in the end. */
struct memory_share {
	struct lock lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	TAILQ_HEAD(memory_holders, memory_holder) holders;
	uint64_t limit;
	uint64_t used;
	uint64_t next_age;
};

enum memory_got {
	MEMORY_GOT,
	MEMORY_WAIT,  /* not within the time; the holder keeps its place in the queue */
	MEMORY_YIELD, /* the holder yields (see above), and must give everything back */
};

void memory_share_init(struct memory_share *m, uint64_t limit_bytes);
void memory_share_deinit(struct memory_share *m); /* none of its memory may be in use */
/* Takes `bytes` more. `pressed`: the process is near its limit, and only the oldest holder gets
 * more. Waits until `until_ns` (monotonic) at most. */
enum memory_got memory_take(struct memory_share *m, struct memory_holder *h, uint64_t bytes,
	bool pressed, int64_t until_ns);
/* Ends the holder's wait. */
void memory_leave(struct memory_share *m, struct memory_holder *h);
/* Counts memory that is in use already, even beyond the limit. */
void memory_take_anyway(struct memory_share *m, struct memory_holder *h, uint64_t bytes);
void memory_give(struct memory_share *m, struct memory_holder *h, uint64_t bytes);
/* After a yield, with nothing held: waits until what it needed would fit. MEMORY_GOT: begin anew.
 */
enum memory_got memory_await(struct memory_share *m, struct memory_holder *h, int64_t until_ns);
uint64_t memory_used(struct memory_share *m);
