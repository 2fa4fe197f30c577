/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab_grants: how many slabs (kernel memory for unwind tables) the broker may still give out.
 * Private to agent/. No clock and no lock of its own.
 *
 * The kernel does not say which slabs still exist, and the broker cannot trust the agent to say it.
 * The agent gives back at most one slab in a turn, so the broker gives out one more in each turn.
 */
#pragma once

#include "base/clock.h"

/* The budget may be given back, and asked for again, in so many pieces, one in a minute. */
#define SLAB_GRANTS_PIECES 32

struct slab_grants {
	uint32_t count; /* slabs given out, without those that may have been given back since */
	int64_t since_ns;
};

/* The time in which one slab of a budget of `max` may be given back, and one more be asked for. */
int64_t slab_grants_turn_ns(uint32_t max);
/* May one more of `max` be given out? It counts then. */
bool slab_grants_take(struct slab_grants *g, uint32_t max, int64_t now_ns);
