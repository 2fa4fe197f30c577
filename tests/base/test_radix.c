/* SPDX-License-Identifier: Apache-2.0 */
/* In order, and stable, whatever the number of items and digits. */
#include "base/hash.h"
#include "base/radix.h"
#include "test.h"

enum { N_MAX = 6000 };

static const struct {
	const char *name;
	size_t n;
	uint64_t mask;
} cases[] = {
	{ "none", 0, 0 },
	{ "one", 1, ~0ull },
	{ "few", 40, 0xFF },
	{ "some", 1000, 0xFFFF },
	{ "many", N_MAX, ~0ull },
	{ "many of few values", N_MAX, 0x7000000000000001 },
	{ "all equal", N_MAX, 0 },
};

static void sorts(void **unused)
{
	(void)unused;
	static struct radix_item v[N_MAX], scratch[N_MAX];
	static uint64_t keys[N_MAX];
	FOR_EACH_CASE (c, cases) {
		for (uint32_t i = 0; i < c->n; i++) {
			keys[i] = hash_u64(i * 77 + c->n) & c->mask;
			v[i] = (struct radix_item){ keys[i], i };
		}
		radix_sort(v, scratch, c->n);
		for (size_t i = 0; i < c->n; i++) {
			CHECK_CASE(c, v[i].key == keys[v[i].index]);
			CHECK_CASE(c,
				i == 0 || v[i - 1].key < v[i].key ||
					(v[i - 1].key == v[i].key && v[i - 1].index < v[i].index));
		}
	}
}

TEST_MAIN(cmocka_unit_test(sorts))
