/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_bytes: does the kernel charge what mapsizes.h says? Of the running one. */
#pragma once

#include "agent/sample/mapsizes.h"
#include "live.h"
#include "test.h"

#include <bpf/libbpf.h>

/* What is there without unwind tables is what mapsizes.h says that it would be. */
static inline void live_check_kernel_bytes(struct live *l, const struct sampler_config *c)
{
	struct err e = { 0 };
	struct sampler_stats s;
	uint64_t estimate = 0;
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	sampler_read_stats(l->sampler, &s);
	if (sampler_kernel_bytes(c, cpus, &estimate, &e) != OK)
		live_fail("sampler_kernel_bytes", &e);
	uint64_t rest = s.kernel_bytes - s.slab_bytes;
	print_message("%.2f MiB in the kernel beside tables, %.2f by the estimate, and %u for idle "
		      "ones, with %u possible CPUs\n",
		(double)rest / (1 << 20), (double)(estimate + KERNEL_PROGRAM_BYTES) / (1 << 20),
		sampler_idle_table_bytes(c) >> 20, cpus);
	CHECK(rest <= estimate + KERNEL_PROGRAM_BYTES);
	CHECK(rest + rest / 20 >= estimate);
	CHECK(cpus > KERNEL_CPUS_MAX || rest + sampler_idle_table_bytes(c) <= KERNEL_BYTES_IDLE);
}
