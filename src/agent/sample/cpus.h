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
/* An event that has not fired for so long, and so many of its periods, is dead. */
#define CPUS_SILENCE_NS (2 * NS_PER_SEC)
#define CPUS_SILENCE_PERIODS 20

/* Set *out[cpu] for each CPU of a kernel list like "0-3,8"; the others are cleared. False: not such
 * a list, or a CPU at or above `count`. */
NODISCARD bool cpus_parse(struct str list, bool *out, uint32_t count);

/* Samples at `frequency_hz` go to `program`, which must live longer. Nothing is attached yet. */
NODISCARD enum status cpus_new(
	const struct bpf_program *program, uint32_t frequency_hz, struct cpus **out, struct err *e);
void cpus_free(struct cpus *c); /* detaches */
/* Attach to each CPU that is online and has no event; forget those that went offline. One read of
 * a file when nothing changed. E_DENIED: some may not be sampled, all others are; not said again
 * until the list changes. */
NODISCARD enum status cpus_update(struct cpus *c, struct err *e);
/* `fired`: how often the event of each possible CPU has, since the beginning. What is dead is made
 * anew, and counted. E_DENIED as of cpus_update(). */
NODISCARD enum status cpus_listen(
	struct cpus *c, const uint64_t *fired, int64_t now_ns, struct err *e);
uint64_t cpus_renewed(const struct cpus *c);
void cpus_detach(struct cpus *c);
/* While paused no event fires, those of CPUs that come online neither. */
void cpus_pause(struct cpus *c, bool paused);
/* From now on so many samples a second. */
NODISCARD enum status cpus_set_frequency(struct cpus *c, uint32_t frequency_hz, struct err *e);
uint32_t cpus_attached(const struct cpus *c);
