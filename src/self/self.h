/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: profiles of this process, made by itself: where its threads spend CPU time, and how much
 * memory malloc has. For a process that no agent profiles, or whose operator has only HTTP.
 *
 * Layer 3 (may use base, os, profile). CPU: each thread has a timer over its own CPU time (POSIX
 * timers; 100 signals a second of it), whose signal notes the stack. Threads that begin meanwhile
 * are found within SELF_LOOK_NS. Time in a system call that cannot be interrupted is noted where
 * the call returns. Frames are addresses with the mapping and build id of their file: the reader
 * adds names, as for any program that is not Go.
 *
 * Memory: malloc says how much is in use, how much it keeps free and how much it mapped, but not
 * which code asked for it, so the profile has no real stacks.
 */
#pragma once

#include "profile/profile.h"

#define SELF_PERIOD_NS ((int64_t)10000000) /* of a thread's CPU time */
#define SELF_FRAMES_MAX 120
#define SELF_THREADS_MAX 8192             /* further ones are not sampled */
#define SELF_SLOTS 4096                   /* samples between two looks; more are lost */
#define SELF_LOOK_NS ((int64_t)100000000) /* how often they are gathered */
#define SELF_SECONDS_MAX 300
#define SELF_BYTES_MAX ((size_t)64 << 20) /* of a profile */

/* Only one at a time in a process. E_EXISTS: another one is running. */
struct self_cpu;
NODISCARD enum status self_cpu_start(struct self_cpu **out, struct err *e);
/* Takes the samples that the threads have written since the last call, and finds new threads. To be
 * called every SELF_LOOK_NS. */
NODISCARD enum status self_cpu_look(struct self_cpu *c, struct err *e);
/* Replaces `out`, an initialised profile, by one with all samples: process_cpu, samples:count and
 * cpu:nanoseconds, each with the label thread_name. *out_lost: samples that found no slot. */
NODISCARD enum status self_cpu_stop(
	struct self_cpu *c, struct profile *out, uint64_t *out_lost, struct err *e);
void self_cpu_free(struct self_cpu *c); /* ends it; NULL is fine */

/* Adds one gauge, memory, inuse_space:bytes: "malloc: in use", "malloc: kept free",
 * "malloc: mapped". */
NODISCARD enum status self_heap(struct profile *out, struct err *e);
