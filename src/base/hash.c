/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/sanitized.h"

#if !SANITIZED
/* The hash is inlined: most keys are a few words long, and calling a library takes as long as
 * hashing them. */
#define XXH_INLINE_ALL
#include <xxhash.h>

static inline void show_to_sanitizer(const void *bytes, size_t len)
{
	(void)bytes;
	(void)len;
}
#else
/* The library hashes several times as fast as code with a sanitizer's checks, which then sees what
 * memcmp() reads. */
#include <string.h>
#include <xxhash.h>

static void show_to_sanitizer(const void *bytes, size_t len)
{
	const void *volatile same = bytes;
	volatile int differs = len > 0 ? memcmp(bytes, same, len) : 0;
	(void)differs;
}
#endif

uint64_t hash64(const void *bytes, size_t len)
{
	show_to_sanitizer(bytes, len);
	return XXH3_64bits(bytes, len);
}

struct hash128 hash128(const void *bytes, size_t len)
{
	show_to_sanitizer(bytes, len);
	XXH128_hash_t h = XXH3_128bits(bytes, len);
	return (struct hash128){ h.low64, h.high64 };
}

/* The library's state; struct hash_stream is never defined. */
static XXH3_state_t *state_of(const struct hash_stream *s)
{
	return (XXH3_state_t *)(uintptr_t)s;
}

struct hash_stream *hash_stream_new(void)
{
	XXH3_state_t *x = XXH3_createState();
	if (x)
		(void)XXH3_128bits_reset(x);
	return (struct hash_stream *)x;
}

void hash_stream_add(struct hash_stream *s, const void *bytes, size_t len)
{
	show_to_sanitizer(bytes, len);
	(void)XXH3_128bits_update(state_of(s), bytes, len);
}

struct hash128 hash_stream_end(const struct hash_stream *s)
{
	XXH128_hash_t h = XXH3_128bits_digest(state_of(s));
	return (struct hash128){ h.low64, h.high64 };
}

void hash_stream_free(struct hash_stream *s)
{
	(void)XXH3_freeState(state_of(s));
}
