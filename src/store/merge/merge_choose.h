/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/merge_choose: which parts are merged next.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/state/state.h"

#define MERGE_SOURCES_MAX 32

/* Which parts to merge, oldest first; 0: none are due. */
struct merge_candidate {
	struct part *part;
	uint64_t bytes;
	uint32_t level;
	int64_t last_ns;
};
size_t merge_choose(const struct merge_candidate *v, size_t n, int64_t now_ns,
	size_t chosen[MERGE_SOURCES_MAX]);
