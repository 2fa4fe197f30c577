/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus: a perf event on every CPU that is online, and the BPF program attached to each. Private to
 * agent/ (sampler.c). Not thread safe.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct bpf_program;
struct cpus;

#define CPUS_MAX 8192 /* NR_CPUS of the largest x86-64 kernels */
/* An event that has not fired for this time, and for this many of its periods, is dead. */
#define CPUS_SILENCE_NS (2 * NS_PER_SEC)
#define CPUS_SILENCE_PERIODS 20

/* Set *out[cpu] for each CPU of a kernel list like "0-3,8"; the others are cleared. False: not such
 * a list, or a CPU at or above `count`. */
NODISCARD bool cpus_parse(struct str list, bool *out, uint32_t count);

/* Samples at `frequency_hz` go to `program`, which must live longer. Nothing is attached yet. */
NODISCARD enum status cpus_new(
	const struct bpf_program *program, uint32_t frequency_hz, struct cpus **out, struct err *e);
void cpus_free(struct cpus *c); /* detaches */
/* Attaches to each CPU that is online and has no event; forgets CPUs that went offline. If nothing
 * changed it costs one read of a file. E_DENIED: some CPUs may not be sampled, all others are; it
 * is returned once for each change of the list. */
NODISCARD enum status cpus_update(struct cpus *c, struct err *e);
/* Replaces dead events, and counts them. `fired`: how often the event of each possible CPU has
 * fired since the beginning. E_DENIED: as for cpus_update(). */
NODISCARD enum status cpus_listen(
	struct cpus *c, const uint64_t *fired, int64_t now_ns, struct err *e);
uint64_t cpus_renewed(const struct cpus *c);
void cpus_detach(struct cpus *c);
/* While paused no event fires, not even on CPUs that come online. */
void cpus_pause(struct cpus *c, bool paused);
/* Sets how many samples a second each CPU takes from now on. */
NODISCARD enum status cpus_set_frequency(struct cpus *c, uint32_t frequency_hz, struct err *e);
uint32_t cpus_attached(const struct cpus *c);
