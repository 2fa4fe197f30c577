/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsizes: chooses the sizes of the eBPF programs' maps, by the number of CPUs and the memory of
 * the host. On an idle host all of them stay within KERNEL_BYTES_IDLE: the more CPUs there are, the
 * less is left for unwind tables. Tables in use may take more. Private to agent/ (sampler.c,
 * oom.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* Bytes of all maps and programs while tables are not used, on up to KERNEL_CPUS_MAX possible CPUs.
 * With more CPUs tables still have TABLE_BYTES_IDLE_LEAST. */
#define KERNEL_BYTES_IDLE (18u << 20)
#define KERNEL_CPUS_MAX 192
#define TABLE_BYTES_IDLE_LEAST (8u << 20)
#define TABLE_BYTES_IDLE (12u << 20) /* if there is room for it */
/* Tables in use may take 1 % of the host's memory, and TABLE_BYTES_LEAST in any case. But they take
 * at most half of our control group's limit, since the kernel counts them there (Linux 5.11). */
#define TABLE_BYTES_LEAST (64u << 20)
#define TABLE_HOST_PERCENT 1
/* Bytes of all BPF programs in the kernel, compiled. */
#define KERNEL_PROGRAM_BYTES (256u << 10)

struct mapsizes {
	uint32_t ring_bytes;   /* a power of two */
	uint32_t seen_slots;   /* a power of two */
	uint32_t stack_copies; /* a power of two */
	uint32_t codes_told;   /* a power of two */
	uint32_t kept_places;  /* a power of two */
};

/* `cpus`: possible ones. */
void mapsizes_choose(uint32_t cpus, uint32_t frequency_hz, bool is_off_cpu, struct mapsizes *out);
/* Memory that the kernel will charge for the maps of an object whose sizes are set, without slabs.
 */
uint64_t mapsizes_estimate(const struct bpf_object *object, uint32_t cpus);
/* Memory that the kernel charges for the maps and programs of a loaded object, or the estimate
 * where it does not say; without slabs. */
uint64_t mapsizes_measure(const struct bpf_object *object, uint32_t cpus);
/* Bytes that are left for unused unwind tables. */
uint32_t mapsizes_idle_table_bytes(uint64_t maps_bytes);
/* Bytes that tables in use may take by default; `limit_bytes`: of the control group, UINT64_MAX:
 * none. */
uint64_t mapsizes_table_bytes(uint64_t host_bytes, uint64_t limit_bytes);
