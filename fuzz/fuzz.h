/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what every libFuzzer target includes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For what costs many times the parser: always true, but in runs that are there for their number
 * (FIRN_FUZZ_BULK=1, tools/fuzz) of one input in sixteen, chosen by its bytes. */
static inline bool fuzz_thorough(const uint8_t *data, size_t size)
{
#ifdef FUZZ_LIBFUZZER
	static int bulk = -1;
	uint32_t h = 2166136261u ^ (uint32_t)size;
	if (bulk < 0)
		bulk = getenv("FIRN_FUZZ_BULK") != NULL;
	if (!bulk)
		return true;
	for (size_t i = 0; i < size; i += 1 + size / 64)
		h = (h ^ data[i]) * 16777619u;
	return (h >> 7) % 16 == 0;
#else
	(void)data;
	(void)size;
	return true;
#endif
}

#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)
