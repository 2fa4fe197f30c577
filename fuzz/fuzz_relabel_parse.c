/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what is accepted applies to any labels, within its limits. */
#include "fuzz/fuzz.h"

#include "relabel/relabel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct relabel_set set;
	CLEANUP(arena_deinit) struct arena a;
	struct relabel *r = NULL;
	struct err e = { 0 };
	bool keep;
	arena_init(&a, 2 << 20);
	if (relabel_parse(str_make(data, size), &r, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return 0;
	}
	relabel_set_init(&set, &a);
	relabel_set_put(&set, STR("a"), STR("foo"));
	relabel_set_put(&set, STR("__meta_b"), str_make(data, MIN(size, (size_t)100)));
	if (relabel_apply(r, &set, &keep, &e) == OK)
		for (uint32_t i = 0; i < set.count; i++)
			FUZZ_CHECK(set.v[i].value.len > 0);
	relabel_free(r);
	return 0;
}
