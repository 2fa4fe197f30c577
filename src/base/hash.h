/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: XXH3 of bytes, for tables in memory and for identities on disk.
 *
 * Layer 0. The 128-bit form is the identity of stacks and batches (docs/formats). Source: xxHash
 * 0.8, https://github.com/Cyan4973/xxHash; the values are stable since 0.8.0.
 */
#pragma once

#include "base/str.h"

struct hash128 {
	uint64_t lo;
	uint64_t hi;
};

uint64_t hash64(const void *bytes, size_t len);
struct hash128 hash128(const void *bytes, size_t len);

/* hash128() of bytes that come in pieces. NULL: no memory. */
struct hash_stream;
struct hash_stream *hash_stream_new(void);
void hash_stream_add(struct hash_stream *s, const void *bytes, size_t len);
struct hash128 hash_stream_end(const struct hash_stream *s);
void hash_stream_free(struct hash_stream *s);

static inline bool hash128_eq(struct hash128 a, struct hash128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

/* A good mix of one number: murmur3's finalizer. */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ (x >> 33);
}
