/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what every libFuzzer target includes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of runs that are there for their number (FIRN_FUZZ_BULK=1, tools/fuzz). */
#ifdef FUZZ_LIBFUZZER
extern bool fuzz_bulk;
#else
#define fuzz_bulk false
#endif

/* For what costs many times the parser: always true, but in bulk of one input in sixteen, chosen by
 * its bytes. */
static inline bool fuzz_thorough(const uint8_t *data, size_t size)
{
	uint32_t h = 2166136261u ^ (uint32_t)size;
	if (!fuzz_bulk)
		return true;
	for (size_t i = 0; i < size; i += 1 + size / 64)
		h = (h ^ data[i]) * 16777619u;
	return (h >> 7) % 16 == 0;
}

#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)
