/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsizes: how large the maps of the eBPF programs are, by the number of CPUs, so that a default
 * agent's kernel memory stays within KERNEL_BYTES_MAX: the more CPUs there are, the less is left
 * for unwind tables. Private to agent/ (sampler.c,
 * oom.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* All maps and programs, on up to KERNEL_CPUS_MAX possible CPUs. Beyond these tables still have
 * TABLE_BYTES_LEAST. */
#define KERNEL_BYTES_MAX (16u << 20)
#define KERNEL_CPUS_MAX 192
#define TABLE_BYTES_LEAST (8u << 20)
#define TABLE_BYTES_DEFAULT (12u << 20) /* where there is room for it */
/* Of all programs, compiled; 48 KiB on x86-64. */
#define KERNEL_PROGRAM_BYTES (96u << 10)

struct mapsizes {
	uint32_t ring_bytes;   /* a power of two */
	uint32_t seen_slots;   /* a power of two */
	uint32_t stack_copies; /* a power of two */
};

/* `cpus`: possible ones. */
void mapsizes_choose(uint32_t cpus, uint32_t frequency_hz, bool is_off_cpu, struct mapsizes *out);
/* What the kernel will charge for the maps of an object whose sizes are set, without slabs. */
uint64_t mapsizes_estimate(const struct bpf_object *object, uint32_t cpus);
/* What it charges for the maps and programs of one that is loaded, and where it does not say, as
 * estimated; without slabs. */
uint64_t mapsizes_measure(const struct bpf_object *object, uint32_t cpus);
/* What that leaves to unwind tables by default. */
uint32_t mapsizes_table_bytes(uint64_t maps_bytes);
