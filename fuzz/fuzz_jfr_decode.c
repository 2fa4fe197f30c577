/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever jfr_decode() takes is a sound profile with samples of positive values; what it
 * refuses it says why, and leaves no samples.
 */
#include "fuzz/fuzz.h"

#include "jfr/jfr.h"

#define LIMIT ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct err e = { 0 };
	struct jfr_options options = { .period_ns = 10000000 };
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = jfr_decode(str_make(data, size), &options, &p, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	for (size_t i = 0; i < p.samples.len; i++)
		FUZZ_CHECK(p.samples.v[i].value > 0);
	profile_deinit(&p);
	return 0;
}
