/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/cover: for how much of the time a series of a gauge existed. A sum over series is
 * averaged over time with it, so that series which live one after the other do not add up
 * (docs/api.md, "Gauges").
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "base/err.h"

struct cover_point {
	int64_t time_ns;
	uint32_t series;
};

/* Memory that the functions below take for each point, at most. */
#define COVER_POINT_BYTES 32

/* The usual distance in time between two points. */
struct cover_intervals {
	uint64_t *
		of; /* by series: the median of the distances of its points; else `usual`; free() */
	uint64_t usual; /* the median of what is known; 0: no series has two points */
};
/* `p`: distinct, by series and time. */
NODISCARD enum status cover_intervals(const struct cover_point *p, size_t n, uint32_t series_count,
	struct cover_intervals *out, struct err *e);
/* For each series of `p` the weight of one value, so that weight times value, summed over its
 * points, is the series' share of the average. out[series]; other series' stay as they are. `p` as
 * above, of the same series or of some of them. */
NODISCARD enum status cover_weights(const struct cover_point *p, size_t n,
	const struct cover_intervals *x, double *out, struct err *e);
