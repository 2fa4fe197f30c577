/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash64(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

struct hash128 hash128(const void *bytes, size_t len)
{
	XXH128_hash_t h = XXH3_128bits(bytes, len);
	return (struct hash128){ h.low64, h.high64 };
}
