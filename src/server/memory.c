/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory follows the host. Half of a cgroup's limit is left for others in it: the agent, the
 * building of symbol tables, and the pages of files that the kernel counts too.
 */
#include "base/status.h"
#include "server/server.h"

#define MEMORY_OF_HOST 20
#define MEMORY_DEFAULT_MIN ((uint64_t)512 << 20)
#define MEMORY_DEFAULT_MAX ((uint64_t)4 << 30)

uint64_t server_memory_default(uint64_t host_bytes, uint64_t cgroup_bytes)
{
	uint64_t bytes =
		MIN(MAX(host_bytes / MEMORY_OF_HOST, MEMORY_DEFAULT_MIN), MEMORY_DEFAULT_MAX);
	return MAX(MIN(bytes, cgroup_bytes / 2), SERVER_MEMORY_LEAST);
}
