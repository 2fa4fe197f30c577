/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload: what the programs of known shape have in common. They burn CPU in functions that are
 * not inlined, for a number of seconds, and die with the test that started them.
 *
 * Freestanding of our libraries on purpose: their stacks must hold nothing but what they say.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__ /* which knows no other word for it */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa))
#endif

/* A value that the compiler cannot know, so that no call becomes a jump. */
static volatile uint64_t workload_sink;

static inline int64_t workload_now_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t workload_deadline_ns;

/* Die with the parent; argument `index` is the number of seconds. */
static inline void workload_begin(int argc, char **argv, int index)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	double seconds = argc > index ? strtod(argv[index], NULL) : 1;
	workload_deadline_ns = workload_now_ns() + (int64_t)(seconds * 1e9);
}

static inline int workload_is_over(void)
{
	return workload_now_ns() >= workload_deadline_ns;
}

/* About a millisecond of arithmetic, without a call. */
static inline __attribute__((always_inline)) uint64_t workload_spin(uint64_t x, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		workload_sink = x;
	}
	return x;
}

#define WORKLOAD_ROUNDS 2000000
