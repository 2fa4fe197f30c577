/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs: which of `count` equal units are taken, and where a run of free ones is. Private to agent/.
 *
 * First fit over a bitmap: freeing needs no memory and cannot fail. Not thread safe.
 */
#pragma once

#include "base/status.h"

#define RUNS_NONE UINT32_MAX

struct runs {
	uint64_t *words; /* a bit for each unit: taken */
	uint32_t count;
	uint32_t used;
	uint32_t no_fit; /* since the last release, runs this long were not found */
};

NODISCARD enum status runs_init(struct runs *r, uint32_t count);
void runs_deinit(struct runs *r);
/* First unit of a run of `len` (more than 0) that was free and is taken now; RUNS_NONE: no room. */
uint32_t runs_take(struct runs *r, uint32_t len);
/* Give back what runs_take() gave, whole or in part. */
void runs_release(struct runs *r, uint32_t start, uint32_t len);
