/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileged_open: opens kernel objects that need privileges: events of CPUs, and memory for unwind
 * tables. Private to agent/.
 *
 * The broker opens them for the agent (broker.h); an agent that has kept its privileges does it by
 * itself. No state; all functions return a descriptor that is closed on exec, or -1 with errno.
 */
#pragma once

#include <stdint.h>

/* The event that samples a CPU, not enabled. */
int privileged_open_cpu(uint32_t cpu, uint32_t frequency_hz);
/* The event that tells of symbols on a CPU: of each BPF program that is loaded. */
int privileged_open_ksymbols(uint32_t cpu);
/* A slab: a map of fixed form and size. */
int privileged_open_slab(void);
