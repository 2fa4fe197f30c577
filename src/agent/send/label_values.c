/* SPDX-License-Identifier: Apache-2.0 */
/* One bit for each value's hash; half of the bits set means full. */
#include "agent/send/label_values.h"

#include "base/hash.h"

bool label_values_admit(struct label_values *l, int pid, uint64_t start_ns, struct str name,
	struct str value, bool *out_first)
{
	*out_first = false;
	uint64_t key = hash64(name.p, name.len) ^ hash_u64(start_ns + (uint32_t)pid);
	struct label_values_slot *s = &l->v[key % LABEL_VALUES_SLOTS];
	if (s->key != key)
		*s = (struct label_values_slot){ .key = key };
	if (s->is_full)
		return false;
	uint64_t h = hash64(value.p, value.len);
	s->bits[h / 64 % ARRAY_COUNT(s->bits)] |= 1ULL << h % 64;
	int set = 0;
	for (size_t i = 0; i < ARRAY_COUNT(s->bits); i++)
		set += __builtin_popcountll(s->bits[i]);
	s->is_full = *out_first = set > LABEL_VALUES_BITS / 2;
	return !s->is_full;
}
