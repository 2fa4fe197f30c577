/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what is accepted has a normal form, which parses again to the same normal form. */
#include "fuzz/fuzz.h"

#include "base/buf.h"
#include "selector/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf first, second;
	arena_init(&a, 2 << 20);
	buf_init(&first, 8 * SELECTOR_BYTES_MAX);
	buf_init(&second, 8 * SELECTOR_BYTES_MAX);
	struct selector s;
	struct err e = { 0 };
	if (selector_parse(str_make(data, size), &a, &s, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return 0;
	}
	for (uint32_t i = 0; i < s.matcher_count; i++)
		(void)selector_matches(&s.matchers[i], str_make(data, size));
	selector_write(&first, &s);
	FUZZ_CHECK(buf_status(&first) == OK);
	selector_deinit(&s);
	if (first.len > SELECTOR_BYTES_MAX)
		return 0;
	FUZZ_CHECK(selector_parse(buf_view(&first), &a, &s, NULL) == OK);
	selector_write(&second, &s);
	FUZZ_CHECK(str_eq(buf_view(&first), buf_view(&second)));
	selector_deinit(&s);
	return 0;
}
