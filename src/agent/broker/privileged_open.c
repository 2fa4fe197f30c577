/* SPDX-License-Identifier: Apache-2.0 */
/* One system call each, whose arguments are fixed but for the CPU and the frequency. */
#include "agent/broker/privileged_open.h"

#include "agent/bpf/layout.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int privileged_open_cpu(uint32_t cpu, uint32_t frequency_hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = frequency_hz,
		.disabled = 1,
	};
	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int privileged_open_ksymbols(uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.ksymbol = 1,
		.watermark = 1, /* no thread waits for it */
		.wakeup_watermark = UINT32_MAX,
	};
	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Without libbpf, which would try first what the kernel can: the broker may do nothing else. */
int privileged_open_slab(void)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = SLAB_CHUNK_BYTES;
	attr.max_entries = SLAB_CHUNKS;
	attr.map_flags = BPF_F_MMAPABLE;
	memcpy(attr.map_name, "firn_slab", sizeof("firn_slab"));
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)); /* close-on-exec */
}
