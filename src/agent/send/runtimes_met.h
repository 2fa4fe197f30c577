/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_met: which language runtimes samples had frames of, in which versions, and how many of
 * these samples show all of them. Private to agent/.
 *
 * Thread safety: one thread adds, any reads.
 */
#pragma once

#include "base/metrics.h"

#include <stdbool.h>

/* Versions; those that are met later are not counted. */
#define RUNTIMES_MET_MAX 64

struct runtime_met {
	metric_value what; /* kind << 16 | version, as in runtime_record; 0: none */
	metric_value samples;
	metric_value whole; /* of these: from the outermost frame on, and no frame is missing */
};

struct runtimes_met {
	struct runtime_met v[RUNTIMES_MET_MAX];
};

#define RUNTIMES_MET_NAME_BYTES 32

void runtimes_met_add(struct runtimes_met *m, uint32_t what, bool is_whole);
/* "cpython 3.11" */
void runtimes_met_name(uint32_t what, char out[RUNTIMES_MET_NAME_BYTES]);
