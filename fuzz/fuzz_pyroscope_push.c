/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever pyroscope_push_decode() takes is a sound profile; what it refuses it says why,
 * and leaves no samples.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "pyroscope/pyroscope.h"

#define LIMIT ((size_t)16 << 20)

FUZZ_MUTATES_PB(0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct err e = { 0 };
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = pyroscope_push_decode(str_make(data, size), 1234567, &p, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	profile_deinit(&p);
	return 0;
}
