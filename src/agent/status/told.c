/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/told.h"

#include "base/hash.h"

bool told_is_new(struct told *t, struct str sentence)
{
	uint64_t hash = hash64(sentence.p, sentence.len);
	for (uint32_t i = 0; i < t->count; i++)
		if (t->hashes[i] == hash)
			return false;
	if (t->count == TOLD_MAX)
		return false;
	t->hashes[t->count++] = hash;
	return true;
}
