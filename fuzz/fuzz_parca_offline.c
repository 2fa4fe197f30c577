/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever of an offline file of parca-agent's is taken is a sound profile, of no more
 * batches than its head tells; a refusal says why and names the batch. The magic is made right
 * first, so that the fuzzer gets behind it.
 */
#include "fuzz/fuzz.h"

#include "parca/parca.h"

#include <string.h>

#define LIMIT ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct parca_offline_sum sum;
	struct err e = { 0 };
	uint8_t *file = malloc(MAX(size, (size_t)1));
	FUZZ_CHECK(file);
	memcpy(file, size ? data : (const uint8_t *)"", size);
	memcpy(file, "\xa6\xe7\xcc\xca", MIN(size, (size_t)4));
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = parca_offline_decode(str_make(file, size), LIMIT, &p, &stats, &sum, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK(sum.batches <= sum.told && (s == OK) == (e.text[0] == 0));
	FUZZ_CHECK(s != OK || sum.batches == sum.told);
	FUZZ_CHECK(sum.batches || p.samples.len == 0);
	FUZZ_CHECK(s == OK || size < 8 || sum.told == 0 || strstr(e.text, "batch "));
	FUZZ_CHECK(sum.rest_bytes + 8 <= MAX(size, (size_t)8));
	FUZZ_CHECK(s != E_CORRUPT);
	profile_deinit(&p);
	free(file);
	return 0;
}
