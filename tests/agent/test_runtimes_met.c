/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/runtimes_met.h"

#include "runtimes/runtimes.h"
#include "test.h"

static void counts_samples_of_each_version(void **state)
{
	(void)state;
	static struct runtimes_met met;
	for (uint32_t i = 0; i < 2 * RUNTIMES_MET_MAX; i++)
		runtimes_met_add(&met, RUNTIME_CPYTHON << 16 | i % (RUNTIMES_MET_MAX + 1), i < 5);
	CHECK(met.v[1].samples == 2 && met.v[1].whole == 1);
	CHECK(met.v[5].samples == 2 && met.v[5].whole == 0);
	CHECK(met.v[RUNTIMES_MET_MAX - 1].samples == 1);
}

static void names_them(void **state)
{
	(void)state;
	char name[RUNTIMES_MET_NAME_BYTES];
	runtimes_met_name(RUNTIME_CPYTHON << 16 | 3 << 8 | 11, name);
	assert_string_equal(name, "cpython 3.11");
	runtimes_met_name(RUNTIME_HOTSPOT << 16 | 17 << 8, name);
	assert_string_equal(name, "hotspot 17");
}

TEST_MAIN(cmocka_unit_test(counts_samples_of_each_version), cmocka_unit_test(names_them))
