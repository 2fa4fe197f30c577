/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include "test.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* clang-format off */
static const struct {
	const char *name;
	uint64_t host, cgroup, want;
} cases[] = {
	{ "an unknown host", 0, UINT64_MAX, 512 * MIB },
	{ "a small host", 2 * GIB, UINT64_MAX, 512 * MIB },
	{ "5 %", 20 * GIB, UINT64_MAX, GIB },
	{ "a large host", 512 * GIB, UINT64_MAX, 4 * GIB },
	{ "a cgroup that has room", 20 * GIB, 4 * GIB, GIB },
	{ "half of the cgroup", 20 * GIB, 600 * MIB, 300 * MIB },
	{ "a small cgroup", 20 * GIB, 64 * MIB, 128 * MIB },
};
/* clang-format on */

static void follows_the_host(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, server_memory_default(c->host, c->cgroup) == c->want);
}

TEST_MAIN(cmocka_unit_test(follows_the_host))
