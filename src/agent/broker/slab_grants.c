/* SPDX-License-Identifier: Apache-2.0 */
/* Each turn that has passed lowers the count by one. When it reaches zero, counting starts anew. */
#include "agent/broker/slab_grants.h"

#define TURN_NS (60 * NS_PER_SEC)

int64_t slab_grants_turn_ns(uint32_t max)
{
	return TURN_NS / MAX(max / SLAB_GRANTS_PIECES, 1u);
}

bool slab_grants_take(struct slab_grants *g, uint32_t max, int64_t now_ns)
{
	int64_t turn_ns = slab_grants_turn_ns(max);
	uint64_t turns = (uint64_t)MAX(now_ns - g->since_ns, (int64_t)0) / (uint64_t)turn_ns;
	if (turns >= g->count) {
		*g = (struct slab_grants){ .since_ns = now_ns };
	} else {
		g->count -= (uint32_t)turns;
		g->since_ns += (int64_t)turns * turn_ns;
	}
	bool may = g->count < max;
	g->count += may;
	return may;
}
