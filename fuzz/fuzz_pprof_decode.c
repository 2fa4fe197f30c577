/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever pprof_decode() takes is a sound profile; written again and read again it has
 * the same samples.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "pprof/pprof.h"
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
	struct buf first, want, got;
	struct err e;
	buf_init(&first, LIMIT);
	buf_init(&want, LIMIT);
	buf_init(&got, LIMIT);
	enum status s = pprof_encode(p, &first, &e);
	if (s == E_LIMIT) { /* more sample types than one file may have */
		buf_deinit(&first);
		return;
	}
	FUZZ_CHECK(s == OK);
	FUZZ_CHECK(profile_init(&back, LIMIT) == OK);
	FUZZ_CHECK(pprof_decode(buf_view(&first), STR("fuzz"), &back, &e) == OK);
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
	struct err e;
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = pprof_decode(str_make(data, size), STR("fuzz"), &p, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	if (s != OK)
		FUZZ_CHECK(p.samples.len == 0 && e.text[0]);
	else if (fuzz_thorough(data, size))
		check_again(&p);
	profile_deinit(&p);
	return 0;
}
