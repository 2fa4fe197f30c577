/* SPDX-License-Identifier: Apache-2.0 */
/* How long a merge waits: half of a processor, 64 MiB a second, whichever is slower. */
#include "store/merge/merge_pace.h"
#include "tests/test.h"

#define MS 1000000LL
#define MIB ((uint64_t)1 << 20)

static const struct {
	const char *name;
	int64_t wall_ns, cpu_ns;
	uint64_t bytes;
	int64_t delay_ns;
} cases[] = {
	{ "nothing done", 0, 0, 0, 0 },
	{ "as fast as it could", 100 * MS, 100 * MS, 0, 100 * MS },
	{ "others had the processor", 300 * MS, 100 * MS, 0, 0 },
	{ "many bytes", 500 * MS, 100 * MS, 64 * MIB, 500 * MS },
	{ "few bytes", 500 * MS, 100 * MS, 16 * MIB, 0 },
	{ "both", 500 * MS, 450 * MS, 64 * MIB, 500 * MS },
};

static void delays(void **unused)
{
	(void)unused;
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, merge_pace_delay_ns(c->wall_ns, c->cpu_ns, c->bytes) == c->delay_ns);
}

/* Whoever is not the store's own thread does not wait; who is stopping is told. */
static void only_the_background_waits(void **unused)
{
	(void)unused;
	static struct store s;
	struct merge_pace p;
	lock_init(&s.lock, LOCK_STORE);
	merge_pace_begin(&p);
	p.wall_ns += 3600 * 1000 * MS;
	CHECK(merge_pace_wait(&p, &s, UINT32_MAX));
	s.stopping = true;
	CHECK(!merge_pace_wait(&p, &s, 0));
	s.merger_runs = true;
	s.merger = pthread_self();
	CHECK(!merge_pace_wait(&p, &s, UINT32_MAX));
	lock_destroy(&s.lock);
}

TEST_MAIN(cmocka_unit_test(delays), cmocka_unit_test(only_the_background_waits))
