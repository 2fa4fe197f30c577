/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: the shared object that `dlopener` loads. */
#include "workload.h"

uint64_t plugin_run(uint64_t x);

NOINLINE static uint64_t plugin_leaf(uint64_t x)
{
	return workload_spin(x, WORKLOAD_ROUNDS);
}

NOINLINE uint64_t plugin_run(uint64_t x)
{
	return plugin_leaf(x) + 1;
}

uint64_t plugin_twice(uint64_t x);

/* Some microseconds. */
NOINLINE uint64_t plugin_twice(uint64_t x)
{
	return workload_spin(workload_spin(x, 5000) + 1, 5000) + 1;
}
