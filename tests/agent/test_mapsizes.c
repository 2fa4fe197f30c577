/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel memory by the number of CPUs: what it would be on hosts that are not at hand. That the
 * kernel charges what is estimated is in test_sampler.c, and under other kernels in
 * tests/kernels/.
 */
#include "agent/bpf/layout.h"
#include "agent/sample/mapsizes.h"
#include "agent/sample/sampler.h"
#include "test.h"

static uint64_t maps_bytes(uint32_t cpus, uint32_t frequency_hz)
{
	struct err e = { 0 };
	uint64_t bytes = 0;
	const struct sampler_config c = { .frequency_hz = frequency_hz };
	CHECK_OK(sampler_kernel_bytes(&c, cpus, &bytes, &e), &e);
	return bytes;
}

static void stays_within_its_limit_when_idle(void **state)
{
	(void)state;
	uint64_t before = 0;
	for (uint32_t cpus = 1; cpus <= KERNEL_CPUS_MAX; cpus++) {
		uint64_t maps = maps_bytes(cpus, 19);
		uint32_t tables = mapsizes_idle_table_bytes(maps);
		uint64_t all = maps + KERNEL_PROGRAM_BYTES + tables +
			       (tables / SLAB_BYTES) * (SLAB_BYTES / 512);
		if ((cpus & (cpus - 1)) == 0)
			print_message("%3u CPUs: %.2f MiB, and %u for tables\n", cpus,
				(double)maps / (1 << 20), tables >> 20);
		CHECK(tables >= TABLE_BYTES_IDLE_LEAST && tables % SLAB_BYTES == 0);
		CHECK(all <= KERNEL_BYTES_IDLE);
		CHECK(maps > before);
		before = maps;
	}
	CHECK(mapsizes_idle_table_bytes(maps_bytes(8, 19)) == TABLE_BYTES_IDLE);
}

/* Beyond that each CPU costs what it must have for itself, and tables have what they need. */
static void grows_slowly_beyond(void **state)
{
	(void)state;
	uint64_t each = (maps_bytes(1024, 19) - maps_bytes(128, 19)) / (1024 - 128);
	print_message("%llu bytes for each CPU more\n", (unsigned long long)each);
	CHECK(each < 24u << 10);
	CHECK(mapsizes_idle_table_bytes(maps_bytes(1024, 19)) == TABLE_BYTES_IDLE_LEAST);
	CHECK(mapsizes_idle_table_bytes(UINT64_MAX / 2) == TABLE_BYTES_IDLE_LEAST);
}

static void follows_the_memory_of_the_host(void **state)
{
	(void)state;
	CHECK(mapsizes_table_bytes(0, UINT64_MAX) == 64u << 20);
	CHECK(mapsizes_table_bytes((uint64_t)2 << 30, UINT64_MAX) == 64u << 20);
	CHECK(mapsizes_table_bytes((uint64_t)100 << 30, UINT64_MAX) == (uint64_t)1 << 30);
	CHECK(mapsizes_table_bytes((uint64_t)100 << 30, (uint64_t)1 << 30) == 512u << 20);
	CHECK(mapsizes_table_bytes((uint64_t)2 << 30, 100u << 20) == 50u << 20);
}

/* clang-format off */
static const struct {
	const char *name; uint32_t cpus, hz; bool is_off_cpu; struct mapsizes want;
} choices[] = {
	{ "small", 1, 19, false, { 512 << 10, 512, 1 } },
	{ "this many", 6, 19, false, { 1 << 20, 512, 2 } },
	{ "large", 128, 19, false, { 2 << 20, 512, 2 } },
	{ "as large as can be", 8192, 1, false, { 2 << 20, 512, 2 } },
	{ "small and quick", 2, 997, false, { 16 << 20, 1024, 2 } },
	{ "large and quick", 128, 997, false, { 32 << 20, 1024, 128 } },
	{ "off the CPU", 128, 19, true, { 16 << 20, 1024, 2 } },
	{ "everything", 8192, 10000, true, { 32 << 20, 1024, 1024 } },
};
/* clang-format on */

static void chooses(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, choices) {
		struct mapsizes got;
		mapsizes_choose(c->cpus, c->hz, c->is_off_cpu, &got);
		CHECK_CASE(c, got.ring_bytes == c->want.ring_bytes);
		CHECK_CASE(c, got.seen_slots == c->want.seen_slots);
		CHECK_CASE(c, got.stack_copies == c->want.stack_copies);
	}
}

TEST_MAIN(cmocka_unit_test(stays_within_its_limit_when_idle), cmocka_unit_test(grows_slowly_beyond),
	cmocka_unit_test(follows_the_memory_of_the_host), cmocka_unit_test(chooses))
