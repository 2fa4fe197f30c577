/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever stacktext_decode() takes, in either format, is a sound profile with samples of
 * positive values, and every line is counted as read or as left out at most once. What is guessed
 * to be a text holds no control bytes at its beginning.
 */
#include "fuzz/fuzz.h"

#include "stacktext/stacktext.h"

#define LIMIT ((size_t)64 << 20)

static uint64_t lines_of(struct str text)
{
	uint64_t lines = 0;
	struct str line;
	while (str_split(&text, '\n', &line))
		lines++;
	return lines;
}

static void check(struct str text, enum stacktext_format f)
{
	struct profile p;
	struct stacktext_stats stats;
	struct err e;
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = stacktext_decode(text, f, 1000000000, &p, &stats, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK((s == OK) == (p.samples.len > 0));
	FUZZ_CHECK(s == OK || e.text[0]);
	for (size_t i = 0; i < p.samples.len; i++)
		FUZZ_CHECK(p.samples.v[i].value > 0);
	/* A head of perf's may have its only frame with it. */
	uint64_t most = (f == STACKTEXT_PERF ? 2 : 1) * lines_of(text);
	FUZZ_CHECK(stats.lines + stats.skipped <= most && p.samples.len <= stats.lines);
	profile_deinit(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_make(data, size);
	enum stacktext_format f = stacktext_guess(text);
	FUZZ_CHECK(f == STACKTEXT_NONE || size > 0);
	check(text, STACKTEXT_FOLDED);
	check(text, STACKTEXT_PERF);
	return 0;
}
