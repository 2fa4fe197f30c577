/* SPDX-License-Identifier: Apache-2.0 */
/* Property: any bytes give a name of bounded length, in bounded memory, and the same one again. */
#include "fuzz/fuzz.h"

#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a, again;
	arena_init(&a, 1 << 20);
	arena_init(&again, 1 << 20);
	struct str s = symbolize_demangle(str_make(data, size), &a);
	FUZZ_CHECK(s.len <= (size > 1003 ? size : 1003));
	struct str t = symbolize_demangle(str_make(data, size), &again);
	FUZZ_CHECK(str_eq(s, t));
	arena_deinit(&a);
	arena_deinit(&again);
	return 0;
}
