/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever otlp_decode() takes is a sound profile; written again, nothing of it is
 * refused, and it has the same samples. Each profile left out is counted by a reason.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "otlp/otlp.h"
#include "tests/profile_dump.h"

#define LIMIT ((size_t)64 << 20)

/* Few enough to print, and no sum of values that is clamped. */
static bool comparable(const struct profile *p)
{
	bool small = p->samples.len < 1000;
	for (size_t i = 0; i < p->samples.len; i++)
		small &= p->samples.v[i].value < INT32_MAX && p->samples.v[i].value > INT32_MIN;
	return small;
}

static void check_again(const struct profile *p)
{
	struct profile back;
	struct otlp_rejects rejects;
	struct buf first, want, got;
	buf_init(&first, LIMIT);
	buf_init(&want, LIMIT);
	buf_init(&got, LIMIT);
	FUZZ_CHECK(otlp_encode(p, &first) == OK);
	FUZZ_CHECK(profile_init(&back, LIMIT) == OK);
	FUZZ_CHECK(otlp_decode(buf_view(&first), &back, &rejects, NULL) == OK);
	FUZZ_CHECK(rejects.profiles == 0);
	FUZZ_CHECK(profile_validate(&back, NULL) == OK);
	if (comparable(p) && profile_dump(p, &want)) {
		FUZZ_CHECK(profile_dump(&back, &got));
		FUZZ_CHECK(str_eq(buf_view(&want), buf_view(&got)));
	}
	profile_deinit(&back);
	buf_deinit(&first);
	buf_deinit(&want);
	buf_deinit(&got);
}

FUZZ_MUTATES_PB(0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct otlp_rejects rejects;
	struct err e;
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = otlp_decode(str_make(data, size), &p, &rejects, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	uint64_t counted = 0;
	for (size_t i = 0; i < OTLP_REJECTS_COUNT; i++)
		counted += rejects.by_reason[i];
	FUZZ_CHECK(counted == (uint64_t)rejects.profiles);
	FUZZ_CHECK((rejects.profiles == 0) == (rejects.reason[0] == 0) || s != OK);
	if (s != OK)
		FUZZ_CHECK(p.samples.len == 0 && e.text[0]);
	else if (fuzz_thorough(data, size))
		check_again(&p);
	profile_deinit(&p);
	return 0;
}
