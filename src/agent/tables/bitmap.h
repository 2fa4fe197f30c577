/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitmap: which of `count` equal units are taken, and where a run of free ones is. Private to
 * agent/.
 *
 * First fit: freeing needs no memory and cannot fail. Not thread safe.
 */
#pragma once

#include "base/status.h"

#define BITMAP_NONE UINT32_MAX

struct bitmap {
	uint64_t *words; /* a bit for each unit: taken */
	uint32_t count;
	uint32_t used;
	uint32_t no_fit; /* since the last release, runs this long were not found */
};

NODISCARD enum status bitmap_init(struct bitmap *r, uint32_t count);
void bitmap_deinit(struct bitmap *r);
/* First unit of a run of `len` (more than 0) that was free and is taken now; BITMAP_NONE: no room.
 */
uint32_t bitmap_take(struct bitmap *r, uint32_t len);
/* Give back what bitmap_take() gave, whole or in part. */
void bitmap_release(struct bitmap *r, uint32_t start, uint32_t len);
