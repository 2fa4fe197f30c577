/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of the sentences: two sentences of one hash count as one. */
#include "agent/status/log_once.h"

#include "base/hash.h"

bool log_once_is_new(struct log_once *t, struct str sentence)
{
	uint64_t hash = hash64(sentence.p, sentence.len);
	for (uint32_t i = 0; i < t->count; i++)
		if (t->hashes[i] == hash)
			return false;
	if (t->count == LOG_ONCE_MAX)
		return false;
	t->hashes[t->count++] = hash;
	return true;
}
