/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counting pass and a moving pass for each digit. Keys that are sorted already, as those of most
 * samples are, are not moved; few keys are sorted by insertion.
 */
#include "base/radix.h"

#include <string.h>

#define DIGIT_BITS_MAX 11
#define MANY 4096 /* from this many keys on wider digits are faster */
#define FEW 48

static void insertion_sort(struct radix_item *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct radix_item x = v[i];
		size_t j = i;
		for (; j && v[j - 1].key > x.key; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static void move_by_digit(const struct radix_item *from, struct radix_item *to, size_t n,
	unsigned shift, unsigned bits)
{
	uint32_t at[1u << DIGIT_BITS_MAX] = { 0 };
	uint64_t mask = (1u << bits) - 1;
	for (size_t i = 0; i < n; i++)
		at[from[i].key >> shift & mask]++;
	uint32_t sum = 0;
	for (unsigned b = 0; b <= mask; b++) {
		uint32_t count = at[b];
		at[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].key >> shift & mask]++] = from[i];
}

void radix_sort(struct radix_item *v, struct radix_item *scratch, size_t n)
{
	assert(n < UINT32_MAX);
	bool ascends = true;
	uint64_t differ = 0;
	for (size_t i = 1; i < n; i++) {
		ascends &= v[i].key >= v[i - 1].key;
		differ |= v[i].key ^ v[0].key;
	}
	if (ascends)
		return;
	if (n <= FEW) {
		insertion_sort(v, n);
		return;
	}
	unsigned bits = n < MANY ? 8 : DIGIT_BITS_MAX;
	struct radix_item *from = v, *to = scratch;
	for (unsigned shift = 0; shift < 64; shift += bits) {
		if (!(differ >> shift & ((1u << bits) - 1)))
			continue;
		move_by_digit(from, to, n, shift, bits);
		struct radix_item *t = from;
		from = to;
		to = t;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
}
