/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever parca_raw_decode() takes is a sound profile, within limits (profile_limit())
 * too; what it refuses it says why, and leaves no samples.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "parca/parca.h"

#define LIMIT ((size_t)16 << 20)

FUZZ_MUTATES_PB(0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct profile_limits limits = { 4, 8, 8, 1000, (int64_t)1 << 62 };
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = parca_raw_decode(str_make(data, size), 1234567, &p, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	size_t before = p.samples.len;
	FUZZ_CHECK(profile_limit(&p, &limits, &refused) == OK);
	FUZZ_CHECK(p.samples.len + refused.samples == before);
	FUZZ_CHECK((refused.samples == 0) == (refused.reason[0] == 0));
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	profile_deinit(&p);
	return 0;
}
