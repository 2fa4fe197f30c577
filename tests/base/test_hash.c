/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "test.h"

/* However the bytes are cut up, they have one hash. */
static void pieces_are_the_whole(void **state)
{
	(void)state;
	uint8_t bytes[5000];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + i / 256);
	static const size_t steps[] = { 1, 7, 240, 1024, 5000 };
	struct hash128 whole = hash128(bytes, sizeof(bytes));
	for (size_t k = 0; k < ARRAY_COUNT(steps); k++) {
		struct hash_stream *s = hash_stream_new();
		CHECK(s != NULL);
		for (size_t at = 0; at < sizeof(bytes); at += steps[k])
			hash_stream_add(s, bytes + at, MIN(steps[k], sizeof(bytes) - at));
		CHECK(hash128_eq(hash_stream_end(s), whole));
		hash_stream_add(s, "x", 1);
		CHECK(!hash128_eq(hash_stream_end(s), whole));
		hash_stream_free(s);
	}
}

/* Identities lie on disk: the values are fixed. */
static void values_are_fixed(void **state)
{
	(void)state;
	CHECK(hash64("", 0) == 0x2D06800538D394C2ull);
	struct hash128 none = hash128("", 0);
	CHECK(none.lo == 0x6001C324468D497Full && none.hi == 0x99AA06D3014798D8ull);
	struct hash_stream *s = hash_stream_new();
	CHECK(s != NULL && hash128_eq(hash_stream_end(s), none));
	hash_stream_free(s);
}

TEST_MAIN(cmocka_unit_test(pieces_are_the_whole), cmocka_unit_test(values_are_fixed))
