/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a long sweep is tried, by the environment variable FIRN_SWEEP:
 * "few" in the daily loop, "all" in `./scripts/test long`, else some of it.
 * In the daily loop each run tries other places; CI tries the same ones each time.
 */
#pragma once

#include "test.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline bool sweep_is(const char *amount)
{
	const char *said = getenv("FIRN_SWEEP");
	return said && strcmp(said, amount) == 0;
}

static inline bool sweep_all(void)
{
	return sweep_is("all");
}

/* How many of the places that CI tries. */
static inline int sweep_tried(int usual)
{
	return sweep_is("few") ? (usual + 4) / 5 : usual;
}

/* The distance between two places out of `all`, of which CI tries about `usual`. */
static inline int sweep_step(int all, int usual)
{
	int step = all / sweep_tried(usual);
	return sweep_all() || step < 1 ? 1 : step;
}

/* The distance between two places of a sweep that CI makes at each with the address sanitizer. The
 * thread sanitizer looks for other faults than those of a call that fails, and takes ten times as
 * long. */
static inline int sweep_each(void)
{
	return sweep_is("few") ? 5 : TEST_TSAN && !sweep_all() ? 6 : 1;
}

static inline uint64_t sweep_seed(void)
{
	return sweep_is("few") ? (uint64_t)getpid() : 1;
}
